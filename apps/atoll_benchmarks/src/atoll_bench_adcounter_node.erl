%% SPDX-License-Identifier: Apache-2.0
%% @doc What runs on a simulated node of the advertisement counter beside the overlay: the replica and the client or the server, the
%% same pure modules as on a real node, put together as `adcounter_client' and `adcounter_server' do it; and what is
%% between it and the overlay ({@link atoll_sim_world}), as `atoll_crdt_replica' does that.
%%
%% What happened it says in notices: `{shown, Ad}', `seen' and `disabled'.
-module(atoll_bench_adcounter_node).
-behaviour(atoll_protocol).
-behaviour(atoll_sim_world).

-export([init/2, handle/3, replica/1]).
-export([begun/2, done/3]).

-export_type([config/0]).

-type config() :: #{
    replica := atoll_crdt_replica_core:config(),
    role := server | client,
    seed := integer(),
    settings := adcounter_options:options()
}.

-record(node, {
    replica :: atoll_crdt_replica_core:state(),
    role :: server | client,
    settings :: adcounter_options:options(),
    phone :: adcounter_phone:phone(),
    is_disabled = false :: boolean()
}).

-spec init(config(), atoll_protocol:now_ms()) -> {#node{}, [atoll_protocol:effect()]}.
init(#{replica := #{self := Self} = Config, role := Role, seed := Seed, settings := Settings}, Now) ->
    {Replica, Effects} = atoll_crdt_replica_core:init(Config, Now),
    Node = #node{replica = Replica, role = Role, settings = Settings, phone = adcounter_phone:new(Self, Seed, Settings)},
    said(Effects, Now, Node).

%% @doc Casts: `open' tells the server to have advertisements, and a client to begin; `{neighbour, Event}' is of the overlay. All others are the replica's.
-spec handle(atoll_protocol:event(), atoll_protocol:now_ms(), #node{}) -> {#node{}, [atoll_protocol:effect()]}.
handle({cast, open}, Now, #node{role = server, settings = #{ads := Ads, budget := Budget}} = Node) ->
    change(adcounter_program:contracts(Ads, Budget), Now, Node);
handle({cast, open}, Now, #node{role = client, phone = Phone0} = Node0) ->
    {Ms, Phone} = adcounter_phone:first(Phone0),
    {Node, Effects} = turn(Now, Node0#node{phone = Phone}),
    {Node, [{timer, show, Ms} | Effects]};
handle({timeout, show}, Now, #node{phone = Phone0} = Node) ->
    case adcounter_phone:show(read(Node), Now, Phone0) of
        {showing, Changes, Phone1} ->
            {Ms, Phone} = adcounter_phone:pause(Phone1),
            {Changed, Effects} = change(Changes, Now, Node#node{phone = Phone}),
            {Changed, Effects ++ [{notify, {shown, Ad}} || {{impressions, Ad}, _, _} <- Changes] ++ [{timer, show, Ms}]};
        Done ->
            over(Done, Now, Node)
    end;
handle({timeout, turn}, Now, Node) ->
    turn(Now, Node);
handle({cast, {neighbour, Event}}, Now, Node) ->
    replica(Event, Now, Node);
%% Connections are not neighbours.
handle({up, _}, _, Node) ->
    {Node, []};
handle({down, _, _}, _, Node) ->
    {Node, []};
handle({timeout, {replica, Key}}, Now, Node) ->
    replica({timeout, Key}, Now, Node);
handle(Event, Now, Node) ->
    replica(Event, Now, Node).

%% @doc Its replica.
-spec replica(#node{}) -> atoll_crdt_replica_core:state().
replica(#node{replica = Replica}) -> Replica.

%% What a phone saw of the end, the first time that it did.
over({done, Changes, Phone}, Now, #node{phone = Before} = Node0) ->
    {Node, Effects} = change(Changes, Now, Node0#node{phone = Phone}),
    {Node, Effects ++ [{notify, seen} || adcounter_phone:seen_at(Before) =:= never]};
over({showing, [], _}, _, Node) ->
    {Node, []}.

turn(Now, #node{phone = Phone0} = Node0) ->
    {IsOnline, Ms, Phone} = adcounter_phone:turn(Phone0),
    {Node, Effects} = replica({cast, {online, IsOnline}}, Now, Node0#node{phone = Phone}),
    {Node, Effects ++ [{timer, turn, Ms} || Ms =/= infinity]}.

read(#node{replica = Replica}) -> fun(Name) -> atoll_crdt_replica_core:value(Name, Replica) end.

change(Changes, Now, Node) ->
    lists:foldl(
        fun({Name, Type, Operation}, {N0, Acc}) ->
            {N, Effects} = replica({cast, {update, Name, Type, Operation}}, Now, N0),
            {N, Acc ++ Effects}
        end,
        {Node, []},
        Changes
    ).

replica(Event, Now, #node{replica = Replica0} = Node) ->
    {Replica, Effects} = atoll_crdt_replica_core:handle(Event, Now, Replica0),
    said(Effects, Now, Node#node{replica = Replica}).

said(Effects, Now, Node) ->
    lists:foldl(
        fun(Effect, {N0, Acc}) ->
            {N, More} = say(Effect, Now, N0),
            {N, Acc ++ More}
        end,
        {Node, []},
        Effects
    ).

say({timer, Key, Ms}, _, Node) ->
    {Node, [{timer, {replica, Key}, Ms}]};
say({cancel, Key}, _, Node) ->
    {Node, [{cancel, {replica, Key}}]};
say({notify, {changed, {impressions, Ad}}}, Now, #node{role = Role, settings = #{triggers := Triggers}} = Node) when
    Role =:= server; Triggers =:= all
->
    change(adcounter_program:triggered(Ad, read(Node)), Now, Node);
say({notify, {changed, ads}}, _, #node{role = server, is_disabled = false} = Node) ->
    case adcounter_program:is_over(read(Node)) of
        true -> {Node#node{is_disabled = true}, [{notify, disabled}]};
        false -> {Node, []}
    end;
say({notify, {changed, ads}}, Now, #node{role = client, phone = Phone} = Node) ->
    over(adcounter_phone:look(read(Node), Now, Phone), Now, Node);
say({notify, _}, _, Node) ->
    {Node, []};
say(Effect, _, Node) ->
    {Node, [Effect]}.

%% @private
-spec begun(node(), #{atoll_sim_world:room() => term()}) -> {[], none}.
begun(_, _) -> {[], none}.

%% @private
-spec done(atoll_sim_world:room(), {notify | act, term()}, none) -> {[{atoll_sim_world:room(), atoll_protocol:event()}], none}.
done(link, {notify, {unreachable, _} = Notice}, Local) -> {[{overlay, {cast, Notice}}], Local};
done(overlay, {notify, {neighbour_up, Node}}, Local) -> {[{program, {cast, {neighbour, {up, Node}}}}], Local};
done(overlay, {notify, {neighbour_down, Node, Why}}, Local) -> {[{program, {cast, {neighbour, {down, Node, Why}}}}], Local};
done(_, _, Local) -> {[], Local}.
