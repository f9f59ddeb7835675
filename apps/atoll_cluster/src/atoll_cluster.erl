%% SPDX-License-Identifier: Apache-2.0
%% @doc Clusters of real Erlang nodes on one machine.
%%
%% `start/1' starts a number of nodes as operating system processes. They are
%% controlled over their standard input and output, so a node that is cut off
%% from Erlang distribution can still be told what to do, and the calling VM
%% need not be distributed.
%%
%% Promised: the nodes are gone within 5 seconds when the owner (the process
%% that called start) ends, when `stop/1' is called, or when the VM ends in any
%% way, kill -9 included; nodes that are stopped by a signal, and nodes that
%% are just being started, too. A call to a dead node fails at once; a call to
%% a silent one fails at its deadline. What runs on one node is never waited
%% for by a call to another.
%%
%% Not promised: that nodes get to say goodbye. They are killed; what has to be
%% kept is fetched before. Linux only, since processes are told apart by
%% `/proc'.
%%
%% The owner is sent `{atoll_cluster, Cluster, {node_down, Node, Why}}' when a
%% node ends, with `killed' for one that kill/2 ended and `down' for any other,
%% and `{atoll_cluster, Cluster, stopped}' when the whole cluster is down,
%% whoever asked for it.
-module(atoll_cluster).
-compile({no_auto_import, [nodes/1]}).

-export([start/1, start_link/1, stop/1, with_cluster/2]).
-export([nodes/1, info/1, status/1]).
-export([call/5, call/6, multicall/4, multicall/5]).
-export([kill/2, pause/2, resume/2, restart/2]).
-export([running/0, check/0, ask/2, elsewhere/1]).
-export([format_error/1]).

-export_type([cluster/0, options/0, info/0, call_error/0]).

-type cluster() :: pid().
-type options() :: atoll_cluster_options:options().

-type info() :: atoll_cluster_server:info().

-type call_error() ::
    atoll_cluster_call:error()
    | {unknown_node, node()}
    | atoll_cluster_call:raised().

-define(CALL_MS, 5000).

%% @doc Starts a cluster, whose owner is the calling process, and returns when
%% all its nodes are up. After an error nothing is left running.
-spec start(options()) -> {ok, cluster()} | {error, Reason :: term()}.
start(Options) ->
    start(Options, fun(_Cluster) -> true end).

%% @doc As start/1, and links the cluster to the caller.
-spec start_link(options()) -> {ok, cluster()} | {error, Reason :: term()}.
start_link(Options) ->
    start(Options, fun erlang:link/1).

start(Options, Link) ->
    case atoll_cluster_options:check(Options) of
        {ok, #{progress := Progress, nodes := Count} = Config} ->
            {ok, Cluster} = atoll_cluster_server:start(self(), Config, fun serve/2),
            Ref = monitor(process, Cluster),
            true = Link(Cluster),
            try
                _ = Progress(0, Count),
                await_started(Cluster, Ref, fun(Started) -> Progress(Started, Count) end)
            catch
                %% The caller's own function failed: it gets no cluster, so
                %% none may be left.
                Class:Reason:Stack ->
                    ok = stop(Cluster),
                    ok = flush(Cluster),
                    erlang:raise(Class, Reason, Stack)
            after
                erlang:demonitor(Ref, [flush])
            end;
        {error, _} = Error ->
            Error
    end.

await_started(Cluster, Ref, Progress) ->
    receive
        {atoll_cluster, Cluster, {progress, Started}} ->
            _ = Progress(Started),
            await_started(Cluster, Ref, Progress);
        {atoll_cluster, Cluster, started} ->
            {ok, Cluster};
        {atoll_cluster, Cluster, {start_failed, Reason}} ->
            {error, Reason};
        {atoll_cluster, Cluster, stopped} ->
            {error, stopped};
        {'DOWN', Ref, process, Cluster, Reason} ->
            {error, Reason}
    end.

flush(Cluster) ->
    receive
        {atoll_cluster, Cluster, _} -> flush(Cluster)
    after 0 -> ok
    end.

%% @doc Has clusters of this VM start elsewhere than on this machine, where start/1 is not told otherwise: for programs that start
%% several, and know nothing of where.
-spec elsewhere(#{hosts => [atoll_cluster_driver:host(), ...], driver => module()}) -> ok.
elsewhere(Where) -> atoll_cluster_options:elsewhere(Where).

%% @doc Takes every node down, and returns when all processes are gone.
-spec stop(cluster()) -> ok.
stop(Cluster) ->
    atoll_cluster_server:stop(Cluster).

%% @doc What a function returns of a cluster that is there as long as it runs, and is down whichever
%% way it ends. If the nodes do not start it is not called, and why is a sentence.
-spec with_cluster(options(), fun((cluster()) -> Result)) -> Result | {error, unicode:chardata()}.
with_cluster(Options, Fun) ->
    case start(Options) of
        {ok, Cluster} ->
            try
                Fun(Cluster)
            after
                ok = stop(Cluster)
            end;
        {error, Reason} ->
            {error, format_error(Reason)}
    end.

%% @doc The nodes, in order, whether up or not.
-spec nodes(cluster()) -> [node()].
nodes(Cluster) ->
    atoll_cluster_server:nodes(Cluster).

%% @doc What the cluster is made of. Asks no node anything.
-spec info(cluster()) -> info().
info(Cluster) ->
    atoll_cluster_server:info(Cluster).

%% @doc As info/1, and for each node the number of nodes it is connected with, the
%% bytes its VM has allocated, and what the option `probe' asks of it; `undefined'
%% where it does not answer within two seconds.
-spec status(cluster()) -> atoll_cluster_status:status().
status(Cluster) ->
    atoll_cluster_status:status(Cluster).

%% @doc Applies a function on a node, within 5 seconds.
-spec call(cluster(), node(), module(), Function :: atom(), Args :: [term()]) -> Result :: term().
call(Cluster, Node, M, F, A) ->
    call(Cluster, Node, M, F, A, ?CALL_MS).

%% @doc Applies a function on a node, over its control connection. An exception
%% there is raised here. Otherwise raises an error of `{node_down, Node}',
%% `{timeout, Node}', `{busy, Node}' or `{unknown_node, Node}'.
-spec call(cluster(), node(), module(), Function :: atom(), Args :: [term()], timeout()) ->
    Result :: term().
call(Cluster, Node, M, F, A, Timeout) ->
    case atoll_cluster_server:target(Cluster, Node) of
        {ok, Target} ->
            case atoll_cluster_call:call(Target, {M, F, A}, Timeout) of
                {ok, Result} -> Result;
                {raised, Class, Reason, Stack} -> erlang:raise(Class, Reason, Stack);
                {error, Reason} -> error(Reason)
            end;
        {error, Reason} ->
            error(Reason)
    end.

%% @doc Applies a function on all nodes at once, within 5 seconds.
-spec multicall(cluster(), module(), Function :: atom(), Args :: [term()]) ->
    [{node(), {ok, Result :: term()} | {error, call_error()}}].
multicall(Cluster, M, F, A) ->
    multicall(Cluster, M, F, A, ?CALL_MS).

%% @doc Applies a function on all nodes at once; the deadline is common.
-spec multicall(cluster(), module(), Function :: atom(), Args :: [term()], timeout()) ->
    [{node(), {ok, Result :: term()} | {error, call_error()}}].
multicall(Cluster, M, F, A, Timeout) ->
    atoll_cluster_call:multicall(atoll_cluster_server:targets(Cluster), {M, F, A}, Timeout).

%% @doc Kills a node with SIGKILL, and returns when it is down.
-spec kill(cluster(), node()) -> ok | {error, call_error()}.
kill(Cluster, Node) ->
    case atoll_cluster_server:killing(Cluster, Node) of
        {ok, Target} ->
            %% It may have ended by itself meanwhile, which is down as well.
            _ = signal(Target, kill),
            atoll_cluster_server:await_down(Cluster, Node);
        {error, _} = Error ->
            Error
    end.

%% @doc Stops a node with SIGSTOP: it is there but silent.
-spec pause(cluster(), node()) -> ok | {error, call_error()}.
pause(Cluster, Node) ->
    signal(Cluster, Node, pause).

%% @doc Lets a paused node go on, with SIGCONT.
-spec resume(cluster(), node()) -> ok | {error, call_error()}.
resume(Cluster, Node) ->
    signal(Cluster, Node, resume).

signal(Cluster, Node, Signal) ->
    case atoll_cluster_server:target(Cluster, Node) of
        {ok, Target} -> signal(Target, Signal);
        {error, _} = Error -> Error
    end.

signal(#{node := Node, driver := Driver, handle := Handle}, Signal) ->
    case Driver:signal(Handle, Signal) of
        ok -> ok;
        {error, down} -> {error, {node_down, Node}}
    end.

%% @doc Starts a node that is down again, under its name.
-spec restart(cluster(), node()) -> ok | {error, Reason :: term()}.
restart(Cluster, Node) ->
    atoll_cluster_server:restart(Cluster, Node).

%% @doc The clusters of this user on this machine.
-spec running() -> [#{name := string(), dir := file:filename(), owner_pid := pos_integer()}].
running() ->
    [#{name => Name, dir => Dir, owner_pid => Pid} ||
        #{name := Name, dir := Dir, owner := {Pid, _}} <- atoll_cluster_rundir:list()].

%% @doc Whether running clusters can be found. An error means that the run
%% directory cannot be used, or is not safe to use; running/0 finds none then.
-spec check() -> ok | {error, Reason :: term()}.
check() ->
    atoll_cluster_rundir:check().

%% @doc Asks a cluster of whatever VM of this user. `status' gives what
%% status/1 does, with the names of the nodes as binaries, and what a probe said as
%% {@link atoll_cluster_plain} makes it; `stop' gives `ok'
%% when everything is gone, also where an owner that is gone had left something.
-spec ask(Name :: string(), status | stop) -> {ok, Answer :: term()} | {error, Reason :: term()}.
ask(Name, Request) ->
    case check() of
        ok -> ask_found(Name, Request);
        {error, _} = Error -> Error
    end.

ask_found(Name, Request) ->
    %% An answer makes no new atoms: those in it are these modules' own.
    ok = code:ensure_modules_loaded([atoll_cluster_status, atoll_cluster_server]),
    Named = fun(Rundirs) -> [R || #{name := N} = R <- Rundirs, N =:= Name] end,
    case Named(atoll_cluster_rundir:list()) of
        [#{dir := Dir}] ->
            case atoll_cluster_control:ask(atoll_cluster_rundir:control(Dir), Request) of
                {ok, _} = Answer ->
                    Answer;
                {error, no_answer} ->
                    %% The owner's VM may end as soon as its cluster has.
                    case Named(atoll_cluster_rundir:list()) of
                        [] when Request =:= stop -> {ok, ok};
                        _ -> {error, {no_answer, Name}}
                    end
            end;
        [] when Request =:= stop ->
            ask_stale(Name, Named(atoll_cluster_rundir:stale()));
        [] ->
            {error, {not_running, Name}}
    end.

ask_stale(Name, []) ->
    {error, {not_running, Name}};
ask_stale(_Name, Stale) ->
    case atoll_cluster_watchdog:sweep(Stale) of
        ok -> {ok, ok};
        {error, _} = Error -> Error
    end.

%% What the cluster's socket answers. In an answer the names of nodes are
%% binaries: the VM that asks knows nothing of these atoms, and makes none.
serve(Cluster, status) ->
    #{nodes := Nodes} = Status = status(Cluster),
    Status#{nodes := [
        Info#{node := atom_to_binary(Node), probe := probed(Probed)}
     || #{node := Node, probe := Probed} = Info <- Nodes
    ]};
serve(Cluster, stop) ->
    stop(Cluster).

probed(undefined) -> undefined;
probed(Answer) -> atoll_cluster_plain:term(Answer).

%% @doc One plain sentence on an error that this module returned or raised.
-spec format_error(Reason :: term()) -> unicode:chardata().
format_error(Reason) ->
    atoll_cluster_error:format(Reason).
