%% SPDX-License-Identifier: Apache-2.0
%% @doc The curves in which {@link atoll_bench_knee} looks, from the result files of
%% {@link atoll_bench_debench}: for all points that differ in the number of nodes alone, the share of
%% the offered load that each round has done. Files that have measured the same are taken together.
%%
%% Of a closed loop the share is not known, and there is no curve.
%%
%% Rounds that others disturbed are left out, as in a comparison, where a point has others. At
%% which numbers of nodes points have failed is told with the knee: what broke down there
%% altogether is no part of the curve, and would look as if nobody had asked.
-module(atoll_bench_knee_curves).

-export([of_runs/1, knees/2, disturbed/1, format_error/1]).

-export_type([key/0, found/0, error/0]).

-type key() :: [{Parameter :: binary(), Value :: number() | binary()}].
%% All parameters but the number of nodes, in the order in which the benchmark has them.

-type found() :: {key(), atoll_bench_knee:curve(), atoll_bench_knee:knee(), Failed :: [Nodes :: pos_integer()]}.
%% At which numbers of nodes a point has failed, also where another run of it has not.

-type error() :: {file:filename_all(), {benchmark, Name :: binary()}} | {file:filename_all(), no_rounds}.

-define(BENCHMARK, <<"debench">>).
-define(NODES, <<"nodes">>).
-define(METRIC, <<"goodput_percent">>).

%% @doc The curves of runs, sorted.
-spec of_runs([atoll_bench_file:run()]) -> {ok, [{key(), atoll_bench_knee:curve()}]} | {error, error()}.
of_runs(Runs) ->
    Wrong =
        [{File, {benchmark, Name}} || #{file := File, header := #{<<"benchmark">> := Name}} <- Runs,
                                      Name =/= ?BENCHMARK] ++
            [{File, no_rounds} || #{file := File, rounds := [], errors := []} <- Runs],
    case Wrong of
        [] -> {ok, curves(lists:append([points(Run) || Run <- Runs]))};
        [Error | _] -> {error, Error}
    end.

curves(Points) ->
    [
        {Key, Curve}
     || Key <- lists:usort([K || {K, _, _} <- Points]),
        [_ | _] = Curve <- [
            [
                {N, Shares}
             || N <- sizes(Key, Points),
                [_ | _] = Shares <- [shares(lists:append([Rounds || {K, M, Rounds} <- Points, K =:= Key, M =:= N]))]
            ]
        ]
    ].

%% @doc The curves of runs with their knees, sorted, and where points have failed; of what has
%% failed at all numbers of nodes the curve has none.
-spec knees([atoll_bench_file:run()], atoll_bench_knee:options()) -> {ok, [found()]} | {error, error()}.
knees(Runs, Options) ->
    case of_runs(Runs) of
        {ok, Curves} ->
            Failed = lists:append([failures(Run) || Run <- Runs]),
            Keys = lists:usort([Key || {Key, _} <- Curves] ++ [Key || {Key, _} <- Failed]),
            {ok, [
                {Key, Curve, atoll_bench_knee:find(Curve, Options), lists:usort([N || {K, N} <- Failed, K =:= Key])}
             || Key <- Keys, Curve <- [proplists:get_value(Key, Curves, [])]
            ]};
        {error, _} = Error ->
            Error
    end.

sizes(Key, Points) -> lists:usort([N || {K, N, _} <- Points, K =:= Key]).

%% The points that have rounds.
points(#{rounds := Rounds} = Run) ->
    [
        {Key, N, Own}
     || {Index, Key, N} <- placed(Run), [_ | _] = Own <- [[Round || #{<<"point">> := I} = Round <- Rounds, I =:= Index]]
    ].

failures(#{errors := Errors} = Run) ->
    [{Key, N} || {Index, Key, N} <- placed(Run), #{<<"point">> := I} <- Errors, I =:= Index].

placed(#{header := #{<<"points">> := Points, <<"parameters">> := Parameters}}) ->
    Others = [Name || #{<<"name">> := Name} <- Parameters, Name =/= ?NODES],
    [
        {Index, [{Name, map_get(Name, Point)} || Name <- Others], map_get(?NODES, Point)}
     || {Index, Point} <- lists:zip(lists:seq(0, length(Points) - 1), Points)
    ].

shares(Rounds) ->
    Quiet = [Round || Round <- Rounds, not atoll_bench_samples:disturbed(Round)],
    Used = case Quiet of [] -> Rounds; _ -> Quiet end,
    [Percent / 100 || Percent <- atoll_bench_samples:all(?METRIC, value, Used)].

%% @doc How many rounds of these runs others have disturbed, and of how many.
-spec disturbed([atoll_bench_file:run()]) -> {non_neg_integer(), non_neg_integer()}.
disturbed(Runs) ->
    Rounds = lists:append([Rounds || #{rounds := Rounds} <- Runs]),
    {length([Round || Round <- Rounds, atoll_bench_samples:disturbed(Round)]), length(Rounds)}.

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({File, {benchmark, Name}}) ->
    io_lib:format("~ts: this is a run of ~ts, and only one of ~ts has a knee", [File, Name, ?BENCHMARK]);
format_error({File, no_rounds}) ->
    io_lib:format("~ts: no round of this run is over", [File]).
