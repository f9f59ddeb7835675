%% @doc `atoll orbit': one run of Orbit on real nodes.
-module(atoll_cli_orbit).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "run Orbit on a cluster of its own".

-spec options() -> [atoll_cli_options:option()].
options() ->
    [
        #{name => generators, value => "SET", default => "g124",
          read => atoll_cli_read:generators(),
          help => "the generators: g and some of the digits 1 to 5 in order"},
        #{name => space, value => "N", default => "100000",
          read => atoll_cli_read:whole(1, 1000000000),
          help => "the vertices are 0 to N - 1"},
        #{name => mode, value => "MODE", default => "groups",
          read => atoll_cli_read:one_of([seq, par, mesh, groups, ring, 'groups-native']),
          help => "seq and par run on one node, the others on all; groups-native is the program of the mesh over groups"},
        #{name => nodes, value => "N", default => "9",
          read => atoll_cli_read:whole(1, 1000), help => "nodes to start"},
        #{name => group_size, value => "N",
          read => atoll_cli_read:whole(1, 1000),
          help => "nodes to a group, in groups, ring and groups-native (3 unless told, or all if fewer)"},
        #{name => workers, value => "N", default => "4",
          read => atoll_cli_read:whole(1, 1000), help => "worker processes on each node"},
        #{name => image_processes, help => "compute each image in a process of its own"},
        #{name => separate_submasters, help => "no workers on the gateways of groups, in groups and ring"},
        #{name => statistics, help => "what each worker has to say: idle times, fill, credit"},
        #{name => chaos, value => "N", default => "0", read => atoll_cli_read:number(0, 100),
          help => "processes killed each second on each node, one in three with all others there"},
        #{name => kill_node_every, value => "S", default => "0", read => atoll_cli_read:number(0, 3600),
          help => "seconds after which a node but the first is killed, and started again; 0 for never"},
        (atoll_cli_sim_options:seed())#{default => "1"},
        atoll_cli_json:switch()
    ].

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() ->
    [
        "atoll orbit",
        "atoll orbit --mode mesh --nodes 5",
        "atoll orbit --mode groups-native",
        "atoll orbit --space 1000000 --kill-node-every 10",
        "atoll orbit --generators g12345 --space 10000 --mode ring --nodes 9 --group-size 3 --json"
    ].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{mode := Mode, group_size := Size, nodes := Nodes}, [])
        when Size > Nodes, (Mode =:= groups orelse Mode =:= ring orelse Mode =:= 'groups-native') ->
    {usage, io_lib:format("--group-size must be at most --nodes, which is ~b, not \"~b\"",
                          [Nodes, Size])};
run(#{json := Json} = Values, []) ->
    Task = task(Values),
    case atoll_cli_run:orbit(Task) of
        {ok, Result} when Json -> atoll_cli_io:print_json(atoll_cli_result:json(Task, Result));
        {ok, Result} ->
            Head = atoll_cli_result:head(Task),
            atoll_cli_io:print(atoll_cli_result:table([{Head, Task, Result}]));
        {error, Sentence} -> {failed, Sentence}
    end.

task(#{mode := Mode, nodes := Asked} = Values) ->
    Nodes = case lists:member(Mode, [seq, par]) of true -> 1; false -> Asked end,
    %% It means nothing to the modes in which it may be greater.
    Size = min(maps:get(group_size, Values, 3), Nodes),
    Task = maps:with([generators, space, mode, workers, statistics, image_processes, separate_submasters, chaos, kill_node_every, seed], Values),
    Task#{nodes => Nodes, group_size => Size}.
