%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll tsung report': what Tsung has written of runs, as a result that `bench report' and `bench
%% compare' read.
-module(atoll_tsung_cli_report).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).
-export([show/2]).

-spec summary() -> string().
summary() -> "read the logs of Tsung into a result file".

-spec options() -> [atoll_cli_options:option()].
options() ->
    [
        #{name => scenario, value => "NAME", default => "tsung", help => "what the scenario is called in the result"},
        #{name => out, value => "FILE", help => "the result file (atoll-bench-tsung-TIME.jsonl unless told)"},
        atoll_cli_json:switch()
    ].

-spec operands() -> [string()].
operands() -> ["DIR", "[DIR...]"].

-spec examples() -> [string()].
examples() -> ["atoll tsung report logs/20261124-2210", "atoll tsung report before --scenario before --out before.jsonl"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{scenario := Name, json := Json} = Values, Dirs) ->
    File = maps:get(out, Values, atoll_bench_cli_run:timely("atoll-bench-tsung", ".jsonl")),
    Command = atoll_cli_again:line(["tsung report", [[$\s, atoll_cli_again:quoted(Dir)] || Dir <- Dirs]], options(), Values),
    case atoll_tsung:report(Dirs, Name, File, Command) of
        {ok, Result} -> show(Json, Result);
        {error, Sentence} -> {unable, Sentence}
    end.

%% @doc Prints a result, and says what failed by why.
-spec show(Json :: boolean(), atoll_tsung:result()) -> atoll_cli_command:outcome().
show(Json, #{file := File, runs := Logs}) ->
    {ok, Run} = atoll_bench_file:read(File),
    ok = atoll_bench_cli_result:print(Json, Run),
    _ = [atoll_cli_io:say(io_lib:format("~ts: ~b", [Name, round(N)])) || {Name, N} <- lists:sort(maps:to_list(errors(Logs))), N > 0],
    case [Log || #{complete := false} = Log <- Logs] of
        [] -> ok;
        Cut -> {failed, io_lib:format("~b of ~b runs did not come to their end", [length(Cut), length(Logs)])}
    end.

errors(Logs) ->
    lists:foldl(
        fun({Name, N}, Sum) -> Sum#{Name => N + maps:get(Name, Sum, 0)} end,
        #{},
        [{Name, N} || #{counts := Counts} <- Logs, {<<"error_", _/binary>> = Name, N} <- maps:to_list(Counts)]
    ).
