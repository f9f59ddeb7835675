%% SPDX-License-Identifier: Apache-2.0
%% What nodes tell each other of attributes that are asked for often.
-module(atoll_attr_gossip_tests).

-include_lib("eunit/include/eunit.hrl").

-define(G, atoll_attr_gossip).

new(Self) -> new(Self, #{}).

new(Self, Given) ->
    Defaults = maps:map(fun(_, {_, Default}) -> Default end, ?G:options()),
    ?G:new(#{self => Self, incarnation => 100}, maps:merge(Defaults, Given)).

asked(Times, G) ->
    lists:foldl(fun(I, G1) -> ?G:asked([load], I, G1) end, G, lists:seq(1, Times)).

rand() -> rand:seed_s(exsss, 1).

told(Now, G) ->
    {[{b, Message}], _, _} = ?G:tell({[b], rand()}, Now, G),
    Message.

what_is_asked_for_often_is_of_interest_for_a_minute_test() ->
    ?assertMatch({[], _}, ?G:interests(2, asked(2, new(a)))),
    ?assertMatch({[load], _}, ?G:interests(3, asked(3, new(a)))),
    ?assertMatch({[], _}, ?G:interests(60003, asked(3, new(a)))),
    %% Three times, but seldom.
    Seldom = lists:foldl(fun(I, G) -> ?G:asked([load], I * 20000, G) end, new(a), [1, 2, 3]),
    ?assertMatch({[], _}, ?G:interests(60000, Seldom)).

who_goes_on_asking_renews_the_interest_test() ->
    Renewed = lists:foldl(fun(I, G) -> ?G:asked([load], I * 5000, G) end, new(a), lists:seq(1, 20)),
    ?assertMatch({[load], _}, ?G:interests(140000, Renewed)).

an_interest_is_heard_of_and_does_not_grow_on_the_way_test() ->
    Heard = ?G:heard({a, told(10003, asked(3, new(a)))}, 500000, new(b)),
    ?assertMatch({[load], _}, ?G:interests(549999, Heard)),
    ?assertMatch({[], _}, ?G:interests(550000, Heard)),
    %% Told back, it is no news.
    Back = ?G:heard({b, told(500000, Heard)}, 10100, asked(3, new(a))),
    ?assertMatch({[], _}, ?G:interests(60010, Back)).

a_row_is_known_with_its_age_test() ->
    A = ?G:own(#{load => 7}, 1000, new(a)),
    B = ?G:heard({a, told(3000, A)}, 90000, new(b)),
    ?assertEqual({[{a, #{load => 7}, 2500}], [c]}, ?G:rows([a, c], [load], {90500, 5000}, B)),
    ?assertEqual({[], [a]}, ?G:rows([a], [load], {90500, 2000}, B)),
    ?assertEqual({[], [a]}, ?G:rows([a], [load, mem], {90500, 5000}, B)).

a_row_is_news_once_test() ->
    A = ?G:own(#{load => 7}, 1000, new(a)),
    Message = told(1000, A),
    B = ?G:heard({a, Message}, 1, new(b)),
    ?assertNot(?G:is_quiet(B)),
    %% Not to the one who told it.
    {[{a, {gossip, [], []}}], _, _} = tell_all([a], ?G:heard({a, {gossip, [{x, 1000}], []}}, 1, B)),
    {[{c, {gossip, [], [{a, 101, _, #{load := 7}}]}}], _, Quiet} = ?G:tell({[c], rand()}, 1, B),
    ?assert(?G:is_quiet(Quiet)),
    ?assert(?G:is_quiet(?G:heard({d, Message}, 2, Quiet))).

tell_all(Peers, G) ->
    {Messages, R, Next} = ?G:tell({Peers, rand()}, 1, G),
    {[{P, {gossip, [], Rows}} || {P, {gossip, _, Rows}} <- Messages], R, Next}.

an_older_row_is_no_news_test() ->
    One = ?G:own(#{load => 7}, 1000, new(a)),
    Two = ?G:own(#{load => 70}, 2000, One),
    B = ?G:heard({a, told(1000, One)}, 50, ?G:heard({a, told(2000, Two)}, 50, new(b))),
    ?assertMatch({[{a, #{load := 70}, 0}], []}, ?G:rows([a], [load], {50, 1000}, B)).

what_hardly_changes_is_told_seldom_test() ->
    Told = fun(Values, At, G0) ->
        G = ?G:own(Values, At, G0),
        {not ?G:is_quiet(G), element(3, ?G:tell({[b], rand()}, At, G))}
    end,
    {true, G1} = Told(#{load => 100, os => linux}, 0, new(a)),
    {false, G2} = Told(#{load => 104, os => linux}, 10000, G1),
    {true, G3} = Told(#{load => 106, os => linux}, 20000, G2),
    {false, G4} = Told(#{load => 106, os => linux}, 49999, G3),
    {true, G5} = Told(#{load => 106, os => linux}, 50000, G4),
    {true, G6} = Told(#{load => 106, os => plan9}, 50001, G5),
    {true, _} = Told(#{load => undefined, os => plan9}, 50002, G6).

%% Of numbers too large to calculate with, any other one is a change.
no_value_is_too_large_to_be_compared_test() ->
    Huge = [1 bsl 1100, 1.0e308, -1.0e308, 1.7e308, 1],
    lists:foldl(
        fun(Value, G0) ->
            G = ?G:own(#{load => Value}, 0, G0),
            ?assertNot(?G:is_quiet(G)),
            {_, _, Told} = ?G:tell({[b], rand()}, 0, G),
            ?assert(?G:is_quiet(?G:own(#{load => Value}, 0, Told))),
            Told
        end,
        new(a),
        Huge
    ).

what_was_asked_need_not_be_asked_again_test() ->
    G = ?G:enters(b, #{load => 1, mem => 2}, 0, new(a)),
    ?assertMatch({[{b, #{load := 1}, 10}], []}, ?G:rows([b], [load], {10, 100}, G)),
    %% Less is known of it now, so the older stays.
    ?assertMatch({[{b, #{mem := 2}, 20}], []}, ?G:rows([b], [mem], {20, 100}, ?G:enters(b, #{load => 3}, 20, G))).

rows_are_forgotten_test() ->
    G = ?G:heard({a, told(0, ?G:own(#{load => 7}, 0, new(a)))}, 0, new(b)),
    ?assertMatch(#{rows := 1}, ?G:counts(element(2, ?G:interests(90000, G)))),
    ?assertMatch(#{rows := 0}, ?G:counts(element(2, ?G:interests(90001, G)))).

what_is_odd_is_counted_and_left_out_test() ->
    Rows = [{b, 0, 0, #{}}, {b, 1, -1, #{}}, {"b", 1, 1, #{}}, {c, 5, 1, #{load => 1}}, x],
    G = ?G:heard({z, {gossip, [{"x", 1}, {y, -1}, y], Rows}}, 0, new(a)),
    ?assertMatch(#{odd := 7, rows := 1}, ?G:counts(G)),
    ?assertMatch(#{odd := 1, rows := 0}, ?G:counts(?G:heard({z, {gossip, x, [y | z]}}, 0, new(a)))),
    Many = [{list_to_atom("n" ++ integer_to_list(I)), 1, 0, #{}} || I <- lists:seq(1, 201)],
    ?assertMatch(#{odd := 1, rows := 0}, ?G:counts(?G:heard({z, {gossip, [], Many}}, 0, new(a)))).

a_row_has_a_bound_test() ->
    Names = [list_to_atom("n" ++ integer_to_list(I)) || I <- lists:seq(1, 65)],
    Heard = fun(Row) -> ?G:counts(?G:heard({z, {gossip, [], [Row]}}, 0, new(a))) end,
    Odd = [
        {b, 1, 0, maps:from_keys(Names, 1)},
        {b, 1, 0, #{load => binary:copy(<<0>>, 65536)}},
        {b, 1, 0, #{"load" => 1}},
        {b, 1 bsl 58, 0, #{load => 1}}
    ],
    [?assertMatch(#{odd := 1, rows := 0}, Heard(Row)) || Row <- Odd],
    Good = [
        {b, 1, 0, maps:from_keys(tl(Names), 1)},
        {b, (1 bsl 58) - 1, 0, #{load => binary:copy(<<0>>, 65000)}}
    ],
    [?assertMatch(#{odd := 0, rows := 1}, Heard(Row)) || Row <- Good].

%% What nobody would take is not told.
an_own_row_beyond_the_bound_is_not_told_test() ->
    Large = ?G:own(#{load => binary:copy(<<0>>, 65536)}, 0, new(a)),
    ?assert(?G:is_quiet(Large)),
    ?assertMatch(#{refused := 1}, ?G:counts(Large)),
    ?assertNot(?G:is_quiet(?G:own(#{load => 1}, 0, Large))).

bounds_hold_test() ->
    G = new(a, #{max_rows => 2, max_interests => 2, max_told => 2}),
    Rows = [{N, 1, 0, #{}} || N <- [b, c]],
    Two = ?G:heard({z, {gossip, [{i, 9}, {j, 9}], Rows}}, 0, G),
    ?assertMatch(#{rows := 2, interests := 2, refused := 2}, ?G:counts(?G:heard({z, {gossip, [{k, 9}], [{d, 1, 0, #{}}]}}, 0, Two))).

%% What cannot be told must not wait to be.
a_row_without_room_is_no_news_test() ->
    Full = ?G:heard({z, {gossip, [], [{b, 1, 0, #{}}]}}, 0, new(a, #{max_rows => 1, max_told => 1})),
    {_, _, Told} = ?G:tell({[y], rand()}, 0, Full),
    Refused = ?G:heard({z, {gossip, [], [{c, 1, 0, #{}}]}}, 0, Told),
    ?assertMatch(#{rows := 1, refused := 1, rows_heard := 1}, ?G:counts(Refused)),
    ?assert(?G:is_quiet(Refused)).

there_is_room_for_the_own_row_test() ->
    Full = ?G:heard({z, {gossip, [], [{b, 1, 0, #{}}]}}, 0, new(a, #{max_rows => 1})),
    {gossip, _, Rows} = told(0, ?G:own(#{load => 7}, 0, Full)),
    ?assert(lists:keymember(a, 1, Rows)).

%% More news come each time than a message takes.
no_news_wait_because_of_their_names_test() ->
    Told = fun(Version, {Rand0, Seen, G0}) ->
        Heard = lists:foldl(fun(N, G1) -> ?G:heard({z, {gossip, [], [{N, Version, 0, #{}}]}}, 0, G1) end, G0, [c, d, e, f]),
        {[{y, {gossip, _, [{Node, _, _, _}]}}], Rand, G} = ?G:tell({[y], Rand0}, 0, Heard),
        {Rand, [Node | Seen], G}
    end,
    {_, Seen, _} = lists:foldl(Told, {rand(), [], new(a, #{max_told => 1})}, lists:seq(1, 40)),
    ?assertEqual([c, d, e, f], lists:usort(Seen)).
