%% SPDX-License-Identifier: Apache-2.0
%% Numbers about samples.
-module(atoll_bench_stats_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

known_numbers_test() ->
    Samples = [2, 4, 4, 4, 5, 5, 7, 9],
    ?assertEqual(4.5, atoll_bench_stats:median(Samples)),
    ?assertEqual(5, atoll_bench_stats:median([9, 1, 5])),
    ?assertEqual(5.0, atoll_bench_stats:mean(Samples)),
    ?assert(abs(atoll_bench_stats:sd(Samples) - math:sqrt(32 / 7)) < 1.0e-12),
    ?assertEqual([2, 4, 5, 9], [atoll_bench_stats:percentile(Samples, P) || P <- [0, 50, 75, 100]]),
    ?assertEqual(7, atoll_bench_stats:percentile(lists:seq(1, 100), 7)),
    ?assertEqual(999, atoll_bench_stats:percentile(lists:seq(1, 1000), 99.9)).

one_sample_tells_nothing_of_the_spread_test() ->
    ?assertEqual(none, atoll_bench_stats:sd([3])),
    ?assertEqual({3, 3}, atoll_bench_stats:interval([3], #{seed => 1})).

no_samples_are_an_error_test() ->
    [?assertError(_, atoll_bench_stats:F([])) || F <- [median, mean, sd]].

the_interval_hangs_on_the_seed_alone_test() ->
    Samples = [math:sin(I) + 2 || I <- lists:seq(1, 15)],
    Interval = fun(Seed) -> atoll_bench_stats:interval(Samples, #{seed => Seed, resamples => 50}) end,
    ?assertEqual(Interval(1), Interval(1)),
    ?assert(length(lists:usort([Interval(Seed) || Seed <- lists:seq(1, 20)])) > 1).

a_higher_level_is_not_narrower_test() ->
    Samples = [math:sin(I) + 2 || I <- lists:seq(1, 15)],
    At = fun(Level) -> atoll_bench_stats:interval(Samples, #{seed => 1, level => Level}) end,
    {Low, High} = At(0.5),
    {Lower, Higher} = At(0.99),
    ?assert(Lower < Low andalso High < Higher).

%% Of 200 sets of 15 samples; the true median is 100.
the_interval_holds_the_true_median_test_() ->
    {timeout, 60, fun() ->
        rand:seed(exsss, 21),
        Holds = fun(Seed) ->
            Samples = [100 * math:exp(0.1 * rand:normal()) || _ <- lists:seq(1, 15)],
            {Low, High} = atoll_bench_stats:interval(Samples, #{seed => Seed}),
            Low =< 100 andalso 100 =< High
        end,
        Held = length([Seed || Seed <- lists:seq(1, 200), Holds(Seed)]),
        ?assertMatch(N when N >= 170 andalso N =< 198, Held)
    end}.

properties_test_() ->
    atoll_prop:tests([{median, prop_median(), 300}, {interval, prop_interval(), 300}]).

samples() ->
    non_empty(list(oneof([choose(-50, 50), float()]))).

%% As many are above the median as below.
prop_median() ->
    ?FORALL(Samples, samples(), begin
        Median = atoll_bench_stats:median(Samples),
        2 * length([S || S <- Samples, S < Median]) =< length(Samples) andalso
            2 * length([S || S <- Samples, S > Median]) =< length(Samples)
    end).

prop_interval() ->
    ?FORALL({Samples, Seed}, {samples(), integer()}, begin
        {Low, High} = atoll_bench_stats:interval(Samples, #{seed => Seed, resamples => 200}),
        lists:min(Samples) =< Low andalso Low =< atoll_bench_stats:median(Samples) andalso
            atoll_bench_stats:median(Samples) =< High andalso High =< lists:max(Samples)
    end).
