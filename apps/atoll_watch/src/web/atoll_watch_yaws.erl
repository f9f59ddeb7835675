%% SPDX-License-Identifier: Apache-2.0
%% @doc Yaws, embedded: accepts, speaks TLS and reads the heads of requests. The rest is done here, on the socket, by the process of
%% the connection: a body is read up to a bound, and what {@link atoll_watch_http} answers is written.
%%
%% Promised: there are so many connections at most; one that says nothing for ten seconds is closed, a
%% body has ten seconds to come; of one that is too long nothing is read into memory. A stream of events holds
%% what it has to send next and no more: who reads too slowly is told how much was lost, and who does not read at all is closed.
%%
%% Not promised: that heads which come a line now and then do not hold a connection for long.
-module(atoll_watch_yaws).

-behaviour(supervisor).

-export([start_link/1, find/0, is_free/2]).
-export([init/1, set_up/1, quiet/2, dispatch/1]).

-export_type([options/0]).

-type options() :: #{
    listen := inet:ip_address(),
    port := inet:port_number(),
    certfile => file:filename(),
    keyfile => file:filename(),
    dir := file:filename(),
    http := atoll_watch_http:config()
}.

-define(CONNECTIONS, 3000).
-define(IDLE_MS, 10000).
-define(STOP_MS, 2000).
-define(BODY_MS, 10000).
-define(DRAINED, 33554432).
-define(DRAIN_MS, 3000).
-define(SEND_MS, 10000).
-define(STREAMS, 50).
-define(LOOK_MS, 500).
-define(PULSE_MS, 15000).

%% @doc Makes Yaws known to this VM, from where Debian has it or from ERL_LIBS.
-spec find() -> ok | none.
find() ->
    case {code:which(yaws_server), filelib:wildcard("/usr/lib/yaws*/ebin/yaws_server.beam")} of
        {Beam, _} when is_list(Beam) -> ok;
        {_, [Beam | _]} -> true = code:add_pathz(filename:dirname(Beam)), ok;
        {_, []} -> none
    end.

%% @doc Whether one can listen there.
-spec is_free(inet:ip_address(), inet:port_number()) -> ok | {error, inet:posix()}.
is_free(Listen, Port) ->
    case gen_tcp:listen(Port, [{ip, Listen}, {reuseaddr, true}]) of
        {ok, Socket} -> gen_tcp:close(Socket);
        {error, Reason} -> {error, Reason}
    end.

%% @doc Begins to answer.
-spec start_link(options()) -> supervisor:startlink_ret().
start_link(Options) -> supervisor:start_link(?MODULE, Options).

%% @private Yaws is told what to do when all of it is there, again if all of it was started again.
-spec init(options()) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(#{dir := Dir} = Options) ->
    _ = application:load(yaws),
    ok = application:set_env(yaws, embedded, true),
    ok = application:set_env(yaws, id, "atoll_watch"),
    ok = filelib:ensure_path(docroot(Dir)),
    %% What it says of itself at the start and at the end.
    _ = logger:add_primary_filter(?MODULE, {fun ?MODULE:quiet/2, []}),
    Sup = yaws_sup,
    %% It would wait a minute for connections that say nothing.
    Specs = [case Spec of {yaws_server, Start, Restart, _, Type, Modules} -> {yaws_server, Start, Restart, ?STOP_MS, Type, Modules}; _ -> Spec end || Spec <- Sup:child_specs()],
    {ok, {#{strategy => one_for_all, intensity => 3, period => 60}, Specs ++ [#{id => ?MODULE, start => {?MODULE, set_up, [Options]}}]}}.

%% @private
-spec quiet(logger:log_event(), []) -> stop | ignore.
quiet(#{meta := #{error_logger := #{tag := info_msg}}}, []) -> stop;
quiet(_, []) -> ignore.

docroot(Dir) -> filename:join(Dir, "web").

%% @private
-spec set_up(options()) -> ignore | {error, term()}.
set_up(#{listen := Listen, port := Port, dir := Dir, http := Http} = Options) ->
    persistent_term:put(?MODULE, Http),
    Yaws = yaws,
    Api = yaws_api,
    Tls = case Options of
        #{certfile := Cert} ->
            {ok, _} = application:ensure_all_started(ssl),
            [{ssl, [{keyfile, maps:get(keyfile, Options, Cert)}, {certfile, Cert}]}];
        #{} -> []
    end,
    Global = Yaws:create_gconf([
        {logdir, Dir}, {ebin_dir, []}, {include_dir, []}, {keepalive_timeout, ?IDLE_MS}, {max_connections, ?CONNECTIONS}, {acceptor_pool_size, 16},
        {flags, [{copy_error_log, false}, {fail_on_bind_err, false}]}, {id, "atoll_watch"}
    ], "atoll_watch"),
    Server = Yaws:create_sconf(docroot(Dir), [
        {servername, "localhost"}, {port, Port}, {listen, Listen}, {dispatchmod, ?MODULE}, {flags, [{access_log, false}, {auth_log, false}]} | Tls
    ]),
    case Api:setconf(Global, [[Server]]) of
        ok ->
            %% One that could not listen has said so in the log.
            case Api:getconf() of
                {ok, _, [_ | _]} -> ignore;
                _ -> {error, not_listening}
            end;
        {error, Reason} ->
            {error, Reason}
    end.

%% @private Of a request whose head was read. Records of Yaws are read by its own functions: it need not be there when
%% this is compiled.
-spec dispatch(tuple()) -> done | closed.
dispatch(Arg) ->
    Api = yaws_api,
    Socket = case Api:arg_clisock(Arg) of {ssl, Tls} -> Tls; Tcp -> Tcp end,
    Config = persistent_term:get(?MODULE),
    ok = options(Socket, [binary, {packet, raw}, {active, false}, {send_timeout, ?SEND_MS}, {send_timeout_close, true}, {nodelay, true}]),
    case head(Arg, Api) of
        {ok, #{headers := Headers, method := Method} = Head} ->
            case body(Socket, Headers, atoll_watch_http:takes(Head, Config)) of
                {ok, Body} ->
                    KeptAlive = kept_alive(Arg, Api),
                    Answered = answered(Head#{body => Body}, Config),
                    ok = atoll_watch_upload:ended(Body),
                    case Answered of
                        {events, After} when Method =:= <<"GET">> -> stream(Socket, fun() -> streaming(Socket, begun(After), 0, none, 0) end);
                        {traffic, Wants} when Method =:= <<"GET">> -> stream(Socket, fun() -> flowing(Socket, Wants) end);
                        {Kind, _} when Kind =:= events; Kind =:= traffic -> sent(Socket, Method, {200, [], <<>>}, KeptAlive);
                        Answer -> sent(Socket, Method, Answer, KeptAlive)
                    end;
                {refused, Status, Sentence} ->
                    refused(Socket, Method, Status, Sentence);
                closed ->
                    closed
            end;
        {error, Sentence} ->
            refused(Socket, <<"GET">>, 400, Sentence)
    end.

answered(Request, Config) ->
    try
        atoll_watch_http:answer(Request, Config)
    catch
        Class:Reason:Stack ->
            logger:error("atoll watch: a request could not be answered: ~0tP", [{Class, Reason, Stack}, 30]),
            {500, [{<<"Content-Type">>, "application/json"}], <<"{\"error\":\"The watch could not answer this: its log says why.\"}">>}
    end.

head(Arg, Api) ->
    {http_request, Method, Target, _} = Api:arg_req(Arg),
    Headers = Api:arg_headers(Arg),
    case Target of
        {abs_path, [$/ | _] = Text} ->
            {Path, Query} = case string:split(Text, "?") of [P, Q] -> {P, Q}; [P] -> {P, ""} end,
            {Address, _} = Api:arg_client_ip_port(Arg),
            try
                {ok, #{method => bytes(Method), path => bytes(Path), query => bytes(Query), headers => headers(Headers, Api), peer => list_to_binary(inet:ntoa(Address))}}
            catch
                error:_ -> {error, "The head of the request cannot be read."}
            end;
        _ ->
            {error, "The request does not begin with a path."}
    end.

bytes(Method) when is_atom(Method) -> atom_to_binary(Method);
bytes(Text) -> list_to_binary(Text).

%% One that came twice is a tuple of all, or separated by commas.
headers(Headers, Api) ->
    Own = [{<<"host">>, Api:headers_host(Headers)}, {<<"content-length">>, Api:headers_content_length(Headers)}, {<<"content-type">>, Api:headers_content_type(Headers)},
           {<<"transfer-encoding">>, Api:headers_transfer_encoding(Headers)}, {<<"authorization">>, authorization(Api:headers_authorization(Headers))}]
        ++ [{<<"cookie">>, Cookie} || Cookie <- Api:headers_cookie(Headers)],
    Others = [{string:lowercase(bytes(Name)), Value} || {http_header, _, Name, _, Value} <- Api:headers_other(Headers)],
    [{Name, bytes(Value)} || {Name, Given} <- Own ++ Others, Given =/= undefined, Value <- case Given of {Several} -> Several; _ -> [Given] end].

authorization({_, _, Text}) -> Text;
authorization(Text) -> Text.

kept_alive(Arg, Api) ->
    {http_request, _, _, Version} = Api:arg_req(Arg),
    Version =:= {1, 1} andalso case Api:headers_connection(Api:arg_headers(Arg)) of undefined -> true; Said -> string:lowercase(Said) =/= "close" end.

%% The body

body(Socket, Headers, {To, Most}) ->
    case {[1 || {<<"transfer-encoding">>, _} <- Headers], [string:trim(Length) || {<<"content-length">>, Length} <- Headers]} of
        {[], []} -> {ok, <<>>};
        {[], [Length]} ->
            case re:run(Length, "^[0-9]{1,15}$", [{capture, none}]) =:= match andalso binary_to_integer(Length) of
                false -> {refused, 400, "The length of the body is no number."};
                0 -> {ok, <<>>};
                N when N > Most -> {refused, 413, io_lib:format("A body has at most ~b bytes.", [Most])};
                N -> body_of(To, Socket, N, Headers)
            end;
        {[], _} -> {refused, 400, "The body has several lengths."};
        {_, _} -> {refused, 411, "A body is to come with its length."}
    end.

body_of(file, Socket, N, Headers) ->
    atoll_watch_upload:taken(N, fun() -> continue(Socket, Headers) end, fun(Bytes) -> recv(Socket, Bytes, ?BODY_MS) end);
body_of(memory, Socket, N, Headers) ->
    ok = continue(Socket, Headers),
    case recv(Socket, N, ?BODY_MS) of
        {ok, Body} -> {ok, Body};
        {error, timeout} -> {refused, 408, "The body did not come in time."};
        {error, _} -> closed
    end.

continue(Socket, Headers) ->
    _ = [send(Socket, "HTTP/1.1 100 Continue\r\n\r\n") || {<<"expect">>, Said} <- Headers, string:lowercase(Said) =:= <<"100-continue">>],
    ok.

%% The answer

sent(Socket, Method, {Status, Headers, Body}, KeptAlive) ->
    Length = case Status of 204 -> []; _ -> [{<<"Content-Length">>, integer_to_list(iolist_size(Body))}] end,
    Connection = [{<<"Connection">>, "close"} || not KeptAlive],
    Head = [atoll_watch_http:status_line(Status), atoll_watch_http:headers(Headers ++ Length ++ Connection), "\r\n"],
    case send(Socket, [Head | [Body || Method =/= <<"HEAD">>, Status =/= 204]]) of
        ok when KeptAlive -> done;
        _ -> closed
    end.

%% What it still sends would make the answer be lost, if the connection was closed at once.
refused(Socket, Method, Status, Sentence) ->
    _ = sent(Socket, Method, {Status, [{<<"Content-Type">>, "application/json; charset=utf-8"}], atoll_cli_json:encode({[{error, unicode:characters_to_binary(Sentence)}]})}, false),
    _ = shutdown(Socket),
    drained(Socket, ?DRAINED, erlang:monotonic_time(millisecond) + ?DRAIN_MS).

drained(Socket, Left, Deadline) when Left > 0 ->
    case recv(Socket, 0, max(0, Deadline - erlang:monotonic_time(millisecond))) of
        {ok, Bytes} -> drained(Socket, Left - byte_size(Bytes), Deadline);
        {error, _} -> closed
    end;
drained(_, _, _) ->
    closed.

%% Events: it looks at what is new, and sends that, twice a second.

stream(Socket, Streaming) ->
    case atoll_watch_store:added(streams, 1) > ?STREAMS of
        true ->
            _ = atoll_watch_store:added(streams, -1),
            _ = atoll_watch_store:added(streams_refused, 1),
            refused(Socket, <<"GET">>, 503, "Too many event streams are open: close another page.");
        false ->
            try
                case send(Socket, [atoll_watch_http:status_line(200), atoll_watch_http:headers([{<<"Content-Type">>, "text/event-stream; charset=utf-8"}, {<<"Connection">>, "close"}]), "\r\n", ": \n\n"]) of
                    ok -> Streaming();
                    {error, _} -> closed
                end
            after
                atoll_watch_store:added(streams, -1)
            end
    end.

begun(After) ->
    Now = atoll_watch_store:position(),
    try binary_to_integer(After) of
        Position when Position >= 0, Position =< Now -> Position;
        _ -> Now
    catch
        error:badarg -> Now
    end.

streaming(Socket, Position0, Look0, Glance, Sent) ->
    Now = erlang:monotonic_time(millisecond),
    #{period := Period} = atoll_watch_store:about(),
    {Lost, Position, Happened} = atoll_watch_store:feed(Position0),
    _ = [atoll_watch_store:added(unseen, Lost) || Lost > 0],
    {Look, Rows} = atoll_watch_store:looked(Look0),
    IsDue = Glance =:= none orelse Now - Glance >= max(1000, Period),
    Alarms = case Rows of [] -> #{}; _ -> atoll_watch_json:alarms_by_node() end,
    Events = [event(Position, "lost", {[{events, Lost}]}) || Lost > 0] ++ [event(Position, "cluster", atoll_watch_json:cluster()) || IsDue] ++
        [event(Position, "nodes", [atoll_watch_json:node(Row, Alarms) || Row <- Rows]) || Rows =/= []] ++ [happened(Position, Is) || Is <- Happened],
    Pulse = [": \n\n" || Events =:= [], Now - Sent >= ?PULSE_MS],
    case Events =:= [] andalso Pulse =:= [] orelse send(Socket, [Events, Pulse]) of
        Is when Is =:= true; Is =:= ok ->
            %% Whoever ends the server says so to this process.
            receive
                {'EXIT', _, _} -> closed
            after ?LOOK_MS ->
                streaming(Socket, Position, Look, case IsDue of true -> Now; false -> Glance end, case Events =:= [] andalso Pulse =:= [] of true -> Sent; false -> Now end)
            end;
        {error, _} ->
            closed
    end.

happened(Position, {gone, Node}) -> event(Position, "gone", {[{node, atom_to_binary(Node)}]});
happened(Position, {alarm, Alarm}) -> event(Position, "alarm", atoll_watch_json:alarm(Alarm));
happened(Position, {note, Note}) -> event(Position, "notification", atoll_watch_json:note(Note)).

event(Id, Name, Object) -> ["id: ", integer_to_list(Id), "\nevent: ", Name, "\ndata: ", atoll_cli_json:encode(Object), "\n\n"].

%% Frames of what flows, as they come. Who reads more slowly than they come misses some, which are taken together: a frame that waits
%% behind another one is not sent.

flowing(Socket, Wants) ->
    case atoll_watch_traffic:join(Wants) of
        {ok, Flow} ->
            try
                flowing(Socket, Flow, monitor(process, Flow), atoll_flow_frame:new())
            after
                atoll_watch_traffic:leave()
            end;
        {error, Sentence} ->
            _ = send(Socket, event("trouble", {[{error, unicode:characters_to_binary(Sentence)}]})),
            closed
    end.

flowing(Socket, Flow, Ref, Writer0) ->
    receive
        {atoll_flow, Flow, Frame0} ->
            {Object, Writer} = atoll_flow_frame:object(together(Flow, Frame0), Writer0),
            case send(Socket, event("frame", Object)) of
                ok -> flowing(Socket, Flow, Ref, Writer);
                {error, _} -> closed
            end;
        {'DOWN', Ref, process, Flow, _} -> closed;
        %% Whoever ends the server says so to this process.
        {'EXIT', _, _} -> closed
    end.

together(Flow, Frame) ->
    receive {atoll_flow, Flow, Next} -> together(Flow, atoll_flow_frame:joined(Frame, Next)) after 0 -> Frame end.

event(Name, Object) -> ["event: ", Name, "\ndata: ", atoll_cli_json:encode(Object), "\n\n"].

%% TLS or none

options(Socket, Options) when is_port(Socket) -> told(inet:setopts(Socket, Options));
options(Socket, Options) -> told(ssl:setopts(Socket, Options -- [{send_timeout, ?SEND_MS}, {send_timeout_close, true}, {nodelay, true}])).

%% It is closed already.
told(_) -> ok.

send(Socket, Data) when is_port(Socket) -> gen_tcp:send(Socket, Data);
send(Socket, Data) -> ssl:send(Socket, Data).

recv(Socket, N, Ms) when is_port(Socket) -> gen_tcp:recv(Socket, N, Ms);
recv(Socket, N, Ms) -> ssl:recv(Socket, N, Ms).

shutdown(Socket) when is_port(Socket) -> gen_tcp:shutdown(Socket, write);
shutdown(Socket) -> ssl:shutdown(Socket, write).
