%% SPDX-License-Identifier: Apache-2.0
-module(aco_colony_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(SMALL, #{ants => 3, local_iterations => 2, global_iterations => 4, local_search => o2}).

a_generation_has_an_errand_for_each_ant_and_no_two_are_the_same_test() ->
    Errands = aco_colony:errands(colony(1)),
    ?assertEqual(3, length(lists:usort(Errands))),
    ?assertEqual([{1, 1, 1, 1, Ant} || Ant <- [1, 2, 3]], [Key || #{key := Key} <- Errands]).

the_best_is_at_first_the_order_by_due_dates_test() ->
    Problem = aco_instances:random(8, 5),
    ?assertEqual(aco_schedule:edd(Problem), aco_colony:best(aco_colony:new(Problem, aco_instances:options(?SMALL), 1))).

%% The order by due dates of this one costs 2; four ants.
the_first_pheromone_is_the_share_of_an_ant_in_that_order_test_() ->
    First = fun(Jobs, Given) ->
        Colony = aco_colony:new(aco_instances:of_jobs(Jobs), aco_instances:options(Given#{ants => 4}), 1),
        [#{pheromone := Pheromone} | _] = aco_colony:errands(Colony),
        element(1, aco_pheromone:row(1, Pheromone))
    end,
    [
        ?_assertEqual(1 / 8, First([{3, 2, 2}], #{})),
        ?_assertEqual(1.0, First([{3, 2, 3}], #{})),
        ?_assertEqual(0.25, First([{3, 2, 2}], #{tau0 => 0.25}))
    ].

a_round_is_so_many_generations_test() ->
    {generation_over, Second} = generation(colony(1)),
    ?assertEqual(0, aco_colony:round(Second)),
    {round_over, Over} = generation(Second),
    ?assertEqual(1, aco_colony:round(Over)),
    ?assertEqual(Over, aco_colony:run_round(colony(1))),
    %% A round that is under way is run to its end.
    ?assertEqual(Over, aco_colony:run_round(Second)),
    [#{key := Key} | _] = aco_colony:errands(Over),
    ?assertEqual({1, 1, 2, 1, 1}, Key).

of_equally_good_solutions_the_last_is_the_best_test() ->
    Colony = colony(1),
    {Cost, Order} = aco_colony:best(Colony),
    Found = [{Cost, lists:reverse(Order)}, {Cost, tl(Order) ++ [hd(Order)]}, {Cost + 1, Order}],
    {_, Next} = aco_colony:take(Found, Colony),
    ?assertEqual(lists:nth(2, Found), aco_colony:best(Next)).

the_pheromone_is_updated_with_the_best_so_far_test() ->
    Colony = colony(1),
    Best = aco_colony:best(Colony),
    Worse = [{element(1, Best) + 1, lists:reverse(element(2, Best))} || _ <- [1, 2, 3]],
    {_, Next} = aco_colony:take(Worse, Colony),
    Options = aco_instances:options(?SMALL),
    ?assertEqual(aco_pheromone:update(Best, Options, pheromone(Colony)), pheromone(Next)).

the_global_best_updates_all_colonies_but_its_owners_once_and_is_not_kept_test() ->
    Colony = aco_colony:run_round(colony(2)),
    Global = {1, lists:seq(1, 8)},
    ?assertEqual(Colony, aco_colony:global(Global, 2, Colony)),
    Told = aco_colony:global(Global, 1, Colony),
    ?assertEqual(aco_pheromone:update(Global, aco_instances:options(?SMALL), pheromone(Colony)), pheromone(Told)),
    ?assertEqual(aco_colony:best(Colony), aco_colony:best(Told)),
    ?assertEqual(aco_colony:round(Colony), aco_colony:round(Told)).

answers_of_too_few_ants_are_a_crash_test() ->
    ?assertError(function_clause, aco_colony:take([{1, [1]}], colony(1))).

offers_combine_to_the_same_best_in_any_order_test_() ->
    atoll_prop:test(
        ?FUNCTION_NAME,
        ?FORALL({A, B, C}, {offer(), offer(), offer()},
            begin
                Best = aco_colony:better(A, aco_colony:better(B, C)),
                Best =:= aco_colony:better(aco_colony:better(C, A), B) andalso
                    Best =:= aco_colony:better(Best, A) andalso
                    {element(1, Best), element(2, Best)} =:=
                        lists:min([{Cost, Id} || {Cost, Id, _} <- [A, B, C]])
            end),
        300
    ).

offer() -> ?LET({Cost, Id}, {integer(0, 3), integer(1, 4)}, {Cost, Id, [Id]}).

colony(Id) ->
    aco_colony:new(aco_instances:random(8, 5), aco_instances:options(?SMALL), Id).

generation(Colony) ->
    aco_colony:take([aco_ant:run(Errand) || Errand <- aco_colony:errands(Colony)], Colony).

pheromone(Colony) ->
    [#{pheromone := Pheromone} | _] = aco_colony:errands(Colony),
    Pheromone.
