%% SPDX-License-Identifier: Apache-2.0
%% What is said of a run of the messenger, and what its steps of chaos are.
-module(atoll_cases_im_tests).
-include_lib("eunit/include/eunit.hrl").

a_broken_promise_is_said_test() ->
    {Fields} = atoll_cases_im_result:json(result(#{lost => 2, two_logins => 1})),
    ?assertEqual({false, {[{lost, 2}, {two_logins, 1}]}}, {proplists:get_value(kept, Fields), proplists:get_value(violations, Fields)}),
    Table = unicode:characters_to_list(atoll_cases_im_result:table(result(#{lost => 2, two_logins => 1}))),
    ?assertNotEqual(nomatch, string:find(Table, "2 lost, 1 two logins")).

a_kept_promise_is_said_test() ->
    {Fields} = atoll_cases_im_result:json(result(#{})),
    ?assertEqual({true, {[]}, 90.0}, {proplists:get_value(kept, Fields), proplists:get_value(violations, Fields), proplists:get_value(quality_percent, Fields)}),
    ?assertNotEqual(nomatch, string:find(unicode:characters_to_list(atoll_cases_im_result:table(result(#{}))), "nothing lost, twice or out of order")).

what_was_lost_with_both_copies_is_said_test() ->
    Table = unicode:characters_to_list(atoll_cases_im_result:table((result(#{lost => 2}))#{lost := [server_3_1_Chat_DB]})),
    ?assertNotEqual(nomatch, string:find(Table, "2 lost; both copies were lost of server_3_1_Chat_DB")).

what_is_left_is_said_test() ->
    #{left := Left} = Result = result(#{}),
    Said = fun(Is) -> unicode:characters_to_list(atoll_cases_im_result:table(Result#{left := Is})) end,
    ?assertNotEqual(nomatch, string:find(Said(Left), "no rows, clients, sessions or names")),
    ?assertNotEqual(nomatch, string:find(Said(Left#{rows := 3, names := -1}), "names -1, rows +3")),
    ?assertNotEqual(nomatch, string:find(Said(none), "not looked at")).

what_was_not_sent_has_no_quality_test() ->
    #{traffic := Traffic} = Result = result(#{}),
    {Fields} = atoll_cases_im_result:json(Result#{traffic := Traffic#{sent := 0, below := 0}}),
    ?assertEqual(null, proplists:get_value(quality_percent, Fields)).

%% Router nodes and client nodes are left alone.
server_nodes_alone_are_killed_and_each_is_back_a_second_later_test() ->
    Steps = atoll_bench_storm:node_kills(30, [3, 4, 5], 600, 1),
    ?assertEqual([3, 4, 5], lists:usort([I || {at, _, {kill, {nodes, I, I}}} <- Steps])),
    ?assertEqual([{At + 1000, Who} || {at, At, {kill, Who}} <- Steps], [{At, Who} || {at, At, {restart, Who, fresh}} <- Steps]).

result(Counts) ->
    H = atoll_histogram:new(),
    ok = atoll_histogram:record(2000000, H),
    #{
        traffic => #{
            seed => 1, logins => 4, login_ms => 12, seconds => 2.0, sent => 10, received => 10, delivered => 10, below => 9, shed => 0,
            delivered_per_minute => 300.0, latency => atoll_histogram:export(H), total => #{sent => 12, delivered => 12},
            conversations => #{'begun' => 2, running => 0, ended => #{}}, drain_ms => 5, is_drained => true,
            history => #{conversations => 2, messages => 12, logins => 4, unchecked => 0, counts => Counts, violations => []}
        },
        storm => atoll_bench_storm:none(),
        lost => [], left => #{clients => 0, sessions => 0, rows => 0, names => 0, processes => 0}
    }.
