%% SPDX-License-Identifier: Apache-2.0
%% @doc The benchmark `orbit': how long the same set takes in each mode, over more
%% and more nodes, and what it takes in connections, messages and memory.
%%
%% Connections are the most that each node had at once in the round; in all, each is counted
%% once, not at both ends. Memory is that of all nodes when the set has been found: their own
%% pages, and of those that they share each its part, so that the sum is what the machine has
%% given them; where the system does not tell it, there is none.
-module(atoll_bench_orbit).
-behaviour(atoll_bench).

-export([summary/0, parameters/0, variant/0, metrics/0, points/1, check/1, flags/1, setup/1, round/1, teardown/1]).
-export([options/1, ready/2]).

-define(RUN_MS, 600000).
-define(WAYS_MS, 60000).
-define(GENERATORS, g124).

-spec summary() -> string().
summary() -> "Orbit over more and more nodes, as a mesh, in groups, and as a mesh over groups".

-spec parameters() -> [atoll_bench:parameter(), ...].
parameters() ->
    Modes = [mesh, groups, ring, 'groups-native'],
    [
        #{name => nodes, type => integer, values => [3, 6, 9, 12], max => 64, scales => true, help => "nodes that work together"},
        #{name => space, type => integer, values => [20000], help => "the vertices are 0 to N - 1, of generators g124"},
        #{name => workers, type => integer, values => [4], max => 1000, help => "worker processes on each node"},
        #{name => group_size, type => integer, values => [3], max => 64, min => 0,
          help => "nodes to a group, gateway included; 0 for the square root of the nodes, rounded"},
        #{name => kill_node_every, type => number, values => [0], max => 3600, min => 0,
          help => "seconds after which a node but the first is killed, and started again; 0 for never"},
        #{name => mode, type => atom, values => Modes, one_of => Modes, help => "how the nodes are connected"}
    ].

-spec variant() -> atom().
variant() -> mode.

-spec metrics() -> [atoll_bench:metric(), ...].
metrics() ->
    [
        #{name => vertices_per_s, label => "Vertices found", unit => "1/s", better => more, kind => value},
        #{name => wall_ms, label => "Time", unit => "ms", better => less, kind => value},
        #{name => connections_max, label => "Connections of the busiest node", unit => "", better => less,
          kind => value},
        #{name => connections_mean, label => "Connections of a node, on average", unit => "", better => less,
          kind => value},
        #{name => connections_all, label => "Connections, all nodes", unit => "", better => less, kind => value},
        #{name => packets, label => "Packets between nodes", unit => "", better => less, kind => value},
        #{name => epochs, label => "Times that the work was begun or taken up again", unit => "", better => less, kind => value},
        #{name => cpu_ms, label => "Processor time, all nodes", unit => "ms", better => less, kind => value},
        #{name => memory_mb, label => "Memory, all nodes", unit => "MB", better => less, kind => value}
    ].

-spec points([atoll_bench:point(), ...]) -> [atoll_bench:point()].
points(Points) ->
    [Point || #{nodes := Nodes, mode := Mode} = Point <- Points, Mode =:= mesh orelse group_size(Point) =< Nodes].

group_size(#{nodes := Nodes, group_size := 0}) -> erlang:round(math:sqrt(Nodes));
group_size(#{group_size := Size}) -> Size.

-spec check(atoll_bench:point()) -> ok | {error, unicode:chardata()}.
check(Point) ->
    %% The other modes can only be checked where the nodes are.
    case orbit:check(spec([node()], Point#{mode := par})) of
        ok -> ok;
        {error, Reason} -> {error, orbit:format_error(Reason)}
    end.

spec(Nodes, Point) ->
    #{mode := Mode} = Asked = maps:with([space, workers, mode], Point),
    Asked#{generators => ?GENERATORS, nodes => Nodes, mode := program(Mode), group_size => group_size(Point)}.

program('groups-native') -> mesh;
program(Mode) -> Mode.

-spec flags(atoll_bench:point()) -> [string()].
flags(_Point) -> atoll_bench_nodes:flags().

-spec setup(atoll_bench:start()) -> {ok, map()} | {error, unicode:chardata()}.
setup(#{mode := Mode, seed := Seed} = Point) ->
    atoll_bench_nodes:start(options(Point), fun(Cluster) ->
        case ready(Cluster, Mode) of
            {ok, ready} ->
                Harm = #{program => orbit, node_every => maps:get(kill_node_every, Point, 0)},
                {ok, #{cluster => Cluster, spec => spec(atoll_cluster:nodes(Cluster), Point), harm => Harm, seed => Seed}};
            {error, _} = Error -> Error
        end
    end).

%% @doc How its nodes are started.
-spec options(#{nodes := pos_integer(), mode := atom(), group_size := non_neg_integer(), _ => _}) -> atoll_cluster:options().
options(#{nodes := Count, mode := 'groups-native'} = Point) ->
    atoll_bench_nodes:options(atoll_bench_orbit_native:node_options(group_size(Point)), Count);
options(#{nodes := Count, mode := Mode}) ->
    atoll_bench_nodes:options(orbit:node_options(Mode), Count).

%% @doc Returns when they can do what the mode wants of them.
-spec ready(atoll_cluster:cluster(), Mode :: atom()) -> atoll_bench_nodes:answer(ready).
ready(Cluster, 'groups-native') ->
    Nodes = atoll_cluster:nodes(Cluster),
    Answers = atoll_cluster:multicall(Cluster, atoll_bench_orbit_native, await, [Nodes, ?WAYS_MS], ?WAYS_MS + 5000),
    case [Late || {_, Answer} = Late <- Answers, Answer =/= {ok, ok}] of
        [] -> talking(Nodes, Nodes, Cluster);
        [{Node, {ok, {no_way, Other}}} | _] -> {error, io_lib:format("~ts finds no way to ~ts", [Node, Other])};
        [{_, {error, Reason}} | _] -> {error, atoll_cluster:format_error(Reason)}
    end;
ready(_Cluster, _Mode) ->
    {ok, ready}.

%% One after the other.
talking([Node | Rest], Nodes, Cluster) ->
    case atoll_bench_nodes:call(Cluster, Node, {atoll_bench_orbit_native, talk}, [Nodes], ?WAYS_MS) of
        {ok, ok} -> talking(Rest, Nodes, Cluster);
        {ok, {no_answer, Other}} -> {error, io_lib:format("~ts has no answer from ~ts", [Node, Other])};
        {error, _} = Error -> Error
    end;
talking([], _Nodes, _Cluster) ->
    {ok, ready}.

-spec round(map()) -> {ok, #{atom() => atoll_bench:measure()}, map()} | {error, unicode:chardata()}.
round(#{cluster := Cluster, spec := Spec, harm := Harm, seed := Seed} = State) ->
    Run = fun() -> atoll_bench_case:run(Cluster, Spec, Harm, Seed, ?RUN_MS) end,
    case spending(Cluster, Harm, Run) of
        {ok, #{size := Size, wall_ms := WallMs, connections := Connections} = Result} ->
            Same = maps:with([wall_ms, connections_max, connections_mean, epochs, cpu_ms], Result),
            Measures = Same#{
                vertices_per_s => Size * 1000 / max(1, WallMs),
                connections_all => lists:sum(maps:values(Connections)) / 2
            },
            {ok, memory(Cluster, packets(Result, Measures)), State#{seed := Seed + 1}};
        {error, _} = Error ->
            Error
    end.

%% What a node that was killed has used nobody knows.
spending(_Cluster, #{node_every := Every}, Run) when Every > 0 ->
    Run();
spending(Cluster, _Harm, Run) ->
    case atoll_bench_nodes:spending(Cluster, Run) of
        {ok, {Result, Us}} -> {ok, Result#{cpu_ms => Us / 1000}};
        {error, _} = Error -> Error
    end.

%% Where a node was killed nobody knows.
packets(#{packets_sent := Packets}, Measures) when is_integer(Packets) -> Measures#{packets => Packets};
packets(#{}, Measures) -> Measures.

memory(Cluster, Measures) ->
    case atoll_bench_nodes:memory_kib(Cluster) of
        {ok, KiB} -> Measures#{memory_mb => KiB * 1024 / 1.0e6};
        unknown -> Measures
    end.

-spec teardown(map()) -> ok.
teardown(#{cluster := Cluster}) ->
    atoll_bench_nodes:stop(Cluster).
