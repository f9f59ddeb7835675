%% SPDX-License-Identifier: Apache-2.0
%% @doc Subscribers in MySQL or MariaDB, over a pool of connections.
%%
%% Each operation takes a connection of the pool (poolboy) and gives it back. What an operation has written is durable as the server's
%% `innodb_flush_log_at_trx_commit' says: each is a transaction of its own.
-module(subscribers_mysql).
-behaviour(subscribers_store).

-export([start/1, children/1, put/2, get/2, delete/2, count/1, status/1, stop/1]).

%% What a process says of a worker is its exit.
-dialyzer({nowarn_function, asked/1}).

-define(POOL, subscribers_pool).
-define(STATUS_MS, 1000).

-spec start(subscribers_options:options()) -> ok | {error, unicode:chardata()}.
start(_Options) ->
    case subscribers_connection:missing() of
        [] -> ok;
        Packages -> {error, ["MySQL takes what is not installed here: ", lists:join(", ", Packages), " (Debian's packages)."]}
    end.

%% A worker that has just lost its connection should not be the next one again, so the one that rested longest is.
-spec children(subscribers_options:options()) -> [supervisor:child_spec()].
children(#{pool := Size} = Options) ->
    Pool = [{name, {local, ?POOL}}, {worker_module, subscribers_connection}, {size, Size}, {max_overflow, 0}, {strategy, fifo}],
    [#{id => ?POOL, start => {poolboy, start_link, [Pool, Options]}}].

-spec put(subscribers:subscriber(), subscribers_options:options()) -> ok | {error, subscribers:error()}.
put(Subscriber, Options) -> done(query(subscribers_sql:put(Subscriber), Options)).

-spec get(subscribers:msisdn(), subscribers_options:options()) -> {ok, subscribers:subscriber()} | not_found | {error, subscribers:error()}.
get(Msisdn, Options) ->
    case query(subscribers_sql:get(Msisdn), Options) of
        {rows, [Row]} -> {ok, subscribers_sql:row(Row)};
        {rows, []} -> not_found;
        {error, _} = Error -> Error
    end.

-spec delete(subscribers:msisdn(), subscribers_options:options()) -> ok | {error, subscribers:error()}.
delete(Msisdn, Options) -> done(query(subscribers_sql:delete(Msisdn), Options)).

-spec count(subscribers_options:options()) -> {ok, non_neg_integer()} | {error, subscribers:error()}.
count(Options) ->
    case query(subscribers_sql:count(), Options) of
        {rows, [[N]]} -> {ok, binary_to_integer(N)};
        {error, _} = Error -> Error
    end.

done(updated) -> ok;
done({error, _} = Error) -> Error.

query(Sql, #{wait_ms := WaitMs, query_ms := QueryMs}) ->
    Pool = poolboy,
    try Pool:checkout(?POOL, true, WaitMs) of
        Worker ->
            try
                subscribers_connection:query(Worker, Sql, QueryMs)
            after
                ok = Pool:checkin(?POOL, Worker)
            end
    catch
        exit:{timeout, _} -> {error, {no_connection_free, WaitMs}};
        %% The pool is started again, or was stopped.
        exit:{_, {gen_server, call, _}} -> {error, disconnected}
    end.

%% Workers that connect just now say nothing, so all are asked at once.
-spec status(subscribers_options:options()) -> #{atom() => term()}.
status(#{pool := Size, host := Host, port := Port}) ->
    #{pool => Size, database => lists:concat([Host, ":", Port]), connected => length([true || true <- asked(workers())]), free => free()}.

workers() ->
    try
        [Pid || {_, Pid, _, _} <- gen_server:call(?POOL, get_all_workers, ?STATUS_MS), is_pid(Pid)]
    catch
        exit:_ -> []
    end.

free() ->
    try gen_server:call(?POOL, status, ?STATUS_MS) of
        {_, Free, _, _} -> Free
    catch
        exit:_ -> 0
    end.

asked(Workers) ->
    Asked = [spawn_monitor(fun() -> exit({connected, subscribers_connection:is_connected(Worker)}) end) || Worker <- Workers],
    [receive {'DOWN', Ref, process, Pid, Reason} -> Reason =:= {connected, true} end || {Pid, Ref} <- Asked].

-spec stop(subscribers_options:options()) -> ok.
stop(_) -> ok.
