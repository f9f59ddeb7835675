%% SPDX-License-Identifier: Apache-2.0
%% @doc The samples of an experiment: what a run has of a quantity at a point, a number for each
%% start of the nodes, without the rounds that others disturbed ({@link atoll_bench_samples}).
-module(atoll_experiments_samples).

-export([by_start/3, heedless/1, disturbed/1, starts/1, rows/1]).

-export_type([samples/0]).

-type samples() :: [{Start :: pos_integer(), number()}].

%% @doc By the numbers of the starts. There is none of a start without an undisturbed round, nor
%% where something would be divided by nothing.
-spec by_start(atoll_experiment:quantity(), atoll_experiment:point(), atoll_bench_file:run()) -> samples().
by_start({sum, Of}, Point, Run) ->
    each([by_start(Q, Point, Run) || Q <- Of], fun(Values) -> [lists:sum(Values)] end);
by_start({product, Of}, Point, Run) ->
    each([by_start(Q, Point, Run) || Q <- Of], fun(Values) -> [lists:foldl(fun erlang:'*'/2, 1, Values)] end);
by_start({times, Of, There}, Point, Run) ->
    each([by_start(Of, Point, Run), by_start(Of, maps:merge(Point, There), Run)], fun([A, B]) -> [A / B || B > 0] end);
by_start({more_than, Of, There}, Point, Run) ->
    each([by_start(Of, Point, Run), by_start(Of, maps:merge(Point, There), Run)], fun([A, B]) -> [A - B] end);
by_start(Metric, Point, #{header := #{<<"metrics">> := Metrics}} = Run) ->
    Name = atom_to_binary(Metric),
    Measure = case [K || #{<<"name">> := N, <<"kind">> := K} <- Metrics, N =:= Name] of
        [<<"latency">>] -> 50;
        _ -> value
    end,
    Rounds = rounds(Point, Run),
    [
        {Start, Value}
     || Start <- lists:usort([start(Round) || Round <- Rounds]),
        Value <- atoll_bench_samples:starts(Name, Measure, [Round || Round <- Rounds, start(Round) =:= Start])
    ].

%% What all have of the same start.
each([First | Others], Fun) ->
    [
        {Start, Value}
     || {Start, A} <- First,
        lists:all(fun(Other) -> lists:keymember(Start, 1, Other) end, Others),
        Value <- Fun([A | [element(2, lists:keyfind(Start, 1, Other)) || Other <- Others]])
    ].

%% @doc The same run as if nobody had looked at what others did: with the disturbed rounds. For what
%% is shown where there is nothing else.
-spec heedless(atoll_bench_file:run()) -> atoll_bench_file:run().
heedless(#{rounds := Rounds} = Run) -> Run#{rounds := [maps:remove(<<"others_cpu">>, Round) || Round <- Rounds]}.

%% @doc How many rounds others have disturbed, and of how many.
-spec disturbed(atoll_bench_file:run()) -> {non_neg_integer(), non_neg_integer()}.
disturbed(#{rounds := Rounds}) ->
    {length([Round || Round <- Rounds, atoll_bench_samples:disturbed(Round)]), length(Rounds)}.

%% @doc How many starts a run has.
-spec starts(atoll_bench_file:run()) -> non_neg_integer().
starts(#{rounds := Rounds}) -> length(lists:usort([start(Round) || Round <- Rounds])).

start(Round) -> maps:get(<<"start">>, Round, 1).

rounds(Point, #{header := #{<<"points">> := Points}, rounds := Rounds}) ->
    Of = [Index || {Index, Has} <- lists:zip(lists:seq(0, length(Points) - 1), Points), fits(Point, Has)],
    [Round || #{<<"point">> := Index} = Round <- Rounds, lists:member(Index, Of)].

fits(Point, Has) ->
    lists:all(
        fun
            ({Key, Value}) when is_atom(Value) -> maps:get(atom_to_binary(Key), Has, none) =:= atom_to_binary(Value);
            ({Key, Value}) -> maps:get(atom_to_binary(Key), Has, none) == Value
        end,
        maps:to_list(Point)
    ).

%% @doc An answer as rows: of a run one for each round, disturbed or not, since what is counted
%% does not depend on that.
-spec rows(atoll_experiment:answer()) -> [#{binary() => term()}].
rows({rows, Rows}) ->
    Rows;
rows({run, #{header := #{<<"points">> := Points}, rounds := Rounds}}) ->
    [
        maps:merge(maps:merge(lists:nth(Index + 1, Points), Values), maps:with([<<"start">>, <<"round">>, <<"said">>], Round))
     || #{<<"point">> := Index, <<"values">> := Values} = Round <- Rounds
    ].
