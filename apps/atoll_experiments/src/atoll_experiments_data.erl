%% @doc Numbers from the file of a run, by point and metric, and how a page writes them.
-module(atoll_experiments_data).

-export([run/2, value/3, spread/3, samples/3, series/4, number/1, ordered/1]).

-export_type([point/0]).

%% Some of the parameters; texts are binaries, as in the file.
-type point() :: #{atom() => number() | atom()}.

%% @doc The run that a step gave; none if it failed.
-spec run(atom(), atoll_experiment:results()) -> atoll_bench_file:run() | none.
run(Key, Results) ->
    case Results of
        #{Key := {ok, #{header := _} = Run}} -> Run;
        #{} -> none
    end.

%% @doc The median of a metric over the rounds of the points that have these values.
-spec value(point(), Metric :: atom(), atoll_bench_file:run() | none) -> number() | none.
value(Point, Metric, Run) ->
    case samples(Point, Metric, Run) of
        [] -> none;
        [_ | _] = Samples -> atoll_bench_stats:median(Samples)
    end.

%% @doc The same with its interval.
-spec spread(point(), Metric :: atom(), atoll_bench_file:run() | none) -> atoll_experiments_spread:spread().
spread(Point, Metric, Run) ->
    atoll_experiments_spread:of_samples(samples(Point, Metric, Run)).

%% @doc All of them, a number for each round; of a latency the median in each, nanoseconds.
-spec samples(point(), Metric :: atom(), atoll_bench_file:run() | none) -> [number()].
samples(_Point, _Metric, none) ->
    [];
samples(Point, Metric, #{header := #{<<"points">> := Points, <<"metrics">> := Metrics}, rounds := Rounds}) ->
    Name = atom_to_binary(Metric),
    Of = [Index || {Index, Has} <- lists:zip(lists:seq(0, length(Points) - 1), Points), fits(Point, Has)],
    Kind = case [K || #{<<"name">> := N, <<"kind">> := K} <- Metrics, N =:= Name] of
        [<<"latency">>] -> 50;
        _ -> value
    end,
    atoll_bench_samples:all(Name, Kind, [Round || #{<<"point">> := Index} = Round <- Rounds, lists:member(Index, Of)]).

fits(Point, Has) ->
    maps:fold(
        fun
            (Key, Value, Fits) when is_atom(Value) -> Fits andalso maps:get(atom_to_binary(Key), Has, none) =:= atom_to_binary(Value);
            (Key, Value, Fits) -> Fits andalso maps:get(atom_to_binary(Key), Has, none) == Value
        end,
        true,
        Point
    ).

%% @doc The same for each value of one parameter that was measured, the smallest first.
-spec series(Parameter :: atom(), point(), Metric :: atom(), atoll_bench_file:run() | none) ->
    [{number(), number()}].
series(_Parameter, _Point, _Metric, none) ->
    [];
series(Parameter, Point, Metric, #{header := #{<<"points">> := Points}} = Run) ->
    Key = atom_to_binary(Parameter),
    [
        {At, Value}
     || At <- lists:usort([Number || #{Key := Number} <- Points, is_number(Number)]),
        Value <- [value(Point#{Parameter => At}, Metric, Run)],
        Value =/= none
    ].

%% @doc A number as a page has it; a dash for none.
-spec number(number() | none) -> binary().
number(none) -> <<"–"/utf8>>;
number(N) when is_float(N), N == trunc(N), abs(N) < 1.0e15 -> atoll_bench_report_text:number(trunc(N));
number(N) -> atoll_bench_report_text:number(N).

%% @doc Whether each is smaller than the next; unknown where one is missing.
-spec ordered([number() | none]) -> atoll_experiment:holds().
ordered(Numbers) ->
    case lists:member(none, Numbers) of
        true -> unknown;
        false -> lists:all(fun({A, B}) -> A < B end, lists:zip(lists:droplast(Numbers), tl(Numbers)))
    end.
