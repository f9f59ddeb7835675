%% SPDX-License-Identifier: Apache-2.0
%% Sweeps, on the benchmarks that there are.
-module(atoll_bench_tests).

-include_lib("eunit/include/eunit.hrl").

every_benchmark_can_be_swept_as_it_stands_test_() ->
    [
        {Name, fun() ->
            {ok, [Point | _] = Points} = atoll_bench:sweep(Module, #{}),
            Names = lists:sort([P || #{name := P} <- Module:parameters()]),
            ?assertEqual(Names, lists:sort(maps:keys(Point))),
            ?assert(lists:member(Module:variant(), Names)),
            %% Each is compared with something.
            Groups = atoll_bench_plan:groups(Points, Module:variant()),
            ?assert(lists:all(fun(Group) -> length(Group) > 1 end, Groups))
        end}
     || {Name, Module} <- atoll_bench:all()
    ].

a_ping_pong_is_measured_once_with_the_one_actor_that_it_has_test() ->
    Sweep = #{kind => [ping_pong, request], actors => [16, 4], size => [100, 200], system => [stock]},
    {ok, Points} = atoll_bench:sweep(atoll_bench_dist, Sweep),
    Of = fun(Wanted) -> [{Actors, Size} || #{kind := Kind, actors := Actors, size := Size} <- Points, Kind =:= Wanted] end,
    ?assertEqual([{1, 100}, {1, 200}], lists:sort(Of(ping_pong))),
    ?assertEqual([{4, 100}, {4, 200}, {16, 100}, {16, 200}], lists:sort(Of(request))).

%% Half a millisecond is a round trip too.
a_number_may_have_a_fraction_test() ->
    Sweep = #{kind => [request], rtt => [0.5, 20], actors => [1], size => [1], system => [stock, direct]},
    {ok, Points} = atoll_bench:sweep(atoll_bench_dist, Sweep),
    ?assertEqual([0.5, 0.5, 20, 20], [Rtt || #{rtt := Rtt} <- Points]),
    {error, Error} = atoll_bench:sweep(atoll_bench_dist, #{rtt => [-0.5]}),
    ?assertEqual("rtt must be a number from 0 to 60000, not \"-0.5\"", lists:flatten(atoll_bench:format_error(Error))).

%% What is to be compared differs in its arguments and in the way between its nodes alone, and the carrier is told its kind.
every_system_of_dist_has_arguments_of_its_own_test() ->
    Systems = atoll_bench_dist_system:all(),
    Ways = [{atoll_bench_dist_system:way(System), atoll_bench_dist_system:args(System), atoll_bench_dist_system:has_tls(System)} || System <- Systems],
    ?assertEqual(length(Systems), length(lists:usort(Ways))),
    ?assertMatch({_, [_, "atoll", _, "atoll_dist", "[{kind,{lanes,16}}]"]}, lists:split(6, atoll_bench_dist_system:args(lanes16))).

%% The profile for latency is measured where it is asked for.
stock_and_each_kind_of_the_carrier_are_compared_unless_told_otherwise_test() ->
    Of = fun(Sweep) ->
        {ok, Points} = atoll_bench:sweep(atoll_bench_dist, Sweep#{kind => [request], actors => [1], size => [100]}),
        [System || #{system := System} <- Points]
    end,
    ?assertEqual([stock, stock_tuned, direct, lanes4, lanes16], Of(#{})),
    ?assertEqual([direct_latency], Of(#{system => [direct_latency]})).

values_take_the_place_of_the_default_ones_test() ->
    {ok, Points} = atoll_bench:sweep(atoll_bench_names, #{nodes => [3], callers => [1], on => [first]}),
    ?assertEqual(
        [
            #{nodes => 3, callers => 1, on => first, rate => 0, system => System}
         || System <- [global, pg, s_group, s_group_of_4]
        ],
        Points
    ).

%% Unless only that is asked for.
each_node_has_the_fewest_callers_where_the_first_has_more_test() ->
    Of = fun(Sweep) ->
        {ok, Points} = atoll_bench:sweep(atoll_bench_names, Sweep#{nodes => [4], system => [pg]}),
        [{On, Callers} || #{on := On, callers := Callers} <- Points]
    end,
    ?assertEqual([{first, 1}, {each, 1}, {first, 100}], Of(#{})),
    ?assertEqual([{each, 5}, {each, 50}], Of(#{on => [each], callers => [5, 50]})),
    ?assertEqual([{first, 5}, {first, 50}], Of(#{on => [first], callers => [5, 50]})).

what_is_wrong_is_named_test_() ->
    [
        ?_assertEqual(Sentence, sentence(Sweep))
     || {Sweep, Sentence} <- [
            {#{nodes => [1]}, "nodes must be a whole number from 2 to 64, not \"1\""},
            {#{nodes => [2, 2]}, "nodes has the value 2 twice"},
            {#{system => [syn]}, "system must be one of global, pg, s_group, s_group_of_4, not \"syn\""},
            {#{on => [last]}, "on must be one of first, each, not \"last\""},
            {#{nods => [2]}, "there is no parameter nods; there are nodes, callers, on, rate, system"},
            {
                #{nodes => [6], callers => [1], on => [first]},
                "with callers 1, nodes 6, on first, rate 0, system s_group_of_4: "
                "groups of four are of two to four nodes, or of a multiple of four"
            }
        ]
    ].

sentence(Sweep) ->
    {error, Error} = atoll_bench:sweep(atoll_bench_names, Sweep),
    unicode:characters_to_list(atoll_bench:format_error(Error)).

what_cannot_be_measured_is_refused_before_anything_starts_test() ->
    {error, Error} = atoll_bench:sweep(atoll_bench_dist, #{actors => [10000], size => [134217728], kind => [request]}),
    ?assertEqual(
        "with actors 10000, kind request, rtt 0, size 134217728, system stock: that is more than 4 GiB under way at once",
        unicode:characters_to_list(atoll_bench:format_error(Error))
    ).

all_talk_to_all_where_all_are_connected_test() ->
    Sweep = #{nodes => [8], workload => [standing, all_to_all]},
    {ok, Points} = atoll_bench:sweep(atoll_bench_overlay, Sweep),
    Of = fun(Workload) -> [Overlay || #{workload := W, overlay := Overlay} <- Points, W =:= Workload] end,
    ?assertEqual([bare, stock, mesh, hyparview], Of(standing)),
    ?assertEqual([stock, carrier, groups], Of(all_to_all)),
    ?assertMatch({error, {no_points, _}}, atoll_bench:sweep(atoll_bench_overlay, #{workload => [all_to_all], overlay => [bare, scamp]})).

work_is_placed_on_unequal_nodes_and_a_herd_on_equal_ones_test() ->
    {ok, Points} = atoll_bench:sweep(atoll_bench_place, #{workload => [herd], nodes => [20], each => [10]}),
    ?assertEqual([random, first, claims], [Rule || #{rule := Rule, slow := 0, work := 0} <- Points]),
    {error, {no_points, _} = Error} = atoll_bench:sweep(atoll_bench_place, #{workload => [herd], rule => [attributes, round_robin]}),
    ?assertEqual(
        "none of the combinations of these values can be measured; "
        "they can with workload unequal, or with rule random, first or claims",
        unicode:characters_to_list(atoll_bench:format_error(Error))
    ).

slow_nodes_are_evenly_among_the_others_test() ->
    ?assertEqual([2, 1, 2, 1], atoll_bench_unequal:shares(4, 2, {1, 2})),
    ?assertEqual([2, 2, 1, 2, 1], atoll_bench_unequal:shares(5, 2, {1, 2})),
    ?assertEqual([2, 2], atoll_bench_unequal:shares(2, 0, {1, 2})),
    ?assertEqual([1, 1, 1], atoll_bench_unequal:shares(3, 3, {1, 2})).

what_the_machine_would_hold_up_is_no_measure_of_placing_test_() ->
    Processors = erlang:system_info(logical_processors_available),
    [
        {timeout, 60, ?_assertMatch({match, _}, re:run(placing_sentence(Sweep), Ends ++ "$"))}
     || {Sweep, Ends} <- [
            {#{nodes => [2], slow => [3]}, "more nodes are slow than there are"},
            {#{slow_percent => [30]}, "the slow nodes are not slower"}
        ] ++ [
            {
                #{nodes => [64], slow => [0], percent => [100]},
                case atoll_quota:available() of
                    ok -> "the nodes may use 64.00 processors together, and three quarters of this machine's [0-9]+ are the most";
                    %% It may not be known then how many there are.
                    {error, _} -> "a quota of processor time (needs Linux: it is a control group|cannot be set here: .*)"
                end
            }
         || not is_integer(Processors) orelse Processors =< 64
        ]
    ].

placing_sentence(Sweep) ->
    {error, Error} = atoll_bench:sweep(atoll_bench_place, Sweep),
    unicode:characters_to_list(atoll_bench:format_error(Error)).
