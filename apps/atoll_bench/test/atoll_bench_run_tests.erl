%% SPDX-License-Identifier: Apache-2.0
-module(atoll_bench_run_tests).

-include_lib("eunit/include/eunit.hrl").

-define(A, #{size => 1, system => a}).
-define(B, #{size => 1, system => b}).

%% Before and after each round all processes of the machine are read, which may be many.
in_turns_test_() ->
    {timeout, 60, fun in_turns/0}.

in_turns() ->
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

all_are_set_up_anew_for_each_start_test_() ->
    {timeout, 60, fun() ->
        {_, #{rounds := Rounds, header := Header}, Said} = run(#{size => [1], system => [a]}, 3, 2),
        ?assertEqual([{1, 1}, {1, 2}, {2, 3}], [{S, R} || #{<<"start">> := S, <<"round">> := R} <- Rounds]),
        %% Each start warms up by itself.
        ?assertEqual([setup, round, round, round, teardown, setup, round, round, teardown], [What || {What, P} <- Said, P =:= ?A]),
        ?assertEqual([11, 12, 11], [V || #{<<"values">> := #{<<"rate">> := V}} <- Rounds]),
        ?assertMatch(#{<<"starts">> := 2}, Header)
    end}.

%% The variants of a round have the same, so that what is compared is the same work.
no_round_of_any_start_has_the_seed_of_another_test_() ->
    {timeout, 60, fun() ->
        {_, #{rounds := Rounds}, _} = run(#{size => [1], system => [seeded, seeding]}, 7, 3),
        Of = fun(Point) -> [Seed || #{<<"point">> := P, <<"values">> := #{<<"rate">> := Seed}} <- Rounds, P =:= Point] end,
        ?assertMatch({7, 7}, {length(Of(0)), length(lists:usort(Of(0)))}),
        ?assertEqual(lists:sort(Of(0)), lists:sort(Of(1)))
    end}.

there_are_five_starts_and_never_more_than_rounds_test_() ->
    {timeout, 60, fun() ->
        [
            with_file(fun(File) ->
                {ok, _} = atoll_bench_run:run(atoll_bench_fake, #{sweep => #{size => [1], system => [a]}, rounds => Rounds, file => File}),
                {ok, #{header := #{<<"starts">> := Told}, rounds := Kept}} = atoll_bench_file:read(File),
                ?assertEqual({Starts, Starts}, {Told, length(lists:usort([S || #{<<"start">> := S} <- Kept]))}),
                _ = said()
            end)
         || {Rounds, Starts} <- [{12, 5}, {3, 3}]
        ]
    end}.

what_has_failed_is_not_started_again_test_() ->
    {timeout, 60, fun() ->
        {#{failed := Failed}, #{errors := Errors}, Said} = run(#{size => [1], system => [broken, a, failing]}, 4, 4),
        ?assertMatch({2, 2}, {length(Failed), length(Errors)}),
        ?assertEqual(1, length([P || {setup, #{system := failing} = P} <- Said])),
        ?assertEqual(4, length([P || {setup, P} <- Said, P =:= ?A])),
        ?assertEqual(lists:sort([P || {setup, P} <- Said]), lists:sort([P || {teardown, P} <- Said]))
    end}.

%% One that is no child of this VM.
what_others_use_meanwhile_stands_with_the_round_test_() ->
    {timeout, 60, fun() ->
        Busy = string:trim(os:cmd("(while :; do :; done) >/dev/null 2>&1 & echo $!")),
        try
            {_, #{rounds := Rounds}, _} = run(#{size => [1], system => [slow]}, 3),
            Shares = [Share || #{<<"others_cpu">> := Share} <- Rounds],
            Cores = erlang:system_info(logical_processors_available),
            ?assert(lists:max(Shares) > 0.3 / Cores, Shares)
        after
            os:cmd("kill " ++ Busy)
        end
    end}.

%% What repeats a run: the flags of the nodes, and the sources.
the_head_says_what_was_run_test() ->
    {_, #{header := Header}, _} = run(#{size => [1]}, 1),
    ?assertMatch(#{<<"flags">> := [[<<"+fake">>, <<"a">>], [<<"+fake">>, <<"b">>]], <<"commit">> := _}, Header).

a_latency_is_kept_as_a_histogram_test() ->
    {_, #{rounds := [Round | _]}, _} = run(#{size => [2]}, 1),
    #{<<"histograms">> := #{<<"latency">> := Export}} = Round,
    {ok, Hist} = atoll_histogram:import(Export),
    ?assertEqual(1, atoll_histogram:count(Hist)),
    ?assert(abs(atoll_histogram:percentile(Hist, 50) - 2000) =< 2000 / 128).

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

an_exception_fails_its_point_alone_test() ->
    {Summary, Run, Said} = run(#{size => [1], system => [raising, a, exiting]}, 2),
    ?assertMatch(#{rounds := 2, failed := [{#{system := raising}, _}, {#{system := exiting}, _}]}, Summary),
    ?assertEqual(
        [{0, <<"setup ended with error raised">>}, {2, <<"round ended with exit exited">>}],
        [{P, Why} || #{<<"point">> := P, <<"error">> := Why} <- maps:get(errors, Run)]
    ),
    ?assertEqual(lists:sort([P || {setup, P} <- Said]), lists:sort([P || {teardown, P} <- Said])).

%% Whatever it is: a result that is no JSON, or the one who is told of the progress.
what_ends_a_run_leaves_nothing_set_up_test_() ->
    [
        fun() ->
            with_file(fun(File) ->
                ?assertEqual(raised, raised(fun() -> atoll_bench_run:run(atoll_bench_fake, Options#{rounds => 2, file => File}) end)),
                Said = said(),
                ?assertMatch([_, _], [P || {setup, P} <- Said]),
                ?assertEqual(lists:sort([P || {setup, P} <- Said]), lists:sort([P || {teardown, P} <- Said])),
                ?assertMatch({ok, #{status := partial}}, atoll_bench_file:read(File))
            end)
        end
     || Options <- [
            #{sweep => #{size => [1], system => [a, unwritable]}},
            #{sweep => #{size => [1]}, progress => fun(3, _) -> exit(bored); (_, _) -> ok end}
        ]
    ].

a_file_that_is_there_is_not_touched_test() ->
    with_file(fun(File) ->
        ok = file:write_file(File, "mine"),
        {error, Error} = atoll_bench_run:run(atoll_bench_fake, #{file => File}),
        ?assertEqual(File ++ ": file already exists", unicode:characters_to_list(atoll_bench_run:format_error(Error))),
        ?assertEqual({ok, <<"mine">>}, file:read_file(File))
    end).

run(Sweep, Rounds) ->
    run(Sweep, Rounds, 1).

run(Sweep, Rounds, Starts) ->
    with_file(fun(File) ->
        {ok, Summary} = atoll_bench_run:run(atoll_bench_fake, #{sweep => Sweep, rounds => Rounds, starts => Starts, file => File}),
        {ok, Run} = atoll_bench_file:read(File),
        {Summary, Run, said()}
    end).

said() ->
    receive
        {atoll_bench_fake, What} -> [What | said()]
    after 0 -> []
    end.

%% The libraries for JSON differ in what they raise.
raised(Fun) ->
    try Fun() of
        Value -> {returned, Value}
    catch
        _:_ -> raised
    end.

with_file(Fun) ->
    File = atoll_test_file:temporary("atoll_bench_run_tests"),
    try
        Fun(File)
    after
        file:delete(File)
    end.
