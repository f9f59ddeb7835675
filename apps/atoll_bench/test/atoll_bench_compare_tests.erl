%% SPDX-License-Identifier: Apache-2.0
%% Two runs of the same thing are the same in at least 95 of 100 tries, and 10 per
%% cent are found in at least 95 of 100; so for one point and for a whole comparison.
%% The seeds are fixed, the samples are those of the rounds and noises for which the
%% module promises it.
-module(atoll_bench_compare_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(TRIES, 100).

%% What is drawn, and how many rounds.
-define(NOISES, [{normal, 15}, {lognormal, 15}, {slow_rounds, 20}, {ticks, 15}]).

the_same_is_the_same_test_() ->
    [
        {timeout, 60, {atom_to_list(Noise), ?_assertMatch(N when N >= 95, count(same, verdicts(Noise, Rounds, 1.0, more, 11)))}}
     || {Noise, Rounds} <- ?NOISES
    ].

ten_per_cent_are_found_test_() ->
    [
        {timeout, 60, {
            lists:flatten(io_lib:format("~s ~s is ~s", [Noise, Better, Verdict])),
            ?_assertMatch(N when N >= 95, count(Verdict, verdicts(Noise, Rounds, Factor, Better, 12)))
        }}
     || {Noise, Rounds} <- ?NOISES,
        {Factor, Better, Verdict} <- [
            {1.1, more, faster},
            {1.1, less, slower},
            {1 / 1.1, more, slower},
            {1 / 1.1, less, faster}
        ]
    ].

verdicts(Noise, Rounds, Factor, Better, Seed) ->
    rand:seed(exsss, Seed),
    [
        maps:get(verdict, atoll_bench_compare:two(run(Noise, Rounds, 1.0), run(Noise, Rounds, Factor), Better, #{}))
     || _ <- lists:seq(1, ?TRIES)
    ].

run(Noise, Rounds, Factor) ->
    [Factor * sample(Noise) || _ <- lists:seq(1, Rounds)].

sample(normal) -> 100 + 5 * rand:normal();
sample(lognormal) -> 100 * math:exp(0.05 * rand:normal());
%% One round in ten meets other work and is 20 to 100 per cent slower.
sample(slow_rounds) -> 100 * math:exp(0.03 * rand:normal()) * slowness(rand:uniform(10));
%% A clock of few ticks: many samples are equal.
sample(ticks) -> 4 * round(25 + 0.75 * rand:normal()).

slowness(1) -> 1.2 + 0.8 * rand:uniform();
slowness(_) -> 1.

count(What, List) ->
    length([X || X <- List, X =:= What]).

%% 40 points at once: a difference anywhere in 40 points of the same thing is found
%% in at most 5 of 100 comparisons.
a_whole_comparison_of_the_same_finds_nothing_test_() ->
    {timeout, 120, fun() ->
        rand:seed(exsss, 13),
        Found = [
            [Key || {Key, #{verdict := V}} <- atoll_bench_compare:all(points(fun(_) -> 1.0 end), #{}), V =:= faster orelse V =:= slower]
         || _ <- lists:seq(1, ?TRIES)
        ],
        ?assertMatch(N when N >= 95, count([], Found))
    end}.

%% Those that are 10 per cent slower are found among them.
a_whole_comparison_finds_what_changed_test_() ->
    [
        {timeout, 120, fun() ->
            rand:seed(exsss, 14),
            Factor = fun
                (Key) when Key =< Changed -> 1.1;
                (_) -> 1.0
            end,
            Results = lists:append([atoll_bench_compare:all(points(Factor), #{}) || _ <- lists:seq(1, 40)]),
            Found = [Key || {Key, #{verdict := slower}} <- Results],
            Right = length([Key || Key <- Found, Key =< Changed]),
            ?assertMatch(Share when Share >= 0.95, Right / (40 * Changed)),
            %% And of what is found at most one in 20 is none.
            ?assert(20 * (length(Found) - Right) =< length(Found))
        end}
     || Changed <- changed(atoll_tier:tier())
    ].

changed(fast) -> [10];
changed(deep) -> [1, 10, 40].

points(Factor) ->
    [{Key, run(narrow, Key, 1.0, 12), run(narrow, Key, Factor(Key), 12), less} || Key <- lists:seq(1, 40)].

%% Of a standard deviation of 3 per cent, each point of another size.
run(narrow, Size, Factor, Rounds) ->
    [Factor * Size * (1 + 0.03 * rand:normal()) || _ <- lists:seq(1, Rounds)].

too_few_rounds_are_unclear_test() ->
    Verdict = fun(First, Second) -> maps:get(verdict, atoll_bench_compare:two(First, Second, more, #{})) end,
    Five = [1.0, 1.01, 1.02, 1.03, 1.04],
    ?assertEqual(unclear, Verdict([1, 1, 1, 1], [2, 2, 2, 2])),
    ?assertEqual(unclear, Verdict(Five, [9.0])),
    ?assertEqual(unclear, Verdict([9.0], Five)),
    ?assertEqual(same, Verdict(Five, Five)),
    ?assertEqual(faster, Verdict(Five, [2 * S || S <- Five])).

%% Nothing is found, and nothing is ruled out.
noise_is_unclear_and_not_the_same_test() ->
    First = [100, 60, 180, 90, 140, 70],
    ?assertMatch(#{verdict := unclear}, atoll_bench_compare:two(First, lists:reverse([S + 1 || S <- First]), more, #{})).

%% However sure: 1 per cent.
a_small_difference_is_none_test() ->
    First = [1000 + N || N <- lists:seq(1, 20)],
    Second = [S * 1.015 || S <- First],
    #{verdict := same, p := P, low := Low} = atoll_bench_compare:two(First, Second, more, #{}),
    ?assert(P < 0.001 andalso Low > 1),
    ?assertMatch(#{verdict := faster}, atoll_bench_compare:two(First, Second, more, #{least => 0.01})).

what_is_zero_has_no_ratio_test() ->
    Zeros = lists:duplicate(6, 0),
    Lost = [3, 4, 5, 6, 7, 8],
    Two = fun(A, B) -> atoll_bench_compare:two(A, B, less, #{}) end,
    ?assertMatch(#{verdict := same, ratio := none}, Two(Zeros, Zeros)),
    ?assertMatch(#{verdict := slower, ratio := none, low := none}, Two(Zeros, Lost)),
    ?assertMatch(#{verdict := faster}, Two(Lost, Zeros)),
    ?assertMatch(#{verdict := unclear}, Two(Zeros, [0, 0, 0, 0, 0, 1])).

%% Equal medians, and yet one run is the worse.
a_few_that_are_not_zero_decide_test() ->
    Zeros = lists:duplicate(20, 0),
    Some = lists:duplicate(11, 0) ++ lists:duplicate(9, 1),
    Two = fun(A, B, Better) -> maps:get(verdict, atoll_bench_compare:two(A, B, Better, #{})) end,
    ?assertEqual([slower, faster], [Two(Zeros, Some, Better) || Better <- [less, more]]),
    ?assertEqual([faster, slower], [Two(Some, Zeros, Better) || Better <- [less, more]]).

nothing_to_compare_is_nothing_test() ->
    ?assertEqual([], atoll_bench_compare:all([], #{})).

%% Whichever run is first: the factor is turned over, and so is the verdict.
mirror_test_() ->
    atoll_prop:test(?FUNCTION_NAME, prop_mirror(), 300).

prop_mirror() ->
    ?FORALL({As, Bs, Better}, {samples(), samples(), oneof([more, less])}, begin
        #{ratio := R, low := L, high := H, p := P, verdict := V} = atoll_bench_compare:two(As, Bs, Better, #{}),
        #{ratio := R1, low := L1, high := H1, p := P1, verdict := V1} = atoll_bench_compare:two(Bs, As, Better, #{}),
        P =:= P1 andalso V1 =:= turned(V) andalso
            case {R, R1} of
                {none, none} ->
                    {L, H, L1, H1} =:= {none, none, none, none};
                _ ->
                    near(L * H1, 1) andalso near(H * L1, 1) andalso L =< R andalso R =< H andalso
                        (abs(R * R1 - 1) < 0.5)
            end
    end).

%% Also counts of something rare, of which most are zero.
samples() ->
    ?LET({N, {Low, High}}, {choose(5, 20), oneof([{50, 90}, {0, 3}, {0, 1}])}, vector(N, choose(Low, High))).

turned(faster) -> slower;
turned(slower) -> faster;
turned(Verdict) -> Verdict.

near(A, B) ->
    abs(A - B) < 1.0e-9.

%% Five against five: of the smallest p-values, 1/126, 2/126 and 4/126, the first two are
%% below the level of 0.02.
five(Overlaps) ->
    First = [100, 101, 102, 103, 104],
    Second = [200 + N || N <- lists:seq(1, 5 - length(Overlaps))] ++ Overlaps,
    {one, First, Second, more}.

verdicts(Comparisons, Options) ->
    [V || {_, #{verdict := V}} <- atoll_bench_compare:all(Comparisons, Options)].

two_of_a_hundred_is_the_level_test() ->
    ?assertEqual([faster], verdicts([five([])], #{})),
    ?assertEqual([faster], verdicts([five([103.5])], #{})),
    ?assertEqual([unclear], verdicts([five([102.5])], #{})),
    ?assertEqual([faster], verdicts([five([102.5])], #{level => 0.05})).

%% One alone would have to be below 0.01; both together need not.
many_that_differ_vouch_for_each_other_test() ->
    ?assertEqual([faster, faster], verdicts([five([103.5]), five([103.5])], #{})),
    ?assertEqual([unclear, unclear], verdicts([five([103.5]), five([102.5])], #{})).

%% However many there are of the others.
four_are_too_few_test() ->
    Many = [100 + N || N <- lists:seq(1, 20)],
    ?assertMatch(#{verdict := unclear, p := P} when P < 0.001, atoll_bench_compare:two(Many, [1, 2, 3, 4], more, #{})),
    ?assertMatch(#{verdict := unclear}, atoll_bench_compare:two([1, 2, 3, 4], Many, more, #{})),
    ?assertMatch(#{verdict := slower}, atoll_bench_compare:two(Many, [1, 2, 3, 4, 5], more, #{})).

of_no_samples_nothing_is_said_test() ->
    ?assertMatch(#{verdict := unclear, ratio := none}, atoll_bench_compare:two([], [1, 2, 3, 4, 5], more, #{})),
    ?assertMatch(#{verdict := unclear, ratio := none}, atoll_bench_compare:two([1, 2, 3, 4, 5], [], more, #{})).
