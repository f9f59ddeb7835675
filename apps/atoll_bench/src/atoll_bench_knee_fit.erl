%% SPDX-License-Identifier: Apache-2.0
%% @doc Two lines that meet, through the shares that were done at each number of nodes, and
%% where they may meet as well. Pure.
%%
%% Up to K nodes the share is the plateau's, a. Beyond it each further node adds the part b of
%% its load: with n nodes the share is a - d(1 - K/n), and b = a - d. That is two-phase
%% regression (Hinkley, Inference about the intersection in two-phase regression, Biometrika 56,
%% 1969; Muggeo, Estimating regression models with unknown break-points, Statistics in
%% Medicine 22, 2003). K is the one of a grid whose least squares are smallest; a (at most 1) and
%% d (at least 0) follow from it. Of several that are equally good it is the middle one.
%%
%% The interval is that of the profile (Seber and Wild, Nonlinear Regression, 1989): all K whose
%% sum of squares is above the smallest by no more than F(1, f; 0.95) times the variance of a
%% round with its f degrees of freedom. The largest of three counts: of the rounds about their
%% means; the same beyond K alone, where they differ more as a rule, and where K hangs on them;
%% and of the rounds about the lines, which do not fit exactly. The tests say how many of simulated curves it holds.
%%
%% One round at each size says nothing of the noise, so that all of the grid is the interval.
-module(atoll_bench_knee_fit).

-export([fit/1]).

-export_type([fit/0]).

-type fit() :: #{
    %% Where the lines meet, and between what.
    nodes := float(),
    low := float(),
    high := float(),
    %% The share up to there, and what part of its load a further node adds.
    plateau := float(),
    slope := float(),
    %% Whether one level for all sizes is not ruled out.
    level := boolean()
}.

%% Steps of the grid between the smallest and the largest number of nodes.
-define(STEPS, 200).
%% Sums of squares that differ by less are the same.
-define(SAME, 1.0e-12).

%% @doc The lines through a curve, whose sizes are sorted, two at least.
-spec fit(atoll_bench_knee:curve()) -> fit().
fit([{Smallest, _}, _ | _] = Curve) ->
    {Largest, _} = lists:last(Curve),
    Points = [{N, length(Shares), atoll_bench_stats:mean(Shares)} || {N, Shares} <- Curve],
    Step = (Largest - Smallest) / ?STEPS,
    Grid = [Smallest + Step * Number || Number <- lists:seq(0, ?STEPS)],
    Fits = [{K, fit_at(K, Points)} || K <- Grid],
    Least = lists:min([Squares || {_, {Squares, _, _}} <- Fits]),
    {K, {_, A, D}} = middle([Fit || {_, {Squares, _, _}} = Fit <- Fits, Squares =< Least + ?SAME]),
    Allowed = allowed(K, Least, Curve),
    Within = [K1 || {K1, {Squares, _, _}} <- Fits, may(Squares - Least, Allowed)],
    #{
        nodes => K,
        %% What lies between two of the grid was not looked at.
        low => max(float(Smallest), lists:min(Within) - Step),
        high => min(float(Largest), lists:max(Within) + Step),
        plateau => A,
        slope => A - D,
        level => Allowed =/= unknown andalso may(about_mean(Points) - Least, Allowed)
    }.

may(_More, unknown) -> true;
may(More, Allowed) -> More =< Allowed + ?SAME.

middle(Fits) -> lists:nth((length(Fits) + 1) div 2, Fits).

%% With u = 1 - K/n beyond the knee and 0 before it, the share is a - d u.
fit_at(K, Points) ->
    Seen = [{float(W), max(0.0, 1 - K / N), Y} || {N, W, Y} <- Points],
    All = lists:sum([W || {W, _, _} <- Seen]),
    U0 = lists:sum([W * U || {W, U, _} <- Seen]) / All,
    Y0 = lists:sum([W * Y || {W, _, Y} <- Seen]) / All,
    D1 = falls([{W, U - U0, Y0 - Y} || {W, U, Y} <- Seen]),
    {A, D} =
        case Y0 + D1 * U0 of
            A1 when A1 =< 1 -> {A1, D1};
            _ -> {1.0, falls([{W, U, 1 - Y} || {W, U, Y} <- Seen])}
        end,
    {lists:sum([W * sq(A - D * U - Y) || {W, U, Y} <- Seen]), A, D}.

%% Through the origin, and never rising.
falls(Seen) ->
    case lists:sum([W * U * U || {W, U, _} <- Seen]) of
        Squares when Squares > ?SAME -> max(0.0, lists:sum([W * U * M || {W, U, M} <- Seen]) / Squares);
        _ -> 0.0
    end.

about_mean(Points) ->
    All = lists:sum([W || {_, W, _} <- Points]),
    Mean = lists:sum([W * Y || {_, W, Y} <- Points]) / All,
    lists:sum([W * sq(Y - Mean) || {_, W, Y} <- Points]).

%% By how much a sum of squares may be above the least.
allowed(K, Least, Curve) ->
    case within(Curve) of
        {_, 0} ->
            unknown;
        {Squares, Free} = About ->
            Rounds = lists:sum([length(Shares) || {_, Shares} <- Curve]),
            OfLines = [{Squares + Least, Rounds - 3} || Rounds - 3 >= Free],
            Beyond = within([At || {N, _} = At <- Curve, N > K]),
            lists:max([S / F * f(F) || {S, F} <- [About, Beyond | OfLines], F > 0])
    end.

%% The squares of rounds about the means of their sizes, and how many of these are free.
within(Curve) ->
    lists:foldl(
        fun({_, Shares}, {Squares, Free}) ->
            Mean = atoll_bench_stats:mean(Shares),
            {Squares + lists:sum([sq(Share - Mean) || Share <- Shares]), Free + length(Shares) - 1}
        end,
        {0.0, 0},
        Curve
    ).

sq(X) -> X * X.

%% The 95th percentile of F with 1 and so many degrees of freedom; between two that of the
%% fewer, which is larger.
f(Free) ->
    Table = [
        {120, 3.92}, {60, 4.00}, {30, 4.17}, {20, 4.35}, {15, 4.54}, {12, 4.75}, {10, 4.96}, {9, 5.12}, {8, 5.32},
        {7, 5.59}, {6, 5.99}, {5, 6.61}, {4, 7.71}, {3, 10.13}, {2, 18.51}, {1, 161.45}
    ],
    {_, F} = lists:nth(1, [Row || {At, _} = Row <- Table, At =< Free]),
    F.
