%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll down': stops a cluster that runs on this machine.
-module(atoll_up_cli_down).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "stop the cluster that up started, or the one that is named".

-spec options() -> [atoll_cli_options:option()].
options() ->
    %% Not just any that is running: it may be somebody's test.
    [#{name => cluster, short => $c, value => "NAME", default => atoll_view_cli_where:default_name(), read => atoll_cli_read:name(),
       help => "this cluster, which \"atoll up\" holds"}].

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() -> ["atoll down", "atoll down -c reef"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{cluster := Name}, []) ->
    case atoll_view_context:find(Name) of
        {ok, {joined, _, _}} -> {unable, [Name, " is a context: Atoll did not start that cluster, and does not stop it."]};
        _ -> stop(Name)
    end.

stop(Name) ->
    case atoll_cluster:ask(Name, stop) of
        {ok, _} -> atoll_cli_io:say(["Cluster ", Name, " is down."]);
        {error, {not_running, Name}} -> {unable, atoll_view_context:not_running(Name)};
        {error, Reason} -> {unable, atoll_cluster:format_error(Reason)}
    end.
