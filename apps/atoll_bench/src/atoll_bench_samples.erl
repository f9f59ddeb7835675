%% SPDX-License-Identifier: Apache-2.0
%% @doc The samples of a metric in rounds as a result file has them: what a table, a
%% report and a comparison have in common.
%%
%% Of a latency, each round is a sample: its percentile.
%%
%% A round is disturbed if other processes used more than a twentieth of the processors
%% meanwhile. That is little, but the times of two nodes that wait for each other change
%% twofold with it, and not always for the worse: what works keeps a processor awake.
-module(atoll_bench_samples).

-export([all/3, starts/3, summary/3, histogram/2, others/1, disturbed/1, disturbed_from/0]).

-export_type([measure/0, summary/0]).

%% Of a metric: its value, or a percentile of its times.
-type measure() :: value | (Percentile :: number()).

-type summary() :: {Median :: number(), Low :: number() | none, High :: number() | none}.

%% Fewer rounds have no interval that would keep what it promises.
-define(FEWEST, 5).
%% From this share of the machine on, what others used disturbed a round.
-define(DISTURBED, 0.05).

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
        Ns <- [atoll_histogram:percentile(Histogram, Percentile)],
        is_number(Ns)
    ].

%% @doc A sample for each start of the nodes: the median of its rounds, of those that
%% were not disturbed. The rounds of a start are alike in what differs between starts,
%% so that only these are independent of each other.
-spec starts(Metric :: binary(), measure(), Rounds :: [map()]) -> [number()].
starts(Name, Measure, Rounds) ->
    Quiet = [{maps:get(<<"start">>, Round, 1), Round} || Round <- Rounds, not disturbed(Round)],
    [
        atoll_bench_stats:median(Samples)
     || Start <- lists:usort([S || {S, _} <- Quiet]),
        [_ | _] = Samples <- [all(Name, Measure, [Round || {S, Round} <- Quiet, S =:= Start])]
    ].

%% @doc Whether other processes used so much of the machine that the round counts
%% as disturbed. Where the system does not tell, none is.
-spec disturbed(Round :: map()) -> boolean().
disturbed(Round) ->
    others(Round) > ?DISTURBED.

%% @doc Above which share of the machine a round counts as disturbed.
-spec disturbed_from() -> float().
disturbed_from() -> ?DISTURBED.

%% @doc The share of the machine that other processes used during a round.
-spec others(Round :: map()) -> number().
others(#{<<"others_cpu">> := Share}) when is_number(Share) -> Share;
others(_) -> 0.0.

%% @doc The median of the rounds and its interval at 95 per cent
%% ({@link atoll_bench_stats:interval/2}); `none' if there are none. Fewer than 5
%% rounds have a median, but no interval. In nanoseconds
%% if it is a latency.
-spec summary(Metric :: binary(), measure(), Rounds :: [map()]) -> {ok, summary()} | none.
summary(Name, Measure, Rounds) ->
    case all(Name, Measure, Rounds) of
        [] ->
            none;
        [_ | _] = Samples when length(Samples) < ?FEWEST ->
            {ok, {atoll_bench_stats:median(Samples), none, none}};
        [_ | _] = Samples ->
            {Low, High} = atoll_bench_stats:interval(Samples, #{seed => 1}),
            {ok, {atoll_bench_stats:median(Samples), Low, High}}
    end.

%% @doc The histogram of a latency in a round, if there is one with anything in it.
-spec histogram(Metric :: binary(), Round :: map()) -> {ok, atoll_histogram:export()} | none.
histogram(Name, Round) ->
    case [atoll_histogram:import(Export) || #{<<"histograms">> := #{Name := Export}} <- [Round]] of
        [{ok, #{count := Count} = Histogram}] when Count > 0 -> {ok, Histogram};
        _ -> none
    end.
