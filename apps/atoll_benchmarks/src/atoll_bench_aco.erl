%% SPDX-License-Identifier: Apache-2.0
%% @doc The benchmark `aco': what the same search for a schedule takes in each mode of ACO,
%% over more and more nodes, in time, packets, connections and names; and under chaos.
%%
%% The problem is made up, always the same for so many jobs. Each round has a seed of its
%% own, the same in every mode. The modes with submasters have as many colonies as each other,
%% so their `cost' is the same too; `tl' uses the submasters' nodes for colonies, has more of
%% them, and may find a better one. When a round is over, outside what is measured, one process
%% does the same with as many colonies: a cost that differs from its is a fault, and ends the
%% benchmark.
-module(atoll_bench_aco).
-behaviour(atoll_bench).

-export([summary/0, parameters/0, variant/0, metrics/0, points/1, check/1, flags/1, setup/1, round/1, teardown/1]).
-export([options/1]).

-define(RUN_MS, 600000).

-spec summary() -> string().
summary() -> "Ant colonies over more and more nodes, with and without names, groups and chaos".

-spec parameters() -> [atoll_bench:parameter(), ...].
parameters() ->
    Modes = [tl, ml, gr, sr],
    [
        #{name => nodes, type => integer, values => [8, 16], max => 64, help => "nodes, the master's among them"},
        #{name => degree, type => integer, values => [2], min => 2, max => 7, help => "submasters of each submaster"},
        #{name => jobs, type => integer, values => [40], min => 2, max => 1000, help => "jobs to schedule"},
        #{name => ants, type => integer, values => [4], max => 1000, help => "ants of each colony"},
        #{name => local_iterations, type => integer, values => [10], max => 1000000,
          help => "generations of ants in a round"},
        #{name => global_iterations, type => integer, values => [10], max => 1000000, help => "rounds of the colonies"},
        #{name => local_search, type => atom, values => [none], one_of => [none, o1, o2, o12, o21],
          help => "what an ant does with its schedule"},
        #{name => duplicating, type => integer, values => [1], max => 10000,
          help => "answers of each colony, as if it were so many"},
        #{name => pace_ms, type => integer, values => [0], min => 0, max => 3600000, unit => "ms",
          help => "from one round of the colonies to the next, at the least"},
        #{name => chaos, type => number, values => [0], min => 0, max => 100,
          help => "kills a second on every node, in gr and sr"},
        #{name => mode, type => atom, values => Modes, one_of => Modes, help => "tree, names and groups"}
    ].

-spec variant() -> atom().
variant() -> mode.

-spec metrics() -> [atoll_bench:metric(), ...].
metrics() ->
    [
        #{name => wall_ms, label => "Time", unit => "ms", better => less, kind => value},
        #{name => packets, label => "Packets between nodes", unit => "", better => less, kind => value},
        #{name => connections_max, label => "Connections of the busiest node", unit => "", better => less,
          kind => value},
        #{name => connections_mean, label => "Connections of a node, mean", unit => "", better => less, kind => value},
        #{name => names, label => "Registered names", unit => "", better => less, kind => value},
        #{name => build_ms, label => "Time until all processes are there", unit => "ms", better => less, kind => value},
        #{name => cost, label => "Cost of the best schedule", unit => "", better => less, kind => value},
        #{name => kills, label => "Processes killed", unit => "", better => less, kind => value},
        #{name => restarts, label => "Names registered again", unit => "", better => less, kind => value},
        #{name => cpu_ms, label => "Processor time, all nodes", unit => "ms", better => less, kind => value}
    ].

%% Without reliability the first kill ends the run.
-spec points([atoll_bench:point(), ...]) -> [atoll_bench:point()].
points(Points) ->
    [Point || #{chaos := Chaos, mode := Mode} = Point <- Points, Chaos == 0 orelse Mode =:= gr orelse Mode =:= sr].

-spec check(atoll_bench:point()) -> ok | {error, unicode:chardata()}.
check(#{nodes := Count, mode := Mode, degree := Degree}) ->
    case aco_tree:new(Mode, lists:duplicate(Count, node()), Degree, 1) of
        {ok, _} -> ok;
        {error, Reason} -> {error, aco_tree:format_error(Reason)}
    end.

spec(Nodes, #{jobs := Jobs} = Point) ->
    (maps:with([mode, degree, duplicating, pace_ms], Point))#{
        nodes => Nodes,
        problem => atoll_bench_aco_sample:problem(Jobs, 1),
        options => maps:with([ants, local_iterations, global_iterations, local_search], Point)
    }.

-spec flags(atoll_bench:point()) -> [string()].
flags(_Point) -> atoll_bench_nodes:flags().

-spec setup(atoll_bench:start()) -> {ok, map()} | {error, unicode:chardata()}.
setup(#{chaos := Chaos, seed := Seed} = Point) ->
    atoll_bench_nodes:start(options(Point), fun(Cluster) ->
        {ok, #{cluster => Cluster, spec => spec(atoll_cluster:nodes(Cluster), Point), chaos => Chaos, seed => Seed}}
    end).

%% @doc How its nodes are started.
-spec options(#{nodes := pos_integer(), mode := aco_tree:mode(), _ => _}) -> atoll_cluster:options().
options(#{nodes := Count, mode := Mode}) -> atoll_bench_nodes:options(aco:node_options(Mode), Count).

-spec round(map()) -> {ok, #{atom() => atoll_bench:measure()}, map()} | {error, unicode:chardata()}.
round(#{cluster := Cluster, spec := #{options := Options} = Spec, chaos := Chaos, seed := Seed} = State) ->
    Seeded = Spec#{options := Options#{seed => Seed}},
    case atoll_bench_nodes:spending(Cluster, fun() -> atoll_bench_ants:run(Cluster, Seeded, Chaos, ?RUN_MS) end) of
        {ok, {#{packets_sent := unknown}, _}} ->
            {error, "The packets of connections that the runtime does not drive itself cannot be counted."};
        {ok, {#{best := Cost, packets_sent := Packets} = Result, Us}} ->
            Same = [wall_ms, connections_max, connections_mean, names, build_ms, kills, restarts],
            Measures = (maps:with(Same, Result))#{
                packets => Packets,
                cost => Cost,
                cpu_ms => Us / 1000
            },
            case expected(Result, Seeded) of
                Cost -> {ok, Measures, State#{seed := Seed + 1}};
                Other -> {error, io_lib:format("The best schedule costs ~b, and in one process ~b.", [Cost, Other])}
            end;
        {error, _} = Error ->
            Error
    end.

%% What one process finds with as many colonies.
expected(#{colonies := Colonies}, #{problem := Problem, options := Given}) ->
    {ok, Options} = aco_options:new(Given),
    #{best := Cost} = aco_seq:run(#{problem => Problem, options => Options, colonies => Colonies}),
    Cost.

-spec teardown(map()) -> ok.
teardown(#{cluster := Cluster}) ->
    atoll_bench_nodes:stop(Cluster).
