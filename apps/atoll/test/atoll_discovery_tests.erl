%% SPDX-License-Identifier: Apache-2.0
%% Discovery: contacts, beacons, and how an island notices that it is one.
-module(atoll_discovery_tests).

-include_lib("eunit/include/eunit.hrl").

-define(JOINS(Effects), [Nodes || {notify, {join, Nodes}} <- Effects]).
-define(CARGOS(Effects), [Table || {notify, {cargo, Table}} <- Effects]).

new(Self, Contacts) -> new(Self, Contacts, #{}).

new(Self, Contacts, Options) ->
    atoll_discovery:init(
        #{self => Self, incarnation => 7, seed => 1, options => Options#{contacts => Contacts}}, 0
    ).

run(Events, State) ->
    lists:foldl(
        fun({Now, Event}, {S0, Acc}) ->
            {S, Effects} = atoll_discovery:handle(Event, Now, S0),
            {S, Acc ++ Effects}
        end,
        {State, []},
        Events
    ).

%% These events and the node's own timers from the start on, with the effects of
%% each.
play(To, Events, {State, Effects}) ->
    play(To, lists:keysort(1, Events), State, timers(Effects, 0, []), [{0, Effects}]).

play(To, Events, State0, Timers0, Acc) ->
    Next = lists:sort([{At, {timeout, Key}} || {Key, At} <- Timers0]),
    case lists:sublist(lists:keymerge(1, Events, Next), 1) of
        [{Now, Event}] when Now =< To ->
            {State, Effects} = atoll_discovery:handle(Event, Now, State0),
            Left =
                case Event of
                    {timeout, Key} -> lists:keydelete(Key, 1, Timers0);
                    _ -> Timers0
                end,
            play(To, lists:delete({Now, Event}, Events), State, timers(Effects, Now, Left), [{Now, Effects} | Acc]);
        _ ->
            {State0, lists:reverse(Acc)}
    end.

timers(Effects, Now, Timers) ->
    lists:foldl(
        fun
            ({timer, Key, Ms}, T) -> lists:keystore(Key, 1, T, {Key, Now + Ms});
            (_, T) -> T
        end,
        Timers,
        Effects
    ).

joined_at(Trace) -> [At || {At, Effects} <- Trace, _ <- ?JOINS(Effects)].

%% A neighbour that carries the beacon of a, which grows every five seconds.
grows(From, To) ->
    [{At, {cast, {cargo, n, [{a, {1, At}}]}}} || At <- lists:seq(From, To, 5000)].

a_node_joins_at_once_through_a_contact_test() ->
    {_, Effects} = new(me, [a]),
    ?assertEqual([[a]], ?JOINS(Effects)).

who_has_no_contact_but_itself_joins_nobody_test() ->
    [
        begin
            {_, Trace} = play(200000, [], new(me, Contacts)),
            ?assertEqual([], joined_at(Trace))
        end
     || Contacts <- [[], [me]]
    ].

the_pauses_between_attempts_grow_to_the_longest_test() ->
    {_, Trace} = play(300000, [], new(me, [a])),
    At = joined_at(Trace),
    Pauses = [B - A || {A, B} <- lists:zip(lists:droplast(At), tl(At))],
    ?assert(hd(Pauses) =< 1000),
    ?assert(lists:max(Pauses) =< 30000),
    ?assert(lists:last(Pauses) >= 15000).

%% One that is dead is not drawn time and again while others are not.
every_contact_has_its_turn_before_one_is_tried_again_test() ->
    [
        begin
            {_, Trace} = play(300000, [], atoll_discovery:init(#{self => me, incarnation => 7, seed => Seed, options => #{contacts => [a, b, c, d]}}, 0)),
            Tried = lists:append([?JOINS(Effects) || {_, Effects} <- Trace]),
            ?assert(length(Tried) >= 8),
            [First, Second] = [lists:sort(lists:append(lists:sublist(Tried, From, 4))) || From <- [1, 5]],
            ?assertEqual({[a, b, c, d], [a, b, c, d]}, {First, Second})
        end
     || Seed <- lists:seq(1, 20)
    ].

%% Of a node without neighbours; no contact need be left.
who_is_alone_says_so_again_and_again_test() ->
    [
        begin
            {_, Trace} = play(200000, [], new(me, Contacts)),
            Said = [At || {At, Effects} <- Trace, {notify, {alone, _}} <- Effects],
            ?assert(length(Said) >= 7),
            ?assert(hd(Said) =< 1000)
        end
     || Contacts <- [[], [me], [a]]
    ].

who_has_a_neighbour_does_not_say_that_it_is_alone_test() ->
    {_, Trace} = play(200000, [{500, {up, n}}], new(me, [])),
    ?assertEqual([], [At || {At, Effects} <- Trace, At >= 500, {notify, {alone, _}} <- Effects]).

%% Without a contact whose answer may come.
who_is_alone_says_so_soon_after_a_link_came_up_test() ->
    Soon = fun(Contacts) ->
        {_, Trace} = play(101000, [{100000, {cast, {linked, n}}}], new(me, Contacts)),
        [At || {At, Effects} <- Trace, At > 100000, {notify, {alone, _}} <- Effects]
    end,
    ?assertMatch([_], Soon([])),
    ?assertEqual([], Soon([a])).

who_is_joined_by_is_told_and_is_a_beacon_from_then_on_test() ->
    {_, Effects} = new(me, [z]),
    ?assertEqual([{send, z, {probe, []}}], [E || {send, _, _} = E <- Effects]),
    {_, Trace} = play(10000, [{100, {message, me, {probe, []}}}], new(z, [])),
    ?assertMatch([[{z, _}] | _], lists:append([?CARGOS(E) || {_, E} <- Trace])).

%% Whatever contacts it has besides.
whom_somebody_says_to_join_by_is_told_test() ->
    {_, Effects} = run([{100, {cast, {join, [y, me]}}}], element(1, new(me, [z]))),
    ?assertEqual([{send, y, {probe, []}}], Effects),
    {_, First} = run([{100, {cast, {join, [y]}}}], element(1, new(me, []))),
    ?assertEqual({[[y]], [{send, y, {probe, []}}]}, {?JOINS(First), [E || {send, _, _} = E <- First]}).

%% Else each join would be two.
what_who_is_joined_by_answers_is_no_reason_to_join_test() ->
    Alone = play(60000, [{100, {up, n}}, {59000, {message, z, {probed, apart}}}], new(me, [z])),
    ?assertEqual([], [At || At <- joined_at(element(2, Alone)), At >= 59000, At < 59100]).

who_has_neighbours_and_hears_a_beacon_does_not_join_test() ->
    {_, Trace} = play(200000, [{500, {up, n}} | grows(2000, 200000)], new(me, [a])),
    ?assertEqual([], [At || At <- joined_at(Trace), At > 500]).

%% Of the contacts a, m and z, m asks z first.
joined_by(Trace) -> [Contact || {_, Effects} <- Trace, [Contact] <- ?JOINS(Effects)].

a_contact_asks_the_one_that_it_begins_with_until_it_is_a_neighbour_test() ->
    %% It was there before its overlay was, and another has joined meanwhile.
    {_, Trace} = play(10000, [{500, {up, n}} | grows(2000, 10000)], new(m, [a, m, z])),
    ?assertMatch([z, z, z | _], joined_by(Trace)),
    ?assertEqual([z], lists:usort(joined_by(Trace))),
    {_, Answered} = play(10000, [{400, {up, n}}, {450, {up, z}} | grows(2000, 10000)], new(m, [a, m, z])),
    ?assertEqual([z], joined_by(Answered)).

a_contact_does_not_ask_it_for_ever_test() ->
    {_, Trace} = play(300000, [{500, {up, n}} | grows(2000, 300000)], new(m, [a, m, z])),
    ?assertEqual([], [At || At <- joined_at(Trace), At > 60000]).

who_hears_no_beacon_grow_joins_again_test() ->
    {_, Trace} = play(200000, [{100, {up, n}} | grows(2000, 60000)], new(me, [a])),
    [First | _] = [At || At <- joined_at(Trace), At > 500],
    %% It grew at 57000 for the last time.
    ?assert(First >= 87000 andalso First =< 57000 + 30000 + 5000 + 30000).

who_came_a_moment_ago_does_not_think_itself_an_island_test() ->
    {_, Trace} = play(30000, [{100, {up, n}}], new(me, [a])),
    ?assertEqual([], [At || At <- joined_at(Trace), At > 500]).

who_loses_its_last_neighbour_joins_test() ->
    {_, Trace} = play(100000, [{100, {up, n}}, {60000, {down, n, lost}} | grows(2000, 60000)], new(me, [a])),
    ?assertMatch([At | _] when At =< 61000, [At || At <- joined_at(Trace), At > 500]).

%% Long lonely, so that the pauses have grown; linked for a moment; alone again.
who_loses_its_last_neighbour_does_not_wait_for_a_grown_pause_test() ->
    [
        begin
            Link = [{At, {up, n}}, {At + 100, {down, n, lost}}],
            {_, Trace} = play(300000, Link, new(me, [a])),
            [First, Second | _] = [T || T <- joined_at(Trace), T > At + 100],
            ?assert(First =< At + 100 + 1000),
            ?assert(Second =< First + 2000)
        end
     || At <- lists:seq(100000, 130000, 1000)
    ].

%% Else the next attempt would move on before it comes.
a_neighbour_that_comes_and_goes_does_not_put_off_the_next_attempt_test() ->
    Links = lists:append([[{At, {up, n}}, {At + 10, {down, n, lost}}] || At <- lists:seq(10000, 60000, 100)]),
    {_, Trace} = play(60000, Links, new(me, [a])),
    ?assert(length([At || At <- joined_at(Trace), At > 10000]) >= 50).

unreachable(Node) -> {cast, {unreachable, Node}}.

a_contact_joins_by_the_next_in_the_order_of_names_test() ->
    [
        ?assertEqual({Self, [[Next]]}, {Self, ?JOINS(element(2, new(Self, [a, b, c])))})
     || {Self, Next} <- [{a, b}, {b, c}, {c, a}]
    ].

who_cannot_be_reached_is_passed_over_even_by_who_has_neighbours_test() ->
    {State, _} = new(b, [a, b, c, d]),
    {Passed, Effects} = run([{1, unreachable(c)}, {2, {up, n}}, {3, unreachable(d)}], State),
    ?assertEqual([[d], [a]], ?JOINS(Effects)),
    ?assertMatch({_, []}, run([{4, unreachable(a)}], Passed)).

who_was_reached_is_not_passed_over_later_test() ->
    {State, _} = new(b, [a, b, c, d]),
    ?assertMatch({_, []}, run([{1, {up, c}}, {2, unreachable(c)}], State)),
    {Settled, _} = play(60000, [{1, {up, n}}], {State, [{timer, tick, 5000}]}),
    ?assertMatch({_, []}, run([{60000, unreachable(c)}], Settled)).

so_many_contacts_are_passed_over_at_a_time_test() ->
    Contacts = [list_to_atom("c" ++ integer_to_list(N)) || N <- lists:seq(10, 99)],
    {State, Effects} = new(c50, Contacts),
    Asked = fun
        Ask(S0, [[Node]], Before) ->
            {S, E} = run([{1, unreachable(Node)}], S0),
            Ask(S, ?JOINS(E), [Node | Before]);
        Ask(_, [], Before) ->
            lists:reverse(Before)
    end,
    ?assertEqual(lists:sublist(Contacts, 42, 16), Asked(State, ?JOINS(Effects), [])).

who_is_no_contact_joins_by_any_test() ->
    Config = #{self => me, incarnation => 1, options => #{contacts => [a, b, c]}},
    Start = fun(Seed) -> element(2, atoll_discovery:init(Config#{seed => Seed}, 0)) end,
    First = lists:append([?JOINS(Start(Seed)) || Seed <- lists:seq(1, 30)]),
    ?assertEqual([[a], [b], [c]], lists:usort(First)).

contacts_are_only_added_and_bounded_test() ->
    {State, Effects} = run(
        [{1, {cast, {contacts, [a, b]}}}, {2, {cast, {contacts, [c]}}}, {3, {cast, {contacts, []}}}],
        element(1, new(me, [], #{max_contacts => 2}))
    ),
    ?assertMatch([[_]], ?JOINS(Effects)),
    ?assertMatch(#{contacts := 2, dropped := #{contacts_refused := 1}}, atoll_discovery:summary(State)).

a_contact_is_a_beacon_and_its_number_grows_test() ->
    {_, Trace} = play(20000, [], new(me, [me, a])),
    Tables = lists:append([?CARGOS(E) || {_, E} <- Trace]),
    ?assertMatch([[{me, {7, 1}}], [{me, {7, 2}}], [{me, {7, 3}}] | _], Tables).

who_is_no_contact_is_no_beacon_test() ->
    {_, Trace} = play(20000, [], new(me, [a])),
    ?assertEqual([], lists:append([?CARGOS(E) || {_, E} <- Trace])).

enough_beacons_of_smaller_name_silence_a_beacon_test() ->
    Names = [a, b, c, d, e, f, g, h],
    Grow = [{At, {cast, {cargo, n, [{N, {1, At}} || N <- Names]}}} || At <- lists:seq(1000, 60000, 5000)],
    {_, Trace} = play(60000, Grow, new(me, [me, a])),
    Last = lists:last(lists:append([?CARGOS(E) || {_, E} <- Trace])),
    ?assertEqual(Names, [N || {N, _} <- Last]).

a_restarted_beacon_goes_on_above_its_earlier_life_test() ->
    Before = atoll_beacons:raise(me, 7, 0, atoll_beacons:merge([{me, {8, 40}}], 0, atoll_beacons:new(8, 100, 30000))),
    ?assertEqual([{me, {8, 41}}], atoll_beacons:table(Before)).

what_a_dead_beacon_left_behind_is_not_fresh_test() ->
    B0 = atoll_beacons:merge([{a, {1, 5}}], 0, atoll_beacons:new(8, 100, 30000)),
    ?assertEqual([], atoll_beacons:fresh(B0)),
    ?assertEqual([{a, {1, 5}}], atoll_beacons:table(B0)),
    B1 = atoll_beacons:merge([{a, {1, 6}}], 5000, B0),
    ?assertEqual([a], atoll_beacons:fresh(B1)),
    B2 = atoll_beacons:expire(35000, B1),
    ?assertEqual({[], []}, {atoll_beacons:fresh(B2), atoll_beacons:table(B2)}),
    %% Whoever still carries it does not revive it.
    B3 = atoll_beacons:merge([{a, {1, 6}}], 35001, B2),
    ?assertEqual({[], []}, {atoll_beacons:fresh(B3), atoll_beacons:table(B3)}),
    ?assertEqual([a], atoll_beacons:fresh(atoll_beacons:merge([{a, {2, 1}}], 35002, B3))).

remembered_beacons_are_bounded_and_counted_test() ->
    Many = [{N, {1, 1}} || N <- [a, b, c, d, e]],
    B = lists:foldl(fun({T, E}, B0) -> atoll_beacons:merge([E], T, B0) end, atoll_beacons:new(2, 3, 30000),
        lists:zip([1, 2, 3, 4, 5], Many)),
    ?assertMatch(#{fresh := 0, new := 3, stale := 0, forgotten := 2}, atoll_beacons:counts(B)),
    ?assertEqual([c, d], [N || {N, _} <- atoll_beacons:table(B)]).

a_beacon_probes_a_contact_that_it_does_not_hear_test() ->
    {_, Trace} = play(100000, [{100, {up, n}} | grows(1000, 100000)], new(me, [me, a, z])),
    %% But for those that tell who is joined by that it is a contact.
    Probes = [{At, To, M} || {At, E} <- Trace, ?JOINS(E) =:= [], {send, To, {probe, _} = M} <- E],
    ?assertMatch([{_, z, {probe, [a, me]}} | _], Probes),
    ?assertEqual([z], lists:usort([To || {_, To, _} <- Probes])),
    [{First, _, _} | _] = Probes,
    ?assert(First >= 30100),
    ?assert(length(Probes) =< 70 div 5).

two_that_share_a_beacon_are_one_island_test() ->
    {State, _} = play(60000, [{100, {up, n}} | grows(1000, 60000)], new(me, [])),
    Answer = fun(Theirs, At, S) ->
        {_, [{send, z, {probed, A}}]} = run([{At, {message, z, {probe, Theirs}}}], S),
        A
    end,
    ?assertEqual(same, Answer([a, z], 60000, State)),
    ?assertEqual(apart, Answer([y, z], 60000, State)),
    {Young, _} = run([{100, {up, n}}], element(1, new(me, []))),
    ?assertEqual(unknown, Answer([y, z], 5000, Young)),
    ?assertEqual(apart, Answer([y, z], 5000, element(1, new(me, [])))).

who_learns_that_it_is_apart_joins_there_test() ->
    {State, _} = play(60000, [{100, {up, n}} | grows(1000, 60000)], new(me, [me, a, z])),
    {_, Effects} = run([{60001, {message, z, {probed, apart}}}], State),
    ?assertEqual([[z]], ?JOINS(Effects)),
    {_, Same} = run([{60001, {message, z, {probed, same}}}, {60002, {message, a, {probed, apart}}}], State),
    ?assertEqual([], ?JOINS(Same)).
