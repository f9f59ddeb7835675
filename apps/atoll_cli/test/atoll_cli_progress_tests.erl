%% SPDX-License-Identifier: Apache-2.0
-module(atoll_cli_progress_tests).
-include_lib("eunit/include/eunit.hrl").

a_terminal_shows_a_bar_that_grows_test() ->
    ?assertEqual("Nodes [                              ] 0 of 10", over(0)),
    ?assertEqual("Nodes [###############               ] 5 of 10", over(5)).

a_full_bar_is_gone_test() ->
    ?assertEqual("", over(10)).

elsewhere_there_are_at_most_four_lines_test_() ->
    [?_assertEqual(min(4, Total), length(lines(Total))) || Total <- [1, 2, 3, 4, 5, 9, 50, 1000]].

the_last_line_says_that_all_is_done_test_() ->
    [?_assertEqual({line, lists:flatten(io_lib:format("Nodes: ~b of ~b", [Total, Total]))},
                   lists:last(lines(Total)))
     || Total <- [1, 9, 50]].

over(Done) ->
    {over, Text} = atoll_cli_progress:render(80, "Nodes", Done, 10, 0),
    lists:flatten(Text).

lines(Total) ->
    [{line, lists:flatten(Text)}
     || Done <- lists:seq(0, Total),
        {line, Text} <- [atoll_cli_progress:render(none, "Nodes", Done, Total, 9000)]].

the_time_left_is_told_once_there_is_telling_test_() ->
    [
        ?_assertEqual({Ms, Expected}, {Ms, end_of(atoll_cli_progress:render(80, "Nodes", Done, 10, Ms))})
     || {Done, Ms, Expected} <- [
            {5, 2999, "5 of 10"},
            {5, 4000, "5 of 10, 4 s left"},
            {1, 60000, "1 of 10, 9 minutes left"},
            {0, 60000, "0 of 10"}
        ]
    ].

end_of({over, Text}) ->
    [_, End] = string:split(lists:flatten(Text), "] "),
    End.
