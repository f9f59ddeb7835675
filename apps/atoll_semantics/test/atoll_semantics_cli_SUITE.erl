%% SPDX-License-Identifier: Apache-2.0
%% `bin/atoll semantics': what is meant and a cluster, side by side.
-module(atoll_semantics_cli_SUITE).
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([lines_are_stepped_one_by_one/1, drawn_commands_are_those_of_the_seed/1, a_node_that_is_lost_is_told/1]).
-export([nothing_is_left_of_one_that_is_killed/1]).

suite() -> [{timetrap, {minutes, 3}}].

all() ->
    [lines_are_stepped_one_by_one, drawn_commands_are_those_of_the_seed, a_node_that_is_lost_is_told,
     nothing_is_left_of_one_that_is_killed].

%% The first command may have to build what is tested.
init_per_suite(Config) ->
    Dir = atoll_cli_os:new_dir(),
    #{status := 0} = atoll_cli_os:run(Dir, ["version"]),
    ok = atoll_cli_os:remove_dir(Dir),
    Config.

end_per_suite(_) -> ok.

init_per_testcase(_, Config) -> [{dir, atoll_cli_os:new_dir()} | Config].

end_per_testcase(_, Config) -> ok = atoll_cli_os:remove_dir(dir(Config)).

dir(Config) -> proplists:get_value(dir, Config).

lines_are_stepped_one_by_one(Config) ->
    Lines = [
        "% A group, a name, a partition in which both sides give one name.",
        "",
        "n1 new_s_group(g, [n1, n2, x1])",
        "n2 register_name(g, a, {n2, 1})",
        "x1 whereis_name(g, a)",
        "cut([n1], [n2])",
        "n1 register_name(g, b, {n1, 1})",
        "n2 register_name(g, b, {n2, 2})",
        "heal",
        "heal",
        "n2 whereis_name(g, b)",
        "n1 kill",
        "show",
        "n1 start",
        "n1 own_s_groups"
    ],
    #{status := 0, stdout := Text} = stepped(Config, Lines),
    [
        ?assertMatch({Part, {_, _}}, {Part, binary:match(Text, Part)})
     || Part <- [
            <<"x1 whereis_name(g, a)\n  {n2,1}\n">>,
            <<"n2 register_name(g, b, {n2,2})\n  yes\n">>,
            <<"heal\n  ok\nheal\n  nothing happens\n">>,
            <<"n2 whereis_name(g, b)\n  {n1,1}\n">>,
            <<"n1    down">>,
            <<"n1 own_s_groups\n  [{g,[n1,n2,x1]}]\n">>,
            <<"\n12 commands, all as meant.\n">>
        ]
    ],
    %% What cannot be read is told, and the rest is done.
    #{status := 1, stdout := Done, stderr := Told} = stepped(Config, ["n1 halt()", "n1 own_s_groups"]),
    ?assertMatch({_, _}, binary:match(Told, <<"line 1: halt/0 is none of the functions">>)),
    ?assertMatch({_, _}, binary:match(Told, <<"atoll semantics: 1 line was no command\n">>)),
    ?assertMatch({_, _}, binary:match(Done, <<"n1 own_s_groups\n  []\n">>)).

stepped(Config, Lines) ->
    File = filename:join(dir(Config), "lines"),
    ok = file:write_file(File, [[Line, $\n] || Line <- Lines]),
    atoll_cli_os:await_exit(atoll_cli_os:start(dir(Config), {sh, "exec bin/atoll semantics < " ++ File}), 120000).

drawn_commands_are_those_of_the_seed(Config) ->
    Seed = atoll_tier:seed(?FUNCTION_NAME),
    #{status := 0, stdout := Text} =
        atoll_cli_os:run(dir(Config), ["semantics", "--random", "10", "--faults", "--seed", integer_to_list(Seed)]),
    Lines = [unicode:characters_to_list(Line) || <<C, _/binary>> = Line <- binary:split(Text, <<"\n">>, [global]), C =/= $\s],
    {Drawn, ["10 commands, all as meant."]} = lists:split(10, Lines),
    {ok, {_, First}} = atoll_semantics_line:parse(hd(Drawn)),
    {{_, Expected}, _} = atoll_semantics_lockstep:random(faults, rand:seed_s(exsss, Seed), atoll_semantics_lockstep:new()),
    ?assertEqual(Expected, First).

%% It waits for lines that do not come.
waiting(Config) ->
    Fifo = filename:join(dir(Config), "fifo"),
    "" = os:cmd("mkfifo " ++ Fifo),
    Program = atoll_cli_os:start(dir(Config), {sh, "exec bin/atoll semantics 0<> " ++ Fifo}),
    _ = atoll_cli_os:await_line(Program, stderr, <<"Six nodes">>),
    {Program, fun(Line) -> ok = file:write_file(Fifo, [Line, $\n]) end}.

a_node_that_is_lost_is_told(Config) ->
    {#{os_pid := Own} = Program, Say} = waiting(Config),
    [Node | _] = [Pid || {Pid, _} <- atoll_cli_os:left(dir(Config)), Pid =/= Own, is_node(Pid)],
    ok = atoll_cli_os:signal(Node, "KILL"),
    Say("n1 s_groups"),
    [Say(N ++ " new_s_group(g, [n1, n2, n3, n4, n5, n6, x1, x2])") || N <- ["n1", "n2"]],
    #{status := 3, stderr := Told} = atoll_cli_os:await_exit(Program, 60000),
    ?assertMatch({_, _}, binary:match(Told, <<"atoll semantics: ">>)),
    ?assertEqual(nomatch, binary:match(Told, <<"fault of the program">>)),
    ok = atoll_cli_os:await_none_left(dir(Config)).

is_node(Pid) ->
    {ok, Args} = file:read_file("/proc/" ++ integer_to_list(Pid) ++ "/cmdline"),
    atoll_cli_os:is_vm(Pid) andalso binary:match(Args, <<"on_demand_linger">>) =/= nomatch.

nothing_is_left_of_one_that_is_killed(Config) ->
    {#{os_pid := Own, port := Port}, _} = waiting(Config),
    ok = atoll_cli_os:signal(Own, "KILL"),
    receive {Port, {exit_status, _}} -> ok end,
    ok = atoll_cli_os:await_none_left(dir(Config)).
