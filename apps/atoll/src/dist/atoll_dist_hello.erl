%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc What two nodes say to each other before Erlang's own handshake: the frames of the
%% carrier's first exchange, made and read.
%%
%% The node that connects offers; the one that accepts answers with the kind of the
%% connection, or, as a later version may, with a refusal, and then Erlang's handshake follows as ever, which is what
%% says who is who. A further lane of a connection says whose lane it is, and proves it. A
%% circuit's own connection says which circuit's, and both ends prove that they have the cookie.
%% Each is one frame of a socket with `{packet, 2}'. Erlang's own handshake begins with
%% another letter, so a stock peer is told by its first frame.
%%
%% Promised: whatever comes is read without a crash and without making an atom. A frame
%% of a later version is read as far as this one knows it; what it has beyond that is
%% passed over.
%%
%% Nothing said here is authenticated, but what proves something. A peer that lies about its name
%% gets another kind of connection until Erlang's handshake tells another name.
-module(atoll_dist_hello).

-export([make/1, read/1, proof/4, own_proof/3, cookie/1, same_name/2]).

-export_type([offer/0, answer/0, lane/0, own/0, frame/0, reason/0]).

-type offer() :: #{
    %% The peer's name, or nothing if it has none yet.
    name := binary(),
    wish := atoll_dist_kind:wish(),
    %% The round trip as the peer measured it, in microseconds.
    rtt_us := 0..16#FFFFFFFF,
    %% What it takes to be silent too long, in milliseconds.
    ticktime_ms := 0..16#FFFFFFFF,
    %% Under which further lanes will join: random, of 16 bytes.
    id := <<_:128>>,
    %% The channels that the peer has; none where it knows of none.
    channels := atoll_dist_named:agreed()
}.

-type answer() :: #{
    kind := atoll_dist_kind:kind(),
    %% What the round trip is taken to be, by both.
    rtt_us := 0..16#FFFFFFFF,
    ticktime_ms := 0..16#FFFFFFFF,
    %% For the proofs of further lanes: random, of 16 bytes.
    nonce := <<_:128>>,
    %% The channels of the connection, whose lanes are the last ones of its kind.
    channels := atoll_dist_named:agreed()
}.

-type lane() :: #{
    id := <<_:128>>,
    index := 1..63,
    nonce := <<_:128>>,
    mac := <<_:256>>
}.

%% A connection of its own for a circuit.
-type own() :: #{
    %% The circuit's.
    id := <<_:128>>,
    %% The name of the node that connects, which kind it wishes, and the round trip that it
    %% has measured.
    name := binary(),
    wish := atoll_dist_kind:wish(),
    rtt_us := 0..16#FFFFFFFF,
    %% Further lanes join under it.
    nonce := <<_:128>>
}.

-type reason() :: version | not_allowed | busy | {other, byte()}.

-type frame() ::
    {offer, offer()}
    | {answer, answer()}
    | {refusal, reason()}
    | {lane, lane()}
    | {lane_answer, Mac :: <<_:256>>}
    | {own, own()}
    %% Who connects proves itself first, the other end next.
    | {own_challenge, #{kind := atoll_dist_kind:kind(), nonce := <<_:128>>}}
    | {own_proof, Mac :: <<_:256>>}
    | {own_answer, Mac :: <<_:256>>}
    %% Erlang's own handshake, of a node that says it is called so.
    | {stock, Name :: binary()}.

-define(MAGIC, "Atoll").
-define(VERSION, 1).

%% @doc A frame as bytes. A stock one is not made here.
-spec make(
    {offer, offer()} | {answer, answer()} | {refusal, reason()} | {lane, lane()} | {lane_answer, <<_:256>>}
    | {own, own()} | {own_challenge, #{kind := atoll_dist_kind:kind(), nonce := <<_:128>>}} | {own_proof, <<_:256>>}
    | {own_answer, <<_:256>>}
) -> binary().
make({offer, #{name := Name, wish := Wish, rtt_us := RttUs, ticktime_ms := TickMs, id := <<Id:16/binary>>, channels := Channels}}) ->
    <<(head($O))/binary, (make_wish(Wish))/binary, RttUs:32, TickMs:32, Id/binary, (byte_size(Name)):16, Name/binary,
      (make_channels(Channels))/binary>>;
make({answer, #{kind := Kind, rtt_us := RttUs, ticktime_ms := TickMs, nonce := <<Nonce:16/binary>>, channels := Channels}}) ->
    {Code, Lanes} = make_kind(Kind),
    <<(head($K))/binary, Code, Lanes, RttUs:32, TickMs:32, Nonce/binary, (make_channels(Channels))/binary>>;
make({refusal, Reason}) ->
    <<(head($R))/binary, (reason_code(Reason))>>;
make({lane, #{id := <<Id:16/binary>>, index := Index, nonce := <<Nonce:16/binary>>, mac := <<Mac:32/binary>>}}) ->
    <<(head($L))/binary, Id/binary, Index, Nonce/binary, Mac/binary>>;
make({lane_answer, <<Mac:32/binary>>}) ->
    <<(head($M))/binary, Mac/binary>>;
make({own, #{id := <<Id:16/binary>>, name := Name, wish := Wish, rtt_us := RttUs, nonce := <<Nonce:16/binary>>}}) ->
    <<(head($W))/binary, Id/binary, Nonce/binary, (make_wish(Wish))/binary, RttUs:32, (byte_size(Name)):16, Name/binary>>;
make({own_challenge, #{kind := Kind, nonce := <<Nonce:16/binary>>}}) ->
    {Code, Lanes} = make_kind(Kind),
    <<(head($X))/binary, Nonce/binary, Code, Lanes>>;
make({own_proof, <<Mac:32/binary>>}) ->
    <<(head($Y))/binary, Mac/binary>>;
make({own_answer, <<Mac:32/binary>>}) ->
    <<(head($Z))/binary, Mac/binary>>.

head(Letter) ->
    <<?MAGIC, ?VERSION, Letter>>.

make_wish({auto, LaneRttUs, Lanes}) ->
    <<0, Lanes, LaneRttUs:32>>;
make_wish(Kind) ->
    {Code, Lanes} = make_kind(Kind),
    <<Code, Lanes, 0:32>>.

make_kind(direct) -> {1, 1};
make_kind({lanes, Lanes}) -> {2, Lanes}.

%% Nothing, as who knows of no channels says.
make_channels(none) ->
    <<>>;
make_channels(Channels) ->
    Said = << <<(byte_size(Name)), Name/binary, Lanes>> || {Name, Lanes} <- Channels >>,
    <<(length(Channels)), Said/binary>>.

reason_code(version) -> 1;
reason_code(not_allowed) -> 2;
reason_code(busy) -> 3;
reason_code({other, Code}) -> Code.

%% @doc What a frame says.
-spec read(binary()) -> {ok, frame()} | {error, not_a_hello | malformed}.
read(<<?MAGIC, Version, Letter, Rest/binary>>) when Version >= ?VERSION ->
    read(Letter, Rest);
read(<<$N, _Flags:64, _Creation:32, Size:16, Name:Size/binary, _/binary>>) ->
    {ok, {stock, Name}};
read(<<$n, _Version:16, _Flags:32, Name/binary>>) ->
    {ok, {stock, Name}};
read(_) ->
    {error, not_a_hello}.

read($O, <<Wish:6/binary, RttUs:32, TickMs:32, Id:16/binary, Size:16, Name:Size/binary, Rest/binary>>) when Size =< 1024 ->
    case {read_wish(Wish), read_channels(offer, Rest)} of
        {{ok, Read}, {ok, Channels}} ->
            Offer = #{name => Name, wish => Read, rtt_us => RttUs, ticktime_ms => TickMs, id => Id, channels => Channels},
            {ok, {offer, Offer}};
        _ ->
            {error, malformed}
    end;
read($K, <<Code, Lanes, RttUs:32, TickMs:32, Nonce:16/binary, Rest/binary>>) ->
    case {read_kind(Code, Lanes), read_channels(answer, Rest)} of
        {{ok, Kind}, {ok, Channels}} ->
            answer(#{kind => Kind, rtt_us => RttUs, ticktime_ms => TickMs, nonce => Nonce, channels => Channels});
        _ ->
            {error, malformed}
    end;
read($R, <<Code, _/binary>>) ->
    {ok, {refusal, read_reason(Code)}};
read($L, <<Id:16/binary, Index, Nonce:16/binary, Mac:32/binary, _/binary>>) when Index >= 1, Index =< 63 ->
    {ok, {lane, #{id => Id, index => Index, nonce => Nonce, mac => Mac}}};
read($M, <<Mac:32/binary, _/binary>>) ->
    {ok, {lane_answer, Mac}};
read($W, <<Id:16/binary, Nonce:16/binary, Wish:6/binary, RttUs:32, Size:16, Name:Size/binary, _/binary>>) when Size =< 1024 ->
    case read_wish(Wish) of
        {ok, Read} -> {ok, {own, #{id => Id, name => Name, wish => Read, rtt_us => RttUs, nonce => Nonce}}};
        error -> {error, malformed}
    end;
read($X, <<Nonce:16/binary, Code, Lanes, _/binary>>) ->
    case read_kind(Code, Lanes) of
        {ok, Kind} -> {ok, {own_challenge, #{kind => Kind, nonce => Nonce}}};
        error -> {error, malformed}
    end;
read($Y, <<Mac:32/binary, _/binary>>) ->
    {ok, {own_proof, Mac}};
read($Z, <<Mac:32/binary, _/binary>>) ->
    {ok, {own_answer, Mac}};
read(_Letter, _Rest) ->
    {error, malformed}.

%% What is in no channel has a lane as well.
answer(#{kind := Kind, channels := Channels} = Answer) ->
    case {Kind, atoll_dist_named:sum(Channels)} of
        {_, 0} -> {ok, {answer, Answer}};
        {{lanes, All}, Lanes} when Lanes < All -> {ok, {answer, Answer}};
        _ -> {error, malformed}
    end.

read_channels(_What, <<>>) -> {ok, none};
read_channels(What, <<Count, Rest/binary>>) -> read_channels(What, Count, Rest, []).

read_channels(What, 0, _, Read) ->
    case atoll_dist_named:is_said(What, Read) of
        true -> {ok, lists:reverse(Read)};
        false -> error
    end;
read_channels(What, Count, <<Size, Name:Size/binary, Lanes, Rest/binary>>, Read) ->
    read_channels(What, Count - 1, Rest, [{binary:copy(Name), Lanes} | Read]);
read_channels(_What, _, _, _) ->
    error.

read_wish(<<0, Lanes, LaneRttUs:32>>) when Lanes >= 1, Lanes =< 64 -> {ok, {auto, LaneRttUs, Lanes}};
read_wish(<<Code, Lanes, _:32>>) -> read_kind(Code, Lanes).

read_kind(1, _Lanes) -> {ok, direct};
read_kind(2, Lanes) when Lanes >= 1, Lanes =< 64 -> {ok, {lanes, Lanes}};
read_kind(_Code, _Lanes) -> error.

read_reason(1) -> version;
read_reason(2) -> not_allowed;
read_reason(3) -> busy;
read_reason(Code) -> {other, Code}.

%% @doc The proof that a lane belongs to a connection, from one end: the connection's key,
%% who proves it, which lane, and what both have said (ids and nonces).
-spec proof(Key :: binary(), connector | acceptor, Index :: 1..63, Said :: [binary()]) -> <<_:256>>.
proof(Key, Side, Index, Said) ->
    mac(Key, Side, Index, Said).

%% @doc The same for the connection of its own of a circuit: what was said are the circuit's
%% id, the names of the node that connects and of the other one, their nonces, and the number
%% of lanes.
-spec own_proof(Key :: binary(), connector | acceptor, Said :: [binary()]) -> <<_:256>>.
own_proof(Key, Side, Said) ->
    %% No lane has that index.
    mac(Key, Side, 255, Said).

mac(Key, Side, Index, Said) ->
    Letter = case Side of connector -> $c; acceptor -> $a end,
    <<Mac:32/binary>> = crypto:mac(hmac, sha256, Key, [?MAGIC, Letter, Index | [<<(byte_size(S)):16, S/binary>> || S <- Said]]),
    Mac.

%% @doc The cookie for the node that is called so. A name that is no atom here has none of
%% its own.
-spec cookie(binary()) -> binary().
cookie(Name) ->
    Cookie =
        try
            erlang:get_cookie(binary_to_existing_atom(Name))
        catch
            error:badarg -> erlang:get_cookie()
        end,
    atom_to_binary(Cookie).

%% @doc Whether an offer and Erlang's handshake after it come from a node of one name.
%% Releases of Erlang differ in how they write a letter that is not ASCII.
-spec same_name(Offered :: binary(), InHandshake :: binary()) -> boolean().
same_name(Name, Name) ->
    true;
same_name(Offered, InHandshake) ->
    unicode:characters_to_binary(Offered, utf8, latin1) =:= InHandshake.
