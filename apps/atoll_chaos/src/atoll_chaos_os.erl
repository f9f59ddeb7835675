%% SPDX-License-Identifier: Apache-2.0
%% @doc Signals that are taken back by the operating system itself: what holds a
%% process hangs on an open pipe of this VM, so it goes on when this VM ends, in
%% whatever way, or when the holder that owns the pipe does.
-module(atoll_chaos_os).

-export([stop/1, slow/2, release/1]).

-export_type([holder/0]).

-type holder() :: port().

%% On a busy machine what holds a process may end late, and the last that it does is to let it go on.
-define(RELEASE_MS, 30000).
-define(STOPPED_MS, 2000).
-define(LOOK_MS, 1).

%% @doc Stops that process; it goes on when the calling process ends. One shell does both: with two, and this VM killed between them, the
%% stop could come last.
-spec stop(pos_integer()) -> {ok, holder()} | gone.
stop(OsPid) ->
    case atoll_cluster_os:start_time(OsPid) of
        {ok, Start} -> stop(OsPid, Start);
        gone -> gone
    end.

stop(OsPid, Start) ->
    %% With this VM gone, nobody reads that it is stopped.
    Holder = shell("trap '' PIPE; kill -STOP $1 2>/dev/null || exit 1; echo 2>/dev/null; read _; kill -CONT $1 2>/dev/null", [OsPid]),
    receive
        {Holder, {data, _}} ->
            case await_stopped({OsPid, Start}, ?STOPPED_MS div ?LOOK_MS) of
                gone -> ok = release(Holder), gone;
                _ -> {ok, Holder}
            end;
        {Holder, {exit_status, _}} ->
            gone
    end.

%% A process that waits for a processor takes the signal when it gets one.
await_stopped(Process, Looks) ->
    case atoll_cluster_os:state(Process) of
        running when Looks > 0 ->
            receive
            after ?LOOK_MS -> await_stopped(Process, Looks - 1)
            end;
        State ->
            State
    end.

%% @doc Stops that process for so many milliseconds, lets it run for 10, and so on.
-spec slow(pos_integer(), StoppedMs :: pos_integer()) -> holder().
slow(OsPid, Ms) ->
    %% Both ends of the loop end it: the process's own, and that of the pipe.
    shell(
        "(while kill -STOP $1; do sleep $2; kill -CONT $1 || break; sleep 0.01; done) </dev/null 2>/dev/null & "
        "read _; kill $! 2>/dev/null; wait $! 2>/dev/null; kill -CONT $1 2>/dev/null",
        [OsPid, Ms / 1000]
    ).

%% @doc Ends what holds it, and returns when it goes on. For the owner only.
-spec release(holder()) -> ok.
release(Holder) ->
    try port_command(Holder, "\n") of
        true ->
            receive
                {Holder, {exit_status, _}} -> ok;
                %% It had just been killed, and its owner traps exits.
                {'EXIT', Holder, _} -> ok
            after ?RELEASE_MS -> close(Holder)
            end
    catch
        %% It has ended by itself.
        error:badarg -> ok
    end.

close(Holder) ->
    try port_close(Holder) of
        true -> ok
    catch
        error:badarg -> ok
    end.

shell(Script, Args) ->
    open_port(
        {spawn_executable, "/bin/sh"},
        [{args, ["-c", Script, "sh" | [text(Arg) || Arg <- Args]]}, binary, use_stdio, exit_status]
    ).

text(N) when is_integer(N) -> integer_to_list(N);
text(X) -> float_to_list(X, [{decimals, 3}]).
