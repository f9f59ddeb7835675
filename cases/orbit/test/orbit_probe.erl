%% SPDX-License-Identifier: Apache-2.0
%% Looks at, and kills, the processes of runs on this node.
-module(orbit_probe).

-export([left/0, of_module/1, is_computing/0, kill/1, hold/0, await_told/3, alone/0]).

%% What a run that is over may not leave: processes, groups.
left() ->
    Runs = case whereis(orbit_app) of undefined -> []; _ -> supervisor:which_children(orbit_app) end,
    Groups = case whereis(atoll_group) of undefined -> []; _ -> s_group:own_s_groups() end,
    %% Those of a mesh over groups are there from the beginning.
    Made = [Name || {Name, _} <- Groups, lists:prefix("orbit_", atom_to_list(Name)), Name =/= orbit_gateways],
    Runs ++ lists:append([of_module(Module) || Module <- [orbit_host, orbit_submaster, orbit_worker, orbit_gateway]]) ++ Made.

%% A supervisor's module is in its dictionary.
of_module(Module) ->
    [P || P <- erlang:processes(), {dictionary, Dictionary} <- [process_info(P, dictionary)],
          is_of(proplists:get_value('$initial_call', Dictionary), Module)].

is_of({supervisor, Module, _}, Module) -> true;
is_of({Module, _, _}, Module) -> true;
is_of(_, _) -> false.

%% A worker here has done more than starting takes.
is_computing() ->
    lists:any(fun(P) ->
        case process_info(P, reductions) of
            {reductions, N} -> N > 50_000;
            undefined -> false
        end
    end, of_module(orbit_worker)).

%% Kills the first one of a module, if there is one.
kill(Module) ->
    case of_module(Module) of
        [P | _] -> exit(P, kill);
        [] -> false
    end.

%% The workers here do nothing, and keep their credit, as long as the process lives whose pid this is: no epoch ends.
%% It hears what the master of the one run here is told.
hold() ->
    Asker = self(),
    Holder = spawn(fun() ->
        true = lists:all(fun erlang:suspend_process/1, [_ | _] = of_module(orbit_worker)),
        [Master] = [P || P <- erlang:processes(), {current_function, {orbit_master, _, _}} <- [process_info(P, current_function)]],
        1 = erlang:trace(Master, true, ['receive']),
        Asker ! {self(), held},
        tell()
    end),
    Ref = monitor(process, Holder),
    receive
        {Holder, held} -> demonitor(Ref, [flush]), Holder;
        {'DOWN', Ref, process, Holder, Why} -> error(Why)
    end.

%% Waits until the master has been told, since it was held, that the node is not reached, so that it is left
%% out; or that it is back, so that it takes part in the next epoch. Who looks for it says so each second,
%% until that begins.
await_told(Holder, What, Node) ->
    Holder ! {self(), What, Node},
    receive {Holder, told, What, Node} -> true after 20_000 -> false end.

tell() ->
    {Asker, What, Node} = receive {_, _, _} = Asked -> Asked end,
    receive
        {trace, _, 'receive', {_, {back, Node}}} when What =:= back -> ok;
        {trace, _, 'receive', {_, {unreached, _, Node, _}}} when What =:= unreached -> ok
    end,
    Asker ! {self(), told, What, Node},
    tell().

%% Gives up all connections, and returns when there are none.
alone() ->
    _ = [erlang:disconnect_node(Node) || Node <- nodes(connected)],
    nodes(connected) =:= [] orelse alone().
