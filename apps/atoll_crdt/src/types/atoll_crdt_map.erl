%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc A map of replicated values, maps among them. The type of a value is part of its key, so two
%% replicas cannot hold different types under one key. All values share the context of the outermost map. A removal clears the value, as far as the
%% replica knows it: an update that it does not know of wins, and brings nothing back of what was before.
-module(atoll_crdt_map).
-behaviour(atoll_crdt_type).

-export([new/0, mutate/4, join/4, difference/3, dots/1, value/1]).

-type field() :: {Key :: term(), atoll_crdt:type()}.
-type store() :: #{field() => Store :: term()}.
%% None is empty.

-spec new() -> store().
new() -> #{}.

-spec mutate(atoll_crdt:operation(), atoll_crdt:actor(), store(), atoll_crdt_context:context()) ->
    {ok, store(), [atoll_crdt_context:dot()]} | {error, atoll_crdt:error()} | error.
mutate({update, Field, Operation}, Actor, Fields, Context) ->
    field(Field, Operation, Actor, Fields, Context);
mutate({remove, Field}, Actor, Fields, Context) ->
    field(Field, clear, Actor, Fields, Context);
mutate(clear, _, Fields, _) ->
    {ok, #{}, dots(Fields)};
mutate(_, _, _, _) ->
    error.

field({_, Type} = Field, Operation, Actor, Fields, Context) ->
    case lists:member(Type, atoll_crdt_type:causal()) of
        true -> within(Field, Operation, (atoll_crdt_type:module(Type)):mutate(Operation, Actor, store(Field, Fields), Context));
        false -> {error, {not_in_a_map, Field}}
    end;
field(Field, _, _, _, _) ->
    {error, {not_in_a_map, Field}}.

within(Field, _, {ok, Delta, Dots}) ->
    case empty(Field) of
        Delta -> {ok, #{}, Dots};
        _ -> {ok, #{Field => Delta}, Dots}
    end;
within({_, Type}, Operation, error) ->
    {error, {no_such_operation, Type, Operation}};
within(_, _, {error, _} = Error) ->
    Error.

store(Field, Fields) -> maps:get(Field, Fields, empty(Field)).

empty({_, Type}) -> (atoll_crdt_type:module(Type)):new().

-spec join(store(), atoll_crdt_context:context(), store(), atoll_crdt_context:context()) -> store().
join(Fields, Context, Others, OtherContext) ->
    atoll_crdt_context:join_maps(
        fun({_, Type}, Store, C, OtherStore, OtherC) -> (atoll_crdt_type:module(Type)):join(Store, C, OtherStore, OtherC) end,
        fun empty/1,
        Fields,
        Context,
        Others,
        OtherContext
    ).

-spec difference(store(), store(), atoll_crdt_context:context()) -> store().
difference(Fields, Others, OtherContext) ->
    maps:filtermap(
        fun({_, Type} = Field, Store) ->
            Nothing = empty(Field),
            case (atoll_crdt_type:module(Type)):difference(Store, store(Field, Others), OtherContext) of
                Nothing -> false;
                New -> {true, New}
            end
        end,
        Fields
    ).

-spec dots(store()) -> [atoll_crdt_context:dot()].
dots(Fields) -> lists:append([(atoll_crdt_type:module(Type)):dots(Store) || {{_, Type}, Store} <- maps:to_list(Fields)]).

-spec value(store()) -> #{field() => term()}.
value(Fields) -> maps:map(fun({_, Type}, Store) -> (atoll_crdt_type:module(Type)):value(Store) end, Fields).
