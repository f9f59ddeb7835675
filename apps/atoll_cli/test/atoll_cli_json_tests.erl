%% SPDX-License-Identifier: Apache-2.0
-module(atoll_cli_json_tests).
-include_lib("eunit/include/eunit.hrl").

keys_stay_in_the_order_in_which_they_are_written_test() ->
    ?assertEqual(<<"{\"z\":1,\"a\":2,\"m\":{\"y\":3,\"b\":4}}">>,
                 encode({[{z, 1}, {a, 2}, {m, {[{y, 3}, {b, 4}]}}]})).

every_kind_of_value_is_written_test() ->
    ?assertEqual(<<"{\"t\":true,\"n\":null,\"w\":\"mesh\",\"s\":\"a\\\"b\",\"f\":2.67,\"l\":[1,{}]}">>,
                 encode({[{t, true}, {n, null}, {w, mesh}, {s, <<"a\"b">>}, {f, 2.67},
                          {l, [1, {[]}]}]})).

text_is_utf8_test() ->
    ?assertEqual(<<"\"é\""/utf8>>, encode(<<"é"/utf8>>)).

encode(Value) ->
    iolist_to_binary(atoll_cli_json:encode(Value)).
