%% SPDX-License-Identifier: Apache-2.0
%% The seal of circuits: only the other end opens what an end has sealed, and only as it
%% was.
-module(atoll_dist_seal_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(S, atoll_dist_seal).

about() -> #{cookie => <<"monster">>, id => <<1:128>>, opener => <<"a@h">>, acceptor => <<"b@h">>}.

%% Both ends' seals, of keys that are made anew.
pair() -> pair(about(), about()).

pair(Opener, Acceptor) ->
    {Ours, Theirs} = {?S:keys(), ?S:keys()},
    {ok, Answer, Seal2} = ?S:answer(?S:hello(Ours), Acceptor, Theirs),
    case ?S:finish(Answer, Opener, Ours) of
        {ok, Proof, Seal1} -> {Seal1, Seal2, ?S:is_proof(Proof, Seal2)};
        {error, _} = Error -> Error
    end.

what_one_end_seals_the_other_opens_test_() ->
    {timeout, 60, fun() ->
        {Seal1, Seal2, true} = pair(),
        ok = atoll_prop:holds(
            ?FUNCTION_NAME,
            ?FORALL({At, Plain}, {non_neg_integer(), binary()}, begin
                Sealed = iolist_to_binary(?S:seal(At, Plain, Seal1)),
                Back = iolist_to_binary(?S:seal(At, [Plain], Seal2)),
                byte_size(Sealed) =:= byte_size(Plain) + ?S:overhead() andalso
                    ?S:open(At, Sealed, Seal2) =:= {ok, Plain} andalso ?S:open(At, Back, Seal1) =:= {ok, Plain}
            end),
            300
        )
    end}.

each_change_of_a_bit_is_detected_test() ->
    {Seal1, Seal2, true} = pair(),
    Sealed = iolist_to_binary(?S:seal(7, <<"some bytes">>, Seal1)),
    Size = bit_size(Sealed),
    [
        begin
            <<Before:I/bits, Bit:1, After/bits>> = Sealed,
            ?assertEqual(error, ?S:open(7, <<Before/bits, (1 - Bit):1, After/bits>>, Seal2))
        end
     || I <- lists:seq(0, Size - 1)
    ],
    [?assertEqual(error, ?S:open(7, binary:part(Sealed, 0, N), Seal2)) || N <- lists:seq(0, byte_size(Sealed) - 1)].

it_opens_nowhere_else_test() ->
    {Seal1, Seal2, true} = pair(),
    {Other1, Other2, true} = pair(),
    Sealed = iolist_to_binary(?S:seal(7, <<"some bytes">>, Seal1)),
    %% At another position, in the other direction, in another circuit.
    ?assertEqual(error, ?S:open(8, Sealed, Seal2)),
    ?assertEqual(error, ?S:open(7, Sealed, Seal1)),
    [?assertEqual(error, ?S:open(7, Sealed, Seal)) || Seal <- [Other1, Other2]].

numbers_differ_with_positions_test() ->
    {Seal1, _, true} = pair(),
    Sealed = [iolist_to_binary(?S:seal(At, <<0:256>>, Seal1)) || At <- [0, 1, 64, 1 bsl 40, (1 bsl 64) - 1]],
    ?assertEqual(5, length(lists:usort(Sealed))),
    %% The same again is the very same.
    ?assertEqual(hd(Sealed), iolist_to_binary(?S:seal(0, <<0:256>>, Seal1))).

both_must_mean_the_same_circuit_with_the_same_cookie_test_() ->
    [
        ?_assertEqual({error, cookie}, pair(about(), (about())#{Key := Other}))
     || {Key, Other} <- [{cookie, <<"other">>}, {id, <<2:128>>}, {opener, <<"b@h">>}, {acceptor, <<"a@h">>}]
    ].

who_does_not_know_the_cookie_cannot_stand_between_test() ->
    {A, B, M} = {?S:keys(), ?S:keys(), ?S:keys()},
    Guess = (about())#{cookie := <<"guess">>},
    %% It gives the opener its own key with a proof of a cookie that it does not know.
    {ok, False, _} = ?S:answer(?S:hello(A), Guess, M),
    ?assertEqual({error, cookie}, ?S:finish(False, about(), A)),
    %% Or its own key with the proof of the other end for the true one.
    {ok, <<V, _:32/binary, Proof/binary>>, SealB} = ?S:answer(?S:hello(A), about(), B),
    <<V, Public/binary>> = ?S:hello(M),
    ?assertEqual({error, cookie}, ?S:finish(<<V, Public/binary, Proof/binary>>, about(), A)),
    %% It gives the other end its own key, and has no proof.
    {ok, Answer, SealB2} = ?S:answer(?S:hello(M), about(), B),
    ?assertEqual({error, cookie}, ?S:finish(Answer, Guess, M)),
    [?assertNot(?S:is_proof(P, SealB2)) || P <- [<<>>, <<0:256>>, Proof]],
    ?assertNot(?S:is_proof(Proof, SealB)).

what_is_no_key_is_refused_test() ->
    Keys = ?S:keys(),
    %% Points of small order make a secret of nothing.
    [?assertEqual({error, bad_key}, ?S:answer(<<1, Point:256/little>>, about(), Keys)) || Point <- [0, 1]],
    [?assertEqual({error, bad_key}, ?S:answer(Hello, about(), Keys)) || Hello <- [<<1>>, <<2, 5:256>>, <<1, 5:248>>]],
    ?assertEqual({error, missing}, ?S:answer(<<>>, about(), Keys)),
    ?assertEqual({error, missing}, ?S:finish(<<>>, about(), Keys)),
    ?assertEqual({error, bad_key}, ?S:finish(<<1, 2>>, about(), Keys)).

a_proof_of_a_further_path_holds_for_that_one_test() ->
    {Seal1, Seal2, true} = pair(),
    {Other, _, true} = pair(),
    Proof = ?S:confirm(3, 100, 50, Seal1),
    ?assert(?S:is_confirm(Proof, 3, 100, 50, Seal2)),
    [?assertNot(?S:is_confirm(Proof, E, R, C, Seal2)) || {E, R, C} <- [{4, 100, 50}, {3, 101, 50}, {3, 100, 51}]],
    [?assertNot(?S:is_confirm(P, 3, 100, 50, Seal2)) || P <- [<<>>, ?S:confirm(3, 100, 50, Other)]].
