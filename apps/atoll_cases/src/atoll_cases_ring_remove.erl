%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll ring remove': take a node that is lost for good out of the ring.
-module(atoll_cases_ring_remove).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "take a node that is lost for good out of the ring".

-spec options() -> [atoll_cli_options:option()].
options() -> atoll_view_cli_where:options(changes).

-spec operands() -> [string()].
operands() -> ["NODE"].

-spec examples() -> [string()].
examples() -> ["atoll ring remove reef_ring_2 -c reef"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, [Named]) ->
    atoll_cases_ring:member(Values, Named, fun(Node, [Other | _]) -> {Other, remove, [Node]} end, "is out; others get what it had from the other copies").
