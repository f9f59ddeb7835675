%% SPDX-License-Identifier: Apache-2.0
%% @doc The tables of SD-Mon, of what was counted, by the groups as they were when it was sent: who has sent how much to whom (`node'), how much of
%% what a node has sent has left its groups (`sent'), what comes and goes at each node (`flow') and at those in several groups
%% (`bridge'), from group to group (`group'), by kind and by whom. Pure.
%%
%% Between groups is what nodes send that share no group. So in `sent' that is never more than all, and what nodes send in all
%% is what they get in all.
-module(atoll_flow_table).

-export([names/0, of_sums/2, columns/1, rows/2, between/1]).

-export_type([name/0, tables/0, measure/0]).

-type name() :: node | sent | flow | bridge | group | kind | by.

%% Messages that were counted one by one, or what connections have carried.
-type measure() :: messages | wire.

-type tables() :: #{
    node := [{From :: node(), To :: node(), Count :: number(), Bytes :: number()}],
    sent := [{node(), All :: number(), Between :: number()}],
    flow | bridge := [{node(), In :: number(), Out :: number()}],
    %% Groups of one node as texts, with `+' between; `-' is none.
    group := [{From :: binary(), To :: binary(), Count :: number(), Bytes :: number()}],
    kind | by := [{atom(), Count :: number(), Bytes :: number()}]
}.

%% @doc The tables that there are.
-spec names() -> [name()].
names() -> [node, sent, flow, bridge, group, kind, by].

%% @doc The tables of what was counted.
-spec of_sums(measure(), atoll_flow_sums:sums()) -> tables().
of_sums(Measure, Sums) ->
    Counted = [{Key, Sum} || {{_, _, _, Kind, _} = Key, Sum} <- maps:to_list(atoll_flow_sums:totals(Sums)), (Kind =:= wire) =:= (Measure =:= wire)],
    Pairs = summed(fun({From, To, _, _, _}) -> {From, To} end, Counted),
    Nodes = lists:usort(lists:append([[From, To] || {{From, To}, _} <- Pairs])),
    In = counts(fun({_, To, _, _, _}) -> To end, Counted),
    Out = counts(fun({From, _, _, _, _}) -> From end, Counted),
    Between = counts(fun({From, _, _, _, _}) -> From end, [One || {{_, _, Way, _, _}, _} = One <- Counted, is_between(Way)]),
    Bridges = lists:usort(lists:append([[Node || {Node, [_, _ | _]} <- [{From, Own}, {To, Its}]] || {{From, To, {Own, _, Its}, _, _}, _} <- Counted])),
    Flow = [{Node, maps:get(Node, In, 0), maps:get(Node, Out, 0)} || Node <- Nodes],
    #{
        node => [{From, To, Count, Bytes} || {{From, To}, {Count, Bytes}} <- Pairs],
        sent => [{Node, maps:get(Node, Out, 0), maps:get(Node, Between, 0)} || Node <- Nodes],
        flow => Flow,
        bridge => [Is || {Node, _, _} = Is <- Flow, lists:member(Node, Bridges)],
        group => [{From, To, Count, Bytes} || {{From, To}, {Count, Bytes}} <- summed(fun({_, _, Way, _, _}) -> ends(Way) end, Counted)],
        kind => [{Kind, Count, Bytes} || {Kind, {Count, Bytes}} <- summed(fun({_, _, _, Kind, _}) -> Kind end, Counted)],
        by => [{By, Count, Bytes} || {By, {Count, Bytes}} <- summed(fun({_, _, _, _, By}) -> By end, Counted)]
    }.

summed(Of, Counted) ->
    lists:sort(maps:to_list(lists:foldl(fun({Key, {Count, Bytes}}, Acc) ->
        maps:update_with(Of(Key), fun({C, B}) -> {C + Count, B + Bytes} end, {Count, Bytes}, Acc)
    end, #{}, Counted))).

counts(Of, Counted) -> maps:from_list([{Key, Count} || {Key, {Count, _}} <- summed(Of, Counted)]).

%% Nodes that are in no group are no group.
is_between({[], none, []}) -> false;
is_between({_, Shared, _}) -> Shared =:= none.

ends({_, {ok, Group}, _}) -> {text([Group]), text([Group])};
ends({From, none, To}) -> {text(From), text(To)}.

text([]) -> <<"-">>;
text(Groups) -> unicode:characters_to_binary(lists:join($+, [case is_atom(Group) of true -> atom_to_list(Group); false -> io_lib:format("~0tp", [Group]) end || Group <- Groups])).

%% @doc All that was sent, and what of it between groups.
-spec between(tables()) -> {All :: number(), Between :: number()}.
between(#{sent := Sent}) -> {lists:sum([All || {_, All, _} <- Sent]), lists:sum([Between || {_, _, Between} <- Sent])}.

%% @doc What the columns of a table are called.
-spec columns(name()) -> [atom(), ...].
columns(node) -> [from, to, count, bytes];
columns(sent) -> [node, sent, between_groups, share];
columns(Flow) when Flow =:= flow; Flow =:= bridge -> [node, in, out];
columns(group) -> [from, to, count, bytes];
columns(kind) -> [kind, count, bytes];
columns(by) -> [by, count, bytes].

%% @doc The rows of a table. Numbers that were found by sampling are rounded.
-spec rows(name(), tables()) -> [[atom() | binary() | number()]].
rows(sent, #{sent := Rows}) -> [[Node, whole(All), whole(Between), case All > 0 of true -> Between / All; false -> 0.0 end] || {Node, All, Between} <- Rows];
rows(Name, Tables) -> [[whole(Cell) || Cell <- tuple_to_list(Row)] || Row <- maps:get(Name, Tables)].

whole(Number) when is_float(Number) -> round(Number);
whole(Cell) -> Cell.
