%% SPDX-License-Identifier: Apache-2.0
%% HyParView on one node: what each message and failure leads to.
-module(atoll_hyparview_tests).

-include_lib("eunit/include/eunit.hrl").

new() -> new(#{}, []).

new(Options, Remembered) ->
    {State, Effects} = init(Options, Remembered),
    [?assertNotMatch({send, _, _}, Effect) || Remembered =:= [], Effect <- Effects],
    State.

init(Given, Remembered) ->
    {ok, Options} = atoll_options:complete(atoll_hyparview, Given),
    Config = #{self => a, incarnation => 1, seed => 7, options => Options, remembered => Remembered},
    atoll_hyparview:init(Config, 0).

%% Runs events one after the other; gives the effects of the last.
run(Events, State) ->
    lists:foldl(fun(Event, {S, _}) -> atoll_hyparview:handle(Event, 0, S) end, {State, []}, Events).

%% Neighbours that joined by us.
with(Nodes) -> with(Nodes, new()).

with(Nodes, State0) ->
    {State, _} = run([{message, Node, {join, 1}} || Node <- Nodes], State0),
    ?assertEqual(lists:sort(Nodes), atoll_hyparview:neighbours(State)),
    State.

sent(Effects) -> [{Node, Message} || {send, Node, Message} <- Effects].

count(What, State) -> maps:get(What, atoll_hyparview:summary(State)).

a_node_that_starts_says_nothing_test() ->
    ?assertEqual([], atoll_hyparview:neighbours(new())).

a_node_that_remembers_asks_two_with_high_and_others_with_low_priority_test() ->
    {State, Effects} = init(#{}, [b, c, d, e, f, g]),
    Priorities = [Priority || {_, {neighbour, _, Priority}} <- sent(Effects)],
    ?assertEqual([high, high, low, low, low], Priorities),
    ?assertEqual([], atoll_hyparview:neighbours(State)).

joining_is_asked_of_one_contact_and_done_when_it_answers_test() ->
    {Asked, Effects} = run([{cast, {join, [a, b]}}], new()),
    ?assertEqual([{b, {join, 1}}], sent(Effects)),
    ?assertEqual([], atoll_hyparview:neighbours(Asked)),
    {Joined, Answered} = run([{message, b, {accepted, 1, [c, a]}}], Asked),
    ?assertEqual([b], atoll_hyparview:neighbours(Joined)),
    ?assert(lists:member({want, b}, Answered)),
    ?assert(lists:member({notify, {neighbour_up, b}}, Answered)),
    ?assert(lists:member({cancel, {request, b}}, Answered)),
    ?assertEqual([c], atoll_hyparview:known(Joined)),
    ?assertMatch([{c, {neighbour, _, high}}], sent(Answered)).

a_contact_that_cannot_be_reached_or_is_silent_is_followed_by_another_test() ->
    {Asked, Effects} = run([{cast, {join, [b, c, d]}}], new()),
    [First] = [Node || {Node, {join, _}} <- sent(Effects)],
    {Again, Effects2} = run([{cast, {unreachable, First}}], Asked),
    [Second] = [Node || {Node, {join, _}} <- sent(Effects2)],
    {_, Effects3} = run([{timeout, {request, Second}}], Again),
    [Third] = [Node || {Node, {join, _}} <- sent(Effects3)],
    ?assertEqual([b, c, d], lists:sort([First, Second, Third])).

joining_when_full_still_makes_a_link_test() ->
    Full = with([b, c, d, e, f]),
    {Asked, [_ | _]} = run([{cast, {join, [z]}}], Full),
    {Joined, Effects} = run([{message, z, {accepted, 1, []}}], Asked),
    ?assert(lists:member(z, atoll_hyparview:neighbours(Joined))),
    ?assertMatch([_], [Node || {notify, {neighbour_down, Node, dropped}} <- Effects]).

joining_by_neighbours_alone_does_nothing_test() ->
    ?assertMatch({_, []}, run([{cast, {join, [a, b, c, d, e, f]}}], with([b, c, d, e, f]))).

a_newcomer_is_walked_over_each_other_link_test() ->
    {_, Effects} = run([{message, z, {join, 9}}], with([b, c, d])),
    ?assertMatch({z, {accepted, 9, [b, c, d]}}, hd(sent(Effects))),
    ?assertEqual(
        [{N, {forward_join, z, 8}} || N <- [b, c, d]],
        lists:sort([S || {_, {forward_join, _, _}} = S <- sent(Effects)])
    ).

a_full_contact_evicts_somebody_and_names_others_to_it_test() ->
    {State, Effects} = run([{message, z, {join, 9}}], with([b, c, d, e, f])),
    ?assertEqual(5, length(atoll_hyparview:neighbours(State))),
    [Evicted] = [Node || {notify, {neighbour_down, Node, dropped}} <- Effects],
    ?assertNotEqual(z, Evicted),
    ?assertMatch([{Evicted, {disconnect, [_, _, _]}}], [S || {_, {disconnect, _}} = S <- sent(Effects)]),
    ?assertEqual([Evicted], atoll_hyparview:known(State)),
    ?assert(lists:member({unwant, Evicted}, Effects)).

a_walk_goes_on_and_leaves_the_name_at_its_step_test() ->
    State = with([b, c, d]),
    {On, Effects} = run([{message, b, {forward_join, z, 5}}], State),
    [{Next, {forward_join, z, 4}}] = sent(Effects),
    ?assert(lists:member(Next, [c, d])),
    ?assertEqual([], atoll_hyparview:known(On)),
    {Noted, _} = run([{message, b, {forward_join, z, 3}}], State),
    ?assertEqual([z], atoll_hyparview:known(Noted)).

a_walk_ends_at_zero_and_at_a_node_with_no_other_link_test() ->
    {_, AtZero} = run([{message, b, {forward_join, z, 0}}], with([b, c, d])),
    ?assertMatch([{z, {neighbour, _, high}}], sent(AtZero)),
    {_, NoOther} = run([{message, b, {forward_join, z, 5}}], with([b])),
    ?assertMatch([{z, {neighbour, _, high}}], sent(NoOther)).

low_is_accepted_with_room_and_refused_without_test() ->
    {_, Accepted} = run([{message, z, {neighbour, 3, low}}], with([b, c])),
    ?assertMatch([{z, {accepted, 3, []}}], sent(Accepted)),
    {Full, Refused} = run([{message, z, {neighbour, 3, low}}], with([b, c, d, e, f])),
    ?assertEqual([{z, {refused, 3}}], sent(Refused)),
    ?assertEqual(1, count(refused, Full)).

high_is_always_accepted_test() ->
    {State, Effects} = run([{message, z, {neighbour, 3, high}}], with([b, c, d, e, f])),
    ?assert(lists:member(z, atoll_hyparview:neighbours(State))),
    ?assert(lists:member({send, z, {accepted, 3, []}}, Effects)).

two_that_ask_each_other_become_neighbours_without_room_test() ->
    %% Our low request to z is on its way; meanwhile there is no room any more.
    {Asked, _} = run([{cast, {unreachable, b}}], with([b, c, d, e, f], new(#{}, []))),
    {Learnt, Effects} = run([{message, c, {disconnect, [z]}}, {timeout, promotion}], Asked),
    Low = [Number || {z, {neighbour, Number, low}} <- sent(Effects)],
    ?assertMatch([_], Low),
    {Full, _} = run([{message, N, {neighbour, 1, high}} || N <- [g, h, i]], Learnt),
    {State, Answer} = run([{message, z, {neighbour, 4, low}}], Full),
    ?assert(lists:member({send, z, {accepted, 4, []}}, Answer)),
    ?assert(lists:member(z, atoll_hyparview:neighbours(State))).

a_late_acceptance_is_answered_with_disconnect_test() ->
    {State, Effects} = run([{message, z, {accepted, 3, []}}], with([b, c])),
    ?assertEqual([{z, {disconnect, []}}], sent(Effects)),
    ?assertEqual([b, c], atoll_hyparview:neighbours(State)).

an_answer_to_an_earlier_request_is_none_test() ->
    {Asked, _} = run([{cast, {join, [b]}}, {timeout, {request, b}}, {cast, {join, [b]}}], new()),
    {State, Effects} = run([{message, b, {accepted, 1, []}}], Asked),
    ?assertEqual([], sent(Effects)),
    ?assertEqual([], atoll_hyparview:neighbours(State)),
    {Joined, _} = run([{message, b, {accepted, 2, []}}], State),
    ?assertEqual([b], atoll_hyparview:neighbours(Joined)).

a_silent_candidate_is_told_and_forgotten_test() ->
    {Asked, _} = run([{message, b, {disconnect, [z]}}, {timeout, promotion}], with([b, c, d])),
    {State, Effects} = run([{timeout, {request, z}}], Asked),
    ?assert(lists:member({z, {disconnect, []}}, sent(Effects))),
    ?assertNot(lists:member(z, atoll_hyparview:known(State))).

a_refusing_candidate_stays_and_is_not_asked_again_before_the_next_promotion_test() ->
    {Asked, Effects} = run([{message, b, {disconnect, []}}, {timeout, promotion}], with([b, c, d])),
    [{b, {neighbour, Number, low}}] = sent(Effects),
    {State, Refused} = run([{message, b, {refused, Number}}], Asked),
    ?assertEqual([], sent(Refused)),
    ?assertEqual([b], atoll_hyparview:known(State)),
    {_, Later} = run([{timeout, promotion}], State),
    ?assertMatch([{b, {neighbour, _, low}}], sent(Later)).

a_broken_link_is_repaired_at_once_test() ->
    {Some, _} = run([{message, f, {disconnect, []}}], with([b, c, d, e, f])),
    {State, Effects} = run([{down, b, connection_closed}], Some),
    ?assert(lists:member({notify, {neighbour_down, b, lost}}, Effects)),
    ?assert(lists:member({unwant, b}, Effects)),
    ?assertMatch([{f, {neighbour, _, low}}], sent(Effects)),
    ?assertEqual([f], atoll_hyparview:known(State)).

a_restarted_neighbour_is_lost_but_kept_in_mind_test() ->
    {State, Effects} = run([{down, b, restarted}], with([b, c, d])),
    ?assert(lists:member({notify, {neighbour_down, b, lost}}, Effects)),
    ?assertEqual([b], atoll_hyparview:known(State)).

a_node_with_one_neighbour_asks_with_high_priority_without_waiting_test() ->
    {_, Effects} = run([{message, b, {disconnect, []}}], with([b, c])),
    ?assertMatch([{b, {neighbour, _, high}}], sent(Effects)).

a_dropped_neighbour_is_replaced_only_later_if_there_are_enough_test() ->
    {_, Effects} = run([{message, b, {disconnect, []}}], with([b, c, d])),
    ?assertEqual([], sent(Effects)).

a_link_of_others_that_goes_down_is_nothing_test() ->
    ?assertMatch({_, []}, run([{up, z}, {down, z, connection_closed}], with([b, c]))).

the_dead_are_in_no_view_test() ->
    {Some, _} = run([{message, b, {disconnect, []}}], with([b, c, d])),
    {State, Effects} = run([{cast, {dead, b}}, {cast, {dead, c}}], Some),
    ?assertEqual([d], atoll_hyparview:neighbours(State)),
    ?assertEqual([], atoll_hyparview:known(State)),
    ?assert(lists:member({notify, {neighbour_down, c, lost}}, Effects)).

a_stranger_is_dropped_test() ->
    {State, Effects} = run([{cast, {stranger, b}}], with([b, c, d])),
    ?assertEqual([c, d], atoll_hyparview:neighbours(State)),
    ?assert(lists:member({notify, {neighbour_down, b, dropped}}, Effects)).

what_only_a_neighbour_may_send_is_answered_with_disconnect_test() ->
    {State, Effects} = run([{message, z, {shuffle, 6, [z], [z]}}], with([b, c])),
    ?assertEqual([{z, {disconnect, []}}], sent(Effects)),
    ?assertEqual(1, count(strangers, State)).

leaving_parts_from_all_and_asks_nobody_test() ->
    {Left, Effects} = run([{cast, leave}], with([b, c])),
    ?assertEqual([{b, leaving}, {c, leaving}], lists:sort(sent(Effects))),
    ?assertEqual([b, c], lists:sort([N || {notify, {neighbour_down, N, dropped}} <- Effects])),
    ?assertEqual([b, c], lists:sort([N || {unwant, N} <- Effects])),
    ?assertEqual({[], []}, {atoll_hyparview:neighbours(Left), atoll_hyparview:known(Left)}),
    {Still, Answer} = run([{timeout, promotion}, {message, b, {neighbour, 3, high}}], Left),
    ?assertEqual([{b, leaving}], sent(Answer)),
    ?assertEqual([], atoll_hyparview:neighbours(Still)),
    ?assertMatch({_, [{send, b, {join, _}} | _]}, run([{cast, {join, [b]}}], Still)).

who_leaves_is_not_kept_in_mind_test() ->
    {State, Effects} = run([{message, b, leaving}], with([b, c, d])),
    ?assert(lists:member({notify, {neighbour_down, b, dropped}}, Effects)),
    ?assertEqual([], atoll_hyparview:known(State)).

a_shuffle_goes_on_over_a_link_that_it_has_not_used_test() ->
    {_, Effects} = run([{message, b, {shuffle, 4, [b, c], [c, x]}}], with([b, c, d])),
    ?assertEqual([{d, {shuffle, 3, [a, b, c], [c, x]}}], sent(Effects)).

a_shuffle_is_exchanged_at_its_end_and_the_answer_goes_back_the_way_test() ->
    {State, Effects} = run([{message, b, {shuffle, 1, [b, z], [z, x, a, c]}}], with([b, c, d])),
    ?assertEqual([x, z], lists:sort(atoll_hyparview:known(State))),
    [{b, {shuffled, [b, z], Nodes}}] = sent(Effects),
    ?assertEqual([b, d], Nodes),
    {_, Relayed} = run([{message, c, {shuffled, [a, b, z], Nodes}}], with([b, c, d])),
    ?assertEqual([{b, {shuffled, [b, z], Nodes}}], sent(Relayed)),
    {Origin, []} = run([{message, c, {shuffled, [a], [x, b, y]}}], with([b, c, d])),
    ?assertEqual([x, y], lists:sort(atoll_hyparview:known(Origin))).

an_answer_whose_way_is_broken_is_dropped_and_counted_test() ->
    {State, Effects} = run([{message, c, {shuffled, [a, q, z], [x]}}], with([b, c, d])),
    ?assertEqual([], Effects),
    ?assertEqual(1, count(strayed, State)).

refusals_that_are_remembered_are_bounded_and_counted_test() ->
    Small = new(#{passive_max => 1, refusals => 10}, []),
    Refuse = fun(Node, S0) ->
        {S1, Effects} = run([{message, b, {forward_join, Node, 0}}], S0),
        [{Node, {neighbour, Number, high}}] = sent(Effects),
        {S, _} = run([{message, Node, {refused, Number}}], S1),
        S
    end,
    State = lists:foldl(Refuse, with([b, c], Small), [x, y, z]),
    ?assertEqual({3, 1, 2}, {count(refusals, State), count(refused_lately, State), count(refused_dropped, State)}).

requests_on_their_way_are_bounded_test() ->
    Walks = [
        {message, b, {forward_join, list_to_atom("w" ++ integer_to_list(N)), 0}}
     || N <- lists:seq(1, 50)
    ],
    {State, _} = run(Walks, with([b, c])),
    ?assertEqual(20, count(pending, State)),
    ?assertEqual(30, count(not_asked, State)).
