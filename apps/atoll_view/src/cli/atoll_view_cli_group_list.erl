%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll group list': the groups of a running cluster.
-module(atoll_view_cli_group_list).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "list the groups of a running cluster".

-spec options() -> [atoll_cli_options:option()].
options() -> atoll_view_cli_group:options(looks).

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() -> ["atoll group list", "atoll group list -c reef --json"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, []) ->
    atoll_view_cli_where:on(looks, atoll, Values, fun(View) ->
        #{silent := Silent} = Groups = atoll_view:groups(View),
        ok = list(Groups, atoll_view:name(View), Values),
        atoll_view_cli_where:judged(Silent)
    end).

list(#{groups := Groups, free := Free, silent := Silent, without := Without}, Name, #{json := true}) ->
    Gateways = atoll_topology:gateways(atoll_topology:of_groups(Groups)),
    atoll_cli_io:print_json(
        {[
            {cluster, unicode:characters_to_binary(Name)},
            {groups, [
                {[{group, Group}, {nodes, Nodes}, {gateways, common(Nodes, Gateways)}]}
             || {Group, Nodes} <- Groups
            ]},
            {free, Free},
            {silent, Silent},
            {without, Without}
        ]}
    );
list(#{groups := Groups, free := Free, silent := Silent, without := Without}, _Name, #{json := false}) ->
    Gateways = atoll_topology:gateways(atoll_topology:of_groups(Groups)),
    Columns = [{left, "group"}, {right, "nodes"}, {right, "gateways"}, {left, "who"}],
    Rows = [
        [atom_to_list(Group), count(Nodes), count(common(Nodes, Gateways)), listed(Nodes)]
     || {Group, Nodes} <- Groups
    ],
    Others = [[Word, count(Nodes), "", listed(Nodes)] || {Word, [_ | _] = Nodes} <- [{"(free)", Free}, {"(silent)", Silent}, {"(without atoll)", Without}]],
    atoll_cli_io:print(atoll_cli_table:format(Columns, Rows ++ Others)).

common(Nodes, Others) -> [Node || Node <- Nodes, lists:member(Node, Others)].

count(Nodes) -> atoll_cli_table:count(length(Nodes)).

listed(Nodes) -> lists:join($\s, [atom_to_list(Node) || Node <- Nodes]).
