%% SPDX-License-Identifier: Apache-2.0
%% The strategy cliques in virtual time: what it promises.
-module(atoll_sim_cliques_tests).

-include_lib("eunit/include/eunit.hrl").

-import(atoll_sim_strategy_world, [
    start/5, run/2, names/1, kill/2, restart/2, tell/3, cast/3, set/2, links/1, summary/2,
    is_symmetric/1, is_connected/1
]).

-define(COUNT, 21).

%% Rings of four, each sharing one with the next.
cliques() ->
    Names = list_to_tuple(names(?COUNT)),
    [
        {Id, [element((3 * Id + I) rem ?COUNT + 1, Names) || I <- [0, 1, 2, 3]]}
     || Id <- lists:seq(0, ?COUNT div 3 - 1)
    ].

told(Cliques, World) ->
    lists:foldl(fun(Name, W) -> tell(Name, {cliques, Cliques}, W) end, World, names(?COUNT)).

expected(Cliques) ->
    maps:from_list([
        {Name, lists:usort(lists:append([Nodes || {_, Nodes} <- Cliques, lists:member(Name, Nodes)])) -- [Name]}
     || Name <- names(?COUNT)
    ]).

grown(Seed) ->
    run(5000, told(cliques(), start(cliques, #{}, ?COUNT, 10, Seed))).

who_shares_a_clique_is_a_neighbour_and_nobody_else_test_() ->
    atoll_sim_seeds:each(?FUNCTION_NAME, 5, fun(Seed) ->
        World = grown(Seed),
        ?assertEqual(expected(cliques()), links(World)),
        ?assert(is_connected(World)),
        ?assertMatch(#{is_gateway := true, neighbours := 6}, summary(n0001, World)),
        ?assertMatch(#{is_gateway := false, neighbours := 3}, summary(n0002, World))
    end).

what_is_told_replaces_what_was_told_test() ->
    New = [{Id, tl(Nodes)} || {Id, Nodes} <- cliques()],
    World = run(5000, told(New, grown(1))),
    ?assertEqual(expected(New), links(World)).

while_they_were_told_different_things_nobody_is_a_one_sided_neighbour_test() ->
    More = [{extra, [n0001, n0012]} | cliques()],
    World = run(20000, tell(n0001, {cliques, More}, grown(1))),
    ?assertEqual(expected(cliques()), links(World)),
    Agreed = run(2000, tell(n0012, {cliques, More}, World)),
    ?assertEqual(expected(More), links(Agreed)),
    One = run(2000, tell(n0012, {cliques, cliques()}, Agreed)),
    ?assertEqual(expected(cliques()), links(One)).

a_bad_network_ends_in_what_was_told_test_() ->
    atoll_sim_seeds:each(?FUNCTION_NAME, 5, fun(Seed) ->
        Bad = set({reorder, 0.2, 200}, set({duplicate, 0.1}, set({loss, 0.2}, grown(Seed)))),
        World = lists:foldl(
            fun(Round, W) -> run(300, told([{Id, rotate(Round, Nodes)} || {Id, Nodes} <- cliques()], W)) end,
            Bad,
            lists:seq(2, 6)
        ),
        Last = [{Id, rotate(6, Nodes)} || {Id, Nodes} <- cliques()],
        ?assertEqual(expected(Last), links(run(20000, set(heal, World))))
    end).

rotate(Round, [Node | Nodes]) when Round rem 2 =:= 1 -> [Node | tl(Nodes)];
rotate(_Round, Nodes) -> tl(Nodes).

a_member_that_was_started_again_is_back_when_it_was_told_test() ->
    Dead = run(30000, kill([n0001], grown(1))),
    Back = tell(n0001, {cliques, cliques()}, restart([n0001], Dead)),
    ?assertEqual(expected(cliques()), links(run(10000, Back))).

who_leaves_has_nobody_test() ->
    World = run(10000, cast(n0001, leave, grown(1))),
    ?assertEqual([], maps:get(n0001, links(World))),
    ?assert(is_symmetric(World)).
