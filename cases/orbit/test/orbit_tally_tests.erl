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
        ?FORALL({A, B, C}, {tally(a), tally(b), tally(c)},
            orbit_tally:add(A, orbit_tally:add(B, C)) =:= orbit_tally:add(orbit_tally:add(A, B), C)
            andalso orbit_tally:add(A, orbit_tally:none()) =:= A
            andalso orbit_tally:add(orbit_tally:none(), A) =:= A),
        100
    ).

packets_that_nobody_has_counted_stay_unknown_test() ->
    ?assertEqual([3, unknown, unknown], [orbit_tally:difference(Now, Before) || {Now, Before} <- [{7, 4}, {unknown, 4}, {7, unknown}]]),
    %% Of a connection that went nothing is known any more.
    ?assertEqual(0, orbit_tally:difference(3, 4)).

tally(Node) ->
    ?LET({Vertices, Received, Count}, {list(non_neg_integer()), non_neg_integer(), pos_integer()},
        (orbit_tally:of_vertices(Vertices, Received, true))#{
            messages := #{vertex => Count, gateway => 2 * Count, credit => 0, control => 1},
            packets := case Count rem 5 of 0 -> unknown; _ -> Count end,
            connections := #{Node => Count}
        }).
