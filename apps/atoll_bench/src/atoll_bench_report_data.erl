%% SPDX-License-Identifier: Apache-2.0
%% @doc What a run measured where: its parameters told apart by the part that they
%% play in a chart, and the samples of each point.
%%
%% The <em>variant</em> is what is compared: one series for each of its values. Of
%% the other parameters that were swept, the one with the most values is the axis;
%% the rest make facets, one panel for each combination that occurs. A parameter
%% with a single value is fixed.
-module(atoll_bench_report_data).

-export([read/2, axis/1, facets/2, series/1, cell/4, rounds/2, summary/3, merged/3, histogram/2]).
-export([disturbed/1, disturbed_from/0, others/1, label/1, point/2]).

-export_type([data/0, parameter/0, metric/0, facet/0, value/0, measure/0]).

-type value() :: integer() | float() | binary() | boolean() | null.

-type parameter() :: #{
    name := binary(),
    %% Empty if it has none.
    unit := binary(),
    %% The values that occur, in order.
    values := [value()],
    %% Whether more of it should do as much more work.
    scales := boolean()
}.

-type metric() :: #{
    name := binary(),
    label := binary(),
    unit := binary(),
    better := more | less,
    %% Whether another metric says the same in another unit.
    derived := boolean(),
    kind := value | latency
}.

-type measure() :: atoll_bench_samples:measure().

-type facet() :: [{parameter(), value()}].

-type data() :: #{
    %% Unique in a report, fit for the name of a file.
    id := binary(),
    %% Which of the report's runs it is, from 1 on.
    number := pos_integer(),
    name := binary(),
    file := binary(),
    status := atoll_bench_file:status(),
    header := map(),
    variant := parameter(),
    %% Without the variant, the one with the most values first.
    swept := [parameter()],
    fixed := [{parameter(), value()}],
    metrics := [metric()],
    points := #{non_neg_integer() => #{binary() => value()}},
    %% The number of a point from its values.
    index := #{#{binary() => value()} => non_neg_integer()},
    rounds := #{non_neg_integer() => [map()]},
    %% Of each metric at each point: the median of the rounds, and the interval.
    summaries := #{{Metric :: binary(), measure(), Point :: non_neg_integer()} => [number() | null, ...]},
    errors := [{#{binary() => value()}, binary()}]
}.

%% @doc The run with the given number in a report.
-spec read(pos_integer(), atoll_bench_report:run()) -> data().
read(Number, #{file := File, header := Header, rounds := Rounds, errors := Errors, status := Status}) ->
    Points = maps:get(<<"points">>, Header, []),
    Numbered = maps:from_list(lists:zip(lists:seq(0, length(Points) - 1), Points)),
    {Variant, Others} = parameters(Header, Points),
    Name = text(maps:get(<<"benchmark">>, Header, <<>>)),
    Metrics = [metric(M) || M <- maps:get(<<"metrics">>, Header, [])],
    Grouped = by_point(Rounds),
    #{
        id => iolist_to_binary([atoll_bench_report_text:slug(Name), $-, integer_to_binary(Number)]),
        number => Number,
        name => Name,
        file => file_name(File),
        status => Status,
        header => Header,
        variant => Variant,
        swept => by_values([P || #{values := [_, _ | _]} = P <- Others]),
        fixed => [{P, Value} || #{values := [Value]} = P <- Others],
        metrics => Metrics,
        points => Numbered,
        index => maps:from_list([{Point, I} || {I, Point} <- maps:to_list(Numbered)]),
        rounds => Grouped,
        summaries => summaries(Metrics, Grouped),
        errors => [{maps:get(I, Numbered, #{}), text(E)} || #{<<"point">> := I, <<"error">> := E} <- Errors]
    }.

file_name(File) ->
    case unicode:characters_to_binary(filename:basename(File)) of
        Name when is_binary(Name) -> Name;
        %% In no encoding that we know.
        _ -> <<"?">>
    end.

parameters(Header, Points) ->
    Declared = [declared(P, Points) || P <- maps:get(<<"parameters">>, Header, [])],
    Variant = maps:get(<<"variant">>, Header, <<>>),
    case lists:partition(fun(#{name := Name}) -> Name =:= Variant end, Declared) of
        {[Found | _], Others} -> {Found, Others};
        {[], Others} -> {#{name => Variant, unit => <<>>, values => [null], scales => false}, Others}
    end.

declared(#{<<"name">> := Name} = Parameter, Points) ->
    Seen = lists:uniq([Value || #{Name := Value} <- Points]),
    Order = maps:get(<<"values">>, Parameter, []),
    #{name => Name, unit => text(maps:get(<<"unit">>, Parameter, <<>>)), values => ordered(Seen, Order),
        scales => maps:get(<<"scales">>, Parameter, false) =:= true}.

%% Numbers by size, names as they were declared.
ordered(Seen, Order) ->
    case lists:all(fun is_number/1, Seen) of
        true -> lists:sort(Seen);
        false -> [V || V <- Order, lists:member(V, Seen)] ++ (Seen -- Order)
    end.


by_values(Parameters) ->
    Keyed = [{-length(Values), is_name(Values), P} || #{values := Values} = P <- Parameters],
    [P || {_, _, P} <- lists:keysort(1, lists:keysort(2, Keyed))].

is_name(Values) ->
    not lists:all(fun is_number/1, Values).

metric(#{<<"name">> := Name} = Metric) ->
    #{
        name => Name,
        label => text(maps:get(<<"label">>, Metric, Name)),
        unit => text(maps:get(<<"unit">>, Metric, <<>>)),
        better =>
            case Metric of
                #{<<"better">> := <<"less">>} -> less;
                _ -> more
            end,
        derived => maps:get(<<"derived">>, Metric, false) =:= true,
        kind =>
            case Metric of
                #{<<"kind">> := <<"latency">>} -> latency;
                _ -> value
            end
    }.

text(Text) when is_binary(Text) -> Text;
text(null) -> <<>>;
text(Other) -> atoll_bench_report_text:value(Other).

by_point(Rounds) ->
    maps:map(
        fun(_, Of) -> lists:reverse(Of) end,
        lists:foldl(
            fun(#{<<"point">> := I} = Round, Acc) -> Acc#{I => [Round | maps:get(I, Acc, [])]} end, #{}, Rounds
        )
    ).

%% @doc The parameter along which values are shown. If none was swept, that is the
%% variant.
-spec axis(data()) -> parameter().
axis(#{swept := [Axis | _]}) -> Axis;
axis(#{swept := [], variant := Variant}) -> Variant.

%% @doc The combinations of what was swept beside an axis, each with at least one
%% point.
-spec facets(parameter(), data()) -> [facet(), ...].
facets(#{name := Axis}, #{swept := Swept, points := Points}) ->
    Rest = [P || #{name := Name} = P <- Swept, Name =/= Axis],
    Occur = [maps:with([Name || #{name := Name} <- Rest], Point) || Point <- maps:values(Points)],
    Facets = [F || F <- combinations(Rest), lists:member(maps:from_list([{N, V} || {#{name := N}, V} <- F]), Occur)],
    case Facets of
        [] -> [[]];
        _ -> Facets
    end.

combinations([]) ->
    [[]];
combinations([#{values := Values} = Parameter | Rest]) ->
    [[{Parameter, Value} | Facet] || Value <- Values, Facet <- combinations(Rest)].

%% @doc The values of the variant.
-spec series(data()) -> [value()].
series(#{variant := #{values := Values}}) -> Values.

%% @doc The point of a facet at a value of the axis for one of the series, if it was
%% to be measured.
-spec cell({parameter(), value()}, facet(), value(), data()) -> {ok, non_neg_integer()} | none.
cell(At, Facet, Series, #{variant := Variant, fixed := Fixed, index := Index}) ->
    Values = [{Name, Value} || {#{name := Name}, Value} <- [{Variant, Series}, At | Facet] ++ Fixed, Name =/= <<>>],
    case maps:find(maps:from_list(Values), Index) of
        {ok, I} -> {ok, I};
        error -> none
    end.

%% @doc The values of a point.
-spec point(non_neg_integer(), data()) -> #{binary() => value()}.
point(I, #{points := Points}) -> maps:get(I, Points).

%% @doc The rounds of a point, in order.
-spec rounds(non_neg_integer(), data()) -> [map()].
rounds(I, #{rounds := Rounds}) -> maps:get(I, Rounds, []).

summaries(Metrics, Grouped) ->
    maps:from_list([
        {{Name, Measure, I}, [Median | [known(End) || End <- [Low, High]]]}
     || #{name := Name, kind := Kind} <- Metrics,
        {I, Rounds} <- maps:to_list(Grouped),
        Measure <- measures(Kind),
        {ok, {Median, Low, High}} <- [atoll_bench_samples:summary(Name, Measure, Rounds)]
    ]).

known(none) -> null;
known(Number) -> Number.

measures(value) -> [value];
measures(latency) -> [50, 99].

%% @doc The median of the rounds of a point and the two ends of its interval; these are
%% `null' of too few rounds. Of a
%% latency there are the percentiles 50 and 99.
-spec summary(non_neg_integer(), {metric(), measure()}, data()) -> {ok, [number() | null, ...]} | none.
summary(I, {#{name := Name}, Measure}, #{summaries := Summaries}) ->
    case Summaries of
        #{{Name, Measure, I} := Summary} -> {ok, Summary};
        _ -> none
    end.

%% @doc A latency over all rounds of a point.
-spec merged(non_neg_integer(), metric(), data()) -> {ok, atoll_histogram:export()} | none.
merged(I, Metric, Data) ->
    case histograms(I, Metric, Data) of
        [] -> none;
        Histograms -> {ok, atoll_histogram:merge(Histograms)}
    end.

histograms(I, Metric, Data) ->
    [Histogram || Round <- rounds(I, Data), {ok, Histogram} <- [histogram(Metric, Round)]].

%% @doc The histogram of a latency in a round, if there is one with anything in it.
-spec histogram(metric(), map()) -> {ok, atoll_histogram:export()} | none.
histogram(#{name := Name}, Round) ->
    atoll_bench_samples:histogram(Name, Round).

%% @doc Whether other processes used so much of the machine that the round counts
%% as disturbed.
-spec disturbed(map()) -> boolean().
disturbed(Round) ->
    atoll_bench_samples:disturbed(Round).

%% @doc Above which share of the machine a round counts as disturbed.
-spec disturbed_from() -> float().
disturbed_from() -> atoll_bench_samples:disturbed_from().

%% @doc The share of the machine that other processes used during a round.
-spec others(map()) -> number().
others(Round) -> atoll_bench_samples:others(Round).

%% @doc The name of a parameter or metric with its unit.
-spec label(parameter() | metric()) -> binary().
label(#{label := Label, unit := Unit}) -> with_unit(Label, Unit);
label(#{name := Name, unit := Unit}) -> with_unit(Name, Unit).

with_unit(Name, <<>>) -> Name;
with_unit(Name, Unit) -> <<Name/binary, " (", Unit/binary, ")">>.
