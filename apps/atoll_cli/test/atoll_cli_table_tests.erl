%% SPDX-License-Identifier: Apache-2.0
-module(atoll_cli_table_tests).
-include_lib("eunit/include/eunit.hrl").

text_is_aligned_left_and_numbers_right_test() ->
    Table = atoll_cli_table:format([{left, "node"}, {right, "connections"}], [
        ["a", "8"],
        ["longer", "10"]
    ]),
    ?assertEqual(
        "node    connections\n"
        "a                 8\n"
        "longer           10\n",
        lists:flatten(Table)
    ).

a_line_has_no_blanks_at_its_end_test() ->
    Lines = atoll_cli_table:lines([left, left], [["a", "b"], ["longer", ""]]),
    ?assertEqual("a       b\nlonger\n", lists:flatten(Lines)).

a_letter_of_two_code_points_is_one_wide_test() ->
    Lines = atoll_cli_table:lines([left, left], [["e\x{301}", "1"], ["ab", "2"]]),
    ?assertEqual("e\x{301}   1\nab  2\n", lists:flatten(Lines)).

counts_are_grouped_by_thousands_test_() ->
    [?_assertEqual(Text, atoll_cli_table:count(N))
     || {Text, N} <- [{"0", 0}, {"999", 999}, {"1,000", 1000}, {"68,859", 68859},
                      {"1,000,007", 1000007}, {"-1,024", -1024}]].

a_mean_has_one_decimal_unless_it_is_whole_test_() ->
    [?_assertEqual(Text, atoll_cli_table:decimal(N))
     || {Text, N} <- [{"8", 8.0}, {"0", 0.0}, {"2.7", 24 / 9}, {"1,234.5", 1234.5}, {"3", 2.96}]].

times_are_seconds_with_two_decimals_test_() ->
    [?_assertEqual(Text, atoll_cli_table:seconds(Ms))
     || {Text, Ms} <- [{"0.00 s", 0}, {"0.05 s", 59}, {"7.01 s", 7012}, {"1,000.00 s", 1000000}]].

a_share_is_not_all_unless_it_is_test_() ->
    [{Text, ?_assertEqual(Text, atoll_cli_table:percent(Share))}
     || {Share, Text} <- [{0, "0 %"}, {0.0, "0 %"}, {1, "100 %"}, {1.0, "100 %"}, {0.5, "50 %"}, {0.1, "10 %"},
                          {0.1005, "10.05 %"}, {0.29, "29 %"}, {9998 / 10000, "99.98 %"},
                          {99999 / 100000, "99.999 %"}, {1 - 1.0e-9, "99.9999999 %"}, {1.0e-6, "0.0001 %"},
                          {1.5, "150 %"}, {0.0312345, "3.12 %"}]].
