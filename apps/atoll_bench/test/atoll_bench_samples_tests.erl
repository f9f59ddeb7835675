%% SPDX-License-Identifier: Apache-2.0
-module(atoll_bench_samples_tests).

-include_lib("eunit/include/eunit.hrl").

what_was_not_measured_is_no_sample_test() ->
    Rounds = [round(#{<<"rate">> => V}, #{}) || V <- [3, null, 1, 2]] ++ [round(#{}, #{})],
    ?assertEqual([3, 1, 2], atoll_bench_samples:all(<<"rate">>, value, Rounds)),
    ?assertMatch({ok, {2, none, none}}, atoll_bench_samples:summary(<<"rate">>, value, Rounds)),
    ?assertEqual(none, atoll_bench_samples:summary(<<"other">>, value, Rounds)),
    ?assertEqual(none, atoll_bench_samples:summary(<<"rate">>, 50, Rounds)).

each_round_of_a_latency_is_a_sample_test() ->
    Rounds = [round(#{}, #{<<"time">> => histogram(Values)}) || Values <- [[100], [], [10, 20, 200]]],
    ?assertEqual([100, 20], atoll_bench_samples:all(<<"time">>, 50, Rounds)),
    ?assertEqual([100, 200], atoll_bench_samples:all(<<"time">>, 99, Rounds)).

round(Values, Histograms) ->
    #{<<"values">> => Values, <<"histograms">> => Histograms}.

histogram(Values) ->
    Hist = atoll_histogram:new(),
    _ = [atoll_histogram:record(V, Hist) || V <- Values],
    {ok, Read} = atoll_bench_json:decode(atoll_bench_json:encode(atoll_histogram:export(Hist))),
    Read.

fewer_than_five_rounds_have_no_interval_test() ->
    Rounds = fun(Count) -> [#{<<"values">> => #{<<"rate">> => N}} || N <- lists:seq(1, Count)] end,
    ?assertEqual({ok, {2.5, none, none}}, atoll_bench_samples:summary(<<"rate">>, value, Rounds(4))),
    ?assertEqual({ok, {3, 1, 5}}, atoll_bench_samples:summary(<<"rate">>, value, Rounds(5))).
