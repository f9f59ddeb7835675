%% @doc Orbit at scale (Figure 29): the same set, over more and more nodes, connected in four ways.
-module(atoll_experiment_orbit).
-behaviour(atoll_experiment).

-export([about/0, steps/1, verdict/1]).

-import(atoll_experiment, [bench/3, claim/5]).
-import(atoll_experiments_data, [number/1, value/3]).
-import(atoll_experiments_spread, [below/2]).

-define(MODES, [mesh, groups, ring, 'groups-native']).

-spec about() -> atoll_experiment:about().
about() ->
    #{
        name => orbit,
        title => "Orbit at scale",
        question => "What does it take to enumerate one set over more and more nodes, in a full mesh and in groups?",
        minutes => 4,
        cannot =>
            "a speed-up, since all nodes share the same processors, and so neither where the mesh stops being faster. What is measured is "
            "what a way of connecting nodes costs: connections, packets, memory and processor time."
    }.

%% With many nodes each mode is up alone: what the others do in the background would be in its
%% times, and with circuits it may cost it some.
-spec steps(atoll_experiment:context()) -> [atoll_experiment:step(), ...].
steps(#{size := small}) ->
    [bench(few, "orbit", #{sweep => sweep([4], [500], [mesh, groups]), rounds => 1, starts => 1})];
steps(#{size := full}) ->
    [bench(few, "orbit", #{sweep => sweep([4, 8, 16], [5000], ?MODES), rounds => 5, starts => 1})] ++
        [bench(many(Mode), "orbit", #{sweep => sweep([32, 64], [5000], [Mode]), rounds => 5, starts => 1}) || Mode <- ?MODES].

many(mesh) -> many_mesh;
many(groups) -> many_groups;
many(ring) -> many_ring;
many('groups-native') -> many_native.

sweep(Nodes, Space, Modes) ->
    #{nodes => Nodes, space => Space, mode => Modes, group_size => [0], workers => [4]}.

-spec verdict(atoll_experiment:results()) -> atoll_experiment:verdict().
verdict(Results) ->
    Runs = [Run || Key <- [few | [many(Mode) || Mode <- ?MODES]], Run <- [atoll_experiments_data:run(Key, Results)], Run =/= none],
    #{
        tables => [
            table(Caption, Metric, Runs)
         || {Caption, Metric} <- [
                {"Connections of all nodes together:", connections_all},
                {"Connections of the busiest node:", connections_max},
                {"Packets sent by all nodes:", packets},
                {"Memory of all nodes, MB:", memory_mb},
                {"Time, ms:", wall_ms},
                {"Processor time of all nodes, ms:", cpu_ms}
            ]
        ],
        claims => [direct(Runs), connections(Runs), better(Runs), memory(Runs), native(Runs)]
    }.

table(Caption, Metric, Runs) ->
    #{
        caption => Caption,
        head => ["nodes" | [atom_to_list(Mode) || Mode <- ?MODES]],
        rows => [[number(N) | [number(at(N, Mode, Metric, Runs)) || Mode <- ?MODES]] || N <- sizes(Runs)]
    }.

%% Those with which something was measured.
sizes(Runs) ->
    Sizes = lists:usort([N || #{header := #{<<"points">> := Points}} <- Runs, #{<<"nodes">> := N} <- Points]),
    [N || N <- Sizes, lists:any(fun(Mode) -> at(N, Mode, wall_ms, Runs) =/= none end, ?MODES)].

%% Of the run that has it.
at(N, Mode, Metric, Runs) ->
    case [V || Run <- Runs, V <- [value(#{nodes => N, mode => Mode}, Metric, Run)], V =/= none] of
        [Value | _] -> Value;
        [] -> none
    end.

%% Number of nodes, and of this metric the mode's as a multiple of the mesh's.
ratios(Mode, Metric, Runs) ->
    [
        {N, at(N, Mode, Metric, Runs) / at(N, mesh, Metric, Runs)}
     || N <- sizes(Runs), at(N, Mode, Metric, Runs) =/= none, at(N, mesh, Metric, Runs) =/= none, at(N, mesh, Metric, Runs) > 0
    ].

said(Values) ->
    lists:join(", ", [[one(Value), " at ", number(N)] || {N, Value} <- Values]).

one({_, _, _} = Spread) -> atoll_experiments_spread:said(Spread);
one(Number) -> number(Number).

times(N, Mode, Runs) ->
    atoll_experiments_spread:of_samples(lists:append([
        atoll_experiments_data:samples(#{nodes => N, mode => Mode}, wall_ms, Run) || Run <- Runs
    ])).

%% All that is measured here is few.
direct(Runs) ->
    Sizes = [N || {N, _} <- ratios(groups, wall_ms, Runs)],
    Faster = [{N, below(times(N, mesh, Runs), times(N, groups, Runs))} || N <- Sizes],
    Alike = [N || {N, unknown} <- Faster],
    claim("Figure 29", "On few nodes D-Orbit is faster than SD-Orbit, since its messages go directly and not over a gateway.",
        atoll_experiment:verdict_of([Is || {_, Is} <- Faster]),
        case Sizes of
            [] -> none;
            _ -> ["Groups take as many times as long as the mesh: ",
                  said([{N, atoll_experiments_spread:ratio(times(N, groups, Runs), times(N, mesh, Runs))} || N <- Sizes]),
                  " nodes; the paper's few are up to 80."]
        end,
        [["With ", lists:join(", ", [number(N) || N <- Alike]), " nodes they differ by less than their rounds do."] || Alike =/= []]).

connections(Runs) ->
    Mesh = [{N, at(N, mesh, connections_all, Runs)} || N <- sizes(Runs)],
    Groups = ratios(groups, connections_all, Runs),
    Square = [{N, C} || {N, C} <- Mesh, C =/= none],
    IsSquare = case Square of [] -> unknown; _ -> lists:all(fun({N, C}) -> C == N * (N - 1) / 2 end, Square) end,
    Fewer = case Groups of [] -> unknown; _ -> falling([R || {_, R} <- Groups]) end,
    claim("section V", "A mesh of n nodes has O(n²) connections; s_groups keep the connections of a node to those of its group.",
        atoll_experiment:verdict_of([IsSquare, Fewer]),
        case {Square, Groups} of
            {[_ | _], [_ | _]} ->
                ["The mesh had ", said(Square), " nodes; groups had of that a share of ", said(Groups), "."];
            _ ->
                none
        end,
        "").

falling([_]) -> unknown;
falling(Ratios) -> lists:last(Ratios) < hd(Ratios).

better(Runs) ->
    Ratios = ratios(groups, wall_ms, Runs),
    claim("Figure 29", "From 80 nodes on (2M elements; 100 with 5M) SD-Orbit is faster than D-Orbit.",
        unknown,
        case Ratios of
            [] -> none;
            _ ->
                {N, Ratio} = lists:last(Ratios),
                ["With ", number(N), " nodes, the most that were run, groups took ", number(Ratio), " times as long as the mesh and ",
                 [number(R) || {At, R} <- ratios(groups, cpu_ms, Runs), At =:= N], " times the processor time."]
        end,
        "What makes a mesh slow on hosts of their own (memory, and traffic between hosts that grows with the connections) is not there on one "
        "host, where a connection is a buffer in the kernel and gateways compete with the workers for the same two processors.").

memory(Runs) ->
    Ratios = ratios(groups, memory_mb, Runs),
    Most = case Ratios of [] -> none; _ -> lists:last(Ratios) end,
    claim("section VIII.i", "Beyond 5M elements D-Orbit fails, since nodes have no memory left (64 GB); SD-Orbit runs with 60M.",
        unknown,
        case Most of
            none -> none;
            {N, _} ->
                ["All ", number(N), " nodes took ", number(at(N, mesh, memory_mb, Runs)), " MB as a mesh and ", number(at(N, groups, memory_mb, Runs)),
                 " in groups; groups took of the mesh's memory a share of ", said(Ratios), " nodes."]
        end,
        "The set is small here, and the application that makes groups has a memory of its own.").

native(Runs) ->
    Ratios = ratios('groups-native', connections_all, Runs),
    Times = ratios('groups-native', wall_ms, Runs),
    claim(none, "The mesh's program runs over groups as it stands, with fewer connections (there it was written anew: SD-Orbit has gateway processes of its own).",
        lists:all(fun({_, Ratio}) -> Ratio < 1 end, Ratios),
        case Ratios of
            [] -> none;
            _ -> ["Over groups with relays (groups-native) it had a share of the mesh's connections of ", said(Ratios),
                  " nodes, and took as many times as long: ", said(Times), "."]
        end,
        "Relays are Atoll's, and each message between groups is handled by one or two gateways.").
