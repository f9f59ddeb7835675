%% SPDX-License-Identifier: Apache-2.0
%% The whole algorithm in one process.
-module(aco_seq_tests).

-include_lib("eunit/include/eunit.hrl").

%% Exact optima by dynamic programming over sets.
with_local_search_small_problems_are_solved_test_() ->
    [{timeout, 60, {lists:concat([Size, " jobs, seed ", Seed]), fun() ->
        Problem = aco_instances:random(Size, Seed),
        #{best := Best, order := Order} = run(Problem, #{local_search => o12}, 2),
        ?assertEqual(aco_instances:optimum(Problem), Best),
        ?assertEqual(Best, aco_schedule:cost(Order, Problem))
    end}} || Size <- [1, 2, 5, 8, 10], Seed <- [1, 2, 3, 4]].

nothing_is_better_than_the_optimum_test_() ->
    [{timeout, 60, {lists:concat([Search, " ", Rule]), fun() ->
        Problem = aco_instances:random(9, 7),
        #{best := Best, course := Course} = run(Problem, #{local_search => Search, heuristic => Rule}, 1),
        Optimum = aco_instances:optimum(Problem),
        ?assert(lists:all(
            fun({{Cost, Order}, 1}) ->
                Cost >= Optimum andalso aco_instances:is_feasible(Order, Problem) andalso
                    Cost =:= aco_schedule:cost(Order, Problem)
            end, Course)),
        ?assert(Best >= Optimum)
    end}} || Search <- aco_search:names(), Rule <- [mdd, edd, au]].

the_same_seed_gives_the_same_course_and_another_one_another_test() ->
    Problem = aco_instances:random(25, 1),
    Run = fun(Seed) -> run(Problem, #{seed => Seed}, 2) end,
    ?assertEqual(Run(1), Run(1)),
    ?assertNotEqual(maps:get(course, Run(1)), maps:get(course, Run(2))).

the_best_never_gets_worse_test() ->
    #{course := Course} = run(aco_instances:random(25, 2), #{global_iterations => 8}, 3),
    Costs = [Cost || {{Cost, _}, _} <- Course],
    ?assertEqual(8, length(Costs)),
    ?assertEqual(Costs, lists:reverse(lists:sort(Costs))).

a_run_stops_when_the_cost_is_reached_test() ->
    Problem = aco_instances:random(10, 1),
    Optimum = aco_instances:optimum(Problem),
    Spec = #{problem => Problem, options => aco_instances:options(#{local_search => o12, global_iterations => 50}),
             colonies => 1},
    ?assertMatch(#{best := Optimum, rounds := Rounds} when Rounds < 50, aco_seq:run(Spec#{until => Optimum})),
    ?assertMatch(#{rounds := 50}, aco_seq:run(Spec#{until => Optimum - 1})).

%% Each colony by itself, lost after the second round and made anew.
a_colony_that_was_lost_does_not_change_the_course_test() ->
    Problem = aco_instances:random(20, 3),
    Options = aco_instances:options(#{local_iterations => 3, global_iterations => 4}),
    #{course := Course} = aco_seq:run(#{problem => Problem, options => Options, colonies => 2}),
    {Before, [{Third, _} | _]} = lists:split(2, Course),
    Again = fun({Best, Owner}, Colony) -> aco_colony:global(Best, Owner, aco_colony:run_round(Colony)) end,
    Offers = [aco_colony:offer(aco_colony:run_round(lists:foldl(Again, aco_colony:new(Problem, Options, Id), Before)))
              || Id <- [2, 1]],
    {Cost, _, Order} = aco_colony:better(hd(Offers), lists:last(Offers)),
    ?assertEqual(Third, {Cost, Order}).

run(Problem, Given, Colonies) ->
    Options = aco_instances:options(maps:merge(#{ants => 4, local_iterations => 5, global_iterations => 5}, Given)),
    aco_seq:run(#{problem => Problem, options => Options, colonies => Colonies}).
