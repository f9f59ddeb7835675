%% SPDX-License-Identifier: Apache-2.0
%% When a node is traced, before senders that are made up: how many messages come while it is open, and how many wait.
-module(atoll_flow_governor_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(LIMITS, #{limit => 10000, backlog => 500}).
-define(STEP_US, 1000).

properties_test_() ->
    atoll_prop:tests([{whatever_comes, whatever_comes(), 1000}]).

%% So many messages a second for so many milliseconds; `counts' is how many a second the process can count.
simulated(Phases, Counts) ->
    World = #{governor => atoll_flow_governor:new(?LIMITS, 0), now => 0, waiting => 0.0, traced => 0.0, sent => 0.0, longest => 0, draining => false},
    lists:foldl(fun({Rate, Ms}, W) -> lists:foldl(fun(_, Acc) -> ms(Rate, Counts, Acc) end, W, lists:seq(1, Ms)) end, World, Phases).

ms(Rate, Counts, #{governor := Governor0, now := Now0, waiting := Waiting0, traced := Traced, sent := Sent, longest := Longest, draining := Draining0} = World) ->
    Now = Now0 + ?STEP_US,
    Came = case atoll_flow_governor:is_open(Governor0) of true -> Rate / 1000; false -> 0.0 end,
    Seen = min(Waiting0 + Came, Counts / 1000),
    Waiting = Waiting0 + Came - Seen,
    {Action, Governor1} = atoll_flow_governor:step({seen, round(Seen), round(Waiting)}, Now, Governor0),
    Draining1 = Draining0 orelse Action =:= close,
    {Governor, Draining} = case Draining1 andalso Waiting < 1 of
        true -> {_, G} = atoll_flow_governor:step(drained, Now, Governor1), {G, false};
        false -> {Governor1, Draining1}
    end,
    World#{governor := Governor, now := Now, waiting := Waiting, traced := Traced + Came, sent := Sent + Rate / 1000, longest := max(Longest, Waiting), draining := Draining}.

below_the_limit_all_is_traced_test() ->
    #{governor := Governor, now := Now, sent := Sent, traced := Traced} = simulated([{9000, 3000}], 1.0e6),
    ?assertEqual({true, {Now, Now}}, {atoll_flow_governor:is_whole(Governor), atoll_flow_governor:traced(Now, Governor)}),
    ?assertEqual(Sent, Traced).

above_it_about_as_many_are_seen_as_the_limit_says_and_it_says_which_part_test() ->
    #{governor := Governor, now := Now, sent := Sent, traced := Traced} = simulated([{100000, 10000}], 1.0e6),
    ?assert(Traced / 10 < 15000),
    ?assert(Traced / 10 > 7000),
    ?assert(abs(share(Now, Governor) - Traced / Sent) < 0.01).

share(Now, Governor) -> {Traced, Now} = atoll_flow_governor:traced(Now, Governor), Traced / Now.

%% A tenth of each 200 ms, always the same: windows see it as often as there is of it.
what_comes_in_a_rhythm_is_in_as_many_windows_as_it_is_long_test() ->
    #{traced := Quiet} = simulated([{100000, 2000}], 1.0e6),
    Rhythm = lists:append(lists:duplicate(200, [{40000, 180}, {400000, 20}])),
    #{traced := Traced, now := Now, governor := Governor} = simulated([{100000, 2000} | Rhythm], 1.0e6),
    %% As many as come on the average, in the part of the time that is traced.
    Expected = (40000 * 0.9 + 400000 * 0.1) / 1.0e6 * (element(1, atoll_flow_governor:traced(Now, Governor)) - 200000),
    ?assert(abs((Traced - Quiet) / Expected - 1) < 0.2, {Traced - Quiet, Expected}).

limits_may_change_test() ->
    #{governor := Governor0, now := Now} = simulated([{9000, 1000}], 1.0e6),
    Governor = atoll_flow_governor:limited(maps:put(limit, 1000, ?LIMITS), Governor0),
    ?assertMatch({close, _}, atoll_flow_governor:step({seen, 2000, 0}, Now + 200000, Governor)).

no_more_wait_than_the_backlog_and_what_comes_in_a_moment_test() ->
    %% It counts a tenth of what comes.
    #{longest := Longest} = simulated([{1000000, 3000}], 100000),
    ?assert(Longest =< 500 + 1000).

it_traces_all_again_when_it_is_quiet_test() ->
    #{governor := Busy} = simulated([{100000, 2000}], 1.0e6),
    ?assertNot(atoll_flow_governor:is_whole(Busy)),
    #{governor := Quiet} = simulated([{100000, 2000}, {1000, 4000}], 1.0e6),
    ?assert(atoll_flow_governor:is_whole(Quiet)).

%% It never stays closed, and never lets more wait.
whatever_comes() ->
    ?FORALL({Phases, Counts}, {list({oneof([0, 100, 5000, 20000, 200000, 2000000]), range(1, 300)}), oneof([20000, 100000, 1000000])}, begin
        #{governor := Governor, now := Now, longest := Longest, sent := Sent, traced := Traced} = simulated(Phases ++ [{0, 5000}], Counts),
        Share = share(Now, Governor),
        Longest =< 500 + 2000 andalso Traced =< Sent + 1 andalso Share >= 0 andalso Share =< 1 andalso atoll_flow_governor:is_whole(Governor)
    end).
