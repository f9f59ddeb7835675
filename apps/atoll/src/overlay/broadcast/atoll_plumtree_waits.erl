%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Who waits for which members to acknowledge an own message. Data only.
%%
%% A wait ends when all members have acknowledged, or as many as were asked for; or at once
%% when that cannot be any more, as nobody is left who may still do so; or with its time; or when
%% this node leaves. A
%% member that dies or leaves meanwhile does not answer any more. Of an acknowledgement that
%% nobody waits for, because it came before or comes late, nothing becomes.
-module(atoll_plumtree_waits).

-export([new/0, start/5, acked/3, gone/2, expired/2, left/1, waiting/2, size/1]).

-export_type([waits/0, id/0, need/0, answer/0, ended/0]).

-type id() :: {atoll_plumtree_mark:incarnation(), atoll_plumtree_mark:seq()}.
-type need() :: all | pos_integer().

-type answer() ::
    %% Who has acknowledged, in the order of their names.
    {ok, [node()]}
    %% Not all: these have not, in that order.
    | {error, {unanswered, [node(), ...]}}
    %% Not as many as were asked for: so many of so many.
    | {error, {acknowledged, non_neg_integer(), pos_integer()}}
    %% This node has left meanwhile.
    | {error, left}.

-type ended() :: {id(), atoll_protocol:from(), answer()}.

-record(wait, {
    from :: atoll_protocol:from(),
    need :: need(),
    %% Maps, so that a member's death costs the same however many members there are.
    acked = #{} :: nodes(),
    waiting :: nodes(),
    gone = #{} :: nodes()
}).

-type nodes() :: #{node() => []}.

-opaque waits() :: #{id() => #wait{}}.

%% @doc Nobody waits.
-spec new() -> waits().
new() ->
    #{}.

%% @doc Somebody waits for the acknowledgements of these members.
-spec start(id(), atoll_protocol:from(), need(), [node(), ...], waits()) -> waits().
start(Id, From, Need, Members, Waits) ->
    Waits#{Id => #wait{from = From, need = Need, waiting = maps:from_list([{Member, []} || Member <- Members])}}.

%% @doc These have acknowledged it.
-spec acked(id(), ordsets:ordset(node()), waits()) -> {[ended()], waits()}.
acked(Id, Nodes, Waits) ->
    case Waits of
        #{Id := #wait{acked = Acked, waiting = Waiting} = Wait} ->
            New = maps:with(Nodes, Waiting),
            judge(Id, Wait#wait{acked = maps:merge(Acked, New), waiting = maps:without(Nodes, Waiting)}, Waits);
        #{} ->
            {[], Waits}
    end.

%% @doc A node is no member any more.
-spec gone(node(), waits()) -> {[ended()], waits()}.
gone(Node, Waits) ->
    lists:foldl(
        fun({Id, #wait{waiting = Waiting, gone = Gone} = Wait}, {Ended, Left}) ->
            case is_map_key(Node, Waiting) of
                true ->
                    Less = Wait#wait{waiting = maps:remove(Node, Waiting), gone = Gone#{Node => []}},
                    {More, Still} = judge(Id, Less, Left),
                    {Ended ++ More, Still};
                false ->
                    {Ended, Left}
            end
        end,
        {[], Waits},
        lists:sort(maps:to_list(Waits))
    ).

%% @doc The time of a wait is over.
-spec expired(id(), waits()) -> {ended(), waits()}.
expired(Id, Waits) ->
    #{Id := Wait} = Waits,
    {{Id, Wait#wait.from, failed(Wait)}, maps:remove(Id, Waits)}.

%% @doc This node has left: nothing is waited for any more.
-spec left(waits()) -> {[ended()], waits()}.
left(Waits) ->
    {[{Id, From, {error, left}} || {Id, #wait{from = From}} <- lists:sort(maps:to_list(Waits))], new()}.

%% @doc Who may still acknowledge it.
-spec waiting(id(), waits()) -> ordsets:ordset(node()).
waiting(Id, Waits) ->
    case Waits of
        #{Id := #wait{waiting = Waiting}} -> names(Waiting);
        #{} -> []
    end.

%% @doc How many wait.
-spec size(waits()) -> non_neg_integer().
size(Waits) ->
    map_size(Waits).

judge(Id, #wait{from = From, need = Need, acked = Acked, waiting = Waiting, gone = Gone} = Wait, Waits) ->
    Answer =
        case Need of
            all when map_size(Waiting) > 0 -> none;
            all when map_size(Gone) =:= 0 -> {ok, names(Acked)};
            Count when is_integer(Count), map_size(Acked) >= Count -> {ok, names(Acked)};
            Count when is_integer(Count), map_size(Acked) + map_size(Waiting) >= Count -> none;
            _ -> failed(Wait)
        end,
    case Answer of
        none -> {[], Waits#{Id := Wait}};
        _ -> {[{Id, From, Answer}], maps:remove(Id, Waits)}
    end.

failed(#wait{need = all, waiting = Waiting, gone = Gone}) -> {error, {unanswered, names(maps:merge(Waiting, Gone))}};
failed(#wait{need = Count, acked = Acked}) -> {error, {acknowledged, map_size(Acked), Count}}.

names(Nodes) -> lists:sort(maps:keys(Nodes)).
