%% SPDX-License-Identifier: Apache-2.0
%% @doc The tables of a report, and the form in which they go to a file: CSV as in
%% RFC 4180, numbers in full.
-module(atoll_bench_report_table).

-export([metric/2, percentiles/2, speedup/1, disturbed/1, rounds/1, csv/1]).

-export_type([table/0, column/0, cell/0]).

-type table() :: #{
    %% The name of its file, less the `.csv'.
    name := binary(),
    columns := [column()],
    rows := [[cell()]]
}.

%% The label is for people, the key for programs.
-type column() :: #{key := binary(), label := binary(), numeric := boolean()}.

-type cell() :: {value | number | time | share, atoll_bench_report_data:value()} | none.

-define(PERCENTILES, [{<<"p50">>, 50}, {<<"p90">>, 90}, {<<"p99">>, 99}, {<<"p99.9">>, 99.9}]).

%% @doc A metric at every point that has rounds.
-spec metric(atoll_bench_report_data:metric(), atoll_bench_report_data:data()) -> table().
metric(#{name := Name, kind := Kind} = Metric, #{id := Id} = Data) ->
    #{
        name => iolist_to_binary([Id, $-, atoll_bench_report_text:slug(Name)]),
        columns =>
            parameter_columns(Data) ++ value_columns(Kind, Metric) ++
                [numeric(<<"rounds">>), numeric(<<"disturbed">>), numeric(<<"others_cpu_max">>, <<"others\x{2019} CPU, most"/utf8>>)],
        rows => [
            parameter_cells(I, Data) ++ Values ++ round_cells(Rounds)
         || {I, [_ | _] = Rounds} <- ordered(Data),
            [_ | _] = Values <- [value_cells(Kind, I, Metric, Data)]
        ]
    }.

%% In the order of the charts: facets, axis, variant.
shown(#{swept := Swept, variant := #{name := Variant} = Own}) ->
    [P || #{name := Name} = P <- tl_first(Swept) ++ [Own], Name =/= <<>> orelse Variant =/= <<>>].

tl_first([]) -> [];
tl_first([Axis | Facets]) -> Facets ++ [Axis].

ordered(#{points := Points} = Data) ->
    Ranks = [
        {[rank(maps:get(Name, Point, null), Values) || #{name := Name, values := Values} <- shown(Data)], I}
     || {I, Point} <- maps:to_list(Points)
    ],
    [{I, atoll_bench_report_data:rounds(I, Data)} || {_, I} <- lists:sort(Ranks)].

rank(Value, Values) ->
    length(lists:takewhile(fun(V) -> V =/= Value end, Values)).

parameter_columns(Data) ->
    [
        #{key => Name, label => atoll_bench_report_data:label(P), numeric => lists:all(fun is_number/1, Values)}
     || #{name := Name, values := Values} = P <- shown(Data)
    ].

parameter_cells(I, Data) ->
    Point = atoll_bench_report_data:point(I, Data),
    [{value, maps:get(Name, Point, null)} || #{name := Name} <- shown(Data)].

numeric(Key) -> numeric(Key, Key).
numeric(Key, Label) -> #{key => Key, label => Label, numeric => true}.

value_columns(value, Metric) ->
    [numeric(<<"median">>, atoll_bench_report_data:label(Metric)), numeric(<<"low">>), numeric(<<"high">>)];
value_columns(latency, _Metric) ->
    lists:append([
        [numeric(<<Q/binary, "_ns">>, Q), numeric(<<Q/binary, "_low_ns">>, <<"low">>), numeric(<<Q/binary, "_high_ns">>, <<"high">>)]
     || Q <- [<<"p50">>, <<"p99">>]
    ]).

value_cells(value, I, Metric, Data) ->
    median(number, atoll_bench_report_data:summary(I, {Metric, value}, Data));
value_cells(latency, I, Metric, Data) ->
    lists:append([median(time, atoll_bench_report_data:summary(I, {Metric, P}, Data)) || P <- [50, 99]]).

median(_Kind, none) -> [];
median(Kind, {ok, Summary}) -> [{Kind, N} || N <- Summary].

round_cells(Rounds) ->
    [
        {number, length(Rounds)},
        {number, length([R || R <- Rounds, atoll_bench_report_data:disturbed(R)])},
        {share, lists:max([atoll_bench_report_data:others(R) || R <- Rounds])}
    ].

%% @doc A latency at every point, all rounds together.
-spec percentiles(atoll_bench_report_data:metric(), atoll_bench_report_data:data()) -> table().
percentiles(#{name := Name} = Metric, #{id := Id} = Data) ->
    #{
        name => iolist_to_binary([Id, $-, atoll_bench_report_text:slug(Name), "-cdf"]),
        columns =>
            parameter_columns(Data) ++
                [numeric(<<P/binary, "_ns">>, P) || {P, _} <- ?PERCENTILES] ++
                [numeric(<<"max_ns">>, <<"longest">>), numeric(<<"count">>)],
        rows => [
            parameter_cells(I, Data) ++
                [{time, atoll_histogram:percentile(Histogram, P)} || {_, P} <- ?PERCENTILES] ++
                [{time, atoll_histogram:max(Histogram)}, {number, atoll_histogram:count(Histogram)}]
         || {I, [_ | _]} <- ordered(Data),
            {ok, Histogram} <- [atoll_bench_report_data:merged(I, Metric, Data)]
        ]
    }.

%% @doc What a chart of speed-up shows.
-spec speedup(atoll_bench_report_chart:chart()) -> table().
speedup(#{id := Id, x := #{label := X}, by := By, series := Series, panels := Panels}) ->
    Alone = length(Panels) =:= 1,
    #{
        name => Id,
        columns => [#{key => <<"at">>, label => <<"at">>, numeric => false} || not Alone] ++ [
            numeric(X),
            #{key => By, label => By, numeric => false},
            numeric(<<"speedup">>, <<"speed-up">>), numeric(<<"low">>), numeric(<<"high">>), numeric(<<"ideal">>)
        ],
        rows => [
            [{value, Title} || not Alone] ++ [{value, At}, {value, lists:nth(S + 1, Series)}, {number, Y}] ++ ends(Interval) ++
                [{number, hd([Best || [Where, Best] <- Ideal, Where == At])}]
         || #{title := Title, lines := Lines, ideal := Ideal} <- Panels,
            #{series := S, points := Points} <- Lines,
            [At, Y | Interval] <- Points
        ]
    }.

ends([]) -> [none, none];
ends([_, _] = Interval) -> [{number, End} || End <- Interval].

%% @doc The rounds during which others used too much of the machine.
-spec disturbed(atoll_bench_report_data:data()) -> table().
disturbed(Data) ->
    #{name := Name, columns := Columns, rows := Rows} = rounds(Data),
    Kept = length(shown(Data)) + 5,
    #{
        name => Name,
        columns => lists:sublist(Columns, Kept),
        rows => [
            lists:sublist(Cells, Kept)
         || {Cells, Round} <- lists:zip(Rows, [R || {_, Rounds} <- ordered(Data), R <- Rounds]),
            atoll_bench_report_data:disturbed(Round)
        ]
    }.

%% @doc Every round with all that was measured in it.
-spec rounds(atoll_bench_report_data:data()) -> table().
rounds(#{id := Id, metrics := Metrics} = Data) ->
    #{
        name => <<Id/binary, "-rounds">>,
        columns =>
            parameter_columns(Data) ++
                [numeric(<<"start">>), numeric(<<"round">>), numeric(<<"at_ms">>, <<"at (ms)">>), numeric(<<"wall_ms">>, <<"took (ms)">>),
                    numeric(<<"others_cpu">>, <<"others\x{2019} CPU"/utf8>>)] ++
                lists:append([round_columns(M) || M <- Metrics]),
        rows => [
            parameter_cells(I, Data) ++
                [{number, maps:get(Key, Round, null)} || Key <- [<<"start">>, <<"round">>, <<"at_ms">>, <<"wall_ms">>]] ++
                [{share, atoll_bench_report_data:others(Round)}] ++
                lists:append([round_values(M, Round) || M <- Metrics])
         || {I, Rounds} <- ordered(Data), Round <- Rounds
        ]
    }.

round_columns(#{kind := value, name := Name}) -> [numeric(Name)];
round_columns(#{kind := latency, name := Name}) -> [numeric(iolist_to_binary([Name, $_, P, "_ns"])) || {P, _} <- ?PERCENTILES].

round_values(#{kind := value, name := Name}, Round) ->
    case Round of
        #{<<"values">> := #{Name := Value}} when is_number(Value) -> [{number, Value}];
        _ -> [none]
    end;
round_values(#{kind := latency} = Metric, Round) ->
    case atoll_bench_report_data:histogram(Metric, Round) of
        none -> [none || _ <- ?PERCENTILES];
        {ok, Histogram} -> [{time, atoll_histogram:percentile(Histogram, P)} || {_, P} <- ?PERCENTILES]
    end.

%% @doc The table as a file.
-spec csv(table()) -> iolist().
csv(#{columns := Columns, rows := Rows}) ->
    [line([Key || #{key := Key} <- Columns]) | [line([raw(Cell) || Cell <- Row]) || Row <- Rows]].

line(Fields) ->
    [lists:join($,, [field(Field) || Field <- Fields]), "\r\n"].

raw(none) -> <<>>;
raw({_, null}) -> <<>>;
raw({_, N}) when is_integer(N) -> integer_to_binary(N);
raw({_, N}) when is_float(N) -> float_to_binary(N, [short]);
raw({_, Value}) -> guarded(atoll_bench_report_text:value(Value)).

%% A spreadsheet takes a text that begins so for a formula.
guarded(<<C, _/binary>> = Text) when C =:= $=; C =:= $+; C =:= $-; C =:= $@; C =:= $\t; C =:= $\r ->
    <<$', Text/binary>>;
guarded(Text) ->
    Text.

field(Text) ->
    case binary:match(Text, [<<",">>, <<"\"">>, <<"\r">>, <<"\n">>]) of
        nomatch -> Text;
        _ -> [$", binary:replace(Text, <<"\"">>, <<"\"\"">>, [global]), $"]
    end.
