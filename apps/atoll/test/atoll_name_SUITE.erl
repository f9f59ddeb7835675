%% SPDX-License-Identifier: Apache-2.0
%% Names in groups on real nodes.
-module(atoll_name_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([
    after_yes_each_member_has_it/1,
    one_of_four_gets_the_name/1,
    a_server_by_its_name/1,
    a_name_goes_with_its_process/1,
    a_name_goes_with_its_node/1,
    where_the_application_stops_names_go_and_nobody_waits/1,
    a_silent_member_holds_up_a_yes_for_a_while/1,
    two_parts_meet/1,
    many_names_go_with_their_processes/1
]).

-define(CALL_MS, 30000).
%% For what comes by itself.
-define(WAIT_MS, 15000).
%% How long a silent member is waited for, but where a case says less.
-define(ANSWER_MS, 10000).
-define(H, atoll_name_holder).

suite() -> [{timetrap, {minutes, 6}}].

all() ->
    [
        after_yes_each_member_has_it,
        one_of_four_gets_the_name,
        a_server_by_its_name,
        a_name_goes_with_its_process,
        where_the_application_stops_names_go_and_nobody_waits,
        two_parts_meet,
        a_silent_member_holds_up_a_yes_for_a_while,
        a_name_goes_with_its_node,
        many_names_go_with_their_processes
    ].

init_per_suite(Config) ->
    Cluster = atoll_cluster_owned:start(#{
        nodes => 4,
        connect_all => false,
        apps => [atoll],
        args =>
            %% A slow answer on a busy machine is no silence.
            ["-atoll", "linger", "200", "group_answer_timeout", "10000"] ++
                ["name_answer_timeout", integer_to_list(?ANSWER_MS), "name_rule", "random_notify"]
    }),
    Nodes = [A | _] = atoll_cluster:nodes(Cluster),
    {ok, g, Nodes} = call(Cluster, A, s_group, new_s_group, [g, Nodes]),
    [{cluster, Cluster} | Config].

end_per_suite(Config) ->
    ok = atoll_cluster:stop(?config(cluster, Config)).

call(C, Node, M, F, A) ->
    atoll_cluster:call(C, Node, M, F, A, ?CALL_MS).

nodes_of(Config) ->
    C = ?config(cluster, Config),
    {C, atoll_cluster:nodes(C)}.

after_yes_each_member_has_it(Config) ->
    {C, [A, B | _] = Nodes} = nodes_of(Config),
    Pids = [call(C, N, ?H, holder, []) || N <- [A, B]],
    lists:foreach(
        fun({Name, Pid}) ->
            yes = call(C, A, atoll_name, register, [g, Name, Pid, {meta, Name}]),
            [?assertEqual({ok, Pid, {meta, Name}}, call(C, N, atoll_name, lookup, [g, Name])) || N <- Nodes]
        end,
        lists:zip(["one", <<"two">>], Pids)
    ),
    lists:foreach(
        fun(Name) ->
            ok = call(C, B, atoll_name, unregister, [g, Name]),
            [?assertEqual(none, call(C, N, atoll_name, lookup, [g, Name])) || N <- Nodes]
        end,
        ["one", <<"two">>]
    ).

one_of_four_gets_the_name(Config) ->
    {C, Nodes} = nodes_of(Config),
    Pids = [{N, call(C, N, ?H, holder, [])} || N <- Nodes],
    lists:foreach(
        fun(Round) ->
            Workers = [spawn_monitor(fun() -> exit({answer, call(C, N, atoll_name, register, [g, Round, P])}) end) || {N, P} <- Pids],
            Answers = [receive {'DOWN', Ref, process, _, {answer, A}} -> A end || {_, Ref} <- Workers],
            ?assertMatch([yes | _], lists:reverse(lists:sort(fun(X, _) -> X =/= yes end, Answers))),
            ?assertEqual(1, length([yes || yes <- Answers])),
            [ok = call(C, hd(Nodes), atoll_name, unregister, [g, Round]) || _ <- [1]]
        end,
        lists:seq(1, 20)
    ).

a_server_by_its_name(Config) ->
    {C, [A, B | _]} = nodes_of(Config),
    Pid = call(C, A, ?H, server, [{g, srv}]),
    ?assertEqual(Pid, call(C, B, ?H, ask_server, [{g, srv}])),
    %% As its supervisor would.
    ok = call(C, A, ?H, end_holder, [Pid]),
    Again = call(C, A, ?H, server, [{g, srv}]),
    ?assertEqual(Again, call(C, B, ?H, ask_server, [{g, srv}])),
    ok = call(C, B, atoll_name, unregister, [g, srv]).

a_name_goes_with_its_process(Config) ->
    {C, [A, B | _] = Nodes} = nodes_of(Config),
    Pid = call(C, B, ?H, holder, []),
    yes = call(C, A, atoll_name, register, [g, mortal, Pid]),
    ok = call(C, B, ?H, end_holder, [Pid]),
    [ok = call(C, N, ?H, await_table, [g, [], ?WAIT_MS]) || N <- Nodes],
    ?assertEqual({no, no_process}, call(C, A, atoll_name, register, [g, mortal, Pid])).

%% The node itself goes on, and stays connected.
where_the_application_stops_names_go_and_nobody_waits(Config) ->
    {C, [A, B, D, E] = Nodes} = nodes_of(Config),
    There = call(C, E, ?H, holder, []),
    yes = call(C, A, atoll_name, register, [g, there, There]),
    #{disconnected := Before} = maps:merge(#{disconnected => 0}, call(C, A, atoll_name, info, [])),
    ok = call(C, E, application, stop, [atoll]),
    [ok = call(C, N, ?H, await_table, [g, [], ?WAIT_MS]) || N <- [A, B, D]],
    Here = [{Name, call(C, A, ?H, holder, [])} || Name <- lists:seq(1, 10)],
    [yes = call(C, A, atoll_name, register, [g, Name, Pid]) || {Name, Pid} <- Here],
    ?assertMatch(#{disconnected := Before}, maps:merge(#{disconnected => 0}, call(C, A, atoll_name, info, []))),
    ?assert(lists:member(E, call(C, A, erlang, nodes, [connected]))),
    ok = call(C, E, application, start, [atoll]),
    [ok = call(C, N, ?H, await_table, [g, Here, ?WAIT_MS]) || N <- Nodes],
    [ok = call(C, E, atoll_name, unregister, [g, Name]) || {Name, _} <- Here].

two_parts_meet(Config) ->
    {C, [A, B, D, E] = Nodes} = nodes_of(Config),
    ok = atoll_name_cluster:cut(C, [A, B], [D, E]),
    Names = lists:seq(1, 100),
    Register = fun(N) ->
        [begin P = call(C, N, ?H, holder, []), yes = call(C, N, atoll_name, register, [g, Name, P]), {Name, P} end || Name <- Names]
    end,
    Left = Register(A),
    Right = Register(D),
    ok = atoll_name_cluster:mend(C, [A, B], [D, E]),
    Told = fun() ->
        [{Name, P, M} || {N, L} <- [{A, Left}, {D, Right}], {Name, P} <- L, M <- call(C, N, ?H, told, [P])]
    end,
    ok = atoll_name_cluster:await(fun() -> length(Told()) end, 100),
    Losers = [P || {_, P, _} <- Told()],
    Holders = lists:sort([{Name, P} || {Name, P} <- Left ++ Right, not lists:member(P, Losers)]),
    [ok = call(C, N, ?H, await_table, [g, Holders, ?WAIT_MS]) || N <- Nodes],
    ?assertEqual(100, length(Holders)),
    ?assertEqual([], [x || {Name, _, M} <- Told(), M =/= {name_conflict, g, Name, proplists:get_value(Name, Holders)}]),
    [ok = call(C, A, atoll_name, unregister, [g, Name]) || Name <- Names],
    %% Some had nothing to tell each other, and may wait for half a minute before they try again.
    atoll_name_cluster:reconnect(C, [A, B], [D, E]).

a_silent_member_holds_up_a_yes_for_a_while(Config) ->
    {C, [A, B, D, E] = Nodes} = nodes_of(Config),
    ok = back_with(C, A, Nodes, 3000),
    Pid = call(C, A, ?H, holder, []),
    ok = atoll_cluster:pause(C, E),
    Start = erlang:monotonic_time(millisecond),
    yes = call(C, A, atoll_name, register, [g, slow, Pid]),
    Ms = erlang:monotonic_time(millisecond) - Start,
    ct:pal("held up for ~b ms", [Ms]),
    ?assert(Ms < ?ANSWER_MS),
    [?assertEqual([{slow, Pid}], call(C, N, ?H, table, [g])) || N <- [A, B, D]],
    ok = atoll_cluster:resume(C, E),
    %% It reads first what came before the others left it, and then forgets it. What was
    %% registered since can have come over a new connection only.
    Since = call(C, A, ?H, holder, []),
    yes = call(C, A, atoll_name, register, [g, since, Since]),
    ok = call(C, E, ?H, await_table, [g, [{since, Since}, {slow, Pid}], ?WAIT_MS]),
    [ok = call(C, E, atoll_name, unregister, [g, Name]) || Name <- [since, slow]],
    [?assertEqual([], call(C, N, ?H, table, [g])) || N <- Nodes],
    ok = back_with(C, A, Nodes, ?ANSWER_MS).

%% This node waits so long for a silent member; it is back in the group, and all have heard
%% of a name of its own.
back_with(C, Node, Nodes, Ms) ->
    ok = call(C, Node, atoll_barrier, restart_with, [name_answer_timeout, Ms]),
    ok = call(C, Node, atoll_barrier, group, [g, Nodes]),
    [ok = call(C, N, atoll_barrier, connected, [Nodes -- [N]]) || N <- Nodes],
    yes = call(C, Node, atoll_name, register, [g, back, call(C, Node, ?H, holder, [])]),
    [ok = call(C, N, atoll_barrier, names, [g, [back]]) || N <- Nodes],
    call(C, Node, atoll_name, unregister, [g, back]).

a_name_goes_with_its_node(Config) ->
    {C, [A, B, D, E]} = nodes_of(Config),
    Pid = call(C, E, ?H, holder, []),
    Stays = call(C, A, ?H, holder, []),
    yes = call(C, A, atoll_name, register, [g, gone, Pid]),
    yes = call(C, A, atoll_name, register, [g, stays, Stays]),
    ok = atoll_cluster:kill(C, E),
    [ok = call(C, N, ?H, await_table, [g, [{stays, Stays}], ?WAIT_MS]) || N <- [A, B, D]],
    ok = atoll_cluster:restart(C, E),
    ok = call(C, E, ?H, await_table, [g, [{stays, Stays}], ?WAIT_MS]),
    ok = call(C, A, atoll_name, unregister, [g, stays]).

many_names_go_with_their_processes(Config) ->
    {C, [A | _] = Nodes} = nodes_of(Config),
    Count = atoll_tier:size(name_rate),
    One = call(C, A, ?H, rate, [g, Count div 10, 1]),
    Many = call(C, A, ?H, rate, [g, Count, 100]),
    ct:pal("4 nodes: one caller ~b/s, 100 callers ~b/s~n~p~n~p", [One, Many, call(C, A, atoll_name, info, []), call(C, A, atoll_interpreter, counters, [atoll_name])]),
    io:format(user, "~n4 nodes: one caller ~b/s, 100 callers ~b/s~n", [One, Many]),
    [ok = call(C, N, ?H, await_table, [g, [], ?WAIT_MS]) || N <- Nodes].
