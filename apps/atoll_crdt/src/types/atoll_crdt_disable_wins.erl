%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc A flag, at first `true'. Of an `enable' and a `disable' that do not know of each other the `disable' wins:
%% {@link atoll_crdt_enable_wins}, read the other way round.
-module(atoll_crdt_disable_wins).
-behaviour(atoll_crdt_type).

-export([new/0, mutate/4, join/4, difference/3, dots/1, value/1]).

-type store() :: atoll_crdt_context:dots().

-spec new() -> store().
new() -> atoll_crdt_enable_wins:new().

-spec mutate(atoll_crdt:operation(), atoll_crdt:actor(), store(), atoll_crdt_context:context()) ->
    {ok, store(), [atoll_crdt_context:dot()]} | error.
mutate(disable, Actor, Dots, Context) -> atoll_crdt_enable_wins:mutate(enable, Actor, Dots, Context);
mutate(enable, Actor, Dots, Context) -> atoll_crdt_enable_wins:mutate(disable, Actor, Dots, Context);
mutate(Operation, Actor, Dots, Context) -> atoll_crdt_enable_wins:mutate(Operation, Actor, Dots, Context).

-spec join(store(), atoll_crdt_context:context(), store(), atoll_crdt_context:context()) -> store().
join(Dots, Context, Others, OtherContext) -> atoll_crdt_enable_wins:join(Dots, Context, Others, OtherContext).

-spec difference(store(), store(), atoll_crdt_context:context()) -> store().
difference(Dots, Others, OtherContext) -> atoll_crdt_enable_wins:difference(Dots, Others, OtherContext).

-spec dots(store()) -> [atoll_crdt_context:dot()].
dots(Dots) -> atoll_crdt_enable_wins:dots(Dots).

-spec value(store()) -> boolean().
value(Dots) -> not atoll_crdt_enable_wins:value(Dots).
