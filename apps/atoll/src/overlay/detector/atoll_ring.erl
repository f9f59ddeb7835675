%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc A set of nodes in the order of a hash of their names, closed to a ring.
%%
%% Everybody who knows the same nodes sees the same ring. So where each takes its
%% k successors, each is taken by its k predecessors: nobody is taken too often
%% and nobody too seldom. The hash is `erlang:phash2/1', which is the same on all
%% machines and versions.
-module(atoll_ring).

-export([new/0, add/2, delete/2, is_member/2, size/1, nodes/1, successors/3, from/3]).

-export_type([ring/0]).

-type ring() :: gb_sets:set({non_neg_integer(), node()}).
%% In the order of the hash; nobody should look inside.

-define(RANGE, (1 bsl 27)).

%% @doc The empty ring.
-spec new() -> ring().
new() -> gb_sets:new().

%% @doc The ring with Node.
-spec add(node(), ring()) -> ring().
add(Node, Ring) -> gb_sets:add(place(Node), Ring).

%% @doc The ring without Node.
-spec delete(node(), ring()) -> ring().
delete(Node, Ring) -> gb_sets:delete_any(place(Node), Ring).

%% @doc Whether Node is on it.
-spec is_member(node(), ring()) -> boolean().
is_member(Node, Ring) -> gb_sets:is_member(place(Node), Ring).

%% @doc How many are on it.
-spec size(ring()) -> non_neg_integer().
size(Ring) -> gb_sets:size(Ring).

%% @doc All of them, in the order of the ring.
-spec nodes(ring()) -> [node()].
nodes(Ring) -> [Node || {_, Node} <- gb_sets:to_list(Ring)].

%% @doc The K nodes after Node, or all if there are not more; never Node itself.
-spec successors(node(), pos_integer(), ring()) -> [node()].
successors(Node, K, Ring) ->
    walk(place(Node), K, Ring).

%% @doc K nodes, each the first from a point that is drawn at random; fewer where
%% two points have the same first.
-spec from(pos_integer(), ring(), rand:state()) -> {[node()], rand:state()}.
from(K, Ring, Rand0) ->
    {Points, Rand} = lists:mapfoldl(
        fun(_, R) -> rand:uniform_s(?RANGE, R) end, Rand0, lists:seq(1, K)
    ),
    {lists:usort(lists:append([walk({Point - 1, ''}, 1, Ring) || Point <- Points])), Rand}.

walk(Place, K, Ring) ->
    After = take(K, Place, gb_sets:next(gb_sets:iterator_from(Place, Ring)), []),
    case K - length(After) of
        0 -> lists:reverse(After);
        More -> lists:reverse(take(More, Place, gb_sets:next(gb_sets:iterator(Ring)), After), [])
    end.

take(0, _Place, _Next, Taken) ->
    Taken;
take(_K, _Place, none, Taken) ->
    Taken;
take(K, Place, {Place, Iterator}, Taken) ->
    take(K, Place, gb_sets:next(Iterator), Taken);
take(K, Place, {{_, Node}, Iterator}, Taken) ->
    %% Once around: whoever was taken already comes again, and ends it.
    case lists:member(Node, Taken) of
        true -> Taken;
        false -> take(K - 1, Place, gb_sets:next(Iterator), [Node | Taken])
    end.

place(Node) -> {erlang:phash2(Node), Node}.
