%% SPDX-License-Identifier: Apache-2.0
-module(atoll_test_cost_tests).

-include_lib("eunit/include/eunit.hrl").

%% A hundred thousand words are made; with them or without, it costs the same.
what_lives_on_the_heap_costs_nothing_test() ->
    Garbage = fun(_) -> lists:foreach(fun(N) -> lists:seq(1, N) end, lists:duplicate(1000, 1000)) end,
    [Small, Large] = [atoll_test_cost:reductions(fun() -> lists:seq(1, N) end, Garbage) || N <- [10, 50000]],
    ?assert(Small > 1000),
    ?assert(abs(Large - Small) < Small div 10, {Small, Large}).

what_costs_more_counts_more_test() ->
    [One, Ten] = [atoll_test_cost:reductions(fun() -> N end, fun(Times) -> lists:foreach(fun(_) -> lists:seq(1, 100) end, lists:seq(1, Times)) end) || N <- [1000, 10000]],
    ?assert(abs(Ten - 10 * One) < One, {One, Ten}).

what_fails_is_an_error_of_the_caller_test() ->
    ?assertError({oops, _}, atoll_test_cost:reductions(fun() -> error(oops) end, fun(_) -> ok end)).
