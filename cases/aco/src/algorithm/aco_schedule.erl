%% SPDX-License-Identifier: Apache-2.0
%% @doc Orders of jobs, and what they cost: the sum over all jobs of weight
%% times how long after its due date the job ends.
-module(aco_schedule).

-export([solution/2, cost/2, edd/1, newer/2]).

-export_type([cost/0, order/0, solution/0]).

-type cost() :: non_neg_integer().

%% Every job once, the first one first.
-type order() :: [aco_problem:job_number(), ...].

-type solution() :: {cost(), order()}.

%% @doc An order with its cost.
-spec solution(order(), aco_problem:problem()) -> solution().
solution(Order, Problem) ->
    {cost(Order, Problem), Order}.

%% @doc What an order costs.
-spec cost(order(), aco_problem:problem()) -> cost().
cost(Order, Problem) ->
    cost(Order, Problem, 0, 0).

cost([Number | Order], Problem, Time, Cost) ->
    case aco_problem:job(Number, Problem) of
        {_, Duration, Weight, Due} when Time + Duration > Due ->
            cost(Order, Problem, Time + Duration, Cost + Weight * (Time + Duration - Due));
        {_, Duration, _, _} ->
            cost(Order, Problem, Time + Duration, Cost)
    end;
cost([], _, _, Cost) ->
    Cost.

%% @doc Earliest due date first; of equal ones the lowest number.
-spec edd(aco_problem:problem()) -> solution().
edd(Problem) ->
    solution([Number || {Number, _, _, _} <- lists:keysort(4, aco_problem:jobs(Problem))], Problem).

%% @doc The better of two solutions; of equally good ones the newer.
-spec newer(New :: solution(), Old :: solution()) -> solution().
newer({New, _} = Solution, {Old, _}) when New =< Old -> Solution;
newer(_, Old) -> Old.
