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
        header => #{
            <<"benchmark">> => <<"fake">>,
            <<"points">> => [#{<<"size">> => Size} || Size <- Sizes],
            <<"metrics">> => [
                #{<<"name">> => <<"rate">>, <<"label">> => <<"Rate">>, <<"unit">> => <<>>, <<"better">> => <<"more">>, <<"kind">> => <<"value">>},
                #{<<"name">> => <<"time">>, <<"label">> => <<"Time">>, <<"unit">> => <<"ns">>, <<"better">> => <<"less">>, <<"kind">> => <<"latency">>}
            ]
        },
        rounds => [
            #{<<"point">> => Point, <<"values">> => #{<<"rate">> => V}, <<"histograms">> => #{<<"time">> => histogram(V)}}
         || {Point, V} <- Rounds
        ]
    }.

histogram(V) ->
    Hist = atoll_bench_hist:new(),
    _ = [atoll_bench_hist:record(V, Hist) || _ <- lists:seq(1, 98)],
    _ = [atoll_bench_hist:record(1000 * V, Hist) || _ <- lists:seq(1, 2)],
    atoll_bench_hist:export(Hist).
