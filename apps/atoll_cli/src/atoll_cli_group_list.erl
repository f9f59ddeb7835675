%% @doc `atoll group list': the groups of a running cluster.
-module(atoll_cli_group_list).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "list the groups of a running cluster".

-spec options() -> [atoll_cli_options:option()].
options() -> atoll_cli_group:options() ++ atoll_cli_group:closing().

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() -> ["atoll group list", "atoll group list --name reef --json"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, []) ->
    atoll_cli_group:on(Values, fun(Held) -> list(atoll_cli_group:here(Held), Values) end).

list(#{groups := Groups, free := Free, silent := Silent}, #{json := true, name := Name}) ->
    Gateways = atoll_topology:gateways(atoll_topology:of_groups(Groups)),
    atoll_cli_io:print_json(
        {[
            {cluster, unicode:characters_to_binary(Name)},
            {groups, [
                {[{group, Group}, {nodes, Nodes}, {gateways, common(Nodes, Gateways)}]}
             || {Group, Nodes} <- Groups
            ]},
            {free, Free},
            {silent, Silent}
        ]}
    );
list(#{groups := Groups, free := Free, silent := Silent}, #{json := false}) ->
    Gateways = atoll_topology:gateways(atoll_topology:of_groups(Groups)),
    Columns = [{left, "group"}, {right, "nodes"}, {right, "gateways"}, {left, "who"}],
    Rows = [
        [atom_to_list(Group), count(Nodes), count(common(Nodes, Gateways)), listed(Nodes)]
     || {Group, Nodes} <- Groups
    ],
    Others = [[Word, count(Nodes), "", listed(Nodes)] || {Word, [_ | _] = Nodes} <- [{"(free)", Free}, {"(silent)", Silent}]],
    atoll_cli_io:print(atoll_cli_table:format(Columns, Rows ++ Others)).

common(Nodes, Others) -> [Node || Node <- Nodes, lists:member(Node, Others)].

count(Nodes) -> atoll_cli_table:count(length(Nodes)).

listed(Nodes) -> lists:join($\s, [atom_to_list(Node) || Node <- Nodes]).
