%% SPDX-License-Identifier: Apache-2.0
%% An open loop shows a stall that a closed one hides; every operation is counted
%% once; a run ends although its target does not, and leaves nothing behind.
-module(atoll_bench_load_tests).

-include_lib("eunit/include/eunit.hrl").

-define(MS, 1000000).

%% The target is a server that answers at once, but for one stall of 200 ms.
an_open_loop_shows_a_stall_test_() ->
    {timeout, 30, fun() ->
        Server = server(1000),
        #{latency := Latency, finished := 2000} =
            atoll_bench_load:open(fun() -> call(Server) end, #{rate => 1000, ms => 2000, workers_max => 5}),
        %% One operation in ten is due within the stall: three in four of these wait for
        %% 50 ms. Without the intended starts there would be as many as workers, five.
        ?assertMatch(P95 when P95 >= 50 * ?MS, atoll_histogram:percentile(Latency, 95)),
        ?assertMatch(P50 when P50 < 50 * ?MS, atoll_histogram:percentile(Latency, 50))
    end}.

a_closed_loop_hides_it_test_() ->
    {timeout, 30, fun() ->
        Server = server(1000),
        #{latency := Latency} = atoll_bench_load:closed(fun() -> call(Server) end, #{workers => 1, ms => 2000}),
        ?assertMatch(P99 when P99 < 10 * ?MS, atoll_histogram:percentile(Latency, 99)),
        %% It was there.
        ?assertMatch(Max when Max >= 190 * ?MS, atoll_histogram:max(Latency))
    end}.

%% Answers, and stalls once for 200 ms after the request of that number.
server(StallAt) ->
    Test = self(),
    spawn(fun() ->
        _ = erlang:monitor(process, Test),
        serve(StallAt)
    end).

serve(Left) ->
    receive
        {From, Ref} ->
            _ = [stall(200) || Left =:= 1],
            From ! Ref,
            serve(Left - 1);
        {'DOWN', _, process, _, _} ->
            ok
    end.

stall(Ms) ->
    receive
    after Ms -> ok
    end.

call(Server) ->
    Ref = make_ref(),
    Server ! {self(), Ref},
    receive
        Ref -> ok
    end.

a_total_stall_shows_and_ends_test_() ->
    {timeout, 30, fun() ->
        Test = self(),
        Never = fun() ->
            Test ! {worker, self()},
            receive never -> ok end
        end,
        Result = atoll_bench_load:open(Never, #{rate => 100, ms => 200, workers_max => 3, grace => 100}),
        ?assertMatch(#{finished := 0, unfinished := 20, late := 0}, Result),
        #{latency := Latency, took_ns := Took} = Result,
        ?assertEqual(20, atoll_histogram:count(Latency)),
        %% From the intended starts, 0 to 190 ms, to the deadline at 300 ms.
        Near = fun(Told, Ms) -> abs(Told - Ms * ?MS) =< Ms * ?MS div 128 end,
        ?assert(Near(atoll_histogram:min(Latency), 110)),
        ?assert(Near(atoll_histogram:max(Latency), 300)),
        ?assert(Took >= 300 * ?MS),
        ?assertEqual([false, false, false], [is_process_alive(Pid) || Pid <- received(worker)])
    end}.

a_closed_loop_ends_too_test_() ->
    {timeout, 30, fun() ->
        Never = fun() -> receive never -> ok end end,
        ?assertMatch(
            #{finished := 0, unfinished := 4},
            atoll_bench_load:closed(Never, #{workers => 4, ms => 50, grace => 50})
        )
    end}.

%% One worker for 100 operations, of which the first lasts until all are due.
what_waits_for_a_worker_is_late_test_() ->
    {timeout, 30, fun() ->
        First = atomics:new(1, []),
        Operation = fun() ->
            case atomics:add_get(First, 1, 1) of
                1 -> stall(150);
                _ -> ok
            end
        end,
        Options = #{rate => 1000, ms => 100, workers_max => 1, grace => 20000},
        ?assertMatch(#{finished := 100, unfinished := 0, late := 99}, atoll_bench_load:open(Operation, Options))
    end}.

every_operation_is_counted_once_test_() ->
    {timeout, 60, fun() ->
        rand:seed(exsss, atoll_tier:seed(?FUNCTION_NAME)),
        %% The deadline falls among the operations: some end, some do not.
        [
            begin
                Begun = atomics:new(1, []),
                Operation = fun() ->
                    N = atomics:add_get(Begun, 1, 1),
                    stall(N rem 7),
                    lists:nth(N rem 3 + 1, [ok, error, {error, busy}])
                end,
                Options = #{rate => Rate, ms => 50, workers_max => Workers, grace => 0},
                #{latency := Latency, finished := Finished, failed := Failed, unfinished := Unfinished} =
                    atoll_bench_load:open(Operation, Options),
                Operations = Rate * 50 div 1000,
                ?assertEqual({Rate, Workers, Operations}, {Rate, Workers, Finished + Unfinished}),
                ?assertEqual(Operations, atoll_histogram:count(Latency)),
                ?assert(Failed =< Finished)
            end
         || _ <- lists:seq(1, atoll_tier:size(load_tries)),
            Rate <- [100, 1000, 20000],
            Workers <- [1, 1 + rand:uniform(50)]
        ]
    end}.

what_returns_an_error_has_failed_test() ->
    Value = fun(V) ->
        #{finished := N, failed := Failed} =
            atoll_bench_load:open(fun() -> V end, #{rate => 1000, ms => 20, workers_max => 2, grace => 20000}),
        {N, Failed}
    end,
    ?assertEqual([{20, 20}, {20, 20}, {20, 0}], [Value(V) || V <- [error, {error, why}, {ok, error}]]).

an_operation_that_exits_ends_the_run_test() ->
    Options = #{rate => 1000, ms => 60000, workers_max => 5},
    ?assertExit(broken, atoll_bench_load:open(fun() -> exit(broken) end, Options)),
    ?assertExit(broken, atoll_bench_load:closed(fun() -> exit(broken) end, #{workers => 5, ms => 60000})).

nothing_is_left_of_a_caller_that_dies_test_() ->
    [
        fun() ->
            Test = self(),
            Operation = fun() ->
                Test ! {worker, self()},
                receive never -> ok end
            end,
            Caller = spawn(fun() -> Run(Operation) end),
            Refs = [
                receive
                    {worker, Pid} -> erlang:monitor(process, Pid)
                after 5000 -> error(no_worker)
                end
             || _ <- lists:seq(1, 3)
            ],
            exit(Caller, kill),
            [
                receive
                    {'DOWN', Ref, process, _, _} -> ok
                after 5000 -> error(left_behind)
                end
             || Ref <- Refs
            ]
        end
     || Run <- [
            fun(Op) -> atoll_bench_load:open(Op, #{rate => 1000, ms => 60000, workers_max => 3}) end,
            fun(Op) -> atoll_bench_load:closed(Op, #{workers => 3, ms => 60000}) end
        ]
    ].

received(Tag) ->
    receive
        {Tag, Value} -> [Value | received(Tag)]
    after 0 -> []
    end.
