%% SPDX-License-Identifier: Apache-2.0
%% @doc How many callers are within the service at once: so many at most, and one more is told at once. And what became of
%% those that were not served.
%%
%% A caller is a row of a table, with its process, so no process has to be asked. The row of one that was killed within is taken away
%% when the table is full, which is looked for every 100 ms at most: where thousands are refused, each of them is to be told at little
%% cost. So a killed caller holds its place until somebody wants it, and 100 ms longer at most. Two that enter at the same moment may
%% both find the last place free: the bound may be passed by as many callers as there are schedulers.
-module(subscribers_gate).

-export([new/1, enter/0, leave/0, within/0, count/1, counts/0]).

-define(SWEEP_MS, 100).
-define(KINDS, [overloaded, no_connection_free, disconnected, timed_out, failed, no_majority, lost, connected]).

%% @doc Makes it, for so many. It ends with the calling process.
-spec new(pos_integer()) -> ok.
new(Callers) ->
    ?MODULE = ets:new(?MODULE, [named_table, public, {write_concurrency, true}]),
    Swept = atomics:new(1, []),
    ok = atomics:put(Swept, 1, now_ms() - ?SWEEP_MS),
    persistent_term:put(?MODULE, {Callers, Swept, counters:new(length(?KINDS), [write_concurrency])}).

%% @doc The calling process comes in; it is to leave again, whatever happens, and not to come in twice.
-spec enter() -> ok | {full, pos_integer()} | none.
enter() ->
    try
        {Callers, Swept, _} = persistent_term:get(?MODULE),
        case is_free(Callers) orelse swept(Swept) andalso is_free(Callers) of
            true ->
                true = ets:insert(?MODULE, {self()}),
                ok;
            false ->
                {full, Callers}
        end
    catch
        %% There is no table.
        error:badarg -> none
    end.

is_free(Callers) ->
    case ets:info(?MODULE, size) of
        undefined -> error(badarg);
        Within -> Within < Callers
    end.

%% Whether this caller has looked for rows of dead ones: the first in a while does.
swept(Swept) ->
    {Last, Now} = {atomics:get(Swept, 1), now_ms()},
    case Now - Last >= ?SWEEP_MS andalso atomics:compare_exchange(Swept, 1, Last, Now) of
        ok ->
            _ = [ets:delete(?MODULE, Pid) || {Pid} <- ets:tab2list(?MODULE), not is_process_alive(Pid)],
            true;
        _ ->
            false
    end.

now_ms() -> erlang:monotonic_time(millisecond).

%% @doc It goes.
-spec leave() -> ok.
leave() ->
    try
        true = ets:delete(?MODULE, self()),
        ok
    catch
        error:badarg -> ok
    end.

%% @doc How many are within, those that were killed there among them.
-spec within() -> non_neg_integer() | undefined.
within() -> ets:info(?MODULE, size).

%% @doc Counts something of that kind.
-spec count(atom()) -> ok.
count(Kind) ->
    {_, _, Counters} = persistent_term:get(?MODULE),
    counters:add(Counters, place(Kind, ?KINDS, 1), 1).

place(Kind, [Kind | _], N) -> N;
place(Kind, [_ | Kinds], N) -> place(Kind, Kinds, N + 1).

%% @doc What was counted.
-spec counts() -> subscribers:counts().
counts() ->
    {_, _, Counters} = persistent_term:get(?MODULE),
    maps:from_list([{Kind, counters:get(Counters, N)} || {N, Kind} <- lists:enumerate(?KINDS)]).
