%% SPDX-License-Identifier: Apache-2.0
%% The strategy mesh in virtual time: what it promises of clusters.
-module(atoll_sim_mesh_tests).

-include_lib("eunit/include/eunit.hrl").

-import(atoll_sim_strategy_world, [
    start/4, start/5, run/2, names/1, kill/2, restart/2, join/3, cast/3, set/2, summary/2,
    is_mesh/1
]).

-define(COUNT, 30).

all_that_join_one_after_the_other_are_neighbours_test_() ->
    atoll_sim_seeds:each(?FUNCTION_NAME, 5, fun(Seed) ->
        ?assert(is_mesh(run(5000, start(mesh, #{}, ?COUNT, Seed))))
    end).

all_that_join_at_once_are_neighbours_test_() ->
    atoll_sim_seeds:each(?FUNCTION_NAME, 5, fun(Seed) ->
        ?assert(is_mesh(run(20000, start(mesh, #{}, ?COUNT, 0, Seed))))
    end).

all_are_neighbours_though_messages_are_lost_and_come_twice_test_() ->
    atoll_sim_seeds:each(?FUNCTION_NAME, 5, fun(Seed) ->
        %% Who lost its request asks again, as discovery has it do.
        World0 = set({duplicate, 0.1}, set({loss, 0.1}, start(mesh, #{}, 1, Seed))),
        [First | Others] = names(?COUNT),
        World1 = lists:foldl(
            fun(Name, W) -> join(Name, [First], run(50, atoll_sim_world:start(Name, W))) end, World0, Others
        ),
        World2 = lists:foldl(fun(_, W0) -> again(First, Others, run(2000, W0)) end, World1, lists:seq(1, 10)),
        ?assert(is_mesh(run(60000, World2)))
    end).

again(First, Names, World) ->
    lists:foldl(fun(Name, W) -> join(Name, [First], W) end, World, Names).

two_meshes_that_meet_are_one_test_() ->
    atoll_sim_seeds:each(?FUNCTION_NAME, 5, fun(Seed) ->
        {Left, Right} = lists:split(?COUNT div 2, names(?COUNT)),
        World0 = lists:foldl(fun atoll_sim_world:start/2, start(mesh, #{}, 0, Seed), Left ++ Right),
        World1 = run(5000, again(hd(Right), tl(Right), again(hd(Left), tl(Left), World0))),
        ?assertEqual(?COUNT div 2 - 1, maps:get(neighbours, summary(hd(Left), World1))),
        ?assert(is_mesh(run(5000, join(lists:last(Left), [lists:last(Right)], World1))))
    end).

the_dead_are_gone_and_come_back_test_() ->
    atoll_sim_seeds:each(?FUNCTION_NAME, 5, fun(Seed) ->
        {Dead, Alive} = lists:split(10, names(?COUNT)),
        Killed = run(90000, kill(Dead, run(5000, start(mesh, #{}, ?COUNT, Seed)))),
        ?assert(is_mesh(Killed)),
        ?assertMatch(#{members := 20, gone := 10}, summary(hd(Alive), Killed)),
        Back = again(hd(Alive), Dead, restart(Dead, Killed)),
        ?assert(is_mesh(run(10000, Back)))
    end).

a_node_that_leaves_is_gone_at_once_and_for_good_test() ->
    [First, Leaver | _] = names(?COUNT),
    World = run(120000, cast(Leaver, leave, run(5000, start(mesh, #{}, ?COUNT, 1)))),
    ?assertEqual([], maps:get(Leaver, atoll_sim_strategy_world:links(World))),
    ?assertMatch(#{members := ?COUNT - 1, gone := 1, neighbours := ?COUNT - 2}, summary(First, World)).

a_short_partition_changes_nothing_test() ->
    {Left, Right} = lists:split(12, names(?COUNT)),
    World0 = set({partition, [Left, Right]}, run(5000, start(mesh, #{}, ?COUNT, 1))),
    World = run(5000, set(heal, run(1500, World0))),
    ?assert(is_mesh(World)),
    ?assertMatch(#{gone := 0, incarnation := 1}, summary(hd(Left), World)).

the_halves_of_a_long_partition_find_each_other_test_() ->
    atoll_sim_seeds:each(?FUNCTION_NAME, 3, fun(Seed) ->
        {Left, Right} = lists:split(12, names(?COUNT)),
        World0 = set({partition, [Left, Right]}, run(5000, start(mesh, #{}, ?COUNT, Seed))),
        World1 = run(60000, World0),
        %% Some were taken for dead, on both sides.
        ?assertMatch(#{gone := Gone} when Gone > 0, summary(hd(Left), World1)),
        ?assertMatch(#{gone := Gone} when Gone > 0, summary(hd(Right), World1)),
        ?assert(is_mesh(run(120000, set(heal, World1))))
    end).

%% All watch all, so nobody has a link with the other side left, and only a knock
%% can help.
halves_that_took_each_other_for_dead_find_each_other_test_() ->
    atoll_sim_seeds:each(?FUNCTION_NAME, 3, fun(Seed) ->
        {Left, Right} = lists:split(12, names(?COUNT)),
        Grown = run(5000, start(mesh, #{detector => #{watchers => ?COUNT}}, ?COUNT, Seed)),
        World = run(90000, set({partition, [Left, Right]}, Grown)),
        ?assertMatch(#{members := 12, gone := 18}, summary(hd(Left), World)),
        ?assertMatch(#{members := 18, gone := 12}, summary(hd(Right), World)),
        ?assert(is_mesh(run(90000, set(heal, World))))
    end).
