%% SPDX-License-Identifier: Apache-2.0
-module(orbit_plan_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

nine() -> [a, b, c, d, e, f, g, h, i].

plan(Mode, Nodes, Size) ->
    {ok, Plan} = orbit_plan:new(Mode, Nodes, Size, #{workers => 2, separate_submasters => false, prefix => x}),
    Plan.

members(Plan) -> [Members || {_, Members} <- orbit_plan:groups(Plan)].

nine_nodes_are_grouped_as_drawn_in_the_head_of_the_module_test() ->
    ?assertEqual([nine()], members(plan(mesh, nine(), 3))),
    ?assertEqual([[a, b, c], [d, e, f], [g, h, i], [a, d, g]], members(plan(groups, nine(), 3))),
    ?assertEqual([[a, b, c, g], [d, e, f, a], [g, h, i, d]], members(plan(ring, nine(), 3))).

whoever_is_left_first_takes_the_place_of_a_lost_gateway_test() ->
    {ok, Plan} = orbit_plan:without([d], plan(groups, nine(), 3)),
    ?assertEqual([[a, b, c], [e, f], [g, h, i], [a, e, g]], members(Plan)),
    ?assertEqual([d], orbit_plan:absent(e, Plan)),
    %% Back it is the last.
    ?assertEqual([[a, b, c], [e, f, d], [g, h, i], [a, e, g]], members(orbit_plan:back(d, Plan))),
    ?assertEqual([], orbit_plan:parts(d, orbit_plan:back(d, Plan))).

%% Whoever is new in a group is not the one to make it.
the_first_of_a_group_has_been_in_it_test() ->
    {ok, Plan} = orbit_plan:without([d], plan(ring, nine(), 3)),
    ?assertEqual([[a, b, c, g], [e, f, a], [g, h, i, e]], members(Plan)).

parts_of_a_lost_node_go_to_those_with_the_fewest_test() ->
    {ok, Plan} = orbit_plan:without([e], plan(groups, nine(), 3)),
    ?assertEqual([3, 3, 0], [length(orbit_plan:parts(N, Plan)) || N <- [d, f, e]]),
    {ok, Next} = orbit_plan:without([f], orbit_plan:back(e, Plan)),
    ?assertEqual([3, 3, 0], [length(orbit_plan:parts(N, Next)) || N <- [d, e, f]]).

a_group_with_nobody_left_cannot_go_on_test() ->
    {ok, Plan} = orbit_plan:without([d, e], plan(groups, nine(), 3)),
    ?assertEqual({error, {group_lost, [d, e, f]}}, orbit_plan:without([f], Plan)).

separate_submasters_have_no_parts_while_somebody_else_is_there_test() ->
    {ok, Plan} = orbit_plan:new(groups, nine(), 3, #{workers => 2, separate_submasters => true, prefix => x}),
    ?assertEqual([0, 2, 2, 0, 2, 2, 0, 2, 2], [length(orbit_plan:parts(N, Plan)) || N <- nine()]),
    {ok, Less} = orbit_plan:without([e, f], Plan),
    ?assertEqual(4, length(orbit_plan:parts(d, Less))).

properties_test_() ->
    [atoll_prop:test(Name, Property, 300) || {Name, Property} <- [
        {every_part_is_somewhere_whoever_is_lost, whole()},
        {a_way_goes_over_neighbours_and_arrives, ways()},
        {the_tree_reaches_every_node_once_from_the_first, tree()}
    ]].

whole() ->
    ?FORALL({Plan, _}, plans(),
        lists:sort(lists:append([orbit_plan:parts(N, Plan) || N <- orbit_plan:present(Plan)])) =:= lists:seq(0, orbit_plan:parts(Plan) - 1)).

ways() ->
    ?FORALL({Plan, _}, plans(),
        lists:all(fun(From) ->
            Hops = orbit_plan:hops(From, Plan),
            lists:sort(maps:keys(Hops)) =:= lists:sort(orbit_plan:present(Plan) -- [From])
                andalso lists:usort(maps:values(Hops)) -- orbit_plan:neighbours(From, Plan) =:= []
                andalso lists:all(fun(To) -> arrives(From, To, Plan, 20) end, maps:keys(Hops))
        end, orbit_plan:present(Plan))).

arrives(To, To, _, _) -> true;
arrives(_, _, _, 0) -> false;
arrives(From, To, Plan, Steps) -> arrives(maps:get(To, orbit_plan:hops(From, Plan)), To, Plan, Steps - 1).

tree() ->
    ?FORALL({Plan, _}, plans(),
        begin
            [First | _] = Present = orbit_plan:present(Plan),
            Reached = reached(First, Plan),
            lists:sort(Reached) =:= lists:sort(Present)
                andalso lists:all(fun(N) -> N =:= First orelse lists:member(N, orbit_plan:below(orbit_plan:above(N, Plan), Plan)) end, Present)
        end).

reached(Node, Plan) -> [Node | lists:append([reached(Below, Plan) || Below <- orbit_plan:below(Node, Plan)])].

%% With some nodes lost, as many as can be, and some back.
plans() ->
    ?LET({Mode, Count, Size, Lost, Back}, {oneof([mesh, groups, ring]), integer(1, 14), integer(1, 5), list(integer(2, 14)), list(integer(2, 14))},
        begin
            Nodes = [list_to_atom("n" ++ integer_to_list(N)) || N <- lists:seq(1, Count)],
            Without = lists:foldl(fun(N, Plan) ->
                case orbit_plan:without([node_of(N)] -- ([node_of(N)] -- orbit_plan:present(Plan)), Plan) of {ok, Left} -> Left; {error, _} -> Plan end
            end, plan(Mode, Nodes, min(Size, Count)), Lost),
            {lists:foldl(fun(N, Plan) -> orbit_plan:back(node_of(N), Plan) end, Without, [N || N <- Back, N =< Count]), Lost}
        end).

node_of(N) -> list_to_atom("n" ++ integer_to_list(N)).
