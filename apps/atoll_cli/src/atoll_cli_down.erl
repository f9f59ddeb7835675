%% @doc `atoll down': stops a cluster that runs on this machine.
-module(atoll_cli_down).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "stop the cluster that up started, or the one that is named".

-spec options() -> [atoll_cli_options:option()].
options() -> [].

-spec operands() -> [string()].
operands() -> ["[NAME]"].

-spec examples() -> [string()].
examples() -> ["atoll down", "atoll down reef"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(_, []) ->
    %% Not just any that is running: it may be somebody's test.
    stop(atoll_cli_up:default_name());
run(_, [Name]) ->
    stop(Name).

stop(Name) ->
    case atoll_cluster:ask(Name, stop) of
        {ok, _} -> atoll_cli_io:say(["Cluster ", Name, " is down."]);
        {error, {not_running, Name}} -> {failed, atoll_cli_held:not_running(Name)};
        {error, Reason} -> {failed, atoll_cluster:format_error(Reason)}
    end.
