%% SPDX-License-Identifier: Apache-2.0
%% OR-Library's problems of 40 jobs and their best known costs. They are not
%% part of this repository: ATOLL_ORLIB is the folder that has wt40.txt and
%% wtopt40.txt. Without it the suite is skipped, and says so.
-module(aco_orlib_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).

-export([
    the_costs_of_fixed_orders_are_the_known_ones/1,
    with_local_search_a_hundred_of_the_problems_are_solved_and_none_below_its_optimum/1
]).

%% For each problem, as a goal; a run that is far slower on a busy machine is cut off here.
-define(EACH_MS, 10_000).

suite() -> [{timetrap, {minutes, 25}}].

all() ->
    [
        the_costs_of_fixed_orders_are_the_known_ones,
        with_local_search_a_hundred_of_the_problems_are_solved_and_none_below_its_optimum
    ].

init_per_suite(Config) ->
    case os:getenv("ATOLL_ORLIB") of
        false ->
            {skip, "ATOLL_ORLIB names no folder with wt40.txt and wtopt40.txt"};
        Folder ->
            {ok, Text} = file:read_file(filename:join(Folder, "wt40.txt")),
            {ok, List} = file:read_file(filename:join(Folder, "wtopt40.txt")),
            {ok, Optima} = atoll_bench_aco_file:parse_optima(List),
            125 = length(Optima),
            Problems = [begin {ok, P} = atoll_bench_aco_file:parse(Text, #{problem => K}), P end || K <- lists:seq(1, 125)],
            [{problems, lists:zip(Problems, Optima)} | Config]
    end.

end_per_suite(_) -> ok.

the_costs_of_fixed_orders_are_the_known_ones(Config) ->
    Problems = proplists:get_value(problems, Config),
    [begin
         {Problem, Optimum} = lists:nth(K, Problems),
         Identity = aco_schedule:cost(lists:seq(1, 40), Problem),
         {Edd, _} = aco_schedule:edd(Problem),
         {Mdd, _} = aco_instances:mdd(Problem),
         ?assertEqual({K, Costs}, {K, [Identity, Edd, Mdd, Optimum]})
     end || {K, Costs} <- [{1, [16672, 1588, 1643, 913]}, {2, [11036, 5226, 3261, 1225]},
                           {3, [13174, 3051, 1983, 537]}, {25, [241293, 245081, 159927, 128747]},
                           {125, [191852, 207187, 121819, 104531]}]].

with_local_search_a_hundred_of_the_problems_are_solved_and_none_below_its_optimum(Config) ->
    {ok, Options} = aco_options:new(#{local_search => o12}),
    Ran = [begin
               {Micros, #{best := Best, order := Order}} = timer:tc(fun() ->
                   aco_seq:run(#{problem => Problem, options => Options, colonies => 1, until => Optimum})
               end),
               ?assertEqual(Best, aco_schedule:cost(Order, Problem)),
               ?assert(aco_instances:is_feasible(Order, Problem)),
               ?assert(Best >= Optimum),
               {Best =:= Optimum, Micros div 1000}
           end || {Problem, Optimum} <- proplists:get_value(problems, Config)],
    Solved = [Ms || {true, Ms} <- Ran, Ms =< ?EACH_MS],
    ct:pal("~b of 125 solved, each within ~b ms", [length(Solved), lists:max(Solved)]),
    ?assert(length(Solved) >= 100).
