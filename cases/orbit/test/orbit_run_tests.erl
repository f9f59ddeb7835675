%% SPDX-License-Identifier: Apache-2.0
%% What a user may ask for, and the sentence when he may not.
-module(orbit_run_tests).

-include_lib("eunit/include/eunit.hrl").

good() -> #{generators => g124, space => 100, mode => par}.

a_good_spec_is_accepted_test_() ->
    [?_assertEqual(ok, orbit:check(maps:merge(good(), Change))) || Change <- [
        #{}, #{mode => seq}, #{nodes => [node()]}, #{workers => 9}, #{vertices => true},
        %% not read outside groups
        #{group_size => 7}
    ]].

%% The sentence must name what is wrong.
a_bad_spec_is_refused_with_a_sentence_that_names_the_fault_test_() ->
    [{Names, fun() ->
        {error, Reason} = orbit:check(maps:merge(good(), Change)),
        Sentence = unicode:characters_to_list(orbit:format_error(Reason)),
        ?assertEqual(Expected, case Reason of {wrong_option, Key, _, Value} -> {wrong, Key, Value}; _ -> Reason end),
        ?assertNotEqual(nomatch, string:find(Sentence, Names)),
        ?assertEqual($., lists:last(Sentence)),
        ?assertEqual({error, Reason}, orbit:run(maps:merge(good(), Change)))
    end} || {Change, Expected, Names} <- [
        {#{generators => g6}, {wrong, generators, g6}, "g6"},
        {#{generators => "g1"}, {wrong, generators, "g1"}, "\"g1\""},
        {#{space => 0}, {wrong, space, 0}, "not 0"},
        {#{space => abc}, {wrong, space, abc}, "abc"},
        {#{workers => -1}, {wrong, workers, -1}, "workers"},
        {#{workers => 1.5}, {wrong, workers, 1.5}, "1.5"},
        {#{mode => groups, group_size => 0}, {wrong, group_size, 0}, "group_size"},
        {#{mode => groups}, {missing_option, group_size}, "group_size"},
        {#{mode => star}, {wrong, mode, star}, "star"},
        {#{vertices => yes}, {wrong, vertices, yes}, "yes"},
        {#{image_processes => 3}, {wrong, image_processes, 3}, "image_processes"},
        {#{separate_submasters => 3}, {wrong, separate_submasters, 3}, "separate_submasters"},
        {#{survey => 3}, {wrong, survey, 3}, "survey"},
        {#{nodes => []}, {wrong, nodes, []}, "[]"},
        {#{nodes => 9}, {wrong, nodes, 9}, "9"},
        {#{nodes => [a | b]}, {wrong, nodes, [a | b]}, "[a|b]"},
        {#{mode => mesh, nodes => [node(), b, b]}, {node_given_twice, b}, "b is given"},
        {#{nodes => [node(), b]}, {one_node_mode, par, 2}, "not on 2"},
        {#{mode => mesh, nodes => [b]}, {not_the_first_node, node(), b}, "on b"},
        {#{mode => ring, group_size => 3, nodes => [node(), b]}, {group_too_large, 3, 2}, "of 2"},
        {#{mode => mesh, nodes => [node(), b]}, {not_distributed, node()}, "not distributed"},
        {#{mode => groups, group_size => 1}, {not_distributed, node()}, "not distributed"},
        {#{colour => red}, {unknown_option, colour}, "colour"}
    ]].

a_spec_without_a_needed_option_is_refused_test_() ->
    [?_assertEqual({error, {missing_option, Key}}, orbit:check(maps:remove(Key, good())))
     || Key <- [generators, space, mode]].

every_failure_of_a_run_has_a_sentence_that_names_the_node_test_() ->
    [?_assertNotEqual(nomatch, string:find(orbit:format_error(Reason), "n1@h"))
     || Reason <- [
         {unreachable, n1@h}, {left_out, n1@h}, {not_connected, n1@h, n2@h}, {not_grouped, n1@h, "why"}, {no_code, n1@h},
         {not_running, n1@h}, {crashed, n1@h, why}, {group_lost, [n2@h, n1@h]}
     ]].
