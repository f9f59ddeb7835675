%% Looks at, and kills, the processes of runs on this node.
-module(aco_probe).

-export([of_runs/0, left/0, alone/0, began/0, await/3, names/0, colonies/0, submasters/0, kill/1]).

-define(DEADLINE_MS, 20_000).

%% Each is known by the function that it started in.
of_runs() ->
    [{Module, P} || P <- erlang:processes(),
                    {initial_call, {Module, _, _}} <- [process_info(P, initial_call)],
                    lists:prefix("aco_", atom_to_list(Module)),
                    Module =/= ?MODULE].

%% What a run that is over may not leave: processes, names, groups.
left() ->
    Groups = case whereis(atoll_group) of undefined -> []; _ -> s_group:own_s_groups() end,
    of_runs() ++ global:registered_names() ++ Groups.

%% Gives up all connections, and returns when there are none.
alone() ->
    _ = [erlang:disconnect_node(Node) || Node <- nodes(connected)],
    nodes(connected) =:= [] orelse alone().

%% The last round that a colony here has begun; 0 before.
began() ->
    Tables = [T || T <- ets:all(), ets:info(T, name) =:= aco_keep],
    lists:max([0 | [Began || T <- Tables, [Began] <- ets:match(T, {{colony, '_'}, {'$1', '_'}})]]).

%% Whether a colony here, if this is one of these nodes, has begun that round within so many
%% milliseconds.
await(Colonies, Round, Ms) ->
    not lists:member(node(), Colonies) orelse await_until(Round, erlang:monotonic_time(millisecond) + Ms).

await_until(Round, Deadline) ->
    case began() >= Round of
        true -> true;
        false ->
            case erlang:monotonic_time(millisecond) < Deadline of
                true -> receive after 5 -> await_until(Round, Deadline) end;
                false -> false
            end
    end.

%% The names of hosts that this node sees: in global, and in its groups.
names() ->
    Groups = case whereis(atoll_group) of undefined -> []; _ -> s_group:own_s_groups() end,
    lists:usort([Node || {aco, _, Node} <- global:registered_names()]
                ++ [Node || {Group, _} <- Groups, {_, {aco, _, Node}} <- s_group:registered_names({s_group, Group})]).

colonies() -> of_call(call(colony)).

%% How many there are.
submasters() -> length(of_call(call(submaster))).

of_call(Call) ->
    [P || P <- erlang:processes(), process_info(P, initial_call) =:= {initial_call, Call}].

%% Kills one, as soon as there is one.
kill(What) ->
    kill(What, erlang:monotonic_time(millisecond) + ?DEADLINE_MS).

kill(What, Deadline) ->
    case of_call(call(What)) of
        [P | _] ->
            Ref = monitor(process, P),
            true = exit(P, kill),
            receive
                {'DOWN', Ref, process, P, killed} -> ok;
                %% It ended by itself before.
                {'DOWN', Ref, process, P, _} -> kill(What, Deadline)
            end;
        [] ->
            true = erlang:monotonic_time(millisecond) < Deadline,
            erlang:yield(),
            kill(What, Deadline)
    end.

call(ant) -> {aco_colony_server, ant, 2};
call(colony) -> {aco_colony_server, init, 4};
call(submaster) -> {aco_submaster, init, 4}.
