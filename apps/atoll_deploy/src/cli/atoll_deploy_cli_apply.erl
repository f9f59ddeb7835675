%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll deploy apply': does what stands in a file.
-module(atoll_deploy_cli_apply).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, more/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "do what stands in a file: register things, have families have so many nodes".

-spec options() -> [atoll_cli_options:option()].
options() -> [atoll_deploy_cli:dry_run(), atoll_deploy_cli:state(), atoll_cli_json:switch()].

-spec more() -> unicode:chardata().
more() -> "docs/deploy.md says what stands in such a file. It may be applied as often as one likes.".

-spec operands() -> [string()].
operands() -> ["FILE"].

-spec examples() -> [string()].
examples() -> ["atoll deploy apply docs/examples/deploy/here.deploy", "atoll deploy apply docs/examples/deploy/here.deploy --dry-run"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{dry_run := Dry, json := Json} = Values, [File]) ->
    atoll_deploy_cli:within(Values, fun(Deployment) ->
        case atoll_deploy:apply(Deployment, File, atoll_deploy_cli:tell(), case Dry of true -> plan; false -> run end) of
            {ok, Plans} when Dry -> atoll_deploy_cli:steps(Json, [Plan || {_, _} = Plan <- Plans]);
            {ok, Outcomes} -> all([Outcome || #{} = Outcome <- Outcomes], Json, ok);
            {error, Sentence} -> {unable, Sentence}
        end
    end).

%% What failed first is what is said at the end.
all([], _, Said) -> Said;
all([Outcome | Outcomes], Json, Said) ->
    Now = atoll_deploy_cli:outcome(Json, Outcome),
    all(Outcomes, Json, case Said of ok -> Now; _ -> Said end).
