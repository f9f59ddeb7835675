%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc How the processes of a connection are started and ended.
%%
%% They are under `proc_lib', so one that crashes is reported. An end that is expected, a
%% peer that has gone or a lane that was cut, is no crash: {@link over/1}.
%%
%% Their priority is `high': above what the node's programs do, and no more than that of
%% its failure detector, which a carrier that has much to do must
%% not keep from answering.
%%
%% What must hold of each of them: where it waits it has nothing of its own on the stack; it
%% waits again by a call with its module's name; and it hibernates when there was nothing to
%% do for {@link quiet_ms/0}. So it goes on in new code when that was loaded, and holds none of
%% what it has passed on. A purge kills who still waits in old code: one that was idle when
%% code was loaded twice within that time, and a writer that has been kept waiting by its
%% socket through two loads.
-module(atoll_dist_process).

-export([start/4, over/1, quiet_ms/0]).

%% Under load a heap is swept in full every so many'th time, at least: else it holds what it
%% has passed on. Each time would cost a copy of the whole state.
-define(FULLSWEEP_AFTER, 20).

%% @doc Starts a process with that initial call. What comes to it is kept off its heap.
-spec start(module(), atom(), [term()], [link | monitor]) -> pid() | {pid(), reference()}.
start(Module, Function, Args, Options) ->
    proc_lib:spawn_opt(Module, Function, Args, [
        {priority, high}, {message_queue_data, off_heap}, {fullsweep_after, ?FULLSWEEP_AFTER} | Options
    ]).

%% @doc After how many milliseconds of nothing to do it hibernates.
-spec quiet_ms() -> pos_integer().
quiet_ms() -> 100.

%% @doc Ends the calling process with that reason, which is told to those that are linked
%% with it, or monitor it, and to nobody else.
-spec over(term()) -> no_return().
over(Reason) ->
    _ = process_flag(trap_exit, false),
    true = exit(self(), Reason),
    exit(Reason).
