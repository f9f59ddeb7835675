%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc What goes over a lane: frames, each with any number of packets and marks, in
%% order. The socket says where a frame ends (`{packet, 4}').
%%
%% An item is `0:1, Size:31' and the packet, or a mark of a fence: `1:1, 0:30, 0:1' opens
%% it, `1:1, 0:30, 1:1' closes it, and its number follows, 32 bits. An empty frame is a
%% tick. A frame of its own, `1:1, 0:29, 2:2' and 32 bits, tells of another ticktime. What
%% is parsed are parts of the frame: who keeps one for longer copies it ({@link alone/1}).
%%
%% No frame is longer than {@link max_frame/0}, which the socket is told: it allocates a
%% frame as soon as it has read the length that the peer gives.
%%
%% What cannot be is an error with a reason; no packet out of a bad frame is given out.
-module(atoll_dist_frame).

-export([packet/2, mark/1, tick/0, ticktime/1, parse/1, alone/1, max_frame/0, max_packet/0]).

-export_type([reason/0]).

-type reason() :: {bad_frame, Left :: pos_integer(), Head :: binary()}.

-define(SHOWN, 32).

%% A fragment of the VM's has 64 KB, and a frame of many packets four times that. A peer
%% that takes no fragments sends a message whole.
-define(MAX_FRAME, 16777216).
%% What else may be in a frame with a packet.
-define(BESIDES, 1048576).
-define(OPEN, 16#80000000).
-define(CLOSE, 16#80000001).
-define(TICKTIME, 16#80000002).

%% @doc A packet of that size as an item.
-spec packet(pos_integer(), erlang:iovec()) -> nonempty_improper_list(binary(), erlang:iovec()).
packet(Size, Iovec) when Size > 0, Size =< 16#7FFFFFFF -> [<<Size:32>> | Iovec].

%% @doc A mark as an item.
-spec mark(atoll_dist_fence:mark()) -> binary().
mark({open, Number}) -> <<?OPEN:32, Number:32>>;
mark({close, Number}) -> <<?CLOSE:32, Number:32>>.

%% @doc A frame that says only that the lane lives.
-spec tick() -> binary().
tick() -> <<>>.

%% @doc A frame that says after how many milliseconds the peer is silent too long, when
%% that has changed.
-spec ticktime(0..16#FFFFFFFF) -> binary().
ticktime(Ms) -> <<?TICKTIME:32, Ms:32>>.

%% @doc What is in a frame, in order; nothing in a tick.
-spec parse(binary()) -> {ok, [atoll_dist_fence:segment()]} | {ticktime, 0..16#FFFFFFFF} | {error, reason()}.
parse(<<?TICKTIME:32, Ms:32>>) -> {ticktime, Ms};
parse(Frame) -> items(Frame, [], []).

items(<<0:1, Size:31, Packet:Size/binary, Rest/binary>>, Packets, Segments) when Size > 0 ->
    items(Rest, [Packet | Packets], Segments);
items(<<>>, Packets, Segments) ->
    {ok, lists:reverse(segment(Packets, Segments))};
items(<<?OPEN:32, Number:32, Rest/binary>>, Packets, Segments) ->
    items(Rest, [], [{open, Number} | segment(Packets, Segments)]);
items(<<?CLOSE:32, Number:32, Rest/binary>>, Packets, Segments) ->
    items(Rest, [], [{close, Number} | segment(Packets, Segments)]);
items(Bad, _Packets, _Segments) ->
    Head = binary:copy(binary:part(Bad, 0, min(byte_size(Bad), ?SHOWN))),
    {error, {bad_frame, byte_size(Bad), Head}}.

%% @doc A packet that holds its own bytes and not many others: the VM keeps what a packet is
%% part of until the message is read, and another process may be long in reading it.
-spec alone(binary()) -> binary().
alone(Packet) ->
    case binary:referenced_byte_size(Packet) > 2 * byte_size(Packet) of
        true -> binary:copy(Packet);
        false -> Packet
    end.

%% @doc How many bytes a frame may have.
-spec max_frame() -> pos_integer().
max_frame() -> ?MAX_FRAME.

%% @doc How many bytes a packet may have.
-spec max_packet() -> pos_integer().
max_packet() -> ?MAX_FRAME - ?BESIDES.

segment([], Segments) -> Segments;
segment(Packets, Segments) -> [{packets, lists:reverse(Packets)} | Segments].
