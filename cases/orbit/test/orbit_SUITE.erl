%% Orbit on real nodes.
-module(orbit_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, end_per_testcase/2]).

-export([
    mesh_agrees_with_one_process/1,
    groups_and_ring_agree_with_one_process/1,
    nine_nodes_find_the_published_size_in_every_mode/1,
    a_mesh_node_is_connected_with_all_others/1,
    a_plain_member_of_groups_is_connected_with_its_group_alone/1,
    a_plain_member_of_a_ring_is_connected_with_its_group_alone/1,
    the_program_of_the_mesh_runs_over_groups/1,
    messages_are_counted_where_they_cross/1,
    a_killed_worker_node_ends_a_mesh/1,
    a_killed_worker_node_ends_groups/1,
    a_killed_worker_node_ends_a_ring/1,
    a_killed_gateway_node_ends_groups/1,
    a_killed_gateway_node_ends_a_ring/1,
    in_a_ring_a_failure_is_heard_on_the_other_side_of_a_silent_gateway/1,
    a_cut_connection_ends_the_run/1,
    a_silent_node_ends_the_run/1,
    a_killed_worker_process_ends_the_run/1,
    a_caller_that_dies_takes_the_run_with_it/1,
    the_next_run_succeeds_after_a_failed_one/1,
    two_runs_at_once_do_not_meet/1,
    a_node_that_is_not_there_is_named/1,
    a_node_without_atoll_is_named/1
]).

%% Of a run that must end, one way or another.
-define(RUN_MS, 60_000).
%% Within which a failure must be reported.
-define(SECONDS, 5_000).

suite() -> [{timetrap, {minutes, 6}}].

all() ->
    [
        mesh_agrees_with_one_process,
        groups_and_ring_agree_with_one_process,
        nine_nodes_find_the_published_size_in_every_mode,
        a_mesh_node_is_connected_with_all_others,
        a_plain_member_of_groups_is_connected_with_its_group_alone,
        a_plain_member_of_a_ring_is_connected_with_its_group_alone,
        the_program_of_the_mesh_runs_over_groups,
        messages_are_counted_where_they_cross,
        a_killed_worker_node_ends_a_mesh,
        a_killed_worker_node_ends_groups,
        a_killed_worker_node_ends_a_ring,
        a_killed_gateway_node_ends_groups,
        a_killed_gateway_node_ends_a_ring,
        in_a_ring_a_failure_is_heard_on_the_other_side_of_a_silent_gateway,
        a_cut_connection_ends_the_run,
        a_silent_node_ends_the_run,
        a_killed_worker_process_ends_the_run,
        a_caller_that_dies_takes_the_run_with_it,
        the_next_run_succeeds_after_a_failed_one,
        two_runs_at_once_do_not_meet,
        a_node_that_is_not_there_is_named,
        a_node_without_atoll_is_named
    ].

end_per_testcase(_Case, _Config) ->
    case erase(cluster) of
        undefined -> ok;
        Cluster -> atoll_cluster:stop(Cluster)
    end.

%%% The answer

mesh_agrees_with_one_process(_Config) ->
    {Cluster, Nodes} = mesh(9),
    agree(Cluster, Nodes, [#{mode => mesh}]).

groups_and_ring_agree_with_one_process(_Config) ->
    {Cluster, Nodes} = islands(9),
    agree(Cluster, Nodes, [#{mode => Mode, group_size => Size}
                           || Mode <- [groups, ring], Size <- [1, 2, 3]]).

agree(Cluster, Nodes, Layouts) ->
    agree(Cluster, Nodes, Layouts, [1, 2, 5, 9], [1, 3]).

agree(Cluster, [Master | _] = Nodes, Layouts, Counts, PerNode) ->
    Base = #{space => 500, vertices => true},
    Keys = [size, vertices_received, checksum, vertices],
    [begin
         {ok, Reference} = orbit:run(Base#{generators => Name, mode => seq}),
         Spec = maps:merge(Base#{generators => Name, workers => Workers,
                                 nodes => lists:sublist(Nodes, Count)}, Layout),
         {ok, Found} = run(Cluster, Master, Spec),
         ?assertEqual(maps:with(Keys, Reference), maps:with(Keys, Found), Spec),
         ?assertEqual(Count, maps:get(nodes, Found))
     end || Name <- [g124, g12345],
            Count <- Counts,
            Layout <- Layouts,
            maps:get(group_size, Layout, 1) =< Count,
            Workers <- PerNode].

nine_nodes_find_the_published_size_in_every_mode(_Config) ->
    {Mesh, MeshNodes} = mesh(9),
    published(Mesh, MeshNodes, #{mode => mesh}),
    {ok, #{size := 86_992}} = run(Mesh, hd(MeshNodes), #{
        generators => g12345, space => 100_000, nodes => MeshNodes, mode => mesh}),
    ok = atoll_cluster:stop(Mesh),
    {Islands, Nodes} = islands(9),
    published(Islands, Nodes, #{mode => groups, group_size => 3}),
    published(Islands, Nodes, #{mode => ring, group_size => 3}).

published(Cluster, [Master | _] = Nodes, Layout) ->
    Spec = Layout#{generators => g124, space => 100_000, nodes => Nodes},
    {ok, #{size := 6_889}} = run(Cluster, Master, Spec#{space => 10_000}),
    {ok, #{size := 68_859, vertices_received := 206_578, wall_ms := Ms}} =
        run(Cluster, Master, Spec),
    ct:pal("~p: ~b ms", [Layout, Ms]).

%%% Connections and messages

a_mesh_node_is_connected_with_all_others(_Config) ->
    {Cluster, [Master | _] = Nodes} = mesh(6),
    {ok, Result} = run(Cluster, Master, (small())#{mode => mesh, nodes => Nodes}),
    ?assertEqual(maps:from_keys(Nodes, 5), maps:get(connections, Result)),
    ?assertMatch(#{connections_max := 5, connections_mean := 5.0}, Result).

%% Eight nodes in four groups of two: each gateway meets three others.
a_plain_member_of_groups_is_connected_with_its_group_alone(_Config) ->
    connections_in_pairs(groups, 1 + 3).

%% In a ring it meets two.
a_plain_member_of_a_ring_is_connected_with_its_group_alone(_Config) ->
    connections_in_pairs(ring, 1 + 2).

connections_in_pairs(Mode, OfGateway) ->
    {Cluster, [Master | _] = Nodes} = islands(8),
    Spec = (small())#{mode => Mode, group_size => 2, nodes => Nodes},
    {ok, #{connections := Connections}} = run(Cluster, Master, Spec),
    ?assertEqual([OfGateway, 1, OfGateway, 1, OfGateway, 1, OfGateway, 1],
                 [maps:get(Node, Connections) || Node <- Nodes]).

%% Eight nodes in two groups, of which each has two gateways. A message that goes over one or
%% two of them is one message, and two or three packets.
the_program_of_the_mesh_runs_over_groups(_Config) ->
    {ok, Cluster} = atoll_cluster:start(#{
        nodes => 8, connect_all => false, apps => [atoll], args => fun(Nodes) -> orbit_native:args(Nodes, 4) end}),
    put(cluster, Cluster),
    Nodes = atoll_cluster:nodes(Cluster),
    Ready = atoll_cluster:multicall(Cluster, orbit_native, await, [Nodes, 30_000], ?RUN_MS),
    ?assertEqual([{Node, {ok, ok}} || Node <- Nodes], Ready),
    agree(Cluster, Nodes, [#{mode => mesh}], [8], [3]),
    {ok, #{connections := Connections, messages := Messages, packets := Packets}} =
        run(Cluster, hd(Nodes), (small())#{mode => mesh, nodes => Nodes}),
    ?assertEqual([3 + 2, 3 + 2, 3, 3, 3 + 2, 3 + 2, 3, 3], [maps:get(Node, Connections) || Node <- Nodes]),
    ?assertMatch(#{gateway := 0}, Messages),
    ?assert(Packets > maps:get(vertex, Messages)).

%% With a node to a group, every image for another group crosses once in
%% groups, and none goes from worker to worker.
messages_are_counted_where_they_cross(_Config) ->
    {Cluster, [Master | _] = Nodes} = islands(3),
    Spec = (small())#{group_size => 1, nodes => Nodes, workers => 2, vertices => true},
    {ok, #{vertices := Vertices, messages := Messages}} =
        run(Cluster, Master, Spec#{mode => groups}),
    Node = fun(X) -> erlang:phash2(X, 6) div 2 end,
    Crossings = length([Y || X <- Vertices,
                             F <- orbit_generators:functions(g124, 1000),
                             Y <- [F(X)],
                             Node(Y) =/= Node(X)]),
    FirstVertex = min(1, Node(0)),
    ?assertMatch(#{vertex := 0, gateway := Hops} when Hops =:= Crossings + FirstVertex, Messages),
    %% Each of the two submasters away from the master sends ready and result
    %% and is sent start and dump.
    ?assertMatch(#{control := 8}, Messages).

%%% Failure

a_killed_worker_node_ends_a_mesh(_Config) ->
    kill_in_the_middle(mesh(5), 4, #{mode => mesh}).

a_killed_worker_node_ends_groups(_Config) ->
    kill_in_the_middle(islands(9), 5, #{mode => groups, group_size => 3}).

a_killed_worker_node_ends_a_ring(_Config) ->
    kill_in_the_middle(islands(9), 5, #{mode => ring, group_size => 3}).

a_killed_gateway_node_ends_groups(_Config) ->
    kill_in_the_middle(islands(9), 4, #{mode => groups, group_size => 3}).

%% Five groups: the ring is cut in the middle of the start tree.
a_killed_gateway_node_ends_a_ring(_Config) ->
    kill_in_the_middle(islands(10), 5, #{mode => ring, group_size => 2}).

%% The second of five gateways, through which the third one's end would be told,
%% says nothing. It is waited for while the run is taken down.
in_a_ring_a_failure_is_heard_on_the_other_side_of_a_silent_gateway(_Config) ->
    {Cluster, [A, Silent, Victim, D, E] = Nodes} = islands(5),
    Run = start_long(Cluster, Nodes, #{mode => ring, group_size => 1}),
    wait_until_all_compute(Cluster, Nodes),
    ok = atoll_cluster:pause(Cluster, Silent),
    ok = atoll_cluster:kill(Cluster, Victim),
    ?assertEqual({error, {node_lost, Victim}}, outcome(Run, 20_000)),
    nothing_is_left(Cluster, [A, D, E]).

kill_in_the_middle({Cluster, Nodes}, Nth, Layout) ->
    Victim = lists:nth(Nth, Nodes),
    Run = start_long(Cluster, Nodes, Layout),
    wait_until_all_compute(Cluster, Nodes),
    ok = atoll_cluster:kill(Cluster, Victim),
    ?assertEqual({error, {node_lost, Victim}}, outcome(Run, ?SECONDS)),
    nothing_is_left(Cluster, Nodes -- [Victim]).

%% Both nodes live and both see their submaster; only they lost each other.
a_cut_connection_ends_the_run(_Config) ->
    {Cluster, [_, B, C] = Nodes} = islands(3),
    Run = start_long(Cluster, Nodes, #{mode => groups, group_size => 3}),
    wait_until_all_compute(Cluster, Nodes),
    true = atoll_cluster:call(Cluster, B, erlang, disconnect_node, [C], ?SECONDS),
    {error, {node_lost, Lost}} = outcome(Run, ?SECONDS),
    ?assert(lists:member(Lost, [B, C])),
    nothing_is_left(Cluster, Nodes).

%% It is found by the ticks of the distribution, of which one is due each
%% second here.
a_silent_node_ends_the_run(_Config) ->
    {Cluster, [_, _, Silent | _] = Nodes} =
        cluster(4, false, ["-kernel", "net_ticktime", "4"]),
    Run = start_long(Cluster, Nodes, #{mode => groups, group_size => 2}),
    wait_until_all_compute(Cluster, Nodes),
    ok = atoll_cluster:pause(Cluster, Silent),
    ?assertEqual({error, {node_lost, Silent}}, outcome(Run, 30_000)),
    nothing_is_left(Cluster, Nodes -- [Silent]).

a_killed_worker_process_ends_the_run(_Config) ->
    {Cluster, Nodes} = islands(4),
    Node = lists:last(Nodes),
    Run = start_long(Cluster, Nodes, #{mode => ring, group_size => 2}),
    wait_until_all_compute(Cluster, Nodes),
    [Worker | _] = atoll_cluster:call(Cluster, Node, orbit_probe, of_runs, [orbit_worker], ?SECONDS),
    true = atoll_cluster:call(Cluster, Node, erlang, exit, [Worker, kill], ?SECONDS),
    ?assertEqual({error, {worker_failed, Node, killed}}, outcome(Run, ?SECONDS)),
    nothing_is_left(Cluster, Nodes).

a_caller_that_dies_takes_the_run_with_it(_Config) ->
    {Cluster, [Master | _] = Nodes} = islands(6),
    Spec = (long())#{nodes => Nodes, mode => ring, group_size => 2},
    Caller = atoll_cluster:call(Cluster, Master, erlang, spawn, [orbit, run, [Spec]], ?SECONDS),
    wait_until_all_compute(Cluster, Nodes),
    true = atoll_cluster:call(Cluster, Master, erlang, exit, [Caller, kill], ?SECONDS),
    nothing_is_left(Cluster, Nodes).

the_next_run_succeeds_after_a_failed_one(_Config) ->
    {Cluster, Nodes} = islands(7),
    {Left, [Victim]} = lists:split(6, Nodes),
    Run = start_long(Cluster, Nodes, #{mode => groups, group_size => 3}),
    wait_until_all_compute(Cluster, Nodes),
    ok = atoll_cluster:kill(Cluster, Victim),
    {error, {node_lost, Victim}} = outcome(Run, ?SECONDS),
    [begin
         Spec = (small())#{nodes => Left, mode => Mode, group_size => 3},
         ?assertMatch({ok, #{size := 854, nodes := 6}}, run(Cluster, hd(Left), Spec))
     end || Mode <- [groups, ring, groups]],
    nothing_is_left(Cluster, Left).

%% Two masters, the same nodes in another order.
two_runs_at_once_do_not_meet(_Config) ->
    {Cluster, Nodes} = islands(6),
    Runs = [start(Cluster, Order, (small())#{generators => Name, space => 10_000, nodes => Order,
                                             mode => Mode, group_size => 2})
            || {Order, Name, Mode} <- [{Nodes, g124, groups}, {lists:reverse(Nodes), g12, ring}]],
    [{ok, #{size := 6_889}}, {ok, #{size := 6_886}}] = [outcome(Run, ?RUN_MS) || Run <- Runs],
    nothing_is_left(Cluster, Nodes).

a_node_that_is_not_there_is_named(_Config) ->
    {Cluster, [Master | _] = Nodes} = islands(3),
    Nowhere = 'nobody@nowhere.invalid',
    Spec = (small())#{nodes => Nodes ++ [Nowhere]},
    ?assertEqual({error, {left_out, Nowhere}},
                 run(Cluster, Master, Spec#{mode => groups, group_size => 2})),
    ?assertEqual({error, {unreachable, Nowhere}}, run(Cluster, Master, Spec#{mode => mesh})),
    nothing_is_left(Cluster, Nodes).

a_node_without_atoll_is_named(_Config) ->
    {Cluster, [Master, Without | _] = Nodes} = islands(3),
    Spec = (small())#{nodes => Nodes, mode => groups, group_size => 3},
    ok = atoll_cluster:call(Cluster, Without, application, stop, [atoll], ?SECONDS),
    ?assertEqual({error, {left_out, Without}}, run(Cluster, Master, Spec)),
    ok = atoll_cluster:call(Cluster, Master, application, stop, [atoll], ?SECONDS),
    ?assertEqual({error, {group_failed, Master, s_group_not_runnig}}, run(Cluster, Master, Spec)).

%%% Clusters and runs

mesh(Count) -> cluster(Count, true, []).

islands(Count) -> cluster(Count, false, []).

cluster(Count, ConnectAll, Args) ->
    {ok, Cluster} = atoll_cluster:start(#{
        nodes => Count, connect_all => ConnectAll, apps => [atoll], args => Args}),
    put(cluster, Cluster),
    {Cluster, atoll_cluster:nodes(Cluster)}.

small() -> #{generators => g124, space => 1_000, workers => 2}.

%% Longer than any test.
long() -> #{generators => g12345, space => 5_000_000, workers => 2}.

run(Cluster, Master, Spec) ->
    atoll_cluster:call(Cluster, Master, orbit, run, [Spec], ?RUN_MS).

start_long(Cluster, Nodes, Layout) ->
    start(Cluster, Nodes, maps:merge((long())#{nodes => Nodes}, Layout)).

start(Cluster, [Master | _], Spec) ->
    spawn_monitor(fun() -> exit({outcome, run(Cluster, Master, Spec)}) end).

outcome({Pid, Ref}, Ms) ->
    receive
        {'DOWN', Ref, process, Pid, {outcome, Outcome}} -> Outcome
    after Ms ->
        error({no_outcome_within, Ms})
    end.

wait_until_all_compute(Cluster, Nodes) ->
    Is = fun(Node) -> atoll_cluster:call(Cluster, Node, orbit_probe, is_computing, [], ?SECONDS) end,
    orbit_wait:until(fun() -> lists:all(Is, Nodes) end).

%% No process of a run, and no group.
nothing_is_left(Cluster, Nodes) ->
    IsClean = fun(Node) ->
        atoll_cluster:call(Cluster, Node, orbit_probe, of_runs, [], ?SECONDS) =:= []
            andalso atoll_cluster:call(Cluster, Node, s_group, own_s_groups, [], ?SECONDS) =:= []
    end,
    orbit_wait:until(fun() -> lists:all(IsClean, Nodes) end).
