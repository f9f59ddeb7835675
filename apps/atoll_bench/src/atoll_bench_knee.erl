%% @doc At how many nodes what is done stops following what is offered. Pure.
%%
%% What is looked at is the share that is done, by the number of nodes. Up to the knee K it is 1,
%% and beyond it every further node adds a part of what it is offered, or takes some away: with
%% n nodes what is done is K + b(n - K) nodes' load, so the share is 1 - c(1 - K/n) with
%% c = 1 - b. These are two lines that meet (Hinkley, Inference about the intersection in
%% two-phase regression, Biometrika 56, 1969; Muggeo, Estimating regression models with
%% unknown break-points, Statistics in Medicine 22, 2003), of which the first is known. K is
%% the one of a grid whose least squares are smallest; c follows from K.
%%
%% There is a knee at all if the share of the largest number of nodes falls short: the whole interval
%% of its median lies below the tolerance, 0.95 unless said otherwise. Without that there is
%% none up to that number. The interval of K is the bootstrap's (Efron and Tibshirani, An
%% Introduction to the Bootstrap, 1993, section 13.3): at each number of nodes rounds are
%% drawn anew, and the medians fitted again. A knee that is at the smallest number measured,
%% or below, is told as such.
%%
%% Not promised: that a curve which goes back up has one knee, or that three sizes say where it is
%% between two of them. The interval is that of the rounds; how far apart the measured numbers are
%% is not in it, so the two between which K lies are told too.
-module(atoll_bench_knee).

-export([find/2]).

-export_type([curve/0, options/0, knee/0]).

-type curve() :: [{Nodes :: pos_integer(), Shares :: [number(), ...]}].
%% For each number of nodes, the share of what was offered that each round has done.

-type options() :: #{
    %% Below which share it falls short.
    tolerance => float(),
    seed => integer(),
    resamples => pos_integer()
}.

-type knee() ::
    #{
        verdict := knee,
        nodes := float(),
        low := float(),
        high := float(),
        %% The measured numbers of nodes around it.
        between := {pos_integer(), pos_integer()},
        %% How much of its load a further node adds beyond the knee.
        slope := float()
    }
    %% Already the smallest number falls short.
    | #{verdict := at_most, nodes := pos_integer()}
    | #{verdict := none, up_to := pos_integer()}
    %% Fewer than two numbers of nodes.
    | #{verdict := too_few}.

-define(TOLERANCE, 0.95).
-define(RESAMPLES, 500).
%% Steps of the grid between the smallest and the largest number of nodes.
-define(STEPS, 200).

%% @doc Where the knee of a curve is, if there is one.
-spec find(curve(), options()) -> knee().
find(Curve, Options) when length(Curve) >= 2 ->
    Sorted = [{Smallest, First} | _] = lists:keysort(1, Curve),
    {Largest, Last} = lists:last(Sorted),
    case {falls_short(First, Options), falls_short(Last, Options)} of
        {_, false} -> #{verdict => none, up_to => Largest};
        {true, true} -> #{verdict => at_most, nodes => Smallest};
        {false, true} -> knee(Sorted, Smallest, Largest, Options)
    end;
find(_Curve, _Options) ->
    #{verdict => too_few}.

falls_short(Shares, Options) ->
    {_Low, High} = interval(Shares, Options),
    High < maps:get(tolerance, Options, ?TOLERANCE).

%% Of one round there is nothing to draw.
interval([Share], _Options) -> {Share, Share};
interval(Shares, Options) -> atoll_bench_stats:interval(Shares, #{seed => seed(Options)}).

seed(Options) -> maps:get(seed, Options, 1).

knee(Curve, Smallest, Largest, Options) ->
    Grid = [Smallest + (Largest - Smallest) * Step / ?STEPS || Step <- lists:seq(0, ?STEPS)],
    {K, C} = fit([{N, atoll_bench_stats:median(Shares)} || {N, Shares} <- Curve], Grid),
    Rand = rand:seed_s(exsss, seed(Options)),
    Ks = fits(maps:get(resamples, Options, ?RESAMPLES), [{N, list_to_tuple(Shares)} || {N, Shares} <- Curve], Grid, Rand, []),
    #{
        verdict => knee,
        nodes => K,
        low => min(K, atoll_bench_stats:percentile(Ks, 2.5)),
        high => max(K, atoll_bench_stats:percentile(Ks, 97.5)),
        between => around(K, [N || {N, _} <- Curve]),
        slope => 1 - C
    }.

around(K, [A, B | _]) when K =< B -> {A, B};
around(K, [_ | [_, _ | _] = Ns]) -> around(K, Ns);
around(_K, [A, B]) -> {A, B}.

fits(0, _Curve, _Grid, _Rand, Ks) ->
    Ks;
fits(Left, Curve, Grid, Rand0, Ks) ->
    {Medians, Rand} = lists:mapfoldl(fun drawn/2, Rand0, Curve),
    {K, _} = fit(Medians, Grid),
    fits(Left - 1, Curve, Grid, Rand, [K | Ks]).

drawn({N, Shares}, Rand0) ->
    {Drawn, Rand} = lists:mapfoldl(
        fun(_, R0) ->
            {Place, R} = rand:uniform_s(tuple_size(Shares), R0),
            {element(Place, Shares), R}
        end,
        Rand0,
        lists:seq(1, tuple_size(Shares))
    ),
    {{N, atoll_bench_stats:median(Drawn)}, Rand}.

%% The first of equally good ones. At the largest number there is nothing beyond the knee.
fit(Points, Grid) ->
    {_, K, C} = lists:min([fit_at(K, Points) || K <- Grid]),
    {K, C}.

%% With u = 1 - K/n beyond the knee, and 0 before it, what is missing of a share is c u.
fit_at(K, Points) ->
    Missing = [{max(0.0, 1 - K / N), 1 - Share} || {N, Share} <- Points],
    C =
        case lists:sum([U * U || {U, _} <- Missing]) of
            Squares when Squares > 0 -> max(0.0, lists:sum([U * M || {U, M} <- Missing]) / Squares);
            _ -> 0.0
        end,
    {lists:sum([(M - C * U) * (M - C * U) || {U, M} <- Missing]), float(K), C}.
