%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll deploy plan': what would be done.
-module(atoll_deploy_cli_plan).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "say what would be done for a family to have N nodes".

-spec options() -> [atoll_cli_options:option()].
options() -> [
    #{name => manifest, help => "print the manifests for Kubernetes, without the secret; no cluster is asked"},
    atoll_deploy_cli:state(), atoll_cli_json:switch()
].

-spec operands() -> [string()].
operands() -> ["FAMILY", "[N]"].

-spec examples() -> [string()].
examples() -> ["atoll deploy plan shop 6", "atoll deploy plan shop", "atoll deploy plan reef 3 --manifest"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{manifest := false} = Values, Operands) ->
    atoll_deploy_cli_run:run(Values#{dry_run => true}, Operands);
run(Values, [Family]) -> manifest(Values, Family, kept);
run(Values, [Family, Typed]) ->
    case atoll_deploy_cli:count(Typed) of
        {ok, Count} -> manifest(Values, Family, Count);
        {usage, _} = Wrong -> Wrong
    end.

manifest(Values, Family, Count) ->
    atoll_deploy_cli:within(Values, fun(Deployment) ->
        case atoll_deploy:manifest(Deployment, Family, Count) of
            {ok, Objects} -> atoll_cli_io:print([atoll_deploy_kubernetes:text(Objects), $\n]);
            {error, Sentence} -> {unable, Sentence}
        end
    end).
