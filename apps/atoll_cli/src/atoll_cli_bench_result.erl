%% @doc What a run has measured: a row for each point.
-module(atoll_cli_bench_result).

-export([print/2]).

%% @doc Prints it, as a table or as one JSON object.
-spec print(Json :: boolean(), atoll_bench_file:run()) -> ok.
print(true, Run) -> atoll_cli_io:print_json(json(Run));
print(false, Run) -> atoll_cli_io:print(table(Run)).

json(#{file := File, status := Status} = Run) ->
    {[
        {file, unicode:characters_to_binary(File)},
        {status, Status},
        {rows, [{row(Point, Run)} || Point <- points(Run)]}
    ]}.

row(Point, Run) ->
    lists:append([
        [{binary_to_atom(Key), Value} || {Key, Value} <- parameters(Point, Run)],
        lists:append([numbers(Metric, Point, Run) || Metric <- metrics(Run)])
    ]).

table(#{file := File} = Run) ->
    Parameters = [Name || #{<<"name">> := Name} <- declared(Run)],
    Metrics = metrics(Run),
    Columns =
        [{left, Name} || Name <- Parameters] ++
            lists:append([heads(Metric) || Metric <- Metrics]),
    Rows = [
        [text(Value) || {_, Value} <- parameters(Point, Run)] ++
            lists:append([cells(Metric, Point, Run) || Metric <- Metrics])
     || Point <- points(Run)
    ],
    [atoll_cli_table:format(Columns, Rows), "\nkept in ", File, $\n].

heads(#{<<"kind">> := <<"latency">>, <<"label">> := Label}) ->
    [{right, [Label, " p50 \x{b5}s"]}, {right, "p99 \x{b5}s"}];
heads(#{<<"label">> := Label, <<"unit">> := Unit}) ->
    [{right, [Label, " ", Unit]}, {right, "95 %"}].

cells(Metric, Point, Run) ->
    case {numbers(Metric, Point, Run), Metric} of
        {[], _} ->
            ["-", "-"];
        {[{_, P50}, {_, P99}], #{<<"kind">> := <<"latency">>}} ->
            [atoll_cli_table:decimal(P50), atoll_cli_table:decimal(P99)];
        {[{_, Median}, {_, Low}, {_, High}], _} ->
            [atoll_cli_table:decimal(Median), [atoll_cli_table:decimal(Low), " - ", atoll_cli_table:decimal(High)]]
    end.

%% The median and its interval; of a latency, percentiles of all rounds together.
numbers(#{<<"kind">> := <<"latency">>, <<"name">> := Name}, Point, Run) ->
    case [H || #{<<"point">> := P, <<"histograms">> := #{Name := H}} <- rounds(Run), P =:= Point] of
        [] ->
            [];
        Exports ->
            All = atoll_bench_hist:merge([Hist || Export <- Exports, {ok, Hist} <- [atoll_bench_hist:import(Export)]]),
            [
                {key(Name, "_p50_us"), atoll_bench_hist:percentile(All, 50) / 1000},
                {key(Name, "_p99_us"), atoll_bench_hist:percentile(All, 99) / 1000}
            ]
    end;
numbers(#{<<"name">> := Name}, Point, Run) ->
    case [V || #{<<"point">> := P, <<"values">> := #{Name := V}} <- rounds(Run), P =:= Point] of
        [] ->
            [];
        Values ->
            {Low, High} = atoll_bench_stats:interval(Values, #{seed => 1}),
            [
                {key(Name, ""), atoll_bench_stats:median(Values)},
                {key(Name, "_low"), Low},
                {key(Name, "_high"), High}
            ]
    end.

%% Of a benchmark's metrics, which are few.
key(Name, Suffix) ->
    binary_to_atom(<<Name/binary, (list_to_binary(Suffix))/binary>>).

points(#{header := #{<<"points">> := Points}}) -> lists:seq(0, length(Points) - 1).
metrics(#{header := #{<<"metrics">> := Metrics}}) -> Metrics.
declared(#{header := #{<<"parameters">> := Parameters}}) -> Parameters.
rounds(#{rounds := Rounds}) -> Rounds.

parameters(Index, #{header := #{<<"points">> := Points}} = Run) ->
    Point = lists:nth(Index + 1, Points),
    [{Name, map_get(Name, Point)} || #{<<"name">> := Name} <- declared(Run)].

text(Value) when is_integer(Value) -> atoll_cli_table:count(Value);
text(Value) -> Value.
