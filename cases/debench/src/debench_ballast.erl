%% SPDX-License-Identifier: Apache-2.0
%% @doc What a node of DE-Bench holds before the load begins: names that all others see, and
%% processes that do nothing. All of it ends with this process.
-module(debench_ballast).

-export([start_link/1]).

%% @doc Starts it, and returns when the names are given and the processes are there.
-spec start_link(debench_peer:load()) -> {ok, pid()} | {error, {not_registered, Name :: term()}}.
start_link(#{system := System, initial_global_size := Names, initial_active_process := Processes}) ->
    proc_lib:start_link(erlang, apply, [fun hold/3, [debench_system:here(System), Names, Processes]]).

hold(Here, Names, Processes) ->
    _ = [idle() || _ <- lists:seq(1, Processes)],
    ok = lists:foreach(fun(N) -> name(Here, {debench, node(), initial, N}) end, lists:seq(1, Names)),
    ok = proc_lib:init_ack({ok, self()}),
    timer:sleep(infinity).

%% A process has one name.
name(Here, Name) ->
    case debench_system:give(Here, Name, idle()) of
        ok ->
            ok;
        {error, no} ->
            ok = proc_lib:init_ack({error, {not_registered, Name}}),
            exit(normal)
    end.

idle() -> spawn_link(timer, sleep, [infinity]).
