%% @doc ACO's versions over more and more nodes, each with a colony of its own (Figure 31).
-module(atoll_experiment_weak).
-behaviour(atoll_experiment).

-export([about/0, steps/1, verdict/1]).

-import(atoll_experiment, [bench/3, claim/5, verdict_of/1]).
-import(atoll_experiments_data, [number/1, value/3, ordered/1]).

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
    [bench(versions, "aco", #{sweep => sweep([8, 16, 32], 20), rounds => 5, starts => 1})].

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
sizes(#{header := #{<<"points">> := Points}}) -> lists:usort([N || #{<<"nodes">> := N} <- Points]).

at(N, Mode, Metric, Run) -> value(#{nodes => N, mode => Mode}, Metric, Run).

name(Mode) -> [string:uppercase(atom_to_list(Mode)), "-ACO"].

%% The time of a run is that of both.
whole(N, Mode, Run) ->
    case {at(N, Mode, build_ms, Run), at(N, Mode, wall_ms, Run)} of
        {Build, Wall} when is_number(Build), is_number(Wall) -> Build + Wall;
        _ -> none
    end.

lines(Modes, Run) ->
    lists:join("; ", [
        ["with ", number(N), " nodes ", lists:join(", ", [[name(Mode), " ", number(whole(N, Mode, Run)), " ms"] || Mode <- Modes])]
     || N <- sizes(Run)
    ]).

compared(Modes, Run) ->
    verdict_of([ordered([whole(N, Mode, Run) || Mode <- Modes]) || N <- sizes(Run)]).

global(Run) ->
    claim("Figure 31", "GR-ACO scales significantly worse than ML-ACO, since it registers names for reliability.",
        compared([ml, gr], Run),
        ["To build and run it took (medians): ", lines([ml, gr], Run), "."],
        "").

%% From the fewest nodes to the most.
scales(Run) ->
    Growths = [growth(Mode, Run) || Mode <- ?MODES],
    claim("Figure 31", "SR-ACO scales best, then ML-ACO, then GR-ACO.",
        ordered(Growths),
        ["From the fewest nodes to the most the time, building included, became this many times as long: ",
         lists:join(", ", [[name(Mode), " ", number(Growth)] || {Mode, Growth} <- lists:zip(?MODES, Growths)]), "."],
        "").

growth(Mode, Run) ->
    case [whole(N, Mode, Run) || N <- sizes(Run)] of
        [First | [_ | _] = Rest] when is_number(First), First > 0 ->
            case lists:last(Rest) of
                none -> none;
                Last -> Last / First
            end;
        _ ->
            none
    end.

groups(Run) ->
    Holds = compared([sr, ml], Run),
    claim("Figure 31", "On many nodes SR-ACO takes the least time of all, though it registers names too.",
        Holds,
        ["To build and run it took (medians): ", lines([sr, ml], Run), "."],
        case Holds of
            false -> "On one host a connection of the mesh costs little to make and nothing to keep for the seconds of a run, while groups are made anew for each run.";
            _ -> ""
        end).

same_result(Run) ->
    Same = [lists:usort([at(N, Mode, cost, Run) || Mode <- ?MODES]) || N <- sizes(Run)],
    claim("not in the paper", "The versions must find the same schedule.",
        case Same of [] -> unknown; _ -> lists:all(fun(Costs) -> length(Costs) =:= 1 end, Same) end,
        io_lib:format("At ~b of ~b numbers of nodes all three found the same cost.", [length([1 || [_] <- Same]), length(Same)]),
        "").
