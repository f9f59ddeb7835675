%% SPDX-License-Identifier: Apache-2.0
%% @doc The paper's files, column by column.
-module(im_csv_tests).

-include_lib("eunit/include/eunit.hrl").

-define(RUN, #{technology => "RSD_IM", routers => 2, servers => 6, clients => 100, trials => 15, seconds => 60, threshold_us => 10000}).
-define(AT, {{2015, 3, 9}, {8, 5, 59}}).

the_paper_s_names_test() ->
    ?assertEqual("RSD_IM_Throughput_2_6_100_Node_3.csv", im_csv:name({throughput, 3}, ?RUN)),
    ?assertEqual("RSD_IM_Throughput_2_6_100_Summary.txt", im_csv:name(summary, ?RUN)),
    ?assertEqual("RSD_IM_Latency_2_6_100_Node_1_15.csv", im_csv:name({latency, 1, 15}, ?RUN)).

a_row_has_the_paper_s_columns_test() ->
    Window = #{sent => 200, received => 199, delivered => 198, below => 150},
    ?assertEqual("15,8:5:59,9/3/2015,10000,200,199,198,150,75.00\n", text(im_csv:throughput(15, Window, {?AT, ?RUN}))),
    Nothing = #{sent => 0, received => 0, delivered => 0, below => 0},
    ?assertEqual("1,8:5:59,9/3/2015,10000,0,0,0,0,N/A\n", text(im_csv:throughput(1, Nothing, {?AT, ?RUN}))).

a_latency_names_the_session_by_its_clients_in_order_test() ->
    ?assertEqual(
        "3.12.7,8:5:59 9/3/2015,chat_session_tc1_1_tc2_1,tc1_1,tc2_1,412\n",
        text(im_csv:latency({{3, 12}, 7}, {<<"tc2_1">>, <<"tc1_1">>}, {?AT, 412}))
    ).

the_summary_adds_up_test() ->
    W = fun(N) -> #{sent => 10 * N, received => 10 * N, delivered => 10 * N, below => 5 * N} end,
    Text = text(im_csv:summary([{1, [W(1), W(2)]}, {2, [W(3), W(4)]}], ?RUN)),
    [
        ?assertNotEqual(nomatch, string:find(Text, Line))
     || Line <- [
            "Windows: 2 of 60 s\n",
            "Client node 1: sent 30, received 30, delivered 30, below the threshold 15, QoS 50.00 %\n",
            "All client nodes: sent 100, received 100, delivered 100, below the threshold 50, QoS 50.00 %\n",
            "Delivered per minute: 50\n"
        ]
    ],
    ?assertNotEqual(nomatch, string:find(text(im_csv:summary([], ?RUN)), "Delivered per minute: N/A\n")).

text(Chars) -> unicode:characters_to_list(Chars).
