%% SPDX-License-Identifier: Apache-2.0
%% @doc A driver for MariaDB: Debian's, which it starts with a folder and a port of its own ({@link atoll_bench_mariadb}), and one table of keys and values. With `{mariadb_flush, 1}', which is the default, a write is on
%% the disk before its answer; with 2 within a second.
-module(atoll_load_mariadb).
-behaviour(atoll_load_driver).

-export([operations/0, rules/0, prepare/1, new/2, run/4, terminate/2]).

-define(CONNECT_MS, 5000).
-define(ANSWER_MS, 5000).

-spec operations() -> [atom(), ...].
operations() -> [get, put, delete].

-spec rules() -> [atoll_bench_config:rule()].
rules() -> [{mariadb_flush, 1, atoll_bench_config:whole(1, 2), "1 or 2"}].

-spec prepare(#{atom() => term()}) -> {ok, atoll_load_driver:store()} | {error, unicode:chardata()}.
prepare(#{mariadb_flush := Flush} = Settings) ->
    case atoll_bench_mariadb:start(#{flush => Flush}) of
        {ok, Server} ->
            Stop = fun() -> atoll_bench_mariadb:stop(Server) end,
            Of = atoll_bench_mariadb:settings(Server),
            case connected(Of) of
                {ok, Connection} ->
                    {ok, Connection} = ask("CREATE TABLE load_kv (k VARBINARY(255) NOT NULL PRIMARY KEY, v LONGBLOB NOT NULL) ENGINE=InnoDB", Connection),
                    ok = terminate(done, Connection),
                    {ok, #{where => anywhere, settings => Settings#{server => Of}, stop => Stop}};
                {error, Why} ->
                    ok = Stop(),
                    {error, io_lib:format("MariaDB takes no connection: ~0tP", [Why, 9])}
            end;
        {error, _} = Error -> Error
    end.

connected(#{host := Host, port := Port, user := User, password := Password, database := Database}) ->
    Driver = p1_mysql_conn,
    Driver:start_link(Host, Port, User, Password, Database, ?CONNECT_MS, fun(_, _, _) -> ok end).

-spec new(pos_integer(), #{server := map(), _ => _}) -> {ok, pid()} | {error, term()}.
new(_, #{server := Of}) -> connected(Of).

-spec run(get | put | delete, atoll_load_keys:generator(), atoll_load_keys:generator(), pid()) -> {ok, pid()} | {error, term(), pid()}.
run(get, Key, _, Connection) -> ask(["SELECT v FROM load_kv WHERE k=", literal(Key())], Connection);
run(put, Key, Value, Connection) ->
    ask(["INSERT INTO load_kv (k, v) VALUES (", literal(Key()), ", ", literal(Value()), ") ON DUPLICATE KEY UPDATE v=VALUES(v)"], Connection);
run(delete, Key, _, Connection) -> ask(["DELETE FROM load_kv WHERE k=", literal(Key())], Connection).

%% In hexadecimal, of which no byte can end a literal.
literal(Text) when is_binary(Text) -> ["x'", binary:encode_hex(Text), "'"];
literal(Term) -> literal(term_to_binary(Term)).

ask(Sql, Connection) ->
    Driver = p1_mysql_conn,
    case Driver:squery(Connection, iolist_to_binary(Sql), self(), [{result_type, binary}, {timeout, ?ANSWER_MS}]) of
        {error, Result} -> {error, said(Result), Connection};
        _ -> {ok, Connection}
    end.

said(Result) when is_tuple(Result) ->
    Driver = p1_mysql,
    Driver:get_result_reason(Result);
said(Result) -> Result.

-spec terminate(term(), pid()) -> ok.
terminate(_, Connection) ->
    true = unlink(Connection),
    true = exit(Connection, kill),
    ok.
