%% SPDX-License-Identifier: Apache-2.0
%% What waits for a link: bounded, counted, in order.
-module(atoll_outbox_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

the_first_message_asks_for_a_link_and_the_next_do_not_test() ->
    {Answers, _} = puts([{n1, a}, {n1, b}, {n2, a}], atoll_outbox:new(2, 2)),
    ?assertEqual([connect, queued, connect], Answers).

what_waits_is_taken_once_in_the_order_in_which_it_came_test() ->
    {_, Outbox} = puts([{n1, a}, {n2, x}, {n1, b}, {n1, c}], atoll_outbox:new(2, 3)),
    {Messages, Taken} = atoll_outbox:take(n1, Outbox),
    ?assertEqual([a, b, c], Messages),
    ?assertMatch({[], _}, atoll_outbox:take(n1, Taken)),
    ?assertMatch({[x], _}, atoll_outbox:take(n2, Taken)).

a_message_beyond_the_bound_of_its_node_is_dropped_and_the_earlier_ones_stay_test() ->
    {Answers, Outbox} = puts([{n1, a}, {n1, b}, {n1, c}, {n2, x}], atoll_outbox:new(2, 2)),
    ?assertEqual([connect, queued, dropped, connect], Answers),
    ?assertEqual(#{nodes => 2, dropped => 1}, atoll_outbox:summary(Outbox)),
    ?assertMatch({[a, b], _}, atoll_outbox:take(n1, Outbox)).

a_node_beyond_the_bound_is_dropped_and_the_others_go_on_test() ->
    {Answers, Outbox} = puts([{n1, a}, {n2, x}, {n1, b}], atoll_outbox:new(1, 2)),
    ?assertEqual([connect, dropped, queued], Answers),
    ?assertEqual(#{nodes => 1, dropped => 1}, atoll_outbox:summary(Outbox)),
    ?assertMatch({[], _}, atoll_outbox:take(n2, Outbox)).

what_was_taken_makes_room_and_asks_for_a_link_anew_test() ->
    {_, Full} = puts([{n1, a}], atoll_outbox:new(1, 1)),
    {_, Empty} = atoll_outbox:take(n1, Full),
    ?assertMatch({[connect], _}, puts([{n2, x}], Empty)),
    ?assertMatch({[connect], _}, puts([{n1, b}], Empty)).

nothing_waits_for_a_node_that_nobody_sent_to_test() ->
    Outbox = atoll_outbox:new(1, 1),
    ?assertEqual({[], Outbox}, atoll_outbox:take(n1, Outbox)),
    ?assertEqual(#{nodes => 0, dropped => 0}, atoll_outbox:summary(Outbox)).

bounds_and_order_hold_in_any_sequence_test_() ->
    atoll_prop:test(?FUNCTION_NAME, prop_bounds(), 1000).

%% Messages are numbered in the order in which they are put. All of them are taken,
%% still waiting or counted as dropped, and none of them twice.
prop_bounds() ->
    ?FORALL(
        {MaxNodes, MaxMessages, Steps},
        {choose(1, 3), choose(1, 3), list(step())},
        begin
            Numbered = lists:zip(lists:seq(1, length(Steps)), Steps),
            Begun = {atoll_outbox:new(MaxNodes, MaxMessages), []},
            {Outbox, Batches} = lists:foldl(
                fun(Step, {Before, Taken}) ->
                    {After, Batch} = step(Step, Before),
                    #{nodes := Nodes} = atoll_outbox:summary(After),
                    true = Nodes =< MaxNodes,
                    {After, Taken ++ Batch}
                end,
                Begun,
                Numbered ++ [{none, {take, Node}} || Node <- nodes_used()]
            ),
            #{nodes := Left, dropped := Dropped} = atoll_outbox:summary(Outbox),
            Put = [{Node, N} || {N, {put, Node}} <- Numbered],
            Got = [{Node, N} || {Node, Ns} <- Batches, N <- Ns],
            Left =:= 0 andalso
                length(Got) + Dropped =:= length(Put) andalso
                Got -- Put =:= [] andalso
                lists:all(fun({_, Ns}) -> length(Ns) =< MaxMessages end, Batches) andalso
                lists:all(fun(Node) -> ascends([N || {Of, N} <- Got, Of =:= Node]) end, nodes_used())
        end
    ).

step() -> {oneof([put, put, put, take]), oneof(nodes_used())}.

nodes_used() -> [n1, n2, n3, n4, n5].

step({N, {put, Node}}, Outbox0) ->
    {_, Outbox} = atoll_outbox:put(Node, N, Outbox0),
    {Outbox, []};
step({_, {take, Node}}, Outbox0) ->
    {Messages, Outbox} = atoll_outbox:take(Node, Outbox0),
    {Outbox, [{Node, Messages}]}.

ascends(Numbers) -> Numbers =:= lists:usort(Numbers).

puts(Puts, Outbox) ->
    lists:mapfoldl(fun({Node, Message}, O) -> atoll_outbox:put(Node, Message, O) end, Outbox, Puts).
