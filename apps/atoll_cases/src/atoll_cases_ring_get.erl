%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll ring get': show the values of a key.
-module(atoll_cases_ring_get).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "show the values of a key".

-spec options() -> [atoll_cli_options:option()].
options() -> [atoll_cli_json:switch() | atoll_view_cli_where:options(looks)].

-spec operands() -> [string()].
operands() -> ["KEY"].

-spec examples() -> [string()].
examples() -> ["atoll ring get fish", "atoll ring get fish -c reef --json"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{json := Json} = Values, [Key]) ->
    atoll_cases_ring:with_node(looks, Values, {ring_kvs, get, [unicode:characters_to_binary(Key)]}, fun(Answer) -> atoll_cases_ring:values(Json, Answer) end).
