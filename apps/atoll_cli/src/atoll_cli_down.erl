%% @doc `atoll down': stops a cluster that runs on this machine.
-module(atoll_cli_down).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "stop a cluster; the only one, or the one that is named".

-spec options() -> [atoll_cli_options:option()].
options() -> [].

-spec operands() -> [string()].
operands() -> ["[NAME]"].

-spec examples() -> [string()].
examples() -> ["atoll down", "atoll down reef"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(_, []) ->
    case [Name || #{name := Name} <- atoll_cluster:running()] of
        [Name] -> stop(Name);
        [] -> {failed, "No cluster is running."};
        Names -> {usage, ["more than one cluster is running; name one of: ",
                          lists:join(", ", lists:sort(Names))]}
    end;
run(_, [Name]) ->
    stop(Name).

stop(Name) ->
    case atoll_cluster:ask(Name, stop) of
        {ok, _} -> atoll_cli_io:say(["Cluster ", Name, " is down."]);
        {error, Reason} -> {failed, atoll_cluster:format_error(Reason)}
    end.
