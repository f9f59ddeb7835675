%% @doc `atoll aco': one run of the ant colonies on real nodes.
-module(atoll_cli_aco).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "run ant colonies on a cluster of their own".

-spec options() -> [atoll_cli_options:option()].
options() ->
    atoll_cli_aco_problem:options() ++ [
        #{name => until_optimum, help => "stop after the round in which that cost is reached"},
        #{name => mode, value => "MODE", default => "sr", read => atoll_cli_read:one_of([tl, ml, gr, sr]),
          help => "tl: two levels; ml: submasters between; gr: all watched over; sr: that in groups"},
        #{name => nodes, value => "N", default => "8", read => atoll_cli_read:whole(1, 1000), help => "nodes to start"},
        #{name => degree, value => "N", default => "2", read => atoll_cli_read:whole(2, 100),
          help => "submasters below the master, and below each submaster"},
        #{name => colonies, value => "N", default => "1", read => atoll_cli_read:whole(1, 1000),
          help => "colonies on each node that has some"},
        #{name => ants, value => "N", default => "8", read => atoll_cli_read:whole(1, 10000),
          help => "ants of each colony"},
        #{name => local_iterations, value => "N", default => "20", read => atoll_cli_read:whole(1, 1000000),
          help => "generations of ants in a round"},
        #{name => global_iterations, value => "N", default => "20", read => atoll_cli_read:whole(1, 1000000),
          help => "rounds; after each all are told the best"},
        #{name => local_search, value => "SEARCH", default => "none", read => atoll_cli_read:one_of(aco_search:names()),
          help => "how ants go on: o1 has two jobs change places, o2 moves one, o12 and o21 do both"},
        #{name => heuristic, value => "RULE", default => "mdd", read => atoll_cli_read:one_of([mdd, edd, au]),
          help => "what looks good at first: mdd and edd by due date, au by urgency"},
        (atoll_cli_sim_options:seed())#{default => "1"},
        #{name => pace, value => "MS", default => "0", read => atoll_cli_read:whole(0, 3600000),
          help => "a round begins so long after the one before, or later"},
        #{name => chaos, value => "N", default => "0", read => atoll_cli_read:number(0, 100),
          help => "processes killed each second on each node"},
        #{name => kill, value => "ROLE,...", read => atoll_cli_read:some_of([colony, gateway]),
          help => "kill a node with colonies, or with submasters, after a third of the rounds"},
        atoll_cli_json:switch()
    ].

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() ->
    [
        "atoll aco",
        "atoll aco --mode ml --nodes 8 --local-search o12 --json",
        "atoll aco --chaos 1 --kill colony --pace 500"
    ].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{json := Json} = Values, []) ->
    case task(Values) of
        {ok, Task} ->
            case atoll_cli_aco_run:run(Task) of
                {ok, Result} when Json -> atoll_cli_io:print_json(atoll_cli_aco_result:json(Task, Result));
                {ok, Result} -> atoll_cli_io:print(atoll_cli_aco_result:table(Task, Result));
                {error, Sentence} -> {failed, Sentence}
            end;
        {error, Sentence} ->
            {usage, Sentence}
    end.

task(Values) ->
    case atoll_cli_aco_problem:read(Values) of
        {ok, _, none} when map_get(until_optimum, Values) ->
            {error, "--until-optimum wants --optimum COST or --optima FILE"};
        {ok, Problem, Optimum} ->
            Task = atoll_cli_aco_run:task(Problem, Optimum, Values),
            case atoll_cli_aco_run:check(Task) of
                ok -> {ok, Task};
                {error, _} = Error -> Error
            end;
        {error, _} = Error ->
            Error
    end.
