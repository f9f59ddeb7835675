%% SPDX-License-Identifier: Apache-2.0
%% @doc What the doped clients of a node have done, as numbers that all of them add to at once, and
%% the latencies of a measured time.
%%
%% Latency is the time from when a message was to be said until its sender knew that it was
%% delivered. It is counted of those that were to be said in the measured time, whenever they were
%% delivered. For the quality of service, as in the paper, half of it is compared with the threshold.
%%
%% Times are microseconds of the node's monotonic clock, and latencies in the histogram nanoseconds.
-module(im_traffic_count).

-export([new/1, add/2, delivered/3, measure/2, look/1, latency/1, now_us/0]).

-export_type([count/0, look/0]).

-record(count, {
    numbers :: counters:counters_ref(),
    %% When the measured time began, and ended.
    measured :: atomics:atomics_ref(),
    latency :: atoll_histogram:hist(),
    threshold_us :: pos_integer()
}).

-opaque count() :: #count{}.

-type look() :: #{
    sent := non_neg_integer(),
    received := non_neg_integer(),
    delivered := non_neg_integer(),
    %% Of these, below the threshold.
    below := non_neg_integer(),
    %% Of an open loop, what was not said, since too much was waiting.
    shed := non_neg_integer()
}.

-define(FIELDS, [sent, received, delivered, below, shed]).
-define(NEVER, (1 bsl 62)).

%% @doc Nothing was done, and nothing is measured yet.
-spec new(ThresholdUs :: pos_integer()) -> count().
new(Threshold) ->
    Measured = atomics:new(2, [{signed, true}]),
    ok = atomics:put(Measured, 1, ?NEVER),
    ok = atomics:put(Measured, 2, ?NEVER),
    #count{numbers = counters:new(5, [write_concurrency]), measured = Measured, latency = atoll_histogram:new(), threshold_us = Threshold}.

%% @doc One more.
-spec add(sent | received | shed, count()) -> ok.
add(sent, #count{numbers = Numbers}) -> counters:add(Numbers, 1, 1);
add(received, #count{numbers = Numbers}) -> counters:add(Numbers, 2, 1);
add(shed, #count{numbers = Numbers}) -> counters:add(Numbers, 5, 1).

%% @doc A message was delivered now, so long after it was to be said.
-spec delivered(Us :: non_neg_integer(), Now :: integer(), count()) -> ok.
delivered(Us, Now, #count{numbers = Numbers, measured = Measured, latency = Latency, threshold_us = Threshold}) ->
    ok = counters:add(Numbers, 3, 1),
    case Us div 2 < Threshold of
        true -> counters:add(Numbers, 4, 1);
        false -> ok
    end,
    Since = Now - Us,
    case Since >= atomics:get(Measured, 1) andalso Since < atomics:get(Measured, 2) of
        true -> atoll_histogram:record(1000 * Us, Latency);
        false -> ok
    end.

%% @doc The measured time begins, or ends, now.
-spec measure('begin' | 'end', count()) -> ok.
measure('begin', #count{measured = Measured}) -> atomics:put(Measured, 1, now_us());
measure('end', #count{measured = Measured}) -> atomics:put(Measured, 2, now_us()).

%% @doc What was done until now.
-spec look(count()) -> look().
look(#count{numbers = Numbers}) ->
    maps:from_list([{Field, counters:get(Numbers, I)} || {I, Field} <- lists:zip(lists:seq(1, 5), ?FIELDS)]).

%% @doc The latencies of the measured time.
-spec latency(count()) -> atoll_histogram:export().
latency(#count{latency = Latency}) -> atoll_histogram:export(Latency).

%% @doc The time now.
-spec now_us() -> integer().
now_us() -> erlang:monotonic_time(microsecond).
