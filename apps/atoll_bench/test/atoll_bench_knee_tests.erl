-module(atoll_bench_knee_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(SIZES, [4, 8, 12, 16, 20, 24, 32]).

%% Seven rounds at each size, with noise that the seed draws.
curve(Knee, Slope, Noise, Sizes, Seed) ->
    {Curve, _} = lists:mapfoldl(
        fun(N, R0) ->
            Share = min(1.0, (min(N, Knee) + Slope * max(0, N - Knee)) / N),
            {Shares, R} = lists:mapfoldl(
                fun(_, R1) ->
                    {X, R2} = rand:normal_s(R1),
                    {Share * (1 + Noise * X), R2}
                end,
                R0,
                lists:seq(1, 7)
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
            #{verdict := knee, nodes := Found, between := {A, B}, slope := B1} = atoll_bench_knee:find(curve(Knee, Slope, 0.0, ?SIZES, 1), #{}),
            ?assert(abs(Found - Knee) =< 0.2, {Knee, Found}),
            ?assert(A =< Found andalso Found =< B),
            ?assert(abs(B1 - Slope) =< 0.05)
        end
     || Knee <- [6, 10, 15, 20], Slope <- [0.5, 0.0, -0.3]
    ].

a_curve_that_follows_has_none_test() ->
    ?assertEqual(#{verdict => none, up_to => 32}, atoll_bench_knee:find(curve(100, 0, 0.0, ?SIZES, 1), #{})).

%% In any order.
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
    [
        {timeout, 120, {Name, fun() -> ?assert(proper:quickcheck(Property, [{numtests, Times}, {to_file, user}])) end}}
     || {Name, Times, Property} <- [
            {"a knee is found near where it is, in its interval or next to it", 40, near()},
            {"noise alone makes no knee", 60, none()},
            {"the interval holds the knee in most cases", 4, held()}
        ]
    ].

near() ->
    ?FORALL(
        {Knee, Slope, Noise, Seed},
        {float(5.0, 24.0), float(-0.5, 0.4), float(0.0, 0.02), integer()},
        begin
            #{verdict := knee, nodes := Found, low := Low, high := High} =
                atoll_bench_knee:find(curve(Knee, Slope, Noise, ?SIZES, Seed), #{resamples => 100}),
            ?WHENFAIL(
                io:format("knee ~p, found ~p (~p to ~p)~n", [Knee, Found, Low, High]),
                abs(Found - Knee) =< 4 andalso Low =< Found andalso Found =< High
            )
        end
    ).

none() ->
    ?FORALL(
        {Knee, Noise, Seed},
        {float(34.0, 100.0), float(0.0, 0.03), integer()},
        maps:get(verdict, atoll_bench_knee:find(curve(Knee, 0.0, Noise, ?SIZES, Seed), #{})) =:= none
    ).

%% Of 20 curves at one knee. The bootstrap keeps less than it says of so few rounds.
held() ->
    ?FORALL(
        {Knee, Begin},
        {float(9.0, 22.0), integer(1, 1000000)},
        begin
            Held = [
                1
             || Seed <- lists:seq(Begin, Begin + 19),
                #{low := Low, high := High} <- [atoll_bench_knee:find(curve(Knee, 0.0, 0.02, ?SIZES, Seed), #{resamples => 100})],
                Low - 0.15 =< Knee, Knee =< High + 0.15
            ],
            ?WHENFAIL(io:format("held ~p of 20 at ~p~n", [length(Held), Knee]), length(Held) >= 11)
        end
    ).
