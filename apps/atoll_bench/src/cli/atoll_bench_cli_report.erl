%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll bench report': a page of charts and tables from result files.
-module(atoll_bench_cli_report).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "draw what runs have measured, as a page that opens without a network".

-spec options() -> [atoll_cli_options:option()].
options() ->
    [
        #{name => out, value => "DIR", default => "report",
          help => "the directory that index.html, and an SVG and a CSV file of each chart and table, go to"}
    ].

-spec operands() -> [string()].
operands() -> ["FILE", "[FILE...]"].

-spec examples() -> [string()].
examples() -> ["atoll bench report before.jsonl after.jsonl --out report"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{out := Dir}, Files) ->
    Read = [atoll_bench_file:read(File) || File <- Files],
    case [Error || {error, Error} <- Read] of
        [] -> write(Dir, [Run || {ok, Run} <- Read]);
        [Error | _] -> {usage, atoll_bench_file:format_error(Error)}
    end.

write(Dir, Runs) ->
    ok = atoll_cli_progress:now_doing(doing(atoll_bench_report_bundle:load(#{}))),
    Answer =
        case atoll_bench_report_bundle:build() of
            ok -> atoll_bench_report:write(Dir, Runs);
            {error, _} = Error -> Error
        end,
    ok = atoll_cli_progress:done(),
    case Answer of
        {ok, [Page | Others]} ->
            atoll_cli_io:print(io_lib:format("~ts, and ~b files beside it\n", [Page, length(Others)]));
        {error, Why} ->
            {unable, atoll_bench_report:format_error(Why)}
    end.

doing({ok, _}) -> "Drawing";
doing({error, _}) -> "Bundling the scripts that draw, once, which takes a minute at most; then drawing".
