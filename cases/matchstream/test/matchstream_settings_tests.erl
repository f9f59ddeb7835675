%% SPDX-License-Identifier: Apache-2.0
%% What an application is started with: what is there by itself, and that what is wrong is named.
-module(matchstream_settings_tests).
-include_lib("eunit/include/eunit.hrl").

each_has_a_value_by_itself_test() ->
    {ok, Settings} = matchstream_settings:read([{included_applications, []}]),
    ?assertMatch(#{nodes := [nonode@nohost], port := 0, waiting := 256, send_ms := 5000, store := #{module := matchstream_store_mnesia, nodes := [nonode@nohost]}}, Settings),
    ?assertNot(is_map_key(record, Settings)).

what_is_given_is_taken_test() ->
    ?assertMatch({ok, #{waiting := 3, record := "r", port := 9999}}, matchstream_settings:read([{waiting, 3}, {record, "r"}, {port, 9999}])).

what_is_wrong_is_named_test_() ->
    [
        ?_assertMatch({error, {bad_option, Key, _}}, matchstream_settings:read([{Key, Value}]))
     || {Key, Value} <- [
            {nap, 1}, {nodes, [other@host]}, {store, mnesia}, {switches, [wings]}, {listen, "localhost"}, {port, 70000}, {web, -1}, {connections, 0}, {matches, 0}, {playing, -1},
            {request_ms, infinity}, {waiting, 0}, {send_ms, 1.5}, {record, []}
        ]
    ].
