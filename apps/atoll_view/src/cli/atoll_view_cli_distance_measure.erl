%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll distance measure': which nodes of a running cluster are near each other, as a
%% dendrogram and as a network that can be declared. Files are written only where all nodes have
%% measured: a network that lacks some would take the place of one that has them.
-module(atoll_view_cli_distance_measure).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "measure all pairs of a running cluster at once, and cluster them".

-spec options() -> [atoll_cli_options:option()].
options() ->
    atoll_view_cli_where:options(changes) ++ atoll_view_cli_distance:effort() ++
        [
            #{name => write, value => "FILE", help => "write the network that is cut from it into this file, if no node is left out"},
            #{name => ratio, value => "X", default => "2", read => atoll_cli_read:number(1, 1000),
              help => "a cluster is a subnet if it is so many times as narrow as what it stands in"}
        ] ++ atoll_view_cli_distance:drawings() ++ [atoll_cli_json:switch()].

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() -> ["atoll distance measure", "atoll distance measure -c reef --write reef.network --svg reef.svg"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, []) ->
    atoll_view_cli_distance:measured(Values, fun(Nodes, Means, Absent) ->
        {ok, Dendrogram} = atoll_dendrogram:new(Nodes, Means),
        Drawing = atoll_dendrogram:drawing(fun atoll_view_cli_distance:round_trip/1, Dendrogram),
        show(Dendrogram, Drawing, Absent, Values)
    end).

show(Dendrogram, Drawing, Absent, #{ratio := Ratio} = Values) ->
    Network = atoll_dendrogram:network({ratio, Ratio}, Dendrogram),
    ok = print(Dendrogram, Drawing, Network, Absent, Values),
    case atoll_view_cli_distance:absent(Absent) of
        [] -> keep(Network, Drawing, Values);
        Sentence -> {failed, [Sentence, ["; so no file is written" || maps:size(maps:with([write, svg, dot], Values)) > 0]]}
    end.

keep(Network, Drawing, Values) ->
    Steps = [
        fun() -> write(Network, Values) end,
        fun() -> atoll_view_cli_distance:draw("round trips", Drawing, logarithmic, Values) end
    ],
    case [Outcome || Step <- Steps, {unable, _} = Outcome <- [Step()]] of
        [Unable | _] -> Unable;
        [] -> ok
    end.

print(Dendrogram, _Drawing, Network, #{silent := Silent, late := Late}, #{json := true}) ->
    atoll_cli_io:print_json(
        {[
            {joins, [
                {[{round_trip_us, Us}, {between, {[{one, A}, {other, B}]}}]}
             || {Us, A, B} <- atoll_dendrogram:joins(Dendrogram)
            ]},
            {network, unicode:characters_to_binary(atoll_network_file:text(Network))},
            {silent, Silent},
            {late, Late}
        ]}
    );
print(_Dendrogram, Drawing, _Network, _Absent, #{json := false}) ->
    atoll_cli_io:print(atoll_tree_drawing:text(Drawing)).

write(Network, #{write := File}) ->
    case atoll_network_file:write(File, Network) of
        ok -> atoll_cli_io:say(["The network is written to ", File, $.]);
        {error, Error} -> {unable, ["the network ", File, " could not be written: ", atoll_network_file:format_error(Error)]}
    end;
write(_Network, #{}) ->
    ok.
