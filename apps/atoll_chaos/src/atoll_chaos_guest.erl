%% SPDX-License-Identifier: Apache-2.0
%% @doc Takes the modules of atoll_chaos away from a node that did not have them: when it is told
%% to leave, or when the one for whom they were brought is gone or cannot be reached any more, in
%% whatever way. This module is the last of them, and nothing of it stays either. It needs OTP alone.
%%
%% Those who work on the node undo what they did before their code goes.
-module(atoll_chaos_guest).

-export([start/2, leave/2]).

%% How long one of them may take to undo.
-define(STOP_MS, 30000).

%% @doc Starts it on this node for a process of another one, with the modules that are brought. One
%% that is just leaving is waited for.
-spec start(Owner :: pid(), Brought :: [module()]) -> ok.
start(Owner, Brought) ->
    Self = self(),
    {Pid, Ref} = spawn_monitor(fun() -> stay(Self, Owner, Brought) end),
    receive
        {Pid, here} ->
            true = demonitor(Ref, [flush]),
            ok;
        {'DOWN', Ref, process, Pid, taken} ->
            Other = monitor(process, ?MODULE),
            receive
                {'DOWN', Other, process, _, _} -> start(Owner, Brought)
            end;
        {'DOWN', Ref, process, Pid, Reason} ->
            exit(Reason)
    end.

stay(Asks, Owner, Brought) ->
    _ = [exit(taken) || not is_first()],
    Watched = monitor(process, Owner),
    Asks ! {self(), here},
    receive
        {'DOWN', Watched, process, _, _} -> ok;
        leave -> ok
    end,
    lists:foreach(fun ended/1, [atoll_chaos_names, atoll_chaos_witness, atoll_chaos_agent]),
    lists:foreach(fun taken/1, Brought -- [?MODULE]),
    %% Nobody runs this code but this process, which has nothing left to do.
    _ = code:delete(?MODULE),
    spawn(code, purge, [?MODULE]).

is_first() ->
    try
        register(?MODULE, self())
    catch
        error:badarg -> false
    end.

ended(Name) ->
    try
        gen_server:stop(Name, normal, ?STOP_MS)
    catch
        exit:_ -> ok
    end.

taken(Module) ->
    _ = code:purge(Module),
    _ = code:delete(Module),
    code:purge(Module).

%% @doc Has the one on that node leave, if there is one; returns when it has.
-spec leave(node(), timeout()) -> ok | {error, noconnection | timeout}.
leave(Node, Ms) ->
    Ref = monitor(process, {?MODULE, Node}),
    _ = erlang:send({?MODULE, Node}, leave),
    receive
        {'DOWN', Ref, process, _, noconnection} -> {error, noconnection};
        {'DOWN', Ref, process, _, _} -> ok
    after Ms ->
        true = demonitor(Ref, [flush]),
        {error, timeout}
    end.
