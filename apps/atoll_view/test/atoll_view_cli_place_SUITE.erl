%% SPDX-License-Identifier: Apache-2.0
%% `bin/atoll place' on nodes that `bin/atoll up' holds: right and wrong input, and nodes that
%% are silent or gone.
-module(atoll_view_cli_place_SUITE).
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([the_nodes_that_fit_are_listed/1, the_nearest_come_first/1, groups_and_nodes_are_asked_alone/1, one_is_chosen/1,
         what_no_node_knows_is_a_mistake/1, what_is_not_there_is_told/1, who_is_silent_or_gone_is_named/1]).

-define(GONE_MS, 5000).
%% On a busy machine half a second is not much. Who is silent is waited for as long.
-define(DEADLINE, ["--deadline", "20000"]).
-define(SILENT, ["--deadline", "4000"]).

suite() -> [{timetrap, {minutes, 3}}].

%% The last one does harm to the cluster of all.
all() ->
    [the_nodes_that_fit_are_listed, the_nearest_come_first, groups_and_nodes_are_asked_alone, one_is_chosen,
     what_no_node_knows_is_a_mistake, what_is_not_there_is_told, who_is_silent_or_gone_is_named].

init_per_suite(Config) ->
    Dir = atoll_cli_os:new_dir(),
    try
        Network = filename:join(Dir, "reef.network"),
        ok = file:write_file(Network, network()),
        %% The first command may have to build what is tested.
        #{status := 0} = atoll_cli_os:run(Dir, ["version"]),
        Self = self(),
        {Holder, Ref} = spawn_monitor(fun() -> hold(Dir, Network, Self) end),
        receive
            {Holder, up} -> ok;
            {'DOWN', Ref, process, Holder, Reason} -> error(Reason)
        end,
        true = erlang:demonitor(Ref),
        [{dir, Dir}, {network, Network}, {holder, Holder} | Config]
    catch
        Class:Why:Stack ->
            ok = atoll_cli_os:remove_dir(Dir),
            erlang:raise(Class, Why, Stack)
    end.

%% What it prints comes to whoever has started it, and each case has a process of its own.
hold(Dir, Network, Self) ->
    Program = atoll_cli_os:start(Dir, ["up", "4", "-c", "reef", "--groups", "2", "--network", Network, "--distances"]),
    _ = atoll_cli_os:await_line(Program, stdout, <<"atoll down -c reef\n">>),
    Self ! {self(), up},
    receive
        {stop, From} ->
            #{status := 0} = atoll_cli_os:run(Dir, ["down", "-c", "reef"]),
            #{status := 0} = atoll_cli_os:await_exit(Program, ?GONE_MS),
            From ! {self(), stopped}
    end.

end_per_suite(Config) ->
    Holder = proplists:get_value(holder, Config),
    Ref = monitor(process, Holder),
    Holder ! {stop, self()},
    receive
        {Holder, stopped} -> ok;
        {'DOWN', Ref, process, Holder, Reason} -> ct:pal("the cluster ended: ~tp", [Reason])
    end,
    ok = atoll_cli_os:remove_dir(dir(Config)).

network() ->
    "{network, sea, [\n"
    "  {network, east, [{node, 'reef1@127.0.0.1'}, {node, 'reef2@127.0.0.1'}]},\n"
    "  {network, west, [{node, 'reef3@127.0.0.1'}, {node, 'reef4@127.0.0.1'}]}]}.\n".

dir(Config) -> proplists:get_value(dir, Config).

run(Config, Args) -> run(Config, Args, ?DEADLINE).

run(Config, Args, Deadline) -> atoll_cli_line:run(dir(Config), ["place", "-c", "reef" | Args ++ Deadline]).

%% The object that it prints, and its exit status.
told(Config, Args) -> told(Config, Args, ?DEADLINE).

told(Config, Args, Deadline) ->
    #{status := Status, stdout := Stdout} = run(Config, ["--json" | Args], Deadline),
    {Status, atoll_cli_os:decode(Stdout)}.

names(Object) -> [Node || #{<<"node">> := Node} <- maps:get(<<"nodes">>, Object)].

reef(I) -> list_to_binary(["reef", integer_to_list(I), "@127.0.0.1"]).

the_nodes_that_fit_are_listed(Config) ->
    #{status := 0, stdout := Text, stderr := <<>>} = run(Config, ["--where", "mem_total > 1000 and num_erlang_processes > 1"]),
    [Head | Rows] = binary:split(string:trim(Text), <<"\n">>, [global]),
    ?assertMatch([<<"node">>, <<"mem_total">>, <<"num_erlang_processes">>], string:lexemes(Head, " ")),
    ?assertEqual([reef(I) || I <- [1, 2, 3, 4]], lists:sort([hd(string:lexemes(Row, " ")) || Row <- Rows])),
    {0, #{<<"nodes">> := Nodes, <<"silent">> := [], <<"unreachable">> := []}} =
        told(Config, ["--where", "os_type == {unix,linux} or otp_release == \"1\"", "--rank", "least num_erlang_processes"]),
    Counts = [Count || #{<<"attributes">> := #{<<"num_erlang_processes">> := Count}} <- Nodes],
    ?assertMatch([_, _, _, _], Counts),
    ?assertEqual(lists:sort(Counts), Counts),
    ?assertMatch(#{status := 1, stdout := <<>>, stderr := <<"atoll place: no node fits\n">>}, run(Config, ["--where", "mem_total < 1"])),
    ?assertMatch({1, #{<<"nodes">> := []}}, told(Config, ["--where", "mem_total < 1"])).

the_nearest_come_first(Config) ->
    #{status := 0, stdout := Text} = run(Config, ["--near", "reef3"]),
    [Head | Rows] = [string:lexemes(Row, " ") || Row <- binary:split(string:trim(Text), <<"\n">>, [global])],
    ?assertEqual([<<"node">>, <<"distance">>], Head),
    ?assertEqual([[reef(3), <<"0.0">>], [reef(4), <<"0.5">>], [reef(1), <<"1.0">>], [reef(2), <<"1.0">>]], Rows),
    %% By a file it is the same, and what is too far is none.
    {0, ByFile} = told(Config, ["--near", "reef3", "--network", proplists:get_value(network, Config), "--within", "0.5"]),
    ?assertEqual([reef(3), reef(4)], names(ByFile)),
    ?assertMatch({0, #{<<"distance">> := <<"measured">>}}, told(Config, ["--near", "reef3", "--how", "measured"])),
    ?assertMatch({3, #{<<"error">> := _}}, told(Config, ["--near", "reef3", "--how", "measured", "--from", "reef1"])).

groups_and_nodes_are_asked_alone(Config) ->
    ?assertMatch({0, [_, _]}, in(Config, "reef2,reef4@127.0.0.1")),
    {0, [_ | _] = Group} = in(Config, "group1"),
    ?assert(lists:member(reef(1), Group) andalso not lists:member(reef(4), Group), Group).

in(Config, Among) ->
    {Status, Object} = told(Config, ["--among", Among]),
    {Status, names(Object)}.

one_is_chosen(Config) ->
    #{status := 0, stdout := Text, stderr := <<>>} = run(Config, ["--one", "--among", "reef2,reef3"]),
    ?assert(lists:member(Text, [<<(reef(I))/binary, "\n">> || I <- [2, 3]]), Text),
    {0, #{<<"node">> := Node, <<"nodes">> := [_, _]}} = told(Config, ["--one", "--among", "reef2,reef3"]),
    ?assert(lists:member(Node, [reef(2), reef(3)])),
    ?assertMatch(#{status := 1, stdout := <<>>}, run(Config, ["--one", "--where", "mem_total < 1"])).

what_no_node_knows_is_a_mistake(Config) ->
    ?assertEqual(
        #{status => 2, stdout => <<>>,
          stderr => <<"atoll place: --where: at character 22 there is mem_fre, and no node that answers has such an attribute; "
                      "did you mean mem_free?\n"
                      "  os_type == linux and mem_fre > 1\n"
                      "                       ^\n">>},
        maps:with([status, stdout, stderr], run(Config, ["--where", "os_type == linux and mem_fre > 1"]))
    ),
    %% Though others fit.
    ?assertMatch(#{status := 2}, run(Config, ["--where", "mem_total > 1 or gqu"])),
    ?assertMatch({2, #{<<"error">> := <<"--rank: no node that answers has an attribute loadavg; did you mean loadavg1?">>}},
                 told(Config, ["--rank", "least loadavg"])),
    ?assertMatch(#{status := 2, stderr := <<"atoll place: --attributes: no node that answers has an attribute gqu\n">>},
                 run(Config, ["--attributes", "mem_free,gqu"])).

what_is_not_there_is_told(Config) ->
    ?assertMatch(#{status := 2, stderr := <<"atoll place: --near: the cluster has no node reef9; did you mean reef1?\n">>},
                 run(Config, ["--near", "reef9"])),
    ?assertMatch(#{status := 2, stderr := <<"atoll place: --among: the cluster has neither a node nor a group nobody\n">>},
                 run(Config, ["--among", "nobody"])),
    ?assertMatch(#{status := 3, stderr := <<"atoll place: No cluster named nowhere is running, only reef.\n">>},
                 atoll_cli_line:run(dir(Config), ["place", "-c", "nowhere"])),
    ?assertMatch(#{status := 2}, run(Config, ["--from", "reef9"])).

who_is_silent_or_gone_is_named(Config) ->
    [Third, Fourth] = [vm(I, Config) || I <- [3, 4]],
    ok = atoll_cli_os:signal(Third, "STOP"),
    try
        ok = atoll_cli_os:signal(Fourth, "KILL"),
        {0, Object} = told(Config, ["--where", "mem_total > 1", "--from", "reef1"], ?SILENT),
        ?assertEqual([reef(1), reef(2)], lists:sort(names(Object))),
        ?assertMatch(#{<<"silent">> := [_], <<"unreachable">> := [_]}, Object),
        ?assertEqual({[reef(3)], [reef(4)]}, {map_get(<<"silent">>, Object), map_get(<<"unreachable">>, Object)}),
        #{status := 0, stdout := Text} = run(Config, ["--where", "mem_total > 1", "--from", "reef1"], ?SILENT),
        [?assertNotEqual(nomatch, re:run(Text, Line)) || Line <- ["\nsilent +reef3@127.0.0.1\n", "\nunreachable +reef4@127.0.0.1\n"]],
        ?assertMatch(#{status := 3}, run(Config, ["--from", "reef4"]))
    after
        ok = atoll_cli_os:signal(Third, "CONT")
    end.

%% The number of a node's process.
vm(I, Config) ->
    #{status := 0, stdout := Json} = atoll_cli_line:run(dir(Config), ["status", "--json"]),
    #{<<"clusters">> := [#{<<"nodes">> := Nodes}]} = atoll_cli_os:decode(Json),
    [Pid] = [Pid || #{<<"node">> := Node, <<"os_pid">> := Pid} <- Nodes, Node =:= reef(I)],
    Pid.
