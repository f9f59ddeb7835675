%% SPDX-License-Identifier: Apache-2.0
%% @doc A driver for a table of ETS that all workers share.
-module(atoll_load_ets).
-behaviour(atoll_load_driver).

-export([operations/0, prepare/1, new/2, run/4]).

-spec operations() -> [atom(), ...].
operations() -> [get, put, delete].

-spec prepare(#{atom() => term()}) -> {ok, atoll_load_driver:store()}.
prepare(Settings) ->
    Table = ets:new(?MODULE, [set, public, {read_concurrency, true}, {write_concurrency, true}]),
    {ok, #{where => here, settings => Settings#{table => Table}, stop => fun() -> true = ets:delete(Table), ok end}}.

-spec new(pos_integer(), #{table := ets:table(), _ => _}) -> {ok, ets:table()}.
new(_, #{table := Table}) -> {ok, Table}.

-spec run(get | put | delete, atoll_load_keys:generator(), atoll_load_keys:generator(), ets:table()) -> {ok, ets:table()}.
run(get, Key, _, Table) ->
    _ = ets:lookup(Table, Key()),
    {ok, Table};
run(put, Key, Value, Table) ->
    true = ets:insert(Table, {Key(), Value()}),
    {ok, Table};
run(delete, Key, _, Table) ->
    true = ets:delete(Table, Key()),
    {ok, Table}.
