%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Complete-linkage clustering of nodes by what was measured between them, and what
%% comes of it: a dendrogram, and a network ({@link atoll_network}) cut from it. Pure, and the
%% same measurements give the same dendrogram, in whatever order they come.
%%
%% At first each node is a cluster. The two clusters that are nearest are joined, again and again,
%% until there is one; how far two clusters are from each other is the largest distance between a node of
%% one and a node of the other. So a join's height says how far the nodes below it are from
%% each other at most. Where several are as near, names decide.
%%
%% It is done along chains of nearest neighbours (Benzecri, Juan 1982), which for this linkage gives
%% the same joins, and takes a time that grows with the square of the number of nodes.
-module(atoll_dendrogram).

-compile({no_auto_import, [nodes/1]}).

-export([new/2, nodes/1, height/1, joins/1, network/2, drawing/2, format_error/1]).

-export_type([dendrogram/0, measured/0, error/0, cut/0]).

-type measured() :: #{{node(), node()} => number()}.
%% One way or both; of both the mean counts.

-type dendrogram() ::
    {leaf, node()}
    %% What holds the smaller name stands first.
    | {join, Height :: float(), dendrogram(), dendrogram()}.

-type cut() ::
    %% A subnet for each cluster whose nodes are not farther from each other than one of these.
    [number()]
    %% A subnet is a cluster whose height is that of its network divided by so much or
    %% less. With 2, what is half as far stands one level deeper.
    | {ratio, number()}.

-type error() :: no_nodes | {missing, node(), node()} | {negative, node(), node(), number()}.

%% @doc The dendrogram of these nodes. All pairs must have been measured.
-spec new([node()], measured()) -> {ok, dendrogram()} | {error, error()}.
new(Nodes, Measured) ->
    case lists:usort(Nodes) of
        [] -> {error, no_nodes};
        Sorted -> matrix(Sorted, Measured)
    end.

matrix(Nodes, Measured) ->
    Pairs = [{A, B, mean(A, B, Measured)} || [A | Rest] <- tails(Nodes), B <- Rest],
    case [Error || {A, B, D} <- Pairs, Error <- wrong(A, B, D)] of
        [Error | _] ->
            {error, Error};
        [] ->
            %% A cluster is called by its first node, in the order of their names.
            Distances = lists:foldl(fun add/2, maps:from_keys(Nodes, #{}), Pairs),
            Clusters = maps:from_list([{Node, {leaf, Node}} || Node <- Nodes]),
            {ok, join([], Clusters, Distances)}
    end.

tails([]) -> [];
tails([_ | Tail] = List) -> [List | tails(Tail)].

mean(A, B, Measured) ->
    case Measured of
        #{{A, B} := There, {B, A} := Back} -> (There + Back) / 2;
        #{{A, B} := There} -> float(There);
        #{{B, A} := Back} -> float(Back);
        #{} -> missing
    end.

wrong(A, B, missing) -> [{missing, A, B}];
wrong(A, B, D) -> [{negative, A, B, D} || D < 0].

add({A, B, D}, Distances) ->
    #{A := OfA, B := OfB} = Distances,
    Distances#{A := OfA#{B => D}, B := OfB#{A => D}}.

%% The chain: each is the nearest neighbour of the one behind it.
join([], Clusters, Distances) ->
    case lists:sort(maps:keys(Clusters)) of
        [Last] -> map_get(Last, Clusters);
        [First | _] -> join([First], Clusters, Distances)
    end;
join([Top | Chain], Clusters, Distances) ->
    {Distance, Nearest} = nearest(Top, Chain, Distances),
    case Chain of
        %% They are each other's nearest.
        [Nearest | Rest] -> join(Rest, merged(Distance, Top, Nearest, Clusters), merged(Top, Nearest, Distances));
        _ -> join([Nearest, Top | Chain], Clusters, Distances)
    end.

%% Of several that are as near the one before it in the chain: else the chain would not end.
nearest(Top, Chain, Distances) ->
    #{Top := Others} = Distances,
    Before = lists:sublist(Chain, 1),
    {Distance, _, Nearest} = lists:min([{D, not lists:member(Node, Before), Node} || {Node, D} <- maps:to_list(Others)]),
    {Distance, Nearest}.

merged(Distance, A, B, Clusters) ->
    [First, Second] = lists:sort([A, B]),
    #{First := Of, Second := And} = Clusters,
    (maps:remove(Second, Clusters))#{First := {join, Distance, Of, And}}.

merged(A, B, Distances) ->
    [First, Second] = lists:sort([A, B]),
    #{First := OfFirst, Second := OfSecond} = Distances,
    Joined = maps:map(fun(Node, D) -> max(D, map_get(Node, OfSecond)) end, maps:remove(Second, OfFirst)),
    maps:fold(
        fun(Node, D, Acc) ->
            #{Node := Others} = Acc,
            Acc#{Node := (maps:remove(Second, Others))#{First := D}}
        end,
        (maps:remove(Second, Distances))#{First := Joined},
        Joined
    ).

%% @doc Its nodes, as they stand.
-spec nodes(dendrogram()) -> [node()].
nodes({leaf, Node}) -> [Node];
nodes({join, _, A, B}) -> nodes(A) ++ nodes(B).

%% @doc How far its nodes are from each other at most.
-spec height(dendrogram()) -> float().
height({leaf, _}) -> 0.0;
height({join, Height, _, _}) -> Height.

%% @doc The joins, the lowest first: what was joined with what, and how far they are from each other.
-spec joins(dendrogram()) -> [{Height :: float(), [node()], [node()]}].
joins(Dendrogram) -> lists:sort(joins(Dendrogram, [])).

joins({leaf, _}, Joins) -> Joins;
joins({join, Height, A, B}, Joins) -> joins(A, joins(B, [{Height, nodes(A), nodes(B)} | Joins])).

%% @doc The network that it is cut into. A cluster of one node is no subnet, but the node.
-spec network(cut(), dendrogram()) -> atoll_network:network().
network(Cut, Dendrogram) ->
    {ok, Network} = atoll_network:new(tree(Cut, Dendrogram)),
    Network.

tree(_Cut, {leaf, Node}) -> {network, [{node, Node}]};
tree(Cut, Dendrogram) -> sub(Cut, Dendrogram).

sub(_Cut, {leaf, Node}) -> {node, Node};
sub(Cut, {join, Height, A, B}) ->
    Parts = lists:sort([{hd(nodes(Part)), Part} || Part <- parts(Height, Cut, [A, B])]),
    {network, [sub(Cut, Part) || {_, Part} <- Parts]}.

%% What stands directly in a network of this height.
parts(_Top, _Cut, []) ->
    [];
parts(Top, Cut, [{join, Height, A, B} = Part | Parts]) ->
    case is_apart(Top, Height, Cut) of
        true -> [Part | parts(Top, Cut, Parts)];
        false -> parts(Top, Cut, [A, B | Parts])
    end;
parts(Top, Cut, [Leaf | Parts]) ->
    [Leaf | parts(Top, Cut, Parts)].

is_apart(Top, Height, {ratio, Ratio}) -> Height < Top andalso Height * Ratio =< Top;
is_apart(Top, Height, Heights) -> lists:any(fun(Cut) -> Height =< Cut andalso Cut < Top end, Heights).

%% @doc As {@link atoll_tree_drawing} takes it, its heights written so.
-spec drawing(fun((Height :: float()) -> unicode:chardata()), dendrogram()) -> atoll_tree_drawing:drawing().
drawing(_Write, {leaf, Node}) ->
    {leaf, atom_to_list(Node)};
drawing(Write, {join, Height, A, B}) ->
    {inner, Write(Height), Height, [drawing(Write, A), drawing(Write, B)]}.

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error(no_nodes) ->
    "there are no nodes to cluster";
format_error({missing, A, B}) ->
    io_lib:format("nothing was measured between ~ts and ~ts", [A, B]);
format_error({negative, A, B, D}) ->
    io_lib:format("between ~ts and ~ts ~tp was measured, which is below 0", [A, B, D]).
