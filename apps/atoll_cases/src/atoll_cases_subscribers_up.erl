%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll subscribers up': holds a subscriber service, and its database, until it is told to stop, or its terminal is gone.
-module(atoll_cases_subscribers_up).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "start a subscriber service with its database and hold it until Ctrl-C".

-spec options() -> [atoll_cli_options:option()].
options() ->
    atoll_cases_subscribers:options() ++ [
        #{name => cluster, short => $c, value => "NAME", default => atoll_cases_subscribers:name(), read => atoll_cli_read:name(),
          help => "the cluster's name, with which the nodes' names begin"}
    ].

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() -> ["atoll subscribers up", "atoll subscribers up --store mysql", "atoll subscribers up --store mnesia --nodes 2 --majority"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, []) ->
    case atoll_cases_subscribers:check(Values) of
        ok -> start(Values);
        Wrong -> Wrong
    end.

start(#{cluster := Name} = Values) ->
    Shape = (atoll_cases_subscribers:shape(Values))#{requester => false},
    case atoll_cases_subscribers:start(Shape, Name, #{probe => {subscribers, status, []}}) of
        {ok, #{cluster := Cluster} = Ready} ->
            ok = atoll_cli_io:print(report(Ready, Name)),
            Held = atoll_up_cli:hold(Cluster),
            ok = atoll_bench_subscribers_run:stop(Ready),
            Held;
        {error, Sentence} ->
            {unable, Sentence}
    end.

report(#{server := Server} = Ready, Name) ->
    [
        atoll_cli_table:format(
            atoll_cases_subscribers:columns(),
            [atoll_cases_subscribers:row(Node, Status) || {Node, Status} <- atoll_bench_subscribers_run:status(Ready)]
        ),
        [io_lib:format("\ndatabase: MariaDB on 127.0.0.1:~b", [Port]) || Server =/= none, #{port := Port} <- [atoll_bench_mariadb:settings(Server)]],
        "\nload:     atoll subscribers load -c ", Name,
        "\nstop:     Ctrl-C here, or: atoll down -c ", Name, $\n
    ].
