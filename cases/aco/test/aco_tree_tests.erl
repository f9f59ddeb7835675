%% SPDX-License-Identifier: Apache-2.0
-module(aco_tree_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% 1 + P + .. + P^(X-2) nodes of submasters and P^X of colonies.
a_tree_of_the_papers_size_has_its_shape_test() ->
    Roles = aco_tree:roles(tree(sr, 131, 5)),
    Count = fun(Role) -> length([Node || {Node, R} <- Roles, R =:= Role]) end,
    ?assertEqual([1, 5, 125], lists:map(Count, [master, submaster, colony])),
    ?assertEqual(131, length(Roles)),
    %% A name for each submaster and colony, and the master's: P + P^2 + .. + P^L and one.
    ?assertEqual(1 + 155, map_size(tree(sr, 131, 5))).

levels_are_as_many_as_there_are_nodes_for_test() ->
    Depth = fun(Count, Degree) -> depth(tree(ml, Count, Degree)) end,
    ?assertEqual([1, 1, 2, 2, 3], [Depth(Count, 2) || Count <- [5, 10, 11, 22, 23]]),
    ?assertEqual([1, 1, 2], [Depth(Count, 5) || Count <- [26, 130, 131]]).

depth(Tree) -> lists:max([length(Path) || Path <- maps:keys(Tree), is_list(Path)]).

thirteen_nodes_are_laid_out_as_the_head_of_the_module_says_test() ->
    Tree = tree(sr, 13, 2),
    At = fun(Id) -> #{nodes := [Node | _], below := Below} = aco_tree:place(Id, Tree), {Node, Below} end,
    ?assertEqual([{n1, [[1], [2]]}, {n1, [[1, 1], [1, 2]]}, {n1, [[2, 1], [2, 2]]}], lists:map(At, [[], [1], [2]])),
    ?assertEqual([{n2, [1, 2, 3]}, {n2, [4, 5, 6]}, {n3, [7, 8]}, {n3, [9, 10]}],
                 lists:map(At, [[1, 1], [1, 2], [2, 1], [2, 2]])),
    ?assertEqual([{list_to_atom("n" ++ integer_to_list(3 + Id)), []} || Id <- lists:seq(1, 10)],
                 lists:map(At, lists:seq(1, 10))),
    ?assertEqual(#{{above, []} => [n1, n2, n3], {last, [1, 1]} => [n2, n4, n5, n6], {last, [1, 2]} => [n2, n7, n8, n9],
                   {last, [2, 1]} => lists:sort([n3, n10, n11]), {last, [2, 2]} => lists:sort([n3, n12, n13])},
                 aco_tree:groups(Tree)).

two_levels_have_the_master_alone_above_the_colonies_test() ->
    {ok, Tree} = aco_tree:new(tl, [a, b, c], 2, 2),
    ?assertMatch(#{[] := #{nodes := [a | _], below := [1, 2, 3, 4]}}, Tree),
    ?assertEqual([b, b, c, c], [Node || Id <- [1, 2, 3, 4], #{nodes := [Node | _]} <- [aco_tree:place(Id, Tree)]]).

too_few_nodes_are_said_with_how_many_it_takes_test() ->
    ?assertEqual("A tree of degree 3 takes 10 nodes or more, not 9.", sentence(sr, 9, 3)),
    ?assertEqual("The mode tl takes 2 nodes or more, not 1.", sentence(tl, 1, 3)).

sentence(Mode, Count, Degree) ->
    {error, Reason} = aco_tree:new(Mode, names(Count), Degree, 1),
    lists:flatten(aco_tree:format_error(Reason)).

a_lost_colony_goes_on_with_its_neighbours_and_then_with_its_submaster_test() ->
    Tree = tree(sr, 8, 2),
    ?assertEqual([[n2, n3, n4, n5, n1], [n3, n4, n5, n2, n1], [n4, n5, n2, n3, n1], [n5, n2, n3, n4, n1]],
                 [Nodes || Id <- [1, 2, 3, 4], #{nodes := Nodes} <- [aco_tree:place(Id, Tree)]]).

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
            Groups = aco_tree:groups(Tree),
            Colonies = [Node || {Node, colony} <- Roles],
            Sizes = [length(Below) || #{below := [Id | _] = Below} <- maps:values(Tree), is_integer(Id)],
            conjunction([
                {every_node_has_one_role_in_order, [Node || {Node, _} <- Roles] =:= names(Count)},
                {colonies_are_numbered_in_order,
                 aco_tree:colonies(Tree) =:= lists:seq(1, Each * length(Colonies))},
                {a_colony_node_is_in_one_group,
                 lists:all(fun(Node) -> length([G || {G, Nodes} <- maps:to_list(Groups), lists:member(Node, Nodes)]) =:= 1 end,
                           Colonies)},
                {a_name_is_in_a_group_of_its_node_and_of_the_one_above,
                 [] =:= [Id || #{nodes := [Own | _], below := Below} <- maps:values(Tree), Id <- Below,
                               #{nodes := [Node | _], group := G} <- [aco_tree:place(Id, Tree)],
                               [Own, Node] -- maps:get(G, Groups) =/= [] andalso Own =/= Node]},
                {dealt_evenly, lists:max(Sizes) - lists:min(Sizes) =< Each},
                {at_least_the_degree, lists:min(Sizes) >= Degree * Each}
            ])
        end
    ).

tree(Mode, Count, Degree) ->
    {ok, Tree} = aco_tree:new(Mode, names(Count), Degree, 1),
    Tree.

names(Count) ->
    [list_to_atom("n" ++ integer_to_list(I)) || I <- lists:seq(1, Count)].
