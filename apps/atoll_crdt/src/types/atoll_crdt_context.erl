%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Causal contexts: which changes a state knows of. A change is a *dot*, an actor with a
%% number that counts its changes.
%%
%% Of each actor there is the number up to which all are known, as in a version vector, and
%% beside it the single dots beyond a gap: a delta that has come before others leaves some. A dot that
%% fills the gap makes them one. Section 7.2 of the paper that {@link atoll_crdt} names.
%%
%% What became of a dot, `join/4' decides, and that is all there is to removing: a dot that one side
%% has in its store and the other one knows of, but has no more, is gone. So nothing
%% of a removed thing is kept: A. Bieniusa and others, "An optimized conflict-free replicated
%% set" (2012).
-module(atoll_crdt_context).

-export([new/0, from/1, next/2, has/2, join/2, difference/2]).
-export([join/4, join_maps/6, highest/2]).

-export_type([context/0, dot/0, dots/0]).

-type dot() :: {atoll_crdt:actor(), pos_integer()}.

-type dots() :: [dot()].
%% Sorted.

-opaque context() :: {#{atoll_crdt:actor() => pos_integer()}, dots()}.
%% A dot of the list is never the one that follows the number of its actor, nor below.

%% @doc Nothing is known.
-spec new() -> context().
new() -> {#{}, []}.

%% @doc These are known, and no others.
-spec from([dot()]) -> context().
from(Dots) -> compact(#{}, lists:usort(Dots)).

%% @doc The dot of the next change of an actor.
-spec next(atoll_crdt:actor(), context()) -> dot().
next(Actor, {Seen, Cloud}) ->
    {Actor, 1 + lists:max([maps:get(Actor, Seen, 0) | [N || {A, N} <- Cloud, A =:= Actor]])}.

%% @doc Whether a dot is known.
-spec has(dot(), context()) -> boolean().
has({Actor, N} = Dot, {Seen, Cloud}) ->
    N =< maps:get(Actor, Seen, 0) orelse ordsets:is_element(Dot, Cloud).

%% @doc What both know together.
-spec join(context(), context()) -> context().
join({Seen, []}, {Other, []}) -> {highest(Seen, Other), []};
join({Seen, Cloud}, {Other, OtherCloud}) -> compact(highest(Seen, Other), ordsets:union(Cloud, OtherCloud)).

%% @doc The dots that one knows and another one does not.
-spec difference(context(), context()) -> [dot()].
difference({Seen, Cloud}, {Known, _} = Other) ->
    Within = [{Actor, N} || {Actor, To} <- maps:to_list(Seen), From <- [maps:get(Actor, Known, 0)], From < To, N <- lists:seq(From + 1, To)],
    [Dot || Dot <- Within ++ Cloud, not has(Dot, Other)].

%% They come in order: a gap that one fills is filled before the next one is looked at.
compact(Seen0, Dots) ->
    {Seen, Apart} = lists:foldl(
        fun({Actor, N} = Dot, {Seen, Apart}) ->
            case maps:get(Actor, Seen, 0) of
                Known when N =< Known -> {Seen, Apart};
                Known when N =:= Known + 1 -> {Seen#{Actor => N}, Apart};
                _ -> {Seen, [Dot | Apart]}
            end
        end,
        {Seen0, []},
        Dots
    ),
    {Seen, lists:reverse(Apart)}.

%% @doc Of two maps of numbers the greater ones. It is the very same term as one of them where it can be:
%% many replicas that know the same then share it.
-spec highest(#{Key => number()}, #{Key => number()}) -> #{Key => number()}.
highest(One, Other) when map_size(One) < map_size(Other) -> the_same(raised(Other, One), One);
highest(One, Other) -> the_same(raised(One, Other), Other).

raised(Larger, Smaller) ->
    maps:fold(
        fun(Key, N, Acc) ->
            case Acc of
                #{Key := Known} when Known >= N -> Acc;
                #{} -> Acc#{Key => N}
            end
        end,
        Larger,
        Smaller
    ).

the_same(Result, Other) when Result =:= Other -> Other;
the_same(Result, _) -> Result.

%% @doc The dots that are left of two stores of dots.
-spec join(dots(), context(), dots(), context()) -> dots().
join(Dots, _, Dots, _) ->
    Dots;
join(Dots, Context, Others, OtherContext) ->
    Kept = [Dot || Dot <- Dots, ordsets:is_element(Dot, Others) orelse not has(Dot, OtherContext)],
    ordsets:union(Kept, [Dot || Dot <- Others, not has(Dot, Context)]).

%% @doc The same for a map of stores: `Join' joins two of a key, and one that is `Empty' is not in the map.
-spec join_maps(
    fun((Key, Store, context(), Store, context()) -> Store), fun((Key) -> Store), #{Key => Store}, context(), #{Key => Store}, context()
) -> #{Key => Store}.
join_maps(Join, Empty, Map, Context, Others, OtherContext) ->
    Own = maps:fold(
        fun(Key, Store, Acc) ->
            Nothing = Empty(Key),
            case Join(Key, Store, Context, maps:get(Key, Others, Nothing), OtherContext) of
                Store -> Acc;
                Nothing -> maps:remove(Key, Acc);
                Joined -> Acc#{Key := Joined}
            end
        end,
        Map,
        Map
    ),
    maps:fold(
        fun
            (Key, _, Acc) when is_map_key(Key, Map) ->
                Acc;
            (Key, Store, Acc) ->
                Nothing = Empty(Key),
                case Join(Key, Nothing, Context, Store, OtherContext) of
                    Nothing -> Acc;
                    Joined -> Acc#{Key => Joined}
                end
        end,
        Own,
        Others
    ).
