%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll group add': adds nodes to a group.
-module(atoll_view_cli_group_add).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "add nodes to a group of a running cluster".

-spec options() -> [atoll_cli_options:option()].
options() -> atoll_view_cli_group:at() ++ atoll_view_cli_group:options(changes).

-spec operands() -> [string()].
operands() -> ["GROUP", "NODE", "[NODE...]"].

-spec examples() -> [string()].
examples() -> ["atoll group add fish reef4 -c reef"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, [Typed | Nodes]) ->
    case atoll_view_cli_group:group_name(Typed) of
        {ok, Group} -> atoll_view_cli_where:on(changes, atoll, Values, fun(View) -> add(Group, Nodes, View, Values) end);
        {error, Sentence} -> {usage, Sentence}
    end.

add(Group, Typed, View, Values) ->
    case {atoll_view_cli_group:nodes(Typed, View), atoll_view_cli_group:member(Group, [], View, Values)} of
        {{ok, Nodes}, {ok, Node, Members}} ->
            New = Nodes -- Members,
            Facts = fun({ok, _, Answered}) ->
                %% With nothing to add the answer is what was asked for.
                Added = [N || N <- Answered, lists:member(N, New)],
                {[{nodes, lists:usort(Members ++ Added)}, {added, Added}, {left_out, New -- Added}], wrong(New -- Added)}
            end,
            atoll_view_cli_group:show({Node, add_nodes, [Group, Nodes]}, Group, Facts, Values);
        {{ok, _}, {error, Sentence}} ->
            {unable, Sentence};
        {Wrong, _} ->
            Wrong
    end.

wrong([]) -> none;
wrong(_) -> "the nodes that do not answer or are in another group of that name were not added".
