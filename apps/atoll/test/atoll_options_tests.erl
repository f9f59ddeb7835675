%% SPDX-License-Identifier: Apache-2.0
%% Options of a protocol: what is given, and what the module says that there is.
-module(atoll_options_tests).

-include_lib("eunit/include/eunit.hrl").

-export([options/0]).

%% What the test says.
options() -> get(?MODULE).

complete(Known, Given) ->
    _ = put(?MODULE, Known),
    atoll_options:complete(?MODULE, Given).

what_is_not_given_has_its_default_test() ->
    Known = #{ms => {pos_integer, 5}, how => {{one_of, [a, b]}, a}, who => {nodes, []}, is => {boolean, true}},
    ?assertEqual({ok, #{ms => 7, how => b, who => [n], is => true}}, complete(Known, #{ms => 7, how => b, who => [n]})),
    ?assertMatch({error, {bad_option, ms, {not_a, pos_integer, 0}}}, complete(Known, #{ms => 0})),
    ?assertMatch({error, {bad_option, "ms", unknown}}, complete(Known, #{"ms" => 1})).

%% Thousands of simulated nodes then have one term.
options_that_are_complete_stay_the_same_term_test() ->
    Known = #{ms => {pos_integer, 5}, is => {boolean, true}},
    Given = maps:from_list([{ms, 7}, {is, false}]),
    {ok, Complete} = complete(Known, Given),
    ?assert(erts_debug:same(Given, Complete)).

a_module_whose_options_are_wrong_is_told_of_in_a_sentence_test() ->
    [
        begin
            {error, {no_options, ?MODULE, _} = Error} = complete(Known, #{}),
            Text = unicode:characters_to_list(atoll_options:format_error(Error)),
            ?assertMatch("atoll_options_tests:options/0 must give a map of {Kind, Default}" ++ _, Text)
        end
     || Known <- [
            none,
            #{ms => 5},
            #{ms => {number, 5}},
            #{ms => {pos_integer, 0}},
            #{ms => {pos_integer, hello}},
            #{how => {{one_of, [a | b]}, a}},
            #{how => {{one_of, ["a"]}, "a"}},
            #{how => {{one_of, [a]}, b}},
            #{who => {nodes, [a | b]}}
        ]
    ].
