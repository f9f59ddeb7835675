%% SPDX-License-Identifier: Apache-2.0
%% Failure detection in a simulated cluster.
-module(atoll_sim_detector_tests).

-include_lib("eunit/include/eunit.hrl").

-define(SECONDS(N, Test), {timeout, N, fun() -> atoll_sim_cluster:isolated(fun() -> Test end) end}).

%% Of most clusters here.
count() -> atoll_tier:size(detector_nodes).

%% A settled cluster; what its detectors notice is kept, newest first.
cluster() -> cluster(count(), #{}).

cluster(Nodes, Options) ->
    {ok, Cluster} = atoll_sim_cluster:new(
        maps:merge(#{nodes => Nodes, seed => 7, broadcast => off, watch => {fun see/4, []}}, Options)
    ),
    atoll_sim_cluster:grow(Cluster).

see(Now, Node, {notice, {dead, _, _} = Notice}, Kept) -> [{Now, Node, Notice} | Kept];
see(Now, Node, {notice, {reborn, _} = Notice}, Kept) -> [{Now, Node, Notice} | Kept];
see(_Now, _Node, _Sight, Kept) -> Kept.

world(Cluster) -> atoll_sim_cluster:world(Cluster).
now_of(Cluster) -> atoll_sim_world:now(world(Cluster)).
noticed(Cluster) -> atoll_sim_world:watched(world(Cluster)).
life(Node, Cluster) -> atoll_overlay_core:incarnation(atoll_sim_cluster:overlay(Node, Cluster)).

do(Fun, Cluster) -> atoll_sim_cluster:update(Fun, Cluster).

pass(Ms, Cluster) ->
    do(fun(W) -> atoll_sim_world:run(atoll_sim_world:now(W) + Ms, W) end, Cluster).

neighbours(Node, Cluster) ->
    {Node, Neighbours} = lists:keyfind(Node, 1, atoll_sim_cluster:neighbours(Cluster)),
    Neighbours.

a_silent_node_is_known_dead_by_all_within_six_seconds_test_() ->
    ?SECONDS(60, begin
        C0 = cluster(),
        Node = lists:nth(count() div 2, atoll_sim_cluster:names(C0)),
        Life = life(Node, C0),
        C = pass(6000, do(fun(W) -> atoll_sim_world:pause(Node, W) end, C0)),
        Heard = [By || {_, By, {dead, Dead, L}} <- noticed(C), Dead =:= Node, L =:= Life],
        ?assertEqual(atoll_sim_cluster:names(C0) -- [Node], lists:sort(Heard)),
        ?assertEqual([], [N || {_, _, {dead, N, _}} <- noticed(C), N =/= Node]),
        ?assert(lists:min([At || {At, _, _} <- noticed(C)]) >= now_of(C0) + 3000)
    end).

a_crashed_node_is_known_dead_sooner_test_() ->
    ?SECONDS(60, begin
        C0 = cluster(),
        Node = lists:nth(count() div 2, atoll_sim_cluster:names(C0)),
        C = pass(4000, do(fun(W) -> atoll_sim_world:kill(Node, W) end, C0)),
        ?assertEqual(count() - 1, length([By || {_, By, {dead, Dead, _}} <- noticed(C), Dead =:= Node])),
        ?assertEqual([], [N || {_, _, {dead, N, _}} <- noticed(C), N =/= Node])
    end).

pauses_and_losses_bury_nobody_test_() ->
    ?SECONDS(60, begin
        C0 = do(fun(W) -> atoll_sim_world:set({loss, 0.05}, W) end, cluster()),
        Names = atoll_sim_cluster:names(C0),
        {C, _} = lists:foldl(
            fun(_, {Cluster0, Before}) ->
                %% Nobody twice in a row: that would be one long pause.
                {Paused, Cluster1} = atoll_sim_cluster:random(count() div 20, Names -- Before, Cluster0),
                Asleep = do(fun(W) -> lists:foldl(fun atoll_sim_world:pause/2, W, Paused) end, Cluster1),
                Awake = do(fun(W) -> lists:foldl(fun atoll_sim_world:resume/2, W, Paused) end, pass(2000, Asleep)),
                {Awake, Paused}
            end,
            {C0, []},
            lists:seq(1, 60)
        ),
        ?assertEqual([], noticed(C))
    end).

%% It hears them, and does not know that they do not hear it. All its watchers may be among them.
whom_half_of_all_do_not_hear_is_not_buried_test_() ->
    atoll_sim_seeds:each(?FUNCTION_NAME, 30, fun(Seed) ->
        atoll_sim_cluster:isolated(fun() ->
            C0 = cluster(20, #{strategy => mesh, seed => Seed}),
            {[Node], C1} = atoll_sim_cluster:random(1, atoll_sim_cluster:names(C0), C0),
            {Deaf, C2} = atoll_sim_cluster:random(10, atoll_sim_cluster:names(C0) -- [Node], C1),
            C3 = pass(30000, do(fun(W) -> atoll_sim_world:set({cut, [Node], Deaf}, W) end, C2)),
            ?assertEqual([], noticed(C3)),
            C = pass(8000, do(fun(W) -> atoll_sim_world:pause(Node, W) end, C3)),
            ?assertEqual([Node], lists:usort([Dead || {_, _, {dead, Dead, _}} <- noticed(C)]))
        end)
    end).

who_was_buried_alive_begins_a_new_life_test_() ->
    ?SECONDS(60, begin
        C0 = cluster(),
        Node = lists:nth(count() div 2, atoll_sim_cluster:names(C0)),
        Old = life(Node, C0),
        Buried = pass(10000, do(fun(W) -> atoll_sim_world:pause(Node, W) end, C0)),
        ?assertEqual(count() - 1, length([By || {_, By, {dead, Dead, L}} <- noticed(Buried), {Dead, L} =:= {Node, Old}])),
        C = pass(30000, do(fun(W) -> atoll_sim_world:resume(Node, W) end, Buried)),
        ?assert(life(Node, C) > Old),
        ?assertEqual([], [L || {_, _, {dead, Dead, L}} <- noticed(C), Dead =:= Node, L > Old]),
        Neighbours = neighbours(Node, C),
        ?assert(length(Neighbours) >= 2),
        ?assert(lists:all(fun(N) -> lists:member(Node, neighbours(N, C)) end, Neighbours))
    end).

a_link_that_is_cut_one_way_is_given_up_and_nobody_dies_test_() ->
    ?SECONDS(60, begin
        C0 = cluster(),
        Node = lists:nth(count() div 2, atoll_sim_cluster:names(C0)),
        Other = hd(neighbours(Node, C0)),
        C = pass(15000, do(fun(W) -> atoll_sim_world:set({cut, [Node], [Other]}, W) end, C0)),
        ?assertEqual([], noticed(C)),
        ?assertNot(lists:member(Node, neighbours(Other, C))),
        ?assertNot(lists:member(Other, neighbours(Node, C)))
    end).

who_is_cut_off_for_a_while_buries_nobody_test_() ->
    ?SECONDS(60, begin
        C0 = cluster(),
        Names = atoll_sim_cluster:names(C0),
        Node = lists:nth(count() div 2, Names),
        Cut = pass(20000, do(fun(W) -> atoll_sim_world:set({partition, [[Node], Names -- [Node]]}, W) end, C0)),
        C = pass(60000, do(fun(W) -> atoll_sim_world:set(heal, W) end, Cut)),
        ?assertEqual([], [N || {_, _, {dead, N, _}} <- noticed(C), N =/= Node]),
        ?assertMatch([_], [L || {_, By, {reborn, L}} <- noticed(C), By =:= Node]),
        ?assert(length(neighbours(Node, C)) >= 2)
    end).

a_node_restarted_at_once_is_not_taken_for_its_earlier_life_test_() ->
    ?SECONDS(60, begin
        C0 = cluster(),
        Node = lists:nth(count() div 2, atoll_sim_cluster:names(C0)),
        Old = life(Node, C0),
        Killed = pass(50, do(fun(W) -> atoll_sim_world:kill(Node, W) end, C0)),
        C = pass(30000, atoll_sim_cluster:start(Node, fresh, Killed)),
        ?assertEqual([], [L || {_, _, {dead, _, L}} <- noticed(C), L > Old]),
        ?assertEqual([], [N || {_, N, {reborn, _}} <- noticed(C)]),
        ?assert(length(neighbours(Node, C)) >= 2)
    end).

the_cost_for_a_node_does_not_grow_with_the_cluster_test_() ->
    ?SECONDS(120, begin
        [Small, Large] = [messages_per_node_per_s(cluster(N, #{discovery => off})) || N <- [count(), 5 * count()]],
        ?assert(abs(Large - Small) =< 0.1 * Small)
    end).

messages_per_node_per_s(C0) ->
    #{sent := Before} = atoll_sim_world:counters(world(C0)),
    C = pass(60000, C0),
    #{sent := After} = atoll_sim_world:counters(world(C)),
    (After - Before) / 60 / length(atoll_sim_cluster:names(C)).

%% A detector written outside of the library

a_plain_detector_finds_the_silent_and_the_killed_and_the_roster_tells_all_test_() ->
    ?SECONDS(60, begin
        C0 = cluster(50, #{detector => {atoll_detector_plain, #{dead_ms => 4000}}, roster => #{}}),
        Names = [Silent, Killed | Others] = lists:reverse(atoll_sim_cluster:names(C0)),
        ?assertEqual({[], lists:sort(Names)}, {noticed(C0), members(hd(Others), C0)}),
        C = pass(6500, do(fun(W) -> atoll_sim_world:kill(Killed, atoll_sim_world:pause(Silent, W)) end, C0)),
        ?assertEqual([Killed, Silent], lists:usort([Dead || {_, _, {dead, Dead, _}} <- noticed(C)])),
        [?assertEqual({N, lists:sort(Others)}, {N, members(N, C)}) || N <- Others],
        %% It was not dead, and finds out.
        Back = pass(30000, do(fun(W) -> atoll_sim_world:resume(Silent, W) end, C)),
        ?assertMatch([_ | _], [x || {_, By, {reborn, _}} <- noticed(Back), By =:= Silent]),
        [?assertEqual({N, lists:sort([Silent | Others])}, {N, members(N, Back)}) || N <- Others]
    end).

a_plain_detector_carries_what_islands_find_each_other_by_test_() ->
    ?SECONDS(60, begin
        C0 = cluster(30, #{detector => atoll_detector_plain}),
        {Here, There} = lists:split(15, atoll_sim_cluster:names(C0)),
        Cut = do(fun(W) -> atoll_sim_world:set({partition, [Here, There]}, W) end, C0),
        Healed = pass(120000, do(fun(W) -> atoll_sim_world:set(heal, W) end, pass(60000, Cut))),
        ?assertMatch([_], atoll_sim_graph:components(atoll_sim_cluster:neighbours(Healed))),
        %% Nodes that are no contacts hear the beacons too.
        [
            ?assertMatch({N, #{discovery := #{beacons := #{fresh := Fresh}}}} when Fresh > 0, {N, summary(N, Healed)})
         || N <- Here ++ There
        ]
    end).

members(Node, C) -> atoll_overlay_core:members(atoll_sim_cluster:overlay(Node, C)).

summary(Node, C) -> atoll_overlay_core:summary(atoll_sim_cluster:overlay(Node, C)).
