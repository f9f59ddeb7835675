%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc A register whose last writer wins: of two values the one with the later stamp, and with the same stamp the
%% greater one. The stamp is the caller's: a time, or a time with the node.
-module(atoll_crdt_lww).
-behaviour(atoll_crdt_type).

-export([new/0, mutate/4, join/4, difference/3, dots/1, value/1]).

-type store() :: none | {ok, {Stamp :: term(), Value :: term()}}.

-spec new() -> none.
new() -> none.

-spec mutate(atoll_crdt:operation(), atoll_crdt:actor(), store(), atoll_crdt_context:context()) -> {ok, store(), []} | error.
mutate({put, Value, Stamp}, _, _, _) -> {ok, {ok, {Stamp, Value}}, []};
mutate(_, _, _, _) -> error.

-spec join(store(), atoll_crdt_context:context(), store(), atoll_crdt_context:context()) -> store().
join(One, Context, Other, OtherContext) -> atoll_crdt_max:join(One, Context, Other, OtherContext).

-spec difference(store(), store(), atoll_crdt_context:context()) -> store().
difference(Store, Other, Context) -> atoll_crdt_max:difference(Store, Other, Context).

-spec dots(store()) -> [].
dots(_) -> [].

-spec value(store()) -> none | {ok, term()}.
value(none) -> none;
value({ok, {_, Value}}) -> {ok, Value}.
