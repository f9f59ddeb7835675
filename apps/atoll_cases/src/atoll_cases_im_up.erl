%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll im up': holds an instant messenger until it is told to stop, or its terminal is gone.
-module(atoll_cases_im_up).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "start an instant messenger and hold it until Ctrl-C".

-spec options() -> [atoll_cli_options:option()].
options() ->
    atoll_cases_im:options() ++ [
        #{name => door, value => "PORT", read => atoll_cli_read:whole(0, 65535),
          help => "open a door for people, a page and lines of JSON, on this port of 127.0.0.1, on a node of its own (0 takes a free one)"},
        #{name => cluster, short => $c, value => "NAME", default => atoll_cases_im:name(), read => atoll_cli_read:name(),
          help => "the cluster's name, with which the nodes' names begin"}
    ].

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() -> ["atoll im up", "atoll im up --routers 2 --servers 6 --mode rd", "atoll im up --door 5280", "atoll im up --reach relays -c reef"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, []) ->
    case atoll_cases_im:check(Values) of
        ok -> start(Values);
        Wrong -> Wrong
    end.

start(#{cluster := Name} = Values) ->
    Shape = atoll_cases_im:shape(Values, case Values of #{door := _} -> 1; #{} -> 0 end),
    case atoll_cases_im:start(Shape, Name, #{probe => {im, status, []}}) of
        {ok, #{cluster := Cluster} = Ready} ->
            case opened(Ready, Values) of
                {ok, Doors} ->
                    ok = atoll_cli_io:print(report(Ready, Doors, Name)),
                    atoll_up_cli:hold(Cluster);
                {error, Sentence} ->
                    ok = atoll_cluster:stop(Cluster),
                    {unable, Sentence}
            end;
        {error, Sentence} ->
            {unable, Sentence}
    end.

opened(#{cluster := Cluster, routers := Routers, clients := [Client]}, #{door := Port}) ->
    case atoll_cluster:call(Cluster, Client, im_door_sup, start, [#{routers => Routers, port => Port}]) of
        {ok, Taken} -> {ok, [Taken]};
        {error, Why} -> {error, io_lib:format("The door cannot be opened on port ~b: ~ts.", [Port, inet:format_error(Why)])}
    end;
opened(_Ready, _Values) ->
    {ok, []}.

report(#{cluster := Cluster, routers := Routers, servers := Servers}, Doors, Name) ->
    #{nodes := Nodes} = atoll_cluster:status(Cluster),
    [
        atoll_cli_table:format(
            atoll_cases_im:columns(),
            [atoll_cases_im:row(Node, Status) || #{node := Node, probe := Status} <- Nodes, lists:member(Node, Routers ++ Servers)]
        ),
        [io_lib:format("\npage:     http://127.0.0.1:~b/\nchat:     atoll im chat --as NAME --connect 127.0.0.1:~b", [Port, Port]) || Port <- Doors],
        "\ntraffic:  atoll im traffic -c ", Name,
        "\nstop:     Ctrl-C here, or: atoll down -c ", Name, $\n
    ].
