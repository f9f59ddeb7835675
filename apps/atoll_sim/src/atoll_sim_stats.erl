%% SPDX-License-Identifier: Apache-2.0
%% @doc Percentiles, means and shares.
%%
%% Values are given as a list or as a tally, which counts how often each value
%% came. A tally of whole milliseconds stays small however many values there are.
-module(atoll_sim_stats).

-export([tally/1, add/2, add/3, count/1, percentile/2, mean/1, share/2]).

-export_type([tally/0, values/0]).

-type tally() :: #{number() => pos_integer()}.
-type values() :: [number()] | tally().

%% @doc The tally of a list.
-spec tally([number()]) -> tally().
tally(Values) ->
    lists:foldl(fun add/2, #{}, Values).

%% @doc Counts a value once.
-spec add(number(), tally()) -> tally().
add(Value, Tally) ->
    add(Value, 1, Tally).

%% @doc Counts a value several times.
-spec add(number(), pos_integer(), tally()) -> tally().
add(Value, Times, Tally) ->
    case Tally of
        #{Value := N} -> Tally#{Value := N + Times};
        #{} -> Tally#{Value => Times}
    end.

%% @doc How many values there are.
-spec count(values()) -> non_neg_integer().
count(Values) when is_list(Values) -> length(Values);
count(Tally) -> maps:fold(fun(_, N, Sum) -> Sum + N end, 0, Tally).

%% @doc The percentile by nearest rank: the smallest value that at least `P' per
%% cent of all are not above. It is always one of the values; `none' of no values.
-spec percentile(values(), number()) -> number() | none.
percentile(Values, P) when is_list(Values), P >= 0, P =< 100 ->
    case lists:sort(Values) of
        [] -> none;
        Sorted -> lists:nth(rank(P, length(Sorted)), Sorted)
    end;
percentile(Tally, P) when P >= 0, P =< 100 ->
    case lists:sort(maps:to_list(Tally)) of
        [] -> none;
        Sorted -> at_rank(rank(P, count(Tally)), Sorted)
    end.

%% P is multiplied before it is divided: 0.07 * 100 is not 7.
rank(P, Count) ->
    max(1, ceil(P * Count / 100)).

at_rank(Rank, [{Value, N} | _]) when Rank =< N -> Value;
at_rank(Rank, [{_, N} | Sorted]) -> at_rank(Rank - N, Sorted).

%% @doc The arithmetic mean; `none' of no values.
-spec mean(values()) -> float() | none.
mean(Values) when is_list(Values) ->
    mean(lists:sum(Values), length(Values));
mean(Tally) ->
    %% In order: a sum of floats hangs on it.
    Sorted = lists:sort(maps:to_list(Tally)),
    mean(lists:sum([Value * N || {Value, N} <- Sorted]), count(Tally)).

mean(_Sum, 0) -> none;
mean(Sum, Count) -> Sum / Count.

%% @doc What share `Part' is of `Whole'. Of nothing it is all, so that what is
%% asked of every one of no things holds.
-spec share(non_neg_integer(), non_neg_integer()) -> float().
share(0, 0) -> 1.0;
share(Part, Whole) -> Part / Whole.
