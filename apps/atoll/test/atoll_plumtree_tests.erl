%% SPDX-License-Identifier: Apache-2.0
%% The broadcast protocol, event by event.
-module(atoll_plumtree_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

new(Options) ->
    {State, [{timer, exchange, _}]} =
        atoll_plumtree:init(#{self => me, incarnation => 1, seed => 1, options => Options}, 0),
    State.

%% Runs events one after the other, all at the same time; gives the effects of the last.
run(Events, State) ->
    run(Events, 0, State).

run(Events, Now, State) ->
    lists:foldl(fun(Event, {S, _}) -> atoll_plumtree:handle(Event, Now, S) end, {State, []}, Events).

%% With these neighbours, and no longer fresh.
settled(Neighbours) ->
    settled(Neighbours, #{}).

settled(Neighbours, Options) ->
    Settle = {message, hd(Neighbours), {baseline, true, []}},
    {State, _} = run([{up, Node} || Node <- Neighbours] ++ [Settle], new(Options)),
    State.

from(Node, Message) -> {message, Node, Message}.

%% The Seq-th message of root r, that came over three links.
gossip(Seq) -> gossip(1, Seq).
gossip(Life, Seq) -> gossip(Life, Seq, 3).
gossip(Life, Seq, Hops) -> {gossip, r, Life, Seq, Hops, {payload, Seq}}.

sent(Effects) -> [{Node, Message} || {send, Node, Message} <- Effects].
notices(Effects) -> [Notice || {notify, Notice} <- Effects].
count(Key, State) -> maps:get(Key, atoll_plumtree:summary(State)).
dropped(Key, State) -> maps:get(Key, count(dropped, State)).

a_sender_delivers_to_itself_and_sends_to_all_neighbours_test() ->
    {_, Effects} = run([{cast, {broadcast, hello}}], settled([a, b])),
    ?assertEqual(
        [
            {notify, {broadcast, me, hello}},
            {send, a, {gossip, me, 1, 1, 1, hello}},
            {send, b, {gossip, me, 1, 1, 1, hello}}
        ],
        Effects
    ).

a_new_message_is_delivered_and_sent_on_but_not_back_test() ->
    {State, Effects} = run([from(b, gossip(1))], settled([a, b, c])),
    ?assertEqual([{broadcast, r, {payload, 1}}], notices(Effects)),
    ?assertEqual([{a, gossip(1, 1, 4)}, {c, gossip(1, 1, 4)}], sent(Effects)),
    ?assertEqual({1, 3}, {count(delivered, State), count(hops_max, State)}).

a_duplicate_is_not_delivered_and_makes_its_sender_lazy_test() ->
    {State, Effects} = run([from(a, gossip(1)), from(b, gossip(1))], settled([a, b, c])),
    ?assertEqual([{send, b, {prune, r}}], Effects),
    {Lazy, Next} = run([from(a, gossip(2))], State),
    ?assertEqual([c], [Node || {Node, _} <- sent(Next)]),
    ?assert(lists:member({timer, lazy, 300}, Next)),
    {_, Announced} = run([{timeout, lazy}], Lazy),
    ?assertEqual([{b, {ihave, [{r, 1, 2, 4}]}}], sent(Announced)).

a_pruned_neighbour_gets_announcements_only_in_that_senders_tree_test() ->
    State = settled([a, b]),
    {Pruned, []} = run([from(b, {prune, r})], State),
    {Later, Sends} = run([from(a, gossip(1)), from(a, gossip(2))], Pruned),
    ?assertEqual([], sent(Sends)),
    {_, Announced} = run([{timeout, lazy}], Later),
    ?assertEqual([{b, {ihave, [{r, 1, 1, 4}, {r, 1, 2, 4}]}}], sent(Announced)),
    {_, Own} = run([{cast, {broadcast, x}}], Pruned),
    ?assertMatch([{a, _}, {b, _}], sent(Own)).

a_second_copy_from_the_parent_does_not_prune_it_test() ->
    {State, Effects} = run([from(a, gossip(1)), from(a, gossip(1))], settled([a, b])),
    ?assertEqual([], Effects),
    ?assertEqual(1, count(duplicates, State)).

a_prune_from_the_parent_is_answered_with_a_graft_test() ->
    {_, Effects} = run([from(a, gossip(1)), from(a, {prune, r})], settled([a, b])),
    ?assertEqual([{send, a, {graft, r, []}}], Effects).

of_two_copies_the_shorter_way_stays_test() ->
    {_, Effects} = run([from(a, gossip(1, 1, 5)), from(b, gossip(1, 1, 3))], settled([a, b, c])),
    ?assertEqual([{b, {graft, r, []}}, {a, {prune, r}}], sent(Effects)).

a_message_that_was_announced_and_does_not_come_is_asked_for_test() ->
    State = settled([a, b, c]),
    {Waiting, Timer} = run([from(a, {ihave, [{r, 1, 1, 4}]})], State),
    ?assertEqual([{timer, graft, 500}], Timer),
    {Asked, Graft} = run([from(b, {ihave, [{r, 1, 1, 4}]}), {timeout, graft}], 500, Waiting),
    ?assertEqual([{send, a, {graft, r, [{1, 1}]}}, {timer, graft, 500}], Graft),
    {_, Next} = run([{timeout, graft}], 1000, Asked),
    ?assertEqual([{b, {graft, r, [{1, 1}]}}], sent(Next)),
    {_, Nothing} = run([from(a, gossip(1)), {timeout, graft}], 1000, Asked),
    ?assertEqual([], Nothing).

an_announcer_that_is_gone_is_not_asked_test() ->
    Events = [from(a, {ihave, [{r, 1, 1, 4}]}), from(b, {ihave, [{r, 1, 1, 4}]}), {down, a, lost}],
    {State, _} = run(Events, settled([a, b])),
    {_, Graft} = run([{timeout, graft}], 500, State),
    ?assertEqual([{b, {graft, r, [{1, 1}]}}], sent(Graft)).

a_graft_is_answered_with_the_message_and_makes_eager_test() ->
    {State, _} = run([from(a, gossip(1)), from(b, {prune, r})], settled([a, b])),
    {Grafted, Answer} = run([from(b, {graft, r, [{1, 1}, {1, 9}]})], State),
    ?assertEqual([{b, gossip(1, 1, 4)}], sent(Answer)),
    ?assertEqual(1, count(uncached, Grafted)),
    {_, Next} = run([from(a, gossip(2))], Grafted),
    ?assertEqual([{b, gossip(1, 2, 4)}], sent(Next)).

an_announcement_over_a_shorter_way_changes_the_parent_test() ->
    {State, _} = run([from(a, gossip(1, 1, 7)), from(b, gossip(1, 1, 7))], settled([a, b, c], #{threshold => 3})),
    {_, Not} = run([from(b, {ihave, [{r, 1, 1, 5}]})], State),
    ?assertEqual([], Not),
    {Changed, Effects} = run([from(b, {ihave, [{r, 1, 1, 4}]})], State),
    ?assertEqual([{b, {graft, r, []}}, {a, {prune, r}}], sent(Effects)),
    %% What was on its way from the old parent does not undo it.
    {_, Late} = run([from(a, gossip(1, 2, 7))], Changed),
    ?assertEqual([{b, gossip(1, 2, 8)}, {c, gossip(1, 2, 8)}, {a, {prune, r}}], sent(Late)).

announcements_too_many_are_made_early_test() ->
    {State, _} = run([from(b, {prune, r})], settled([a, b], #{ihave_max => 2})),
    {Flushed, Effects} = run([from(a, gossip(1)), from(a, gossip(2))], State),
    ?assertEqual([{b, {ihave, [{r, 1, 1, 4}, {r, 1, 2, 4}]}}], sent(Effects)),
    ?assert(lists:member({cancel, lazy}, Effects)),
    ?assertEqual(0, count(pending, Flushed)).

a_restarted_sender_is_not_confused_with_its_earlier_life_test() ->
    {State, Effects} = run([from(a, gossip(1, 1)), from(a, gossip(2, 1))], settled([a])),
    ?assertEqual([{broadcast, r, {payload, 1}}], notices(Effects)),
    {Old, Nothing} = run([from(a, gossip(1, 2))], State),
    ?assertEqual({[], 1}, {Nothing, dropped(old, Old)}).

a_new_incarnation_counts_from_one_test() ->
    Events = [{cast, {broadcast, x}}, {cast, {incarnation, 2}}, {cast, {broadcast, y}}],
    {_, Effects} = run(Events, settled([a])),
    ?assertEqual([{a, {gossip, me, 2, 1, 1, y}}], sent(Effects)).

the_own_messages_of_an_earlier_life_are_dropped_test() ->
    {State, Effects} = run([from(a, {gossip, me, 0, 4, 2, x})], settled([a])),
    ?assertEqual({[], 1}, {Effects, dropped(own, State)}).

a_fresh_node_asks_for_a_baseline_until_a_settled_one_answers_test() ->
    {State, Ask} = run([{up, a}], new(#{fresh_ms => 2000})),
    ?assertEqual([{send, a, baseline}, {timer, fresh, 500}], Ask),
    {_, Again} = run([{timeout, fresh}], 500, State),
    ?assertEqual([{send, a, baseline}, {timer, fresh, 500}], Again),
    {Fresh, _} = run([{timeout, fresh}], 1000, State),
    ?assert(count(fresh, Fresh)),
    {Alone, []} = run([{timeout, fresh}], 2000, State),
    ?assertNot(count(fresh, Alone)),
    ?assertEqual({Fresh, []}, run([from(b, baseline)], Fresh)).

a_newcomer_gets_no_history_but_what_comes_live_test() ->
    {State, Live} = run([{up, a}, from(a, gossip(8))], new(#{})),
    ?assertEqual([{broadcast, r, {payload, 8}}], notices(Live)),
    {Settled, _} = run([from(a, {baseline, true, [{r, 1, 7, 0}]})], State),
    {_, History} = run([from(a, gossip(7))], Settled),
    ?assertEqual([], notices(History)),
    {_, Next} = run([from(a, gossip(9))], Settled),
    ?assertEqual([{broadcast, r, {payload, 9}}], notices(Next)),
    %% And it lacks nothing.
    ?assertMatch({_, []}, run([from(a, {exchange, true, [{a, 1, 0, 0}, {r, 1, 8, 0}]})], Settled)).

an_exchange_gives_both_what_they_lack_test() ->
    {One, _} = run([from(x, gossip(1)), from(x, gossip(3))], settled([x])),
    {Two, _} = run([from(x, gossip(2)), {cast, {broadcast, z}}], settled([x])),
    {_, [{send, y, Exchange}]} = run([{up, y}], element(1, run([{down, x, lost}], One))),
    {_, [{send, o, {answer, _, Given, []} = Answer}]} = run([from(o, Exchange)], Two),
    %% Both are called me, so each takes what the other sent for its own: not wanted.
    ?assertEqual([{gossip, r, 1, 2, 4, {payload, 2}}], [G || {gossip, r, _, _, _, _} = G <- Given]),
    {_, Effects} = run([from(y, Answer)], One),
    ?assertEqual([{broadcast, r, {payload, 2}}, {broadcast, r, {payload, 3}}], notices(Effects)),
    ?assertMatch([{y, {rest, [{gossip, r, 1, 1, _, _}, {gossip, r, 1, 3, _, _}], []}}], sent(Effects)).

equals_have_nothing_to_say_in_an_exchange_test() ->
    {State, _} = run([from(a, gossip(1))], settled([a])),
    ?assertEqual({State, []}, run([from(a, {exchange, true, [{me, 1, 0, 0}, {r, 1, 1, 0}]})], State)).

an_exchange_begins_when_the_first_neighbour_comes_back_test() ->
    {Alone, _} = run([{down, a, lost}], settled([a])),
    {State, Effects} = run([{up, b}], Alone),
    ?assertMatch([{b, {exchange, true, [{me, 1, 0, 0}]}}], sent(Effects)),
    ?assertEqual({State, []}, run([{up, b}], State)),
    ?assertMatch({_, []}, run([{up, c}], State)).

a_large_gap_begins_an_exchange_with_whom_it_came_from_test() ->
    {State, Effects} = run([from(a, gossip(1)), from(a, gossip(30))], settled([a])),
    ?assertMatch([{a, {exchange, true, [{me, 1, 0, 0}, {r, 1, 1, _}]}}], sent(Effects)),
    {_, Soon} = run([from(a, gossip(31))], State),
    ?assertEqual([], sent(Soon)).

%% Nobody announces what it sent when it had no neighbours, and all that follows is held for it.
a_small_gap_that_stays_begins_an_exchange_with_the_parent_and_then_with_any_neighbour_test() ->
    {State, Effects} = run([from(b, gossip(2))], 100, settled([a, b])),
    ?assertEqual([{timer, gap, 1000}], [Timer || {timer, gap, _} = Timer <- Effects]),
    {Asked, Asks} = run([{timeout, gap}], 1100, State),
    ?assertMatch([{send, b, {exchange, true, [{me, 1, 0, 0}, {r, 1, 0, 2#10}]}}, {timer, gap, 1000}], Asks),
    Others = [Node || Now <- lists:seq(2100, 22100, 1000), {_, E} <- [run([{timeout, gap}], Now, Asked)], {send, Node, {exchange, _, _}} <- E],
    ?assertEqual({21, true}, {length(Others), lists:all(fun(Node) -> lists:member(Node, [a, b]) end, Others)}),
    {Closed, _} = run([from(b, gossip(1))], 1200, Asked),
    ?assertEqual({Closed, []}, run([{timeout, gap}], 2100, Closed)),
    %% The next one has its own time.
    {Next, Timer} = run([from(b, gossip(4))], 2000, Closed),
    ?assertEqual([{timer, gap, 1000}], [T || {timer, gap, _} = T <- Timer]),
    ?assertEqual([{timer, gap, 900}], element(2, run([{timeout, gap}], 2100, Next))).

what_a_fresh_node_has_sent_is_compared_when_it_is_settled_test() ->
    {Spoken, _} = run([{cast, {broadcast, x}}, {up, a}, {up, b}], new(#{fresh_ms => 2000})),
    {_, Effects} = run([from(b, {baseline, true, [{r, 1, 7, 0}]})], Spoken),
    ?assertEqual([{a, {exchange, true, [{me, 1, 1, 0}, {r, 1, 7, 0}]}}], sent(Effects)),
    {_, Alone} = run([{timeout, fresh}], 2000, Spoken),
    ?assertMatch([{_, {exchange, true, [{me, 1, 1, 0}]}}], sent(Alone)).

new_neighbours_come_first_in_exchanges_test() ->
    {State, _} = run([{up, b}, {up, c}], settled([a])),
    {First, Effects1} = run([{timeout, exchange}], State),
    {Second, Effects2} = run([{timeout, exchange}], First),
    {_, Effects3} = run([{timeout, exchange}], Second),
    ?assertMatch([[{a, _}], [{b, _}], [{c, _}]], [sent(E) || E <- [Effects1, Effects2, Effects3]]).

what_no_neighbour_has_any_more_is_said_to_be_missed_once_test() ->
    Gone = from(a, {answer, [], [gossip(5)], [{r, 1, 4}]}),
    {Told, Effects1} = run([Gone], settled([a], #{patience => 2})),
    ?assertEqual([], notices(Effects1)),
    {Missed, Effects2} = run([Gone], Told),
    ?assertEqual([{missed, r, 4}, {broadcast, r, {payload, 5}}], notices(Effects2)),
    ?assertEqual(4, count(missed, Missed)),
    ?assertEqual([], notices(element(2, run([Gone], Missed)))).

what_left_the_cache_is_said_to_be_gone_test() ->
    {State, _} = run([from(a, gossip(Seq)) || Seq <- lists:seq(1, 5)], settled([a], #{cache_max => 2})),
    {_, Effects} = run([from(a, {exchange, true, [{a, 1, 0, 0}]})], State),
    ?assertMatch([{a, {answer, [], [{gossip, r, 1, 4, _, _}, {gossip, r, 1, 5, _, _}], [{r, 1, 3}]}}], sent(Effects)),
    ?assertEqual({2, 3}, {count(cache, State), dropped(cache, State)}).

what_an_exchange_brought_is_announced_to_the_others_test() ->
    {State, _} = run([from(a, {answer, [], [gossip(1)], []})], settled([a, b, c])),
    {_, Effects} = run([{timeout, lazy}], State),
    ?assertEqual([{b, {ihave, [{r, 1, 1, 4}]}}, {c, {ihave, [{r, 1, 1, 4}]}}], sent(Effects)).

a_tree_too_many_is_forgotten_and_floods_again_test() ->
    {State, _} = run(
        [from(b, {prune, r}), from(b, {prune, s}), from(b, {prune, t})], settled([a, b], #{max_trees => 2})
    ),
    ?assertEqual({2, 1}, {count(trees, State), dropped(trees, State)}),
    {_, Effects} = run([from(a, gossip(1))], State),
    ?assertMatch([{b, _}], sent(Effects)).

a_neighbour_that_comes_back_is_eager_test() ->
    {State, _} = run([from(b, {prune, r}), {down, b, lost}, {up, b}], settled([a, b])),
    {_, Effects} = run([from(a, gossip(1))], State),
    ?assertMatch([{b, _}], sent(Effects)).

%% To whom the second message of r goes on, which comes from a as the first did.
sent_on(Between) ->
    {State, _} = run([from(a, gossip(1)) | Between], settled([a, b])),
    {_, Effects} = run([from(a, gossip(2))], State),
    [Node || {Node, {gossip, r, 1, 2, _, _}} <- sent(Effects)].

a_neighbour_that_comes_later_is_lazy_where_another_is_the_parent_test() ->
    ?assertEqual([b], sent_on([{up, c}])).

a_lazy_neighbour_takes_the_place_of_a_parent_that_is_lost_test() ->
    {State, Effects} = run([from(a, gossip(1)), from(b, {prune, r}), {down, a, lost}], settled([a, b, c])),
    ?assertEqual([{b, {graft, r, []}}], sent(Effects)),
    {_, Sent} = run([from(b, gossip(2))], State),
    ?assertEqual([c], [Node || {Node, _} <- sent(Sent)]),
    %% In the trees of others nothing changes.
    {_, None} = run([{down, c, lost}], State),
    ?assertEqual([], sent(None)).

a_neighbour_that_comes_when_the_parent_is_lost_is_eager_test() ->
    ?assertEqual([b, c], sent_on([{down, a, lost}, {up, c}])).

a_neighbour_that_asks_for_a_baseline_is_eager_test() ->
    ?assertEqual([b, c], sent_on([{up, c}, from(c, baseline)])).

%% Once a sender is forgotten its late copies are new again, while the first one may
%% still be in the cache.
late_copies_of_forgotten_senders_do_no_harm_test() ->
    Senders = [list_to_atom("s" ++ integer_to_list(N)) || N <- lists:seq(1, 120)],
    Messages = [from(a, {gossip, Sender, 1, 1, 3, x}) || Sender <- Senders],
    {Before, After} = lists:split(60, Messages),
    Late = lists:sublist(Before, 20, 10),
    {State, _} = run(Before ++ Late ++ After, settled([a, b], #{max_senders => 8, cache_max => 50})),
    ?assertEqual({50, 8}, {count(cache, State), count(senders, State)}).

strangers_change_no_tree_test() ->
    State = settled([a]),
    {Told, Effects} = run([from(x, {prune, r}), from(x, {ihave, [{r, 1, 1, 4}]})], State),
    ?assertEqual([], Effects),
    ?assertEqual({0, 0, 2}, {count(trees, Told), count(missing, Told), dropped(strangers, Told)}),
    ?assertEqual({State, []}, run([{down, x, lost}], State)).

what_is_announced_to_a_fresh_node_is_counted_test() ->
    {State, Effects} = run([from(a, {ihave, [{r, 1, 1, 4}, {r, 1, 2, 4}]})], element(1, run([{up, a}], new(#{})))),
    ?assertEqual([], Effects),
    ?assertEqual({0, 2}, {count(missing, State), dropped(early, State)}).

an_option_that_is_none_is_no_start_test() ->
    Config = #{self => me, incarnation => 1, seed => 1, options => #{lazy => 3}},
    ?assertError({badmatch, {error, {bad_option, lazy, unknown}}}, atoll_plumtree:init(Config, 0)).

%% In the order of the sender

%% All notices of these events, in order.
told(Events, State0) ->
    lists:foldl(
        fun({Now, Event}, {S0, Notices}) ->
            {S, Effects} = atoll_plumtree:handle(Event, Now, S0),
            {S, Notices ++ notices(Effects)}
        end,
        {State0, []},
        Events
    ).

at(Now, Messages) -> [{Now, from(a, Message)} || Message <- Messages].
payloads(Seqs) -> [{broadcast, r, {payload, Seq}} || Seq <- Seqs].

what_comes_early_is_held_until_what_was_sent_before_it_test() ->
    {Held, Notices} = told(at(0, [gossip(S) || S <- [1, 4, 3]]), settled([a, b])),
    ?assertEqual({payloads([1]), 2}, {Notices, count(held, Held)}),
    {State, Rest} = told(at(0, [gossip(2)]), Held),
    ?assertEqual({payloads([2, 3, 4]), 0, 0}, {Rest, count(held, State), count(held_bytes, State)}),
    ?assertEqual(4, count(delivered, State)).

without_an_order_everything_is_delivered_as_it_comes_test() ->
    {_, Notices} = told(at(0, [gossip(S) || S <- [2, 1, 3]]), settled([a], #{order => none})),
    ?assertEqual(payloads([2, 1, 3]), Notices).

what_comes_early_is_sent_on_at_once_test() ->
    {_, Effects} = run([from(a, gossip(2))], settled([a, b])),
    ?assertEqual([{b, gossip(1, 2, 4)}], sent(Effects)).

what_is_too_far_back_is_missed_in_its_place_test() ->
    {_, Notices} = told(at(0, [gossip(S) || S <- [2, 4, 11, 10]]), settled([a], #{window => 4})),
    ?assertEqual(
        [{missed, r, 1}] ++ payloads([2]) ++ [{missed, r, 1}] ++ payloads([4]) ++ [{missed, r, 3}],
        Notices
    ).

what_is_held_of_an_earlier_life_comes_before_the_next_test() ->
    {State, Notices} = told(at(0, [gossip(1, 1), gossip(1, 3), gossip(1, 5), gossip(2, 2), gossip(2, 1)]), settled([a])),
    ?assertEqual(
        payloads([1]) ++ [{missed, r, 1}] ++ payloads([3]) ++ [{missed, r, 1}] ++ payloads([5, 1, 2]),
        Notices
    ),
    ?assertEqual({2, 0}, {count(missed, State), count(held, State)}).

the_newest_that_is_held_comes_again_where_there_is_no_room_test() ->
    {Full, Notices} = told(at(0, [gossip(S) || S <- [5, 3, 4, 2]]), settled([a, b], #{held_max => 2})),
    ?assertEqual({[], 2, 2}, {Notices, count(held, Full), dropped(held, Full)}),
    %% It is lacking there again.
    {_, Exchange} = run([{timeout, exchange}], Full),
    ?assertMatch([{exchange, true, [_, {r, 1, 0, 2#110}]}], [E || {_, E} <- sent(Exchange)]),
    {_, Rest} = told(at(0, [gossip(S) || S <- [1, 4, 5]]), Full),
    ?assertEqual(payloads([1, 2, 3, 4, 5]), Rest),
    %% Others have had it from here before.
    {_, Again} = run([from(a, gossip(4))], element(1, told(at(0, [gossip(1)]), Full))),
    ?assertEqual([], sent(Again)).

held_messages_of_one_sender_push_no_other_ones_out_test() ->
    Other = fun(Seq) -> {gossip, q, 1, Seq, 3, {payload, Seq}} end,
    {State, _} = told(at(0, [Other(2)] ++ [gossip(S) || S <- [9, 8, 7]]), settled([a], #{held_max => 2})),
    ?assertEqual({2, 2}, {count(held, State), dropped(held, State)}),
    {_, Notices} = told(at(0, [Other(1)]), State),
    ?assertEqual([{broadcast, q, {payload, 1}}, {broadcast, q, {payload, 2}}], Notices).

what_is_held_is_bounded_in_bytes_test() ->
    Large = fun(Seq) -> {gossip, r, 1, Seq, 3, <<0:8000>>} end,
    {State, _} = told(at(0, [Large(S) || S <- [2, 3, 4]]), settled([a], #{held_bytes => 2500})),
    ?assertEqual({2, 1}, {count(held, State), dropped(held, State)}),
    ?assert(count(held_bytes, State) =< 2500).

one_is_held_however_large_it_is_test() ->
    Large = fun(Seq) -> {gossip, r, 1, Seq, 3, <<0:80000>>} end,
    {State, _} = told(at(0, [Large(2), gossip(4)]), settled([a], #{held_bytes => 2500})),
    ?assertEqual({1, 1}, {count(held, State), dropped(held, State)}),
    {_, Notices} = told(at(0, [gossip(1)]), State),
    ?assertMatch([{broadcast, r, {payload, 1}}, {broadcast, r, <<_/binary>>}], Notices).

nothing_is_held_for_longer_than_its_time_test() ->
    State0 = settled([a], #{hold_ms => 1000}),
    {State1, Effects} = run([from(a, gossip(3))], 100, State0),
    ?assert(lists:member({timer, hold, 1000}, Effects)),
    {State2, Later} = run([from(a, gossip(6)), {timeout, hold}], 1099, State1),
    ?assertEqual([{timer, hold, 1}], Later),
    {State3, Given} = run([{timeout, hold}], 1100, State2),
    ?assertEqual([{missed, r, 2} | payloads([3])], notices(Given)),
    %% The next has waited since 1099.
    ?assert(lists:member({timer, hold, 999}, Given)),
    {State4, Last} = run([{timeout, hold}], 2100, State3),
    ?assertEqual([{notify, Notice} || Notice <- [{missed, r, 2} | payloads([6])]], Last),
    ?assertEqual({4, 0}, {count(missed, State4), count(held, State4)}),
    ?assertEqual([], notices(element(2, run([from(a, gossip(2))], 2100, State4)))).

many_gaps_take_no_longer_than_one_test() ->
    {State0, _} = run([from(a, gossip(S)) || S <- [2, 4, 6]], 100, settled([a], #{hold_ms => 1000})),
    {State1, _} = run([from(a, gossip(9)), from(a, gossip(5))], 600, State0),
    {State2, Given} = run([{timeout, hold}], 1100, State1),
    Missed = {missed, r, 1},
    ?assertEqual([Missed] ++ payloads([2]) ++ [Missed] ++ payloads([4, 5, 6]), notices(Given)),
    ?assert(lists:member({timer, hold, 500}, Given)),
    {State3, Last} = run([{timeout, hold}], 1600, State2),
    ?assertEqual([{missed, r, 2}] ++ payloads([9]), notices(Last)),
    ?assertEqual({4, 0}, {count(missed, State3), count(held, State3)}).

what_came_later_is_not_held_for_longer_than_what_follows_it_test() ->
    {State, _} = told([{0, from(a, gossip(9))}, {500, from(a, gossip(5))}], settled([a], #{hold_ms => 1000})),
    ?assertEqual([{missed, r, 4}] ++ payloads([5]) ++ [{missed, r, 3}] ++ payloads([9]), notices(element(2, run([{timeout, hold}], 1000, State)))).

what_is_held_of_a_sender_that_is_forgotten_is_delivered_in_time_test() ->
    Others = [from(a, {gossip, list_to_atom("s" ++ integer_to_list(N)), 1, 1, 3, x}) || N <- lists:seq(1, 20)],
    {State, _} = run([from(a, gossip(3)), from(a, gossip(5))], settled([a], #{max_senders => 8, hold_ms => 1000})),
    {_, Effects} = run(Others ++ [{timeout, hold}], 5000, State),
    ?assertEqual([{missed, r, 2}, {broadcast, r, {payload, 3}}, {missed, r, 1}, {broadcast, r, {payload, 5}}], notices(Effects)).

what_a_fresh_node_was_overtaken_by_does_not_come_later_test() ->
    {Fresh, _} = run([{up, a}], new(#{})),
    {_, Notices} = told(
        at(0, [gossip(8), gossip(6), {baseline, true, [{r, 1, 5, 0}]}, gossip(7), gossip(9)]), Fresh
    ),
    ?assertEqual(payloads([8, 6, 9]), Notices).

%% Whatever comes in whatever order, and whatever is said to be gone.
a_sender_is_heard_in_its_order_and_without_a_hole_test_() ->
    atoll_prop:test(?FUNCTION_NAME, in_order(), 500).

in_order() ->
    ?FORALL(
        Events,
        list(heard()),
        begin
            Options = #{window => 20, held_max => 3, patience => 1, hold_ms => 100, max_senders => 8},
            Timed = [{10 * N, Event} || {N, Event} <- lists:zip(lists:seq(1, length(Events)), Events)],
            {State1, Notices1} = told(Timed, settled([a], Options)),
            {State, Notices2} = told([{1000000 * N, {timeout, hold}} || N <- lists:seq(1, 4)], State1),
            conjunction([
                {in_order, holes(Notices1 ++ Notices2, {0, 0})},
                {nothing_waits, equals({0, 0}, {count(held, State), count(held_bytes, State)})}
            ])
        end
    ).

heard() ->
    frequency([
        {8, ?LET({Life, Seq}, {range(1, 2), range(1, 12)}, from(a, ordered(Life, Seq)))},
        {1, ?LET(Seq, range(10, 60), from(a, ordered(1, Seq)))},
        {1, ?LET({Life, Upto}, {range(1, 2), range(1, 15)}, from(a, {rest, [], [{r, Life, Upto}]}))},
        {1, {timeout, hold}}
    ]).

ordered(Life, Seq) -> {gossip, r, Life, Seq, 3, {Life, Seq}}.

%% What is missed counts for what comes next: of the same life, or of the one that ends.
holes([], _At) -> true;
holes([{missed, r, Count} | Notices], {Life, Seq}) -> holes(Notices, {Life, Seq + Count});
holes([{broadcast, r, {Life, Next}} | Notices], {Life, Seq}) -> Next =:= Seq + 1 andalso holes(Notices, {Life, Next});
%% Of a later life all that is before its first is missed, and of the one before what was known of.
holes([{broadcast, r, {Later, Next}} | Notices], {Life, _}) -> Later > Life andalso holes(Notices, {Later, Next}).

%% Who sends too fast

a_sender_that_is_too_fast_is_told_and_nothing_is_sent_test() ->
    Say = fun(Payload) -> {call, {self(), Payload}, {broadcast, Payload}} end,
    State0 = settled([a], #{cache_max => 4, keep_ms => 1000}),
    {State1, Said} = run([Say(x)], State0),
    ?assertEqual([{reply, {self(), x}, ok}, {notify, {broadcast, me, x}}, {send, a, {gossip, me, 1, 1, 1, x}}], Said),
    {State2, Told} = run([Say(y), Say(z)], State1),
    ?assertEqual([{reply, {self(), z}, {error, overloaded}}], Told),
    ?assertEqual({State2, []}, {element(1, run([], State2)), element(2, run([{cast, {broadcast, z}}], State2))}),
    ?assertEqual(1, count(refused, State2)),
    %% Once the first is old enough there is room.
    {_, Later} = run([Say(z)], 1000, State2),
    ?assertEqual([{a, {gossip, me, 1, 3, 1, z}}], sent(Later)).

messages_of_others_leave_room_for_the_own_ones_test() ->
    {State, _} = run([from(a, gossip(S)) || S <- lists:seq(1, 9)], settled([a], #{cache_max => 4, keep_ms => 1000})),
    {_, Effects} = run([{call, {self(), x}, {broadcast, x}}], State),
    ?assertMatch([{reply, _, ok} | _], Effects).

%% Acknowledgements

wanted(Seq) -> {gossip, r, 1, Seq, 3, {acknowledge, {1, Seq}, {payload, Seq}}}.

what_is_delivered_is_acknowledged_to_whom_it_came_from_first_test() ->
    {State, Effects} = run([from(b, wanted(1))], settled([a, b, c])),
    ?assertEqual(payloads([1]), notices(Effects)),
    ?assert(lists:member({timer, acks, 50}, Effects)),
    {_, Acks} = run([from(c, wanted(1)), from(c, {acks, [{{r, 1, 1}, [c]}]}), {timeout, acks}], State),
    ?assertEqual([{b, {acks, [{{r, 1, 1}, [c, me]}]}}], sent(Acks)),
    %% Where that one is gone, to the sender itself.
    {_, Lost} = run([{down, b, lost}, {timeout, acks}], State),
    ?assertEqual([{r, {acks, [{{r, 1, 1}, [me]}]}}], sent(Lost)).

what_is_held_is_not_acknowledged_test() ->
    {State, Effects} = run([from(b, wanted(2))], settled([a, b])),
    ?assertNot(lists:member({timer, acks, 50}, Effects)),
    {Delivered, _} = run([from(b, gossip(1))], State),
    ?assertEqual([{r, {acks, [{{r, 1, 2}, [me]}]}}], sent(element(2, run([from(r, {acks_wanted, [{1, 2}]})], Delivered)))).

%% It is the sender itself that asks, and it has them.
who_is_asked_for_an_acknowledgement_and_lacks_the_message_gets_it_from_the_sender_test() ->
    Wants = fun(Seqs, State) -> sent(element(2, run([from(r, {acks_wanted, [{1, Seq} || Seq <- Seqs]})], State))) end,
    ?assertMatch([{r, {exchange, true, [{me, 1, 0, 0}]}}], Wants([1], settled([a, b]))),
    {Held, _} = run([from(b, wanted(2))], settled([a, b])),
    ?assertMatch([{r, {exchange, true, [{me, 1, 0, 0}, {r, 1, 0, 2#10}]}}], Wants([2], Held)),
    %% Once, however many are lacking, and beside what it has.
    {Both, _} = run([from(b, wanted(1)), from(b, wanted(3))], settled([a, b])),
    ?assertMatch([{r, {acks, [{{r, 1, 1}, [me]}]}}, {r, {exchange, _, _}}], Wants([1, 2, 3], Both)),
    %% What it counts as seen since it joined later does not come.
    {Later, _} = run([{up, a}, from(a, {baseline, true, [{r, 1, 7, 0}]})], new(#{})),
    ?assertEqual([], Wants([7], Later)),
    {Fresh, _} = run([{up, a}], new(#{})),
    ?assertEqual([], Wants([1], Fresh)).

a_caller_is_told_who_has_acknowledged_test() ->
    From = {self(), all},
    {State, Effects} = run([{call, From, {broadcast, x, all, 9000, [a, b, me]}}], settled([a, b])),
    ?assertEqual([{broadcast, me, x}], notices(Effects)),
    ?assertEqual([{a, {gossip, me, 1, 1, 1, {acknowledge, {1, 1}, x}}}, {b, {gossip, me, 1, 1, 1, {acknowledge, {1, 1}, x}}}], sent(Effects)),
    {Left, []} = run([from(a, {acks, [{{me, 1, 1}, [a]}]})], State),
    {_, Gone} = run([{cast, {gone, b}}], Left),
    ?assertMatch([{reply, From, {error, {unanswered, [b]}}} | _], Gone),
    {_, Late} = run([{timeout, {ack, {1, 1}}}], Left),
    ?assertMatch([{reply, From, {error, {unanswered, [b]}}} | _], Late),
    {Done, All} = run([from(a, {acks, [{{me, 1, 1}, [b]}]})], Left),
    ?assertMatch([{reply, From, {ok, [a, b, me]}} | _], All),
    ?assertEqual({Done, []}, run([from(a, {acks, [{{me, 1, 1}, [a, b]}]})], Done)).

a_large_message_waits_for_room_beside_young_own_ones_test() ->
    Large = <<0:8000>>,
    State0 = settled([a], #{cache_bytes => 3000, keep_ms => 1000}),
    {State1, _} = run([{cast, {broadcast, Large}}], State0),
    Events = [{call, x, {broadcast, Large}}, {call, x, {broadcast, Large, all, 100, [a]}}],
    [?assertEqual([{reply, x, {error, overloaded}}], element(2, run([Event], 999, State1))) || Event <- Events],
    [?assert(lists:member({notify, {broadcast, me, Large}}, element(2, run([Event], 1000, State1)))) || Event <- Events].

callers_too_many_are_refused_and_nothing_is_sent_test() ->
    Call = fun(N) -> {call, {self(), N}, {broadcast, x, all, 9000, [a, me]}} end,
    {State, Effects} = run([Call(1), Call(2)], settled([a], #{waits_max => 1})),
    ?assertEqual([{reply, {self(), 2}, {error, overloaded}}], Effects),
    ?assertMatch(#{waiting := 1, waiting_refused := 1}, count(acks, State)).
