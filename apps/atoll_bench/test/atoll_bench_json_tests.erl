%% SPDX-License-Identifier: Apache-2.0
-module(atoll_bench_json_tests).

-include_lib("eunit/include/eunit.hrl").

what_is_encoded_is_decoded_with_binaries_for_keys_test() ->
    Value = #{name => <<"p99 \x{b5}s"/utf8>>, list => [1, 2.5, true, null], <<"map">> => #{}},
    Read = #{<<"name">> => <<"p99 \x{b5}s"/utf8>>, <<"list">> => [1, 2.5, true, null], <<"map">> => #{}},
    ?assertEqual({ok, Read}, atoll_bench_json:decode(atoll_bench_json:encode(Value))).

an_atom_is_a_text_test() ->
    ?assertEqual({ok, [<<"more">>]}, atoll_bench_json:decode(atoll_bench_json:encode([more]))).

an_object_is_a_line_test() ->
    Text = iolist_to_binary(atoll_bench_json:encode(#{<<"a">> => <<"two\nlines">>})),
    ?assertEqual(nomatch, binary:match(Text, <<"\n">>)).

what_is_no_json_is_an_error_test_() ->
    [
        ?_assertEqual({error, no_json}, atoll_bench_json:decode(Text))
     || Text <- [<<>>, <<"{">>, <<"{\"a\":1,}">>, <<"nil">>, <<"[1] 2">>, <<"\"", 255, "\"">>, <<"'a'">>]
    ].
