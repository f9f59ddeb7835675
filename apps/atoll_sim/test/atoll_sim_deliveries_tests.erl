%% SPDX-License-Identifier: Apache-2.0
%% What is kept of broadcasts, from sights that were made by hand.
-module(atoll_sim_deliveries_tests).

-include_lib("eunit/include/eunit.hrl").

a_message_is_owed_to_those_who_had_a_neighbour_before_it_was_sent_test() ->
    Seen = see([{10, n1, up()}, {10, n2, up()}, {20, n3, up()}, {20, n1, sends(1)}, {30, n4, up()}]),
    ?assertEqual({2, 0}, atoll_sim_deliveries:owed(Seen)).

a_second_neighbour_makes_nobody_a_newcomer_test() ->
    Seen = see([{10, n1, up()}, {15, n1, sends(1)}, {20, n1, up()}, {25, n1, sends(2)}]),
    ?assertEqual({2, 0}, atoll_sim_deliveries:owed(Seen)).

the_sender_is_owed_its_own_and_has_it_when_it_heard_itself_test() ->
    Sent = [{10, n1, up()}, {10, n2, up()}, {20, n1, sends(1)}],
    ?assertEqual({2, 1}, atoll_sim_deliveries:owed(see(Sent ++ [{20, n1, delivers(n1, 1)}]))).

what_arrived_where_nothing_was_owed_makes_up_for_nobody_test() ->
    Seen = see([{10, n1, up()}, {20, n1, sends(1)}, {30, n2, up()}, {40, n2, delivers(n1, 1)}]),
    ?assertEqual({1, 0}, atoll_sim_deliveries:owed(Seen)).

a_life_that_ends_is_owed_nothing_and_the_next_nothing_from_before_it_test() ->
    Delivered = [{10, n1, up()}, {10, n2, up()}, {20, n1, sends(1)}, {20, n1, delivers(n1, 1)}, {30, n2, delivers(n1, 1)}],
    ?assertEqual({2, 2}, atoll_sim_deliveries:owed(see(Delivered))),
    Killed = Delivered ++ [{40, n2, killed}],
    ?assertEqual({1, 1}, atoll_sim_deliveries:owed(see(Killed))),
    Back = Killed ++ [{50, n2, {started, 51}}, {60, n2, up()}],
    ?assertEqual({1, 1}, atoll_sim_deliveries:owed(see(Back))),
    %% What its earlier life had is not had by this one.
    ?assertEqual({3, 1}, atoll_sim_deliveries:owed(see(Back ++ [{70, n1, sends(2)}]))).

every_message_counts_for_itself_test() ->
    Joined = [{1, Node, up()} || Node <- [n1, n2, n3]],
    Seen = see(
        Joined ++
            [{10, n1, sends(1)}, {20, n2, sends(2)}] ++
            [{30, n1, delivers(n1, 1)}, {30, n3, delivers(n1, 1)}, {30, n3, delivers(n2, 2)}]
    ),
    ?assertEqual({6, 3}, atoll_sim_deliveries:owed(Seen)),
    ?assertMatch(#{delivered := 0.5}, atoll_sim_deliveries:summary(Seen)).

copies_beyond_the_first_are_redundant_and_the_senders_own_is_no_copy_test() ->
    Seen = see(
        [{10, n1, sends(1)}, {10, n1, delivers(n1, 1)}] ++
            [{20, n2, got(1)}, {20, n2, delivers(n1, 1)}, {21, n2, got(2)}] ++
            [{20, n3, got(1)}, {20, n3, delivers(n1, 1)}, {22, n3, got(2)}] ++
            [{30, n4, got(2)}, {30, n4, delivers(n1, 1)}, {30, n5, got(2)}, {30, n5, delivers(n1, 1)}]
    ),
    ?assertMatch(#{redundancy := 0.5}, atoll_sim_deliveries:summary(Seen)).

only_payloads_are_copies_test() ->
    Others = [{prune, n1}, {ihave, [{n1, 1, 1, 2}]}, {graft, n1, [{1, 1}]}],
    Seen = see(
        [{10, n1, sends(1)}, {20, n2, got(1)}, {20, n2, delivers(n1, 1)}] ++
            [{21, n2, {got, n1, {1, 1, broadcast, Message}}} || Message <- Others] ++
            [{22, n2, {got, n1, {1, detector, {gossip, n1, 1, 1, 9, x}}}}]
    ),
    ?assertMatch(#{redundancy := +0.0, hops_max := 1}, atoll_sim_deliveries:summary(Seen)).

an_exchange_brings_as_many_copies_as_payloads_test() ->
    Rest = {rest, [{gossip, n1, 1, N, 3, N} || N <- [1, 2]], []},
    Seen = see([
        {10, n1, sends(1)}, {10, n1, sends(2)}, {20, n2, {got, n1, {1, 1, broadcast, Rest}}},
        {20, n2, delivers(n1, 1)}, {20, n2, delivers(n1, 2)}
    ]),
    ?assertMatch(#{redundancy := +0.0, hops_max := 3}, atoll_sim_deliveries:summary(Seen)).

hops_are_those_of_the_copy_that_came_first_test() ->
    Seen = see([
        {10, n1, sends(1)}, {20, n2, got(2)}, {20, n2, delivers(n1, 1)}, {30, n2, got(7)}, {31, n3, got(1)},
        {31, n3, delivers(n1, 1)}
    ]),
    ?assertMatch(#{hops_max := 2}, atoll_sim_deliveries:summary(Seen)).

latencies_are_from_sending_to_delivery_the_senders_own_left_out_test() ->
    Late = [{1000 + Ms, n2, delivers(n1, Id)} || {Id, Ms} <- lists:zip(lists:seq(1, 100), lists:seq(1, 100))],
    Own = [{1000, n1, delivers(n1, Id)} || Id <- lists:seq(1, 100)],
    Seen = see([{1000, n1, sends(Id)} || Id <- lists:seq(1, 100)] ++ Own ++ Late),
    ?assertMatch(#{latency_ms_p50 := 50, latency_ms_p99 := 99}, atoll_sim_deliveries:summary(Seen)).

what_is_forgotten_counts_no_more_but_who_has_joined_is_known_test() ->
    Before = see([
        {10, n1, up()}, {10, n2, up()}, {20, n1, sends(1)}, {90, n2, got(9)}, {90, n2, delivers(n1, 1)}
    ]),
    Forgot = atoll_sim_deliveries:forget(Before),
    ?assertEqual({0, 0}, atoll_sim_deliveries:owed(Forgot)),
    %% A straggler is of no message that is counted.
    Straggled = see([{95, n3, delivers(n1, 1)}], Forgot),
    ?assertMatch(#{latency_ms_p50 := none, hops_max := 0}, atoll_sim_deliveries:summary(Straggled)),
    ?assertEqual({2, 0}, atoll_sim_deliveries:owed(see([{100, n1, sends(2)}], Straggled))).

of_nothing_everything_arrived_and_nothing_twice_test() ->
    ?assertEqual(
        #{delivered => 1.0, redundancy => 0.0, hops_max => 0, latency_ms_p50 => none, latency_ms_p99 => none},
        atoll_sim_deliveries:summary(atoll_sim_deliveries:new())
    ).

sending_is_told_to_the_node_and_to_whoever_watches_test() ->
    World0 = atoll_sim_world:new(#{
        protocol => atoll_sim_echo,
        config => fun(Name, _, _) -> Name end,
        seed => 1,
        watch => {fun(_, Where, Sight, Kept) -> [{Where, Sight} | Kept] end, []}
    }),
    World = atoll_sim_deliveries:send(7, n1, atoll_sim_world:start(n1, World0)),
    ?assertEqual(
        [{n1, {started, 1}}, {n1, sends(7)}, {n1, {notice, {cast, {broadcast, 7}}}}],
        lists:reverse(atoll_sim_world:watched(World))
    ).

see(Sights) -> see(Sights, atoll_sim_deliveries:new()).

see(Sights, Deliveries) ->
    lists:foldl(
        fun({Now, Where, Sight}, D) -> atoll_sim_deliveries:see(Now, Where, Sight, D) end, Deliveries, Sights
    ).

up() -> {notice, {neighbour_up, n9}}.

sends(Id) -> {note, {sends, Id}}.

got(Hops) -> {got, n9, {1, 1, broadcast, {gossip, n1, 1, 1, Hops, x}}}.

delivers(Sender, Id) -> {notice, {broadcast, Sender, Id}}.
