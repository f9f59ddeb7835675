%% @doc What can be said of two things that were measured in some rounds each, which differ among
%% themselves: the one is less than the other only if all its rounds are less than all of the
%% other's. Of five rounds the least and the most are the interval at 94 per cent of the median
%% ({@link atoll_bench_stats}); of fewer it is less sure.
-module(atoll_experiments_spread).

-export([of_samples/1, ratio/2, below/2, least/2, ordered/1, said/1]).

-export_type([spread/0]).

-type spread() :: {Median :: number(), Least :: number(), Most :: number()} | none.

%% @doc None of no samples.
-spec of_samples([number()]) -> spread().
of_samples([]) -> none;
of_samples(Samples) -> {atoll_bench_stats:median(Samples), lists:min(Samples), lists:max(Samples)}.

%% @doc How many times as much the first one is; at the least and at the most what the rounds admit.
-spec ratio(spread(), spread()) -> spread().
ratio({Median, Least, Most}, {BaseMedian, BaseLeast, BaseMost}) when BaseLeast > 0 ->
    {Median / BaseMedian, Least / BaseMost, Most / BaseLeast};
ratio(_, _) ->
    none.

%% @doc Whether the first one is less; unknown where rounds of both overlap.
-spec below(spread(), spread()) -> atoll_experiment:holds().
below({_, _, Most}, {_, Least, _}) when Most < Least -> true;
below({_, Least, _}, {_, _, Most}) when Least > Most -> false;
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

%% @doc The median, and in brackets the least and the most.
-spec said(spread()) -> unicode:chardata().
said(none) ->
    atoll_experiments_data:number(none);
said({Median, Least, Most}) ->
    [Middle, Low, High] = [atoll_experiments_data:number(N) || N <- [Median, Least, Most]],
    [Middle, [[" [", Low, "–", High, "]"] || Low =/= High]].
