%% SPDX-License-Identifier: Apache-2.0
%% Nodes are used again: booting one takes much longer than most cases. What was
%% started on a node is ended with its distribution, and the next case starts that anew,
%% under another name. Only those that are as they were when they had booted are kept.
%%
%% Runs on the nodes under test, but for start/0.
-module(atoll_dist_spares).

-export([start/0, take/2, give/3, stop/1]).
-export([booted/0, named/4, cleared/0]).

%% Kept on the node itself: for another one its pids and ports are others' with its name.
-type booted() :: #{
    processes := [pid()],
    ports := [port()],
    terms := [term()],
    env := [{atom(), term()}]
}.

-define(CLEARED_MS, 3000).
-define(LOOK_MS, 5).

%% Where nodes wait for the next case: under what they were started with.
-spec start() -> pid().
start() -> spawn(fun() -> keep([]) end).

keep(Spares) ->
    receive
        {take, From, Ref, Key} ->
            case lists:keytake(Key, 1, Spares) of
                {value, {Key, Spare}, Left} ->
                    From ! {Ref, {ok, Spare}},
                    keep(Left);
                false ->
                    From ! {Ref, none},
                    keep(Spares)
            end;
        {give, Key, Spare} ->
            keep([{Key, Spare} | Spares]);
        {stop, From, Ref} ->
            From ! {Ref, [Spare || {_, Spare} <- Spares]}
    end.

-spec take(pid(), Key :: term()) -> {ok, term()} | none.
take(Spares, Key) ->
    Ref = make_ref(),
    Spares ! {take, self(), Ref, Key},
    receive {Ref, Answer} -> Answer end.

-spec give(pid(), Key :: term(), term()) -> ok.
give(Spares, Key, Spare) ->
    Spares ! {give, Key, Spare},
    ok.

%% Ends it, and gives what it had.
-spec stop(pid()) -> [term()].
stop(Spares) ->
    Ref = make_ref(),
    Spares ! {stop, self(), Ref},
    receive {Ref, Left} -> Left end.

%% Remembers what there is on a node that has no distribution yet. A program that looks up
%% hosts stays once somebody has asked for one, as each distribution does.
-spec booted() -> ok.
booted() ->
    {ok, _} = inet:getaddr("localhost", inet),
    persistent_term:put(?MODULE, #{
        processes => processes() -- [self()],
        ports => erlang:ports(),
        terms => [?MODULE | terms()],
        env => application:get_all_env(kernel)
    }).

terms() -> [Key || {Key, _} <- persistent_term:get()].

%% Starts distribution as if the node had been started with that name, cookie and
%% environment of kernel.
-spec named(atom(), longnames | shortnames, atom() | none, [{atom(), term()}]) -> {ok, node()} | {error, term()}.
named(Name, Kind, Cookie, Env) ->
    _ = [application:set_env(kernel, Key, Value) || {Key, Value} <- Env],
    %% The environment's is what counts for a node that is started with its distribution.
    Ticks = maps:from_list([Tick || {net_ticktime, _} = Tick <- Env]),
    case net_kernel:start(Name, Ticks#{name_domain => Kind}) of
        {ok, _} when Cookie =:= none ->
            {ok, node()};
        {ok, _} ->
            true = erlang:set_cookie(Cookie),
            {ok, node()};
        {error, _} = Error ->
            Error
    end.

%% Whether the node is as it was before.
-spec cleared() -> boolean().
cleared() ->
    #{terms := Terms, env := Env} = Booted = persistent_term:get(?MODULE),
    Deadline = erlang:monotonic_time(millisecond) + ?CLEARED_MS,
    ok = await_no_locks(Deadline),
    _ = net_kernel:stop(),
    %% It has heard that they are gone: it asks none of them for anything in its next life.
    _ = sys:get_state(global_name_server),
    _ = [persistent_term:erase(Key) || Key <- terms() -- Terms],
    _ = [application:unset_env(kernel, Key) || {Key, _} <- application:get_all_env(kernel)],
    _ = [application:set_env(kernel, Key, Value) || {Key, Value} <- Env],
    Cleared = cleared(Booted, Deadline),
    _ = [erlang:garbage_collect(Pid) || Pid <- processes()],
    Cleared.

%% While global makes two nodes known to each other its locker has a lock on both, and gives it back
%% by their names. A node that has lost its name keeps it: in its next life it agrees with nobody.
await_no_locks(Deadline) ->
    case are_no_locks() orelse erlang:monotonic_time(millisecond) >= Deadline of
        true -> ok;
        false -> receive after ?LOOK_MS -> await_no_locks(Deadline) end
    end.

are_no_locks() -> ets:info(global_locks, size) =:= 0.

%% What has ended tells nobody here. One that was locked all the same stays so.
-spec cleared(booted(), integer()) -> boolean().
cleared(#{processes := Processes, ports := Ports} = Booted, Deadline) ->
    More = [Pid || Pid <- processes() -- [self() | Processes], not is_kernels(Pid)],
    _ = [exit(Pid, kill) || Pid <- More, not is_of(Processes, Pid)],
    case {More, erlang:ports() -- Ports, are_no_locks()} of
        {[], [], true} ->
            node() =:= nonode@nohost;
        _ ->
            erlang:monotonic_time(millisecond) < Deadline andalso
                receive after ?LOOK_MS -> cleared(Booted, Deadline) end
    end.

%% What kernel starts when it is first asked for.
is_kernels(Pid) ->
    case process_info(Pid, dictionary) of
        {dictionary, Dictionary} ->
            Ancestors = proplists:get_value('$ancestors', Dictionary, []),
            [] =/= [Name || Name <- Ancestors, lists:member(Name, [kernel_sup, kernel_safe_sup])];
        undefined ->
            false
    end.

%% It ends with them, or by itself.
is_of(Processes, Pid) ->
    case process_info(Pid, links) of
        {links, Links} -> Links -- Processes =/= Links;
        undefined -> true
    end.
