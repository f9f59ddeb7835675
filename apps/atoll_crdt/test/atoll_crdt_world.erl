%% SPDX-License-Identifier: Apache-2.0
%% A simulated cluster whose nodes have an overlay and a replica: what the overlay says of neighbours and broadcasts goes to
%% the replica, as `atoll_handler_process' does it.
-module(atoll_crdt_world).
-behaviour(atoll_sim_world).
-behaviour(atoll_protocol).

-export([new/3, pass/2, update/5, online/3, names/1, values/2, equal/1, summary/2]).
-export([init/2, handle/3, begun/2, done/3]).

%% All nodes are started, and settled. `options' are the replicas', `strategy' the overlay's, `late' those that are not started.
new(Count, #{options := Options} = Given, Seed) ->
    Names = names(Count),
    Contacts = lists:sublist(Names, 2),
    Name = maps:get(strategy, Given, hyparview),
    {ok, Module} = atoll_strategy:module(Name),
    {ok, StrategyOptions} = atoll_options:complete(Module, maps:from_list([{servers, Contacts} || Name =:= star])),
    {ok, Complete} = atoll_options:complete(atoll_crdt_replica_core, Options),
    World = atoll_sim_world:new(#{
        rooms => [{overlay, atoll_overlay_core}, {crdt, ?MODULE}],
        wiring => ?MODULE,
        seed => Seed,
        config => fun(Node, Incarnation, NodeSeed) ->
            #{
                overlay => (atoll_sim_defaults:parts())#{
                    self => Node, incarnation => Incarnation, seed => NodeSeed, strategy => {Module, StrategyOptions}, contacts => Contacts
                },
                crdt => #{self => Node, life => <<(erlang:phash2({Node, Incarnation})):32>>, seed => NodeSeed, options => Complete}
            }
        end
    }),
    pass(20000, lists:foldl(fun atoll_sim_world:start/2, World, Names -- maps:get(late, Given, []))).

names(Count) -> atoll_sim_cluster:names_of(Count).

pass(Ms, World) -> atoll_sim_world:run(atoll_sim_world:now(World) + Ms, World).

update(Node, Name, Type, Operation, World0) ->
    {_, World} = atoll_sim_world:call(Node, crdt, {update, Name, Type, Operation}, World0),
    World.

online(Node, IsOnline, World0) ->
    {_, World} = atoll_sim_world:call(Node, crdt, {online, IsOnline}, World0),
    World.

%% An object's value on each live node, `none' among them.
values(Name, World) ->
    [{Node, atoll_crdt_replica_core:value(Name, atoll_sim_world:state(Node, crdt, World))} || Node <- atoll_sim_world:alive(World)].

%% Whether all live nodes have the same objects.
equal(World) ->
    States = [atoll_sim_world:state(Node, crdt, World) || Node <- atoll_sim_world:alive(World)],
    length(lists:usort([[{Name, atoll_crdt_replica_core:object(Name, State)} || Name <- atoll_crdt_replica_core:names(State)] || State <- States])) =:= 1.

summary(Node, World) -> atoll_crdt_replica_core:summary(atoll_sim_world:state(Node, crdt, World)).

%% The room hears of connections too, which are not neighbours.
init(Config, Now) -> atoll_crdt_replica_core:init(Config, Now).

handle({up, _}, _, Replica) -> {Replica, []};
handle({down, _, _}, _, Replica) -> {Replica, []};
handle({cast, {neighbour, Event}}, Now, Replica) -> atoll_crdt_replica_core:handle(Event, Now, Replica);
handle(Event, Now, Replica) -> atoll_crdt_replica_core:handle(Event, Now, Replica).

begun(_, _) -> {[], none}.

done(link, {notify, {unreachable, _} = Notice}, Local) -> {[{overlay, {cast, Notice}}], Local};
done(overlay, {notify, {neighbour_up, Node}}, Local) -> {[{crdt, {cast, {neighbour, {up, Node}}}}], Local};
done(overlay, {notify, {neighbour_down, Node, Why}}, Local) -> {[{crdt, {cast, {neighbour, {down, Node, Why}}}}], Local};
done(overlay, {notify, {broadcast, _, {Name, Delta}}}, Local) -> {[{crdt, {cast, {told, Name, Delta}}}], Local};
done(overlay, {notify, {missed, _, _}}, Local) -> {[{crdt, {cast, {missed, 0}}}], Local};
done(crdt, {act, {broadcast, Payload}}, Local) -> {[{overlay, {cast, {broadcast, Payload}}}], Local};
done(_, _, Local) -> {[], Local}.
