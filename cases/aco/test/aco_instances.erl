%% SPDX-License-Identifier: Apache-2.0
%% Problems for the tests, and their exact optimum.
-module(aco_instances).

-include_lib("proper/include/proper.hrl").

-export([of_jobs/1, problem/2, random/2, optimum/1, orders/1, options/1, is_feasible/2, mdd/1]).

%% Jobs as {Duration, Weight, Due}.
of_jobs(Jobs) ->
    {ok, Problem} = aco_problem:new(Jobs),
    Problem.

%% A PropEr generator. The due dates are about as tight as the jobs are long.
problem(Least, Most) ->
    ?LET(Size, integer(Least, Most),
        ?LET(Jobs, vector(Size, {integer(1, 20), integer(0, 10), integer(0, 8 * Size)}), of_jobs(Jobs))).

%% The same problem for the same seed.
random(Size, Seed) ->
    {Jobs, _} = lists:mapfoldl(
        fun(_, S0) ->
            {Duration, S1} = rand:uniform_s(100, S0),
            {Weight, S2} = rand:uniform_s(10, S1),
            {Due, S3} = rand:uniform_s(40 * Size, S2),
            {{Duration, Weight, Due}, S3}
        end,
        rand:seed_s(exsss, Seed),
        lists:seq(1, Size)),
    of_jobs(Jobs).

%% Dynamic programming over sets of jobs: whichever are done first, they end at
%% the same time, and their cheapest order ends with one of them (Held and Karp, 1962).
optimum(Problem) ->
    Jobs = aco_problem:jobs(Problem),
    All = (1 bsl length(Jobs)) - 1,
    Costs = lists:foldl(
        fun(Set, Known) ->
            Members = [{Bit, Job} || {Number, _, _, _} = Job <- Jobs, Bit <- [1 bsl (Number - 1)], Set band Bit =/= 0],
            Ends = lists:sum([Duration || {_, {_, Duration, _, _}} <- Members]),
            Cost = lists:min([maps:get(Set bxor Bit, Known) + Weight * max(0, Ends - Due)
                              || {Bit, {_, _, Weight, Due}} <- Members]),
            Known#{Set => Cost}
        end,
        #{0 => 0},
        lists:seq(1, All)),
    maps:get(All, Costs).

%% All orders of these.
orders([]) -> [[]];
orders(Numbers) -> [[N | Rest] || N <- Numbers, Rest <- orders(Numbers -- [N])].

options(Given) ->
    {ok, Options} = aco_options:new(Given),
    Options.

%% Whether an order has every job of the problem once.
is_feasible(Order, Problem) ->
    lists:sort(Order) =:= lists:seq(1, aco_problem:size(Problem)).

%% Always the job next whose modified due date is earliest: its due date,
%% or when it would end if that is later. Of equal ones the lowest number.
mdd(Problem) ->
    aco_schedule:solution(mdd(0, aco_problem:jobs(Problem)), Problem).

mdd(_, []) ->
    [];
mdd(Time, Jobs) ->
    {_, Next} = lists:min([{max(Time + Duration, Due), Number} || {Number, Duration, _, Due} <- Jobs]),
    {value, {_, Duration, _, _}, Rest} = lists:keytake(Next, 1, Jobs),
    [Next | mdd(Time + Duration, Rest)].
