# SPDX-License-Identifier: Apache-2.0
# The front door for people: `make help` lists what there is.
MAKEFLAGS += --no-print-directory
.DELETE_ON_ERROR:
.PHONY: help demo experiments experiments-page build elixir report-bundle check-report watch-page check-watch-page test soak tests-deep goals faults faults-drawn flaky check lint xref dialyzer docs package clean

# Whatever a recipe starts in place of its shell dies with make, even when make
# is killed by a signal that nobody can catch.
TIED  := $(if $(shell command -v setpriv),exec setpriv --pdeathsig KILL,exec)
READY := _build/.ready

help:
	@echo 'make demo           what groups do for names, connections and failures, in a minute;'
	@echo '                    WATCH=1 shows its last part on a page, until Ctrl-C'
	@echo 'make experiments    the papers'"'"' experiments again, an hour and a half at most; EXPERIMENTS=orbit,place,'
	@echo '                    SIZE=whole for all settings, which takes hours'
	@echo 'make experiments-page  docs/evidence/experiments.md from what they measured last'
	@echo 'make test           the fast tier of the tests; SUITE=x_SUITE CASE=y SEED=7 for a part of them;'
	@echo '                    OTP=25, 27 or 29 runs them in a Debian root of that release'
	@echo 'make soak           all tests in full, the goals of the overlay, sixty planted faults, and the'
	@echo '                    fast tier on OTP 27 and 29; OTPS= without these'
	@echo 'make flaky          one suite again and again beside busy loops; SUITE=x_SUITE N=20 BUSY=2'
	@echo 'make goals          long simulations against the goals of the overlay; SEEDS=20, GOALS=speed,xbot'
	@echo 'make faults         planted faults, each of which the tests must find; SUITE=atoll_sim for one application'
	@echo '                    or module, FAULTS=60 for so many that are drawn'
	@echo 'make check          everything that must be clean: lint and test'
	@echo 'make lint           warnings, the call graph (xref), the types (dialyzer), the documentation'
	@echo 'make build          compiles; bin/atoll does so by itself when it has to'
	@echo 'make report-bundle  the scripts that draw a benchmark report; needs Node.js, and gets it'
	@echo 'make check-report   a sample report in a browser; needs Chromium, and gets it'
	@echo 'make watch-page     the page of the watch room, _build/watch-page; needs Node.js, and gets it'
	@echo 'make check-watch-page  that page in a browser, before a made-up cluster; needs Chromium, and gets it'
	@echo 'make docs           all pages and the documentation of the modules as one site, _build/site/index.html'
	@echo 'make package        the library as a package in the form that Hex has, in _build/package'
	@echo 'make clean          removes what was built'

# Installs what is missing, once.
$(READY): scripts/setup
	@scripts/setup
	@mkdir -p $(@D) && touch $@

build: $(READY)
	@$(TIED) scripts/build

report-bundle: $(READY)
	@$(TIED) scripts/build-report

check-report: $(READY)
	@$(TIED) scripts/check-report

watch-page: $(READY)
	@$(TIED) scripts/build-watch-page

check-watch-page: $(READY)
	@$(TIED) scripts/check-watch-page

# A signal may reach make alone: the VM watches it.
demo: build $(if $(WATCH),watch-page)
	@ATOLL_TIED_TO=$$PPID $(TIED) bin/atoll demo $(if $(WATCH),--watch)

experiments: build
	@ATOLL_TIED_TO=$$PPID $(TIED) bin/atoll experiments --out _build/experiments$(SIZE:%=-%) $(SIZE:%=--size %) $(if $(EXPERIMENTS),--only $(EXPERIMENTS))

experiments-page: build
	@ATOLL_TIED_TO=$$PPID bin/atoll experiments --draw --out _build/experiments && cp _build/experiments/experiments.md docs/evidence/experiments.md

# What `make test', `make soak', `make flaky' and `make faults' are told on the command line.
CHOSEN = $(if $(SUITE),--suite '$(SUITE)') $(if $(CASE),--case '$(CASE)') $(if $(SEED),--seed '$(SEED)') \
	$(if $(JOBS),--jobs '$(JOBS)') $(if $(RECORD),--record)
BESIDE = $(if $(BUSY),--busy '$(BUSY)')

ifdef OTP
test:
	@$(TIED) scripts/in-otp '$(OTP)' make test $(foreach V,SUITE CASE SEED JOBS BUSY,$(if $($(V)),$(V)='$($(V))'))
else
test: build elixir
	@$(TIED) scripts/test $(CHOSEN) $(BESIDE)
endif

# A part of it when it is named; else everything, one after the other, to the end.
OTPS ?= 27 29
soak: build elixir
ifdef SUITE
	@$(TIED) scripts/test --tier deep $(CHOSEN) $(BESIDE)
else
	@failed=; \
	for part in tests-deep goals faults-drawn $(OTPS:%=otp-%); do \
		echo "== $$part"; $(MAKE) $$part || failed="$$failed $$part"; \
	done; \
	[ -z "$$failed" ] || { echo "make soak: failed:$$failed" >&2; exit 1; }
endif

tests-deep: build elixir
	@$(TIED) scripts/test --tier deep $(CHOSEN)

FAULTS ?= all
faults: build
	@$(TIED) scripts/test --faults '$(FAULTS)' $(CHOSEN)

# Few enough for the hour of `make soak'. Each run draws others, or those of its SEED.
faults-drawn:
	@$(MAKE) faults FAULTS=$(if $(filter file,$(origin FAULTS)),60,$(FAULTS))

N ?= 20
flaky: build
ifdef SUITE
	@$(TIED) scripts/test --repeat '$(N)' --busy '$(or $(BUSY),$(shell nproc))' $(CHOSEN)
else
	@echo 'make flaky: name a suite, as in make flaky SUITE=atoll_name_SUITE' >&2; exit 2
endif

otp-%:
	@$(MAKE) test OTP=$*

# For the tests with Elixir, which are skipped without it.
elixir: $(READY)
	@scripts/setup elixir || echo 'The tests with Elixir are skipped.' >&2

SEEDS ?= 1
goals: build
	@$(TIED) erl +Bd +MHsbct 2000000 +MHmmbcs 400000 +MHsmbcs 65536 +MHlmbcs 65536 -noinput \
		-pa _build/default/lib/*/ebin -s atoll_sim_soak main -extra '$(SEEDS)' '$(GOALS)'

check: lint test

lint: build xref dialyzer docs

xref: $(READY)
	@$(TIED) rebar3 xref

dialyzer: build
	@$(TIED) scripts/dialyzer

# What renders the pages is needed for nothing else.
docs: build
	@scripts/setup cmark-gfm
	@$(TIED) erl -noinput -pa _build/default/lib/*/ebin -s atoll_release main docs _build/site

package: build
	@$(TIED) erl -noinput -pa _build/default/lib/*/ebin -s atoll_release main package _build/package

clean:
	rm -rf _build
