%% SPDX-License-Identifier: Apache-2.0
%% @doc The CSV files of a load, in the form of Basho Bench and DE-Bench: times in microseconds, `elapsed'
%% and `window' in seconds. One file for each label, one for all of them, and one of the errors.
-module(atoll_bench_csv).

-export([files/1, write/2]).

-export_type([file/0]).

-type file() :: {Name :: string(), unicode:chardata()}.

-define(LATENCIES, "elapsed, window, n, min, mean, median, 95th, 99th, 99_9th, max, errors\n").
-define(SUMMARY, "elapsed, window, total, successful, failed\n").

%% @doc The files of looks, one after the other, at the same node or at all of them.
-spec files([atoll_bench_window:look(), ...]) -> [file(), ...].
files([#{labels := Labels} = First | _] = Looks) ->
    Windows = windows([atoll_bench_window:outset(First) | Looks]),
    [latencies(Label, Windows) || {Label, _} <- Labels] ++ [summary(Windows), errors(lists:last(Looks))].

windows([Before | [After | _] = Looks]) -> [atoll_bench_window:between(Before, After) | windows(Looks)];
windows([_]) -> [].

latencies(Label, Windows) ->
    Rows = [
        row(
            [seconds(Elapsed), seconds(Length), integer_to_list(atoll_histogram:count(Latency))] ++
                numbers(Latency) ++ [integer_to_list(Errors)]
        )
     || #{elapsed_s := Elapsed, window_s := Length, labels := Labels} <- Windows,
        {L, #{latency := Latency, errors := Errors}} <- Labels,
        L =:= Label
    ],
    {atom_to_list(Label) ++ "_latencies.csv", [?LATENCIES, Rows]}.

numbers(Latency) ->
    [us(atoll_histogram:min(Latency)), mean(atoll_histogram:mean(Latency))] ++
        [us(atoll_histogram:percentile(Latency, P)) || P <- [50, 95, 99, 99.9]] ++ [us(atoll_histogram:max(Latency))].

%% A window without an operation has zeros, as in the original.
us(none) -> "0";
us(Ns) -> integer_to_list(round(Ns / 1000)).

mean(none) -> "0";
mean(Ns) -> float_to_list(Ns / 1000, [{decimals, 1}]).

summary(Windows) ->
    Rows = [
        row([seconds(Elapsed), seconds(Length) | [integer_to_list(N) || N <- [Ok + Failed, Ok, Failed]]])
     || #{elapsed_s := Elapsed, window_s := Length, successful := Ok, failed := Failed} <- Windows
    ],
    {"summary.csv", [?SUMMARY, Rows]}.

errors(#{labels := Labels, shed := Shed}) ->
    Errors = [{io_lib:format("~ts: ~ts", [Label, Reason]), N} || {Label, #{errors := Of}} <- Labels, {Reason, N} <- Of],
    Rows = [io_lib:format("\"~ts\",\"~b\"~n", [What, N]) || {What, N} <- Errors ++ [{"shed", Shed} || Shed > 0]],
    {"errors.csv", ["\"error\",\"count\"\n", Rows]}.

seconds(S) -> float_to_list(S, [{decimals, 3}, compact]).

row(Cells) -> [lists:join(", ", Cells), $\n].

%% @doc Writes files into a directory, which is made.
-spec write(file:filename(), [file()]) -> ok | {error, {file:filename(), file:posix() | badarg | terminated | system_limit}}.
write(Dir, Files) ->
    each(
        [fun() -> {Dir, filelib:ensure_dir(filename:join(Dir, "x"))} end] ++
            [
                fun() ->
                    Name = filename:join(Dir, File),
                    {Name, file:write_file(Name, unicode:characters_to_binary(Text))}
                end
             || {File, Text} <- Files
            ]
    ).

each([]) ->
    ok;
each([Write | Writes]) ->
    case Write() of
        {_, ok} -> each(Writes);
        {Name, {error, Reason}} -> {error, {Name, Reason}}
    end.
