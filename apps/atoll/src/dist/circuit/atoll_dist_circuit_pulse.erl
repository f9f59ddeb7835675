%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Whether a circuit's path is alive: when an end should ask the other for a sign of
%% life, and when it has waited for one long enough.
%%
%% While something is under way it asks when nothing came for `probe_ms'. After that it
%% asks when nothing came for as long as the circuit had been unused, `quiet_ms' at least
%% and `idle_ms' at most: soon after data, seldom where there has been none for long, since
%% each sign goes over every node of the path. Anything that comes is a sign. The path is
%% silent when nothing came for `silent_ms' since it asked; where its round trip is long, for
%% four round trips, but two seconds at most; while what was to be sent before the question is
%% still going out, slow as it may be, that begins anew. There is one timer, set anew at most
%% when the path gets into use, and not for each frame.
-module(atoll_dist_circuit_pulse).

-export([new/2, heard/2, used/2, gone/3, measured/2, due/4, look/5]).

-export_type([pulse/0, limits/0]).

-type limits() :: #{
    probe_ms := pos_integer(),
    quiet_ms := pos_integer(),
    idle_ms := pos_integer(),
    silent_ms := pos_integer(),
    atom() => term()
}.

-record(pulse, {
    heard_at :: atoll_protocol:now_ms(),
    rtt_ms :: non_neg_integer(),
    %% When there was data last, either way.
    used_at :: atoll_protocol:now_ms(),
    %% When it asked for a sign that has not come yet.
    asked_at = none :: none | atoll_protocol:now_ms(),
    %% Bytes that are to go out before the question.
    ahead = 0 :: non_neg_integer(),
    %% For when the timer is set.
    due_at = none :: none | atoll_protocol:now_ms()
}).

-opaque pulse() :: #pulse{}.

-define(MOST_MS, 2000).

%% @doc The path has just been agreed, in one round trip of so long.
-spec new(atoll_protocol:now_ms(), non_neg_integer()) -> pulse().
new(Now, RttMs) -> #pulse{heard_at = Now, used_at = Now, rtt_ms = RttMs}.

%% @doc Something came.
-spec heard(atoll_protocol:now_ms(), pulse()) -> pulse().
heard(Now, Pulse) -> Pulse#pulse{heard_at = Now, asked_at = none}.

%% @doc Data came.
-spec used(atoll_protocol:now_ms(), pulse()) -> pulse().
used(Now, Pulse) -> Pulse#pulse{heard_at = Now, used_at = Now, asked_at = none}.

%% @doc So many bytes have gone out.
-spec gone(pos_integer(), atoll_protocol:now_ms(), pulse()) -> pulse().
gone(Bytes, Now, #pulse{asked_at = Asked, ahead = Ahead} = Pulse) when Asked =/= none, Ahead > 0 ->
    Pulse#pulse{asked_at = Now, ahead = max(0, Ahead - Bytes)};
gone(_Bytes, _Now, Pulse) ->
    Pulse.

%% @doc What was sent has taken so long to be acknowledged.
-spec measured(non_neg_integer(), pulse()) -> pulse().
measured(Ms, #pulse{rtt_ms = RttMs} = Pulse) -> Pulse#pulse{rtt_ms = max(Ms, RttMs)}.

%% @doc Whether the timer is to be set to so many milliseconds. To be asked after every
%% event, with whether something is under way.
-spec due(boolean(), limits(), atoll_protocol:now_ms(), pulse()) -> {none | pos_integer(), pulse()}.
due(IsBusy, Limits, Now, Pulse0) ->
    Pulse = noted(IsBusy, Now, Pulse0),
    Ms = patience(IsBusy, Limits, Pulse),
    case Pulse of
        #pulse{asked_at = Asked} when Asked =/= none -> {none, Pulse};
        #pulse{due_at = Due} when Due =/= none, Due =< Now + Ms -> {none, Pulse};
        #pulse{} -> {Ms, Pulse#pulse{due_at = Now + Ms}}
    end.

%% @doc The timer fired. It is to be set to so many milliseconds, or the other end is to be
%% asked too, or the path is silent. A question goes out behind so many bytes.
-spec look(boolean(), Ahead :: non_neg_integer(), limits(), atoll_protocol:now_ms(), pulse()) -> {wait | ask, pos_integer(), pulse()} | silent.
look(IsBusy, Ahead, Limits, Now, #pulse{asked_at = none, heard_at = Heard} = Pulse0) ->
    Pulse = noted(IsBusy, Now, Pulse0),
    SilentMs = silence(Limits, Pulse),
    case patience(IsBusy, Limits, Pulse) - (Now - Heard) of
        Ms when Ms =< 0 -> {ask, SilentMs, Pulse#pulse{asked_at = Now, ahead = Ahead, due_at = Now + SilentMs}};
        Ms -> {wait, Ms, Pulse#pulse{due_at = Now + Ms}}
    end;
look(_IsBusy, _Ahead, Limits, Now, #pulse{asked_at = Asked} = Pulse) ->
    case silence(Limits, Pulse) - (Now - Asked) of
        Ms when Ms =< 0 -> silent;
        Ms -> {wait, Ms, Pulse#pulse{due_at = Now + Ms}}
    end.

noted(true, Now, Pulse) -> Pulse#pulse{used_at = Now};
noted(false, _Now, Pulse) -> Pulse.

%% How long nothing need come.
patience(true, #{probe_ms := Ms}, _Pulse) ->
    Ms;
patience(false, #{quiet_ms := Least, idle_ms := Most}, #pulse{heard_at = Heard, used_at = Used}) ->
    min(Most, max(Least, Heard - Used)).

%% How long the path may be silent when a sign is waited for.
%% What is measured may be a busy moment, so it is believed so far and no further.
silence(#{silent_ms := Ms}, #pulse{rtt_ms = RttMs}) -> max(Ms, min(4 * RttMs, ?MOST_MS)).
