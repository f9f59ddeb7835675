%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll distance draw': a declared network as text or as a drawing.
-module(atoll_view_cli_distance_draw).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "check and draw a network file".

-spec options() -> [atoll_cli_options:option()].
options() -> atoll_view_cli_distance:drawings().

-spec operands() -> [string()].
operands() -> ["FILE"].

-spec examples() -> [string()].
examples() -> ["atoll distance draw reef.network", "atoll distance draw reef.network --svg reef.svg --dot reef.dot"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, [File]) ->
    case atoll_view_cli_distance:network(File) of
        {ok, Network} ->
            Drawing = atoll_tree_drawing:network(Network),
            case atoll_view_cli_distance:draw(filename:basename(File), Drawing, logarithmic, Values) of
                none -> atoll_cli_io:print(atoll_tree_drawing:text(Drawing));
                Outcome -> Outcome
            end;
        {error, Outcome} ->
            Outcome
    end.
