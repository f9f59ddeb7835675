%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll context use': says which cluster is meant where none is named.
-module(atoll_view_cli_context_use).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "say which context is meant where no cluster is named; without NAME, none".

-spec options() -> [atoll_cli_options:option()].
options() -> [].

-spec operands() -> [string()].
operands() -> ["[NAME]"].

-spec examples() -> [string()].
examples() -> ["atoll context use prod", "atoll context use"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(_, []) ->
    used(atoll_view_context:use(none), "No context is in use.");
run(_, [Name]) ->
    used(atoll_view_context:use(Name), ["Context ", Name, " is in use."]).

used(ok, Sentence) -> atoll_cli_io:say(Sentence);
used({error, Sentence}, _) -> {unable, Sentence}.
