%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc What one end of a circuit receives: payloads come in, in any order, and whole
%% packets go out in theirs. What comes before something that is still missing is held.
%%
%% It knows up to which position it has received and up to which its user has consumed,
%% and when the other end should hear of it: when a quarter of the window was consumed,
%% or a while after less was.
%%
%% Promised: what is received and not consumed, and what is held, are each at most the
%% window; a packet that is
%% being joined has at most as many bytes as configured. Its pieces are consumed as they
%% come, since a packet may be larger than the window.
-module(atoll_dist_circuit_in).

-export([new/2, seal/2, path/2, arrive/3, missing/1, consumed/2, told/1, positions/1, wants_ack/1]).

-export_type([in/0, error/0]).

-type error() :: window_exceeded | bad_packet | {packet_too_large, pos_integer()} | {altered, atoll_dist_circuit_frame:position()}.

-record(in, {
    %% Whether packets are consumed when they are given out, or when the user says so.
    consumption :: at_once | told,
    max_packet :: pos_integer(),
    window = 0 :: atoll_dist_circuit_frame:window(),
    received = 0 :: atoll_dist_circuit_frame:position(),
    consumed = 0 :: atoll_dist_circuit_frame:position(),
    %% Payloads of this path beyond what is missing, and what they take.
    held = gb_trees:empty() :: gb_trees:tree(atoll_dist_circuit_frame:position(), binary()),
    held_cost = 0 :: non_neg_integer(),
    %% What the other end was told last.
    told = {0, 0} :: {atoll_dist_circuit_frame:position(), atoll_dist_circuit_frame:position()},
    %% Of the payloads that are not consumed: how many of their packets are not, and
    %% where each ends.
    waiting = queue:new() :: queue:queue({non_neg_integer(), atoll_dist_circuit_frame:position()}),
    %% The pieces of the packet that is not whole yet, the latest first, and their bytes.
    pieces = [] :: [binary()],
    joined = 0 :: non_neg_integer(),
    seal = none :: none | atoll_dist_seal:seal()
}).

-opaque in() :: #in{}.

%% What a piece counts for beside its bytes.
-define(PIECE, 64).

%% @doc Nothing yet, and no path.
-spec new(at_once | told, MaxPacket :: pos_integer()) -> in().
new(Consumption, MaxPacket) -> #in{consumption = Consumption, max_packet = MaxPacket}.

%% @doc From now on payloads are sealed.
-spec seal(atoll_dist_seal:seal(), in()) -> in().
seal(Seal, In) -> In#in{seal = Seal}.

%% @doc There is a path with that window, and the other end was told the positions.
-spec path(atoll_dist_circuit_frame:window(), in()) -> in().
path(Window, In) -> told(In#in{window = Window, held = gb_trees:empty(), held_cost = 0}).

%% @doc A payload at a position has come: the packets that are whole with it, in order, none
%% while something is missing before it; or it was there already.
-spec arrive(atoll_dist_circuit_frame:position(), binary(), in()) -> {ok, [iodata()], in()} | known | {error, error()}.
arrive(At, _Payload, #in{received = Received}) when At < Received ->
    known;
arrive(At, Payload, #in{received = Received, consumed = Consumed, window = Window} = In) ->
    Cost = atoll_dist_circuit_frame:cost(byte_size(Payload)),
    case At + Cost =< Consumed + Window of
        false -> {error, window_exceeded};
        true when At > Received -> hold(At, Payload, Cost, In);
        true -> go_on([], received(At + Cost, At, Payload, In))
    end.

%% That they may not overlap only an end that makes no sense does not know.
hold(At, Payload, Cost, #in{held = Held, held_cost = Sum, window = Window} = In) ->
    case gb_trees:is_defined(At, Held) of
        true -> known;
        false when Sum + Cost > Window -> {error, window_exceeded};
        false -> {ok, [], In#in{held = gb_trees:insert(At, Payload, Held), held_cost = Sum + Cost}}
    end.

%% With what was held behind it.
go_on(_Before, {error, _} = Error) ->
    Error;
go_on(Before, {ok, Packets, #in{held = Held0, held_cost = Sum, received = Received} = In}) ->
    case gb_trees:is_empty(Held0) orelse gb_trees:smallest(Held0) of
        {At, Payload} when At =< Received ->
            Cost = atoll_dist_circuit_frame:cost(byte_size(Payload)),
            Less = In#in{held = gb_trees:delete(At, Held0), held_cost = Sum - Cost},
            case At of
                Received -> go_on([Packets | Before], received(At + Cost, At, Payload, Less));
                _ -> {error, bad_packet}
            end;
        _ ->
            {ok, lists:append(lists:reverse(Before, [Packets])), In}
    end.

%% @doc Where the payload is missing that others wait for, if there is one.
-spec missing(in()) -> atoll_dist_circuit_frame:position() | none.
missing(#in{held = Held, received = Received}) ->
    case gb_trees:is_empty(Held) of
        true -> none;
        false -> Received
    end.

opened(_At, Payload, none) -> {ok, Payload};
opened(At, Payload, Seal) -> atoll_dist_seal:open(At, Payload, Seal).

items(<<0:1, Size:31, Packet:Size/binary, Rest/binary>>, Packets, #in{pieces = []} = In) when Size > 0 ->
    items(Rest, [Packet | Packets], In);
items(<<More:1, Size:31, Piece:Size/binary, Rest/binary>>, Packets, In) when Size > 0 ->
    #in{pieces = Pieces, joined = Joined0, max_packet = Max} = In,
    case Joined0 + Size + ?PIECE of
        Joined when Joined > Max -> {error, {packet_too_large, Joined0 + Size}};
        Joined when More =:= 1 -> items(Rest, Packets, In#in{pieces = [Piece | Pieces], joined = Joined});
        _ -> items(Rest, [lists:reverse(Pieces, [Piece]) | Packets], In#in{pieces = [], joined = 0})
    end;
items(<<>>, Packets, In) ->
    {ok, lists:reverse(Packets), In};
items(_, _Packets, _In) ->
    {error, bad_packet}.

received(End, At, Payload, #in{seal = Seal} = In) ->
    case opened(At, Payload, Seal) of
        {ok, Plain} -> received(End, items(Plain, [], In));
        error -> {error, {altered, At}}
    end.

received(End, {ok, Packets, #in{consumption = told, waiting = Waiting} = In}) ->
    {ok, Packets, passed(In#in{received = End, waiting = queue:in({length(Packets), End}, Waiting)})};
received(End, {ok, Packets, In}) ->
    {ok, Packets, In#in{received = End, consumed = End}};
received(_End, {error, _} = Error) ->
    Error.

%% @doc The user has consumed so many packets.
-spec consumed(non_neg_integer(), in()) -> in().
consumed(0, In) ->
    passed(In);
consumed(N, #in{waiting = Waiting0} = In) ->
    {{value, {Packets, End}}, Waiting} = queue:out(Waiting0),
    case N < Packets of
        true -> In#in{waiting = queue:in_r({Packets - N, End}, Waiting)};
        false -> consumed(N - Packets, In#in{waiting = Waiting, consumed = End})
    end.

%% Payloads of pieces only.
passed(#in{waiting = Waiting} = In) ->
    case queue:peek(Waiting) of
        {value, {0, End}} -> passed(In#in{waiting = queue:drop(Waiting), consumed = End});
        _ -> In
    end.

%% @doc Up to where it has received and consumed.
-spec positions(in()) -> {atoll_dist_circuit_frame:position(), atoll_dist_circuit_frame:position()}.
positions(#in{received = Received, consumed = Consumed}) -> {Received, Consumed}.

%% @doc The other end was told the positions.
-spec told(in()) -> in().
told(In) -> In#in{told = positions(In)}.

%% @doc Whether the other end should be told the positions: now, a while later, or not.
-spec wants_ack(in()) -> now | later | no.
wants_ack(#in{told = {_, Told}, consumed = Consumed, window = Window}) when (Consumed - Told) * 4 >= Window -> now;
wants_ack(#in{told = Told} = In) ->
    case positions(In) of
        Told -> no;
        _ -> later
    end.
