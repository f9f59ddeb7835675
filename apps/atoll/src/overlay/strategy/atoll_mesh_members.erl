%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Who is a member of a mesh: pure data that merges to the same whatever the
%% order, however often.
%%
%% Each node has an entry `{Incarnation, alive | gone}'. Of two entries the higher
%% incarnation wins, and at equal incarnations `gone' does: a node that lives
%% although it is held to be gone has to take a higher incarnation and say so, as
%% in SWIM (Das, Gupta, Motivala, 2002, section 4.2).
%%
%% Entries of gone nodes would pile up. {@link forget/2} drops those of the lowest
%% incarnations beyond a bound, the same ones on every node with the same entries.
%% It is no part of the merge: what was forgotten can come back from a node that
%% knows it as alive and has heard of nothing since, until somebody finds it dead
%% again.
-module(atoll_mesh_members).

-export([new/2, from_list/1, to_list/1, merge/2, bury/2, forget/2]).
-export([entry/2, alive/1, gone/1, newer/2, digest/1]).

-export_type([members/0, entry/0, incarnation/0]).

-type incarnation() :: non_neg_integer().

-type entry() :: {incarnation(), alive | gone}.

-opaque members() :: #{node() => entry()}.

%% @doc One live member.
-spec new(node(), incarnation()) -> members().
new(Node, Incarnation) ->
    #{Node => {Incarnation, alive}}.

%% @doc As they come in a message.
-spec from_list([{node(), entry()}]) -> members().
from_list(List) ->
    maps:from_list(List).

%% @doc In the order of the names.
-spec to_list(members()) -> [{node(), entry()}].
to_list(Members) ->
    lists:sort(maps:to_list(Members)).

%% @doc All members of both, each with the entry that wins.
-spec merge(members(), members()) -> members().
merge(A, B) when map_size(A) < map_size(B) ->
    merge(B, A);
merge(A, B) ->
    maps:fold(fun(Node, Entry, M) -> M#{Node => wins(Entry, maps:get(Node, M, Entry))} end, A, B).

%% As terms, a later incarnation is greater, and `gone' greater than `alive'.
wins(A, B) ->
    max(A, B).

%% @doc This node's present life is over.
-spec bury(node(), members()) -> members().
bury(Node, Members) ->
    case Members of
        #{Node := {Incarnation, alive}} -> Members#{Node := {Incarnation, gone}};
        #{} -> Members
    end.

%% @doc Keeps at most so many of the gone, and says how many were dropped.
-spec forget(non_neg_integer(), members()) -> {members(), non_neg_integer()}.
forget(Max, Members) ->
    case [{Incarnation, Node} || {Node, {Incarnation, gone}} <- maps:to_list(Members)] of
        Gone when length(Gone) > Max ->
            Dropped = lists:sublist(lists:sort(Gone), length(Gone) - Max),
            {maps:without([Node || {_, Node} <- Dropped], Members), length(Dropped)};
        _ ->
            {Members, 0}
    end.

%% @doc What is known of a node.
-spec entry(node(), members()) -> entry() | unknown.
entry(Node, Members) ->
    maps:get(Node, Members, unknown).

%% @doc In the order of their names.
-spec alive(members()) -> [node()].
alive(Members) ->
    lists:sort([Node || {Node, {_, alive}} <- maps:to_list(Members)]).

%% @doc In the order of their names.
-spec gone(members()) -> [node()].
gone(Members) ->
    lists:sort([Node || {Node, {_, gone}} <- maps:to_list(Members)]).

%% @doc The entries of the first that the second does not have, or has not won
%% by: what somebody who knows the second has to hear.
-spec newer(members(), members()) -> [{node(), entry()}].
newer(Members, Than) ->
    lists:sort([
        {Node, Entry}
     || {Node, Entry} <- maps:to_list(Members),
        case Than of
            #{Node := Known} -> Entry > Known;
            #{} -> true
        end
    ]).

%% @doc Equal for equal members, and hardly ever for others.
-spec digest(members()) -> non_neg_integer().
digest(Members) ->
    erlang:phash2(to_list(Members), 1 bsl 32).
