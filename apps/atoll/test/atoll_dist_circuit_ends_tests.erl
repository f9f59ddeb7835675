%% SPDX-License-Identifier: Apache-2.0
%% The sending and the receiving half of an end: windows, order, and what comes again.
-module(atoll_dist_circuit_ends_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(F, atoll_dist_circuit_frame).
-define(OUT, atoll_dist_circuit_out).
-define(IN, atoll_dist_circuit_in).

%% Over paths with windows of any size, each of which loses what is on it when it ends.
what_goes_in_comes_out_test_() ->
    atoll_prop:test(?FUNCTION_NAME, ?FORALL(Ops, list(op()), through(Ops)), 500).

op() ->
    frequency([
        {5, {push, frequency([{3, range(1, 200)}, {2, range(1, 80000)}, {1, range(73000, 300000)}])}},
        {5, {carry, range(1, 10)}},
        %% So many, in another order.
        {3, {mix, list(range(0, 1000))}},
        {3, ack},
        {3, {consume, range(1, 5)}},
        {1, {path, range(73792, 400000)}}
    ]).

through(Ops) ->
    S0 = #{out => ?OUT:new(), in => ?IN:new(told, 1 bsl 20), window => 0, wire => [], sent => [], got => [], unread => 0, ok => true},
    Settle = [{path, 100000} | lists:append(lists:duplicate(300, [{carry, 10}, {consume, 100}, ack]))],
    #{sent := Sent, got := Got, ok := Ok} = lists:foldl(fun step/2, S0, Ops ++ Settle),
    conjunction([{order, equals(lists:reverse(Sent), lists:reverse(Got))}, {window, Ok}]).

step({push, Size}, #{out := Out, sent := Sent} = S) ->
    Packet = binary:copy(<<(length(Sent) rem 251)>>, Size),
    S#{out := ?OUT:push([{Size, [Packet]}], Out), sent := [Packet | Sent]};
step({carry, N}, #{window := Window} = S) when N > 0, Window > 0 ->
    #{out := Out0, in := In0, ok := Ok} = S,
    case ?OUT:next(Out0) of
        none -> S;
        {At, Payload, Out} ->
            case ?IN:arrive(At, iolist_to_binary(Payload), In0) of
                {ok, Packets, In} ->
                    #{got := Got, unread := Unread} = S,
                    {Received, Consumed} = ?IN:positions(In),
                    step({carry, N - 1}, S#{
                        out := Out, in := In, unread := Unread + length(Packets),
                        got := lists:reverse([iolist_to_binary(P) || P <- Packets], Got),
                        ok := Ok andalso Received - Consumed =< Window
                    });
                Other ->
                    S#{ok := {Other, At}}
            end
    end;
step({carry, _}, S) -> S;
step({mix, Keys}, #{out := Out0, in := In0, window := Window} = S) ->
    {Payloads, Out} = take(length(Keys), Out0, []),
    Mixed = [P || {_, P} <- lists:keysort(1, lists:zip(lists:sublist(Keys, length(Payloads)), Payloads))],
    lists:foldl(
        fun({At, Payload}, #{in := In1, got := Got, unread := Unread, ok := Ok} = Acc) ->
            case ?IN:arrive(At, Payload, In1) of
                {ok, Packets, In} ->
                    {Received, Consumed} = ?IN:positions(In),
                    Acc#{
                        in := In, unread := Unread + length(Packets), got := lists:reverse([iolist_to_binary(P) || P <- Packets], Got),
                        ok := Ok andalso Received - Consumed =< Window
                    };
                Other ->
                    Acc#{ok := {Other, At}}
            end
        end,
        S#{out := Out, in := In0},
        Mixed
    );
step(ack, #{out := Out0, in := In} = S) ->
    {Received, Consumed} = ?IN:positions(In),
    {ok, Out} = ?OUT:ack(Received, Consumed, Out0),
    S#{out := Out, in := ?IN:told(In)};
step({consume, N}, #{in := In, unread := Unread} = S) ->
    M = min(N, Unread),
    S#{in := ?IN:consumed(M, In), unread := Unread - M};
step({path, Window}, #{out := Out0, in := In} = S) ->
    %% One payload is lost with the path.
    Out1 = case maps:get(window, S) > 0 andalso ?OUT:next(Out0) of {_, _, Lost} -> Lost; _ -> Out0 end,
    {Received, Consumed} = ?IN:positions(In),
    {ok, Out} = ?OUT:resume(Received, Consumed, Window, ?OUT:pause(Out1)),
    S#{out := Out, in := ?IN:path(Window, In), window := Window}.

take(0, Out, Taken) -> {lists:reverse(Taken), Out};
take(N, Out0, Taken) ->
    case ?OUT:next(Out0) of
        none -> {lists:reverse(Taken), Out0};
        {At, Payload, Out} -> take(N - 1, Out, [{At, iolist_to_binary(Payload)} | Taken])
    end.

nothing_is_sent_beyond_the_window_test() ->
    {ok, Out} = ?OUT:resume(0, 0, 200000, ?OUT:push(lists:duplicate(100, {10000, <<0:80000>>}), ?OUT:new())),
    {Sent, Stopped} = all(Out, []),
    ?assert(lists:sum([?F:cost(Size) || {_, Size} <- Sent]) =< 200000),
    ?assert(lists:sum([?F:cost(Size) || {_, Size} <- Sent]) > 200000 - 73792),
    [{_, First} | _] = Sent,
    {ok, Acked} = ?OUT:ack(?F:cost(First), ?F:cost(First), Stopped),
    ?assertMatch({_, _, _}, ?OUT:next(Acked)).

all(Out0, Sent) ->
    case ?OUT:next(Out0) of
        none -> {lists:reverse(Sent), Out0};
        {At, Payload, Out} -> all(Out, [{At, iolist_size(Payload)} | Sent])
    end.

what_is_sent_again_is_the_very_same_test_() ->
    {timeout, 60, fun what_is_sent_again_is_the_very_same/0}.

what_is_sent_again_is_the_very_same() ->
    {O, A} = {atoll_dist_seal:keys(), atoll_dist_seal:keys()},
    About = #{cookie => <<"c">>, id => <<1:128>>, opener => <<"a">>, acceptor => <<"b">>},
    {ok, _, Seal} = atoll_dist_seal:answer(atoll_dist_seal:hello(O), About, A),
    Packets = [{200000, <<0:1600000>>}, {5, <<"hello">>}],
    {ok, Out0} = ?OUT:resume(0, 0, 400000, ?OUT:push(Packets, ?OUT:seal(Seal, ?OUT:new()))),
    {First, Out1} = payloads(Out0, []),
    {ok, Out2} = ?OUT:resume(0, 0, 400000, Out1),
    {Second, _} = payloads(Out2, []),
    ?assertEqual(First, Second),
    [?assert(byte_size(Payload) =< ?F:max_payload()) || {_, Payload} <- First].

payloads(Out0, Sent) ->
    case ?OUT:next(Out0) of
        none -> {lists:reverse(Sent), Out0};
        {At, Payload, Out} -> payloads(Out, [{At, iolist_to_binary(Payload)} | Sent])
    end.

an_ack_of_what_was_never_sent_is_an_error_test() ->
    {ok, Out0} = ?OUT:resume(0, 0, 200000, ?OUT:push([{10, <<0:80>>}], ?OUT:new())),
    {0, _, Out} = ?OUT:next(Out0),
    [?assertEqual(error, ?OUT:ack(N, 0, Out)) || N <- [1, 77, 79, 1 bsl 40]],
    [?assertEqual(error, ?OUT:resume(N, 0, 100000, Out)) || N <- [1, 77, 79]],
    {ok, Acked} = ?OUT:ack(78, 78, Out),
    %% What it had it must still have.
    ?assertEqual(error, ?OUT:resume(0, 0, 100000, Acked)),
    ?assertMatch({ok, _}, ?OUT:ack(0, 0, Acked)).

what_was_said_before_and_comes_late_is_no_error_test() ->
    {ok, Out0} = ?OUT:resume(0, 0, 200000, ?OUT:push([{10, <<0:80>>}], ?OUT:new())),
    {0, _, Out} = ?OUT:next(Out0),
    {ok, Acked} = ?OUT:ack(78, 0, Out),
    %% When the path was opened nothing was known; what has come since is not sent again.
    {ok, Resumed} = ?OUT:resume(0, 0, 200000, 0, Acked),
    ?assertEqual({78, none}, {?OUT:received(Resumed), ?OUT:next(Resumed)}),
    ?assertEqual(error, ?OUT:resume(0, 0, 200000, 1, Acked)).

whatever_comes_as_a_payload_is_read_or_an_error_test_() ->
    atoll_prop:test(
        ?FUNCTION_NAME,
        ?FORALL(Payload, ?SUCHTHAT(P, oneof([binary(), items()]), P =/= <<>>), begin
            case ?IN:arrive(0, Payload, ?IN:path(200000, ?IN:new(at_once, 5000))) of
                {ok, Packets, _} -> lists:all(fun(P) -> iolist_size(P) > 0 end, Packets);
                {error, bad_packet} -> true;
                {error, {packet_too_large, N}} -> N > 5000 - 64
            end
        end),
        1000
    ).

items() ->
    ?LET(Items, list({boolean(), range(0, 3000), range(-1, 1)}),
        iolist_to_binary([[<<(case M of true -> 1; false -> 0 end):1, (max(0, N + Off)):31>>, <<0:(8 * N)>>] || {M, N, Off} <- Items])).

pieces_without_an_end_are_bounded_test() ->
    Piece = iolist_to_binary(lists:duplicate(1000, <<1:1, 1:31, 7>>)),
    ?assertMatch({error, {packet_too_large, _}}, ?IN:arrive(0, Piece, ?IN:path(200000, ?IN:new(at_once, 10000)))).

an_end_receives_no_more_than_its_window_test() ->
    In0 = ?IN:path(73792, ?IN:new(told, 100000)),
    Payload = <<40000:32, 0:320000>>,
    {ok, [_], In1} = ?IN:arrive(0, Payload, In0),
    ?assertEqual({error, window_exceeded}, ?IN:arrive(40068, Payload, In1)),
    ?assertMatch({ok, [_], _}, ?IN:arrive(40068, Payload, ?IN:consumed(1, In1))),
    ?assertEqual(known, ?IN:arrive(0, Payload, In1)).

what_is_missing_holds_up_what_comes_behind_it_test() ->
    In0 = ?IN:path(200000, ?IN:new(at_once, 100000)),
    P = fun(N) -> <<40000:32, N, 0:319992>> end,
    {ok, [], In1} = ?IN:arrive(80136, P(3), In0),
    {ok, [], In2} = ?IN:arrive(40068, P(2), In1),
    ?assertEqual({none, 0}, {?IN:missing(In0), ?IN:missing(In2)}),
    ?assertEqual(known, ?IN:arrive(40068, P(2), In2)),
    {ok, Packets, In3} = ?IN:arrive(0, P(1), In2),
    ?assertEqual([1, 2, 3], [N || <<N, _/binary>> <- Packets]),
    ?assertEqual({none, {120204, 120204}}, {?IN:missing(In3), ?IN:positions(In3)}),
    %% Another path brings it all once more.
    ?assertEqual(none, ?IN:missing(?IN:path(200000, In2))).

what_is_held_is_bounded_and_makes_sense_test() ->
    In0 = ?IN:path(200000, ?IN:new(at_once, 100000)),
    ?assertEqual({error, window_exceeded}, ?IN:arrive(199000, <<1000:32, 0:8000>>, In0)),
    Hold = fun Hold(At, In) ->
        case ?IN:arrive(At, <<40000:32, 0:320000>>, In) of
            {ok, [], Held} -> Hold(At + 1, Held);
            Other -> {At, Other}
        end
    end,
    %% Four that overlap have more than the window.
    ?assertEqual({5, {error, window_exceeded}}, Hold(1, In0)),
    {ok, [], In1} = ?IN:arrive(7, <<1:32, 7>>, In0),
    ?assertEqual({error, bad_packet}, ?IN:arrive(0, <<40:32, 0:320>>, In1)).

packets_share_payloads_that_are_full_test() ->
    %% As the VM makes them of large messages.
    Sizes = lists:duplicate(100, 65560),
    {ok, Out} = ?OUT:resume(0, 0, 10000000, ?OUT:push([{S, [<<0:(8 * S)>>]} || S <- Sizes], ?OUT:new())),
    {Sent, _} = all(Out, []),
    Full = [Size || {_, Size} <- Sent, Size > 3 * ?F:max_payload() div 4],
    ?assert(length(Full) >= length(Sent) - 1),
    ?assert(length(Sent) =< 1.1 * lists:sum(Sizes) / ?F:max_payload()).

the_other_end_is_told_each_quarter_of_the_window_test() ->
    In0 = ?IN:path(80000, ?IN:new(at_once, 100000)),
    ?assertEqual(no, ?IN:wants_ack(In0)),
    {ok, [_], In1} = ?IN:arrive(0, <<10000:32, 0:80000>>, In0),
    ?assertEqual(later, ?IN:wants_ack(In1)),
    {ok, [_], In2} = ?IN:arrive(10068, <<10000:32, 0:80000>>, In1),
    ?assertEqual(now, ?IN:wants_ack(In2)),
    ?assertEqual(no, ?IN:wants_ack(?IN:told(In2))).

a_long_path_is_given_more_time_to_answer_test() ->
    Limits = #{probe_ms => 150, quiet_ms => 1000, idle_ms => 1000, silent_ms => 400},
    Answered = fun(RttMs) ->
        {ask, Ms, Pulse} = atoll_dist_circuit_pulse:look(false, 0, Limits, 1000, atoll_dist_circuit_pulse:new(0, RttMs)),
        ?assertMatch({wait, 1, _}, atoll_dist_circuit_pulse:look(false, 0, Limits, 999 + Ms, Pulse)),
        ?assertEqual(silent, atoll_dist_circuit_pulse:look(false, 0, Limits, 1000 + Ms, Pulse)),
        Ms
    end,
    ?assertEqual([400, 400, 600, 2000, 2000], [Answered(RttMs) || RttMs <- [0, 100, 150, 500, 900]]).
