%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc What one end of a circuit sends: packets go in, and come out as payloads at
%% positions, each of which is kept until the other end has got it.
%%
%% A payload is packets one behind the other, each with four bytes before it: whether more
%% of the packet follows in the next payload, and the size of what is here. Packets share
%% payloads, and one that does not fit in what is left of its payload is cut, unless that is
%% little: so a stream of the VM's pieces of 64 KB makes payloads that are nearly full.
%%
%% Promised: at no time is more sent on a path than what the other end has consumed and
%% the path's window; what is sent again on another path is the very same at the same
%% positions; what waits here is at most the largest window, and what the user puts in
%% beyond what {@link pending/1} lets him.
-module(atoll_dist_circuit_out).

-export([new/0, seal/2, push/2, next/1, ack/3, pause/1, resume/4, resume/5, received/1, pending/1, is_stopped/1, under_way/1, end_of/1]).

-export_type([out/0, packet/0]).

%% As the VM gives it.
-type packet() :: {Size :: pos_integer(), iodata()}.

-type kept() :: {atoll_dist_circuit_frame:position(), atoll_dist_circuit_frame:position(), iodata()}.

-record(out, {
    %% Packets that no payload holds yet, and what they count for.
    pending = queue:new() :: queue:queue(packet()),
    pending_bytes = 0 :: non_neg_integer(),
    %% What is left of a packet that is being cut.
    cut = none :: none | packet(),
    %% Payloads from a position to another that the other end has not got: sent on this
    %% path; and to be sent before anything new.
    sent = queue:new() :: queue:queue(kept()),
    unsent = queue:new() :: queue:queue(kept()),
    %% Where the next new payload begins.
    at = 0 :: atoll_dist_circuit_frame:position(),
    received = 0 :: atoll_dist_circuit_frame:position(),
    consumed = 0 :: atoll_dist_circuit_frame:position(),
    window = 0 :: atoll_dist_circuit_frame:window(),
    seal = none :: none | atoll_dist_seal:seal(),
    %% How much of packets a payload can hold.
    max = atoll_dist_circuit_frame:max_payload() :: pos_integer()
}).

-opaque out() :: #out{}.

-define(HEAD, 4).
%% For less room no packet is cut: the other end copies together what was.
-define(LEAST, 16384).
%% What a packet counts for beside its bytes while it waits.
-define(ITEM, 64).

%% @doc Nothing yet, and no path.
-spec new() -> out().
new() -> #out{}.

%% @doc From now on payloads are sealed. Nothing was sent before.
-spec seal(atoll_dist_seal:seal(), out()) -> out().
seal(Seal, #out{at = 0} = Out) ->
    Out#out{seal = Seal, max = atoll_dist_circuit_frame:max_payload() - atoll_dist_seal:overhead()}.

%% @doc Packets to be sent, in their order.
-spec push([packet()], out()) -> out().
push([], Out) ->
    Out;
push([{Size, _} = Packet | Packets], #out{pending = Pending, pending_bytes = Bytes} = Out) ->
    push(Packets, Out#out{pending = queue:in(Packet, Pending), pending_bytes = Bytes + Size + ?ITEM}).

%% @doc How much waits that is in no payload yet.
-spec pending(out()) -> non_neg_integer().
pending(#out{pending_bytes = Bytes}) -> Bytes.

%% @doc Whether there is more to be sent than the window has room for; to be asked when
%% {@link next/1} has nothing.
-spec is_stopped(out()) -> boolean().
is_stopped(#out{window = 0}) -> false;
is_stopped(#out{pending_bytes = Bytes, cut = Cut, unsent = Unsent}) -> Bytes > 0 orelse Cut =/= none orelse not queue:is_empty(Unsent).

%% @doc Whether the other end has not got all that was sent on this path.
-spec under_way(out()) -> boolean().
under_way(#out{sent = Sent}) -> not queue:is_empty(Sent).

%% @doc The position up to which payloads were made.
-spec end_of(out()) -> atoll_dist_circuit_frame:position().
end_of(#out{at = At}) -> At.

%% @doc The next payload to be sent, if there is one and the window has room for it.
-spec next(out()) -> {atoll_dist_circuit_frame:position(), iodata(), out()} | none.
next(#out{unsent = Unsent0, sent = Sent} = Out) ->
    case queue:out(Unsent0) of
        {{value, {At, End, Payload} = Kept}, Unsent} ->
            case has_room(End, Out) of
                true -> {At, Payload, Out#out{unsent = Unsent, sent = queue:in(Kept, Sent)}};
                false -> none
            end;
        {empty, _} ->
            new_payload(Out)
    end.

has_room(End, #out{consumed = Consumed, window = Window}) -> End =< Consumed + Window.

new_payload(#out{at = At, consumed = Consumed, window = Window, max = Max, seal = Seal} = Out0) ->
    Least = atoll_dist_circuit_frame:cost(atoll_dist_circuit_frame:max_payload() - Max),
    case pack(min(Max, Consumed + Window - At - Least), Out0) of
        {[], _, _} ->
            none;
        {Items, Size, #out{sent = Sent} = Out} ->
            Payload = sealed(At, Items, Seal),
            End = At + atoll_dist_circuit_frame:cost(Size + atoll_dist_circuit_frame:max_payload() - Max),
            {At, Payload, Out#out{at = End, sent = queue:in({At, End, Payload}, Sent)}}
    end.

sealed(_At, Items, none) -> Items;
sealed(At, Items, Seal) -> atoll_dist_seal:seal(At, Items, Seal).

%% As much of the packets as fits. One is cut only by a payload that is full with it.
pack(Room, Out) -> pack(Room, 0, [], Out).

pack(Room, Size0, Items, #out{max = Max} = Out) ->
    Left = Room - Size0 - ?HEAD,
    case first(Out) of
        {Size, Packet} when Size =< Left ->
            pack(Room, Size0 + ?HEAD + Size, [[<<Size:32>> | Packet] | Items], drop_first(Out));
        {Size, Packet} when Room =:= Max, Left >= ?LEAST ->
            {Now, Later} = split(Left, erlang:iolist_to_iovec(Packet), []),
            Cut = (drop_first(Out))#out{cut = {Size - Left, Later}},
            {lists:reverse(Items, [[<<1:1, Left:31>> | Now]]), Max, Cut};
        _ ->
            {lists:reverse(Items), Size0, Out}
    end.

first(#out{cut = none, pending = Pending}) ->
    case queue:peek(Pending) of
        {value, Packet} -> Packet;
        empty -> none
    end;
first(#out{cut = Cut}) ->
    Cut.

drop_first(#out{cut = none, pending = Pending0, pending_bytes = Bytes} = Out) ->
    {{value, {Size, _}}, Pending} = queue:out(Pending0),
    Out#out{pending = Pending, pending_bytes = Bytes - Size - ?ITEM};
drop_first(Out) ->
    Out#out{cut = none}.

split(N, [Binary | Later], Now) when byte_size(Binary) =< N ->
    split(N - byte_size(Binary), Later, [Binary | Now]);
split(N, [Binary | Later], Now) ->
    <<Head:N/binary, Tail/binary>> = Binary,
    {lists:reverse(Now, [Head]), [Tail | Later]}.

%% @doc The other end has got so much, and consumed so much of it.
-spec ack(atoll_dist_circuit_frame:position(), atoll_dist_circuit_frame:position(), out()) -> {ok, out()} | error.
ack(Received, Consumed, #out{received = Received0} = Out) when Received =< Received0 ->
    %% One that is late says less than is known.
    {ok, consumed(Consumed, Out)};
ack(Received, Consumed, #out{sent = Sent0, unsent = Unsent0} = Out) ->
    case has(Received, Sent0) of
        {ok, Sent} ->
            {ok, consumed(Consumed, Out#out{sent = Sent, received = Received})};
        none ->
            %% What came over the path before is not sent again.
            case has(Received, Unsent0) of
                {ok, Unsent} ->
                    {ok, consumed(Consumed, Out#out{sent = queue:new(), unsent = Unsent, received = Received})};
                none ->
                    error
            end
    end.

consumed(Consumed, #out{consumed = Consumed0} = Out) ->
    Out#out{consumed = max(Consumed, Consumed0)}.

%% What is left when everything before that position is gone; it must be where one begins
%% or the last ends.
has(Position, Kept0) ->
    case queue:out(Kept0) of
        {{value, {_, End, _}}, Kept} when End < Position -> has(Position, Kept);
        {{value, {_, Position, _}}, Kept} -> {ok, Kept};
        _ -> none
    end.

%% @doc What the other end is known to have got.
-spec received(out()) -> atoll_dist_circuit_frame:position().
received(#out{received = Received}) -> Received.

%% @doc The path is lost: nothing can be sent.
-spec pause(out()) -> out().
pause(#out{sent = Sent, unsent = Unsent} = Out) ->
    Out#out{sent = queue:new(), unsent = queue:join(Sent, Unsent), window = 0}.

%% @doc There is a path with that window, and the other end has got and consumed so much:
%% what it has not got is sent again.
-spec resume(
    atoll_dist_circuit_frame:position(), atoll_dist_circuit_frame:position(), atoll_dist_circuit_frame:window(), out()
) -> {ok, out()} | error.
resume(Received, Consumed, Window, #out{received = Least} = Out) ->
    resume(Received, Consumed, Window, Least, Out).

%% @doc The same, where the other end may have said so before what it said over the path
%% that is left, and that came first: then more is known. It had so much at least.
-spec resume(
    atoll_dist_circuit_frame:position(), atoll_dist_circuit_frame:position(), atoll_dist_circuit_frame:window(),
    Least :: atoll_dist_circuit_frame:position(), out()
) -> {ok, out()} | error.
resume(Received, _Consumed, _Window, Least, _Out) when Received < Least ->
    error;
resume(Received, Consumed, Window, _Least, Out0) ->
    #out{unsent = Unsent0, received = Received0} = Out = pause(Out0),
    case has(Received, Unsent0) of
        {ok, Unsent} ->
            {ok, resumed(Received, Consumed, Window, Out#out{unsent = Unsent})};
        none when Received =< Received0 ->
            {ok, resumed(Received0, Consumed, Window, Out)};
        none ->
            error
    end.

resumed(Received, Consumed, Window, Out) ->
    consumed(Consumed, Out#out{received = Received, window = Window}).
