%% SPDX-License-Identifier: Apache-2.0
%% @doc What lies between two looks at what was done in DE-Bench, and the looks of all nodes as
%% one. Pure.
-module(debench_window).

-export([merged/1, between/2, outset/1]).

-export_type([window/0, of_label/0]).

-type window() :: #{
    %% When it ended since the start, and how long it is.
    elapsed_s := float(),
    window_s := float(),
    labels := [{Label :: atom(), of_label()}],
    successful := non_neg_integer(),
    %% Refused, wrong or not answered, or shed.
    failed := non_neg_integer()
}.

-type of_label() :: #{latency := atoll_histogram:export(), errors := non_neg_integer()}.

%% @doc What a look would have been before anything was done, with the labels of another.
-spec outset(debench_peer:look()) -> debench_peer:look().
outset(#{labels := Labels}) ->
    Nothing = #{latency => atoll_histogram:merge([]), ok => 0, errors => [], drawn => 0, done => 0},
    #{
        elapsed_ms => 0, restarts => 0, offered => 0, completed => 0, shed => 0,
        labels => [{Label, Nothing} || {Label, _} <- Labels]
    }.

%% @doc The window between two looks.
-spec between(Before :: debench_peer:look(), After :: debench_peer:look()) -> window().
between(#{elapsed_ms := Begun, labels := Before, shed := Shed0}, #{elapsed_ms := Ended, labels := After, shed := Shed}) ->
    Labels = [{Label, less(Of0, Of)} || {{Label, Of0}, {Label, Of}} <- lists:zip(Before, After)],
    #{
        elapsed_s => Ended / 1000,
        window_s => (Ended - Begun) / 1000,
        labels => Labels,
        successful => lists:sum([Count || {_, #{latency := #{count := Count}}} <- Labels]),
        failed => Shed - Shed0 + lists:sum([Errors || {_, #{errors := Errors}} <- Labels])
    }.

less(#{latency := Latency0, errors := Errors0}, #{latency := Latency, errors := Errors}) ->
    #{latency => atoll_histogram:since(Latency0, Latency), errors => counted(Errors) - counted(Errors0)}.

counted(Errors) -> lists:sum([N || {_, N} <- Errors]).

%% @doc The looks of all nodes as one; its elapsed time is that of the first.
-spec merged([debench_peer:look(), ...]) -> debench_peer:look().
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
    #{
        latency => atoll_histogram:merge([Latency || #{latency := Latency} <- Ofs]),
        ok => Sum(ok),
        drawn => Sum(drawn),
        done => Sum(done),
        errors => [
            {Reason, lists:sum([N || {R, N} <- Errors, R =:= Reason])}
         || Reason <- lists:usort([R || {R, _} <- Errors])
        ]
    }.
