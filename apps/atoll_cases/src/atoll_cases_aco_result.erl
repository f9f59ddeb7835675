%% SPDX-License-Identifier: Apache-2.0
%% @doc What a run of the ant colonies has found, for people and for programs.
-module(atoll_cases_aco_result).

-export([json/2, table/2]).

%% @doc The object that `--json' prints.
-spec json(atoll_cases_aco_run:task(), atoll_bench_ants:result()) -> atoll_cli_json:object().
json(#{options := #{seed := Seed}}, #{nodes_lost := Lost} = Result) ->
    {[{Key, known(maps:get(Key, Result))}
      || Key <- [best, optimum, gap, wall_ms, packets_sent, connections_max, names, kills, restarts,
                 mode, nodes, rounds]] ++ [{seed, Seed}, {nodes_lost, Lost}]}.

known(Unknown) when Unknown =:= none; Unknown =:= unknown -> null;
known(Value) -> Value.

%% @doc A table of facts.
-spec table(atoll_cases_aco_run:task(), atoll_bench_ants:result()) -> iolist().
table(#{problem := Problem, options := #{seed := Seed}}, Result) ->
    #{mode := Mode, optimum := Optimum, gap := Gap, packets_sent := Packets, nodes_lost := Lost} = Result,
    Count = fun(Key) -> atoll_cli_table:count(maps:get(Key, Result)) end,
    atoll_cli_table:lines([left, right], lists:append([
        [
            ["mode", atom_to_list(Mode)],
            ["jobs", atoll_cli_table:count(aco_problem:size(Problem))],
            ["seed", integer_to_list(Seed)],
            ["best", Count(best)]
        ],
        optimum(maps:get(best, Result), Optimum, Gap),
        [
            ["rounds", Count(rounds)],
            ["nodes", Count(nodes)],
            ["connections of a node, at most", Count(connections_max)],
            ["registered names", Count(names)],
            %% What was lost took its count with it.
            [["packets between nodes" | [", at least" || Lost =/= []]], packets(Packets)]
        ],
        [["nodes lost", atoll_cli_table:count(length(Lost))] || Lost =/= []],
        [
            ["processes killed", Count(kills)],
            ["processes started again", Count(restarts)]
        ],
        back(Result),
        [
            ["time", atoll_cli_table:seconds(maps:get(wall_ms, Result))]
        ]
    ])).

%% As the storm has seen it.
back(#{back_ms_median := Median, back_ms_max := Max}) when is_number(Median) ->
    [["until one had its name again", io_lib:format("~.1f ms, at most ~.1f ms", [float(Median), float(Max)])]];
back(_) ->
    [].

%% What was given may be wrong; and of 0 there are no per cent.
optimum(_Best, none, _Gap) ->
    [];
optimum(Best, Optimum, _Gap) when Best < Optimum ->
    [["optimum", [atoll_cli_table:count(Optimum), ", which the best is below"]]];
optimum(Best, Optimum, Gap) ->
    [
        ["optimum", atoll_cli_table:count(Optimum)],
        ["above the optimum", case Optimum of 0 -> atoll_cli_table:count(Best); _ -> atoll_cli_table:percent(Gap) end]
    ].

packets(unknown) -> "-";
packets(Count) -> atoll_cli_table:count(Count).
