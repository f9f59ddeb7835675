%% SPDX-License-Identifier: Apache-2.0
%% @doc Two runs of one benchmark, point by point: what {@link atoll_bench_compare}
%% takes, and what it leaves out. A sample is a start of the nodes: the median of its
%% rounds that were not disturbed ({@link atoll_bench_samples:starts/3}), of a latency
%% that of their medians and that of their 99th percentiles.
%%
%% A metric that another one settles (`derived') is left out: it would be counted twice.
-module(atoll_bench_pair).

-export([comparisons/2, left_out/2, format_error/1]).

-export_type([key/0, error/0]).

-type key() :: {Point :: #{binary() => binary() | integer()}, Metric :: map(), What :: value | p50 | p99}.

-type error() ::
    {benchmarks, binary(), binary()}
    %% They have no point in common that was measured in both.
    | disjoint.

%% @doc All that was measured at points that both runs have, in the order of the
%% first. There are no samples where all rounds were disturbed.
-spec comparisons(atoll_bench_file:run(), atoll_bench_file:run()) ->
    {ok, [{key(), [number(), ...], [number(), ...], more | less}, ...]} | {error, error()}.
comparisons(#{header := #{<<"benchmark">> := A}}, #{header := #{<<"benchmark">> := B}}) when A =/= B ->
    {error, {benchmarks, A, B}};
comparisons(#{header := #{<<"points">> := Points, <<"metrics">> := Metrics}} = First, Second) ->
    Found = [
        {{Point, Metric, What}, One, Two, better(Metric)}
     || Point <- Points,
        Metric <- Metrics,
        not is_derived(Metric),
        is_measured(Point, Metric, First),
        is_measured(Point, Metric, Second),
        What <- whats(Metric),
        One <- [samples(Point, Metric, What, First)],
        Two <- [samples(Point, Metric, What, Second)]
    ],
    case Found of
        [] -> {error, disjoint};
        [_ | _] -> {ok, Found}
    end.

whats(#{<<"kind">> := <<"latency">>}) -> [p50, p99];
whats(_Metric) -> [value].

better(#{<<"better">> := <<"more">>}) -> more;
better(_Metric) -> less.

is_derived(Metric) ->
    maps:get(<<"derived">>, Metric, false) =:= true.

is_measured(Point, #{<<"name">> := Name} = Metric, Run) ->
    [First | _] = whats(Metric),
    atoll_bench_samples:all(Name, measure(First), own(Point, Run)) =/= [].

samples(Point, #{<<"name">> := Name}, What, Run) ->
    atoll_bench_samples:starts(Name, measure(What), own(Point, Run)).

own(Point, #{header := #{<<"points">> := Points}, rounds := Rounds}) ->
    Numbered = lists:zip(lists:seq(0, length(Points) - 1), Points),
    Indices = [Index || {Index, P} <- Numbered, P =:= Point],
    [Round || #{<<"point">> := Index} = Round <- Rounds, lists:member(Index, Indices)].

measure(value) -> value;
measure(p50) -> 50;
measure(p99) -> 99.

%% @doc What of two runs of one benchmark does not enter their comparison, or is too
%% little for it: a sentence for each.
-spec left_out(atoll_bench_file:run(), atoll_bench_file:run()) -> [unicode:chardata()].
left_out(First, Second) ->
    [Sentence || {Own, Other} <- [{First, Second}, {Second, First}], Sentence <- lacks(Own, Other)].

lacks(#{file := File, header := #{<<"points">> := Points}, rounds := Rounds, errors := Errors}, Other) ->
    #{header := #{<<"points">> := Others}} = Other,
    Disturbed = length([Round || Round <- Rounds, atoll_bench_samples:disturbed(Round)]),
    Starts = length(lists:usort([maps:get(<<"start">>, Round, 1) || Round <- Rounds])),
    [io_lib:format("~ts of ~ts only in this run.", [count(N, "point"), are(N, File)]) || N <- [length(Points -- Others)], N > 0] ++
        [io_lib:format("~ts failed in ~ts.", [count(N, "point"), File]) || N <- [length(Errors)], N > 0] ++
        [
            io_lib:format("~b of ~b rounds of ~ts were disturbed by other processes, and are left out.", [Disturbed, length(Rounds), File])
         || Disturbed > 0
        ] ++
        [
            io_lib:format("~ts has ~ts of its nodes; with fewer than ~b all is unclear.", [
                File, count(Starts, "start"), atoll_bench_compare:fewest()
            ])
         || Starts < atoll_bench_compare:fewest()
        ].

are(1, File) -> [File, " is"];
are(_, File) -> [File, " are"].

count(1, Thing) -> ["1 ", Thing];
count(N, Thing) -> [integer_to_list(N), $\s, Thing, $s].

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({benchmarks, A, B}) ->
    ["one is a run of ", A, ", the other of ", B];
format_error(disjoint) ->
    "the two runs have no point in common".
