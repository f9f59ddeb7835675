%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc A flag, at first `true'. Of an `enable' and a `disable' that do not know of each other the `disable' wins: it
%% has a dot, and the other one takes away the dots that it knows of.
-module(atoll_crdt_disable_wins).
-behaviour(atoll_crdt_type).

-export([new/0, mutate/4, join/4, difference/3, dots/1, value/1]).

-type store() :: atoll_crdt_context:dots().

-spec new() -> store().
new() -> [].

-spec mutate(atoll_crdt:operation(), atoll_crdt:actor(), store(), atoll_crdt_context:context()) ->
    {ok, store(), [atoll_crdt_context:dot()]} | error.
mutate(disable, Actor, Dots, Context) ->
    Dot = atoll_crdt_context:next(Actor, Context),
    {ok, [Dot], [Dot | Dots]};
mutate(Operation, _, Dots, _) when Operation =:= enable; Operation =:= clear ->
    {ok, [], Dots};
mutate(_, _, _, _) ->
    error.

-spec join(store(), atoll_crdt_context:context(), store(), atoll_crdt_context:context()) -> store().
join(Dots, Context, Others, OtherContext) -> atoll_crdt_context:join(Dots, Context, Others, OtherContext).

-spec difference(store(), store(), atoll_crdt_context:context()) -> store().
difference(Dots, _, OtherContext) -> [Dot || Dot <- Dots, not atoll_crdt_context:has(Dot, OtherContext)].

-spec dots(store()) -> [atoll_crdt_context:dot()].
dots(Dots) -> Dots.

-spec value(store()) -> boolean().
value(Dots) -> Dots =:= [].
