%% SPDX-License-Identifier: Apache-2.0
%% Members merge to the same whatever the order.
-module(atoll_mesh_members_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

properties_test_() ->
    [
        atoll_prop:test(Title, Property, 1000)
     || {Title, Property} <- [
            {"merging is commutative", ?FORALL({A, B}, {members(), members()}, merge(A, B) =:= merge(B, A))},
            {"merging is associative",
                ?FORALL(
                    {A, B, C},
                    {members(), members(), members()},
                    merge(A, merge(B, C)) =:= merge(merge(A, B), C)
                )},
            {"merging is idempotent",
                ?FORALL({A, B}, {members(), members()}, merge(merge(A, B), B) =:= merge(A, B))},
            {"equal members have equal digests, different ones do not",
                ?FORALL(
                    {A, B},
                    {members(), members()},
                    (A =:= B) =:= (atoll_mesh_members:digest(A) =:= atoll_mesh_members:digest(B))
                )},
            {"what is newer is what a merge needs",
                ?FORALL(
                    {A, B},
                    {members(), members()},
                    merge(A, B) =:= merge(B, atoll_mesh_members:from_list(atoll_mesh_members:newer(A, B)))
                )},
            {"at most so many gone are kept, and none that is alive is dropped",
                ?FORALL({A, Max}, {members(), choose(0, 3)}, keeps_the_bound(A, Max))}
        ]
    ].

keeps_the_bound(Members, Max) ->
    {Kept, Dropped} = atoll_mesh_members:forget(Max, Members),
    length(atoll_mesh_members:gone(Kept)) =< Max andalso
        length(atoll_mesh_members:gone(Kept)) + Dropped =:= length(atoll_mesh_members:gone(Members)) andalso
        atoll_mesh_members:alive(Kept) =:= atoll_mesh_members:alive(Members) andalso
        (Dropped =:= 0 orelse length(atoll_mesh_members:gone(Kept)) =:= Max).

members() ->
    ?LET(
        List,
        list({oneof([n1, n2, n3, n4, n5, n6]), {choose(1, 4), oneof([alive, gone])}}),
        atoll_mesh_members:from_list(List)
    ).

merge(A, B) -> atoll_mesh_members:merge(A, B).

the_higher_incarnation_wins_test() ->
    A = atoll_mesh_members:from_list([{n1, {2, alive}}, {n2, {1, gone}}]),
    B = atoll_mesh_members:from_list([{n1, {1, gone}}, {n2, {2, alive}}]),
    ?assertEqual([{n1, {2, alive}}, {n2, {2, alive}}], atoll_mesh_members:to_list(merge(A, B))).

of_one_incarnation_gone_wins_test() ->
    A = atoll_mesh_members:new(n1, 1),
    ?assertEqual({1, gone}, atoll_mesh_members:entry(n1, merge(A, atoll_mesh_members:bury(n1, A)))).

the_oldest_gone_are_forgotten_test() ->
    Members = atoll_mesh_members:from_list([{n1, {7, gone}}, {n2, {3, gone}}, {n3, {5, gone}}, {n4, {1, alive}}]),
    {Kept, 2} = atoll_mesh_members:forget(1, Members),
    ?assertEqual([{n1, {7, gone}}, {n4, {1, alive}}], atoll_mesh_members:to_list(Kept)).

nobody_is_buried_twice_or_unknown_test() ->
    A = atoll_mesh_members:bury(n1, atoll_mesh_members:new(n1, 1)),
    ?assertEqual(A, atoll_mesh_members:bury(n1, A)),
    ?assertEqual(A, atoll_mesh_members:bury(n9, A)).
