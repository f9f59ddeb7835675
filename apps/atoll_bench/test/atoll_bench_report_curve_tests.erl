%% SPDX-License-Identifier: Apache-2.0
-module(atoll_bench_report_curve_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

nothing_is_no_curve_test() ->
    ?assertEqual([], atoll_bench_report_curve:points([])).

a_single_bucket_is_a_rise_test() ->
    ?assertEqual([[100, 0.0], [127, 1.0]], atoll_bench_report_curve:points([{100, 127, 5}])).

many_buckets_are_a_few_hundred_points_also_in_the_tail_test() ->
    %% Each bucket holds half a percent of what lies above: a long tail.
    Buckets = [{I, I, max(1, round(1.0e9 * math:pow(0.995, I)))} || I <- lists:seq(1, 4000)],
    Points = atoll_bench_report_curve:points(Buckets),
    ?assert(length(Points) < 500),
    ?assert(length([Share || [_, Share] <- Points, Share > 0.999]) > 20).

%% As the table has it.
where_a_percentile_is_reached_is_where_it_lies_test_() ->
    atoll_prop:test(?FUNCTION_NAME, prop_marks(), 200).

prop_marks() ->
    %% Of a thousand it is exactly the last but one.
    ?FORALL({Seed, Count}, {integer(), oneof([choose(1, 20000), 1000])}, begin
        {Values, _} = lists:mapfoldl(
            fun(_, Rand0) ->
                {X, Rand} = rand:normal_s(Rand0),
                {round(100000 * math:exp(X)), Rand}
            end,
            rand:seed_s(exsss, Seed),
            lists:seq(1, Count)
        ),
        Hist = atoll_histogram:new(),
        lists:foreach(fun(V) -> ok = atoll_histogram:record(V, Hist) end, Values),
        Buckets = atoll_histogram:buckets(Hist),
        Points = atoll_bench_report_curve:points(Buckets),
        [] =:= [
            P
            %% 99.9 / 100 is more than 0.999.
         || {P, Mark} <- [{50, 0.5}, {90, 0.9}, {99, 0.99}, {99.9, 0.999}],
            [X | _] <- [hd([Point || [_, Share] = Point <- Points, Share >= Mark])],
            Told <- [atoll_histogram:percentile(Hist, P)],
            not lists:any(fun({Low, High, _}) -> High =:= X andalso Low =< Told andalso Told =< High end, Buckets)
        ]
    end).

no_time_is_zero_for_it_would_not_stand_on_a_logarithmic_axis_test() ->
    ?assertEqual([[1, 0.0], [1, 1.0]], atoll_bench_report_curve:points([{0, 0, 3}])).
