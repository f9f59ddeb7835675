-module(atoll_bench_run_tests).

-include_lib("eunit/include/eunit.hrl").

-define(A, #{size => 1, system => a}).
-define(B, #{size => 1, system => b}).

in_turns_test() ->
    {Summary, Run, Said} = run(#{size => [1]}, 3),
    ?assertMatch(#{points := 2, rounds := 6, failed := []}, Summary),
    ?assertMatch(#{status := complete, errors := []}, Run),
    %% Both are up before either is measured, and go together.
    ?assertEqual([{setup, ?A}, {setup, ?B}], lists:sublist(Said, 2)),
    ?assertEqual([{teardown, ?A}, {teardown, ?B}], lists:sort(lists:nthtail(10, Said))),
    Rounds = lists:sublist(Said, 3, 8),
    [?assertEqual([{round, ?A}, {round, ?B}], lists:sort(lists:sublist(Rounds, From, 2))) || From <- [1, 3, 5, 7]],
    %% The first, which warms up, is not kept.
    ?assertEqual([11, 12, 13], [V || #{<<"point">> := 0, <<"values">> := #{<<"rate">> := V}} <- maps:get(rounds, Run)]).

a_latency_is_kept_as_a_histogram_test() ->
    {_, #{rounds := [Round | _]}, _} = run(#{size => [2]}, 1),
    #{<<"histograms">> := #{<<"latency">> := Export}} = Round,
    {ok, Hist} = atoll_bench_hist:import(Export),
    ?assertEqual(1, atoll_bench_hist:count(Hist)),
    ?assert(abs(atoll_bench_hist:percentile(Hist, 50) - 2000) =< 2000 / 128).

of_numbers_for_many_the_median_counts_and_all_are_kept_test() ->
    {_, #{rounds := [Round | _]}, _} = run(#{size => [3], system => [a]}, 1),
    ?assertMatch(#{<<"values">> := #{<<"rate">> := 31}, <<"samples">> := #{<<"rate">> := [31, 1000, 0]}}, Round).

a_number_for_all_has_no_samples_test() ->
    {_, #{rounds := [Round | _]}, _} = run(#{size => [2], system => [a]}, 1),
    ?assertEqual(false, is_map_key(<<"samples">>, Round)).

a_point_that_fails_leaves_the_others_alone_test() ->
    {Summary, Run, Said} = run(#{size => [1], system => [broken, a, failing]}, 2),
    ?assertMatch(
        #{rounds := 2, failed := [{#{system := broken}, "it is broken"}, {#{system := failing}, "it failed"}]}, Summary
    ),
    ?assertEqual([0, 2], [P || #{<<"point">> := P} <- maps:get(errors, Run)]),
    %% All that was set up was taken down, once.
    Up = [P || {setup, P} <- Said],
    ?assertEqual(lists:sort(Up), lists:sort([P || {teardown, P} <- Said])).

a_file_that_is_there_is_not_touched_test() ->
    with_file(fun(File) ->
        ok = file:write_file(File, "mine"),
        {error, Error} = atoll_bench_run:run(atoll_bench_fake, #{file => File}),
        ?assertEqual(File ++ ": file already exists", unicode:characters_to_list(atoll_bench_run:format_error(Error))),
        ?assertEqual({ok, <<"mine">>}, file:read_file(File))
    end).

run(Sweep, Rounds) ->
    with_file(fun(File) ->
        {ok, Summary} = atoll_bench_run:run(atoll_bench_fake, #{sweep => Sweep, rounds => Rounds, file => File}),
        {ok, Run} = atoll_bench_file:read(File),
        {Summary, Run, said()}
    end).

said() ->
    receive
        {atoll_bench_fake, What} -> [What | said()]
    after 0 -> []
    end.

with_file(Fun) ->
    File = lists:flatten(
        io_lib:format("/tmp/atoll_bench_run_tests-~s-~b", [os:getpid(), erlang:unique_integer([positive])])
    ),
    try
        Fun(File)
    after
        file:delete(File)
    end.
