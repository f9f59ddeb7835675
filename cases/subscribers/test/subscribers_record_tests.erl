%% SPDX-License-Identifier: Apache-2.0
-module(subscribers_record_tests).

-include_lib("eunit/include/eunit.hrl").

one() -> subscribers_record:random(1000).

a_made_up_one_is_right_test() ->
    [?assertEqual(ok, subscribers_record:check(subscribers_record:random(N))) || N <- [1, 7, 1_000_000, 999_999_999_999_999], _ <- lists:seq(1, 20)].

each_value_that_is_wrong_is_named_test() ->
    [
        ?assertEqual({error, {bad_subscriber, Key, subscribers_record:must(Key)}}, subscribers_record:check((one())#{Key := Value}))
     || {Key, Value} <- [
            {msisdn, 0}, {msisdn, 1_000_000_000_000_000}, {msisdn, <<"1">>}, {imsi, <<"12a">>}, {imsi, "123"}, {imei, <<"1234567890123456">>},
            {device, binary:copy(<<0>>, 65)}, {settings, binary:copy(<<0>>, 1025)}, {settings, none}, {updated, -1}, {updated, 1 bsl 32}
        ]
    ].

what_is_missing_and_what_is_no_key_is_named_test() ->
    ?assertMatch({error, {bad_subscriber, imei, _}}, subscribers_record:check(maps:remove(imei, one()))),
    ?assertMatch({error, {bad_subscriber, colour, "is no key of one"}}, subscribers_record:check((one())#{colour => red})),
    ?assertMatch({error, {bad_subscriber, ann, _}}, subscribers_record:check(ann)).

every_error_is_a_sentence_test() ->
    [
        ?assertMatch({match, _}, re:run(unicode:characters_to_binary(subscribers:format_error(Error)), "^[A-Z].*\\.$", [unicode]))
     || Error <- [
            {overloaded, 3}, {no_connection_free, 200}, disconnected, {timed_out, 7}, {database, <<"no">>}, no_majority, no_table, not_started
        ]
    ],
    ?assertEqual("msisdn of a subscriber must be a whole number of 15 digits at most, above 0.",
        lists:flatten(subscribers:format_error({bad_subscriber, msisdn, subscribers_record:must(msisdn)}))).

nothing_is_served_where_the_service_is_not_started_test() ->
    [?assertEqual({error, not_started}, Answer) || Answer <- [subscribers:get(1), subscribers:put(one()), subscribers:delete(1), subscribers:count(), subscribers:status(), subscribers:write(2)]].
