%% SPDX-License-Identifier: Apache-2.0
%% Verdicts, from sights that were made by hand: which of them were false.
-module(atoll_sim_verdicts_tests).

-include_lib("eunit/include/eunit.hrl").

nobody_is_dead_before_somebody_says_so_test() ->
    ?assertEqual([], false_deaths([{n1, {started, 1}}, {n2, {started, 1}}, {n1, {notice, {suspect, n2}}}])).

whoever_is_awake_is_declared_dead_falsely_test() ->
    ?assertEqual([{n2, 1}], false_deaths([{n2, {started, 1}}, {n1, dead(n2, 1)}])).

the_killed_and_the_paused_are_found_and_not_falsely_test_() ->
    [
        ?_assertEqual([], false_deaths([{n2, {started, 1}}, {n2, How}, {n1, dead(n2, 1)}]))
     || How <- [killed, paused]
    ].

who_goes_on_after_a_pause_is_awake_again_test() ->
    ?assertEqual([{n2, 1}], false_deaths([{n2, {started, 1}}, {n2, paused}, {n2, resumed}, {n1, dead(n2, 1)}])).

a_node_that_never_started_is_not_alive_test() ->
    ?assertEqual([], false_deaths([{n1, dead(n2, 1)}, {n2, paused}, {n2, resumed}, {n1, dead(n2, 2)}])).

the_first_verdict_decides_test() ->
    Right = [{n2, {started, 1}}, {n2, paused}, {n1, dead(n2, 1)}, {n2, resumed}, {n3, dead(n2, 1)}],
    ?assertEqual([], false_deaths(Right)),
    Wrong = [{n2, {started, 1}}, {n1, dead(n2, 1)}, {n2, killed}, {n3, dead(n2, 1)}],
    ?assertEqual([{n2, 1}], false_deaths(Wrong)).

however_many_say_so_it_is_one_death_test() ->
    ?assertEqual([{n2, 1}], false_deaths([{n2, {started, 1}} | [{N, dead(n2, 1)} || N <- [n1, n3, n4]]])).

a_verdict_on_an_earlier_life_is_true_test() ->
    Restarted = [{n2, {started, 1}}, {n2, killed}, {n2, {started, 9}}],
    ?assertEqual([], false_deaths(Restarted ++ [{n1, dead(n2, 1)}])),
    ?assertEqual([{n2, 9}], false_deaths(Restarted ++ [{n1, dead(n2, 1)}, {n1, dead(n2, 9)}])).

who_was_buried_alive_goes_on_as_another_life_test() ->
    Reborn = [{n2, {started, 1}}, {n1, dead(n2, 1)}, {n2, {notice, {reborn, 2}}}],
    ?assertEqual([{n2, 1}, {n2, 2}], false_deaths(Reborn ++ [{n1, dead(n2, 2)}])),
    ?assertEqual([{n2, 1}], false_deaths(Reborn ++ [{n2, paused}, {n1, dead(n2, 2)}])).

false_deaths_are_in_order_test() ->
    Started = [{N, {started, 1}} || N <- [n1, n2, n3]],
    ?assertEqual([{n1, 1}, {n2, 1}, {n3, 1}], false_deaths(Started ++ [{n9, dead(N, 1)} || N <- [n2, n3, n1]])).

dead(Node, Life) -> {notice, {dead, Node, Life}}.

false_deaths(Sights) ->
    atoll_sim_verdicts:false_deaths(
        lists:foldl(
            fun({Where, Sight}, V) -> atoll_sim_verdicts:see(0, Where, Sight, V) end,
            atoll_sim_verdicts:new(),
            Sights
        )
    ).
