%% SPDX-License-Identifier: Apache-2.0
%% @doc The single machine total weighted tardiness problem: in which order one machine does its jobs,
%% so that the weighted sum of how late they are is least.
-module(aco_problem).

-export([new/1, size/1, jobs/1, job/2]).

-export_type([problem/0, job/0, job_number/0]).

%% Jobs are numbered from 1.
-type job_number() :: pos_integer().

-type job() :: {job_number(), Duration :: pos_integer(), Weight :: non_neg_integer(), Due :: non_neg_integer()}.

%% The jobs by number.
-opaque problem() :: tuple().

%% @doc A problem of jobs in the order of their numbers.
-spec new([{Duration :: non_neg_integer(), Weight :: non_neg_integer(), Due :: non_neg_integer()}, ...]) ->
    {ok, problem()} | {error, {no_duration, job_number()}}.
new(Jobs) ->
    Numbered = [{Number, Duration, Weight, Due}
                || {Number, {Duration, Weight, Due}} <- lists:zip(lists:seq(1, length(Jobs)), Jobs)],
    case lists:keyfind(0, 2, Numbered) of
        false -> {ok, list_to_tuple(Numbered)};
        {Number, 0, _, _} -> {error, {no_duration, Number}}
    end.

%% @doc How many jobs it has.
-spec size(problem()) -> pos_integer().
size(Problem) -> tuple_size(Problem).

%% @doc All jobs, by ascending number.
-spec jobs(problem()) -> [job(), ...].
jobs(Problem) -> tuple_to_list(Problem).

%% @doc One job.
-spec job(job_number(), problem()) -> job().
job(Number, Problem) -> element(Number, Problem).
