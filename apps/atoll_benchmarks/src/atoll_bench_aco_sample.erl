%% SPDX-License-Identifier: Apache-2.0
%% @doc Problems to try things with, for who has none: drawn as those of
%% OR-Library are (C. N. Potts and L. N. Van Wassenhove, 1985), durations from 1
%% to 100, weights from 1 to 10, and due dates from a part of the time that all
%% jobs take: around 40 % of it, over a range of 40 %. What is drawn hangs on the
%% numbers given alone.
-module(atoll_bench_aco_sample).

-export([problem/2]).

-define(LATENESS, 0.6).
-define(RANGE, 0.4).

%% @doc The sample of this number with so many jobs.
-spec problem(Jobs :: pos_integer(), Number :: pos_integer()) -> aco_problem:problem().
problem(Jobs, Number) ->
    Seed = rand:seed_s(exsss, {Jobs, Number, 0}),
    {Durations, AfterDurations} = draws(Jobs, 1, 100, Seed),
    {Weights, AfterWeights} = draws(Jobs, 1, 10, AfterDurations),
    All = lists:sum(Durations),
    Least = round(All * (1 - ?LATENESS - ?RANGE / 2)),
    {Dues, _} = draws(Jobs, Least, Least + round(All * ?RANGE), AfterWeights),
    {ok, Problem} = aco_problem:new(lists:zip3(Durations, Weights, Dues)),
    Problem.

draws(Count, Least, Most, Random) ->
    lists:mapfoldl(
        fun(_, State) ->
            {Draw, Next} = rand:uniform_s(Most - Least + 1, State),
            {Least + Draw - 1, Next}
        end,
        Random,
        lists:seq(1, Count)).
