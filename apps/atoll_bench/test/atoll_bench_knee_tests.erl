%% SPDX-License-Identifier: Apache-2.0
-module(atoll_bench_knee_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(SIZES, [4, 8, 12, 16, 20, 24, 32]).

%% Seven rounds at each size, with noise that the seed draws.
curve(Knee, Slope, Noise, Sizes, Seed) -> curve(Knee, Slope, {Noise, Noise}, 7, Sizes, Seed).

%% With other noise beyond the knee than before it.
curve(Knee, Slope, {Before, Beyond}, Rounds, Sizes, Seed) ->
    {Curve, _} = lists:mapfoldl(
        fun(N, R0) ->
            Share = min(1.0, (min(N, Knee) + Slope * max(0, N - Knee)) / N),
            Noise = if N =< Knee -> Before; true -> Beyond end,
            {Shares, R} = lists:mapfoldl(
                fun(_, R1) ->
                    {X, R2} = rand:normal_s(R1),
                    {Share * (1 + Noise * X), R2}
                end,
                R0,
                lists:seq(1, Rounds)
            ),
            {{N, Shares}, R}
        end,
        rand:seed_s(exsss, Seed),
        Sizes
    ),
    Curve.

a_knee_without_noise_is_found_where_it_is_test() ->
    [
        begin
            Curve = curve(Knee, Slope, 0.0, ?SIZES, 1),
            #{verdict := knee, nodes := Found, between := {A, B}, slope := B1} = atoll_bench_knee:find(Curve, #{}),
            ?assert(abs(Found - Knee) =< 0.2, {Knee, Found}),
            ?assert(A =< Found andalso Found =< B),
            ?assert(abs(B1 - Slope) =< 0.05)
        end
     || Knee <- [6, 10, 15, 20], Slope <- [0.5, 0.0, -0.3]
    ].

a_curve_that_follows_has_none_test() ->
    ?assertEqual(#{verdict => none, up_to => 32}, atoll_bench_knee:find(curve(100, 0, 0.0, ?SIZES, 1), #{})).

%% In any order.
a_shortfall_that_all_sizes_share_is_no_knee_test() ->
    Level = [{N, [0.952, 0.944, 0.939, 0.948, 0.941]} || N <- [8, 16]],
    ?assertEqual(
        #{verdict => at_most, nodes => 4},
        atoll_bench_knee:find([{4, [0.953, 0.955, 0.94, 0.945, 0.935]} | Level], #{tolerance => 0.953})
    ).

%% A level below 1 is the plateau's, and the knee is where it ends.
the_level_before_the_knee_need_not_be_all_test() ->
    Curve = [{N, [0.97 * min(1, 12 / N), 0.969 * min(1, 12 / N), 0.971 * min(1, 12 / N)]} || N <- ?SIZES],
    #{verdict := knee, nodes := Knee, low := Low, plateau := Plateau} = atoll_bench_knee:find(Curve, #{}),
    ?assert(abs(Knee - 12) < 0.3, Knee),
    ?assert(Low > 8, Low),
    ?assert(abs(Plateau - 0.97) < 0.002, Plateau).

a_curve_that_declines_from_its_start_has_its_knee_there_or_before_test() ->
    Curve = [{N, [S - 0.001, S, S + 0.001]} || {N, S} <- [{4, 0.97}, {8, 0.7}, {16, 0.565}, {32, 0.4975}]],
    ?assertEqual(#{verdict => at_most, nodes => 4}, atoll_bench_knee:find(Curve, #{})).

%% A gentle decline with rounds that differ: not at one number, with nothing around it.
a_gentle_decline_has_no_sharp_knee_test() ->
    Curve = [{N, [S - 0.01, S, S + 0.01]} || {N, S} <- [{4, 0.97}, {8, 0.96}, {16, 0.93}]],
    case atoll_bench_knee:find(Curve, #{}) of
        #{verdict := knee, low := Low, high := High} -> ?assert(High - Low >= 6, {Low, High});
        #{verdict := Verdict} -> ?assertEqual(at_most, Verdict)
    end.

few_rounds_that_differ_much_do_not_move_the_knee_to_a_size_that_follows_test() ->
    ?assertMatch(#{verdict := knee}, atoll_bench_knee:find([{4, [1.0, 1.0]}, {8, [0.93, 0.69]}], #{})).

one_round_says_nothing_of_the_interval_test() ->
    Curve = [{4, [1.0]}, {8, [1.0]}, {16, [0.75]}, {24, [0.5]}],
    #{verdict := knee, nodes := Knee, low := 4.0, high := 24.0} = atoll_bench_knee:find(Curve, #{}),
    ?assert(abs(Knee - 12) < 0.2, Knee).

%% 200 curves for each kind of noise, number of rounds and slope; seeded, so the same ones every
%% time. The first kind has the same noise before the knee and beyond, as the interval's
%% theory supposes; a mesh that is overloaded is like the second.
the_interval_holds_the_knee_in_90_of_100_curves_at_least_test_() ->
    [
        {lists:flatten(io_lib:format("~w", [{Noise, Rounds, Slope}])), {timeout, 60, fun() ->
            {Held, Widths} = held(Noise, Rounds, Slope),
            ?assert(Held >= 0.9 * length(Widths), {Held, length(Widths)}),
            %% There is a knee to be seen in nearly all; and all of the grid, 20, would hold each.
            ?assert(length(Widths) >= 185, length(Widths)),
            ?assert(atoll_bench_stats:median(Widths) =< 12, atoll_bench_stats:median(Widths))
        end}}
     || {Noise, Rounds, Slope} <- kinds(atoll_tier:tier())
    ].

kinds(fast) -> [{{0.02, 0.02}, 3, 0.0}, {{0.002, 0.05}, 5, 0.3}];
kinds(deep) -> [{Noise, Rounds, Slope} || Noise <- [{0.02, 0.02}, {0.002, 0.05}], Rounds <- [3, 5, 10], Slope <- [0.0, 0.3]].

%% How many intervals hold their knee, and how wide all are.
held(Noise, Rounds, Slope) ->
    Told = [
        {Low =< Knee andalso Knee =< High, High - Low}
     || Seed <- lists:seq(1, 200),
        Knee <- [9 + Seed * 12 / 200],
        #{verdict := knee, low := Low, high := High} <-
            [atoll_bench_knee:find(curve(Knee, Slope, Noise, Rounds, [4, 8, 16, 24], Seed), #{})]
    ],
    {length([Width || {true, Width} <- Told]), [Width || {_, Width} <- Told]}.

a_curve_that_falls_short_from_its_start_is_told_test() ->
    Curve = lists:reverse(curve(3, 0.0, 0.0, ?SIZES, 1)),
    ?assertEqual(#{verdict => at_most, nodes => 4}, atoll_bench_knee:find(Curve, #{})).

one_size_says_nothing_test() ->
    ?assertEqual(#{verdict => too_few}, atoll_bench_knee:find([{4, [0.1]}], #{})),
    ?assertEqual(#{verdict => too_few}, atoll_bench_knee:find([], #{})).

a_single_bad_round_makes_no_knee_test() ->
    Curve = [{4, [1.0, 1.0, 1.0, 1.0, 1.0]}, {8, [1.0, 1.0, 0.1, 1.0, 1.0]}],
    ?assertEqual(#{verdict => none, up_to => 8}, atoll_bench_knee:find(Curve, #{})).

the_tolerance_is_where_it_falls_short_test() ->
    Curve = [{4, [1.0]}, {8, [0.9]}],
    ?assertMatch(#{verdict := knee}, atoll_bench_knee:find(Curve, #{})),
    ?assertMatch(#{verdict := none}, atoll_bench_knee:find(Curve, #{tolerance => 0.85})).

the_same_seed_finds_the_same_test() ->
    Curve = curve(13, 0.1, 0.05, ?SIZES, 3),
    ?assertEqual(atoll_bench_knee:find(Curve, #{seed => 5}), atoll_bench_knee:find(Curve, #{seed => 5})).

properties_test_() ->
    atoll_prop:tests([
        {"a knee is found near where it is, in its interval or next to it", near(), 40},
        {"noise alone makes no knee", none(), 60}
    ]).

near() ->
    ?FORALL(
        {Knee, Slope, Noise, Seed},
        {float(5.0, 24.0), float(-0.5, 0.4), float(0.0, 0.02), integer()},
        begin
            #{verdict := knee, nodes := Found, low := Low, high := High} =
                atoll_bench_knee:find(curve(Knee, Slope, Noise, ?SIZES, Seed), #{}),
            ?WHENFAIL(
                io:format("knee ~p, found ~p (~p to ~p)~n", [Knee, Found, Low, High]),
                Low =< Found andalso Found =< High andalso
                    (abs(Found - Knee) =< 4 orelse (Low =< Knee andalso Knee =< High))
            )
        end
    ).

none() ->
    ?FORALL(
        {Knee, Noise, Seed},
        {float(34.0, 100.0), float(0.0, 0.03), integer()},
        maps:get(verdict, atoll_bench_knee:find(curve(Knee, 0.0, Noise, ?SIZES, Seed), #{})) =:= none
    ).
