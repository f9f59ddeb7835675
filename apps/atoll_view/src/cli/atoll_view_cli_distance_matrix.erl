%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll distance matrix': how far each node is from each other, measured in a running cluster
%% or by a declared network.
-module(atoll_view_cli_distance_matrix).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "show the round trips of a running cluster, or the distances of a network file".

-spec options() -> [atoll_cli_options:option()].
options() ->
    atoll_view_cli_where:options(changes) ++ atoll_view_cli_distance:effort() ++
        [#{name => network, value => "FILE", is_read => true, help => "measure nothing: the distances that this file declares"}, atoll_cli_json:switch()].

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() -> ["atoll distance matrix -c reef", "atoll distance matrix --network reef.network --json"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{network := File} = Values, []) ->
    case atoll_view_cli_distance:network(File) of
        {ok, Network} ->
            Far = fun(A, B) ->
                {ok, Distance} = atoll_network:distance(A, B, Network),
                Distance
            end,
            show(atoll_network:nodes(Network), Far, fun(D) -> io_lib:format("~p", [D]) end, distance, #{silent => [], late => []}, Values);
        {error, Outcome} ->
            Outcome
    end;
run(Values, []) ->
    atoll_view_cli_distance:measured(Values, fun(Nodes, Means, Absent) ->
        Far = fun
            (Node, Node) -> 0.0;
            (A, B) -> map_get({A, B}, Means)
        end,
        show(Nodes, Far, fun atoll_view_cli_distance:round_trip/1, round_trip_us, Absent, Values)
    end).

show(Nodes, Far, Write, Key, Absent, Values) ->
    ok = print(Nodes, Far, Write, Key, Absent, Values),
    case atoll_view_cli_distance:absent(Absent) of
        [] -> ok;
        Sentence -> {failed, Sentence}
    end.

print(Nodes, Far, _Write, Key, #{silent := Silent, late := Late}, #{json := true}) ->
    Pairs = [{[{from, A}, {to, B}, {Key, Far(A, B)}]} || A <- Nodes, B <- Nodes, A =/= B],
    atoll_cli_io:print_json({[{nodes, Nodes}, {pairs, Pairs}, {silent, Silent}, {late, Late}]});
print(Nodes, Far, Write, _Key, _Absent, #{json := false}) ->
    Columns = [{left, ""} | [{right, short(Node)} || Node <- Nodes]],
    Rows = [[atom_to_list(A) | [cell(A, B, Far, Write) || B <- Nodes]] || A <- Nodes],
    atoll_cli_io:print(atoll_cli_table:format(Columns, Rows)).

cell(Node, Node, _Far, _Write) -> "-";
cell(A, B, Far, Write) -> Write(Far(A, B)).

%% Rows have the whole name.
short(Node) -> hd(string:split(atom_to_list(Node), "@")).
