%% SPDX-License-Identifier: Apache-2.0
%% @doc What a node has sent to which others, of which kind and by whom. Pure.
%%
%% While all is traced, counts are exact. While only windows of the time are, each window's counts are taken for the time
%% from one window's end to the next one's, by what the connection with that node has carried: as many messages to a packet
%% as in the window, and as many of their bytes to one of its bytes. So it does not matter that what is traced is slower than what is not,
%% nor that messages are large at other times. Where nobody knows what a connection has carried, the time is taken in its place.
-module(atoll_flow_counts).

-export([new/1, add/6, opened/2, closed/2, folded/1, whole/2, totals/1, estimated/1]).

-export_type([counts/0, key/0, kind/0, meters/0, way/0]).

-type kind() :: message | call | monitor | link | exit.
%% The groups of this node when it was sent, and the first of them in which the other one was, too.
-type way() :: {Own :: [Group :: term()], Shared :: {ok, Group :: term()} | none}.
%% By whom: a registered name, a module, or `any' where that was not asked.
-type key() :: {Peer :: node(), way(), kind(), By :: atom()}.

%% What each connection has carried at a moment; and the moment, for those of which nobody knows. Where packets are not known, bytes stand
%% for both.
-type meters() :: {Time :: integer(), #{node() => {Packets :: non_neg_integer(), Bytes :: non_neg_integer()}}}.

-record(counts, {
    total = #{} :: #{key() => {number(), number()}},
    %% `all' is traced; or this window is, or the one that was closed last.
    now = all :: all | window,
    window = #{} :: sums(),
    opened :: meters(),
    closed :: meters(),
    %% Until when the counts of each node are complete, and of those that are not in it.
    complete = #{} :: #{node() => meter()},
    begun :: meters(),
    %% Of each node, the last window in which something was sent there, and how much its connection has carried in it.
    rates = #{} :: #{node() => {[{key(), {pos_integer(), non_neg_integer()}}], meter()}},
    %% How many of the messages were taken from windows, and not seen.
    estimated = 0 :: number()
}).

-opaque counts() :: #counts{}.

-type sums() :: #{key() => {pos_integer(), non_neg_integer()}}.
-type meter() :: {carried | time | none, Packets :: integer(), Bytes :: integer()}.

%% What is beyond is counted as sent by `others'.
-define(MOST, 5000).

%% @doc Nothing was counted, and all is traced.
-spec new(meters()) -> counts().
new(Meters) -> #counts{opened = Meters, closed = Meters, begun = Meters}.

%% @doc A message was seen, with its size in bytes.
-spec add(Peer :: node(), way(), kind(), By :: atom(), Size :: non_neg_integer(), counts()) -> counts().
add(Peer, Way, Kind, By, Size, #counts{now = all, total = Total} = Counts) ->
    Counts#counts{total = summed(key({Peer, Way, Kind, By}, Total), 1, Size, Total)};
add(Peer, Way, Kind, By, Size, #counts{now = window, window = Window} = Counts) ->
    Counts#counts{window = summed(key({Peer, Way, Kind, By}, Window), 1, Size, Window)}.

key(Key, Known) when map_size(Known) < ?MOST; is_map_key(Key, Known) -> Key;
key({Peer, Way, Kind, _}, _) -> {Peer, Way, Kind, others}.

summed(Key, Count, Size, Sums) ->
    case Sums of
        #{Key := {C, S}} -> Sums#{Key := {C + Count, S + Size}};
        #{} -> Sums#{Key => {Count, Size}}
    end.

%% @doc A window begins.
-spec opened(meters(), counts()) -> counts().
opened(Meters, Counts) -> Counts#counts{now = window, window = #{}, opened = Meters}.

%% @doc Tracing has stopped, and what was traced may still come. Where all was traced, what was counted is complete.
-spec closed(meters(), counts()) -> counts().
closed(Meters, #counts{now = all} = Counts) -> Counts#counts{closed = Meters, opened = Meters, complete = #{}, begun = Meters, rates = #{}};
closed(Meters, Counts) -> Counts#counts{closed = Meters}.

%% @doc All that was traced in this window has come.
-spec folded(counts()) -> counts().
folded(#counts{now = all} = Counts) -> Counts;
folded(#counts{closed = Closed} = Counts) -> taken_for(Closed, Counts).

%% @doc All is traced from now on. What was sent since the last window is taken from it.
-spec whole(meters(), counts()) -> counts().
whole(Meters, #counts{now = window} = Counts) -> (taken_for(Meters, Counts#counts{window = #{}}))#counts{now = all};
whole(_, Counts) -> Counts.

%% The window, for all the time until then since the counts of a node were complete. Of a node to which nothing was sent in it, by what was
%% carried, what was sent between two windows is taken from the last window in which something was.
taken_for(Until, #counts{window = Window, total = Total, opened = Opened, closed = Closed, complete = Complete, begun = Begun, rates = Rates0, estimated = Estimated} = Counts) ->
    ByPeer = maps:groups_from_list(fun({{Peer, _, _, _}, _}) -> Peer end, maps:to_list(Window)),
    New = maps:map(fun(Peer, Sums) -> {Sums, span(meter(Peer, Opened, Closed), meter(Peer, Closed, Opened))} end, ByPeer),
    Rates = maps:merge(maps:filter(fun(_, {_, Span}) -> element(1, Span) =:= carried end, Rates0), New),
    Factors = fun(Peer, {_, Span}) -> factors(Span, span(maps:get(Peer, Complete, meter(Peer, Begun, Closed)), meter(Peer, Until, Closed)), is_map_key(Peer, New)) end,
    Taken = [{Key, Count * OfPackets, Size * OfBytes, Count * OfPackets - case is_map_key(Peer, New) of true -> Count; false -> 0 end}
             || {Peer, {Sums, _} = Rate} <- maps:to_list(Rates), {OfPackets, OfBytes} <- [Factors(Peer, Rate)], OfPackets > 0, {Key, {Count, Size}} <- Sums],
    Counts#counts{
        window = #{},
        rates = Rates,
        total = lists:foldl(fun({Key, Count, Size, _}, Sums) -> summed(Key, Count, Size, Sums) end, Total, Taken),
        estimated = Estimated + lists:sum([max(0, Unseen) || {_, _, _, Unseen} <- Taken]),
        complete = maps:merge(Complete, maps:map(fun(Peer, _) -> meter(Peer, Until, Closed) end, Rates))
    }.

span({Unit, Packets0, Bytes0}, {Unit, Packets, Bytes}) when Packets > Packets0 -> {Unit, Packets - Packets0, max(1, Bytes - Bytes0)};
span(_, _) -> {none, 0, 0}.

%% A connection that is a new one counts from 0 again: then a window is what it is.
factors({Unit, Traced, Bytes}, {Unit, All, AllBytes}, IsNew) when Unit =/= none, All > Traced; Unit =/= none, not IsNew -> {All / Traced, AllBytes / Bytes};
factors(_, _, true) -> {1, 1};
factors(_, _, false) -> {0, 0}.

%% As it is known at the other moment too.
meter(Peer, {Time, Known}, {_, Other}) ->
    case {Known, Other} of
        {#{Peer := {Packets, Bytes}}, #{Peer := _}} -> {carried, Packets, Bytes};
        {#{}, #{}} -> {time, Time, Time}
    end.

%% @doc How many of the messages were not seen, but taken from windows.
-spec estimated(counts()) -> number().
estimated(#counts{estimated = Estimated}) -> Estimated.

%% @doc All that was sent, as far as it is known: whole numbers as long as all was traced.
-spec totals(counts()) -> [{key(), Count :: number(), Bytes :: number()}].
totals(#counts{total = Total}) -> [{Key, Count, Bytes} || {Key, {Count, Bytes}} <- maps:to_list(Total)].
