%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll group delete': deletes a group.
-module(atoll_view_cli_group_delete).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "delete a group of a running cluster".

-spec options() -> [atoll_cli_options:option()].
options() -> atoll_view_cli_group:at() ++ atoll_view_cli_group:options(changes).

-spec operands() -> [string()].
operands() -> ["GROUP"].

-spec examples() -> [string()].
examples() -> ["atoll group delete fish -c reef"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, [Typed]) ->
    case atoll_view_cli_group:group_name(Typed) of
        {ok, Group} -> atoll_view_cli_where:on(changes, atoll, Values, fun(View) -> delete(Group, View, Values) end);
        {error, Sentence} -> {usage, Sentence}
    end.

delete(Group, View, Values) ->
    case atoll_view_cli_group:member(Group, [], View, Values) of
        {ok, Node, Members} ->
            Facts = fun(ok) -> {[{deleted_from, Members}], none} end,
            atoll_view_cli_group:show({Node, delete_s_group, [Group]}, Group, Facts, Values);
        {error, Sentence} ->
            {unable, Sentence}
    end.
