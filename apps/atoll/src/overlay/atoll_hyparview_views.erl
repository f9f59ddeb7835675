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
%% first.
-module(atoll_hyparview_views).

-export([new/3, active/1, passive/1, size/1, room/1, is_active/2, dropped/1]).
-export([adopt/3, demote/3, forget/2, note/3, merge/4, clear/1]).
-export([pick/2, sample/3]).

-export_type([views/0]).

-record(views, {
    self :: node(),
    active_max :: pos_integer(),
    passive_max :: pos_integer(),
    active = [] :: [node()],
    passive = [] :: [node()],
    %% How many the bound has pushed out of the passive view.
    dropped = 0 :: non_neg_integer()
}).

-opaque views() :: #views{}.

%% The range of one random number, and how much larger it has to be than a choice
%% that is made with it: no choice is then likelier than another by more than that.
-define(DRAW, 16#200000000000000).
-define(FAIR, 16#10000).

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
forget(Node, #views{active = Active, passive = Passive} = Views) ->
    Views#views{active = lists:delete(Node, Active), passive = lists:delete(Node, Passive)}.

%% @doc Puts one node into the passive view, unless it is in one of the two.
-spec note(node(), views(), rand:state()) -> {views(), rand:state()}.
note(Node, Views, Rand) ->
    merge([Node], [], Views, Rand).

%% @doc Puts nodes into the passive view. If there is no room, those in `First' go
%% first (the peer has them now), then random ones; never one that just came.
-spec merge([node()], First :: [node()], views(), rand:state()) -> {views(), rand:state()}.
merge(Nodes, First, #views{passive = Passive0, passive_max = Max} = Views, Rand0) ->
    New = lists:sublist(unknown(Nodes, [], Views), Max),
    case length(New) + length(Passive0) - Max of
        Excess when Excess > 0 ->
            Passive1 = without(Excess, First, Passive0),
            Left = length(Passive1),
            {_, Passive, Rand} = split(Left + length(New) - Max, Left, Passive1, Rand0),
            Dropped = Views#views.dropped + Excess,
            {Views#views{passive = New ++ Passive, dropped = Dropped}, Rand};
        _ ->
            {Views#views{passive = New ++ Passive0}, Rand0}
    end.

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

%% The list without up to N of those in First.
without(0, _First, List) ->
    List;
without(_N, [], List) ->
    List;
without(N, [Node | First], List) ->
    case lists:member(Node, List) of
        true -> without(N - 1, First, lists:delete(Node, List));
        false -> without(N, First, List)
    end.

%% @doc Both empty again.
-spec clear(views()) -> views().
clear(Views) ->
    Views#views{active = [], passive = []}.

%% @doc One of a list that is not empty, each as likely.
-spec pick([T, ...], rand:state()) -> {T, rand:state()}.
pick([Only], Rand) ->
    {Only, Rand};
pick(List, Rand0) ->
    {N, Rand} = rand:uniform_s(length(List), Rand0),
    {lists:nth(N, List), Rand}.

%% @doc As many of the list, or all of it if it has no more; each choice as likely.
-spec sample(non_neg_integer(), [T], rand:state()) -> {[T], rand:state()}.
sample(Wanted, List, Rand) ->
    case length(List) of
        Length when Length =< Wanted ->
            {List, Rand};
        Length ->
            {Sample, _Rest, Next} = split(Wanted, Length, List, Rand),
            {Sample, Next}
    end.

%% So many of the list, drawn one after the other, and the others in its order.
split(Wanted, Length, List, Rand) ->
    split(Wanted, Length, List, [], 0, 1, Rand).

split(0, _Length, List, Sample, _Chance, _Range, Rand) ->
    {Sample, List, Rand};
split(Wanted, Length, List, Sample, _Chance, Range, Rand0) when Range < Length * ?FAIR ->
    %% A draw is worth several choices: each takes from it what it needs.
    {Drawn, Rand} = rand:uniform_s(?DRAW, Rand0),
    split(Wanted, Length, List, Sample, Drawn - 1, ?DRAW, Rand);
split(Wanted, Length, List0, Sample, Chance, Range, Rand) ->
    {Element, List} = take(1 + Chance rem Length, List0),
    split(Wanted - 1, Length - 1, List, [Element | Sample], Chance div Length, Range div Length, Rand).

take(1, [Head | Tail]) ->
    {Head, Tail};
take(N, [Head | Tail]) ->
    {Element, Rest} = take(N - 1, Tail),
    {Element, [Head | Rest]}.
