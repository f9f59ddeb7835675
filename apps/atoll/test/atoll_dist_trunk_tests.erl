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
        {"an own connection's socket is written at once until it is full", fun own/0}
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

own() ->
    Options = [binary, {packet, 4}, {active, false}],
    {ok, Listening} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}, {recbuf, 4096} | Options]),
    {ok, Port} = inet:port(Listening),
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [{sndbuf, 4096}, {high_watermark, 4096}, {low_watermark, 2048} | Options]),
    {ok, Other} = gen_tcp:accept(Listening),
    ok = atoll_dist_circuits:linked(?NODE, self(), {own, self(), Socket}),
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
    [ok = gen_tcp:close(S) || S <- [Other, Socket, Listening]].
