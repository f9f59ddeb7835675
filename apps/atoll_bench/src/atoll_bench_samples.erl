%% @doc The samples of a metric in rounds as a result file has them: what a table, a
%% report and a comparison have in common.
%%
%% Of a latency, each round is a sample: its percentile.
-module(atoll_bench_samples).

-export([all/3, summary/3, histogram/2]).

-export_type([measure/0, summary/0]).

%% Of a metric: its value, or a percentile of its times.
-type measure() :: value | (Percentile :: number()).

-type summary() :: {Median :: number(), Low :: number(), High :: number()}.

%% @doc A sample for each of the rounds in which it was measured. The rounds are those
%% of one point, keys as binaries.
-spec all(Metric :: binary(), measure(), Rounds :: [map()]) -> [number()].
all(Name, value, Rounds) ->
    [Value || #{<<"values">> := #{Name := Value}} <- Rounds, is_number(Value)];
all(Name, Percentile, Rounds) ->
    [
        Ns
     || Round <- Rounds,
        {ok, Histogram} <- [histogram(Name, Round)],
        Ns <- [atoll_bench_hist:percentile(Histogram, Percentile)],
        is_number(Ns)
    ].

%% @doc The median of the rounds and its interval at 95 per cent
%% ({@link atoll_bench_stats:interval/2}); `none' if there are none. In nanoseconds
%% if it is a latency.
-spec summary(Metric :: binary(), measure(), Rounds :: [map()]) -> {ok, summary()} | none.
summary(Name, Measure, Rounds) ->
    case all(Name, Measure, Rounds) of
        [] ->
            none;
        [_ | _] = Samples ->
            {Low, High} = atoll_bench_stats:interval(Samples, #{seed => 1}),
            {ok, {atoll_bench_stats:median(Samples), Low, High}}
    end.

%% @doc The histogram of a latency in a round, if there is one with anything in it.
-spec histogram(Metric :: binary(), Round :: map()) -> {ok, atoll_bench_hist:export()} | none.
histogram(Name, Round) ->
    case [atoll_bench_hist:import(Export) || #{<<"histograms">> := #{Name := Export}} <- [Round]] of
        [{ok, #{count := Count} = Histogram}] when Count > 0 -> {ok, Histogram};
        _ -> none
    end.
