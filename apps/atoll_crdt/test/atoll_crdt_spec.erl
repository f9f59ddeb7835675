%% SPDX-License-Identifier: Apache-2.0
%% What the value of each type is to be, said of the history alone: the events that a replica knows of, each with those
%% that its own replica knew of when it happened. That is how S. Burckhardt and others specify replicated types
%% ("Replicated data types: specification, verification, optimality", 2014). It has no dots and no joins.
-module(atoll_crdt_spec).

-export([value/2]).

-export_type([event/0]).

-type event() :: {Id :: pos_integer(), atoll_crdt:operation(), Known :: [pos_integer()]}.

-spec value(atoll_crdt:type(), [event()]) -> term().
value(gcounter, Events) ->
    lists:sum([by(Operation) || {_, Operation, _} <- Events]);
value(pncounter, Events) ->
    lists:sum([by(Operation) || {_, Operation, _} <- Events]);
value(max, Events) ->
    last([{Value, Value} || {_, {put, Value}, _} <- Events]);
value(lww, Events) ->
    last([{{Stamp, Value}, Value} || {_, {put, Value, Stamp}, _} <- Events]);
value(mv, Events) ->
    %% A `put' counts until somebody who knows of it puts or clears.
    each_once([Value || {Id, {put, Value}, _} <- Events, not is_undone(Id, fun(_) -> true end, Events)]);
value(enable_wins, Events) ->
    [Id || {Id, enable, _} <- Events, not is_undone(Id, fun(_) -> true end, Events)] =/= [];
value(disable_wins, Events) ->
    [Id || {Id, disable, _} <- Events, not is_undone(Id, fun(_) -> true end, Events)] =:= [];
value(set, Events) ->
    each_once([
        Element
     || {Id, {add, Element}, _} <- Events,
        not is_undone(Id, fun(Operation) -> lists:member(Operation, [{add, Element}, {remove, Element}, clear]) end, Events)
    ]);
value(map, Events) ->
    Fields = each_once([Field || {_, {update, Field, _}, _} <- Events]),
    maps:from_list([
        {Field, Value}
     || {_, Type} = Field <- Fields,
        Value <- [value(Type, [{Id, within(Field, Operation), Known} || {Id, Operation, Known} <- Events])],
        %% What has its first value is not there.
        Value =/= value(Type, [])
    ]).

within(Field, {update, Field, Operation}) -> Operation;
within(Field, {remove, Field}) -> clear;
within(_, clear) -> clear;
within(_, _) -> elsewhere.

%% By the same done again, too, which takes its place: whoever hears of that alone, by a delta, and undoes it has undone both. Where
%% those who know of an event know of all that it knew of, that makes no difference.
is_undone(Id, Undoes, Events) ->
    lists:any(fun({_, Operation, Known}) -> Operation =/= elsewhere andalso Undoes(Operation) andalso lists:member(Id, Known) end, Events).

by(increment) -> 1;
by(decrement) -> -1;
by({increment, N}) -> N;
by({decrement, N}) -> -N.

last([]) ->
    none;
last(Ordered) ->
    [{_, Value} | _] = lists:sort(fun({A, _}, {B, _}) -> A > B orelse A == B andalso term_to_binary(A) >= term_to_binary(B) end, Ordered),
    {ok, Value}.

each_once(Terms) -> lists:sort(maps:keys(maps:from_list([{Term, []} || Term <- Terms]))).
