%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The fence: how a packet without a sender keeps its place among all others
%% though they come over several lanes.
%%
%% The writing end puts the marker `{open, K}' on every lane; what is behind the fence
%% goes over the first lane, any number of packets; `{close, K}' on the first lane ends
%% it. The reading end holds back what comes after `{open, K}' on a lane till all lanes
%% are there, then delivers what is behind the fence, and at `{close, K}' lets all lanes
%% go on. So everything written before a fence is delivered before what is behind it,
%% and everything written after it after it; and each lane keeps its order.
%%
%% No lane waits for a packet that is written behind a waiting lane's: all markers of a
%% fence are written before anything after it. So a fence ends when every lane has
%% carried what was on it. The writing end must not leave a fence open when it has
%% nothing more to write for now ({@link close/1}); the reading end stops reading a lane
%% that is held ({@link is_held/2}), so that what it holds ({@link held/1}) is never
%% more than what it had read at that moment. With one lane nothing is ever marked.
%%
%% An end that hears markers out of order says so, for its connection is of no use.
-module(atoll_dist_fence).

%% The writing end.
-export([writer/1, put/2, close/1, fences/1]).
%% The reading end.
-export([reader/1, arrive/3, is_held/2, held/1]).

-export_type([writer/0, reader/0, serial/0, mark/0, before/0, segment/0, reason/0]).

%% The number of a fence; it comes round again.
-type serial() :: 0..16#FFFFFFFF.

-type mark() :: {open, serial()} | {close, serial()}.

%% What has to be written before a packet: nothing, or `open' on every lane, or `close'
%% on the first.
-type before() :: none | mark().

-record(writer, {
    n :: atoll_dist_lanes:count(),
    number = 0 :: serial(),
    is_open = false :: boolean(),
    %% How many there were, and what was behind them.
    fences = 0 :: non_neg_integer(),
    packets = 0 :: non_neg_integer()
}).

-opaque writer() :: #writer{}.

%% What comes over a lane, in order.
-type segment() :: {packets, [binary(), ...]} | mark().

-type reason() :: {fence_out_of_order, atoll_dist_lanes:lane(), mark()}.

-record(reader, {
    n :: atoll_dist_lanes:count(),
    %% The fence that is next, or that is being waited for or delivered.
    number = 1 :: serial(),
    %% Waiting for all lanes, or delivering what is behind the fence.
    phase = wait :: wait | deliver,
    %% The lanes that are at the fence, each with what came after it: pieces, the
    %% latest first.
    held = #{} :: #{atoll_dist_lanes:lane() => [[segment()]]},
    %% How many bytes of packets that is.
    bytes = 0 :: non_neg_integer()
}).

-opaque reader() :: #reader{}.

-define(FIRST, 0).
-define(NEXT(K), ((K + 1) band 16#FFFFFFFF)).

%% @doc The writing end of so many lanes.
-spec writer(atoll_dist_lanes:count()) -> writer().
writer(N) -> #writer{n = N}.

%% @doc What has to be written before a packet that takes this way, and which lane it
%% takes. Packets without a sender in a row share a fence.
-spec put(atoll_dist_lanes:lane() | fence, writer()) -> {before(), atoll_dist_lanes:lane(), writer()}.
put(fence, #writer{n = 1} = Writer) ->
    {none, ?FIRST, Writer};
put(fence, #writer{is_open = true, packets = Packets} = Writer) ->
    {none, ?FIRST, Writer#writer{packets = Packets + 1}};
put(fence, #writer{number = Before, fences = Fences, packets = Packets} = Writer) ->
    K = ?NEXT(Before),
    {{open, K}, ?FIRST, Writer#writer{
        number = K, is_open = true, fences = Fences + 1, packets = Packets + 1
    }};
put(Lane, #writer{is_open = false} = Writer) ->
    {none, Lane, Writer};
put(Lane, #writer{number = K} = Writer) ->
    {{close, K}, Lane, Writer#writer{is_open = false}}.

%% @doc Nothing more is to be written for now.
-spec close(writer()) -> {before(), writer()}.
close(#writer{is_open = false} = Writer) -> {none, Writer};
close(#writer{number = K} = Writer) -> {{close, K}, Writer#writer{is_open = false}}.

%% @doc How many fences there were, and how many packets were behind them.
-spec fences(writer()) -> {non_neg_integer(), non_neg_integer()}.
fences(#writer{fences = Fences, packets = Packets}) -> {Fences, Packets}.

%% @doc The reading end of so many lanes.
-spec reader(atoll_dist_lanes:count()) -> reader().
reader(N) -> #reader{n = N}.

%% @doc Something came over a lane: the packets that can be delivered now, in order.
-spec arrive(atoll_dist_lanes:lane(), [segment()], reader()) ->
    {ok, [[binary(), ...]], reader()} | {error, reason()}.
%% Almost everything that ever comes.
arrive(_Lane, [{packets, Packets}], #reader{held = Held} = Reader) when map_size(Held) =:= 0 ->
    {ok, [Packets], Reader};
arrive(Lane, Segments, #reader{held = Held} = Reader) ->
    case Held of
        #{Lane := Pieces} -> hold(Lane, Segments, Pieces, Reader);
        #{} -> run([{Lane, Segments}], [], Reader)
    end.

hold(?FIRST, Segments, _, #reader{phase = deliver} = Reader) ->
    run([{?FIRST, Segments}], [], Reader);
hold(Lane, Segments, Pieces, #reader{held = Held, bytes = Bytes} = Reader) ->
    {ok, [], Reader#reader{held = Held#{Lane := [Segments | Pieces]}, bytes = Bytes + bytes(Segments)}}.

%% Lanes with what came over them, worked off one after the other; delivered so far,
%% the latest first.
run([{_, []} | Rest], Out, Reader) ->
    run(Rest, Out, Reader);
run([{Lane, [{packets, Packets} | Segments]} | Rest], Out, Reader) ->
    run([{Lane, Segments} | Rest], [Packets | Out], Reader);
run([{Lane, [{open, K} | Segments]} | Rest], Out, #reader{number = K, phase = wait} = Reader) ->
    #reader{n = N, held = Held0, bytes = Bytes} = Reader,
    Held = Held0#{Lane => [Segments]},
    Stopped = Reader#reader{held = Held, bytes = Bytes + bytes(Segments)},
    case map_size(Held) of
        N -> behind(Rest, Out, Stopped);
        _ -> run(Rest, Out, Stopped)
    end;
run([{?FIRST, [{close, K} | Segments]} | Rest], Out, #reader{number = K, phase = deliver} = Reader) ->
    #reader{held = Held} = Reader,
    Free = [{Lane, joined(Pieces)} || {Lane, Pieces} <- lists:keysort(1, maps:to_list(Held)), Lane =/= ?FIRST],
    run(
        [{?FIRST, Segments} | Free ++ Rest],
        Out,
        Reader#reader{number = ?NEXT(K), phase = wait, held = #{}, bytes = 0}
    );
run([{Lane, [Mark | _]} | _], _Out, _Reader) ->
    {error, {fence_out_of_order, Lane, Mark}};
run([], Out, Reader) ->
    {ok, lists:reverse(Out), Reader}.

%% All lanes are there; so nothing is left to be worked off of those that had just been
%% let go: each was worked off till it came to this fence.
behind([], Out, #reader{held = #{?FIRST := Pieces} = Held, bytes = Bytes} = Reader) ->
    Segments = joined(Pieces),
    run(
        [{?FIRST, Segments}],
        Out,
        Reader#reader{phase = deliver, held = Held#{?FIRST := []}, bytes = Bytes - bytes(Segments)}
    ).

joined(Pieces) -> lists:append(lists:reverse(Pieces)).

bytes(Segments) ->
    lists:sum([byte_size(Packet) || {packets, Packets} <- Segments, Packet <- Packets]).

%% @doc Whether the lane waits for others: it must not be read on, and its silence
%% means nothing.
-spec is_held(atoll_dist_lanes:lane(), reader()) -> boolean().
is_held(?FIRST, #reader{phase = deliver}) -> false;
is_held(Lane, #reader{held = Held}) -> is_map_key(Lane, Held).

%% @doc How many bytes are held back.
-spec held(reader()) -> non_neg_integer().
held(#reader{bytes = Bytes}) -> Bytes.
