%% Orbit on real nodes. A cluster of each kind for all cases that need no other; a node that
%% a case has killed or paused is there again after it.
-module(orbit_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, groups/0, suite/0, init_per_group/2, end_per_group/2, end_per_testcase/2]).

-export([
    mesh_agrees_with_one_process/1,
    groups_and_ring_agree_with_one_process/1,
    a_mesh_finds_the_published_size/1,
    groups_and_ring_find_the_published_size/1,
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

all() -> [{group, mesh}, {group, islands}, {group, others}].

groups() ->
    [{Group, [], cases(Group, atoll_tier:tier())} || Group <- [mesh, islands, others]].

cases(mesh, _) ->
    [
        mesh_agrees_with_one_process,
        a_mesh_finds_the_published_size,
        a_mesh_node_is_connected_with_all_others,
        a_killed_worker_node_ends_a_mesh
    ];
cases(islands, fast) ->
    [
        groups_and_ring_agree_with_one_process,
        groups_and_ring_find_the_published_size,
        a_plain_member_of_groups_is_connected_with_its_group_alone,
        a_plain_member_of_a_ring_is_connected_with_its_group_alone,
        messages_are_counted_where_they_cross,
        a_killed_worker_node_ends_groups,
        a_killed_gateway_node_ends_a_ring,
        a_cut_connection_ends_the_run,
        a_killed_worker_process_ends_the_run,
        a_caller_that_dies_takes_the_run_with_it,
        the_next_run_succeeds_after_a_failed_one,
        two_runs_at_once_do_not_meet,
        a_node_that_is_not_there_is_named,
        a_node_without_atoll_is_named
    ];
cases(islands, deep) ->
    cases(islands, fast) ++ [
        a_killed_worker_node_ends_a_ring,
        a_killed_gateway_node_ends_groups,
        in_a_ring_a_failure_is_heard_on_the_other_side_of_a_silent_gateway
    ];
cases(others, _) ->
    [
        the_program_of_the_mesh_runs_over_groups,
        a_silent_node_ends_the_run
    ].

init_per_group(mesh, Config) ->
    [{cluster, cluster(#{nodes => atoll_tier:size(orbit_mesh), connect_all => true})} | Config];
init_per_group(islands, Config) ->
    [{cluster, cluster(#{nodes => 10, args => ["-atoll", "free_group", "off"]})} | Config];
init_per_group(others, Config) ->
    Config.

end_per_group(_, Config) ->
    case proplists:get_value(cluster, Config) of
        undefined -> ok;
        Cluster -> atoll_cluster_owned:stop(Cluster)
    end.

end_per_testcase(_Case, Config) ->
    case {proplists:get_value(cluster, Config), erase(cluster)} of
        {undefined, undefined} -> ok;
        {undefined, Own} -> ok = atoll_cluster:stop(Own);
        {Shared, undefined} -> _ = atoll_cluster_owned:heal(Shared), ok
    end.

%%% The answer

mesh_agrees_with_one_process(Config) ->
    {Cluster, Nodes} = all_of(Config),
    agree(Cluster, Nodes, [mesh], [1], [1, 2, 5, length(Nodes)]).

groups_and_ring_agree_with_one_process(Config) ->
    {Cluster, Nodes} = first(9, Config),
    agree(Cluster, Nodes, [groups, ring], [1, 2, 3], [1, 2, 5, 9]).

%% In the fast tier any two settings of two parameters are in some run.
agree(Cluster, Nodes, Modes, Sizes, Counts) ->
    Rows = [[Name, Mode, Size, Count, Workers]
            || Name <- [g124, g12345], Mode <- Modes, Size <- Sizes, Count <- lists:usort(Counts), Size =< Count,
               Workers <- [1, 3]],
    Run = case atoll_tier:tier() of
              fast -> pairwise(Rows, lists:usort(lists:append([pairs(Row) || Row <- Rows])));
              deep -> Rows
          end,
    [agrees(Cluster, lists:sublist(Nodes, Count), Name, layout(Mode, Size), Workers)
     || [Name, Mode, Size, Count, Workers] <- Run].

layout(mesh, _) -> #{mode => mesh};
layout(Mode, Size) -> #{mode => Mode, group_size => Size}.

agrees(Cluster, [Master | _] = Nodes, Name, Layout, Workers) ->
    Base = #{space => 500, vertices => true, generators => Name},
    Keys = [size, vertices_received, checksum, vertices],
    {ok, Reference} = orbit:run(Base#{mode => seq}),
    Spec = maps:merge(Base#{workers => Workers, nodes => Nodes}, Layout),
    {ok, Found} = run(Cluster, Master, Spec),
    ?assertEqual(maps:with(Keys, Reference), maps:with(Keys, Found), Spec),
    ?assertEqual(length(Nodes), maps:get(nodes, Found)).

%% The row with the most pairs that are in none yet, until all are in one.
pairwise(_, []) ->
    [];
pairwise(Rows, Open) ->
    {_, Row} = lists:max([{length([P || P <- pairs(Row), lists:member(P, Open)]), Row} || Row <- Rows]),
    [Row | pairwise(Rows, Open -- pairs(Row))].

pairs(Row) ->
    Settings = lists:zip(lists:seq(1, length(Row)), Row),
    [{A, B} || A <- Settings, B <- Settings, A < B].

a_mesh_finds_the_published_size(Config) ->
    {Cluster, Nodes} = all_of(Config),
    published(Cluster, Nodes, #{mode => mesh}),
    Space = atoll_tier:size(orbit_space),
    Size = case Space of 10_000 -> 9_123; 100_000 -> 86_992 end,
    {ok, #{size := Size}} = run(Cluster, hd(Nodes), #{
        generators => g12345, space => Space, nodes => Nodes, mode => mesh}).

groups_and_ring_find_the_published_size(Config) ->
    {Cluster, Nodes} = first(9, Config),
    published(Cluster, Nodes, #{mode => groups, group_size => 3}),
    published(Cluster, Nodes, #{mode => ring, group_size => 3}).

published(Cluster, [Master | _] = Nodes, Layout) ->
    [begin
         {ok, #{size := Found, vertices_received := Received, wall_ms := Ms}} =
             run(Cluster, Master, Layout#{generators => g124, space => Space, nodes => Nodes}),
         ?assertEqual({Size, 1 + 3 * Size}, {Found, Received}),
         ct:pal("~p: ~b ms", [Layout, Ms])
     end || {Space, Size} <- [{10_000, 6_889}, {100_000, 68_859}], Space =< atoll_tier:size(orbit_space)].

%%% Connections and messages

a_mesh_node_is_connected_with_all_others(Config) ->
    {Cluster, [Master | _] = Nodes} = all_of(Config),
    {ok, Result} = run(Cluster, Master, (small())#{mode => mesh, nodes => Nodes}),
    Others = length(Nodes) - 1,
    Mean = float(Others),
    ?assertEqual(maps:from_keys(Nodes, Others), maps:get(connections, Result)),
    ?assertMatch(#{connections_max := Others, connections_mean := Mean}, Result).

%% Eight nodes in four groups of two: each gateway meets three others.
a_plain_member_of_groups_is_connected_with_its_group_alone(Config) ->
    connections_in_pairs(groups, 1 + 3, Config).

%% In a ring it meets two.
a_plain_member_of_a_ring_is_connected_with_its_group_alone(Config) ->
    connections_in_pairs(ring, 1 + 2, Config).

connections_in_pairs(Mode, OfGateway, Config) ->
    {Cluster, [Master | _] = Nodes} = first(8, Config),
    %% Those of earlier groups may stand for some time yet.
    [{ok, true} = Answer || {_, Answer} <- atoll_cluster:multicall(Cluster, orbit_probe, alone, [])],
    Spec = (small())#{mode => Mode, group_size => 2, nodes => Nodes},
    {ok, #{connections := Connections}} = run(Cluster, Master, Spec),
    ?assertEqual([OfGateway, 1, OfGateway, 1, OfGateway, 1, OfGateway, 1],
                 [maps:get(Node, Connections) || Node <- Nodes]).

%% Two groups, of which each has two gateways. A message that goes over one or two of them
%% is one message, and two or three packets.
the_program_of_the_mesh_runs_over_groups(_Config) ->
    Each = atoll_tier:size(orbit_group),
    {Cluster, Nodes} = own(#{nodes => 2 * Each, args => fun(Nodes) -> orbit_native:args(Nodes, Each) end}),
    Ready = atoll_cluster:multicall(Cluster, orbit_native, await, [Nodes, 30_000], ?RUN_MS),
    ?assertEqual([{Node, {ok, ok}} || Node <- Nodes], Ready),
    [agrees(Cluster, Nodes, Name, #{mode => mesh}, 3) || Name <- [g124, g12345]],
    {ok, #{connections := Connections, messages := Messages, packets := Packets}} =
        run(Cluster, hd(Nodes), (small())#{mode => mesh, nodes => Nodes}),
    InGroup = Each - 1,
    OfGroup = [InGroup + 2, InGroup + 2 | lists:duplicate(Each - 2, InGroup)],
    ?assertEqual(OfGroup ++ OfGroup, [maps:get(Node, Connections) || Node <- Nodes]),
    ?assertMatch(#{gateway := 0}, Messages),
    ?assert(Packets > maps:get(vertex, Messages)).

%% With a node to a group, every image for another group crosses once in
%% groups, and none goes from worker to worker.
messages_are_counted_where_they_cross(Config) ->
    {Cluster, [Master | _] = Nodes} = first(3, Config),
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

a_killed_worker_node_ends_a_mesh(Config) ->
    kill_in_the_middle(first(5, Config), 4, #{mode => mesh}).

a_killed_worker_node_ends_groups(Config) ->
    kill_in_the_middle(first(9, Config), 5, #{mode => groups, group_size => 3}).

a_killed_worker_node_ends_a_ring(Config) ->
    kill_in_the_middle(first(9, Config), 5, #{mode => ring, group_size => 3}).

a_killed_gateway_node_ends_groups(Config) ->
    kill_in_the_middle(first(9, Config), 4, #{mode => groups, group_size => 3}).

%% Five groups: the ring is cut in the middle of the start tree.
a_killed_gateway_node_ends_a_ring(Config) ->
    kill_in_the_middle(first(10, Config), 5, #{mode => ring, group_size => 2}).

%% The second of five gateways, through which the third one's end would be told,
%% says nothing. It is waited for while the run is taken down.
in_a_ring_a_failure_is_heard_on_the_other_side_of_a_silent_gateway(Config) ->
    {Cluster, [A, Silent, Victim, D, E] = Nodes} = first(5, Config),
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
a_cut_connection_ends_the_run(Config) ->
    {Cluster, [_, B, C] = Nodes} = first(3, Config),
    Run = start_long(Cluster, Nodes, #{mode => groups, group_size => 3}),
    wait_until_all_compute(Cluster, Nodes),
    true = atoll_cluster:call(Cluster, B, erlang, disconnect_node, [C], ?SECONDS),
    {error, {node_lost, Lost}} = outcome(Run, ?SECONDS),
    ?assert(lists:member(Lost, [B, C])),
    nothing_is_left(Cluster, Nodes).

%% It is found by the ticks of the distribution, of which one is due each
%% second here.
a_silent_node_ends_the_run(_Config) ->
    {Cluster, [_, _, Silent | _] = Nodes} = own(#{nodes => 4, args => ["-kernel", "net_ticktime", "4"]}),
    Run = start_long(Cluster, Nodes, #{mode => groups, group_size => 2}),
    wait_until_all_compute(Cluster, Nodes),
    ok = atoll_cluster:pause(Cluster, Silent),
    ?assertEqual({error, {node_lost, Silent}}, outcome(Run, 30_000)),
    nothing_is_left(Cluster, Nodes -- [Silent]).

a_killed_worker_process_ends_the_run(Config) ->
    {Cluster, Nodes} = first(4, Config),
    Node = lists:last(Nodes),
    Run = start_long(Cluster, Nodes, #{mode => ring, group_size => 2}),
    wait_until_all_compute(Cluster, Nodes),
    [Worker | _] = atoll_cluster:call(Cluster, Node, orbit_probe, of_runs, [orbit_worker], ?SECONDS),
    true = atoll_cluster:call(Cluster, Node, erlang, exit, [Worker, kill], ?SECONDS),
    ?assertEqual({error, {worker_failed, Node, killed}}, outcome(Run, ?SECONDS)),
    nothing_is_left(Cluster, Nodes).

a_caller_that_dies_takes_the_run_with_it(Config) ->
    {Cluster, [Master | _] = Nodes} = first(6, Config),
    Spec = (long())#{nodes => Nodes, mode => ring, group_size => 2},
    Caller = atoll_cluster:call(Cluster, Master, erlang, spawn, [orbit, run, [Spec]], ?SECONDS),
    wait_until_all_compute(Cluster, Nodes),
    true = atoll_cluster:call(Cluster, Master, erlang, exit, [Caller, kill], ?SECONDS),
    nothing_is_left(Cluster, Nodes).

the_next_run_succeeds_after_a_failed_one(Config) ->
    {Cluster, Nodes} = first(7, Config),
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
two_runs_at_once_do_not_meet(Config) ->
    {Cluster, Nodes} = first(6, Config),
    Runs = [start(Cluster, Order, (small())#{generators => Name, space => 10_000, nodes => Order,
                                             mode => Mode, group_size => 2})
            || {Order, Name, Mode} <- [{Nodes, g124, groups}, {lists:reverse(Nodes), g12, ring}]],
    [{ok, #{size := 6_889}}, {ok, #{size := 6_886}}] = [outcome(Run, ?RUN_MS) || Run <- Runs],
    nothing_is_left(Cluster, Nodes).

a_node_that_is_not_there_is_named(Config) ->
    {Cluster, [Master | _] = Nodes} = first(3, Config),
    Nowhere = 'nobody@nowhere.invalid',
    Spec = (small())#{nodes => Nodes ++ [Nowhere]},
    ?assertEqual({error, {left_out, Nowhere}},
                 run(Cluster, Master, Spec#{mode => groups, group_size => 2})),
    ?assertEqual({error, {unreachable, Nowhere}}, run(Cluster, Master, Spec#{mode => mesh})),
    nothing_is_left(Cluster, Nodes).

a_node_without_atoll_is_named(Config) ->
    {Cluster, [Master, Without | _] = Nodes} = first(3, Config),
    Spec = (small())#{nodes => Nodes, mode => groups, group_size => 3},
    ok = atoll_cluster:call(Cluster, Without, application, stop, [atoll], ?SECONDS),
    ?assertEqual({error, {left_out, Without}}, run(Cluster, Master, Spec)),
    ok = atoll_cluster:call(Cluster, Master, application, stop, [atoll], ?SECONDS),
    ?assertEqual({error, {group_failed, Master, s_group_not_runnig}}, run(Cluster, Master, Spec)),
    [ok = atoll_cluster:call(Cluster, Node, application, start, [atoll]) || Node <- [Master, Without]].

%%% Clusters and runs

%% One that all cases of a group use, and one for a case.
cluster(Options) ->
    atoll_cluster_owned:start(maps:merge(#{connect_all => false, apps => [atoll]}, Options)).

own(Options) ->
    {ok, Cluster} = atoll_cluster:start(maps:merge(#{connect_all => false, apps => [atoll]}, Options)),
    put(cluster, Cluster),
    {Cluster, atoll_cluster:nodes(Cluster)}.

all_of(Config) ->
    Cluster = proplists:get_value(cluster, Config),
    {Cluster, atoll_cluster:nodes(Cluster)}.

first(Count, Config) ->
    {Cluster, Nodes} = all_of(Config),
    {Cluster, lists:sublist(Nodes, Count)}.

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
