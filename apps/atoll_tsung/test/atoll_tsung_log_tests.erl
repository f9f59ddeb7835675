%% SPDX-License-Identifier: Apache-2.0
-module(atoll_tsung_log_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% What Tsung 1.7.0 wrote of ten users a second for four seconds, one in five of whom called what is not
%% there. The node counted 33 calls.
calls() -> filename:join([code:lib_dir(atoll_tsung), "..", "..", "..", "..", "apps", "atoll_tsung", "test", "data", "calls"]).

a_run_is_read_test() ->
    {ok, Log} = atoll_tsung_log:read(calls()),
    ?assertMatch(
        #{
            complete := true, seconds := 4, users_max := 3,
            counts := #{<<"users_count">> := 40, <<"error_rpc">> := 7, <<"error_rpc_undef">> := 7},
            samples := #{<<"request">> := #{count := 40, min := 0.202, max := 71.247}}
        },
        Log
    ),
    #{times := Times, samples := #{<<"request">> := #{mean := Mean}}} = Log,
    ?assertEqual(40, atoll_histogram:count(Times)),
    ?assert(abs(atoll_histogram:mean(Times) / 1.0e6 - Mean) < 0.02 * Mean),
    ?assertMatch(#{requests := 40, rate := 10.0, failed := 7, sessions := 40, request := Times}, atoll_tsung_result:measures(Log)).

intervals(Parts) ->
    {Text, _, _, _} = lists:foldl(
        fun(Values, {Before, At, Mean, Count}) ->
            Now = length(Values),
            {NowMean, Sd} = moments(Values),
            Line =
                case Values of
                    [] -> io_lib:format("stats: request 0 0 0 ~p ~p ~p ~p~n", [9, 0, Mean, Count]);
                    _ -> io_lib:format("stats: request ~p ~p ~p ~p ~p ~p ~p~n", [Now, NowMean, Sd, lists:max(Values), lists:min(Values), Mean, Count])
                end,
            All = case Now + Count of 0 -> 0; N -> (Now * NowMean + Count * Mean) / N end,
            {[Before, io_lib:format("# stats: dump at ~b~nstats: users ~b ~b~nstats: error_rpc ~b ~b~nstats: finish_users_count ~b ~b~n", [At, Now, At rem 10, Now, Now + Count, Now, Now + Count]), Line], At + 1, All, Count + Now}
        end,
        {"", 1000, 0, 0},
        Parts
    ),
    iolist_to_binary([Text, "EndMonitor:{1,2,3}\n"]).

moments([]) ->
    {0, 0};
moments(Values) ->
    Mean = lists:sum(Values) / length(Values),
    {Mean, math:sqrt(lists:sum([(V - Mean) * (V - Mean) || V <- Values]) / length(Values))}.

properties_test_() ->
    atoll_prop:tests([{"the whole run is put together of its intervals", whole_run(), 500}]).

whole_run() ->
    ?FORALL(
        Parts,
        non_empty(list(list(float(0.0, 1000.0)))),
        begin
            {ok, #{samples := Samples, counts := Counts, seconds := Seconds, complete := true}} = atoll_tsung_log:parse(intervals(Parts)),
            All = lists:append(Parts),
            Last = lists:max([0 | [N || {N, [_ | _]} <- lists:zip(lists:seq(0, length(Parts) - 1), Parts)]]),
            Seconds =:= Last andalso map_get(<<"error_rpc">>, Counts) =:= length(All) andalso
                case All of
                    [] ->
                        Samples =:= #{};
                    _ ->
                        #{<<"request">> := #{count := Count, mean := Mean, sd := Sd, min := Min, max := Max}} = Samples,
                        {Is, Spread} = moments(All),
                        Count =:= length(All) andalso near(Mean, Is) andalso near(Sd, Spread) andalso Min == lists:min(All) andalso Max == lists:max(All)
                end
        end
    ).

near(A, B) -> abs(A - B) =< 1.0e-6 * max(1, abs(B)).

a_line_that_was_cut_is_left_out_test() ->
    Text = intervals([[1.0], [2.0, 3.0]]),
    Cut = binary:part(Text, 0, byte_size(Text) - 30),
    ?assertMatch({ok, #{complete := false, samples := #{<<"request">> := #{count := 1}}}}, atoll_tsung_log:parse(Cut)).

what_is_none_of_tsung_s_is_told_with_its_line_test() ->
    ?assertEqual({error, {line, 2}}, atoll_tsung_log:parse(<<"# stats: dump at 1\nhello\n">>)),
    ?assertEqual({error, {line, 1}}, atoll_tsung_log:parse(<<"stats: request 1 x 0 0 0 0 0\n">>)),
    ?assertEqual({error, empty}, atoll_tsung_log:parse(<<>>)),
    ?assertEqual("f: Tsung has written nothing there yet", lists:flatten(atoll_tsung_log:format_error({"f", empty}))).

what_failed_is_counted_once_test() ->
    {ok, Log} = atoll_tsung_log:parse(<<"# stats: dump at 1\nstats: error_rpc 3 3\nstats: error_rpc_undef 3 3\nstats: error_timeout 1 1\nEndMonitor:{0,0,0}\n">>),
    ?assertMatch(#{failed := 4, requests := 0}, atoll_tsung_result:measures(Log)).
