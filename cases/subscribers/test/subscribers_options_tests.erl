%% SPDX-License-Identifier: Apache-2.0
-module(subscribers_options_tests).

-include_lib("eunit/include/eunit.hrl").

defaults_fill_what_is_not_told_test() ->
    {ok, Options} = subscribers_options:check(#{store => mysql, pool => 3}),
    ?assertMatch(#{store := mysql, pool := 3, callers := 1000, host := "127.0.0.1", access := transaction, copies := [_], heal := none}, Options),
    ?assertEqual({ok, Options}, subscribers_options:check(Options)),
    ?assertEqual(subscribers_mysql, subscribers_options:store(Options)),
    ?assertEqual(subscribers_mnesia, subscribers_options:store(Options#{store := mnesia})).

what_is_wrong_is_named_in_a_sentence_test() ->
    [
        begin
            {error, Error} = subscribers_options:check(Told),
            ?assertEqual({Told, lists:flatten(["The setting ", Sentence])}, {Told, lists:flatten(subscribers_options:format_error(Error))})
        end
     || {Told, Sentence} <- [
            {#{}, "store of subscribers must be mysql or mnesia."},
            {#{store => redis}, "store of subscribers must be mysql or mnesia."},
            {#{store => mysql, colour => red}, "colour of subscribers is not known."},
            {#{store => mysql, port => 65536}, "port of subscribers must be 1 to 65535."},
            {#{store => mysql, database => "a b"}, "database of subscribers must be a string of letters, digits and _."},
            {#{store => mysql, wait_ms => 0}, "wait_ms of subscribers must be a whole number of milliseconds above 0."},
            {#{store => mnesia, copies => []}, "copies of subscribers must be a list of nodes, or {s_group, Name}."},
            {#{store => mnesia, copies => [a@b, a@b]}, "copies of subscribers must be a list of nodes, or {s_group, Name}."},
            {#{store => mnesia, heal => master}, "heal of subscribers must be none or {master, Node}."}
        ]
    ].
