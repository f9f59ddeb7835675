%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Which lane is dead, and which needs a sign of life.
%%
%% Whatever arrives on any lane says that the channel lives, and that is what the VM's
%% distribution is told ({@link stat/1}). It does not say that each lane lives. So each
%% lane is looked at four times in the shorter of both ends' `net_ticktime': one over
%% which nothing was written gets a tick, and one that was silent for longer than the
%% longer of both, and a quarter, is dead, though all others are busy. Ends with unequal
%% ticktimes so never take each other for dead; nor when both change theirs, one way, each
%% when it likes.
%%
%% A lane that this end does not read, because it is held at a fence, is not silent;
%% and when it was this end that stood still, no lane is blamed for that time. What is
%% looked at are counters: a dead lane is found at most a quarter of the shorter ticktime
%% late, and a lane that lives is never found dead as long as whatever it carries comes
%% in pieces that take less than the longer ticktime.
-module(atoll_dist_tick).

-export([ms/1, new/4, change/4, period/1, check/3, stat/1]).

-export_type([tick/0, sample/0, reason/0]).

%% Of one lane: how often something was read and written so far (bytes or pieces), what
%% waits to be written, and whether this end does not read it.
-type sample() :: {
    Read :: non_neg_integer(), Written :: non_neg_integer(), Waiting :: non_neg_integer(), IsHeld :: boolean()
}.

-type reason() :: {lane_silent, atoll_dist_lanes:lane()}.

-record(lane, {
    read = 0 :: non_neg_integer(),
    written = 0 :: non_neg_integer(),
    %% When something was last read, as far as is known.
    heard :: integer()
}).

-record(tick, {
    period :: pos_integer(),
    limit :: pos_integer(),
    %% When the lanes were last looked at.
    checked :: integer(),
    lanes :: [#lane{}, ...]
}).

-opaque tick() :: #tick{}.

%% @doc What kernel says of the node's ticktime, as it is or will soon be.
-spec ms(Seconds | {ongoing_change_to, Seconds}) -> pos_integer() when Seconds :: pos_integer().
ms({ongoing_change_to, Seconds}) when is_integer(Seconds) -> Seconds * 1000;
ms(Seconds) when is_integer(Seconds) -> Seconds * 1000.

%% @doc So many lanes, both ends' ticktimes, and the time, all in milliseconds.
-spec new(atoll_dist_lanes:count(), Own :: pos_integer(), Peer :: pos_integer(), Now :: integer()) -> tick().
new(N, OwnMs, PeerMs, Now) ->
    #tick{
        period = max(1, min(OwnMs, PeerMs) div 4),
        limit = max(OwnMs, PeerMs) * 5 div 4,
        checked = Now,
        lanes = lists:duplicate(N, #lane{heard = Now})
    }.

%% @doc The ticktimes have changed; silence is counted from now on.
-spec change(Own :: pos_integer(), Peer :: pos_integer(), Now :: integer(), tick()) -> tick().
change(OwnMs, PeerMs, Now, #tick{lanes = Lanes}) ->
    (new(length(Lanes), OwnMs, PeerMs, Now))#tick{lanes = [Lane#lane{heard = Now} || Lane <- Lanes]}.

%% @doc How often the lanes want to be looked at.
-spec period(tick()) -> pos_integer().
period(#tick{period = Period}) -> Period.

%% @doc Looks at all lanes: those that need a tick, or the one that was silent longest.
-spec check(Now :: integer(), [sample(), ...], tick()) ->
    {ok, Ticks :: [atoll_dist_lanes:lane()], tick()} | {dead, reason(), SilentMs :: pos_integer()}.
check(Now, Samples, #tick{period = Period, limit = Limit, checked = Checked, lanes = Lanes0} = Tick) ->
    Late = max(0, Now - Checked - 2 * Period),
    {Lanes, Ticks} = looked_at(Now, Late, Samples, Lanes0, 0),
    Silent = [{Now - Heard, -I} || {I, #lane{heard = Heard}} <- numbered(Lanes), Now - Heard > Limit],
    case Silent of
        [] ->
            {ok, Ticks, Tick#tick{checked = Now, lanes = Lanes}};
        _ ->
            {SilentMs, I} = lists:max(Silent),
            {dead, {lane_silent, -I}, SilentMs}
    end.

looked_at(_Now, _Late, [], [], _I) ->
    {[], []};
looked_at(Now, Late, [{Read, Written, Waiting, IsHeld} | Samples], [Lane | Lanes], I) ->
    #lane{read = WasRead, written = WasWritten, heard = WasHeard} = Lane,
    Heard =
        case IsHeld orelse Read =/= WasRead of
            true -> Now;
            false -> min(Now, WasHeard + Late)
        end,
    {Rest, Ticks} = looked_at(Now, Late, Samples, Lanes, I + 1),
    Next = Lane#lane{read = Read, written = Written, heard = Heard},
    case Written =:= WasWritten andalso Waiting =:= 0 of
        true -> {[Next | Rest], [I | Ticks]};
        false -> {[Next | Rest], Ticks}
    end.

numbered(Lanes) -> lists:zip(lists:seq(0, length(Lanes) - 1), Lanes).

%% @doc What the VM's distribution asks of a connection, for all lanes together.
-spec stat([sample()]) ->
    {ok, Read :: non_neg_integer(), Written :: non_neg_integer(), Waiting :: non_neg_integer()}.
stat(Samples) ->
    lists:foldl(
        fun({Read, Written, Waiting, _}, {ok, R, Wr, Wa}) -> {ok, R + Read, Wr + Written, Wa + Waiting} end,
        {ok, 0, 0, 0},
        Samples
    ).
