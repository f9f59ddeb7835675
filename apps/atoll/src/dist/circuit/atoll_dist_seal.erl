%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The seal of a circuit: what its ends send to each other is encrypted, and whoever
%% relays it can neither read nor alter it unnoticed.
%%
%% Each end has a fresh pair of X25519 keys. The opening end says its public key in
%% `hello', the other answers with its own and with a proof that it knows the cookie; the
%% opening end proves the same when it confirms. A proof is an HMAC-SHA256 under the cookie
%% over both keys, the circuit's id, both nodes' names and the prover's side. The keys of
%% both directions are drawn (HKDF, RFC 5869, with SHA-256) from the agreed secret and from
%% an HMAC under the cookie of the same, so that who does not know the cookie cannot make
%% them even if it has put itself between the two.
%%
%% Each payload is sealed with AES-256-GCM; its number is its position in the direction's
%% stream, which never comes twice, and what is sent again over another path is the very
%% same bytes. Positions have no holes, so what is left out is noticed too.
%%
%% Promised: a payload is opened only if it is what the other end sealed at that position
%% of that direction of that circuit. With fresh keys of both ends a cookie that becomes
%% known later opens nothing that was recorded. Not promised: that a relay does not cut or
%% delay, or count what goes by; nor anything against who knows the cookie while it
%% relays, or guesses it: a cookie must be random and long.
-module(atoll_dist_seal).

-export([keys/0, hello/1, answer/3, finish/3, is_proof/2, confirm/4, is_confirm/5]).
-export([seal/3, open/3, overhead/0, format_error/1]).

-export_type([keys/0, about/0, seal/0, error/0]).

%% One end's pair for one circuit.
-type keys() :: {Public :: <<_:256>>, Private :: <<_:256>>}.

%% What is sealed, as both ends know it.
-type about() :: #{
    cookie := binary(),
    id := atoll_dist_circuit_frame:id(),
    opener := atoll_dist_circuit_frame:name(),
    acceptor := atoll_dist_circuit_frame:name()
}.

-record(seal, {
    %% What this end seals with, and opens with: a key, and what is mixed into the number.
    ours :: {<<_:256>>, <<_:96>>},
    theirs :: {<<_:256>>, <<_:96>>},
    %% For the proofs of further paths.
    paths :: <<_:256>>,
    %% The other end's proof is this; none where it was checked.
    awaited = none :: none | <<_:256>>
}).

-opaque seal() :: #seal{}.

-type error() ::
    %% The other end's proof is wrong.
    cookie
    %% What it says is no key.
    | bad_key
    %% It does not seal.
    | missing.

-define(VERSION, 1).
-define(TAG, 16).

%% @doc A fresh pair. It is random, so it is made outside of what is pure.
-spec keys() -> keys().
keys() ->
    {<<_:256>> = Public, <<_:256>> = Private} = crypto:generate_key(ecdh, x25519),
    {Public, Private}.

%% @doc By how much a payload grows.
-spec overhead() -> pos_integer().
overhead() -> ?TAG.

%% @doc What the opening end says first.
-spec hello(keys()) -> binary().
hello({Public, _}) -> <<?VERSION, Public/binary>>.

%% @doc The other end's answer to it, and its seal, which holds only once {@link
%% is_proof/2} has been asked.
-spec answer(Hello :: binary(), about(), keys()) -> {ok, binary(), seal()} | {error, error()}.
answer(<<?VERSION, Theirs:32/binary>>, About, {Public, _} = Keys) ->
    case secret(Theirs, Keys) of
        {ok, Secret} ->
            Said = said(About, Theirs, Public),
            {Opener, Acceptor, Paths} = derive(Secret, About, Said),
            Seal = #seal{ours = Acceptor, theirs = Opener, paths = Paths, awaited = proof($o, About, Said)},
            {ok, <<?VERSION, Public/binary, (proof($a, About, Said))/binary>>, Seal};
        error ->
            {error, bad_key}
    end;
answer(<<>>, _About, _Keys) ->
    {error, missing};
answer(_Hello, _About, _Keys) ->
    {error, bad_key}.

%% @doc The opening end's proof to that answer, and its seal.
-spec finish(Answer :: binary(), about(), keys()) -> {ok, Proof :: binary(), seal()} | {error, error()}.
finish(<<?VERSION, Theirs:32/binary, Proof:32/binary>>, About, {Public, _} = Keys) ->
    Said = said(About, Public, Theirs),
    case equal(Proof, proof($a, About, Said)) andalso secret(Theirs, Keys) of
        {ok, Secret} ->
            {Opener, Acceptor, Paths} = derive(Secret, About, Said),
            {ok, proof($o, About, Said), #seal{ours = Opener, theirs = Acceptor, paths = Paths}};
        false ->
            {error, cookie};
        error ->
            {error, bad_key}
    end;
finish(<<>>, _About, _Keys) ->
    {error, missing};
finish(_Answer, _About, _Keys) ->
    {error, bad_key}.

%% @doc Whether that is the opening end's proof.
-spec is_proof(binary(), seal()) -> boolean().
is_proof(Proof, #seal{awaited = Awaited}) -> Awaited =/= none andalso equal(Proof, Awaited).

%% @doc The opening end's proof for a further path of the circuit: nobody else can take it
%% elsewhere.
-spec confirm(
    atoll_dist_circuit_frame:epoch(), atoll_dist_circuit_frame:position(), atoll_dist_circuit_frame:position(), seal()
) -> binary().
confirm(Epoch, Received, Consumed, #seal{paths = Key}) ->
    crypto:mac(hmac, sha256, Key, <<Epoch:32, Received:64, Consumed:64>>).

%% @doc Whether it is such a proof.
-spec is_confirm(
    binary(), atoll_dist_circuit_frame:epoch(), atoll_dist_circuit_frame:position(), atoll_dist_circuit_frame:position(), seal()
) -> boolean().
is_confirm(Proof, Epoch, Received, Consumed, Seal) ->
    equal(Proof, confirm(Epoch, Received, Consumed, Seal)).

%% @doc A payload at a position, sealed.
-spec seal(atoll_dist_circuit_frame:position(), iodata(), seal()) -> [binary(), ...].
seal(At, Plain, #seal{ours = {Key, Mix}}) ->
    {Sealed, Tag} = crypto:crypto_one_time_aead(aes_256_gcm, Key, number(At, Mix), Plain, <<>>, ?TAG, true),
    [Sealed, Tag].

%% @doc What was sealed at that position, unless it is something else.
-spec open(atoll_dist_circuit_frame:position(), binary(), seal()) -> {ok, binary()} | error.
open(At, Payload, #seal{theirs = {Key, Mix}}) when byte_size(Payload) >= ?TAG ->
    Size = byte_size(Payload) - ?TAG,
    <<Sealed:Size/binary, Tag:?TAG/binary>> = Payload,
    case crypto:crypto_one_time_aead(aes_256_gcm, Key, number(At, Mix), Sealed, <<>>, Tag, false) of
        Plain when is_binary(Plain) -> {ok, Plain};
        error -> error
    end;
open(_At, _Payload, _Seal) ->
    error.

%% @doc One sentence that says what is wrong.
-spec format_error(error()) -> unicode:chardata().
format_error(cookie) -> "The other end of the circuit does not know the cookie, or somebody between has altered what it said.";
format_error(bad_key) -> "What the other end of the circuit says is no key.";
format_error(missing) -> "The other end of the circuit does not seal it, or somebody between has left that out.".

number(At, <<High:32, Low:64>>) -> <<High:32, (Low bxor At):64>>.

%% Each part has its length, so that no two parts are one another's.
said(#{id := Id, opener := Opener, acceptor := Acceptor}, FromOpener, FromAcceptor) ->
    [<<(byte_size(Part)):16, Part/binary>> || Part <- [<<"atoll circuit", ?VERSION>>, Id, Opener, Acceptor, FromOpener, FromAcceptor]].

proof(Side, #{cookie := Cookie}, Said) ->
    <<_:256>> = crypto:mac(hmac, sha256, Cookie, [Side | Said]).

%% A public key that makes a secret of nothing is refused (RFC 7748, section 6.1).
secret(Theirs, {_, Private}) ->
    try crypto:compute_key(ecdh, Theirs, Private, x25519) of
        <<0:256>> -> error;
        <<_:256>> = Secret -> {ok, Secret}
    catch
        error:_ -> error
    end.

derive(Secret, About, Said) ->
    Prk = crypto:mac(hmac, sha256, proof($k, About, Said), Secret),
    {{expand(Prk, "opener key"), mix(Prk, "opener number")}, {expand(Prk, "acceptor key"), mix(Prk, "acceptor number")},
        expand(Prk, "paths")}.

mix(Prk, Label) ->
    <<Mix:12/binary, _/binary>> = expand(Prk, Label),
    Mix.

%% HKDF-Expand of one block.
expand(Prk, Label) -> <<_:256>> = crypto:mac(hmac, sha256, Prk, [Label, 1]).

%% In a time that does not depend on where they differ.
equal(<<A:256>>, <<B:256>>) -> A bxor B =:= 0;
equal(_, _) -> false.
