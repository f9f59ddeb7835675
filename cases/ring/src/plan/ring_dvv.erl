%% SPDX-License-Identifier: Apache-2.0
%% @doc The versions of a value: dotted version vectors, as sets. Pure.
%%
%% Each write is an event, a *dot*: who has ordered it, and its number there. A clock has of each such actor how many events it has seen, and the values of
%% the last of them that nothing has overwritten. A value stands here as long as no writer had seen it: so of two writers that knew of each other the
%% later one counts, and of two that did not both values stay, side by side.
%%
%% Source: Almeida, Baquero, Gonçalves, Preguiça and Fonte, Scalable and Accurate Causality Tracking for Eventually Consistent Stores (2014), sections 5 and 6.
%%
%% An actor must never give a number twice. So one that has lost what it knew has to be another actor from then on: actors are partitions on nodes, each with its start.
%%
%% What bounds a clock: of a partition on a node the last eight starts are kept, and such earlier ones of which a value still stands. Those before are dead, and
%% order nothing any more. What is forgotten with them is that their values were overwritten: a copy that was away for so many starts of whoever had ordered its value
%% brings that back, beside the others. Nothing that stands is lost.
-module(ring_dvv).

-export([new/0, event/4, merge/2, without_newest/2, with_newest/3, values/1, context/1, covers/2, join/2, is_context/1, is_same/2, hash/1]).

-export_type([clock/1, context/0, actor/0]).

-type actor() :: {Vnode :: term(), Start :: term()}.
%% The later one of two starts of a partition on a node is the larger term.

-opaque clock(Value) :: #{actor() => {Seen :: pos_integer(), Newest :: [Value]}}.
%% The values of an actor are those of its last events, the last one first, without a gap: a list as long as L has those of `Seen' down to
%% `Seen - L + 1'.

-type context() :: #{actor() => Seen :: pos_integer()}.
%% What somebody has seen.

-define(STARTS, 8).

%% @doc Nothing.
-spec new() -> clock(term()).
new() -> #{}.

%% @doc A write that its actor orders now: `Value' stands in the place of all that `Context' has seen.
-spec event(actor(), Value, context(), clock(Value)) -> clock(Value).
event(Actor, Value, Context, Clock) ->
    Seen = maps:map(fun(Of, Entry) -> without(maps:get(Of, Context, 0), Entry) end, padded(Context, Clock)),
    {N, Values} = maps:get(Actor, Seen, {0, []}),
    bounded(Seen#{Actor => {N + 1, [Value | Values]}}).

%% Of those events up to this number no value stands any longer.
without(Number, {N, Values}) -> {max(N, Number), lists:sublist(Values, max(0, N - Number))}.

padded(Context, Clock) -> maps:merge(maps:map(fun(_, N) -> {N, []} end, Context), Clock).

%% @doc What both have seen, with the values that neither has overwritten.
-spec merge(clock(Value), clock(Value)) -> clock(Value).
merge(A, B) when map_size(A) < map_size(B) -> merge(B, A);
merge(A, B) -> bounded(maps:fold(fun(Actor, Entry, Clock) -> maps:update_with(Actor, fun(Known) -> both(Known, Entry) end, Entry, Clock) end, A, B)).

%% A value stays if the other has not seen it, or has it still.
both({N, Values}, {M, Others}) when N >= M -> {N, lists:sublist(Values, max(0, N - M + length(Others)))};
both(A, B) -> both(B, A).

%% Without what is forgotten.
bounded(Clock) when map_size(Clock) =< ?STARTS -> Clock;
bounded(Clock) ->
    Last = maps:from_list([{Vnode, last(Starts)} || {Vnode, Starts} <- maps:to_list(starts(maps:keys(Clock)))]),
    maps:filter(fun({Vnode, Start}, {_, Values}) -> Values =/= [] orelse Start >= map_get(Vnode, Last) end, Clock).

starts(Actors) -> lists:foldl(fun({Vnode, Start}, All) -> maps:update_with(Vnode, fun(Starts) -> [Start | Starts] end, [Start], All) end, #{}, Actors).

%% The first of the last ones.
last(Starts) -> lists:last(lists:sublist(lists:reverse(lists:sort(Starts)), ?STARTS)).

%% @doc The same without the value that an actor has ordered last: whoever has sent it has it already.
-spec without_newest(actor(), clock(Value)) -> clock(Value | sent).
without_newest(Actor, Clock) ->
    #{Actor := {N, [_ | Values]}} = Clock,
    Clock#{Actor := {N, [sent | Values]}}.

%% @doc And with it again.
-spec with_newest(actor(), Value, clock(Value | sent)) -> clock(Value).
with_newest(Actor, Value, Clock) ->
    #{Actor := {N, [sent | Values]}} = Clock,
    Clock#{Actor := {N, [Value | Values]}}.

%% @doc The values that stand side by side.
-spec values(clock(Value)) -> [Value].
values(Clock) -> lists:append([Values || {_, {_, Values}} <- lists:sort(maps:to_list(Clock))]).

%% @doc What whoever reads all of it has seen.
-spec context(clock(term())) -> context().
context(Clock) -> maps:map(fun(_, {N, _}) -> N end, Clock).

%% @doc Whether the first has seen all that the second has. A start that the first does not know, and of whose partition and node it has eight later ones, was forgotten.
-spec covers(context(), context()) -> boolean().
covers(A, B) ->
    case maps:filter(fun(Actor, N) -> maps:get(Actor, A, 0) < N end, B) of
        None when map_size(None) =:= 0 -> true;
        Less ->
            Starts = starts(maps:keys(A)),
            lists:all(
                fun({Vnode, Start} = Actor) -> not is_map_key(Actor, A) andalso length([Later || Later <- maps:get(Vnode, Starts, []), Later > Start]) >= ?STARTS end,
                maps:keys(Less)
            )
    end.

%% @doc What both together have seen.
-spec join(context(), context()) -> context().
join(A, B) -> maps:fold(fun(Actor, N, Both) -> maps:update_with(Actor, fun(M) -> max(N, M) end, N, Both) end, A, B).

%% @doc Whether it can be one.
-spec is_context(term()) -> boolean().
is_context(Context) -> is_map(Context) andalso lists:all(fun({Actor, N}) -> is_tuple(Actor) andalso tuple_size(Actor) =:= 2 andalso is_integer(N) andalso N > 0 end, maps:to_list(Context)).

%% @doc Whether two clocks have seen the same and have the same values. An event has one value, so the values are not compared.
-spec is_same(clock(term()), clock(term())) -> boolean().
is_same(A, B) -> shape(A) =:= shape(B).

shape(Clock) -> maps:map(fun(_, {N, Values}) -> {N, length(Values)} end, Clock).

%% @doc Equal for clocks that are the same, and for others but by a chance of 1 in 2^60.
-spec hash(clock(term())) -> non_neg_integer().
hash(Clock) ->
    <<Hash:60, _/bitstring>> = erlang:md5(term_to_binary(lists:sort(maps:to_list(shape(Clock))), [{minor_version, 2}])),
    Hash.
