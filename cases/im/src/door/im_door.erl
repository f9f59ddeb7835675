%% SPDX-License-Identifier: Apache-2.0
%% @doc The door of the messenger to the world: a port on which people's clients connect, by lines of JSON or by a page with a
%% WebSocket ({@link im_door_connection}). A few processes accept. So many connections at most are served at once; one too many is
%% told so and closed.
%%
%% It is the child of a supervisor. What it has started ends with it.
-module(im_door).

-behaviour(gen_server).

-export([start_link/1, port/1, count/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([options/0]).

-type options() :: #{
    %% whom the clients ask
    routers := [node(), ...],
    listen => inet:ip_address(),
    %% 0 takes a free one
    port => inet:port_number(),
    connections => pos_integer(),
    login_ms => pos_integer(),
    frame_ms => pos_integer(),
    send_ms => pos_integer(),
    events => pos_integer(),
    client => im_client:options()
}.

-record(state, {
    socket :: gen_tcp:socket(),
    connections :: pid(),
    %% how many there are, may be, and were too many
    count = 0 :: non_neg_integer(),
    most :: pos_integer(),
    refused = 0 :: non_neg_integer()
}).

-define(ACCEPTORS, 4).
-define(DEFAULTS, #{listen => {127, 0, 0, 1}, port => 0, connections => 20000, login_ms => 30000, frame_ms => 10000, send_ms => 10000, events => 5000, client => #{}}).
%% After a failure such as too many open files.
-define(AGAIN_MS, 100).

%% @doc Opens the door.
-spec start_link(options()) -> {ok, pid()} | {error, inet:posix()}.
start_link(Options) -> gen_server:start_link(?MODULE, maps:merge(?DEFAULTS, Options), []).

%% @doc The port.
-spec port(pid()) -> inet:port_number().
port(Door) -> gen_server:call(Door, port).

%% @doc How many connections there are, and how many were too many.
-spec count(pid()) -> {Connections :: non_neg_integer(), Refused :: non_neg_integer()}.
count(Door) -> gen_server:call(Door, count).

%% @private
-spec init(options()) -> {ok, #state{}} | {stop, inet:posix()}.
init(#{listen := Listen, port := Port, connections := Most} = Options) ->
    case gen_tcp:listen(Port, [binary, {ip, Listen}, {reuseaddr, true}, {active, false}, {backlog, 1024}, {nodelay, true}]) of
        {ok, Socket} ->
            {ok, Connections} = im_door_connections:start_link(maps:with([routers, login_ms, frame_ms, send_ms, events, client], Options)),
            Door = self(),
            _ = [spawn_link(fun() -> accept(Door, Socket) end) || _ <- lists:seq(1, ?ACCEPTORS)],
            {ok, #state{socket = Socket, connections = Connections, most = Most}};
        {error, Why} ->
            {stop, Why}
    end.

%% @private
-spec handle_call(port | count | connection, gen_server:from(), #state{}) -> {reply, term(), #state{}}.
handle_call(connection, _, #state{count = Count, most = Most, refused = Refused} = S) when Count >= Most -> {reply, full, S#state{refused = Refused + 1}};
handle_call(connection, _, #state{connections = Connections, count = Count} = S) ->
    {ok, Connection} = supervisor:start_child(Connections, []),
    _ = monitor(process, Connection),
    {reply, {ok, Connection}, S#state{count = Count + 1}};
handle_call(port, _, #state{socket = Socket} = S) ->
    {ok, Port} = inet:port(Socket),
    {reply, Port, S};
handle_call(count, _, #state{count = Count, refused = Refused} = S) ->
    {reply, {Count, Refused}, S}.

%% @private
-spec handle_cast(term(), #state{}) -> no_return().
handle_cast(Message, _) -> error({no_such_message, Message}).

%% @private
-spec handle_info({'DOWN', reference(), process, pid(), term()}, #state{}) -> {noreply, #state{}}.
handle_info({'DOWN', _, process, _, _}, #state{count = Count} = S) -> {noreply, S#state{count = Count - 1}}.

accept(Door, Listener) ->
    case gen_tcp:accept(Listener) of
        {ok, Socket} -> accepted(gen_server:call(Door, connection, infinity), Socket);
        {error, closed} -> exit(shutdown);
        {error, _} -> receive after ?AGAIN_MS -> ok end
    end,
    accept(Door, Listener).

%% A socket that is closed already is noticed by the connection.
accepted({ok, Connection}, Socket) ->
    _ = gen_tcp:controlling_process(Socket, Connection),
    im_door_connection:take(Connection, Socket);
accepted(full, Socket) ->
    _ = gen_tcp:send(Socket, [im_door_protocol:error("Too many connections are open here: please try again later."), "\n"]),
    gen_tcp:close(Socket).
