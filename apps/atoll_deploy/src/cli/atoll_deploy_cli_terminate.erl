%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll deploy terminate': stops all nodes of a family.
-module(atoll_deploy_cli_terminate).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, more/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "stop all nodes of a family, and leave nothing of them".

-spec options() -> [atoll_cli_options:option()].
options() -> [atoll_deploy_cli:dry_run(), atoll_deploy_cli:state(), atoll_cli_json:switch()].

-spec more() -> unicode:chardata().
more() -> "What a start that failed has left goes too. Machines of a cloud are destroyed when no node is left on them.".

-spec operands() -> [string()].
operands() -> ["FAMILY"].

-spec examples() -> [string()].
examples() -> ["atoll deploy terminate shop", "atoll deploy terminate shop --dry-run"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{dry_run := true} = Values, [Family]) ->
    atoll_deploy_cli_run:run(Values, [Family, "0"]);
run(#{json := Json} = Values, [Family]) ->
    atoll_deploy_cli:within(Values, fun(Deployment) ->
        case atoll_deploy:terminate(Deployment, Family, atoll_deploy_cli:tell()) of
            {ok, Outcome} -> atoll_deploy_cli:outcome(Json, Outcome);
            {error, Sentence} -> {unable, Sentence}
        end
    end).
