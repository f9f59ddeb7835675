%% SPDX-License-Identifier: Apache-2.0
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
    connections_are_those_of_the_layout/1,
    the_program_of_the_mesh_runs_over_groups/1,
    separate_submasters_have_no_workers/1,
    a_killed_worker_node_does_not_change_the_answer/1,
    a_killed_gateway_node_does_not_change_the_answer/1,
    a_worker_node_and_a_gateway_killed_at_once_do_not_change_the_answer/1,
    a_killed_process_does_not_change_the_answer/1,
    a_node_that_is_back_takes_part_again/1,
    under_kills_of_nodes_and_processes_the_answer_is_the_same/1,
    a_cut_connection_does_not_change_the_answer/1,
    a_silent_node_does_not_change_the_answer/1,
    a_group_that_is_lost_ends_the_run_with_a_sentence/1,
    where_the_application_ends_the_run_does_with_a_sentence/1,
    a_killed_master_node_leaves_nothing/1,
    a_caller_that_dies_takes_the_run_with_it/1,
    two_runs_at_once_do_not_meet/1,
    a_node_that_is_not_there_is_named/1,
    a_node_without_atoll_is_named/1
]).

%% Of a run that must end, one way or another.
-define(RUN_MS, 120_000).
%% These end what hangs, on a busy machine too.
-define(CALL_MS, 30_000).

suite() -> [{timetrap, {minutes, 6}}].

all() -> [{group, mesh}, {group, islands}, {group, others}].

groups() ->
    [{Group, [], cases(Group, atoll_tier:tier())} || Group <- [mesh, islands, others]].

%% What is lost, and how it is found again, hangs on the kind of cluster.
cases(mesh, fast) ->
    [
        mesh_agrees_with_one_process,
        a_mesh_finds_the_published_size,
        connections_are_those_of_the_layout,
        a_killed_worker_node_does_not_change_the_answer
    ];
cases(mesh, deep) ->
    cases(mesh, fast) ++ [
        a_killed_process_does_not_change_the_answer,
        a_node_that_is_back_takes_part_again,
        under_kills_of_nodes_and_processes_the_answer_is_the_same,
        a_cut_connection_does_not_change_the_answer
    ];
cases(islands, fast) ->
    [
        groups_and_ring_agree_with_one_process,
        groups_and_ring_find_the_published_size,
        connections_are_those_of_the_layout,
        separate_submasters_have_no_workers,
        a_killed_gateway_node_does_not_change_the_answer,
        a_killed_process_does_not_change_the_answer,
        a_node_that_is_back_takes_part_again,
        a_cut_connection_does_not_change_the_answer,
        a_group_that_is_lost_ends_the_run_with_a_sentence,
        where_the_application_ends_the_run_does_with_a_sentence,
        a_killed_master_node_leaves_nothing,
        a_caller_that_dies_takes_the_run_with_it,
        two_runs_at_once_do_not_meet,
        a_node_that_is_not_there_is_named,
        a_node_without_atoll_is_named
    ];
cases(islands, deep) ->
    cases(islands, fast) ++ [
        a_killed_worker_node_does_not_change_the_answer,
        a_worker_node_and_a_gateway_killed_at_once_do_not_change_the_answer,
        under_kills_of_nodes_and_processes_the_answer_is_the_same
    ];
cases(others, fast) ->
    [the_program_of_the_mesh_runs_over_groups];
cases(others, deep) ->
    cases(others, fast) ++ [a_silent_node_does_not_change_the_answer].

init_per_group(others, Config) ->
    Config;
init_per_group(Group, Config) ->
    {Modes, Count} = case Group of mesh -> {[mesh], atoll_tier:size(orbit_mesh)}; islands -> {[groups, ring], 10} end,
    [{modes, Modes}, {cluster, atoll_cluster_owned:start((options(hd(Modes)))#{nodes => Count})} | Config].

options(Mode) ->
    #{args := Args} = Options = orbit:node_options(Mode),
    Options#{args := ["+S", "1:1", "+sbwt", "none", "-kernel", "logger_level", "none"] ++ Args}.

modes(Config) -> proplists:get_value(modes, Config).

end_per_group(_, Config) ->
    case proplists:get_value(cluster, Config) of
        undefined -> ok;
        Cluster -> atoll_cluster_owned:stop(Cluster)
    end.

end_per_testcase(_Case, Config) ->
    case {proplists:get_value(cluster, Config), erase(cluster)} of
        {undefined, undefined} -> ok;
        {undefined, Own} -> ok = atoll_cluster:stop(Own);
        {Shared, undefined} -> _ = atoll_cluster_owned:heal(Shared, Config), ok
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

%%% Connections

connections_are_those_of_the_layout(Config) ->
    [begin
         %% Those of earlier groups may stand for some time yet.
         _ = [{ok, true} = Answer || Mode =/= mesh, {_, Answer} <- atoll_cluster:multicall(Cluster, orbit_probe, alone, [])],
         {ok, #{survey := Connections}} = run(Cluster, hd(Nodes), (small())#{
             mode => Mode, group_size => 2, nodes => Nodes, survey => {atoll_traffic, connections, []}}),
         ?assertEqual(laid_out(Mode, Nodes), Connections, Mode)
     end || Mode <- modes(Config), {Cluster, Nodes} <- [some_of(Mode, Config)]].

%% In a mesh the others are connected too.
some_of(mesh, Config) -> all_of(Config);
some_of(_, Config) -> first(8, Config).

laid_out(mesh, Nodes) -> maps:from_keys(Nodes, length(Nodes) - 1);
laid_out(Mode, Nodes) ->
    Shape = case Mode of groups -> star; ring -> ring end,
    {ok, Topology} = atoll_topology:Shape(Nodes, #{group_size => 2}),
    atoll_topology:connections(Topology).

%% Two groups, of which each has two gateways.
the_program_of_the_mesh_runs_over_groups(_Config) ->
    Each = atoll_tier:size(orbit_group),
    {Cluster, Nodes} = own((atoll_bench_orbit_native:node_options(Each))#{nodes => 2 * Each}),
    Ready = atoll_cluster:multicall(Cluster, atoll_bench_orbit_native, await, [Nodes, 30_000], ?RUN_MS),
    ?assertEqual([{Node, {ok, ok}} || Node <- Nodes], Ready),
    [agrees(Cluster, Nodes, Name, #{mode => mesh}, 3) || Name <- [g124, g12345]],
    {ok, #{survey := Connections}} =
        run(Cluster, hd(Nodes), (small())#{mode => mesh, nodes => Nodes, survey => {atoll_traffic, connections, []}}),
    InGroup = Each - 1,
    OfGroup = [InGroup + 2, InGroup + 2 | lists:duplicate(Each - 2, InGroup)],
    ?assertEqual(OfGroup ++ OfGroup, [maps:get(Node, Connections) || Node <- Nodes]),
    lost(fun() -> atoll_cluster:kill(Cluster, lists:last(Nodes)) end, {Cluster, Nodes}, #{mode => mesh}).

separate_submasters_have_no_workers(Config) ->
    {Cluster, [A, B, C, D, E, F | _] = Nodes} = first(6, Config),
    {ok, #{size := 854, workers := Workers}} = run(Cluster, A, (small())#{
        mode => groups, group_size => 3, nodes => Nodes, separate_submasters => true}),
    ?assertEqual([B, B, C, C, E, E, F, F], [Node || #{node := Node} <- Workers]),
    ?assertNot(lists:member(D, [Node || #{node := Node} <- Workers])).

%%% Loss

a_killed_worker_node_does_not_change_the_answer(Config) ->
    each(Config, fun({Cluster, Nodes}) -> fun() -> atoll_cluster:kill(Cluster, lists:nth(5, Nodes)) end end).

a_killed_gateway_node_does_not_change_the_answer(Config) ->
    each(Config, fun({Cluster, Nodes}) -> fun() -> atoll_cluster:kill(Cluster, lists:nth(4, Nodes)) end end).

a_worker_node_and_a_gateway_killed_at_once_do_not_change_the_answer(Config) ->
    each(Config, fun({Cluster, Nodes}) -> fun() -> [atoll_cluster:kill(Cluster, lists:nth(I, Nodes)) || I <- [4, 8]] end end).

%% Each kind on a node of its own, at the same time.
a_killed_process_does_not_change_the_answer(Config) ->
    each(Config, fun({Cluster, [A, B, C, D | _]}) ->
        fun() ->
            [atoll_cluster:call(Cluster, Node, orbit_probe, kill, [Module], ?CALL_MS)
             || {Node, Module} <- [{A, orbit_submaster}, {B, orbit_worker}, {C, orbit_host}, {D, orbit_gateway}, {D, orbit_submaster}]]
        end
    end).

%% The second loss begins the epoch in which it has parts. The run is held until then: how long a node
%% takes to be back is up to the machine. It is started again when it has been left out: who is back
%% before it is missed takes part without that.
a_node_that_is_back_takes_part_again(Config) ->
    {Cluster, Nodes} = first(6, Config),
    [A, _, _, _, E, F] = Nodes,
    Harm = fun() ->
        Holder = atoll_cluster:call(Cluster, A, orbit_probe, hold, [], ?CALL_MS),
        ok = atoll_cluster:kill(Cluster, E),
        true = atoll_cluster:call(Cluster, A, orbit_probe, await_told, [Holder, unreached, E], ?CALL_MS),
        orbit_wait:until(fun() -> ok =:= atoll_cluster:restart(Cluster, E) end),
        %% Its group may be connected with it before the run is.
        true = atoll_cluster:call(Cluster, A, orbit_probe, await_told, [Holder, back, E], ?CALL_MS),
        ok = atoll_cluster:kill(Cluster, F),
        true = atoll_cluster:call(Cluster, A, erlang, exit, [Holder, kill], ?CALL_MS)
    end,
    #{nodes_lost := Lost} = lost(Harm, {Cluster, Nodes}, layout(hd(modes(Config)), 3), {30_000, 18_558}),
    ?assertEqual([F], Lost).

%% A node each second and a half, and a process on each each ten seconds.
under_kills_of_nodes_and_processes_the_answer_is_the_same(Config) ->
    [begin
         {Cluster, Nodes} = first(9, Config),
         {ok, Storm} = atoll_bench_storm:start(Cluster, #{program => orbit, rate => 0.1, node_every => 1.5}, Seed),
         Spec = maps:merge(#{generators => g124, space => 30_000, nodes => Nodes, workers => 2}, layout(Mode, 3)),
         Outcome = run(Cluster, hd(Nodes), Spec),
         ct:pal("~p ~p: ~p", [Mode, Seed, atoll_bench_storm:stop(Storm)]),
         ?assertMatch({ok, #{size := 18_558}}, Outcome, {Mode, Seed}),
         _ = atoll_cluster_owned:heal(Cluster)
     end || Mode <- modes(Config), Seed <- [1, 2, 3]].

%% Both nodes live, and only they lost each other.
a_cut_connection_does_not_change_the_answer(Config) ->
    each(Config, fun({Cluster, [_, B, C | _]}) ->
        fun() -> true = atoll_cluster:call(Cluster, B, erlang, disconnect_node, [C], ?CALL_MS) end
    end).

%% It is found by the ticks of the distribution, of which one is due each second here.
a_silent_node_does_not_change_the_answer(_Config) ->
    #{args := Args} = Options = options(groups),
    {Cluster, [_, _, Silent | _] = Nodes} = own(Options#{nodes => 4, args := ["-kernel", "net_ticktime", "4" | Args]}),
    #{nodes_lost := Lost} = lost(fun() -> atoll_cluster:pause(Cluster, Silent) end, {Cluster, Nodes}, layout(groups, 2)),
    ?assertEqual([Silent], Lost).

%% One run for each of the modes.
each(Config, Harm) ->
    [begin
         {Cluster, Nodes} = Which = first(9, Config),
         #{epochs := Epochs, wall_ms := Ms, nodes_lost := Lost, workers := Workers} = lost(Harm(Which), {Cluster, Nodes}, layout(Mode, 3)),
         ?assert(Epochs > 1),
         %% No epoch was waited for until its deadline, which is for what does not answer. The longest that a
         %% worker had nothing to do says how long one was waited for.
         Idle = lists:max([Of || #{init_idle_ms := First, max_idle_ms := Later} <- Workers, Of <- [First, Later]]),
         ?assert(Idle < 25_000, {Mode, Ms, Epochs, Idle, Lost}),
         _ = atoll_cluster_owned:heal(Cluster)
     end || Mode <- modes(Config)].

%% Something is lost while all compute; the set is right, and nothing is left on those that are there.
lost(Harm, Which, Layout) ->
    #{checksum := 2_698_807_708} = lost(Harm, Which, Layout, {20_000, 13_775}).

lost(Harm, {Cluster, Nodes}, Layout, {Space, Found}) ->
    Run = start(Cluster, Nodes, maps:merge(#{generators => g124, space => Space, nodes => Nodes, workers => 2}, Layout)),
    wait_until_all_compute(Cluster, Nodes),
    _ = Harm(),
    {ok, #{size := Size, nodes_lost := Lost} = Result} = outcome(Run, ?RUN_MS),
    ?assertEqual(Found, Size),
    nothing_is_left(Cluster, Nodes -- Lost),
    Result.

a_group_that_is_lost_ends_the_run_with_a_sentence(Config) ->
    {Cluster, [A, B, C, D | _]} = first(4, Config),
    Run = start_long(Cluster, [A, B, C, D], layout(groups, 2)),
    wait_until_all_compute(Cluster, [A, B, C, D]),
    _ = [atoll_cluster:kill(Cluster, Node) || Node <- [C, D]],
    ?assertEqual({error, {group_lost, [C, D]}}, outcome(Run, ?RUN_MS)),
    nothing_is_left(Cluster, [A, B]).

%% On the first node, where the result is waited for; the groups are deleted from there all the same.
where_the_application_ends_the_run_does_with_a_sentence(Config) ->
    {Cluster, [A | _] = Nodes} = first(4, Config),
    [begin
         Run = start_long(Cluster, Nodes, layout(groups, 2)),
         wait_until_all_compute(Cluster, Nodes),
         _ = atoll_cluster:call(Cluster, A, Module, Function, Args, ?CALL_MS),
         {error, Reason} = outcome(Run, ?RUN_MS),
         %% Whichever is found first: that the run has ended there, or that the application has.
         ?assert(lists:member(Reason, [ended, {not_running, A}]), Reason),
         nothing_is_left(Cluster, Nodes),
         orbit_wait:until(fun() -> not is_map_key(orbit, running(Cluster, A)) end),
         ok = atoll_cluster:call(Cluster, A, application, start, [orbit], ?CALL_MS)
     end || {Module, Function, Args} <- [{application, stop, [orbit]}, {orbit_probe, kill, [orbit_app]}]].

running(Cluster, Node) ->
    maps:from_list([{Name, []} || {Name, _, _} <- atoll_cluster:call(Cluster, Node, application, which_applications, [], ?CALL_MS)]).

a_killed_master_node_leaves_nothing(Config) ->
    {Cluster, [A | Others] = Nodes} = first(6, Config),
    Run = start_long(Cluster, Nodes, layout(ring, 2)),
    wait_until_all_compute(Cluster, Nodes),
    ok = atoll_cluster:kill(Cluster, A),
    _ = outcome(Run, ?RUN_MS),
    nothing_is_left(Cluster, Others).

a_caller_that_dies_takes_the_run_with_it(Config) ->
    {Cluster, [Master | _] = Nodes} = first(6, Config),
    Spec = (long())#{nodes => Nodes, mode => ring, group_size => 2},
    Caller = atoll_cluster:call(Cluster, Master, erlang, spawn, [orbit, run, [Spec]], ?CALL_MS),
    wait_until_all_compute(Cluster, Nodes),
    true = atoll_cluster:call(Cluster, Master, erlang, exit, [Caller, kill], ?CALL_MS),
    nothing_is_left(Cluster, Nodes).

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
    ok = atoll_cluster:call(Cluster, Without, application, stop, [atoll], ?CALL_MS),
    ?assertEqual({error, {left_out, Without}}, run(Cluster, Master, Spec)),
    ok = atoll_cluster:call(Cluster, Master, application, stop, [atoll], ?CALL_MS),
    ?assertMatch({error, {not_grouped, Master, _}}, run(Cluster, Master, Spec)),
    [ok = atoll_cluster:call(Cluster, Node, application, start, [atoll]) || Node <- [Master, Without]].

%%% Clusters and runs

%% One for a case.
own(Options) ->
    {ok, Cluster} = atoll_cluster:start(Options),
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
    spawn_monitor(fun() -> exit({outcome, try run(Cluster, Master, Spec) catch error:Gone -> Gone end}) end).

outcome({Pid, Ref}, Ms) ->
    receive
        {'DOWN', Ref, process, Pid, {outcome, Outcome}} -> Outcome
    after Ms ->
        error({no_outcome_within, Ms})
    end.

wait_until_all_compute(Cluster, Nodes) ->
    Is = fun(Node) -> atoll_cluster:call(Cluster, Node, orbit_probe, is_computing, [], ?CALL_MS) end,
    orbit_wait:until(fun() -> lists:all(Is, Nodes) end).

nothing_is_left(Cluster, Nodes) ->
    Left = fun() -> [{Node, Left} || Node <- Nodes, [_ | _] = Left <- [atoll_cluster:call(Cluster, Node, orbit_probe, left, [], ?CALL_MS)]] end,
    try orbit_wait:until(fun() -> Left() =:= [] end)
    catch error:deadline -> ?assertEqual([], Left())
    end.
