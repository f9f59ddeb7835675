%% SPDX-License-Identifier: Apache-2.0
%% Failure detection: what beats, silence, broken links and obituaries lead to.
-module(atoll_detector_watchers_tests).
-export([prop_notices/0]).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

new() -> new(#{}).

new(Given) ->
    {ok, Options} = atoll_options:complete(atoll_detector_watchers, Given),
    {State, [{timer, tick, First}]} = atoll_detector_watchers:init(
        #{self => me, incarnation => 10, seed => 1, options => Options}, 0
    ),
    ?assert(First >= 1 andalso First =< 1000),
    State.

%% Runs events, each at its time; gives all effects.
run(Events, State) ->
    lists:foldl(
        fun({Now, Event}, {S0, Acc}) ->
            {S, Effects} = atoll_detector_watchers:handle(Event, Now, S0),
            {S, Acc ++ Effects}
        end,
        {State, []},
        Events
    ).

%% What is said of nodes; to be told to listen is not.
notices(Effects) -> [without_ms(Notice) || {notify, Notice} <- Effects, element(1, Notice) =/= listen].

without_ms({suspect, Node, Ms}) when Ms >= 0 -> {suspect, Node};
without_ms(Notice) -> Notice.
%% But for what a newcomer asks each neighbour.
sent(Node, Effects) -> [Message || {send, To, Message} <- Effects, To =:= Node, Message =/= {obituaries, true, []}].

beat(Node) -> beat(Node, 1).
beat(Node, Life) -> beat(Node, Life, [me]).
beat(Node, Life, Watchers) -> {message, Node, {beat, Life, Watchers, none}}.

%% These events and the node's own timers, on time, with the first tick at From;
%% gives the effects of each.
play(From, To, Events, State) ->
    play(From, To, lists:keysort(1, Events), State, [{From, tick}], []).

play(_From, To, Events, State, Timers, Acc) ->
    Next = lists:sort([{At, {timeout, Key}} || {At, Key} <- Timers]),
    case lists:sublist(lists:keymerge(1, Events, Next), 1) of
        [{Now, Event}] when Now =< To ->
            {NewState, Effects} = atoll_detector_watchers:handle(Event, Now, State),
            LeftTimers =
                case Event of
                    {timeout, Key} -> lists:keydelete(Key, 2, Timers);
                    _ -> Timers
                end,
            LeftEvents = lists:delete({Now, Event}, Events),
            play(Now, To, LeftEvents, NewState, lists:foldl(fun(E, T) -> timer(E, Now, T) end, LeftTimers, Effects),
                [{Now, Effects} | Acc]);
        _ ->
            {State, lists:reverse(Acc)}
    end.

timer({timer, Key, Ms}, Now, Timers) -> lists:keystore(Key, 2, Timers, {Now + Ms, Key});
timer({cancel, Key}, _Now, Timers) -> lists:keydelete(Key, 2, Timers);
timer(_, _Now, Timers) -> Timers.

%% With these neighbours, whose first beats have come.
watching(Neighbours) ->
    watching(900, Neighbours).

watching(At, Neighbours) ->
    {State, _} = run(lists:append([[{At, {up, N}}, {At, beat(N, 1, [me, w1, w2])}] || N <- Neighbours]), new()),
    State.

beats(Node, From, To) ->
    [{At, beat(Node, 1, [me, w1, w2])} || At <- lists:seq(From, To, 1000)].

when_notified(Notice, Trace) ->
    [At || {At, Effects} <- Trace, N <- notices(Effects), N =:= Notice].

all_notices(Trace) -> lists:append([notices(E) || {_, E} <- Trace]).

a_new_neighbour_gets_a_beat_at_once_test() ->
    {_, Effects} = run([{5, {up, a}}], new()),
    ?assertEqual([{beat, 10, [a], none}], sent(a, Effects)).

each_watcher_gets_a_beat_each_period_test() ->
    {_, Trace} = play(1000, 5500, beats(other, 1000, 5000) ++ beats(x, 1000, 5000), watching([other, x])),
    ?assertEqual(5, length(lists:append([sent(x, E) || {_, E} <- Trace]))).

only_so_many_are_chosen_and_the_others_are_told_test() ->
    {State, Effects} = run([{5, {up, N}} || N <- [a, b, c, d, e, f, g]], new()),
    ?assertMatch(#{watchers := 5, neighbours := 7}, atoll_detector_watchers:summary(State)),
    Now = [N || N <- [a, b, c, d, e, f, g], is_tuple(lists:last(sent(N, Effects)))],
    Not = [N || N <- [a, b, c, d, e, f, g], lists:last(sent(N, Effects)) =:= unwatch],
    ?assertEqual({5, 2}, {length(Now), length(Not)}).

who_is_not_chosen_is_no_longer_watched_test() ->
    {State, _} = run([{900, {message, x, unwatch}}], watching([x])),
    ?assertMatch(#{watched := 0}, atoll_detector_watchers:summary(State)).

a_silent_node_is_suspected_then_dead_test() ->
    {_, Trace} = play(1000, 9000, beats(other, 1000, 9000), watching([other, x])),
    [Suspected] = when_notified({suspect, x}, Trace),
    [Dead] = when_notified({dead, x, 1}, Trace),
    ?assert(Suspected >= 900 + 2200 andalso Suspected =< 900 + 3200),
    ?assertEqual(900 + 4500, Dead),
    ?assertEqual([{suspect, x}, {dead, x, 1}], [N || N <- all_notices(Trace), N =/= {cargo, x, none}]).

the_other_watchers_of_a_suspect_are_asked_test() ->
    {_, Trace} = play(1000, 4500, beats(other, 1000, 4500), watching([other, x])),
    ?assertMatch([{who_heard, x, 1} | _], lists:append([sent(w1, E) || {_, E} <- Trace])),
    ?assert(lists:member(ping, lists:append([sent(x, E) || {_, E} <- Trace]))).

%% Those who watch it may be the only ones who do not hear it.
some_who_do_not_watch_a_suspect_are_asked_too_test() ->
    Others = [list_to_atom("o" ++ integer_to_list(N)) || N <- lists:seq(1, 9)],
    Beats = lists:append([beats(N, 1000, 4000) || N <- Others]),
    {_, Trace} = play(1000, 4000, Beats, watching([x | Others])),
    Asked = [To || {_, E} <- Trace, {send, To, {who_heard, x, 1}} <- E, lists:member(To, Others)],
    ?assertEqual(3, length(Asked)).

%% The asker has heard no beat of it yet: to say that it is dead would bury one that lives.
who_is_asked_about_a_life_that_is_not_known_buries_nobody_test() ->
    {_, Effects} = run([{1000, {message, a, {who_heard, x, 0}}}], watching([a, b])),
    ?assertEqual([], [E || {send, _, {obituaries, _, _}} = E <- Effects]).

%% A first ping may be that of a helper, and is answered.
others_vouch_for_who_is_pinged_again_at_once_test() ->
    Vouched = fun(Effects) -> lists:sort([To || {send, To, {vouch, a, 10}} <- Effects]) end,
    {S1, Once} = run([{1000, {message, a, ping}}], watching([a, b, c])),
    ?assertEqual([], Vouched(Once)),
    {S2, Again} = run([{1500, {message, a, ping}}], S1),
    ?assertEqual([b, c], Vouched(Again)),
    ?assert(lists:member({notify, {tell_some, 5, {vouch, a, 10}}}, Again)),
    {_, Later} = run([{2500, {message, a, ping}}], S2),
    ?assertEqual([], Vouched(Later)),
    %% Whoever does not hear it need not be a neighbour any more.
    {_, Stranger} = run([{1000, {message, z, ping}}, {1500, {message, z, ping}}], watching([a, b, c])),
    ?assertEqual([a, b, c], lists:sort([To || {send, To, {vouch, z, 10}} <- Stranger])).

who_vouches_tells_the_one_that_does_not_hear_test() ->
    {_, Effects} = run([{1000, {message, a, {vouch, z, 3}}}], watching([a, b])),
    ?assertEqual([{z, {heard, a, 3, 0}}], [{To, M} || {send, To, M} <- Effects]),
    {_, Itself} = run([{1000, {message, a, {vouch, me, 3}}}], watching([a, b])),
    ?assertEqual([], Itself),
    {_, Buried} = run([{900, {message, b, {obituaries, false, [{a, 3}]}}}, {1000, {message, a, {vouch, z, 3}}}], watching([a, b])),
    ?assertEqual([{buried, 3}], [M || {send, a, M} <- Buried]),
    ?assertEqual([], [M || {send, z, M} <- Buried]).

who_is_asked_about_one_it_does_not_watch_pings_it_for_all_who_ask_test() ->
    {State, Asked} = run([{1000, {message, a, {who_heard, x, 3}}}, {1100, {message, b, {who_heard, x, 3}}}], watching([a, b])),
    ?assertEqual([ping], sent(x, Asked)),
    {_, Told} = run([{1200, {message, x, {pong, 3, stranger}}}], State),
    ?assertEqual({[{heard, x, 3, 200}], [{heard, x, 3, 200}]}, {sent(a, Told), sent(b, Told)}),
    %% It is not said of a life that is known to be over.
    Buried = {message, a, {obituaries, false, [{x, 3}]}},
    {_, Late} = run([{1150, Buried}, {1200, {message, x, {pong, 3, stranger}}}], State),
    ?assertEqual([], [M || {send, _, {heard, _, _, _} = M} <- Late]).

%% The connection for the first ping may take that long.
who_asked_long_before_the_answer_hears_it_too_test() ->
    Asked = [{1000, {message, a, {who_heard, x, 3}}}, {2100, {message, b, {who_heard, x, 3}}}],
    {State, Effects} = run(Asked, watching([a, b])),
    ?assertEqual([ping, ping], sent(x, Effects)),
    {_, Told} = run([{2200, {message, x, {pong, 3, stranger}}}], State),
    %% It lived after the first ping; more is not known.
    ?assertEqual({[{heard, x, 3, 1200}], [{heard, x, 3, 1200}]}, {sent(a, Told), sent(b, Told)}).

pings_for_others_are_bounded_counted_and_forgotten_test() ->
    Ask = fun(N) -> {1000, {message, a, {who_heard, list_to_atom("x" ++ integer_to_list(N)), 1}}} end,
    {Full, _} = run([Ask(N) || N <- lists:seq(1, 40)], watching([a])),
    ?assertMatch(#{dropped := #{pings_refused := 8}}, atoll_detector_watchers:summary(Full)),
    {Later, _} = play(1100, 9000, beats(a, 1100, 9000), Full),
    {_, Effects} = run([{9000, {message, a, {who_heard, y, 1}}}], Later),
    ?assertEqual([ping], sent(y, Effects)).

who_was_heard_by_another_is_not_dead_test() ->
    Heard = [{At, {message, w1, {heard, x, 1, 300}}} || At <- lists:seq(3200, 9000, 500)],
    {_, Trace} = play(1000, 9000, Heard ++ beats(other, 1000, 9000), watching([other, x])),
    ?assertEqual([], when_notified({dead, x, 1}, Trace)).

an_own_bad_link_is_silent_and_nobody_dead_test() ->
    Heard = [{At, {message, w1, {heard, x, 1, 300}}} || At <- lists:seq(3200, 15000, 500)],
    {State, Trace} = play(1000, 15000, Heard ++ beats(other, 1000, 15000), watching([other, x])),
    [At] = when_notified({silent, x}, Trace),
    ?assert(At >= 900 + 9000 andalso At =< 900 + 9500),
    ?assertMatch(#{suspects := 0, watched := 1}, atoll_detector_watchers:summary(State)).

%% Its beats are dropped where the connection is full of other things.
bytes_that_arrive_from_a_suspect_clear_it_test() ->
    Listens = fun(Trace) -> [At || {At, E} <- Trace, {notify, {listen, x, 1500}} <- E] end,
    {_, Silent} = play(1000, 6000, beats(y, 1000, 6000), watching([x, y])),
    ?assertMatch([_, _ | _], Listens(Silent)),
    ?assertMatch([_], when_notified({dead, x, 1}, Silent)),
    Bytes = [{At, {cast, {bytes, x}}} || At <- lists:seq(4600, 20000, 3000)],
    {_, Busy} = play(1000, 20000, Bytes ++ beats(y, 1000, 20000), watching([x, y])),
    ?assertEqual([], when_notified({dead, x, 1}, Busy) ++ when_notified({silent, x}, Busy)),
    ?assertMatch([_ | _], when_notified({cleared, x}, Busy)).

%% Where all connections are busy nothing else says that the own network works.
others_are_listened_to_beside_a_suspect_test() ->
    {_, Trace} = play(1000, 6000, beats(y, 1000, 6000), watching([x, y])),
    ?assertMatch([_ | _], [At || {At, E} <- Trace, {notify, {listen, y, _}} <- E]).

%% There is nothing to listen to.
who_is_no_neighbour_any_more_is_not_listened_to_test() ->
    {_, Trace} = play(1000, 6000, [{1000, {down, x, lost}} | beats(y, 1000, 6000)], watching([x, y])),
    ?assertEqual([], [At || {At, E} <- Trace, {notify, {listen, x, _}} <- E]).

a_pong_clears_test() ->
    {_, Trace} = play(1000, 6000, [{4300, {message, x, {pong, 1, watcher}}} | beats(other, 1000, 6000)], watching([other, x])),
    ?assertEqual([4300], when_notified({cleared, x}, Trace)),
    ?assertEqual([], when_notified({dead, x, 1}, Trace)).

%% Once: with each step it would grow younger.
what_somebody_has_heard_is_told_on_once_test() ->
    Answer = fun(Word) -> sent(w2, element(2, run([{2000, {message, w1, Word}}, {2500, {message, w2, {who_heard, x, 1}}}], watching([x])))) end,
    ?assertEqual([{heard_of, x, 1, 500}], Answer({heard, x, 1, 0})),
    ?assertEqual([{heard, x, 1, 1600}], Answer({heard_of, x, 1, 0})),
    %% What was heard here is newer.
    ?assertEqual([{heard, x, 1, 1600}], Answer({heard, x, 1, 1200})),
    %% Either is a reason not to bury it.
    Words = fun(Word) -> [{At, {message, w1, {Word, x, 1, 300}}} || At <- lists:seq(3200, 9000, 500)] end,
    [begin
         {_, Trace} = play(1000, 8000, Words(Word) ++ beats(other, 1000, 9000), watching([other, x])),
         ?assertEqual({Word, []}, {Word, when_notified({dead, x, 1}, Trace)})
     end || Word <- [heard, heard_of]].

what_waited_for_a_paused_node_is_told_to_nobody_as_fresh_test() ->
    %% The tick of 1000 comes at 3000: first a beat that had waited, then the tick.
    {State, _} = run([{3000, beat(x, 1, [me])}, {3000, {timeout, tick}}, {3001, beat(x, 1, [me])}], due_at(1000, [x])),
    {_, Effects} = run([{3100, {message, w2, {who_heard, x, 1}}}], State),
    [{heard, x, 1, Age}] = sent(w2, Effects),
    ?assert(Age >= 2000),
    %% Words of others as well.
    {Said, _} = run([{3000, {timeout, tick}}, {3001, {message, w1, {heard, x, 1, 0}}}], due_at(1000, [x])),
    ?assertMatch([{heard, x, 1, Old}] when Old >= 2000, sent(w2, element(2, run([{3100, {message, w2, {who_heard, x, 1}}}], Said)))).

%% The next tick is due at that time.
due_at(Due, Neighbours) ->
    {State, Effects} = run([{Due - 1000, {timeout, tick}}], watching(Due - 1000, Neighbours)),
    ?assert(lists:member({timer, tick, 1000}, Effects)),
    State.

a_paused_node_does_not_blame_others_test() ->
    State = due_at(1000, [x, y]),
    %% It wakes up six seconds late; nobody has been heard.
    {_, Effects} = run([{7000, {timeout, tick}}], State),
    ?assertEqual([], notices(Effects)),
    %% A timer that comes on time excuses nothing.
    {_, Blames} = run([{1000, {timeout, tick}}, {2000, {timeout, tick}}, {3000, {timeout, tick}}], State),
    ?assertEqual([{suspect, x}, {suspect, y}], notices(Blames)).

two_late_timers_of_one_pause_excuse_once_test() ->
    {Late, _} = run([{7000, {timeout, tick}}, {7000, {timeout, tick}}], due_at(1000, [x, y])),
    ?assertMatch(#{excuses := 1}, atoll_detector_watchers:summary(Late)).

who_hears_nobody_buries_nobody_test() ->
    {_, Trace} = play(1000, 20000, [], watching([other, x])),
    ?assertEqual([{silent, other}, {silent, x}], lists:sort([N || {silent, _} = N <- all_notices(Trace)])),
    ?assertEqual([], [N || {dead, _, _} = N <- all_notices(Trace)]).

who_was_cut_off_does_not_bury_those_it_hears_later_test() ->
    Back = 6000,
    {_, Trace} = play(1000, 9000, beats(other, Back, 9000) ++ beats(x, Back + 600, 9000), watching([other, x])),
    ?assertEqual([], [N || {dead, _, _} = N <- all_notices(Trace)]).

of_two_nodes_one_declares_the_other_dead_test() ->
    {State, _} = run([{900, {up, x}}, {900, beat(x, 1, [me])}], new()),
    {_, Trace} = play(1000, 9000, [], State),
    ?assertEqual([5400], when_notified({dead, x, 1}, Trace)).

a_broken_link_is_suspicion_at_once_test() ->
    {_, Effects} = run([{1000, {down, x, lost}}], watching([other, x])),
    ?assertEqual([{suspect, x}], notices(Effects)),
    ?assertEqual([ping], sent(x, Effects)).

who_refuses_the_connection_is_dead_sooner_test() ->
    Refused = [{At, {cast, {unreachable, x}}} || At <- lists:seq(1100, 6000, 400)],
    {_, Trace} = play(1000, 9000, [{1001, {down, x, lost}}] ++ Refused ++ beats(other, 1000, 9000), watching([other, x])),
    [Dead] = when_notified({dead, x, 1}, Trace),
    ?assert(Dead >= 900 + 2200 andalso Dead =< 900 + 3600).

one_refusal_is_not_death_test() ->
    Events = [{1001, {down, x, lost}}, {1100, {cast, {unreachable, x}}}] ++ beats(other, 1000, 9000),
    {_, Trace} = play(1000, 9000, Events, watching([other, x])),
    ?assertEqual([900 + 4500], when_notified({dead, x, 1}, Trace)).

a_lost_neighbour_that_answers_is_left_to_its_watchers_test() ->
    Events = [{1001, {down, x, lost}}, {1300, {message, x, {pong, 1, stranger}}}] ++ beats(other, 1000, 9000),
    {State, Trace} = play(1000, 9000, Events, watching([other, x])),
    ?assertEqual([{suspect, x}, {cleared, x}], all_notices(Trace)),
    ?assertMatch(#{watched := 1}, atoll_detector_watchers:summary(State)).

a_lost_neighbour_that_others_hear_later_is_alive_test() ->
    Events = [{1001, {down, x, lost}}, {2000, {message, w1, {heard, x, 1, 100}}}] ++ beats(other, 1000, 9000),
    {_, Trace} = play(1000, 9000, Events, watching([other, x])),
    ?assertEqual([2000], when_notified({cleared, x}, Trace)).

what_others_heard_before_the_link_broke_proves_nothing_test() ->
    Events = [{1001, {down, x, lost}}, {1500, {message, w1, {heard, x, 1, 400}}}] ++ beats(other, 1000, 9000),
    {_, Trace} = play(1000, 9000, Events, watching([other, x])),
    ?assertEqual([], when_notified({cleared, x}, Trace)).

a_dropped_neighbour_is_not_watched_test() ->
    {State, Effects} = run([{1000, {down, x, dropped}}], watching([x])),
    ?assertEqual([], notices(Effects)),
    ?assertEqual([unwatch], sent(x, Effects)),
    ?assertMatch(#{watched := 0, neighbours := 0}, atoll_detector_watchers:summary(State)).

an_obituary_goes_to_all_neighbours_and_is_told_once_test() ->
    News = {message, a, {obituaries, false, [{x, 3}]}},
    {_, Effects} = run([{1000, News}, {1001, News}], watching([a, b])),
    ?assertEqual([{dead, x, 3}], notices(Effects)),
    ?assertEqual([{obituaries, false, [{x, 3}]}], sent(a, Effects)),
    ?assertEqual([{obituaries, false, [{x, 3}]}], sent(b, Effects)).

an_obituary_is_repeated_to_who_did_not_show_that_it_knows_test() ->
    Before = [{1000, {message, a, {obituaries, false, [{x, 3}]}}}],
    {_, Trace} = play(1100, 9000, beats(a, 1100, 9000) ++ beats(b, 1100, 9000), element(1, run(Before, watching([a, b])))),
    Again = {obituaries, true, [{x, 3}]},
    Sent = [M || {_, E} <- Trace, M <- sent(b, E), M =:= Again],
    ?assertEqual(5, length(Sent)),
    ?assertEqual([], [M || {_, E} <- Trace, M <- sent(a, E), M =:= Again]),
    Shown = [{1050, {message, b, {obituaries, false, [{x, 3}]}}}],
    {_, Quiet} = play(1100, 9000, beats(a, 1100, 9000) ++ beats(b, 1100, 9000),
        element(1, run(Before ++ Shown, watching([a, b])))),
    ?assertEqual([], [M || {_, E} <- Quiet, M <- sent(b, E), M =:= Again]).

%% What it answers at At to Node, who has just begun; the obituary of x came at Heard.
recalled(Heard, Node, At) ->
    Shown = [{Heard, {message, N, {obituaries, false, [{x, 3}]}}} || N <- [a, a, b]],
    {State, _} = run(Shown, watching([a, b])),
    {_, Effects} = run([{At, {message, Node, {obituaries, true, []}}}], State),
    [Told || {obituaries, false, Told} <- sent(Node, Effects)].

a_newcomer_asks_for_what_was_told_lately_and_gets_it_test() ->
    {_, Begun} = run([{1000, {up, a}}], new()),
    ?assertEqual([a], [To || {send, To, {obituaries, true, []}} <- Begun]),
    ?assertEqual([[{x, 3}]], recalled(31000, c, 40000)),
    ?assertEqual([[{x, 3}]], recalled(31000, c, 60999)),
    ?assertEqual([], recalled(31000, c, 61000)).

%% On the other side of a partition those may live that are dead on this one.
who_is_no_newcomer_does_not_ask_test() ->
    {_, Effects} = run([{30000, {up, a}}], new()),
    ?assertEqual([], [M || {send, _, {obituaries, _, _} = M} <- Effects]).

a_node_is_not_told_of_its_own_earlier_life_test() ->
    ?assertEqual([], recalled(31000, x, 40000)).

a_newcomer_does_not_hand_on_what_it_was_handed_test() ->
    Shown = [{29001, {message, N, {obituaries, false, [{x, 3}]}}} || N <- [a, b]],
    {State, _} = run([{29000, {message, a, {obituaries, false, [{x, 3}]}}} | Shown], watching([a, b])),
    {_, Effects} = run([{33000, {message, c, {obituaries, true, []}}}], State),
    ?assertEqual([], sent(c, Effects)).

who_is_asked_whether_it_knows_answers_test() ->
    {_, Effects} = run([{1000, {message, a, {obituaries, true, [{x, 3}]}}}], watching([b])),
    ?assertEqual([{obituaries, false, [{x, 3}]}], sent(a, Effects)).

many_obituaries_at_a_time_go_together_test() ->
    Events = [{1000, {message, a, {obituaries, false, [{N, 3}]}}} || N <- [p, q, r, s]],
    {_, Effects} = run(Events ++ [{1100, {timeout, gather}}], watching([a, b])),
    ?assertEqual([{obituaries, false, [{p, 3}]}, {obituaries, false, [{q, 3}, {r, 3}, {s, 3}]}], sent(b, Effects)).

a_buried_life_is_told_so_test() ->
    Events = [{1000, {message, a, {obituaries, false, [{x, 3}]}}}, {1100, beat(x, 3)}],
    {_, Effects} = run(Events, watching([a])),
    ?assertEqual([{buried, 3}], sent(x, Effects)).

a_new_life_is_watched_afresh_test() ->
    Events = [{1000, {message, a, {obituaries, false, [{x, 3}]}}}, {1050, {up, x}}, {1100, beat(x, 4)}],
    {State, Effects} = run(Events, watching([a])),
    ?assertEqual([{dead, x, 3}], notices(Effects)),
    ?assertMatch(#{watched := 2}, atoll_detector_watchers:summary(State)).

an_obituary_of_an_earlier_life_leaves_the_present_one_alone_test() ->
    {State, _} = run([{1000, beat(x, 5)}, {1001, {message, a, {obituaries, false, [{x, 3}]}}}], watching([a, x])),
    ?assertMatch(#{watched := 2}, atoll_detector_watchers:summary(State)).

who_hears_of_its_own_death_says_so_once_test() ->
    Events = [{1000, {message, a, {obituaries, false, [{me, 10}]}}}, {1001, {message, a, {buried, 10}}}],
    {State, Effects} = run(Events, watching([a])),
    ?assertEqual([{buried, 10}], notices(Effects)),
    {_, Earlier} = run([{1100, {cast, {incarnation, 11}}}, {1101, {message, a, {buried, 10}}}], State),
    ?assertEqual([], notices(Earlier)).

a_stranger_is_told_so_but_not_at_its_first_beat_test() ->
    {State, First} = run([{1000, beat(x)}, {1200, beat(x)}], new()),
    ?assertEqual([], First),
    {_, Later} = run([{2001, beat(x)}], State),
    ?assertEqual([stranger], sent(x, Later)).

a_beat_that_overtook_the_neighbourhood_counts_test() ->
    {State, _} = run([{1000, beat(x, 7)}, {1010, {up, x}}, {1020, {up, other}}, {1020, beat(other)}], new()),
    {_, Trace} = play(1900, 9000, beats(other, 2000, 9000), State),
    ?assertEqual(1, length(when_notified({dead, x, 7}, Trace))).

a_beat_that_overtook_the_neighbourhood_does_not_count_once_its_life_is_over_test() ->
    Obituary = {message, other, {obituaries, false, [{x, 7}]}},
    Events = [{1000, beat(x, 7)}, {1005, Obituary}, {1010, {up, x}}, {1020, {up, other}}, {1020, beat(other)}],
    {State, Effects} = run(Events, new()),
    ?assertEqual([{dead, x, 7}], notices(Effects)),
    {_, Trace} = play(1900, 9000, beats(other, 2000, 9000), State),
    ?assertEqual([], when_notified({dead, x, 7}, Trace)).

a_neighbour_for_whom_we_are_a_stranger_is_reported_test() ->
    {_, Effects} = run([{1000, {message, x, stranger}}, {1000, {message, y, stranger}}], watching([x])),
    ?assertEqual([{stranger, x}], notices(Effects)).

cargo_is_carried_and_told_when_it_changes_test() ->
    {State, Effects} = run([{1000, {cast, {cargo, t1}}}, {1000, {up, z}}], watching([x])),
    ?assertMatch([{beat, 10, _, t1}], sent(z, Effects)),
    Carry = fun(At, Cargo) -> {At, {message, x, {beat, 1, [me], Cargo}}} end,
    {_, Told} = run([Carry(1100, c1), Carry(2100, c1), Carry(3100, c2)], State),
    ?assertEqual([{cargo, x, c1}, {cargo, x, c2}], notices(Told)).

tables_are_bounded_and_what_is_dropped_is_counted_test() ->
    Small = #{max_obituaries => 3, max_strangers => 2, max_watched => 2},
    Names = [p, q, r, s, t],
    Events =
        [{1000, {message, a, {obituaries, false, [{N, 3}]}}} || N <- Names] ++
            [{1000, beat(N, 9)} || N <- Names] ++ [{1000, {up, N}} || N <- [b, c, d, e]],
    {State, _} = run(Events, new(Small)),
    ?assertMatch(
        #{
            obituaries := 3,
            strangers := 2,
            watched := 2,
            dropped := #{obituaries_refused := 2, strangers_ignored := 3, neighbours_unwatched := 2}
        },
        atoll_detector_watchers:summary(State)
    ),
    {Later, Effects} = run([{40000, {message, a, {obituaries, false, [{u, 3}]}}}], State),
    ?assertEqual([{dead, u, 3}], notices(Effects)),
    ?assertMatch(#{obituaries := 3, dropped := #{obituaries_forgotten := 1}}, atoll_detector_watchers:summary(Later)).

%% Whatever comes: suspicion and its end alternate; nobody is dead twice in a life;
%% the ask timer runs whenever somebody is suspected.
whatever_comes_the_promises_about_notices_hold_test_() ->
    atoll_prop:test(?FUNCTION_NAME, prop_notices(), 500).

node_() -> oneof([a, b, c, d]).
life() -> range(1, 3).

event() ->
    frequency([
        {4, {up, node_()}},
        {3, {down, node_(), oneof([lost, dropped])}},
        {8, {message, node_(), {beat, life(), list(node_()), oneof([none, t])}}},
        {1, {message, node_(), unwatch}},
        {1, {message, node_(), ping}},
        {2, {message, node_(), {pong, life(), oneof([watcher, neighbour, stranger])}}},
        {1, {message, node_(), {who_heard, node_(), life()}}},
        {2, {message, node_(), {oneof([heard, heard_of]), node_(), life(), range(0, 5000)}}},
        {2, {message, node_(), {obituaries, boolean(), list({oneof([a, b, c, d, me]), life()})}}},
        {1, {message, node_(), {buried, range(1, 12)}}},
        {1, {message, node_(), stranger}},
        {2, {cast, {unreachable, node_()}}},
        {2, {cast, {bytes, node_()}}},
        {15, timer}
    ]).

prop_notices() ->
    ?FORALL(Events, list({range(0, 1500), event()}), check(Events, 0, new(), [{500, tick}], #{}, [])).

check([], _Now, _State, _Timers, _Suspects, _Dead) ->
    true;
check([{Ms, Event0} | Events], Now0, State0, Timers0, Suspects0, Dead0) ->
    {Now, Event, Timers1} =
        case {Event0, lists:sort(Timers0)} of
            {timer, [{At, Key} | Left]} -> {max(At, Now0), {timeout, Key}, Left};
            {_, _} -> {Now0 + Ms, Event0, Timers0}
        end,
    {State, Effects} = atoll_detector_watchers:handle(Event, Now, State0),
    Timers = lists:foldl(fun(E, T) -> timer(E, Now, T) end, Timers1, Effects),
    Notices = notices(Effects),
    Suspects = lists:foldl(fun suspicion/2, Suspects0, Notices),
    New = [{N, L} || {dead, N, L} <- Notices],
    #{suspects := Count} = atoll_detector_watchers:summary(State),
    Good =
        Suspects =/= wrong andalso length([N || {N, sure} <- maps:to_list(Suspects)]) =< Count andalso
            map_size(Suspects) >= Count andalso
            New -- Dead0 =:= New andalso length(lists:usort(New)) =:= length(New) andalso
            (Count =:= 0) =:= not lists:keymember(ask, 2, Timers) andalso
            lists:keymember(tick, 2, Timers),
    Good andalso check(Events, Now, State, Timers, Suspects, New ++ Dead0).

suspicion(_, wrong) -> wrong;
suspicion({suspect, N}, S) -> case S of #{N := sure} -> wrong; #{} -> S#{N => sure} end;
suspicion({cleared, N}, S) -> ended(N, S);
suspicion({silent, N}, S) -> ended(N, S);
%% It may be the death of an earlier life than the suspected one.
suspicion({dead, N, _}, S) -> case S of #{N := _} -> S#{N => maybe_not}; #{} -> S end;
suspicion(_, S) -> S.

ended(N, S) when is_map_key(N, S) -> maps:remove(N, S);
ended(_, _) -> wrong.
