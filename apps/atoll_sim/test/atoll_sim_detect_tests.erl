%% SPDX-License-Identifier: Apache-2.0
%% What the experiment of detection counts.
-module(atoll_sim_detect_tests).

-include_lib("eunit/include/eunit.hrl").

who_all_hear_of_is_not_missed_test_() ->
    {timeout, 60, fun() ->
        #{silent := Silent} = Result = detect(#{}),
        ?assert(Silent > 0),
        ?assertMatch(#{missed := 0, false_deaths := 0}, Result),
        ?assert(maps:get(detect_ms_p99, Result) =< 6000)
    end}.

%% Nobody watches anybody: so nobody hears.
a_verdict_that_never_comes_is_missed_and_has_no_time_test_() ->
    {timeout, 60, fun() ->
        #{silent := Silent} = Result = detect(#{detector => off}),
        ?assertMatch(
            #{missed := Silent, detect_ms_p50 := none, detect_ms_p99 := none, first_ms_p99 := none}, Result
        )
    end}.

%% One falls asleep for more than the minute, just after each but the first fell
%% silent: one of twenty cannot hear, and is not lost among those who need not.
a_few_who_do_not_hear_are_counted_test_() ->
    {timeout, 60, fun() ->
        #{silent := 4} = Result = detect(#{pause => 63000, paused => 0.15}),
        ?assertMatch(#{missed := 3, detect_ms_p99 := none}, Result),
        ?assert(maps:get(detect_ms_p50, Result) =< 6000)
    end}.

%% Nobody's message has come to anybody when they fall silent.
who_has_no_neighbour_is_owed_nothing_test_() ->
    {timeout, 60, fun() ->
        #{silent := Silent} = Result = detect(#{latency => {constant, 1000000}}),
        ?assert(Silent > 0),
        ?assertMatch(#{missed := 0, detect_ms_p99 := none}, Result)
    end}.

detect(Options) ->
    {ok, Result} = atoll_sim_detect:run(
        maps:merge(#{nodes => 20, seed => 7, loss => 0.0, pause => 0, paused => 0.0, minutes => 2}, Options)
    ),
    Result.
