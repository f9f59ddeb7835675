%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The behaviour of a replicated data type.
%%
%% A state is a store and a causal context. A type without need of the context leaves it alone,
%% and its mutators have no dots. Stores are in one form only: two that say the same are the same term.
-module(atoll_crdt_type).

-export([module/1, causal/0]).

-callback new() -> Store :: term().
%% The store of the delta, and the dots of its context; or the operation is none of this type.
-callback mutate(atoll_crdt:operation(), atoll_crdt:actor(), Store, atoll_crdt_context:context()) ->
    {ok, Store, [atoll_crdt_context:dot()]} | {error, atoll_crdt:error()} | error.
%% Each store with its context. Where the result is the first store it is the same term.
-callback join(Store, atoll_crdt_context:context(), Store, atoll_crdt_context:context()) -> Store.
%% What of a store another one, with its context, does not know; and the dots of a store.
-callback difference(Store, Store, atoll_crdt_context:context()) -> Store.
-callback dots(Store :: term()) -> [atoll_crdt_context:dot()].
-callback value(Store :: term()) -> term().

%% @doc The module of a type.
-spec module(atoll_crdt:type()) -> module().
module(gcounter) -> atoll_crdt_gcounter;
module(pncounter) -> atoll_crdt_pncounter;
module(max) -> atoll_crdt_max;
module(lww) -> atoll_crdt_lww;
module(mv) -> atoll_crdt_mv;
module(enable_wins) -> atoll_crdt_enable_wins;
module(disable_wins) -> atoll_crdt_disable_wins;
module(set) -> atoll_crdt_set;
module(map) -> atoll_crdt_map.

%% @doc The types with a causal context. Each has the operation `clear', which takes away what the
%% state has, and nothing that comes from elsewhere.
-spec causal() -> [atoll_crdt:type(), ...].
causal() -> [mv, enable_wins, disable_wins, set, map].
