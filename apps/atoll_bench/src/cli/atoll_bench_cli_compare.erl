%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll bench compare': whether the second of two runs was faster or slower.
-module(atoll_bench_cli_compare).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2, judged/2]).

-spec summary() -> string().
summary() -> "say where the second of two runs was faster or slower".

-spec options() -> [atoll_cli_options:option()].
options() ->
    [
        #{name => fail_on, value => "VERDICTS", read => atoll_cli_read:some_of([slower, unclear, faster]),
          help => "the exit status is 1 where one of these is the verdict: slower, unclear, faster, with commas between"},
        atoll_cli_json:switch()
    ].

-spec operands() -> [string()].
operands() -> ["FILE", "FILE"].

-spec examples() -> [string()].
examples() -> ["atoll bench compare before.jsonl after.jsonl", "atoll bench compare before.jsonl after.jsonl --fail-on slower"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, [First, Second]) ->
    case {atoll_bench_file:read(First), atoll_bench_file:read(Second)} of
        {{ok, A}, {ok, B}} -> compare(Values, A, B);
        {{error, Error}, _} -> {usage, atoll_bench_file:format_error(Error)};
        {_, {error, Error}} -> {usage, atoll_bench_file:format_error(Error)}
    end.

compare(#{json := Json} = Values, A, B) ->
    ok = lists:foreach(fun say_partial/1, [A, B]),
    ok = say_machines(machine(A), machine(B)),
    case atoll_bench_pair:comparisons(A, B) of
        {ok, Comparisons} ->
            ok = lists:foreach(fun atoll_cli_io:say/1, atoll_bench_pair:left_out(A, B)),
            Results = atoll_bench_compare:all(Comparisons, #{}),
            ok = show(Json, Results, A),
            judged(maps:get(fail_on, Values, []), Results);
        {error, Error} ->
            {usage, atoll_bench_pair:format_error(Error)}
    end.

%% @private The first of the verdicts that none shall be.
-spec judged([atom()], [{term(), #{verdict := atom(), atom() => term()}}]) -> atoll_cli_command:outcome().
judged(Against, Results) ->
    Counts = [{length([V || {_, #{verdict := V}} <- Results, V =:= Verdict]), Verdict} || Verdict <- Against],
    case [Found || {Count, _} = Found <- Counts, Count > 0] of
        [] -> ok;
        [{Count, Verdict} | _] -> {failed, io_lib:format("~b of ~b comparisons: the second run is ~ts", [Count, length(Results), Verdict])}
    end.

say_partial(#{status := complete}) -> ok;
say_partial(#{status := partial, file := File}) -> atoll_cli_io:say([File, " is partial: its run did not end by itself."]).

machine(#{header := #{<<"machine">> := #{} = Machine}}) -> Machine;
machine(_Run) -> #{}.

%% A comparison holds the machine for the same.
say_machines(A, B) ->
    case [Key || Key <- lists:usort(maps:keys(A) ++ maps:keys(B)), maps:get(Key, A, null) =/= maps:get(Key, B, null)] of
        [] -> ok;
        Keys -> atoll_cli_io:say(["The machines of the two runs differ in ", lists:join(", ", Keys), "."])
    end.

show(true, Results, _Run) ->
    atoll_cli_io:print_json({[{rows, [{row(Key, Result)} || {Key, Result} <- Results]}]});
show(false, Results, #{header := #{<<"parameters">> := Parameters}}) ->
    Names = [Name || #{<<"name">> := Name} <- Parameters],
    Columns =
        [{left, Name} || Name <- Names] ++
            [{left, "measured"}, {right, "factor"}, {right, "95 %"}, {left, "second run is"}],
    Rows = [
        [atoll_cli_table:value(map_get(Name, Point)) || Name <- Names] ++ [measured(Metric, What) | cells(Result)]
     || {{Point, Metric, What}, Result} <- Results
    ],
    Count = fun(Verdict) -> length([V || {_, #{verdict := V}} <- Results, V =:= Verdict]) end,
    atoll_cli_io:print([
        atoll_cli_table:format(Columns, Rows),
        io_lib:format("\n~b the same, ~b faster, ~b slower, ~b unclear\n", [
            Count(same), Count(faster), Count(slower), Count(unclear)
        ])
    ]).

measured(#{<<"label">> := Label}, value) -> Label;
measured(#{<<"label">> := Label}, What) -> [Label, $\s, atom_to_list(What)].

cells(#{ratio := none, verdict := Verdict}) ->
    ["-", "-", atom_to_list(Verdict)];
cells(#{ratio := Ratio, low := Low, high := High, verdict := Verdict}) ->
    [factor(Ratio), [factor(Low), " - ", factor(High)], atom_to_list(Verdict)].

%% Too few samples have no interval.
factor(none) -> "-";
factor(Number) -> float_to_list(float(Number), [{decimals, 3}]).

row({Point, #{<<"name">> := Name}, What}, Result) ->
    [
        {point, {maps:to_list(Point)}},
        {metric, Name},
        {what, What}
        | [{Key, null(map_get(Key, Result))} || Key <- [ratio, low, high, verdict]]
    ].

null(none) -> null;
null(Value) -> Value.
