%% SPDX-License-Identifier: Apache-2.0
%% Each rule of the directory: whom news go to, what a comparison costs, who is taken for gone,
%% and what a stranger can do.
-module(atoll_directory_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(ME, me).

%% What a node says of itself

a_node_knows_itself_test() ->
    ?assertEqual([{?ME, {7, {[red], all, []}}}], known(new([red]))).

a_change_is_told_at_once_and_what_follows_soon_together_test() ->
    {S1, E1} = handle({cast, {cliques, [blue]}}, linked([a], new([]))),
    ?assertEqual([{a, {news, [{?ME, {8, {[blue], all, []}}}]}}], sends(E1)),
    {S2, E2} = handle({cast, {relays, none}}, S1),
    {S3, E3} = handle({cast, {cliques, [blue, red]}}, S2),
    ?assertEqual([], sends(E2 ++ E3)),
    {_, E4} = handle({timeout, gather}, S3),
    ?assertEqual([{a, {news, [{?ME, {10, {[blue, red], none, []}}}]}}], sends(E4)).

what_changes_nothing_is_not_told_test() ->
    ?assertEqual([], element(2, handle({cast, {cliques, [red]}}, linked([a], new([red]))))).

a_new_life_is_told_test() ->
    {_, E} = handle({cast, {incarnation, 20}}, linked([a], new([red]))),
    ?assertEqual([{a, {news, [{?ME, {20, {[red], all, []}}}]}}], sends(E)).

who_leaves_says_so_and_stays_so_until_a_new_life_test() ->
    {S1, E1} = handle({cast, leave}, linked([a], new([red]))),
    ?assertEqual([{a, {news, [{?ME, {7, gone}}]}}], sends(E1)),
    {S2, E2} = news(a, [{?ME, {9, gone}}], S1),
    ?assertEqual([], [N || {_, {news, N}} <- sends(E2)]),
    {S3, _} = handle({cast, {incarnation, 20}}, S2),
    ?assertEqual([{?ME, {20, {[red], all, []}}}], known(S3)).

who_is_said_to_be_gone_or_elsewhere_says_the_contrary_test() ->
    [
        begin
            {S, E} = news(a, [{?ME, Entry}], linked([a], new([red]))),
            ?assertEqual([{?ME, {Version, {[red], all, []}}}], known(S)),
            ?assertMatch([_ | _], [Told || {a, {_, [{?ME, {V, {[red], _, _}}}] = Told}} <- sends(E), V =:= Version])
        end
     || {Entry, Version} <- [{{7, gone}, 8}, {{30, gone}, 31}, {{7, {[zoo], all, []}}, 8}, {{9, {[red], all, []}}, 10}]
    ].

links_are_told_anew_when_fewer_than_half_stand_test() ->
    {S1, _} = handle({cast, {links, [a, b, c, d]}}, linked([z], new([]))),
    ?assertEqual({[], all, [a, b, c, d]}, atoll_directory:place(S1)),
    {S2, _} = handle({cast, {links, [c, d, e, f]}}, S1),
    ?assertEqual({[], all, [a, b, c, d]}, atoll_directory:place(S2)),
    {S3, _} = handle({cast, {links, [d, e, f, g]}}, S2),
    ?assertEqual({[], all, [d, e, f, g]}, atoll_directory:place(S3)).

of_one_or_two_links_and_where_there_is_room_all_are_told_test() ->
    Tell = fun(Links, S0) -> {S, _} = handle({cast, {links, Links}}, S0), S end,
    [
        ?assertEqual({[], all, Told}, atoll_directory:place(lists:foldl(Tell, linked([z], new([])), Given)))
     || {Given, Told} <- [
            %% A node in the middle of a line: nobody else may tell of its second link.
            {[[a], [a, b]], [a, b]},
            {[[a, b], [b, c]], [b, c]},
            {[[a, b], [b]], [b]},
            {[[a, b], [a, b, c]], [a, b, c]},
            {[[a, b, c], [a, b, d]], [a, b, c]},
            {[[a, b, c], []], []}
        ]
    ].

what_has_no_room_is_left_out_and_counted_test() ->
    {S1, _} = handle({cast, {links, [a, b, c, d, e, f]}}, new([])),
    ?assertEqual({[], all, [a, b, c, d]}, atoll_directory:place(S1)),
    {S2, _} = handle({cast, {cliques, lists:seq(1, 70)}}, S1),
    {Cliques, _, _} = atoll_directory:place(S2),
    ?assertEqual({64, 6}, {length(Cliques), maps:get(own_place_cut, maps:get(dropped, atoll_directory:summary(S2)))}).

%% News

news_go_to_all_but_the_teller_and_its_co_members_test() ->
    S0 = linked([a, b, c, d], knowing([{a, [red]}, {b, [red]}, {c, [blue]}, {d, []}], new([red, blue]))),
    {_, E} = news(a, [{n1, {1, {[], all, []}}}], S0),
    ?assertEqual([c, d], lists:sort([To || {To, {news, _}} <- sends(E)])).

what_a_node_says_of_itself_goes_to_its_co_members_test() ->
    S0 = linked([a, b], knowing([{a, [red]}, {b, [red]}], new([red]))),
    {_, E} = handle({cast, {relays, none}}, S0),
    ?assertEqual([a, b], lists:sort([To || {To, {news, _}} <- sends(E)])).

who_tells_what_is_gathered_need_not_hear_it_test() ->
    {S1, _} = handle({cast, {relays, none}}, linked([a, b, c], new([]))),
    {S2, _} = news(a, [{n1, {1, {[], all, []}}}], S1),
    {S3, _} = news(b, [{n1, {1, {[], all, []}}}], S2),
    {_, E} = handle({timeout, gather}, S3),
    ?assertEqual([{c, {news, [{n1, {1, {[], all, []}}}]}}], sends(E)).

news_are_told_once_test() ->
    {S1, _} = news(a, [{n1, {1, {[], all, []}}}], linked([a, b], new([]))),
    {S2, _} = handle({timeout, gather}, S1),
    {_, E} = news(b, [{n1, {1, {[], all, []}}}], S2),
    ?assertEqual([], E).

who_tells_what_is_over_hears_so_test() ->
    S0 = linked([a], knowing([{n1, [red]}], new([]))),
    {S1, _} = handle({cast, {member_down, n1, dead}}, S0),
    {_, E} = news(a, [{n1, {1, {[red], all, []}}}], S1),
    ?assertEqual([{a, {entries, [{n1, {1, gone}}]}}], sends(E)).

a_message_has_at_most_so_many_entries_test() ->
    Many = [{member(I), {1, {[], all, []}}} || I <- lists:seq(1, 450)],
    {S1, _} = handle({cast, {relays, none}}, linked([a, b], new(#{max_news => 100}, []))),
    S = lists:foldl(fun(I, S0) -> element(1, news(a, lists:sublist(Many, I, 50), S0)) end, S1, lists:seq(1, 450, 50)),
    {_, E} = handle({timeout, gather}, S),
    ?assertEqual([100, 100, 100, 100, 50], [length(Entries) || {b, {news, Entries}} <- sends(E)]).

members_that_are_down_are_gone_and_nobody_is_told_test() ->
    S0 = linked([a], knowing([{n1, [red]}], new([red]))),
    {S, E} = handle({cast, {member_down, n1, dead}}, S0),
    ?assertEqual([{notify, {gone, n1}}], E),
    ?assertEqual([?ME], atoll_directory_table:nodes(atoll_directory:table(S))),
    ?assertEqual([], element(2, handle({cast, {member_down, ?ME, dead}}, S))).

%% Comparing

equal_tables_cost_one_message_test() ->
    {root, Root} = root(knowing([{n1, [red]}, {n2, [blue]}], new([]))),
    {_, E} = message(a, {root, Root}, knowing([{n2, [blue]}, {n1, [red]}], new([]))),
    ?assertEqual([], E).

different_tables_become_equal_and_only_what_differs_travels_test() ->
    Common = [{member(I), [red]} || I <- lists:seq(1, 2000)],
    A = knowing(?ME, Common ++ [{x1, [red]}, {x2, [blue]}], new([])),
    B = knowing(?ME, Common ++ [{x2, [green]}, {x3, [blue]}], new([])),
    {A1, B1, Entries, Bytes} = compare(A, B),
    ?assertEqual(known(A1), known(B1)),
    %% Of x2 both, one of which is the answer to the other.
    ?assert(Entries =< 6),
    ?assert(Bytes < 2500).

the_first_neighbour_is_asked_at_once_and_the_others_later_test() ->
    {S1, E1} = handle({up, a}, new([])),
    ?assertMatch([{a, {root, _}}], sends(E1)),
    {_, E2} = handle({up, b}, knowing([{n1, []}], S1)),
    ?assertEqual([], sends(E2)),
    ?assertMatch([_], [Ms || {timer, pause, Ms} <- E2]).

%% A link that is there on demand is closed when it has been quiet.
it_seldom_compares_with_who_shares_no_clique_test() ->
    Compared = fun(Cliques) ->
        S0 = linked([m, z], knowing([{m, [c]}, {z, [d]}], new(Cliques))),
        {To, _} = lists:mapfoldl(
            fun(_, S) ->
                {S1, E} = handle({timeout, compare}, S),
                {[Node || {Node, {root, _}} <- sends(E)], S1}
            end,
            S0,
            lists:seq(1, 320)
        ),
        length([z || z <- lists:append(To)])
    end,
    %% Half of one in eight; and half of all where there is no co-member.
    ?assert(Compared([c]) =< 40),
    ?assert(Compared([c]) > 0),
    ?assert(Compared([e]) >= 100).

what_is_learned_at_large_is_not_told_but_compared_test() ->
    S0 = linked([a, b], knowing([{a, []}, {b, []}], new([]))),
    {S1, E1} = message(a, {entries, [{member(I), {1, {[], all, []}}} || I <- lists:seq(1, 100)]}, S0),
    ?assertEqual([], sends(E1)),
    {_, E2} = handle({timeout, pause}, S1),
    ?assertMatch([{b, {root, _}}], sends(E2)).

%% Who is gone

a_co_member_without_a_link_is_taken_for_gone_test() ->
    S0 = linked([a], knowing([{a, [red]}, {n1, [red]}, {n2, [blue]}], new([red]))),
    {S1, E1} = at(14000, {timeout, watch}, S0),
    ?assertEqual([], sends(E1)),
    {S2, E2} = at(17000, {timeout, watch}, S1),
    ?assertEqual([{a, {news, [{n1, {1, gone}}]}}], sends(E2)),
    ?assertEqual([a, ?ME, n2], atoll_directory_table:nodes(atoll_directory:table(S2))),
    %% It says the contrary: then it has twice the time.
    {S3, _} = at(18000, {message, a, {1, {news, [{n1, {2, {[red], all, []}}}]}}}, S2),
    {S4, E4} = at(40000, {timeout, watch}, S3),
    ?assertEqual([], notices(E4)),
    {_, E5} = at(50000, {timeout, watch}, S4),
    ?assertEqual([{gone, n1}], notices(E5)).

a_co_member_with_a_link_is_not_test() ->
    S0 = linked([a], knowing([{a, [red]}, {n1, [red]}], new([red]))),
    {S1, _} = at(10000, {up, n1}, S0),
    {S2, E2} = at(60000, {timeout, watch}, S1),
    ?assertEqual([], notices(E2)),
    {S3, _} = at(70000, {down, n1, lost}, S2),
    {S4, E4} = at(80000, {timeout, watch}, S3),
    ?assertEqual([], notices(E4)),
    {_, E5} = at(90000, {timeout, watch}, S4),
    ?assertEqual([{gone, n1}], notices(E5)).

who_has_no_links_blames_nobody_test() ->
    S0 = knowing([{n1, [red]}], new([red])),
    ?assertEqual([], notices(element(2, at(90000, {timeout, watch}, S0)))).

what_no_chain_leads_to_is_forgotten_after_two_sweeps_test() ->
    Known = [{a, [red]}, {n1, [red, blue]}, {n2, [blue]}, {x1, [grey]}, {x2, [grey]}],
    S0 = linked([a], knowing(Known, new([red]))),
    {S1, E1} = handle({timeout, sweep}, S0),
    ?assertEqual([], notices(E1)),
    {S2, E2} = handle({timeout, sweep}, S1),
    ?assertEqual([{gone, x1}, {gone, x2}], notices(E2)),
    %% A neighbour that has not swept does not bring it back,
    {S3, _} = news(a, [{x1, {1, {[grey], all, []}}}], S2),
    ?assertEqual([a, ?ME, n1, n2], atoll_directory_table:nodes(atoll_directory:table(S3))),
    %% but one over whom it is reached, or a later version does.
    {S4, _} = news(a, [{x1, {1, {[grey], all, []}}}, {y, {1, {[blue, grey], all, []}}}], S3),
    ?assertEqual([a, ?ME, n1, n2, x1, y], atoll_directory_table:nodes(atoll_directory:table(S4))),
    {S5, _} = news(a, [{x2, {2, {[grey], all, []}}}], S3),
    ?assertEqual([a, ?ME, n1, n2, x2], atoll_directory_table:nodes(atoll_directory:table(S5))).

%% Bounds and strangers

places_have_a_bound_test() ->
    S0 = linked([a], new(#{max_places => 3}, [])),
    {S, _} = news(a, [{member(I), {1, {[], all, []}}} || I <- lists:seq(1, 9)], S0),
    ?assertMatch(#{places := 3, dropped := #{places_refused := 7}}, atoll_directory:summary(S)).

what_a_node_sends_at_most_is_no_measure_of_what_others_may_test() ->
    Told = [{list_to_atom("n" ++ integer_to_list(I)), {5, {[red], all, []}}} || I <- lists:seq(1, 10)],
    {S, E} = news(a, Told, linked([a, b], new(#{max_news => 4}, []))),
    ?assertEqual(11, length(known(S))),
    %% It keeps to its own.
    ?assertEqual([4, 4, 2], [length(News) || {b, {news, News}} <- sends(E)]).

what_is_odd_is_counted_and_the_rest_is_taken_test() ->
    Good = {n1, {1, {[red], all, []}}},
    Odd = [
        {n2, {0, gone}}, {n2, {1 bsl 80, gone}}, {n2, {1, {[b, a], all, []}}}, {n2, {1, {[a], some, []}}},
        {n2, {1, {[a | b], all, []}}}, {n2, {1, {lists:seq(1, 65), all, []}}}, {"n2", {1, gone}},
        {n2, {1, {[lists:duplicate(400, $a)], all, []}}}, {n2, {1, {[], all, [5]}}}, n2
    ],
    {S, _} = news(a, [Good | Odd], linked([a], new([]))),
    ?assertEqual([?ME, n1], lists:sort([N || {N, _} <- known(S)])),
    ?assertMatch(#{dropped := #{odd := 1, newer_version := 0}}, atoll_directory:summary(S)),
    {S2, []} = handle({message, a, {2, {news, [Good]}}}, S),
    ?assertMatch(#{dropped := #{odd := 1, newer_version := 1}}, atoll_directory:summary(S2)).

strangers_test_() ->
    atoll_prop:test(?FUNCTION_NAME, ?FORALL(Messages, list(odd()), survives(Messages)), 1000).

odd() ->
    Index = oneof([choose(-1, 130), any()]),
    Entry = oneof([any(), {oneof([?ME, a, b, n1]), {oneof([choose(-1, 9), 1 bsl 57, any()]), oneof([gone, any(), {[red], all, []}, {any(), any(), any()}])}}]),
    Listed = fun(T) -> oneof([any(), list(T), [any() | any()]]) end,
    oneof([
        any(),
        {1, any()},
        {1, {oneof([news, entries]), Listed(Entry)}},
        {1, {hashes, oneof([binary(), binary(512), any()])}},
        {1, {oneof([prints, wanted]), Listed({Index, oneof([binary(), binary(8), any()])})}},
        {1, {root, any()}},
        {oneof([0, 2, any()]), {news, []}}
    ]).

survives(Messages) ->
    S0 = linked([a, b], knowing([{a, [red]}, {n1, [red]}], new([red]))),
    S = lists:foldl(fun(M, S1) -> element(1, handle({message, a, M}, S1)) end, S0, Messages),
    {T, _} = handle({timeout, gather}, S),
    %% It goes on, and still stands where it stood.
    [{?ME, {_, {[red], all, []}}}] = [Known || {?ME, _} = Known <- known(T)],
    {_, E} = handle({cast, {relays, none}}, element(1, handle({timeout, gather}, T))),
    lists:any(fun({_, {news, _}}) -> true; (_) -> false end, sends(E)).

%% The directory under test

new(Cliques) -> new(#{}, Cliques).

new(Options, Cliques) ->
    {S, _} = atoll_directory:init(
        #{self => ?ME, incarnation => 7, seed => 1, options => Options, place => {Cliques, all, []}}, 0
    ),
    S.

linked(Nodes, S) -> lists:foldl(fun(Node, S0) -> element(1, handle({up, Node}, S0)) end, S, Nodes).

%% Learned before now, from somebody without a link.
knowing(Places, S) -> knowing(z, Places, S).

knowing(From, Places, S) ->
    lists:foldl(fun({N, Cliques}, S0) -> element(1, news(From, [{N, {1, {lists:sort(Cliques), all, []}}}], S0)) end, S, Places).

news(From, Entries, S) -> message(From, {news, Entries}, S).

message(From, Message, S) -> handle({message, From, {1, Message}}, S).

handle(Event, S) -> at(1000, Event, S).

at(Now, Event, S) -> atoll_directory:handle(Event, Now, S).

known(S) ->
    Table = atoll_directory:table(S),
    [{Node, atoll_directory_table:entry(Node, Table)} || Node <- atoll_directory_table:nodes(Table)].

sends(Effects) -> [{To, Message} || {send, To, {1, Message}} <- Effects].

notices(Effects) -> [Notice || {notify, Notice} <- Effects].

member(I) -> list_to_atom(lists:concat(["m", 10000 + I])).

root(S) ->
    {_, E} = handle({timeout, compare}, linked([zz], S)),
    [{zz, Root}] = sends(E),
    Root.

%% The first asks; all messages between the two are delivered: how many entries, and bytes.
compare(A, B) -> deliver([{a, b, root(A)}], #{a => A, b => B}, 0, 0).

deliver([], #{a := A, b := B}, Entries, Bytes) ->
    {A, B, Entries, Bytes};
deliver([{From, To, Message} | Messages], States, Entries, Bytes) ->
    {S, Effects} = message(From, Message, map_get(To, States)),
    Answers = [{To, Peer, Answer} || {Peer, Answer} <- sends(Effects), is_map_key(Peer, States)],
    More = case Message of {entries, Some} -> length(Some); _ -> 0 end,
    deliver(Messages ++ Answers, States#{To := S}, Entries + More, Bytes + erlang:external_size(Message)).
