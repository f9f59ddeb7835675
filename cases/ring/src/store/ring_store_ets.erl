%% SPDX-License-Identifier: Apache-2.0
%% @doc Values in memory. They are gone with the partition's process.
-module(ring_store_ets).
-behaviour(ring_store).

-export([check/1, open/2, get/2, put/3, fold/3, drop/1, close/1, kept/1]).

-spec check(ring_options:options()) -> ok.
check(_) -> ok.

-spec open(ring_hash:partition(), ring_options:options()) -> ets:table().
open(_, _) -> ets:new(?MODULE, [set, private]).

-spec get(ring_store:of_key(), ets:table()) -> {ok, ring_dvv:clock(term())} | none.
get(OfKey, Table) ->
    case ets:lookup(Table, OfKey) of
        [{_, Clock}] -> {ok, Clock};
        [] -> none
    end.

-spec put(ring_store:of_key(), ring_dvv:clock(term()), ets:table()) -> ok.
put(OfKey, Clock, Table) ->
    true = ets:insert(Table, {OfKey, Clock}),
    ok.

-spec fold(fun((ring_store:of_key(), ring_dvv:clock(term()), Acc) -> Acc), Acc, ets:table()) -> Acc.
fold(Fun, Acc, Table) -> ets:foldl(fun({OfKey, Clock}, Now) -> Fun(OfKey, Clock, Now) end, Acc, Table).

-spec drop(ets:table()) -> ok.
drop(Table) -> close(Table).

-spec close(ets:table()) -> ok.
close(Table) ->
    true = ets:delete(Table),
    ok.

-spec kept(ring_options:options()) -> [].
kept(_) -> [].
