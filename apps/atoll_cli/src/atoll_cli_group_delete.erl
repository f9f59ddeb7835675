%% @doc `atoll group delete': deletes a group.
-module(atoll_cli_group_delete).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "delete a group of a running cluster".

-spec options() -> [atoll_cli_options:option()].
options() -> atoll_cli_group:options() ++ atoll_cli_group:at() ++ atoll_cli_group:closing().

-spec operands() -> [string()].
operands() -> ["GROUP"].

-spec examples() -> [string()].
examples() -> ["atoll group delete fish --name reef"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, [Typed]) ->
    case atoll_cli_group:group_name(Typed) of
        {ok, Group} -> atoll_cli_group:on(Values, fun(Held) -> delete(Group, Held, Values) end);
        {error, Sentence} -> {usage, Sentence}
    end.

delete(Group, Held, Values) ->
    case atoll_cli_group:member(Group, [], Held, Values) of
        {ok, Node, Members} ->
            Facts = fun(ok) -> {[{deleted_from, Members}], none} end,
            atoll_cli_group:show({Node, delete_s_group, [Group]}, Group, Facts, Values);
        {error, Sentence} ->
            {failed, Sentence}
    end.
