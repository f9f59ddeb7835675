%% @doc When the workers of a node begin their operations in DE-Bench: an open loop, as that
%% of {@link atoll_bench_load}, whose workers keep what they know from one operation to the
%% next and may be killed.
%%
%% Operations have their intended starts at a fixed rate, whatever becomes of them, and a
%% worker that is free takes the next one. Latency counts from the intended start. One that
%% no worker has taken a quarter of a second after it is shed: so what waits is bounded, and a system
%% that does not keep up is told from one that does by what it gets done. Times are
%% nanoseconds of the monotonic clock.
-module(debench_pace).

-export([new/1, next/1, in_window/2, decide/3, offered/1]).

-export_type([pace/0, plan/0, decision/0]).

-type plan() :: #{
    %% Operations in a second.
    rate := pos_integer(),
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

%% @doc A load that begins at its start.
-spec new(plan()) -> pace().
new(Plan) -> {Plan, atomics:new(1, [])}.

%% @doc The next operation, when its time has come.
-spec next(pace()) -> decision().
next({Plan, Taken}) ->
    Number = atomics:add_get(Taken, 1, 1),
    case decide(Number, erlang:monotonic_time(nanosecond), Plan) of
        {'begin', Intended, _} = Decision ->
            ok = wait(Intended),
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
decide(Number, Now, #{until_ms := Until} = Plan) ->
    Ms = intended_ms(Number, Plan),
    Intended = at(Ms, Plan),
    if
        Ms >= Until -> over;
        Now - Intended > ?PATIENCE_NS -> {shed, place(Ms, Plan)};
        true -> {'begin', Intended, place(Ms, Plan)}
    end.

%% The whole millisecond at or after the exact time.
intended_ms(Number, #{rate := Rate}) -> ((Number - 1) * 1000 + Rate - 1) div Rate.

at(Ms, #{start_ns := Start}) -> Start + Ms * 1000000.

place(Ms, #{from_ms := From, until_ms := Until}) when Ms >= From, Ms < Until -> in;
place(_Ms, _Plan) -> out.

%% @doc Whether a time is within the window.
-spec in_window(Ns :: integer(), pace()) -> boolean().
in_window(Ns, {#{from_ms := From, until_ms := Until} = Plan, _}) ->
    Ns >= at(From, Plan) andalso Ns < at(Until, Plan).

%% @doc How many operations are to begin in the window.
-spec offered(plan()) -> non_neg_integer().
offered(#{rate := Rate, from_ms := From, until_ms := Until}) ->
    before(Until, Rate) - before(From, Rate).

%% Those with (N - 1) * 1000 / Rate rounded up to less than that.
before(0, _Rate) -> 0;
before(Ms, Rate) -> (Ms - 1) * Rate div 1000 + 1.
