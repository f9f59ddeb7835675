%% SPDX-License-Identifier: Apache-2.0
%% Each rule of the roster: what is news, what is compared, who is up and down, how a
%% node leaves, and how it learns that it is held to be dead.
-module(atoll_roster_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(ME, me).

%% Members

a_node_knows_itself_test() ->
    ?assertEqual([?ME], atoll_roster:members(new())).

a_new_member_is_up_test() ->
    {S, Effects} = news(a, [{n1, {1, alive}}], new()),
    ?assertEqual([{member_up, n1}], notices(Effects)),
    ?assertEqual([?ME, n1], atoll_roster:members(S)).

what_a_node_knows_from_the_start_is_no_news_test() ->
    Members = knows_all([?ME, n1, n2]),
    {S, Effects} = atoll_roster:init(#{self => ?ME, incarnation => 1, seed => 1, members => Members, options => #{}}, 0),
    ?assertEqual([], notices(Effects)),
    ?assertEqual(lists:sort([?ME, n1, n2]), atoll_roster:members(S)),
    ?assertEqual([{member_down, n1, dead}], notices(handle({cast, {dead, n1, 1}}, S))),
    %% It tells of itself where that is not what all know.
    {Later, _} = atoll_roster:init(#{self => ?ME, incarnation => 2, seed => 1, members => Members, options => #{}}, 0),
    ?assertEqual(2, atoll_roster:life(?ME, Later)).

knows_all(Nodes) ->
    lists:foldl(
        fun(Node, T) -> element(2, atoll_roster_table:put(Node, {1, alive}, T)) end, atoll_roster_table:new(n1, 100, 100), Nodes
    ).

a_member_that_ends_is_down_with_the_reason_test() ->
    ?assertEqual([{member_down, n1, left}], notices(news(a, [{n1, {1, left}}], knowing([n1])))),
    ?assertEqual([{member_down, n1, dead}], notices(handle({cast, {dead, n1, 1}}, knowing([n1])))).

a_new_life_of_one_that_had_not_ended_is_down_and_up_test() ->
    ?assertEqual(
        [{member_down, n1, dead}, {member_up, n1}], notices(news(a, [{n1, {2, alive}}], knowing([n1])))
    ).

a_new_life_of_one_that_had_ended_is_up_test() ->
    {S, _} = handle({cast, {dead, n1, 1}}, knowing([n1])),
    ?assertEqual([{member_up, n1}], notices(news(a, [{n1, {2, alive}}], S))).

what_is_known_or_over_is_no_notice_test() ->
    {S, _} = handle({cast, {dead, n1, 1}}, knowing([n1])),
    ?assertEqual([], notices(news(a, [{n1, {1, alive}}, {n2, {4, dead}}], S))),
    ?assertEqual([], notices(handle({cast, {dead, n1, 1}}, S))).

a_verdict_on_an_earlier_life_changes_nothing_test() ->
    {S, Effects} = handle({cast, {dead, n1, 1}}, knowing([{n1, 2}])),
    ?assertEqual({[], [?ME, n1]}, {Effects, atoll_roster:members(S)}).

%% News

news_are_gathered_and_told_to_all_but_those_who_told_them_test() ->
    S0 = neighbours([a, b, c]),
    {S1, E1} = news(a, [{n1, {1, alive}}], S0),
    {S2, E2} = news(b, [{n2, {1, alive}}], S1),
    ?assertEqual([gather], [Key || {timer, Key, 100} <- E1 ++ E2]),
    ?assertEqual([], sends(E1 ++ E2)),
    {_, Effects} = handle({timeout, gather}, S2),
    One = {n1, {1, alive}},
    Two = {n2, {1, alive}},
    ?assertEqual([{a, {news, [Two]}}, {b, {news, [One]}}, {c, {news, [One, Two]}}], sends(Effects)).

who_tells_what_is_gathered_need_not_hear_it_test() ->
    {S1, _} = news(a, [{n1, {1, alive}}], neighbours([a, b, c])),
    {S2, _} = news(b, [{n1, {1, alive}}], S1),
    {_, Effects} = handle({timeout, gather}, S2),
    ?assertEqual([{c, {news, [{n1, {1, alive}}]}}], sends(Effects)).

news_are_told_once_test() ->
    {S1, _} = news(a, [{n1, {1, alive}}], neighbours([a, b])),
    {S2, _} = handle({timeout, gather}, S1),
    {_, Effects} = news(b, [{n1, {1, alive}}], S2),
    ?assertEqual([], Effects).

a_verdict_is_no_news_test() ->
    {_, Effects} = handle({cast, {dead, n1, 1}}, knowing([n1])),
    ?assertEqual([], [Timer || {timer, _, _} = Timer <- Effects]).

the_end_of_a_stranger_is_kept_and_not_told_on_test() ->
    {S, Effects} = news(a, [{n1, {5, dead}}], neighbours([a, b])),
    ?assertEqual([], Effects),
    ?assertEqual([], notices(news(b, [{n1, {5, alive}}], S))).

a_message_has_at_most_so_many_entries_test() ->
    {S, _} = news(a, alive(1, 25), neighbours(#{max_news => 10}, [a, b])),
    {_, Effects} = handle({timeout, gather}, S),
    ?assertEqual([{b, 10}, {b, 10}, {b, 5}], [{To, length(Entries)} || {To, {news, Entries}} <- sends(Effects)]),
    ?assertEqual(alive(1, 25), lists:sort(lists:append([Entries || {b, {news, Entries}} <- sends(Effects)]))).

news_go_to_a_bounded_number_of_neighbours_test() ->
    {S, _} = news(a, alive(1, 1), neighbours(#{fanout => 3}, [Node || {Node, _} <- alive(50, 30)])),
    {_, Effects} = handle({timeout, gather}, S),
    ?assertEqual(3, length(sends(Effects))).

who_tells_what_is_over_hears_so_test() ->
    {S, _} = handle({cast, {dead, n1, 1}}, knowing([n1])),
    {_, Effects} = news(a, [{n1, {1, alive}}], S),
    ?assertEqual([{a, {entries, [{n1, {1, dead}}]}}], sends(Effects)).

%% Comparing

a_newcomer_compares_at_once_and_the_others_later_test() ->
    {S1, E1} = handle({up, a}, 0, new()),
    [First] = [Ms || {timer, compare, Ms} <- E1],
    ?assert(First =< 150),
    {S2, E2} = handle({timeout, compare}, First, S1),
    ?assertMatch([{a, {hash, _}}], sends(E2)),
    {_, E3} = handle({up, b}, 60000, S2),
    ?assertMatch([Ms] when Ms >= 1000, [Ms || {timer, compare, Ms} <- E3]).

equal_tables_cost_one_message_test() ->
    {hash, Hash} = hash(knowing([n1, n2])),
    ?assertEqual([], element(2, handle({message, a, {hash, Hash}}, knowing([n2, n1])))).

different_tables_become_equal_and_only_what_differs_travels_test() ->
    Common = alive(1, 400),
    A0 = tell(z, Common ++ [{x1, {1, alive}}, {x2, {2, alive}}, {x3, {1, alive}}], new(a, #{})),
    B0 = tell(z, Common ++ [{x2, {1, alive}}, {x4, {1, alive}}, {x3, {1, dead}}], new(b, #{})),
    {A, B, Count} = compare({a, A0}, {b, B0}),
    ?assertEqual(lists:sort([a, b, x1, x2, x4 | [N || {N, _} <- Common]]), atoll_roster:members(A)),
    ?assertEqual(atoll_roster:members(A), atoll_roster:members(B)),
    ?assertEqual(hash(A), hash(B)),
    %% Six entries differ, in as many buckets of three or so.
    ?assert(Count < 60).

a_comparison_keeps_the_bound_of_messages_test() ->
    A = tell(z, alive(1, 2000), new(a, #{})),
    {_, _, _} = compare({a, A}, {b, new(b, #{})}).

%% A node that was alone has nothing to tell its neighbours but itself.
a_joiner_does_not_tell_what_all_know_test() ->
    {S0, _} = handle({up, b}, neighbours([a])),
    {S, Effects} = handle({message, a, {entries, alive(1, 300)}}, S0),
    ?assertEqual([], [gather || {timer, gather, _} <- Effects]),
    ?assertEqual([compare], [Key || {timer, Key, _} <- Effects]),
    {_, Asked} = handle({timeout, compare}, S),
    ?assertMatch([{b, {hash, _}}], sends(Asked)).

its_neighbour_tells_of_the_joiner_test() ->
    S0 = tell(z, alive(1, 300), neighbours([a, b])),
    {S1, _} = handle({timeout, gather}, S0),
    {S, _} = handle({message, a, {buckets, [{1, []}, {index(j), [{j, {9, alive}}]}]}}, S1),
    {_, Effects} = handle({timeout, gather}, S),
    ?assertEqual([{b, {news, [{j, {9, alive}}]}}], sends(Effects)).

a_node_compares_with_somebody_every_while_test() ->
    {S, Effects} = handle({timeout, exchange}, neighbours([a])),
    ?assertMatch([{a, {hash, _}}], sends(Effects)),
    ?assertMatch([Ms] when Ms >= 10000, [Ms || {timer, exchange, Ms} <- Effects]),
    {Alone, _} = handle({down, a, lost}, S),
    {_, Quiet} = handle({timeout, exchange}, Alone),
    ?assertEqual([], sends(Quiet)).

%% Bounds

more_members_than_there_is_room_for_are_refused_and_counted_test() ->
    S = tell(a, alive(1, 10), new(?ME, #{max_members => 4})),
    ?assertEqual(4, length(atoll_roster:members(S))),
    ?assertMatch(#{members := 4, dropped := #{members_refused := 7}}, atoll_roster:summary(S)).

only_so_many_ends_are_remembered_test() ->
    Ended = fun(Lives, S0) ->
        lists:foldl(fun({N, {L, alive}}, S) -> element(1, handle({cast, {dead, N, L}}, S)) end, tell(a, Lives, S0), Lives)
    end,
    S = lists:foldl(fun(N, S0) -> Ended(alive(N, 1), S0) end, new(?ME, #{max_gone => 3}), lists:seq(1, 10)),
    ?assertMatch(#{members := 1, gone := 3, dropped := #{gone_forgotten := 7}}, atoll_roster:summary(S)).

%% This node

a_node_that_is_held_to_be_dead_begins_a_new_life_and_says_so_test() ->
    lists:foreach(
        fun(Entry) ->
            {S1, Effects} = news(a, [{?ME, Entry}], neighbours([a])),
            ?assertEqual([{buried, element(1, Entry)}], notices(Effects)),
            {S2, _} = handle({cast, {incarnation, element(1, Entry) + 1}}, S1),
            {_, Told} = handle({timeout, gather}, S2),
            ?assertEqual([{a, {news, [{?ME, {element(1, Entry) + 1, alive}}]}}], sends(Told))
        end,
        [{7, dead}, {7, left}, {9, dead}, {9, alive}]
    ).

the_end_of_an_earlier_life_is_none_of_its_concern_test() ->
    {S, Effects} = news(a, [{?ME, {6, dead}}], neighbours([a])),
    ?assertEqual([], notices(Effects)),
    ?assertEqual([?ME], atoll_roster:members(S)).

%% Leaving

who_leaves_waits_until_all_neighbours_have_heard_test() ->
    {S1, E1} = handle({cast, leave}, neighbours([a, b])),
    ?assertEqual([{a, {farewell, 7}}, {b, {farewell, 7}}], sends(E1)),
    ?assertEqual([], atoll_roster:members(S1)),
    {S2, E2} = handle({message, a, {heard, 7}}, S1),
    ?assertEqual([], E2),
    {_, E3} = handle({message, b, {heard, 7}}, S2),
    ?assertEqual([{cancel, farewell}, {notify, left}], E3).

a_farewell_is_said_twice_and_then_it_leaves_test() ->
    {S1, E1} = handle({cast, leave}, neighbours([a, b])),
    {S2, _} = handle({message, a, {heard, 7}}, S1),
    {S3, E2} = handle({timeout, farewell}, S2),
    ?assertEqual([{b, {farewell, 7}}], sends(E2)),
    {_, E3} = handle({timeout, farewell}, S3),
    ?assertEqual([{notify, left}], E3),
    ?assertEqual(2000, lists:sum([Ms || {timer, farewell, Ms} <- E1 ++ E2])).

a_neighbour_that_is_gone_need_not_hear_test() ->
    {S1, _} = handle({cast, leave}, neighbours([a])),
    {_, Effects} = handle({down, a, lost}, S1),
    ?assertEqual([left], notices(Effects)).

who_has_no_neighbours_leaves_at_once_test() ->
    ?assertEqual([left], notices(handle({cast, leave}, new()))).

a_farewell_is_answered_and_news_for_the_others_test() ->
    S0 = tell(a, [{a, {3, alive}}], neighbours([a, b])),
    {S1, Effects} = handle({message, a, {farewell, 3}}, S0),
    ?assertEqual([{member_down, a, left}], notices(Effects)),
    ?assertEqual([{a, {heard, 3}}], sends(Effects)),
    {_, Told} = handle({timeout, gather}, S1),
    ?assertEqual([{b, {news, [{a, {3, left}}]}}], sends(Told)).

who_has_left_stays_so_until_a_new_life_test() ->
    {S1, _} = handle({cast, leave}, neighbours([a])),
    {S2, E2} = news(a, [{?ME, {7, dead}}], S1),
    ?assertEqual([], notices(E2)),
    {S3, _} = handle({cast, {incarnation, 8}}, S2),
    ?assertEqual([?ME], atoll_roster:members(S3)),
    %% It goes on, and does not leave when the rest of the neighbours have heard or are gone.
    ?assertEqual([], notices(handle({message, a, {heard, 7}}, S3))),
    ?assertEqual([], notices(handle({down, a, lost}, S3))).

%% The audit

a_member_that_is_no_neighbour_and_cannot_be_reached_is_found_dead_test() ->
    S0 = tell(a, [{n1, {1, alive}}], neighbours([a])),
    {S1, E1} = handle({timeout, audit}, S0),
    ?assertEqual([{n1, ping}], sends(E1)),
    {S2, E2} = handle({cast, {unreachable, n1}}, S1),
    ?assertEqual([{a, {try_it, n1}}], sends(E2)),
    {S3, E3} = handle({message, a, {unreached, n1}}, S2),
    ?assertMatch([_], [Ms || {timer, audit, Ms} <- E3]),
    {S4, _} = handle({timeout, audit}, S3),
    {S5, _} = handle({timeout, {check, n1}}, S4),
    {_, E5} = handle({message, a, {unreached, n1}}, S5),
    ?assertEqual([{member_down, n1, dead}], notices(E5)),
    ?assert(lists:member({timer, gather, 100}, E5)).

a_member_that_answers_is_left_alone_test() ->
    S0 = tell(a, [{n1, {1, alive}}], neighbours([a])),
    {S1, _} = handle({timeout, audit}, S0),
    {_, E} = handle({message, n1, {pong, {1, alive}}}, S1),
    ?assertEqual([], notices(E)),
    ?assertMatch([Ms] when Ms >= 30000, [Ms || {timer, audit, Ms} <- E]).

an_answer_says_how_it_is_test() ->
    {_, E} = handle({message, n1, ping}, new()),
    ?assertEqual([{n1, {pong, {7, alive}}}], sends(E)),
    {S1, _} = handle({cast, leave}, new()),
    ?assertEqual([{n1, {pong, {7, left}}}], sends(element(2, handle({message, n1, ping}, S1)))).

neighbours_are_not_looked_after_test() ->
    S = tell(a, [{a, {1, alive}}], neighbours([a])),
    ?assertEqual([], sends(element(2, handle({timeout, audit}, S)))).

who_is_asked_to_try_says_what_came_of_it_test() ->
    {S1, E1} = handle({message, a, {try_it, n1}}, neighbours([a])),
    ?assertEqual([{n1, ping}], sends(E1)),
    ?assertEqual([{a, {unreached, n1}}], sends(element(2, handle({timeout, {check, n1}}, S1)))),
    ?assertEqual([{a, {reached, n1}}], sends(element(2, handle({message, n1, {pong, {1, alive}}}, S1)))).

%% Knocking

%% It knows that n1 is dead, and has a neighbour who is its only member.
bereaved() ->
    {S, _} = handle({cast, {dead, n1, 1}}, tell(a, [{a, {1, alive}}, {n1, {1, alive}}], neighbours([a]))),
    S.

a_dead_node_that_answers_is_found_test() ->
    {_, E1} = handle({message, n1, {pong, {1, alive}}}, bereaved()),
    ?assertEqual([{found, n1}], notices(E1)),
    %% That life is over all the same.
    ?assertEqual([{n1, {entries, [{n1, {1, dead}}]}}], sends(E1)),
    {_, E2} = handle({message, n1, {pong, {2, alive}}}, bereaved()),
    ?assertEqual([{found, n1}, {member_up, n1}], notices(E2)),
    {_, E3} = handle({message, a, {pong, {1, alive}}}, bereaved()),
    ?assertEqual([], notices(E3)).

%% In time to be spared where it says itself that it lives.
a_dead_node_with_which_a_link_comes_up_is_tried_a_moment_later_test() ->
    {S1, E1} = handle({cast, {linked, n1}}, bereaved()),
    [{timer, {linked, n1}, Ms}] = [Timer || {timer, {linked, _}, _} = Timer <- E1],
    ?assert(Ms > 1000 andalso Ms =< 2000),
    ?assertEqual([], sends(E1)),
    ?assertEqual([{n1, ping}], sends(element(2, handle({timeout, {linked, n1}}, S1)))),
    {S2, _} = handle({message, a, {news, [{n1, {2, alive}}]}}, S1),
    ?assertEqual([], sends(element(2, handle({timeout, {linked, n1}}, S2)))).

who_lives_or_is_unknown_is_not_tried_when_a_link_comes_up_test() ->
    [?assertEqual([], element(2, handle({cast, {linked, Node}}, bereaved()))) || Node <- [a, stranger]].

%% Each by one member, who is the same for all of them that are equal in what they know.
the_dead_are_tried_by_one_member_each_test() ->
    Nodes = [list_to_atom("n" ++ integer_to_list(N)) || N <- lists:seq(1, 20)],
    {Alive, Dead} = lists:split(10, Nodes),
    Tried = lists:append([
        begin
            Entries = [{N, {1, alive}} || N <- Alive] ++ [{N, {1, dead}} || N <- Dead],
            {S0, _} = handle({up, hd(Alive -- [Self])}, new(Self, #{})),
            {S, _} = news(z, Entries, S0),
            {Rounds, _} = lists:mapfoldl(
                fun(_, S1) ->
                    {S2, E} = handle({timeout, audit}, S1),
                    {[N || {N, ping} <- sends(E), lists:member(N, Dead)], S2}
                end,
                S,
                lists:seq(1, 40)
            ),
            lists:usort(lists:append(Rounds))
        end
     || Self <- Alive
    ]),
    ?assertEqual(lists:sort(Dead), lists:sort(Tried)).

who_has_left_is_not_tried_test() ->
    {S, _} = news(a, [{n1, {1, left}}], neighbours([a])),
    ?assertEqual([], sends(element(2, handle({timeout, audit}, S)))).

some_are_members_and_then_the_dead_test() ->
    Some = fun(Count) -> lists:sort(element(1, atoll_roster:some(Count, bereaved()))) end,
    ?assertEqual([], Some(0)),
    ?assertEqual([a], Some(1)),
    ?assertEqual([a, n1], Some(5)).

%% Metadata

what_a_node_says_is_news_for_its_neighbours_test() ->
    {S1, Effects} = handle({cast, {meta, #{a => 1}}}, neighbours([a, b])),
    ?assertEqual([{member_meta, ?ME, #{a => 1}}], notices(Effects)),
    ?assertEqual(#{a => 1}, atoll_roster:meta(?ME, S1)),
    {S2, Told} = handle({timeout, gather}, S1),
    ?assertEqual([{To, {meta, {news, [{?ME, {{7, 1}, #{a => 1}}}]}}} || To <- [a, b]], sends(Told)),
    %% The same again is nothing new; to take it back is.
    ?assertEqual({S2, []}, handle({cast, {meta, #{a => 1}}}, S2)),
    {S3, _} = handle({cast, {meta, #{}}}, S2),
    {_, Again} = handle({timeout, gather}, S3),
    ?assertMatch([{a, {meta, {news, [{?ME, {{7, 2}, Nothing}}]}}}, _] when map_size(Nothing) =:= 0, sends(Again)).

what_a_member_says_is_told_on_to_those_who_have_not_told_it_test() ->
    {S0, _} = handle({timeout, gather}, tell(z, alive(1, 1), neighbours([a, b, c]))),
    Said = [{m1001, {{1, 1}, #{a => 1}}}],
    {S1, Effects} = handle({message, a, {meta, {news, Said}}}, S0),
    ?assertEqual([{member_meta, m1001, #{a => 1}}], notices(Effects)),
    {S2, []} = handle({message, b, {meta, {news, Said}}}, S1),
    {S3, Told} = handle({timeout, gather}, S2),
    ?assertEqual([{c, {meta, {news, Said}}}], sends(Told)),
    %% What came before, late.
    {S4, _} = handle({message, a, {meta, {news, [{m1001, {{1, 3}, #{a => 3}}}]}}}, S3),
    {S, Late} = handle({message, b, {meta, {news, [{m1001, {{1, 2}, #{a => 2}}}]}}}, S4),
    ?assertEqual({[], #{a => 3}}, {Late, atoll_roster:meta(m1001, S)}).

metadata_is_that_of_a_live_members_life_test() ->
    Hears = fun(Node, Life, S) -> handle({message, a, {meta, {news, [{Node, {{Life, 1}, #{life => Life}}}]}}}, S) end,
    S0 = tell(z, [{n1, {2, alive}}], new()),
    [?assertEqual({S0, []}, Hears(Node, Life, S0)) || {Node, Life} <- [{n1, 1}, {n1, 3}, {n2, 1}, {?ME, 7}]],
    {S1, _} = Hears(n1, 2, S0),
    ?assertEqual(#{life => 2}, atoll_roster:meta(n1, S1)),
    {Dead, _} = handle({cast, {dead, n1, 2}}, S1),
    ?assertEqual(#{}, atoll_roster:meta(n1, Dead)),
    {New, _} = news(a, [{n1, {3, alive}}], S1),
    ?assertEqual(#{}, atoll_roster:meta(n1, New)),
    ?assertEqual(#{life => 3}, atoll_roster:meta(n1, element(1, Hears(n1, 3, New)))).

a_new_life_brings_its_own_metadata_test() ->
    {S1, _} = handle({cast, {meta, #{a => 1}}}, neighbours([a])),
    {S2, _} = handle({timeout, gather}, S1),
    {S3, _} = handle({cast, {incarnation, 9}}, S2),
    {S4, Told} = handle({timeout, gather}, S3),
    ?assertEqual([{a, {news, [{?ME, {9, alive}}]}}, {a, {meta, {news, [{?ME, {{9, 1}, #{a => 1}}}]}}}], sends(Told)),
    %% Who has left has none, and may change it for the time when it is back.
    {S5, _} = handle({cast, leave}, S4),
    {S6, _} = handle({cast, {meta, #{a => 2}}}, S5),
    ?assertEqual(#{}, atoll_roster:meta(?ME, S6)),
    ?assertEqual(#{a => 2}, atoll_roster:meta(?ME, element(1, handle({cast, {incarnation, 10}}, S6)))).

without_metadata_nothing_of_it_is_sent_test() ->
    ?assertMatch({hash, _}, hash(knowing([n1]))),
    {_, Effects} = handle({message, a, hash(knowing([n1]))}, knowing([n1])),
    ?assertEqual([], Effects).

%% Members that say things, some more than others, with what each knows of them.
tables_that_are_compared_have_the_same_metadata_test_() ->
    Word = {choose(1, 60), choose(1, 3)},
    atoll_prop:test(
        ?FUNCTION_NAME,
        ?FORALL({Of, Known, Others, Own}, {choose(0, 60), list(Word), list(Word), boolean()}, become_equal(Of, Known, Others, Own)),
        300
    ).

become_equal(Of, Known, Others, Own) ->
    Members = alive(1, Of),
    Hear = fun(Words, S) ->
        Said = [{Node, {{1, Times}, #{said => Times}}} || {N, Times} <- Words, {Node, _} <- alive(N, 1)],
        element(1, handle({message, z, {meta, {news, Said}}}, S))
    end,
    Say = fun(Meta, S) -> element(1, handle({cast, {meta, Meta}}, S)) end,
    A0 = Hear(Known, tell(z, Members, new(a, #{max_metas => 5}))),
    %% It does not know the first member, nor what that one says.
    B0 = Hear(Others, tell(z, lists:nthtail(min(1, Of), Members), Say(#{b => 1}, new(b, #{max_metas => 5})))),
    {A, B, _} = compare({a, case Own of true -> Say(#{a => 1}, A0); false -> A0 end}, {b, B0}),
    Words = [{Node, #{said => T}} || {N, T} <- lists:sort(Known ++ [W || {N, _} = W <- Others, N > 1]), {Node, _} <- alive(N, 1)],
    Last = maps:from_list(Words ++ [{b, #{b => 1}} | [{a, #{a => 1}} || Own]]),
    All = [{N, maps:get(N, Last, #{})} || N <- lists:sort([a, b | [N || {N, _} <- Members]])],
    [All, All] =:= [metas(atoll_roster:members(S), S) || S <- [A, B]].

metas(Nodes, S) -> [{N, atoll_roster:meta(N, S)} || N <- Nodes].

%% Properties

whatever_comes_up_and_down_alternate_test_() ->
    atoll_prop:test(?FUNCTION_NAME, ?FORALL(Events, list(event()), alternates(Events)), 2000).

event() ->
    Peer = oneof([a, b, c]),
    Node = oneof([?ME, a, b, c, n1, n2, n3]),
    Life = choose(6, 9),
    Entries = list({Node, {Life, oneof([alive, left, dead])}}),
    frequency([
        {6, {message, Peer, {oneof([news, entries]), Entries}}},
        {2, {message, Peer, {buckets, [{1, Entries}]}}},
        {2, {message, Peer, {meta, {oneof([news, entries]), list({Node, {{Life, choose(1, 2)}, #{}}})}}}},
        {2, {message, Peer, {farewell, Life}}},
        {1, {message, Peer, {heard, Life}}},
        {1, {message, Peer, {pong, {Life, oneof([alive, left])}}}},
        {3, {cast, {dead, Node, Life}}},
        {1, {cast, {unreachable, Node}}},
        {1, {cast, leave}},
        {2, {up, Peer}},
        {1, {down, Peer, lost}}
    ]).

%% The core answers `buried', as it does, and sometimes begins anew after a leave.
alternates(Events) ->
    {S, Up, Good} = lists:foldl(fun do/2, {new(?ME, #{max_members => 4, max_gone => 2}), [], true}, Events),
    Good andalso Up =:= lists:delete(?ME, atoll_roster:members(S)).

do(Event, {S0, Up0, Good0}) ->
    {S1, Effects} = handle(Event, S0),
    {Up, Good} = lists:foldl(
        fun
            ({member_up, ?ME}, {U, _}) -> {U, false};
            ({member_up, N}, {U, G}) -> {ordsets:add_element(N, U), G andalso not ordsets:is_element(N, U)};
            %% Of others while they are up.
            ({member_meta, N, _}, {U, G}) -> {U, G andalso ordsets:is_element(N, U)};
            ({member_down, N, _}, {U, G}) -> {ordsets:del_element(N, U), G andalso ordsets:is_element(N, U)};
            (_, Acc) -> Acc
        end,
        {Up0, Good0},
        notices(Effects)
    ),
    Buried = [Life || {buried, Life} <- notices(Effects)],
    S = lists:foldl(fun(Life, T) -> element(1, handle({cast, {incarnation, Life + 1}}, T)) end, S1, Buried),
    {S, Up, Good}.

%% The roster under test

new() -> new(?ME, #{}).

new(Self, Options) ->
    {S, _} = atoll_roster:init(#{self => Self, incarnation => 7, seed => 1, options => Options}, 0),
    S.

neighbours(Nodes) -> neighbours(#{}, Nodes).

neighbours(Options, Nodes) ->
    lists:foldl(fun(Node, S) -> element(1, handle({up, Node}, S)) end, new(?ME, Options), Nodes).

%% As news that were told already.
knowing(Nodes) ->
    Entries = [
        case Node of
            {Name, Life} -> {Name, {Life, alive}};
            Name -> {Name, {1, alive}}
        end
     || Node <- Nodes
    ],
    tell(z, Entries, new()).

tell(From, Entries, S0) ->
    {S1, _} = news(From, Entries, S0),
    {S, _} = handle({timeout, gather}, S1),
    S.

alive(First, Count) ->
    [{list_to_atom(lists:concat(["m", 1000 + N])), {1, alive}} || N <- lists:seq(First, First + Count - 1)].

news(From, Entries, S) -> handle({message, From, {news, Entries}}, S).

handle(Event, S) -> handle(Event, 1000, S).

handle(Event, Now, S) -> atoll_roster:handle(Event, Now, S).

notices({_, Effects}) -> notices(Effects);
notices(Effects) -> [Notice || {notify, Notice} <- Effects].

sends(Effects) -> [{To, Message} || {send, To, Message} <- Effects].

hash(S) ->
    {_, Effects} = handle({timeout, exchange}, element(1, handle({up, zz}, S))),
    [{zz, Message}] = sends(Effects),
    Message.

index(Node) -> erlang:phash2(Node, 128) + 1.

%% The first asks; all messages between the two are delivered. How many entries went.
compare({A, SA}, {B, SB}) ->
    Message = hash(SA),
    deliver([{A, B, Message}], #{A => SA, B => SB}, A, B, 0).

deliver([], States, A, B, Count) ->
    {map_get(A, States), map_get(B, States), Count};
deliver([{From, To, Message} | Messages], States, A, B, Count) ->
    Entries = entries(Message),
    ?assert(Entries =< 500),
    {S, Effects} = handle({message, From, Message}, map_get(To, States)),
    Answers = [{To, Peer, Answer} || {Peer, Answer} <- sends(Effects)],
    deliver(Messages ++ Answers, States#{To := S}, A, B, Count + Entries).

entries({buckets, Buckets}) -> lists:sum([length(Entries) || {_, Entries} <- Buckets]);
entries({_, Entries}) when is_list(Entries) -> length(Entries);
entries(_) -> 0.
