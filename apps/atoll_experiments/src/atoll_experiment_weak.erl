%% SPDX-License-Identifier: Apache-2.0
%% @doc ACO's versions over more and more nodes, each with a colony of its own (Figure 31).
-module(atoll_experiment_weak).
-behaviour(atoll_experiment).

-export([about/0, asks/1, tables/0, questions/0]).

-define(MODES, [sr, ml, gr]).
-define(SIZES, [8, 32]).
%% Until the processes are there and have their names, and all rounds.
-define(WHOLE, {sum, [build_ms, wall_ms]}).

-spec about() -> atoll_experiment:about().
about() ->
    #{
        name => weak,
        title => "Weak scaling of ACO",
        question => "How does the time of a run grow with the nodes when each brings a colony of its own, without names (ML), with names in global (GR), and in s_groups (SR)?",
        minutes => 3,
        cannot => "flat curves: the work grows with the nodes and the processors do not. What the versions' times differ by at one number of nodes is what names "
            "and connections cost. Each colony has little to do, so that this shows."
    }.

-spec asks(atoll_experiment:context()) -> [atoll_experiment:ask(), ...].
asks(#{size := small}) -> [ask([5], 2, 1)];
asks(#{size := full}) -> [ask(?SIZES, 20, 6)].

ask(Nodes, Rounds, Starts) ->
    Sweep = #{nodes => Nodes, mode => ?MODES, jobs => [20], ants => [2], local_iterations => [2], global_iterations => [Rounds]},
    #{key => versions, do => {bench, "aco", #{sweep => Sweep, rounds => Starts, starts => Starts}}}.

-spec tables() -> [atoll_experiment:table()].
tables() ->
    [
        #{caption => Caption, from => versions, down => nodes, across => {mode, ?MODES}, quantity => Quantity}
     || {Caption, Quantity} <- [
            {"To build and run, ms:", ?WHOLE},
            {"All rounds, ms:", wall_ms},
            {"Until all processes are there and have their names, ms:", build_ms},
            {"Processor time of all nodes, ms:", cpu_ms},
            {"Packets sent by all nodes:", packets},
            {"Connections of the busiest node:", connections_max},
            {"Names:", names}
        ]
    ].

-spec questions() -> [atoll_experiment:question(), ...].
questions() ->
    {Few, Many} = {hd(?SIZES), lists:last(?SIZES)},
    Paper = #{figure => "Figure 31", from => versions, paper_has => #{nodes => {1, 256}}},
    Growth = fun(Mode, Other) ->
        #{
            quantity => {times, ?WHOLE, #{nodes => Few}},
            called => io_lib:format("From ~b nodes to ~b the time of ~ts became as many times that much longer as that of ~ts", [Few, Many, name(Mode), name(Other)]),
            first => #{mode => Mode},
            over => #{mode => Other},
            at => [#{nodes => Many}]
        }
    end,
    Least = fun(Other) ->
        #{quantity => ?WHOLE, called => ["SR took as many times as long as ", name(Other)], first => #{mode => sr}, over => #{mode => Other}, at => [#{nodes => Many}]}
    end,
    [
        Paper#{says => "GR-ACO scales significantly worse than ML-ACO, since it registers names for reliability.", kind => {differs, more}, by => Growth(gr, ml)},
        Paper#{says => "SR-ACO scales best of all: better than ML-ACO.", kind => {differs, less}, by => Growth(sr, ml)},
        Paper#{says => "SR-ACO scales better than GR-ACO.", kind => {differs, less}, by => Growth(sr, gr)},
        Paper#{says => "On many nodes SR-ACO takes less time than GR-ACO.", kind => {differs, less}, by => Least(gr)},
        Paper#{
            says => "On many nodes SR-ACO takes less time than ML-ACO, though it registers names.",
            kind => {differs, less},
            by => Least(ml),
            why => "On one host a connection of the mesh costs little to make and nothing to keep for the seconds of a run, while groups are made anew for each run."
        },
        #{
            figure => none,
            says => "The versions must find the same schedule.",
            kind => counted,
            from => versions,
            by => fun(Answer) ->
                Found = [{{N, Round}, Cost} || #{<<"nodes">> := N, <<"round">> := Round, <<"cost">> := Cost} <- atoll_experiments_samples:rows(Answer)],
                Costs = maps:values(maps:groups_from_list(fun({Key, _}) -> Key end, fun({_, Cost}) -> Cost end, Found)),
                Same = [1 || Each <- Costs, length(lists:usort(Each)) =:= 1],
                {length(Same) =:= length(Costs), io_lib:format("In ~b of ~b rounds all three found the same cost.", [length(Same), length(Costs)])}
            end
        }
    ].

name(Mode) -> [string:uppercase(atom_to_list(Mode)), "-ACO"].
