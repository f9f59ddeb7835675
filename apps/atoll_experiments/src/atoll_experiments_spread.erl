%% @doc What can be said of two things that were measured in some rounds each, which differ among
%% themselves: the one is less than the other only if the whole interval of its median is. That
%% is the bootstrap's at 95 per cent ({@link atoll_bench_stats}); of fewer than five rounds, which
%% have none, the least and the most of them, which promises less.
-module(atoll_experiments_spread).

-export([of_samples/1, ratio/2, below/2, least/2, ordered/1, said/1]).

-export_type([spread/0]).

-type spread() :: {Median :: number(), Low :: number(), High :: number()} | none.

-define(FEWEST, 5).

%% @doc None of no samples.
-spec of_samples([number()]) -> spread().
of_samples([]) ->
    none;
of_samples(Samples) ->
    {Low, High} = case length(Samples) >= ?FEWEST of
        true -> atoll_bench_stats:interval(Samples, #{seed => 1});
        false -> {lists:min(Samples), lists:max(Samples)}
    end,
    {atoll_bench_stats:median(Samples), Low, High}.

%% @doc How many times as much the first one is; within what both intervals admit.
-spec ratio(spread(), spread()) -> spread().
ratio({Median, Low, High}, {BaseMedian, BaseLow, BaseHigh}) when BaseLow > 0 ->
    {Median / BaseMedian, Low / BaseHigh, High / BaseLow};
ratio(_, _) ->
    none.

%% @doc Whether the first one is less; unknown where they overlap.
-spec below(spread(), spread()) -> atoll_experiment:holds().
below({_, _, High}, {_, Low, _}) when High < Low -> true;
below({_, Low, _}, {_, _, High}) when Low > High -> false;
below(_, _) -> unknown.

%% @doc Whether one is less than each of the others: not if it is more than one, unknown if it is
%% not clearly less than one.
-spec least(spread(), [spread()]) -> atoll_experiment:holds().
least(Spread, Others) ->
    all([below(Spread, Other) || Other <- Others]).

%% @doc Whether each is less than the next, in the same sense.
-spec ordered([spread(), ...]) -> atoll_experiment:holds().
ordered(Spreads) ->
    all([below(A, B) || {A, B} <- lists:zip(lists:droplast(Spreads), tl(Spreads))]).

all(Each) ->
    case {lists:member(false, Each), lists:member(unknown, Each)} of
        {true, _} -> false;
        {false, true} -> unknown;
        {false, false} -> true
    end.

%% @doc The median, and in brackets its interval.
-spec said(spread()) -> unicode:chardata().
said(none) ->
    atoll_experiments_data:number(none);
said({Median, Low, High}) ->
    [Middle, From, To] = [atoll_experiments_data:number(N) || N <- [Median, Low, High]],
    [Middle, [[" [", From, "–", To, "]"] || From =/= To]].
