%% SPDX-License-Identifier: Apache-2.0
%% @doc A driver for a service over HTTP: `get', `put' and `delete' of a key below `http_url', such as `"http://127.0.0.1:8080/keys/"'. Each worker has a connection of its own, which it
%% makes again when it is closed. What is not found is no error; any other status from 400 on is one.
-module(atoll_load_http).
-behaviour(atoll_load_driver).

-export([operations/0, rules/0, prepare/1, new/2, run/4, terminate/2]).

-define(CONNECT_MS, 5000).
-define(ANSWER_MS, 10_000).

-record(worker, {host :: string(), port :: inet:port_number(), path :: string(), socket = none :: gen_tcp:socket() | none}).

-spec operations() -> [atom(), ...].
operations() -> [get, put, delete].

-spec rules() -> [atoll_bench_config:rule()].
rules() -> [{http_url, none, fun url/1, "an address that begins with http:// and has nothing after its path"}].

url(Url) ->
    case is_list(Url) andalso io_lib:printable_unicode_list(Url) andalso uri_string:parse(Url) of
        #{scheme := "http", host := [_ | _]} = Parts when not is_map_key(query, Parts), not is_map_key(fragment, Parts) -> {ok, Url};
        _ -> error
    end.

-spec prepare(#{atom() => term()}) -> {ok, atoll_load_driver:store()} | {error, unicode:chardata()}.
prepare(#{http_url := none}) -> {error, "It does not say which http_url there is."};
prepare(Settings) -> {ok, #{where => anywhere, settings => Settings, stop => fun() -> ok end}}.

-spec new(pos_integer(), #{http_url := string(), _ => _}) -> {ok, #worker{}}.
new(_, #{http_url := Url}) ->
    #{host := Host, path := Path} = Parts = uri_string:parse(Url),
    {ok, #worker{host = Host, port = maps:get(port, Parts, 80), path = case lists:suffix("/", Path) of true -> Path; false -> Path ++ "/" end}}.

-spec run(get | put | delete, atoll_load_keys:generator(), atoll_load_keys:generator(), #worker{}) -> {ok, #worker{}} | {error, term(), #worker{}}.
run(get, Key, _, Worker) -> ask("GET", Key(), <<>>, Worker);
run(put, Key, Value, Worker) -> ask("PUT", Key(), Value(), Worker);
run(delete, Key, _, Worker) -> ask("DELETE", Key(), <<>>, Worker).

ask(Method, Key, Body, #worker{socket = none, host = Host, port = Port} = Worker) ->
    case gen_tcp:connect(Host, Port, [binary, {active, false}, {packet, http_bin}, {nodelay, true}], ?CONNECT_MS) of
        {ok, Socket} -> ask(Method, Key, Body, Worker#worker{socket = Socket});
        {error, Why} -> {error, Why, Worker}
    end;
ask(Method, Key, Body, #worker{socket = Socket, host = Host, port = Port, path = Path} = Worker) ->
    Head = [Method, $\s, Path, text(Key), " HTTP/1.1\r\nhost: ", Host, $:, integer_to_list(Port), "\r\ncontent-length: ", integer_to_list(iolist_size(Body)), "\r\n\r\n"],
    case gen_tcp:send(Socket, [Head, Body]) of
        ok ->
            case answer(Socket) of
                {Status, Again} when is_integer(Status) ->
                    Next = case Again of keep -> Worker; close -> closed(Worker) end,
                    case Status < 400 orelse Status =:= 404 of
                        true -> {ok, Next};
                        false -> {error, Status, Next}
                    end;
                {error, Why} -> {error, Why, closed(Worker)}
            end;
        {error, Why} -> {error, Why, closed(Worker)}
    end.

text(Key) when is_integer(Key) -> integer_to_list(Key);
text(Key) when is_list(Key) -> text(unicode:characters_to_binary(Key));
text(Key) when is_binary(Key) -> [quoted(Byte) || <<Byte>> <= Key].

%% RFC 3986, section 2: what needs not be written as a number.
quoted(Byte) when Byte >= $a, Byte =< $z; Byte >= $A, Byte =< $Z; Byte >= $0, Byte =< $9; Byte =:= $-; Byte =:= $.; Byte =:= $_; Byte =:= $~ -> Byte;
quoted(Byte) -> [$%, binary:encode_hex(<<Byte>>)].

closed(#worker{socket = none} = Worker) -> Worker;
closed(#worker{socket = Socket} = Worker) ->
    ok = gen_tcp:close(Socket),
    Worker#worker{socket = none}.

answer(Socket) ->
    case gen_tcp:recv(Socket, 0, ?ANSWER_MS) of
        {ok, {http_response, Version, Status, _}} -> headers(Socket, Status, 0, case Version of {1, 1} -> keep; _ -> close end);
        {ok, _} -> {error, no_http};
        {error, _} = Error -> Error
    end.

headers(Socket, Status, Length, Again) ->
    case gen_tcp:recv(Socket, 0, ?ANSWER_MS) of
        {ok, {http_header, _, 'Content-Length', _, Text}} -> headers(Socket, Status, binary_to_integer(Text), Again);
        {ok, {http_header, _, 'Connection', _, Text}} ->
            headers(Socket, Status, Length, case string:lowercase(Text) of <<"close">> -> close; _ -> Again end);
        %% Whoever sends in chunks is read to the end of the connection.
        {ok, {http_header, _, 'Transfer-Encoding', _, _}} -> headers(Socket, Status, Length, close);
        {ok, {http_header, _, _, _, _}} -> headers(Socket, Status, Length, Again);
        {ok, http_eoh} -> body(Socket, Status, Length, Again);
        {ok, {http_error, _}} -> {error, no_http};
        {error, _} = Error -> Error
    end.

body(_, Status, 0, Again) -> {Status, Again};
body(Socket, Status, Length, Again) ->
    ok = inet:setopts(Socket, [{packet, raw}]),
    case gen_tcp:recv(Socket, Length, ?ANSWER_MS) of
        {ok, _} ->
            ok = inet:setopts(Socket, [{packet, http_bin}]),
            {Status, Again};
        {error, _} = Error -> Error
    end.

-spec terminate(term(), #worker{}) -> ok.
terminate(_, Worker) ->
    _ = closed(Worker),
    ok.
