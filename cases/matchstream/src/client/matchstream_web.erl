%% SPDX-License-Identifier: Apache-2.0
%% @doc The web interface, on OTP's httpd: what PROTOCOL.md lists. Who can reach the port can register events: there are no passwords.
-module(matchstream_web).
-behaviour(gen_server).

-include_lib("inets/include/httpd.hrl").

-export([start_link/1, port/0, do/1]).
-export([init/1, handle_call/3, handle_cast/2, terminate/2]).

-type state() :: {Server :: pid(), inet:port_number()}.

-define(BODY_BYTES, 65536).
-define(CLIENTS, 1000).

%% @doc Begins to answer.
-spec start_link(matchstream:settings()) -> gen_server:start_ret().
start_link(Settings) -> gen_server:start_link({local, ?MODULE}, ?MODULE, Settings, []).

%% @doc On which port.
-spec port() -> inet:port_number().
port() -> gen_server:call(?MODULE, port).

%% @private
-spec init(matchstream:settings()) -> {ok, state()} | {stop, term()}.
init(#{listen := Listen, web := Web, nodes := Nodes}) ->
    _ = process_flag(trap_exit, true),
    Port = case Web of 0 -> free(Listen); _ -> Web + matchstream:place(Nodes) end,
    {ok, Dir} = file:get_cwd(),
    Options = [
        {port, Port}, {bind_address, Listen}, {ipfamily, inet}, {server_name, "matchstream"}, {server_root, Dir}, {document_root, Dir}, {modules, [?MODULE]},
        {max_clients, ?CLIENTS}, {max_body_size, ?BODY_BYTES}, {max_header_size, 8192}, {server_tokens, none}
    ],
    case inets:start(httpd, Options, stand_alone) of
        {ok, Server} -> {ok, {Server, Port}};
        {error, Why} -> {stop, {shutdown, {web, Port, Why}}}
    end.

%% A server that ends with this process does not say which one it has taken.
free(Listen) ->
    {ok, Socket} = gen_tcp:listen(0, [{ip, Listen}]),
    {ok, Port} = inet:port(Socket),
    ok = gen_tcp:close(Socket),
    Port.

%% @private
-spec handle_call(port, gen_server:from(), state()) -> {reply, inet:port_number(), state()}.
handle_call(port, _, {_, Port} = S) -> {reply, Port, S}.

%% @private
-spec handle_cast(term(), state()) -> no_return().
handle_cast(Message, _) -> error({no_such_message, Message}).

%% @private
-spec terminate(term(), state()) -> ok.
terminate(_, {Server, _}) ->
    true = unlink(Server),
    exit(Server, shutdown),
    ok.

%% @private Called by httpd with a request.
-spec do(#mod{}) -> {proceed, list()}.
do(#mod{method = Method, request_uri = Uri, entity_body = Body} = Request) ->
    {Path, Query} = case string:split(Uri, "?") of [P, Q] -> {P, Q}; [P] -> {P, ""} end,
    Parts = string:lexemes(Path, "/"),
    _ = [matchstream_record:note(user(Request), Kind) || Method =:= "GET", Kind <- kind(Parts)],
    {Code, Type, Text} = answer(Method, Parts, Query, iolist_to_binary(Body)),
    Head = [
        {code, Code}, {content_type, Type}, {content_length, integer_to_list(iolist_size(Text))}, {cache_control, "no-cache"},
        %% httpd answers OPTIONS itself, and refuses it: what a page of another origin may do it does without.
        {"Access-Control-Allow-Origin", "*"}, {"Match-Stream-API-Version", "2"}, {"X-Content-Type-Options", "nosniff"}
    ],
    {proceed, [{response, {response, Head, [Text]}}]}.

kind([]) -> [page];
kind(["1", "matches"]) -> [matches];
kind(["1", "match", _]) -> [match];
kind(["1", "match", _, "history"]) -> [history];
kind(["1", "port"]) -> [port];
kind(["1", "simulator"]) -> [simulator];
kind(_) -> [].

%% Whoever says nothing of that is known by the address.
user(#mod{parsed_header = Header, init_data = #init_data{peername = {_, Address}}}) ->
    Named = proplists:get_value("match-stream-user", Header, ""),
    case re:run(Named, "^[\\x21-\\x7e]{1,64}$", [dollar_endonly, {capture, none}]) of
        match -> list_to_binary(Named);
        nomatch -> list_to_binary(Address)
    end.

answer("GET", ["1", "matches"], _, _) -> told(matchstream:matches(), fun(Ids) -> Ids end, 200);
answer("POST", ["1", "matches"], _, Body) ->
    case matchstream_json:match_given(Body) of
        {ok, About} -> told(matchstream:new_match(About), fun(Id) -> #{id => Id} end, 201);
        {error, Sentence} -> wrong(400, Sentence)
    end;
answer("GET", ["1", "match", Id], _, _) -> told(matchstream:match(id(Id)), fun matchstream_json:match/1, 200);
answer("GET", ["1", "match", Id, "history"], Query, _) ->
    case since(uri_string:dissect_query(Query)) of
        {ok, After} -> told(matchstream:history(id(Id), After), fun(Events) -> [matchstream_json:event(Event) || Event <- Events] end, 200);
        error -> wrong(400, "since is to be a whole number, 0 or more.")
    end;
answer("POST", ["1", "match", Id, "events"], _, Body) ->
    case matchstream_json:event_given(Body) of
        {ok, {Kind, Data, Seq}} -> told(matchstream:register(id(Id), Kind, Data, Seq), fun matchstream_json:event/1, 201);
        {error, Sentence} -> wrong(400, Sentence)
    end;
answer("GET", ["1", "simulator"], _, _) -> json(200, matchstream_simulator:status());
answer("POST", ["1", "simulator"], _, Body) ->
    case matchstream_json:simulator_given(Body) of
        {ok, stop} -> simulated(matchstream_simulator:stop());
        {ok, {speed, Speed}} -> simulated(matchstream_simulator:set_speed(Speed));
        {ok, {start, Script, Speed}} -> simulated(matchstream_simulator:start(Script, Speed));
        {error, Sentence} -> wrong(400, Sentence)
    end;
answer("GET", ["1", "port"], _, _) -> json(200, #{port => matchstream:port()});
answer("GET", ["metrics"], _, _) -> {200, "text/plain; version=0.0.4", matchstream_count:prometheus()};
answer("GET", [], _, _) ->
    {ok, Page} = file:read_file(filename:join(priv(), "index.html")),
    {200, "text/html; charset=utf-8", Page};
answer(Method, _, _, _) when Method =/= "GET", Method =/= "POST" -> wrong(405, "GET and POST are answered here.");
answer(_, _, _, _) -> wrong(404, "There is no such page.").

priv() ->
    case code:priv_dir(matchstream) of
        Dir when is_list(Dir) -> Dir
    end.

id(Text) -> unicode:characters_to_binary(Text).

%% What else stands there is nobody's business.
since(Query) when is_list(Query) ->
    case [Text || {"since", Text} <- Query] of
        [] -> {ok, 0};
        [[_ | _] = Text] ->
            case string:to_integer(Text) of
                {N, ""} when N >= 0 -> {ok, N};
                _ -> error
            end;
        _ -> error
    end;
since({error, _, _}) -> error.

told({ok, Is}, Fun, Code) -> json(Code, Fun(Is));
told({error, Error}, _, _) -> wrong(code(Error), matchstream:format_error(Error)).

code(unknown_match) -> 404;
code(exists) -> 409;
code({conflict, _}) -> 409;
code(Why) when Why =:= unavailable; Why =:= busy; Why =:= full -> 503;
code(_) -> 400.

simulated(ok) -> json(200, matchstream_simulator:status());
simulated({error, Error}) ->
    Code = case Error of {unknown_script, _} -> 400; _ when Error =:= unavailable; Error =:= full; Error =:= busy -> 503; _ -> 409 end,
    wrong(Code, matchstream_simulator:format_error(Error)).

wrong(Code, Sentence) -> json(Code, #{error => unicode:characters_to_binary(Sentence)}).

json(Code, Term) -> {Code, "application/json", matchstream_json:encode(Term)}.
