%% SPDX-License-Identifier: Apache-2.0
%% @doc How good it looks to do a job next, before anything is learned: the
%% visibility of the ant system, by one of three rules.
%%
%%   mdd  1 / modified due date: the due date, or when the job would end
%%   edd  1 / due date
%%   au   apparent urgency: weight per time, less as the job has time left,
%%        in units of twice the mean duration of what is left to do
-module(aco_heuristic).

-export([worth/4]).

-export_type([rule/0]).

-type rule() :: mdd | edd | au.

%% How many mean durations ahead apparent urgency looks.
-define(AHEAD, 2).

%% @doc The worth of doing this job next at this time. `Mean' is the mean
%% duration of the jobs that are not done yet, this one included.
-spec worth(rule(), aco_problem:job(), Time :: non_neg_integer(), Mean :: float()) -> float().
worth(mdd, {_, Duration, _, Due}, Time, _) when Time + Duration > Due ->
    1 / (Time + Duration);
worth(mdd, {_, _, _, Due}, _, _) ->
    1 / Due;
worth(edd, {_, _, _, Due}, _, _) ->
    1 / max(Due, 1);
worth(au, {_, Duration, Weight, Due}, Time, Mean) ->
    Weight / Duration * math:exp(-max(Due - (Time + Duration), 0) / (?AHEAD * Mean)).
