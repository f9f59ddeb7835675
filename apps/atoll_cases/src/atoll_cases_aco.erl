%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll aco': one run of the ant colonies on real nodes.
-module(atoll_cases_aco).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "run ant colonies on a cluster of their own".

-spec options() -> [atoll_cli_options:option()].
options() ->
    atoll_cases_aco_problem:options() ++ [
        #{name => until_optimum, help => "stop after the round in which that cost is reached"},
        #{name => against_optima, value => "N,...", read => atoll_cases_aco_optima:reader(),
          help => "solve all problems of the collection with so many colonies each, here, and count the optimal ones"},
        #{name => mode, value => "MODE", default => "sr", read => atoll_cli_read:one_of([tl, ml, gr, sr]),
          help => "tl: two levels; ml: submasters between; gr: all watched over; sr: that in groups"},
        #{name => nodes, value => "N", default => "8", read => atoll_cli_read:whole(1, 1000), help => "nodes to start"},
        #{name => degree, value => "N", default => "2", read => atoll_cli_read:whole(2, 1000),
          help => "submasters below the master, and below each submaster"},
        #{name => colonies, value => "N", default => "1", read => atoll_cli_read:whole(1, 1000),
          help => "colonies on each node that has some"},
        #{name => duplicating, value => "N", default => "1", read => atoll_cli_read:whole(1, 10000),
          help => "how often each colony sends its answer, as if it were so many"},
        algorithm(ants, "N", "ants of each colony"),
        algorithm(local_iterations, "N", "generations of ants in a round"),
        algorithm(global_iterations, "N", "rounds; after each all are told the best"),
        algorithm(local_search, "SEARCH",
                  "how ants go on: o1 has two jobs change places, o2 moves one, o12 and o21 do both"),
        algorithm(heuristic, "RULE", "what looks good at first: mdd and edd by due date, au by urgency"),
        algorithm(alpha, "N", "how much what was learned counts"),
        algorithm(beta, "N", "how much what looks good counts"),
        algorithm(q0, "N", "how often an ant takes the best instead of drawing"),
        algorithm(rho, "N", "the share of pheromone that evaporates, and that a deposit has"),
        algorithm(tau0, "N", "the pheromone at first; auto goes by the order by due dates"),
        (atoll_cli_again:seed())#{default => "1"},
        #{name => pace, value => "MS", default => "0", read => atoll_cli_read:whole(0, 3600000),
          help => "a round begins so long after the one before, or later"},
        #{name => chaos, value => "N", default => "0", read => atoll_cli_read:number(0, 100),
          help => "processes killed each second on each node, one in three with all others there"},
        #{name => kill, value => "ROLE,...", read => atoll_cli_read:some_of([colony, gateway]),
          help => "kill a node with colonies, or with submasters alone (11 nodes or more of degree 2 have one), after a third of the rounds"},
        atoll_cli_json:switch()
        | atoll_deploy_cluster:options()
    ].

%% An option of the algorithm, which knows itself what it may be.
algorithm(Name, Value, Help) ->
    Read = case aco_options:allowed(Name) of
        {whole, Least, Most} -> atoll_cli_read:whole(Least, Most);
        {number, Least, Most} -> atoll_cli_read:number(Least, Most);
        {auto_or_number, Least, Most} -> auto_or(atoll_cli_read:number(Least, Most));
        {one_of, Words} -> atoll_cli_read:one_of(Words)
    end,
    Default = io_lib:format("~tp", [maps:get(Name, aco_options:defaults())]),
    #{name => Name, value => Value, default => lists:flatten(Default), read => Read, help => Help}.

auto_or(Read) ->
    fun("auto") -> {ok, auto};
       (Text) ->
            case Read(Text) of
                {error, ["must be " ++ What | More]} -> {error, ["must be auto or ", What | More]};
                {ok, N} -> {ok, N}
            end
    end.

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() ->
    [
        "atoll aco",
        "atoll aco --mode ml --nodes 8 --local-search o12 --json",
        "atoll aco --chaos 1 --kill colony --pace 500",
        "atoll aco --input wt40.txt --optima wtopt40.txt --local-search o12 --against-optima 1,2,4"
    ].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{against_optima := Counts, json := Json} = Values, []) ->
    case atoll_cases_aco_problem:read_all(Values) of
        {ok, Problems} ->
            {ok, Options} = aco_options:new(maps:with(maps:keys(aco_options:defaults()), Values)),
            Rows = atoll_cases_aco_optima:run(Counts, Problems, Options),
            case Json of
                true -> atoll_cli_io:print_json(atoll_cases_aco_optima:json(Rows));
                false -> atoll_cli_io:print(atoll_cases_aco_optima:table(Rows))
            end;
        {error, Sentence} ->
            {usage, Sentence}
    end;
run(#{json := Json} = Values, []) ->
    case task(Values) of
        {ok, Task} ->
            case atoll_cases_aco_run:run(Task) of
                {ok, Result} -> show(Json, Task, Result);
                {error, Sentence} -> {unable, Sentence}
            end;
        {error, Sentence} ->
            {usage, Sentence}
    end.

show(Json, Task, #{best := Best, optimum := Optimum} = Result) ->
    _ = [atoll_cli_io:say("The best is below the optimum that was given, so that was none.") || is_integer(Optimum), Best < Optimum],
    case Json of
        true -> atoll_cli_io:print_json(atoll_cases_aco_result:json(Task, Result));
        false -> atoll_cli_io:print(atoll_cases_aco_result:table(Task, Result))
    end.

task(Values) ->
    case atoll_cases_aco_problem:read(Values) of
        {ok, _, none} when map_get(until_optimum, Values) ->
            {error, "--until-optimum wants --optimum COST or --optima FILE"};
        {ok, Problem, Optimum} ->
            Task = atoll_cases_aco_run:task(Problem, Optimum, Values),
            case atoll_cases_aco_run:check(Task) of
                ok -> {ok, Task};
                {error, _} = Error -> Error
            end;
        {error, _} = Error ->
            Error
    end.
