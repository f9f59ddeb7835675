%% SPDX-License-Identifier: Apache-2.0
%% Circuits in a world where everything goes wrong: what is sent comes out once and in
%% order, or the circuit ends at both ends.
-module(atoll_dist_circuit_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(W, atoll_dist_circuit_world).
-define(ID, <<"0123456789abcdef">>).
-define(A, {<<"a">>, ?ID}).
-define(B, {<<"b">>, ?ID}).

%% Two ends with two gateways, and a third that joins these.
world() -> world(#{}).

world(Options) ->
    links([{<<"a">>, <<"g">>}, {<<"g">>, <<"b">>}, {<<"a">>, <<"h">>}, {<<"h">>, <<"b">>}, {<<"g">>, <<"i">>}, {<<"i">>, <<"h">>}],
        started([<<"a">>, <<"b">>, <<"g">>, <<"h">>, <<"i">>], ?W:new(Options))).

%% With one gateway.
line(Options) ->
    links([{<<"a">>, <<"g">>}, {<<"g">>, <<"b">>}], started([<<"a">>, <<"b">>, <<"g">>], ?W:new(Options))).

%% With two, one behind the other.
row(Options) ->
    links([{<<"a">>, <<"g">>}, {<<"g">>, <<"h">>}, {<<"h">>, <<"b">>}], started([<<"a">>, <<"b">>, <<"g">>, <<"h">>], ?W:new(Options))).

started(Names, W) -> lists:foldl(fun ?W:start/2, W, Names).
links(Links, W) -> lists:foldl(fun({A, B}, Acc) -> ?W:link(A, B, via, Acc) end, W, Links).

up(W) -> ?W:run_for(100000, ?W:circuit(<<"a">>, <<"b">>, ?ID, W)).

packets_come_out_once_and_in_order_test_() ->
    {timeout, 60, fun packets_come_out_once_and_in_order/0}.

packets_come_out_once_and_in_order() ->
    W0 = ?W:push(?B, [1, 2, 300000], ?W:push(?A, [0, 10, 100000, 65600, 5], up(line(#{})))),
    W = ?W:run_for(1000000, W0),
    ?assertEqual({5, 3, []}, {?W:got(?B, W), ?W:got(?A, W), ?W:wrong(W)}),
    ?assertMatch([{up, #{path := [<<"a">>, <<"g">>, <<"b">>], sealed := false}}], ?W:notices(?A, W)),
    ?assertMatch([{up, _}], ?W:notices(?B, W)),
    ?assertMatch(#{ignored := 0, resent_bytes := 0}, ?W:figures(?A, W)),
    ?assertMatch(#{circuits := 1, lost := L} when L =:= #{}, ?W:relay(<<"g">>, W)).

small_packets_share_a_frame_test() ->
    W0 = up(line(#{})),
    #{forwarded := Before} = ?W:relay(<<"g">>, W0),
    W = ?W:run_for(100000, ?W:push(?A, lists:duplicate(1000, 30), W0)),
    ?assertEqual(1000, ?W:got(?B, W)),
    #{forwarded := After} = ?W:relay(<<"g">>, W),
    %% And an `ack'.
    ?assert(After - Before =< 3).

a_user_that_sends_too_much_is_told_to_wait_test_() ->
    {timeout, 60, fun a_user_that_sends_too_much_is_told_to_wait/0}.

a_user_that_sends_too_much_is_told_to_wait() ->
    W0 = ?W:block(<<"g">>, <<"b">>, up(line(#{}))),
    W = ?W:run_for(200000, ?W:push(?A, lists:duplicate(400, 65536), W0)),
    ?assertEqual(wait, atoll_dist_circuit:wants(?W:state(?A, W))),
    ?assertEqual([], ?W:wrong(W)).

when_a_gateway_is_killed_the_circuit_goes_on_over_the_other_test_() ->
    {timeout, 60, fun when_a_gateway_is_killed_the_circuit_goes_on_over_the_other/0}.

when_a_gateway_is_killed_the_circuit_goes_on_over_the_other() ->
    W0 = up(world()),
    Load = fun(W) -> ?W:run_for(10000, ?W:push(?B, [30, 9000, 100000], ?W:push(?A, [40, 60000, 10], W))) end,
    #{path := [_ | Between]} = ?W:figures(?A, W0),
    W1 = times(30, Load, W0),
    W2 = times(100, Load, ?W:kill(hd(Between), W1)),
    W = ?W:run_for(3000000, W2),
    ?assertEqual({390, 390, []}, {?W:got(?A, W), ?W:got(?B, W), ?W:wrong(W)}),
    ?assertMatch([{up, _}, {lost, {down, _}}, {moved, _}], ?W:notices(?A, W)),
    [?assertEqual([], ?W:pauses(End, W)) || End <- [?A, ?B]].

a_gateway_that_stands_still_is_left_within_a_second_test() ->
    W0 = up(world()),
    Load = fun(W) -> ?W:run_for(10000, ?W:push(?B, [30], ?W:push(?A, [40], W))) end,
    #{path := [_, Gateway | _]} = ?W:figures(?A, W0),
    W = ?W:run_for(3000000, times(200, Load, ?W:freeze(Gateway, times(30, Load, W0)))),
    ?assertEqual({230, 230, []}, {?W:got(?A, W), ?W:got(?B, W), ?W:wrong(W)}),
    [?assert(To - From < 1000000) || End <- [?A, ?B], {From, To} <- ?W:pauses(End, W)].

when_only_the_other_end_sends_a_silent_gateway_is_left_too_test() ->
    W0 = up(world()),
    #{path := [_, Gateway | _]} = ?W:figures(?A, W0),
    W1 = ?W:push(?B, [30], ?W:freeze(Gateway, W0)),
    W = ?W:run_for(3000000, W1),
    ?assertEqual({1, []}, {?W:got(?A, W), ?W:ended(?B, W)}).

%% At any moment of what an idle circuit does; and nothing is lost of what either end says
%% first thing after that.
a_silent_gateway_of_an_idle_circuit_is_left_within_a_quarter_of_the_tick_time_test_() ->
    [
        {integer_to_list(Seconds), fun() ->
            W0 = ?W:run_for(Seconds * 1000000, up(world())),
            #{path := [_, Gateway | _]} = ?W:figures(?A, W0),
            W1 = ?W:run_for(15500000, ?W:freeze(Gateway, W0)),
            ?assertMatch([{up, _}, {lost, {silent, _}}, {moved, _}], ?W:notices(?A, W1)),
            W = ?W:run_for(1000000, ?W:push(?B, [1], ?W:push(?A, [1], W1))),
            ?assertEqual({1, 1, [], []}, {?W:got(?A, W), ?W:got(?B, W), ?W:ended(?B, W), ?W:wrong(W)})
        end}
     || Seconds <- [0, 1, 3, 7, 20, 47, 100]
    ].

a_silent_gateway_of_a_circuit_that_was_used_a_second_ago_is_left_in_two_test() ->
    W0 = ?W:run_for(60000000, up(world())),
    #{path := [_, Gateway | _]} = ?W:figures(?A, W0),
    W1 = ?W:run_for(1000000, ?W:push(?B, [1], W0)),
    W = ?W:run_for(2500000, ?W:freeze(Gateway, W1)),
    ?assertMatch([{up, _}, {lost, {silent, _}}, {moved, _}], ?W:notices(?A, W)).

%% A question and its answer for each of the ends at most, in 15 s; and no path is
%% forgotten for it, nor is any taken for silent.
an_idle_circuit_costs_next_to_nothing_test() ->
    W0 = ?W:run_for(60000000, up(line(#{}))),
    #{forwarded := Before} = ?W:relay(<<"g">>, W0),
    W = ?W:run_for(600000000, W0),
    #{forwarded := After} = ?W:relay(<<"g">>, W),
    ?assert(After - Before =< 4 * 40),
    ?assertMatch({[{up, _}], [{up, _}]}, {?W:notices(?A, W), ?W:notices(?B, W)}).

without_any_way_both_ends_end_once_test() ->
    W0 = up(world()),
    W1 = ?W:kill(<<"h">>, ?W:kill(<<"g">>, ?W:push(?A, [100], W0))),
    W = ?W:run_for(5000000, W1),
    ?assertMatch([_], ?W:ended(?A, W)),
    ?assertMatch([_], ?W:ended(?B, W)),
    %% The opener within `resume_ms', the other within twice that.
    Early = ?W:run_for(2300000, W1),
    ?assertMatch({[_], []}, {?W:ended(?A, Early), ?W:ended(?B, Early)}).

%% The trunk between two relays is full when the `confirm' comes. The opener hears nothing,
%% and its `ack' is the first that goes.
an_ack_that_overtakes_the_confirm_does_no_harm_test() ->
    Other = <<"fedcba9876543210">>,
    Names = [<<"a">>, <<"g">>, <<"h">>, <<"b">>],
    W0 = links([{<<"a">>, <<"g">>}, {<<"g">>, <<"h">>}, {<<"h">>, <<"b">>}], started(Names, ?W:new(#{relay => #{handed => 1000}}))),
    W1 = ?W:run_for(100000, ?W:circuit(<<"a">>, <<"b">>, Other, W0)),
    %% The `opened' is on its way back.
    W2 = ?W:run_for(600, ?W:push(?A, [100], ?W:circuit(<<"a">>, <<"b">>, ?ID, W1))),
    ?assertMatch({#{state := opening}, #{state := opening}}, {?W:figures(?A, W2), ?W:figures(?B, W2)}),
    W3 = ?W:run_for(300000, ?W:push({<<"a">>, Other}, [5000], ?W:block(<<"g">>, <<"h">>, W2))),
    ?assertMatch({#{state := up}, #{state := opening}}, {?W:figures(?A, W3), ?W:figures(?B, W3)}),
    W = ?W:run_for(1000000, ?W:unblock(<<"g">>, <<"h">>, W3)),
    ?assertEqual({[], [], 1, []}, {?W:ended(?A, W), ?W:ended(?B, W), ?W:got(?B, W), ?W:wrong(W)}),
    ?assertMatch(#{dropped := #{early := 1}}, ?W:relay(<<"h">>, W)).

when_it_is_known_that_there_is_no_way_a_silent_path_is_not_waited_for_test() ->
    W0 = ?W:run_for(1000000, ?W:push(?A, [100], ?W:freeze(<<"g">>, up(line(#{}))))),
    ?assertMatch([{up, _}, {lost, {silent, _}}], ?W:notices(?A, W0)),
    %% Somebody has told so; the gateway itself tells nothing.
    W = ?W:run_for(3500000, ?W:cut(<<"g">>, <<"b">>, W0)),
    ?assertMatch([_], ?W:ended(?A, W)).

%% The first node takes what it is given, but slowly; then it takes nothing more.
a_path_that_is_full_is_not_silent_while_what_was_sent_goes_out_test() ->
    Do = fun(Event, Now, {State0, _}) -> atoll_dist_circuit:handle(Event, Now, State0) end,
    Key = atoll_dist_circuit_frame:key(?ID, 1),
    Opened = atoll_dist_circuit_frame:make({opened, Key, #{window => 200000, can => 1, received => 0, consumed => 0, answer => <<>>}}),
    S0 = atoll_dist_circuit:init(#{id => ?ID, here => <<"a">>, there => <<"b">>, role => opener, handed => 1000}, 0),
    S1 = Do({cast, {frame, g, Opened}}, 0, Do({cast, {route, g, [<<"a">>, <<"g">>, <<"b">>]}}, 0, S0)),
    S2 = Do({cast, {packets, [{5000, <<0:40000>>}, {5000, <<0:40000>>}]}}, 0, S1),
    {_, Acts} = S3 = Do({timeout, look}, 150, S2),
    ?assertMatch([{ack, Key, #{asks := true}}], [element(2, atoll_dist_circuit_frame:parse(F)) || {act, {send, g, F}} <- Acts]),
    S4 = lists:foldl(
        fun(Ms, S) ->
            {_, Looked} = Next = Do({timeout, look}, Ms + 390, Do({cast, {sent, g, 500}}, Ms, S)),
            ?assertMatch([{timer, look, 10}], Looked),
            Next
        end,
        S3,
        [500, 900, 1300]
    ),
    {_, Last} = Do({timeout, look}, 1700, S4),
    ?assertMatch([{lost, {silent, <<"b">>}}], [Notice || {notify, Notice} <- Last]).

a_way_that_comes_back_in_time_is_taken_test() ->
    W0 = up(line(#{})),
    W1 = ?W:run_for(1500000, ?W:push(?B, [7], ?W:push(?A, [100000, 2], ?W:kill(<<"g">>, W0)))),
    W = ?W:run_for(1000000, ?W:start(<<"g">>, W1)),
    ?assertEqual({2, 1, []}, {?W:got(?B, W), ?W:got(?A, W), ?W:wrong(W)}),
    ?assertMatch([{up, _}, {lost, {down, {via, <<"g">>}}}, {moved, _}], ?W:notices(?A, W)).

%% Which of the two opened the circuit, with one gateway and with several, and with a directory
%% that does not know yet or that does.
who_hears_that_no_gateway_has_the_other_end_any_more_ends_at_once_test_() ->
    [
        {lists:flatten(io_lib:format("~s, ~s, behind: ~s", [Name, Killed, IsBehind])), fun() ->
            {Killed, Left} = case Killed of <<"b">> -> {<<"b">>, ?A}; <<"a">> -> {<<"a">>, ?B} end,
            W = ?W:run_for(100000, ?W:kill(Killed, ?W:run_for(5000000, up(World(#{behind => IsBehind}))))),
            ?assertMatch([_], ?W:ended(Left, W)),
            Relays = [G || G <- [<<"g">>, <<"h">>, <<"i">>], is_map_key(G, maps:get(nodes, W))],
            ?assertEqual([0 || _ <- Relays], [maps:get(circuits, ?W:relay(G, W)) || G <- Relays])
        end}
     || {Name, World} <- [{"one gateway", fun line/1}, {"three", fun world/1}, {"a row", fun row/1}],
        Killed <- [<<"a">>, <<"b">>],
        IsBehind <- [false, true]
    ].

%% Its connection with one gateway was lost, and nothing else: the other one has it yet.
an_end_that_lives_is_found_over_another_gateway_test_() ->
    [
        {binary_to_list(End), fun() ->
            W0 = up(world(#{behind => true})),
            #{path := [_, Gateway | _]} = ?W:figures(?A, W0),
            W1 = ?W:push(?B, [7], ?W:push(?A, [100000, 2], ?W:cut(Gateway, End, W0))),
            W = ?W:run_for(3000000, W1),
            ?assertEqual({2, 1, [], [], []}, {?W:got(?B, W), ?W:got(?A, W), ?W:wrong(W), ?W:ended(?A, W), ?W:ended(?B, W)}),
            %% Nor is anything left of how the end that was opened has looked for it.
            ?assertEqual(1, lists:sum([maps:get(circuits, ?W:relay(G, W)) || G <- [<<"g">>, <<"h">>]]))
        end}
     || End <- [<<"a">>, <<"b">>]
    ].

%% A gateway that is too busy to say that it has no connection may have one.
the_silence_of_another_gateway_is_no_answer_test_() ->
    [
        {binary_to_list(Killed), fun() ->
            W0 = up(world(#{behind => true})),
            #{path := [_, Gateway | _]} = ?W:figures(?A, W0),
            [Other] = [<<"g">>, <<"h">>] -- [Gateway],
            W1 = ?W:kill(Killed, ?W:freeze(Other, ?W:freeze(<<"i">>, W0))),
            ?assertEqual([], ?W:ended(Left, ?W:run_for(Us, W1))),
            ?assertMatch([_], ?W:ended(Left, ?W:run_for(20000000, W1)))
        end}
     || {Killed, Left, Us} <- [{<<"b">>, ?A, 1900000}, {<<"a">>, ?B, 3900000}]
    ].

%% Nor can it say that its path has gone.
an_opener_that_stands_still_while_its_gateway_dies_is_waited_for_test_() ->
    {timeout, 60, fun() ->
        W0 = up(world(#{behind => true})),
        #{path := [_, Gateway | _]} = ?W:figures(?A, W0),
        W1 = ?W:run_for(6000000, ?W:push(?B, [7], ?W:kill(Gateway, ?W:freeze(<<"a">>, W0)))),
        W = ?W:run_for(3000000, ?W:push(?A, [9], ?W:thaw(<<"a">>, W1))),
        ?assertEqual({1, 1, [], [], []}, {?W:got(?A, W), ?W:got(?B, W), ?W:wrong(W), ?W:ended(?A, W), ?W:ended(?B, W)}),
        %% Not for ever.
        ?assertMatch([_], ?W:ended(?B, ?W:run_for(11500000, W1)))
    end}.

%% The other end was killed and has started again, and its gateways know it.
the_next_life_of_an_opener_ends_the_circuit_of_the_last_one_test() ->
    W = up(world()),
    #{path := [_, Gateway | _]} = ?W:figures(?A, W),
    [Other] = [<<"g">>, <<"h">>] -- [Gateway],
    Lost = {frame, {via, Gateway}, atoll_dist_circuit_frame:make({path_lost, key(1), {Gateway, link_down, <<"a">>}})},
    {S1, _} = atoll_dist_circuit:handle({cast, Lost}, 0, ?W:state(?B, W)),
    {S2, Acts} = atoll_dist_circuit:handle({cast, {route, leg, [<<"b">>, Other, <<"a">>]}}, 0, S1),
    [{open, Key, #{fresh := false}}] = [element(2, atoll_dist_circuit_frame:parse(F)) || {act, {send, leg, F}} <- Acts],
    Unknown = atoll_dist_circuit_frame:make({refused, Key, {<<"a">>, unknown_circuit, <<>>}}),
    {_, Over} = atoll_dist_circuit:handle({cast, {frame, leg, Unknown}}, 0, S2),
    ?assertMatch([{ended, {refused, {<<"a">>, unknown_circuit, _}}}], [N || {notify, N} <- Over]).

%% Nobody has said that there is no other way; or the gateway that had the connection has gone, and
%% its next life has none yet.
what_may_come_yet_is_waited_for_test() ->
    Path = [<<"a">>, <<"g">>, <<"b">>],
    Opened = atoll_dist_circuit_frame:make({opened, key(1), #{window => 200000, can => 1, received => 0, consumed => 0, answer => <<>>}}),
    {Up, _} = events([{0, {cast, {route, leg, Path}}}, {0, {cast, {frame, leg, Opened}}}], opener()),
    Gone = {cast, {frame, leg, atoll_dist_circuit_frame:make({path_lost, key(1), {<<"g">>, link_down, <<"b">>}})}},
    None = {cast, {frame, leg, atoll_dist_circuit_frame:make({refused, key(2), {<<"g">>, no_link, <<"b">>}})}},
    Ends = fun(Events) -> [Why || {notify, {ended, Why}} <- element(2, events(Events, Up))] end,
    ?assertMatch([{path_lost, _}], Ends([{0, Gone}, {0, {cast, no_route}}])),
    ?assertEqual([], Ends([{0, Gone}, {0, {cast, no_answer}}])),
    ?assertEqual([], Ends([{0, Gone}, {1000, {timeout, attempt}}, {1000, {cast, no_route}}])),
    Back = [{0, {cast, {down, leg}}}, {0, {cast, no_route}}, {100, {timeout, attempt}}, {100, {cast, {route, leg, Path}}}, {100, None}],
    ?assertEqual([], Ends(Back ++ [{100, {cast, no_route}}])).

a_frame_that_is_lost_on_a_path_that_lives_is_sent_again_test() ->
    Lose = fun
        (_, <<2, $D, _:16/binary, 1:32, 118:64, _/binary>>) -> lost;
        (_, Frame) -> Frame
    end,
    W0 = ?W:push(?A, [32], ?W:spoil(Lose, ?W:push(?A, [30], up(line(#{}))))),
    W = ?W:run_for(3000000, ?W:push(?A, [34], ?W:run_for(10000, W0))),
    ?assertEqual({3, []}, {?W:got(?B, W), ?W:wrong(W)}),
    ?assertMatch([{up, _}, {lost, {path_lost, {<<"b">>, gap, <<>>}}}, {moved, _}], ?W:notices(?A, W)).

%% The other end may not have got the `confirm' yet.
%% One of many lanes is slow: the first packet is on it.
what_was_overtaken_is_waited_for_while_others_come_and_the_other_end_hears_of_them_test() ->
    Path = [<<"a">>, <<"g">>, <<"b">>],
    Opened = atoll_dist_circuit_frame:make({opened, key(1), #{window => 200000, can => 1, received => 0, consumed => 0, answer => <<>>}}),
    {Up, _} = events([{0, {cast, {route, leg, Path}}}, {0, {cast, {frame, leg, Opened}}}], opener()),
    Data = fun(I) -> {cast, {frame, leg, atoll_dist_circuit_frame:data(free, key(1), I * 1068, <<1000:32, 0:8000>>)}} end,
    Slow = [{500 * I + Ms, Event} || I <- lists:seq(1, 20), {Ms, Event} <- [{0, Data(I)}, {25, {timeout, ack}}, {400, {timeout, gap}}]],
    {Waits, Acts} = events(Slow, Up),
    ?assertEqual([], [N || {notify, N} <- Acts]),
    ?assertEqual(20, length([Ack || {act, {send, leg, <<2, $A, _/binary>> = Ack}} <- Acts])),
    {_, Came} = events([{10500, Data(0)}], Waits),
    ?assertEqual([21], [length(Packets) || {act, {deliver, Packets}} <- Came]),
    %% Not for ever.
    ?assertEqual([], [N || {notify, N} <- element(2, events([{11999, {timeout, gap}}], Waits))]),
    ?assertMatch([{lost, {gap, <<"b">>}}], [N || {notify, N} <- element(2, events([{12000, {timeout, gap}}], Waits))]).

data_may_overtake_others_once_something_has_come_if_all_can_do_that_test() ->
    Able = #{window => 200000, can => 1, received => 0, consumed => 0, answer => <<>>},
    Opened = fun(Said) ->
        Frame = atoll_dist_circuit_frame:make({opened, key(1), Said}),
        element(1, events([{0, {cast, {route, leg, [<<"a">>, <<"g">>, <<"b">>]}}}, {0, {cast, {frame, leg, Frame}}}], opener()))
    end,
    Up = Opened(Able),
    Sent = fun(State) ->
        {_, Acts} = events([{2, {cast, {packets, [{1, <<1>>}]}}}], State),
        [atoll_dist_circuit_frame:is_free(Frame) || {act, {send, leg, Frame}} <- Acts]
    end,
    Ack = atoll_dist_circuit_frame:make({ack, key(1), #{received => 0, consumed => 0, asks => false, narrow => false}}),
    Heard = fun(Frame, State) -> element(1, events([{1, {cast, {frame, leg, Frame}}}], State)) end,
    ?assertEqual([false], Sent(Up)),
    ?assertEqual([false], Sent(Heard(Ack, Opened(Able#{can := 0})))),
    [?assertEqual([true], Sent(Heard(Frame, Up))) || Frame <- [Ack, atoll_dist_circuit_frame:data(kept, key(1), 0, <<1:32, 1>>)]].

%% A round trip of 40 ms, and a window that is full: the path is slow, or the window narrow.
only_a_path_that_carries_its_window_in_a_round_trip_is_opened_again_wider_test() ->
    Size = 1048576,
    Opened = atoll_dist_circuit_frame:make({opened, key(1), #{window => Size, can => 1, received => 0, consumed => 0, answer => <<>>}}),
    Packets = {cast, {packets, lists:duplicate(100, {60000, <<0:480000>>})}},
    {Full, Acts} = events([{0, {cast, {route, leg, [<<"a">>, <<"g">>, <<"b">>]}}}, {40, {cast, {frame, leg, Opened}}}, {40, Packets} |
        [{40, {cast, {sent, leg, Size}}} || _ <- lists:seq(1, 5)]], opener()),
    Sent = [binary:decode_unsigned(binary:part(Frame, 22, 8)) + atoll_dist_circuit_frame:cost(byte_size(Frame) - 30)
     || {act, {send, leg, <<2, $D, _/binary>> = Frame}} <- Acts],
    Got = lists:max(Sent),
    ?assert(Got > Size - 100000),
    Ack = {cast, {frame, leg, atoll_dist_circuit_frame:make({ack, key(1), #{received => Got, consumed => Got, asks => false, narrow => false}})}},
    Asked = fun(Ms) ->
        {_, More} = events([{Ms, Ack} | [{Ms, {cast, {sent, leg, Size}}} || _ <- lists:seq(1, 5)]], Full),
        [Window || {act, {send, leg, Frame}} <- More, {ok, {open, _, #{window := Window}}} <- [atoll_dist_circuit_frame:parse(Frame)]]
    end,
    ?assertEqual([[4 * Size], [], []], [Asked(Ms) || Ms <- [90, 240, 1000]]).

a_path_that_is_narrow_for_its_round_trip_is_opened_again_wider_test_() ->
    [
        {atom_to_list(Who), {timeout, 60, fun() ->
            %% A round trip of 40 ms.
            W0 = ?W:run_for(500000, ?W:circuit(<<"a">>, <<"b">>, ?ID, line(#{delay => 10000, spread => 5000}))),
            #{window := Narrow} = ?W:figures(?A, W0),
            Sender = case Who of opener -> ?A; acceptor -> ?B end,
            Receiver = case Who of opener -> ?B; acceptor -> ?A end,
            W1 = ?W:push(Sender, lists:duplicate(300, 60000), W0),
            W = ?W:run_for(2000000, W1),
            #{window := Wide, moves := 0} = ?W:figures(Sender, W),
            ?assertEqual({300, []}, {?W:got(Receiver, W), ?W:wrong(W)}),
            ?assert(Narrow =:= 1 bsl 20 andalso Wide > 4 * Narrow),
            ?assertMatch([{up, _}, {widened, _}, {widened, _}], ?W:notices(?A, W)),
            %% A short one stays as it is.
            Short = ?W:run_for(2000000, ?W:push(?A, lists:duplicate(300, 60000), up(line(#{})))),
            ?assertMatch({300, [{up, _}]}, {?W:got(?B, Short), ?W:notices(?A, Short)})
        end}}
     || Who <- [opener, acceptor]
    ].

a_relay_that_was_started_anew_does_not_know_the_path_and_says_so_test() ->
    W0 = up(line(#{})),
    W1 = ?W:run_for(50000, ?W:start(<<"g">>, ?W:run_for(5000, ?W:kill(<<"g">>, W0)))),
    %% Only the relay's own state is lost now, its connections stand.
    #{nodes := #{<<"g">> := _}} = W1,
    W2 = ?W:run_for(500000, ?W:mend(<<"a">>, <<"g">>, ?W:mend(<<"g">>, <<"b">>, W1))),
    W = ?W:run_for(1000000, ?W:push(?A, [5], W2)),
    ?assertEqual({1, []}, {?W:got(?B, W), ?W:wrong(W)}).

a_circuit_changes_to_a_connection_of_its_own_and_back_while_it_is_used_test() ->
    Load = fun(W) -> ?W:run_for(3000, ?W:push(?B, [30, 9000], ?W:push(?A, [40, 60000, 90000], W))) end,
    W0 = times(20, Load, up(world())),
    %% Only from here on can they connect.
    W1 = times(20, Load, ?W:better(?A, {own, <<"b">>}, ?W:link(<<"a">>, <<"b">>, own, W0))),
    ?assertMatch(#{path := [<<"a">>, <<"b">>], moves := 1}, ?W:figures(?A, W1)),
    ?assertMatch(#{circuits := 0}, ?W:relay(<<"g">>, W1)),
    ?assertMatch(#{circuits := 0}, ?W:relay(<<"h">>, W1)),
    W2 = times(20, Load, ?W:better(?A, [<<"a">>, <<"g">>, <<"b">>], W1)),
    W = ?W:run_for(1000000, W2),
    ?assertEqual({120, 180, []}, {?W:got(?A, W), ?W:got(?B, W), ?W:wrong(W)}),
    ?assertMatch([{up, _}, {moved, [_, _]}, {moved, [_, _, _]}], ?W:notices(?B, W)),
    [?assertEqual([], ?W:pauses(End, W)) || End <- [?A, ?B]].

a_better_path_that_fails_leaves_the_present_one_test() ->
    W0 = up(world()),
    W = ?W:run_for(2000000, ?W:push(?A, [1, 2], ?W:better(?A, [<<"a">>, <<"g">>, <<"x">>, <<"b">>], W0))),
    ?assertMatch([{up, _}, {not_moved, {refused, {<<"g">>, no_link, <<"x">>}}}], ?W:notices(?A, W)),
    ?assertEqual({2, []}, {?W:got(?B, W), ?W:wrong(W)}).

%% A directory may be behind: over a gateway that has died there is soon another way.
a_circuit_that_never_was_is_tried_for_as_long_as_one_that_is_lost_test() ->
    Path = [<<"a">>, <<"c">>, <<"x">>, <<"b">>],
    Dead = refused({<<"c">>, no_link, <<"x">>}),
    {S1, Acts1} = events([{0, {cast, no_route}}], tried(Path, Dead)),
    ?assertMatch({[], [{timer, attempt, _}]}, {[N || {notify, N} <- Acts1], Acts1}),
    %% Nothing is to be avoided any more, and the way is another one now.
    {S2, Acts2} = events([{300, {timeout, attempt}}], S1),
    ?assertEqual([[]], [Avoid || {act, {route, Avoid}} <- Acts2]),
    Good = [<<"a">>, <<"g">>, <<"b">>],
    Opened = atoll_dist_circuit_frame:make({opened, key(2), #{window => 200000, can => 1, received => 0, consumed => 0, answer => <<>>}}),
    {_, Acts3} = events([{301, {cast, {route, leg, Good}}}, {302, {cast, {frame, leg, Opened}}}], S2),
    ?assertMatch([{up, #{path := Good}}], [N || {notify, N} <- Acts3]),
    %% Nobody knows a way for a moment.
    {S4, Acts4} = events([{301, {cast, no_route}}], S2),
    ?assertMatch([{timer, attempt, _}], Acts4),
    %% Not for ever.
    {_, Acts5} = events([{1999, {timeout, attempt}}, {2000, {cast, no_route}}], S4),
    ?assertEqual([{ended, no_route}], [N || {notify, N} <- Acts5]).

%% On a node that is too busy to answer for seconds. Only an answer says that there is no way.
a_question_for_a_way_that_is_not_answered_is_asked_again_until_silence_is_over_test() ->
    Path = [<<"a">>, <<"g">>, <<"b">>],
    Opened = atoll_dist_circuit_frame:make({opened, key(1), #{window => 200000, can => 1, received => 0, consumed => 0, answer => <<>>}}),
    {Up, _} = events([{0, {cast, {route, leg, Path}}}, {0, {cast, {frame, leg, Opened}}}], opener()),
    Lost = atoll_dist_circuit_frame:make({path_lost, key(1), {<<"b">>, silent, <<>>}}),
    Asks = [{Ms, {timeout, attempt}} || Second <- lists:seq(1, 13), Ms <- [Second * 1100 - 100, Second * 1100]],
    {Asked, Acts} = events([{0, {cast, {frame, leg, Lost}}} | Asks], Up),
    ?assertMatch({[{lost, _}], 14}, {[N || {notify, N} <- Acts], length([1 || {act, {route, [{P, _}]}} <- Acts, P =:= Path])}),
    {_, Moved} = events([{14500, {cast, {route, leg, Path}}}], Asked),
    ?assertMatch([_], [Frame || {act, {send, leg, Frame}} <- Moved]),
    {_, Over} = events([{15300, {timeout, attempt}}], Asked),
    ?assertMatch([{ended, {path_lost, {_, silent, _}}}], [N || {notify, N} <- Over]),
    {Fresh, None} = events([{1000, {timeout, attempt}}], opener()),
    ?assertMatch({[], opening}, {[N || {notify, N} <- None], maps:get(state, atoll_dist_circuit:figures(Fresh))}).

%% Between two questions as well: each may be answered a moment too late.
a_way_that_comes_before_it_is_asked_for_again_is_taken_test() ->
    {Waits, _} = events([{1000, {timeout, attempt}}], opener()),
    {_, Acts} = events([{1050, {cast, {route, leg, [<<"a">>, <<"g">>, <<"b">>]}}}], Waits),
    ?assertMatch([_], [Frame || {act, {send, leg, Frame}} <- Acts]),
    ?assertMatch([1000 | _], [Ms || {timer, attempt, Ms} <- Acts]).

%% Everybody is busy: what takes two seconds there and back is waited for in the end.
an_answer_that_is_late_every_time_is_waited_for_longer_test() ->
    Ways = [[<<"a">>, G, <<"b">>] || G <- [<<"g">>, <<"h">>, <<"i">>, <<"j">>]],
    {_, Waits} = lists:foldl(
        fun(Way, {S0, Found}) ->
            {S1, Acts} = events([{0, {cast, {route, leg, Way}}}], S0),
            {S2, _} = events([{0, {timeout, attempt}}], S1),
            {S2, Found ++ [Ms || {timer, attempt, Ms} <- Acts]}
        end,
        {opener(), []},
        Ways
    ),
    ?assertEqual([1000, 2000, 4000, 4000], Waits).

%% The opener has heard nothing for a while, and says so: it may look for a way as long as for any silent path.
who_waits_for_the_other_end_waits_out_its_silence_test() ->
    Waits = fun(Why) ->
        W = up(line(#{})),
        #{path := Path, epoch := Epoch} = ?W:figures(?A, W),
        Lost = atoll_dist_circuit_frame:make({path_lost, key(Epoch), {<<"a">>, Why, <<>>}}),
        {_, Acts} = atoll_dist_circuit:handle({cast, {frame, {via, <<"g">>}, Lost}}, 200, ?W:state(?B, W)),
        ?assertEqual(3, length(Path)),
        [Ms || {timer, deadline, Ms} <- Acts]
    end,
    ?assertEqual({[17000], [4000]}, {Waits(silent), Waits(link_down)}).

where_waiting_is_of_no_use_a_new_circuit_ends_at_once_test_() ->
    Path = [<<"a">>, <<"g">>, <<"b">>],
    Ends = fun(Events, State) -> [Why || {notify, {ended, Why}} <- element(2, events(Events, State))] end,
    [
        {"nobody knows a way", ?_assertEqual([no_route], Ends([{0, {cast, no_route}}], opener()))}
        | [
            {atom_to_list(Why), fun() ->
                Said = {<<"g">>, Why, About},
                ?assertEqual([{refused, Said}], Ends([{0, {cast, no_route}}], tried(Path, refused(Said))))
            end}
         || {Why, About} <- [{no_link, <<"b">>}, {hops, <<>>}, {loop, <<>>}, {version, <<>>}]
        ]
    ].

%% One of two gateways has no connection with the end, and may just have started.
one_way_that_may_come_is_waited_for_test() ->
    [One, Other] = [[<<"a">>, G, <<"b">>] || G <- [<<"g">>, <<"h">>]],
    {S1, _} = events([{0, {cast, {route, leg, Other}}}], tried(One, refused({<<"g">>, no_link, <<"b">>}))),
    {_, Acts} = events([{0, {cast, {down, leg}}}, {0, {cast, no_route}}], S1),
    ?assertMatch({[], [_]}, {[N || {notify, N} <- Acts], [T || {timer, attempt, 100} = T <- Acts]}).

key(Epoch) -> atoll_dist_circuit_frame:key(?ID, Epoch).

opener() -> element(1, atoll_dist_circuit:init(#{id => ?ID, here => <<"a">>, there => <<"b">>, role => opener}, 0)).

refused(Said) -> {cast, {frame, leg, atoll_dist_circuit_frame:make({refused, key(1), Said})}}.

%% An opener whose first path had that answer, and which asks for another one.
tried(Path, Answer) ->
    {State, Acts} = events([{0, {cast, {route, leg, Path}}}, {0, Answer}], opener()),
    ?assertMatch([[{Path, {refused, _}}]], [Avoid || {act, {route, Avoid}} <- Acts]),
    State.

events(Events, State0) ->
    lists:foldl(
        fun({Ms, Event}, {S0, Acts}) ->
            {S, More} = atoll_dist_circuit:handle(Event, Ms, S0),
            {S, Acts ++ More}
        end,
        {State0, []},
        Events
    ).

a_refusal_reaches_the_opener_as_a_sentence_test_() ->
    [
        {Title, fun() ->
            W = ?W:run_for(2200000, up(line(#{relay => Relay}))),
            [Why] = ?W:ended(?A, W),
            ?assertEqual(Sentence, lists:flatten(unicode:characters_to_list(atoll_dist_circuit_reason:format_error(Why))))
        end}
     || {Title, Relay, Sentence} <- [
            {"policy", #{policy => none}, "The circuit was refused by g: it does not relay from a."},
            {"policy of pairs", #{policy => [{#{<<"a">> => x}, #{<<"c">> => x}}]}, "The circuit was refused by g: it does not relay from a."},
            {"memory", #{budget => 700000}, "The circuit was refused by g: its memory for circuits is given away."},
            {"circuits", #{max_circuits => 0}, "The circuit was refused by g: it has as many circuits as it may."},
            {"length", #{max_hops => 1}, "The circuit was refused by g: the path is too long."}
        ]
    ].

a_close_ends_both_with_its_reason_behind_what_was_sent_test() ->
    W0 = ?W:close(?A, going, ?W:push(?A, [100, 70000], up(line(#{})))),
    W = ?W:run_for(1000000, W0),
    ?assertEqual([{closed_here, going}], ?W:ended(?A, W)),
    ?assertEqual([{closed, {<<"a">>, closed, <<"going">>}}], ?W:ended(?B, W)),
    ?assertEqual({2, []}, {?W:got(?B, W), ?W:wrong(W)}),
    ?assertMatch(#{circuits := 0}, ?W:relay(<<"g">>, W)).

a_reason_of_letters_that_are_many_code_points_is_cut_test() ->
    Why = list_to_atom([$x | lists:duplicate(200, 16#301)]),
    W = ?W:run_for(100000, ?W:close(?A, Why, up(line(#{})))),
    [{closed, {<<"a">>, closed, Said}}] = ?W:ended(?B, W),
    ?assertMatch(<<"'x", _/binary>>, Said),
    ?assert(byte_size(Said) =< 255).

a_packet_larger_than_the_bound_ends_the_circuit_test() ->
    W = ?W:run_for(100000, ?W:push(?A, [100000], up(line(#{circuit => #{max_packet => 90000}})))),
    ?assertMatch({[{packet_too_large, 100020}], [{closed, {<<"a">>, too_large, _}}]}, {?W:ended(?A, W), ?W:ended(?B, W)}).

%% Seal

sealed() ->
    #{circuit => #{seal => required, cookie => <<"a cookie">>, keys => atoll_dist_seal:keys()}}.

a_sealed_circuit_survives_the_loss_of_its_path_test() ->
    W0 = up(world(sealed())),
    ?assertMatch([{up, #{sealed := true}}], ?W:notices(?B, W0)),
    #{path := [_, Gateway | _]} = ?W:figures(?A, W0),
    W1 = ?W:kill(Gateway, ?W:run_for(1000, ?W:push(?B, [7, 100000], ?W:push(?A, lists:duplicate(40, 50000), W0)))),
    W = ?W:run_for(2000000, ?W:push(?A, [1], W1)),
    ?assertEqual({41, 2, []}, {?W:got(?B, W), ?W:got(?A, W), ?W:wrong(W)}),
    ?assertMatch([{up, _}, {lost, _}, {moved, _}], ?W:notices(?A, W)).

bytes_that_a_relay_alters_end_a_sealed_circuit_test() ->
    W0 = up(line(sealed())),
    W1 = ?W:spoil(
        fun
            ({<<"g">>, <<"b">>, _}, <<2, $D, Head:28/binary, X, Rest/binary>>) -> <<2, $D, Head/binary, (X bxor 1), Rest/binary>>;
            (_, Frame) -> Frame
        end,
        W0
    ),
    W = ?W:run_for(1000000, ?W:push(?A, [100], W1)),
    ?assertEqual({0, [{altered, 0}], [{closed, {<<"b">>, altered, <<>>}}]}, {?W:got(?B, W), ?W:ended(?B, W), ?W:ended(?A, W)}).

without_the_cookie_or_the_seal_there_is_no_circuit_test() ->
    Strange = (maps:get(circuit, sealed()))#{cookie => <<"another">>},
    W1 = ?W:run_for(100000, ?W:circuit(<<"a">>, <<"b">>, ?ID, Strange, line(sealed()))),
    ?assertMatch({[{seal, cookie}], [{closed, {<<"a">>, seal, _}}]}, {?W:ended(?A, W1), ?W:ended(?B, W1)}),
    %% One that has nothing for a seal.
    None = line(#{circuit => #{seal => required}}),
    W2 = ?W:run_for(100000, ?W:circuit(<<"a">>, <<"b">>, ?ID, #{seal => off}, None)),
    ?assertMatch({[{refused, {<<"b">>, seal, <<"missing">>}}], [{seal, missing}]}, {?W:ended(?A, W2), ?W:ended(?B, W2)}),
    %% A relay that leaves out the hello.
    Strip = fun
        ({<<"a">>, _, _}, <<2, $O, _/binary>> = Frame) ->
            {ok, {open, Key, Open}} = atoll_dist_circuit_frame:parse(Frame),
            atoll_dist_circuit_frame:make({open, Key, Open#{hello := <<>>}});
        (_, Frame) -> Frame
    end,
    Lax = #{circuit => (maps:get(circuit, sealed()))#{seal => off}},
    W3 = ?W:run_for(100000, ?W:circuit(<<"a">>, <<"b">>, ?ID, #{seal => required}, ?W:spoil(Strip, line(Lax)))),
    ?assertMatch([{seal, missing}], ?W:ended(?A, W3)).

one_end_that_requires_a_seal_is_enough_test_() ->
    [
        {Title, fun() ->
            #{circuit := Circuit} = sealed(),
            W0 = ?W:circuit(<<"a">>, <<"b">>, ?ID, #{seal => Opener}, line(#{circuit => Circuit#{seal => Acceptor}})),
            W = ?W:run_for(1000000, ?W:push(?A, [100], ?W:run_for(100000, W0))),
            [?assertMatch([{up, #{path := [<<"a">>, <<"g">>, <<"b">>], sealed := true}}], ?W:notices(End, W)) || End <- [?A, ?B]],
            ?assertEqual({1, []}, {?W:got(?B, W), ?W:wrong(W)}),
            ?assertMatch(#{circuits := 1}, ?W:relay(<<"g">>, W))
        end}
     || {Title, Opener, Acceptor} <- [{"who opens", required, off}, {"the other", off, required}]
    ].

%% A relay that says so for the other end: it is asked once, and the circuit is sealed.
a_refusal_for_want_of_a_seal_is_believed_once_test() ->
    #{circuit := Circuit} = sealed(),
    Refuse = fun
        ({<<"g">>, <<"a">>, _}, <<2, $A, _/binary>> = Ack) -> Ack;
        ({<<"g">>, <<"a">>, _}, <<2, _, Key:20/binary, _/binary>>) ->
            atoll_dist_circuit_frame:make({refused, Key, {<<"b">>, seal, <<"missing">>}});
        (_, Frame) -> Frame
    end,
    W = ?W:run_for(1000000, ?W:circuit(<<"a">>, <<"b">>, ?ID, ?W:spoil(Refuse, line(#{circuit => Circuit#{seal => off}})))),
    ?assertEqual([{refused, {<<"b">>, seal, <<"missing">>}}], ?W:ended(?A, W)),
    ?assertMatch(#{epoch := 2}, ?W:figures(?A, W)).

%% The opener takes the circuit for one that is up. Nothing but its `open' gets anywhere.
a_sealed_circuit_survives_the_loss_of_its_first_confirm_test() ->
    Lose = fun
        ({<<"a">>, _, _}, <<2, Type, _:16/binary, 1:32, _/binary>>) when Type =/= $O -> lost;
        (_, Frame) -> Frame
    end,
    W = ?W:run_for(2000000, ?W:push(?A, [100], up(?W:spoil(Lose, world(sealed()))))),
    ?assertMatch([{up, _}, {lost, {silent, _}}, {moved, _}], ?W:notices(?A, W)),
    ?assertMatch({[{up, #{sealed := true}}], 1, []}, {?W:notices(?B, W), ?W:got(?B, W), ?W:wrong(W)}).

who_knows_a_sealed_circuit_s_id_cannot_take_it_elsewhere_test() ->
    W0 = up(world(sealed())),
    #{path := [_, Gateway | _]} = ?W:figures(?A, W0),
    [Other] = [<<"g">>, <<"h">>] -- [Gateway],
    Key = atoll_dist_circuit_frame:key(?ID, 9),
    Open = atoll_dist_circuit_frame:make({open, Key, #{window => 200000, can => 1, fresh => false, hello => <<>>, path => [<<"a">>, Other, <<"b">>]}}),
    Confirm = atoll_dist_circuit_frame:make({confirm, Key, #{received => 0, consumed => 0, proof => <<0:256>>}}),
    W1 = ?W:run_for(10000, ?W:inject(Other, <<"b">>, Confirm, ?W:inject(Other, <<"b">>, Open, W0))),
    W = ?W:run_for(1000000, ?W:push(?A, [1, 2, 3], W1)),
    [?assertMatch([{up, #{path := [_, Gateway, _]}}], ?W:notices(End, W)) || End <- [?A, ?B]],
    ?assertEqual({3, []}, {?W:got(?B, W), ?W:ended(?A, W)}),
    %% Nor is the next epoch taken away.
    Moved = ?W:run_for(100000, ?W:push(?A, [4], ?W:better(?A, [<<"a">>, Other, <<"b">>], W))),
    ?assertMatch([{up, _}, {moved, [_, Other, _]}], ?W:notices(?B, Moved)),
    ?assertEqual({4, []}, {?W:got(?B, Moved), ?W:wrong(Moved)}).

%% Fairness

a_slow_receiver_of_a_hundred_fast_senders_costs_the_others_nothing_test_() ->
    {timeout, 60, fun() ->
        Alone = latency(none),
        Beside = latency(senders),
        ?assert(length(Alone) >= 100),
        ?assertEqual(length(Alone), length(Beside)),
        [?assert(at(P, Beside) =< 1.2 * at(P, Alone)) || P <- [50, 90]]
    end}.

at(Percent, Sorted) -> lists:nth(max(1, length(Sorted) * Percent div 100), Sorted).

%% What a ping over the gateway takes to the slow receiver's neighbour node. The slow one
%% takes a packet of 30 KB each 2 ms.
latency(What) ->
    Names = [<<"s", (integer_to_binary(I))/binary>> || I <- lists:seq(1, 10)],
    Options = #{
        consume => #{<<"slow">> => 20000},
        relay => #{budget => 64 bsl 20, max_circuits => 120},
        circuit => #{window => 131072}
    },
    Nodes = [<<"a">>, <<"b">>, <<"g">>, <<"slow">> | Names],
    W0 = links([{N, <<"g">>} || N <- Nodes, N =/= <<"g">>], started(Nodes, ?W:new(Options))),
    W1 = up(W0),
    Circuits = [{N, <<I, N/binary, 0:(8 * (15 - byte_size(N)))>>} || What =:= senders, N <- Names, I <- lists:seq(1, 10)],
    W2 = lists:foldl(fun({N, Id}, W) -> ?W:circuit(N, <<"slow">>, Id, W) end, W1, Circuits),
    W3 = lists:foldl(fun(C, W) -> ?W:push(C, lists:duplicate(60, 30000), W) end, ?W:run_for(50000, W2), Circuits),
    %% Till they have filled their windows.
    Ping = fun(W) -> ?W:run_for(3000, ?W:push(?A, [100], 1, W)) end,
    W = times(150, Ping, ?W:run_for(200000, W3)),
    ?assertEqual([], ?W:wrong(W)),
    [?assertEqual([], ?W:ended(C, W)) || C <- Circuits],
    ?assertEqual(length(Circuits) + 1, maps:get(circuits, ?W:relay(<<"g">>, W))),
    ?assert(?W:peak(<<"g">>, W) < 64 bsl 20),
    ?W:stamps(?B, W).

times(0, _Fun, W) -> W;
times(N, Fun, W) -> times(N - 1, Fun, Fun(W)).

%% Everything together

faults_test_() ->
    atoll_prop:test(?FUNCTION_NAME, faults(), 200, [{max_size, 40}]).

%% Whatever happens: in order, once, within the budget; and at the end, when all is well
%% again, either all came or both ends have ended, once.
faults() ->
    ?FORALL({Steps, Relay, Consume, Sealed, Delay, Spread}, {list(step()), relay(), oneof([#{}, #{<<"b">> => 500}]), boolean(), oneof([50, 4000]), oneof([0, 3000])}, begin
        Circuit = case Sealed of true -> maps:get(circuit, sealed()); false -> #{} end,
        W0 = ?W:circuit(<<"a">>, <<"b">>, ?ID, world(#{relay => Relay, consume => Consume, circuit => Circuit, shortest => false, delay => Delay, spread => Spread})),
        W1 = lists:foldl(fun({Us, Step}, W) -> step(Step, ?W:run_for(Us, W)) end, W0, Steps),
        W = ?W:run_for(40000000, ?W:push(?B, [3], ?W:push(?A, [4], healed(W1)))),
        ?WHENFAIL(
            io:format("~p~n~p~n~p~n", [?W:wrong(W), [{E, ?W:notices(E, W), ?W:figures(E, W), ?W:got(E, W)} || E <- ?W:ends(W)], [?W:relay(N, W) || N <- [<<"g">>, <<"h">>, <<"i">>]]]),
            conjunction([{nothing_wrong, equals([], ?W:wrong(W))}, {whole, is_whole(W)}, {relays_are_empty, relays_are_empty(W)}])
        )
    end).

is_whole(#{ends := Ends} = W) ->
    case Ends of
        #{?A := #{pushed := N}, ?B := #{pushed := M}} ->
            case {?W:ended(?A, W), ?W:ended(?B, W)} of
                {[], []} -> {?W:got(?B, W), ?W:got(?A, W)} =:= {N, M};
                {[A], [B]} -> is_loss(A) andalso is_loss(B);
                _ -> false
            end;
        #{?A := _} ->
            [Why] = ?W:ended(?A, W),
            is_loss(Why)
    end.

%% Nobody lies here, so nobody is to be found breaking the rules.
is_loss(no_route) -> true;
is_loss({closed, {_, Why, _}}) -> Why =:= silent;
is_loss({refused, {_, Why, _}}) -> Why =/= seal;
is_loss({What, _}) -> lists:member(What, [down, silent, gap, path_lost]);
is_loss(_) -> false.

%% Nothing is kept for a circuit that has ended or moved.
relays_are_empty(W) ->
    Used =
        case ?W:ended(?A, W) of
            [] -> (maps:get(path, ?W:figures(?A, W)) -- [<<"a">>, <<"b">>]);
            _ -> []
        end,
    lists:all(
        fun(Name) ->
            Expected = case lists:member(Name, Used) of true -> 1; false -> 0 end,
            maps:get(circuits, ?W:relay(Name, W)) =:= Expected
        end,
        [<<"g">>, <<"h">>, <<"i">>]
    ).

healed(W0) ->
    W1 = lists:foldl(fun(G, W) -> step({start, G}, ?W:thaw(G, W)) end, W0, [<<"g">>, <<"h">>, <<"i">>]),
    lists:foldl(fun({A, B}, W) -> ?W:unblock(B, A, ?W:unblock(A, B, ?W:mend(A, B, W))) end, W1, pairs()).

pairs() -> [{<<"a">>, <<"g">>}, {<<"g">>, <<"b">>}, {<<"a">>, <<"h">>}, {<<"h">>, <<"b">>}, {<<"g">>, <<"i">>}, {<<"i">>, <<"h">>}].

relay() -> oneof([#{}, #{budget => 1 bsl 21, max_circuits => 2}, #{handed => 1000}]).

step() ->
    {frequency([{3, range(0, 3000)}, {2, range(0, 100000)}, {1, range(0, 1500000)}]),
        frequency([
            {8, {push, oneof([a, b]), list(size())}},
            {2, {cut, pair()}},
            {2, {mend, pair()}},
            {1, {kill, gateway()}},
            {2, {start, gateway()}},
            {1, {freeze, gateway()}},
            {2, {thaw, gateway()}},
            {1, {block, pair(), boolean()}},
            %% Between relays.
            {1, {block, oneof([{<<"g">>, <<"i">>}, {<<"i">>, <<"h">>}]), boolean()}},
            {2, {unblock, pair()}},
            {3, {better, oneof([[<<"g">>], [<<"h">>], [<<"g">>, <<"i">>, <<"h">>], [<<"h">>, <<"i">>, <<"g">>]])}}
        ])}.

size() -> frequency([{6, range(0, 100)}, {3, range(0, 70000)}, {1, range(70000, 300000)}]).
pair() -> oneof(pairs()).
gateway() -> oneof([<<"g">>, <<"h">>, <<"i">>]).

step({push, a, Sizes}, W) -> ?W:push(?A, Sizes, W);
step({push, b, Sizes}, W) -> ?W:push(?B, Sizes, W);
step({cut, {A, B}}, W) -> ?W:cut(A, B, W);
step({mend, {A, B}}, W) -> ?W:mend(A, B, W);
step({kill, G}, W) -> ?W:kill(G, W);
step({start, G}, #{nodes := Nodes} = W) when is_map_key(G, Nodes) -> W;
step({start, G}, W) ->
    lists:foldl(fun({A, B}, Acc) -> ?W:mend(A, B, Acc) end, ?W:start(G, W), [P || {A, B} = P <- pairs(), A =:= G orelse B =:= G]);
step({freeze, G}, W) -> ?W:freeze(G, W);
step({thaw, G}, W) -> ?W:thaw(G, W);
step({block, {A, B}, true}, W) -> ?W:block(A, B, W);
step({block, {A, B}, false}, W) -> ?W:block(B, A, W);
step({unblock, {A, B}}, W) -> ?W:unblock(B, A, ?W:unblock(A, B, W));
step({better, Between}, W) -> ?W:better(?A, [<<"a">>] ++ Between ++ [<<"b">>], W).
