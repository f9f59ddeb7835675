-module(atoll_bench_report_curve_tests).

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

no_time_is_zero_for_it_would_not_stand_on_a_logarithmic_axis_test() ->
    ?assertEqual([[1, 0.0], [1, 1.0]], atoll_bench_report_curve:points([{0, 0, 3}])).
