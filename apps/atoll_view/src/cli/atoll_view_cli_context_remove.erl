%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll context remove': forgets a context.
-module(atoll_view_cli_context_remove).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "forget a context; the cluster is not touched".

-spec options() -> [atoll_cli_options:option()].
options() -> [].

-spec operands() -> [string()].
operands() -> ["NAME"].

-spec examples() -> [string()].
examples() -> ["atoll context remove prod"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(_, [Name]) ->
    case atoll_view_context:remove(Name) of
        ok -> atoll_cli_io:say(["Context ", Name, " is removed."]);
        {error, Sentence} -> {unable, Sentence}
    end.
