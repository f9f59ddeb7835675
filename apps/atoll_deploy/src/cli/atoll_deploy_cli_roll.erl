%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll deploy roll': has a family run another release, some nodes at a time.
-module(atoll_deploy_cli_roll).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, more/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "have a family run another release, some nodes at a time".

-spec options() -> [atoll_cli_options:option()].
options() ->
    [
        #{name => batch, value => "N", default => "1", read => atoll_cli_read:whole(1, 1000), help => "so many nodes at a time"},
        atoll_deploy_cli:dry_run(), atoll_deploy_cli:state(), atoll_cli_json:switch()
    ].

-spec more() -> unicode:chardata().
more() -> "The next nodes follow when these are well. At the first that is not, all have the release back that they had.".

-spec operands() -> [string()].
operands() -> ["FAMILY", "RELEASE"].

-spec examples() -> [string()].
examples() -> ["atoll deploy roll shop shop-2", "atoll deploy roll shop shop-2 --batch 2"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{dry_run := true, batch := Batch, json := Json} = Values, [Family, Release]) ->
    atoll_deploy_cli:within(Values, fun(Deployment) ->
        case atoll_deploy:batches(Deployment, Family, {Release, Batch}) of
            {ok, Batches} -> atoll_deploy_cli:steps(Json, [{Family, [{start, Row#{release := Release}} || Rows <- Batches, Row <- Rows]}]);
            {error, Sentence} -> {unable, Sentence}
        end
    end);
run(#{batch := Batch, json := Json} = Values, [Family, Release]) ->
    atoll_deploy_cli:within(Values, fun(Deployment) ->
        case atoll_deploy:roll(Deployment, Family, {Release, Batch}, atoll_deploy_cli:tell()) of
            {ok, Outcome} -> atoll_deploy_cli:outcome(Json, Outcome);
            {back, Why, Outcome} ->
                _ = atoll_deploy_cli:outcome(Json, Outcome),
                {failed, atoll_deploy_roll:format_back(Why, maps:get(failed, Outcome))};
            {error, Sentence} -> {unable, Sentence}
        end
    end).
