%% An ant, and what it goes by: draws, worth and pheromone.
-module(aco_ant_tests).

-include_lib("eunit/include/eunit.hrl").

%% Draws.

cyclic_draws_go_round_test() ->
    ?assertEqual([0.09, 0.19, 0.29, 0.39, 0.49, 0.59, 0.69, 0.79, 0.89, 0.99, 0.09],
                 draws(11, aco_random:new(cyclic, {1, 1, 1, 1, 1}))).

cyclic_draws_hang_on_the_ant_alone_test() ->
    Of = fun(Key) -> draws(5, aco_random:new(cyclic, Key)) end,
    ?assertEqual(Of({1, 1, 1, 1, 3}), Of({7, 2, 5, 9, 3})),
    ?assertEqual(0.29, hd(Of({1, 1, 1, 1, 3}))).

seeded_draws_are_the_same_for_the_same_key_and_for_no_other_test() ->
    Keys = [{Seed, Colony, Round, Generation, Ant}
            || Seed <- [1, 2], Colony <- [1, 2], Round <- [1, 2], Generation <- [1, 2], Ant <- [1, 2]],
    Draws = [draws(4, aco_random:new(seeded, Key)) || Key <- Keys],
    ?assertEqual(Draws, [draws(4, aco_random:new(seeded, Key)) || Key <- Keys]),
    ?assertEqual(length(Keys), length(lists:usort(Draws))),
    ?assert(lists:all(fun(Draw) -> Draw >= 0.0 andalso Draw < 1.0 end, lists:append(Draws))).

draws(Count, Random) ->
    {Draws, _} = lists:mapfoldl(fun(_, R) -> aco_random:draw(R) end, Random, lists:seq(1, Count)),
    Draws.

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

without_evaporation_an_update_adds_alone_test() ->
    Options = aco_instances:options(#{rho => 0.5, evaporate => false}),
    %% An order that costs nothing counts as one that costs 1.
    Updated = aco_pheromone:update({0, [1, 2]}, Options, aco_pheromone:new(2, 0.2)),
    ?assertEqual([{0.7, 0.2}, {0.2, 0.7}], [aco_pheromone:row(Place, Updated) || Place <- [1, 2]]).

%% Ants.

a_greedy_ant_takes_the_first_of_equal_jobs_test() ->
    Problem = aco_instances:of_jobs(lists:duplicate(5, {1, 1, 100})),
    ?assertMatch({0, [1, 2, 3, 4, 5]}, walk(Problem, #{q0 => 1.0})).

a_greedy_ant_without_pheromone_goes_by_the_rule_test_() ->
    [{atom_to_list(Rule), fun() ->
        Problem = aco_instances:random(12, Seed),
        ?assertEqual(By(Problem), walk(Problem, #{q0 => 1.0, alpha => 0.0, heuristic => Rule}))
    end} || Seed <- [1, 2, 3], {Rule, By} <- [{mdd, fun aco_schedule:mdd/1}, {edd, fun aco_schedule:edd/1}]].

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
