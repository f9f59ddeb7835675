%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc What a relay has for one neighbour: frames of circuits, which share the way there as
%% {@link atoll_dist_fair} says, and strays, which are of no circuit and go first. The
%% neighbour's trunk is handed some at a time, and more when it says what is gone.
%%
%% Promised: the frames of a flow come out in the order in which they went in, but an `ack',
%% which goes before the others and of which there is one at most; the trunk has at most what
%% is allowed and a frame; so many strays wait and no more. What waits of circuits is not
%% bounded here: their windows do that.
-module(atoll_dist_egress).

-export([new/0, push/3, stray/2, next/2, sent/2, waits/2, drop/2, is_idle/1, handed/1, cost/1]).

-export_type([egress/0]).

-record(egress, {
    fair = atoll_dist_fair:new() :: atoll_dist_fair:fair(),
    %% What the trunk has.
    handed = 0 :: non_neg_integer(),
    strays = queue:new() :: queue:queue(binary()),
    stray_count = 0 :: non_neg_integer()
}).

-opaque egress() :: #egress{}.

-define(MAX_STRAYS, 64).
%% A stray says two names at most.
-define(STRAY, 640).

%% @doc Nothing.
-spec new() -> egress().
new() -> #egress{}.

%% @doc What it can hold beside what circuits have in it, if the trunk may have so many bytes.
-spec cost(pos_integer()) -> pos_integer().
cost(Handed) when is_integer(Handed) ->
    Handed + atoll_dist_circuit_frame:cost(atoll_dist_circuit_frame:max_payload()) + ?MAX_STRAYS * ?STRAY.

%% @doc A frame of a flow.
-spec push(atoll_dist_fair:flow(), binary(), egress()) -> egress().
push(Flow, <<_, $A, _/binary>> = Ack, #egress{fair = Fair0} = Egress) ->
    {_, Fair} = atoll_dist_fair:urgent(Flow, Ack, byte_size(Ack), Fair0),
    Egress#egress{fair = Fair};
push(Flow, Frame, #egress{fair = Fair} = Egress) ->
    Egress#egress{fair = atoll_dist_fair:push(Flow, Frame, byte_size(Frame), Fair)}.

%% @doc A frame of no circuit, unless there are too many.
-spec stray(binary(), egress()) -> {ok, egress()} | full.
stray(_Frame, #egress{stray_count = Count}) when Count >= ?MAX_STRAYS ->
    full;
stray(Frame, #egress{strays = Strays, stray_count = Count} = Egress) ->
    {ok, Egress#egress{strays = queue:in(Frame, Strays), stray_count = Count + 1}}.

%% @doc The next frame for the trunk, and whose it is; none while it has so many bytes.
-spec next(Max :: pos_integer(), egress()) -> {stray | {flow, atoll_dist_fair:flow()}, binary(), egress()} | none.
next(Max, #egress{handed = Handed}) when Handed >= Max ->
    none;
next(_Max, #egress{handed = Handed, strays = Strays0, stray_count = Count, fair = Fair0} = Egress) ->
    case queue:out(Strays0) of
        {{value, Frame}, Strays} ->
            {stray, Frame, Egress#egress{handed = Handed + byte_size(Frame), strays = Strays, stray_count = Count - 1}};
        {empty, _} ->
            case atoll_dist_fair:take(Fair0) of
                empty -> none;
                {Flow, Frame, Size, Fair} -> {{flow, Flow}, Frame, Egress#egress{handed = Handed + Size, fair = Fair}}
            end
    end.

%% @doc So many bytes of what the trunk was handed are gone.
-spec sent(non_neg_integer(), egress()) -> egress().
sent(Bytes, #egress{handed = Handed} = Egress) -> Egress#egress{handed = max(0, Handed - Bytes)}.

%% @doc It has so many more, that did not come from here.
-spec waits(non_neg_integer(), egress()) -> egress().
waits(Bytes, #egress{handed = Handed} = Egress) -> Egress#egress{handed = Handed + Bytes}.

%% @doc Without a flow, which must not come again, and all that it has here.
-spec drop(atoll_dist_fair:flow(), egress()) -> egress().
drop(Flow, #egress{fair = Fair0} = Egress) ->
    {_, Fair} = atoll_dist_fair:drop(Flow, Fair0),
    Egress#egress{fair = Fair}.

%% @doc Whether nothing waits, here or in the trunk.
-spec is_idle(egress()) -> boolean().
is_idle(#egress{handed = Handed, stray_count = Count, fair = Fair}) ->
    Handed =:= 0 andalso Count =:= 0 andalso atoll_dist_fair:is_empty(Fair).

%% @doc How many bytes the trunk has.
-spec handed(egress()) -> non_neg_integer().
handed(#egress{handed = Handed}) -> Handed.
