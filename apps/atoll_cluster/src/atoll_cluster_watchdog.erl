%% SPDX-License-Identifier: Apache-2.0
%% @doc The VM's end of `priv/watchdog', the one way down of a cluster.
%%
%% The watchdog is an operating system process whose life line is its standard
%% input. It takes the cluster's processes down when told to, and when the VM
%% ends in whatever way. It has its own session and ignores what a terminal
%% sends; only SIGKILL ends it, which the owner of the port sees, and opens
%% another one on the same directory.
%%
%% The port's messages come to the process that opened it:
%% `{Port, {data, {eol, <<"done">>}}}' when nothing is left, and `{'DOWN', Ref,
%% port, Port, _}' when the watchdog has ended. The port is linked too: it must
%% close, and so begin the taking down, when its owner dies.
-module(atoll_cluster_watchdog).

-export([open/1, finish/1, ended/1, sweep/1]).

-export_type([watchdog/0]).

-type watchdog() :: #{
    port := port(),
    %% monitors the port
    ref := reference(),
    process := atoll_cluster_os:process()
}.

%% How long a shell may take to start on a busy machine.
-define(READY_MS, 10000).
%% How long the taking down of what a dead VM left may take.
-define(SWEEP_MS, 10000).

%% @doc Starts a watchdog for a run directory.
-spec open(Dir :: file:filename()) -> {ok, watchdog()} | {error, {watchdog, term()}}.
open(Dir) ->
    Script = filename:join(code:priv_dir(atoll_cluster), "watchdog"),
    Args = ["/bin/sh", Script, Dir],
    %% A port's process leads a group of its own, which keeps a terminal's
    %% Ctrl-C away; setsid also takes it out of the session.
    {Program, ProgramArgs} =
        case os:find_executable("setsid") of
            false -> {hd(Args), tl(Args)};
            Setsid -> {Setsid, Args}
        end,
    Port = open_port({spawn_executable, Program}, [{args, ProgramArgs}, {line, 80}, binary, hide]),
    Ref = erlang:monitor(port, Port),
    receive
        {Port, {data, {eol, <<"ready ", Text/binary>>}}} ->
            OsPid = binary_to_integer(Text),
            case atoll_cluster_os:start_time(OsPid) of
                {ok, Start} ->
                    {ok, #{port => Port, ref => Ref, process => {OsPid, Start}}};
                gone ->
                    close(Port, Ref),
                    {error, {watchdog, gone}}
            end;
        {'DOWN', Ref, port, Port, Reason} ->
            {error, {watchdog, Reason}}
    after ?READY_MS ->
        close(Port, Ref),
        {error, {watchdog, timeout}}
    end.

%% @doc Tells the watchdog to take everything down.
-spec finish(watchdog()) -> ok.
finish(#{port := Port}) ->
    %% A port that has just closed has a watchdog that has just died: the
    %% owner gets the 'DOWN' and opens another one.
    try port_command(Port, <<"end\n">>) of
        true -> ok
    catch
        error:badarg -> ok
    end.

%% @doc Waits for the very end of a watchdog whose port has gone down: between
%% the end of its output and that of its process there is a moment.
-spec ended(watchdog()) -> ok.
ended(#{process := Process} = Watchdog) ->
    case atoll_cluster_os:state(Process) of
        gone ->
            ok;
        _ ->
            receive after 1 -> ok end,
            ended(Watchdog)
    end.

%% @doc Takes down what owners that are gone have left, and waits for it.
-spec sweep([atoll_cluster_rundir:rundir()]) -> ok | {error, {watchdog, term()}}.
sweep([]) ->
    ok;
sweep([#{dir := Dir} | Rundirs]) ->
    case open(Dir) of
        {ok, #{port := Port, ref := Ref} = Watchdog} ->
            ok = finish(Watchdog),
            receive
                {'DOWN', Ref, port, Port, _} ->
                    close(Port, Ref),
                    sweep(Rundirs)
            after ?SWEEP_MS ->
                close(Port, Ref),
                {error, {watchdog, timeout}}
            end;
        {error, _} = Error ->
            Error
    end.

close(Port, Ref) ->
    true = erlang:demonitor(Ref, [flush]),
    true = unlink(Port),
    try
        true = port_close(Port)
    catch
        %% it had closed by itself
        error:badarg -> true
    end,
    flush(Port).

flush(Port) ->
    receive
        {Port, {data, _}} -> flush(Port);
        {'EXIT', Port, _} -> flush(Port)
    after 0 -> ok
    end.
