%% SPDX-License-Identifier: Apache-2.0
%% @doc The declared network: a tree whose leaves are nodes and whose inner vertices are
%% the networks that they stand in, a rack in a room in a site, say. Pure data.
%%
%% How far two nodes are from each other is read off the tree: 0 from a node to itself,
%% otherwise 2^-l, where l is the number of edges that the two ways from the root have in
%% common (MacKenzie, Chechina, Trinder, Semi-explicit placement, Erlang'15). Nodes with
%% nothing but the root in common are at 1.0, those in the same subnet of the root at 0.5, and
%% so on. It is a metric, and more than that: of three nodes no one is farther from
%% another than from the third and the third from it, whichever is more (an ultrametric). So balls of
%% one radius are the same or have nothing in common.
%%
%% As a term a network is `{node, Node}', `{network, [Sub]}' or `{network, Name, [Sub]}',
%% where Sub is a network again and Name an atom or a text. Inner vertices without a name
%% are called `<v1>', `<v2>' and so on in the order in which they stand. A node stands in it once. What
%% is wrong with a term is told together with the way to it; `atoll_network_file' knows the line too.
-module(atoll_network).

-compile({no_auto_import, [nodes/1]}).

-export([new/1, term/1, nodes/1, is_node/2, distance/3, max_distance/1, min_distance/1]).
-export([ball/3, sphere/3, nearest/4, choose/4]).
-export([fold/3, holds/2, is_predicate/1, format_error/1, format_why/1]).

-export_type([network/0, tree/0, name/0, error/0, error/1, why/0, distance/0, predicate/0, op/0]).

-type tree() :: {node, node()} | {network, [tree()]} | {network, name(), [tree()]}.

-type name() :: atom() | string() | binary().

-type distance() :: float().
%% 0.0, or a power of 2 that is not above 1.0.

-type op() :: eq | ne | lt | le | gt | ge.

-type predicate() :: {dist, op(), Radius :: number()}.
%% `eq' is the sphere, `le' the closed and `lt' the open ball around the node from which
%% it is looked; `ne', `gt' and `ge' are what is outside them.

-type error() :: error([pos_integer()]).

-type error(Where) :: {Where, {twice, node(), First :: Where} | why()}.
%% Where is the way from the root, in positions of subnets, or what else tells the place.

-type why() :: not_a_network | {not_a_node, term()} | {not_a_name, term()} | {not_subnets, term()} | too_deep.

-record(network, {
    %% All inner vertices have a name.
    tree :: tree(),
    %% The way to each node: the numbers of the inner vertices from the root on.
    ways :: #{node() => tuple()},
    max :: distance(),
    min :: distance()
}).

-opaque network() :: #network{}.

%% Beyond it a distance would be no float any more, or 0 between two nodes.
-define(MAX_DEPTH, 1000).

%% @doc The network of a term; of a network itself.
-spec new(term()) -> {ok, network()} | {error, error()}.
new(#network{} = Network) ->
    {ok, Network};
new(Term) ->
    try named(Term, [], 0, #{}, 1) of
        {Tree, _, _} ->
            {Ways, _} = ways(Tree, [], #{}, 1),
            {Max, Min} = extremes(Tree),
            {ok, #network{tree = Tree, ways = Ways, max = Max, min = Min}}
    catch
        throw:{wrong, Where, Why} -> {error, {lists:reverse(Where), Why}}
    end.

%% Seen has each node with the way to it, for complaints.
named(_Term, Where, Depth, _Seen, _Next) when Depth > ?MAX_DEPTH ->
    throw({wrong, Where, too_deep});
named({node, Node}, Where, _Depth, Seen, Next) ->
    case Seen of
        _ when not is_atom(Node) -> throw({wrong, Where, {not_a_node, Node}});
        #{Node := First} -> throw({wrong, Where, {twice, Node, First}});
        #{} -> {{node, Node}, Seen#{Node => lists:reverse(Where)}, Next}
    end;
named({network, Subs}, Where, Depth, Seen, Next) ->
    inner("<v" ++ integer_to_list(Next) ++ ">", Subs, Where, Depth, Seen, Next + 1);
named({network, Name, Subs}, Where, Depth, Seen, Next) ->
    case is_name(Name) of
        true -> inner(Name, Subs, Where, Depth, Seen, Next);
        false -> throw({wrong, Where, {not_a_name, Name}})
    end;
named(_Term, Where, _Depth, _Seen, _Next) ->
    throw({wrong, Where, not_a_network}).

inner(Name, Subs, Where, Depth, Seen, Next) when length(Subs) >= 0 ->
    {Named, Seen1, Next1, _} = lists:foldl(
        fun(Sub, {Trees, S, N, Position}) ->
            {Tree, S1, N1} = named(Sub, [Position | Where], Depth + 1, S, N),
            {[Tree | Trees], S1, N1, Position + 1}
        end,
        {[], Seen, Next, 1},
        Subs
    ),
    {{network, Name, lists:reverse(Named)}, Seen1, Next1};
inner(_Name, Subs, Where, _Depth, _Seen, _Next) ->
    throw({wrong, Where, {not_subnets, Subs}}).

is_name(Name) when is_atom(Name) -> true;
is_name(Name) when is_binary(Name) -> is_name(unicode:characters_to_list(Name));
is_name(Name) -> Name =/= [] andalso io_lib:printable_unicode_list(Name).

%% Inner vertices are numbered as they stand.
ways({node, Node}, Way, Ways, Next) ->
    {Ways#{Node => list_to_tuple(lists:reverse(Way))}, Next};
ways({network, _Name, Subs}, Way, Ways, Next) ->
    lists:foldl(fun(Sub, {W, N}) -> ways(Sub, [Next | Way], W, N) end, {Ways, Next + 1}, Subs).

extremes(Tree) ->
    case extremes(Tree, 0, {none, none}) of
        {_, {none, none}} -> {0.0, 0.0};
        {_, {Most, Least}} -> {at(Most), at(Least)}
    end.

%% How many nodes there are below, and the depths at which two of them part: the least deep
%% one is the largest distance.
extremes({node, _}, _Depth, Found) ->
    {1, Found};
extremes({network, _Name, Subs}, Depth, Found0) ->
    {Populated, Count, Found} = lists:foldl(
        fun(Sub, {P, C, F0}) ->
            {Below, F} = extremes(Sub, Depth + 1, F0),
            {P + min(1, Below), C + Below, F}
        end,
        {0, 0, Found0},
        Subs
    ),
    case {Populated > 1, Found} of
        {false, _} -> {Count, Found};
        {true, {none, none}} -> {Count, {Depth, Depth}};
        {true, {Most, Least}} -> {Count, {min(Depth, Most), max(Depth, Least)}}
    end.

at(Depth) -> math:pow(2, -Depth).

%% @doc The network as a term, with a name for each inner vertex.
-spec term(network()) -> tree().
term(#network{tree = Tree}) -> Tree.

%% @doc Its nodes, in the order of their names.
-spec nodes(network()) -> [node()].
nodes(#network{ways = Ways}) -> lists:sort(maps:keys(Ways)).

%% @doc Whether the node stands in it.
-spec is_node(node(), network()) -> boolean().
is_node(Node, #network{ways = Ways}) -> is_map_key(Node, Ways).

%% @doc How far two nodes are from each other.
-spec distance(node(), node(), network()) -> {ok, distance()} | {error, {not_in_network, node()}}.
distance(A, B, #network{ways = Ways}) ->
    case Ways of
        #{A := _} when A =:= B -> {ok, 0.0};
        #{A := WayA, B := WayB} -> {ok, at(common(WayA, WayB, 1) - 1)};
        #{A := _} -> {error, {not_in_network, B}};
        #{} -> {error, {not_in_network, A}}
    end.

%% How many vertices the two ways begin with in common.
common(A, B, N) when N =< tuple_size(A), N =< tuple_size(B), element(N, A) =:= element(N, B) ->
    common(A, B, N + 1);
common(_A, _B, N) ->
    N - 1.

%% @doc The largest distance of two of its nodes (its diameter); 0.0 where there are no two.
-spec max_distance(network()) -> distance().
max_distance(#network{max = Max}) -> Max.

%% @doc The smallest distance of two of its nodes (its granularity); 0.0 where there are no two.
-spec min_distance(network()) -> distance().
min_distance(#network{min = Min}) -> Min.

%% @doc Its nodes that are not farther than the radius, the node itself among them.
-spec ball(node(), number(), network()) -> [node()].
ball(From, Radius, Network) ->
    choose(From, nodes(Network), [{dist, le, Radius}], Network).

%% @doc Its nodes that are just so far.
-spec sphere(node(), number(), network()) -> [node()].
sphere(From, Radius, Network) ->
    choose(From, nodes(Network), [{dist, eq, Radius}], Network).

%% @doc So many of these that are nearest, the nearest first, and of those that are as near in
%% the order in which they are given. Whoever is not in the network is left out.
-spec nearest(non_neg_integer(), node(), [node()], network()) -> [node()].
nearest(Count, From, Nodes, Network) ->
    Known = [{Distance, Node} || Node <- Nodes, {ok, Distance} <- [distance(From, Node, Network)]],
    [Node || {_, Node} <- lists:sublist(lists:keysort(1, Known), Count)].

%% @doc Those of the nodes of which all predicates hold, in their order. Of a node that is
%% not in the network none holds, and nobody is chosen from such a one.
-spec choose(From :: node(), [node()], predicate() | [predicate()], network()) -> [node()].
choose(From, Nodes, Predicates, Network) ->
    [Node || Node <- Nodes, {ok, Distance} <- [distance(From, Node, Network)], holds(Predicates, Distance)].

%% @doc Whether the predicate holds for this distance, or all of them do.
-spec holds(predicate() | [predicate()], number()) -> boolean().
holds({dist, eq, R}, D) -> D == R;
holds({dist, ne, R}, D) -> D /= R;
holds({dist, lt, R}, D) -> D < R;
holds({dist, le, R}, D) -> D =< R;
holds({dist, gt, R}, D) -> D > R;
holds({dist, ge, R}, D) -> D >= R;
holds(Predicates, D) -> lists:all(fun(Predicate) -> holds(Predicate, D) end, Predicates).

%% @doc Whether a term is a predicate.
-spec is_predicate(term()) -> boolean().
is_predicate({dist, Op, Radius}) ->
    lists:member(Op, [eq, ne, lt, le, gt, ge]) andalso is_number(Radius);
is_predicate(_) ->
    false.

%% @doc Visits the vertices as they stand, a network before what is in it: each with its
%% name and its parent's number, `none' at the root, and numbered from 1 on.
-spec fold(
    fun((Number :: pos_integer(), Parent :: none | pos_integer(), {node, node()} | {network, name()}, Acc) -> Acc),
    Acc,
    network()
) -> Acc.
fold(Fun, Acc0, #network{tree = Tree}) ->
    {Acc, _} = fold(Fun, none, Tree, Acc0, 1),
    Acc.

fold(Fun, Parent, {node, Node}, Acc, N) ->
    {Fun(N, Parent, {node, Node}, Acc), N + 1};
fold(Fun, Parent, {network, Name, Subs}, Acc0, N) ->
    lists:foldl(
        fun(Sub, {Acc, Next}) -> fold(Fun, N, Sub, Acc, Next) end,
        {Fun(N, Parent, {network, Name}, Acc0), N + 1},
        Subs
    ).

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({Where, {twice, Node, First}}) ->
    io_lib:format("~ts: the node ~tw stands in the network twice, first as ~ts", [way(Where), Node, way(First)]);
format_error({Where, Why}) ->
    [way(Where), ": ", format_why(Why)].

way([]) -> "the root";
way(Where) -> ["subnet ", lists:join($., [integer_to_list(N) || N <- Where])].

%% @doc The same, without the place.
-spec format_why(why()) -> unicode:chardata().
format_why(not_a_network) ->
    "what stands here is none of {node,Node}, {network,[Sub]} and {network,Name,[Sub]}";
format_why({not_a_node, Term}) ->
    io_lib:format("a node is named by an atom, not by ~0tP", [Term, 12]);
format_why({not_a_name, Term}) ->
    io_lib:format("a network is named by an atom or a text, not by ~0tP", [Term, 12]);
format_why({not_subnets, Term}) ->
    io_lib:format("the parts of a network are a list, not ~0tP", [Term, 12]);
format_why(too_deep) ->
    io_lib:format("networks are in each other more than ~b deep", [?MAX_DEPTH]).
