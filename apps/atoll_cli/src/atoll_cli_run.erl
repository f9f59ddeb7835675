%% @doc One run of Orbit on a cluster of its own, which is gone when the run
%% ends, whichever way it ends.
-module(atoll_cli_run).

-export([orbit/1]).

-export_type([task/0, mode/0]).

%% How Orbit is run; or its program of the mesh, on nodes that are in groups
%% (see orbit_native).
-type mode() :: seq | par | mesh | groups | ring | 'groups-native'.

-type task() :: #{
    generators := orbit_generators:name(),
    space := pos_integer(),
    mode := mode(),
    %% how many
    nodes := pos_integer(),
    group_size := pos_integer(),
    workers := pos_integer(),
    %% with what each worker has to say
    statistics => boolean(),
    image_processes => boolean(),
    separate_submasters => boolean(),
    %% kills a second on each node, seconds between two kills of nodes, and which ones
    chaos => number(),
    kill_node_every => number(),
    seed => integer()
}.

%% All nodes hear of each other at once, but the machine is shared.
-define(WAYS_MS, 60000).
-define(CALL_MS, 10000).

%% @doc Starts the nodes, runs, and takes the nodes down. An error is a sentence.
-spec orbit(task()) -> {ok, atoll_bench_case:result()} | {error, unicode:chardata()}.
orbit(#{nodes := Count, mode := Mode, group_size := Size} = Task) ->
    Options = (orbit:node_options(Mode, Size))#{nodes => Count},
    Harm = #{program => orbit, rate => maps:get(chaos, Task, 0), node_every => maps:get(kill_node_every, Task, 0)},
    Spec = (maps:without([statistics, chaos, kill_node_every, seed, nodes], Task))#{mode := program(Mode)},
    Answer = atoll_cli_program:run(Options, ["Running Orbit in mode ", atom_to_list(Mode)], fun(Cluster) ->
        case prepare(Cluster, Mode) of
            ok -> {ok, fun() -> atoll_bench_case:run(Cluster, Spec, Harm, maps:get(seed, Task, 1), infinity) end};
            {error, _} = Error -> Error
        end
    end),
    case Answer of
        {ok, Result, _} when map_get(statistics, Task) -> {ok, Result};
        {ok, Result, _} -> {ok, maps:remove(workers, Result)};
        {error, Sentence} -> {error, Sentence}
    end.

prepare(Cluster, 'groups-native') ->
    ok = atoll_cli_progress:now_doing("Waiting until every node has a way to every other"),
    Nodes = atoll_cluster:nodes(Cluster),
    Answers = atoll_cluster:multicall(Cluster, orbit_native, await, [Nodes, ?WAYS_MS], ?WAYS_MS + ?CALL_MS),
    ok = atoll_cli_progress:done(),
    case [Late || {_, Answer} = Late <- Answers, Answer =/= {ok, ok}] of
        [] ->
            ok;
        [{Node, {ok, {no_way, Other}}} | _] ->
            {error, io_lib:format("Node ~ts has found no way to ~ts within ~b s.", [Node, Other, ?WAYS_MS div 1000])};
        [{_, {error, Reason}} | _] ->
            {error, atoll_cluster:format_error(Reason)}
    end;
prepare(_Cluster, _Mode) ->
    ok.

%% Which program that is.
program('groups-native') -> mesh;
program(Mode) -> Mode.
