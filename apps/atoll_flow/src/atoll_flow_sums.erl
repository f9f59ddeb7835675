%% SPDX-License-Identifier: Apache-2.0
%% @doc What nodes have sent to each other since somebody looks, from what their probes say again and again. Pure.
%%
%% A probe counts from some time on: what it says more than the last time is new. One that counts from another time on, as the node has
%% started again or its agent was lost, has said all of it anew. What was before the first look at a node is nobody's.
-module(atoll_flow_sums).

-export([new/0, looked/4, fresh/1, totals/1]).

-export_type([sums/0, key/0, sum/0, way/0]).

%% `wire' is what a connection has carried: packets, and bytes with all that the runtime adds.
-type key() :: {From :: node(), To :: node(), way(), atoll_flow_counts:kind() | wire, By :: atom()}.
%% The groups of both when it was sent, as far as is known, and the first that both were in.
-type way() :: {From :: [Group :: term()], Shared :: {ok, Group :: term()} | none, To :: [Group :: term()]}.
-type sum() :: {Count :: number(), Bytes :: number()}.

-record(sums, {
    total = #{} :: #{key() => sum()},
    fresh = #{} :: #{key() => sum()},
    %% The last look of each: whose count, and what.
    last = #{} :: #{node() => #{traced := {term(), said()}, wire := {term(), said()}}}
}).

-type said() :: #{atoll_flow_counts:key() | node() => sum()}.

-opaque sums() :: #sums{}.

%% @doc Nobody was looked at.
-spec new() -> sums().
new() -> #sums{}.

%% @doc A node has said something. In which groups a node is, a function says.
-spec looked(node(), atoll_flow_probe:look(), fun((node()) -> [Group :: term()]), sums()) -> sums().
looked(Node, #{life := Life, tracing := Tracing, sent := Sent, connections := Connections}, GroupsOf, #sums{last = Last} = Sums) ->
    Epoch = case Tracing of #{epoch := Is} -> Is; _ -> none end,
    Traced = maps:from_list([{Key, {Count, Bytes}} || {Key, Count, Bytes} <- Sent]),
    Wire = maps:from_list([{Peer, {case Packets of unknown -> 0; _ -> Packets end, Bytes}} || {Peer, Packets, Bytes} <- Connections, Bytes =/= unknown]),
    Now = #{traced => {Epoch, Traced}, wire => {Life, Wire}},
    News = case Last of
        #{Node := #{traced := TracedBefore, wire := WireBefore}} ->
            [{{Node, Peer, {Own, Shared, GroupsOf(Peer)}, Kind, By}, Sum} || {{Peer, {Own, Shared}, Kind, By}, Sum} <- maps:to_list(gain({Epoch, Traced}, TracedBefore))] ++
            [{{Node, Peer, way(GroupsOf(Node), GroupsOf(Peer)), wire, any}, Sum} || {Peer, Sum} <- maps:to_list(gain({Life, Wire}, WireBefore))];
        #{} -> []
    end,
    added(maps:from_list(News), Sums#sums{last = Last#{Node => Now}}).

way(From, To) ->
    {From, case [Group || Group <- From, lists:member(Group, To)] of [Group | _] -> {ok, Group}; [] -> none end, To}.

gain({Same, Now}, {Same, Before}) ->
    maps:filter(fun(_, Sum) -> Sum =/= {0, 0} end, maps:map(fun(Key, Sum) -> more(Sum, maps:get(Key, Before, {0, 0})) end, Now));
gain({_, Now}, _) ->
    Now.

%% Less than before is a connection that is a new one.
more({Count, Bytes}, {CountBefore, BytesBefore}) when Count >= CountBefore, Bytes >= BytesBefore -> {Count - CountBefore, Bytes - BytesBefore};
more(Sum, _) -> Sum.

added(News, #sums{total = Total, fresh = Fresh} = Sums) ->
    Sums#sums{total = both(News, Total), fresh = both(News, Fresh)}.

both(News, Sums) -> maps:merge_with(fun(_, {C1, B1}, {C2, B2}) -> {C1 + C2, B1 + B2} end, News, Sums).

%% @doc What has come since this was asked last.
-spec fresh(sums()) -> {[{key(), sum()}], sums()}.
fresh(#sums{fresh = Fresh} = Sums) -> {lists:sort(maps:to_list(Fresh)), Sums#sums{fresh = #{}}}.

%% @doc All of it.
-spec totals(sums()) -> #{key() => sum()}.
totals(#sums{total = Total}) -> Total.
