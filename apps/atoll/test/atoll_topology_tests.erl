%% SPDX-License-Identifier: Apache-2.0
%% Which groups come of which shape. The formulas of the module's head are checked
%% against what the groups say.
-module(atoll_topology_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(SHAPES, [star, ring, tree, hierarchy]).

%% The examples of the module's head

a_star_joins_all_gateways_test() ->
    ?assertEqual(
        [{group1, [a, b, c]}, {group2, [d, e, f]}, {group3, [g, h, i]}, {group_gateways, [a, d, g]}],
        groups(star, nine(), #{group_size => 3})
    ).

a_ring_joins_neighbours_test() ->
    ?assertEqual(
        [{group1, [a, b, c, g]}, {group2, [a, d, e, f]}, {group3, [d, g, h, i]}],
        groups(ring, nine(), #{groups => 3})
    ).

a_tree_joins_a_group_with_the_one_above_test() ->
    ?assertEqual(
        [{group1, [a, b, c, d, g]}, {group2, [d, e, f]}, {group3, [g, h, i]}],
        groups(tree, nine(), #{group_size => 3})
    ).

a_hierarchy_joins_gateways_of_gateways_test() ->
    ?assertEqual(
        [{reef1, [a, b, c]}, {reef2, [d, e, f]}, {reef3, [g, h, i]}, {reef2_1, [a, d]}, {reef3_1, [a, g]}],
        groups(hierarchy, nine(), #{group_size => 3, prefix => reef})
    ).

a_hierarchy_has_any_depth_test() ->
    {ok, Topology} = atoll_topology:hierarchy(nodes_of(64), #{group_size => 1, fanout => 2}),
    %% 32 groups of two, 16, 8, 4, 2 and the top.
    ?assertEqual(64 + 63, length(atoll_topology:groups(Topology))),
    ?assertEqual([group7_1], [Name || {group7_1 = Name, _} <- atoll_topology:groups(Topology)]).

one_group_has_no_gateway_test() ->
    [
        begin
            {ok, Topology} = atoll_topology:Shape(nine(), #{group_size => 5}),
            ?assertEqual([{group1, nine()}], atoll_topology:groups(Topology)),
            ?assertEqual([], atoll_topology:gateways(Topology))
        end
     || Shape <- ?SHAPES
    ].

what_is_wrong_is_said_in_a_sentence_test() ->
    [
        begin
            {error, Error} = atoll_topology:Shape(Nodes, Options),
            Said = unicode:characters_to_list(atoll_topology:format_error(Error)),
            ?assertMatch({match, _}, re:run(Said, Words), Said)
        end
     || {Shape, Nodes, Options, Words} <- [
            {star, [], #{groups => 1}, "at least one node"},
            {star, [a | b], #{groups => 1}, "list of atoms"},
            {star, "ab", #{groups => 1}, "list of atoms"},
            {star, [a, b, a], #{groups => 1}, "node a is given twice"},
            {star, [a, b], [{groups, 1}], "as a map"},
            {star, [a, b], #{groups => 1, fanout => 2}, "no option fanout"},
            {ring, [a, b], #{groups => 0}, "groups must be a whole number above 0, not 0"},
            {ring, [a, b], #{groups => 1, prefix => "x"}, "prefix must be an atom"},
            {tree, [a, b], #{}, "group_size or groups"},
            {tree, [a, b], #{groups => 1, group_size => 2}, "only one"},
            {tree, [a, b], #{groups => 3}, "2 nodes cannot be cut into 3 groups"},
            {hierarchy, [a, b, c], #{groups => 2, fanout => 1}, "fanout must be at least 2"},
            {hierarchy, [a, b, c], #{groups => 2, gateways => 2}, "group of 1 has no 2 gateways"}
        ]
    ].

%% Promises of every shape

properties_test_() ->
    [
        atoll_prop:test(Property, ?MODULE:Property(), 300)
     || Property <- [
            prop_every_node_has_one_home,
            prop_groups_overlap_in_gateways_alone,
            prop_groups_are_connected,
            prop_connections_are_as_the_formula_says,
            prop_one_gateway_fewer_leaves_the_groups_connected
        ]
    ].

shape() ->
    ?LET(
        {Shape, Size, Gateways, Fanout, More},
        {oneof(?SHAPES), range(1, 7), range(1, 3), range(1, 4), range(0, 60)},
        begin
            S = max(Size, Gateways),
            Options = maps:merge(#{group_size => S, gateways => Gateways}, fanout(Shape, Fanout)),
            {Shape, nodes_of(S + More), Options}
        end
    ).

fanout(hierarchy, Fanout) -> #{fanout => Fanout + 1};
fanout(tree, Fanout) -> #{fanout => Fanout};
fanout(_, _) -> #{}.

prop_every_node_has_one_home() ->
    ?FORALL({Shape, Nodes, Options}, shape(), begin
        {ok, Topology} = atoll_topology:Shape(Nodes, Options),
        Homes = homes(Nodes, Options),
        atoll_topology:members(Topology) =:= lists:sort(Nodes) andalso
            lists:all(
                fun({I, Home}) ->
                    Name = list_to_atom("group" ++ integer_to_list(I)),
                    lists:all(
                        fun(Node) -> lists:member(Node, proplists:get_value(Name, atoll_topology:groups(Topology))) end, Home
                    )
                end,
                lists:zip(lists:seq(1, length(Homes)), Homes)
            )
    end).

prop_groups_overlap_in_gateways_alone() ->
    ?FORALL({Shape, Nodes, #{gateways := G} = Options}, shape(), begin
        {ok, Topology} = atoll_topology:Shape(Nodes, Options),
        Gateways = atoll_topology:gateways(Topology),
        Groups = atoll_topology:groups(Topology),
        Shared = lists:usort([
            N || {A, As} <- Groups, {B, Bs} <- Groups, A < B, N <- As, lists:member(N, Bs)
        ]),
        Homes = homes(Nodes, Options),
        %% The first ones of each home group; in a tree not of the one on top.
        First = [lists:sublist(Home, G) || Home <- Homes, length(Homes) > 1],
        Expected =
            case Shape of
                tree -> lists:nthtail(min(1, length(First)), First);
                _ -> First
            end,
        Shared =:= Gateways andalso Gateways =:= lists:sort(lists:append(Expected))
    end).

prop_groups_are_connected() ->
    ?FORALL({Shape, Nodes, Options}, shape(), begin
        {ok, Topology} = atoll_topology:Shape(Nodes, Options),
        connected(atoll_topology:groups(Topology))
    end).

prop_one_gateway_fewer_leaves_the_groups_connected() ->
    ?FORALL({Shape, Nodes, #{gateways := G} = Options}, shape(), begin
        {ok, Topology} = atoll_topology:Shape(Nodes, Options),
        G =:= 1 orelse
            lists:all(
                fun(Gone) -> connected([{Name, Ns -- [Gone]} || {Name, Ns} <- atoll_topology:groups(Topology)]) end,
                atoll_topology:gateways(Topology)
            )
    end).

prop_connections_are_as_the_formula_says() ->
    ?FORALL({Shape, Nodes, #{gateways := G} = Options}, shape(), begin
        {ok, Topology} = atoll_topology:Shape(Nodes, Options),
        Homes = homes(Nodes, Options),
        Numbered = lists:zip(lists:seq(0, length(Homes) - 1), Homes),
        Expected = maps:from_list([
            {Node, formula(Shape, I, lists:member(Node, lists:sublist(Home, G)), Node, Homes, Options, Topology)}
         || {I, Home} <- Numbered, Node <- Home
        ]),
        ?WHENFAIL(
            io:format("~p~n~p~n", [Expected, atoll_topology:connections(Topology)]),
            %% A ring of two groups shares both ways, and the formula is for three or more.
            (Shape =:= ring andalso length(Homes) =:= 2) orelse
                Expected =:= atoll_topology:connections(Topology)
        )
    end).

formula(_Shape, 0, _IsGateway, _Node, [Home], _Options, _Topology) ->
    length(Home) - 1;
formula(star, I, IsGateway, _Node, Homes, #{gateways := G}, _Topology) ->
    size_of(I, Homes) - 1 + if_so(IsGateway, (length(Homes) - 1) * G);
formula(ring, I, IsGateway, _Node, Homes, #{gateways := G}, _Topology) ->
    size_of(I, Homes) - 1 + G + if_so(IsGateway, size_of((I + 1) rem length(Homes), Homes));
formula(tree, I, IsGateway, _Node, Homes, #{gateways := G, fanout := Fanout}, _Topology) ->
    Below = fun(J) -> length([K || K <- lists:seq(1, length(Homes) - 1), (K - 1) div Fanout =:= J]) end,
    Above = max(0, I - 1) div Fanout,
    size_of(I, Homes) - 1 + Below(I) * G +
        if_so(IsGateway andalso I > 0, size_of(Above, Homes) + (Below(Above) - 1) * G);
formula(hierarchy, I, _IsGateway, Node, Homes, #{gateways := G}, Topology) ->
    size_of(I, Homes) - 1 +
        lists:sum([
            (length(Ns) div G - 1) * G
         || {Name, Ns} <- atoll_topology:groups(Topology), lists:member($_, atom_to_list(Name)), lists:member(Node, Ns)
        ]).

if_so(true, N) -> N;
if_so(false, _) -> 0.

size_of(I, Homes) -> length(lists:nth(I + 1, Homes)).

%% Written otherwise than in the module: by the sizes.
homes(Nodes, #{group_size := Size}) ->
    Count = max(1, length(Nodes) div Size),
    Longer = length(Nodes) rem Count,
    homes(Nodes, Longer, length(Nodes) div Count).

homes([], _Longer, _Size) ->
    [];
homes(Nodes, Longer, Size) ->
    {Home, Rest} = lists:split(Size + min(1, max(0, Longer)), Nodes),
    [Home | homes(Rest, Longer - 1, Size)].

connected([{_, First} | Groups]) -> connected(First, Groups).

connected(_Reached, []) ->
    true;
connected(Reached, Groups) ->
    case lists:partition(fun({_, Ns}) -> Ns -- Reached =/= Ns end, Groups) of
        {[], _} -> false;
        {Met, Rest} -> connected(lists:usort(Reached ++ lists:append([Ns || {_, Ns} <- Met])), Rest)
    end.

%% Drawn

text_marks_gateways_test() ->
    {ok, Topology} = atoll_topology:star([a, b, c, d], #{groups => 2}),
    ?assertEqual(
        "group1          a* b\n"
        "group2          c* d\n"
        "group_gateways  a* c*\n"
        "3 groups, 4 nodes, 2 of them gateways (*); a node has 2 connections at most\n",
        unicode:characters_to_list(atoll_topology:text(Topology))
    ).

dot_has_a_line_for_each_membership_test() ->
    {ok, Topology} = atoll_topology:ring(nine(), #{groups => 3}),
    Dot = unicode:characters_to_list(atoll_topology:dot(Topology)),
    {match, Lines} = re:run(Dot, "^  \"group [123]\" -- \"[a-i]\";$", [global, multiline]),
    ?assertEqual(12, length(Lines)),
    {match, Double} = re:run(Dot, "^  \"[adg]\" \\[peripheries=2\\];$", [global, multiline]),
    ?assertEqual(3, length(Double)).

dot_escapes_names_test() ->
    Dot = unicode:characters_to_list(atoll_topology:dot(atoll_topology:of_groups([{'a"b\\c', ['n@h']}]))),
    ?assertMatch({_, _}, binary:match(list_to_binary(Dot), <<"label=\"a\\\"b\\\\c\"">>)).

of_no_groups_there_is_nothing_to_draw_test() ->
    Nothing = atoll_topology:of_groups([]),
    ?assertEqual(#{}, atoll_topology:connections(Nothing)),
    ?assertMatch({match, _}, re:run(unicode:characters_to_list(atoll_topology:text(Nothing)), "^0 groups, 0 nodes")).

groups(Shape, Nodes, Options) ->
    {ok, Topology} = atoll_topology:Shape(Nodes, Options),
    atoll_topology:groups(Topology).

nine() -> [a, b, c, d, e, f, g, h, i].

nodes_of(Count) -> [list_to_atom("n" ++ integer_to_list(I)) || I <- lists:seq(1, Count)].
