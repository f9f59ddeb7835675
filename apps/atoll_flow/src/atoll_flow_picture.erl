%% SPDX-License-Identifier: Apache-2.0
%% @doc Which groups a cluster has, and which nodes are in none, from what each node says of its own groups. Pure.
%%
%% A node that says something is in a group if it says so itself, whatever others say. One that says nothing, as it has not
%% been asked yet, has no groups of any kind or is lost, is in those that others say it is in. What a lost node has said last counts for groups
%% of which all nodes are lost.
-module(atoll_flow_picture).

-export([of_looks/3]).

-type said() :: #{node() => [{Group :: term(), [node()]}] | none}.

%% @doc Of all nodes that are known, some of them lost.
-spec of_looks(Known :: [node()], Lost :: [node()], said()) -> {Groups :: [{term(), [node()]}], Free :: [node()]}.
of_looks(Known, Lost, Said0) ->
    Said = maps:from_list([{Node, heard(Node, Groups, Lost)} || {Node, [_ | _] = Groups} <- maps:to_list(Said0)] ++ [{Node, []} || {Node, []} <- maps:to_list(Said0), not lists:member(Node, Lost)]),
    Told = [{Group, Node} || Groups <- maps:values(Said), {Group, Nodes} <- Groups, Node <- Nodes, lists:member(Node, Lost) orelse says(Group, Node, Said)],
    Own = [{Group, Node} || {Node, Groups} <- maps:to_list(Said), {Group, _} <- Groups],
    ByGroup = maps:groups_from_list(fun({Group, _}) -> Group end, fun({_, Node}) -> Node end, lists:usort(Told ++ Own)),
    Grouped = maps:from_keys(lists:append(maps:values(ByGroup)), []),
    {lists:sort(maps:to_list(ByGroup)), [Node || Node <- lists:usort(Known), not is_map_key(Node, Grouped)]}.

heard(Node, Groups, Lost) ->
    case lists:member(Node, Lost) of
        true -> [Group || {_, Nodes} = Group <- Groups, Nodes -- Lost =:= []];
        false -> Groups
    end.

says(Group, Node, Said) ->
    case Said of
        #{Node := Groups} -> lists:keymember(Group, 1, Groups);
        #{} -> true
    end.
