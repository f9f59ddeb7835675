%% SPDX-License-Identifier: Apache-2.0
%% The command line of the runner.
-module(atoll_test_tests).

-include_lib("eunit/include/eunit.hrl").

what_is_wrong_is_told_in_a_sentence_test_() ->
    [
        {Sentence, ?_assertEqual({error, Sentence}, told(atoll_test:options(Arguments)))}
     || {Arguments, Sentence} <- [
            {["--case", "good"], "--case goes with the --suite that it is of"},
            {["--seed", "-1"], "--seed must be a whole number from 0 to 1,000,000, not \"-1\""},
            {["--tier", "medium"], "--tier must be one of fast, deep, not \"medium\""},
            {["--jobs", "0"], "--jobs must be a whole number from 1 to 64, not \"0\""},
            {["--suit", "x"], "there is no option --suit; did you mean --suite?"},
            {["x"], "the argument \"x\" is one too many"}
        ]
    ].

told({error, Why}) -> {error, unicode:characters_to_list(Why)};
told(Right) -> Right.

without_arguments_all_of_the_fast_tier_runs_once_test() ->
    {ok, Options} = atoll_test:options([]),
    ?assertMatch(#{tier := fast, repeat := 1, busy := 0, record := false, faults := false}, Options),
    ?assertEqual([], [Key || Key <- [suite, 'case', seed, jobs], is_map_key(Key, Options)]).

a_fault_is_asked_for_by_its_application_test() ->
    ?assertEqual({error, "no fault is planted in orbits"}, told(atoll_test_faults:chosen(["orbits"]))),
    {ok, [_, _ | _] = Faults} = atoll_test_faults:chosen(["orbit"]),
    ?assertEqual([], [File || #{file := File} <- Faults, not lists:prefix("cases/orbit/", File)]).
