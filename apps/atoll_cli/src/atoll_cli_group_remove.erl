%% @doc `atoll group remove': removes nodes from a group.
-module(atoll_cli_group_remove).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "remove nodes from a group of a running cluster".

-spec options() -> [atoll_cli_options:option()].
options() -> atoll_cli_group:options() ++ atoll_cli_group:at() ++ atoll_cli_group:closing().

-spec operands() -> [string()].
operands() -> ["GROUP", "NODE", "[NODE...]"].

-spec examples() -> [string()].
examples() -> ["atoll group remove fish reef4 --name reef"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, [Typed | Nodes]) ->
    case atoll_cli_group:group_name(Typed) of
        {ok, Group} -> atoll_cli_group:on(Values, fun(Held) -> remove(Group, Nodes, Held, Values) end);
        {error, Sentence} -> {usage, Sentence}
    end.

remove(Group, Typed, Held, Values) ->
    case atoll_cli_group:named(Typed, Held) of
        {error, Sentence} ->
            {usage, Sentence};
        {ok, Nodes} ->
            %% No node can remove itself.
            case atoll_cli_group:member(Group, Nodes, Held, Values) of
                {error, Sentence} ->
                    {failed, Sentence};
                {ok, Node, Members} ->
                    Facts = fun(ok) ->
                        {[{nodes, Members -- Nodes}, {removed, [N || N <- Nodes, lists:member(N, Members)]}], none}
                    end,
                    atoll_cli_group:show({Node, remove_nodes, [Group, Nodes]}, Group, Facts, Values)
            end
    end.
