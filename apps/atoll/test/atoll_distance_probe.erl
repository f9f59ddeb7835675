%% SPDX-License-Identifier: Apache-2.0
%% Runs on the nodes under test: waits until a node knows distances, by what it is told.
-module(atoll_distance_probe).

-export([await/2, await_count/2, await_running/2, restart/0]).

-define(DEADLINE_MS, 15000).
-define(COUNT_MS, 80000).

%% There is a distance of all these.
await(How, Nodes) ->
    wait(fun() ->
        case atoll_distance:nodes(How) of
            {ok, Known} -> lists:sort(Nodes) -- Known =:= [];
            {error, _} -> false
        end
    end).

%% So much of something was counted. Whose turn it is to be measured is chance.
await_count(What, Count) ->
    wait(?COUNT_MS, fun() ->
        #{distances := #{What := N}} = atoll_distance:status(),
        N >= Count
    end).

%% So many processes are in the code of a module.
await_running(Module, Count) ->
    await_running(Module, Count, erlang:monotonic_time(millisecond) + ?DEADLINE_MS).

await_running(Module, Count, Deadline) ->
    Running = [P || P <- processes(), {current_function, {M, _, _}} <- [process_info(P, current_function)], M =:= Module],
    case {length(Running) >= Count, erlang:monotonic_time(millisecond) < Deadline} of
        {true, _} -> ok;
        {false, true} -> receive after 1 -> await_running(Module, Count, Deadline) end;
        {false, false} -> {still, Running}
    end.

wait(Holds) -> wait(?DEADLINE_MS, Holds).

wait(Ms, Holds) ->
    ok = atoll_interpreter:subscribe(atoll_distance),
    try
        wait_until(Holds, erlang:monotonic_time(millisecond) + Ms)
    after
        ok = atoll_interpreter:unsubscribe(atoll_distance)
    end.

wait_until(Holds, Deadline) ->
    case Holds() of
        true ->
            ok;
        false ->
            receive
                {atoll, atoll_distance, _} -> wait_until(Holds, Deadline)
            after max(0, Deadline - erlang:monotonic_time(millisecond)) -> {still, atoll_distance:status()}
            end
    end.

%% Kills the process and waits for the next; the coordinates before and after.
restart() ->
    [{_, Before, _}] = ets:lookup(atoll_distance, {coordinate, node()}),
    Old = whereis(atoll_distance),
    Ref = monitor(process, Old),
    true = exit(Old, kill),
    receive
        {'DOWN', Ref, process, Old, killed} -> ok
    end,
    %% It is in the supervisor's hands when this has been answered.
    _ = supervisor:which_children(atoll_rooms_sup),
    true = is_pid(whereis(atoll_distance)),
    [{_, After, _}] = ets:lookup(atoll_distance, {coordinate, node()}),
    {Before, After}.
