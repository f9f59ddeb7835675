%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll orbit': one run of Orbit on real nodes.
-module(atoll_cases_orbit).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2, generators/0]).

-define(NODES, 9).
-define(WORKERS, 4).

-spec summary() -> string().
summary() -> "run Orbit on a cluster of its own".

-spec options() -> [atoll_cli_options:option()].
options() ->
    [
        #{name => generators, value => "SET", default => "g124",
          read => generators(),
          help => "the generators: g and some of the digits 1 to 5 in order"},
        #{name => space, value => "N", default => "100000",
          read => atoll_cli_read:whole(1, 1000000000),
          help => "the vertices are 0 to N - 1"},
        #{name => mode, value => "MODE", default => "groups",
          read => atoll_cli_read:one_of([seq, par, mesh, groups, ring, 'groups-native']),
          help => "seq and par run on one node, the others on all; groups-native is the program of the mesh over groups"},
        #{name => nodes, value => "N",
          read => atoll_cli_read:whole(1, 1000), help => "nodes to start (9 unless told)"},
        #{name => group_size, value => "N",
          read => atoll_cli_read:whole(1, 1000),
          help => "nodes to a group, in groups, ring and groups-native (3 unless told, or all if fewer)"},
        #{name => workers, value => "N",
          read => atoll_cli_read:whole(1, 1000), help => "worker processes on each node (4 unless told)"},
        #{name => image_processes, help => "compute each image in a process of its own"},
        #{name => separate_submasters, help => "no workers on the gateways of groups, in groups and ring"},
        #{name => statistics, help => "what each worker has to say: idle times, fill, credit"},
        #{name => chaos, value => "N", read => atoll_cli_read:number(0, 100),
          help => "processes killed each second on each node, one in three with all others there (0 unless told)"},
        #{name => kill_node_every, value => "S", read => fun seconds/1,
          help => "seconds after which a node but the first is killed, and started again a second later (0, never, unless told)"},
        (atoll_cli_again:seed())#{default => "1"},
        atoll_cli_json:switch()
        | atoll_deploy_cluster:options()
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
run(#{mode := Mode} = Values, []) ->
    Nodes = maps:get(nodes, Values, ?NODES),
    case {[Key || Key <- ignored(Mode), maps:get(Key, Values, false) =/= false], Values} of
        {[Key | _], _} ->
            {usage, [atoll_cli_options:flag(Key), " means nothing in mode ", atom_to_list(Mode)]};
        {[], #{group_size := Size}} when Size > Nodes ->
            {usage, io_lib:format("--group-size must be at most --nodes, which is ~b, not \"~b\"", [Nodes, Size])};
        {[], _} ->
            show(task(Values), Values)
    end.

%% The options that change nothing in a mode.
ignored(seq) -> [nodes, group_size, workers, image_processes, separate_submasters, statistics, chaos, kill_node_every];
ignored(par) -> [nodes, group_size, separate_submasters, kill_node_every];
ignored(mesh) -> [group_size, separate_submasters];
ignored('groups-native') -> [separate_submasters];
ignored(_) -> [].

seconds(Text) ->
    case (atoll_cli_read:number(0, 3600))(Text) of
        {ok, S} when S == 0; S >= 1 -> {ok, S};
        _ -> {error, "must be 0, or a number of seconds from 1 to 3,600"}
    end.

show(Task, #{json := Json}) ->
    case atoll_cases_orbit_run:orbit(Task) of
        {ok, Result} when Json -> atoll_cli_io:print_json(atoll_cases_orbit_result:json(Task, Result));
        {ok, Result} ->
            Head = atoll_cases_orbit_result:head(Task),
            atoll_cli_io:print(atoll_cases_orbit_result:table([{Head, Task, Result}]));
        {error, Sentence} -> {unable, Sentence}
    end.

task(#{mode := Mode} = Values) ->
    Nodes = case lists:member(Mode, [seq, par]) of true -> 1; false -> maps:get(nodes, Values, ?NODES) end,
    Size = min(maps:get(group_size, Values, 3), Nodes),
    Task = maps:with([generators, space, mode, workers, statistics, image_processes, separate_submasters, chaos, kill_node_every, seed], Values),
    maps:merge(#{workers => ?WORKERS, chaos => 0, kill_node_every => 0}, Task#{nodes => Nodes, group_size => Size}).

%% @doc A set of Orbit's generators.
-spec generators() -> atoll_cli_options:reader().
generators() ->
    fun(Text) ->
        %% No atom is made of the text.
        case [Name || Name <- orbit_generators:names(), atom_to_list(Name) =:= Text] of
            [Name] -> {ok, Name};
            [] -> {error, "must be g and some of the digits 1 to 5 in order, such as g124"}
        end
    end.
