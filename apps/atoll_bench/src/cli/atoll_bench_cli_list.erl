%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll bench list': which benchmarks there are, and what each is swept over.
-module(atoll_bench_cli_list).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "say which benchmarks there are".

-spec options() -> [atoll_cli_options:option()].
options() -> [].

-spec operands() -> [string()].
operands() -> ["[NAME]"].

-spec examples() -> [string()].
examples() -> ["atoll bench list", "atoll bench list dist"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(_, []) ->
    Rows = [[Name, Module:summary()] || {Name, Module} <- atoll_bench:all()],
    atoll_cli_io:print([
        atoll_cli_table:lines([left, left], Rows),
        "\n\"atoll bench list NAME\" says what one is swept over.\n"
    ]);
run(_, [Name]) ->
    case atoll_bench:find(Name) of
        {ok, Module} -> atoll_cli_io:print(page(Name, Module));
        {error, Error} -> {usage, atoll_bench:format_error(Error)}
    end.

page(Name, Module) ->
    Parameters = [
        ["  " ++ atoll_cli_options:flag(Key), atoll_bench_cli_run:listed(Values), help(Parameter)]
     || #{name := Key, values := Values} = Parameter <- Module:parameters()
    ],
    Metrics = [["  " ++ Label, Unit] || #{label := Label, unit := Unit} <- Module:metrics()],
    [
        [Name, ": ", Module:summary(), ".\n\nswept over, unless told otherwise:\n"],
        atoll_cli_table:lines([left, left, left], Parameters),
        ["\ncompared with each other: ", atoll_cli_options:flag(Module:variant()), "\n\nmeasured:\n"],
        atoll_cli_table:lines([left, left], Metrics)
    ].

help(#{help := Help, unit := Unit}) -> [Help, ", ", Unit];
help(#{help := Help}) -> Help.
