%% SPDX-License-Identifier: Apache-2.0
%% What a relay has for one neighbour: what goes out first, and how much at a time.
-module(atoll_dist_egress_tests).

-include_lib("eunit/include/eunit.hrl").

-define(E, atoll_dist_egress).
-define(KEY, <<7:160>>).

data(Bytes) -> atoll_dist_circuit_frame:data(kept, ?KEY, 0, <<0:(8 * Bytes)>>).
ack(N) -> atoll_dist_circuit_frame:make({ack, ?KEY, #{received => N, consumed => N, asks => false, narrow => false}}).

%% All that goes out while the trunk may have so much.
out(Max, Egress0) ->
    case ?E:next(Max, Egress0) of
        none -> {[], Egress0};
        {Whose, Frame, Egress1} ->
            {More, Egress} = out(Max, Egress1),
            {[{Whose, Frame} | More], Egress}
    end.

so_much_is_handed_at_a_time_test() ->
    Waits = lists:foldl(fun(_, E) -> ?E:push(a, data(1000), E) end, ?E:new(), lists:seq(1, 10)),
    {First, Full} = out(2500, Waits),
    ?assertEqual({3, 3 * byte_size(data(1000))}, {length(First), ?E:handed(Full)}),
    {Second, _} = out(2500, ?E:sent(byte_size(data(1000)), Full)),
    ?assertEqual(1, length(Second)),
    %% What the trunk has from elsewhere counts.
    ?assertEqual(none, ?E:next(2500, ?E:waits(2500, Waits))).

strays_go_first_and_so_many_wait_test() ->
    {ok, One} = ?E:stray(<<"stray">>, ?E:push(a, data(1), ?E:new())),
    ?assertEqual([{stray, <<"stray">>}, {{flow, a}, data(1)}], element(1, out(1000, One))),
    Fill = fun Fill(N, E0) -> case ?E:stray(<<"stray">>, E0) of {ok, E} -> Fill(N + 1, E); full -> N end end,
    ?assertEqual(64, Fill(0, ?E:new())),
    ?assert(?E:cost(1000) >= 1000 + 64 * 640).

an_ack_goes_before_what_waits_and_a_dropped_flow_has_nothing_test() ->
    Waits = ?E:push(a, ack(2), ?E:push(a, ack(1), ?E:push(a, data(1), ?E:new()))),
    ?assertEqual([{{flow, a}, ack(2)}, {{flow, a}, data(1)}], element(1, out(1000, Waits))),
    ?assertEqual({true, false, true}, {?E:is_idle(?E:new()), ?E:is_idle(Waits), ?E:is_idle(?E:drop(a, Waits))}).
