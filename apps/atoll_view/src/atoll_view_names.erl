%% SPDX-License-Identifier: Apache-2.0
%% @doc What the members of groups say of their names, side by side. Data only.
%%
%% Every live member should have the same names. A name that comes or goes is seen by
%% one member before it is by another, so a difference means something if it is there
%% still at a second look.
-module(atoll_view_names).

-export([compare/1, lasting/2, wrong/1]).

-export_type([told/0, group/0, name/0, has/0]).

-type told() :: [{s_group:name(), [node()], [{Name :: term(), pid(), Meta :: term()}]}].
%% The groups of one node, with their nodes and names as it knows them.

-type has() :: none | {pid(), Meta :: term()}.

-type group() :: #{
    group := s_group:name(),
    nodes := [node()],
    %% Members that say nothing.
    silent := [node()],
    %% Members that are not in it, or know other members of it.
    apart := [node()],
    names := [name()]
}.

-type name() :: #{
    name := term(),
    %% The process that most of the members have; of two, the one that its own node has.
    pid := pid(),
    meta := term(),
    %% The members that have something else.
    differ := [{node(), has()}]
}.

%% @doc The groups, sorted; of those whose members do not agree on who they are, each view.
-spec compare([{node(), told()}]) -> [group()].
compare(Told) ->
    Groups = lists:usort([{Group, Nodes} || {_, Groups} <- Told, {Group, Nodes, _} <- Groups]),
    [group(Group, Nodes, Told) || {Group, Nodes} <- Groups].

group(Group, Nodes, Told) ->
    Tables = [
        {Node, maps:from_list([{Name, {Pid, Meta}} || {Name, Pid, Meta} <- Names])}
     || {Node, Groups} <- Told, {G, Ns, Names} <- Groups, G =:= Group, Ns =:= Nodes
    ],
    Answered = [Node || {Node, _} <- Told],
    #{
        group => Group,
        nodes => Nodes,
        silent => Nodes -- Answered,
        apart => [Node || Node <- Nodes, lists:member(Node, Answered), not lists:keymember(Node, 1, Tables)],
        names => [name(Name, Tables) || Name <- lists:usort(lists:append([maps:keys(T) || {_, T} <- Tables]))]
    }.

name(Name, Tables) ->
    Has = [{Node, maps:get(Name, Table, none)} || {Node, Table} <- Tables],
    {Pid, Meta} = Most = most(Has),
    #{name => Name, pid => Pid, meta => Meta, differ => [Other || {_, What} = Other <- Has, What =/= Most]}.

most(Has) ->
    Known = [What || {_, What} <- Has, What =/= none],
    Ranked = [
        {length([W || W <- Known, W =:= What]), lists:member({node(Pid), What}, Has), What}
     || {Pid, _} = What <- lists:usort(Known)
    ],
    {_, _, Most} = lists:max(Ranked),
    Most.

%% @doc The second of two looks, with those differences alone that the first has too.
-spec lasting([group()], [group()]) -> [group()].
lasting(First, Second) ->
    Before = maps:from_list([{{Group, Nodes}, G} || #{group := Group, nodes := Nodes} = G <- First]),
    [
        case Before of
            #{{Group, Nodes} := Old} -> in_both(Old, New);
            #{} -> New#{apart := [], names := [Name#{differ := []} || Name <- maps:get(names, New)]}
        end
     || #{group := Group, nodes := Nodes} = New <- Second
    ].

in_both(#{apart := Apart, names := Old}, #{names := New} = Group) ->
    Before = maps:from_list([{Name, Differ} || #{name := Name, differ := Differ} <- Old]),
    Group#{
        apart := [Node || Node <- maps:get(apart, Group), lists:member(Node, Apart)],
        names := [
            Name#{differ := [Other || Other <- Differ, lists:member(Other, maps:get(Key, Before, []))]}
         || #{name := Key, differ := Differ} = Name <- New
        ]
    }.

%% @doc What is wrong in a sentence, if anything is.
-spec wrong([group()]) -> none | unicode:chardata().
wrong(Groups) ->
    Names = length([Name || #{names := Names} <- Groups, #{differ := [_ | _]} = Name <- Names]),
    Apart = lists:usort([Node || #{apart := Nodes} <- Groups, Node <- Nodes]),
    case {Names, Apart} of
        {0, []} -> none;
        {0, _} -> ["these do not agree with the others on who is in their group: ", listed(Apart)];
        {1, _} -> "one name is not the same on all members";
        {_, _} -> [integer_to_list(Names), " names are not the same on all members"]
    end.

listed(Nodes) -> lists:join(", ", [atom_to_list(Node) || Node <- Nodes]).
