%% SPDX-License-Identifier: Apache-2.0
%% SCAMP, event by event.
-module(atoll_scamp_tests).

-include_lib("eunit/include/eunit.hrl").

new() -> new(#{}).

new(Given) ->
    {ok, Options} = atoll_options:complete(atoll_scamp, Given),
    {State, [{timer, period, _}]} =
        atoll_scamp:init(#{self => n1, incarnation => 1, seed => 1, options => Options, remembered => []}, 0),
    State.

run(Events, State) ->
    lists:foldl(
        fun(Event, {S0, Effects}) ->
            {S, More} = atoll_scamp:handle(Event, 0, S0),
            {S, Effects ++ More}
        end,
        {State, []},
        Events
    ).

granted(Nodes) -> lists:append([[{message, N, granted}, {up, N}] || N <- Nodes]).

%% Whose out-view is this.
knowing(Nodes, State) ->
    {Knowing, _} = run(granted(Nodes), State),
    Knowing.

sends(Effects, Tag) -> [{To, M} || {send, To, M} <- Effects, element(1, M) =:= Tag].

a_joiner_subscribes_by_a_contact_and_by_the_next_if_it_is_not_reached_test() ->
    {State, [{send, First, {subscribe, n1, 10}}]} = run([{cast, {join, [n1, n2, n3]}}], new()),
    {_, [{send, Second, {subscribe, n1, 10}}]} = run([{cast, {unreachable, First}}], State),
    ?assertEqual([n2, n3], lists:sort([First, Second])).

a_contact_that_was_reached_and_fails_later_is_not_followed_by_the_next_test() ->
    {Asked, [{send, First, {subscribe, n1, 10}}]} = run([{cast, {join, [n1, n2, n3]}}], new()),
    Fails = {cast, {unreachable, First}},
    {Reached, _} = run([{up, First}, {down, First, lost}], Asked),
    ?assertEqual([], sends(element(2, run([Fails], Reached)), subscribe)),
    {Granted, _} = run([{message, n4, granted}], Asked),
    ?assertEqual([], sends(element(2, run([Fails], Granted)), subscribe)).

who_is_linked_already_has_no_follower_as_a_contact_test() ->
    {Asked, Effects} = run([{up, n2}, {up, n3}, {cast, {join, [n2, n3]}}], new()),
    [{First, _}] = sends(Effects, subscribe),
    {_, Later} = run([{down, First, lost}, {cast, {unreachable, First}}], Asked),
    ?assertEqual([], sends(Later, subscribe)).

who_grants_is_the_first_of_the_view_test() ->
    {State, Effects} = run([{message, n2, granted}, {up, n2}], new()),
    ?assert(lists:member({want, n2}, Effects)),
    ?assert(lists:member({send, n2, {hello, false, true}}, Effects)),
    ?assertEqual([n2], atoll_scamp:neighbours(State)).

a_contact_that_knows_nobody_keeps_the_joiner_test() ->
    {State, Effects} = run([{message, n2, {subscribe, n2, 10}}], new()),
    ?assert(lists:member({send, n2, granted}, Effects)),
    ?assertMatch(#{out := 1}, atoll_scamp:summary(State)).

a_contact_sends_a_copy_to_each_member_and_c_more_test() ->
    State = knowing([n2, n3, n4], new()),
    {_, Effects} = run([{message, n5, {subscribe, n9, 0}}], State),
    Copies = sends(Effects, copy),
    ?assertEqual(3 + 5, length(Copies)),
    ?assertEqual([n2, n3, n4], lists:usort([To || {To, {copy, n9, 300}} <- Copies])).

a_request_walks_first_test() ->
    {_, Effects} = run([{message, n5, {subscribe, n9, 4}}], knowing([n2], new())),
    ?assertEqual([{send, n2, {subscribe, n9, 3}}], Effects).

a_copy_is_kept_with_the_probability_of_the_paper_test() ->
    State = knowing([n2, n3, n4], new()),
    {Kept, _} = lists:foldl(
        fun(_, {Count, S0}) ->
            {S, Effects} = atoll_scamp:handle({message, n2, {copy, n9, 50}}, 0, S0),
            case lists:member({want, n9}, Effects) of
                %% The generator goes on, the view does not.
                true -> {Count + 1, forget(S)};
                false -> {Count, S}
            end
        end,
        {0, State},
        lists:seq(1, 4000)
    ),
    ?assert(Kept > 850),
    ?assert(Kept < 1150).

forget(State) ->
    {Less, _} = atoll_scamp:handle({cast, {dead, n9}}, 0, State),
    Less.

nothing_circles_for_ever_test() ->
    Full = knowing([n2, n3], new(#{view_max => 2})),
    {State, Effects} = run([{message, n2, {copy, n9, 0}}], Full),
    ?assertEqual([], sends(Effects, copy)),
    ?assertMatch(#{spent := 1, out := 2}, atoll_scamp:summary(State)),
    {Kept, _} = run([{message, n2, {copy, n9, 0}}], knowing([n2, n3], new())),
    ?assertMatch(#{spent := 0, out := 3}, atoll_scamp:summary(Kept)),
    {Own, _} = run([{message, n2, {copy, n1, 0}}], Kept),
    ?assertMatch(#{spent := 1, out := 3}, atoll_scamp:summary(Own)).

a_full_view_takes_nobody_and_counts_test() ->
    {State, _} = run([{message, n9, granted}], knowing([n2, n3], new(#{view_max => 2}))),
    ?assertMatch(#{refused := 1, out := 2}, atoll_scamp:summary(State)).

who_has_this_node_in_its_view_is_a_neighbour_test() ->
    {State, _} = run([{up, n2}, {message, n2, {hello, false, true}}], new()),
    ?assertEqual([n2], atoll_scamp:neighbours(State)),
    ?assertMatch(#{in := 1, out := 0}, atoll_scamp:summary(State)).

who_leaves_hands_its_place_to_all_but_c_and_one_test() ->
    In = [n11, n12, n13, n14, n15, n16, n17, n18, n19],
    Heard = lists:append([[{up, N}, {message, N, {hello, false, true}}] || N <- In]),
    {State, _} = run(Heard, knowing([n2, n3], new())),
    {Left, Effects} = run([{cast, leave}], State),
    Heirs = sends(Effects, unsubscribe),
    ?assertEqual(In, lists:sort([To || {To, _} <- Heirs])),
    ?assertEqual(6, length([To || {To, {unsubscribe, nobody}} <- Heirs])),
    ?assertEqual([n2, n3], lists:usort([Heir || {_, {unsubscribe, Heir}} <- Heirs, Heir =/= nobody])),
    ?assertMatch(#{out := 0}, atoll_scamp:summary(Left)),
    ?assertMatch({_, []}, run([{cast, {join, [n2]}}], Left)).

a_member_that_leaves_is_replaced_by_its_heir_test() ->
    State = knowing([n2, n3], new()),
    {Replaced, Effects} = run([{message, n2, {unsubscribe, n8}}], State),
    ?assert(lists:member({unwant, n2}, Effects)),
    ?assert(lists:member({want, n8}, Effects)),
    ?assertMatch(#{out := 2}, atoll_scamp:summary(Replaced)),
    %% Once; and a stranger has no heir.
    {Again, _} = run([{message, n2, {unsubscribe, n7}}], Replaced),
    ?assertMatch(#{out := 2}, atoll_scamp:summary(Again)).

who_has_no_in_view_for_a_window_subscribes_again_test() ->
    Periods = lists:duplicate(9, {timeout, period}),
    {Silent, Before} = run(Periods, knowing([n2], new())),
    ?assertEqual([], sends(Before, subscribe)),
    {_, After} = run([{timeout, period}], Silent),
    ?assertEqual([{n2, {subscribe, n1, 10}}], sends(After, subscribe)),
    {_, Heard} = run([{message, n2, {hello, false, true}}, {timeout, period}], Silent),
    ?assertEqual([], sends(Heard, subscribe)).

who_has_no_out_view_subscribes_again_test() ->
    {_, Effects} = run([{up, n2}, {message, n2, {hello, false, true}}, {timeout, period}], new()),
    ?assertEqual([{n2, {subscribe, n1, 10}}], sends(Effects, subscribe)).

a_member_out_of_reach_is_dropped_test() ->
    {Down, _} = run([{down, n2, lost} | lists:duplicate(2, {cast, {unreachable, n2}})], knowing([n2, n3], new())),
    ?assertMatch(#{out := 2, failing := 1}, atoll_scamp:summary(Down)),
    {Dropped, Effects} = run([{cast, {unreachable, n2}}], Down),
    ?assertMatch(#{out := 1, failing := 0}, atoll_scamp:summary(Dropped)),
    ?assert(lists:member({unwant, n2}, Effects)).

a_contact_is_one_arc_for_who_is_not_alone_test() ->
    {State, Effects} = run([{cast, {join, [n2, n3]}}], knowing([n2], new())),
    ?assertEqual([], sends(Effects, subscribe)),
    ?assertMatch(#{out := 2}, atoll_scamp:summary(State)).
