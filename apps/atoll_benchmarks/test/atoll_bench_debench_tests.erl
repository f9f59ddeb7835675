%% SPDX-License-Identifier: Apache-2.0
%% What the benchmark says of a window.
-module(atoll_bench_debench_tests).

-include_lib("eunit/include/eunit.hrl").

measures(Completed, Rate) ->
    Look = #{
        offered => 1000, completed => Completed, sent => 3000, cpu_us => 200000,
        labels => [{spawning, #{ok => Completed, latency => atoll_histogram:merge([])}}]
    },
    atoll_bench_debench:measures(Look, #{window_ms => 1000, offered => Rate}).

%% What was begun and not done is in the sum too, and in no operation.
an_operation_costs_something_only_where_goodput_follows_what_is_offered_test() ->
    Costs = fun(Measures) -> lists:sort(maps:keys(maps:with([messages_per_op, cpu_us_per_op], Measures))) end,
    [
        ?assertEqual({Rate, Completed, Said}, {Rate, Completed, Costs(measures(Completed, Rate))})
     || Rate <- [200, 0],
        {Completed, Said} <- [{950, [cpu_us_per_op, messages_per_op]}, {949, []}, {0, []}]
    ],
    ?assertMatch(#{messages_per_op := 3.0, cpu_us_per_op := 200.0}, measures(1000, 200)).

a_share_is_that_of_an_open_loop_test() ->
    ?assertMatch(#{goodput_percent := 94.9, failed_per_s := 51.0}, measures(949, 200)),
    ?assertNot(is_map_key(goodput_percent, measures(949, 0))).

%% Those of the published figures.
the_paper_s_shares_sizes_times_and_groups_can_be_swept_test() ->
    Sweep = #{
        nodes => [10, 100], global => [0.01, 0.33, 0.5, 1, 2], packet_size => [10, 1000, 100000], delay_us => [0, 10000],
        offered => [0, 200], workers => [10, 40], group_size => [10]
    },
    {ok, Points} = atoll_bench:sweep(atoll_bench_debench, Sweep),
    ?assertEqual(2 * 5 * 3 * 2 * 2 * 2 * 2, length(Points)).

%% Figures 9 and 11: throughput against the nodes, a line for each system, a panel for each share; and
%% Figure 10: the latencies of all kinds, likewise.
the_paper_s_graphs_are_drawn_of_a_run_test() ->
    {ok, Points} = atoll_bench:sweep(atoll_bench_debench, #{nodes => [10, 20, 30], global => [0.01, 1]}),
    Header = #{
        benchmark => debench, variant => atoll_bench_debench:variant(), points => Points,
        parameters => [maps:with([name, values, scales], P) || P <- atoll_bench_debench:parameters()],
        metrics => [M#{label := name, unit := none} || M <- atoll_bench_debench:metrics()]
    },
    Hist = atoll_histogram:new(),
    ok = atoll_histogram:record(1000, Hist),
    Rounds = [
        #{point => N, round => 1, values => #{goodput_per_s => 1}, histograms => #{register => atoll_histogram:export(Hist)}}
     || N <- lists:seq(0, length(Points) - 1)
    ],
    Read = fun(Term) -> {ok, Value} = atoll_bench_json:decode(iolist_to_binary(atoll_bench_json:encode(Term))), Value end,
    Run = #{file => "debench.jsonl", header => Read(Header), rounds => Read(Rounds), errors => [], status => complete},
    Charts = atoll_bench_report_parts:charts(atoll_bench_report_parts:all(atoll_bench_report_data:read(1, Run))),
    [
        begin
            [#{series := Series, x := X, panels := Panels}] = [Chart || #{id := I} = Chart <- Charts, I =:= Id],
            ?assertEqual([<<"mesh">>, <<"groups">>], Series),
            ?assertMatch(#{ticks := [10, 20, 30]}, X),
            ?assertEqual(Count, length(Panels)),
            [?assertEqual([3, 3], [length(At) || #{points := At} <- Lines]) || #{lines := Lines} <- Panels]
        end
        %% Of a latency there is one for each percentile, too.
     || {Id, Count} <- [{<<"debench-1-goodput_per_s">>, 2}, {<<"debench-1-register">>, 4}]
    ].
