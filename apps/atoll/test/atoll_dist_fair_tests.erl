%% SPDX-License-Identifier: Apache-2.0
%% Who is next among flows.
-module(atoll_dist_fair_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(Q, atoll_dist_fair).

each_flow_keeps_its_order_and_nothing_is_lost_test_() ->
    atoll_prop:test(
        ?FUNCTION_NAME,
        ?FORALL(Ops, list(frequency([{3, {push, range(1, 5), range(1, 80000)}}, {2, take}])), begin
            {Out, _, In} = lists:foldl(fun op/2, {[], ?Q:new(), []}, Ops ++ [take || {push, _, _} <- Ops]),
            conjunction([
                {F, equals([I || {G, I} <- lists:reverse(In), G =:= F], [I || {G, I} <- lists:reverse(Out), G =:= F])}
             || F <- [1, 2, 3, 4, 5]
            ])
        end),
        500
    ).

op({push, Flow, Cost}, {Out, Fair, In}) ->
    Item = <<(length(In)):32>>,
    {Out, ?Q:push(Flow, Item, Cost, Fair), [{Flow, Item} | In]};
op(take, {Out, Fair0, In}) ->
    case ?Q:take(Fair0) of
        empty -> {Out, Fair0, In};
        {Flow, Item, _, Fair} -> {[{Flow, Item} | Out], Fair, In}
    end.

busy_flows_get_the_same_bytes_test_() ->
    [
        {lists:flatten(io_lib:format("~w", [Sizes])), fun() ->
            %% Each flow has much to say, in items of its own size.
            Fair = lists:foldl(
                fun({Flow, Size}, Acc) ->
                    lists:foldl(fun(_, A) -> ?Q:push(Flow, <<>>, Size, A) end, Acc, lists:seq(1, 4000000 div Size))
                end,
                ?Q:new(),
                lists:zip(lists:seq(1, length(Sizes)), Sizes)
            ),
            Taken = drain(3000000, Fair, #{}),
            {Least, Most} = {lists:min(maps:values(Taken)), lists:max(maps:values(Taken))},
            ?assertEqual(length(Sizes), map_size(Taken)),
            ?assert(Most - Least =< 2 * 16384 + 2 * lists:max(Sizes))
        end}
     || Sizes <- [[100, 65536], [65536, 65536, 65536], [1000, 2000, 70000, 300]]
    ].

drain(Left, _Fair, Taken) when Left =< 0 -> Taken;
drain(Left, Fair0, Taken) ->
    {Flow, _, Cost, Fair} = ?Q:take(Fair0),
    drain(Left - Cost, Fair, maps:update_with(Flow, fun(N) -> N + Cost end, Cost, Taken)).

who_has_little_to_say_waits_for_nobody_test() ->
    Busy = lists:foldl(
        fun(Flow, Acc) -> lists:foldl(fun(_, A) -> ?Q:push(Flow, <<"bulk">>, 65536, A) end, Acc, lists:seq(1, 10)) end,
        ?Q:new(),
        lists:seq(1, 100)
    ),
    Later = taken(150, Busy),
    ?assertMatch({quiet, <<"ping">>, 100, _}, ?Q:take(?Q:push(quiet, <<"ping">>, 100, Later))),
    %% And again, and yet the others go on.
    {Pings, _} = lists:foldl(
        fun(_, {Order, Fair0}) ->
            {A, _, _, Fair1} = ?Q:take(?Q:push(quiet, <<"ping">>, 100, Fair0)),
            {B, _, _, Fair} = ?Q:take(Fair1),
            {[A, B | Order], Fair}
        end,
        {[], Later},
        lists:seq(1, 50)
    ),
    ?assertEqual(50, length([quiet || quiet <- Pings])).

taken(0, Fair) -> Fair;
taken(N, Fair0) ->
    {_, _, _, Fair} = ?Q:take(Fair0),
    taken(N - 1, Fair).

an_urgent_item_goes_first_and_two_are_one_test() ->
    Key = atoll_dist_circuit_frame:key(<<1:128>>, 1),
    Ack = fun(N) -> atoll_dist_circuit_frame:make({ack, Key, #{received => N, consumed => N, asks => false, narrow => false}}) end,
    Fair0 = ?Q:push(x, <<"first">>, 10, ?Q:new()),
    {new, Fair1} = ?Q:urgent(x, Ack(1), 39, Fair0),
    {joined, Fair2} = ?Q:urgent(x, Ack(2), 39, Fair1),
    Second = Ack(2),
    {x, Second, 39, Fair3} = ?Q:take(Fair2),
    {x, <<"first">>, 10, Fair4} = ?Q:take(Fair3),
    ?assertEqual(empty, ?Q:take(Fair4)),
    ?assert(?Q:is_empty(Fair4)).

what_is_dropped_is_gone_test() ->
    Fair0 = ?Q:push(y, <<"b">>, 7, ?Q:push(x, <<"a">>, 5, ?Q:push(x, <<"a">>, 5, ?Q:new()))),
    {10, Fair1} = ?Q:drop(x, Fair0),
    {0, Fair2} = ?Q:drop(x, Fair1),
    {y, <<"b">>, 7, Fair3} = ?Q:take(Fair2),
    ?assertEqual(empty, ?Q:take(Fair3)).
