%% SPDX-License-Identifier: Apache-2.0
%% @doc A simulated node with all that ships: the overlay, the groups, the names and the
%% directory, each the protocol of its process, over the one owner of connections that the
%% world has on every node; and what is around them on a real node.
%%
%% That is who tells whom. Where a process of a room hears something of another room, or does
%% what only its protocol knows, its module is named beside it here: the two have to stay the
%% same. What a process tells another one comes after what happens now, in its order.
%%
%% The table of the groups and that of the names, which readers use, are here. So are the
%% processes of programs that have names: they do nothing but end when a clash is lost.
-module(atoll_sim_node).

-behaviour(atoll_sim_world).

-export([rooms/0, config/2]).
-export([begun/2, done/3]).
-export([view/2, ask_group/3, ask_name/3, own_names/3, kill_named/4]).

-export_type([options/0, view/0, name_operation/0]).

%% What the rooms beside the overlay are started with: see atoll_config.
-type options() :: #{
    group := atoll_group_core:options(),
    name := atoll_name:options(),
    route := off | atoll_route:options()
}.

-type name_operation() :: {register | re_register | unregister, Group :: atom(), Name :: term()}.

%% What readers find on a node.
-type view() :: #{
    neighbours := [node()],
    %% Of its roster, if it has one.
    members := [node()] | off,
    groups := [{Group :: atom(), Members :: [node()]}],
    %% Each name with the node of its process.
    names := [{Group :: atom(), Name :: term(), node()}],
    %% To whom its directory knows a way, if it has one.
    reachable := [node()] | off
}.

-record(local, {
    self :: node(),
    %% Of the pids of this life.
    creation :: pos_integer(),
    last = 0 :: non_neg_integer(),
    has_cliques :: boolean(),
    groups = [] :: [atoll_group_rules:published()],
    names = #{} :: #{{Group :: atom(), Name :: term()} => pid()},
    monitored = #{} :: #{pid() => []}
}).

%% @doc The rooms in the order in which they begin and hear of connections.
-spec rooms() -> [{atoll_sim_world:room(), module()}, ...].
rooms() ->
    [{overlay, atoll_overlay_core}, {group, atoll_group_core}, {name, atoll_name_core}, {route, atoll_route_core}].

%% @doc What each room is started with; without the others, the overlay alone.
-spec config(atoll_overlay_core:config(), options() | off) -> #{atoll_sim_world:room() => term()}.
config(Overlay, off) ->
    #{overlay => Overlay};
config(#{self := Self, incarnation := Incarnation, seed := Seed} = Overlay, #{group := Group, name := Name, route := Route}) ->
    %% As atoll_group, atoll_name and atoll_route start them.
    Same = #{self => Self, incarnation => Incarnation},
    Groups = Same#{seed => erlang:phash2({group, Seed}), options => Group},
    Names = #{
        self => Self,
        %% In microseconds.
        incarnation => 1000000 * Incarnation,
        options => maps:merge(atoll_name:defaults(), Name),
        published => [],
        held => []
    },
    maps:merge(
        #{overlay => Overlay, group => Groups, name => Names},
        case Route of
            off -> #{};
            _ -> #{route => maps:merge(Same#{seed => erlang:phash2({route, Seed}), left => false}, Route)}
        end
    ).

%% @private
-spec begun(node(), #{atoll_sim_world:room() => term()}) ->
    {[{atoll_sim_world:room(), atoll_protocol:event()}], #local{}}.
begun(Name, #{overlay := #{incarnation := Incarnation, strategy := {Strategy, _}}}) ->
    %% atoll_group: what it says to the rooms below when it has begun.
    {[{route, {cast, groups_known}}], #local{self = Name, creation = Incarnation, has_cliques = Strategy =:= atoll_cliques}}.

%% @private
-spec done(atoll_sim_world:room(), {notify | act, term()}, #local{}) ->
    {[{atoll_sim_world:room(), atoll_protocol:event()}], #local{}}.
%% atoll_link:heard/1: the names and the directory seek nobody.
done(link, {notify, {unreachable, _} = Notice}, Local) ->
    {[{Room, {cast, Notice}} || Room <- [overlay, group]], Local};
done(link, {notify, _}, Local) ->
    {[], Local};
%% atoll_route:event/2.
done(overlay, {notify, Notice}, Local) ->
    {[{route, {cast, Cast}} || Cast <- of_overlay(Notice)], Local};
done(group, {act, {publish, Groups}}, #local{has_cliques = HasCliques} = Local) ->
    %% atoll_group: the table, and the rooms below.
    Cliques = [{overlay, {cast, {tell, {cliques, [{Id, Nodes} || {_, Id, Nodes} <- Groups]}}}} || HasCliques],
    {Cliques ++ [{route, {cast, {groups, [Name || {Name, _, _} <- Groups]}}}], Local#local{groups = Groups}};
done(group, {act, {keep, _Views}}, Local) ->
    %% For its next life on the same node, which is none here.
    {[], Local};
%% atoll_name:event/2.
done(group, {notify, {making, Flag}}, #local{groups = Groups} = Local) ->
    {[{name, {cast, {groups, Groups}}}, {name, {cast, {making, Flag}}}], Local};
done(group, {notify, _}, #local{groups = Groups} = Local) ->
    {[{name, {cast, {groups, Groups}}}], Local};
%% atoll_name:act/2.
done(name, {act, {insert, Group, Name, Pid, _Meta, _Whose}}, #local{names = Names} = Local) ->
    {[], Local#local{names = Names#{{Group, Name} => Pid}}};
done(name, {act, {delete, Group, Name}}, #local{names = Names} = Local) ->
    {[], Local#local{names = maps:remove({Group, Name}, Names)}};
done(name, {act, {monitor, Pid}}, #local{monitored = Monitored} = Local) ->
    {[], Local#local{monitored = Monitored#{Pid => []}}};
done(name, {act, {demonitor, Pid}}, #local{monitored = Monitored} = Local) ->
    {[], Local#local{monitored = maps:remove(Pid, Monitored)}};
done(name, {act, {kill, Pid, _Conflict}}, #local{monitored = Monitored} = Local) ->
    {[{name, {cast, {died, Pid}}} || is_map_key(Pid, Monitored)], Local#local{monitored = maps:remove(Pid, Monitored)}};
done(name, {act, {tell, _Pid, _Told, _Conflict}}, Local) ->
    {[], Local};
done(name, {act, {look_for, _Node, _Mark}}, Local) ->
    %% It is there: a node that runs has its names.
    {[], Local};
done(name, {notify, _}, Local) ->
    {[], Local};
%% The carrier's.
done(route, _, Local) ->
    {[], Local}.

of_overlay({member_down, _, _} = Down) -> [Down];
of_overlay({neighbour_up, _} = Up) -> [Up];
of_overlay({neighbour_down, Node, _Why}) -> [{neighbour_down, Node}];
of_overlay({reborn, Life}) -> [{incarnation, Life}];
of_overlay(left) -> [leave];
of_overlay(_) -> [].

%% @doc What readers find on a living node of a world.
-spec view(node(), atoll_sim_world:world()) -> view().
view(Node, World) ->
    Overlay = atoll_sim_world:state(Node, World),
    #local{groups = Groups, names = Names} = atoll_sim_world:local(Node, World),
    #{
        neighbours => atoll_overlay_core:neighbours(Overlay),
        members => atoll_overlay_core:members(Overlay),
        groups => lists:sort([{Name, Members} || {Name, _, Members} <- Groups]),
        names => lists:sort([{Group, Name, node(Pid)} || {{Group, Name}, Pid} <- maps:to_list(Names)]),
        reachable => reachable(atoll_sim_world:has_room(Node, route, World), Node, World)
    }.

reachable(false, _Node, _World) ->
    off;
reachable(true, Node, World) ->
    atoll_route_core:reachable(atoll_sim_world:state(Node, route, World)).

%% @doc A program on a node asks for a change of a group, as by s_group.
-spec ask_group(node(), atoll_sim_step:operation([node()]), atoll_sim_world:world()) -> atoll_sim_world:world().
ask_group(Node, {delete, Name}, World) -> ask(Node, group, {delete, Name, []}, World);
ask_group(Node, {Verb, Name, Nodes}, World) -> ask(Node, group, {Verb, Name, lists:usort(Nodes)}, World).

%% @doc A program on a node asks for a name for a process of its own that begins now, or for it
%% to be nobody's.
-spec ask_name(node(), name_operation(), atoll_sim_world:world()) -> atoll_sim_world:world().
ask_name(Node, {unregister, Group, Name}, World) ->
    ask(Node, name, {unregister, Group, Name}, World);
ask_name(Node, {Verb, Group, Name}, World0) ->
    case atoll_sim_world:status(Node, World0) of
        dead ->
            World0;
        _ ->
            World = atoll_sim_world:update_local(Node, fun(#local{last = N} = Local) -> Local#local{last = N + 1} end, World0),
            ask(Node, name, {Verb, Group, Name, pid(atoll_sim_world:local(Node, World)), undefined}, World)
    end.

ask(Node, Room, Request, World0) ->
    {_, World} = atoll_sim_world:call(Node, Room, Request, World0),
    World.

%% @doc The names in a group that processes of this node have, in order.
-spec own_names(node(), Group :: atom(), atoll_sim_world:world()) -> [Name :: term()].
own_names(Node, Group, World) ->
    #local{names = Names} = atoll_sim_world:local(Node, World),
    lists:sort([Name || {{G, Name}, Pid} <- maps:to_list(Names), G =:= Group, node(Pid) =:= Node]).

%% @doc The process of this node that has the name is killed.
-spec kill_named(node(), Group :: atom(), Name :: term(), atoll_sim_world:world()) -> atoll_sim_world:world().
kill_named(Node, Group, Name, World0) ->
    #local{names = #{{Group, Name} := Pid}} = atoll_sim_world:local(Node, World0),
    World = atoll_sim_world:update_local(
        Node, fun(#local{monitored = Monitored} = Local) -> Local#local{monitored = maps:remove(Pid, Monitored)} end, World0
    ),
    atoll_sim_world:cast(Node, name, {died, Pid}, World).

%% The external term format is the one way to a pid of another node.
pid(#local{self = Self, creation = Creation, last = N}) ->
    Name = atom_to_binary(Self),
    binary_to_term(<<131, 88, 119, (byte_size(Name)), Name/binary, N:32, 0:32, Creation:32>>).
