%% SPDX-License-Identifier: Apache-2.0
%% Questions and answers of the benchmark, on this node.
-module(atoll_bench_overlay_words_tests).

-include_lib("eunit/include/eunit.hrl").

every_question_is_asked_and_answered_test() ->
    with_answerer(fun(_) ->
        #{latency := Latency, asked := 20, silent := []} = atoll_bench_overlay_words:ask([node()], 20, 50, 5000),
        ?assertEqual(20, atoll_histogram:count(Latency)),
        %% Nothing of it is left.
        receive
            {answer, _, _} = More -> error(More)
        after 0 -> ok
        end
    end).

%% A question is due each 100 ms, and who asks gets to it 250 ms later; the answers come at once.
latency_counts_from_the_intended_time_test() ->
    with_answerer(fun(_) ->
        Self = self(),
        Caller = spawn_link(fun() -> Self ! {self(), atoll_bench_overlay_words:ask([node()], 10, 1000, 5000)} end),
        Asker = asker(Caller, Self),
        true = erlang:suspend_process(Asker),
        Timer = erlang:start_timer(250, self(), stalled),
        receive {timeout, Timer, stalled} -> ok end,
        true = erlang:resume_process(Asker),
        receive
            {Caller, #{latency := Latency}} ->
                ?assertEqual(10, atoll_histogram:count(Latency)),
                ?assert(atoll_histogram:max(Latency) >= 20000000)
        end
    end).

asker(Caller, Self) ->
    case [Pid || {links, Pids} <- [erlang:process_info(Caller, links)], Pid <- Pids, Pid =/= Self] of
        [Asker] -> Asker;
        [] -> erlang:yield(), asker(Caller, Self)
    end.

who_does_not_answer_is_named_test() ->
    with_answerer(fun(Answerer) ->
        true = erlang:suspend_process(Answerer),
        #{latency := Latency, silent := Silent} = atoll_bench_overlay_words:ask([node()], 2, 10, 20),
        ?assertEqual([node()], Silent),
        ?assertEqual(0, atoll_histogram:count(Latency)),
        true = erlang:resume_process(Answerer)
    end).

with_answerer(Fun) ->
    ok = atoll_bench_overlay_words:answer(),
    Pid = whereis(atoll_bench_overlay_words),
    Ref = monitor(process, Pid),
    try
        Fun(Pid)
    after
        exit(Pid, kill),
        receive
            {'DOWN', Ref, process, _, _} -> ok
        end
    end.
