%% SPDX-License-Identifier: Apache-2.0
-module(atoll_cli_nearest_tests).
-include_lib("eunit/include/eunit.hrl").

a_slip_of_the_finger_is_recognised_test_() ->
    [?_assertEqual({ok, Meant}, near(Typed))
     || {Typed, Meant} <- [{"orbti", "orbit"}, {"rbit", "orbit"}, {"stauts", "status"},
                           {"dwn", "down"}, {"us", "up"}, {"--spase", "--space"}]].

another_word_is_not_test_() ->
    [?_assertEqual(none, near(Typed)) || Typed <- ["", "xyzzy", "frobnicate", "q", "--bogus", "--"]].

the_nearest_of_several_wins_test() ->
    ?assertEqual({ok, "mesh"}, atoll_cli_nearest:of_words("mes", ["mess up", "mesh", "moss"])).

near(Typed) ->
    atoll_cli_nearest:of_words(Typed, ["orbit", "status", "up", "down", "--space", "--nodes"]).
