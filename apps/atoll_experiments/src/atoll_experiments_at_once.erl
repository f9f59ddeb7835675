%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs a benchmark with all its points at the same time, for such as wait most of the time:
%% what they do in the same minute is compared, and a minute for each one after the other would
%% be hours. Each start of the nodes is one round, since nothing is warmed up: so a point may
%% also take its nodes down. The result file is that of `bench run'.
%%
%% A point that fails is written as failed, and left out of later starts. All nodes end with the
%% calling process.
-module(atoll_experiments_at_once).

-export([run/2]).

-define(READY_MS, 300000).

%% @doc Sets up all points, begins when all of them are ready, and so often.
-spec run(module(), #{sweep := atoll_bench:sweep(), starts := pos_integer(), file := file:filename_all(), command := unicode:chardata()}) ->
    {ok, #{failed := [{atoll_bench:point(), unicode:chardata()}], _ => _}} | {error, atoll_bench_run:error()}.
run(Module, #{sweep := Sweep, starts := Starts, file := Name} = Options) ->
    case atoll_bench:sweep(Module, Sweep) of
        {ok, Points} ->
            Header = atoll_bench_run:header(Module, Points, Options#{rounds => Starts}),
            case atoll_bench_file:create(Name, Header) of
                {ok, File} ->
                    Numbered = lists:zip(lists:seq(0, length(Points) - 1), Points),
                    Begun = now_ms(),
                    Failed = lists:foldl(
                        fun(Start, Lost) -> Lost ++ start(Start, Module, [P || {I, _} = P <- Numbered, not lists:keymember(I, 1, Lost)], File, Begun) end,
                        [],
                        lists:seq(1, Starts)
                    ),
                    ok = atoll_bench_file:close(File, complete),
                    {ok, #{failed => [{lists:nth(Index + 1, Points), Why} || {Index, Why} <- Failed]}};
                {error, Error} ->
                    {error, {file, Error}}
            end;
        {error, _} = Error ->
            Error
    end.

%% Those that fail.
start(Start, Module, Points, File, Begun) ->
    Self = self(),
    Workers = [{Index, spawn_link(fun() -> work(Module, Point, Start, Self) end)} || {Index, Point} <- Points],
    Ready = [{Index, Pid, said(Pid, ready, ?READY_MS)} || {Index, Pid} <- Workers],
    At = now_ms(),
    Before = atoll_bench_machine:look(),
    _ = [Pid ! begin_now || {_, Pid, ok} <- Ready],
    Done = [{Index, Pid, case How of ok -> said(Pid, done, infinity); Error -> Error end} || {Index, Pid, How} <- Ready],
    WallMs = now_ms() - At,
    Others = atoll_bench_machine:others(Before, atoll_bench_machine:look(), WallMs),
    _ = [Pid ! end_now || {_, Pid, {ok, _}} <- Done],
    ok = lists:foreach(fun({_, Pid}) -> gone(Pid) end, Workers),
    Base = #{start => Start, at_ms => At - Begun, wall_ms => WallMs, others_cpu => Others},
    lists:append([written(Index, Answer, Module, Base, File) || {Index, _, Answer} <- Done]).

written(Index, {ok, Measures}, Module, #{start := Start} = Base, File) ->
    ok = atoll_bench_file:append(File, atoll_bench_run:line(Index, Start, Measures, Module, Base)),
    [];
written(Index, {error, Why}, _Module, _Base, File) ->
    ok = atoll_bench_file:append(File, #{point => Index, error => unicode:characters_to_binary(Why)}),
    [{Index, Why}].

said(Pid, What, Ms) ->
    receive
        {Pid, What, Answer} -> Answer
    after Ms ->
        {error, "it did not come to be ready in time"}
    end.

gone(Pid) ->
    true = unlink(Pid),
    Ref = monitor(process, Pid),
    Pid ! end_now,
    receive {'DOWN', Ref, process, Pid, _} -> ok end.

work(Module, Point, Start, Self) ->
    case Module:setup(Point#{seed => Start}) of
        {ok, State} ->
            Self ! {self(), ready, ok},
            After = receive
                begin_now ->
                    case Module:round(State) of
                        {ok, Measures, New} ->
                            Self ! {self(), done, {ok, Measures}},
                            New;
                        {error, _} = Error ->
                            Self ! {self(), done, Error},
                            State
                    end;
                end_now ->
                    State
            end,
            Module:teardown(After);
        {error, _} = Error ->
            Self ! {self(), ready, Error}
    end.

now_ms() -> erlang:monotonic_time(millisecond).
