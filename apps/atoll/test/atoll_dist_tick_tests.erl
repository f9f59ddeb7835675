%% SPDX-License-Identifier: Apache-2.0
%% Ticks: a lane that lives is never dead, a dead one is found in time.
-module(atoll_dist_tick_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

a_dead_lane_is_found_in_time_though_the_others_are_busy_test_() ->
    atoll_prop:test(?FUNCTION_NAME, found(), 500).

%% All lanes are heard within the longer ticktime; one falls silent.
found() ->
    ?FORALL(
        {N, Own, Peer, Dead, Step},
        {range(1, 6), range(1000, 60000), range(1000, 60000), range(0, 5), range(1, 4)},
        begin
            Silent = Dead rem N,
            Tick = atoll_dist_tick:new(N, Own, Peer, 0),
            Period = atoll_dist_tick:period(Tick),
            Limit = max(Own, Peer) * 5 div 4,
            %% Looked at once in each period; the others are heard in every Step-th, at
            %% most one ticktime apart.
            Sample = fun(I) ->
                [
                    {
                        case Lane of
                            Silent -> 0;
                            _ -> I div Step
                        end,
                        I,
                        0,
                        false
                    }
                 || Lane <- lists:seq(0, N - 1)
                ]
            end,
            {Reason, At, SilentMs} = looked_at(1, Period, Sample, Tick),
            conjunction([
                {reason, equals({lane_silent, Silent}, Reason)},
                {not_early, SilentMs > Limit},
                {in_time, At =< Limit + Period}
            ])
        end
    ).

looked_at(I, Period, Sample, Tick0) ->
    case atoll_dist_tick:check(I * Period, Sample(I), Tick0) of
        {ok, [], Tick} -> looked_at(I + 1, Period, Sample, Tick);
        {dead, Reason, SilentMs} -> {Reason, I * Period, SilentMs}
    end.

%% 60 s here, 8 s there: looked at every 2 s, dead after 75 s.
new() -> atoll_dist_tick:new(2, 60000, 8000, 0).

unequal_ticktimes_take_the_shorter_to_tick_and_the_longer_to_judge_test() ->
    ?assertEqual(2000, atoll_dist_tick:period(new())),
    Quiet = [{0, 0, 0, false}, {0, 0, 0, false}],
    Check = fun(I, Tick0) ->
        {ok, [0, 1], Tick} = atoll_dist_tick:check(I * 2000, Quiet, Tick0),
        Tick
    end,
    Late = lists:foldl(Check, new(), lists:seq(1, 37)),
    ?assertEqual({dead, {lane_silent, 0}, 76000}, atoll_dist_tick:check(76000, Quiet, Late)).

only_lanes_with_nothing_written_and_nothing_waiting_are_ticked_test() ->
    {ok, [0], Tick} = atoll_dist_tick:check(2000, [{0, 0, 0, false}, {0, 5, 0, false}], new()),
    ?assertMatch({ok, [1], _}, atoll_dist_tick:check(4000, [{0, 0, 9, false}, {0, 5, 0, false}], Tick)).

a_lane_that_is_held_is_not_silent_test() ->
    Check = fun(I, Tick0) ->
        {ok, _, Tick} = atoll_dist_tick:check(I * 2000, [{I, I, 0, false}, {0, I, 0, true}], Tick0),
        Tick
    end,
    Held = lists:foldl(Check, new(), lists:seq(1, 100)),
    %% Its time begins when it is let go.
    ?assertMatch({ok, _, _}, atoll_dist_tick:check(202000, [{101, 101, 0, false}, {0, 101, 0, false}], Held)).

while_this_end_stood_still_no_lane_is_blamed_test() ->
    Quiet = [{1, 1, 0, false}, {1, 1, 0, false}],
    {ok, _, Tick1} = atoll_dist_tick:check(2000, Quiet, new()),
    {ok, _, Tick2} = atoll_dist_tick:check(1000000, Quiet, Tick1),
    ?assertMatch({ok, _, _}, atoll_dist_tick:check(1002000, Quiet, Tick2)).

any_lane_says_that_the_channel_lives_test() ->
    ?assertEqual({ok, 7, 9, 4}, atoll_dist_tick:stat([{3, 4, 0, false}, {4, 5, 4, true}])).

ticktimes_may_change_test() ->
    %% Heard a while ago at the long ticktime, and not taken for dead at the short one.
    Long = atoll_dist_tick:new(1, 60000, 60000, 0),
    {ok, _, Heard} = atoll_dist_tick:check(15000, [{1, 1, 0, false}], Long),
    Short = atoll_dist_tick:change(2000, 2000, 30000, Heard),
    ?assertEqual(500, atoll_dist_tick:period(Short)),
    ?assertMatch({ok, [0], _}, atoll_dist_tick:check(30500, [{1, 1, 0, false}], Short)),
    %% From then on the short one counts; and the longer one of both.
    ?assertMatch({dead, {lane_silent, 0}, 2600}, last(30000, 500, 6, 2600, Short)),
    Unequal = atoll_dist_tick:change(2000, 10000, 30000, Heard),
    ?assertMatch({ok, [0], _}, last(30000, 500, 6, 2600, Unequal)).

%% Looked at every so often, at last so much later.
last(From, Period, Times, Late, Tick0) ->
    Tick = lists:foldl(
        fun(I, Acc) ->
            {ok, _, Next} = atoll_dist_tick:check(From + I * Period, [{1, 1, 0, false}], Acc),
            Next
        end,
        Tick0,
        lists:seq(1, Times - 1)
    ),
    atoll_dist_tick:check(From + Late, [{1, 1, 0, false}], Tick).
