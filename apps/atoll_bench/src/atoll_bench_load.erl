%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs an operation again and again, and measures its latency.
%%
%% In a closed loop each worker begins an operation when its last one has ended.
%% While the target stalls nothing is begun, so a stall is one slow operation among
%% thousands, and the percentiles hide it (Gil Tene: coordinated omission). It is
%% right for throughput.
%%
%% In an open loop operations have their intended starts at a fixed rate, whatever
%% the target does. Latency counts from the intended start. So it holds also the
%% time that an operation waits until one of the workers is free for it; how often
%% that was is told as `late'. What waits is a number, so the memory is that of the
%% workers and the histogram. Intended starts are whole milliseconds, because the
%% runtime's timers are; a worker that is free begins 0.1 ms after it on a quiet
%% machine, which is part of the latency. At more than 1,000 per second several begin
%% at once.
%%
%% Both end when the time is over and what was begun has ended, or at the deadline:
%% `grace' after the time is over. What has not ended by then, or was never begun, is
%% `unfinished', and stands in the histogram with the latency that it had so far.
%% Its worker is killed. So a total stall shows too, and ends.
%%
%% An operation that returns `error' or `{error, _}' counts as `failed'. One that
%% raises an exception ends the run, and the caller exits with the reason. The
%% workers are linked to a process which goes with the caller: nothing is left
%% behind.
-module(atoll_bench_load).

-export([closed/2, open/2]).

-export_type([operation/0, closed_options/0, open_options/0, result/0]).

-type operation() :: fun(() -> term()).

%% `ms' is how long operations are begun, `grace' how many milliseconds longer they
%% may take (1000).
-type closed_options() :: #{workers := pos_integer(), ms := pos_integer(), grace => non_neg_integer()}.

%% `rate' is in operations per second. `workers_max' is how many can be under way
%% at once: enough for the rate times the longest latency, or they are late.
-type open_options() :: #{
    rate := pos_integer(),
    ms := pos_integer(),
    workers_max := pos_integer(),
    grace => non_neg_integer()
}.

%% `latency' holds what is finished, the failed among it, and what is unfinished.
%% `took_ns' is the time from the first start to the end of the last operation, or
%% to the deadline.
-type result() :: #{
    latency := atoll_histogram:hist(),
    finished := non_neg_integer(),
    failed := non_neg_integer(),
    unfinished := non_neg_integer(),
    late := non_neg_integer(),
    took_ns := non_neg_integer()
}.

%% Fields of the counters that all workers share.
-define(TAKEN, 1).
-define(FINISHED, 2).
-define(FAILED, 3).
-define(UNFINISHED, 4).
-define(LATE, 5).

%% What a worker's mark says, if it is not since when it is at its operation
%% (nanoseconds since the start).
-define(IDLE, -1).
-define(CLOSED, -2).

-record(run, {
    operation :: operation(),
    %% An open loop's starts, or that of a closed one.
    plan :: {rate, pos_integer(), Operations :: pos_integer()} | back_to_back,
    %% When no more is begun, and when nothing is waited for, since the start.
    over_ns :: pos_integer(),
    deadline_ns :: pos_integer(),
    latency :: atoll_histogram:hist(),
    counters :: atomics:atomics_ref(),
    %% A mark for each worker. Whoever takes it away from an operation counts it.
    marks :: atomics:atomics_ref()
}).

%% @doc Workers that begin an operation when their last one has ended, for a time.
-spec closed(operation(), closed_options()) -> result().
closed(Operation, #{workers := Workers, ms := Ms} = Options) ->
    run(Operation, back_to_back, Workers, Ms, Options).

%% @doc Operations at a fixed rate for a time.
-spec open(operation(), open_options()) -> result().
open(Operation, #{rate := Rate, workers_max := Max, ms := Ms} = Options) ->
    Operations = max(1, Rate * Ms div 1000),
    run(Operation, {rate, Rate, Operations}, min(Max, Operations), Ms, Options).

run(Operation, Plan, Workers, Ms, Options) ->
    Run = #run{
        operation = Operation,
        plan = Plan,
        over_ns = ns(Ms),
        deadline_ns = ns(Ms + maps:get(grace, Options, 1000)),
        latency = atoll_histogram:new(),
        counters = atomics:new(5, []),
        marks = atomics:new(Workers, [{signed, true}])
    },
    Caller = self(),
    Tag = make_ref(),
    {Pid, Ref} = spawn_monitor(fun() -> Caller ! {Tag, coordinate(Run, Workers, Caller)} end),
    receive
        {Tag, Result} ->
            _ = erlang:demonitor(Ref, [flush]),
            Result;
        {'DOWN', Ref, process, Pid, Reason} ->
            exit(Reason)
    end.

%% The process that the workers are linked to. It lives no longer than the caller.
coordinate(#run{latency = Latency, counters = Counters, deadline_ns = DeadlineNs} = Run, Count, Caller) ->
    CallerRef = erlang:monitor(process, Caller),
    lists:foreach(fun(N) -> atomics:put(Run#run.marks, N, ?IDLE) end, lists:seq(1, Count)),
    Workers = maps:from_list([
        {Ref, {N, Pid}}
     || N <- lists:seq(1, Count),
        {Pid, Ref} <- [spawn_opt(fun() -> worker(Run, N) end, [link, monitor])]
    ]),
    %% In a while, so that all workers are ready. Timers with an absolute time are set
    %% for whole milliseconds.
    StartMs = erlang:monotonic_time(millisecond) + 10,
    Start = ns(StartMs),
    maps:foreach(fun(_, {_, Pid}) -> Pid ! {?MODULE, Start} end, Workers),
    Timer = erlang:start_timer(StartMs + DeadlineNs div 1000000, self(), deadline, [{abs, true}]),
    Left = await(Workers, CallerRef, Timer),
    Ended = erlang:monotonic_time(nanosecond) - Start,
    end_late(Run, Left, CallerRef),
    ok = never_begun(Run),
    Get = fun(Field) -> atomics:get(Counters, Field) end,
    #{
        latency => Latency,
        finished => Get(?FINISHED),
        failed => Get(?FAILED),
        unfinished => Get(?UNFINISHED),
        late => Get(?LATE),
        took_ns => Ended
    }.

%% Waits until all workers have ended, or for the timer; gives those that have not.
await(Workers, _CallerRef, _Timer) when map_size(Workers) =:= 0 ->
    #{};
await(Workers, CallerRef, Timer) ->
    receive
        {'DOWN', CallerRef, process, _, _} -> exit(shutdown);
        {'DOWN', Ref, process, _, Reason} when Reason =:= normal; Reason =:= killed, Timer =:= none ->
            await(maps:remove(Ref, Workers), CallerRef, Timer);
        {'DOWN', _, process, _, Reason} ->
            exit(Reason);
        {timeout, Timer, deadline} -> Workers
    end.

%% A worker that is at its operation loses it, and is killed. The others find their
%% marks closed, or have nothing more to begin: they end on their own.
end_late(#run{marks = Marks} = Run, Workers, CallerRef) ->
    maps:foreach(
        fun(_, {N, Pid}) ->
            case atomics:exchange(Marks, N, ?CLOSED) of
                ?IDLE ->
                    ok;
                Since ->
                    unfinished(Since, Run),
                    unlink(Pid),
                    exit(Pid, kill)
            end
        end,
        Workers
    ),
    #{} = await(Workers, CallerRef, none),
    ok.

%% The operations of an open loop for which no worker was free until the deadline.
never_begun(#run{plan = {rate, _, Operations}, counters = Counters} = Run) ->
    case atomics:add_get(Counters, ?TAKEN, 1) of
        Next when Next =< Operations ->
            unfinished(intended(Next, Run), Run),
            never_begun(Run);
        _ ->
            ok
    end;
never_begun(#run{plan = back_to_back}) ->
    ok.

unfinished(Since, #run{counters = Counters, latency = Latency, deadline_ns = Deadline}) ->
    atomics:add(Counters, ?UNFINISHED, 1),
    atoll_histogram:record(max(0, Deadline - Since), Latency).

worker(Run, N) ->
    receive
        {?MODULE, Start} -> work(Run, N, Start)
    end.

work(Run, N, Start) ->
    case next(Run, Start) of
        none -> ok;
        Since -> operate(Since, Run, N, Start)
    end.

operate(Since, #run{operation = Operation, marks = Marks} = Run, N, Start) ->
    case atomics:compare_exchange(Marks, N, ?IDLE, Since) of
        ok ->
            Value = Operation(),
            Ended = since(Start),
            case atomics:compare_exchange(Marks, N, Since, ?IDLE) of
                ok ->
                    finished(Value, Ended - Since, Run),
                    work(Run, N, Start);
                ?CLOSED ->
                    ok
            end;
        ?CLOSED ->
            unfinished(Since, Run)
    end.

finished(Value, Latency, #run{counters = Counters, latency = Hist}) ->
    atomics:add(Counters, ?FINISHED, 1),
    case Value of
        error -> atomics:add(Counters, ?FAILED, 1);
        {error, _} -> atomics:add(Counters, ?FAILED, 1);
        _ -> ok
    end,
    atoll_histogram:record(Latency, Hist).

%% Waits for the next operation's start, and says since when its latency counts.
next(#run{plan = back_to_back, over_ns = Over}, Start) ->
    case since(Start) of
        Now when Now >= Over -> none;
        Now when Now >= 0 -> Now;
        _ -> sleep_until(0, Start)
    end;
next(#run{plan = {rate, _, Operations}, counters = Counters} = Run, Start) ->
    case atomics:add_get(Counters, ?TAKEN, 1) of
        Taken when Taken =< Operations ->
            Intended = intended(Taken, Run),
            case since(Start) > Intended of
                true ->
                    atomics:add(Counters, ?LATE, 1),
                    Intended;
                false ->
                    sleep_until(Intended, Start)
            end;
        _ ->
            none
    end.

%% The whole millisecond at or after the exact time.
intended(Taken, #run{plan = {rate, Rate, _}}) ->
    ns(((Taken - 1) * 1000 + Rate - 1) div Rate).

sleep_until(Since, Start) ->
    Timer = erlang:start_timer((Start + Since) div 1000000, self(), start, [{abs, true}]),
    receive
        {timeout, Timer, start} -> Since
    end.

since(Start) ->
    erlang:monotonic_time(nanosecond) - Start.

ns(Ms) ->
    Ms * 1000000.
