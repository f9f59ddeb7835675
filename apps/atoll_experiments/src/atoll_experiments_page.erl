%% @doc The page of the experiments, in Markdown: what the paper says beside what came of it
%% here. A pure function of the results; what is said of them is said by the verdicts.
-module(atoll_experiments_page).

-export([markdown/2]).

-export_type([entry/0]).

-type entry() :: #{
    about := atoll_experiment:about(),
    %% How long it took; none if it was interrupted.
    seconds := number() | none,
    steps := [atoll_experiment:step()],
    %% Of steps that failed or were cut short, why.
    failed := #{atom() => unicode:chardata()},
    %% The files of what was measured by benchmarks.
    runs := [file:filename_all()],
    verdict := {ok, atoll_experiment:verdict()} | {failed, unicode:chardata()}
}.

%% @doc The whole page. The header is that of `run.json'.
-spec markdown(map(), [entry()]) -> unicode:chardata().
markdown(Header, Entries) ->
    Total = lists:sum([Seconds || #{seconds := Seconds} <- Entries, Seconds =/= none]),
    [
        "# The papers' experiments, run again\n\n",
        "The paper is Trinder and others, *Scaling Reliably: Improving the Scalability of the Erlang Distributed Actor "
        "Platform* (ACM TOPLAS 39(4), 2017). Its clusters had up to 256 hosts with 24 cores each; here all nodes share one machine, "
        "so no claim is made on time that more hosts would take. This page is written by `make experiments` (`bin/atoll experiments`) "
        "from what it has measured, sentences and verdicts too; what an experiment can show at all stands in its section.\n\n",
        machine(Header),
        io_lib:format(" All of it took ~b min.\n\n", [ceil(Total / 60)]),
        small(Header),
        row(["experiment", "question", "of the paper's statements", "time, and at most"]),
        row(["---", "---", "---", "---"]),
        [summary(Entry) || Entry <- Entries],
        "\n*Same* says that the statement holds for what was measured here, *not so here* that it does not, and *not shown* that "
        "nothing was measured that could tell: nothing at all, or only what differs by less than its rounds do among themselves. Where a "
        "number has two in brackets it is the median of the rounds, and these are its interval at 95 per cent (of fewer than five rounds, "
        "the least and the most).\n",
        [section(Entry) || Entry <- Entries]
    ].

machine(#{<<"machine">> := #{<<"cpu">> := Cpu, <<"cores">> := Cores, <<"memory_bytes">> := Memory, <<"kernel">> := Kernel, <<"otp">> := Otp}}) ->
    [
        io_lib:format("The machine: ~b processors (~ts)", [Cores, Cpu]),
        [[", ", atoll_bench_report_text:bytes(Memory)] || is_integer(Memory)],
        io_lib:format(", ~ts; Erlang/OTP ~ts.", [Kernel, Otp])
    ].

small(#{<<"size">> := <<"small">>}) -> "**This was the small run (`--size small`), which shows that everything runs and nothing else.**\n\n";
small(_) -> "".

summary(#{about := #{title := Title, question := Question, minutes := Minutes}, seconds := Seconds, verdict := Verdict}) ->
    row([Title, Question, counted(Verdict), [taken(Seconds), io_lib:format(", ~b min", [Minutes])]]).

taken(none) -> "interrupted";
taken(Seconds) -> io_lib:format("~b s", [ceil(Seconds)]).

counted({failed, _}) ->
    "failed";
counted({ok, #{claims := Claims}}) ->
    Counts = atoll_experiment:counts(Claims),
    case [io_lib:format("~b ~ts", [N, Word]) || {Key, Word} <- words(), N <- [maps:get(Key, Counts)], N > 0] of
        [] -> "none";
        Some -> lists:join(", ", Some)
    end.

words() -> [{same, "same"}, {not_so, "not so here"}, {not_shown, "not shown"}].

section(#{about := About, steps := Steps, failed := Failed, verdict := Verdict}) ->
    #{title := Title, question := Question, cannot := Cannot} = About,
    [
        "\n## ", Title, "\n\n", Question, "\n\n",
        judged(Verdict),
        "What this machine cannot show: ", Cannot, "\n",
        failures(Steps, Failed),
        "\nHow it was run:\n\n",
        [["- `", Says, "`\n"] || #{says := Says, run := {bench, _, _}} <- Steps],
        [["- ", Says, "\n"] || #{says := Says, run := {job, _}} <- Steps]
    ].

judged({failed, Why}) ->
    ["This experiment has failed: ", Why, ".\n\n"];
judged({ok, #{tables := Tables, claims := Claims}}) ->
    [
        [table(Table) || #{rows := [_ | _]} = Table <- Tables],
        row(["", "the paper", "here", ""]),
        row(["---", "---", "---", "---"]),
        [claim(Claim) || Claim <- Claims],
        "\n"
    ].

table(#{caption := Caption, head := Head, rows := Rows}) ->
    [Caption, "\n\n", row(Head), row(["---" || _ <- Head]), [row(Row) || Row <- Rows], "\n"].

claim(#{figure := none, paper := Paper, holds := Holds} = Claim) ->
    row(["not in the paper", Paper, here(Claim), ["**", own(Holds), "**"]]);
claim(#{figure := Figure, paper := Paper, holds := Holds} = Claim) ->
    row([Figure, Paper, here(Claim), ["**", of_the_paper(Holds), "**"]]).

here(#{here := Here, why := Why}) ->
    [Here, [[" ", Why] || not string:is_empty(Why)]].

of_the_paper(true) -> "same";
of_the_paper(false) -> "not so here";
of_the_paper(unknown) -> "not shown".

own(true) -> "holds";
own(false) -> "does not hold";
own(unknown) -> "not shown".

failures(_Steps, Failed) when Failed =:= #{} ->
    "";
failures(Steps, Failed) ->
    ["\nWhat failed or was cut short; what had been measured by then counts:\n\n",
     [["- ", Says, ": ", maps:get(Key, Failed), "\n"] || #{key := Key, says := Says} <- Steps, is_map_key(Key, Failed)]].

%% A cell is one line, and a bar would end it.
row(Cells) ->
    ["| ", lists:join(" | ", [cell(Cell) || Cell <- Cells]), " |\n"].

cell(Text) ->
    string:replace(string:replace(Text, "|", "\\|", all), "\n", " ", all).
