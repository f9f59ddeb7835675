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
        #{name => cluster, short => $c, value => "NAME", default => atoll_cases_im:name(), read => atoll_cli_read:name(),
          help => "the cluster's name, with which the nodes' names begin"}
    ].

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() -> ["atoll im up", "atoll im up --routers 2 --servers 6 --mode rd", "atoll im up --reach relays -c reef"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{cluster := Name} = Values, []) ->
    case atoll_cases_im:check(Values) of
        ok ->
            case atoll_cases_im:start(atoll_cases_im:shape(Values, 0), Name, #{probe => {im_cluster, look, []}}) of
                {ok, Ready} ->
                    ok = atoll_cli_io:print(report(Ready, Name)),
                    atoll_up_cli:hold(maps:get(cluster, Ready));
                {error, Sentence} ->
                    {unable, Sentence}
            end;
        Wrong ->
            Wrong
    end.

report(#{cluster := Cluster}, Name) ->
    #{nodes := Nodes} = atoll_cluster:status(Cluster),
    [
        atoll_cli_table:format(atoll_cases_im:columns(), [atoll_cases_im:row(atom_to_list(Node), Look) || #{node := Node, probe := Look} <- Nodes]),
        "\ntraffic:  atoll im traffic -c ", Name,
        "\nchat:     atoll im chat -c ", Name, " --as NAME",
        "\nstop:     Ctrl-C here, or: atoll down -c ", Name, $\n
    ].
