%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc A set: of each element the dots with which it was added. An addition stands for those that it knows of, and a
%% removal takes away those that it knows of; so an addition that it does not know of wins.
-module(atoll_crdt_set).
-behaviour(atoll_crdt_type).

-export([new/0, mutate/4, join/4, difference/3, dots/1, value/1]).

-type store() :: #{Element :: term() => atoll_crdt_context:dots()}.
%% None is without dots.

-spec new() -> store().
new() -> #{}.

-spec mutate(atoll_crdt:operation(), atoll_crdt:actor(), store(), atoll_crdt_context:context()) ->
    {ok, store(), [atoll_crdt_context:dot()]} | error.
mutate({add, Element}, Actor, Elements, Context) ->
    Dot = atoll_crdt_context:next(Actor, Context),
    {ok, #{Element => [Dot]}, [Dot | maps:get(Element, Elements, [])]};
mutate({remove, Element}, _, Elements, _) ->
    {ok, #{}, maps:get(Element, Elements, [])};
mutate(clear, _, Elements, _) ->
    {ok, #{}, dots(Elements)};
mutate(_, _, _, _) ->
    error.

-spec join(store(), atoll_crdt_context:context(), store(), atoll_crdt_context:context()) -> store().
join(Elements, Context, Others, OtherContext) ->
    atoll_crdt_context:join_maps(
        fun(_, Dots, C, OtherDots, OtherC) -> atoll_crdt_context:join(Dots, C, OtherDots, OtherC) end,
        fun(_) -> [] end,
        Elements,
        Context,
        Others,
        OtherContext
    ).

-spec difference(store(), store(), atoll_crdt_context:context()) -> store().
difference(Elements, _, OtherContext) ->
    maps:filtermap(
        fun(_, Dots) ->
            case [Dot || Dot <- Dots, not atoll_crdt_context:has(Dot, OtherContext)] of
                [] -> false;
                New -> {true, New}
            end
        end,
        Elements
    ).

-spec dots(store()) -> [atoll_crdt_context:dot()].
dots(Elements) -> lists:append(maps:values(Elements)).

-spec value(store()) -> [term()].
value(Elements) -> lists:sort(maps:keys(Elements)).
