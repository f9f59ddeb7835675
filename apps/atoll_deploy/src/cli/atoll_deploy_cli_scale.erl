%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll deploy scale': gives a deployed family another size.
-module(atoll_deploy_cli_scale).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, more/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "have a family that is deployed have more nodes, or fewer".

-spec options() -> [atoll_cli_options:option()].
options() -> [atoll_deploy_cli:dry_run(), atoll_deploy_cli:state(), atoll_cli_json:switch()].

-spec more() -> unicode:chardata().
more() -> "Nodes are added to the hosts that have the fewest, and those with the highest numbers are stopped first.".

-spec operands() -> [string()].
operands() -> ["FAMILY", "N"].

-spec examples() -> [string()].
examples() -> ["atoll deploy scale shop 12", "atoll deploy scale shop 4 --dry-run"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, [_, _] = Operands) -> atoll_deploy_cli_run:run(Values, Operands).
