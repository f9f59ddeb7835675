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
    %% The real end of the earlier link comes late, and is that of no link now.
    {S3, []} = handle({down, ?PEER, connection_closed}, S2),
    {_, [{notify, {heard, {message, ?PEER, third}}}]} = message(5, third, S3).

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

%% The overlay under test

new() -> new(off).

with_detector() -> new(#{}).

new(Detector) ->
    {State, _} = atoll_overlay_core:init(
        #{
            self => ?ME, incarnation => 7, seed => 1, strategy => {atoll_strategy_probe, #{}},
            detector => Detector, broadcast => off, discovery => off, roster => off
        },
        0
    ),
    State.

linked() ->
    {State, _} = handle({up, ?PEER}, new()),
    State.

handle(Event, State) -> atoll_overlay_core:handle(Event, 100, State).

tell(Effects, State) -> handle({cast, {tell, {effects, Effects}}}, State).

%% Of a life that a start began.
message(Life, Message, State) -> message(Life, Life, Message, State).

message(Start, Life, Message, State) -> handle({message, ?PEER, {Start, Life, strategy, Message}}, State).
