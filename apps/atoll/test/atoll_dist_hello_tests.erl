%% SPDX-License-Identifier: Apache-2.0
%% The first frames: what is made is read, whatever else comes is refused.
-module(atoll_dist_hello_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-import(atoll_dist_hello, [make/1, read/1, proof/4, own_proof/3, same_name/2]).

stock_peers_are_told_by_their_first_frame_test() ->
    ?assertEqual({ok, {stock, <<"a@h">>}}, read(<<$N, 7:64, 8:32, 3:16, "a@h">>)),
    ?assertEqual({ok, {stock, <<"a@h">>}}, read(<<$n, 5:16, 7:32, "a@h">>)).

later_versions_are_read_as_far_as_they_are_known_test() ->
    <<"Atoll", 1, Rest/binary>> = make({refusal, busy}),
    ?assertEqual({ok, {refusal, busy}}, read(<<"Atoll", 2, Rest/binary, "and more">>)),
    ?assertEqual({error, not_a_hello}, read(<<"Atoll", 0, Rest/binary>>)).

who_knows_of_no_channels_says_nothing_of_them_and_is_read_test() ->
    Offer = #{name => <<"a@h">>, wish => direct, rtt_us => 1, ticktime_ms => 2, id => <<3:128>>, channels => []},
    Made = make({offer, Offer}),
    ?assertEqual({ok, {offer, Offer#{channels := none}}}, read(binary:part(Made, 0, byte_size(Made) - 1))).

channels_that_cannot_be_are_malformed_test_() ->
    [
        {lists:flatten(io_lib:format("~0p", [Said])), fun() ->
            Offer = #{name => <<>>, wish => direct, rtt_us => 1, ticktime_ms => 2, id => <<3:128>>, channels => Said},
            ?assertEqual({error, malformed}, read(make({offer, Offer})))
        end}
     || Said <- [[{<<"a">>, 0}], [{<<"a">>, 1}, {<<"a">>, 2}], [{<<"a">>, 16}, {<<"b">>, 16}]]
    ] ++
        [
            fun() ->
                Answer = #{kind => Kind, rtt_us => 1, ticktime_ms => 2, nonce => <<3:128>>, channels => [{<<"a">>, 4}]},
                ?assertEqual({error, malformed}, read(make({answer, Answer})))
            end
         || Kind <- [direct, {lanes, 4}]
        ].

names_are_compared_in_both_spellings_test() ->
    ?assert(same_name(<<"a@h">>, <<"a@h">>)),
    ?assert(same_name(<<"é@h"/utf8>>, <<233, "@h">>)),
    ?assertNot(same_name(<<"a@h">>, <<"b@h">>)),
    ?assertNot(same_name(<<255, 254>>, <<"b@h">>)).

a_proof_is_of_its_key_side_lane_and_what_was_said_test() ->
    Proofs = [
        proof(Key, Side, Index, Said)
     || Key <- [<<"k">>, <<"l">>], Side <- [connector, acceptor], Index <- [1, 2], Said <- [[<<"ab">>, <<"c">>], [<<"a">>, <<"bc">>]]
    ],
    ?assertEqual(16, length(lists:usort(Proofs))),
    ?assertEqual(hd(Proofs), proof(<<"k">>, connector, 1, [<<"ab">>, <<"c">>])),
    Own = [
        own_proof(Key, Side, Said)
     || Key <- [<<"k">>, <<"l">>], Side <- [connector, acceptor], Said <- [[<<"ab">>, <<"c">>], [<<"a">>, <<"bc">>]]
    ],
    ?assertEqual(24, length(lists:usort(Own ++ Proofs))).

properties_test_() ->
    [
        atoll_prop:test(Name, Property, 1000)
     || {Name, Property} <- [
            {what_is_made_is_read, prop_made_is_read()},
            {what_is_cut_or_changed_is_read_or_refused, prop_hostile()},
            {whatever_comes_is_read_or_refused, prop_noise()}
        ]
    ].

bytes(N) -> ?LET(L, vector(N, byte()), list_to_binary(L)).
lanes() -> integer(1, 64).
kind() -> oneof([direct, {lanes, lanes()}]).
u32() -> integer(0, 16#FFFFFFFF).
wish() -> oneof([kind(), {auto, u32(), lanes()}]).


%% Channels with so many lanes together, at most.
channels(Max) ->
    oneof([none, ?LET(Said, list({?LET(N, integer(0, 20), bytes(N)), integer(1, 8)}), fitting(lists:ukeysort(1, Said), Max))]).

fitting([{_, Lanes} = Channel | Rest], Left) when Lanes =< Left -> [Channel | fitting(Rest, Left - Lanes)];
fitting(_, _Left) -> [].

carried() ->
    oneof([
        {kind(), oneof([none, []])},
        ?LET(Channels, channels(62), {{lanes, max(1, atoll_dist_named:sum(Channels) + 1)}, Channels})
    ]).

frame() ->
    oneof([
        ?LET(
            {Name, Wish, Rtt, Tick, Id, Channels},
            {?LET(N, integer(0, 255), bytes(N)), wish(), u32(), u32(), bytes(16), channels(31)},
            {offer, #{name => Name, wish => Wish, rtt_us => Rtt, ticktime_ms => Tick, id => Id, channels => Channels}}
        ),
        ?LET(
            {{Kind, Channels}, Rtt, Tick, Nonce},
            {carried(), u32(), u32(), bytes(16)},
            {answer, #{kind => Kind, rtt_us => Rtt, ticktime_ms => Tick, nonce => Nonce, channels => Channels}}
        ),
        {refusal, oneof([version, not_allowed, busy, {other, integer(4, 255)}])},
        ?LET(
            {Id, Index, Nonce, Mac},
            {bytes(16), integer(1, 63), bytes(16), bytes(32)},
            {lane, #{id => Id, index => Index, nonce => Nonce, mac => Mac}}
        ),
        {lane_answer, bytes(32)},
        ?LET(
            {Id, Name, Wish, Rtt, Nonce},
            {bytes(16), ?LET(N, integer(0, 255), bytes(N)), wish(), u32(), bytes(16)},
            {own, #{id => Id, name => Name, wish => Wish, rtt_us => Rtt, nonce => Nonce}}
        ),
        ?LET({Kind, Nonce}, {kind(), bytes(16)}, {own_challenge, #{kind => Kind, nonce => Nonce}}),
        {own_proof, bytes(32)},
        {own_answer, bytes(32)}
    ]).

prop_made_is_read() ->
    ?FORALL(Frame, frame(), read(make(Frame)) =:= {ok, Frame}).

prop_hostile() ->
    ?FORALL(
        {Frame, At, Byte, Cut},
        {frame(), non_neg_integer(), byte(), non_neg_integer()},
        begin
            Made = make(Frame),
            Place = At rem byte_size(Made),
            <<Before:Place/binary, _, After/binary>> = Made,
            lists:all(
                fun is_answer/1,
                [read(<<Before/binary, Byte, After/binary>>), read(binary:part(Made, 0, Cut rem byte_size(Made)))]
            )
        end
    ).

prop_noise() ->
    ?FORALL(
        {Head, Rest},
        {oneof([<<>>, <<"Atoll", 1>>, <<"Atoll", 1, $O>>, <<"Atoll", 1, $K>>, <<"Atoll", 1, $W>>, <<"N">>]), binary()},
        is_answer(read(<<Head/binary, Rest/binary>>))
    ).

is_answer({ok, {Tag, _}}) -> lists:member(Tag, [offer, answer, refusal, lane, lane_answer, own, own_challenge, own_proof, own_answer, stock]);
is_answer({error, Why}) -> lists:member(Why, [not_a_hello, malformed]).
