%% SPDX-License-Identifier: Apache-2.0
%% @doc A load as a result file of the harness ({@link atoll_bench_file}), for
%% `atoll bench report' to draw: throughput and latency over the time, and the distribution of the
%% latencies, with a line for each operation, as the original's graphs have them. Each interval of all
%% nodes together is a point, measured once.
-module(atoll_bench_record).

-export([write/3]).

-export_type([about/0]).

-type about() :: #{seed := integer(), command := unicode:chardata(), benchmark := binary(), summary := binary()}.

%% @doc Writes the file, which must not be there yet; `Looks' are of all nodes together, one for each
%% interval.
-spec write(file:filename_all(), Looks :: [atoll_bench_window:look(), ...], about()) ->
    ok | {error, {file:filename_all(), file:posix() | badarg | terminated | system_limit}}.
write(Name, [First | _] = Looks, About) ->
    Windows = lists:zipwith(fun atoll_bench_window:between/2, [atoll_bench_window:outset(First) | lists:droplast(Looks)], Looks),
    Measured = [{point(Window, Label), round_of(Window, Of)} || #{labels := Labels} = Window <- Windows, {Label, Of} <- Labels],
    {Points, Rounds} = lists:unzip(Measured),
    case atoll_bench_file:create(Name, header(Points, About)) of
        {ok, File} ->
            appended(Name, File, [Round#{point => N} || {N, Round} <- lists:zip(lists:seq(0, length(Rounds) - 1), Rounds)]);
        {error, {Name, {file, Reason}}} ->
            {error, {Name, Reason}}
    end.

appended(Name, File, []) ->
    named(Name, atoll_bench_file:close(File, complete));
appended(Name, File, [Line | Lines]) ->
    case atoll_bench_file:append(File, Line) of
        ok ->
            appended(Name, File, Lines);
        {error, _} = Error ->
            _ = atoll_bench_file:close(File, partial),
            named(Name, Error)
    end.

named(_Name, ok) -> ok;
named(Name, {error, Reason}) -> {error, {Name, Reason}}.

point(#{elapsed_s := Elapsed}, Label) -> #{elapsed => round(1000 * Elapsed) / 1000, operation => Label}.

round_of(#{elapsed_s := Elapsed, window_s := Length, shed := Shed}, #{latency := Latency, errors := Errors}) ->
    Per = fun(Count) -> Count / max(0.001, Length) end,
    #{
        round => 1, start => 1, at_ms => round(1000 * (Elapsed - Length)), wall_ms => round(1000 * Length), others_cpu => null,
        values => #{throughput => Per(atoll_histogram:count(Latency)), errors => Per(Errors), shed => Per(Shed)},
        histograms => #{latency => Latency}
    }.

header(Points, #{seed := Seed, command := Command, benchmark := Benchmark, summary := Summary}) ->
    #{
        benchmark => Benchmark,
        summary => Summary,
        started => list_to_binary(calendar:system_time_to_rfc3339(erlang:system_time(second), [{offset, "Z"}])),
        parameters => [
            #{name => elapsed, type => number, values => lists:usort([E || #{elapsed := E} <- Points]), unit => <<"s">>},
            #{name => operation, type => atom, values => lists:uniq([O || #{operation := O} <- Points])}
        ],
        variant => operation,
        metrics => [
            #{name => throughput, label => <<"Throughput">>, unit => <<"1/s">>, better => more, kind => value},
            #{name => errors, label => <<"Errors">>, unit => <<"1/s">>, better => less, kind => value},
            #{name => shed, label => <<"Not begun in time, all operations">>, unit => <<"1/s">>, better => less, kind => value},
            #{name => latency, label => <<"Latency">>, unit => <<"ns">>, better => less, kind => latency}
        ],
        points => Points,
        rounds => 1,
        starts => 1,
        seed => Seed,
        machine => atoll_bench_machine:describe(),
        atoll => list_to_binary(atoll:version()),
        commit => atoll_bench_commit:describe(),
        command => unicode:characters_to_binary(Command)
    }.
