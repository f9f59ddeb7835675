%% SPDX-License-Identifier: Apache-2.0
%% What two ends of a link tell each other.
-module(atoll_peers_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

new(Rule) -> atoll_peers:new(Rule, 5000).

run(Calls, Peers0) ->
    atoll_peers:take(
        lists:foldl(fun([F | Args], P) -> erlang:apply(atoll_peers, F, Args ++ [P]) end, Peers0, Calls)
    ).

a_link_that_is_up_is_no_neighbour_test() ->
    {Peers, Effects} = run([[up, n2]], new(both)),
    ?assertEqual([], Effects),
    ?assertEqual([], atoll_peers:neighbours(Peers)).

both_have_to_offer_test() ->
    {Offered, Hello} = run([[offer, n2, true], [up, n2]], new(both)),
    ?assertEqual([{send, n2, {hello, false, true}}, {timer, hello, 5000}], Hello),
    {Agreed, Effects} = run([[heard, n2, false, true]], Offered),
    ?assertEqual([{notify, {neighbour_up, n2}}], Effects),
    ?assertEqual([n2], atoll_peers:neighbours(Agreed)).

one_offer_is_enough_under_either_test() ->
    {_, Mine} = run([[offer, n2, true], [up, n2]], new(either)),
    ?assert(lists:member({notify, {neighbour_up, n2}}, Mine)),
    {_, Theirs} = run([[up, n2], [heard, n2, false, true]], new(either)),
    ?assertEqual([{notify, {neighbour_up, n2}}, {send, n2, {hello, false, false}}], Theirs).

a_withdrawn_offer_is_told_and_ends_it_test() ->
    {Agreed, _} = run([[offer, n2, 7], [up, n2], [heard, n2, false, 8]], new(both)),
    {_, Effects} = run([[offer, n2, false]], Agreed),
    ?assertEqual([{send, n2, {hello, false, false}}, {notify, {neighbour_down, n2, dropped}}], Effects),
    {_, Heard} = run([[heard, n2, false, false]], Agreed),
    ?assertEqual({notify, {neighbour_down, n2, dropped}}, hd(Heard)).

a_link_that_is_down_ends_it_and_what_was_heard_is_forgotten_test() ->
    {Agreed, _} = run([[offer, n2, 7], [up, n2], [heard, n2, false, 8]], new(both)),
    {Down, Effects} = run([[down, n2]], Agreed),
    ?assertEqual([{notify, {neighbour_down, n2, lost}}], Effects),
    {Again, Up} = run([[up, n2]], Down),
    ?assertEqual([{send, n2, {hello, false, 7}}], Up),
    ?assertNot(atoll_peers:is_neighbour(n2, Again)).

a_hello_is_answered_once_test() ->
    {_, Offered} = run([[up, n2], [offer, n2, 7], [heard, n2, true, 8]], new(both)),
    ?assertEqual([{send, n2, {hello, false, 7}}], [E || {send, _, _} = E <- Offered]),
    {Before, _} = run([[up, n2], [offer, n2, 7]], new(both)),
    {_, Asked} = run([[heard, n2, true, 8]], Before),
    ?assertEqual([{send, n2, {hello, false, 7}}], [E || {send, _, _} = E <- Asked]).

a_hello_that_was_not_heard_is_asked_for_until_it_is_test() ->
    {Awaiting, _} = run([[offer, n2, true], [up, n2]], new(both)),
    {Again, Effects} = run([[remind]], Awaiting),
    ?assertEqual([{send, n2, {hello, true, true}}, {timer, hello, 5000}], Effects),
    {Agreed, _} = run([[heard, n2, false, true]], Again),
    ?assertMatch({_, []}, run([[remind]], Agreed)).

%% A hello may overtake the news of its link; or there is none.
a_hello_before_its_link_counts_once_the_link_is_up_test() ->
    {Early, _} = run([[heard, n2, false, true]], new(either)),
    ?assertEqual(#{early => 1, dropped => 0}, atoll_peers:summary(Early)),
    {Up, Effects} = run([[up, n2]], Early),
    ?assert(lists:member({notify, {neighbour_up, n2}}, Effects)),
    ?assertEqual(#{early => 0, dropped => 0}, atoll_peers:summary(Up)).

hellos_without_a_link_are_bounded_and_counted_test() ->
    Names = [list_to_atom("x" ++ integer_to_list(N)) || N <- lists:seq(1, 150)],
    {Peers, _} = run([[heard, Name, false, true] || Name <- Names ++ Names], new(either)),
    ?assertEqual(#{early => 100, dropped => 200}, atoll_peers:summary(Peers)),
    ?assertEqual(lists:sort(lists:nthtail(50, Names)), atoll_peers:heard(Peers)),
    {Gone, _} = run([[down, Name] || Name <- Names], Peers),
    ?assertMatch(#{early := 0}, atoll_peers:summary(Gone)).

want_twice_is_once_test() ->
    {_, Effects} = run([[want, n2], [want, n2], [unwant, n2], [unwant, n2]], new(both)),
    ?assertEqual([{want, n2}, {unwant, n2}], Effects).

properties_test_() ->
    [
        atoll_prop:test(Title, Property, 2000)
     || {Title, Property} <- [
            {"up and down alternate, and the count is right", prop_alternates()},
            {"two ends agree once messages get through", prop_agree()}
        ]
    ].

prop_alternates() ->
    ?FORALL(
        {Rule, Calls},
        {oneof([both, either]), list(call())},
        begin
            {Peers, Effects} = run(Calls, new(Rule)),
            Last = lists:foldl(fun alternate/2, [], [Notice || {notify, Notice} <- Effects]),
            Last =:= atoll_peers:neighbours(Peers) andalso length(Last) =:= atoll_peers:count(Peers)
        end
    ).

alternate({neighbour_up, Node}, Up) ->
    false = lists:member(Node, Up),
    lists:sort([Node | Up]);
alternate({neighbour_down, Node, _}, Up) ->
    true = lists:member(Node, Up),
    lists:delete(Node, Up).

call() ->
    ?LET(
        Node,
        oneof([n2, n3]),
        oneof([
            [up, Node],
            [down, Node],
            [heard, Node, boolean(), oneof([false, true, 7])],
            [ask, Node],
            [remind],
            [want, Node],
            [unwant, Node],
            [offer, Node, oneof([false, true, 7])]
        ])
    ).

%% Two ends, a link that breaks, and messages of which some are lost. At the end
%% the link is up, and each end asks once, as a detector that finds strangers has
%% it do.
prop_agree() ->
    ?FORALL(
        {Rule, Steps},
        {oneof([both, either]), list(step())},
        begin
            {Ends, _} = lists:foldl(fun step/2, {#{n1 => new(Rule), n2 => new(Rule)}, []}, Steps),
            Last = lists:foldl(
                fun step/2,
                {Ends, []},
                [break, connect, {call, n1, ask}, {call, n2, ask}] ++ lists:duplicate(20, deliver)
            ),
            {#{n1 := One, n2 := Two}, _} = Last,
            Expected = expected(Rule, atoll_peers:offered(n2, One), atoll_peers:offered(n1, Two)),
            {Expected, Expected} =:=
                {atoll_peers:is_neighbour(n2, One), atoll_peers:is_neighbour(n1, Two)}
        end
    ).

expected(both, A, B) -> A =/= false andalso B =/= false;
expected(either, A, B) -> A =/= false orelse B =/= false.

step() ->
    oneof([
        connect,
        break,
        deliver,
        lose,
        {call, oneof([n1, n2]), oneof([{offer, oneof([false, true])}, remind, ask])}
    ]).

step(connect, State) ->
    act(n2, [up, n1], act(n1, [up, n2], State));
step(break, {Ends, _}) ->
    act(n2, [down, n1], act(n1, [down, n2], {Ends, []}));
step(deliver, {Ends, [{To, {hello, Answer, Offer}} | Wire]}) ->
    act(To, [heard, other(To), Answer, Offer], {Ends, Wire});
step(lose, {Ends, [_ | Wire]}) ->
    {Ends, Wire};
step({call, End, {offer, Offer}}, State) ->
    act(End, [offer, other(End), Offer], State);
step({call, End, ask}, State) ->
    act(End, [ask, other(End)], State);
step({call, End, remind}, State) ->
    act(End, [remind], State);
step(_, State) ->
    State.

act(End, Call, {Ends, Wire}) ->
    {Peers, Effects} = run([Call], maps:get(End, Ends)),
    {Ends#{End := Peers}, Wire ++ [{Peer, Message} || {send, Peer, Message} <- Effects]}.

other(n1) -> n2;
other(n2) -> n1.
