%% @doc Two runs of one benchmark, point by point: what {@link atoll_bench_compare}
%% takes. Of a latency the median and the 99th percentile of each round are samples.
-module(atoll_bench_pair).

-export([comparisons/2, format_error/1]).

-export_type([key/0, error/0]).

-type key() :: {Point :: #{binary() => binary() | integer()}, Metric :: map(), What :: value | p50 | p99}.

-type error() ::
    {benchmarks, binary(), binary()}
    %% They have no point in common that was measured in both.
    | disjoint.

%% @doc All that was measured at points that both runs have, in the order of the
%% first.
-spec comparisons(atoll_bench_file:run(), atoll_bench_file:run()) ->
    {ok, [{key(), [number(), ...], [number(), ...], more | less}, ...]} | {error, error()}.
comparisons(#{header := #{<<"benchmark">> := A}}, #{header := #{<<"benchmark">> := B}}) when A =/= B ->
    {error, {benchmarks, A, B}};
comparisons(#{header := #{<<"points">> := Points, <<"metrics">> := Metrics}} = First, Second) ->
    Found = [
        {{Point, Metric, What}, One, Two, better(Metric)}
     || Point <- Points,
        Metric <- Metrics,
        What <- whats(Metric),
        [_ | _] = One <- [samples(Point, Metric, What, First)],
        [_ | _] = Two <- [samples(Point, Metric, What, Second)]
    ],
    case Found of
        [] -> {error, disjoint};
        [_ | _] -> {ok, Found}
    end.

whats(#{<<"kind">> := <<"latency">>}) -> [p50, p99];
whats(_Metric) -> [value].

better(#{<<"better">> := <<"more">>}) -> more;
better(_Metric) -> less.

samples(Point, #{<<"name">> := Name}, What, #{header := #{<<"points">> := Points}, rounds := Rounds}) ->
    Numbered = lists:zip(lists:seq(0, length(Points) - 1), Points),
    Indices = [Index || {Index, P} <- Numbered, P =:= Point],
    Own = [Round || #{<<"point">> := Index} = Round <- Rounds, lists:member(Index, Indices)],
    atoll_bench_samples:all(Name, measure(What), Own).

measure(value) -> value;
measure(p50) -> 50;
measure(p99) -> 99.

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({benchmarks, A, B}) ->
    ["one is a run of ", A, ", the other of ", B];
format_error(disjoint) ->
    "the two runs have no point in common".
