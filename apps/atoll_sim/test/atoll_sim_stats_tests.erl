%% SPDX-License-Identifier: Apache-2.0
%% Numbers about numbers.
-module(atoll_sim_stats_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

a_percentile_is_one_of_the_values_test() ->
    Values = [15, 20, 35, 40, 50],
    ?assertEqual([15, 20, 20, 35, 50], [atoll_sim_stats:percentile(Values, P) || P <- [0, 30, 40, 50, 100]]).

the_seventh_of_a_hundred_is_the_seventh_per_cent_test() ->
    ?assertEqual(7, atoll_sim_stats:percentile(lists:seq(1, 100), 7)).

no_values_have_none_test() ->
    ?assertEqual(none, atoll_sim_stats:percentile([], 50)),
    ?assertEqual(none, atoll_sim_stats:percentile(#{}, 50)),
    ?assertEqual(none, atoll_sim_stats:mean([])).

the_share_of_nothing_is_all_test() ->
    ?assertEqual(1.0, atoll_sim_stats:share(0, 0)),
    ?assertEqual(0.25, atoll_sim_stats:share(1, 4)).

properties_test_() ->
    atoll_prop:test(?FUNCTION_NAME, prop_tally(), 500).

%% A tally says what the list says, and the percentile is what it is by definition.
prop_tally() ->
    ?FORALL({Values, P}, {non_empty(list(choose(0, 30))), choose(0, 100)}, begin
        Tally = atoll_sim_stats:tally(Values),
        Value = atoll_sim_stats:percentile(Values, P),
        Below = fun(V) -> length([X || X <- Values, X =< V]) end,
        atoll_sim_stats:percentile(Tally, P) =:= Value andalso
            lists:member(Value, Values) andalso
            100 * Below(Value) >= P * length(Values) andalso
            (Value =:= lists:min(Values) orelse 100 * Below(Value - 1) < P * length(Values)) andalso
            abs(atoll_sim_stats:mean(Tally) - atoll_sim_stats:mean(Values)) < 1.0e-9 andalso
            atoll_sim_stats:count(Tally) =:= length(Values)
    end).
