%% SPDX-License-Identifier: Apache-2.0
%% What the overlay owes its parts: one life of a peer after the other, links on
%% demand, and what one part has to say to the others.
-module(atoll_overlay_core_tests).

-include_lib("eunit/include/eunit.hrl").

-define(ME, me@host).
-define(PEER, peer@host).

a_message_carries_the_life_of_its_sender_test() ->
    {_, Effects} = tell([{send, ?PEER, hello}], linked()),
    ?assertEqual([{send, ?PEER, {7, 7, strategy, hello}}], Effects).

messages_without_a_link_wait_for_it_in_order_test() ->
    {S1, [{want, ?PEER}]} = tell([{send, ?PEER, one}, {send, ?PEER, two}], new()),
    {S2, Effects} = handle({up, ?PEER}, S1),
    ?assertMatch(
        [
            {send, ?PEER, {7, 7, strategy, one}},
            {send, ?PEER, {7, 7, strategy, two}},
            {timer, {hold, ?PEER}, _},
            {notify, {heard, {up, ?PEER}}}
        ],
        Effects
    ),
    {_, Released} = handle({timeout, {hold, ?PEER}}, S2),
    ?assertEqual([{unwant, ?PEER}], Released).

a_link_that_was_held_for_an_answer_and_is_gone_is_wanted_anew_test() ->
    {S1, _} = tell([{send, ?PEER, one}], new()),
    {S2, _} = handle({up, ?PEER}, S1),
    {S3, _} = handle({down, ?PEER, connection_closed}, S2),
    {_, Effects} = tell([{send, ?PEER, two}], S3),
    %% The timer of the first message is not that of the second.
    ?assertEqual([{cancel, {hold, ?PEER}}, {want, ?PEER}], Effects).

a_link_that_the_strategy_wants_outlives_the_message_test() ->
    {S1, [{want, ?PEER}]} = tell([{send, ?PEER, one}], new()),
    {S2, [{want, ?PEER}]} = tell([{want, ?PEER}], S1),
    {S3, _} = handle({up, ?PEER}, S2),
    ?assertMatch({_, []}, handle({timeout, {hold, ?PEER}}, S3)).

what_cannot_be_sent_is_forgotten_and_told_test() ->
    {S1, _} = tell([{send, ?PEER, one}], new()),
    {S2, Effects} = handle({cast, {unreachable, ?PEER}}, S1),
    ?assertEqual([{unwant, ?PEER}, {notify, {heard, {cast, {unreachable, ?PEER}}}}], Effects),
    {_, Later} = handle({up, ?PEER}, S2),
    ?assertEqual([], [E || {send, _, _} = E <- Later]).

the_outbox_is_bounded_and_counts_what_it_drops_test() ->
    {S, _} = tell([{send, ?PEER, N} || N <- lists:seq(1, 1000)], new()),
    #{outbox := #{dropped := Dropped}} = atoll_overlay_core:summary(S),
    {_, Effects} = handle({up, ?PEER}, S),
    ?assertEqual(1000 - Dropped, length([E || {send, _, _} = E <- Effects])),
    ?assert(Dropped > 900).

an_earlier_life_is_not_heard_any_more_test() ->
    {S1, _} = message(5, new_life, linked()),
    {S2, Effects} = message(4, old_life, S1),
    ?assertEqual([], Effects),
    ?assertMatch(#{stale := 1}, atoll_overlay_core:summary(S2)).

a_later_life_is_preceded_by_the_end_of_the_earlier_test() ->
    {S1, _} = message(4, first, linked()),
    {S2, Effects} = message(5, second, S1),
    ?assertEqual(
        [{down, ?PEER, restarted}, {up, ?PEER}, {message, ?PEER, second}],
        [Event || {notify, {heard, Event}} <- Effects]
    ),
    %% The link is the same, if the overlay alone was started again: its end is real.
    {S3, Ended} = handle({down, ?PEER, connection_closed}, S2),
    ?assertEqual([{notify, {heard, {down, ?PEER, connection_closed}}}], Ended),
    ?assertMatch(#{links := 0}, atoll_overlay_core:summary(S3)),
    {_, [{notify, {heard, {up, ?PEER}}} | _]} = handle({up, ?PEER}, S3).

a_life_begun_in_place_goes_on_over_the_same_link_test() ->
    {S1, _} = message(4, 4, first, linked()),
    {S2, Effects} = message(4, 5, second, S1),
    ?assertEqual([{notify, {heard, {message, ?PEER, second}}}], Effects),
    {_, []} = message(4, 4, late, S2),
    %% There is no end of an earlier link to come: this one is real.
    ?assertEqual(
        {[{notify, {heard, {down, ?PEER, connection_closed}}}], 0},
        begin
            {S3, Down} = handle({down, ?PEER, connection_closed}, S2),
            {Down, maps:get(links, atoll_overlay_core:summary(S3))}
        end
    ).

messages_without_a_link_leave_nothing_behind_test() ->
    {S1, _} = message(4, first, new()),
    %% Of a later start, and still nobody had a link that could end.
    {_, Effects} = message(5, second, S1),
    ?assertEqual([{notify, {heard, {message, ?PEER, second}}}], Effects).

after_the_end_of_a_link_another_life_is_no_surprise_test() ->
    {S1, _} = message(4, first, linked()),
    {S2, _} = handle({down, ?PEER, connection_closed}, S1),
    {S3, _} = handle({up, ?PEER}, S2),
    {_, Effects} = message(5, second, S3),
    ?assertEqual([{notify, {heard, {message, ?PEER, second}}}], Effects).

links_alternate_for_the_parts_test() ->
    {S, []} = handle({up, ?PEER}, linked()),
    {_, [{notify, {heard, {down, ?PEER, gone}}}]} = handle({down, ?PEER, gone}, S).

a_buried_node_begins_a_new_life_in_place_test() ->
    S1 = with_detector(),
    {S2, _} = handle({up, ?PEER}, S1),
    {S3, Effects} = handle({message, ?PEER, {3, 3, detector, {buried, 7}}}, S2),
    ?assert(lists:member({notify, {reborn, 8}}, Effects)),
    ?assertEqual(8, atoll_overlay_core:incarnation(S3)),
    %% With the links and neighbours that it has.
    ?assertEqual([], [Event || {notify, {heard, Event}} <- Effects]),
    {_, Sent} = tell([{send, ?PEER, hello}], S3),
    ?assertEqual([{send, ?PEER, {7, 8, strategy, hello}}], Sent),
    %% Once: the next one who says so speaks of the life that is over.
    {S4, _} = handle({message, ?PEER, {3, 3, detector, {buried, 7}}}, S3),
    ?assertEqual(8, atoll_overlay_core:incarnation(S4)).

neighbours_are_what_the_strategy_says_test() ->
    {_, Effects} = tell([{notify, {neighbour_up, ?PEER}}], with_detector()),
    ?assert(lists:member({notify, {neighbour_up, ?PEER}}, Effects)),
    %% The detector sends its first beat at once.
    ?assertMatch([_ | _], [E || {want, ?PEER} = E <- Effects]).

%% Members

a_verdict_of_the_detector_ends_the_member_test() ->
    S1 = member(with(#{detector => #{}, roster => #{}})),
    ?assertEqual([?ME, ?PEER], atoll_overlay_core:members(S1)),
    {S2, Effects} = handle({message, other@host, {1, 1, detector, {obituaries, false, [{?PEER, 4}]}}}, S1),
    ?assert(lists:member({notify, {member_down, ?PEER, dead}}, Effects)),
    ?assertEqual({S2, [{reply, from, [?ME]}]}, handle({call, from, members}, S2)).

a_node_that_stands_in_a_roster_as_dead_begins_a_new_life_test() ->
    {S, Effects} = roster({news, [{?ME, {7, dead}}]}, with(#{roster => #{}})),
    ?assert(lists:member({notify, {reborn, 8}}, Effects)),
    ?assertEqual(8, atoll_overlay_core:incarnation(S)),
    {_, [{send, ?PEER, {7, 8, roster, {pong, {8, alive}}}}]} = roster(ping, linked(S)).

without_a_roster_the_neighbours_are_the_members_test() ->
    ?assertEqual([?ME], atoll_overlay_core:members(new())).

%% Joining

who_has_a_neighbour_has_joined_test() ->
    Joined = with(#{strategy => {atoll_strategy_probe, #{neighbours => [?PEER]}}}),
    {_, Effects} = handle({call, from, {join, [?PEER], 5000}}, Joined),
    ?assertEqual([{reply, from, ok}], [E || E <- Effects, element(1, E) =/= notify]).

who_joins_waits_for_a_first_neighbour_test() ->
    {S1, E1} = handle({call, one, {join, [?PEER], 5000}}, new()),
    {S2, E2} = handle({call, two, {join, [?PEER], 6000}}, S1),
    ?assertEqual([{timer, {join, 1}, 5000}, {timer, {join, 2}, 6000}], [T || {timer, _, _} = T <- E1 ++ E2]),
    ?assertEqual([{cast, {join, [?PEER]}}], [Event || {notify, {heard, Event}} <- E1]),
    {S3, E3} = tell([{notify, {neighbour_up, ?PEER}}], S2),
    ?assertEqual(
        [{cancel, {join, 1}}, {reply, one, ok}, {cancel, {join, 2}}, {reply, two, ok}],
        [E || E <- E3, element(1, E) =/= notify]
    ),
    ?assertMatch(#{waiting := 0}, atoll_overlay_core:summary(S3)).

who_waits_too_long_hears_so_test() ->
    {S1, _} = handle({call, from, {join, [?PEER], 5000}}, new()),
    {S2, Effects} = handle({timeout, {join, 1}}, S1),
    ?assertEqual([{reply, from, {error, timeout}}], Effects),
    ?assertEqual([], [E || {reply, _, _} = E <- element(2, tell([{notify, {neighbour_up, ?PEER}}], S2))]).

those_who_wait_are_bounded_and_counted_test() ->
    S = lists:foldl(
        fun(N, S0) -> element(1, handle({call, N, {join, [?PEER], 5000}}, S0)) end, new(), lists:seq(1, 64)
    ),
    {Full, Effects} = handle({call, late, {join, [?PEER], 5000}}, S),
    ?assertEqual([{reply, late, {error, overloaded}}], [E || {reply, _, _} = E <- Effects]),
    ?assertMatch(#{waiting := 64, calls_refused := 1}, atoll_overlay_core:summary(Full)).

a_broadcast_that_was_called_is_answered_test() ->
    {_, Effects} = handle({call, from, {broadcast, hello}}, with(#{broadcast => #{}})),
    ?assert(lists:member({reply, from, ok}, Effects)).

what_reaches_nobody_is_no_broadcast_test() ->
    {_, Off} = handle({call, from, {broadcast, hello}}, new()),
    ?assertEqual([{reply, from, {error, broadcast_off}}], Off),
    {Left, _} = handle({call, from, leave}, with(#{broadcast => #{}})),
    {_, Gone} = handle({call, from, {broadcast, hello}}, Left),
    ?assertEqual([{reply, from, {error, left}}], Gone).

who_waits_for_acknowledgements_when_the_node_leaves_is_told_so_test() ->
    {S0, _} = roster({news, [{?PEER, {3, alive}}]}, with(#{roster => #{}, broadcast => #{}})),
    {S1, Sent} = handle({call, from, {broadcast, hello, all, 5000}}, S0),
    ?assertEqual([], [Reply || {reply, _, _} = Reply <- Sent]),
    {S2, Effects} = handle({call, leaver, leave}, S1),
    ?assertEqual([{from, {error, left}}, {leaver, ok}], lists:sort([{To, Answer} || {reply, To, Answer} <- Effects])),
    ?assertMatch(#{broadcast := #{acks := #{waiting := 0}}}, atoll_overlay_core:summary(S2)).

%% Leaving

who_had_left_stays_outside_until_it_is_told_to_join_test() ->
    S0 = with(#{left => true, contacts => [?PEER], discovery => #{}, roster => #{}}),
    ?assertMatch(#{leaving := left}, atoll_overlay_core:summary(S0)),
    ?assertNot(lists:member(node(), atoll_overlay_core:members(S0))),
    {S1, Effects} = handle({call, from, {join, [?PEER], 5000}}, S0),
    ?assertMatch([_], [L || {notify, {reborn, L}} <- Effects]),
    ?assertMatch(#{leaving := no}, atoll_overlay_core:summary(S1)).

the_neighbours_hear_before_the_strategy_leaves_test() ->
    S0 = with_neighbour(with(#{roster => #{}})),
    {S1, E1} = handle({call, one, leave}, S0),
    ?assertEqual([{send, ?PEER, {7, 7, roster, {farewell, 7}}}], [E || {send, _, _} = E <- E1]),
    {S2, E2} = handle({call, two, leave}, S1),
    ?assertEqual([], [E || {notify, {heard, _}} = E <- E1 ++ E2]),
    {S3, E3} = roster({heard, 7}, S2),
    ?assertEqual(
        [{notify, {heard, {cast, leave}}}, {notify, left}, {reply, one, ok}, {reply, two, ok}], [E || E <- E3, element(1, E) =/= cancel]
    ),
    {_, [{reply, three, ok}]} = handle({call, three, leave}, S3).

without_a_roster_it_leaves_at_once_test() ->
    ?assertEqual(
        [{notify, {heard, {cast, leave}}}, {notify, left}, {reply, from, ok}], element(2, handle({call, from, leave}, new()))
    ),
    ?assertEqual([{notify, {heard, {cast, leave}}}], element(2, handle({cast, leave}, new()))).

who_joins_after_a_leave_begins_a_new_life_test() ->
    {S1, _} = handle({call, from, leave}, with(#{roster => #{}})),
    ?assertEqual([], atoll_overlay_core:members(S1)),
    {S2, Effects} = handle({cast, {join, [?PEER]}}, S1),
    ?assert(lists:member({notify, {reborn, 8}}, Effects)),
    ?assertEqual({8, [?ME]}, {atoll_overlay_core:incarnation(S2), atoll_overlay_core:members(S2)}).

a_strategy_that_comes_back_by_itself_begins_a_new_life_too_test() ->
    {S1, _} = handle({call, from, leave}, with(#{roster => #{}})),
    {S2, Effects} = tell([{notify, {neighbour_up, ?PEER}}], S1),
    ?assertEqual([{reborn, 8}, {neighbour_up, ?PEER}], [Notice || {notify, Notice} <- Effects]),
    ?assertEqual([?ME], atoll_overlay_core:members(S2)).

who_joins_while_it_says_farewell_stays_test() ->
    {S1, _} = handle({call, from, leave}, with_neighbour(with(#{roster => #{}}))),
    {S2, Effects} = handle({cast, {join, [?PEER]}}, S1),
    ?assert(lists:member({reply, from, ok}, Effects)),
    ?assertEqual([?ME], atoll_overlay_core:members(S2)),
    {_, Late} = roster({heard, 7}, S2),
    ?assertEqual([], [E || {notify, {heard, _}} = E <- Late]).

joins(Effects) -> [Nodes || {notify, {heard, {cast, {join, Nodes}}}} <- Effects].

%% The contact is not to be had; a link that is there for another reason will do.
who_is_alone_joins_by_whom_it_has_a_link_with_test() ->
    Lone = with(#{discovery => #{}}),
    {_, None} = handle({timeout, {discovery, join}}, Lone),
    ?assertEqual([], joins(None)),
    {_, Effects} = handle({timeout, {discovery, join}}, linked(Lone)),
    ?assertEqual([[?PEER]], joins(Effects)).

who_is_alone_joins_by_those_in_the_roster_test() ->
    {Known, _} = roster({news, [{other@host, {1, alive}}]}, linked(with(#{discovery => #{}, roster => #{}}))),
    {Alone, _} = handle({down, ?PEER, lost}, Known),
    {_, Effects} = handle({timeout, {discovery, join}}, Alone),
    ?assertMatch([[_ | _]], joins(Effects)),
    ?assert(lists:member(other@host, hd(joins(Effects)))).

who_has_left_joins_by_nobody_that_it_knows_test() ->
    {Left, _} = handle({call, {self(), left}, leave}, linked(with(#{discovery => #{}}))),
    {_, Effects} = handle({timeout, {discovery, join}}, Left),
    ?assertEqual([], joins(Effects)).

%% It is the first node of a list each time that is tried, if that is never another.
of_many_links_others_are_tried_each_time_test() ->
    Many = [list_to_atom(lists:concat(["n", N, "@host"])) || N <- lists:seq(1, 30)],
    Linked = lists:foldl(fun(N, S) -> element(1, handle({up, N}, S)) end, with(#{discovery => #{}}), Many),
    {Tried, _} = lists:mapfoldl(
        fun(_, S0) ->
            {S, Effects} = handle({timeout, {discovery, join}}, S0),
            {lists:append(joins(Effects)), S}
        end,
        Linked,
        lists:seq(1, 40)
    ),
    ?assert(length(lists:usort(lists:append(Tried))) > 20).

%% What it wants of other nodes too: it is alone because it is to be.
who_has_left_asks_none_of_its_contacts_test() ->
    {Left, Begun} = atoll_overlay_core:init(#{
        self => ?ME, incarnation => 7, seed => 1, strategy => {atoll_hyparview, hyparview_options()}, left => true,
        contacts => [other@host]
    }, 0),
    {_, Later} = handle({timeout, {discovery, join}}, Left),
    ?assertEqual([], [E || E <- Begun ++ Later, element(1, E) =:= want orelse element(1, E) =:= send]).

hyparview_options() ->
    {ok, Options} = atoll_options:complete(atoll_hyparview, #{}),
    Options.

%% To `static' that would be a link that stays.
a_static_node_joins_by_nobody_that_it_was_not_told_of_test() ->
    {ok, Options} = atoll_options:complete(atoll_static, #{}),
    {Static, _} = atoll_overlay_core:init(
        #{self => ?ME, incarnation => 7, seed => 1, strategy => {atoll_static, Options}}, 0
    ),
    {_, Effects} = handle({timeout, {discovery, join}}, linked(Static)),
    ?assertEqual([], [E || {want, _} = E <- Effects]).

%% A link with it that has carried nothing of the overlay yet tells nothing of its life.
the_end_of_an_earlier_life_takes_no_link_from_the_next_test() ->
    {Known, _} = roster({news, [{other@host, {9, alive}}]}, linked(with(#{detector => #{}, roster => #{}}))),
    {Linked, _} = handle({up, other@host}, Known),
    {_, Effects} = handle({message, ?PEER, {3, 3, detector, {obituaries, false, [{other@host, 4}]}}}, Linked),
    ?assertEqual([], [E || {act, {disconnect, _}} = E <- Effects]),
    {_, Later} = handle({message, ?PEER, {3, 3, detector, {obituaries, false, [{other@host, 9}]}}}, Linked),
    ?assertEqual([{act, {disconnect, other@host}}], [E || {act, {disconnect, _}} = E <- Later]).

a_node_that_was_held_to_be_dead_and_is_found_is_joined_by_test() ->
    {Known, _} = roster({news, [{?PEER, {3, dead}}]}, linked(with(#{roster => #{}}))),
    {_, Effects} = roster({pong, {3, alive}}, Known),
    ?assertEqual([[?PEER]], joins(Effects)),
    {_, HasLeft} = roster({pong, {3, left}}, Known),
    ?assertEqual([], joins(HasLeft)),
    %% Nor by who has left itself.
    {Left, _} = handle({call, {self(), left}, leave}, Known),
    ?assertEqual([], joins(element(2, roster({pong, {3, alive}}, Left)))).

who_has_left_is_not_brought_back_by_discovery_test() ->
    {S0, _} = handle({cast, {contacts, [?PEER]}}, with(#{roster => #{}, discovery => #{}})),
    {Joining, E1} = handle({timeout, {discovery, join}}, S0),
    ?assertMatch([_], [E || {notify, {heard, {cast, {join, _}}}} = E <- E1]),
    {Left, _} = handle({call, from, leave}, Joining),
    {_, E2} = handle({timeout, {discovery, join}}, Left),
    ?assertEqual([], [E || {notify, {heard, {cast, {join, _}}}} = E <- E2]).

%% The overlay under test

%% Another detector than ours

a_detector_hears_its_like_alone_test() ->
    Beat = {beat, 1, none},
    Plain = with_neighbour(with(#{detector => atoll_detector_plain})),
    {_, Effects} = handle({timeout, {detector, beat}}, Plain),
    ?assertMatch([{send, ?PEER, {7, 7, {detector, atoll_detector_plain}, {beat, 7, none}}} | _], Effects),
    {Other, []} = handle({message, ?PEER, {4, 4, detector, {beat, 4, [], none}}}, Plain),
    {Heard, _} = handle({message, ?PEER, {4, 4, {detector, atoll_detector_plain}, Beat}}, Other),
    ?assertMatch(#{foreign := 1}, atoll_overlay_core:summary(Heard)),
    Ours = with_neighbour(with_detector()),
    {Odd, []} = handle({message, ?PEER, {4, 4, {detector, atoll_detector_plain}, Beat}}, Ours),
    ?assertMatch(#{foreign := 1}, atoll_overlay_core:summary(Odd)),
    %% Who has none counts nothing.
    {None, []} = handle({message, ?PEER, {4, 4, detector, {beat, 4, [], none}}}, with_neighbour(new())),
    ?assertMatch(#{foreign := 0}, atoll_overlay_core:summary(None)).

a_death_that_a_detector_has_found_is_told_by_the_roster_test() ->
    S0 = member(with_neighbour(with(#{detector => {atoll_detector_plain, #{dead_ms => 50}}, roster => #{}}))),
    {S1, _} = handle({message, ?PEER, {3, 3, {detector, atoll_detector_plain}, {beat, 4, none}}}, S0),
    {S2, _} = handle({up, other@host}, S1),
    {S3, _} = tell([{notify, {neighbour_up, other@host}}], S2),
    {S, Effects} = atoll_overlay_core:handle({timeout, {detector, beat}}, 500, S3),
    [
        ?assert(lists:member({notify, Notice}, Effects), Notice)
     || Notice <- [{dead, ?PEER, 4}, {member_down, ?PEER, dead}, {heard, {cast, {dead, ?PEER}}}]
    ],
    {_, News} = handle({timeout, {roster, gather}}, S),
    ?assert(lists:member({send, other@host, {7, 7, roster, {news, [{?PEER, {4, dead}}]}}}, News)).

%% Metadata

metadata_is_told_by_the_roster_test() ->
    S0 = with_neighbour(with(#{roster => #{}, meta => #{a => 1}})),
    ?assertEqual(#{a => 1}, atoll_overlay_core:meta(?ME, S0)),
    {S1, Effects} = handle({call, {self(), meta}, {set_meta, #{a => 2}}}, S0),
    ?assertEqual([{notify, {member_meta, ?ME, #{a => 2}}}, {reply, {self(), meta}, ok}], [E || E <- Effects, element(1, E) =/= timer]),
    {_, Told} = handle({timeout, {roster, gather}}, S1),
    ?assert(lists:member({send, ?PEER, {7, 7, roster, {meta, {news, [{?ME, {{7, 2}, #{a => 2}}}]}}}}, Told)),
    {_, None} = handle({call, {self(), meta}, {set_meta, #{}}}, new()),
    ?assertEqual([{reply, {self(), meta}, {error, roster_off}}], None).

new() -> with(#{}).

with_detector() -> with(#{detector => #{}}).

with(Parts) ->
    {State, _} = atoll_overlay_core:init(
        maps:merge(
            #{
                self => ?ME, incarnation => 7, seed => 1, strategy => {atoll_strategy_probe, #{}},
                detector => off, broadcast => off, discovery => off, roster => off
            },
            Parts
        ),
        0
    ),
    State.

with_neighbour(State) ->
    {Neighbour, _} = tell([{notify, {neighbour_up, ?PEER}}], linked(State)),
    Neighbour.

%% Who knows ?PEER in its life 4.
member(State) ->
    {Knowing, _} = roster({news, [{?PEER, {4, alive}}]}, State),
    Knowing.

roster(Message, State) -> handle({message, ?PEER, {3, 3, roster, Message}}, State).

linked() -> linked(new()).

linked(State0) ->
    {State, _} = handle({up, ?PEER}, State0),
    State.

handle(Event, State) -> atoll_overlay_core:handle(Event, 100, State).

tell(Effects, State) -> handle({cast, {tell, {effects, Effects}}}, State).

%% Of a life that a start began.
message(Life, Message, State) -> message(Life, Life, Message, State).

message(Start, Life, Message, State) -> handle({message, ?PEER, {Start, Life, strategy, Message}}, State).
