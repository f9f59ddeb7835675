%% SPDX-License-Identifier: Apache-2.0
-module(atoll_bench_saturation_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(OPTIONS, #{first => 4, most => 4096, width => 1.15, factor => 3}).
-define(MEAN, 1000).

%% A service that follows so many requests in a second, and beyond that takes ever longer.
service(Limit) ->
    fun(Rate) when Rate =< Limit -> #{mean_ns => ?MEAN, unfinished => 0};
       (_) -> #{mean_ns => 100 * ?MEAN, unfinished => 0}
    end.

searched(Search, Service) -> searched(Search, Service, []).

searched(Search, Service, Tried) ->
    case atoll_bench_saturation:next(Search) of
        {found, Found} -> {Found, lists:reverse(Tried)};
        {try_rate, Rate} -> searched(atoll_bench_saturation:tried(Service(Rate), Search), Service, [Rate | Tried])
    end.

new() -> atoll_bench_saturation:new(?OPTIONS).

what_is_found_holds_the_limit_in_between_test_() ->
    atoll_prop:test(?FUNCTION_NAME, prop_limit(), 500).

prop_limit() ->
    ?FORALL(Limit, range(4, 4095), begin
        {#{low := Low, high := High, mean_ns := Mean}, Tried} = searched(new(), service(Limit)),
        Low =< Limit andalso High > Limit andalso (High =< 1.15 * Low orelse High =< Low + 1) andalso Mean =:= ?MEAN andalso
            length(Tried) =< 20 andalso Tried =:= lists:uniq(Tried)
    end).

a_search_that_goes_on_tries_both_ends_and_is_over_test_() ->
    atoll_prop:test(?FUNCTION_NAME, prop_again(), 500).

prop_again() ->
    ?FORALL(Limit, range(5, 4095), begin
        {#{low := Low, high := High} = Found, _} = searched(new(), service(Limit)),
        searched(atoll_bench_saturation:again(?OPTIONS, Found), service(Limit)) =:= {Found, lists:usort([4, Low, High])}
    end).

a_limit_that_has_moved_is_found_again_test_() ->
    atoll_prop:test(?FUNCTION_NAME, prop_moved(), 500).

prop_moved() ->
    ?FORALL({Before, Now}, {range(4, 4095), range(4, 4095)}, begin
        {Found, _} = searched(new(), service(Before)),
        {#{low := Low, high := High}, _} = searched(atoll_bench_saturation:again(?OPTIONS, Found), service(Now)),
        Low =< Now andalso High > Now andalso (High =< 1.15 * Low orelse High =< Low + 1)
    end).

one_that_follows_all_has_no_upper_end_test() ->
    ?assertMatch({#{low := 4096, high := none}, [4, 8 | _]}, searched(new(), service(1_000_000))).

one_that_does_not_follow_the_first_has_no_lower_end_test() ->
    ?assertMatch({#{low := 0, high := 4}, [4]}, searched(new(), fun(_) -> #{mean_ns => ?MEAN, unfinished => 1} end)),
    ?assertMatch({#{low := 0, high := 4}, [4]}, searched(new(), fun(_) -> #{mean_ns => none, unfinished => 0} end)).

unfinished_requests_saturate_and_so_does_a_mean_of_more_than_three_times_test() ->
    Mean = fun(Factor) -> fun(4) -> #{mean_ns => ?MEAN, unfinished => 0}; (_) -> #{mean_ns => Factor * ?MEAN, unfinished => 0} end end,
    ?assertMatch({#{low := 4096, high := none}, _}, searched(new(), Mean(3))),
    ?assertMatch({#{low := 4, high := 5}, _}, searched(new(), Mean(3.01))),
    Unfinished = fun(8) -> #{mean_ns => ?MEAN, unfinished => 1}; (_) -> #{mean_ns => ?MEAN, unfinished => 0} end,
    ?assertMatch({#{high := 8}, _}, searched(new(), Unfinished)).
