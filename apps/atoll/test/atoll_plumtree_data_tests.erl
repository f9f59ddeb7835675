%% SPDX-License-Identifier: Apache-2.0
%% What the broadcast protocol keeps: marks, what was seen, the cache, the trees, the
%% missing messages, and the table with a bound.
-module(atoll_plumtree_data_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(WINDOW, 64).

%% Marks, against a set of numbers

a_mark_knows_what_a_set_knows_test_() ->
    atoll_prop:test(?FUNCTION_NAME, mark_as_a_set(), 500).

mark_as_a_set() ->
    ?FORALL(
        Seqs,
        list(range(1, 40)),
        begin
            Mark = mark(Seqs),
            Seen = ordsets:from_list(Seqs),
            lists:all(
                fun(Seq) ->
                    Is = ordsets:is_element(Seq, Seen),
                    Is =:= atoll_plumtree_mark:has(Seq, Mark) andalso
                        (Is =:= (atoll_plumtree_mark:status(1, Seq, Mark) =:= seen))
                end,
                lists:seq(1, 41)
            )
        end
    ).

mark(Seqs) ->
    lists:foldl(
        fun(Seq, Mark) ->
            case atoll_plumtree_mark:status(1, Seq, Mark) of
                new ->
                    {0, Added} = atoll_plumtree_mark:add(1, Seq, ?WINDOW, Mark),
                    Added;
                seen ->
                    Mark
            end
        end,
        atoll_plumtree_mark:new(1),
        Seqs
    ).

lacking_union_and_giving_up_are_those_of_sets_test_() ->
    atoll_prop:test(?FUNCTION_NAME, two_marks(), 1000).

two_marks() ->
    ?FORALL(
        {Seqs1, Seqs2, Upto},
        {list(range(1, 30)), list(range(1, 30)), range(0, 40)},
        begin
            {Mark1, Mark2} = {mark(Seqs1), mark(Seqs2)},
            {Set1, Set2} = {ordsets:from_list(Seqs1), ordsets:from_list(Seqs2)},
            {Missed, Given} = atoll_plumtree_mark:give_up(Upto, Mark1),
            Over = ordsets:union(Set1, lists:seq(1, Upto)),
            conjunction([
                {lacks, equals(atoll_plumtree_mark:lacks(Mark1, Mark2), not ordsets:is_subset(Set2, Set1))},
                {union, equals(atoll_plumtree_mark:union(Mark1, Mark2), mark(Seqs1 ++ Seqs2))},
                {missed, equals(Missed, length(lists:seq(1, Upto) -- Set1))},
                {given_up, equals(Given, mark(Over))}
            ])
        end
    ).

what_is_not_to_count_as_seen_is_new_again_test() ->
    ?assertEqual({1, 3, 2#010}, atoll_plumtree_mark:unsee(6, mark([1, 2, 3, 5, 6]))).

what_is_older_than_the_last_that_was_seen_is_not_wanted_test() ->
    ?assertEqual([{1, 6, 0}, {1, 3, 0}], [atoll_plumtree_mark:close(mark(Seqs)) || Seqs <- [[1, 2, 3, 5, 6], [1, 2, 3]]]).

the_example_of_a_mark_test() ->
    ?assertEqual({1, 3, 2#110}, mark([1, 2, 3, 5, 6])),
    ?assertEqual({1, 6, 0}, mark([6, 5, 4, 3, 2, 1])).

a_later_life_begins_anew_and_the_known_gaps_of_the_old_are_missed_test() ->
    ?assertEqual({3, {2, 1, 0}}, atoll_plumtree_mark:add(2, 1, ?WINDOW, {1, 1, 2#10010})),
    ?assertEqual(old, atoll_plumtree_mark:status(1, 100, {2, 1, 0})).

what_is_further_back_than_the_window_is_given_up_test() ->
    %% Of 1 to 12 only 2 was seen, and 12 comes: 10 and 11 are still waited for.
    {Missed, Mark} = atoll_plumtree_mark:add(1, 12, 3, {1, 0, 2#10}),
    ?assertEqual({8, {1, 9, 2#100}}, {Missed, Mark}).

a_mark_far_behind_costs_nothing_test() ->
    {Missed, Mark} = atoll_plumtree_mark:add(1, 1 bsl 60, ?WINDOW, {1, 0, 2#10}),
    ?assertEqual((1 bsl 60) - ?WINDOW - 1, Missed),
    ?assertMatch({1, Low, _} when Low =:= (1 bsl 60) - ?WINDOW, Mark).

%% The table with a bound

the_least_recently_used_is_forgotten_and_counted_test() ->
    Full = lists:foldl(
        fun({Key, Now}, Table) -> atoll_plumtree_recent:store(Key, Now, Now, Table) end,
        atoll_plumtree_recent:new(3),
        [{a, 0}, {b, 1000}, {c, 2000}]
    ),
    Used = atoll_plumtree_recent:touch(a, 0, 3000, Full),
    Table = atoll_plumtree_recent:store(d, 4000, 4000, Used),
    ?assertEqual([{a, 0}, {c, 2000}, {d, 4000}], atoll_plumtree_recent:to_list(Table)),
    ?assertEqual(1, atoll_plumtree_recent:forgotten(Table)),
    ?assertEqual(3, atoll_plumtree_recent:size(Table)).

%% What was seen

settled(Max) ->
    atoll_plumtree_seen:settle(atoll_plumtree_seen:new(Max, ?WINDOW)).

take(Sender, Seqs, Seen) ->
    lists:foldl(
        fun(Seq, S0) ->
            {new, _, 0, S} = atoll_plumtree_seen:take(Sender, 1, Seq, 0, S0),
            S
        end,
        Seen,
        Seqs
    ).

a_newcomer_takes_over_what_its_neighbour_has_seen_test() ->
    Neighbour = take(a, [1, 2, 3, 5], settled(8)),
    Live = take(b, [4], take(a, [6], atoll_plumtree_seen:new(8, ?WINDOW))),
    Settled = atoll_plumtree_seen:adopt(atoll_plumtree_seen:digest(Neighbour), true, 0, Live),
    ?assertEqual(
        [seen, new, seen, seen, new],
        [atoll_plumtree_seen:status(a, 1, Seq, Settled) || Seq <- [3, 4, 5, 6, 7]]
    ),
    %% What b sent before the first that was heard is history too.
    ?assertEqual([{a, 1, 3, 2#110}, {b, 1, 4, 0}], atoll_plumtree_seen:digest(Settled)),
    ?assertNot(atoll_plumtree_seen:is_fresh(Settled)).

a_forgotten_sender_starts_where_it_is_heard_again_test() ->
    Seen = take(c, [1], take(b, [1], take(a, [1, 2], settled(2)))),
    ?assertNot(atoll_plumtree_seen:is_complete(Seen)),
    ?assertEqual(1, atoll_plumtree_seen:forgotten(Seen)),
    Again = take(a, [7], Seen),
    ?assertEqual(seen, atoll_plumtree_seen:status(a, 1, 3, Again)).

gone_is_believed_when_it_was_said_often_enough_test() ->
    Seen0 = take(a, [3], settled(8)),
    {0, Seen1} = atoll_plumtree_seen:gone({a, 1, 2}, n, fun twice/1, 0, Seen0),
    {2, Seen2} = atoll_plumtree_seen:gone({a, 1, 2}, n, fun twice/1, 0, Seen1),
    ?assertEqual([{a, 1, 3, 0}], atoll_plumtree_seen:digest(Seen2)),
    %% What came meanwhile is not told again.
    {0, Seen3} = atoll_plumtree_seen:gone({a, 1, 2}, n, fun twice/1, 0, Seen2),
    ?assertEqual(Seen2, Seen3).

who_has_said_that_it_is_gone_is_known_test() ->
    Both = fun({_Times, Nodes}) -> length(Nodes) >= 2 end,
    {0, Seen1} = atoll_plumtree_seen:gone({a, 1, 2}, n, Both, 0, take(a, [3], settled(8))),
    {0, Seen2} = atoll_plumtree_seen:gone({a, 1, 2}, n, Both, 0, Seen1),
    ?assertMatch({2, _}, atoll_plumtree_seen:gone({a, 1, 2}, m, Both, 0, Seen2)).

twice({Times, _Nodes}) -> Times >= 2.

what_was_said_of_an_earlier_gap_does_not_count_test() ->
    Seen0 = take(a, [3], settled(8)),
    {0, Seen1} = atoll_plumtree_seen:gone({a, 1, 2}, n, fun twice/1, 0, Seen0),
    Seen2 = take(a, [1], Seen1),
    {0, Seen3} = atoll_plumtree_seen:gone({a, 1, 2}, n, fun twice/1, 0, Seen2),
    ?assertEqual(new, atoll_plumtree_seen:status(a, 1, 2, Seen3)).

each_digest_learns_what_it_lacks_test() ->
    First = [{a, 1, 3, 0}, {b, 1, 2, 0}, {d, 2, 1, 0}, {e, 1, 1, 0}],
    Second = [{a, 1, 2, 2#10}, {c, 1, 1, 0}, {d, 1, 9, 0}, {e, 1, 1, 0}],
    ?assertEqual(
        {[{a, 1, 3, 0}, {c, 0, 0, 0}], [{a, 1, 2, 2#10}, {b, 0, 0, 0}, {d, 1, 9, 0}]},
        atoll_plumtree_seen:compare(First, true, Second, true)
    ),
    %% A digest that is not complete wants nothing of a sender that it does not know.
    ?assertEqual(
        {[{a, 1, 3, 0}], [{a, 1, 2, 2#10}, {d, 1, 9, 0}]},
        atoll_plumtree_seen:compare(First, false, Second, false)
    ).

%% The cache

new_cache(Max, MaxBytes) ->
    atoll_plumtree_cache:new(#{self => me, max => Max, max_bytes => MaxBytes, own_max => 64, keep_ms => 1000}).

cache(Max, MaxBytes, Seqs) ->
    cached(a, Seqs, 0, new_cache(Max, MaxBytes)).

cached(Root, Seqs, Now, Cache0) ->
    lists:foldl(
        fun(Seq, Cache) ->
            atoll_plumtree_cache:add(Root, 1, Seq, {gossip, Root, 1, Seq, 1, <<Seq:800>>}, Now, Cache)
        end,
        Cache0,
        Seqs
    ).

kept(Root, Cache) ->
    [Seq || Seq <- lists:seq(1, 20), atoll_plumtree_cache:find(Root, 1, Seq, Cache) =/= error].

is_full(Now, Cache) ->
    is_full(Now, 1, Cache).

is_full(Now, Bytes, Cache) ->
    element(1, atoll_plumtree_cache:is_full(Now, Bytes, Cache)).

the_oldest_leave_the_cache_and_are_counted_test() ->
    Cache = cache(3, 1000000, [1, 2, 3, 4, 5]),
    ?assertEqual({3, 2}, {atoll_plumtree_cache:size(Cache), atoll_plumtree_cache:dropped(Cache)}),
    ?assertEqual(error, atoll_plumtree_cache:find(a, 1, 2, Cache)),
    ?assertMatch({ok, {gossip, a, 1, 3, 1, _}}, atoll_plumtree_cache:find(a, 1, 3, Cache)).

the_cache_is_bounded_in_bytes_test() ->
    Cache = cache(100, 350, lists:seq(1, 10)),
    ?assertEqual(3, atoll_plumtree_cache:size(Cache)),
    ?assert(atoll_plumtree_cache:bytes(Cache) =< 350),
    ?assertEqual(1, atoll_plumtree_cache:size(cache(100, 10, [1, 2]))).

the_cache_says_what_it_cannot_give_any_more_test() ->
    Cache = cache(3, 1000000, [1, 2, 3, 4, 5]),
    Lacking = fun(Theirs, Ours, Max) ->
        {Messages, Gone} = atoll_plumtree_cache:lacking(a, Theirs, Ours, Max, Cache),
        {[Seq || {gossip, a, 1, Seq, _, _} <- Messages], Gone}
    end,
    ?assertEqual({[3, 4, 5], 2}, Lacking({0, 0, 0}, {1, 5, 0}, 9)),
    ?assertEqual({[3], 2}, Lacking({0, 0, 0}, {1, 5, 0}, 1)),
    ?assertEqual({[3, 5], 2}, Lacking({1, 2, 2#10}, {1, 5, 0}, 9)),
    %% We lack 1 and 2 ourselves: they are not gone yet.
    ?assertEqual({[3, 4, 5], 0}, Lacking({1, 0, 0}, {1, 0, 2#11100}, 9)).

what_is_in_the_cache_already_is_not_added_again_test() ->
    Cache = cache(2, 1000000, [1, 2, 1, 3, 4]),
    ?assertEqual({2, 2}, {atoll_plumtree_cache:size(Cache), atoll_plumtree_cache:dropped(Cache)}).

no_message_of_others_pushes_out_a_young_own_one_test() ->
    Own = cached(me, [1, 2], 0, new_cache(4, 1000000)),
    Filled = cached(a, lists:seq(1, 9), 500, Own),
    ?assertEqual({[1, 2], [8, 9]}, {kept(me, Filled), kept(a, Filled)}),
    %% When it is old it is as any other.
    Later = cached(a, [10, 11], 1000, Filled),
    ?assertEqual({[], [8, 9, 10, 11]}, {kept(me, Later), kept(a, Later)}).

the_cache_is_full_with_young_own_ones_test() ->
    Cache = cached(me, [1], 500, cached(me, [2], 0, cached(a, lists:seq(1, 9), 0, new_cache(4, 1000000)))),
    ?assertEqual([true, true, false], [is_full(Now, Cache) || Now <- [500, 999, 1000]]),
    %% In bytes, but for one that is large.
    Bytes = atoll_plumtree_cache:bytes(cache(9, 1000000, [1])),
    ?assertEqual([false, false, true], [is_full(0, cached(me, lists:seq(1, N), 0, new_cache(20, 5 * Bytes))) || N <- [1, 2, 3]]),
    %% The one to come counts too.
    One = cached(me, [1], 0, new_cache(20, 5 * Bytes)),
    ?assertEqual([false, true, false], [is_full(Now, Next, One) || {Now, Next} <- [{0, Bytes}, {0, 2 * Bytes}, {1000, 9 * Bytes}]]),
    Large = cached(me, [1], 0, new_cache(20, 10)),
    ?assertEqual({true, false, [1]}, {is_full(0, Large), is_full(1000, Large), kept(me, Large)}).

the_cache_keeps_what_a_list_keeps_test_() ->
    atoll_prop:test(?FUNCTION_NAME, cache_as_a_list(), 500).

%% The list has the keys without repetition, oldest first.
cache_as_a_list() ->
    ?FORALL(
        {Max, Keys},
        {range(1, 6), list({oneof([a, b]), range(1, 2), range(1, 6)})},
        begin
            {Cache, List} = lists:foldl(
                fun({Root, Life, Seq} = Key, {Cache0, List0}) ->
                    Message = {gossip, Root, Life, Seq, 1, Seq},
                    {
                        atoll_plumtree_cache:add(Root, Life, Seq, Message, 0, Cache0),
                        case lists:member(Key, List0) of
                            true -> List0;
                            false -> lists:nthtail(max(0, length(List0) + 1 - Max), List0 ++ [Key])
                        end
                    }
                end,
                {new_cache(Max, 1000000), []},
                Keys
            ),
            Found = [
                Key
             || {Root, Life, Seq} = Key <- lists:usort(Keys),
                atoll_plumtree_cache:find(Root, Life, Seq, Cache) =/= error
            ],
            conjunction([
                {found, equals(Found, lists:sort(List))},
                {size, equals(atoll_plumtree_cache:size(Cache), length(List))},
                {bytes, equals(atoll_plumtree_cache:bytes(Cache), length(List) * erlang:external_size(1))}
            ])
        end
    ).

%% Missing messages

first(_Root, [Node | _]) -> Node.

announcers_are_asked_one_after_the_other_test() ->
    {{look_in, 500}, M1} = atoll_plumtree_missing:announced({a, 1, 1}, x, 3, 0, atoll_plumtree_missing:new(9, 500)),
    {waiting, M2} = atoll_plumtree_missing:announced({a, 1, 1}, y, 3, 10, M1),
    {waiting, M3} = atoll_plumtree_missing:announced({a, 1, 1}, x, 3, 20, M2),
    {[{{x, a}, [{a, 1, 1}]}], {look_in, 500}, M4} = atoll_plumtree_missing:due(fun first/2, 500, M3),
    {[{{y, a}, [{a, 1, 1}]}], {look_in, 500}, M5} = atoll_plumtree_missing:due(fun first/2, 1000, M4),
    {[], nothing, M6} = atoll_plumtree_missing:due(fun first/2, 1500, M5),
    ?assertEqual({0, 1}, {atoll_plumtree_missing:size(M6), atoll_plumtree_missing:unanswered(M6)}).

%% It will be the parent.
the_announcer_with_the_shortest_way_is_asked_first_test() ->
    Missing = lists:foldl(
        fun({Node, Hops}, M0) -> element(2, atoll_plumtree_missing:announced({a, 1, 1}, Node, Hops, 0, M0)) end,
        atoll_plumtree_missing:new(9, 500),
        [{x, 5}, {y, 3}, {z, 4}, {y, 6}]
    ),
    {[{{z, a}, _}], _, M1} = atoll_plumtree_missing:due(fun first/2, 500, Missing),
    {[{{x, a}, _}], _, M2} = atoll_plumtree_missing:due(fun first/2, 1000, M1),
    ?assertMatch({[{{y, a}, _}], _, _}, atoll_plumtree_missing:due(fun first/2, 1500, M2)).

one_announcer_is_asked_for_all_that_it_has_test() ->
    Announced = [{{a, 1, 1}, x}, {{a, 1, 2}, y}, {{a, 1, 2}, x}, {{b, 1, 1}, y}],
    Missing = lists:foldl(
        fun({Id, Node}, M0) -> element(2, atoll_plumtree_missing:announced(Id, Node, 3, 0, M0)) end,
        atoll_plumtree_missing:new(9, 500),
        Announced
    ),
    ?assertMatch(
        {[{{x, a}, [{a, 1, 1}, {a, 1, 2}]}, {{y, b}, [{b, 1, 1}]}], _, _},
        atoll_plumtree_missing:due(fun first/2, 500, Missing)
    ).

what_came_is_not_asked_for_and_who_is_gone_is_not_asked_test() ->
    {_, M1} = atoll_plumtree_missing:announced({a, 1, 1}, x, 3, 0, atoll_plumtree_missing:new(9, 500)),
    {_, M2} = atoll_plumtree_missing:announced({a, 1, 2}, x, 3, 0, M1),
    Came = atoll_plumtree_missing:came({a, 1, 1}, M2),
    ?assertMatch({[{{x, a}, [{a, 1, 2}]}], _, _}, atoll_plumtree_missing:due(fun first/2, 500, Came)),
    ?assertMatch({[], nothing, _}, atoll_plumtree_missing:due(fun first/2, 500, atoll_plumtree_missing:lost(x, Came))).

an_announcement_too_many_is_dropped_and_counted_test() ->
    {_, M1} = atoll_plumtree_missing:announced({a, 1, 1}, x, 3, 0, atoll_plumtree_missing:new(1, 500)),
    {waiting, M2} = atoll_plumtree_missing:announced({a, 1, 2}, x, 3, 0, M1),
    ?assertEqual({1, 1}, {atoll_plumtree_missing:size(M2), atoll_plumtree_missing:dropped(M2)}).
