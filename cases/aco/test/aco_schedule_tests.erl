%% SPDX-License-Identifier: Apache-2.0
-module(aco_schedule_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% Worked out by hand: the jobs end at 4, 9 and 15.
the_cost_is_the_weighted_sum_of_what_is_late_test_() ->
    Problem = aco_instances:of_jobs([{4, 1, 10}, {5, 2, 8}, {6, 3, 5}]),
    [
        ?_assertEqual(2 * (9 - 8) + 3 * (15 - 5), aco_schedule:cost([1, 2, 3], Problem)),
        %% 6, 11, 15
        ?_assertEqual(3 * 1 + 2 * 3 + 1 * 5, aco_schedule:cost([3, 2, 1], Problem)),
        ?_assertEqual({32, [1, 2, 3]}, aco_schedule:solution([1, 2, 3], Problem))
    ].

what_ends_when_it_is_due_is_not_late_test() ->
    ?assertEqual(0, aco_schedule:cost([1], aco_instances:of_jobs([{4, 9, 4}]))).

an_order_is_feasible_if_it_has_every_job_once_test_() ->
    Problem = aco_instances:of_jobs([{1, 1, 1}, {1, 1, 1}, {1, 1, 1}]),
    [?_assertEqual(Is, aco_instances:is_feasible(Order, Problem))
     || {Is, Order} <- [{true, [3, 1, 2]}, {false, [1, 2]}, {false, [1, 2, 2]}, {false, [1, 2, 3, 3]},
                        {false, [0, 1, 2]}, {false, [1, 2, x]}]].

%% The last two are due at the same time; job 1 and 2 are late whatever is done.
equal_jobs_are_taken_by_number_test() ->
    Problem = aco_instances:of_jobs([{3, 1, 1}, {3, 1, 2}, {1, 1, 50}, {2, 1, 50}]),
    ?assertMatch({_, [1, 2, 3, 4]}, aco_schedule:edd(Problem)),
    ?assertMatch({_, [1, 2, 3, 4]}, aco_instances:mdd(Problem)).

a_modified_due_date_is_never_before_the_end_test() ->
    %% By due dates the long one is first; it would end at 9, and the other is due at 5.
    Problem = aco_instances:of_jobs([{9, 1, 1}, {2, 1, 5}]),
    ?assertMatch({_, [1, 2]}, aco_schedule:edd(Problem)),
    ?assertMatch({_, [2, 1]}, aco_instances:mdd(Problem)).

of_equal_solutions_the_newer_is_kept_test() ->
    ?assertEqual({5, [2, 1]}, aco_schedule:newer({5, [2, 1]}, {5, [1, 2]})),
    ?assertEqual({4, [1, 2]}, aco_schedule:newer({5, [2, 1]}, {4, [1, 2]})).

both_rules_give_every_job_once_and_its_cost_test_() ->
    atoll_prop:test(
        ?FUNCTION_NAME,
        ?FORALL(Problem, aco_instances:problem(1, 12),
            lists:all(
                fun({Cost, Order}) ->
                    aco_instances:is_feasible(Order, Problem) andalso aco_schedule:cost(Order, Problem) =:= Cost
                end,
                [aco_schedule:edd(Problem), aco_instances:mdd(Problem)])),
        300
    ).
