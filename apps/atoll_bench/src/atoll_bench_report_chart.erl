%% SPDX-License-Identifier: Apache-2.0
%% @doc The charts of a run as data: what is drawn, and with it what is said to
%% somebody who does not see it. The scripts under `report/' draw them, for the page
%% and for the files, and decide nothing else.
%%
%% A chart has panels with the same axes, and in each a line for each of the series.
-module(atoll_bench_report_chart).

-export([sweep/2, speedup/2, cdf/2, load/1]).

-export_type([chart/0]).

-type chart() :: #{
    id := binary(),
    kind := sweep | speedup | cdf | load,
    title := binary(),
    x := axis(),
    y := axis(),
    %% The names of the series.
    series := [binary()],
    %% What the series are the values of.
    by := binary(),
    panels := [panel()],
    %% A value that is of importance, with what is said of it.
    limit => #{value := number(), label := binary()},
    %% The distributions of one value of the axis are seen at a time.
    choice => #{label := binary(), values := [binary()], first := non_neg_integer()}
}.

%% On an axis of categories a tick is a name, and its place is its number from 0 on.
-type axis() :: #{
    label := binary(),
    scale := linear | log | category,
    format := number | time | share | seconds,
    ticks => [number() | binary()]
}.

-type panel() :: #{
    title := binary(),
    %% In words.
    alt := binary(),
    %% `marks' are the numbers of the points that stand out, from 0 on.
    lines := [#{series := non_neg_integer(), points := [[number()]], marks => [non_neg_integer()]}],
    %% What would be best: the points of a line.
    ideal => [[number()]],
    %% Which value of the choice.
    choice => non_neg_integer()
}.

-define(PERCENTILES, [{<<"p50">>, 50}, {<<"p99">>, 99}]).

%% @doc A metric along the axis: each point is its place, the median of the rounds,
%% and the two ends of the interval if there is one. A latency has a panel for each of its percentiles.
-spec sweep(atoll_bench_report_data:metric(), atoll_bench_report_data:data()) -> chart().
sweep(#{kind := Kind, label := Label} = Metric, Data) ->
    Axis = atoll_bench_report_data:axis(Data),
    Panels = [
        panel(Of, Facet, lines(Axis, Facet, {Metric, Measure}, Data), Metric, Axis, Data)
     || {Of, Measure} <- measures(Kind),
        Facet <- atoll_bench_report_data:facets(Axis, Data)
    ],
    Ys = [Y || #{lines := Lines} <- Panels, #{points := Points} <- Lines, [_ | Of] <- Points, Y <- Of],
    (chart(sweep, Metric, Data))#{
        title => <<Label/binary, " against ", (maps:get(name, Axis))/binary>>,
        x => x_axis(Axis),
        y => (y_axis(Metric))#{scale => scale(Ys)},
        panels => Panels
    }.

measures(value) -> [{[], value}];
measures(latency) -> [{[Name], P} || {Name, P} <- ?PERCENTILES].

chart(Kind, #{name := Name}, #{id := Id, variant := Variant} = Data) ->
    Slug = atoll_bench_report_text:slug(Name),
    #{
        id => iolist_to_binary([Id, $-, Slug, [[$-, atom_to_binary(Kind)] || Kind =/= sweep]]),
        kind => Kind,
        series => [atoll_bench_report_text:value(V) || V <- atoll_bench_report_data:series(Data)],
        by => maps:get(name, Variant)
    }.

lines(#{values := Values} = Axis, Facet, Measured, #{variant := Variant} = Data) ->
    %% Where the axis is the variant, each series has its own place on it.
    Own = maps:get(name, Axis) =:= maps:get(name, Variant),
    [
        #{
            series => S,
            points => [
                [place(X, At, Values) | [Number || Number <- Summary, Number =/= null]]
             || {X, At} <- numbered(Values),
                not Own orelse At =:= Series,
                {ok, I} <- [atoll_bench_report_data:cell({Axis, At}, Facet, Series, Data)],
                {ok, Summary} <- [atoll_bench_report_data:summary(I, Measured, Data)]
            ]
        }
     || {S, Series} <- numbered(atoll_bench_report_data:series(Data))
    ].

place(X, At, Values) ->
    case lists:all(fun is_number/1, Values) of
        true -> At;
        false -> X
    end.

numbered(List) ->
    lists:zip(lists:seq(0, length(List) - 1), List).

x_axis(#{values := Values} = Parameter) ->
    Label = atoll_bench_report_data:label(Parameter),
    case lists:all(fun is_number/1, Values) of
        true -> #{label => Label, scale => scale(Values), format => number, ticks => Values};
        false -> category(Label, Values)
    end.

category(Label, Values) ->
    #{label => Label, scale => category, format => number, ticks => [atoll_bench_report_text:value(V) || V <- Values]}.

y_axis(#{kind := latency, label := Label}) -> #{label => Label, format => time};
y_axis(Metric) -> #{label => atoll_bench_report_data:label(Metric), format => number}.

%% A decade or less is easier to read where equal steps are equal.
scale([_ | _] = Values) ->
    Low = lists:min(Values),
    case Low > 0 andalso lists:max(Values) > 10 * Low of
        true -> log;
        false -> linear
    end;
scale([]) ->
    linear.

panel(Of, Facet, Lines, Metric, Axis, Data) ->
    Title = title(Of, Facet),
    #{title => Title, alt => alt(Title, Lines, Metric, Axis, Data), lines => Lines}.

title(Of, Facet) ->
    Parts = [
        [Name, " = ", atoll_bench_report_text:value(Value), [[$\s, Unit] || Unit =/= <<>>]]
     || {#{name := Name, unit := Unit}, Value} <- Facet
    ],
    iolist_to_binary(lists:join(", ", Of ++ Parts)).

%% What the panel shows, and where each line begins and ends.
alt(Title, Lines, #{label := Label} = Metric, #{name := Axis, values := Values}, Data) ->
    Of = [
        [Name, ends([{X, Y} || [X, Y | _] <- Points], Metric, Values)]
     || #{series := S, points := [_ | _] = Points} <- Lines,
        Name <- [atoll_bench_report_text:value(lists:nth(S + 1, atoll_bench_report_data:series(Data)))]
    ],
    iolist_to_binary([
        Label, " against ", Axis, [[", ", Title] || Title =/= <<>>], ". ",
        case Of of
            [] -> "Nothing was measured";
            _ -> lists:join("; ", Of)
        end,
        "."
    ]).

ends([{_, Y}], Metric, _Values) ->
    [": ", shown(Y, Metric)];
ends([{X1, Y1} | Rest], Metric, Values) ->
    {X2, Y2} = lists:last(Rest),
    [": ", shown(Y1, Metric), " at ", place_name(X1, Values), ", ", shown(Y2, Metric), " at ", place_name(X2, Values)].

shown(Y, #{kind := latency}) -> atoll_bench_report_text:time(Y);
shown(Y, #{unit := Unit}) -> [atoll_bench_report_text:number(Y), [[$\s, Unit] || Unit =/= <<>>]].

place_name(X, Values) ->
    case lists:member(X, Values) of
        true -> atoll_bench_report_text:value(X);
        false -> atoll_bench_report_text:value(lists:nth(X + 1, Values))
    end.

%% @doc How many times faster than with the least of it, for each parameter that is
%% said to scale. The interval is the widest that the two medians' allow.
-spec speedup(atoll_bench_report_data:metric(), atoll_bench_report_data:data()) -> [chart()].
speedup(#{kind := value, better := more, derived := false, label := Label} = Metric, #{swept := Swept} = Data) ->
    [
        (chart(speedup, Metric, Data))#{
            id => iolist_to_binary([maps:get(id, chart(speedup, Metric, Data)), $-, Name]),
            title => <<Label/binary, ": speed-up with ", Name/binary>>,
            x => x_axis(Axis),
            y => #{label => <<"speed-up">>, format => number, scale => maps:get(scale, x_axis(Axis))},
            panels => [speedup_panel(Facet, Metric, Axis, Data) || Facet <- atoll_bench_report_data:facets(Axis, Data)]
        }
     || #{name := Name, values := Values, scales := true} = Axis <- Swept,
        lists:all(fun(V) -> is_number(V) andalso V > 0 end, Values)
    ];
speedup(_Metric, _Data) ->
    [].

speedup_panel(Facet, Metric, #{values := [Least | _] = Values} = Axis, Data) ->
    Measured = lines(Axis, Facet, {Metric, value}, Data),
    Lines = [Line#{points := relative(Least, Points)} || #{points := Points} = Line <- Measured],
    Panel = panel([], Facet, Lines, Metric#{label := <<"Speed-up">>, unit := <<>>}, Axis, Data),
    Panel#{ideal => [[X, X / Least] || X <- Values]}.

%% A series that lacks its first point has nothing to be compared with.
relative(Least, [[X, Y, Low, High] | Rest]) when X == Least, Low > 0 ->
    [[X, 1.0, 1.0, 1.0] | [relative_one(Point, Y, Low, High) || Point <- Rest]];
relative(Least, [[X, Y] | Rest]) when X == Least, Y > 0 ->
    [[X, 1.0] | [[X1, Y1 / Y] || [X1, Y1 | _] <- Rest]];
relative(_Least, _Points) ->
    [].

relative_one([X, Y1, Low1, High1], Y, Low, High) -> [X, Y1 / Y, Low1 / High, High1 / Low];
relative_one([X, Y1], Y, _Low, _High) -> [X, Y1 / Y].

%% @doc The distributions of a latency over all rounds of a point.
-spec cdf(atoll_bench_report_data:metric(), atoll_bench_report_data:data()) -> [chart()].
cdf(#{kind := latency, label := Label} = Metric, Data) ->
    #{values := Values} = Axis = atoll_bench_report_data:axis(Data),
    Panels = [
        #{title => title([], Facet), alt => cdf_alt(Metric, At, Facet, Lines, Data), lines => Lines, choice => N}
     || {N, At} <- numbered(choices(Axis, Data)),
        Facet <- atoll_bench_report_data:facets(Axis, Data),
        Lines <- [curves(At, Facet, Metric, Data)]
    ],
    Chart = (chart(cdf, Metric, Data))#{
        title => <<Label/binary, ": distribution">>,
        x => #{label => Label, scale => log, format => time},
        y => #{label => <<"share of all that took at most so long">>, scale => linear, format => share},
        panels => Panels
    },
    case Data of
        #{swept := []} ->
            [Chart];
        _ ->
            [
                Chart#{
                    choice => #{
                        label => atoll_bench_report_data:label(Axis),
                        values => [atoll_bench_report_text:value(V) || V <- Values],
                        first => length(Values) - 1
                    }
                }
            ]
    end;
cdf(_Metric, _Data) ->
    [].

%% Where nothing was swept, the distributions of all variants are in one panel.
choices(_Axis, #{swept := []}) -> [none];
choices(#{values := Values} = Axis, _Data) -> [{Axis, Value} || Value <- Values].

curves(At, Facet, Metric, Data) ->
    [
        #{series => S, points => Points, marks => atoll_bench_report_curve:marks(Points)}
     || {S, Series} <- numbered(atoll_bench_report_data:series(Data)),
        {ok, I} <- [cell(At, Facet, Series, Data)],
        {ok, Histogram} <- [atoll_bench_report_data:merged(I, Metric, Data)],
        Points <- [atoll_bench_report_curve:points(atoll_histogram:buckets(Histogram))]
    ].

cell(none, Facet, Series, #{variant := Variant} = Data) ->
    atoll_bench_report_data:cell({Variant, Series}, Facet, Series, Data);
cell(At, Facet, Series, Data) ->
    atoll_bench_report_data:cell(At, Facet, Series, Data).

cdf_alt(#{label := Label} = Metric, At, Facet, Lines, Data) ->
    Where = [F || F <- [At | Facet], F =/= none],
    Of = [
        [atoll_bench_report_text:value(lists:nth(S + 1, atoll_bench_report_data:series(Data))), ": ",
            lists:join(", ", [[Name, $\s, shown(reached(P / 100, Points), Metric)] || {Name, P} <- ?PERCENTILES])]
     || #{series := S, points := [_ | _] = Points} <- Lines
    ],
    iolist_to_binary([Label, ": distribution", [[", ", title([], Where)] || Where =/= []], ". ", lists:join("; ", Of), "."]).

reached(Wanted, Points) ->
    hd([X || [X, Share] <- Points, Share >= Wanted]).

%% @doc What other processes used of the machine in each round, in the order of time.
-spec load(atoll_bench_report_data:data()) -> chart().
load(#{id := Id, rounds := Rounds}) ->
    All = lists:append(maps:values(Rounds)),
    Shown = lists:sort([
        {[At / 1000, atoll_bench_report_data:others(Round)], atoll_bench_report_data:disturbed(Round)}
     || #{<<"at_ms">> := At} = Round <- All, is_number(At)
    ]),
    Limit = atoll_bench_report_data:disturbed_from(),
    Disturbed = length([R || R <- All, atoll_bench_report_data:disturbed(R)]),
    #{
        id => <<Id/binary, "-load">>,
        kind => load,
        title => <<"CPU used by other processes">>,
        x => #{label => <<"seconds since the start">>, scale => linear, format => seconds},
        y => #{label => <<"share of the machine">>, scale => linear, format => share},
        series => [<<"round">>],
        by => <<>>,
        limit => #{
            value => Limit, label => <<"disturbed above ", (integer_to_binary(round(100 * Limit)))/binary, " %">>
        },
        panels => [
            #{
                title => <<>>,
                alt => iolist_to_binary([
                    "CPU used by other processes, a point for each round. ",
                    integer_to_binary(Disturbed), " of ", integer_to_binary(length(All)), " rounds were disturbed."
                ]),
                lines => [
                    #{
                        series => 0,
                        points => [Point || {Point, _} <- Shown],
                        marks => [I || {I, {_, true}} <- numbered(Shown)]
                    }
                ]
            }
        ]
    }.
