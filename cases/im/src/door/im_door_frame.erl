%% SPDX-License-Identifier: Apache-2.0
%% @doc How messages are cut out of the bytes of a connection: lines, or the frames of WebSocket (RFC 6455). Pure.
%%
%% Promised: of a message that is too long no more is kept than {@link most/0} bytes, and one that is not UTF-8 is an error. Yaws, which
%% accepts WebSockets too, waits for the rest of a frame without end, so it is not used for this.
%% Not promised: extensions of WebSocket.
-module(im_door_frame).

-export([new/1, take/2, text/2, ping/0, pong/1, closing/0, accept_key/1]).

-export_type([kind/0, state/0]).

-type kind() :: lines | frames.

-record(state, {
    kind :: kind(),
    %% of a message in several frames, the last part first, and its size
    parts = none :: [binary()] | none,
    size = 0 :: non_neg_integer()
}).

-opaque state() :: #state{}.

%% Bytes of a message, at most.
-define(MOST, 65536).

%% @doc Before the first byte.
-spec new(kind()) -> state().
new(Kind) -> #state{kind = Kind}.

%% @doc The next message of these bytes; `more' if it is not whole yet.
-spec take(binary(), state()) ->
    {text | pong_to, binary(), Rest :: binary(), state()} | {ignore, Rest :: binary(), state()} | more | closed | {error, unicode:chardata()}.
take(Bytes, #state{kind = lines} = S) ->
    case binary:split(Bytes, <<"\n">>) of
        [Line, _] when byte_size(Line) > ?MOST -> too_long("A line");
        [Line, Rest] -> text_of(string:trim(Line, trailing, "\r"), Rest, S);
        [Part] when byte_size(Part) > ?MOST -> too_long("A line");
        [_] -> more
    end;
take(<<_:1, Rsv:3, _/bitstring>>, #state{kind = frames}) when Rsv =/= 0 -> {error, "A frame uses an extension, which was not agreed on."};
take(<<_:8, 0:1, _/bitstring>>, #state{kind = frames}) -> {error, "A frame of a client is to be masked."};
take(<<Fin:1, _:3, Op:4, 1:1, 126:7, N:16, Rest/binary>>, S) -> frame(Fin, Op, N, Rest, S);
take(<<Fin:1, _:3, Op:4, 1:1, 127:7, N:64, Rest/binary>>, S) -> frame(Fin, Op, N, Rest, S);
take(<<Fin:1, _:3, Op:4, 1:1, N:7, Rest/binary>>, S) when N < 126 -> frame(Fin, Op, N, Rest, S);
take(_, _) -> more.

frame(_, _, N, _, #state{size = Size}) when N + Size > ?MOST -> too_long("A message");
frame(Fin, Op, N, _, _) when Op >= 8, Fin =:= 0; Op >= 8, N > 125 -> {error, "A control frame is short and in one piece."};
frame(Fin, Op, N, Bytes, S) ->
    case Bytes of
        <<Mask:4/binary, Masked:N/binary, Rest/binary>> -> whole(Op, Fin, crypto:exor(Masked, mask(Mask, N)), Rest, S);
        _ -> more
    end.

mask(Mask, N) -> binary:part(binary:copy(Mask, N div 4 + 1), 0, N).

whole(8, _, _, _, _) -> closed;
whole(9, _, Data, Rest, S) -> {pong_to, Data, Rest, S};
whole(10, _, _, Rest, S) -> {ignore, Rest, S};
whole(1, 1, Data, Rest, #state{parts = none} = S) -> text_of(Data, Rest, S);
whole(1, 0, Data, Rest, #state{parts = none} = S) -> {ignore, Rest, S#state{parts = [Data], size = byte_size(Data)}};
whole(0, 0, Data, Rest, #state{parts = [_ | _] = Parts, size = Size} = S) -> {ignore, Rest, S#state{parts = [Data | Parts], size = Size + byte_size(Data)}};
whole(0, 1, Data, Rest, #state{parts = [_ | _] = Parts} = S) -> text_of(iolist_to_binary(lists:reverse(Parts, [Data])), Rest, S#state{parts = none, size = 0});
whole(2, _, _, _, _) -> {error, "A message is to be text."};
whole(_, _, _, _, _) -> {error, "A frame is of no kind that is expected here."}.

text_of(Text, Rest, S) ->
    case unicode:characters_to_binary(Text) of
        Text -> {text, Text, Rest, S};
        _ -> {error, "The message is not UTF-8."}
    end.

too_long(What) -> {error, io_lib:format("~s has at most ~b bytes.", [What, ?MOST])}.

%% @doc A message to the other side.
-spec text(iodata(), state()) -> iolist().
text(Text, #state{kind = lines}) -> [Text, "\n"];
text(Text, #state{kind = frames}) -> framed(1, Text).

%% @doc Asks whether the other side of a WebSocket is there.
-spec ping() -> iolist().
ping() -> framed(9, []).

%% @doc The answer to such a question.
-spec pong(binary()) -> iolist().
pong(Data) -> framed(10, Data).

%% @doc The end of a WebSocket.
-spec closing() -> iolist().
closing() -> framed(8, <<1008:16>>).

framed(Op, Data) ->
    case iolist_size(Data) of
        N when N < 126 -> [<<1:1, 0:3, Op:4, 0:1, N:7>>, Data];
        N when N < 65536 -> [<<1:1, 0:3, Op:4, 0:1, 126:7, N:16>>, Data];
        N -> [<<1:1, 0:3, Op:4, 0:1, 127:7, N:64>>, Data]
    end.

%% @doc The answer to the key of a WebSocket's request.
-spec accept_key(binary()) -> binary().
accept_key(Key) -> base64:encode(crypto:hash(sha, [Key, "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"])).
