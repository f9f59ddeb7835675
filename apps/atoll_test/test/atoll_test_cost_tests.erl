%% SPDX-License-Identifier: Apache-2.0
-module(atoll_test_cost_tests).

-include_lib("eunit/include/eunit.hrl").

%% A million words live there, or next to none.
what_lives_on_the_heap_costs_nothing_test() ->
    Garbage = fun(Made) -> ok = lists:foreach(fun(N) -> lists:seq(1, N) end, lists:duplicate(1000, 1000)), Made end,
    [Small, Large] = [atoll_test_cost:reductions(fun() -> lists:seq(1, N) end, Garbage) || N <- [10, 500000]],
    ?assert(Small > 1000),
    ?assert(abs(Large - Small) < Small div 10, {Small, Large}).

what_collects_however_large_its_heap_is_has_no_cost_test() ->
    ?assertError({needs_more_words, _}, atoll_test_cost:reductions(fun() -> lists:seq(1, 10) end, fun(_) -> garbage_collect() end)).

what_costs_more_counts_more_test() ->
    [One, Ten] = [atoll_test_cost:reductions(fun() -> N end, fun(Times) -> lists:foreach(fun(_) -> lists:seq(1, 100) end, lists:seq(1, Times)) end) || N <- [1000, 10000]],
    ?assert(abs(Ten - 10 * One) < One, {One, Ten}).

what_fails_is_an_error_of_the_caller_test() ->
    ?assertError({oops, _}, atoll_test_cost:reductions(fun() -> error(oops) end, fun(_) -> ok end)).
