%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc A register that holds the greatest term that was ever put.
%%
%% Erlang's order takes `1' and `1.0' for equal, alone or within a term. A join that took either would hang on who
%% joins whom, so of such two the one with the greater external form stays.
-module(atoll_crdt_max).
-behaviour(atoll_crdt_type).

-export([new/0, mutate/4, join/4, difference/3, dots/1, value/1]).
-export([greater/2]).

-type store() :: none | {ok, term()}.

-spec new() -> none.
new() -> none.

-spec mutate(atoll_crdt:operation(), atoll_crdt:actor(), store(), atoll_crdt_context:context()) -> {ok, store(), []} | error.
mutate({put, Value}, _, _, _) -> {ok, {ok, Value}, []};
mutate(_, _, _, _) -> error.

-spec join(store(), atoll_crdt_context:context(), store(), atoll_crdt_context:context()) -> store().
join(One, _, none, _) -> One;
join(none, _, Other, _) -> Other;
join({ok, One}, _, {ok, Other}, _) -> {ok, greater(One, Other)}.

-spec difference(store(), store(), atoll_crdt_context:context()) -> store().
difference(Store, Known, Context) ->
    case join(Known, Context, Store, Context) of
        Known -> none;
        _ -> Store
    end.

-spec dots(store()) -> [].
dots(_) -> [].

-spec value(store()) -> store().
value(Store) -> Store.

%% @doc The greater one of two terms, in an order that takes no two for equal.
-spec greater(term(), term()) -> term().
greater(One, One) -> One;
greater(One, Other) when One > Other -> One;
greater(One, Other) when One < Other -> Other;
greater(One, Other) ->
    case form(One) > form(Other) of
        true -> One;
        false -> Other
    end.

form(Term) -> term_to_binary(Term, [deterministic, {minor_version, 2}]).
