%% SPDX-License-Identifier: Apache-2.0
-module(aco_search_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

no_search_leaves_the_order_test() ->
    Problem = aco_instances:of_jobs([{1, 1, 9}, {9, 9, 1}]),
    Solution = aco_schedule:solution([1, 2], Problem),
    ?assertEqual(Solution, aco_search:run(none, Solution, Problem)),
    ?assertMatch({_, [2, 1]}, aco_search:run(o1, Solution, Problem)).

%% From 1 2 3 no interchange is better; 3 moved to the front is.
insertion_finds_what_interchange_does_not_test() ->
    {Problem, Order} = stuck(o1, o2),
    Solution = aco_schedule:solution(Order, Problem),
    ?assertEqual(Solution, aco_search:run(o1, Solution, Problem)),
    {Better, _} = aco_search:run(o2, Solution, Problem),
    ?assert(Better < element(1, Solution)).

interchange_finds_what_insertion_does_not_test() ->
    {Problem, Order} = stuck(o2, o1),
    Solution = aco_schedule:solution(Order, Problem),
    ?assertEqual(Solution, aco_search:run(o2, Solution, Problem)),
    {Better, _} = aco_search:run(o1, Solution, Problem),
    ?assert(Better < element(1, Solution)).

%% A problem and an order that is an optimum of the one neighbourhood and not of the other.
stuck(Search, Other) ->
    hd([{Problem, Order}
        || Seed <- lists:seq(1, 50), Problem <- [aco_instances:random(4, Seed)],
           Order <- aco_instances:orders([1, 2, 3, 4]),
           improving(Search, Order, Problem) =:= [], improving(Other, Order, Problem) =/= []]).

properties_test_() ->
    [atoll_prop:test(Name, Property, 300)
     || {Name, Property} <- [
         {what_is_found_has_the_cost_it_says_and_every_job_once, honest()},
         {nothing_in_the_neighbourhood_is_better_than_what_is_found, optimal()},
         {what_is_found_is_no_worse, no_worse()}
     ]].

honest() ->
    ?FORALL({Problem, Order, Search}, started(),
        begin
            {Cost, Found} = aco_search:run(Search, aco_schedule:solution(Order, Problem), Problem),
            aco_instances:is_feasible(Found, Problem) andalso aco_schedule:cost(Found, Problem) =:= Cost
        end).

optimal() ->
    ?FORALL({Problem, Order, Search}, started(),
        begin
            {_, Found} = aco_search:run(Search, aco_schedule:solution(Order, Problem), Problem),
            improving(Search, Found, Problem) =:= []
        end).

no_worse() ->
    ?FORALL({Problem, Order, Search}, started(),
        begin
            {Cost, _} = Solution = aco_schedule:solution(Order, Problem),
            {Found, _} = aco_search:run(Search, Solution, Problem),
            Found =< Cost
        end).

started() ->
    ?LET(Problem, aco_instances:problem(1, 12),
        ?LET(Order, shuffled(lists:seq(1, aco_problem:size(Problem))),
            {Problem, Order, oneof([o1, o2, o12, o21])})).

shuffled(Numbers) ->
    ?LET(Keys, vector(length(Numbers), integer(1, 1000000)),
        [Number || {_, Number} <- lists:sort(lists:zip(Keys, Numbers))]).

%% The neighbours of an order that cost less, each made and costed in full.
improving(Search, Order, Problem) ->
    Cost = aco_schedule:cost(Order, Problem),
    [Neighbour || Neighbour <- neighbours(Search, Order), aco_schedule:cost(Neighbour, Problem) < Cost].

neighbours(o1, Order) ->
    [[case N of A -> B; B -> A; _ -> N end || N <- Order] || A <- Order, B <- Order, A < B];
neighbours(o2, Order) ->
    [begin
         {Before, After} = lists:split(Place, lists:delete(Number, Order)),
         Before ++ [Number | After]
     end || Number <- Order, Place <- lists:seq(0, length(Order) - 1)];
neighbours(_, Order) ->
    neighbours(o1, Order) ++ neighbours(o2, Order).
