%% SPDX-License-Identifier: Apache-2.0
%% @doc The distribution of times as a curve that is fine enough for the eye, from
%% the buckets of a histogram.
-module(atoll_bench_report_curve).

-export([points/1, marks/1]).

-export_type([bucket/0]).

-type bucket() :: {LowNs :: number(), HighNs :: number(), Count :: pos_integer()}.

%% There is a point wherever the share below rose by so much, or the share above
%% fell by so much of itself: a few hundred, also in the tail.
-define(STEP, 0.004).
-define(TAIL, 0.12).
%% And where one of these is reached, which are marked and told in words.
-define(MARKS, [0.5, 0.9, 0.99, 0.999]).

%% @doc The share of all that took at most a time, for increasing times. It starts
%% at 0 and ends at 1. The first point at or above 0.5, 0.9, 0.99 and 0.999 is that
%% of the bucket in which this percentile lies.
-spec points([bucket()]) -> [[number()]].
points([]) ->
    [];
points([{Low, _, _} | _] = Buckets) ->
    All = lists:sum([Count || {_, _, Count} <- Buckets]),
    [[max(1, Low), 0.0] | thin(Buckets, 0, 0.0, All)].

thin([{_, High, _}], _Below, _Last, _All) ->
    [[max(1, High), 1.0]];
thin([{_, High, Count} | Rest], Below, Last, All) ->
    Share = (Below + Count) / All,
    Marked = lists:any(fun(Mark) -> Below / All < Mark andalso Share >= Mark end, ?MARKS),
    case Marked orelse Share - Last > ?STEP orelse (1 - Share) < (1 - Last) * (1 - ?TAIL) of
        true -> [[max(1, High), Share] | thin(Rest, Below + Count, Share, All)];
        false -> thin(Rest, Below + Count, Last, All)
    end.

%% @doc Which points, counted from 0, are marked: where half of all, and 90, 99 and 99.9
%% per cent, are reached.
-spec marks([[number()]]) -> [non_neg_integer()].
marks([]) ->
    [];
marks(Points) ->
    lists:uniq([length(lists:takewhile(fun([_, Share]) -> Share < Mark end, Points)) || Mark <- ?MARKS]).
