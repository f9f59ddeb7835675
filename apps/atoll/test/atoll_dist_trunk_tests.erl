%% SPDX-License-Identifier: Apache-2.0
%% By which way frames go to a neighbour, and what is told of it.
-module(atoll_dist_trunk_tests).

-include_lib("eunit/include/eunit.hrl").

-define(T, atoll_dist_trunk).
-define(NODE, 'b@127.0.0.1').
-define(KEY, <<7:160>>).
-define(DEADLINE_MS, 5000).

a_trunk_test_() ->
    {foreach, fun atoll_dist_hub_tests:started/0, fun atoll_dist_hub_tests:stopped/1, [
        {"large frames that may overtake go by turns to the spokes", fun spokes/0},
        {"what is for an end goes to it, by a spoke if it is large", fun past_the_hub/0},
        {"spokes end with the connection", fun spokes_end/0},
        {"an own connection's socket is written at once until it is full", fun own/0},
        {"large frames that may overtake go by turns to the lanes of an own connection", fun own_lanes/0},
        {"a lane that is busy is passed over while another one is free", fun busy_lanes/0}
    ]}.

frame(Order, Bytes) -> atoll_dist_circuit_frame:data(Order, ?KEY, 0, <<0:(8 * Bytes)>>).

spokes() ->
    ok = atoll_dist_circuits:linked(?NODE, self(), {lanes, 4}),
    Large = frame(free, 20000),
    {ok, 0, Trunk} = ?T:send(lists:duplicate(8, Large), ?T:new(?NODE)),
    Tellers = [written() || _ <- lists:seq(1, 8)],
    ?assertEqual({4, [byte_size(Large)]}, {length(lists:usort([Spoke || {Spoke, _} <- Tellers])), lists:usort([Bytes || {_, Bytes} <- Tellers])}),
    [?assertMatch({ok, _}, ?T:written(Spoke, Bytes, Trunk)) || {Spoke, Bytes} <- Tellers],
    ?assertEqual(no, ?T:written(self(), 1, Trunk)),
    %% The others go to the node itself, which is not there.
    [?assertEqual(down, ?T:send([Frame], Trunk)) || Frame <- [frame(kept, 20000), frame(free, 100)]].

written() ->
    receive
        {written, Spoke, ?NODE, Bytes} -> {Spoke, Bytes}
    after ?DEADLINE_MS -> error(nothing_written)
    end.

past_the_hub() ->
    ok = atoll_dist_circuits:linked(?NODE, self(), {lanes, 2}),
    Trunk = ?T:new(?NODE),
    {Here, Small, Large} = {node(), frame(free, 100), frame(free, 20000)},
    Size = byte_size(Small),
    ?assertMatch({ok, Size, _}, ?T:pass(Small, self(), Trunk)),
    ?assertMatch({ok, 0, _}, ?T:pass(Large, self(), Trunk)),
    [receive {circuit, Here, Frame} -> ok after ?DEADLINE_MS -> error(nothing_came) end || Frame <- [Small, Large]],
    _ = written(),
    ?assertEqual(down, ?T:pass(Small, none, Trunk)).

spokes_end() ->
    Connection = spawn(fun() -> receive stop -> ok end end),
    ok = atoll_dist_circuits:linked(?NODE, Connection, {lanes, 3}),
    {spokes, Spokes} = atoll_dist_circuits:via(?NODE),
    Refs = [monitor(process, Spoke) || Spoke <- tuple_to_list(Spokes)],
    Connection ! stop,
    [receive {'DOWN', Ref, process, _, _} -> ok after ?DEADLINE_MS -> error(no_end) end || Ref <- Refs].

%% A socket that takes so much at once, and its other end.
pair(Bytes) ->
    Options = [binary, {packet, 4}, {active, false}],
    {ok, Listening} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}, {recbuf, Bytes} | Options]),
    {ok, Port} = inet:port(Listening),
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [{sndbuf, Bytes}, {high_watermark, Bytes}, {low_watermark, Bytes div 2} | Options]),
    {ok, Other} = gen_tcp:accept(Listening),
    ok = gen_tcp:close(Listening),
    {Socket, Other}.

send(Frame, Trunk0) ->
    {ok, _, Trunk} = ?T:send([Frame], Trunk0),
    Trunk.

own_lanes() ->
    Pairs = [pair(131072) || _ <- [1, 2, 3]],
    Others = [Other || {_, Other} <- Pairs],
    ok = atoll_dist_circuits:linked(?NODE, self(), {own, list_to_tuple([{self(), Socket} || {Socket, _} <- Pairs])}),
    Large = frame(free, 17000),
    Sent = lists:foldl(fun send/2, ?T:new(?NODE), [Large, Large, Large]),
    ?assertEqual([{ok, Large} || _ <- Pairs], [gen_tcp:recv(Other, 0, ?DEADLINE_MS) || Other <- Others]),
    %% What must keep its place goes to the first, and what is small.
    Few = [frame(kept, 17000), frame(free, 100), frame(kept, 1)],
    _ = lists:foldl(fun send/2, Sent, Few),
    ?assertEqual([{ok, Frame} || Frame <- Few], [gen_tcp:recv(hd(Others), 0, ?DEADLINE_MS) || _ <- Few]),
    [ok = gen_tcp:close(S) || {Socket, Other} <- Pairs, S <- [Socket, Other]].

%% As with TLS: their processes write all.
busy_lanes() ->
    Self = self(),
    Writers = [One, Two, Three] = [spawn_link(fun() -> tell(Self) end) || _ <- [1, 2, 3]],
    ok = atoll_dist_circuits:linked(?NODE, Self, {own, list_to_tuple([{Writer, none} || Writer <- Writers])}),
    Large = frame(free, 17000),
    Full = lists:foldl(fun send/2, ?T:new(?NODE), [Large, Large, Large]),
    ?assertEqual(lists:sort(Writers), lists:sort([told() || _ <- Writers])),
    %% The turn is the first one's, which is busy.
    {ok, Free} = ?T:written(Three, byte_size(Large), Full),
    Again = send(Large, Free),
    ?assertEqual(Three, told()),
    ?assertEqual(no, ?T:written(Self, 1, Again)),
    %% None is free: each has its turn.
    _ = lists:foldl(fun send/2, Again, [Large, Large]),
    ?assertEqual(lists:sort([One, Two]), lists:sort([told(), told()])),
    [begin true = unlink(Writer), true = exit(Writer, kill) end || Writer <- Writers].

tell(Self) ->
    receive {frames, Self, ?NODE, [_]} -> Self ! {told, self()} end,
    tell(Self).

told() ->
    receive {told, Writer} -> Writer after ?DEADLINE_MS -> error(nothing_written) end.

own() ->
    {Socket, Other} = pair(4096),
    ok = atoll_dist_circuits:linked(?NODE, self(), {own, {{self(), Socket}}}),
    Small = frame(kept, 10),
    Size = byte_size(Small),
    {ok, Size, Trunk0} = ?T:send([Small], ?T:new(?NODE)),
    ?assertEqual({ok, Small}, gen_tcp:recv(Other, 0, ?DEADLINE_MS)),
    Large = frame(kept, 60000),
    Fill = fun Fill(T0, N) ->
        case ?T:send([Large], T0) of
            {ok, 0, T} -> {T, N};
            {ok, _, T} -> Fill(T, N + 1)
        end
    end,
    {Full, N} = Fill(Trunk0, 0),
    [{ok, Large} = gen_tcp:recv(Other, 0, ?DEADLINE_MS) || _ <- lists:seq(1, N)],
    %% The socket is free again, and the writer has one yet.
    {ok, 0, Behind} = ?T:send([Small], Full),
    ?assertEqual([[Large], [Small]], [receive {frames, _, ?NODE, Frames} -> Frames after ?DEADLINE_MS -> none end || _ <- [1, 2]]),
    {ok, Less} = ?T:written(self(), byte_size(Large), Behind),
    ?assertMatch({ok, 0, _}, ?T:send([Small], Less)),
    receive {frames, _, ?NODE, [Small]} -> ok after 0 -> error(not_behind) end,
    {ok, Free} = ?T:written(self(), Size, Less),
    ?assertMatch({ok, Size, _}, ?T:send([Small], Free)),
    ?assertEqual(no, ?T:written(spawn(fun() -> ok end), 1, Less)),
    [ok = gen_tcp:close(S) || S <- [Other, Socket]].
