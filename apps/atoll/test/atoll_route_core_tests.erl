%% SPDX-License-Identifier: Apache-2.0
%% What the route room makes of what it hears, and what it answers.
-module(atoll_route_core_tests).

-include_lib("eunit/include/eunit.hrl").

-define(SETTLE, {timeout, settle}).

config() ->
    #{
        self => n1, incarnation => 7, seed => 1, directory => #{}, relays => all, tells => lone, left => false
    }.

start(Config) ->
    {State, _} = atoll_route_core:init(Config, 0),
    State.

%% The state, and the effects of all.
run(Events, State) ->
    lists:foldl(
        fun(Event, {S0, Effects}) ->
            {S, More} = atoll_route_core:handle(Event, 0, S0),
            {S, Effects ++ More}
        end,
        {State, []},
        Events
    ).

after_all(Events, State) -> element(1, run(Events, State)).

ask(Request, State) ->
    {_, [{reply, from, Answer}]} = atoll_route_core:handle({call, from, Request}, 0, State),
    Answer.

news(From, Entries) -> {message, From, {1, {news, Entries}}}.

%% n1 and n2 in a, n2 and n3 in b.
two_groups() ->
    [
        {cast, {groups, [a]}},
        {up, n2},
        news(n2, [{n2, {5, {[a, b], all, []}}}, {n3, {5, {[b], all, []}}}])
    ].

policies(Effects) -> [Policy || {act, {relay_policy, Policy}} <- Effects].

sent_to(Node, Effects) -> [Message || {send, To, Message} <- Effects, To =:= Node].

a_route_begins_with_a_link_and_ends_at_the_node_test() ->
    State = after_all(two_groups(), start(config())),
    ?assertEqual({ok, [n1, n2, n3]}, ask({route, n3, #{}}, State)),
    ?assertEqual({ok, [n1, n2]}, ask({route, n2, #{avoid => [], salt => x}}, State)),
    ?assertMatch({error, {no_route, _}}, ask({route, n3, #{avoid => [n2]}}, State)),
    ?assertMatch({error, {no_route, _}}, ask({route, n3, #{}}, after_all([{down, n2, gone}], State))),
    ?assertMatch({error, {unknown, _}}, ask({route, n9, #{}}, State)),
    ?assertEqual([n2, n3], ask(reachable, State)).

who_refuses_to_relay_is_a_refusal_with_a_sentence_test() ->
    State = after_all([news(n2, [{n2, {6, {[a, b], [c], []}}}])], after_all(two_groups(), start(config()))),
    {error, {refused, Sentence}} = ask({route, n3, #{}}, State),
    ?assertEqual(
        "from n1 to n3 the only way is over n2, which relays for members of c alone", lists:flatten(Sentence)
    ),
    {error, {route, _} = Error} = ask({explain, n3, 2, #{}}, State),
    ?assertEqual(lists:flatten(Sentence), lists:flatten(atoll_route_core:format_error(Error))).

a_route_is_no_longer_than_a_relay_lets_pass_test() ->
    Chain = [{list_to_atom("n" ++ integer_to_list(I)), {5, {[I, I + 1], all, []}}} || I <- lists:seq(2, 9)],
    Events = [{cast, {groups, [a]}}, {up, n2}, news(n2, [{n2, {5, {lists:sort([a, 3]), all, []}}} | tl(Chain)])],
    State = after_all(Events, start(config())),
    ?assertMatch({ok, [n1, n2, n3, n4, n5, n6, n7]}, ask({route, n7, #{}}, State)),
    ?assertMatch({error, {no_route, _}}, ask({route, n8, #{}}, State)),
    ?assertMatch({ok, [_, _, _, _, _, _, _, n8]}, ask({route, n8, #{max_hops => 7}}, State)).

an_explanation_has_reasons_and_others_test() ->
    Events = two_groups() ++ [{up, n4}, news(n4, [{n4, {5, {[a, b], all, []}}}])],
    {ok, #{route := [n1, Gateway, n3], hops := Hops, alternatives := [[n1, Other, n3]]}} =
        ask({explain, n3, 2, #{}}, after_all(Events, start(config()))),
    ?assertEqual([n2, n4], lists:sort([Gateway, Other])),
    ?assertMatch([#{via := {clique, a}, choices := 1}, #{via := {clique, b}, choices := 2}], Hops).

%% n1 in a; n2 and n5 join a and b; n3, n4 and n5 in b.
the_members_of_a_group_are_told_nearest_first_test() ->
    Events = [
        {cast, {groups, [a]}},
        {up, n2},
        news(n2, [{n2, {5, {[a, b], all, []}}}, {n6, {5, {[c], all, []}}} | [{N, {5, {[b, c], all, []}}} || N <- [n3, n4, n5]]])
    ],
    State = after_all(Events, start(config())),
    ?assertMatch([n2, _, _, _], ask({members, b, salt}, State)),
    [?assertEqual([n2, n3, n4, n5], lists:sort(ask({members, b, Salt}, State))) || Salt <- lists:seq(1, 20)],
    %% Nobody of c is linked: a gateway of b comes before n6, which is behind them.
    Orders = [ask({members, c, Salt}, State) || Salt <- lists:seq(1, 100)],
    ?assertEqual([n3, n4, n5], lists:usort([hd(Order) || Order <- Orders])),
    ?assertEqual([[n3, n4, n5, n6]], lists:usort([lists:sort(Order) || Order <- Orders])),
    %% Itself is no other one; and there are none of a group that nobody is in.
    ?assertEqual([n2], ask({members, a, salt}, State)),
    ?assertEqual([], ask({members, nowhere, salt}, State)),
    %% Who is gone is in no group.
    Left = after_all([{cast, {member_down, N, left}} || N <- [n3, n4, n5]], State),
    ?assertEqual([n2], ask({members, b, salt}, Left)),
    %% One to whom no way is known is told too.
    ?assertEqual([n6], ask({members, c, salt}, Left)).

%% Its place

entries_of(Node, Effects) ->
    [Entry || {send, _, {1, {Kind, Entries}}} <- Effects, Kind =:= news orelse Kind =:= entries, {N, Entry} <- Entries, N =:= Node].

%% Others would take a gateway that has just started for one that leads nowhere, and some of them
%% would do so for longer than others.
nobody_hears_of_this_node_before_its_groups_are_known_test() ->
    Asks = [
        {message, n2, {1, {root, 0}}},
        {message, n2, {1, {prints, [{I, <<>>} || I <- lists:seq(1, 128)]}}}
    ],
    Known = news(n2, [{n2, {5, {[a, b], all, []}}}, {n3, {5, {[b], all, []}}}]),
    {Before, Silence} = run([{up, n2}, {up, n4}, {down, n4, lost}, Known, ?SETTLE, {timeout, compare} | Asks], start(config())),
    ?assertEqual([], [Send || {send, _, _} = Send <- Silence]),
    %% With the groups it begins as with links that have just come.
    {State, Said} = run([{cast, {groups, [a]}}], Before),
    ?assertMatch([{1, {root, _}}], sent_to(n2, Said)),
    ?assertEqual([], sent_to(n4, Said)),
    {_, Told} = run([Known | Asks], State),
    ?assertMatch([_ | _], entries_of(n1, Told)),
    ?assertEqual([], [Entry || {_, Place} = Entry <- entries_of(n1, Told), Place =/= {[a], all, []}]).

who_is_in_no_group_says_so_when_that_is_known_test() ->
    {_, Said} = run([{up, n2}, {cast, groups_known}], start(config())),
    ?assertMatch([{1, {root, _}}], sent_to(n2, Said)),
    %% Groups that it was told of before stay.
    {State, _} = run([{cast, {groups, [a]}}, {cast, groups_known}], start(config())),
    ?assertMatch(#{groups := [a]}, ask(status, State)).

%% Links that no clique explains

a_lone_node_tells_of_its_links_with_nodes_that_are_known_test() ->
    Known = news(n2, [{n2, {5, {[a], all, []}}}]),
    {State, Effects} = run([{cast, groups_known}, {up, n2}, {up, n3}, Known, ?SETTLE, {timeout, gather}], start(config())),
    ?assertMatch(#{tells_links := [n2]}, ask(status, State)),
    Told = [Entry || {1, {news, Entries}} <- sent_to(n3, Effects), {n1, Entry} <- Entries],
    ?assertMatch({_, {[], all, [n2]}}, lists:last(Told)),
    %% In a group it is reached through that.
    ?assertMatch(#{tells_links := []}, ask(status, after_all([{cast, {groups, [a]}}, ?SETTLE], State))).

a_neighbour_is_told_of_unless_a_clique_explains_it_test() ->
    Of = fun(Tells, Events) -> ask(status, after_all(Events ++ [?SETTLE], start((config())#{tells := Tells}))) end,
    Events = two_groups() ++ [{up, n3}, {up, n4}, news(n4, [{n4, {5, {[], all, []}}}])],
    Neighbours = [{cast, {neighbour_up, N}} || N <- [n2, n3]],
    ?assertMatch(#{tells_links := [n3]}, Of(neighbours, Events ++ Neighbours)),
    ?assertMatch(#{tells_links := []}, Of(neighbours, Events ++ Neighbours ++ [{cast, {neighbour_down, n3}}])),
    %% A neighbour without a link is none.
    ?assertMatch(#{tells_links := []}, Of(neighbours, Events ++ Neighbours ++ [{down, n3, lost}])),
    ?assertMatch(#{tells_links := []}, Of(none, Events ++ Neighbours)).

%% For whom it relays

the_carrier_is_told_at_the_start_test_() ->
    [
        ?_assertEqual([Word], policies(element(2, atoll_route_core:init((config())#{relays := Word}, 0))))
     || Word <- [all, none]
    ].

%% A process that is started anew knows of no group at first, and circuits would end.
the_carrier_is_told_of_groups_when_they_are_known_test() ->
    {State, Effects} = atoll_route_core:init((config())#{relays := [b]}, 0),
    ?assertEqual([], policies(Effects)),
    ?assertMatch([_], [E || {timer, settle, _} = E <- Effects]),
    ?assertMatch([[{any, #{<<"n2">> := _, <<"n3">> := _}}]], policies(element(2, run(two_groups() ++ [?SETTLE], State)))),
    %% While nobody has answered that would be nobody, but it does not wait for ever.
    {Patient, More} = run(lists:duplicate(25, ?SETTLE), State),
    ?assertEqual([], policies(More)),
    ?assertEqual(25, length([E || {timer, settle, _} = E <- More])),
    ?assertEqual([[{any, #{}}]], policies(element(2, run([?SETTLE], Patient)))).

groups_to_relay_for_are_nodes_for_the_carrier_test() ->
    {State, Effects} = run(two_groups() ++ [?SETTLE], start((config())#{relays := [b]})),
    ?assertEqual([[{any, #{<<"n2">> => [], <<"n3">> => []}}]], policies(Effects)),
    %% Nothing new, nothing said.
    ?assertEqual([], policies(element(2, run([?SETTLE], State)))),
    %% A carrier that has forgotten asks.
    ?assertMatch([[{any, #{<<"n2">> := _}}]], policies(element(2, run([{cast, relay_policy}], State)))),
    {_, Gone} = run([news(n2, [{n3, {5, gone}}]), ?SETTLE], State),
    ?assertEqual([[{any, #{<<"n2">> => []}}]], policies(Gone)).

what_follows_is_told_a_moment_after_a_change_test() ->
    {State, Effects} = run(two_groups(), start(config())),
    ?assertMatch([{timer, settle, _}], [E || {timer, settle, _} = E <- Effects]),
    {Settled, _} = run([?SETTLE], State),
    {_, More} = run([{timeout, compare}], Settled),
    ?assertEqual([], [E || {timer, settle, _} = E <- More]).

%% Leaving

who_leaves_tells_its_links_before_the_answer_test() ->
    State = after_all(two_groups(), start(config())),
    %% Though it has told news a moment ago.
    {Left, Effects} = atoll_route_core:handle({call, from, leave}, 0, State),
    ?assertMatch([{1, {news, [{n1, {_, gone}}]}}], sent_to(n2, Effects)),
    ?assertEqual({reply, from, ok}, lists:last(Effects)),
    ?assertMatch(#{left := true}, ask(status, Left)),
    ?assertMatch(#{left := false}, ask(status, after_all([{cast, {incarnation, 99}}], Left))).

who_starts_outside_stays_there_test() ->
    ?assertMatch(#{left := true}, ask(status, start((config())#{left := true}))).
