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
            {["--faults", "0"], "--faults must be a whole number from 1 to 10,000, or all, not \"0\""},
            {["--suit", "x"], "there is no option --suit; did you mean --suite?"},
            {["x"], "the argument \"x\" is one too many"}
        ]
    ].

told({error, Why}) -> {error, unicode:characters_to_list(Why)};
told(Right) -> Right.

without_arguments_all_of_the_fast_tier_runs_once_test() ->
    {ok, Options} = atoll_test:options([]),
    ?assertMatch(#{tier := fast, repeat := 1, busy := 0, record := false}, Options),
    ?assertEqual([], [Key || Key <- [suite, 'case', seed, jobs, faults], is_map_key(Key, Options)]).

a_fault_is_asked_for_by_its_application_or_its_module_test() ->
    ?assertEqual({error, "no fault is planted in orbits"}, told(atoll_test_faults:chosen(["orbits"], all, 1))),
    {ok, [_, _ | _] = Faults} = atoll_test_faults:chosen(["orbit"], all, 1),
    ?assertEqual([], [File || #{file := File} <- Faults, not lists:prefix("cases/orbit/", File)]),
    {ok, [_ | _] = Some} = atoll_test_faults:chosen(["atoll_test_queue", "atoll_test_vm"], all, 1),
    ?assertEqual(["apps/atoll_test/src/atoll_test_queue.erl", "apps/atoll_test/src/atoll_test_vm.erl"], lists:usort([File || #{file := File} <- Some])).

%% One seed draws the same again, and ten draw most of them.
so_many_faults_are_drawn_by_the_seed_test() ->
    Drawn = fun(Seed) ->
        {ok, Faults} = atoll_test_faults:chosen([], 50, Seed),
        Faults
    end,
    ?assertEqual(50, length(lists:usort(Drawn(7)))),
    ?assertEqual(Drawn(7), Drawn(7)),
    ?assert(length(lists:usort(lists:append([Drawn(Seed) || Seed <- lists:seq(1, 10)]))) > 200).
