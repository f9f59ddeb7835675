%% SPDX-License-Identifier: Apache-2.0
%% @doc Looks at what a load has done so far: what lies between two of them, and those of all nodes as one. Pure.
-module(atoll_bench_window).

-export([merged/1, between/2, outset/1]).

-export_type([look/0, done/0, window/0, of_label/0]).

-type look() :: #{
    %% Since the start.
    elapsed_ms := non_neg_integer(),
    %% Workers that were started anew.
    restarts := non_neg_integer(),
    %% Operations that were to begin in the window so far.
    offered := non_neg_integer(),
    labels := [{Label :: atom(), done()}],
    completed := non_neg_integer(),
    %% Not begun, since too many before them were waiting.
    shed := non_neg_integer(),
    %% In the window, when it is over.
    sent => non_neg_integer(),
    cpu_us => non_neg_integer()
}.

-type done() :: #{
    %% Of those that went well; and of those that did not, where that is kept.
    latency := atoll_histogram:export(),
    failed => atoll_histogram:export(),
    ok := non_neg_integer(),
    errors := [{Reason :: atom() | binary(), pos_integer()}],
    drawn := non_neg_integer(),
    done := non_neg_integer()
}.

-type window() :: #{
    %% When it ended since the start, and how long it is.
    elapsed_s := float(),
    window_s := float(),
    labels := [{Label :: atom(), of_label()}],
    successful := non_neg_integer(),
    %% Refused, wrong or not answered, or shed.
    failed := non_neg_integer(),
    shed := non_neg_integer()
}.

-type of_label() :: #{latency := atoll_histogram:export(), errors := non_neg_integer()}.

%% @doc What a look would have been before anything was done, with the labels of another.
-spec outset(atoll_bench_window:look()) -> atoll_bench_window:look().
outset(#{labels := Labels}) ->
    Nothing = #{latency => atoll_histogram:merge([]), ok => 0, errors => [], drawn => 0, done => 0},
    #{
        elapsed_ms => 0, restarts => 0, offered => 0, completed => 0, shed => 0,
        labels => [{Label, Nothing} || {Label, _} <- Labels]
    }.

%% @doc The window between two looks.
-spec between(Before :: atoll_bench_window:look(), After :: atoll_bench_window:look()) -> window().
between(#{elapsed_ms := Begun, labels := Before, shed := Shed0}, #{elapsed_ms := Ended, labels := After, shed := Shed}) ->
    Labels = [{Label, less(Of0, Of)} || {{Label, Of0}, {Label, Of}} <- lists:zip(Before, After)],
    #{
        elapsed_s => Ended / 1000,
        window_s => (Ended - Begun) / 1000,
        labels => Labels,
        successful => lists:sum([Count || {_, #{latency := #{count := Count}}} <- Labels]),
        failed => Shed - Shed0 + lists:sum([Errors || {_, #{errors := Errors}} <- Labels]),
        shed => Shed - Shed0
    }.

less(#{latency := Latency0, errors := Errors0}, #{latency := Latency, errors := Errors}) ->
    #{latency => atoll_histogram:since(Latency0, Latency), errors => counted(Errors) - counted(Errors0)}.

counted(Errors) -> lists:sum([N || {_, N} <- Errors]).

%% @doc The looks of all nodes as one; its elapsed time is that of the first.
-spec merged([atoll_bench_window:look(), ...]) -> atoll_bench_window:look().
merged([First | _] = Looks) ->
    Sum = fun(Key) -> lists:sum([maps:get(Key, Look) || Look <- Looks]) end,
    Sums = [Key || Key <- [restarts, offered, completed, shed, sent, cpu_us], is_map_key(Key, First)],
    (maps:from_list([{Key, Sum(Key)} || Key <- Sums]))#{
        elapsed_ms => maps:get(elapsed_ms, First),
        labels => [
            {Label, of_label([Of || #{labels := Labels} <- Looks, {L, Of} <- Labels, L =:= Label])}
         || {Label, _} <- maps:get(labels, First)
        ]
    }.

of_label(Ofs) ->
    Sum = fun(Key) -> lists:sum([maps:get(Key, Of) || Of <- Ofs]) end,
    Errors = [Error || #{errors := Errors} <- Ofs, Error <- Errors],
    Failed = [Latency || #{failed := Latency} <- Ofs],
    (maps:from_list([{failed, atoll_histogram:merge(Failed)} || Failed =/= []]))#{
        latency => atoll_histogram:merge([Latency || #{latency := Latency} <- Ofs]),
        ok => Sum(ok),
        drawn => Sum(drawn),
        done => Sum(done),
        errors => [
            {Reason, lists:sum([N || {R, N} <- Errors, R =:= Reason])}
         || Reason <- lists:usort([R || {R, _} <- Errors])
        ]
    }.
