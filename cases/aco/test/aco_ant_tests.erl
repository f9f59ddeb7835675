%% SPDX-License-Identifier: Apache-2.0
%% An ant, and what it goes by: draws, worth and pheromone.
-module(aco_ant_tests).

-include_lib("eunit/include/eunit.hrl").

%% Draws.

what_an_ant_finds_hangs_on_which_it_is_test() ->
    Problem = aco_instances:random(25, 1),
    Options = aco_instances:options(#{q0 => 0.0}),
    Find = fun(Key) -> aco_ant:run(#{problem => Problem, options => Options, pheromone => aco_pheromone:new(25, 1.0), key => Key}) end,
    Keys = [{Seed, Colony, Round, Generation, Ant}
            || Seed <- [1, 2], Colony <- [1, 2], Round <- [1, 2], Generation <- [1, 2], Ant <- [1, 2]],
    Found = [Find(Key) || Key <- Keys],
    ?assertEqual(Found, [Find(Key) || Key <- Keys]),
    ?assertEqual(length(Keys), length(lists:usort(Found))).

%% Worth: rule, {Number, Duration, Weight, Due}, time, mean duration.

worth_is_that_of_the_definition_test_() ->
    [
        ?_assertEqual(1 / 30, aco_heuristic:worth(mdd, {1, 5, 2, 30}, 20, 4.0)),
        ?_assertEqual(1 / 31, aco_heuristic:worth(mdd, {1, 5, 2, 30}, 26, 4.0)),
        ?_assertEqual(1 / 30, aco_heuristic:worth(edd, {1, 5, 2, 30}, 26, 4.0)),
        ?_assertEqual(1.0, aco_heuristic:worth(edd, {1, 5, 2, 0}, 26, 4.0)),
        ?_assertEqual(2 / 5, aco_heuristic:worth(au, {1, 5, 2, 30}, 26, 4.0)),
        %% 16 left, and twice the mean is 8
        ?_assertEqual(2 / 5 * math:exp(-2), aco_heuristic:worth(au, {1, 5, 2, 30}, 9, 4.0))
    ].

%% Pheromone.

an_update_evaporates_everywhere_and_adds_along_the_order_test() ->
    Options = aco_instances:options(#{rho => 0.5}),
    Updated = aco_pheromone:update({4, [2, 1]}, Options, aco_pheromone:new(2, 0.2)),
    ?assertEqual([{0.1, 0.1 + 0.5 / 4}, {0.1 + 0.5 / 4, 0.1}], [aco_pheromone:row(Place, Updated) || Place <- [1, 2]]).

an_order_that_costs_nothing_counts_as_one_that_costs_1_test() ->
    Options = aco_instances:options(#{rho => 0.5}),
    Updated = aco_pheromone:update({0, [1, 2]}, Options, aco_pheromone:new(2, 0.2)),
    ?assertEqual([{0.6, 0.1}, {0.1, 0.6}], [aco_pheromone:row(Place, Updated) || Place <- [1, 2]]).

%% Ants.

a_greedy_ant_takes_the_first_of_equal_jobs_test() ->
    Problem = aco_instances:of_jobs(lists:duplicate(5, {1, 1, 100})),
    ?assertMatch({0, [1, 2, 3, 4, 5]}, walk(Problem, #{q0 => 1.0})).

a_greedy_ant_without_pheromone_goes_by_the_rule_test_() ->
    [{atom_to_list(Rule), fun() ->
        Problem = aco_instances:random(12, Seed),
        ?assertEqual(By(Problem), walk(Problem, #{q0 => 1.0, alpha => 0.0, heuristic => Rule}))
    end} || Seed <- [1, 2, 3], {Rule, By} <- [{mdd, fun aco_instances:mdd/1}, {edd, fun aco_schedule:edd/1}]].

a_greedy_ant_follows_the_pheromone_test() ->
    Problem = aco_instances:random(6, 1),
    Options = aco_instances:options(#{q0 => 1.0, beta => 0.0}),
    Way = [4, 2, 6, 1, 3, 5],
    Pheromone = aco_pheromone:update(aco_schedule:solution(Way, Problem), Options, aco_pheromone:new(6, 0.001)),
    ?assertMatch({_, Way}, aco_ant:run(#{problem => Problem, options => Options, pheromone => Pheromone,
                                         key => {1, 1, 1, 1, 1}})).

%% 1000 ants at the first of two places, where the one job has three times the
%% weight: 750 are expected, with a standard deviation of 14.
an_ant_that_draws_does_so_by_weight_test() ->
    Problem = aco_instances:of_jobs([{1, 1, 10}, {1, 1, 30}]),
    Found = [walk(Problem, #{q0 => 0.0, heuristic => edd, beta => 1.0, seed => Seed}) || Seed <- lists:seq(1, 1000)],
    First = length([x || {_, [1, 2]} <- Found]),
    ?assert(abs(First - 750) < 70, First).

worth_that_vanishes_does_not_stop_an_ant_test() ->
    %% exp(-1000000 / 4) is 0.
    Problem = aco_instances:of_jobs(lists:duplicate(4, {1, 1, 1000000})),
    [?assertMatch({0, _}, walk(Problem, #{q0 => Q0, heuristic => au})) || Q0 <- [0.0, 1.0]].

walk(Problem, Given) ->
    hd([aco_ant:run(Errand) || Errand <- aco_colony:errands(aco_colony:new(Problem, aco_instances:options(Given), 1))]).
