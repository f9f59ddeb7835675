%% SPDX-License-Identifier: Apache-2.0
%% @doc Signals that are taken back by the operating system itself: what holds a
%% process hangs on an open pipe of this VM, so it goes on when this VM ends, in
%% whatever way, or when the holder that owns the pipe does.
-module(atoll_chaos_os).

-export([guard/1, slow/2, release/1]).

-export_type([holder/0]).

-type holder() :: port().

-define(RELEASE_MS, 2000).

%% @doc Lets that process go on when the calling process ends.
-spec guard(pos_integer()) -> holder().
guard(OsPid) ->
    shell("read _; kill -CONT $1 2>/dev/null", [OsPid]).

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
                {Holder, {exit_status, _}} -> ok
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
