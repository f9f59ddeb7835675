%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc A register that keeps what was put at once: of each value the dot of its `put', and a `put'
%% takes away those that it knows of.
-module(atoll_crdt_mv).
-behaviour(atoll_crdt_type).

-export([new/0, mutate/4, join/4, difference/3, dots/1, value/1]).

-type store() :: #{atoll_crdt_context:dot() => Value :: term()}.

-spec new() -> store().
new() -> #{}.

-spec mutate(atoll_crdt:operation(), atoll_crdt:actor(), store(), atoll_crdt_context:context()) ->
    {ok, store(), [atoll_crdt_context:dot()]} | error.
mutate({put, Value}, Actor, Values, Context) ->
    Dot = atoll_crdt_context:next(Actor, Context),
    {ok, #{Dot => Value}, [Dot | maps:keys(Values)]};
mutate(clear, _, Values, _) ->
    {ok, #{}, maps:keys(Values)};
mutate(_, _, _, _) ->
    error.

-spec join(store(), atoll_crdt_context:context(), store(), atoll_crdt_context:context()) -> store().
join(Values, Context, Others, OtherContext) ->
    Kept = maps:filter(fun(Dot, _) -> is_map_key(Dot, Others) orelse not atoll_crdt_context:has(Dot, OtherContext) end, Values),
    New = maps:filter(fun(Dot, _) -> not atoll_crdt_context:has(Dot, Context) end, Others),
    maps:merge(Kept, New).

-spec difference(store(), store(), atoll_crdt_context:context()) -> store().
difference(Values, _, OtherContext) -> maps:filter(fun(Dot, _) -> not atoll_crdt_context:has(Dot, OtherContext) end, Values).

-spec dots(store()) -> [atoll_crdt_context:dot()].
dots(Values) -> maps:keys(Values).

%% Each once; `lists:usort/1' would take 1 and 1.0 for the same.
-spec value(store()) -> [term()].
value(Values) -> lists:sort(maps:keys(maps:from_list([{Value, []} || Value <- maps:values(Values)]))).
