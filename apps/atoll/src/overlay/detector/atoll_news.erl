%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Obituaries that are being told: to whom, and who has not shown yet that it
%% knows.
%%
%% The first goes to its targets at once. Those that follow within a moment are
%% gathered and go together, so that many deaths at one time cost few messages.
%% Each node that hears an obituary for the first time tells it to its targets in
%% turn, also to whom it has it from; this is how a teller learns that it arrived.
%% Who does not show that it knows is told again, a few times, and asked to answer.
%%
%% A new neighbour is told nothing of this unless it asks, as one does that has just
%% begun: it may have been without a neighbour when it was told. Who was on the other side
%% of a partition has heard those alive that were taken for dead here. What was told is
%% remembered for that, but not by who has begun less than `keep_ms' ago: where nodes join
%% all the time an obituary would go from newcomer to newcomer for ever.
-module(atoll_news).

-export([new/2, tell/6, targets/1, gathered/2, knows/3, recent/2, again/2, sizes/1]).

-export_type([news/0, obituary/0, options/0, message/0]).

-type obituary() :: {node(), Life :: pos_integer()}.

-type options() :: #{
    repeats := non_neg_integer(), gather_ms := pos_integer(), keep_ms := non_neg_integer(), atom() => term()
}.

-type message() ::
    %% Whether the receiver shall say that it has them, by telling them in turn; of none, by
    %% telling the recent ones.
    {obituaries, Answer :: boolean(), [obituary()]}.

-record(item, {
    life :: pos_integer(),
    waiting :: [node()],
    repeats :: non_neg_integer()
}).

-record(news, {
    repeats :: non_neg_integer(),
    gather_ms :: pos_integer(),
    keep_ms :: non_neg_integer(),
    %% What is heard from then on is remembered for newcomers, newest first.
    keep_from :: atoll_protocol:now_ms(),
    recent = [] :: [{atoll_protocol:now_ms(), obituary()}],
    items = #{} :: #{node() => #item{}},
    %% What is gathered, newest first, and for whom; `closed' while nothing is.
    gathered = closed :: closed | {Targets :: [node()], [obituary()]}
}).

-opaque news() :: #news{}.

%% How many are remembered for newcomers.
-define(RECENT, 50).

%% @doc Nothing to tell.
-spec new(options(), atoll_protocol:now_ms()) -> news().
new(#{repeats := Repeats, gather_ms := Ms, keep_ms := KeepMs}, Now) ->
    #news{repeats = Repeats, gather_ms = Ms, keep_ms = KeepMs, keep_from = Now + KeepMs}.

%% @doc Tells the targets an obituary; From are those who told it. The ring has
%% those who can be told.
-spec tell(obituary(), From :: [node()], Targets :: [node()], atoll_ring:ring(), atoll_protocol:now_ms(), news()) ->
    {news(), [atoll_protocol:effect()]}.
tell(Obituary, From, Targets, Ring, Now, #news{gathered = closed, gather_ms = Ms} = News) ->
    {
        announce(Obituary, Targets -- From, Now, News#news{gathered = {[], []}}),
        send(Targets, [Obituary], Ring) ++ [{timer, gather, Ms}]
    };
tell(Obituary, From, Targets, _Ring, Now, #news{gathered = {_, Gathered}} = News) ->
    {announce(Obituary, Targets -- From, Now, News#news{gathered = {Targets, [Obituary | Gathered]}}), []}.

announce({Node, Life} = Obituary, Waiting, Now, #news{items = Items, repeats = Repeats} = News) ->
    Recent = [{Now, Obituary} || Now >= News#news.keep_from] ++ News#news.recent,
    News#news{
        recent = lists:sublist(Recent, ?RECENT),
        items = Items#{Node => #item{life = Life, waiting = Waiting, repeats = Repeats}}
    }.

%% @doc For whom is gathered now: one batch, one set of targets.
-spec targets(news()) -> [node()].
targets(#news{gathered = {Targets, _}}) -> Targets;
targets(#news{gathered = closed}) -> [].

%% @doc The time of gathering is over.
-spec gathered(atoll_ring:ring(), news()) -> {news(), [atoll_protocol:effect()]}.
gathered(_Ring, #news{gathered = {_, []}} = News) ->
    {News#news{gathered = closed}, []};
gathered(Ring, #news{gathered = {Targets, Gathered}, gather_ms = Ms} = News) ->
    {News#news{gathered = {[], []}}, send(Targets, lists:reverse(Gathered), Ring) ++ [{timer, gather, Ms}]}.

send(Targets, Obituaries, Ring) ->
    Message = {obituaries, false, Obituaries},
    [{send, Node, Message} || Node <- Targets, atoll_ring:is_member(Node, Ring)].

%% @doc This node has shown that it knows.
-spec knows(node(), obituary(), news()) -> news().
knows(From, {Node, Life}, #news{items = Items} = News) ->
    case Items of
        #{Node := #item{life = Known, waiting = Waiting} = Item} when Known =< Life ->
            case lists:delete(From, Waiting) of
                [] -> News#news{items = maps:remove(Node, Items)};
                Left -> News#news{items = Items#{Node := Item#item{waiting = Left}}}
            end;
        #{} ->
            News
    end.

%% @doc What is being told, and the newest of what was heard in the last `keep_ms': for
%% who has just begun.
-spec recent(atoll_protocol:now_ms(), news()) -> [obituary()].
recent(Now, #news{items = Items, recent = Recent, keep_ms = KeepMs}) ->
    Told = [{Node, Life} || {Node, #item{life = Life}} <- maps:to_list(Items)],
    lists:usort(Told ++ [Obituary || {At, Obituary} <- Recent, Now - At < KeepMs]).

%% @doc Once more to those on the ring who have not shown that they know.
-spec again(atoll_ring:ring(), news()) -> {news(), [atoll_protocol:effect()]}.
again(_Ring, #news{items = Items} = News) when map_size(Items) =:= 0 ->
    {News, []};
again(Ring, #news{items = Items0} = News) ->
    Items = [
        {Node, Item#item{
            waiting = [N || N <- Waiting, atoll_ring:is_member(N, Ring)],
            repeats = Repeats - 1
        }}
     || {Node, #item{waiting = Waiting, repeats = Repeats} = Item} <- lists:sort(maps:to_list(Items0)), Repeats > 0
    ],
    Pairs = [{Target, {Node, Life}} || {Node, #item{life = Life, waiting = Waiting}} <- Items, Target <- Waiting],
    ByTarget = lists:foldr(
        fun({Target, Obituary}, Acc) -> Acc#{Target => [Obituary | maps:get(Target, Acc, [])]} end, #{}, Pairs
    ),
    {
        News#news{items = maps:from_list([Entry || {_, #item{waiting = [_ | _]}} = Entry <- Items])},
        [{send, Target, {obituaries, true, Told}} || {Target, Told} <- lists:sort(maps:to_list(ByTarget))]
    }.

%% @doc How many are being told, and how many gathered.
-spec sizes(news()) -> #{told := non_neg_integer(), gathered := non_neg_integer()}.
sizes(#news{items = Items, gathered = Gathered}) ->
    #{
        told => map_size(Items),
        gathered =>
            case Gathered of
                closed -> 0;
                {_, Obituaries} -> length(Obituaries)
            end
    }.
