%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll deploy run': deploys a family.
-module(atoll_deploy_cli_run).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, more/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "have a family have N nodes, or go on where a master ended".

-spec options() -> [atoll_cli_options:option()].
options() -> [atoll_deploy_cli:dry_run(), atoll_deploy_cli:state(), atoll_cli_json:switch()].

-spec more() -> unicode:chardata().
more() -> "Nodes are added to the hosts that have the fewest, and those with the highest numbers are stopped first.".

-spec operands() -> [string()].
operands() -> ["FAMILY", "[N]"].

-spec examples() -> [string()].
examples() -> ["atoll deploy run shop 6", "atoll deploy run shop 6 --dry-run", "atoll deploy run shop"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, [Family]) -> counted(Values, Family, kept);
run(Values, [Family, Typed]) ->
    case atoll_deploy_cli:count(Typed) of
        {ok, Count} -> counted(Values, Family, Count);
        {usage, _} = Wrong -> Wrong
    end.

counted(#{dry_run := Dry, json := Json} = Values, Family, Count) ->
    atoll_deploy_cli:within(Values, fun(Deployment) ->
        Done =
            case Dry of
                true -> atoll_deploy:plan(Deployment, Family, Count);
                false -> atoll_deploy:run(Deployment, Family, Count, atoll_deploy_cli:tell())
            end,
        case Done of
            {ok, Steps} when is_list(Steps) -> atoll_deploy_cli:steps(Json, [{Family, Steps}]);
            {ok, Outcome} -> atoll_deploy_cli:outcome(Json, Outcome);
            {error, Sentence} -> {unable, Sentence}
        end
    end).
