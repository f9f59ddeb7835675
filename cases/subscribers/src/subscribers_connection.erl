%% SPDX-License-Identifier: Apache-2.0
%% @doc A connection with MySQL that is made again when it is lost: a worker of poolboy.
%%
%% It starts whether the database is there or not, since poolboy ends when a worker does not start. While there is no connection it
%% says so at once, and tries again after 100 ms, and each time after twice as long, a second at most; all workers of a pool somewhat
%% apart.
%%
%% Promised: an answer reaches the caller that asked and no other: one query is with the driver at a time, since the driver loses its
%% connection over two, and the connection of a query that took too long is closed. Whoever owns the socket is linked to this process, so
%% no connection outlives it.
-module(subscribers_connection).
-behaviour(gen_server).

-export([start_link/1, query/3, is_connected/1, missing/0]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([answer/0]).

-type answer() :: {rows, [[binary() | null]]} | updated | {error, disconnected | {timed_out, pos_integer()} | {database, binary()}}.

-record(state, {
    options :: subscribers_options:options(),
    %% the driver's process, while there is a connection
    driver = none :: pid() | none,
    %% after how long the next try begins
    again_ms = 100 :: pos_integer()
}).

-define(CONNECT_MS, 1000).
-define(FIRST_MS, 100).
-define(MOST_MS, 1000).

%% @doc Starts it; poolboy does.
-spec start_link(subscribers_options:options()) -> gen_server:start_ret().
start_link(Options) -> gen_server:start_link(?MODULE, Options, []).

%% @doc Asks the database, for so long. For whoever has checked the worker out.
-spec query(pid(), iodata(), Ms :: pos_integer()) -> answer().
query(Worker, Sql, Ms) ->
    try
        %% The query of a caller that was killed may still be under way.
        gen_server:call(Worker, {query, iolist_to_binary(Sql), Ms}, Ms + ?CONNECT_MS)
    catch
        exit:{timeout, _} -> {error, {timed_out, Ms}};
        %% It was killed.
        exit:{_, {gen_server, call, _}} -> {error, disconnected}
    end.

%% @doc Whether there is a connection. Within a second it may not say.
-spec is_connected(pid()) -> boolean().
is_connected(Worker) ->
    try
        gen_server:call(Worker, is_connected, ?CONNECT_MS)
    catch
        exit:_ -> false
    end.

%% @doc The Debian packages whose modules are not found here.
-spec missing() -> [string()].
missing() -> [Package || {Module, Package} <- [{poolboy, "erlang-poolboy"}, {p1_mysql_conn, "erlang-p1-mysql"}], code:which(Module) =:= non_existing].

%% @private
-spec init(subscribers_options:options()) -> {ok, #state{}, {continue, connect}}.
init(Options) ->
    %% The end of the driver's process is an event here.
    _ = process_flag(trap_exit, true),
    {ok, #state{options = Options}, {continue, connect}}.

%% @private
-spec handle_continue(connect, #state{}) -> {noreply, #state{}}.
handle_continue(connect, State) -> {noreply, connect(State)}.

connect(#state{options = #{host := Host, port := Port, user := User, password := Password, database := Database}, again_ms = Ms} = State) ->
    Driver = p1_mysql_conn,
    case Driver:start_link(Host, Port, User, Password, Database, ?CONNECT_MS, fun quiet/3) of
        {ok, Pid} ->
            ok = subscribers_gate:count(connected),
            State#state{driver = Pid, again_ms = ?FIRST_MS};
        {error, _} ->
            _ = erlang:send_after(Ms + rand:uniform(Ms), self(), connect),
            State#state{again_ms = min(?MOST_MS, 2 * Ms)}
    end.

%% What it would write to the log is what our counters say.
quiet(_Level, _Format, _Args) -> ok.

%% @private
-spec handle_call(is_connected | {query, binary(), pos_integer()}, gen_server:from(), #state{}) -> {reply, term(), #state{}} | {reply, term(), #state{}, {continue, connect}}.
handle_call(is_connected, _From, #state{driver = Pid} = State) ->
    {reply, is_pid(Pid), State};
handle_call({query, _, _}, _From, #state{driver = none} = State) ->
    {reply, {error, disconnected}, State};
handle_call({query, Sql, Ms}, _From, #state{driver = Pid} = State) ->
    Driver = p1_mysql_conn,
    case answer(Driver:squery(Pid, Sql, self(), [{result_type, binary}, {timeout, Ms}]), Ms) of
        {error, {database, _}} = Error ->
            {reply, Error, State};
        {error, _} = Error ->
            %% It may be waiting for the database, or have ended.
            true = unlink(Pid),
            true = exit(Pid, kill),
            {reply, Error, lost(State), {continue, connect}};
        Answer ->
            {reply, Answer, State}
    end.

lost(State) ->
    ok = subscribers_gate:count(lost),
    State#state{driver = none}.

%% @private
-spec handle_cast(term(), #state{}) -> no_return().
handle_cast(Request, _State) -> error({unknown, Request}).

%% @private
-spec handle_info(term(), #state{}) -> {noreply, #state{}} | {noreply, #state{}, {continue, connect}}.
handle_info({'EXIT', Pid, _}, #state{driver = Pid} = State) ->
    {noreply, lost(State), {continue, connect}};
handle_info(connect, #state{driver = none} = State) ->
    {noreply, State, {continue, connect}};
%% Of a driver's process that was not connected or is given up; or of the pool, whose supervisor ends this one.
handle_info({'EXIT', _, _}, State) ->
    {noreply, State};
%% A driver's answer that came too late.
handle_info({fetch_result, _, _, _}, State) ->
    {noreply, State}.

%% What the driver says, as it is meant: a complaint of the server begins with `#' and the five letters of its state. Others are of
%% the connection.
answer({data, Result}, _Ms) ->
    Driver = p1_mysql,
    {rows, Driver:get_result_rows(Result)};
answer({updated, _}, _Ms) ->
    updated;
answer({error, Result}, Ms) ->
    Driver = p1_mysql,
    Said = case is_tuple(Result) of true -> Driver:get_result_reason(Result); false -> Result end,
    case unicode:characters_to_binary(io_lib:format("~ts", [Said])) of
        <<"#", _State:5/binary, Text/binary>> -> {error, {database, Text}};
        <<"query timed out">> -> {error, {timed_out, Ms}};
        _ -> {error, disconnected}
    end.
