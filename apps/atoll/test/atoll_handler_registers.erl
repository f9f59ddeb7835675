%% SPDX-License-Identifier: Apache-2.0
%% Registers that all members have: of each key the value that was put last, by the clocks
%% of those who put. Reading is a look into a table.
-module(atoll_handler_registers).

-behaviour(atoll_handler).

-export([put/2, get/1]).
-export([init/1, merge/3, digest/1, since/2]).

put(Key, Value) ->
    atoll_handler:put(?MODULE, Key, {{erlang:system_time(), node()}, Value}).

get(Key) ->
    case ets:lookup(?MODULE, Key) of
        [{Key, _Stamp, Value}] -> {ok, Value};
        [] -> error
    end.

init(Options) ->
    ets:new(?MODULE, [ordered_set | Options]).

merge(Key, {{_, _} = Stamp, Value}, Table) ->
    case ets:lookup(Table, Key) of
        [{Key, Known, _}] when Known >= Stamp ->
            {stale, Table};
        _ ->
            true = ets:insert(Table, {Key, Stamp, Value}),
            {new, Table}
    end;
merge(_Key, _OfALaterRelease, Table) ->
    {stale, Table}.

digest(Table) ->
    maps:from_list(ets:select(Table, [{{'$1', '$2', '_'}, [], [{{'$1', '$2'}}]}])).

since(Digest, Table) ->
    [{Key, {Stamp, Value}} || {Key, Stamp, Value} <- ets:tab2list(Table), is_newer(Stamp, maps:find(Key, Digest))].

is_newer(Stamp, {ok, Known}) -> Stamp > Known;
is_newer(_Stamp, error) -> true.
