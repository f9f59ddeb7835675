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

-export([open/2, finish/1, sweep/1]).

-export_type([watchdog/0]).

-type watchdog() :: #{
    port := port(),
    %% monitors the port
    ref := reference(),
    os_pid := pos_integer()
}.

%% How long a shell may take to start on a busy machine.
-define(READY_MS, 10000).
%% How long the taking down of what a dead VM left may take.
-define(SWEEP_MS, 10000).

%% @doc Starts a watchdog for the run directory Dir, which it will call Gone
%% on the way down.
-spec open(Dir :: file:filename(), Gone :: file:filename()) ->
    {ok, watchdog()} | {error, {watchdog, term()}}.
open(Dir, Gone) ->
    Script = filename:join(code:priv_dir(atoll_cluster), "watchdog"),
    Args = ["/bin/sh", Script, Dir, Gone],
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
        {Port, {data, {eol, <<"ready ", OsPid/binary>>}}} ->
            {ok, #{port => Port, ref => Ref, os_pid => binary_to_integer(OsPid)}};
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

%% @doc Takes down what owners that are gone have left, and waits for it.
-spec sweep([atoll_cluster_rundir:rundir()]) -> ok | {error, {watchdog, term()}}.
sweep([]) ->
    ok;
sweep([#{dir := Dir, gone := Gone} | Rundirs]) ->
    case open(Dir, Gone) of
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
