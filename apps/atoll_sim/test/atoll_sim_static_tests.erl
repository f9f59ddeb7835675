%% SPDX-License-Identifier: Apache-2.0
%% The strategy static in virtual time: what it promises.
-module(atoll_sim_static_tests).

-include_lib("eunit/include/eunit.hrl").

-import(atoll_sim_strategy_world, [
    start/5, run/2, names/1, kill/2, restart/2, tell/3, join/3, cast/3, set/2, links/1, is_symmetric/1,
    is_connected/1
]).

-define(COUNT, 21).

%% Each joins its successor only.
ring(Seed) ->
    Names = names(?COUNT),
    Started = restart(Names, start(static, #{}, 0, 0, Seed)),
    Joined = lists:foldl(
        fun({A, B}, W) -> tell(A, {join, B}, W) end, Started, lists:zip(Names, tl(Names) ++ [hd(Names)])
    ),
    run(5000, Joined).

a_join_links_both_test_() ->
    atoll_sim_seeds:each(?FUNCTION_NAME, 5, fun(Seed) ->
        World = ring(Seed),
        ?assert(is_symmetric(World)),
        ?assert(is_connected(World)),
        ?assertEqual([n0001, n0003], maps:get(n0002, links(World)))
    end).

who_lost_its_memory_is_joined_again_by_its_peers_test() ->
    World = run(10000, restart([n0002], run(30000, kill([n0002], ring(1))))),
    ?assertEqual([n0001, n0003], maps:get(n0002, links(World))),
    ?assert(is_symmetric(World)).

a_parting_that_was_lost_is_told_again_test() ->
    World0 = set({partition, [[n0002], names(?COUNT) -- [n0002]]}, ring(1)),
    World1 = run(60000, tell(n0001, {part, n0002}, World0)),
    World = run(30000, set(heal, World1)),
    ?assertEqual([n0003], maps:get(n0002, links(World))),
    ?assertEqual([n0021], maps:get(n0001, links(World))).

parted_ones_can_join_again_from_either_end_test() ->
    Parted = run(5000, tell(n0001, {part, n0002}, ring(1))),
    ?assertEqual([n0003], maps:get(n0002, links(Parted))),
    [
        ?assertEqual([n0001, n0003], maps:get(n0002, links(run(5000, tell(From, {join, To}, Parted)))))
     || {From, To} <- [{n0001, n0002}, {n0002, n0001}]
    ].

who_forgot_the_parting_can_join_again_test() ->
    Parted = run(5000, tell(n0001, {part, n0002}, ring(1))),
    Fresh = run(20000, restart([n0001], run(1000, kill([n0001], Parted)))),
    ?assertEqual([n0003], maps:get(n0002, links(Fresh))),
    ?assertEqual([n0001, n0003], maps:get(n0002, links(run(5000, tell(n0001, {join, n0002}, Fresh))))).

who_leaves_has_nobody_and_is_left_alone_test() ->
    World = run(10000, cast(n0002, leave, ring(1))),
    ?assertEqual([], maps:get(n0002, links(World))),
    ?assertEqual([n0021], maps:get(n0001, links(World))),
    ?assertEqual([], maps:get(n0002, links(run(10000, join(n0002, [n0007], World))))).

contacts_are_joined_by_who_has_no_peers_test() ->
    World0 = atoll_sim_world:start(n0000, ring(1)),
    World1 = run(5000, join(n0000, [n0001, n0002], World0)),
    ?assertEqual([n0001, n0002], maps:get(n0000, links(World1))),
    World = run(5000, join(n0000, [n0003], World1)),
    ?assertEqual([n0001, n0002], maps:get(n0000, links(World))).
