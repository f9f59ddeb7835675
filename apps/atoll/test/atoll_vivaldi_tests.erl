%% SPDX-License-Identifier: Apache-2.0
%% Coordinates come to where estimates are right, and neither an outlier nor what a stranger
%% sends throws them off.
-module(atoll_vivaldi_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

two_nodes_come_to_be_as_far_as_their_round_trip_test() ->
    {A, B, _} = together(200, 40.0, atoll_vivaldi:new(), atoll_vivaldi:new(), rand:seed_s(exsss, 1)),
    Estimate = atoll_vivaldi:estimate(atoll_vivaldi:coordinate(A), atoll_vivaldi:coordinate(B)),
    ?assert(abs(Estimate - 40.0) < 0.4),
    ?assert(atoll_vivaldi:error(A) < 0.05).

together(0, _Ms, A, B, Rand) ->
    {A, B, Rand};
together(N, Ms, A0, B0, Rand0) ->
    {A, Rand1} = atoll_vivaldi:update(Ms, atoll_vivaldi:coordinate(B0), A0, Rand0),
    {B, Rand} = atoll_vivaldi:update(Ms, atoll_vivaldi:coordinate(A), B0, Rand1),
    together(N - 1, Ms, A, B, Rand).

a_node_that_is_settled_leaves_out_what_does_not_fit_test() ->
    {A, B, Rand} = together(200, 40.0, atoll_vivaldi:new(), atoll_vivaldi:new(), rand:seed_s(exsss, 1)),
    {After, Rand2} = atoll_vivaldi:update(4000.0, atoll_vivaldi:coordinate(B), A, Rand),
    ?assertEqual(atoll_vivaldi:coordinate(A), atoll_vivaldi:coordinate(After)),
    ?assertEqual(1, atoll_vivaldi:rejected(After)),
    %% Until that is what there is.
    {Moved, There, _} = together(1000, 400.0, After, B, Rand2),
    ?assert(abs(atoll_vivaldi:estimate(atoll_vivaldi:coordinate(Moved), atoll_vivaldi:coordinate(There)) - 400) < 20),
    ?assert(atoll_vivaldi:rejected(Moved) < 50).

one_slow_answer_of_five_counts_for_nothing_test() ->
    ?assertEqual(2.1, atoll_vivaldi:smoothed([2.2, 900.0, 2.1, 2.0, 2.3])),
    ?assertEqual(2.1, atoll_vivaldi:smoothed([2.2, 900.0, 2.1, 2.0, 2.3, 0.1])),
    ?assertEqual(7.0, atoll_vivaldi:smoothed([7.0])),
    ?assertEqual(6.0, atoll_vivaldi:smoothed([7.0, 6.0])).

what_is_no_coordinate_is_known_test_() ->
    {Point, Height, Error} = Good = atoll_vivaldi:coordinate(atoll_vivaldi:new()),
    [?_assert(atoll_vivaldi:is_coordinate(Good))] ++
        [
            ?_assertNot(atoll_vivaldi:is_coordinate(Bad))
         || Bad <- [
                nothing, {tl(Point), Height, Error}, {[1 | tl(Point)], Height, Error}, {[1.0e9 | tl(Point)], Height, Error},
                {Point, -1.0, Error}, {Point, 1.0e9, Error}, {Point, 1, Error}, {Point, Height, 2.0}, {Point, Height, -0.1},
                {hd(Point), Height, Error}, {[1.0 | 1.0], Height, Error}
            ]
        ].

whatever_comes_the_place_is_a_coordinate_test_() ->
    atoll_prop:test(
        ?FUNCTION_NAME,
        ?FORALL({Seed, Samples}, {choose(1, 1000), list({coordinate(), oneof([0, -1, 0.001, 1.0e7, float(0.0, 60000.0)])})}, begin
            {Place, _} = lists:foldl(
                fun({C, Ms}, {P, R}) -> atoll_vivaldi:update(Ms, C, P, R) end,
                {atoll_vivaldi:new(), rand:seed_s(exsss, Seed)},
                Samples
            ),
            atoll_vivaldi:is_coordinate(atoll_vivaldi:coordinate(Place))
        end),
        500
    ).

coordinate() ->
    Count = length(element(1, atoll_vivaldi:coordinate(atoll_vivaldi:new()))),
    Number = oneof([0.0, 60000.0, -60000.0, float(-500.0, 500.0)]),
    ?SUCHTHAT(C, {vector(Count, Number), float(0.0, 60000.0), float(0.0, 1.5)}, atoll_vivaldi:is_coordinate(C)).
