%% The strategy cliques in virtual time: what it promises.
-module(atoll_sim_cliques_tests).

-include_lib("eunit/include/eunit.hrl").

-import(atoll_sim_strategy_world, [
    start/5, run/2, names/1, kill/2, restart/2, tell/3, cast/3, set/2, links/1, summary/2,
    is_symmetric/1, is_connected/1
]).

-define(COUNT, 21).

%% Rings of four, each sharing one with the next.
cliques(Epoch) ->
    Names = list_to_tuple(names(?COUNT)),
    [
        {Id, Epoch, [element((3 * Id + I) rem ?COUNT + 1, Names) || I <- [0, 1, 2, 3]]}
     || Id <- lists:seq(0, ?COUNT div 3 - 1)
    ].

told(Cliques, World) ->
    lists:foldl(fun(Name, W) -> tell(Name, {cliques, Cliques}, W) end, World, names(?COUNT)).

expected(Cliques) ->
    maps:from_list([
        {Name, lists:usort(lists:append([Nodes || {_, _, Nodes} <- Cliques, lists:member(Name, Nodes)])) -- [Name]}
     || Name <- names(?COUNT)
    ]).

grown(Seed) ->
    run(5000, told(cliques(1), start(cliques, #{}, ?COUNT, 10, Seed))).

who_shares_a_clique_is_a_neighbour_and_nobody_else_test_() ->
    atoll_sim_seeds:each(?FUNCTION_NAME, 5, fun(Seed) ->
        World = grown(Seed),
        ?assertEqual(expected(cliques(1)), links(World)),
        ?assert(is_connected(World)),
        ?assertMatch(#{is_gateway := true, neighbours := 6}, summary(n0001, World)),
        ?assertMatch(#{is_gateway := false, neighbours := 3}, summary(n0002, World))
    end).

a_new_epoch_replaces_an_old_one_and_an_old_one_nothing_test() ->
    New = [{Id, 2, tl(Nodes)} || {Id, 1, Nodes} <- cliques(1)],
    World = run(5000, told(cliques(1), told(New, grown(1)))),
    ?assertEqual(expected(New), links(World)).

while_epochs_differ_nobody_is_a_one_sided_neighbour_test() ->
    World = run(20000, tell(n0001, {cliques, [{extra, 1, [n0001, n0012]}]}, grown(1))),
    ?assertEqual(expected(cliques(1)), links(World)),
    Agreed = run(2000, tell(n0012, {cliques, [{extra, 1, [n0001, n0012]}]}, World)),
    ?assertEqual(expected([{extra, 1, [n0001, n0012]} | cliques(1)]), links(Agreed)),
    One = run(2000, tell(n0012, {cliques, [{extra, 2, []}]}, Agreed)),
    ?assertEqual(expected(cliques(1)), links(One)).

a_bad_network_ends_in_what_was_told_test_() ->
    atoll_sim_seeds:each(?FUNCTION_NAME, 5, fun(Seed) ->
        Bad = set({reorder, 0.2, 200}, set({duplicate, 0.1}, set({loss, 0.2}, grown(Seed)))),
        World = lists:foldl(
            fun(Epoch, W) -> run(300, told([{Id, Epoch, rotate(Epoch, Nodes)} || {Id, _, Nodes} <- cliques(1)], W)) end,
            Bad,
            lists:seq(2, 6)
        ),
        Last = [{Id, 6, rotate(6, Nodes)} || {Id, _, Nodes} <- cliques(1)],
        ?assertEqual(expected(Last), links(run(20000, set(heal, World))))
    end).

rotate(Epoch, [Node | Nodes]) when Epoch rem 2 =:= 1 -> [Node | tl(Nodes)];
rotate(_Epoch, Nodes) -> tl(Nodes).

a_member_that_was_started_again_is_back_when_it_was_told_test() ->
    Dead = run(30000, kill([n0001], grown(1))),
    Back = tell(n0001, {cliques, cliques(1)}, restart([n0001], Dead)),
    ?assertEqual(expected(cliques(1)), links(run(10000, Back))).

who_leaves_has_nobody_test() ->
    World = run(10000, cast(n0001, leave, grown(1))),
    ?assertEqual([], maps:get(n0001, links(World))),
    ?assert(is_symmetric(World)).
