%% SPDX-License-Identifier: Apache-2.0
%% A driver as Basho Bench has them, for the tests: it counts what it is asked, takes its time for some, and fails at others.
-module(atoll_load_probe).

-export([new/1, run/4, start/0, stop/0, hooked/0]).

%% @doc Counts what is asked of it, until it is stopped.
start() ->
    ?MODULE = ets:new(?MODULE, [named_table, public]),
    ok.

stop() ->
    Counts = maps:from_list(ets:tab2list(?MODULE)),
    true = ets:delete(?MODULE),
    Counts.

hooked() -> counted(hooked).

counted(What) -> ets:update_counter(?MODULE, What, 1, {What, 0}).

new(Id) -> {ok, {Id, 0}}.

run(Operation, Key, Value, {Id, N}) ->
    _ = counted(Operation),
    State = {Id, N + 1},
    case Operation of
        fail -> {error, {refused, Key(), Value()}, State};
        slow_fail -> receive after 50 -> {error, slow, State} end;
        silent -> {silent, State};
        hang -> receive never -> {ok, State} end;
        stop -> {stop, enough};
        _ -> {ok, State}
    end.
