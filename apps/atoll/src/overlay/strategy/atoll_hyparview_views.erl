%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The two views of {@link atoll_hyparview}: the active one, whose members are
%% this node's neighbours, and the passive one, the nodes it would ask next.
%%
%% What always holds: a node is in at most one of the two; this node itself is in
%% neither; neither is larger than its bound. Every function is total and keeps it
%% so. For instance, with room for two neighbours, `adopt(c, ..)' on
%% `active [a, b], passive [c, d]' gives `active [a, c], passive [b, d]' and says
%% that `b' was evicted.
%%
%% Both are short lists. The active one is in the order of names, so that nothing
%% that is chosen from it depends on anything else; the passive one has the newest
%% first. What the bound pushes out of the passive view is spare: the last of these
%% are kept apart, as many as the passive view may have, for one who has nobody left
%% to ask ({@link replenish/2}).
-module(atoll_hyparview_views).

-export([new/3, active/1, passive/1, size/1, room/1, is_active/2]).
-export([spare/1, dropped/1, spare_dropped/1, names_dropped/1]).
-export([adopt/3, demote/3, forget/2, note/3, merge/4, replenish/2, clear/1]).

-export_type([views/0]).

-import(atoll_random, [pick/2, split/3]).

-record(views, {
    self :: node(),
    active_max :: pos_integer(),
    passive_max :: pos_integer(),
    active = [] :: [node()],
    passive = [] :: [node()],
    %% The last that the bound has pushed out, newest first. It may name nodes that
    %% have come back since.
    spare = [] :: [node()],
    %% How many the bound has pushed out of the passive view, and out of the spare.
    dropped = 0 :: non_neg_integer(),
    spare_dropped = 0 :: non_neg_integer(),
    %% How many new names came beyond what the passive view has room for at all.
    names_dropped = 0 :: non_neg_integer()
}).

-opaque views() :: #views{}.

%% @doc Both empty.
-spec new(node(), pos_integer(), pos_integer()) -> views().
new(Self, ActiveMax, PassiveMax) ->
    #views{self = Self, active_max = ActiveMax, passive_max = PassiveMax}.

%% @doc The neighbours, in the order of their names.
-spec active(views()) -> [node()].
active(#views{active = Active}) -> Active.

%% @doc The others, newest first.
-spec passive(views()) -> [node()].
passive(#views{passive = Passive}) -> Passive.

%% @doc How many neighbours there are.
-spec size(views()) -> non_neg_integer().
size(#views{active = Active}) -> length(Active).

%% @doc How many neighbours there could be more.
-spec room(views()) -> non_neg_integer().
room(#views{active = Active, active_max = Max}) -> Max - length(Active).

%% @doc Whether the node is a neighbour.
-spec is_active(node(), views()) -> boolean().
is_active(Node, #views{active = Active}) -> lists:member(Node, Active).

%% @doc How many are spare.
-spec spare(views()) -> non_neg_integer().
spare(#views{spare = Spare}) -> length(Spare).

%% @doc How many nodes the bound has pushed out of the spare so far.
-spec spare_dropped(views()) -> non_neg_integer().
spare_dropped(#views{spare_dropped = Dropped}) -> Dropped.

%% @doc How many new names of one message there was no room for so far.
-spec names_dropped(views()) -> non_neg_integer().
names_dropped(#views{names_dropped = Dropped}) -> Dropped.

%% @doc How many nodes the bound has pushed out of the passive view so far.
-spec dropped(views()) -> non_neg_integer().
dropped(#views{dropped = Dropped}) -> Dropped.

%% @doc Makes the node a neighbour. If there is no room a random other one is
%% evicted, which goes to the passive view.
-spec adopt(node(), views(), rand:state()) -> {views(), none | {evicted, node()}, rand:state()}.
adopt(Self, #views{self = Self} = Views, Rand) ->
    {Views, none, Rand};
adopt(Node, #views{active = Active, active_max = Max, passive = Passive} = Views0, Rand0) ->
    case lists:member(Node, Active) of
        true ->
            {Views0, none, Rand0};
        false when length(Active) < Max ->
            {added(Node, Active, lists:delete(Node, Passive), Views0), none, Rand0};
        false ->
            {Evicted, Rand1} = pick(Active, Rand0),
            Rest = lists:delete(Node, Passive),
            Views = added(Node, lists:delete(Evicted, Active), Rest, Views0),
            {Noted, Rand} = note(Evicted, Views, Rand1),
            {Noted, {evicted, Evicted}, Rand}
    end.

added(Node, Active, Passive, Views) ->
    Views#views{active = lists:merge([Node], Active), passive = Passive}.

%% @doc A neighbour is one no longer, and goes to the passive view.
-spec demote(node(), views(), rand:state()) -> {views(), rand:state()}.
demote(Node, #views{active = Active} = Views, Rand) ->
    case lists:member(Node, Active) of
        true -> note(Node, Views#views{active = lists:delete(Node, Active)}, Rand);
        false -> {Views, Rand}
    end.

%% @doc The node is in neither view.
-spec forget(node(), views()) -> views().
forget(Node, #views{active = Active, passive = Passive, spare = Spare} = Views) ->
    Views#views{
        active = lists:delete(Node, Active),
        passive = lists:delete(Node, Passive),
        spare = lists:delete(Node, Spare)
    }.

%% @doc Puts one node into the passive view, unless it is in one of the two.
-spec note(node(), views(), rand:state()) -> {views(), rand:state()}.
note(Node, Views, Rand) ->
    merge([Node], [], Views, Rand).

%% @doc Puts nodes into the passive view. If there is no room, those in `First' go
%% first (the peer has them now), then random ones; never one that just came.
-spec merge([node()], First :: [node()], views(), rand:state()) -> {views(), rand:state()}.
merge(Nodes, First, #views{passive_max = Max, names_dropped = Dropped} = Views, Rand) ->
    New = unknown(Nodes, [], Views),
    case length(New) of
        Count when Count =< Max ->
            merge(New, Count, First, Views, Rand);
        Count ->
            Less = Views#views{names_dropped = Dropped + Count - Max},
            merge(lists:sublist(New, Max), Max, First, Less, Rand)
    end.

merge(New, Count, First, #views{passive = Passive0, passive_max = Max} = Views, Rand0) ->
    case Count + length(Passive0) - Max of
        Excess when Excess > 0 ->
            {Passive1, Theirs} = without(Excess, First, Passive0, []),
            {Others, Passive, Rand} = split(length(Passive1) + Count - Max, Passive1, Rand0),
            Merged = Views#views{passive = New ++ Passive, dropped = Views#views.dropped + Excess},
            {keep_spare(Others ++ Theirs, Merged), Rand};
        _ ->
            {Views#views{passive = New ++ Passive0}, Rand0}
    end.

keep_spare(Nodes, #views{spare = Spare0, passive_max = Max, spare_dropped = Dropped} = Views) ->
    Spare = Nodes ++ Spare0,
    case length(Spare) - Max of
        Excess when Excess > 0 ->
            Views#views{spare = lists:sublist(Spare, Max), spare_dropped = Dropped + Excess};
        _ ->
            Views#views{spare = Spare}
    end.

%% @doc Takes what is spare back into the passive view.
-spec replenish(views(), rand:state()) -> {views(), rand:state()}.
replenish(#views{spare = []} = Views, Rand) ->
    {Views, Rand};
replenish(#views{spare = Spare} = Views, Rand) ->
    merge(Spare, [], Views#views{spare = []}, Rand).

unknown([], New, _Views) ->
    lists:reverse(New);
unknown([Node | Nodes], New, #views{self = Self, active = Active, passive = Passive} = Views) ->
    Known =
        Node =:= Self orelse lists:member(Node, Active) orelse lists:member(Node, Passive) orelse
            lists:member(Node, New),
    case Known of
        true -> unknown(Nodes, New, Views);
        false -> unknown(Nodes, [Node | New], Views)
    end.

%% The list without up to N of those in First, and which these were.
without(N, First, List, Taken) when N =:= 0; First =:= [] ->
    {List, Taken};
without(N, [Node | First], List, Taken) ->
    case lists:member(Node, List) of
        true -> without(N - 1, First, lists:delete(Node, List), [Node | Taken]);
        false -> without(N, First, List, Taken)
    end.

%% @doc Both empty again.
-spec clear(views()) -> views().
clear(Views) ->
    Views#views{active = [], passive = [], spare = []}.
