%% SPDX-License-Identifier: Apache-2.0
%% @doc The versions of a value: dotted version vectors, as sets. Pure.
%%
%% Each write is an event, a *dot*: who has ordered it, and its number there. A clock has of each such actor how many events it has seen, and the values of
%% the last of them that nothing has overwritten. A value stands here as long as no writer had seen it: so of two writers that knew of each other the
%% later one counts, and of two that did not both values stay, side by side.
%%
%% Source: Almeida, Baquero, Gonçalves, Preguiça and Fonte, Scalable and Accurate Causality Tracking for Eventually Consistent Stores (2014), sections 5 and 6.
%%
%% An actor must never give a number twice. So one that has lost what it knew has to be another actor from then on.
-module(ring_dvv).

-export([new/0, event/4, merge/2, values/1, context/1, empty_context/0, covers/2, join/2, is_context/1, map/2, hash/1]).

-export_type([clock/1, context/0, actor/0]).

-type actor() :: term().

-opaque clock(Value) :: #{actor() => {Seen :: pos_integer(), Newest :: [Value]}}.
%% The values of an actor are those of its last events, the last one first, without a gap: a list as long as L has those of `Seen' down to
%% `Seen - L + 1'.

-type context() :: #{actor() => Seen :: pos_integer()}.
%% What somebody has seen.

%% @doc Nothing.
-spec new() -> clock(term()).
new() -> #{}.

%% @doc A write that its actor orders now: `Value' stands in the place of all that `Context' has seen.
-spec event(actor(), Value, context(), clock(Value)) -> clock(Value).
event(Actor, Value, Context, Clock) ->
    Seen = maps:map(fun(Of, Entry) -> without(maps:get(Of, Context, 0), Entry) end, padded(Context, Clock)),
    {N, Values} = maps:get(Actor, Seen, {0, []}),
    Seen#{Actor => {N + 1, [Value | Values]}}.

%% Of those events up to this number no value stands any longer.
without(Number, {N, Values}) -> {max(N, Number), lists:sublist(Values, max(0, N - Number))}.

padded(Context, Clock) -> maps:merge(maps:map(fun(_, N) -> {N, []} end, Context), Clock).

%% @doc What both have seen, with the values that neither has overwritten.
-spec merge(clock(Value), clock(Value)) -> clock(Value).
merge(A, B) when map_size(A) < map_size(B) -> merge(B, A);
merge(A, B) -> maps:fold(fun(Actor, Entry, Clock) -> maps:update_with(Actor, fun(Known) -> both(Known, Entry) end, Entry, Clock) end, A, B).

%% A value stays if the other has not seen it, or has it still.
both({N, Values}, {M, Others}) when N >= M -> {N, lists:sublist(Values, max(0, N - M + length(Others)))};
both(A, B) -> both(B, A).

%% @doc The values that stand side by side.
-spec values(clock(Value)) -> [Value].
values(Clock) -> lists:append([Values || {_, {_, Values}} <- lists:sort(maps:to_list(Clock))]).

%% @doc What whoever reads all of it has seen.
-spec context(clock(term())) -> context().
context(Clock) -> maps:map(fun(_, {N, _}) -> N end, Clock).

%% @doc Of somebody who has seen nothing.
-spec empty_context() -> context().
empty_context() -> #{}.

%% @doc Whether the first has seen all that the second has.
-spec covers(context(), context()) -> boolean().
covers(A, B) -> maps:fold(fun(Actor, N, Is) -> Is andalso maps:get(Actor, A, 0) >= N end, true, B).

%% @doc What both together have seen.
-spec join(context(), context()) -> context().
join(A, B) -> maps:fold(fun(Actor, N, Both) -> maps:update_with(Actor, fun(M) -> max(N, M) end, N, Both) end, A, B).

%% @doc Whether it can be one.
-spec is_context(term()) -> boolean().
is_context(Context) -> is_map(Context) andalso lists:all(fun(N) -> is_integer(N) andalso N > 0 end, maps:values(Context)).

%% @doc The same events with other values.
-spec map(fun((A) -> B), clock(A)) -> clock(B).
map(Fun, Clock) -> maps:map(fun(_, {N, Values}) -> {N, [Fun(Value) || Value <- Values]} end, Clock).

%% @doc Equal for clocks that have seen the same and have the same values, and for others but by a chance of 1 in 2^60.
-spec hash(clock(term())) -> non_neg_integer().
hash(Clock) ->
    <<Hash:60, _/bitstring>> = erlang:md5(term_to_binary([{Actor, N, length(Values)} || {Actor, {N, Values}} <- lists:sort(maps:to_list(Clock))], [{minor_version, 2}])),
    Hash.
