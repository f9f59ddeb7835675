%% SPDX-License-Identifier: Apache-2.0
%% The command line as a user has it: bin/atoll as a process of the operating
%% system, on real nodes.
-module(atoll_cli_SUITE).
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    help_is_data/1,
    help_comes_at_once/1,
    wrong_usage_says_one_sentence_and_starts_nothing/1,
    orbit_prints_one_object/1,
    orbit_prints_a_table/1,
    every_mode_finds_the_same_set/1,
    a_killed_node_fails_the_run_and_is_named/1,
    a_silent_node_fails_the_run_and_is_named/1,
    up_holds_a_mesh_until_ctrl_c/1,
    a_shell_can_be_attached/1,
    a_name_is_taken_once/1,
    nothing_runs_and_nothing_can_be_stopped/1,
    a_run_directory_that_cannot_be_used_is_told/1,
    a_closed_output_is_no_crash/1,
    output_that_is_lost_fails_the_command/1,
    it_runs_from_anywhere/1,
    a_terminal_gets_a_bar/1,
    a_demo_that_is_killed_leaves_nothing/1,
    a_demo_that_is_interrupted_leaves_nothing/1,
    a_demo_whose_make_alone_is_interrupted_leaves_nothing/1,
    a_demo_whose_vm_is_killed_leaves_nothing/1
]).

%% How long the nodes of a demo may take to start on a busy machine.
-define(NODES_MS, 60000).
%% Ends a program that hangs; a start alone takes seconds on a busy machine.
-define(ENDS_MS, 120000).

suite() ->
    [{timetrap, {minutes, 6}}].

all() -> cases(atoll_tier:tier()).

cases(fast) ->
    [help_is_data, wrong_usage_says_one_sentence_and_starts_nothing,
     orbit_prints_one_object, orbit_prints_a_table, every_mode_finds_the_same_set,
     a_killed_node_fails_the_run_and_is_named, up_holds_a_mesh_until_ctrl_c,
     a_shell_can_be_attached, a_name_is_taken_once,
     nothing_runs_and_nothing_can_be_stopped, a_run_directory_that_cannot_be_used_is_told,
     a_closed_output_is_no_crash, output_that_is_lost_fails_the_command,
     it_runs_from_anywhere, a_terminal_gets_a_bar,
     a_demo_whose_make_alone_is_interrupted_leaves_nothing];
%% How long a start takes, how long silence is borne, and the other ways to end a demo.
cases(deep) ->
    cases(fast) ++
        [help_comes_at_once, a_silent_node_fails_the_run_and_is_named,
         a_demo_that_is_killed_leaves_nothing, a_demo_that_is_interrupted_leaves_nothing,
         a_demo_whose_vm_is_killed_leaves_nothing].

%% What is tested is what is built: the first command may have to build it.
init_per_suite(Config) ->
    Dir = atoll_cli_os:new_dir(),
    #{status := 0} = atoll_cli_os:run(Dir, ["version"]),
    ok = atoll_cli_os:remove_dir(Dir),
    Config.

end_per_suite(_) ->
    ok.

init_per_testcase(Case, Config) when Case =:= a_shell_can_be_attached; Case =:= a_terminal_gets_a_bar ->
    case atoll_cli_os:has_terminals() of
        true -> [{dir, atoll_cli_os:new_dir()} | Config];
        false -> {skip, "this system gives no pseudo-terminals"}
    end;
init_per_testcase(_, Config) ->
    [{dir, atoll_cli_os:new_dir()} | Config].

end_per_testcase(_, Config) ->
    ok = atoll_cli_os:remove_dir(dir(Config)).

help_is_data(Config) ->
    #{status := 0, stdout := Page, stderr := <<>>} = atoll_cli_os:run(dir(Config), ["help"]),
    [?assertMatch({_, _}, binary:match(Page, list_to_binary(["\n  ", Name, " "])))
     || {Name, _} <- atoll_cli_commands:all()],
    #{status := 0, stdout := Orbit, stderr := <<>>} =
        atoll_cli_line:run(dir(Config), ["help", "orbit"]),
    ?assertMatch(#{status := 0, stdout := Orbit, stderr := <<>>},
                 atoll_cli_line:run(dir(Config), ["orbit", "--help"])),
    ?assertMatch(#{status := 0, stdout := Page, stderr := <<>>}, atoll_cli_line:run(dir(Config), [])),
    ?assertMatch(#{status := 0, stdout := <<"atoll 0.", _/binary>>, stderr := <<>>},
                 atoll_cli_os:run(dir(Config), ["--version"])).

%% What the front door adds to the start of a VM, by turns with a bare one: the
%% machine may be busy, but it is for both.
help_comes_at_once(Config) ->
    Took = fun(What) ->
        {Us, #{status := 0}} = timer:tc(fun() ->
            atoll_cli_os:await_exit(atoll_cli_os:start(dir(Config), What), 30000)
        end),
        Us
    end,
    {Bare, Help} = lists:unzip([
        {Took({sh, "exec erl -noinput -boot no_dot_erlang -s erlang halt"}), Took(["help"])}
     || _ <- lists:seq(1, 7)
    ]),
    ?assert(lists:min(Help) < 3 * lists:min(Bare), {Bare, Help}).

wrong_usage_says_one_sentence_and_starts_nothing(Config) ->
    Wrong = [
        {["orbit", "--generators", "g9"], "--generators "},
        {["orbit", "--space", "0"], "--space "},
        {["orbit", "--space", "abc"], "--space "},
        {["orbit", "--nodes", "2", "--group-size", "3"], "--group-size "},
        {["orbit", "--mode", "star"], "--mode "},
        {["orbit", "--space"], "--space "},
        {["orbit", "g124"], "\"g124\""},
        {["frobnicate"], "\"frobnicate\""},
        {["orbit", "--frobnicate"], " --frobnicate"},
        {["up", "3", "--groups", "4"], "--groups "},
        {["up", "3", "--carrier", "tcp"], "--carrier "},
        {["up", "3", "--carrier", "atoll", "--kind", "lanes65"], "lanesN"},
        {["up", "3", "--kind", "direct"], "--kind is for --carrier atoll"},
        {["up", "3", "--faults"], "--faults is for --carrier atoll"},
        {["up", "3", "--groups", "2", "--relay"], "--relay is for --carrier atoll"},
        {["up", "3", "--groups", "2", "--carrier", "atoll", "--seal"], "--seal is for --relay"},
        {["up", "3", "--carrier", "atoll", "--relay"], "--relay wants --groups K or --overlay STRATEGY"},
        {["up", "5", "--groups", "2", "--gateways", "3"], "--gateways must be at most the number of nodes of a group, which is 2"},
        {["up", "5", "--gateways", "2"], "--gateways is for --groups"},
        {["chaos", "random", "-c", "reef", "--carrier", "atoll"], "--carrier is for a cluster that is started"},
        {["sim"], "overlay, broadcast, detect, directory, reach"},
        {["sim", "directory", "--topology", "line"], "--topology "},
        {["sim", "directory", "--option", "size=3"], "the directory has no option"},
        {["sim", "directory", "--option", "gather_ms=x"], "gather_ms must be a whole number from 1 to 2147483647"},
        {["sim", "directory", "--churn", "0.3", "--minutes", "2"], "--churn times --minutes"},
        {["sim", "directory", "--group-size", "3", "--gateways", "9"], "gateways"},
        {["sim", "overlay", "--strategy", "ring"], "\"ring\""},
        {["sim", "overlay", "--kill", "1.5"], "--kill "}
    ],
    Says = fun(Run, Args, Flag) ->
        #{status := Status, stdout := Stdout, stderr := Stderr} = Run(dir(Config), Args),
        ?assertEqual({Args, 2, <<>>}, {Args, Status, Stdout}),
        ?assertMatch([_, <<>>], binary:split(Stderr, <<"\n">>, [global]), Stderr),
        ?assertMatch({_, _}, binary:match(Stderr, list_to_binary(Flag)), Stderr)
    end,
    [Says(fun atoll_cli_line:run/2, Args, Flag) || {Args, Flag} <- Wrong],
    Says(fun atoll_cli_os:run/2, ["orbit", "--mode", "star"], "--mode "),
    %% Not even the directory in which clusters are kept has been made.
    ?assertEqual([], [F || F <- filelib:wildcard("*", dir(Config)), not lists:prefix("stderr.", F)]).

orbit_prints_one_object(Config) ->
    #{status := 0, stdout := Stdout} = atoll_cli_os:run(dir(Config), [
        "orbit", "--generators", "g12345", "--space", "1000", "--mode", "groups", "--nodes", "5",
        "--group-size", "2", "--workers", "2", "--json"]),
    ?assertMatch([_, <<>>], binary:split(Stdout, <<"\n">>, [global])),
    ?assertEqual([<<"mode">>, <<"generators">>, <<"space">>, <<"size">>, <<"vertices_received">>,
                  <<"wall_ms">>, <<"nodes">>, <<"epochs">>, <<"kills">>, <<"node_kills">>, <<"connections_max">>,
                  <<"nodes_lost">>, <<"connections_mean">>, <<"packets">>],
                 keys(Stdout)),
    ?assertMatch(#{<<"mode">> := <<"groups">>, <<"generators">> := <<"g12345">>,
                   <<"space">> := 1000, <<"size">> := 968, <<"vertices_received">> := 4841,
                   <<"nodes">> := 5},
                 atoll_cli_os:decode(Stdout)),
    #{<<"connections_max">> := Max, <<"packets">> := Packets} = atoll_cli_os:decode(Stdout),
    %% A gateway of groups of 2 and 3: its group's members and the other gateway.
    ?assertEqual(3, Max),
    %% About half of the vertices are of the other group.
    ?assert(Packets >= 1000),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config))).

orbit_prints_a_table(Config) ->
    #{status := 0, stdout := Stdout, stderr := Stderr} = atoll_cli_line:run(dir(Config), [
        "orbit", "--space", "1000", "--mode", "mesh", "--nodes", "3"]),
    ?assertMatch({match, _}, re:run(Stdout, "^size +854$", [multiline])),
    ?assertMatch({match, _}, re:run(Stdout, "^vertices received +2,563$", [multiline])),
    ?assertMatch({match, _}, re:run(Stdout, "^connections of a node, at most +2$", [multiline])),
    ?assertMatch({match, _}, re:run(Stdout, "^packets between nodes +[0-9,]+$", [multiline])),
    %% Talk has no escape sequences where there is no terminal.
    ?assertMatch({_, _}, binary:match(Stderr, <<"Starting nodes: 3 of 3\n">>)),
    ?assertEqual(nomatch, binary:match(Stderr, <<"\e">>)).

every_mode_finds_the_same_set(Config) ->
    Found = [begin
        #{status := 0, stdout := Stdout} = atoll_cli_line:run(dir(Config), [
            "orbit", "--space", "1000", "--mode", Mode, "--json"] ++ Sizes),
        Result = atoll_cli_os:decode(Stdout),
        ?assertMatch(#{<<"nodes">> := Nodes}, Result, Mode),
        maps:with([<<"size">>, <<"vertices_received">>], Result)
     end
     || {Mode, Nodes, Sizes} <- modes(atoll_tier:tier())],
    ?assertEqual([#{<<"size">> => 854, <<"vertices_received">> => 2563}], lists:usort(Found)).

%% In a mesh orbit_prints_a_table sees the same.
modes(fast) -> [{"seq", 1, []}, {"par", 1, []}, {"ring", 4, ["--nodes", "4", "--group-size", "2"]}];
modes(deep) ->
    modes(fast) ++ [
        {"mesh", 4, ["--nodes", "4"]}
        | [{Mode, 4, ["--nodes", "4", "--group-size", "2"]} || Mode <- ["groups", "groups-native"]]
    ].

a_killed_node_fails_the_run_and_is_named(Config) ->
    {Program, {Pid, Name}} = start_long_run(Config),
    ok = atoll_cli_os:signal(Pid, "KILL"),
    #{status := 3, stdout := <<>>, stderr := Stderr} = atoll_cli_os:await_exit(Program, 30000),
    ?assertMatch({_, _}, binary:match(Stderr, list_to_binary(Name)), Stderr),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config))).

a_silent_node_fails_the_run_and_is_named(Config) ->
    {Program, {Pid, Name}} = start_long_run(Config),
    ok = atoll_cli_os:signal(Pid, "STOP"),
    #{status := 3, stdout := <<>>, stderr := Stderr} = atoll_cli_os:await_exit(Program, 30000),
    ?assertMatch({_, _}, binary:match(Stderr, list_to_binary(Name)), Stderr),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config))).

up_holds_a_mesh_until_ctrl_c(Config) ->
    Program = atoll_cli_os:start(dir(Config), ["up", "3"]),
    Said = atoll_cli_os:await_line(Program, stdout, <<"atoll down -c atoll\n">>),
    ?assertMatch({match, [_, _, _]},
                 re:run(Said, "^atoll[1-3]@127.0.0.1 +- +2$", [multiline, global])),
    ok = atoll_cli_os:signal_group(Program, "INT"),
    #{status := Status} = atoll_cli_os:await_exit(Program, ?ENDS_MS),
    ?assertEqual(128 + 2, Status),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config))).

%% The line that `up' prints is run as it stands, on a terminal: on a dumb one
%% erl of OTP 25 has a shell of its own only.
a_shell_can_be_attached(Config) ->
    Program = atoll_cli_os:start(dir(Config), ["up", "2", "-c", "shelly"]),
    Said = atoll_cli_os:await_line(Program, stdout, <<"atoll down -c shelly\n">>),
    {match, [Line]} = re:run(Said, "attach a shell: +(.*)", [{capture, all_but_first, list}]),
    Shell = open_port({spawn_executable, os:find_executable("script")},
                      [{args, ["-qec", Line, "/dev/null"]}, {env, [{"XDG_RUNTIME_DIR", dir(Config)}, {"TERM", "xterm"}]},
                       binary, use_stdio]),
    ok = await_data(Shell, <<"(shelly1@127.0.0.1)1>">>),
    true = port_command(Shell, <<"nodes(connected).\n">>),
    ok = await_data(Shell, <<"'shelly2@127.0.0.1'">>),
    true = port_close(Shell).

a_name_is_taken_once(Config) ->
    Program = atoll_cli_os:start(dir(Config), ["up", "1", "-c", "once"]),
    _ = atoll_cli_os:await_line(Program, stdout, <<"atoll down -c once\n">>),
    #{status := 3, stdout := <<>>, stderr := Stderr} =
        atoll_cli_os:run(dir(Config), ["up", "1", "-c", "once"]),
    ?assertMatch({_, _}, binary:match(Stderr, <<"once">>)).

nothing_runs_and_nothing_can_be_stopped(Config) ->
    ?assertMatch(#{status := 0, stdout := <<"No cluster is running.\n">>, stderr := <<>>},
                 atoll_cli_line:run(dir(Config), ["status"])),
    ?assertMatch(#{status := 0, stdout := <<"{\"clusters\":[]}\n">>, stderr := <<>>},
                 atoll_cli_line:run(dir(Config), ["status", "--json"])),
    ?assertMatch(#{status := 3, stdout := <<>>, stderr := <<"atoll down: No cluster", _/binary>>},
                 atoll_cli_line:run(dir(Config), ["down"])),
    ?assertMatch(#{status := 3, stdout := <<>>, stderr := <<"atoll down: No cluster", _/binary>>},
                 atoll_cli_line:run(dir(Config), ["down", "-c", "nobody"])).

a_run_directory_that_cannot_be_used_is_told(Config) ->
    Missing = filename:join(dir(Config), "missing"),
    Open = filename:join(dir(Config), "atoll"),
    ok = file:make_dir(Open),
    ok = file:change_mode(Open, 8#777),
    [begin
        #{status := Status, stdout := Stdout, stderr := Stderr} = atoll_cli_os:await_exit(
            atoll_cli_os:start(dir(Config), {sh, "XDG_RUNTIME_DIR=" ++ Dir ++ " bin/atoll " ++ Command}),
            ?ENDS_MS),
        ?assertEqual({Command, 3}, {Command, Status}),
        %% Where JSON is asked for it is told there as well.
        case lists:suffix("--json", Command) of
            true -> ?assertMatch(#{<<"error">> := <<"The run directory ", _/binary>>}, atoll_cli_os:decode(Stdout));
            false -> ?assertEqual({Command, <<>>}, {Command, Stdout})
        end,
        ?assertMatch({match, _}, re:run(Stderr, ["^atoll [a-z]+: The run directory ", Dir, "/atoll .*\\.\n$"]))
     end
     || {Dir, Command} <- case atoll_tier:tier() of
                              fast -> [{Missing, "status"}, {dir(Config), "down"}];
                              deep -> [{D, C} || D <- [Missing, dir(Config)], C <- ["status", "status --json", "down"]]
                          end].

a_closed_output_is_no_crash(Config) ->
    [begin
        #{stdout := First, stderr := Stderr} = atoll_cli_os:await_exit(
            atoll_cli_os:start(dir(Config), {sh, "bin/atoll help orbit " ++ Reader}), ?ENDS_MS),
        ?assertMatch({Reader, _, <<>>}, {Reader, First, Stderr})
     end
     || Reader <- ["| head -n 1", "| true"]].

output_that_is_lost_fails_the_command(Config) ->
    {Help, Orbit, Full, Closed} = {"bin/atoll help", "bin/atoll orbit --space 1000 --mode seq --json", " >/dev/full", " >&-"},
    [begin
        #{status := Status, stderr := Stderr} = atoll_cli_os:await_exit(
            atoll_cli_os:start(dir(Config), {sh, Command ++ Lost}), ?ENDS_MS),
        ?assertEqual({Command, Lost, 3}, {Command, Lost, Status}),
        [<<>>, Last | _] = lists:reverse(binary:split(Stderr, <<"\n">>, [global])),
        ?assertMatch(<<"atoll: the output could not be written: ", _/binary>>, Last)
     end
     || {Command, Lost} <- case atoll_tier:tier() of
                               fast -> [{Help, Full}, {Orbit, Closed}];
                               deep -> [{C, L} || C <- [Help, Orbit], L <- [Full, Closed]]
                           end],
    %% What prints nothing has nothing to lose.
    ?assertMatch(#{status := 3, stderr := <<"atoll down: No cluster", _/binary>>},
                 atoll_cli_os:await_exit(
                     atoll_cli_os:start(dir(Config), {sh, "bin/atoll down >&-"}), ?ENDS_MS)),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config))).

%% By a link, from a directory, in a tree with blanks in their names.
it_runs_from_anywhere(Config) ->
    Dir = filename:join(dir(Config), "a b"),
    Tree = filename:join(Dir, "its tree"),
    Link = filename:join(Dir, "a link"),
    ok = filelib:ensure_path(Tree),
    Copy = "cp -a apps bin cases scripts rebar.config rebar.lock \"" ++ Tree ++ "\" && "
        "mkdir -p \"" ++ Tree ++ "/_build\" && cp -a _build/.built _build/default \"" ++ Tree ++ "/_build\"",
    #{status := 0} = atoll_cli_os:await_exit(atoll_cli_os:start(dir(Config), {sh, Copy}), ?ENDS_MS),
    ok = file:make_symlink(filename:join(Tree, "bin/atoll"), Link),
    Line = "\"" ++ Link ++ "\" orbit --space 1000 --nodes 2 --json",
    #{status := Status, stdout := Stdout, stderr := Stderr} =
        atoll_cli_os:await_exit(atoll_cli_os:start(dir(Config), {sh, Line}, Dir), ?ENDS_MS),
    ?assertEqual({0, Stderr}, {Status, Stderr}),
    ?assertMatch(#{<<"size">> := 854}, atoll_cli_os:decode(Stdout)).

%% The other end of `script' is a terminal.
a_terminal_gets_a_bar(Config) ->
    Line = "script -qec 'stty cols 60; exec bin/atoll orbit --space 1000 --nodes 2 >/dev/null' /dev/null",
    #{status := 0, stdout := Seen} =
        atoll_cli_os:await_exit(atoll_cli_os:start(dir(Config), {sh, Line}), ?ENDS_MS),
    ?assertMatch({_, _}, binary:match(Seen, <<"Starting nodes [###############               ] 1 of 2">>)),
    %% And it is taken away again.
    ?assertEqual(<<"\r\e[K">>, binary:part(Seen, byte_size(Seen), -4)).

a_demo_that_is_killed_leaves_nothing(Config) ->
    demo_ends_by(Config, fun(Make) -> atoll_cli_os:signal(Make, "KILL") end).

a_demo_that_is_interrupted_leaves_nothing(Config) ->
    demo_ends_by(Config, fun(Make) -> atoll_cli_os:signal_group(Make, "INT") end).

a_demo_whose_make_alone_is_interrupted_leaves_nothing(Config) ->
    demo_ends_by(Config, fun(Make) -> atoll_cli_os:signal(Make, "INT") end).

a_demo_whose_vm_is_killed_leaves_nothing(Config) ->
    demo_ends_by(Config, fun(_) ->
        IsDemo = fun(Command) -> lists:suffix(["-extra", "demo", ""], Command) end,
        [Vm] = [Pid || {Pid, _} <- atoll_cli_os:left(dir(Config), IsDemo), atoll_cli_os:is_vm(Pid)],
        atoll_cli_os:signal(Vm, "KILL")
    end).

demo_ends_by(Config, End) ->
    Make = atoll_cli_os:start(dir(Config), {sh, "exec make demo"}),
    %% Those of its first part are as good as any.
    ?assertEqual(ok, atoll_cli_os:await(fun() -> length(atoll_cli_os:beams(dir(Config))) >= 12 end, ?NODES_MS)),
    ok = End(Make),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config))).

%% A run that is far from its end, and the second of its nodes.
start_long_run(Config) ->
    Program = atoll_cli_os:start(dir(Config), [
        "orbit", "--generators", "g12345", "--space", "5000000", "--mode", "mesh", "--nodes", "3"]),
    _ = atoll_cli_os:await_line(Program, stderr, <<"Running Orbit">>),
    [Worker] = [Node || {_, Name} = Node <- atoll_cli_os:beams(dir(Config)),
                        lists:suffix("2@127.0.0.1", Name)],
    {Program, Worker}.

await_data(Port, Text) ->
    await_data(Port, Text, <<>>).

await_data(Port, Text, Seen) ->
    case binary:match(Seen, Text) of
        nomatch ->
            receive
                {Port, {data, Data}} -> await_data(Port, Text, <<Seen/binary, Data/binary>>)
            after 20000 -> error({not_said, Text, Seen})
            end;
        _ ->
            ok
    end.

%% In the order in which they stand.
keys(Json) ->
    {match, Keys} = re:run(Json, "\"([a-z_0-9]+)\":", [global, {capture, all_but_first, binary}]),
    lists:append(Keys).

dir(Config) ->
    proplists:get_value(dir, Config).
