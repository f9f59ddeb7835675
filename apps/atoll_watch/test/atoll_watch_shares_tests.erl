%% SPDX-License-Identifier: Apache-2.0
%% Which manager has which node, beside a map of who was given what.
-module(atoll_watch_shares_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

properties_test_() ->
    atoll_prop:tests([{each_node_has_one_manager_and_keeps_it, each_node_has_one_manager_and_keeps_it(), 500}]).

some(N) -> [list_to_atom("n" ++ integer_to_list(I)) || I <- lists:seq(1, N)].

%% At every moment all nodes that were met and are not gone have one manager each, of those that there are, and a lease that nobody
%% had; no node moves; and who gets a node has not more than half as much again as its part.
each_node_has_one_manager_and_keeps_it() ->
    Node = oneof(some(40)),
    ?FORALL({HowMany, Groups, Steps}, {oneof([auto, range(1, 5)]), list(list(Node)), list(frequency([{4, {met, list(Node)}}, {2, {gone, Node}}, {1, {again, range(1, 5)}}]))}, begin
        World = #{shares => atoll_watch_shares:new(HowMany, Groups), how_many => HowMany, has => #{}, leases => []},
        _ = lists:foldl(fun play/2, World, Steps),
        true
    end).

play({met, Nodes}, #{shares := Shares0, has := Has, how_many := HowMany} = World) ->
    {Given, Shares} = atoll_watch_shares:met(Nodes, Shares0),
    New = lists:usort(Nodes) -- maps:keys(Has),
    New = lists:sort([Node || {_, Node, _} <- Given]),
    Managers = case HowMany of auto -> 1; _ -> HowMany end,
    Managers = length(atoll_watch_shares:managers(Shares)),
    All = map_size(Has) + length(New),
    Part = (All + Managers - 1) div Managers,
    [true = length(atoll_watch_shares:share(Id, Shares)) =< Part + Part div 2 || {Id, _, _} <- Given],
    same(given(Given, World#{shares := Shares}));
play({gone, Node}, #{has := Has} = World) when not is_map_key(Node, Has) ->
    World;
play({gone, Node}, #{shares := Shares0, has := Has} = World) ->
    #{Node := {Id, _}} = Has,
    {Id, Shares} = atoll_watch_shares:gone(Node, Shares0),
    same(World#{shares := Shares, has := maps:remove(Node, Has)});
play({again, Id}, #{shares := Shares0, has := Has} = World) ->
    {Given, Shares} = atoll_watch_shares:again(Id, Shares0),
    Its = lists:sort([Node || {Node, {Is, _}} <- maps:to_list(Has), Is =:= Id]),
    Its = lists:sort([Node || {Is, Node, _} <- Given, Is =:= Id]),
    same(given(Given, World#{shares := Shares})).

given(Given, World) ->
    lists:foldl(fun({Id, Node, Lease}, #{has := Has, leases := Leases} = Acc) ->
        false = lists:member(Lease, Leases),
        Acc#{has := Has#{Node => {Id, Lease}}, leases := [Lease | Leases]}
    end, World, Given).

same(#{shares := Shares, has := Has, leases := Leases} = World) ->
    Shown = lists:sort([{Node, Id} || Id <- atoll_watch_shares:managers(Shares), Node <- atoll_watch_shares:share(Id, Shares)]),
    Shown = lists:sort([{Node, Id} || {Node, {Id, _}} <- maps:to_list(Has)]),
    [{ok, Id} = atoll_watch_shares:manager(Node, Shares) || {Node, Id} <- Shown],
    Valid = [{Node, Lease} || {Node, {_, Lease}} <- maps:to_list(Has)],
    [true = atoll_watch_shares:has(Node, Lease, Shares) =:= lists:member({Node, Lease}, Valid) || Node <- some(40), Lease <- Leases],
    World.

%% Groups of fifteen on three managers: each is at one.
a_group_is_together_where_there_is_room_test() ->
    Nodes = some(60),
    Groups = [lists:sublist(Nodes, From, 15) || From <- [1, 16, 31, 46]],
    {Given, Shares} = atoll_watch_shares:met(Nodes, atoll_watch_shares:new(3, Groups)),
    Of = fun(Node) -> {Id, _, _} = lists:keyfind(Node, 2, Given), Id end,
    ?assertEqual([1, 1, 1, 1], [length(lists:usort([Of(Node) || Node <- Group])) || Group <- Groups]),
    ?assertEqual([15, 15, 30], lists:sort([length(atoll_watch_shares:share(Id, Shares)) || Id <- [1, 2, 3]])).

%% One for each hundred; those that have a manager keep it.
there_is_a_manager_for_each_hundred_nodes_test() ->
    {First, One} = atoll_watch_shares:met(some(100), atoll_watch_shares:new(auto, [])),
    ?assertEqual([1], atoll_watch_shares:managers(One)),
    {Given, Several} = atoll_watch_shares:met(some(400), One),
    ?assertEqual([1, 2, 3, 4], atoll_watch_shares:managers(Several)),
    ?assertEqual([], [Node || {_, Node, _} <- Given, lists:keymember(Node, 2, First)]),
    ?assertEqual(lists:duplicate(4, 100), [length(atoll_watch_shares:share(Id, Several)) || Id <- [1, 2, 3, 4]]).
