%% SPDX-License-Identifier: Apache-2.0
%% Which switches a point of the benchmark has.
-module(atoll_bench_matchstream_tests).

-include_lib("eunit/include/eunit.hrl").

a_stage_has_all_that_came_up_to_it_and_a_change_is_one_more_than_the_stage_before_test() ->
    Of = fun atoll_bench_matchstream:switches/1,
    ?assertEqual([], Of(stage2)),
    ?assertEqual([files, vm], Of(stage3)),
    ?assertEqual([files], Of(files)),
    ?assertEqual([backlog, files, vm], lists:sort(Of(backlog))),
    ?assertEqual(lists:sort([groups | Of(stage4)]), lists:sort(Of(groups))),
    [?assertEqual({Name, lists:sort([Name | matchstream_switches:of_stage(Stage - 1)])}, {Name, lists:sort(Of(Name))}) || {Name, Stage, _} <- matchstream_switches:names()].

what_is_of_redis_alone_is_not_measured_with_mnesia_test() ->
    ?assertEqual(ok, atoll_bench_matchstream:check(#{change => connections, store => redis})),
    {error, Sentence} = atoll_bench_matchstream:check(#{change => connections, store => mnesia}),
    ?assertMatch({match, _}, re:run(Sentence, "--store redis")).

%% What is measured beside a search would be the same twice.
a_search_has_its_own_bursts_test() ->
    {ok, Points} = atoll_bench:sweep(atoll_bench_matchstream, #{find => [no, at_once], rate => [1, 5], change => [stage3]}),
    ?assertEqual([{at_once, 1}, {no, 1}, {no, 5}], lists:sort([{Find, Rate} || #{find := Find, rate := Rate} <- Points])).

%% Without a search nothing has to be in time.
what_is_no_search_has_no_bound_test() ->
    {ok, Points} = atoll_bench:sweep(atoll_bench_matchstream, #{find => [no, clients], within => [100, 1000], change => [stage3]}),
    ?assertEqual([{clients, 100}, {clients, 1000}, {no, 100}], lists:sort([{Find, Ms} || #{find := Find, within := Ms} <- Points])).
