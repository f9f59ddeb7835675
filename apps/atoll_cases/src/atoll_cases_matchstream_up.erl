%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll matchstream up': holds a service until it is told to stop, or its terminal is gone.
-module(atoll_cases_matchstream_up).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "start a service of match events and hold it until Ctrl-C".

-spec options() -> [atoll_cli_options:option()].
options() ->
    atoll_cases_matchstream:options() ++ [
        #{name => dir, value => "DIR", help => "keep matches in this folder on disk, where the next service of that name and so many nodes finds them"},
        #{name => record, value => "RECORD", help => "write down what is asked by those who follow matches, for atoll matchstream alike"},
        #{name => port, value => "PORT", default => "9999", read => atoll_cli_read:whole(0, 65000), help => "the first port for clients (0 takes free ones)"},
        #{name => web, value => "PORT", default => "8888", read => atoll_cli_read:whole(0, 65000), help => "the port of the web interface (0 takes a free one)"},
        #{name => cluster, short => $c, value => "NAME", default => "matchstream", read => atoll_cli_read:name(), help => "the cluster's name, with which the nodes' names begin"}
    ].

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() -> ["atoll matchstream up", "atoll matchstream up --store redis", "atoll matchstream up --dir matches", "atoll matchstream up --stage 5 --port 0 --web 0 -c reef"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{port := Port, web := Web} = Values, []) ->
    {Switches, Nodes} = atoll_cases_matchstream:shape(Values),
    Last = Port + Nodes * matchstream:count_ports(Switches) - 1,
    LastWeb = Web + Nodes - 1,
    if
        Port > 0, Last > 65535; Web > 0, LastWeb > 65535 -> {usage, "There are no more ports than 65535: --port or --web is to be smaller."};
        Port > 0, Web > 0, Port =< LastWeb, Web =< Last ->
            {usage, io_lib:format("Clients take the ports from ~b to ~b, and the web interface those from ~b to ~b: --port or --web is to be another one.", [Port, Last, Web, LastWeb])};
        true -> up(Values)
    end.

up(#{port := Port, web := Web, cluster := Name} = Values) ->
    Record = maps:map(fun(record, File) -> filename:absname(File) end, maps:with([record], Values)),
    atoll_cases_matchstream:with_service(Values, #{name => Name, settings => Record#{port => Port, web => Web}}, fun(Cluster) ->
        Nodes = atoll_bench_matchstream_run:webs(Cluster),
        Rows = [[atom_to_list(Node), lists:join(" ", [integer_to_list(Is) || Is <- Ports]), Base] || {Node, Ports, Base} <- Nodes],
        [{_, [First | _], Base} | _] = Nodes,
        ok = atoll_cli_io:print([
            atoll_cli_table:format([{left, "node"}, {left, "ports of clients"}, {left, "web"}], Rows),
            "\nplay:  atoll matchstream play sample --web ", Base, " --speed 10\n",
            io_lib:format("watch: nc 127.0.0.1 ~b, and say V:2:me\n", [First]), "stop:  Ctrl-C here, or: atoll down -c ", Name, $\n
        ]),
        atoll_up_cli:hold(Cluster)
    end).
