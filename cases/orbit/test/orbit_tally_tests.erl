%% SPDX-License-Identifier: Apache-2.0
-module(orbit_tally_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

a_fingerprint_does_not_depend_on_the_order_or_on_the_workers_test() ->
    Set = lists:seq(0, 1000),
    {Left, Right} = lists:split(300, Set),
    Sum = orbit_tally:add(orbit_tally:of_vertices(Right, 0, false),
                          orbit_tally:of_vertices(Left, 0, false)),
    ?assertEqual(orbit_tally:fingerprint(Set), orbit_tally:fingerprint(lists:reverse(Set))),
    ?assertEqual(orbit_tally:fingerprint(Set), maps:get(checksum, Sum)).

sets_of_one_size_differ_in_their_fingerprint_test() ->
    ?assertNotEqual(orbit_tally:fingerprint([1, 2, 3]), orbit_tally:fingerprint([1, 2, 4])).

vertices_are_kept_only_if_asked_for_test() ->
    ?assertMatch(#{vertices := [], size := 2}, orbit_tally:of_vertices([1, 2], 5, false)),
    ?assertMatch(#{vertices := [1, 2], size := 2}, orbit_tally:of_vertices([1, 2], 5, true)).

adding_is_associative_and_has_a_zero_test_() ->
    atoll_prop:test(
        ?FUNCTION_NAME,
        ?FORALL({A, B, C}, {tally(1), tally(2), tally(3)},
            orbit_tally:add(A, orbit_tally:add(B, C)) =:= orbit_tally:add(orbit_tally:add(A, B), C)
            andalso orbit_tally:add(A, orbit_tally:none()) =:= A
            andalso orbit_tally:add(orbit_tally:none(), A) =:= A),
        100
    ).

what_a_worker_says_counts_its_slots_test() ->
    Tally = orbit_tally:of_worker(7, 4, {0, 0, 0}, orbit_tally:of_vertices([1, 2, 3], 5, true)),
    #{workers := [#{part := 7, size := 3, received := 5, fill := #{slots := 4, nonempty := Nonempty, fullest := Fullest}}]} = Tally,
    ?assertEqual({true, true}, {Nonempty =< 3, Nonempty * Fullest >= 3}).

tally(Part) ->
    ?LET({Vertices, Received, Count}, {list(non_neg_integer()), non_neg_integer(), pos_integer()},
        orbit_tally:of_worker(Part, 10, {Count, 0, 0},
            (orbit_tally:of_vertices(Vertices, Received, true))#{credit_returned := Count, least_credit := Count})).
