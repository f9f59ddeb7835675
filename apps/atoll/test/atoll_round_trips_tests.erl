%% SPDX-License-Identifier: Apache-2.0
%% Who is in the result of a measurement, and who is blamed for what. On nodes it is atoll_distance_SUITE.
-module(atoll_round_trips_tests).

-include_lib("eunit/include/eunit.hrl").

-define(NODES, [a, b, c, d]).

all_that_measured_all_are_in_it_test() ->
    ?assertEqual({?NODES, [], []}, atoll_round_trips:left(?NODES, ?NODES, [], [])).

who_is_silent_costs_its_own_pairs_test() ->
    ?assertEqual({[a, b, d], [c], []}, atoll_round_trips:left(?NODES, [a, b, d], both(c), [])),
    ?assertEqual({[a], [b], []}, atoll_round_trips:left([a, b], [a], [{a, b}], [])).

who_is_late_is_not_called_silent_test() ->
    ?assertEqual({[a, b, d], [], [c]}, atoll_round_trips:left(?NODES, ?NODES, [], both(c))),
    ?assertEqual({[a, d], [b], [c]}, atoll_round_trips:left(?NODES, [a, c, d], [], both(c) ++ both(b))).

where_nobody_has_measured_all_nobody_is_left_test() ->
    ?assertEqual({[], [], ?NODES}, atoll_round_trips:left(?NODES, ?NODES, [], pairs())),
    ?assertEqual({[], [d], [a, b, c]}, atoll_round_trips:left(?NODES, [a, b, c], [], pairs())).

two_that_do_not_answer_each_other_are_not_in_one_result_test() ->
    ?assertEqual({[a, b, c], [d], []}, atoll_round_trips:left(?NODES, ?NODES, [{a, d}, {b, d}], [])),
    ?assertEqual({[], [a, b], []}, atoll_round_trips:left([a, b], [a, b], [{a, b}], [])).

one_alone_measures_nothing_and_is_not_blamed_test() ->
    ?assertEqual({[a], [], []}, atoll_round_trips:left([a], [a], [], [])).

pairs() -> [{A, B} || A <- ?NODES, B <- ?NODES, A =/= B].

both(Node) -> [Pair || {A, B} = Pair <- pairs(), A =:= Node orelse B =:= Node].
