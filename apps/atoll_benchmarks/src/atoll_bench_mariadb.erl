%% SPDX-License-Identifier: Apache-2.0
%% @doc A MariaDB server for a benchmark, a command or a test: real, empty, and gone with its owner
%% ({@link atoll_cluster_daemon}).
%%
%% It listens on a free port of 127.0.0.1, since the driver of {@link subscribers_connection} takes no socket of a file system. Its user has a password that
%% nobody else knows. Until the database answers nothing is returned.
%%
%% `flush' is InnoDB's `innodb_flush_log_at_trx_commit': with 1 a commit waits until it is on the disc; with 2 it is
%% written and on the disc within a second, which is what Mnesia's log comes nearest to.
-module(atoll_bench_mariadb).

-export([missing/0, start/1, settings/1, os_pid/1, kill/1, again/1, stop/1]).

-export_type([server/0, options/0]).

-type options() :: #{flush => 1 | 2, connections => pos_integer()}.

-opaque server() :: #{
    daemon := atoll_cluster_daemon:daemon(),
    program := file:filename(),
    args := [string()],
    settings := #{host := string(), port := inet:port_number(), user := string(), password := string(), database := string()}
}.

-define(NAME, "subscribers").
-define(INSTALL_MS, 60_000).
-define(READY_MS, 30_000).
-define(LOOK_MS, 20).
%% Somebody else may take the port before the server does.
-define(TRIES, 3).

%% @doc The Debian packages that a service over it lacks here.
-spec missing() -> [string()].
missing() ->
    %% Debian's mariadb-server begins a server of its own; these have the programs alone.
    subscribers_connection:missing() ++
        [Package || {Program, Package} <- [{"mariadbd", "mariadb-server-core"}, {"my_print_defaults", "mariadb-client-core"}], program(Program) =:= none].

%% Debian keeps servers where the path of a user does not lead.
program(Name) ->
    case os:find_executable(Name, os:getenv("PATH", "") ++ ":/usr/sbin:/usr/bin") of
        false -> none;
        Path -> Path
    end.

%% @doc Starts one; the caller owns it. After an error nothing is left.
-spec start(options()) -> {ok, server()} | {error, unicode:chardata()}.
start(Options) ->
    case missing() of
        [] -> start(Options, ?TRIES);
        Packages -> {error, ["MariaDB takes what is not installed here: ", lists:join(", ", Packages), " (Debian's packages)."]}
    end.

start(Options, Tries) ->
    case atoll_cluster_daemon:open("mariadb") of
        {ok, Daemon} ->
            case installed(Daemon, Options) of
                {ok, Server} ->
                    {ok, Server};
                {error, _} when Tries > 1 ->
                    ok = atoll_cluster_daemon:stop(Daemon),
                    start(Options, Tries - 1);
                {error, _} = Error ->
                    ok = atoll_cluster_daemon:stop(Daemon),
                    Error
            end;
        {error, _} = Error ->
            Error
    end.

installed(Daemon, Options) ->
    Dir = atoll_cluster_daemon:dir(Daemon),
    Data = filename:join(Dir, "data"),
    %% A machine whose own name cannot be looked up has no table of hosts, and needs none.
    Install = ["--no-defaults", "--force", "--datadir=" ++ Data, "--skip-test-db", "--auth-root-authentication-method=socket" | as_root()],
    case atoll_cluster_program:run(program("mariadb-install-db"), Install, ?INSTALL_MS) of
        ok ->
            Password = binary_to_list(binary:encode_hex(crypto:strong_rand_bytes(12))),
            Settings = #{host => "127.0.0.1", port => free_port(), user => ?NAME, password => Password, database => ?NAME},
            ok = file:write_file(filename:join(Dir, "init.sql"), init(Settings)),
            Server = #{daemon => Daemon, program => program("mariadbd"), args => args(Dir, Data, Settings, Options), settings => Settings},
            case again(Server) of
                ok -> {ok, Server};
                {error, _} = Error -> Error
            end;
        {error, Said} ->
            {error, ["mariadb-install-db has failed: ", last_line(Said)]}
    end.

%% It refuses to run as root unless told to.
as_root() -> ["--user=root" || os:cmd("id -u") =:= "0\n"].

free_port() ->
    {ok, Socket} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(Socket),
    ok = gen_tcp:close(Socket),
    Port.

%% Done at each start; a statement a line.
init(#{user := User, password := Password, database := Database}) ->
    [
        [Line, ";\n"]
     || Line <- [
            ["CREATE DATABASE IF NOT EXISTS ", Database],
            ["CREATE USER IF NOT EXISTS '", User, "'@'127.0.0.1' IDENTIFIED BY '", Password, "'"],
            ["GRANT ALL ON ", Database, ".* TO '", User, "'@'127.0.0.1'"],
            ["USE ", Database],
            subscribers_sql:table()
        ]
    ].

args(Dir, Data, #{port := Port}, Options) ->
    [
        "--no-defaults",
        "--datadir=" ++ Data,
        "--socket=" ++ filename:join(Dir, "socket"),
        "--pid-file=" ++ filename:join(Dir, "pid"),
        "--log-error=" ++ filename:join(Dir, "log"),
        "--init-file=" ++ filename:join(Dir, "init.sql"),
        "--bind-address=127.0.0.1",
        "--port=" ++ integer_to_list(Port),
        "--max-connections=" ++ integer_to_list(maps:get(connections, Options, 500)),
        "--innodb-flush-log-at-trx-commit=" ++ integer_to_list(maps:get(flush, Options, 1)),
        "--innodb-buffer-pool-size=256M",
        "--innodb-log-file-size=64M",
        "--skip-log-bin",
        "--skip-name-resolve"
        | as_root()
    ].

%% @doc What the service is told of it.
-spec settings(server()) -> #{host := string(), port := inet:port_number(), user := string(), password := string(), database := string()}.
settings(#{settings := Settings}) -> Settings.

%% @doc The operating system's number of the server.
-spec os_pid(server()) -> {ok, pos_integer()} | none.
os_pid(#{daemon := Daemon}) -> atoll_cluster_daemon:os_pid(Daemon).

%% @doc Kills it with SIGKILL. What it has is kept for {@link again/1}.
-spec kill(server()) -> ok.
kill(#{daemon := Daemon}) -> atoll_cluster_daemon:kill(Daemon).

%% @doc Starts one again that was killed, and waits until it answers.
-spec again(server()) -> ok | {error, unicode:chardata()}.
again(#{daemon := Daemon, program := Program, args := Args} = Server) ->
    ok = atoll_cluster_daemon:run(Daemon, Program, Args),
    answers(Server, erlang:monotonic_time(millisecond) + ?READY_MS).

%% It greets whoever connects, when it is ready. Nobody tells when that is.
answers(#{daemon := Daemon, settings := #{port := Port}} = Server, Deadline) ->
    case {greeted(Port), os_pid(Server)} of
        {true, {ok, _}} ->
            ok;
        {_, none} ->
            {error, ["MariaDB has ended: ", said(Daemon)]};
        _ ->
            case erlang:monotonic_time(millisecond) >= Deadline of
                true -> {error, io_lib:format("MariaDB does not answer within ~b s: ~ts", [?READY_MS div 1000, said(Daemon)])};
                false ->
                    receive after ?LOOK_MS -> ok end,
                    answers(Server, Deadline)
            end
    end.

greeted(Port) ->
    case gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}], 1000) of
        {ok, Socket} ->
            Greeting = gen_tcp:recv(Socket, 5, 5000),
            ok = gen_tcp:close(Socket),
            element(1, Greeting) =:= ok;
        {error, _} ->
            false
    end.

said(Daemon) ->
    case file:read_file(filename:join(atoll_cluster_daemon:dir(Daemon), "log")) of
        {ok, Log} -> last_line(Log);
        {error, _} -> "it has written no log."
    end.

last_line(Text) ->
    case string:lexemes(Text, "\n") of
        [] -> "it has said nothing.";
        Lines -> lists:last(Lines)
    end.

%% @doc Takes it down, and what it has kept.
-spec stop(server()) -> ok.
stop(#{daemon := Daemon}) -> atoll_cluster_daemon:stop(Daemon).
