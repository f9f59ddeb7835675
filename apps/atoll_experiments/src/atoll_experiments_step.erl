%% SPDX-License-Identifier: Apache-2.0
%% @doc One ask of an experiment, in a process of its own that is ended at its deadline, and all
%% that it has started with it.
-module(atoll_experiments_step).

-export([run/3]).
-export([do/2]).

%% @doc Does what is asked, and keeps its result in a file. What is not done in time is ended, and what
%% a benchmark had measured until then is in its file.
-spec run(atoll_experiment:ask(), file:filename_all(), Until :: integer()) -> ok | {error, unicode:chardata()}.
run(Ask, File, Until) ->
    Left = max(0, Until - erlang:monotonic_time(millisecond)),
    {Pid, Ref} = spawn_monitor(?MODULE, do, [Ask, File]),
    receive
        {'DOWN', Ref, process, Pid, {done, Answer}} -> Answer;
        {'DOWN', Ref, process, Pid, Reason} -> {error, io_lib:format("it ended with ~0tP", [Reason, 20])}
    after Left ->
        exit(Pid, kill),
        receive
            {'DOWN', Ref, process, Pid, {done, Answer}} -> Answer;
            {'DOWN', Ref, process, Pid, _} -> {error, "it was not done when the time of the experiment was over"}
        end
    end.

%% @private
-spec do(atoll_experiment:ask(), file:filename_all()) -> no_return().
do(#{do := {rows, _, Fun}}, File) ->
    exit({done, case Fun() of {ok, Rows} -> kept(File, Rows); {error, _} = Error -> Error end});
do(#{do := {How, Bench, Plan}} = Ask, File) ->
    Options = Plan#{file => File, command => atoll_experiment:says(Ask)},
    exit({done, case module(Bench) of
        {ok, Module} when How =:= bench -> measured(atoll_bench_run:run(Module, Options));
        {ok, Module} -> measured(atoll_experiments_at_once:run(Module, Options));
        {error, Error} -> {error, atoll_bench:format_error(Error)}
    end}).

module(Name) when is_list(Name) -> atoll_bench:find(Name);
module(Module) -> {ok, Module}.

measured({ok, #{failed := []}}) -> ok;
measured({ok, #{failed := [{_, Why} | _] = Failed}}) -> {error, io_lib:format("~b points could not be measured: ~ts", [length(Failed), Why])};
measured({error, Error}) -> {error, atoll_bench_run:format_error(Error)}.

kept(File, Rows) ->
    case file:write_file(File, [atoll_bench_json:encode(Rows), $\n]) of
        ok -> ok;
        {error, Reason} -> {error, io_lib:format("~ts: ~ts", [File, file:format_error(Reason)])}
    end.
