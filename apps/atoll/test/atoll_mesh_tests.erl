%% SPDX-License-Identifier: Apache-2.0
%% The mesh, event by event.
-module(atoll_mesh_tests).

-include_lib("eunit/include/eunit.hrl").

new() -> new([]).

new(Remembered) ->
    {ok, Options} = atoll_options:complete(atoll_mesh, #{max_gone => 2}),
    {State, Effects} = atoll_mesh:init(
        #{self => n1, incarnation => 7, seed => 1, options => Options, remembered => Remembered}, 0
    ),
    ?assertMatch([{timer, _, _}, {timer, _, _}], lists:sublist(lists:sort([E || {timer, _, _} = E <- Effects]), 2)),
    case Remembered of
        [] -> State;
        _ -> {State, Effects}
    end.

run(Events, State) ->
    lists:foldl(
        fun(Event, {S0, _}) ->
            {Now, E} = at(Event),
            atoll_mesh:handle(E, Now, S0)
        end,
        {State, []},
        Events
    ).

at({at, Now, Event}) -> {Now, Event};
at(Event) -> {0, Event}.

hello(Node, Incarnation) -> {message, Node, {hello, false, Incarnation}}.

%% n2 in its third life is a neighbour.
with_n2() ->
    {State, _} = run([{up, n2}, hello(n2, 3)], new()),
    ?assertEqual([n2], atoll_mesh:neighbours(State)),
    State.

who_was_remembered_is_asked_to_join_test() ->
    {_, Effects} = new([n1, n2]),
    ?assert(lists:member({send, n2, {join, [{n1, {7, alive}}]}}, Effects)).

a_contact_that_is_not_reached_is_followed_by_the_next_test() ->
    {State, [{send, First, {join, _}}]} = run([{cast, {join, [n1, n2, n3]}}], new()),
    {_, [{send, Second, {join, _}}]} = run([{cast, {unreachable, First}}], State),
    ?assertEqual([n2, n3], lists:sort([First, Second])).

a_contact_that_was_reached_and_fails_later_is_not_followed_by_the_next_test() ->
    {State, [{send, First, {join, _}}]} = run([{cast, {join, [n1, n2, n3]}}], new()),
    {_, Effects} = run([{up, First}, {down, First, lost}, {cast, {unreachable, First}}], State),
    ?assertEqual([], Effects).

who_is_linked_already_has_no_follower_as_a_contact_test() ->
    {State, Sent} = run([{up, n2}, {up, n3}, {cast, {join, [n2, n3]}}], new()),
    [First] = [Node || {send, Node, {join, _}} <- Sent],
    {_, Effects} = run([{down, First, lost}, {cast, {unreachable, First}}], State),
    ?assertEqual([], Effects).

nobody_is_asked_who_is_a_neighbour_test() ->
    ?assertMatch({_, []}, run([{cast, {join, [n1, n2]}}], with_n2())).

a_joiner_gets_the_members_it_does_not_know_test() ->
    {_, Effects} = run([{message, n3, {join, [{n3, {1, alive}}]}}], with_n2()),
    ?assert(lists:member({send, n3, {members, [{n1, {7, alive}}, {n2, {3, alive}}], false}}, Effects)),
    ?assert(lists:member({want, n3}, Effects)).

what_a_joiner_brings_is_passed_on_test() ->
    {_, Effects} = run([{message, n3, {join, [{n3, {1, alive}}, {n4, {1, alive}}]}}], with_n2()),
    ?assert(lists:member({send, n2, {news, [{n4, {1, alive}}]}}, Effects)).

a_newcomer_that_asks_is_answered_once_test() ->
    {_, Effects} = run([{up, n2}, {message, n2, {hello, true, 3}}], new()),
    ?assertEqual([{send, n2, {hello, false, 7}}], [E || {send, n2, {hello, _, _}} = E <- Effects]).

equal_digests_need_no_answer_test() ->
    State = with_n2(),
    Digest = atoll_mesh_members:digest(atoll_mesh_members:from_list([{n1, {7, alive}}, {n2, {3, alive}}])),
    ?assertMatch({_, []}, run([{message, n2, {digest, Digest}}], State)),
    {_, Effects} = run([{message, n2, {digest, Digest + 1}}], State),
    ?assertEqual([{send, n2, {members, [{n1, {7, alive}}, {n2, {3, alive}}], true}}], Effects).

a_verdict_ends_it_and_the_next_life_begins_it_test() ->
    {State, Effects} = run([{cast, {dead, n2}}], with_n2()),
    ?assertEqual(
        [{unwant, n2}, {send, n2, {hello, false, false}}, {notify, {neighbour_down, n2, dropped}}],
        lists:sublist(Effects, 3)
    ),
    {_, Same} = run([hello(n2, 3)], State),
    ?assert(lists:member({send, n2, {news, [{n2, {3, gone}}]}}, Same)),
    {Back, _} = run([{down, n2, lost}, {up, n2}, hello(n2, 4)], State),
    ?assertEqual([n2], atoll_mesh:neighbours(Back)).

a_node_that_is_held_to_be_gone_objects_test() ->
    {State, Effects} = run([{message, n2, {news, [{n1, {7, gone}}]}}], with_n2()),
    ?assert(lists:member({send, n2, {hello, false, 8}}, Effects)),
    ?assertMatch(#{incarnation := 8}, atoll_mesh:summary(State)).

hearsay_of_a_neighbours_death_is_passed_to_it_and_not_believed_test() ->
    {Both, _} = run([{up, n3}, hello(n3, 1)], with_n2()),
    {State, Effects} = run([{message, n3, {news, [{n2, {3, gone}}]}}], Both),
    ?assertEqual([{send, n2, {news, [{n2, {3, gone}}]}}], Effects),
    ?assertEqual([n2, n3], atoll_mesh:neighbours(State)),
    {Left, _} = run([{message, n2, {news, [{n2, {3, gone}}]}}], Both),
    ?assertEqual([n3], atoll_mesh:neighbours(Left)).

a_link_that_is_down_leaves_a_member_test() ->
    {State, Effects} = run([{down, n2, lost}], with_n2()),
    ?assertEqual([{notify, {neighbour_down, n2, lost}}], Effects),
    ?assertMatch(#{members := 2, neighbours := 0}, atoll_mesh:summary(State)),
    ?assertEqual([n2], atoll_mesh:known(State)).

a_gone_one_is_knocked_at_test() ->
    {Gone, _} = run([{cast, {dead, n2}}, {down, n2, lost}], with_n2()),
    {_, Effects} = run([{timeout, knock}], Gone),
    ?assertMatch([{send, n2, {digest, _}}, {timer, knock, _}], Effects),
    ?assertMatch({_, [{timer, knock, _}]}, run([{timeout, knock}], with_n2())).

who_is_out_of_reach_for_long_is_given_up_test() ->
    Fails = fun(Now) -> {at, Now, {cast, {unreachable, n2}}} end,
    {Trying, _} = run([{down, n2, lost}, Fails(1000), Fails(60999)], with_n2()),
    ?assertMatch(#{gone := 0, failing := 1}, atoll_mesh:summary(Trying)),
    ?assertMatch({#{gone := 1, failing := 0}, _}, summary(run([Fails(61000)], Trying))),
    {Reached, _} = run([{up, n2}, {down, n2, lost}, Fails(61000)], Trying),
    ?assertMatch(#{gone := 0}, atoll_mesh:summary(Reached)).

%% Until it is known to be gone, or to have begun another life.
what_an_earlier_life_was_out_of_reach_does_not_count_test() ->
    Fails = fun(Now) -> {at, Now, {cast, {unreachable, n2}}} end,
    News = fun(Now, Entry) -> {at, Now, {message, n3, {news, [{n2, Entry}]}}} end,
    Failing = [{down, n2, lost}, Fails(1000)],
    {Gone, _} = run(Failing ++ [News(60000, {3, gone}), News(700000, {4, alive}), Fails(700100)], with_n2()),
    ?assertMatch(#{gone := 0}, atoll_mesh:summary(Gone)),
    {Reborn, _} = run(Failing ++ [News(60000, {4, alive}), Fails(700100)], with_n2()),
    ?assertMatch(#{gone := 0}, atoll_mesh:summary(Reborn)),
    ?assertMatch({#{gone := 1}, _}, summary(run([Fails(760100)], Reborn))).

summary({State, Effects}) -> {atoll_mesh:summary(State), Effects}.

the_gone_are_bounded_and_the_forgotten_counted_test() ->
    Gone = [{N, {I, gone}} || {N, I} <- [{n5, 1}, {n6, 2}, {n7, 3}]],
    {State, _} = run([{message, n2, {members, Gone, false}}], with_n2()),
    ?assertMatch(#{gone := 2, forgotten := 1}, atoll_mesh:summary(State)),
    %% What is only forgotten again is no news.
    {_, Effects} = run([{message, n2, {members, Gone, false}}], State),
    ?assertEqual([], Effects).

who_leaves_says_so_and_stays_outside_test() ->
    {Left, Effects} = run([{cast, leave}], with_n2()),
    ?assertEqual({send, n2, {news, [{n1, {7, gone}}]}}, hd(Effects)),
    ?assert(lists:member({unwant, n2}, Effects)),
    ?assertMatch({_, []}, run([{cast, {join, [n2]}}], Left)),
    ?assertMatch({_, []}, run([{message, n2, {news, [{n3, {1, alive}}]}}], Left)),
    ?assertMatch({_, [{send, n2, {news, [{n1, {7, gone}}]}}]}, run([hello(n2, 3)], Left)).
