%% SPDX-License-Identifier: Apache-2.0
%% What docs/carrier.md says of releases is so: one of each kind is built with the blocks
%% that stand there, and its node uses the carrier from its start on. And what apps/atoll/README.md
%% says of dependencies: a project has the library from a repository.
-module(atoll_cli_release_SUITE).
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([a_relx_release_starts_on_the_carrier/1, a_mix_release_starts_on_the_carrier/1]).
-export([the_configuration_of_the_page_is_one/1]).
-export([rebar3_has_it_from_a_repository/1, mix_has_it_from_a_repository/1]).

-define(BUILD_MS, 240000).
-define(START_MS, 30000).

suite() -> [{timetrap, {minutes, 8}}].

all() -> cases(atoll_tier:tier()).

%% Building takes minutes.
cases(fast) -> [the_configuration_of_the_page_is_one];
cases(deep) -> cases(fast) ++ [
    a_relx_release_starts_on_the_carrier, a_mix_release_starts_on_the_carrier,
    rebar3_has_it_from_a_repository, mix_has_it_from_a_repository
].

init_per_testcase(the_configuration_of_the_page_is_one, Config) -> Config;
init_per_testcase(a_relx_release_starts_on_the_carrier, Config) -> with("rebar3", Config);
init_per_testcase(rebar3_has_it_from_a_repository, Config) -> with("rebar3", Config);
init_per_testcase(Case, Config) when Case =:= a_mix_release_starts_on_the_carrier; Case =:= mix_has_it_from_a_repository ->
    with("mix", Config).

with(Tool, Config) ->
    case os:find_executable(Tool) of
        false ->
            {skip, Tool ++ " is not installed"};
        _ ->
            Dir = atoll_cli_os:new_dir(),
            ok = own_epmd(Dir),
            case sh("exec " ++ Tool ++ " --version", Dir, Dir) of
                #{status := 0} ->
                    [{dir, Dir} | Config];
                #{} ->
                    ok = removed(Dir),
                    {skip, Tool ++ " does not run on this OTP"}
            end
    end.

end_per_testcase(_Case, Config) ->
    case proplists:lookup(dir, Config) of
        {dir, Dir} -> removed(Dir);
        none -> ok
    end.

%% A release starts the port mapper that it brings, unless one runs: so it gets its own.
own_epmd(Dir) ->
    ok = file:write_file(filename:join(Dir, "epmd_port"), integer_to_list(atoll_test_port:free({0, 0, 0, 0}))),
    #{status := 0} = sh("exec epmd -daemon -relaxed_command_check", Dir, Dir),
    ok.

removed(Dir) ->
    #{status := 0} = sh("exec epmd -kill", Dir, Dir),
    atoll_cli_os:remove_dir(Dir).

%% The blocks of a language, in their order.
blocks(Language) ->
    blocks(Language, "docs/carrier.md").

blocks(Language, Name) ->
    {ok, Page} = file:read_file(filename:join(atoll_cli_os:root(), Name)),
    {match, Found} = re:run(Page, "```" ++ Language ++ "\n(.*?)```", [global, dotall, {capture, all_but_first, list}]),
    [Text || [Text] <- Found].

the_configuration_of_the_page_is_one(_) ->
    [Text | _] = blocks("erlang"),
    {ok, Tokens, _} = erl_scan:string(Text),
    {ok, [{kernel, [{atoll_dist, Options}]}]} = erl_parse:parse_term(Tokens),
    ?assertMatch({ok, #{kind := {lanes, 4}, stock := accept}}, atoll_dist_config:new(Options)).

a_relx_release_starts_on_the_carrier(Config) ->
    Dir = proplists:get_value(dir, Config),
    [Args | _] = blocks("text"),
    [SysConfig | _] = blocks("erlang"),
    Node = node_name(),
    Project = filename:join(Dir, "shop"),
    files(Project, [
        {"rebar.config",
            "{deps, [atoll]}.\n{relx, [{release, {shop, \"0.1.0\"}, [shop, sasl]}, {mode, prod},\n"
            "    {vm_args, \"config/vm.args\"}, {sys_config, \"config/sys.config\"}, {extended_start_script, true}]}.\n"},
        {"src/shop.app.src",
            "{application, shop, [{description, \"\"}, {vsn, \"0.1.0\"}, {applications, [kernel, stdlib, atoll]}]}.\n"},
        {"config/vm.args", ["-name ", Node, "\n-setcookie shop\n", Args]},
        {"config/sys.config", SysConfig}
    ]),
    ok = file:make_dir(filename:join(Project, "_checkouts")),
    ok = copy_library(filename:join([Project, "_checkouts", "atoll"])),
    #{status := 0} = sh("exec rebar3 release", Project, Dir, ?BUILD_MS),
    Release = filename:join(Project, "_build/default/rel/shop"),
    Program = atoll_cli_os:start(Dir, {sh, clean(Dir) ++ "exec bin/shop foreground"}, Release),
    starts_on_the_carrier(Node, Release, Dir),
    ended(Node, Release, Dir, Program).

a_mix_release_starts_on_the_carrier(Config) ->
    Dir = proplists:get_value(dir, Config),
    [Args | _] = blocks("text"),
    [Elixir | _] = blocks("elixir"),
    Node = node_name(),
    Project = filename:join(Dir, "shop"),
    files(Project, [
        {"mix.exs",
            "defmodule Shop.MixProject do\n  use Mix.Project\n"
            "  def project, do: [app: :shop, version: \"0.1.0\", deps: [{:atoll, path: \"../atoll\", manager: :rebar3}]]\n"
            "  def application, do: [extra_applications: [:logger]]\nend\n"},
        {"lib/shop.ex", "defmodule Shop do\nend\n"},
        {"config/config.exs", Elixir},
        {"rel/vm.args.eex", Args}
    ]),
    ok = copy_library(filename:join(Dir, "atoll")),
    Build = "MIX_REBAR3=$(command -v rebar3) MIX_ENV=prod exec mix release",
    #{status := 0} = sh(Build, Project, Dir, ?BUILD_MS),
    Release = filename:join(Project, "_build/prod/rel/shop"),
    Named = "export RELEASE_DISTRIBUTION=name RELEASE_COOKIE=shop RELEASE_NODE=" ++ Node ++ "; ",
    Program = atoll_cli_os:start(Dir, {sh, clean(Dir) ++ Named ++ "exec bin/shop start"}, Release),
    starts_on_the_carrier(Node, Release, Dir),
    #{status := 0, stdout := Said} = sh(Named ++ "exec bin/shop rpc 'IO.inspect(:code.get_mode())'", Release, Dir),
    ?assertEqual(<<":embedded\n">>, Said),
    ended(Node, Release, Dir, Program).

rebar3_has_it_from_a_repository(Config) ->
    Dir = proplists:get_value(dir, Config),
    [Deps | _] = blocks("erlang", "apps/atoll/README.md"),
    Project = filename:join(Dir, "shop"),
    files(Project, [
        {"rebar.config", from(repository(Dir), Deps)},
        {"src/shop.app.src", "{application, shop, [{vsn, \"1\"}, {applications, [kernel, stdlib, atoll]}]}.\n"}
    ]),
    #{status := 0} = sh("exec rebar3 compile", Project, Dir, ?BUILD_MS),
    Ask = "exec erl -noinput -pa $(dirname $(find _build -name atoll.app)) -eval 'io:put_chars(atoll:version()), halt().'",
    #{status := 0, stdout := Said} = sh(Ask, Project, Dir),
    ?assertEqual(atoll:version(), binary_to_list(Said)).

mix_has_it_from_a_repository(Config) ->
    Dir = proplists:get_value(dir, Config),
    [Deps | _] = blocks("elixir", "apps/atoll/README.md"),
    Project = filename:join(Dir, "shop"),
    files(Project, [
        {"mix.exs", [
            "defmodule Shop.MixProject do\n  use Mix.Project\n  def project, do: [app: :shop, version: \"1.0.0\", deps: deps()]\n",
            from(repository(Dir), Deps), "end\n"
        ]},
        {"lib/shop.ex", "defmodule Shop do\nend\n"}
    ]),
    Build = "export MIX_REBAR3=$(command -v rebar3) HOME=" ++ Dir ++ "; mix deps.get && exec mix compile",
    #{status := 0} = sh(Build, Project, Dir, ?BUILD_MS),
    #{status := 0, stdout := Said} = sh("exec mix run --no-start -e 'IO.write(:atoll.version())'", Project, Dir),
    ?assertEqual(atoll:version(), binary_to_list(Said)).

from(Repository, Deps) ->
    string:replace(Deps, "https://git.example/atoll.git", "file://" ++ Repository).

%% One with the library where the project's own has it, and more beside it.
repository(Dir) ->
    Repository = filename:join(Dir, "repository"),
    App = filename:join(atoll_cli_os:root(), "apps/atoll"),
    ok = filelib:ensure_path(filename:join(Repository, "apps/atoll")),
    Copy = [
        ["cp -R ", filename:join(App, "src"), " ", filename:join(App, "rebar.config"), " apps/atoll"],
        ["cp -P ", filename:join(App, "LICENSE"), " apps/atoll"],
        ["cp ", filename:join(atoll_cli_os:root(), "LICENSE"), " ."],
        "git init -q -b main", "git add -A", "git -c user.name=a -c user.email=a@b.example commit -q -m a"
    ],
    #{status := 0} = sh(lists:append(lists:join(" && ", [lists:flatten(Step) || Step <- Copy])), Repository, Dir),
    Repository.

%% A node on the carrier finds it there, and one without is let in.
starts_on_the_carrier(Node, Release, Dir) ->
    Kinds = "io:format(\"~w~n\",[[K||#{kind:=K}<-rpc:call(N,atoll,links,[])]])",
    %% Who asks may be quicker than the node hears of its connection.
    [ok = atoll_cli_os:await(fun() -> Kind =:= ask(Node, Flags, Kinds, Release, Dir) end, ?START_MS)
     || {Kind, Flags} <- [{<<"[{lanes,4}]\n">>, "-proto_dist atoll -pa lib/atoll-*/ebin"}, {<<"[stock]\n">>, ""}]],
    ?assertEqual(<<"embedded\n">>, ask(Node, "", "io:format(\"~w~n\",[rpc:call(N,code,get_mode,[])])", Release, Dir)).

ended(Node, Release, Dir, Program) ->
    _ = ask(Node, "", "rpc:call(N,init,stop,[])", Release, Dir),
    #{status := 0} = atoll_cli_os:await_exit(Program, ?START_MS).

ask(Node, Flags, Do, Release, Dir) ->
    Eval = io_lib:format("N='~s',case net_adm:ping(N) of pong->~s; pang->ok end,halt().", [Node, Do]),
    Asker = "ask-" ++ node_name(),
    #{stdout := Said} = sh(
        ["exec erl -noinput -hidden -start_epmd false -kernel logger_level none -setcookie shop -name ", Asker, " ", Flags, " -eval \"",
            string:replace(Eval, "\"", "\\\"", all), "\""], Release, Dir),
    Said.

node_name() ->
    lists:concat(["shop", os:getpid(), "-", erlang:unique_integer([positive]), "@127.0.0.1"]).

files(Project, Files) ->
    lists:foreach(
        fun({Name, Text}) ->
            Path = filename:join(Project, Name),
            ok = filelib:ensure_dir(Path),
            ok = file:write_file(Path, Text)
        end,
        Files
    ).

copy_library(To) ->
    Source = filename:join([atoll_cli_os:root(), "apps", "atoll"]),
    "" = os:cmd("mkdir " ++ To ++ " && cp -R " ++ filename:join(Source, "src") ++ " " ++ To),
    ok.

sh(Command, Where, Dir) ->
    sh(Command, Where, Dir, ?START_MS).

sh(Command, Where, Dir, Ms) ->
    atoll_cli_os:await_exit(atoll_cli_os:start(Dir, {sh, clean(Dir) ++ lists:flatten(Command)}, Where), Ms).

%% What the program that runs the tests has set is not for those that they run.
clean(Dir) ->
    {ok, Port} = file:read_file(filename:join(Dir, "epmd_port")),
    "unset REBAR_BASE_DIR REBAR_PROFILE MIX_ENV BINDIR ROOTDIR EMU PROGNAME ERL_LIBS ERL_FLAGS; "
    "export ERL_EPMD_PORT=" ++ binary_to_list(Port) ++ "; ".
