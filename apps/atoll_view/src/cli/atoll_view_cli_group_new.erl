%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll group new': makes a group of nodes of a running cluster.
-module(atoll_view_cli_group_new).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "make a group of nodes of a running cluster".

-spec options() -> [atoll_cli_options:option()].
options() -> atoll_view_cli_group:options(changes).

-spec operands() -> [string()].
operands() -> ["GROUP", "NODE", "[NODE...]"].

-spec examples() -> [string()].
examples() -> ["atoll group new fish reef1 reef2 reef3 -c reef"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, [Typed | Nodes]) ->
    case atoll_view_cli_group:group_name(Typed) of
        {ok, Group} -> atoll_view_cli_where:on(changes, atoll, Values, fun(View) -> make(Group, Nodes, View, Values) end);
        {error, Sentence} -> {usage, Sentence}
    end.

make(Group, Typed, View, Values) ->
    case atoll_view_cli_group:nodes(Typed, View) of
        {ok, [First | _] = Nodes} ->
            %% A node that is down cannot be the one that makes it.
            Maker = hd([Node || Node <- atoll_view:running(View), lists:member(Node, Nodes)] ++ [First]),
            Facts = fun({ok, _, Members}) ->
                LeftOut = Nodes -- Members,
                {[{nodes, Members}, {left_out, LeftOut}], wrong(LeftOut)}
            end,
            atoll_view_cli_group:show({Maker, new_s_group, [Group, Nodes]}, Group, Facts, Values);
        Wrong ->
            Wrong
    end.

wrong([]) -> none;
wrong(_) -> "the group was made without the nodes that do not answer or are in another group of that name".
