%% @doc Who is in which group, and how the groups are joined.
%%
%% The nodes of a run are cut into groups of a given size, in the order in
%% which they are given; the last group takes the rest. The first node of a
%% group is its gateway: the submaster and the gateway processes run there.
%% Gateways are joined by gateway groups:
%%
%%   par, mesh  one group of all nodes, and nothing to join
%%   groups     one gateway group of all gateways
%%   ring       one gateway group of each two neighbours, and of the last and
%%              the first group when there are more than two
%%
%% Nine nodes in groups of three, as a ring (gateways in capitals):
%%
%%   group 1: A b c      group 2: D e f      group 3: G h i
%%   gateway groups: A D, D G, G A
%%
%% Nodes talk to each other only inside a group of either kind. `next/3' is the
%% way from group to group, and `children/2' the tree along which the
%% submasters are started and give account.
-module(orbit_topology).

-export([new/3, groups/1, group/2, gateway_groups/1, gateway_groups/2,
         neighbours/2, next/3, children/2]).

-export_type([topology/0, mode/0, id/0, group/0, gateway_group/0]).

-type mode() :: par | mesh | groups | ring.

%% Groups are numbered from 1; the master is on the first node of group 1.
-type id() :: pos_integer().

-type group() :: #{id := id(), gateway := node(), nodes := [node(), ...]}.

%% Which groups' gateways are in it. The first of them makes it.
-type gateway_group() :: #{id := pos_integer(), members := [id(), ...]}.

-record(topology, {
    mode :: mode(),
    groups :: [group(), ...]
}).

-opaque topology() :: #topology{}.

%% @doc Lays the groups out. `Size' means something to groups and ring alone.
-spec new(mode(), [node(), ...], pos_integer()) -> topology().
new(Mode, Nodes, Size) when Mode =:= groups; Mode =:= ring ->
    Count = max(1, length(Nodes) div Size),
    #topology{mode = Mode, groups = cut(1, Count, Size, Nodes)};
new(Mode, Nodes, _) when Mode =:= par; Mode =:= mesh ->
    #topology{mode = Mode, groups = cut(1, 1, 1, Nodes)}.

%% @doc All groups, by ascending number.
-spec groups(topology()) -> [group(), ...].
groups(#topology{groups = Groups}) -> Groups.

%% @doc One group.
-spec group(topology(), id()) -> group().
group(#topology{groups = Groups}, Id) -> lists:nth(Id, Groups).

%% @doc The groups in which gateways meet.
-spec gateway_groups(topology()) -> [gateway_group()].
gateway_groups(#topology{mode = Mode, groups = Groups}) ->
    joined(Mode, length(Groups)).

%% @doc Those in which this group's gateway is a member.
-spec gateway_groups(topology(), id()) -> [gateway_group()].
gateway_groups(Topology, Id) ->
    [G || #{members := Members} = G <- gateway_groups(Topology), lists:member(Id, Members)].

%% @doc The groups that can be reached in one step.
-spec neighbours(topology(), id()) -> [id()].
neighbours(Topology, Id) ->
    Met = [Members || #{members := Members} <- gateway_groups(Topology, Id)],
    lists:delete(Id, lists:usort(lists:append(Met))).

%% @doc The next group on the way to another one: that one itself where all
%% gateways meet, the neighbour on the shorter way round in a ring.
-spec next(topology(), id(), id()) -> id().
next(#topology{mode = groups}, From, To) when From =/= To ->
    To;
next(#topology{mode = ring, groups = Groups}, From, To) when From =/= To ->
    Count = length(Groups),
    Ahead = (To - From + Count) rem Count,
    case Ahead =< Count - Ahead of
        true -> From rem Count + 1;
        false -> (From + Count - 2) rem Count + 1
    end.

%% @doc The groups that this group's submaster starts. Each is a neighbour, and
%% from group 1 every group is reached once.
-spec children(topology(), id()) -> [id()].
children(#topology{mode = ring, groups = Groups}, Id) ->
    [Id + 1 || Id < length(Groups)];
children(#topology{groups = Groups}, 1) ->
    lists:seq(2, length(Groups));
children(#topology{}, _) ->
    [].

cut(Id, Id, _, Nodes) ->
    [group_of(Id, Nodes)];
cut(Id, Last, Size, Nodes) ->
    {Own, Rest} = lists:split(Size, Nodes),
    [group_of(Id, Own) | cut(Id + 1, Last, Size, Rest)].

group_of(Id, [Gateway | _] = Nodes) ->
    #{id => Id, gateway => Gateway, nodes => Nodes}.

joined(Mode, Count) when Mode =:= par; Mode =:= mesh; Count =:= 1 ->
    [];
joined(groups, Count) ->
    [#{id => 1, members => lists:seq(1, Count)}];
joined(ring, 2) ->
    [#{id => 1, members => [1, 2]}];
joined(ring, Count) ->
    [#{id => Id, members => [Id, Id rem Count + 1]} || Id <- lists:seq(1, Count)].
