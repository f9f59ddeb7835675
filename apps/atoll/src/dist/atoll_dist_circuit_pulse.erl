%% @doc Whether a circuit's path is alive: when an end should ask the other for a sign of
%% life, and when it has waited for one long enough.
%%
%% While something is under way it asks when nothing came for `probe_ms', otherwise when
%% nothing came for `idle_ms'. Anything that comes is a sign. The path is silent when
%% nothing came for `silent_ms' since it asked; on a path whose round trip is long, for four
%% round trips and two seconds at most. There is one timer, set anew at most when something
%% gets under way, and not for each frame.
-module(atoll_dist_circuit_pulse).

-export([new/2, heard/2, busy/2, look/4]).

-export_type([pulse/0, limits/0]).

-type limits() :: #{
    probe_ms := pos_integer(),
    idle_ms := pos_integer(),
    silent_ms := pos_integer(),
    atom() => term()
}.

-record(pulse, {
    heard_at :: atoll_protocol:now_ms(),
    rtt_ms :: non_neg_integer(),
    %% When it asked for a sign that has not come yet.
    asked_at = none :: none | atoll_protocol:now_ms(),
    %% Whether the timer that runs is short, since something is under way.
    is_busy = false :: boolean()
}).

-opaque pulse() :: #pulse{}.

-define(MOST_MS, 2000).

%% @doc The path has just been agreed, in one round trip of so long. The timer is to be set
%% to `idle_ms'.
-spec new(atoll_protocol:now_ms(), non_neg_integer()) -> pulse().
new(Now, RttMs) -> #pulse{heard_at = Now, rtt_ms = RttMs}.

%% @doc Something came.
-spec heard(atoll_protocol:now_ms(), pulse()) -> pulse().
heard(Now, Pulse) -> Pulse#pulse{heard_at = Now, asked_at = none}.

%% @doc Something is under way: whether the timer is to be set to so many milliseconds.
-spec busy(limits(), pulse()) -> {pos_integer(), pulse()} | none.
busy(#{probe_ms := Ms}, #pulse{is_busy = false, asked_at = none} = Pulse) -> {Ms, Pulse#pulse{is_busy = true}};
busy(_Limits, _Pulse) -> none.

%% @doc The timer fired. It is to be set to so many milliseconds, or the other end is to be
%% asked too, or the path is silent.
-spec look(boolean(), limits(), atoll_protocol:now_ms(), pulse()) -> {wait | ask, pos_integer(), pulse()} | silent.
look(IsBusy, Limits, Now, #pulse{asked_at = none, heard_at = Heard} = Pulse) ->
    #{probe_ms := Busy, idle_ms := Idle, silent_ms := SilentMs} = Limits,
    Limit = case IsBusy of true -> Busy; false -> Idle end,
    case Now - Heard of
        Ms when Ms >= Limit -> {ask, patience(SilentMs, Pulse), Pulse#pulse{asked_at = Now, is_busy = IsBusy}};
        Ms -> {wait, Limit - Ms, Pulse#pulse{is_busy = IsBusy}}
    end;
look(_IsBusy, #{silent_ms := SilentMs}, Now, #pulse{asked_at = Asked} = Pulse) ->
    Most = patience(SilentMs, Pulse),
    case Now - Asked of
        Ms when Ms >= Most -> silent;
        Ms -> {wait, Most - Ms, Pulse}
    end.

%% What is measured may be a busy moment, so it is believed so far and no further.
patience(SilentMs, #pulse{rtt_ms = RttMs}) -> max(SilentMs, min(4 * RttMs, ?MOST_MS)).
