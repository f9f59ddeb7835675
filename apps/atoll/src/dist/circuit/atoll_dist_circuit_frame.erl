%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc What goes over a circuit: its frames, made and read.
%%
%% A circuit is a way between two nodes, its ends, over other nodes' connections. Each
%% frame is one binary. It begins with a version, a letter, and the key of the path that
%% it goes over: the circuit's id, which the end that opened it drew, and the epoch, which
%% tells one path of the circuit from the next. A relay needs to read no further to know
%% where a frame goes.
%%
%% A path is agreed in three frames: `open' goes from node to node along the path that
%% is written in it; `opened' comes back; `confirm' goes again, and from then on both
%% ends use it. `refused' comes back instead of `opened'. Then there is `data', `ack', and
%% at the end `path_lost', which ends the path, or `close', which ends the circuit.
%%
%% An `open' says what the end that opens can do, a bit for each ability that came after the
%% first version; each node on the path leaves those that it has too, and `opened' says what
%% all can. So ends of later versions know what they may use on which path; bits that a
%% node does not know it takes away. What they cannot say so is a version of its own.
%%
%% What a circuit carries is counted in <em>positions</em>: a `data' frame takes as many as
%% {@link cost/1} says, which is more than its bytes, so that who promises room for
%% positions has room for frames however small they are.
%%
%% Frames arrive in the order in which they were sent, and an `ack' may overtake others. So
%% may `data' that is marked as free; it comes behind the `confirm' nevertheless, since its
%% sender knows that this has arrived.
%%
%% Promised: whatever comes is read without a crash and without making an atom, and what
%% cannot be is an error. What is read out of a frame are parts of it, not copies.
-module(atoll_dist_circuit_frame).

-export([make/1, parse/1, head/1, data/4, is_free/1, narrowed/2, joined/2]).
-export([abilities/0, order/1]).
-export([key/2, id/1, epoch/1, cost/1, max_payload/0, max_frame/0, max_name/0, min_window/0]).

-export_type([id/0, epoch/0, key/0, name/0, position/0, window/0, abilities/0]).
-export_type([order/0, type/0, frame/0, open/0, opened/0, confirm/0, ack/0, said/0, error/0]).

%% Random.
-type id() :: <<_:128>>.
-type epoch() :: 1..16#FFFFFFFF.
%% An id and an epoch.
-type key() :: <<_:160>>.
%% Of a node. It may be of a node that this one has no atom for.
-type name() :: binary().
-type position() :: 0..16#FFFFFFFFFFFFFFFF.
%% How many positions one end may be ahead of what the other has consumed, both ways.
-type window() :: 0..16#FFFFFFFF.

-type abilities() :: 0..16#FFFFFFFF.

-type open() :: #{
    %% What both ends can have at most: each node on the path makes it less.
    window := window(),
    can := abilities(),
    %% Whether the other end need not know the circuit: it never answered before.
    fresh := boolean(),
    %% Of {@link atoll_dist_seal}, or nothing.
    hello := binary(),
    %% All nodes, the one that opens first, the other end last.
    path := [name(), ...]
}.

-type opened() :: #{
    window := window(),
    can := abilities(),
    %% What this end has got, and what of it is consumed.
    received := position(),
    consumed := position(),
    answer := binary()
}.

-type confirm() :: #{
    received := position(),
    consumed := position(),
    proof := binary()
}.

-type ack() :: #{
    received := position(),
    consumed := position(),
    %% Whether it wants one in return at once; whether it would send more at a time, of
    %% which the end that opens is to know.
    asks := boolean(),
    narrow := boolean()
}.

-type order() :: kept | free.

%% Which node says it, why, and about which node or in which words.
-type said() :: {At :: name(), Why :: atom() | byte(), About :: binary()}.

-type frame() ::
    {open, key(), open()}
    | {opened, key(), opened()}
    | {confirm, key(), confirm()}
    | {refused, key(), said()}
    | {data, key(), position(), Payload :: binary()}
    | {ack, key(), ack()}
    | {path_lost, key(), said()}
    | {close, key(), said()}.

-type type() :: open | opened | confirm | refused | data | ack | path_lost | close.

-type error() :: {version, byte()} | malformed.

-define(VERSION, 2).

%% With it a frame, which is a message of Erlang's to the next node, fits in one packet of
%% the VM's. The VM makes pieces of what is larger than 64 KB, and joins them at each node.
-define(MAX_PAYLOAD, 64000).
%% Data that may overtake.
-define(FREE, 1).
-define(ABILITIES, ?FREE).

%% What a frame takes beside its payload, in memory and on the way.
-define(OVERHEAD, 64).
%% Of a node; and what may be said about.
-define(MAX_NAME, 255).
-define(MAX_HELLO, 255).

%% @doc All that this version can.
-spec abilities() -> abilities().
abilities() -> ?ABILITIES.

%% @doc Whether data may overtake others on a path whose nodes can do that.
-spec order(abilities()) -> order().
order(Can) when Can band ?FREE =:= ?FREE -> free;
order(_Can) -> kept.

%% @doc The key of a path.
-spec key(id(), epoch()) -> key().
key(Id, Epoch) -> <<Id:16/binary, Epoch:32>>.

%% @doc The circuit's id out of a path's key.
-spec id(key()) -> id().
id(<<Id:16/binary, _:32>>) -> Id.

%% @doc The epoch out of a path's key.
-spec epoch(key()) -> epoch().
epoch(<<_:16/binary, Epoch:32>>) -> Epoch.

%% @doc How many positions a payload of that size takes.
-spec cost(non_neg_integer()) -> pos_integer().
cost(Size) when is_integer(Size) -> Size + ?OVERHEAD.

%% @doc How large a payload can be.
-spec max_payload() -> pos_integer().
max_payload() -> ?MAX_PAYLOAD.

%% @doc How large a frame of data can be.
-spec max_frame() -> pos_integer().
max_frame() -> 30 + ?MAX_PAYLOAD.

%% @doc How long a node's name can be.
-spec max_name() -> pos_integer().
max_name() -> ?MAX_NAME.

%% @doc A path with less is of no use: a frame must fit.
-spec min_window() -> pos_integer().
min_window() -> ?MAX_PAYLOAD + ?OVERHEAD.

%% @doc Data at a position. This copies it together.
-spec data(order(), key(), position(), iodata()) -> binary().
data(kept, Key, At, Payload) -> iolist_to_binary([<<?VERSION, $D, Key:20/binary, At:64>> | Payload]);
data(free, Key, At, Payload) -> iolist_to_binary([<<?VERSION, $E, Key:20/binary, At:64>> | Payload]).

%% @doc Whether the frame may overtake others.
-spec is_free(binary()) -> boolean().
is_free(<<?VERSION, $E, _/binary>>) -> true;
is_free(_) -> false.

%% @doc A frame.
-spec make(frame()) -> binary().
make({data, Key, At, Payload}) ->
    data(kept, Key, At, Payload);
make({open, Key, #{window := Window, can := Can, fresh := Fresh, hello := Hello, path := Path}}) ->
    iolist_to_binary([
        <<?VERSION, $O, Key:20/binary, Window:32, Can:32, (flag(Fresh)), (text(Hello))/binary, (length(Path))>>,
        [text(Name) || Name <- Path]
    ]);
make({opened, Key, #{window := Window, can := Can, received := Received, consumed := Consumed, answer := Answer}}) ->
    <<?VERSION, $K, Key:20/binary, Window:32, Can:32, Received:64, Consumed:64, (text(Answer))/binary>>;
make({confirm, Key, #{received := Received, consumed := Consumed, proof := Proof}}) ->
    <<?VERSION, $F, Key:20/binary, Received:64, Consumed:64, (text(Proof))/binary>>;
make({ack, Key, #{received := Received, consumed := Consumed, asks := Asks, narrow := Narrow}}) ->
    <<?VERSION, $A, Key:20/binary, Received:64, Consumed:64, (2 * flag(Narrow) + flag(Asks))>>;
make({refused, Key, Said}) ->
    <<?VERSION, $R, Key:20/binary, (say(Said))/binary>>;
make({path_lost, Key, Said}) ->
    <<?VERSION, $P, Key:20/binary, (say(Said))/binary>>;
make({close, Key, Said}) ->
    <<?VERSION, $C, Key:20/binary, (say(Said))/binary>>.

flag(true) -> 1;
flag(false) -> 0.

text(Text) when byte_size(Text) =< ?MAX_NAME -> <<(byte_size(Text)), Text/binary>>.

say({At, Why, About}) ->
    <<(text(At))/binary, (atoll_dist_circuit_reason:code(Why)), (text(About))/binary>>.

%% @doc As much of a frame as a relay needs: what it is and which path's.
-spec head(binary()) -> {ok, type(), key()} | {error, error()}.
head(<<?VERSION, Letter, Key:20/binary, Rest/binary>>) ->
    case Letter of
        _ when Letter =:= $D; Letter =:= $E ->
            case byte_size(Rest) > 8 andalso byte_size(Rest) =< 8 + ?MAX_PAYLOAD of
                true -> {ok, data, Key};
                false -> {error, malformed}
            end;
        _ when byte_size(Rest) > 8 + ?MAX_PAYLOAD -> {error, malformed};
        $A -> {ok, ack, Key};
        $O -> {ok, open, Key};
        $K -> {ok, opened, Key};
        $F -> {ok, confirm, Key};
        $R -> {ok, refused, Key};
        $P -> {ok, path_lost, Key};
        $C -> {ok, close, Key};
        _ -> {error, malformed}
    end;
head(<<Version, _/binary>>) when Version > ?VERSION ->
    {error, {version, Version}};
head(_) ->
    {error, malformed}.

%% @doc What a frame says.
-spec parse(binary()) -> {ok, frame()} | {error, error()}.
parse(<<?VERSION, Letter, Key:20/binary, At:64, Payload/binary>>) when
    Letter =:= $D orelse Letter =:= $E, Payload =/= <<>>, byte_size(Payload) =< ?MAX_PAYLOAD
->
    {ok, {data, Key, At, Payload}};
parse(<<?VERSION, $A, Key:20/binary, Received:64, Consumed:64, 0:6, Narrow:1, Asks:1>>) when Consumed =< Received ->
    {ok, {ack, Key, #{received => Received, consumed => Consumed, asks => Asks =:= 1, narrow => Narrow =:= 1}}};
parse(<<?VERSION, $O, Key:20/binary, Window:32, Can:32, Fresh, Size, Hello:Size/binary, Count, Names/binary>>) when
    Fresh =< 1, Size =< ?MAX_HELLO, Count >= 2
->
    case names(Count, Names, []) of
        {ok, Path} -> {ok, {open, Key, #{window => Window, can => Can, fresh => Fresh =:= 1, hello => Hello, path => Path}}};
        error -> {error, malformed}
    end;
parse(<<?VERSION, $K, Key:20/binary, Window:32, Can:32, Received:64, Consumed:64, Size, Answer:Size/binary>>) when
    Consumed =< Received
->
    {ok, {opened, Key, #{window => Window, can => Can, received => Received, consumed => Consumed, answer => Answer}}};
parse(<<?VERSION, $F, Key:20/binary, Received:64, Consumed:64, Size, Proof:Size/binary>>) when
    Consumed =< Received
->
    {ok, {confirm, Key, #{received => Received, consumed => Consumed, proof => Proof}}};
parse(<<?VERSION, $R, Key:20/binary, Said/binary>>) -> said(refused, Key, Said);
parse(<<?VERSION, $P, Key:20/binary, Said/binary>>) -> said(path_lost, Key, Said);
parse(<<?VERSION, $C, Key:20/binary, Said/binary>>) -> said(close, Key, Said);
parse(<<Version, _/binary>>) when Version > ?VERSION -> {error, {version, Version}};
parse(_) -> {error, malformed}.

names(0, <<>>, Names) -> {ok, lists:reverse(Names)};
names(N, <<Size, Name:Size/binary, Rest/binary>>, Names) when N > 0, Size > 0 -> names(N - 1, Rest, [Name | Names]);
names(_, _, _) -> error.

said(Type, Key, <<SizeAt, At:SizeAt/binary, Code, SizeAbout, About:SizeAbout/binary>>) ->
    {ok, {Type, Key, {At, atoll_dist_circuit_reason:why(Code), About}}};
said(_, _, _) ->
    {error, malformed}.

%% @doc The same `open' with another window, and with what this node can as well.
-spec narrowed(window(), binary()) -> binary().
narrowed(Window, <<?VERSION, $O, Key:20/binary, _:32, Can:32, Rest/binary>>) ->
    <<?VERSION, $O, Key:20/binary, Window:32, (Can band ?ABILITIES):32, Rest/binary>>.

%% @doc One `ack' that says what two said, the first one first.
-spec joined(binary(), binary()) -> binary().
joined(<<?VERSION, $A, Key:20/binary, R1:64, C1:64, Wants1>>, <<?VERSION, $A, Key:20/binary, R2:64, C2:64, Wants2>>) ->
    <<?VERSION, $A, Key:20/binary, (max(R1, R2)):64, (max(C1, C2)):64, (Wants1 bor Wants2)>>.
