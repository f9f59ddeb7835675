%% Looks at, and kills, the processes of runs on this node.
-module(orbit_probe).

-export([left/0, of_module/1, is_computing/0, kill/1, is_expected/1, alone/0]).

%% What a run that is over may not leave: processes, what was kept, groups.
left() ->
    Runs = case whereis(orbit_app) of undefined -> []; _ -> supervisor:which_children(orbit_app) ++ ets:tab2list(orbit_app) end,
    Groups = case whereis(atoll_group) of undefined -> []; _ -> s_group:own_s_groups() end,
    %% Those of a mesh over groups are there from the beginning.
    Made = [Name || {Name, _} <- Groups, lists:prefix("orbit_", atom_to_list(Name)), Name =/= orbit_gateways],
    Runs ++ lists:append([of_module(Module) || Module <- [orbit_host, orbit_master, orbit_submaster, orbit_worker, orbit_gateway]]) ++ Made.

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

%% The master of the one run here will have that node take part in its next epoch. Its ledger is in its state.
is_expected(Node) ->
    Ledger = element(3, sys:get_state(hd(of_module(orbit_master)))),
    lists:member(Node, orbit_plan:present(orbit_ledger:next_plan(Ledger))).

%% Gives up all connections, and returns when there are none.
alone() ->
    _ = [erlang:disconnect_node(Node) || Node <- nodes(connected)],
    nodes(connected) =:= [] orelse alone().
