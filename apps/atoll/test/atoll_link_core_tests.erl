%% SPDX-License-Identifier: Apache-2.0
%% The link protocol: what wants, failures and idle connections lead to.
-module(atoll_link_core_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(OPTIONS, #{
    retry_min_ms => 100,
    retry_max_ms => 2000,
    linger_ms => 1000,
    linger_max_ms => 30000,
    on_demand_ms => infinity
}).

new() -> new(n1).

new(Self) -> new(Self, infinity).

new(Self, OnDemand) ->
    Options = maps:put(on_demand_ms, OnDemand, ?OPTIONS),
    {State, []} = atoll_link_core:init(#{self => Self, seed => 1, options => Options}, 0),
    State.

on_demand() -> new(n1, 60000).

%% Runs events one after the other; gives the effects of the last.
run(Events, State) ->
    lists:foldl(fun(Event, {S, _}) -> atoll_link_core:handle(Event, 0, S) end, {State, []}, Events).

%% The same; gives all effects.
run_all(Events, State) ->
    lists:foldl(
        fun(Event, {S0, Effects}) ->
            {S, More} = atoll_link_core:handle(Event, 0, S0),
            {S, Effects ++ More}
        end,
        {State, []},
        Events
    ).

want(Peer) -> {cast, {want, owner, Peer}}.
unwant(Peer) -> {cast, {unwant, owner, Peer}}.
usage(Purpose, Peer, Uses, Traffic) ->
    usage(Purpose, Peer, Uses, Traffic, 100 * Traffic).
usage(Purpose, Peer, Uses, Traffic, Payload) ->
    {cast, {usage, Purpose, Peer, #{uses => Uses, traffic => Traffic, payload => Payload}}}.

%% Held, then unwanted, then twice found quiet: the peer is asked.
asking(Peer) ->
    [want(Peer), {up, Peer}, {cast, {connected, Peer, true}}, unwant(Peer)] ++
        look(Peer, 10) ++ look(Peer, 10) ++ [usage(reading, Peer, 0, 10)].

%% Its packets are read; twice the same are quiet.
look(Peer, Traffic) -> look(Peer, Traffic, 100 * Traffic).
look(Peer, Traffic, Payload) ->
    [{timeout, {linger, Peer}}, {cast, {usage, traffic, Peer, #{traffic => Traffic, payload => Payload}}}].

a_wanted_peer_is_connected_test() ->
    {State, Effects} = run([want(n2)], new()),
    ?assertEqual([{act, {watch, owner}}, {act, {own, n2, true}}, {act, {connect, n2}}], Effects),
    {_, Up} = run([{up, n2}], State),
    ?assert(lists:member({notify, {up, n2}}, Up)).

nobody_wants_itself_test() ->
    ?assertMatch({_, []}, run([want(n1)], new())).

a_failed_attempt_is_told_and_repeated_later_test() ->
    {State, Effects} = run([want(n2), {cast, {connected, n2, false}}], new()),
    ?assertMatch([{timer, {retry, n2}, Ms}, {notify, {unreachable, n2}}] when Ms =< 100, Effects),
    {_, Again} = run([{timeout, {retry, n2}}], State),
    ?assertEqual([{act, {connect, n2}}], Again).

who_wants_again_what_could_not_be_reached_has_it_tried_at_once_test() ->
    {Waiting, _} = run([want(n2), {cast, {connected, n2, false}}], new()),
    {Trying, Effects} = run([want(n2)], Waiting),
    ?assertEqual([{cancel, {retry, n2}}, {act, {connect, n2}}], Effects),
    %% One attempt at a time.
    ?assertMatch({_, []}, run([want(n2)], Trying)).

%% A refusal, and the attempt after its pause.
refusal(Peer) -> {cast, {connected, Peer, refused}}.

a_peer_that_refuses_is_told_of_the_second_time_and_once_test() ->
    {S1, First} = run([want(n2), refusal(n2)], new()),
    ?assertMatch([{timer, {retry, n2}, Ms}, {notify, {unreachable, n2}}] when Ms =< 100, First),
    {S2, Second} = run([{timeout, {retry, n2}}, refusal(n2)], S1),
    ?assertMatch([{notify, {refused, n2}}, {timer, _, _}, {notify, {unreachable, n2}}], Second),
    ?assertMatch([#{phase := refused}], atoll_link_core:summary(S2)),
    {S3, Third} = run([{timeout, {retry, n2}}, refusal(n2)], S2),
    ?assertMatch([{timer, _, _}, {notify, {unreachable, n2}}], Third),
    %% What is said of it is over when it is there, and when it is gone.
    lists:foreach(
        fun(Over) ->
            {S4, _} = run([{timeout, {retry, n2}} | Over], S3),
            {_, Effects} = run_all([refusal(n2), {timeout, {retry, n2}}, refusal(n2)], S4),
            ?assert(lists:member({notify, {refused, n2}}, Effects))
        end,
        [
            [{up, n2}, {cast, {connected, n2, true}}, {down, n2, lost}],
            [{cast, {connected, n2, false}}, {timeout, {retry, n2}}]
        ]
    ).

nobodys_want_shortens_the_pause_of_one_that_refuses_test() ->
    {Refused, [{timer, _, Ms} | _]} = run([want(n2), refusal(n2)], new()),
    ?assertMatch({_, []}, run([want(n2)], Refused)),
    {_, Other} = run([{cast, {want, other, n2}}], Refused),
    ?assertEqual([{act, {watch, other}}], Other),
    {Unwanted, _} = run([unwant(n2)], Refused),
    ?assertEqual([], atoll_link_core:summary(Unwanted)),
    {_, Again} = run([want(n2)], Unwanted),
    ?assertEqual(
        [{act, {watch, owner}}, {act, {own, n2, true}}, {timer, {retry, n2}, Ms}, {notify, {unreachable, n2}}], Again
    ),
    {_, Later} = atoll_link_core:handle(want(n2), Ms, Unwanted),
    ?assert(lists:member({act, {connect, n2}}, Later)).

the_pauses_of_one_that_refuses_grow_to_half_a_minute_test() ->
    {Pauses, _} = lists:mapfoldl(
        fun(_, S0) ->
            {S, Effects} = run_all([refusal(n2), {timeout, {retry, n2}}], S0),
            [Ms] = [Ms || {timer, {retry, n2}, Ms} <- Effects],
            {Ms, S}
        end,
        element(1, run([want(n2)], new())),
        lists:seq(1, 30)
    ),
    ?assertEqual(Pauses, lists:sort(lists:sublist(Pauses, 10)) ++ lists:nthtail(10, Pauses)),
    ?assert(lists:all(fun(Ms) -> Ms > 22500 andalso Ms =< 30000 end, lists:nthtail(25, Pauses))).

no_more_than_ten_thousand_that_refuse_are_remembered_test() ->
    Many = [list_to_atom("m" ++ integer_to_list(N)) || N <- lists:seq(1, 10000)],
    Full = lists:foldl(
        fun(Node, S) -> element(1, run([want(Node), refusal(Node), unwant(Node)], S)) end, new(), Many
    ),
    %% One more is tried seldom from the first time on.
    {_, One} = run([want(n2), refusal(n2)], Full),
    ?assertMatch([Ms] when Ms > 22500, [Ms || {timer, {retry, n2}, Ms} <- One]),
    {More, _} = run([want(n2), refusal(n2), unwant(n2)], Full),
    {_, Forgotten} = run([want(n2)], More),
    ?assert(lists:member({act, {connect, n2}}, Forgotten)),
    {_, Remembered} = run([want(hd(Many))], More),
    ?assertNot(lists:member({act, {connect, hd(Many)}}, Remembered)),
    %% When the pauses are over there is room.
    {Room, _} = lists:foldl(
        fun(Event, {S, _}) -> atoll_link_core:handle(Event, 1000, S) end, {More, []}, [want(n2), refusal(n2), unwant(n2)]
    ),
    {_, Kept} = atoll_link_core:handle(want(n2), 1000, Room),
    ?assertNot(lists:member({act, {connect, n2}}, Kept)).

pauses_grow_to_the_longest_test() ->
    Attempt = [{timeout, {retry, n2}}, {cast, {connected, n2, false}}],
    {State0, _} = run([want(n2), {cast, {connected, n2, false}}], new()),
    {Pauses, _} = lists:mapfoldl(
        fun(_, S0) ->
            {S, [{timer, {retry, n2}, Ms} | _]} = run(Attempt, S0),
            {Ms, S}
        end,
        State0,
        lists:seq(1, 12)
    ),
    ?assert(lists:all(fun(Ms) -> Ms =< 2000 end, Pauses)),
    ?assert(lists:last(Pauses) >= 1500).

a_lost_wanted_peer_is_connected_again_test() ->
    {_, Effects} = run([want(n2), {up, n2}, {down, n2, lost}], new()),
    ?assertEqual([{notify, {down, n2, lost}}, {act, {connect, n2}}], Effects).

a_connection_nobody_wanted_is_never_touched_without_a_time_for_it_test() ->
    {State, Effects} = run([{up, n2}], new()),
    ?assertEqual([{notify, {up, n2}}], Effects),
    ?assertMatch([#{phase := foreign}], atoll_link_core:summary(State)).

a_connection_that_was_there_before_it_was_wanted_stays_test() ->
    {State, Effects} = run([{up, n2}, want(n2), unwant(n2)], new()),
    ?assertEqual([{act, {unwatch, owner}}, {send, n2, released}, {timer, {own, n2}, 1000}], Effects),
    ?assertMatch([#{phase := foreign}], atoll_link_core:summary(State)).

one_made_for_an_owner_is_never_closed_either_without_a_time_for_it_test() ->
    Options = maps:put(linger_ms, infinity, ?OPTIONS),
    {Began, []} = atoll_link_core:init(#{self => n1, seed => 1, options => Options}, 0),
    {State, Effects} = run([want(n2), {up, n2}, {cast, {connected, n2, true}}, unwant(n2)], Began),
    ?assertEqual([{act, {unwatch, owner}}], Effects),
    ?assertMatch([#{phase := foreign}], atoll_link_core:summary(State)),
    {_, Asked} = run([{message, n2, {may_close, 1}}, usage({asked, 1}, n2, 0, 5)], State),
    ?assertEqual([{send, n2, {close, 1, true}}], Asked).

%% What the carrier is told, event by event.
owned(Events) ->
    {Lists, _} = lists:mapfoldl(
        fun(Event, S0) ->
            {S, Effects} = atoll_link_core:handle(Event, 0, S0),
            {[Wants || {act, {own, n2, Wants}} <- Effects], S}
        end,
        new(),
        Events
    ),
    Lists.

what_is_wanted_is_to_have_a_connection_of_its_own_test() ->
    %% It is said once, before the first attempt; and of what was there before.
    ?assertEqual([[true], [], [], []], owned([want(n2), {up, n2}, {cast, {want, other, n2}}, want(n2)])),
    ?assertEqual([[], [true]], owned([{up, n2}, want(n2)])),
    %% It holds for the next connection, and the next attempt.
    ?assertEqual([[true], [], [], []], owned([want(n2), {up, n2}, {down, n2, lost}, {up, n2}])),
    ?assertEqual([[true], [], []], owned([want(n2), {cast, {connected, n2, false}}, {timeout, {retry, n2}}])),
    ?assertEqual([[true], [], [], []], owned([want(n2), {up, n2}, {cast, {disconnect, n2}}, {down, n2, lost}])).

what_was_not_wanted_for_a_while_need_not_have_one_test() ->
    Released = [want(n2), {up, n2}, unwant(n2)],
    ?assertEqual([[true], [], [], [false]], owned(Released ++ [{timeout, {own, n2}}])),
    ?assertEqual([[true], [], [], [false], [true]], owned(Released ++ [{timeout, {own, n2}}, want(n2)])),
    %% It was wanted again in time.
    ?assertEqual([[true], [], [], []], owned(Released ++ [want(n2)])),
    {_, Again} = run(Released ++ [want(n2)], new()),
    ?assert(lists:member({cancel, {own, n2}}, Again)),
    %% There is nothing to wait for.
    ?assertEqual([[true], [], [], [false]], owned(Released ++ [{down, n2, lost}])),
    {_, Down} = run(Released ++ [{down, n2, lost}], new()),
    ?assert(lists:member({cancel, {own, n2}}, Down)),
    ?assertEqual([[true], [], [false]], owned([want(n2), unwant(n2), {cast, {connected, n2, false}}])),
    ?assertEqual([[true], [], [false]], owned([want(n2), {cast, {connected, n2, false}}, unwant(n2)])),
    %% What nobody wanted is no matter of that.
    ?assertEqual([[], []], owned([{up, n2}, {down, n2, lost}])).

that_a_hidden_node_is_wanted_is_told_whichever_comes_first_test() ->
    Hidden = {cast, {hidden, n2}},
    Told = fun(Events) ->
        {Lists, _} = lists:mapfoldl(
            fun(Event, S0) ->
                {S, Effects} = atoll_link_core:handle(Event, 0, S0),
                {[N || {notify, {wanted, _} = N} <- Effects], S}
            end,
            new(),
            Events
        ),
        Lists
    end,
    Wanted = [{wanted, n2}],
    ?assertEqual([[], [], Wanted], Told([{up, n2}, Hidden, want(n2)])),
    ?assertEqual([[], [], Wanted], Told([want(n2), {up, n2}, Hidden])),
    %% A room above was faster; and one was not.
    ?assertEqual([[], Wanted, [], Wanted], Told([want(n2), Hidden, {up, n2}, Hidden])),
    ?assertEqual([[], [], [], Wanted], Told([Hidden, {up, n2}, Hidden, want(n2)])),
    %% It is told again of the next connection, and of none that is not hidden.
    ?assertEqual([[], [], Wanted, [], []], Told([want(n2), {up, n2}, Hidden, {down, n2, lost}, {up, n2}])),
    ?assertEqual([[], [], [], Wanted, []], Told([{up, n2}, Hidden, {cast, {want, n2, n3}}, want(n2), {cast, {want, n4, n2}}])).

a_connection_on_demand_is_closed_when_quiet_test() ->
    {Up, First} = run([{up, n2}], on_demand()),
    ?assertEqual([{timer, {linger, n2}, 60000}, {notify, {up, n2}}], First),
    {Read, Second} = run(look(n2, 10), Up),
    ?assertEqual([{timer, {linger, n2}, 60000}], Second),
    {Quiet, Third} = run(look(n2, 10), Read),
    ?assertEqual([{act, {measure, reading, n2}}], Third),
    {Asking, Ask} = run([usage(reading, n2, 0, 10)], Quiet),
    ?assertEqual([{send, n2, {may_close, 1}}, {timer, {linger, n2}, 60000}], Ask),
    {_, Close} = run([{message, n2, {close, 1, true}}, usage(agreed, n2, 0, 12)], Asking),
    ?assertEqual([{act, {disconnect, n2}}], Close).

the_pauses_of_one_on_demand_are_not_cut_short_test() ->
    %% The longest pause of one that was wanted is 30 s.
    InUse = look(n2, 10) ++ look(n2, 10) ++ [usage(reading, n2, 1, 10)],
    {Kept, Effects} = run([{up, n2} | InUse], on_demand()),
    ?assertEqual([{timer, {linger, n2}, 60000}, {notify, {kept, n2}}], Effects),
    ?assertMatch({_, [{timer, {linger, n2}, 60000}]}, run([{message, n2, released}], Kept)),
    %% And one with a short time grows up to that.
    {_, Longest} = run([{up, n2} | lists:append(lists:duplicate(20, InUse))], new(n1, 300)),
    ?assertEqual([{timer, {linger, n2}, 30000}, {notify, {kept, n2}}], Longest).

one_on_demand_that_was_wanted_is_one_on_demand_again_test() ->
    {Held, _} = run([{up, n2}, want(n2)], on_demand()),
    ?assertMatch([#{phase := held}], atoll_link_core:summary(Held)),
    {_, Effects} = run([unwant(n2)], Held),
    ?assertEqual(
        [{act, {unwatch, owner}}, {send, n2, released}, {timer, {linger, n2}, 60000}, {timer, {own, n2}, 1000}], Effects
    ).

a_tick_is_no_traffic_test() ->
    Up = [{up, n2} | look(n2, 10, 500)],
    ?assertMatch({_, [{act, {measure, reading, n2}}]}, run(Up ++ look(n2, 18, 500), on_demand())),
    ?assertMatch({_, [{timer, {linger, n2}, 60000} | _]}, run(Up ++ look(n2, 18, 501), on_demand())).

%% To read the monitors stops the runtime: where packets flow that is not done, and the packets
%% themselves are read more and more seldom.
monitors_are_not_read_while_packets_flow_test() ->
    Released = [want(n2), {up, n2}, {cast, {connected, n2, true}}, unwant(n2)],
    Looks = lists:append([look(n2, 10 * N) || N <- lists:seq(1, 100)]),
    {State, Effects} = run_all(Released ++ Looks, new()),
    ?assertEqual([], [E || {act, {measure, reading, _}} = E <- Effects]),
    %% In turn the pause, and how long it has to be quiet after it.
    Pauses = [1000, 1000, 2000, 1000, 4000, 1000, 8000, 1000, 16000, 1000, 30000, 1000, 30000],
    ?assertEqual(Pauses, lists:sublist([Ms || {timer, {linger, n2}, Ms} <- Effects], length(Pauses))),
    %% It is closed when nobody uses it any more.
    {_, Last} = run(look(n2, 1000) ++ look(n2, 1000) ++ [usage(reading, n2, 0, 1000)], State),
    ?assertMatch([{send, n2, {may_close, 1}} | _], Last).

where_ticks_cannot_be_told_as_many_packets_as_there_may_be_are_none_test() ->
    Look = fun(Packets) -> look(n2, Packets, {ticks, 15000}) end,
    Second = fun(Packets, State) -> run([{up, n2} | Look(10) ++ Look(Packets)], State) end,
    ?assertMatch({_, [{act, {measure, reading, n2}}]}, Second(20, on_demand())),
    ?assertMatch({_, [{timer, {linger, n2}, 60000} | _]}, Second(21, on_demand())),
    ?assertMatch({_, [{act, {measure, reading, n2}}]}, Second(10, new(n1, 1000))),
    ?assertMatch({_, [{timer, {linger, n2}, 2000} | _]}, Second(11, new(n1, 1000))).

a_disconnect_closes_at_once_and_what_is_wanted_is_tried_after_a_pause_test() ->
    {Cut, Effects} = run([want(n2), {up, n2}, {cast, {disconnect, n2}}], new()),
    ?assertEqual([{cancel, {linger, n2}}, {act, {disconnect, n2}}], Effects),
    ?assertMatch({_, []}, run([{cast, {disconnect, n2}}], Cut)),
    {Down, Pause} = run([{down, n2, disconnect}], Cut),
    ?assertMatch([{notify, {down, n2, disconnect}}, {timer, {retry, n2}, Ms}] when Ms > 50, Pause),
    {Trying, Retry} = run([{timeout, {retry, n2}}], Down),
    ?assertEqual([{act, {connect, n2}}], Retry),
    %% Up again, it is as any other.
    {_, Lost} = run([{up, n2}, {down, n2, lost}], Trying),
    ?assertEqual([{notify, {down, n2, lost}}, {act, {connect, n2}}], Lost).

a_disconnect_of_what_nobody_wants_is_the_end_of_it_test() ->
    [
        begin
            {Closed, Effects} = run([{cast, {disconnect, n2}}], State),
            ?assert(lists:member({act, {disconnect, n2}}, Effects)),
            {Gone, _} = run([{down, n2, disconnect}], Closed),
            ?assertEqual([], atoll_link_core:summary(Gone))
        end
     || {State, _} <- [run([{up, n2}], new()), run([{up, n2}], on_demand()), run(asking(n2), new())]
    ],
    ?assertMatch({_, []}, run([{cast, {disconnect, n2}}], new())).

wants_come_and_go_while_it_is_cut_test() ->
    Cut = [{up, n2}, {cast, {disconnect, n2}}, want(n2)],
    {Wanted, _} = run(Cut, on_demand()),
    ?assertMatch({_, [_, {timer, {retry, n2}, _}]}, run([{down, n2, disconnect}], Wanted)),
    {Unwanted, Effects} = run([unwant(n2)], Wanted),
    ?assertEqual([{act, {unwatch, owner}}, {timer, {own, n2}, 1000}], Effects),
    {Gone, _} = run([{down, n2, disconnect}], Unwanted),
    ?assertEqual([], atoll_link_core:summary(Gone)).

when_the_peer_lets_go_it_is_looked_at_soon_test() ->
    {Kept, [{timer, {linger, n2}, 2000} | _]} =
        run(asking(n2) ++ [{message, n2, {close, 1, false}}], new()),
    ?assertMatch({_, [{timer, {linger, n2}, 1000}]}, run([{message, n2, released}], Kept)).

an_answer_to_an_earlier_question_is_none_test() ->
    Late = [{timeout, {linger, n2}} | look(n2, 12)] ++ look(n2, 12) ++ [usage(reading, n2, 0, 12)],
    {Asking, Effects} = run(asking(n2) ++ Late, new()),
    ?assertMatch([{send, n2, {may_close, 2}} | _], Effects),
    ?assertMatch({_, []}, run([{message, n2, {close, 1, true}}], Asking)).

up_twice_is_told_once_test() ->
    ?assertMatch({_, []}, run([{up, n2}, {up, n2}], new())).

two_owners_both_have_to_let_go_test() ->
    Events = [want(n2), {cast, {want, other, n2}}, {up, n2}, unwant(n2)],
    {State, Effects} = run(Events, new()),
    ?assertEqual([{act, {unwatch, owner}}], Effects),
    {_, Last} = run([{cast, {unwant, other, n2}}], State),
    ?assertEqual([{act, {unwatch, other}}, {timer, {linger, n2}, 1000}, {timer, {own, n2}, 1000}], Last).

an_owner_that_ends_lets_go_of_all_test() ->
    {State, _} = run([want(n2), want(n3), {up, n2}, {up, n3}, {cast, {forget, owner}}], new()),
    ?assertMatch([#{wanted_by := 0}, #{wanted_by := 0}], atoll_link_core:summary(State)).

a_peer_unwanted_before_it_was_reached_is_forgotten_test() ->
    {State, _} = run([want(n2), unwant(n2), {cast, {connected, n2, false}}], new()),
    ?assertEqual([], atoll_link_core:summary(State)),
    {Late, _} = run([want(n2), unwant(n2), {up, n2}], new()),
    ?assertMatch([#{phase := lingering}], atoll_link_core:summary(Late)).

a_quiet_unused_connection_is_closed_when_the_peer_agrees_test() ->
    {Asking, Ask} = run(asking(n2), new()),
    ?assertEqual([{send, n2, {may_close, 1}}, {timer, {linger, n2}, 1000}], Ask),
    {Agreed, Look} = run([{message, n2, {close, 1, true}}], Asking),
    ?assertEqual([{cancel, {linger, n2}}, {act, {measure, agreed, n2}}], Look),
    {Closing, Close} = run([usage(agreed, n2, 0, 12)], Agreed),
    ?assertEqual([{act, {disconnect, n2}}], Close),
    {Closed, _} = run([{down, n2, disconnect}], Closing),
    ?assertEqual([], atoll_link_core:summary(Closed)).

a_connection_with_a_monitor_stays_test() ->
    Events = [want(n2), {up, n2}, unwant(n2)] ++ look(n2, 10) ++ look(n2, 10) ++ [usage(reading, n2, 1, 10)],
    {_, Effects} = run(Events, new()),
    ?assertEqual([{timer, {linger, n2}, 2000}, {notify, {kept, n2}}], Effects).

a_connection_with_traffic_stays_test() ->
    Events = [want(n2), {up, n2}, unwant(n2)] ++ look(n2, 10) ++ look(n2, 11),
    ?assertMatch({_, [{timer, {linger, n2}, 2000}, {notify, {kept, n2}}]}, run(Events, new())).

a_connection_that_came_into_use_while_the_peer_agreed_stays_test() ->
    {Agreed, _} = run(asking(n2) ++ [{message, n2, {close, 1, true}}], new()),
    ?assertMatch({_, [{timer, {linger, n2}, _}, {notify, {kept, n2}}]}, run([usage(agreed, n2, 1, 12)], Agreed)),
    ?assertMatch({_, [{timer, {linger, n2}, _}, {notify, {kept, n2}}]}, run([usage(agreed, n2, 0, 20)], Agreed)).

a_use_that_cannot_be_read_counts_test() ->
    Events = [
        want(n2), {up, n2}, unwant(n2),
        {timeout, {linger, n2}}, {cast, {usage, traffic, n2, unknown}}
    ],
    ?assertMatch({_, [{timer, {linger, n2}, 2000}, {notify, {kept, n2}}]}, run(Events, new())).

a_peer_that_refuses_or_is_silent_keeps_it_test() ->
    Kept = [{timer, {linger, n2}, 2000}, {notify, {kept, n2}}],
    ?assertMatch({_, Kept}, run(asking(n2) ++ [{message, n2, {close, 1, false}}], new())),
    ?assertMatch({_, Kept}, run(asking(n2) ++ [{timeout, {linger, n2}}], new())).

wanted_again_it_is_held_test() ->
    {Held, Effects} = run(asking(n2) ++ [want(n2)], new()),
    ?assertEqual([{act, {watch, owner}}, {cancel, {own, n2}}, {cancel, {linger, n2}}], Effects),
    {Same, Late} = run([{message, n2, {close, 1, true}}], Held),
    ?assertEqual([], Late),
    ?assertMatch([#{phase := held}], atoll_link_core:summary(Same)).

who_wants_it_does_not_agree_test() ->
    {_, Effects} = run([want(n2), {up, n2}, {message, n2, {may_close, 7}}], new()),
    ?assertEqual([{send, n2, {close, 7, false}}], Effects).

who_has_a_monitor_over_it_does_not_agree_test() ->
    {Asked, Look} = run([{up, n2}, {message, n2, {may_close, 7}}], new()),
    ?assertEqual([{act, {measure, {asked, 7}, n2}}], Look),
    ?assertMatch({_, [{send, n2, {close, 7, false}}]}, run([usage({asked, 7}, n2, 1, 5)], Asked)),
    ?assertMatch({_, [{send, n2, {close, 7, true}}]}, run([usage({asked, 7}, n2, 0, 5)], Asked)).

of_two_that_close_the_smaller_name_goes_on_test() ->
    {_, Small} = run(asking(n2) ++ [{message, n2, {may_close, 7}}], new(n1)),
    ?assertEqual([{send, n2, {close, 7, false}}], Small),
    %% The other's question and the answer to it are no use of the connection.
    Crossed = [{message, n2, {may_close, 7}}, {message, n2, {close, 1, true}}],
    ?assertMatch({_, [{act, {disconnect, n2}}]}, run(asking(n2) ++ Crossed ++ [usage(agreed, n2, 0, 14)], new(n1))),
    ?assertMatch({_, [_, {notify, {kept, n2}}]}, run(asking(n2) ++ Crossed ++ [usage(agreed, n2, 0, 15)], new(n1))),
    {_, Large} = run(asking(n2) ++ [{message, n2, {may_close, 7}}], new(n3)),
    ?assertEqual([{timer, {linger, n2}, 1000}, {act, {measure, {asked, 7}, n2}}], Large).

%% Whatever happens, the table holds nobody for ever: once all owners have let
%% go and all connections are down, it is empty.
properties_test_() ->
    atoll_prop:tests([{forgets, prop_forgets(), 3000}, {closes_what_is_unused_alone, prop_closes_what_is_unused_alone(), 1000}]).

prop_forgets() ->
    ?FORALL(
        {Events, OnDemand},
        {list(event()), oneof([infinity, 60000])},
        begin
            New = new(n1, OnDemand),
            {State, _} = run(possible(Events, New, []), New),
            End =
                [{cast, {forget, Owner}} || Owner <- [a, b]] ++
                    [{cast, {connected, Peer, false}} || Peer <- [n2, n3]] ++
                    [{down, Peer, lost} || Peer <- [n2, n3]],
            {Last, _} = run(End, State),
            [] =:= atoll_link_core:summary(Last)
        end
    ).

event() ->
    ?LET(
        Peer,
        oneof([n2, n3]),
        oneof([
            {cast, {want, oneof([a, b]), Peer}},
            {cast, {unwant, oneof([a, b]), Peer}},
            {cast, {forget, oneof([a, b])}},
            {up, Peer},
            {down, Peer, lost},
            {cast, {disconnect, Peer}},
            {cast, {connected, Peer, boolean()}},
            {cast, {usage, oneof([traffic, reading, agreed, {asked, 1}]), Peer, usage()}},
            {timeout, {linger, Peer}},
            {timeout, {retry, Peer}},
            {message, Peer, {may_close, 1}},
            {message, Peer, released},
            {message, Peer, {close, choose(1, 3), boolean()}}
        ])
    ).

usage() ->
    Payload = oneof([choose(0, 1), {ticks, choose(1, 2000)}]),
    oneof([unknown, #{uses => choose(0, 1), traffic => choose(0, 3), payload => Payload}]).

%% A timer fires only if it is set.
possible([], _State, _Timers) ->
    [];
possible([{timeout, Key} | Events], State, Timers) ->
    case lists:member(Key, Timers) of
        true -> take({timeout, Key}, Events, State, lists:delete(Key, Timers));
        false -> possible(Events, State, Timers)
    end;
possible([Event | Events], State, Timers) ->
    take(Event, Events, State, Timers).

take(Event, Events, State0, Timers0) ->
    {State, Effects} = atoll_link_core:handle(Event, 0, State0),
    [Event | possible(Events, State, lists:foldl(fun timer/2, Timers0, Effects))].

timer({timer, Key, _}, Timers) -> lists:usort([Key | Timers]);
timer({cancel, Key}, Timers) -> lists:delete(Key, Timers);
timer(_, Timers) -> Timers.

%% Two ends on one connection, whatever owners and programs do with it: the rooms
%% close it only if nobody wants it and no monitor over it was known to either when
%% it looked, each has one attempt under way at most, and once it is of no use to
%% anybody it is closed, at both ends, in bounded time.
prop_closes_what_is_unused_alone() ->
    ?FORALL(
        {Commands, Options},
        {list(step()), pair()},
        begin
            #{faults := Faults, closed := #{room := Closed}, stayed := Stayed, left := Left} =
                Result = atoll_link_pair:run(Commands, Options),
            ?WHENFAIL(
                io:format(user, "~tp~n", [Result]),
                collect(
                    {closed_by_a_room, min(Closed, 3)},
                    Faults =:= [] andalso Stayed =/= never andalso Left =:= [[], []]
                )
            )
        end
    ).

step() ->
    {pause(), command()}.

pause() ->
    frequency([{3, choose(0, 100)}, {2, choose(0, 5000)}, {1, choose(0, 200000)}]).

command() ->
    ?LET(
        End,
        oneof([a, b]),
        frequency([
            {3, {want, End, oneof([x, y])}},
            {3, {unwant, End, oneof([x, y])}},
            {4, {traffic, End}},
            {3, {monitor, End}},
            {3, {demonitor, End}},
            {2, {half, End}},
            {2, {unhalf, End}},
            {1, {disconnect, End}}
        ])
    ).

pair() ->
    ?LET(
        {Seed, Loss, Linger, Max, OnDemand, Ticks},
        {integer(), oneof([0.0, 0.1, 0.5]), choose(10, 2000), choose(2000, 40000), choose(10, 60000),
            oneof([told, untold])},
        #{
            seed => Seed,
            loss => Loss,
            ticks => Ticks,
            link => maps:merge(?OPTIONS, #{linger_ms => Linger, linger_max_ms => Max, on_demand_ms => OnDemand})
        }
    ).
