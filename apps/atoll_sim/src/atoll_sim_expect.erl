%% SPDX-License-Identifier: Apache-2.0
%% @doc Whether what a fault script expects holds, and the few facts by which two
%% runs are compared: one judge for simulated nodes and for real ones.
%%
%% It is shown what readers find on each living node, and what was seen of broadcasts and
%% of verdicts; where that was seen makes no difference to it.
-module(atoll_sim_expect).

-export([new/0, see/4, holds/3, facts/2, groups/1, names/1, agree/1]).

-export_type([seen/0, was/0, facts/0, views/0, groups/0, names/0]).

-record(seen, {
    deliveries = atoll_sim_deliveries:new() :: atoll_sim_deliveries:deliveries(),
    verdicts = atoll_sim_verdicts:new() :: atoll_sim_verdicts:verdicts()
}).

-opaque seen() :: #seen{}.

-type was() :: number() | [term()].
%% The share that it was, or who broke it; nobody, if a name is expected in a group that no living
%% node is in.

-type views() :: [{node(), atoll_sim_node:view()}].
%% Of the living nodes.

-type groups() :: #{node() => [{Group :: atom(), Members :: [node()]}]}.
-type names() :: #{node() => [{Group :: atom(), Name :: term(), node()}]}.
%% What each living node sees.

-type facts() :: #{
    %% Nodes that live.
    alive := non_neg_integer(),
    %% The share of them in the largest part, and how many parts there are.
    connected := float(),
    components := non_neg_integer(),
    %% The share of the links that both ends name.
    symmetric := float(),
    %% How many neighbours a node names.
    active_min := non_neg_integer(),
    active_mean := float(),
    active_max := non_neg_integer(),
    %% The share of the broadcasts that reached whom they were owed to.
    delivered := float(),
    %% Lives that were declared dead while they were awake.
    false_deaths := non_neg_integer()
}.

%% @doc Nothing was seen.
-spec new() -> seen().
new() ->
    #seen{}.

%% @doc Takes what a watcher of a world sees, or of nodes what is put in its words.
-spec see(integer(), node() | world, atoll_sim_world:sight(), seen()) -> seen().
see(Now, Where, Sight, #seen{deliveries = Deliveries, verdicts = Verdicts}) ->
    #seen{
        deliveries = atoll_sim_deliveries:see(Now, Where, Sight, Deliveries),
        verdicts = atoll_sim_verdicts:see(Now, Where, Sight, Verdicts)
    }.

%% @doc Whether it holds where the living nodes see this; or what it was.
-spec holds(atoll_sim_step:expectation(), views(), seen()) -> true | {false, was()}.
holds({connected, Share}, Views, _Seen) ->
    at_least(Share, atoll_sim_graph:connected(graph(Views)));
holds({delivered, Share}, _Views, Seen) ->
    at_least(Share, delivered(Seen));
holds(symmetric, Views, _Seen) ->
    Living = living(Views),
    nobody([Link || {_, To} = Link <- atoll_sim_graph:one_sided(graph(Views)), is_map_key(To, Living)]);
holds({neighbours, Min, Max}, Views, _Seen) ->
    Living = living(Views),
    nobody([
        {Node, Count}
     || {Node, #{neighbours := Peers}} <- Views,
        Count <- [length([Peer || Peer <- Peers, is_map_key(Peer, Living)])],
        Count < Min orelse Count > Max
    ]);
holds({no, false_death}, _Views, #seen{verdicts = Verdicts}) ->
    nobody([Node || {Node, _} <- atoll_sim_verdicts:false_deaths(Verdicts)]);
holds(members, Views, _Seen) ->
    Living = [Node || {Node, _} <- Views],
    nobody([
        {Node, {lacks, Living -- Members}, {has, Members -- Living}}
     || {Node, #{members := [_ | _] = Members}} <- Views, lists:sort(Members) =/= lists:sort(Living)
    ] ++ [{Node, {lacks, all}} || {Node, #{members := Nobody}} <- Views, Nobody =:= off orelse Nobody =:= []]);
holds(reachable, Views, _Seen) ->
    nobody([
        {Node, {lacks, Lacks}}
     || {Node, #{reachable := [_ | _] = Reachable}} <- Views, Lacks <- [[N || {N, _} <- Views, N =/= Node] -- Reachable], Lacks =/= []
    ] ++ [{Node, {lacks, all}} || {Node, #{reachable := Nobody}} <- Views, Nobody =:= off orelse Nobody =:= [], length(Views) > 1]);
holds(groups, Views, _Seen) ->
    nobody(differing(groups(Views)));
holds(names, Views, _Seen) ->
    nobody(differing_names(Views));
holds({group, Group, Members}, Views, _Seen) ->
    Right = {Group, lists:sort(Members)},
    nobody([
        {Node, Own}
     || {Node, #{groups := Groups}} <- Views,
        Own <- [lists:keyfind(Group, 1, Groups)],
        Own =/= Right andalso (lists:member(Node, Members) orelse Own =/= false)
    ]);
holds({name, Group, Name, Owners}, Views, _Seen) ->
    Found = [{Node, Owner} || {Node, #{groups := Groups} = View} <- Views, lists:keymember(Group, 1, Groups), Owner <- [owner(Group, Name, View)]],
    case lists:usort([Owner || {_, Owner} <- Found]) of
        [Owner] -> nobody([F || F <- Found, not lists:member(Owner, Owners)]);
        [] -> {false, []};
        _ -> {false, Found}
    end;
holds({no, {group, Group}}, Views, _Seen) ->
    nobody([Node || {Node, #{groups := Groups}} <- Views, lists:keymember(Group, 1, Groups)]);
holds({no, {name, Group, Name}}, Views, _Seen) ->
    nobody([{Node, Owner} || {Node, View} <- Views, Owner <- [owner(Group, Name, View)], Owner =/= nobody]).

owner(Group, Name, #{names := Names}) ->
    case [Owner || {G, N, Owner} <- Names, G =:= Group, N =:= Name] of
        [Owner] -> Owner;
        [] -> nobody
    end.

graph(Views) -> [{Node, Peers} || {Node, #{neighbours := Peers}} <- Views].

%% @doc Who sees which groups.
-spec groups(views()) -> groups().
groups(Views) -> maps:from_list([{Node, Groups} || {Node, #{groups := Groups}} <- Views]).

%% @doc Who sees which names, with the nodes of their processes.
-spec names(views()) -> names().
names(Views) -> maps:from_list([{Node, Names} || {Node, #{names := Names}} <- Views]).

%% @doc Whether every living member of a group that somebody sees sees the same.
-spec agree(groups()) -> boolean().
agree(Groups) -> differing(Groups) =:= [].

%% Who sees a group otherwise than one of the others, or one that it is not in.
differing(Groups) ->
    All = lists:usort(lists:append(maps:values(Groups))),
    lists:usort(
        [
            {Member, Group}
         || {Name, Members} = Group <- All,
            Member <- Members,
            #{Member := Own} <- [Groups],
            lists:keyfind(Name, 1, Own) =/= Group
        ] ++ [{Node, Group} || {Node, Own} <- maps:to_list(Groups), {_, Members} = Group <- Own, not lists:member(Node, Members)]
    ).

%% Whose names of a group are not those of the first of its living members, as that node knows
%% them: two groups may have one name and nobody in both. Free nodes are not compared, since each
%% has the names of those with whom it shares.
differing_names(Views) ->
    ByNode = maps:from_list(Views),
    [
        {Node, Group, Names}
     || {Node, #{groups := Own} = View} <- Views,
        {Group, Members} <- Own,
        Names <- [names_in(Group, View)],
        Names =/= names_in(Group, first(Group, Members, ByNode, View))
    ].

names_in(Group, #{names := Names}) -> [{Name, Owner} || {G, Name, Owner} <- Names, G =:= Group].

first(Group, [Member | Members], ByNode, Itself) ->
    case ByNode of
        #{Member := #{groups := Own} = View} ->
            case lists:keymember(Group, 1, Own) of
                true -> View;
                false -> first(Group, Members, ByNode, Itself)
            end;
        #{} ->
            first(Group, Members, ByNode, Itself)
    end;
%% It does not know itself for a member: that is for `groups' to say.
first(_Group, [], _ByNode, Itself) ->
    Itself.

%% @doc The facts, where the living nodes see this.
-spec facts(views(), seen()) -> facts().
facts(Views, #seen{verdicts = Verdicts} = Seen) ->
    #{
        nodes := Nodes,
        components := Components,
        connected := Connected,
        symmetric := Symmetric,
        degree_min := Min,
        degree_mean := Mean,
        degree_max := Max
    } = atoll_sim_graph:summary(graph(Views)),
    #{
        alive => Nodes,
        connected => Connected,
        components => Components,
        symmetric => Symmetric,
        active_min => Min,
        active_mean => Mean,
        active_max => Max,
        delivered => delivered(Seen),
        false_deaths => length(atoll_sim_verdicts:false_deaths(Verdicts))
    }.

delivered(#seen{deliveries = Deliveries}) ->
    {Owed, Made} = atoll_sim_deliveries:owed(Deliveries),
    atoll_sim_stats:share(Made, Owed).

living(Views) ->
    maps:from_keys([Node || {Node, _} <- Views], []).

at_least(Share, Was) when Was >= Share -> true;
at_least(_Share, Was) -> {false, Was}.

nobody([]) -> true;
nobody(Those) -> {false, Those}.
