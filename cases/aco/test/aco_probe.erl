%% SPDX-License-Identifier: Apache-2.0
%% Looks at, and kills, the processes of runs on this node.
-module(aco_probe).

-export([left/0, alone/0, connections/0, began/0, await/3, names/0, colonies/0, submasters/0, kill/1, kill_in_turns/2]).

-define(DEADLINE_MS, 20_000).

%% What a run that is over may not leave: processes, what was kept, names, groups.
left() ->
    Runs = case whereis(aco_app) of undefined -> []; _ -> supervisor:which_children(aco_app) ++ ets:tab2list(aco_keep) end,
    Runs ++ of_module([aco_submaster, aco_colony_server, aco_host]) ++ global:registered_names() ++ groups().

groups() ->
    case whereis(atoll_group) of undefined -> []; _ -> s_group:own_s_groups() end.

%% Gives up all connections, and returns when there are none.
alone() ->
    _ = [erlang:disconnect_node(Node) || Node <- nodes(connected)],
    nodes(connected) =:= [] orelse alone().

%% Who this node is connected with.
connections() -> length(nodes(connected)).

%% The last round that a colony here has begun; 0 before.
began() ->
    lists:max([0 | [Began || [Began] <- ets:match(aco_keep, {{'_', {colony, '_'}}, {'$1', '_'}})]]).

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

%% The names of runs that this node sees: in global, and in its groups.
names() ->
    lists:usort([Id || {aco, _, Id} <- global:registered_names()]
                ++ [Id || {Group, _} <- groups(), {_, Id} <- s_group:registered_names({s_group, Group})]).

colonies() -> of_module([aco_colony_server]).

%% How many there are.
submasters() -> length(of_module([aco_submaster])).

%% A supervisor's module is in its dictionary.
of_module(Modules) ->
    [P || P <- erlang:processes(), {dictionary, Dictionary} <- [process_info(P, dictionary)],
          Call <- [proplists:get_value('$initial_call', Dictionary)], is_of(Call, Modules)].

is_of({supervisor, Module, _}, Modules) -> lists:member(Module, Modules);
is_of({Module, _, _}, Modules) -> lists:member(Module, Modules);
is_of(_, _) -> false.

ants() ->
    [P || P <- erlang:processes(), process_info(P, initial_call) =:= {initial_call, {aco_colony_server, ant, 1}}].

%% Kills one, as soon as there is one. When there is nobody for so long, that is what it says.
kill(What) ->
    kill(What, erlang:monotonic_time(millisecond) + ?DEADLINE_MS).

kill(What, Deadline) ->
    case those(What) of
        [P | _] ->
            Ref = monitor(process, P),
            true = exit(P, kill),
            receive
                {'DOWN', Ref, process, P, killed} -> ok;
                %% It ended by itself before.
                {'DOWN', Ref, process, P, _} -> kill(What, Deadline)
            end;
        [] ->
            case erlang:monotonic_time(millisecond) < Deadline of
                true ->
                    erlang:yield(),
                    kill(What, Deadline);
                false ->
                    nobody
            end
    end.

%% Kills one of each, as often as that: not a call for each, in which what is to be killed could end by
%% itself. Says at which turn there was nobody, and who is there.
kill_in_turns(Kinds, Times) ->
    kill_in_turns([{Turn, What} || Turn <- lists:seq(1, Times), What <- Kinds]).

kill_in_turns([]) -> ok;
kill_in_turns([{_, What} = Now | Left]) ->
    case kill(What) of
        ok -> kill_in_turns(Left);
        nobody -> {nobody, Now, #{ants => ants(), colonies => colonies(), left => left()}}
    end.

those(ant) -> ants();
those(colony) -> of_module([aco_colony_server]);
%% Whose ants are out.
those(colony_at_work) -> case ants() of [] -> []; _ -> those(colony) end;
those(submaster) -> of_module([aco_submaster]);
those(host) -> of_module([aco_host]).
