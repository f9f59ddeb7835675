%% @doc ACO's versions over more and more nodes, each with a colony of its own (Figure 31).
-module(atoll_experiment_weak).
-behaviour(atoll_experiment).

-export([about/0, steps/1, verdict/1]).

-import(atoll_experiment, [bench/3, claim/5]).
-import(atoll_experiments_data, [number/1, value/3, samples/3]).
-import(atoll_experiments_spread, [below/2]).

-define(MODES, [sr, ml, gr]).

-spec about() -> atoll_experiment:about().
about() ->
    #{
        name => weak,
        title => "Weak scaling of ACO",
        question => "How does the time of a run grow with the nodes when each brings a colony of its own, without names, with names in global, and in s_groups?",
        minutes => 3,
        cannot => "flat curves: the work grows with the nodes and the processors do not. What the versions' times differ by at one number of nodes is what names "
            "and connections cost. Each colony has little to do, so that this shows."
    }.

-spec steps(atoll_experiment:context()) -> [atoll_experiment:step(), ...].
steps(#{size := small}) ->
    [bench(versions, "aco", #{sweep => sweep([5], 2), rounds => 1, starts => 1})];
steps(#{size := full}) ->
    [bench(versions, "aco", #{sweep => sweep([8, 16, 32], 20), rounds => 10, starts => 1})].

sweep(Nodes, Rounds) ->
    #{nodes => Nodes, mode => ?MODES, jobs => [20], ants => [2], local_iterations => [2], global_iterations => [Rounds]}.

-spec verdict(atoll_experiment:results()) -> atoll_experiment:verdict().
verdict(Results) ->
    Run = atoll_experiments_data:run(versions, Results),
    #{
        tables => [
            #{
                caption => Caption,
                head => ["nodes" | [name(Mode) || Mode <- ?MODES]],
                rows => [[number(N) | [number(at(N, Mode, Metric, Run)) || Mode <- ?MODES]] || N <- sizes(Run)]
            }
         || {Caption, Metric} <- [
                {"All rounds, ms:", wall_ms},
                {"Until all processes are there and have their names, ms:", build_ms},
                {"Processor time of all nodes, ms:", cpu_ms},
                {"Packets sent by all nodes:", packets},
                {"Connections of the busiest node:", connections_max},
                {"Names:", names}
            ]
        ],
        claims => [global(Run), scales(Run), groups(Run), same_result(Run)]
    }.

sizes(none) -> [];
sizes(#{header := #{<<"points">> := Points}} = Run) ->
    [N || N <- lists:usort([N || #{<<"nodes">> := N} <- Points]), lists:any(fun(Mode) -> whole(N, Mode, Run) =/= none end, ?MODES)].

at(N, Mode, Metric, Run) -> value(#{nodes => N, mode => Mode}, Metric, Run).

name(Mode) -> [string:uppercase(atom_to_list(Mode)), "-ACO"].

%% The time of a run is that of both, in each round.
whole(N, Mode, Run) ->
    [Build, Wall] = [samples(#{nodes => N, mode => Mode}, Metric, Run) || Metric <- [build_ms, wall_ms]],
    case length(Build) =:= length(Wall) of
        true -> atoll_experiments_spread:of_samples(lists:zipwith(fun erlang:'+'/2, Build, Wall));
        false -> none
    end.

lines(Modes, Run) ->
    case sizes(Run) of
        [] -> none;
        Sizes ->
            ["To build and run it took: ", lists:join("; ", [
                ["with ", number(N), " nodes ",
                 lists:join(", ", [[name(Mode), " ", atoll_experiments_spread:said(whole(N, Mode, Run)), " ms"] || Mode <- Modes])]
             || N <- Sizes
            ]), "."]
    end.

%% On the most nodes, which is what is asked; no other number of nodes may say the contrary.
global(Run) ->
    Each = [below(whole(N, ml, Run), whole(N, gr, Run)) || N <- sizes(Run)],
    claim("Figure 31", "GR-ACO scales significantly worse than ML-ACO, since it registers names for reliability.",
        case {lists:member(false, Each), Each} of
            {true, _} -> false;
            {false, []} -> unknown;
            {false, _} -> lists:last(Each)
        end,
        lines([ml, gr], Run),
        "").

%% From the fewest nodes to the most.
scales(Run) ->
    Growths = [growth(Mode, Run) || Mode <- ?MODES],
    claim("Figure 31", "SR-ACO scales best, then ML-ACO, then GR-ACO.",
        atoll_experiments_spread:ordered(Growths),
        case [Growth || Growth <- Growths, Growth =/= none] of
            [] -> none;
            _ -> ["From the fewest nodes to the most the time, building included, became this many times as long: ",
                  lists:join(", ", [[name(Mode), " ", atoll_experiments_spread:said(Growth)] || {Mode, Growth} <- lists:zip(?MODES, Growths)]), "."]
        end,
        "").

growth(Mode, Run) ->
    case sizes(Run) of
        [First, _ | _] = Sizes -> atoll_experiments_spread:ratio(whole(lists:last(Sizes), Mode, Run), whole(First, Mode, Run));
        _ -> none
    end.

%% Of all numbers of nodes the most is many.
groups(Run) ->
    Holds = case sizes(Run) of
        [] ->
            unknown;
        Sizes ->
            [Sr | Others] = [whole(lists:last(Sizes), Mode, Run) || Mode <- ?MODES],
            atoll_experiments_spread:least(Sr, Others)
    end,
    claim("Figure 31", "On many nodes SR-ACO takes the least time of all, though it registers names too.",
        Holds,
        lines(?MODES, Run),
        case Holds of
            false -> "On one host a connection of the mesh costs little to make and nothing to keep for the seconds of a run, while groups are made anew for each run.";
            _ -> ""
        end).

same_result(Run) ->
    Same = [lists:usort([at(N, Mode, cost, Run) || Mode <- ?MODES]) || N <- sizes(Run)],
    claim(none, "The versions must find the same schedule.",
        lists:all(fun(Costs) -> length(Costs) =:= 1 end, Same),
        case Same of
            [] -> none;
            _ -> io_lib:format("At ~b of ~b numbers of nodes all three found the same cost.", [length([1 || [_] <- Same]), length(Same)])
        end,
        "").
