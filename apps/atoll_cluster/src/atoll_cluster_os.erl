%% SPDX-License-Identifier: Apache-2.0
%% @doc The operating system's processes on this machine, as `/proc' shows them.
%%
%% A process is known by its number and its start time: the number alone may
%% by now belong to another process. What this module does not promise is
%% atomicity: between the look and the signal a process may end and its number
%% be given away, in theory; numbers are not given again within microseconds.
-module(atoll_cluster_os).

-export([self/0, uid/0, start_time/1, state/1, signal/2, available_memory/0]).
-export([parse_stat/1, stat_fields/1]).

-include_lib("kernel/include/file.hrl").

-export_type([process/0, state/0]).

-type process() :: {Pid :: pos_integer(), StartTime :: non_neg_integer()}.
%% The start time is in clock ticks since the machine's boot.

-type state() :: running | stopped | gone.
%% `stopped' by a stop signal; a zombie is `gone'.

%% @doc The process of this VM.
-spec self() -> process().
self() ->
    Pid = list_to_integer(os:getpid()),
    {ok, Start} = start_time(Pid),
    {Pid, Start}.

%% @doc The user this VM runs as.
-spec uid() -> non_neg_integer().
uid() ->
    {ok, #file_info{uid = Uid}} = file:read_file_info("/proc/self"),
    true = is_integer(Uid),
    Uid.

%% @doc When a process started, if there is a process of that number.
-spec start_time(pos_integer()) -> {ok, non_neg_integer()} | gone.
start_time(Pid) ->
    case read_stat(Pid) of
        {_State, Start} -> {ok, Start};
        gone -> gone
    end.

%% @doc What a process is doing; one of another start time counts as gone.
-spec state(process()) -> state().
state({Pid, Start}) ->
    case read_stat(Pid) of
        {Letter, Start} -> state_of(Letter);
        _ -> gone
    end.

%% @doc Sends a signal, unless the process is gone.
-spec signal(process(), kill | stop | cont) -> ok | gone.
signal({Pid, _} = Process, Signal) ->
    case state(Process) of
        gone ->
            gone;
        _ ->
            %% Silence is success. What it says otherwise is that the process
            %% ended in between.
            case os:cmd("kill -" ++ name(Signal) ++ " " ++ integer_to_list(Pid)) of
                "" -> ok;
                _ -> gone
            end
    end.

%% @doc How many bytes can be had without swapping, where the system says so.
-spec available_memory() -> {ok, non_neg_integer()} | unknown.
available_memory() ->
    case file:read_file("/proc/meminfo") of
        {ok, Bin} ->
            case re:run(Bin, "^MemAvailable:\\s+(\\d+) kB", [multiline, {capture, [1], list}]) of
                {match, [KB]} -> {ok, list_to_integer(KB) * 1024};
                nomatch -> unknown
            end;
        {error, _} ->
            unknown
    end.

%% @doc State letter and start time from the text of `/proc/Pid/stat'.
-spec parse_stat(binary()) -> {Letter :: byte(), StartTime :: non_neg_integer()}.
parse_stat(Bin) ->
    [<<Letter>> | Fields] = stat_fields(Bin),
    %% Fields begins with field 4 of the file; the start time is field 22.
    {Letter, binary_to_integer(lists:nth(19, Fields))}.

%% @doc The fields of the text of `/proc/Pid/stat' from the third on, the state. The
%% command before it, in brackets, may itself hold blanks and brackets.
-spec stat_fields(binary()) -> [binary(), ...].
stat_fields(Bin) ->
    [_, Rest] = string:split(Bin, ") ", trailing),
    binary:split(Rest, [<<" ">>, <<"\n">>], [global]).

read_stat(Pid) ->
    case file:read_file("/proc/" ++ integer_to_list(Pid) ++ "/stat") of
        {ok, <<>>} -> gone;
        {ok, Bin} -> parse_stat(Bin);
        {error, _} -> gone
    end.

state_of(Letter) when Letter =:= $T; Letter =:= $t -> stopped;
state_of(Letter) when Letter =:= $Z; Letter =:= $X; Letter =:= $x -> gone;
state_of(_) -> running.

name(kill) -> "KILL";
name(stop) -> "STOP";
name(cont) -> "CONT".
