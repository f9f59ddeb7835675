%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc A counter that only grows: of each actor how often it has counted.
-module(atoll_crdt_gcounter).
-behaviour(atoll_crdt_type).

-export([new/0, mutate/4, join/4, difference/3, dots/1, value/1]).

-type store() :: #{atoll_crdt:actor() => pos_integer()}.

-spec new() -> store().
new() -> #{}.

-spec mutate(atoll_crdt:operation(), atoll_crdt:actor(), store(), atoll_crdt_context:context()) -> {ok, store(), []} | error.
mutate(increment, Actor, Counts, _) -> {ok, more(1, Actor, Counts), []};
mutate({increment, N}, Actor, Counts, _) when is_integer(N), N > 0 -> {ok, more(N, Actor, Counts), []};
mutate(_, _, _, _) -> error.

more(N, Actor, Counts) -> #{Actor => N + maps:get(Actor, Counts, 0)}.

-spec join(store(), atoll_crdt_context:context(), store(), atoll_crdt_context:context()) -> store().
join(Counts, _, Others, _) -> atoll_crdt_context:highest(Counts, Others).

-spec difference(store(), store(), atoll_crdt_context:context()) -> store().
difference(Counts, Others, _) -> maps:filter(fun(Actor, N) -> N > maps:get(Actor, Others, 0) end, Counts).

-spec dots(store()) -> [].
dots(_) -> [].

-spec value(store()) -> non_neg_integer().
value(Counts) -> maps:fold(fun(_, N, Sum) -> N + Sum end, 0, Counts).
