%% SPDX-License-Identifier: Apache-2.0
-module(aco_options_tests).

-include_lib("eunit/include/eunit.hrl").

nothing_has_to_be_given_test() ->
    {ok, Options} = aco_options:new(#{}),
    ?assertMatch(#{ants := 8, alpha := 1.0, beta := 2.0, q0 := 0.9, rho := 0.1, heuristic := mdd,
                   local_search := none, tau0 := auto}, Options).

whole_numbers_are_taken_where_a_float_is_meant_test() ->
    {ok, Options} = aco_options:new(#{alpha => 2, q0 => 1, tau0 => 1, seed => 5}),
    ?assertMatch(#{alpha := 2.0, q0 := 1.0, tau0 := 1.0, seed := 5}, Options),
    ?assert(is_integer(maps:get(seed, Options))).

%% The sentence must name the option and what it may be.
a_bad_option_is_refused_with_a_sentence_that_names_it_test_() ->
    [{Names, fun() ->
        {error, Reason} = aco_options:new(#{Key => Value}),
        Sentence = unicode:characters_to_list(aco_options:format_error(Reason)),
        ?assertNotEqual(nomatch, string:find(Sentence, atom_to_list(Key))),
        ?assertNotEqual(nomatch, string:find(Sentence, Names)),
        ?assertEqual($., lists:last(Sentence))
    end} || {Key, Value, Names} <- [
        {ants, 0, "from 1"},
        {ants, 1.5, "not 1.5"},
        {local_iterations, -1, "from 1"},
        {global_iterations, many, "not many"},
        {local_search, o3, "none, o1, o2, o12, o21"},
        {seed, "1", "whole number"},
        {heuristic, atc, "mdd, edd, au"},
        {alpha, -1, "from 0 to 10"},
        {beta, 11, "from 0 to 10"},
        {q0, 1.01, "from 0 to 1"},
        {rho, x, "from 0 to 1"},
        {tau0, none, "auto or a number"},
        {colour, red, "no option"}
    ]].
