%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Faults of a connection, for tests: which there are, and which packets are lost.
%%
%% A fault is injected at one end. What that end sends is lost or delayed, so for both
%% ways it is injected at both. A lane that is cut is so for both. A black hole takes what
%% is sent and gives nothing: neither end hears the other on that lane, and no socket
%% closes.
%%
%% Lost are whole messages; what links, monitors and the VM itself need to send is not.
-module(atoll_dist_fault).

-export([is_fault/2, lanes/2, new/0, set/2, delay/1, is_lost/4]).

-export_type([fault/0, faults/0]).

-type fault() ::
    %% Which share of the messages is lost, from 0 to 1.
    {drop, number()}
    %% By how many milliseconds everything is late.
    | {delay, Ms :: non_neg_integer()}
    %% All lanes, or one.
    | cut
    | {cut, atoll_dist_lanes:lane()}
    | black_hole
    | {black_hole, atoll_dist_lanes:lane()}
    %% No fault any more, but for what was cut.
    | heal.

-record(faults, {
    drop = 0 :: number(),
    delay = 0 :: non_neg_integer(),
    %% Messages of which the first fragment was lost. A sender that is killed amid one leaves
    %% it here; there are no more than ?MAX_LOST.
    lost = #{} :: #{atoll_dist_packet:sequence() => lost}
}).

-opaque faults() :: #faults{}.

-define(MAX_LOST, 16384).

%% @doc Whether that is a fault of a connection with so many lanes.
-spec is_fault(term(), atoll_dist_lanes:count()) -> boolean().
is_fault({drop, Share}, _N) -> is_number(Share) andalso Share >= 0 andalso Share =< 1;
is_fault({delay, Ms}, _N) -> is_integer(Ms) andalso Ms >= 0;
is_fault({What, Lane}, N) when What =:= cut; What =:= black_hole -> is_integer(Lane) andalso Lane >= 0 andalso Lane < N;
is_fault(Fault, _N) -> lists:member(Fault, [cut, black_hole, heal]).

%% @doc Which lanes a cut or a black hole is about.
-spec lanes(cut | black_hole | {cut | black_hole, atoll_dist_lanes:lane()}, atoll_dist_lanes:count()) -> [atoll_dist_lanes:lane()].
lanes({_, Lane}, _N) -> [Lane];
lanes(_, N) -> lists:seq(0, N - 1).

%% @doc No faults.
-spec new() -> faults().
new() -> #faults{}.

%% @doc With one more, or none any more.
-spec set(fault(), faults()) -> faults().
set({drop, Share}, Faults) -> Faults#faults{drop = Share};
set({delay, Ms}, Faults) -> Faults#faults{delay = Ms};
set(heal, #faults{lost = Lost}) -> #faults{lost = Lost};
set(_, Faults) -> Faults.

%% @doc By how many milliseconds everything is late.
-spec delay(faults()) -> non_neg_integer().
delay(#faults{delay = Ms}) -> Ms.

%% @doc Whether a packet is lost, given a random number from 0 to below 1.
-spec is_lost(erlang:iovec(), atoll_dist_packet:own(), Random :: float(), faults()) -> {boolean(), faults()}.
is_lost(_Packet, _Own, _Random, #faults{drop = Share, lost = Lost} = Faults) when Share == 0, map_size(Lost) =:= 0 ->
    {false, Faults};
is_lost(Packet, Own, Random, #faults{drop = Share, lost = Lost} = Faults) ->
    case atoll_dist_packet:read(Packet, Own) of
        {next, Seq, 1} when is_map_key(Seq, Lost) -> {true, Faults#faults{lost = maps:remove(Seq, Lost)}};
        {next, Seq, _} when is_map_key(Seq, Lost) -> {true, Faults};
        {next, _, _} -> {false, Faults};
        Verdict -> lose(Random < Share andalso atoll_dist_packet:is_message(Packet), Verdict, Faults)
    end.

lose(true, {first, _, _, _}, #faults{lost = Lost} = Faults) when map_size(Lost) >= ?MAX_LOST -> {false, Faults};
lose(true, {first, Seq, _, _}, #faults{lost = Lost} = Faults) -> {true, Faults#faults{lost = Lost#{Seq => lost}}};
lose(false, {first, Seq, _, _}, #faults{lost = Lost} = Faults) -> {false, Faults#faults{lost = maps:remove(Seq, Lost)}};
lose(IsLost, _, Faults) -> {IsLost, Faults}.
