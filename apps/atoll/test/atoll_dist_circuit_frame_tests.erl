%% SPDX-License-Identifier: Apache-2.0
%% The frames of circuits: what was made is read again, and whatever else comes is read
%% without a crash.
-module(atoll_dist_circuit_frame_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(F, atoll_dist_circuit_frame).

what_was_made_is_read_again_test_() ->
    atoll_prop:test(?FUNCTION_NAME, ?FORALL(Frame, frame(), equals({ok, Frame}, ?F:parse(?F:make(Frame)))), 1000).

%% And a relay sees the same in it.
the_head_agrees_with_the_whole_test_() ->
    atoll_prop:test(?FUNCTION_NAME, ?FORALL(Frame, frame(), equals({ok, element(1, Frame), element(2, Frame)}, ?F:head(?F:make(Frame)))), 500).

whatever_comes_is_read_without_a_crash_test_() ->
    atoll_prop:test(
        ?FUNCTION_NAME,
        ?FORALL(Bytes, hostile(), begin
            Head = ?F:head(Bytes),
            case ?F:parse(Bytes) of
                %% What is read is what would be made.
                {ok, Frame} -> made(Frame, ?F:is_free(Bytes)) =:= Bytes andalso Head =:= {ok, element(1, Frame), element(2, Frame)};
                {error, {version, V}} -> V > 2 andalso Head =:= {error, {version, V}};
                {error, malformed} -> true
            end
        end),
        3000
    ).

a_node_on_the_path_makes_the_window_less_and_leaves_what_it_can_too_test() ->
    Open = #{window => 7, can => 16#FFFFFFFE bor ?F:abilities(), fresh => true, hello => <<"h">>, path => [<<"a">>, <<"b">>]},
    Narrowed = Open#{window := 5, can := ?F:abilities()},
    ?assertEqual({ok, {open, key(), Narrowed}}, ?F:parse(?F:narrowed(5, ?F:make({open, key(), Open})))),
    ?assertEqual({ok, {open, key(), Narrowed#{can := 0}}}, ?F:parse(?F:narrowed(5, ?F:make({open, key(), Open#{can := 0}})))).

two_acks_are_one_that_says_what_both_said_test() ->
    Ack = fun(R, C, Wants) -> {ack, key(), #{received => R, consumed => C, asks => Wants, narrow => not Wants}} end,
    {ack, Key, Both} = Ack(9, 8, true),
    ?assertEqual({ok, {ack, Key, Both#{narrow := true}}}, ?F:parse(?F:joined(?F:make(Ack(5, 4, true)), ?F:make(Ack(9, 8, false))))).

made({data, Key, At, Payload}, true) -> ?F:data(free, Key, At, Payload);
made(Frame, false) -> ?F:make(Frame).

no_payload_and_one_too_large_are_malformed_test() ->
    [
        ?assertEqual({{error, malformed}, {error, malformed}}, {?F:parse(F), ?F:head(F)})
     || Payload <- [<<>>, <<0:(8 * (?F:max_payload() + 1))>>], Order <- [kept, free], F <- [?F:data(Order, key(), 0, Payload)]
    ],
    [
        begin
            F = ?F:data(Order, key(), 5, <<0:(8 * ?F:max_payload())>>),
            ?assertMatch({{ok, data, _}, {ok, {data, _, 5, _}}, Free}, {?F:head(F), ?F:parse(F), ?F:is_free(F)})
        end
     || {Order, Free} <- [{kept, false}, {free, true}]
    ].

each_reason_has_a_sentence_and_a_later_release_s_too_test() ->
    [
        begin
            Said = {<<"g@h">>, atoll_dist_circuit_reason:why(Code), About},
            Sentence = unicode:characters_to_list(atoll_dist_circuit_reason:format_error({refused, Said})),
            ?assertEqual($., lists:last(Sentence)),
            ?assertEqual(nomatch, string:find(Sentence, "~")),
            ?assertEqual([], [C || C <- Sentence, C < $\s])
        end
     || Code <- lists:seq(0, 255), About <- [<<>>, <<"n@m">>, <<255, 254>>, <<"x\n">>]
    ],
    [
        ?assert(length(unicode:characters_to_list(atoll_dist_circuit_reason:format_error(Why))) > 20)
     || Why <- [{down, {via, <<"g">>}}, {silent, <<"b">>}, {gap, <<"b">>}, no_route, {closed_here, x}, {altered, 5}, {seal, cookie},
            {seal, bad_key}, {seal, missing}, window_exceeded, bad_packet, bad_ack, {packet_too_large, 7}, {path_lost, {<<"g">>, idle, <<>>}}]
    ].

key() -> ?F:key(<<"0123456789abcdef">>, 3).

frame() ->
    oneof([
        {open, a_key(), ?LET({W, C, F, H, P}, {range(0, 16#FFFFFFFF), range(0, 16#FFFFFFFF), boolean(), text(), [name(), name() | list(name())]}, #{window => W, can => C, fresh => F, hello => H, path => P})},
        {opened, a_key(), ?LET({W, {R, C}, A}, {range(0, 16#FFFFFFFF), positions(), text()}, #{window => W, can => 1, received => R, consumed => C, answer => A})},
        {confirm, a_key(), ?LET({{R, C}, P}, {positions(), text()}, #{received => R, consumed => C, proof => P})},
        {refused, a_key(), said()},
        {data, a_key(), position(), ?SUCHTHAT(P, binary(), P =/= <<>>)},
        {ack, a_key(), ?LET({{R, C}, A, N}, {positions(), boolean(), boolean()}, #{received => R, consumed => C, asks => A, narrow => N})},
        {path_lost, a_key(), said()},
        {close, a_key(), said()}
    ]).

a_key() -> ?LET({Id, Epoch}, {binary(16), range(1, 16#FFFFFFFF)}, ?F:key(Id, Epoch)).
position() -> oneof([range(0, 1000), range(0, 16#FFFFFFFFFFFFFFFF)]).
positions() -> ?LET({A, B}, {position(), position()}, {max(A, B), min(A, B)}).
text() -> ?LET(B, binary(), binary:part(B, 0, min(255, byte_size(B)))).
name() -> ?LET(B, text(), <<"n", (binary:part(B, 0, min(254, byte_size(B))))/binary>>).
said() -> {text(), ?LET(Code, byte(), atoll_dist_circuit_reason:why(Code)), text()}.

%% Frames with something changed, cut off or put on, and noise.
hostile() ->
    oneof([
        binary(),
        ?LET(B, binary(), <<2, B/binary>>),
        ?LET({L, B}, {oneof("OKFRDEAPC"), binary()}, <<2, L, B/binary>>),
        ?LET({F, At, X}, {frame(), non_neg_integer(), byte()}, begin
            B = ?F:make(F),
            I = At rem byte_size(B),
            <<Before:I/binary, _, After/binary>> = B,
            <<Before/binary, X, After/binary>>
        end),
        ?LET({F, N}, {frame(), non_neg_integer()}, begin
            B = ?F:make(F),
            binary:part(B, 0, N rem byte_size(B))
        end),
        ?LET({F, B}, {frame(), binary()}, <<(?F:make(F))/binary, B/binary>>)
    ]).
