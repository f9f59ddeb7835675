%% SPDX-License-Identifier: Apache-2.0
%% @doc What a comparison could have seen at all: the smallest factor that it finds in four of five
%% cases, by how the samples spread.
%%
%% Samples are taken to spread alike on a logarithmic scale in both variants, as times and counts
%% of a machine do more or less. How many of their standard deviations apart the variants must
%% be depends on the number of starts alone. The numbers are those of simulations of {@link
%% atoll_bench_compare} at one point (1,500 for each; the tests do some again). Where it is one point of many
%% and the others are alike, it takes more.
-module(atoll_experiments_power).

-export([least/2, apart/1]).

%% A smaller factor is no difference to a comparison, however sure it is.
-define(NO_LESS, 1.02).

%% @doc The smallest factor that would have been seen; none with too few samples, or of such as
%% have no factor.
-spec least([number()], [number()]) -> float() | none.
least(As, Bs) ->
    N = min(length(As), length(Bs)),
    case apart(N) of
        none -> none;
        Apart ->
            case lists:all(fun(V) -> V > 0 end, As ++ Bs) of
                true -> max(?NO_LESS, math:exp(Apart * math:sqrt((variance(As) + variance(Bs)) / 2)));
                false -> none
            end
    end.

variance(Values) ->
    Sd = atoll_bench_stats:sd([math:log(V) || V <- Values]),
    Sd * Sd.

%% @doc How many standard deviations apart two variants of so many starts each must be.
-spec apart(Starts :: non_neg_integer()) -> float() | none.
apart(Starts) ->
    Table = [{20, 1.07}, {15, 1.24}, {12, 1.44}, {10, 1.61}, {9, 1.70}, {8, 1.89}, {7, 2.05}, {6, 2.32}, {5, 2.61}],
    case [Apart || {N, Apart} <- Table, N =< Starts] of
        [Apart | _] -> Apart;
        [] -> none
    end.
