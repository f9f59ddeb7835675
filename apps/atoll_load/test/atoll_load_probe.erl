%% SPDX-License-Identifier: Apache-2.0
%% A driver as Basho Bench has them, for the tests: it counts what it is asked, takes its time for some, and fails at others.
-module(atoll_load_probe).

-export([new/1, run/4, start/0, stop/0, hooked/0, serve/0]).

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
        silent -> {silent, State};
        hang -> receive never -> {ok, State} end;
        stop -> {stop, enough};
        %% One after the other, over a server that takes a millisecond for each.
        serve -> {ok, _} = {ok, gen_call(served)}, {ok, State};
        _ -> {ok, State}
    end.

gen_call(Request) ->
    Ref = monitor(process, atoll_load_probe_server),
    atoll_load_probe_server ! {Request, self(), Ref},
    receive
        {Ref, Answer} -> true = demonitor(Ref, [flush]), Answer;
        {'DOWN', Ref, process, _, Why} -> exit(Why)
    end.

%% @doc A server that can do a thousand requests in a second at most.
serve() ->
    true = register(atoll_load_probe_server, self()),
    serving().

serving() ->
    receive
        {served, From, Ref} ->
            receive after 1 -> ok end,
            From ! {Ref, ok},
            serving()
    end.
