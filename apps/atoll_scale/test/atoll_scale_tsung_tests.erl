%% SPDX-License-Identifier: Apache-2.0
%% What came of a load of Tsung, from what it has written.
-module(atoll_scale_tsung_tests).

-include_lib("eunit/include/eunit.hrl").

log(Counts) ->
    #{samples => #{<<"request">> => #{count => 90, mean => 4.0, sd => 1.0, min => 1.0, max => 9.0}}, counts => Counts, users_max => 7, seconds => 3, complete => true}.

times(Ms) ->
    Histogram = atoll_histogram:new(few),
    _ = [atoll_histogram:record(round(1.0e6 * N), Histogram) || N <- Ms],
    atoll_histogram:export(Histogram).

what_has_failed_is_counted_by_why_test() ->
    ?assertEqual(
        #{
            requests => 90, failures => 12, refused => 3, per_second => 30.0,
            reasons => #{<<"econnrefused">> => 3, <<"timeout">> => 2, <<"503">> => 6, <<"404">> => 1}
        },
        atoll_scale_tsung:told(log(#{
            <<"200">> => 83, <<"503">> => 6, <<"404">> => 1, <<"error_connect_econnrefused">> => 3, <<"error_timeout">> => 2, <<"error_abort">> => 0, <<"users_count">> => 400
        }))
    ).

%% Then no request has ended.
connections_that_are_not_made_are_requests_that_failed_test() ->
    Refused = (log(#{<<"error_connect_econnrefused">> => 100}))#{samples := #{}},
    ?assertMatch(#{requests := 100, failures := 100, refused := 100}, atoll_scale_tsung:told(Refused)).

%% Each has one error more, which says why.
a_call_that_failed_has_failed_once_test() ->
    ?assertMatch(#{failures := 4}, atoll_scale_tsung:told(log(#{<<"error_rpc">> => 4, <<"error_rpc_undef">> => 4}))).

percentiles_are_those_of_single_times_test() ->
    #{p50_ms := Median, p99_ms := Most} = atoll_scale_tsung:told((log(#{}))#{times => times(lists:seq(1, 100))}),
    ?assert(abs(Median - 50) < 1 andalso abs(Most - 99) < 1),
    ?assertNot(is_map_key(p99_ms, atoll_scale_tsung:told(log(#{})))).
