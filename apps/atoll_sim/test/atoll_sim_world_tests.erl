%% SPDX-License-Identifier: Apache-2.0
%% What the world owes a protocol: links, order, faults, and time.
-module(atoll_sim_world_tests).

-include_lib("eunit/include/eunit.hrl").

a_wanted_link_comes_up_on_both_ends_and_goes_when_nobody_wants_it_test() ->
    W1 = run(1000, tell(a, [{want, b}], world([a, b]))),
    ?assertEqual([{a, {up, b}}, {b, {up, a}}], heard(W1)),
    W2 = run(500, tell(a, [{unwant, b}], W1)),
    ?assertEqual([b], atoll_sim_world:links(a, W2)),
    W3 = run(3000, W2),
    ?assertEqual([], atoll_sim_world:links(a, W3)),
    ?assertMatch([_, _, {a, {down, b, disconnected}}, {b, {down, a, connection_closed}}], heard(W3)).

a_link_that_the_other_end_wants_stays_test() ->
    W1 = run(1000, tell(b, [{want, a}], tell(a, [{want, b}], world([a, b])))),
    W2 = run(5000, tell(a, [{unwant, b}], W1)),
    ?assertEqual([b], atoll_sim_world:links(a, W2)).

%% One connection, which two rooms own; both hear of it.
a_link_that_another_room_wants_stays_test() ->
    Two = #{
        rooms => [{left, atoll_sim_echo}, {right, atoll_sim_echo}],
        config => fun(Name, _Incarnation, _Seed) -> #{left => Name, right => Name} end,
        seed => 7,
        watch => {fun see/4, []}
    },
    In = fun(Room, Effects, W) -> atoll_sim_world:cast(a, Room, {effects, Effects}, W) end,
    W0 = lists:foldl(fun atoll_sim_world:start/2, atoll_sim_world:new(Two), [a, b]),
    W1 = run(1000, In(right, [{want, b}], In(left, [{want, b}], W0))),
    ?assertEqual([{a, {up, b}}, {b, {up, a}}], heard(W1)),
    W2 = run(20000, In(left, [{unwant, b}], W1)),
    ?assertEqual([b], atoll_sim_world:links(a, W2)),
    %% Messages go from room to room.
    Sent = run(1000, In(right, [{send, b, hello}], W2)),
    ?assertEqual([], [M || {b, {message, a, M}} <- heard(Sent)]),
    ?assertEqual([], atoll_sim_world:links(a, run(20000, In(right, [{unwant, b}], Sent)))).

who_stands_still_does_so_in_its_first_room_alone_test() ->
    W0 = atoll_sim_world:start(
        a,
        atoll_sim_world:new(#{
            rooms => [{left, atoll_sim_echo}, {right, atoll_sim_echo}],
            config => fun(Name, _Incarnation, _Seed) -> #{left => Name, right => Name} end,
            seed => 7,
            watch => {fun(_, a, Sight, Seen) -> [Sight | Seen] end, []}
        })
    ),
    Ask = fun(Room, W) -> element(2, atoll_sim_world:call(a, Room, Room, W)) end,
    Asked = fun(W) -> [Question || {reply, _, {a, Question}} <- lists:reverse(atoll_sim_world:watched(W))] end,
    W1 = Ask(right, Ask(left, atoll_sim_world:stall(a, W0))),
    ?assertEqual([right], Asked(W1)),
    ?assertEqual([right, left], Asked(atoll_sim_world:resume(a, W1))).

messages_over_a_link_come_in_order_test() ->
    Numbers = lists:seq(1, 200),
    W = run(5000, tell(a, [{send, b, N} || N <- Numbers], linked())),
    ?assertEqual(Numbers, [N || {b, {message, a, N}} <- heard(W)]).

without_a_link_nothing_is_sent_test() ->
    W = run(1000, tell(a, [{send, b, hello}], world([a, b]))),
    ?assertEqual([], heard(W)),
    ?assertMatch(#{unconnected := 1, sent := 0}, atoll_sim_world:counters(W)).

a_dead_peer_refuses_and_is_tried_again_while_it_is_wanted_test() ->
    W1 = run(1000, tell(a, [{want, b}], world([a]))),
    ?assert(length([x || {a, {cast, {unreachable, b}}} <- heard(W1)]) > 1),
    W2 = run(5000, atoll_sim_world:start(b, W1)),
    ?assertEqual([b], atoll_sim_world:links(a, W2)).

a_killed_node_is_heard_of_and_what_was_on_its_way_is_lost_test() ->
    W1 = atoll_sim_world:kill(b, tell(a, [{send, b, hello}], linked())),
    W2 = run(15, atoll_sim_world:start(b, W1)),
    W3 = run(1000, W2),
    ?assert(lists:member({a, {down, b, connection_closed}}, heard(W3))),
    ?assertNot(lists:member({b, {message, a, hello}}, heard(W3))),
    %% Still wanted: it is connected with the new life.
    ?assertEqual([b], atoll_sim_world:links(a, W3)).

a_paused_node_gets_all_of_it_later_in_order_test() ->
    W1 = tell(b, [{timer, tick, 50}], linked()),
    W2 = tell(a, [{send, b, N} || N <- [1, 2, 3]], atoll_sim_world:pause(b, run(10, W1))),
    W3 = run(5000, W2),
    ?assertEqual([], [E || {b, E} <- heard(W3), element(1, E) =/= up]),
    W4 = run(0, atoll_sim_world:resume(b, W3)),
    Told = [E || {b, E} <- heard(W4), element(1, E) =/= up],
    ?assertEqual([1, 2, 3], [N || {message, a, N} <- Told]),
    ?assert(lists:member({timeout, tick}, Told)).

a_connection_with_a_paused_node_runs_into_its_time_limit_test() ->
    W1 = tell(a, [{want, b}], atoll_sim_world:pause(b, world([a, b]))),
    W2 = run(6900, W1),
    ?assertEqual([], heard(W2)),
    ?assertEqual([{a, {cast, {unreachable, b}}}], heard(run(1000, W2))).

a_timer_fires_once_and_not_after_it_was_cancelled_or_set_again_test() ->
    W = run(5000, tell(a, [{timer, x, 100}, {timer, y, 100}, {cancel, y}, {timer, x, 200}], world([a]))),
    ?assertEqual([{200, a, {timeout, x}}], [E || {_, _, {timeout, _}} = E <- timed(W)]).

a_partition_loses_messages_and_closes_nothing_test() ->
    W1 = atoll_sim_world:set({partition, [[a], [b]]}, linked()),
    W2 = run(20000, tell(a, [{send, b, lost}], W1)),
    ?assertEqual([b], atoll_sim_world:links(a, W2)),
    W3 = run(1000, tell(a, [{send, b, found}], atoll_sim_world:set(heal, W2))),
    ?assertEqual([found], [M || {b, {message, a, M}} <- heard(W3)]).

the_end_of_a_link_does_not_pass_a_partition_test_() ->
    Begin = atoll_sim_world:now(linked()),
    Cut = atoll_sim_world:set({partition, [[a], [b]]}, linked()),
    [
        {Name, fun() ->
            W = run(59000, End(Cut)),
            ?assertEqual([b], atoll_sim_world:links(a, W)),
            ?assertEqual([], downs(a, W)),
            %% Nor longer than the kernel waits for a tick.
            ?assertEqual([Begin + 60000], downs(a, run(5000, W)))
        end}
     || {Name, End} <- endings()
    ].

who_sends_over_a_link_that_is_gone_hears_of_it_once_the_other_end_is_reached_test_() ->
    [
        {Name, fun() ->
            Cut = atoll_sim_world:set({partition, [[a], [b]]}, linked()),
            %% What is sent meanwhile is lost, and heals nothing.
            W1 = run(1000, atoll_sim_world:set(heal, run(10000, tell(a, [{send, b, lost}], End(Cut))))),
            ?assertEqual([], downs(a, W1)),
            Sent = atoll_sim_world:now(W1),
            W2 = run(1000, tell(a, [{send, b, hello}], W1)),
            [At] = downs(a, W2),
            ?assert(At - Sent >= 2 andalso At - Sent =< 40),
            ?assertNot(lists:member({b, {message, a, hello}}, heard(W2)))
        end}
     || {Name, End} <- [{"restarted", fun(W) -> atoll_sim_world:start(b, atoll_sim_world:kill(b, W)) end} | endings()]
    ].

who_cannot_answer_resets_nothing_test() ->
    W1 = atoll_sim_world:set({cut, [b], [a]}, linked()),
    W2 = run(10000, tell(a, [{send, b, hello}], atoll_sim_world:kill(b, W1))),
    ?assertEqual([], downs(a, W2)).

%% How b's end of a link comes to its end.
endings() ->
    [
        {"killed", fun(W) -> atoll_sim_world:kill(b, W) end},
        {"disconnected", fun(W) -> tell(b, [{unwant, a}, {act, {disconnect, a}}], W) end}
    ].

downs(Node, World) -> [At || {At, Name, {down, _, _}} <- timed(World), Name =:= Node].

a_cut_is_one_way_test() ->
    W1 = atoll_sim_world:set({cut, [a], [b]}, linked()),
    W2 = run(1000, tell(b, [{send, a, there}], tell(a, [{send, b, here}], W1))),
    ?assertEqual([{a, {message, b, there}}], [E || {_, {message, _, _}} = E <- heard(W2)]).

loss_duplicates_and_disorder_come_in_their_share_test() ->
    Count = fun(Setting) ->
        W = run(60000, tell(a, [{send, b, N} || N <- lists:seq(1, 2000)], atoll_sim_world:set(Setting, linked()))),
        [N || {b, {message, a, N}} <- heard(W)]
    end,
    Lossy = length(Count({loss, 0.1})),
    ?assert(Lossy > 1700 andalso Lossy < 1900),
    Twice = length(Count({duplicate, 0.1})),
    ?assert(Twice > 2100 andalso Twice < 2300),
    Disordered = Count({reorder, 0.1, 500}),
    ?assertEqual(2000, length(Disordered)),
    ?assertNotEqual(lists:sort(Disordered), Disordered).

a_loss_said_anew_replaces_that_of_the_same_nodes_and_no_other_test() ->
    Heard = fun(Settings) ->
        W = lists:foldl(fun atoll_sim_world:set/2, linked(), Settings),
        [N || {b, {message, a, N}} <- heard(run(1000, tell(a, [{send, b, here}], W)))]
    end,
    ?assertEqual([], Heard([{loss, [a], [b], 1}])),
    ?assertEqual([here], Heard([{loss, [a], [b], 1}, {loss, [a], [b], 0}])),
    ?assertEqual([], Heard([{loss, [a], [b, c], 1}, {loss, [a], [b], 0}])).

a_slow_node_takes_its_time_for_each_event_test() ->
    W0 = atoll_sim_world:slow(b, 100, linked()),
    Begin = atoll_sim_world:now(W0),
    W = run(5000, tell(a, [{send, b, N} || N <- [1, 2, 3]], W0)),
    [First, Second, Third] = [At - Begin || {At, b, {message, a, _}} <- timed(W)],
    ?assert(First >= 100),
    ?assert(Second >= First + 100),
    ?assert(Third >= Second + 100).

a_slow_node_comes_to_everything_in_the_order_in_which_it_came_test_() ->
    Busy = run(30, tell(a, [{send, b, N} || N <- [1, 2, 3]], atoll_sim_world:slow(b, 100, linked()))),
    Quick = fun(W) -> atoll_sim_world:slow(b, 0, W) end,
    Paused = fun(W) -> atoll_sim_world:resume(b, run(1000, tell(a, [{send, b, 4}], atoll_sim_world:pause(b, W)))) end,
    [
        {Name, ?_assertEqual([1, 2, 3, 4, 5], [N || {b, {message, a, N}} <- heard(run(5000, tell(a, [{send, b, 5}], W)))])}
     || {Name, W} <- [
            {"quick again", Quick(run(20, tell(a, [{send, b, 4}], Busy)))},
            {"quick again in the same moment", atoll_sim_world:at(
                atoll_sim_world:now(Busy) + 50, Quick, run(20, tell(a, [{send, b, 4}], Busy))
            )},
            {"after a pause", Paused(Busy)},
            {"after a pause, and quick again", Quick(Paused(Busy))}
        ]
    ].

who_is_quick_again_does_at_once_what_it_has_not_come_to_test() ->
    W1 = run(30, tell(a, [{send, b, N} || N <- [1, 2, 3]], atoll_sim_world:slow(b, 1000, linked()))),
    W2 = atoll_sim_world:slow(b, 0, W1),
    Now = atoll_sim_world:now(W1),
    ?assertEqual([Now, Now, Now], [At || {At, b, {message, a, _}} <- timed(run(5000, W2))]).

a_slow_node_does_nothing_in_a_pause_test() ->
    W1 = run(30, tell(a, [{send, b, N} || N <- [1, 2]], atoll_sim_world:slow(b, 100, linked()))),
    W2 = run(1000, atoll_sim_world:pause(b, W1)),
    ?assertEqual([], [N || {b, {message, a, N}} <- heard(W2)]),
    Now = atoll_sim_world:now(W2),
    ?assertEqual(
        [Now + 100, Now + 200], [At || {At, b, {message, a, _}} <- timed(run(5000, atoll_sim_world:resume(b, W2)))]
    ).

%% In the order in which it came, with what became of its links, at the time of its own clock.
a_protocol_that_stands_still_hears_late_of_all_that_came_test() ->
    W1 = atoll_sim_world:stall(b, tell(b, [{timer, ring, 100}], linked())),
    Begin = atoll_sim_world:now(W1),
    W2 = run(1000, tell(c, [{want, b}], tell(a, [{send, b, hello}], atoll_sim_world:start(c, W1)))),
    W3 = run(2000, atoll_sim_world:kill(a, W2)),
    %% The node itself goes on.
    ?assertEqual([c], atoll_sim_world:links(b, W3)),
    ?assert(lists:member({c, {up, b}}, heard(W3))),
    ?assertEqual([], [Event || {At, b, Event} <- timed(W3), At > Begin]),
    W4 = atoll_sim_world:resume(b, W3),
    Late = [{At, Event} || {At, b, Event} <- timed(run(1000, W4)), At > Begin],
    ?assertEqual([Begin + 3000], lists:usort([At || {At, _} <- Late])),
    ?assertEqual(
        lists:sort([{message, a, hello}, {timeout, ring}, {up, c}, {down, a, connection_closed}]),
        lists:sort([Event || {_, Event} <- Late])
    ),
    ?assertEqual({down, a, connection_closed}, element(2, lists:last(Late))).

%% A pause closes nothing either, but nobody gets through to it.
who_stands_still_answers_no_attempt_only_if_all_of_it_does_test() ->
    Links = fun(Still) ->
        W = tell(a, [{want, b}], atoll_sim_world:Still(b, world([a, b]))),
        atoll_sim_world:links(a, run(1000, W))
    end,
    ?assertEqual([[], [b]], [Links(pause), Links(stall)]).

what_a_protocol_that_stands_still_is_owed_is_bounded_test_() ->
    {timeout, 30, fun() ->
        W1 = atoll_sim_world:stall(b, linked()),
        W2 = lists:foldl(fun(N, W) -> run(100, tell(a, [{send, b, {N, M}} || M <- lists:seq(1, 1000)], W)) end, W1, lists:seq(1, 21)),
        ?assertEqual(1000, map_get(overflown, atoll_sim_world:counters(W2))),
        ?assertEqual(20000, length([M || {b, {message, a, M}} <- heard(atoll_sim_world:resume(b, W2))]))
    end}.

a_pause_of_who_stands_still_stops_all_of_it_test() ->
    W = atoll_sim_world:pause(b, atoll_sim_world:stall(b, world([a, b]))),
    ?assertEqual(paused, atoll_sim_world:status(b, W)),
    ?assertEqual(paused, atoll_sim_world:status(b, atoll_sim_world:stall(b, W))),
    ?assertEqual(alive, atoll_sim_world:status(b, atoll_sim_world:resume(b, W))).

%% Half a gigabyte a second over ten megabytes a second: hardly anything else gets in, and what does
%% waits for what is in the queue.
what_comes_behind_bulk_waits_or_is_dropped_test() ->
    W0 = atoll_sim_world:set({rate, 10000000, 1000000}, linked()),
    Bulk = fun(W) -> atoll_sim_world:set({bulk, [a], [b], 500000000}, W) end,
    Arrivals = fun(W) ->
        Sent = lists:foldl(fun(N, V) -> run(997, tell(a, [{send, b, {N, atoll_sim_world:now(V)}}], V)) end, W, lists:seq(1, 500)),
        [At - Then || {At, b, {message, a, {_, Then}}} <- timed(Sent)]
    end,
    Busy = Arrivals(Bulk(W0)),
    ?assert(length(Busy) < 50 andalso length(Busy) > 0),
    ?assert(lists:max(Busy) > 80 andalso lists:max(Busy) =< 120),
    %% The other way, when it is over, and when all is healed there is room.
    There = tell(b, [{send, a, there}], Bulk(W0)),
    ?assert(lists:member({a, {message, b, there}}, heard(run(100, There)))),
    [
        ?assertEqual(500, length(Arrivals(atoll_sim_world:set(End, Bulk(W0)))))
     || End <- [{bulk, [a], [b], 0}, heal]
    ].

%% As long as bulk goes over it, a link is in use; it is looked at less and less often.
a_link_with_bulk_stays_test() ->
    W = atoll_sim_world:set({bulk, [b], [a], full}, linked()),
    ?assertEqual([b], atoll_sim_world:links(a, run(10000, tell(a, [{unwant, b}], W)))),
    Over = atoll_sim_world:set({bulk, [b], [a], 0}, run(10000, tell(a, [{unwant, b}], W))),
    ?assertEqual([], atoll_sim_world:links(a, run(20000, Over))).

%% Twice within the time: whatever came in between says that the other lives.
who_listens_hears_of_bytes_test_() ->
    Listen = fun(W) -> tell(a, [{act, {listen, b, 1500}}], W) end,
    Twice = fun(Between, W) -> Listen(run(500, Between(Listen(W)))) end,
    Nothing = fun(W) -> W end,
    Message = fun(W) -> tell(b, [{send, a, hello}], W) end,
    Bulk = fun(W) -> atoll_sim_world:set({bulk, [b], [a], full}, W) end,
    Paused = fun(W) -> atoll_sim_world:pause(b, Bulk(W)) end,
    Cut = fun(W) -> atoll_sim_world:set({cut, [b], [a]}, Bulk(W)) end,
    Late = fun(W) -> run(5000, Message(W)) end,
    [
        {Name, ?_assertEqual(Heard, [N || {a, {cast, {bytes, N}}} <- heard(run(10, Twice(Between, linked())))])}
     || {Name, Heard, Between} <- [
            {"nothing", [], Nothing},
            {"a message", [b], Message},
            {"bulk", [b], Bulk},
            {"bulk of one that is paused", [], Paused},
            {"bulk that does not pass", [], Cut},
            {"a message, and too late", [], Late}
        ]
    ].

a_call_is_answered_test() ->
    {Id, W} = atoll_sim_world:call(a, question, world([a])),
    ?assertEqual([{0, a, {reply, Id, {a, question}}}], atoll_sim_world:watched(W)).

a_world_is_a_value_test() ->
    W = linked(),
    _ = run(1000, atoll_sim_world:kill(b, W)),
    ?assertEqual(alive, atoll_sim_world:status(b, W)),
    ?assertEqual(timed(run(1000, W)), timed(run(1000, W))).

%% A world in which these nodes run.

world(Names) ->
    World = atoll_sim_world:new(#{
        protocol => atoll_sim_echo,
        config => fun(Name, _Incarnation, _Seed) -> Name end,
        seed => 7,
        watch => {fun see/4, []}
    }),
    lists:foldl(fun atoll_sim_world:start/2, World, Names).

see(Now, Node, {notice, Event}, Seen) -> [{Now, Node, Event} | Seen];
see(Now, Node, {reply, _, _} = Reply, Seen) -> [{Now, Node, Reply} | Seen];
see(_Now, _Node, _Sight, Seen) -> Seen.

linked() ->
    run(1000, tell(a, [{want, b}], world([a, b]))).

tell(Node, Effects, World) ->
    atoll_sim_world:cast(Node, {effects, Effects}, World).

run(Ms, World) ->
    atoll_sim_world:run(atoll_sim_world:now(World) + Ms, World).

timed(World) -> lists:reverse(atoll_sim_world:watched(World)).

heard(World) -> [{Node, Event} || {_, Node, Event} <- timed(World)].
