%% SPDX-License-Identifier: Apache-2.0
%% A client for the suites that writes requests as they are told, and a reader of the schemas of priv/openapi.json.
-module(atoll_watch_web).

-export([started/6, vm/1, ask/3, ask/4, get/2, raw/2, bearer/1, line/1, valid/3]).

-define(LATE_MS, 30000).

-type watch() :: #{port := inet:port_number(), token := binary(), atom() => term()}.
-type answer() :: {Status :: integer(), [{binary(), binary()}], Body :: none | binary() | term()}.

%% @doc Starts `bin/atoll watch', and waits until it answers.
-spec started(file:filename(), node(), Cookie :: file:filename(), Data :: file:filename(), inet:port_number(), [string()]) -> watch().
started(Dir, Node, Cookie, Data, Port, More) ->
    Program = atoll_cli_os:start(Dir, ["watch", "--node", atom_to_list(Node), "--cookie-file", Cookie, "--port", integer_to_list(Port), "--data", Data | More]),
    Said = atoll_cli_os:await_line(Program, stdout, <<"Ctrl-C ends it">>),
    {ok, Token} = file:read_file(filename:join(Data, "token")),
    #{program => Program, port => Port, token => string:trim(Token), data => Data, said => Said}.

%% @doc The process of its VM: the parent of the parent of a manager, between which is OTP's erl_child_setup.
-spec vm(watch()) -> OsPid :: string().
vm(Watch) ->
    {200, _, #{<<"items">> := [#{<<"os_pid">> := OsPid} | _]}} = get("/api/v1/managers", Watch),
    Parent = fun(Pid) -> {ok, Stat} = file:read_file(["/proc/", Pid, "/stat"]), binary_to_list(lists:nth(2, atoll_cluster_os:stat_fields(Stat))) end,
    Parent(Parent(integer_to_list(OsPid))).

%% @doc Asks with the token.
-spec get(iodata(), watch()) -> answer().
get(Path, Watch) -> ask("GET", Path, Watch).

-spec ask(string(), iodata(), watch()) -> answer().
ask(Method, Path, Watch) -> raw(#{method => Method, path => Path, headers => [bearer(Watch)]}, Watch).

-spec ask(string(), iodata(), atoll_cli_json:object(), watch()) -> answer().
ask(Method, Path, Object, Watch) ->
    raw(#{method => Method, path => Path, headers => [bearer(Watch), {"Content-Type", "application/json"}], body => atoll_cli_json:encode(Object)}, Watch).

-spec bearer(watch()) -> {string(), iodata()}.
bearer(#{token := Token}) -> {"Authorization", ["Bearer ", Token]}.

-spec line({string(), iodata()}) -> iodata().
line({Name, Value}) -> [Name, ": ", Value, "\r\n"].

%% @doc Sends just that, and reads the whole answer. A body of JSON is decoded.
-spec raw(#{method := iodata(), path := iodata(), host => iodata(), headers => [{string(), iodata()}], body => iodata()}, watch()) -> answer().
raw(#{method := Method, path := Path} = Request, #{port := Port}) ->
    Body = maps:get(body, Request, ""),
    Headers = maps:get(headers, Request, []),
    Length = [{"Content-Length", integer_to_list(iolist_size(Body))} || is_map_key(body, Request)],
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}], ?LATE_MS),
    Head = [Method, $\s, Path, " HTTP/1.1\r\n", [line(Header) || Header <- [{"Host", maps:get(host, Request, ["127.0.0.1:", integer_to_list(Port)])}, {"Connection", "close"}] ++ Length ++ Headers], "\r\n"],
    %% It may answer and close before it has read everything.
    _ = gen_tcp:send(Socket, [Head, Body]),
    Answer = received(Socket, []),
    ok = gen_tcp:close(Socket),
    answer(Answer).

%% Some are not worth one.
answer(<<>>) ->
    {0, [], none};
answer(Answer) ->
    [Top, Text] = binary:split(Answer, <<"\r\n\r\n">>),
    [<<"HTTP/1.1 ", Status:3/binary, _/binary>> | Lines] = binary:split(Top, <<"\r\n">>, [global]),
    Said = [{string:lowercase(Name), Value} || Line <- Lines, [Name, Value] <- [binary:split(Line, <<": ">>)]],
    {binary_to_integer(Status), Said, case {Text, proplists:get_value(<<"content-type">>, Said)} of
        {<<>>, _} -> none;
        {_, <<"application/json", _/binary>>} -> atoll_cli_os:decode(Text);
        {_, _} -> Text
    end}.

received(Socket, Seen) ->
    case gen_tcp:recv(Socket, 0, ?LATE_MS) of
        {ok, More} -> received(Socket, [Seen, More]);
        {error, _} -> iolist_to_binary(Seen)
    end.

%% @doc Whether a value is what a response is to be; what is wrong otherwise.
-spec valid(term(), [binary()], map()) -> ok | term().
valid(Value, [Path, Method], OpenApi) ->
    #{<<"paths">> := #{Path := #{Method := #{<<"responses">> := Responses}}}} = OpenApi,
    [Status] = [Is || <<"2", _/binary>> = Is <- maps:keys(Responses)],
    valid(Value, [Path, Method, Status], OpenApi);
valid(Value, [Path, Method, Status], OpenApi) ->
    #{<<"paths">> := #{Path := #{Method := #{<<"responses">> := #{Status := #{<<"content">> := #{<<"application/json">> := #{<<"schema">> := Schema}}}}}}}} = OpenApi,
    try is(Value, Schema, OpenApi) catch throw:Wrong -> Wrong end.

is(Value, #{<<"$ref">> := <<"#/components/schemas/", Name/binary>>} = Ref, #{<<"components">> := #{<<"schemas">> := Schemas}} = OpenApi) ->
    is(Value, maps:merge(maps:get(Name, Schemas), maps:with([<<"nullable">>], Ref)), OpenApi);
is(null, #{<<"nullable">> := true}, _) ->
    ok;
is(Value, #{<<"enum">> := Values}, _) ->
    lists:member(Value, Values) orelse throw({not_one_of, Values, Value}),
    ok;
is(Value, #{<<"type">> := <<"string">>}, _) when is_binary(Value) -> ok;
is(Value, #{<<"type">> := <<"integer">>}, _) when is_integer(Value) -> ok;
is(Value, #{<<"type">> := <<"number">>}, _) when is_number(Value) -> ok;
is(Value, #{<<"type">> := <<"boolean">>}, _) when is_boolean(Value) -> ok;
is(Values, #{<<"type">> := <<"array">>, <<"items">> := Items} = Schema, OpenApi) when is_list(Values) ->
    (length(Values) >= maps:get(<<"minItems">>, Schema, 0) andalso length(Values) =< maps:get(<<"maxItems">>, Schema, infinity)) orelse throw({so_many, length(Values)}),
    lists:foreach(fun(Value) -> is(Value, Items, OpenApi) end, Values);
is(#{} = Value, #{<<"type">> := <<"object">>, <<"properties">> := Properties, <<"required">> := Required}, OpenApi) ->
    {Required -- maps:keys(Value), maps:keys(Value) -- maps:keys(Properties)} =:= {[], []} orelse throw({keys, maps:keys(Value), Required}),
    maps:foreach(fun(Key, Is) -> try is(Is, maps:get(Key, Properties), OpenApi) catch throw:Wrong -> throw({Key, Wrong}) end end, Value);
is(#{} = Value, #{<<"type">> := <<"object">>, <<"additionalProperties">> := #{} = Each}, OpenApi) ->
    maps:foreach(fun(_, Is) -> is(Is, Each, OpenApi) end, Value);
is(#{}, #{<<"type">> := <<"object">>}, _) ->
    ok;
is(Value, Schema, _) ->
    throw({is_not, maps:get(<<"type">>, Schema, Schema), Value}).
