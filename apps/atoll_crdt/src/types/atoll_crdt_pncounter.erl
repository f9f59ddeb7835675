%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc A counter that goes up and down: two that only grow, what was added and what was taken away.
-module(atoll_crdt_pncounter).
-behaviour(atoll_crdt_type).

-export([new/0, mutate/4, join/4, difference/3, dots/1, value/1]).

-type counts() :: #{atoll_crdt:actor() => pos_integer()}.
-type store() :: {Added :: counts(), Taken :: counts()}.

-spec new() -> store().
new() -> {#{}, #{}}.

-spec mutate(atoll_crdt:operation(), atoll_crdt:actor(), store(), atoll_crdt_context:context()) -> {ok, store(), []} | error.
mutate(Operation, Actor, {Added, Taken}, Context) ->
    case Operation of
        decrement -> taken(increment, Actor, Taken, Context);
        {decrement, N} -> taken({increment, N}, Actor, Taken, Context);
        _ ->
            case atoll_crdt_gcounter:mutate(Operation, Actor, Added, Context) of
                {ok, More, []} -> {ok, {More, #{}}, []};
                error -> error
            end
    end.

taken(Operation, Actor, Taken, Context) ->
    case atoll_crdt_gcounter:mutate(Operation, Actor, Taken, Context) of
        {ok, More, []} -> {ok, {#{}, More}, []};
        error -> error
    end.

-spec join(store(), atoll_crdt_context:context(), store(), atoll_crdt_context:context()) -> store().
join({Added, Taken}, _, {OtherAdded, OtherTaken}, _) ->
    {atoll_crdt_context:highest(Added, OtherAdded), atoll_crdt_context:highest(Taken, OtherTaken)}.

-spec difference(store(), store(), atoll_crdt_context:context()) -> store().
difference({Added, Taken}, {OtherAdded, OtherTaken}, Context) ->
    {atoll_crdt_gcounter:difference(Added, OtherAdded, Context), atoll_crdt_gcounter:difference(Taken, OtherTaken, Context)}.

-spec dots(store()) -> [].
dots(_) -> [].

-spec value(store()) -> integer().
value({Added, Taken}) -> atoll_crdt_gcounter:value(Added) - atoll_crdt_gcounter:value(Taken).
