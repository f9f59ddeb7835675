%% SPDX-License-Identifier: Apache-2.0
-module(subscribers_sql_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% Whatever bytes are in it, a statement has the words and marks of its form and no other.
no_value_changes_the_form_of_a_statement_test_() ->
    atoll_prop:test(?FUNCTION_NAME, prop_form(), 300).

prop_form() ->
    ?FORALL({Device, Settings}, {binary(), binary()}, begin
        Put = iolist_to_binary(subscribers_sql:put((subscribers_record:random(100))#{device := Device, settings := Settings})),
        {match, [D, S]} = re:run(Put, "^INSERT INTO subscriber \\([a-z, ]+\\) VALUES \\(\\d+, x'[0-9A-F]+', x'[0-9A-F]+', x'([0-9A-F]*)', x'([0-9A-F]*)', \\d+\\) "
            "ON DUPLICATE KEY UPDATE [a-z=A-Z(), ]+$", [dollar_endonly, {capture, all_but_first, binary}]),
        {binary:decode_hex(D), binary:decode_hex(S)} =:= {Device, Settings}
    end).

what_is_written_over_is_all_but_the_key_test() ->
    Put = iolist_to_binary(subscribers_sql:put(subscribers_record:random(100))),
    [_, Updated] = string:split(Put, "UPDATE "),
    ?assertEqual([atom_to_list(Key) || Key <- tl(subscribers_record:keys())], [binary_to_list(hd(string:split(Part, "="))) || Part <- string:split(Updated, ", ", all)]).

a_row_is_the_subscriber_again_test() ->
    ?assertEqual(
        #{msisdn => 46701234567, imsi => <<"1">>, imei => <<"2">>, device => <<"'">>, settings => <<>>, updated => 5},
        subscribers_sql:row([<<"46701234567">>, <<"1">>, <<"2">>, <<"'">>, <<>>, <<"5">>])
    ).
