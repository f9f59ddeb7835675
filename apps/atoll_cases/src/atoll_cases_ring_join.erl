%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll ring join': have a node of a cluster join its ring.
-module(atoll_cases_ring_join).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "have a node of a cluster join its ring".

-spec options() -> [atoll_cli_options:option()].
options() -> atoll_view_cli_where:options(changes).

-spec operands() -> [string()].
operands() -> ["NODE"].

-spec examples() -> [string()].
examples() -> ["atoll ring join reef_ring_4 -c reef"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, [Named]) ->
    atoll_cases_ring:member(Values, Named, fun(Node, [Other | _]) -> {Node, join, [Other]} end, "joins, and has its part some time later").
