%% SPDX-License-Identifier: Apache-2.0
%% @doc Which manager has which node. Pure.
%%
%% Promised: a node that was met and is not gone has one manager at every moment, and a lease with a number
%% that no other one had; what is said under another lease is not counted. A node keeps its manager: a new node moves no other one, and
%% a manager that was lost comes back with the same nodes, under new leases. Nodes of a group come to one manager, unless
%% its share is full: of so many managers none gets more than half as much again as its part of all
%% nodes. Where nobody says how many managers there are to be, there is one for each hundred nodes.
%%
%% Not promised: that shares stay even when nodes go, or that nodes of a group that was made later are together.
-module(atoll_watch_shares).

-export([new/2, met/2, gone/2, again/2, has/3, manager/2, managers/1, share/2]).

-export_type([shares/0, manager/0, lease/0, given/0]).

-type manager() :: pos_integer().
-type lease() :: pos_integer().
-type given() :: {manager(), node(), lease()}.

-record(shares, {
    how_many :: auto | pos_integer(),
    %% Those that are in a group with a node, the node among them.
    mates :: #{node() => [node()]},
    %% How many nodes each manager has.
    sizes :: #{manager() => non_neg_integer()},
    has = #{} :: #{node() => {manager(), lease()}},
    next = 1 :: lease()
}).

-opaque shares() :: #shares{}.

-define(EACH, 100).

%% @doc So many managers, and groups of nodes. Nobody has a node yet.
-spec new(auto | pos_integer(), Groups :: [[node()]]) -> shares().
new(HowMany, Groups) ->
    Mates = maps:groups_from_list(fun({Node, _}) -> Node end, fun({_, Group}) -> Group end, [{Node, Group} || Group <- Groups, Node <- Group]),
    #shares{
        how_many = HowMany,
        mates = maps:map(fun(_, Its) -> lists:usort(lists:append(Its)) end, Mates),
        sizes = maps:from_keys(lists:seq(1, case HowMany of auto -> 1; N -> N end), 0)
    }.

%% @doc These nodes are new. Who gets which; of the managers that are named some may be new too.
-spec met([node()], shares()) -> {[given()], shares()}.
met(Nodes, #shares{how_many = HowMany, sizes = Sizes, has = Has} = Shares) ->
    New = [Node || Node <- lists:usort(Nodes), not is_map_key(Node, Has)],
    All = map_size(Has) + length(New),
    Managers = case HowMany of auto -> max(map_size(Sizes), parts(All, ?EACH)); _ -> HowMany end,
    Part = parts(All, Managers),
    lists:mapfoldl(
        fun(Node, To) -> give(Node, Part + Part div 2, To) end,
        Shares#shares{sizes = maps:merge(maps:from_keys(lists:seq(1, Managers), 0), Sizes)},
        New
    ).

parts(All, Each) -> (All + Each - 1) div Each.

%% One of them has no more than its part.
give(Node, Most, #shares{mates = Mates, sizes = Sizes, has = Has, next = Lease} = Shares) ->
    Here = maps:groups_from_list(fun({Manager, _}) -> Manager end, [Is || Mate <- maps:get(Node, Mates, []), #{Mate := Is} <- [Has]]),
    {_, _, Manager} = lists:min([{-length(maps:get(Is, Here, [])), Size, Is} || {Is, Size} <- maps:to_list(Sizes), Size < Most]),
    #{Manager := Size} = Sizes,
    {{Manager, Node, Lease}, Shares#shares{sizes = Sizes#{Manager := Size + 1}, has = Has#{Node => {Manager, Lease}}, next = Lease + 1}}.

%% @doc A node is watched no more, and who had it.
-spec gone(node(), shares()) -> {manager(), shares()}.
gone(Node, #shares{has = Has, sizes = Sizes} = Shares) ->
    {{Manager, _}, Others} = maps:take(Node, Has),
    #{Manager := Size} = Sizes,
    {Manager, Shares#shares{has = Others, sizes = Sizes#{Manager := Size - 1}}}.

%% @doc A manager begins anew with what it had.
-spec again(manager(), shares()) -> {[given()], shares()}.
again(Manager, #shares{} = Shares) ->
    lists:mapfoldl(fun(Node, #shares{has = Has, next = Lease} = Acc) ->
        {{Manager, Node, Lease}, Acc#shares{has = Has#{Node := {Manager, Lease}}, next = Lease + 1}}
    end, Shares, share(Manager, Shares)).

%% @doc Whether that is the lease of a node.
-spec has(node(), lease(), shares()) -> boolean().
has(Node, Lease, #shares{has = Has}) ->
    case Has of
        #{Node := {_, Lease}} -> true;
        #{} -> false
    end.

%% @doc Who has a node.
-spec manager(node(), shares()) -> {ok, manager()} | error.
manager(Node, #shares{has = Has}) ->
    case Has of
        #{Node := {Manager, _}} -> {ok, Manager};
        #{} -> error
    end.

%% @doc All managers.
-spec managers(shares()) -> [manager()].
managers(#shares{sizes = Sizes}) -> lists:sort(maps:keys(Sizes)).

%% @doc What a manager has, sorted.
-spec share(manager(), shares()) -> [node()].
share(Manager, #shares{has = Has}) -> lists:sort([Node || {Node, {Is, _}} <- maps:to_list(Has), Is =:= Manager]).
