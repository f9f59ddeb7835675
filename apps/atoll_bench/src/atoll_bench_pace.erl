%% SPDX-License-Identifier: Apache-2.0
%% @doc When the workers of a node begin their operations in a load, so that they keep what they
%% know from one operation to the next and may be killed.
%%
%% In an open loop operations have their intended starts at a fixed rate, whatever becomes of them,
%% and a worker that is free takes the next one, as in {@link atoll_bench_load}. Latency counts from
%% the intended start. One that no worker has taken a quarter of a second after it is shed: so what
%% waits is bounded, and a system that does not keep up is told from one that does by what it gets
%% done.
%%
%% In a closed loop, which is the original's, a worker begins when its last operation has ended: so
%% what is offered is what is done, and a system that does not keep up is told by how much that is.
%%
%% Times are nanoseconds of the monotonic clock.
-module(atoll_bench_pace).

-export([new/1, next/1, in_window/2, decide/3, offered/2]).

-export_type([pace/0, plan/0, rate/0, decision/0]).

-type rate() :: pos_integer() | closed.
%% Operations in a second; or one after the other.

-type plan() :: #{
    rate := rate(),
    start_ns := integer(),
    %% The window that is measured, and the end of the load, since the start.
    from_ms := non_neg_integer(),
    until_ms := pos_integer()
}.

-opaque pace() :: {plan(), atomics:atomics_ref()}.

-type decision() ::
    {'begin', IntendedNs :: integer(), in | out}
    | {shed, in | out}
    | over.

-define(PATIENCE_NS, 250000000).

%% How many were taken, and how many of them in the window.
-define(TAKEN, 1).
-define(IN, 2).

%% @doc A load that begins at its start.
-spec new(plan()) -> pace().
new(Plan) -> {Plan, atomics:new(2, [])}.

%% @doc The next operation, when its time has come.
-spec next(pace()) -> decision().
next({#{start_ns := Start} = Plan, Counts}) ->
    Number = atomics:add_get(Counts, ?TAKEN, 1),
    case decide(Number, max(Start, erlang:monotonic_time(nanosecond)), Plan) of
        {'begin', Intended, In} = Decision ->
            ok = wait(Intended),
            _ = [ok = atomics:add(Counts, ?IN, 1) || In =:= in],
            Decision;
        Decision ->
            Decision
    end.

%% Timers are set for whole milliseconds, which the intended starts are.
wait(Intended) ->
    case erlang:monotonic_time(nanosecond) < Intended of
        true ->
            Timer = erlang:start_timer(Intended div 1000000, self(), ?MODULE, [{abs, true}]),
            receive
                {timeout, Timer, ?MODULE} -> ok
            end;
        false ->
            ok
    end.

%% @doc What becomes of the operation with that number, which is taken now. Pure.
-spec decide(pos_integer(), NowNs :: integer(), plan()) -> decision().
decide(_Number, Now, #{rate := closed, until_ms := Until} = Plan) ->
    case Now < at(Until, Plan) of
        true -> {'begin', Now, place(Now, Plan)};
        false -> over
    end;
decide(Number, Now, #{until_ms := Until} = Plan) ->
    Ms = intended_ms(Number, Plan),
    Intended = at(Ms, Plan),
    if
        Ms >= Until -> over;
        Now - Intended > ?PATIENCE_NS -> {shed, place(Intended, Plan)};
        true -> {'begin', Intended, place(Intended, Plan)}
    end.

%% The whole millisecond at or after the exact time.
intended_ms(Number, #{rate := Rate}) -> ((Number - 1) * 1000 + Rate - 1) div Rate.

at(Ms, #{start_ns := Start}) -> Start + Ms * 1000000.

place(Ns, Plan) ->
    case is_within(Ns, Plan) of true -> in; false -> out end.

is_within(Ns, #{from_ms := From, until_ms := Until} = Plan) ->
    Ns >= at(From, Plan) andalso Ns < at(Until, Plan).

%% @doc Whether a time is within the window.
-spec in_window(Ns :: integer(), pace()) -> boolean().
in_window(Ns, {Plan, _}) -> is_within(Ns, Plan).

%% @doc How many operations were to begin in the window until so long after the start; in a closed
%% loop how many have.
-spec offered(pace(), ElapsedMs :: non_neg_integer()) -> non_neg_integer().
offered({#{rate := closed}, Counts}, _Elapsed) ->
    atomics:get(Counts, ?IN);
offered({#{rate := Rate, from_ms := From, until_ms := Until}, _}, Elapsed) ->
    max(0, before(min(Until, Elapsed), Rate) - before(From, Rate)).

%% Those with (N - 1) * 1000 / Rate rounded up to less than that.
before(0, _Rate) -> 0;
before(Ms, Rate) -> (Ms - 1) * Rate div 1000 + 1.
