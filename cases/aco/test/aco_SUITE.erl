%% SPDX-License-Identifier: Apache-2.0
%% ACO on real nodes. One cluster of each kind for all cases; a node that a case has
%% killed is started again after it.
-module(aco_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, groups/0, suite/0, init_per_group/2, end_per_group/2, end_per_testcase/2]).

-export([
    every_mode_finds_what_one_process_finds/1,
    a_run_ends_when_the_optimum_is_reached/1,
    connections_are_those_of_the_layout/1,
    every_submaster_and_colony_has_a_name/1,
    without_reliability_there_are_no_names/1,
    each_kind_of_process_is_started_again/1,
    under_a_kill_a_second_on_every_node_the_answer_is_the_same/1,
    chaos_does_not_change_the_answer/1,
    a_killed_colony_node_does_not_change_the_answer/1,
    a_killed_gateway_does_not_change_the_answer/1,
    a_gateway_and_its_heir_killed_under_chaos_do_not_change_the_answer/1,
    a_gateway_and_two_heirs_killed_at_once_do_not_change_the_answer/1,
    what_is_killed_in_vain_ends_a_run/1,
    chaos_ends_a_run_that_is_not_reliable/1,
    a_killed_colony_node_ends_a_run_that_is_not_reliable/1,
    a_killed_master_node_leaves_nothing/1,
    a_caller_that_dies_takes_the_run_with_it/1,
    two_runs_at_once_do_not_meet/1,
    a_node_that_is_not_there_is_named/1,
    a_node_without_atoll_is_named/1
]).

-define(NODES, 13).
%% Of a run that must end, one way or another.
-define(RUN_MS, 120_000).
-define(DEADLINE_MS, 40_000).

suite() -> [{timetrap, {minutes, 6}}].

all() -> [{group, mesh}, {group, islands}].

groups() ->
    [{Group, [], cases(Group, atoll_tier:tier())} || Group <- [mesh, islands]].

%% What is found again, and by whom, hangs on the kind of cluster; what becomes of a run whose
%% processes are lost does not. So much of the latter is looked at on one of them in the fast tier.
cases(both, _) ->
    [
        every_mode_finds_what_one_process_finds,
        connections_are_those_of_the_layout,
        every_submaster_and_colony_has_a_name,
        each_kind_of_process_is_started_again,
        a_node_that_is_not_there_is_named
    ];
cases(mesh, fast) ->
    cases(both, fast) ++ [
        under_a_kill_a_second_on_every_node_the_answer_is_the_same,
        a_killed_gateway_does_not_change_the_answer,
        a_run_ends_when_the_optimum_is_reached,
        without_reliability_there_are_no_names,
        chaos_ends_a_run_that_is_not_reliable,
        a_killed_colony_node_ends_a_run_that_is_not_reliable
    ];
cases(mesh, deep) ->
    cases(mesh, fast) ++ [
        chaos_does_not_change_the_answer,
        a_killed_colony_node_does_not_change_the_answer,
        a_gateway_and_its_heir_killed_under_chaos_do_not_change_the_answer,
        a_gateway_and_two_heirs_killed_at_once_do_not_change_the_answer,
        what_is_killed_in_vain_ends_a_run,
        a_killed_master_node_leaves_nothing,
        a_caller_that_dies_takes_the_run_with_it,
        two_runs_at_once_do_not_meet
    ];
cases(islands, fast) ->
    cases(both, fast) ++ [
        chaos_does_not_change_the_answer,
        a_gateway_and_its_heir_killed_under_chaos_do_not_change_the_answer,
        what_is_killed_in_vain_ends_a_run,
        a_killed_master_node_leaves_nothing,
        a_caller_that_dies_takes_the_run_with_it,
        two_runs_at_once_do_not_meet,
        a_node_without_atoll_is_named
    ];
cases(islands, deep) ->
    cases(islands, fast) ++ [
        under_a_kill_a_second_on_every_node_the_answer_is_the_same,
        a_killed_colony_node_does_not_change_the_answer,
        a_killed_gateway_does_not_change_the_answer,
        a_gateway_and_two_heirs_killed_at_once_do_not_change_the_answer
    ].

init_per_group(Group, Config) ->
    #{args := Args} = Options = aco:node_options(case Group of mesh -> gr; islands -> sr end),
    Quiet = ["+S", "1:1", "+sbwt", "none", "-kernel", "logger_level", "none"],
    [{kind, Group}, {cluster, atoll_cluster_owned:start(Options#{nodes => ?NODES, args := Quiet ++ Args})} | Config].

end_per_group(_Group, Config) ->
    atoll_cluster_owned:stop(cluster(Config)).

end_per_testcase(_Case, Config) ->
    _ = atoll_cluster_owned:heal(cluster(Config), Config),
    ok.

%%% The answer

every_mode_finds_what_one_process_finds(Config) ->
    [same(run(Config, Count, #{mode => Mode, colonies_per_node => Each}), options())
     || Mode <- modes(Config), {Count, Each} <- counts(atoll_tier:tier())],
    Searching = (options())#{local_search => o12},
    same(run(Config, 13, #{mode => reliable(Config), degree => 3, options => Searching}), Searching),
    nothing_is_left(Config).

%% Nodes, and colonies on each.
counts(fast) -> [{5, 2}, {8, 1}, {11, 2}];
counts(deep) -> [{Count, Each} || Count <- [5, 8, 11], Each <- [1, 2]].

a_run_ends_when_the_optimum_is_reached(Config) ->
    #{course := Course} = expected(7, options(), problem()),
    {{Reached, _}, _} = lists:nth(2, Course),
    Round = length(lists:takewhile(fun({{Cost, _}, _}) -> Cost > Reached end, Course)) + 1,
    {ok, Result} = run(Config, 8, #{mode => ml, options => options(), optimum => Reached, until_optimum => true}),
    ?assertMatch(#{rounds := Round, best := Reached, optimum := Reached, gap := +0.0}, Result).

connections_are_those_of_the_layout(Config) ->
    [begin
         ok = without_connections(Mode, Config),
         {ok, #{survey := Connections}} = run(Config, Count, #{mode => Mode, survey => {aco_probe, connections, []}}),
         ?assertEqual(laid_out(Mode, Count, Config), Connections, {Mode, Count})
     end || Mode <- modes(Config), Count <- [8, 13], Mode =:= sr orelse Count =:= ?NODES].

%% Those of earlier groups may stand for some time yet. The nodes of a mesh stay connected.
without_connections(sr, Config) ->
    lists:foreach(fun(Node) -> call(Config, Node, aco_probe, alone, []) end, nodes_of(Config));
without_connections(_, _) ->
    ok.

%% In groups with those of its own groups, and otherwise with all.
laid_out(sr, Count, Config) ->
    atoll_topology:connections(atoll_topology:of_groups(groups(Count, Config)));
laid_out(_, Count, Config) ->
    maps:from_keys(lists:sublist(nodes_of(Config), Count), Count - 1).

groups(Count, Config) ->
    {ok, Tree} = aco_tree:new(sr, lists:sublist(nodes_of(Config), Count), 2, 1),
    maps:to_list(aco_tree:groups(Tree)).

%% In global every node sees all of them, in groups those of its own.
every_submaster_and_colony_has_a_name(Config) ->
    Mode = reliable(Config),
    Run = start(Config, nodes_of(Config), long(Mode)),
    wait_until_all_compute(Config),
    %% All at once: asked one after another some might answer when all is over.
    Seen = [{Node, Ids} || {Node, {ok, Ids}} <- atoll_cluster:multicall(cluster(Config), aco_probe, names, [], ?DEADLINE_MS)],
    ?assertEqual(nodes_of(Config), [Node || {Node, _} <- Seen]),
    {ok, #{names := Names}} = outcome(Run),
    {ok, Tree} = aco_tree:new(Mode, nodes_of(Config), 2, 1),
    ?assertEqual(map_size(Tree), Names),
    Groups = groups(?NODES, Config),
    [?assertEqual({Node, lists:sort(case Mode of
                                        gr -> maps:keys(Tree);
                                        sr -> [Id || {Id, #{group := G}} <- maps:to_list(Tree), {Group, Members} <- Groups,
                                                     Group =:= G, lists:member(Node, Members)]
                                    end)}, {Node, Ids}) || {Node, Ids} <- Seen],
    nothing_is_left(Config).

without_reliability_there_are_no_names(Config) ->
    [?assertMatch({ok, #{names := 0}}, run(Config, 8, #{mode => Mode})) || Mode <- [tl, ml]].

%%% What is lost is started again

each_kind_of_process_is_started_again(Config) ->
    [_, Gateway | _] = Nodes = nodes_of(Config),
    %% Its ants live long enough to be found.
    Options = #{ants => 2, local_iterations => 1, global_iterations => 40, local_search => o12},
    Spec = (long(reliable(Config)))#{problem => problem(60), options := Options},
    Run = start(Config, Nodes, Spec),
    wait_until_all_compute(Config),
    Others = lists:sublist(Nodes, 4, 7),
    Before = [call(Config, Node, aco_probe, colonies, []) || Node <- Others],
    [ok = call(Config, Node, aco_probe, kill, [What])
     || {Node, What} <- [{lists:last(Nodes), ant}, {lists:nth(12, Nodes), colony}, {lists:nth(11, Nodes), host},
                         {hd(Nodes), submaster}, {Gateway, submaster}]],
    until(fun() -> call(Config, Gateway, aco_probe, submasters, []) =:= 2 end),
    %% Those below a submaster that is started again are found, and go on.
    wait_until_all_compute(Config, 1 + call(Config, hd(Others), aco_probe, began, [])),
    ?assertEqual(Before, [call(Config, Node, aco_probe, colonies, []) || Node <- Others]),
    Outcome = outcome(Run),
    same(Outcome, Options, problem(60)),
    %% An ant's loss is its colony's affair; the host has its colony started again.
    ?assertMatch({ok, #{restarts := 4}}, Outcome),
    nothing_is_left(Config).

%% Unpaced, hosts among the victims. What has a name is registered again, as often as it is killed.
under_a_kill_a_second_on_every_node_the_answer_is_the_same(Config) ->
    [begin
         Options = (busy())#{seed => Seed},
         Spec = #{mode => reliable(Config), options => Options},
         {Outcome, #{kills := Kills, back := Back, back_ms_median := Median, back_ms_max := Max}} = in_storm(Config, nodes_of(Config), Spec, 1),
         same(Outcome, Options),
         {ok, #{restarts := Restarts, wall_ms := Ms, nodes_lost := []}} = Outcome,
         ct:pal("seed ~b: ~b kills, ~b back after ~p ms in the median, at most ~p; ~b registered again, ~b ms",
                [Seed, Kills, Back, Median, Max, Restarts, Ms]),
         ?assert(Kills > 0),
         ?assert(Restarts >= Ms div 1000, {Restarts, Ms})
     end || Seed <- lists:seq(1, atoll_tier:size(aco_storms))],
    nothing_is_left(Config).

chaos_does_not_change_the_answer(Config) ->
    Spec = long(reliable(Config)),
    [begin
         {Outcome, #{kills := Kills}} = in_storm(Config, lists:sublist(nodes_of(Config), Count), Spec, rate(Config)),
         same(Outcome, maps:get(options, Spec)),
         {ok, #{restarts := Restarts}} = Outcome,
         ?assert(Kills > 0),
         ?assert(Restarts > 0)
     end || Count <- case atoll_tier:tier() of fast -> [13]; deep -> [8, 13] end],
    nothing_is_left(Config).

%% Kills a second on each node. Who finds the lock of `global' taken again and again pauses for up to eight
%% seconds before each name: of what is killed ten times a second too little comes back on a mesh for a run to end.
rate(Config) -> case proplists:get_value(kind, Config) of mesh -> 1; islands -> 10 end.

a_killed_colony_node_does_not_change_the_answer(Config) ->
    killed(Config, [13], 0).

%% Its submasters go on on nodes of their colonies.
a_killed_gateway_does_not_change_the_answer(Config) ->
    killed(Config, [2], 0).

%% The fourth node is the first that a submaster of the second goes on on.
a_gateway_and_its_heir_killed_under_chaos_do_not_change_the_answer(Config) ->
    killed(Config, [2, 4], min(3, rate(Config))).

%% When the second one's submaster 1.1 has to go on elsewhere, two of its three other nodes
%% are gone already.
a_gateway_and_two_heirs_killed_at_once_do_not_change_the_answer(Config) ->
    killed(Config, [4, 5, 2], 0).

killed(Config, Places, Chaos) ->
    Nodes = nodes_of(Config),
    Victims = [lists:nth(Place, Nodes) || Place <- Places],
    Spec = long(reliable(Config)),
    Run = start(Config, Nodes, Spec),
    wait_until_all_compute(Config),
    Storm = [begin {ok, Storm} = atoll_bench_storm:start(cluster(Config), #{program => aco, rate => Chaos}, 1), Storm end || Chaos > 0],
    [ok = atoll_cluster:kill(cluster(Config), Victim) || Victim <- Victims],
    {ok, #{nodes_lost := Lost, restarts := Restarts}} = Outcome = outcome(Run),
    [?assert(Kills > 0) || S <- Storm, #{kills := Kills} <- [atoll_bench_storm:stop(S)]],
    same(Outcome, maps:get(options, Spec)),
    ?assertEqual(lists:sort(Victims), Lost),
    ?assert(Restarts > 0),
    nothing_is_left(Config, Nodes -- Victims).

%%% What ends a run

%% A generation takes seconds, and its ant, or its colony, is killed as soon as it is there.
what_is_killed_in_vain_ends_a_run(Config) ->
    Options = #{ants => 1, local_iterations => 1, global_iterations => 1, local_search => o12},
    Spec = #{mode => reliable(Config), problem => problem(400), options => Options},
    [_, Victim | _] = Nodes = lists:sublist(nodes_of(Config), 5),
    Run = start(Config, Nodes, Spec),
    ?assertEqual(ok, atoll_cluster:call(cluster(Config), Victim, aco_probe, kill_in_turns, [[ant, colony_at_work], 27], ?RUN_MS)),
    ?assertEqual(ok, call(Config, Victim, aco_probe, kill, [ant])),
    ?assertEqual({error, {in_vain, 1, Victim, 55}}, outcome(Run)),
    nothing_is_left(Config).

chaos_ends_a_run_that_is_not_reliable(Config) ->
    [begin
         {{error, Reason}, _} = in_storm(Config, nodes_of(Config), #{mode => Mode, options => busy()}, 1),
         ?assertMatch({match, _}, re:run(aco:format_error(Reason), "^[^\\n]* on node [^\\n]* was lost, [^\\n]*\\.$"))
     end || Mode <- [tl, ml]],
    nothing_is_left(Config).

in_storm(Config, Nodes, Spec, Rate) ->
    {ok, Storm} = atoll_bench_storm:start(cluster(Config), #{program => aco, rate => Rate}, 1),
    Outcome = outcome(start(Config, Nodes, Spec)),
    {Outcome, atoll_bench_storm:stop(Storm)}.

%% Some seconds of work for all processors.
busy() ->
    #{ants => 4, local_iterations => 20, global_iterations => atoll_tier:size(aco_busy)}.

a_killed_colony_node_ends_a_run_that_is_not_reliable(Config) ->
    Victim = lists:last(nodes_of(Config)),
    Run = start(Config, nodes_of(Config), long(ml)),
    wait_until_all_compute(Config),
    ok = atoll_cluster:kill(cluster(Config), Victim),
    ?assertMatch({error, {node_lost, _, Victim}}, outcome(Run)),
    nothing_is_left(Config, nodes_of(Config) -- [Victim]).

a_killed_master_node_leaves_nothing(Config) ->
    [Master | Others] = nodes_of(Config),
    [begin
         Run = start(Config, nodes_of(Config), long(Mode)),
         wait_until_all_compute(Config),
         ok = atoll_cluster:kill(cluster(Config), Master),
         ?assertMatch({failed, {node_down, Master}}, outcome(Run)),
         nothing_is_left(Config, Others),
         ok = atoll_cluster:restart(cluster(Config), Master)
     end || Mode <- modes(Config), Mode =/= tl].

a_caller_that_dies_takes_the_run_with_it(Config) ->
    [Master | _] = Nodes = nodes_of(Config),
    Spec = (long(reliable(Config)))#{problem => problem(), nodes => Nodes},
    Caller = call(Config, Master, erlang, spawn, [aco, run, [Spec]]),
    wait_until_all_compute(Config),
    true = call(Config, Master, erlang, exit, [Caller, kill]),
    nothing_is_left(Config).

%% Two masters, the same nodes in another order.
two_runs_at_once_do_not_meet(Config) ->
    Spec = long(reliable(Config)),
    Runs = [start(Config, Order, Spec) || Order <- [nodes_of(Config), lists:reverse(nodes_of(Config))]],
    [same(outcome(Run), maps:get(options, Spec)) || Run <- Runs],
    nothing_is_left(Config).

a_node_that_is_not_there_is_named(Config) ->
    Nowhere = 'nobody@nowhere.invalid',
    Outcome = outcome(start(Config, lists:sublist(nodes_of(Config), 7) ++ [Nowhere], long(reliable(Config)))),
    Why = case reliable(Config) of gr -> unreachable; sr -> left_out end,
    ?assertEqual({error, {Why, Nowhere}}, Outcome),
    nothing_is_left(Config).

a_node_without_atoll_is_named(Config) ->
    [Master, Without | _] = nodes_of(Config),
    ok = call(Config, Without, application, stop, [atoll]),
    ?assertEqual({error, {left_out, Without}}, run(Config, 5, #{mode => sr})),
    ok = call(Config, Master, application, stop, [atoll]),
    {error, {not_made, _} = Reason} = run(Config, 5, #{mode => sr}),
    ?assertMatch({match, _}, re:run(aco:format_error(Reason), "group")),
    [ok = call(Config, Node, application, start, [atoll]) || Node <- [Master, Without]].

%%% Runs

modes(Config) ->
    case proplists:get_value(kind, Config) of
        mesh -> [tl, ml, gr];
        islands -> [sr]
    end.

reliable(Config) -> lists:last(modes(Config)).

options() ->
    #{ants => 3, local_iterations => 3, global_iterations => 5}.

%% Longer than what a case does in the meantime, by its pace.
long(Mode) ->
    #{mode => Mode, pace_ms => 60, options => #{ants => 3, local_iterations => 5, global_iterations => 50}}.

problem() -> problem(20).

problem(Jobs) ->
    Rows = [{1 + I * 37 rem 89, 1 + I * 7 rem 10, I * 61 rem (35 * Jobs)} || I <- lists:seq(1, Jobs)],
    {ok, Problem} = aco_problem:new(Rows),
    Problem.

run(Config, Count, Spec) ->
    outcome(start(Config, lists:sublist(nodes_of(Config), Count), maps:merge(#{options => options()}, Spec))).

start(Config, [First | _] = Nodes, Spec) ->
    Cluster = cluster(Config),
    Whole = maps:merge(#{problem => problem(), nodes => Nodes}, Spec),
    spawn_monitor(fun() ->
        exit({outcome, try atoll_cluster:call(Cluster, First, aco, run, [Whole], ?RUN_MS)
                       catch error:Reason -> {failed, Reason}
                       end})
    end).

outcome({Pid, Ref}) ->
    receive
        {'DOWN', Ref, process, Pid, {outcome, Outcome}} -> Outcome
    after ?RUN_MS ->
        error(no_outcome)
    end.

%% As one process does it with as many colonies.
same(Outcome, Options) ->
    same(Outcome, Options, problem()).

same({ok, #{colonies := Colonies} = Result}, Options, Problem) ->
    Keys = [best, order, colony, rounds],
    ?assertEqual(maps:with(Keys, expected(Colonies, Options, Problem)), maps:with(Keys, Result)).

%% Several cases ask for the same, which is one for each of these.
expected(Colonies, Given, Problem) ->
    Key = {?MODULE, Colonies, Given, Problem},
    case persistent_term:get(Key, none) of
        none ->
            {ok, Options} = aco_options:new(Given),
            Found = aco_seq:run(#{problem => Problem, options => Options, colonies => Colonies}),
            ok = persistent_term:put(Key, Found),
            Found;
        Found ->
            Found
    end.

%%% The cluster

cluster(Config) -> proplists:get_value(cluster, Config).

nodes_of(Config) -> atoll_cluster:nodes(cluster(Config)).

call(Config, Node, M, F, A) ->
    atoll_cluster:call(cluster(Config), Node, M, F, A, ?DEADLINE_MS).

%% Every colony has begun the third round.
wait_until_all_compute(Config) ->
    wait_until_all_compute(Config, 3).

%% Each node sees that by itself: asked one after another they might answer when all is over.
wait_until_all_compute(Config, Round) ->
    Args = [lists:nthtail(3, nodes_of(Config)), Round, ?DEADLINE_MS],
    Answers = atoll_cluster:multicall(cluster(Config), aco_probe, await, Args, ?DEADLINE_MS + 5000),
    ?assertEqual([], [Late || {_, Answer} = Late <- Answers, Answer =/= {ok, true}]).

nothing_is_left(Config) ->
    nothing_is_left(Config, nodes_of(Config)).

nothing_is_left(Config, Nodes) ->
    until(fun() -> lists:all(fun(Node) -> call(Config, Node, aco_probe, left, []) =:= [] end, Nodes) end).

until(Ask) ->
    until(Ask, erlang:monotonic_time(millisecond) + ?DEADLINE_MS).

until(Ask, Deadline) ->
    case Ask() of
        true ->
            ok;
        false ->
            erlang:monotonic_time(millisecond) < Deadline orelse error(deadline),
            receive after 20 -> until(Ask, Deadline) end
    end.
