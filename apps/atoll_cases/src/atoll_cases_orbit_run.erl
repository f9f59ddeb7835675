%% SPDX-License-Identifier: Apache-2.0
%% @doc One run of Orbit on a cluster of its own, which is gone when the run
%% ends, whichever way it ends.
-module(atoll_cases_orbit_run).

-export([orbit/1, options/1]).

-export_type([task/0, mode/0]).

%% How Orbit is run; or its program of the mesh, on nodes that are in groups
%% (see atoll_bench_orbit_native).
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

%% @doc Starts the nodes, runs, and takes the nodes down. An error is a sentence.
-spec orbit(task()) -> {ok, atoll_bench_case:result()} | {error, unicode:chardata()}.
orbit(#{mode := Mode} = Task) ->
    Harm = #{program => orbit, rate => maps:get(chaos, Task, 0), node_every => maps:get(kill_node_every, Task, 0)},
    Spec = (maps:without([statistics, chaos, kill_node_every, seed, nodes], Task))#{mode := program(Mode)},
    Answer = atoll_cases_program:run(options(Task), ["Running Orbit in mode ", atom_to_list(Mode)], fun(Cluster) ->
        case prepare(Cluster, Mode) of
            {ok, ready} -> {ok, fun() -> atoll_bench_case:run(Cluster, Spec, Harm, maps:get(seed, Task, 1), infinity) end};
            {error, _} = Error -> Error
        end
    end),
    case Answer of
        {ok, Result, _} when map_get(statistics, Task) -> {ok, Result};
        {ok, Result, _} -> {ok, maps:remove(workers, Result)};
        {error, Sentence} -> {error, Sentence}
    end.

%% @doc How the nodes are started: several as those of the benchmark, and one alone, whose workers
%% are all there is, with a scheduler for each processor.
-spec options(task()) -> atoll_cluster:options().
options(#{mode := Mode, nodes := 1}) when Mode =:= seq; Mode =:= par ->
    (orbit:node_options(Mode))#{nodes => 1};
options(Task) ->
    atoll_bench_orbit:options(Task).

prepare(Cluster, Mode) ->
    _ = [ok = atoll_cli_progress:now_doing("Waiting until every node has a way to every other") || Mode =:= 'groups-native'],
    Ready = atoll_bench_orbit:ready(Cluster, Mode),
    _ = [ok = atoll_cli_progress:done() || Mode =:= 'groups-native'],
    Ready.

%% Which program that is.
program('groups-native') -> mesh;
program(Mode) -> Mode.
