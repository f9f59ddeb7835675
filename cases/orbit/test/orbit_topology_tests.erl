-module(orbit_topology_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

nine_nodes_in_a_ring_of_three_groups_test() ->
    Ring = orbit_topology:new(ring, [a, b, c, d, e, f, g, h, i], 3),
    ?assertEqual([#{id => 1, gateway => a, nodes => [a, b, c]},
                  #{id => 2, gateway => d, nodes => [d, e, f]},
                  #{id => 3, gateway => g, nodes => [g, h, i]}],
                 orbit_topology:groups(Ring)),
    ?assertEqual([[1, 2], [2, 3], [3, 1]],
                 [M || #{members := M} <- orbit_topology:gateway_groups(Ring)]).

the_last_group_takes_the_rest_test() ->
    Groups = orbit_topology:groups(orbit_topology:new(groups, [a, b, c, d, e], 2)),
    ?assertEqual([[a, b], [c, d, e]], [Nodes || #{nodes := Nodes} <- Groups]).

two_groups_in_a_ring_meet_once_test() ->
    Ring = orbit_topology:new(ring, [a, b], 1),
    ?assertMatch([#{members := [1, 2]}], orbit_topology:gateway_groups(Ring)).

a_mesh_is_one_group_with_nothing_to_join_test() ->
    Mesh = orbit_topology:new(mesh, [a, b, c], 1),
    ?assertMatch([#{nodes := [a, b, c]}], orbit_topology:groups(Mesh)),
    ?assertEqual([], orbit_topology:gateway_groups(Mesh)),
    ?assertEqual([], orbit_topology:children(Mesh, 1)).

the_way_round_a_ring_is_the_shorter_one_test() ->
    Ring = orbit_topology:new(ring, lists:seq(1, 5), 1),
    ?assertEqual([2, 2, 5, 5], [orbit_topology:next(Ring, 1, To) || To <- [2, 3, 4, 5]]),
    ?assertEqual([1, 1, 4, 4], [orbit_topology:next(Ring, 5, To) || To <- [1, 2, 3, 4]]).

properties_test_() ->
    [atoll_prop:test(Name, Property, 300)
     || {Name, Property} <- [
         {every_node_is_in_exactly_one_group_and_none_is_empty, partition()},
         {every_group_is_reached_from_every_other, arrival()},
         {a_step_is_always_to_a_neighbour, steps()},
         {the_start_tree_reaches_every_group_once, tree()}
     ]].

partition() ->
    ?FORALL({Count, Size, Topology}, layout(),
        begin
            Lists = [Nodes || #{nodes := Nodes} <- orbit_topology:groups(Topology)],
            lists:append(Lists) =:= lists:seq(1, Count)
                andalso not lists:member([], Lists)
                andalso lists:all(fun(L) -> length(L) >= min(Size, Count) end, Lists)
        end).

arrival() ->
    ?FORALL({_, _, Topology}, layout(),
        lists:all(fun({From, To}) -> arrives(Topology, From, To, length(ids(Topology))) end,
                  pairs(Topology))).

steps() ->
    ?FORALL({_, _, Topology}, layout(),
        lists:all(
            fun({From, To}) ->
                lists:member(orbit_topology:next(Topology, From, To),
                             orbit_topology:neighbours(Topology, From))
            end,
            pairs(Topology))
        andalso lists:all(
            fun(Id) -> orbit_topology:children(Topology, Id)
                           -- orbit_topology:neighbours(Topology, Id) =:= []
            end,
            ids(Topology))).

tree() ->
    ?FORALL({_, _, Topology}, layout(),
        lists:sort(reached(Topology, 1)) =:= ids(Topology)).

layout() ->
    ?LET({Mode, Count, Size}, {oneof([groups, ring]), integer(1, 40), integer(1, 10)},
        {Count, Size, orbit_topology:new(Mode, lists:seq(1, Count), Size)}).

ids(Topology) ->
    [Id || #{id := Id} <- orbit_topology:groups(Topology)].

pairs(Topology) ->
    [{From, To} || From <- ids(Topology), To <- ids(Topology), From =/= To].

arrives(_, To, To, _) -> true;
arrives(_, _, _, 0) -> false;
arrives(Topology, From, To, Steps) ->
    arrives(Topology, orbit_topology:next(Topology, From, To), To, Steps - 1).

reached(Topology, Id) ->
    [Id | [R || Child <- orbit_topology:children(Topology, Id), R <- reached(Topology, Child)]].
