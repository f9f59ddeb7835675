%% SPDX-License-Identifier: Apache-2.0
%% Two nodes with a copy of Mnesia's table each, which are cut off from each other, both asked to write, and meet again: what is lost by
%% which setting. The README has it as a table.
-module(subscribers_partition_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([
    without_a_setting_each_keeps_its_own_and_nothing_is_merged/1,
    with_a_master_the_other_sides_writes_are_lost_counted_and_kept_in_a_file/1,
    with_a_majority_neither_of_two_writes_and_nothing_is_lost/1,
    of_three_with_a_majority_two_go_on_and_nothing_is_lost/1,
    in_one_s_group_it_is_the_same_and_nobody_else_is_connected/1,
    in_one_s_group_without_a_setting_it_is_the_same/1,
    in_one_s_group_with_a_majority_it_is_the_same/1
]).
-export([row/1]).

-define(MS, 20_000).
-define(CALL_MS, 15_000).

suite() -> [{timetrap, {minutes, 3}}].

all() ->
    [
        without_a_setting_each_keeps_its_own_and_nothing_is_merged,
        with_a_master_the_other_sides_writes_are_lost_counted_and_kept_in_a_file,
        of_three_with_a_majority_two_go_on_and_nothing_is_lost,
        in_one_s_group_it_is_the_same_and_nobody_else_is_connected
    ] ++ case atoll_tier:tier() of
        fast ->
            [];
        deep ->
            [
                with_a_majority_neither_of_two_writes_and_nothing_is_lost, in_one_s_group_without_a_setting_it_is_the_same,
                in_one_s_group_with_a_majority_it_is_the_same
            ]
    end.

%% Numbers that both have, that one side alone has written, and that both have written.
-define(BOTH, 1).
-define(OF_A, 2).
-define(OF_B, 3).
-define(CLASH, 4).

row(Msisdn) -> (subscribers_record:random(1))#{msisdn := Msisdn, updated := 0}.

without_a_setting_each_keeps_its_own_and_nothing_is_merged(_) -> kept_apart(all_nodes).

with_a_master_the_other_sides_writes_are_lost_counted_and_kept_in_a_file(_) -> lost_and_kept_in_a_file(all_nodes).

with_a_majority_neither_of_two_writes_and_nothing_is_lost(_) -> neither_writes(all_nodes).

of_three_with_a_majority_two_go_on_and_nothing_is_lost(_) -> two_of_three_go_on(all_nodes).

in_one_s_group_it_is_the_same_and_nobody_else_is_connected(_) -> lost_and_kept_in_a_file(s_group).

in_one_s_group_without_a_setting_it_is_the_same(_) -> kept_apart(s_group).

in_one_s_group_with_a_majority_it_is_the_same(_) ->
    ok = neither_writes(s_group),
    two_of_three_go_on(s_group).

kept_apart(Where) ->
    on(Where, 2, fun(_) -> #{} end, fun(C, [A, B]) ->
        ok = split_brain(C, A, B),
        _ = [ok = await(fun() -> met(C, Node) >= 1 end) || Node <- [A, B]],
        %% They see each other, and each has its own.
        ?assert(lists:member(B, call(C, A, erlang, nodes, []))),
        ?assertEqual({[?BOTH, ?OF_A], [?BOTH, ?OF_B]}, {held(C, A, [?BOTH, ?OF_A, ?OF_B]), held(C, B, [?BOTH, ?OF_A, ?OF_B])}),
        ?assertEqual({1, 2}, {updated(C, A), updated(C, B)}),
        %% What is written now does not come to the other side either.
        ok = put(C, A, 5, 1),
        ?assertEqual([], held(C, B, [5])),
        ?assertMatch(#{healed := 0, lost := 0}, status(C, B))
    end).

%% B takes the table of A, and they are one again.
lost_and_kept_in_a_file(Where) ->
    on(Where, 2, fun([A, _]) -> #{heal => {master, A}} end, fun(C, [A, B]) ->
        ok = split_brain(C, A, B),
        ok = await(fun() -> maps:with([healed, lost], status(C, B)) =:= #{healed => 1, lost => 2} end),
        [?assertEqual({Node, [?BOTH, ?OF_A]}, {Node, held(C, Node, [?BOTH, ?OF_A, ?OF_B])}) || Node <- [A, B]],
        ?assertEqual({1, 1}, {updated(C, A), updated(C, B)}),
        ok = put(C, B, 5, 1),
        ?assertEqual([5], held(C, A, [5])),
        ?assertMatch(#{healed := 0, lost := 0}, status(C, A)),
        %% The file has what B alone had, and its own of what both had written.
        Dir = call(C, B, mnesia, system_info, [directory]),
        [File] = filelib:wildcard(filename:join(Dir, "lost-*")),
        {ok, Lost} = file:read_file(File),
        ?assertEqual([?OF_B, ?CLASH], lists:sort([element(2, Row) || Row <- binary_to_term(Lost)]))
    end).

neither_writes(Where) ->
    on(Where, 2, fun([A, _]) -> #{majority => true, heal => {master, A}} end, fun(C, [A, B]) ->
        ok = put(C, A, ?BOTH, 0),
        ok = cut(C, [A], [B]),
        [?assertEqual({Node, {error, no_majority}}, {Node, put(C, Node, ?CLASH, 1)}) || Node <- [A, B]],
        %% Reading goes on.
        [?assertEqual([?BOTH], held(C, Node, [?BOTH, ?CLASH])) || Node <- [A, B]],
        ok = mend(C, [A], [B]),
        ok = await(fun() -> maps:with([healed, lost], status(C, B)) =:= #{healed => 1, lost => 0} end),
        ok = put(C, B, ?OF_B, 1),
        ?assertEqual([?OF_B], held(C, A, [?OF_B]))
    end).

two_of_three_go_on(Where) ->
    on(Where, 3, fun([A | _]) -> #{majority => true, heal => {master, A}} end, fun(C, [A, B, Other]) ->
        _ = [ok = put(C, Other, Of, 0) || Of <- [?BOTH, ?CLASH]],
        ok = cut(C, [A, B], [Other]),
        ?assertEqual({error, no_majority}, put(C, Other, ?OF_B, 1)),
        ok = put(C, B, ?OF_A, 1),
        %% What those who go on change and delete is not what the other one loses.
        ok = put(C, B, ?CLASH, 1),
        ok = call(C, A, subscribers, delete, [?BOTH]),
        ok = mend(C, [A, B], [Other]),
        ok = await(fun() -> maps:with([healed, lost], status(C, Other)) =:= #{healed => 1, lost => 0} end),
        ?assertEqual([?OF_A, ?CLASH], lists:sort(held(C, Other, [?CLASH, ?OF_A, ?OF_B, ?BOTH]))),
        ?assertEqual([], filelib:wildcard(filename:join(call(C, Other, mnesia, system_info, [directory]), "lost-*"))),
        ok = put(C, Other, ?OF_B, 1),
        ?assertEqual([?OF_B], held(C, A, [?OF_B]))
    end).

%% A and B are cut off from each other, write, and meet again.
split_brain(C, A, B) ->
    ok = put(C, A, ?BOTH, 0),
    ok = put(C, A, ?CLASH, 0),
    ?assertEqual([?BOTH, ?CLASH], held(C, B, [?BOTH, ?CLASH])),
    ok = cut(C, [A], [B]),
    ok = put(C, A, ?OF_A, 1),
    ok = put(C, B, ?OF_B, 2),
    ok = put(C, A, ?CLASH, 1),
    ok = put(C, B, ?CLASH, 2),
    mend(C, [A], [B]).

on(all_nodes, Count, Settings, Fun) ->
    {ok, C} = atoll_cluster:start(#{nodes => Count}),
    Nodes = atoll_cluster:nodes(C),
    ok = served(C, Nodes, (Settings(Nodes))#{copies => Nodes}),
    _ = Fun(C, Nodes),
    atoll_cluster:stop(C);
%% One node more is in no group.
on(s_group, Count, Settings, Fun) ->
    {ok, C} = atoll_cluster:start(#{nodes => Count + 1, connect_all => false, apps => [atoll]}),
    {[A | _] = Nodes, [Other]} = lists:split(Count, atoll_cluster:nodes(C)),
    {ok, subscribers, Nodes} = call(C, A, s_group, new_s_group, [subscribers, Nodes]),
    ok = served(C, Nodes, (Settings(Nodes))#{copies => {s_group, subscribers}}),
    _ = Fun(C, Nodes),
    ?assertEqual([], call(C, Other, erlang, nodes, [])),
    [?assertEqual({Node, Nodes -- [Node]}, {Node, lists:sort(call(C, Node, erlang, nodes, []))}) || Node <- Nodes],
    atoll_cluster:stop(C).

served(C, Nodes, Settings) ->
    #{dir := Dir} = atoll_cluster:info(C),
    _ = [
        ok = call(C, Node, application, set_env, [[{subscribers, [{store, mnesia}, {dir, filename:join([Dir, "mnesia", atom_to_list(Node)])} | maps:to_list(Settings)]}]])
     || Node <- Nodes
    ],
    Started = [{Node, Answer} || {Node, Answer} <- atoll_cluster:multicall(C, application, ensure_all_started, [subscribers], ?CALL_MS), lists:member(Node, Nodes)],
    [?assertMatch({_, {ok, {ok, _}}}, Answer) || Answer <- Started],
    ok.

call(C, Node, M, F, Args) -> atoll_cluster:call(C, Node, M, F, Args, ?CALL_MS).

put(C, Node, Msisdn, Updated) -> call(C, Node, subscribers, put, [(row(Msisdn))#{updated := Updated}]).

%% Which of these numbers a node has.
held(C, Node, Msisdns) -> [N || N <- Msisdns, {ok, _} <- [call(C, Node, subscribers, get, [N])]].

updated(C, Node) ->
    {ok, #{updated := Updated}} = call(C, Node, subscribers, get, [?CLASH]),
    Updated.

status(C, Node) ->
    {ok, Status} = call(C, Node, subscribers, status, []),
    Status.

met(C, Node) ->
    #{partitions := Met} = status(C, Node),
    Met.

%% Two cookies keep them apart, also where somebody tries to connect them again.
cut(C, Some, Others) ->
    Pairs = [{One, Other} || One <- Some, Other <- Others],
    Both = Pairs ++ [{Other, One} || {One, Other} <- Pairs],
    _ = [true = call(C, From, erlang, set_cookie, [To, From]) || {From, To} <- Both],
    _ = [call(C, From, erlang, disconnect_node, [To]) || {From, To} <- Pairs],
    _ = [ok = await(fun() -> not lists:member(To, maps:get(running, status(C, From))) end) || {From, To} <- Both],
    ok.

mend(C, Some, Others) ->
    Cookie = call(C, hd(Some), erlang, get_cookie, []),
    Pairs = [{One, Other} || One <- Some, Other <- Others],
    _ = [true = call(C, From, erlang, set_cookie, [To, Cookie]) || {One, Other} <- Pairs, {From, To} <- [{One, Other}, {Other, One}]],
    _ = [ok = await(fun() -> call(C, From, net_kernel, connect_node, [To]) =:= true end) || {From, To} <- Pairs],
    ok.

%% No event of ours tells.
await(Is) -> await(Is, erlang:monotonic_time(millisecond) + ?MS).

await(Is, Deadline) ->
    case {Is(), erlang:monotonic_time(millisecond) >= Deadline} of
        {true, _} -> ok;
        {false, true} -> late;
        {false, false} -> receive after 20 -> await(Is, Deadline) end
    end.
