%% SPDX-License-Identifier: Apache-2.0
%% The star, event by event.
-module(atoll_star_tests).

-include_lib("eunit/include/eunit.hrl").

-define(SERVERS, [s1, s2, s3]).

new(Self) -> new(Self, #{}).

new(Self, Given) ->
    {ok, Options} = atoll_options:complete(atoll_star, Given#{servers => ?SERVERS}),
    atoll_star:init(#{self => Self, incarnation => 1, seed => 1, options => Options, remembered => []}, 0).

run(Events, State) ->
    lists:foldl(fun(Event, {S, _}) -> atoll_star:handle(Event, 0, S) end, {State, []}, Events).

wants(Effects) -> [Node || {want, Node} <- Effects].

%% A client, and the servers in its order.
client() ->
    {State, Effects} = new(c1),
    [First] = wants(Effects),
    {Next, NextEffects} = run([{cast, {unreachable, First}}], State),
    [Second] = wants(NextEffects),
    {_, LastEffects} = run([{cast, {unreachable, Second}}], Next),
    [Third] = wants(LastEffects),
    ?assertEqual(?SERVERS, lists:sort([First, Second, Third])),
    {State, First, Second, Third}.

linked(State, Server) ->
    run([{up, Server}, {message, Server, {hello, false, true}}], State).

a_server_wants_the_others_and_a_client_one_test() ->
    {_, Effects} = new(s2),
    ?assertEqual([s1, s3], lists:sort(wants(Effects))),
    {_, First, _, _} = client(),
    ?assert(lists:member(First, ?SERVERS)).

a_client_introduces_itself_and_waits_for_the_answer_test() ->
    {State, First, _, _} = client(),
    {Up, Effects} = run([{up, First}], State),
    ?assert(lists:member({send, First, {hello, false, true}}, Effects)),
    ?assertEqual([], atoll_star:neighbours(Up)),
    {Linked, Answered} = run([{message, First, {hello, false, true}}], Up),
    ?assertEqual([First], atoll_star:neighbours(Linked)),
    ?assert(lists:member({cancel, {answer, First}}, Answered)).

a_server_takes_a_client_and_lets_it_go_test() ->
    {Server, _} = new(s1),
    {Taken, _} = run([{up, c1}, {message, c1, {hello, false, true}}], Server),
    ?assertEqual([c1], atoll_star:neighbours(Taken)),
    {Gone, Effects} = run([{message, c1, {hello, false, false}}], Taken),
    ?assertEqual([], atoll_star:neighbours(Gone)),
    ?assertEqual([], wants(Effects)).

a_server_has_room_for_so_many_test() ->
    {Server, _} = new(s1, #{max_clients => 1}),
    Knock = fun(C) -> [{up, C}, {message, C, {hello, false, true}}] end,
    {State, Effects} = run(Knock(c1) ++ Knock(c2), Server),
    ?assert(lists:member({send, c2, {hello, false, false}}, Effects)),
    ?assertMatch(#{neighbours := 1, refused := 1}, atoll_star:summary(State)).

of_a_server_that_is_lost_the_next_is_tried_at_once_test() ->
    {State, First, Second, _} = client(),
    {Linked, _} = linked(State, First),
    {_, Effects} = run([{down, First, lost}], Linked),
    ?assert(lists:member({unwant, First}, Effects)),
    ?assertEqual([Second], wants(Effects)).

a_server_that_does_not_answer_or_refuses_is_lost_test() ->
    {State, First, Second, _} = client(),
    {Up, _} = run([{up, First}], State),
    {_, Late} = run([{timeout, {answer, First}}], Up),
    ?assertEqual([Second], wants(Late)),
    {_, Refused} = run([{message, First, {hello, false, false}}], Up),
    ?assertEqual([Second], wants(Refused)).

a_server_is_lost_when_it_stays_silent_test() ->
    {State, First, Second, _} = client(),
    {Linked, _} = linked(State, First),
    {Asked, _} = run(lists:duplicate(3, {timeout, check}), Linked),
    ?assertEqual([First], atoll_star:neighbours(Asked)),
    {_, Effects} = run([{timeout, check}], Asked),
    ?assertEqual([Second], wants(Effects)),
    {Answered, _} = run([{message, First, {hello, false, true}}, {timeout, check}], Asked),
    ?assertEqual([First], atoll_star:neighbours(Answered)).

when_all_have_failed_pauses_double_test() ->
    {State0, _, _, _} = client(),
    Round = fun(S0) ->
        lists:foldl(
            fun(Server, {S, Effects}) ->
                {Next, More} = run([{cast, {unreachable, Server}}], S),
                {Next, Effects ++ More}
            end,
            {S0, []},
            ?SERVERS ++ ?SERVERS ++ ?SERVERS
        )
    end,
    {Pauses, _} = lists:mapfoldl(
        fun(_, S0) ->
            {S1, Effects} = Round(S0),
            {S2, _} = run([{timeout, retry}], S1),
            {[Ms || {timer, retry, Ms} <- Effects], S2}
        end,
        State0,
        [1, 2, 3]
    ),
    [[A], [B], [C]] = Pauses,
    ?assert(A =< 1000 andalso B > A andalso B =< 2000 andalso C > B andalso C =< 4000).

it_goes_back_to_the_server_it_prefers_and_has_one_all_the_time_test() ->
    {State, First, Second, _} = client(),
    {Other, _} = linked(element(1, run([{cast, {unreachable, First}}], State)), Second),
    ?assertEqual([Second], atoll_star:neighbours(Other)),
    {Trying, Effects} = run([{timeout, rebalance}], Other),
    ?assertEqual([First], wants(Effects)),
    ?assertEqual([Second], atoll_star:neighbours(Trying)),
    {Back, Last} = linked(Trying, First),
    ?assertEqual([First], atoll_star:neighbours(Back)),
    ?assert(lists:member({unwant, Second}, Last)).

contacts_are_no_servers_test() ->
    {State, _, _, _} = client(),
    ?assertEqual({State, []}, run([{cast, {join, [c7, c8]}}], State)).

clients_take_no_clients_test() ->
    {State, _, _, _} = client(),
    {Same, Effects} = run([{up, c2}, {message, c2, {hello, false, true}}], State),
    ?assertEqual([], atoll_star:neighbours(Same)),
    ?assertEqual([{send, c2, {hello, false, false}}], Effects).
