%% SPDX-License-Identifier: Apache-2.0
%% @doc When a node is traced, and when it rests. Pure: how much was seen and how much waits comes in with the time, in
%% microseconds, and comes out what is to be done.
%%
%% Below `limit' messages a second it traces all the time. Above, it traces for a part of each period of 200 ms, so long that
%% about as many are seen as the limit says, and a hundredth at least. Where in the period that is goes on by the golden ratio, so that
%% nothing which comes in a rhythm of its own falls into all windows or into none. When more than `backlog' wait to be counted it stops at
%% once, whatever else. It traces all the time again when half of the limit has been enough for a second.
-module(atoll_flow_governor).

-export([new/2, limited/2, step/3, due/1, is_open/1, is_whole/1, traced/2]).

-export_type([governor/0, limits/0, event/0, action/0]).

-type limits() :: #{limit := pos_integer(), backlog := pos_integer()}.

-type event() ::
    %% So many were counted since the last time, and so many wait.
    {seen, non_neg_integer(), Waiting :: non_neg_integer()}
    %% What was under way when tracing was stopped has come.
    | drained.

%% `open' begins to trace, `close' stops: all that was traced until then is to be counted before `drained' is said.
-type action() :: open | close | none.

-record(governor, {
    limits :: limits(),
    phase = open :: open | draining | rests | waits,
    %% Of a period; 1.0 is all of it.
    share = 1.0 :: float(),
    %% When this period and its window began.
    period :: integer(),
    opened :: integer(),
    %% When the next one is to begin, and which one that is.
    opens = 0 :: integer(),
    turn = 0 :: non_neg_integer(),
    %% Seen in this window, or in this period where there is no other.
    seen = 0 :: non_neg_integer(),
    %% Periods in a row in which little was seen.
    calm = 0 :: non_neg_integer(),
    %% Microseconds that were traced until this window began, and since when.
    traced = 0 :: non_neg_integer(),
    begun :: integer()
}).

-opaque governor() :: #governor{}.

-define(PERIOD_US, 200000).
-define(FEWEST, 0.01).
-define(CALM, 10).
-define(GOLDEN, 0.6180339887498949).

%% @doc It traces.
-spec new(limits(), Now :: integer()) -> governor().
new(Limits, Now) -> #governor{limits = Limits, period = Now, opened = Now, begun = Now}.

%% @doc With other limits from now on.
-spec limited(limits(), governor()) -> governor().
limited(Limits, Governor) -> Governor#governor{limits = Limits}.

%% @doc Something has happened, or it is {@link due/1}.
-spec step(event(), Now :: integer(), governor()) -> {action(), governor()}.
step(drained, Now, #governor{phase = draining} = Is) -> rested(Now, Is#governor{phase = rests});
step(drained, _, Is) -> {none, Is};
step({seen, N, Waiting}, Now, #governor{phase = open, seen = Seen} = Is) -> watched(Waiting, Now, Is#governor{seen = Seen + N});
step({seen, N, _}, Now, #governor{phase = draining, seen = Seen} = Is) ->
    %% It had been traced in the window.
    rested(Now, Is#governor{seen = Seen + N});
step({seen, _, _}, Now, Is) ->
    rested(Now, Is).

watched(Waiting, Now, #governor{limits = #{backlog := Backlog}, share = Share} = Is) when Waiting > Backlog ->
    closed(Now, Is#governor{share = max(?FEWEST, min(Share, open_share(Now, Is)) / 2), calm = 0});
watched(_, Now, #governor{limits = #{limit := Limit}, share = 1.0, period = Period, seen = Seen} = Is) when Now - Period >= ?PERIOD_US ->
    case Seen * 1000000 / (Now - Period) of
        Rate when Rate > Limit -> closed(Now, Is#governor{share = max(?FEWEST, Limit / Rate)});
        _ -> {none, Is#governor{period = Now, seen = 0}}
    end;
watched(_, Now, #governor{share = Share, opened = Opened} = Is) when Share < 1.0, Now - Opened >= Share * ?PERIOD_US ->
    closed(Now, Is);
watched(_, _, Is) ->
    {none, Is}.

%% What of a period it has been open, for a window that was cut short.
open_share(Now, #governor{opened = Opened}) -> min(1.0, (Now - Opened) / ?PERIOD_US).

closed(Now, #governor{opened = Opened, traced = Traced} = Is) ->
    {close, Is#governor{phase = draining, traced = Traced + Now - Opened}}.

%% The window before has said how much there is.
rested(Now, #governor{phase = rests, period = Period, limits = #{limit := Limit}, share = Share, seen = Seen, calm = Calm} = Is) when Now - Period >= ?PERIOD_US ->
    Rate = Seen / (Share * ?PERIOD_US) * 1000000,
    Quiet = case Rate * 2 < Limit of true -> Calm + 1; false -> 0 end,
    Next = case Quiet >= ?CALM of
        true -> 1.0;
        %% Half of the way, so that one burst is not all that counts.
        false -> max(?FEWEST, min(0.99, (Share + Limit / max(1.0, Rate)) / 2))
    end,
    Turn = Is#governor.turn + 1,
    Part = Turn * ?GOLDEN - trunc(Turn * ?GOLDEN),
    %% Anywhere in the period, over its end too: so each moment of it is in as many windows.
    {Begins, Opens} = case Next of
        1.0 -> {Now, Now};
        _ when Now - Period < 2 * ?PERIOD_US -> {Period + ?PERIOD_US, Period + ?PERIOD_US + trunc(Part * ?PERIOD_US)};
        _ -> {Now, Now + trunc(Part * ?PERIOD_US)}
    end,
    rested(Now, Is#governor{
        phase = waits, period = Begins, opens = Opens, turn = Turn, seen = 0, share = Next,
        calm = case Next of 1.0 -> 0; _ -> Quiet end
    });
rested(Now, #governor{phase = waits, opens = Opens} = Is) when Now >= Opens ->
    {open, Is#governor{phase = open, opened = Now}};
rested(_, Is) ->
    {none, Is}.

%% @doc When it is to be asked again, though nothing was seen.
-spec due(governor()) -> Time :: integer() | none.
due(#governor{phase = open, share = 1.0, period = Period}) -> Period + ?PERIOD_US;
due(#governor{phase = open, share = Share, opened = Opened}) -> Opened + ceil(Share * ?PERIOD_US);
due(#governor{phase = rests, period = Period}) -> Period + ?PERIOD_US;
due(#governor{phase = waits, opens = Opens}) -> Opens;
due(#governor{phase = draining}) -> none.

%% @doc Whether it traces.
-spec is_open(governor()) -> boolean().
is_open(#governor{phase = Phase}) -> Phase =:= open.

%% @doc Whether it traces all the time.
-spec is_whole(governor()) -> boolean().
is_whole(#governor{share = Share, phase = Phase}) -> Share =:= 1.0 andalso Phase =:= open.

%% @doc How many microseconds were traced since it began, and how many there were.
-spec traced(Now :: integer(), governor()) -> {Traced :: non_neg_integer(), All :: non_neg_integer()}.
traced(Now, #governor{begun = Begun, traced = Traced, opened = Opened, phase = Phase}) ->
    Open = case Phase of open -> Now - Opened; _ -> 0 end,
    {Traced + Open, Now - Begun}.
