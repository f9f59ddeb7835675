%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll ring delete': delete the values of a key.
-module(atoll_cases_ring_delete).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "delete the values of a key".

-spec options() -> [atoll_cli_options:option()].
options() -> atoll_view_cli_where:options(changes).

-spec operands() -> [string()].
operands() -> ["KEY"].

-spec examples() -> [string()].
examples() -> ["atoll ring delete fish", "atoll ring delete fish -c reef"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, [Key]) ->
    atoll_cases_ring:with_node(changes, Values, {ring_kvs, delete, [unicode:characters_to_binary(Key)]}, fun(Answer) -> atoll_cases_ring:settled("deleted", Answer) end).
