%% SPDX-License-Identifier: Apache-2.0
%% Two runs are set side by side by the values of their points.
-module(atoll_bench_pair_tests).

-include_lib("eunit/include/eunit.hrl").

points_are_found_by_their_values_and_not_by_their_numbers_test() ->
    First = run([1, 2], [{0, 10}, {1, 20}, {0, 11}]),
    Second = run([3, 2, 1], [{2, 100}, {1, 200}, {0, 300}]),
    {ok, Comparisons} = atoll_bench_pair:comparisons(First, Second),
    ?assertEqual(
        [{1, value, [10, 11], [100], more}, {2, value, [20], [200], more}],
        [{Size, What, A, B, Better} || {{#{<<"size">> := Size}, _, What}, A, B, Better} <- Comparisons, What =:= value]
    ).

of_a_latency_the_percentiles_of_each_round_are_samples_test() ->
    {ok, Comparisons} = atoll_bench_pair:comparisons(run([1], [{0, 10}, {0, 20}]), run([1], [{0, 30}])),
    Of = fun(Wanted) -> hd([{A, B, Better} || {{_, _, What}, A, B, Better} <- Comparisons, What =:= Wanted]) end,
    %% A round of V has times of V in 98 of 100 cases, and of 1,000 V in the others.
    Near = fun(Expected, Told) -> ?assert(abs(Told - Expected) * 128 =< Expected) end,
    {[P50, P50b], [P50c], less} = Of(p50),
    [Near(E, T) || {E, T} <- [{10, P50}, {20, P50b}, {30, P50c}]],
    {[P99, P99b], [P99c], less} = Of(p99),
    [Near(E, T) || {E, T} <- [{10000, P99}, {20000, P99b}, {30000, P99c}]].

what_only_one_has_measured_is_left_out_test() ->
    {ok, Comparisons} = atoll_bench_pair:comparisons(run([1, 2], [{0, 10}]), run([1, 2], [{0, 10}, {1, 10}])),
    ?assertEqual([1], lists:usort([Size || {{#{<<"size">> := Size}, _, _}, _, _, _} <- Comparisons])).

what_cannot_be_compared_is_one_sentence_test_() ->
    Run = run([1], [{0, 10}]),
    #{header := Header} = Run,
    Sentence = fun(Second) ->
        {error, Error} = atoll_bench_pair:comparisons(Run, Second),
        unicode:characters_to_list(atoll_bench_pair:format_error(Error))
    end,
    [
        ?_assertEqual("the two runs have no point in common", Sentence(run([2], [{0, 10}]))),
        ?_assertEqual("the two runs have no point in common", Sentence(run([1], []))),
        ?_assertEqual("one is a run of fake, the other of real", Sentence(maps:put(header, maps:put(<<"benchmark">>, <<"real">>, Header), Run)))
    ].

run(Sizes, Rounds) ->
    #{
        file => "fake.jsonl",
        errors => [],
        header => #{
            <<"benchmark">> => <<"fake">>,
            <<"points">> => [#{<<"size">> => Size} || Size <- Sizes],
            <<"metrics">> => [
                #{<<"name">> => <<"rate">>, <<"label">> => <<"Rate">>, <<"unit">> => <<>>, <<"better">> => <<"more">>, <<"kind">> => <<"value">>},
                #{<<"name">> => <<"time">>, <<"label">> => <<"Time">>, <<"unit">> => <<"ns">>, <<"better">> => <<"less">>, <<"kind">> => <<"latency">>}
            ]
        },
        rounds => [
            #{<<"point">> => Point, <<"start">> => Start, <<"values">> => #{<<"rate">> => V}, <<"histograms">> => #{<<"time">> => histogram(V)}}
         || {Start, {Point, V}} <- lists:zip(lists:seq(1, length(Rounds)), Rounds)
        ]
    }.

histogram(V) ->
    Hist = atoll_histogram:new(),
    _ = [atoll_histogram:record(V, Hist) || _ <- lists:seq(1, 98)],
    _ = [atoll_histogram:record(1000 * V, Hist) || _ <- lists:seq(1, 2)],
    atoll_histogram:export(Hist).

rounds(Run, Rounds) ->
    Run#{rounds := [#{<<"point">> => 0, <<"start">> => S, <<"values">> => #{<<"rate">> => V}, <<"others_cpu">> => O, <<"histograms">> => #{}} || {S, V, O} <- Rounds]}.

rates(First, Second) ->
    {ok, Comparisons} = atoll_bench_pair:comparisons(First, Second),
    hd([{A, B} || {{_, #{<<"name">> := <<"rate">>}, _}, A, B, _} <- Comparisons]).

a_sample_is_the_median_of_a_start_test() ->
    Run = rounds(run([1], []), [{1, 10, 0.0}, {1, 30, 0.0}, {1, 11, 0.0}, {2, 5, 0.0}, {2, 7, null}]),
    ?assertEqual({[11, 6.0], [11, 6.0]}, rates(Run, Run)).

disturbed_rounds_do_not_enter_test() ->
    Run = rounds(run([1], []), [{1, 10, 0.0}, {1, 30, 0.06}, {2, 5, 0.5}, {3, 7, 0.05}]),
    ?assertEqual({[10, 7], [10, 7]}, rates(Run, Run)),
    ?assertEqual({[10, 7], []}, rates(Run, rounds(Run, [{1, 10, 0.9}]))).

a_metric_that_follows_from_another_is_left_out_test() ->
    #{header := #{<<"metrics">> := [Rate, Time]} = Header} = Run = run([1], [{0, 10}]),
    Derived = Run#{header := Header#{<<"metrics">> := [Rate#{<<"derived">> => true}, Time]}},
    {ok, Comparisons} = atoll_bench_pair:comparisons(Derived, Derived),
    ?assertEqual([p50, p99], [What || {{_, _, What}, _, _, _} <- Comparisons]).

what_is_left_out_is_told_test() ->
    Said = fun(A, B) -> [unicode:characters_to_list(Sentence) || Sentence <- atoll_bench_pair:left_out(A, B)] end,
    Whole = rounds(run([1, 2], []), [{S, 10, 0.0} || S <- [1, 2, 3, 4, 5]]),
    ?assertEqual([], Said(Whole, Whole)),
    Less = (rounds(run([2, 7, 8], []), [{1, 10, 0.0}, {1, 10, 0.3}]))#{file := "b.jsonl", errors := [#{}]},
    ?assertEqual(
        [
            "1 point of fake.jsonl is only in this run.",
            "2 points of b.jsonl are only in this run.",
            "1 point failed in b.jsonl.",
            "1 of 2 rounds of b.jsonl were disturbed by other processes, and are left out.",
            "b.jsonl has 1 start of its nodes; with fewer than 5 all is unclear."
        ],
        Said(Whole, Less)
    ).
