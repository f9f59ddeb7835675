%% @doc What a run of the ant colonies has found, for people and for programs.
-module(atoll_cli_aco_result).

-export([json/2, table/2]).

%% @doc The object that `--json' prints.
-spec json(atoll_cli_aco_run:task(), aco:result()) -> atoll_cli_json:object().
json(#{mode := Mode, optimum := Optimum, options := #{seed := Seed}}, #{best := Best} = Result) ->
    Same = [{Key, maps:get(Key, Result)}
            || Key <- [wall_ms, packets_sent, connections_max, names, kills, restarts]],
    {[{best, Best}, {optimum, null(Optimum)}, {gap, null(gap(Best, Optimum))} | Same] ++
     [{mode, Mode}, {nodes, maps:get(nodes, Result)}, {rounds, maps:get(rounds, Result)}, {seed, Seed}]}.

null(none) -> null;
null(Value) -> Value.

%% How much more than the optimum, as a share of it.
gap(_, none) -> none;
gap(Best, Best) -> 0.0;
gap(_, 0) -> none;
gap(Best, Optimum) -> (Best - Optimum) / Optimum.

%% @doc A table of facts.
-spec table(atoll_cli_aco_run:task(), aco:result()) -> iolist().
table(#{mode := Mode, problem := Problem, optimum := Optimum, options := #{seed := Seed}}, #{best := Best} = Result) ->
    Count = fun(Key) -> atoll_cli_table:count(maps:get(Key, Result)) end,
    atoll_cli_table:lines([left, right], [
        ["mode", atom_to_list(Mode)],
        ["jobs", atoll_cli_table:count(aco_problem:size(Problem))],
        ["seed", integer_to_list(Seed)],
        ["best", atoll_cli_table:count(Best)]
    ] ++ [
        ["optimum", atoll_cli_table:count(Optimum)] || Optimum =/= none
    ] ++ [
        ["above the optimum", atoll_cli_table:percent(Gap)] || Gap <- [gap(Best, Optimum)], Gap =/= none
    ] ++ [
        ["nodes", Count(nodes)],
        ["rounds", Count(rounds)],
        ["connections of a node, at most", Count(connections_max)],
        ["registered names", Count(names)],
        ["packets between nodes", Count(packets_sent)],
        ["processes killed", Count(kills)],
        ["processes started again", Count(restarts)],
        ["time", atoll_cli_table:seconds(maps:get(wall_ms, Result))]
    ]).
