%% Looks at the processes of runs on this node.
-module(orbit_probe).

-export([of_runs/0, of_runs/1, is_computing/0, alone/0]).

%% Each is known by the module whose init it started in.
of_runs() ->
    [{Module, P} || P <- erlang:processes(),
                    {initial_call, {Module, init, _}} <- [process_info(P, initial_call)],
                    lists:prefix("orbit_", atom_to_list(Module))].

of_runs(Module) ->
    [P || {M, P} <- of_runs(), M =:= Module].

%% A worker here has done more than starting takes.
is_computing() ->
    lists:any(fun(P) ->
        case process_info(P, reductions) of
            {reductions, N} -> N > 50_000;
            undefined -> false
        end
    end, of_runs(orbit_worker)).

%% Gives up all connections, and returns when there are none.
alone() ->
    _ = [erlang:disconnect_node(Node) || Node <- nodes(connected)],
    nodes(connected) =:= [] orelse alone().
