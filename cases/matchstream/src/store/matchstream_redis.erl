%% SPDX-License-Identifier: Apache-2.0
%% @doc A Redis of our own: Debian's redis-server in a folder, on a socket in that folder and on no port.
%%
%% Promised: it writes what it is told to disk before it answers (`appendfsync always'). It ends with the process that started
%% this one, and with the VM in whatever way that ends: the system kills it when its parent is gone. One that ends by itself is started again, with
%% what it has kept, and that is said in the log.
%% Not promised: to remove the folder.
-module(matchstream_redis).
-behaviour(gen_server).

-export([find/0, start_link/1, socket/1, kill/1, restart/1, stop/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-record(state, {
    dir :: file:filename(),
    server :: {file:filename(), file:filename()},
    port = none :: port() | none,
    os_pid = 0 :: non_neg_integer()
}).

%% It loads its data before it listens, on a busy machine.
-define(READY_MS, 20000).
-define(LOOK_MS, 10).
%% One that cannot be started again is tried again.
-define(AGAIN_MS, 1000).
%% The path of a socket of this family has 107 bytes at most.
-define(PATH, 107).

%% @doc Whether there is one on this machine.
-spec find() -> ok | {error, unicode:chardata()}.
find() ->
    case {os:find_executable("redis-server"), os:find_executable("setpriv"), code:ensure_loaded(eredis)} of
        {false, _, _} -> {error, "redis-server is not installed; on Debian it is in the package redis-server."};
        {_, false, _} -> {error, "setpriv is not installed; on Debian it is in the package util-linux."};
        {_, _, {error, _}} -> {error, "Erlang does not find eredis; on Debian it is in the package erlang-redis-client."};
        {_, _, {module, _}} -> ok
    end.

%% @doc Starts one in this folder, with what is kept there, and returns when it answers. It ends with the caller.
-spec start_link(Dir :: file:filename()) -> {ok, pid()} | {error, Sentence :: unicode:chardata()}.
start_link(Dir) ->
    %% One that cannot be started is to be told, not to end the caller.
    case gen_server:start(?MODULE, Dir, []) of
        {ok, Redis} ->
            true = link(Redis),
            {ok, Redis};
        {error, {shutdown, Sentence}} -> {error, Sentence}
    end.

%% @doc Where it listens.
-spec socket(pid()) -> file:filename().
socket(Redis) -> gen_server:call(Redis, socket).

%% @doc Kills it with SIGKILL, and returns when it is gone.
-spec kill(pid()) -> ok.
kill(Redis) -> gen_server:call(Redis, kill, infinity).

%% @doc Starts it again after it was killed.
-spec restart(pid()) -> ok | {error, unicode:chardata()}.
restart(Redis) -> gen_server:call(Redis, restart, infinity).

%% @doc Ends it.
-spec stop(pid()) -> ok.
stop(Redis) -> gen_server:stop(Redis).

%% @private
-spec init(file:filename()) -> {ok, #state{}} | {stop, {shutdown, unicode:chardata()}}.
init(Dir) ->
    _ = process_flag(trap_exit, true),
    case {find(), os:find_executable("setpriv"), os:find_executable("redis-server")} of
        {ok, [_ | _] = Setpriv, [_ | _] = Server} ->
            case started(#state{dir = filename:absname(Dir), server = {Setpriv, Server}}) of
                {ok, S} -> {ok, S};
                {error, Why} -> {stop, {shutdown, Why}}
            end;
        {{error, Why}, _, _} -> {stop, {shutdown, Why}}
    end.

started(#state{dir = Dir, server = {Setpriv, Server}} = S) ->
    case length(path(Dir)) =< ?PATH andalso filelib:ensure_path(Dir) of
        ok ->
            %% Of an earlier life; it would be taken for the sign that this one is ready.
            _ = file:delete(path(Dir)),
            Port = open_port({spawn_executable, Setpriv}, [
                {args, ["--pdeathsig", "KILL", Server, "--port", "0", "--unixsocket", path(Dir), "--unixsocketperm", "700", "--dir", Dir, "--daemonize", "no",
                        "--appendonly", "yes", "--appendfsync", "always", "--save", "", "--maxmemory-policy", "noeviction"]},
                exit_status, stderr_to_stdout, binary, hide
            ]),
            {os_pid, OsPid} = erlang:port_info(Port, os_pid),
            case ready(path(Dir), Port, erlang:monotonic_time(millisecond) + ?READY_MS, <<>>) of
                ok -> {ok, S#state{port = Port, os_pid = OsPid}};
                %% Its number may be another process' by now.
                {ended, Sentence} -> {error, Sentence};
                {error, _} = Error ->
                    _ = gone(S#state{port = Port, os_pid = OsPid}),
                    Error
            end;
        false -> {error, ["The folder ", Dir, " has too long a name for a socket in it."]};
        {error, Why} -> {error, ["The folder ", Dir, " cannot be made: ", file:format_error(Why), "."]}
    end.

path(Dir) -> filename:join(Dir, "redis.sock").

%% Nobody tells when it listens: it is asked.
ready(Path, Port, Deadline, Said) ->
    case pinged(Path) of
        true -> ok;
        false ->
            receive
                {Port, {data, Data}} -> ready(Path, Port, Deadline, Data);
                {Port, {exit_status, _}} -> {ended, ["redis-server ended: ", string:trim(lists:last(string:split(string:trim(Said), "\n", all)))]}
            after ?LOOK_MS ->
                case erlang:monotonic_time(millisecond) < Deadline of
                    true -> ready(Path, Port, Deadline, Said);
                    false -> {error, "redis-server does not answer."}
                end
            end
    end.

pinged(Path) ->
    case gen_tcp:connect({local, Path}, 0, [local, binary, {active, false}]) of
        {ok, Socket} ->
            Answer = case gen_tcp:send(Socket, "PING\r\n") of ok -> gen_tcp:recv(Socket, 0, 1000); Error -> Error end,
            ok = gen_tcp:close(Socket),
            Answer =:= {ok, <<"+PONG\r\n">>};
        {error, _} -> false
    end.

%% @private
-spec handle_call(socket | kill | restart, gen_server:from(), #state{}) -> {reply, term(), #state{}}.
handle_call(socket, _, #state{dir = Dir} = S) -> {reply, path(Dir), S};
handle_call(kill, _, S) -> {reply, ok, gone(S)};
handle_call(restart, _, #state{port = none} = S) ->
    case started(S) of
        {ok, Is} -> {reply, ok, Is};
        {error, _} = Error -> {reply, Error, S}
    end;
handle_call(restart, _, S) -> {reply, ok, S}.

%% @private
-spec handle_cast(term(), #state{}) -> no_return().
handle_cast(Message, _) -> error({no_such_message, Message}).

%% @private
-spec handle_info(term(), #state{}) -> {noreply, #state{}} | {stop, {shutdown, term()}, #state{}}.
handle_info({Port, {data, _}}, #state{port = Port} = S) -> {noreply, S};
handle_info({Port, {exit_status, Status}}, #state{port = Port} = S) ->
    ok = logger:warning("redis-server has ended with the status ~b, and is started again.", [Status]),
    {noreply, again(S#state{port = none})};
handle_info(again, #state{port = none} = S) -> {noreply, again(S)};
%% It was started meanwhile.
handle_info(again, S) -> {noreply, S};
handle_info({'EXIT', Port, _}, S) when is_port(Port) -> {noreply, S};
handle_info({'EXIT', _, Why}, S) -> {stop, {shutdown, Why}, S}.

again(S) ->
    case started(S) of
        {ok, Is} -> Is;
        {error, Sentence} ->
            ok = logger:warning("~ts", [Sentence]),
            _ = erlang:send_after(?AGAIN_MS, self(), again),
            S
    end.

%% @private
-spec terminate(term(), #state{}) -> ok.
terminate(_, S) ->
    _ = gone(S),
    ok.

gone(#state{port = none} = S) -> S;
gone(#state{port = Port, os_pid = OsPid} = S) ->
    _ = os:cmd("kill -KILL " ++ integer_to_list(OsPid)),
    receive {Port, {exit_status, _}} -> ok end,
    S#state{port = none}.
