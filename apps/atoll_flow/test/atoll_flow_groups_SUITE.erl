%% SPDX-License-Identifier: Apache-2.0
%% The traffic of nodes that run Atoll, in groups: who owns which node while groups change, and Orbit's messages from group to group.
-module(atoll_flow_groups_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([
    agents_follow_the_groups/1,
    messages_of_orbit_are_counted_from_group_to_group/1,
    many_nodes_are_observed_and_none_is_connected_by_it/1
]).

-import(atoll_watch_peers, [await/2]).

-define(LATE_MS, 60000).
-define(RUN_MS, 120000).

suite() -> [{timetrap, {minutes, 5}}].

all() ->
    [agents_follow_the_groups, messages_of_orbit_are_counted_from_group_to_group] ++
    [many_nodes_are_observed_and_none_is_connected_by_it || atoll_tier:tier() =:= deep].

init_per_suite(Config) ->
    #{args := Args} = Options = orbit:node_options(groups),
    [{cluster, atoll_cluster_owned:start(Options#{nodes => 9, args := ["+S", "1:1", "+sbwt", "none", "-kernel", "logger_level", "none"] ++ Args})} | Config].

end_per_suite(Config) -> atoll_cluster_owned:stop(proplists:get_value(cluster, Config)).

end_per_testcase(_, Config) ->
    _ = atoll_cluster_owned:heal(proplists:get_value(cluster, Config)),
    ok.

nodes_of(Cluster) -> [Node || #{node := Node} <- maps:get(nodes, atoll_cluster:info(Cluster))].

observing(Nodes, Options, Fun) ->
    atoll_cli_line:as_node(fun() ->
        {ok, Flow} = atoll_flow:start_link({joined, "reef", #{nodes => Nodes}}, Options),
        try
            ok = atoll_flow:settle(Flow, ?LATE_MS),
            Fun(Flow)
        after
            ok = gen_server:stop(Flow)
        end
    end).

call(Cluster, Node, M, F, A) -> atoll_cluster:call(Cluster, Node, M, F, A, ?RUN_MS).

%% The four changes, as the table of the tool has them, each seen within a second or so.
agents_follow_the_groups(Config) ->
    Cluster = proplists:get_value(cluster, Config),
    [A, B, C | _] = All = nodes_of(Cluster),
    observing(All, #{trace => true, by => name}, fun(Flow) ->
        Free = fun(Nodes) -> [{{free, Node}, [{Node, up}]} || Node <- Nodes] end,
        Agents = fun() -> atoll_flow:agents(Flow) end,
        Are = fun(Wanted) ->
            Begun = erlang:monotonic_time(millisecond),
            _ = await(Agents, fun(Is) -> Is =:= lists:sort(Wanted) end),
            ct:pal("seen after ~b ms", [erlang:monotonic_time(millisecond) - Begun]),
            ok
        end,
        ok = Are(Free(All)),
        %% Messages go on all the while, and none is lost: who answers is told apart from what Atoll's own processes say.
        ok = call(Cluster, B, atoll_flow_script, echo, []),
        {Pinging, Ref} = spawn_monitor(fun() -> exit(pinging(Cluster, A, B, 0)) end),
        Owned = fun(Nodes) -> [{Node, up} || Node <- lists:sort(Nodes)] end,
        {ok, _, _} = new_group(Cluster, A, one, [A, B]),
        ok = Are([{{group, one}, Owned([A, B])} | Free(All -- [A, B])]),
        {ok, _, _} = new_group(Cluster, B, two, [B, C]),
        %% B stays with its owner.
        ok = Are([{{group, one}, Owned([A, B])}, {{group, two}, Owned([C])} | Free(All -- [A, B, C])]),
        ok = call(Cluster, A, s_group, remove_nodes, [one, [B]]),
        ok = Are([{{group, one}, Owned([A])}, {{group, two}, Owned([B, C])} | Free(All -- [A, B, C])]),
        [D | _] = All -- [A, B, C],
        {ok, _, _} = call(Cluster, B, s_group, add_nodes, [two, [D]]),
        ok = Are([{{group, one}, Owned([A])}, {{group, two}, Owned([B, C, D])} | Free(All -- [A, B, C, D])]),
        ok = call(Cluster, B, s_group, delete_s_group, [two]),
        ok = Are([{{group, one}, Owned([A])} | Free(All -- [A])]),
        ok = call(Cluster, A, s_group, delete_s_group, [one]),
        ok = Are(Free(All)),
        Pinging ! enough,
        Sent = receive {'DOWN', Ref, process, Pinging, N} -> N end,
        ok = atoll_flow:settle(Flow, ?LATE_MS),
        Totals = maps:to_list(atoll_flow_sums:totals(atoll_flow:sums(Flow))),
        Answers = lists:sum([Count || {{From, To, _, message, atoll_flow_script}, {Count, _}} <- Totals, {From, To} =:= {B, A}]),
        ct:pal("~b messages while groups changed, ~b counted", [Sent, Answers]),
        ?assert(Sent > 100),
        ?assertEqual(Sent, Answers),
        ok = call(Cluster, B, atoll_flow_script, hush, [])
    end).

pinging(Cluster, A, B, Sent) ->
    receive enough -> Sent
    after 0 -> pinging(Cluster, A, B, Sent + call(Cluster, A, atoll_flow_script, pings, [B, 100]))
    end.

new_group(Cluster, Node, Group, Nodes) -> call(Cluster, Node, s_group, new_s_group, [Group, Nodes]).

%% Three groups of which two nodes are in two each: any node sends to any other one, as in the paper. Between two nodes neither of which has the
%% master go the vertices that Orbit's own result says, and nothing else but what OTP sends when two nodes get connected.
messages_of_orbit_are_counted_from_group_to_group(Config) ->
    Cluster = proplists:get_value(cluster, Config),
    [A, B, C, D, E, F, G, H, I] = Nodes = nodes_of(Cluster),
    Groups = [{one, [A, B, C, D]}, {two, [D, E, F, G]}, {three, [G, H, I]}],
    _ = [{ok, _, _} = new_group(Cluster, hd(Its), Group, Its) || {Group, Its} <- Groups],
    observing(Nodes, #{trace => true, limit => 1000000}, fun(Flow) ->
        _ = await(fun() -> length(atoll_flow:agents(Flow)) end, fun(N) -> N =:= 3 end),
        Spec = #{generators => g124, space => 10000, nodes => Nodes, mode => mesh, vertices => true},
        {ok, #{vertices_received := Received, vertices := Vertices, workers := Workers}} = call(Cluster, A, orbit, run, [Spec]),
        ok = atoll_flow:settle(Flow, ?LATE_MS),
        #{flow := Flows} = Tables = atoll_flow_table:of_sums(messages, atoll_flow:sums(Flow)),
        {All, Between} = atoll_flow_table:between(Tables),
        #{seen := Seen, longest := Longest} = atoll_flow:status(Flow),
        ct:pal("Orbit g124, 10,000, 9 nodes, 3 groups: ~b messages between nodes, ~b of them between groups (~.1f %; the paper: 55.3 % of 21,159); "
               "~b vertices received; ~b traced, ~b waited at most~n~ts", [All, Between, 100 * Between / All, Received, Seen, Longest, atoll_flow_cli:text(Tables, [sent, flow, bridge, group, kind])]),
        ?assertEqual({All, All}, {lists:sum([In || {_, In, _} <- Flows]), lists:sum([Out || {_, _, Out} <- Flows])}),
        ?assert(Between / All > 0.4),
        ?assert(Between / All < 0.7),
        ?assertEqual([D, G], [Node || {Node, _, _} <- maps:get(bridge, Tables)]),
        Home = maps:from_list([{Part, Node} || #{node := Node, part := Part} <- Workers]),
        Of = fun(X) -> maps:get(orbit_part:owner(X, map_size(Home)), Home) end,
        Sent = lists:foldl(fun({From, To}, Acc) -> maps:update_with({From, To}, fun(N) -> N + 1 end, 1, Acc) end, #{},
                           [{Of(X), Of(Image(X))} || X <- Vertices, Image <- orbit_generators:functions(g124, 10000)]),
        Messages = [{{From, To}, Count} || {{From, To, _, message, _}, {Count, _}} <- maps:to_list(atoll_flow_sums:totals(atoll_flow:sums(Flow)))],
        Counted = fun(Pair) -> lists:sum([Count || {Its, Count} <- Messages, Its =:= Pair]) end,
        [?assertMatch({Pair, N} when N >= 0 andalso N =< 10, {Pair, Counted(Pair) - Count}) || {{From, To} = Pair, Count} <- maps:to_list(Sent), From =/= To, From =/= A, To =/= A]
    end),
    _ = [ok = call(Cluster, hd(Its), s_group, delete_s_group, [Group]) || {Group, Its} <- Groups],
    ok.

many_nodes_are_observed_and_none_is_connected_by_it(_Config) ->
    Cluster = atoll_cluster_owned:start(#{
        nodes => 60, connect_all => false, apps => [atoll],
        args => ["+S", "1:1", "+sbwt", "none", "+A", "1", "+SDio", "1", "-kernel", "logger_level", "none", "-atoll", "free_group", "off"]
    }),
    try
        Nodes = nodes_of(Cluster),
        Known = fun() -> [{Node, lists:sort(call(Cluster, Node, erlang, nodes, []))} || Node <- Nodes] end,
        ?assertEqual([[]], lists:usort([Is || {_, Is} <- Known()])),
        observing(Nodes, #{trace => true}, fun(Flow) ->
            ?assertEqual(60, length(atoll_flow:agents(Flow))),
            ?assertEqual([up], lists:usort([Is || {_, Is} <- maps:get(nodes, atoll_flow:status(Flow))])),
            ?assertEqual([[]], lists:usort([Is || {_, Is} <- Known()])),
            [A, B | _] = Nodes,
            {ok, _, _} = new_group(Cluster, A, pair, [A, B]),
            _ = await(fun() -> length(atoll_flow:agents(Flow)) end, fun(N) -> N =:= 59 end),
            ?assertEqual(2, length([Node || {Node, [_ | _]} <- Known()]))
        end),
        ok = call(Cluster, hd(Nodes), s_group, delete_s_group, [pair])
    after
        atoll_cluster_owned:stop(Cluster)
    end.
