%% SPDX-License-Identifier: Apache-2.0
%% @doc Whether two sets of samples differ, and by which factor, from the order of
%% the samples alone.
%%
%% The test is Mann and Whitney's (On a test of whether one of two random variables
%% is stochastically larger than the other, 1947), the factor and its interval are
%% Hodges and Lehmann's (Hollander, Wolfe, Chicken: Nonparametric Statistical Methods,
%% 2014, sections 4.1 to 4.3), with ratios in the place of differences. Both hold
%% for any distribution, with slow rounds in it or without, as long as the samples
%% do not depend on each other. Of samples drawn from the same thing, a share of at
%% most `P' has a p-value of `P' or less.
%%
%% Up to 400 pairs the distribution is exact, beyond them it is the normal one with
%% a correction for continuity. Ties count a half and widen nothing, which errs on
%% the side of finding no difference.
-module(atoll_bench_rank).

-export([test/3]).

-export_type([result/0]).

%% `p' is two-sided. `ratio' is by what factor the second set is larger than the
%% first; `none' when a sample is not above zero. `low' and `high' are its interval;
%% `none' also when there are too few samples for any (fewer than 4 in each, at 0.95).
%% `order' is which set is above the other in more than half of the pairs: also where
%% there is no ratio, and where the medians are equal.
-type result() :: #{
    p := float(),
    order := first | second | none,
    ratio := float() | none,
    low := float() | none,
    high := float() | none
}.

-define(EXACT, 400).

%% @doc Compares two sets of samples; `Level' is that of the interval, say 0.95.
-spec test(As :: atoll_bench_stats:samples(), Bs :: atoll_bench_stats:samples(), Level :: float()) -> result().
test(As, Bs, Level) ->
    Pairs = length(As) * length(Bs),
    Below = below(length(As), length(Bs)),
    U = lists:sum([above(A, B) || A <- As, B <- Bs]),
    %% A half is rounded up, to the larger p-value.
    P = min(1.0, 2 * Below(ceil(min(U, Pairs - U)))),
    maps:merge(#{p => P, order => order(2 * U, Pairs)}, factor(As, Bs, Pairs, Below, (1 - Level) / 2)).

order(Twice, Pairs) when Twice > Pairs -> second;
order(Twice, Pairs) when Twice < Pairs -> first;
order(_, _) -> none.

above(A, B) when A < B -> 1;
above(A, B) when A == B -> 0.5;
above(_, _) -> 0.

factor(As, Bs, Pairs, Below, Share) ->
    case lists:all(fun(S) -> S > 0 end, As ++ Bs) of
        false ->
            #{ratio => none, low => none, high => none};
        true ->
            Ratios = list_to_tuple(lists:sort([B / A || A <- As, B <- Bs])),
            Median = (element((Pairs + 1) div 2, Ratios) + element(Pairs div 2 + 1, Ratios)) / 2,
            maps:put(ratio, Median, between(Ratios, left_out(Below, Share, -1, Pairs div 2)))
    end.

between(_Ratios, -1) ->
    #{low => none, high => none};
between(Ratios, LeftOut) ->
    #{low => element(LeftOut + 1, Ratios), high => element(tuple_size(Ratios) - LeftOut, Ratios)}.

%% The largest C with P(U =< C) =< Share, between Fits, which is such, and Over,
%% which is not; -1 when there is none.
left_out(Below, Share, Fits, Over) when Over - Fits > 1 ->
    Middle = (Fits + Over) div 2,
    case Below(Middle) =< Share of
        true -> left_out(Below, Share, Middle, Over);
        false -> left_out(Below, Share, Fits, Middle)
    end;
left_out(_Below, _Share, Fits, _Over) ->
    Fits.

%% P(U =< C) when both sets are drawn from the same thing.
below(N, M) when N * M =< ?EXACT ->
    [_ | Counts] = lists:reverse(lists:foldl(fun(Ways, [Sum | _] = Sums) -> [Sum + Ways | Sums] end, [0], ways(N, M))),
    Shares = list_to_tuple([Count / lists:last(Counts) || Count <- Counts]),
    fun(C) -> element(C + 1, Shares) end;
below(N, M) ->
    Sd = math:sqrt(N * M * (N + M + 1) / 12),
    fun(C) -> math:erfc((N * M / 2 - C - 0.5) / Sd / math:sqrt(2)) / 2 end.

%% In how many orders of N and M samples U is 0, 1, 2 and so on: the coefficients of
%% Gauss's binomial, by Pascal's rule G(N, M) = G(N-1, M) + q^N G(N, M-1).
ways(N, M) ->
    lists:last(lists:foldl(fun row/2, lists:duplicate(M + 1, [1]), lists:seq(1, N))).

%% G(N, 0) to G(N, M) from those of N - 1.
row(N, [_ | Above]) ->
    Shift = lists:duplicate(N, 0),
    {Row, _} = lists:mapfoldl(
        fun(Up, Left) ->
            New = sum(Up, Shift ++ Left),
            {New, New}
        end,
        [1],
        Above
    ),
    [[1] | Row].

sum([A | As], [B | Bs]) -> [A + B | sum(As, Bs)];
sum([], Bs) -> Bs;
sum(As, []) -> As.
