%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs a program to its end, within a time. What it says is of use only if it fails.
%%
%% The port to it belongs to a process of its own: nothing of it, be it late output or an
%% exit, comes to the caller. That process ends with the caller, and the port with it; of
%% a program that does not read its standard input nothing more is promised.
-module(atoll_cluster_program).

-export([run/3]).

%% @doc Runs it; of one that fails or takes too long, what it said.
-spec run(file:filename_all(), [string() | binary()], Ms :: non_neg_integer()) -> ok | {error, Said :: binary()}.
run(Program, Args, Ms) ->
    Caller = self(),
    {Runner, Ref} = spawn_monitor(fun() -> Caller ! {self(), runner(Caller, Program, Args, Ms)} end),
    receive
        {Runner, Result} ->
            true = demonitor(Ref, [flush]),
            Result;
        {'DOWN', Ref, process, Runner, {not_opened, Reason}} -> error(Reason);
        {'DOWN', Ref, process, Runner, Reason} -> exit(Reason)
    end.

runner(Caller, Program, Args, Ms) ->
    Gone = monitor(process, Caller),
    try open_port({spawn_executable, Program}, [{args, Args}, exit_status, stderr_to_stdout, binary, hide]) of
        Port -> await(Port, Gone, erlang:monotonic_time(millisecond) + Ms, <<>>)
    catch
        error:Reason -> exit({not_opened, Reason})
    end.

await(Port, Gone, Until, Said) ->
    receive
        {Port, {data, Data}} -> await(Port, Gone, Until, <<Said/binary, Data/binary>>);
        {Port, {exit_status, 0}} -> ok;
        {Port, {exit_status, _}} -> {error, Said};
        {'DOWN', Gone, process, _, _} -> {error, Said}
    after max(0, Until - erlang:monotonic_time(millisecond)) ->
        {error, <<Said/binary, "it took too long.">>}
    end.
