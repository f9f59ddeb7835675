%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll deploy log': the last lines that a node has said.
-module(atoll_deploy_cli_log).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "print the last lines that a node has said".

-spec options() -> [atoll_cli_options:option()].
options() -> [#{name => lines, value => "N", default => "20", read => atoll_cli_read:whole(1, 10000), help => "so many lines"}, atoll_deploy_cli:state()].

-spec operands() -> [string()].
operands() -> ["FAMILY", "NODE"].

-spec examples() -> [string()].
examples() -> ["atoll deploy log shop shop1@10.0.0.1", "atoll deploy log shop shop1@10.0.0.1 --lines 100"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{lines := Lines} = Values, [Family, Node]) ->
    atoll_deploy_cli:within(Values, fun(Deployment) ->
        case atoll_deploy:log(Deployment, {Family, Node}, Lines) of
            {ok, Said} -> atoll_cli_io:print([[Line, $\n] || Line <- Said]);
            {error, Sentence} -> {unable, Sentence}
        end
    end).
