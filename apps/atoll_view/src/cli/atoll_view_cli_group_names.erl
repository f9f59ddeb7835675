%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll group names': the names in the groups of a running cluster, as its nodes know
%% them, and where they differ.
-module(atoll_view_cli_group_names).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

%% A difference that is gone after so long was a name that came or went.
-define(AGAIN_MS, 1000).

-spec summary() -> string().
summary() -> "list the names of a running cluster, and check that its nodes agree".

-spec options() -> [atoll_cli_options:option()].
options() ->
    [#{name => at, value => "NODE", help => "only groups that this node is in"}] ++
        atoll_view_cli_group:options(looks).

-spec operands() -> [string()].
operands() -> ["[GROUP]"].

-spec examples() -> [string()].
examples() ->
    [
        "atoll group names -c reef",
        "atoll group names fish -c reef --json",
        "atoll group names undefined -c reef --at reef1"
    ].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, []) ->
    atoll_view_cli_where:on(looks, atoll, Values, fun(View) -> at(all, View, named(View, Values)) end);
run(Values, [Typed]) ->
    case atoll_view_cli_group:group_name(Typed) of
        {ok, Group} -> atoll_view_cli_where:on(looks, atoll, Values, fun(View) -> at({group, Group}, View, named(View, Values)) end);
        {error, Sentence} -> {usage, Sentence}
    end.

named(View, Values) -> Values#{cluster => atoll_view:name(View)}.

at(Which, View, #{at := Typed} = Values) ->
    case atoll_view_cli_where:named([Typed], View) of
        {ok, [At]} -> names(Which, fun(Nodes) -> lists:member(At, Nodes) end, View, Values);
        {error, Sentence} -> {usage, Sentence}
    end;
at(Which, View, Values) ->
    names(Which, fun(_Nodes) -> true end, View, Values).

names(Which, IsMeant, View, Values) ->
    case look(Which, IsMeant, View) of
        {[], Silent} -> {unable, nothing(Which, Values, View, Silent)};
        {First, Silent} -> print(settled(First, Silent, Which, IsMeant, View), Which, Values)
    end.

look(Which, IsMeant, View) ->
    {Told, Silent} = atoll_view:names(Which, View),
    {[Group || #{nodes := Nodes} = Group <- atoll_view_names:compare(Told), IsMeant(Nodes)], Silent}.

settled(First, Silent, Which, IsMeant, View) ->
    case atoll_view_names:wrong(First) of
        none ->
            {First, Silent};
        _ ->
            receive
            after ?AGAIN_MS -> ok
            end,
            {Second, SilentNow} = look(Which, IsMeant, View),
            {atoll_view_names:lasting(First, Second), SilentNow}
    end.

nothing(Which, Values, View, Silent) ->
    case length(Silent) =:= length(atoll_view:nodes(View)) of
        true -> "no node of the cluster answers";
        false -> nothing(Which, Values)
    end.

nothing(all, _Values) ->
    "that node does not answer, and no other is in a group with it";
%% A group of that name may be elsewhere.
nothing({group, Group}, #{at := Node}) ->
    ["no node that answers is in a group ", atom_to_list(Group), " with ", Node];
nothing({group, Group}, #{}) ->
    ["no node that answers is in a group ", atom_to_list(Group)].

print({Groups, Silent}, Which, Values) ->
    Missed =
        case {Which, Values} of
            {all, #{at := _}} -> silent_members(Groups);
            {all, #{}} -> Silent;
            {_, #{}} -> silent_members(Groups)
        end,
    ok = print_all(Groups, Missed, Values),
    case atoll_view_names:wrong(Groups) of
        none -> atoll_view_cli_where:judged(Missed);
        Sentence -> {failed, Sentence}
    end.

silent_members(Groups) -> lists:usort([Node || #{silent := Silent} <- Groups, Node <- Silent]).

print_all(Groups, Silent, #{json := true, cluster := Name}) ->
    atoll_cli_io:print_json(
        {[{cluster, unicode:characters_to_binary(Name)}, {groups, [object(Group) || Group <- Groups]}, {silent, Silent}]}
    );
print_all(Groups, Silent, #{json := false}) ->
    Differs = [{left, "differs"} || #{names := Names} <- Groups, #{differ := [_ | _]} <- Names],
    Columns = [{left, "group"}, {left, "name"}, {left, "node"}, {left, "process"}, {left, "metadata"}] ++ lists:usort(Differs),
    Rows =
        [row(Group, Name) || #{group := Group, names := Names} <- Groups, Name <- Names] ++
            [["(apart)", "", atom_to_list(Node), "", "", ""] || #{apart := Apart} <- Groups, Node <- Apart] ++
            [["(silent)", "", atom_to_list(Node), "", "", ""] || Node <- Silent],
    atoll_cli_io:print(atoll_cli_table:format(Columns, [lists:sublist(Row, length(Columns)) || Row <- Rows])).

row(Group, #{name := Name, pid := Pid, meta := Meta, differ := Differ}) ->
    [title(Group), text(Name), atom_to_list(node(Pid)), process(Pid), metadata(Meta), lists:join("; ", [said(D) || D <- Differ])].

title(undefined) -> "(free nodes)";
title(Group) -> atom_to_list(Group).

said({Node, none}) -> [atom_to_list(Node), " has none"];
said({Node, {Pid, Meta}}) -> [atom_to_list(Node), " has ", process(Pid), " on ", atom_to_list(node(Pid)), [[" with ", text(Meta)] || Meta =/= undefined]].

metadata(undefined) -> "";
metadata(Meta) -> text(Meta).

object(#{group := Group, nodes := Nodes, silent := Silent, apart := Apart, names := Names}) ->
    {[
        {group, Group},
        {nodes, Nodes},
        {silent, Silent},
        {apart, Apart},
        {names, [
            {[{name, json(Name)} | has({Pid, Meta})] ++ [{differ, [{[{member, Node} | has(Has)]} || {Node, Has} <- Differ]}]}
         || #{name := Name, pid := Pid, meta := Meta, differ := Differ} <- Names
        ]}
    ]}.

has(none) -> [{node, null}, {process, null}, {metadata, null}];
has({Pid, undefined}) -> [{node, node(Pid)}, {process, json_process(Pid)}, {metadata, null}];
has({Pid, Meta}) -> [{node, node(Pid)}, {process, json_process(Pid)}, {metadata, json(Meta)}].

json(Term) -> unicode:characters_to_binary(text(Term)).

json_process(Pid) -> list_to_binary(process(Pid)).

text(Term) -> io_lib:format("~0tp", [Term]).

%% As it is called on its own node.
process(Pid) ->
    [_, Rest] = string:split(pid_to_list(Pid), "."),
    "<0." ++ Rest.
