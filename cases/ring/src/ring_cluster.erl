%% SPDX-License-Identifier: Apache-2.0
%% @doc How the nodes of a ring are started, for {@link atoll_cluster:start/1}: over Erlang's own distribution, or over Atoll's carrier with lanes and a channel for the messages of partitions.
%% They have an overlay of few connections, by which they gossip and know who is well; partitions connect with whom they need.
-module(ring_cluster).

-export([options/1]).

-export_type([shape/0, carrier/0]).

-type carrier() :: stock | lanes.

-type shape() :: #{
    nodes := pos_integer(),
    %% Nodes that run the ring and are not in it, to join it later; 0 unless told.
    spare => non_neg_integer(),
    %% Hidden nodes without the ring, for clients of it; 0 unless told.
    clients => non_neg_integer(),
    carrier => carrier(),
    %% Lanes of the carrier, 16 unless told.
    lanes => pos_integer(),
    %% Further settings of {@link ring_options}.
    settings => #{atom() => term()}
}.

%% @doc So many nodes with one ring, then the others.
-spec options(shape()) -> #{nodes := [map(), ...]}.
options(#{nodes := Count} = Shape) ->
    Spare = maps:get(spare, Shape, 0),
    Clients = maps:get(clients, Shape, 0),
    #{nodes => [
        #{kind => "_ring_", count => Count + Spare, connect_all => false, apps => [atoll, ring], args => fun(Nodes) -> args(lists:sublist(Nodes, Count), Shape) end}
        | [#{kind => "_client_", count => Clients, connect_all => false, apps => [], args => ["-hidden"]} || Clients > 0]
    ]}.

args(Nodes, Shape) ->
    Settings = maps:get(settings, Shape, #{}),
    {Dist, Channel} = case maps:get(carrier, Shape, stock) of
        stock -> {[], #{}};
        lanes ->
            Lanes = maps:get(lanes, Shape, 16),
            Carrier = [{kind, {lanes, 1}}, {stock, accept}, {channels, #{vnode => #{lanes => Lanes}}}],
            {["-proto_dist", "atoll" | environment(kernel, [{atoll_dist, Carrier}])], #{channel => vnode}}
    end,
    Dist ++ environment(ring, [{nodes, Nodes} | maps:to_list(maps:merge(Channel, Settings))]) ++
        environment(atoll, [{overlay, hyparview}, {contacts, lists:sublist(Nodes, 3)}]).

environment(App, Values) ->
    lists:append([[[$- | atom_to_list(App)], atom_to_list(Key), lists:flatten(io_lib:format("~0tp", [Value]))] || {Key, Value} <- Values]).
