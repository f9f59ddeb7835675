%% SPDX-License-Identifier: Apache-2.0
%% @doc A port for clients, with a few processes that accept. Connections beyond the bound are told so and closed.
-module(matchstream_listener).
-behaviour(gen_server).

-export([start_link/2, port/1]).
-export([init/1, handle_call/3, handle_cast/2]).

-define(ACCEPTORS, 4).
%% The most that inet knows: of a larger one it takes the last sixteen bits.
-define(BACKLOG, 65535).
%% After a failure such as too many open files.
-define(AGAIN_MS, 50).
-define(REFUSE_MS, 1000).

%% @doc Opens it.
-spec start_link(matchstream:settings(), inet:port_number()) -> gen_server:start_ret().
start_link(Settings, Port) -> gen_server:start_link(?MODULE, {Settings, Port}, []).

%% @doc Which one it is.
-spec port(pid()) -> inet:port_number().
port(Listener) -> gen_server:call(Listener, port).

%% @private
-spec init({matchstream:settings(), inet:port_number()}) -> {ok, inet:port_number()} | {stop, {shutdown, {inet:port_number(), inet:posix()}}}.
init({#{listen := Listen, connections := Most, send_ms := SendMs}, Port}) ->
    %% The system takes what it allows of the backlog. Buffers are small: there are very many, and an event has some hundred bytes.
    Options = [binary, {ip, Listen}, {reuseaddr, true}, {active, false}, {nodelay, true}, {backlog, matchstream_switches:when_on(backlog, ?BACKLOG, 5)},
               {sndbuf, 16384}, {recbuf, 4096}, {buffer, 1024}, {high_watermark, 16384}, {send_timeout, SendMs}],
    case gen_tcp:listen(Port, Options) of
        {ok, Socket} ->
            _ = [proc_lib:spawn_link(fun() -> accept(Socket, Most) end) || _ <- lists:seq(1, ?ACCEPTORS)],
            {ok, Taken} = inet:port(Socket),
            {ok, Taken};
        {error, Why} ->
            {stop, {shutdown, {Port, Why}}}
    end.

%% @private
-spec handle_call(port, gen_server:from(), inet:port_number()) -> {reply, inet:port_number(), inet:port_number()}.
handle_call(port, _, Port) -> {reply, Port, Port}.

%% @private
-spec handle_cast(term(), inet:port_number()) -> no_return().
handle_cast(Message, _) -> error({no_such_message, Message}).

accept(Listener, Most) ->
    case gen_tcp:accept(Listener) of
        {ok, Socket} -> accepted(Socket, Most);
        {error, closed} -> exit(shutdown);
        {error, _} -> receive after ?AGAIN_MS -> ok end
    end,
    accept(Listener, Most).

accepted(Socket, Most) ->
    ok = matchstream_count:add(accepted, 1),
    case matchstream_count:get(connections) < Most andalso matchstream_sup:connection(Socket) of
        {ok, Connection} ->
            _ = gen_tcp:controlling_process(Socket, Connection),
            matchstream_connection:take(Connection);
        false -> refused(Socket);
        %% The VM has no process for it.
        {error, _} -> refused(Socket)
    end.

refused(Socket) ->
    ok = matchstream_count:add(refused, 1),
    _ = inet:setopts(Socket, [{send_timeout, ?REFUSE_MS}]),
    _ = gen_tcp:send(Socket, [matchstream_protocol:greeting(), matchstream_protocol:error("Too many connections are open here: please try again later.")]),
    gen_tcp:close(Socket).
