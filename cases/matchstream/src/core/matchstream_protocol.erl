%% SPDX-License-Identifier: Apache-2.0
%% @doc The text that goes between a server and a client: requests and events as bytes, and back. Pure; PROTOCOL.md is for people.
%%
%% Promised: what is encoded is decoded to the same, in whatever pieces it comes. A decoder keeps no more than one event,
%% and says of bytes that are none what is wrong.
-module(matchstream_protocol).

-export([greeting/0, request/1, encode_request/1, event/1, error/1]).
-export([new/0, decode/2, line_bytes/0]).

-export_type([request/0, decoder/0, frame/0]).

-type user() :: binary().

-type request() :: {first, user()} | {match, user(), matchstream_match:id()} | {rest, user(), matchstream_match:id(), After :: non_neg_integer()}.
%% The match that runs, or a certain one, or what comes after an event of that.

-type frame() ::
    %% what the protocol says of an event, with its own bytes; a time has no more than seconds
    {event, #{at := binary(), kind := binary(), data := [{binary(), binary() | [binary()]}]}, Bytes :: binary()}
    | {error, Sentence :: binary()}.

-record(decoder, {
    %% the lines of the greeting that are still to come
    greeting = 2 :: 0..2,
    bytes = <<>> :: binary()
}).

-opaque decoder() :: #decoder{}.

-define(GREETING, <<"Welcome to Match Stream.\nTo watch the current game use: V:2:<your-name>\n">>).
%% A request is a line of that many bytes at most, and an event has so many.
-define(LINE_BYTES, 512).
-define(EVENT_BYTES, 65536).

%% @doc What a client is told when it has connected.
-spec greeting() -> binary().
greeting() -> ?GREETING.

%% @doc How long a line of a client may be, with its end.
-spec line_bytes() -> pos_integer().
line_bytes() -> ?LINE_BYTES.

%% @doc What a client asks for, in a line without its end.
-spec request(binary()) -> {ok, request()} | {error, unicode:chardata()}.
request(Line) ->
    case binary:split(Line, <<":">>, [global]) of
        [<<"V">>, <<"2">>, User] -> of_user(User, {first, User});
        [<<"VERSION">>, <<"1">>, <<"CONNECT">>, User, <<"MATCH">>, Id] -> of_user(User, {match, User, Id});
        [<<"VERSION">>, <<"1">>, <<"CONNECT">>, User, <<"MATCH">>, Id, <<"AFTER">>, Digits] ->
            case re:run(Digits, "^[0-9]{1,9}$", [dollar_endonly, {capture, none}]) of
                match -> of_user(User, {rest, User, Id, binary_to_integer(Digits)});
                nomatch -> {error, "What comes after AFTER is the number of an event, or 0."}
            end;
        _ -> {error, "Say V:2:NAME, or VERSION:1:CONNECT:NAME:MATCH:ID."}
    end.

of_user(User, Request) ->
    case byte_size(User) =< 64 andalso re:run(User, "^[\\x21-\\x7e]+$", [dollar_endonly, {capture, none}]) of
        match -> {ok, Request};
        _ -> {error, "A name has 1 to 64 letters, digits and signs."}
    end.

%% @doc A request as a line with its end.
-spec encode_request(request()) -> iolist().
encode_request({first, User}) -> ["V:2:", User, "\r\n"];
encode_request({match, User, Id}) -> ["VERSION:1:CONNECT:", User, ":MATCH:", Id, "\r\n"];
encode_request({rest, User, Id, After}) -> ["VERSION:1:CONNECT:", User, ":MATCH:", Id, ":AFTER:", integer_to_list(After), "\r\n"].

%% @doc An event or a status.
-spec event(matchstream_match:event()) -> binary().
event(#{at := At, kind := Kind, data := Data}) ->
    {{Y, Mo, D}, {H, Mi, S}} = calendar:system_time_to_universal_time(At, millisecond),
    iolist_to_binary([
        io_lib:format("~4..0b-~2..0b-~2..0b ~2..0b:~2..0b:~2..0b: ~s:\n", [Y, Mo, D, H, Mi, S, Kind]),
        [line(Key, Value) || {Key, Value} <- Data],
        "\r\n"
    ]).

line(Key, Players) when is_list(Players) -> [$\t, atom_to_binary(Key), ":\n", [["\t\t", player(Player), $\n] || Player <- Players]];
line(Key, Value) -> [$\t, atom_to_binary(Key), ": ", value(Value), $\n].

value({_, _} = Player) -> player(Player);
value(Text) when is_binary(Text) -> io_lib:format("~0tp", [Text]);
value(Word) when is_atom(Word) -> atom_to_binary(Word);
value(Number) -> integer_to_binary(Number).

player({Number, Name}) -> [Name, " (", integer_to_binary(Number), ")"].

%% @doc The last thing that a client is told for which something is wrong.
-spec error(unicode:chardata()) -> binary().
error(Sentence) ->
    Said = unicode:characters_to_binary(["ERROR: ", Sentence, "\n\r\n"]),
    true = is_binary(Said),
    Said.

%% @doc Before the first byte of a server.
-spec new() -> decoder().
new() -> #decoder{}.

%% @doc The events that these bytes end. After `bad' nothing more can be read.
-spec decode(binary(), decoder()) -> {[frame()], decoder() | bad}.
decode(Bytes, #decoder{greeting = Lines, bytes = Before} = D) when Lines > 0 ->
    case binary:split(<<Before/binary, Bytes/binary>>, <<"\n">>) of
        [_, Rest] -> decode(Rest, D#decoder{greeting = Lines - 1, bytes = <<>>});
        [Part] when byte_size(Part) > ?LINE_BYTES -> {[], bad};
        [Part] -> {[], D#decoder{bytes = Part}}
    end;
decode(Bytes, #decoder{bytes = Before} = D) ->
    {Whole, Part} = pieces(binary:split(<<Before/binary, Bytes/binary>>, <<"\r\n">>, [global])),
    Frames = [frame(Piece) || Piece <- Whole],
    case lists:splitwith(fun(Frame) -> Frame =/= bad end, Frames) of
        {Good, []} when byte_size(Part) =< ?EVENT_BYTES -> {Good, D#decoder{bytes = Part}};
        {Good, _} -> {Good, bad}
    end.

pieces(Pieces) ->
    {Whole, [Part]} = lists:split(length(Pieces) - 1, Pieces),
    {Whole, Part}.

frame(<<"ERROR: ", Sentence/binary>>) -> {error, string:trim(Sentence, trailing, "\n")};
frame(Bytes) ->
    case binary:split(Bytes, <<"\n">>, [global]) of
        [<<At:19/binary, ": ", Kind/binary>> | Lines] ->
            case {data(Lines, []), binary:last(<<0, Kind/binary>>)} of
                {{ok, Data}, $:} -> {event, #{at => At, kind => binary:part(Kind, 0, byte_size(Kind) - 1), data => Data}, <<Bytes/binary, "\r\n">>};
                _ -> bad
            end;
        _ -> bad
    end.

%% Players stand in lines of their own below their key.
data([<<>>], Data) -> {ok, lists:reverse(Data)};
data([<<"\t\t", Player/binary>> | Lines], [{Key, Players} | Data]) when is_list(Players) -> data(Lines, [{Key, Players ++ [Player]} | Data]);
data([<<"\t", Line/binary>> | Lines], Data) ->
    case binary:split(Line, <<": ">>) of
        [Key, Value] -> data(Lines, [{Key, Value} | Data]);
        [Alone] when Alone =/= <<>> ->
            case binary:last(Alone) of
                $: -> data(Lines, [{binary:part(Alone, 0, byte_size(Alone) - 1), []} | Data]);
                _ -> error
            end;
        [_] -> error
    end;
data(_, _) -> error.
