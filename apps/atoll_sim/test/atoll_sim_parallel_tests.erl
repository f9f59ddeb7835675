%% SPDX-License-Identifier: Apache-2.0
%% Simulations side by side: results in order, no more at a time than there is room for,
%% and one that fails.
-module(atoll_sim_parallel_tests).

-include_lib("eunit/include/eunit.hrl").

results_come_in_the_order_of_what_was_asked_test() ->
    ?assertEqual([1, 4, 9, 16, 25], atoll_sim_parallel:map(fun(N) -> N * N end, [1, 2, 3, 4, 5])),
    ?assertEqual([], atoll_sim_parallel:map(fun(N) -> N end, [])).

no_more_run_at_a_time_than_memory_is_for_test() ->
    Running = counters:new(2, []),
    Most = fun(_) ->
        counters:add(Running, 1, 1),
        Now = counters:get(Running, 1),
        erlang:yield(),
        counters:sub(Running, 1, 1),
        Now
    end,
    ?assertEqual([1, 1, 1, 1, 1], atoll_sim_parallel:map(Most, lists:seq(1, 5), #{bytes => 1 bsl 60})).

one_that_fails_ends_the_others_and_the_caller_test() ->
    Self = self(),
    {_, Ref} = spawn_monitor(fun() ->
        atoll_sim_parallel:map(
            fun
                (fails) ->
                    exit(broken);
                (waits) ->
                    Self ! {waits, self()},
                    receive
                        never -> ok
                    end
            end,
            [waits || erlang:system_info(schedulers_online) > 1] ++ [fails]
        )
    end),
    receive
        {'DOWN', Ref, process, _, Reason} -> ?assertEqual(broken, Reason)
    after 10000 -> error(still_there)
    end,
    receive
        {waits, Pid} ->
            Gone = erlang:monitor(process, Pid),
            receive
                {'DOWN', Gone, process, Pid, _} -> ok
            after 10000 -> error(still_runs)
            end
    after 0 -> ok
    end.
