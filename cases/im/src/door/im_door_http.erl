%% SPDX-License-Identifier: Apache-2.0
%% @doc The head of an HTTP request: a file of the page, or the beginning of a WebSocket. Pure but for reading the files, of which there are
%% a few with fixed names.
-module(im_door_http).

-export([answer/2]).

-define(FILES, #{
    <<"/">> => {"index.html", "text/html; charset=utf-8"},
    <<"/im.js">> => {"im.js", "text/javascript; charset=utf-8"},
    <<"/im_chats.js">> => {"im_chats.js", "text/javascript; charset=utf-8"},
    <<"/im.css">> => {"im.css", "text/css; charset=utf-8"}
}).

%% Whom a door on loopback answers to.
-define(LOOPBACK, [<<"localhost">>, <<"127.0.0.1">>, <<"[::1]">>]).
%% A person's browser sends a kilobyte or so.
-define(HEAD_BYTES, 16384).

%% @doc What is answered to the bytes so far, by a door on loopback or elsewhere. After `frames' the connection is a WebSocket.
-spec answer(binary(), IsLoopback :: boolean()) -> more | {frames, Answer :: iodata(), Rest :: binary()} | {done, Answer :: iodata()}.
answer(Bytes, IsLoopback) ->
    case binary:split(Bytes, <<"\r\n\r\n">>) of
        [Head, Rest] when byte_size(Head) =< ?HEAD_BYTES -> headers(erlang:decode_packet(http_bin, <<Head/binary, "\r\n\r\n">>, []), IsLoopback, Rest);
        [Part] when byte_size(Part) =< ?HEAD_BYTES -> more;
        _ -> refused(431, "The head of the request is too long.")
    end.

headers({ok, {http_request, 'GET', {abs_path, Target}, _}, Lines}, IsLoopback, Rest) ->
    [Path | _] = binary:split(Target, <<"?">>),
    get(Path, header_lines(Lines, #{}), IsLoopback, Rest);
headers({ok, {http_request, _, _, _}, _}, _, _) -> refused(405, "Only GET is answered here.");
headers(_, _, _) -> refused(400, "The head of the request cannot be read.").

header_lines(Lines, Headers) ->
    case erlang:decode_packet(httph_bin, Lines, []) of
        {ok, {http_header, _, _, Name, Value}, Rest} -> header_lines(Rest, Headers#{string:lowercase(Name) => Value});
        _ -> Headers
    end.

get(<<"/socket">>, #{<<"sec-websocket-key">> := Key, <<"sec-websocket-version">> := <<"13">>} = Headers, IsLoopback, Rest) ->
    case is_own(Headers, IsLoopback) of
        true ->
            {frames, ["HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ", im_door_frame:accept_key(Key), "\r\n\r\n"], Rest};
        false ->
            refused(403, "A page of another site may not connect.")
    end;
get(<<"/socket">>, _, _, _) -> refused(426, "This is for WebSockets of version 13.");
get(Path, _, _, _) ->
    case ?FILES of
        #{Path := {File, Type}} ->
            {ok, Content} = file:read_file(filename:join(priv(), File)),
            {done, response(200, Type, Content)};
        #{} -> refused(404, "There is no such page.")
    end.

%% A browser says from which page a request comes. A page of elsewhere may have its own name lead to this machine.
is_own(#{<<"origin">> := Origin, <<"host">> := Host}, IsLoopback) ->
    lists:last(binary:split(Origin, <<"://">>)) =:= Host andalso
        (not IsLoopback orelse lists:member(string:lowercase(re:replace(Host, "(?<=.):[0-9]*$", "", [{return, binary}])), ?LOOPBACK));
is_own(#{<<"origin">> := _}, _) -> false;
is_own(#{}, _) -> true.

priv() ->
    case code:priv_dir(im) of
        Dir when is_list(Dir) -> Dir
    end.

refused(Status, Sentence) -> {done, response(Status, "text/plain; charset=utf-8", [Sentence, "\n"])}.

response(Status, Type, Content) ->
    [
        "HTTP/1.1 ", integer_to_list(Status), " ", phrase(Status), "\r\nContent-Type: ", Type, "\r\nContent-Length: ", integer_to_list(iolist_size(Content)),
        "\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\nReferrer-Policy: no-referrer\r\n"
        "Content-Security-Policy: default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\nConnection: close\r\n\r\n", Content
    ].

phrase(200) -> "OK";
phrase(400) -> "Bad Request";
phrase(403) -> "Forbidden";
phrase(404) -> "Not Found";
phrase(405) -> "Method Not Allowed";
phrase(426) -> "Upgrade Required";
phrase(431) -> "Request Header Fields Too Large".
