%% SPDX-License-Identifier: Apache-2.0
%% @doc What a run has measured: a row for each point.
-module(atoll_bench_cli_result).

-export([print/2]).

%% @doc Prints it, as a table or as one JSON object.
-spec print(Json :: boolean(), atoll_bench_file:run()) -> ok.
print(Json, Run) ->
    ok = say_disturbed(Run),
    case Json of
        true -> atoll_cli_io:print_json(json(Run));
        false -> atoll_cli_io:print(table(Run))
    end.

say_disturbed(#{rounds := Rounds}) ->
    case length([Round || Round <- Rounds, atoll_bench_samples:disturbed(Round)]) of
        0 ->
            ok;
        Disturbed ->
            atoll_cli_io:say(
                io_lib:format("~b of ~b rounds were disturbed: other processes used more than a twentieth of the machine.", [
                    Disturbed, length(Rounds)
                ])
            )
    end.

json(#{file := File, status := Status} = Run) ->
    {[
        {file, unicode:characters_to_binary(File)},
        {status, Status},
        {rows, [{row(Point, Run)} || Point <- points(Run)]}
    ]}.

row(Point, Run) ->
    lists:append([
        [{key([row_name(Parameter)]), Value} || {Parameter, Value} <- parameters(Point, Run)],
        lists:append([numbers(Metric, Point, Run) || Metric <- metrics(Run)])
    ]).

table(#{file := File} = Run) ->
    Parameters = [Name || #{<<"name">> := Name} <- declared(Run)],
    Metrics = [Metric || Metric <- metrics(Run), is_measured(Metric, Run)],
    Columns =
        [{left, Name} || Name <- Parameters] ++
            lists:append([heads(Metric) || Metric <- Metrics]),
    Rows = [
        [atoll_cli_table:value(Value) || {_, Value} <- parameters(Point, Run)] ++
            lists:append([cells(Metric, Point, Run) || Metric <- Metrics])
     || Point <- points(Run)
    ],
    [atoll_cli_table:format(Columns, Rows), "\nkept in ", File, $\n].

%% What none of the points has takes no room on a screen.
is_measured(Metric, Run) ->
    lists:any(fun(Point) -> lists:any(fun({_, Summary}) -> Summary =/= none end, summaries(Metric, Point, Run)) end, points(Run)).

heads(#{<<"kind">> := <<"latency">>, <<"label">> := Label}) ->
    [{right, [Label, " p50 \x{b5}s"]}, {right, "95 %"}, {right, "p99 \x{b5}s"}, {right, "95 %"}];
heads(#{<<"label">> := Label, <<"unit">> := <<>>}) ->
    [{right, Label}, {right, "95 %"}];
heads(#{<<"label">> := Label, <<"unit">> := Unit}) ->
    [{right, [Label, " ", Unit]}, {right, "95 %"}].

cells(Metric, Point, Run) ->
    lists:append([cell(Summary) || {_, Summary} <- summaries(Metric, Point, Run)]).

cell(none) ->
    ["-", "-"];
%% Too few rounds have no interval.
cell({ok, {Median, none, none}}) ->
    [atoll_cli_table:decimal(Median), "-"];
cell({ok, {Median, Low, High}}) ->
    [atoll_cli_table:decimal(Median), [atoll_cli_table:decimal(Low), " - ", atoll_cli_table:decimal(High)]].

numbers(Metric, Point, Run) ->
    [
        {key([row_name(Metric), What, End, unit(Metric)]), null(Number)}
     || {What, Summary} <- summaries(Metric, Point, Run),
        {Median, Low, High} <- [summarized(Summary)],
        {End, Number} <- [{<<>>, Median}, {<<"low">>, Low}, {<<"high">>, High}]
    ].

%% A row has what every other one has: also where a point has no such metric, or failed.
summarized(none) -> {none, none, none};
summarized({ok, Summary}) -> Summary.

row_name(#{<<"row">> := Name}) -> Name;
row_name(#{<<"name">> := Name}) -> Name.

null(none) -> null;
null(Number) -> Number.

unit(#{<<"kind">> := <<"latency">>}) -> <<"us">>;
unit(_Metric) -> <<>>.

%% The medians of the rounds and their intervals, as in a report; of a latency those of
%% two percentiles.
summaries(#{<<"kind">> := <<"latency">>, <<"name">> := Name}, Point, Run) ->
    [
        {What, microseconds(atoll_bench_samples:summary(Name, Percentile, rounds(Point, Run)))}
     || {What, Percentile} <- [{<<"p50">>, 50}, {<<"p99">>, 99}]
    ];
summaries(#{<<"name">> := Name}, Point, Run) ->
    [{<<>>, atoll_bench_samples:summary(Name, value, rounds(Point, Run))}].

microseconds(none) -> none;
microseconds({ok, {Median, Low, High}}) -> {ok, {Median / 1000, thousandth(Low), thousandth(High)}}.

thousandth(none) -> none;
thousandth(Number) -> Number / 1000.

%% Of a benchmark's parameters and metrics, which are few.
key(Parts) ->
    binary_to_atom(iolist_to_binary(lists:join($_, [Part || Part <- Parts, Part =/= <<>>]))).

points(#{header := #{<<"points">> := Points}}) -> lists:seq(0, length(Points) - 1).
metrics(#{header := #{<<"metrics">> := Metrics}}) -> Metrics.
declared(#{header := #{<<"parameters">> := Parameters}}) -> Parameters.
rounds(Point, #{rounds := Rounds}) -> [Round || #{<<"point">> := P} = Round <- Rounds, P =:= Point].

parameters(Index, #{header := #{<<"points">> := Points}} = Run) ->
    Point = lists:nth(Index + 1, Points),
    [{Parameter, map_get(Name, Point)} || #{<<"name">> := Name} = Parameter <- declared(Run)].
