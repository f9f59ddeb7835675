%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll group remove': removes nodes from a group.
-module(atoll_view_cli_group_remove).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "remove nodes from a group of a running cluster".

-spec options() -> [atoll_cli_options:option()].
options() -> atoll_view_cli_group:at() ++ atoll_view_cli_group:options(changes).

-spec operands() -> [string()].
operands() -> ["GROUP", "NODE", "[NODE...]"].

-spec examples() -> [string()].
examples() -> ["atoll group remove fish reef4 -c reef"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, [Typed | Nodes]) ->
    case atoll_view_cli_group:group_name(Typed) of
        {ok, Group} -> atoll_view_cli_where:on(changes, atoll, Values, fun(View) -> remove(Group, Nodes, View, Values) end);
        {error, Sentence} -> {usage, Sentence}
    end.

remove(Group, Typed, View, Values) ->
    case atoll_view_cli_where:named(Typed, View) of
        {error, Sentence} ->
            {usage, Sentence};
        {ok, Nodes} ->
            %% No node can remove itself.
            case atoll_view_cli_group:member(Group, Nodes, View, Values) of
                {error, Sentence} ->
                    {unable, Sentence};
                {ok, Node, Members} ->
                    Facts = fun(ok) ->
                        {[{nodes, Members -- Nodes}, {removed, [N || N <- Nodes, lists:member(N, Members)]}], none}
                    end,
                    atoll_view_cli_group:show({Node, remove_nodes, [Group, Nodes]}, Group, Facts, Values)
            end
    end.
