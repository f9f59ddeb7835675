%% SPDX-License-Identifier: Apache-2.0
%% @doc What the report of a run consists of: for each metric its figures, each a
%% chart with the table of what it shows, and what was noted on the way.
-module(atoll_bench_report_parts).

-export([all/1, charts/1, tables/1]).

-export_type([parts/0, figure/0]).

-type figure() :: #{chart := atoll_bench_report_chart:chart(), table := atoll_bench_report_table:table()}.

-type parts() :: #{
    data := atoll_bench_report_data:data(),
    %% Those with at least one sample.
    metrics := [{atoll_bench_report_data:metric(), [figure(), ...]}],
    load := atoll_bench_report_chart:chart(),
    disturbed := atoll_bench_report_table:table(),
    rounds := atoll_bench_report_table:table()
}.

%% @doc The parts of a run's report.
-spec all(atoll_bench_report_data:data()) -> parts().
all(#{metrics := Metrics} = Data) ->
    #{
        data => Data,
        metrics => [
            {Metric, figures(Metric, Table, Data)}
         || Metric <- Metrics,
            #{rows := [_ | _]} = Table <- [atoll_bench_report_table:metric(Metric, Data)]
        ],
        load => atoll_bench_report_chart:load(Data),
        disturbed => atoll_bench_report_table:disturbed(Data),
        rounds => atoll_bench_report_table:rounds(Data)
    }.

figures(Metric, Table, Data) ->
    [#{chart => atoll_bench_report_chart:sweep(Metric, Data), table => Table}] ++
        [
            #{chart => Chart, table => atoll_bench_report_table:speedup(Chart)}
         || Chart <- atoll_bench_report_chart:speedup(Metric, Data)
        ] ++
        [
            #{chart => Chart, table => atoll_bench_report_table:percentiles(Metric, Data)}
         || Chart <- atoll_bench_report_chart:cdf(Metric, Data)
        ].

%% @doc All charts.
-spec charts(parts()) -> [atoll_bench_report_chart:chart()].
charts(#{metrics := Metrics, load := Load}) ->
    [Chart || {_, Figures} <- Metrics, #{chart := Chart} <- Figures] ++ [Load].

%% @doc All tables that have a file.
-spec tables(parts()) -> [atoll_bench_report_table:table()].
tables(#{metrics := Metrics, rounds := Rounds}) ->
    [Table || {_, Figures} <- Metrics, #{table := Table} <- Figures] ++ [Rounds].
