%% SPDX-License-Identifier: Apache-2.0
%% @doc What the commands of `atoll group' have in common: which group is meant, from which of its
%% nodes something is done with it, and what is shown of that.
-module(atoll_view_cli_group).

-export([options/1, at/0, group_name/1, nodes/2, member/4, show/4]).

%% An operation on a group bounds itself, and sooner.
-define(OPERATION_MS, 60000).

%% @doc The options that say in which cluster, and how it is told.
-spec options(looks | changes) -> [atoll_cli_options:option()].
options(Kind) ->
    atoll_view_cli_where:options(Kind) ++ [atoll_cli_json:switch()].

%% @doc The option that says which group is meant, where several have the name.
-spec at() -> [atoll_cli_options:option()].
at() ->
    [#{name => at, value => "NODE", help => "the group that this node is in, should several have the name"}].

%% @doc A group's name as it is typed.
-spec group_name(string()) -> {ok, s_group:name()} | {error, unicode:chardata()}.
group_name(Text) when Text =:= []; length(Text) > 255 ->
    {error, "GROUP must have one letter at least and 255 at most"};
group_name(Text) ->
    {ok, list_to_atom(Text)}.

%% @doc The nodes that were typed, for a group to be made of them: on one that is known not to run
%% the application atoll none can be.
-spec nodes([string()], atoll_view:view()) -> {ok, [node()]} | {usage | unable, unicode:chardata()}.
nodes(Typed, View) ->
    case atoll_view_cli_where:named(Typed, View) of
        {ok, Nodes} ->
            case [Node || Node <- Nodes, lists:member(Node, atoll_view:without(View))] of
                [] -> {ok, Nodes};
                Without -> {unable, ["atoll does not run on ", lists:join(", ", [atom_to_list(Node) || Node <- Without])]}
            end;
        {error, Sentence} ->
            {usage, Sentence}
    end.

%% @doc A node in the group of that name that is none of these, to do something with
%% the group from, and all its members.
-spec member(s_group:name(), Except :: [node()], atoll_view:view(), atoll_cli_options:values()) ->
    {ok, node(), [node()]} | {error, unicode:chardata()}.
member(Group, Except, View, #{at := Typed}) ->
    case atoll_view_cli_where:named([Typed], View) of
        {ok, [At]} -> meant(Group, Except, View, fun(Nodes) -> lists:member(At, Nodes) end);
        {error, _} = Error -> Error
    end;
member(Group, Except, View, #{}) ->
    meant(Group, Except, View, fun(_Nodes) -> true end).

meant(Group, Except, View, IsMeant) ->
    #{groups := Groups} = atoll_view:groups(View),
    case [Nodes || {Name, Nodes} <- Groups, Name =:= Group, IsMeant(Nodes)] of
        [] ->
            {error, ["no node that answers is in a group ", atom_to_list(Group)]};
        [Nodes] ->
            case [Node || Node <- Nodes -- Except, lists:member(Node, atoll_view:running(View))] of
                [Node | _] -> {ok, Node, Nodes};
                [] -> {error, ["every node of ", atom_to_list(Group), " that answers is to be removed; delete the group"]}
            end;
        [_, _ | _] ->
            {error, ["several groups are called ", atom_to_list(Group), "; --at NODE says which is meant"]}
    end.

%% @doc Does something with a group from one of its nodes, and shows what came of it
%% as facts: what the function makes of the answer, and what is wrong with that.
-spec show(
    {node(), Function :: atom(), Args :: [term()]},
    s_group:name(),
    fun((Answer :: term()) -> {[{Key :: atom(), [node()]}], none | unicode:chardata()}),
    atoll_cli_options:values()
) -> atoll_cli_command:outcome().
show({Node, Function, Args}, Group, Facts, #{json := Json}) ->
    case atoll_view:ask(Node, s_group, Function, Args, ?OPERATION_MS) of
        {ok, {error, Reason}} ->
            {unable, [atom_to_list(Node), ": ", s_group:format_error(Reason)]};
        {ok, Answer} ->
            {Known, Wrong} = Facts(Answer),
            ok = print(Json, Group, Known),
            case Wrong of
                none -> ok;
                Sentence -> {failed, Sentence}
            end;
        {error, Sentence} ->
            {unable, Sentence}
    end.

print(true, Group, Facts) ->
    atoll_cli_io:print_json({[{group, Group} | Facts]});
print(false, Group, Facts) ->
    Rows = [["group", atom_to_list(Group)] | [[words(Key), listed(Nodes)] || {Key, Nodes} <- Facts, Nodes =/= []]],
    atoll_cli_io:print(atoll_cli_table:lines([left, left], Rows)).

words(Key) -> string:replace(atom_to_list(Key), "_", " ").

listed(Nodes) -> lists:join($\s, [atom_to_list(Node) || Node <- Nodes]).
