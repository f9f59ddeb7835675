%% The link protocol: what wants, failures and idle connections lead to.
-module(atoll_link_core_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(OPTIONS, #{
    retry_min_ms => 100, retry_max_ms => 2000, linger_ms => 1000, linger_max_ms => 30000
}).

new() -> new(n1).

new(Self) ->
    {State, []} = atoll_link_core:init(#{self => Self, seed => 1, options => ?OPTIONS}, 0),
    State.

%% Runs events one after the other; gives the effects of the last.
run(Events, State) ->
    lists:foldl(fun(Event, {S, _}) -> atoll_link_core:handle(Event, 0, S) end, {State, []}, Events).

want(Peer) -> {cast, {want, owner, Peer}}.
unwant(Peer) -> {cast, {unwant, owner, Peer}}.
usage(Purpose, Peer, Uses, Traffic) ->
    {cast, {usage, Purpose, Peer, #{uses => Uses, traffic => Traffic}}}.

%% Held, then unwanted, then twice found quiet: the peer is asked.
asking(Peer) ->
    [want(Peer), {up, Peer}, {cast, {connected, Peer, true}}, unwant(Peer)] ++
        [{timeout, {linger, Peer}}, usage(reading, Peer, 0, 10)] ++
        [{timeout, {linger, Peer}}, usage(reading, Peer, 0, 10)].

a_wanted_peer_is_connected_test() ->
    {State, Effects} = run([want(n2)], new()),
    ?assertEqual([{act, {watch, owner}}, {act, {connect, n2}}], Effects),
    {_, Up} = run([{up, n2}], State),
    ?assert(lists:member({notify, {up, n2}}, Up)).

nobody_wants_itself_test() ->
    ?assertMatch({_, []}, run([want(n1)], new())).

a_failed_attempt_is_told_and_repeated_later_test() ->
    {State, Effects} = run([want(n2), {cast, {connected, n2, false}}], new()),
    ?assertMatch([{timer, {retry, n2}, Ms}, {notify, {unreachable, n2}}] when Ms =< 100, Effects),
    {_, Again} = run([{timeout, {retry, n2}}], State),
    ?assertEqual([{act, {connect, n2}}], Again).

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

a_connection_nobody_wanted_is_never_touched_test() ->
    {State, Effects} = run([{up, n2}], new()),
    ?assertEqual([{notify, {up, n2}}], Effects),
    ?assertMatch([#{phase := foreign}], atoll_link_core:summary(State)).

a_connection_that_was_there_before_it_was_wanted_stays_test() ->
    {State, Effects} = run([{up, n2}, want(n2), unwant(n2)], new()),
    ?assertEqual([{act, {unwatch, owner}}, {send, n2, released}], Effects),
    ?assertMatch([#{phase := foreign}], atoll_link_core:summary(State)).

when_the_peer_lets_go_it_is_looked_at_soon_test() ->
    {Kept, [{timer, {linger, n2}, 2000} | _]} =
        run(asking(n2) ++ [{message, n2, {close, 1, false}}], new()),
    ?assertMatch({_, [{timer, {linger, n2}, 1000}]}, run([{message, n2, released}], Kept)).

an_answer_to_an_earlier_question_is_none_test() ->
    Late = [{timeout, {linger, n2}}, {timeout, {linger, n2}}, usage(reading, n2, 0, 12)] ++
        [{timeout, {linger, n2}}, usage(reading, n2, 0, 12)],
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
    ?assertEqual([{act, {unwatch, other}}, {timer, {linger, n2}, 1000}], Last).

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
    Events = [want(n2), {up, n2}, unwant(n2), {timeout, {linger, n2}}, usage(reading, n2, 1, 10)],
    {_, Effects} = run(Events, new()),
    ?assertEqual([{timer, {linger, n2}, 2000}, {notify, {kept, n2}}], Effects).

a_connection_with_traffic_stays_test() ->
    Events = [
        want(n2), {up, n2}, unwant(n2),
        {timeout, {linger, n2}}, usage(reading, n2, 0, 10),
        {timeout, {linger, n2}}, usage(reading, n2, 0, 11)
    ],
    ?assertMatch({_, [{timer, {linger, n2}, 1000}]}, run(Events, new())).

a_connection_that_came_into_use_while_the_peer_agreed_stays_test() ->
    {Agreed, _} = run(asking(n2) ++ [{message, n2, {close, 1, true}}], new()),
    ?assertMatch({_, [{timer, {linger, n2}, _}, {notify, {kept, n2}}]}, run([usage(agreed, n2, 1, 12)], Agreed)),
    ?assertMatch({_, [{timer, {linger, n2}, _}, {notify, {kept, n2}}]}, run([usage(agreed, n2, 0, 20)], Agreed)).

a_use_that_cannot_be_read_counts_test() ->
    Events = [
        want(n2), {up, n2}, unwant(n2),
        {timeout, {linger, n2}}, {cast, {usage, reading, n2, unknown}}
    ],
    ?assertMatch({_, [{timer, {linger, n2}, 2000}, {notify, {kept, n2}}]}, run(Events, new())).

a_peer_that_refuses_or_is_silent_keeps_it_test() ->
    Kept = [{timer, {linger, n2}, 2000}, {notify, {kept, n2}}],
    ?assertMatch({_, Kept}, run(asking(n2) ++ [{message, n2, {close, 1, false}}], new())),
    ?assertMatch({_, Kept}, run(asking(n2) ++ [{timeout, {linger, n2}}], new())).

wanted_again_it_is_held_test() ->
    {Held, Effects} = run(asking(n2) ++ [want(n2)], new()),
    ?assertEqual([{act, {watch, owner}}, {cancel, {linger, n2}}], Effects),
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
    {_, Large} = run(asking(n2) ++ [{message, n2, {may_close, 7}}], new(n3)),
    ?assertEqual([{timer, {linger, n2}, 1000}, {act, {measure, {asked, 7}, n2}}], Large).

%% Whatever happens, the table holds nobody for ever: once all owners have let
%% go and all connections are down, it is empty.
properties_test_() ->
    ?_assert(proper:quickcheck(prop_forgets(), [quiet, {to_file, user}, {numtests, 3000}])).

prop_forgets() ->
    ?FORALL(
        Events,
        list(event()),
        begin
            {State, _} = run(possible(Events, new(), []), new()),
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
            {cast, {connected, Peer, boolean()}},
            {cast, {usage, oneof([reading, agreed, {asked, 1}]), Peer, usage()}},
            {timeout, {linger, Peer}},
            {timeout, {retry, Peer}},
            {message, Peer, {may_close, 1}},
            {message, Peer, released},
            {message, Peer, {close, choose(1, 3), boolean()}}
        ])
    ).

usage() ->
    oneof([unknown, #{uses => choose(0, 1), traffic => choose(0, 3)}]).

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
