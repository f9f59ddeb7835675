%% SPDX-License-Identifier: Apache-2.0
%% @doc What DE-Bench has on a node of somebody else: it takes the load and all modules that were
%% loaded away when it is sent `leave', or when the one who has loaded them is gone. The last of them is
%% this one, and nothing of it is left either. It needs OTP alone until the others are there.
-module(debench_guest).

-export([start/2]).

-define(STOP_MS, 30000).

%% @doc Starts it on this node for a process, which is somewhere else, and modules that are about to
%% be loaded.
-spec start(Owner :: pid(), [module()]) -> ok.
start(Owner, Loaded) ->
    Self = self(),
    {Pid, Ref} = spawn_monitor(fun() ->
        true = register(?MODULE, self()),
        Watched = monitor(process, Owner),
        Self ! {self(), here},
        receive
            {'DOWN', Watched, process, Owner, _} -> ok;
            leave -> ok
        end,
        gone(Loaded)
    end),
    receive
        {Pid, here} -> true = demonitor(Ref, [flush]), ok;
        {'DOWN', Ref, process, Pid, Reason} -> exit(Reason)
    end.

gone(Loaded) ->
    _ = [ended(Sup) || Sup <- [whereis(debench_sup)], is_pid(Sup)],
    _ = [taken(Module) || Module <- Loaded -- [?MODULE]],
    _ = [last() || lists:member(?MODULE, Loaded)],
    ok.

%% Its workers and their names end with it, whatever they are at.
ended(Sup) ->
    try
        gen_server:stop(Sup, shutdown, ?STOP_MS)
    catch
        exit:_ -> exit(Sup, kill)
    end.

taken(Module) ->
    _ = code:purge(Module),
    _ = code:delete(Module),
    code:purge(Module).

%% Nobody runs this module's code but this process, which has nothing left to do.
last() ->
    _ = code:delete(?MODULE),
    spawn(code, purge, [?MODULE]).
