%% SPDX-License-Identifier: Apache-2.0
%% A node of the simulator with all that s_group is made of: the protocol of the groups
%% and that of the names, each as on a real node, and between them what their processes
%% do there. The names hear of the groups in an event of its own; a connection that was
%% made stays wanted, for the semantics removes none.
-module(atoll_semantics_sim_node).

-behaviour(atoll_protocol).

-export([init/2, handle/3, view/1, pid/2]).

-record(node, {
    self,
    group,
    name,
    %% What the group room has published last.
    own = [],
    %% What readers of names find.
    table = #{} :: #{{Group :: atom(), Name :: term()} => pid()},
    dead = #{} :: #{pid() => []},
    %% Who has lost a name, and was told so.
    told = [] :: [pid()],
    monitored = #{} :: #{pid() => []},
    %% Who waits for a connection.
    waiting = [] :: [{node(), atoll_protocol:from()}]
}).

init(#{self := Self, seed := Seed, incarnation := Incarnation} = Config, Now) ->
    {Group, Effects1} = atoll_group_core:init(
        #{self => Self, incarnation => Incarnation, seed => Seed, options => atoll_group_world:options()}, Now
    ),
    Options = (atoll_name_world:options())#{rule => {fn, atoll_semantics_probe, smaller_node}},
    {Name, Effects2} = atoll_name_core:init(name_config(Config, Options), Now),
    Dead = maps:from_keys([pid(Self, N) || N <- lists:seq(1, maps:get(used_up, Config, 0))], []),
    Node0 = #node{self = Self, group = Group, name = Name, dead = Dead},
    {Node1, Out1} = performed(group, Effects1, Node0),
    {Node, Out2} = performed(name, Effects2, Node1),
    %% The process of the names asks that of the groups when it starts.
    {Node, Out1 ++ Out2 ++ [{timer, published, 0}]}.

name_config(#{self := Self, incarnation := Incarnation, is_hidden := IsHidden}, Options) ->
    Free =
        case IsHidden of
            true -> alone;
            false -> mesh
        end,
    #{self => Self, incarnation => 1000000 * Incarnation, options => Options#{free => Free}}.

handle({call, From, {name, {_, _, _, Pid, _}}}, _Now, #node{dead = Dead} = Node) when is_map_key(Pid, Dead) ->
    %% As atoll_name does: who asks looks first, when it is a process of its own node.
    {Node, [{reply, From, {no, no_process}}]};
handle({call, From, {Room, Request}}, Now, Node) when Room =:= group; Room =:= name ->
    to(Room, {call, From, Request}, Now, Node);
handle({call, From, {connect, Peer}}, _Now, #node{waiting = Waiting} = Node) ->
    {Node#node{waiting = [{Peer, From} | Waiting]}, [{want, Peer}]};
handle({call, From, {cut, Peers}}, _Now, Node) ->
    {Node, [{act, {disconnect, Peer}} || Peer <- Peers] ++ [{reply, From, ok}]};
handle({call, From, {exit, Pid}}, _Now, #node{dead = Dead, monitored = Monitored} = Node) ->
    News = [{timer, {died, Pid}, 0} || is_map_key(Pid, Monitored)],
    {Node#node{dead = Dead#{Pid => []}}, News ++ [{reply, From, ok}]};
handle({message, Peer, {Room, Message}}, Now, Node) ->
    to(Room, {message, Peer, Message}, Now, Node);
handle({up, Peer} = Up, Now, #node{waiting = Waiting} = Node) ->
    {Mine, Others} = lists:partition(fun({P, _}) -> P =:= Peer end, Waiting),
    {Told, Effects} = to_both(Up, Now, Node#node{waiting = Others}),
    {Told, [{want, Peer} | Effects] ++ [{reply, From, ok} || {_, From} <- Mine]};
handle({down, _, _} = Down, Now, Node) ->
    to_both(Down, Now, Node);
handle({cast, {unreachable, _}} = Cast, Now, Node) ->
    to(group, Cast, Now, Node);
handle({timeout, {Room, Key}}, Now, Node) when Room =:= group; Room =:= name ->
    to(Room, {timeout, Key}, Now, Node);
handle({timeout, published}, Now, #node{own = Own} = Node) ->
    to(name, {cast, {groups, Own}}, Now, Node);
handle({timeout, {making, _} = Making}, Now, Node) ->
    to(name, {cast, Making}, Now, Node);
handle({timeout, {died, Pid}}, Now, Node) ->
    to(name, {cast, {died, Pid}}, Now, Node);
handle({timeout, {decided, Key, Winner}}, Now, Node) ->
    to(name, {cast, {decided, Key, Winner}}, Now, Node).

to_both(Event, Now, Node0) ->
    {Node1, Effects1} = to(group, Event, Now, Node0),
    {Node, Effects2} = to(name, Event, Now, Node1),
    {Node, Effects1 ++ Effects2}.

to(group, Event, Now, #node{group = State0} = Node) ->
    {State, Effects} = atoll_group_core:handle(Event, Now, State0),
    performed(group, atoll_group_world:readers_first(Effects), Node#node{group = State});
to(name, Event, Now, #node{name = State0} = Node) ->
    {State, Effects} = atoll_name_core:handle(Event, Now, State0),
    performed(name, Effects, Node#node{name = State}).

performed(Room, Effects, Node) ->
    lists:foldl(
        fun(Effect, {N0, Out}) ->
            {N, More} = perform(Effect, Room, N0),
            {N, Out ++ More}
        end,
        {Node, []},
        Effects
    ).

perform({send, Peer, Message}, Room, Node) -> {Node, [{send, Peer, {Room, Message}}]};
perform({timer, Key, Ms}, Room, Node) -> {Node, [{timer, {Room, Key}, Ms}]};
perform({cancel, Key}, Room, Node) -> {Node, [{cancel, {Room, Key}}]};
perform({want, _} = Want, _Room, Node) -> {Node, [Want]};
%% A room that wants a node no more leaves the want to the connection itself.
perform({unwant, _}, _Room, Node) -> {Node, []};
perform({reply, _, _} = Reply, _Room, Node) -> {Node, [Reply]};
perform({notify, {making, _} = Making}, group, Node) -> {Node, [{timer, published, 0}, {timer, Making, 0}]};
perform({notify, _}, _Room, Node) -> {Node, []};
perform({act, {keep, _Views}}, group, Node) -> {Node, []};
perform({act, {publish, Own}}, group, Node) -> {Node#node{own = Own}, [{timer, published, 0}]};
perform({act, {insert, Group, Name, Pid, _Meta, _Whose}}, name, #node{table = Table} = Node) ->
    {Node#node{table = Table#{{Group, Name} => Pid}}, []};
perform({act, {delete, Group, Name}}, name, #node{table = Table} = Node) ->
    true = is_map_key({Group, Name}, Table),
    {Node#node{table = maps:remove({Group, Name}, Table)}, []};
perform({act, {monitor, Pid}}, name, #node{self = Self, monitored = Monitored, dead = Dead} = Node) ->
    Self = node(Pid),
    {Node#node{monitored = Monitored#{Pid => []}}, [{timer, {died, Pid}, 0} || is_map_key(Pid, Dead)]};
perform({act, {demonitor, Pid}}, name, #node{monitored = Monitored} = Node) ->
    {Node#node{monitored = maps:remove(Pid, Monitored)}, [{cancel, {died, Pid}}]};
perform({act, {tell, Pid, _Told, _Conflict}}, name, #node{told = Told} = Node) ->
    {Node#node{told = [Pid | Told]}, []};
perform({act, {decide, Key, {Module, Function, Args}}}, name, Node) ->
    {Node, [{timer, {decided, Key, apply(Module, Function, Args)}, 0}]}.
%% Nobody is silent here: a disconnect would be a fault, and crashes.

%% A process of that node; a term that is a pid, and for which node/1 is that node.
pid(Node, N) -> atoll_name_world:pid(Node, N).

%% What readers on this node see.
view(#node{own = Own, table = Table, name = State, told = Told}) ->
    {_, Effects} = atoll_name_core:handle({call, {self(), none}, free_nodes}, 0, State),
    {reply, _, Free} = lists:keyfind(reply, 1, Effects),
    #{
        free => Free,
        groups => [{Name, Members} || {Name, _, Members} <- Own],
        table => Table,
        told => Told
    }.
