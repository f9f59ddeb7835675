-module(aco_tree_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% 1 + P + .. + P^(X-2) nodes of submasters and P^X of colonies.
a_tree_of_the_papers_size_has_its_shape_test() ->
    Roles = aco_tree:roles(tree(sr, 131, 5)),
    Count = fun(Role) -> length([Node || {Node, R} <- Roles, R =:= Role]) end,
    ?assertEqual([1, 5, 125], lists:map(Count, [master, submaster, colony])),
    %% One name for each node: with a name for each process there would be 155.
    ?assertEqual(131, length(Roles)).

levels_are_as_many_as_there_are_nodes_for_test() ->
    Depth = fun(Count, Degree) -> depth(tree(ml, Count, Degree)) end,
    ?assertEqual([1, 1, 2, 2, 3], [Depth(Count, 2) || Count <- [5, 10, 11, 22, 23]]),
    ?assertEqual([1, 1, 2], [Depth(Count, 5) || Count <- [26, 130, 131]]).

depth(#{below := {colonies, _}}) -> 0;
depth(#{below := {submasters, [Branch | _]}}) -> 1 + depth(Branch).

thirteen_nodes_are_laid_out_as_the_head_of_the_module_says_test() ->
    #{below := {submasters, [One, Two]}} = Tree = tree(sr, 13, 2),
    ?assertMatch(#{path := [1], node := n1, below := {submasters, [
        #{path := [1, 1], node := n2, below := {colonies, [{1, n4}, {2, n5}, {3, n6}]}},
        #{path := [1, 2], node := n2, below := {colonies, [{4, n7}, {5, n8}, {6, n9}]}}]}}, One),
    ?assertMatch(#{path := [2], node := n1, below := {submasters, [
        #{path := [2, 1], node := n3, below := {colonies, [{7, n10}, {8, n11}]}},
        #{path := [2, 2], node := n3, below := {colonies, [{9, n12}, {10, n13}]}}]}}, Two),
    ?assertEqual([[n1, n2, n3], [n2, n4, n5, n6], [n2, n7, n8, n9], [n3, n10, n11], [n3, n12, n13]],
                 lists:sort([Nodes || #{nodes := Nodes} <- aco_tree:groups(Tree)])).

two_levels_have_the_master_alone_above_the_colonies_test() ->
    {ok, Tree} = aco_tree:new(tl, [a, b, c], 2, 2),
    ?assertEqual({colonies, [{1, b}, {2, b}, {3, c}, {4, c}]}, maps:get(below, Tree)),
    ?assertEqual([], aco_tree:groups(Tree)).

too_few_nodes_are_said_with_how_many_it_takes_test() ->
    ?assertEqual("A tree of degree 3 takes 10 nodes or more, not 9.", sentence(sr, 9, 3)),
    ?assertEqual("The mode tl takes 2 nodes or more, not 1.", sentence(tl, 1, 3)).

sentence(Mode, Count, Degree) ->
    {error, Reason} = aco_tree:new(Mode, names(Count), Degree, 1),
    lists:flatten(aco_tree:format_error(Reason)).

a_lost_colony_goes_on_with_its_neighbours_and_then_with_its_submaster_test() ->
    #{below := {submasters, [Branch, _]}} = tree(sr, 8, 2),
    ?assertEqual([{1, [n3, n4, n5, n1]}, {2, [n4, n5, n2, n1]}, {3, [n5, n2, n3, n1]}, {4, [n2, n3, n4, n1]}],
                 [{Id, Spare} || #{id := Id, spare := Spare} <- aco_tree:children(Branch)]).

layouts_keep_their_promises_test_() ->
    atoll_prop:test(?FUNCTION_NAME, prop_layout(), 300).

prop_layout() ->
    ?FORALL(
        {Degree, More, Each},
        {range(2, 4), range(0, 120), range(1, 3)},
        begin
            Count = 1 + Degree * Degree + More,
            {ok, Tree} = aco_tree:new(sr, names(Count), Degree, Each),
            Roles = aco_tree:roles(Tree),
            Groups = [Nodes || #{nodes := Nodes} <- aco_tree:groups(Tree)],
            Colonies = [Node || {Node, colony} <- Roles],
            Sizes = [length(Below) || #{below := {colonies, Below}} <- branches(Tree)],
            conjunction([
                {every_node_has_one_role_in_order, [Node || {Node, _} <- Roles] =:= names(Count)},
                {colonies_are_numbered_in_order,
                 aco_tree:colonies(Tree) =:= lists:seq(1, Each * length(Colonies))},
                {a_colony_node_is_in_one_group,
                 lists:all(fun(Node) -> length([G || G <- Groups, lists:member(Node, G)]) =:= 1 end, Colonies)},
                {parent_and_child_share_a_group, lists:all(fun(B) -> share(B) end, branches(Tree))},
                {dealt_evenly, lists:max(Sizes) - lists:min(Sizes) =< Each},
                {at_least_the_degree, lists:min(Sizes) >= Degree * Each}
            ])
        end
    ).

branches(#{below := {submasters, Below}} = Branch) -> [Branch | lists:append([branches(B) || B <- Below])];
branches(Branch) -> [Branch].

%% What a submaster starts elsewhere is in the group that it has for that.
share(#{node := Own, group := Group} = Branch) ->
    lists:all(
        fun(#{node := Node}) ->
            Node =:= Own orelse [Node, Own] -- maps:get(nodes, Group) =:= []
        end,
        aco_tree:children(Branch)).

tree(Mode, Count, Degree) ->
    {ok, Tree} = aco_tree:new(Mode, names(Count), Degree, 1),
    Tree.

names(Count) ->
    [list_to_atom("n" ++ integer_to_list(I)) || I <- lists:seq(1, Count)].
