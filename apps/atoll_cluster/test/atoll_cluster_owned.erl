%% SPDX-License-Identifier: Apache-2.0
%% Clusters for suites, shared by the cases of a suite or a group: a cluster ends with its
%% owner, and the process that sets a suite up ends before the cases run, so another one
%% owns it. A case may kill and pause nodes, and `heal/1' after it gives the next one all
%% of them.
-module(atoll_cluster_owned).

-export([start/1, stop/1, heal/1, heal/2]).

%% @doc Starts a cluster that lasts until it is stopped, or the VM ends. The options may be
%% made by a function, which is called by the owner: what it starts and links to the
%% caller, or what ends with it, as a wire does, goes with the cluster.
-spec start(atoll_cluster:options() | fun(() -> atoll_cluster:options())) -> atoll_cluster:cluster().
start(Make) when is_function(Make, 0) ->
    Parent = self(),
    {Owner, Ref} = spawn_monitor(fun() ->
        {ok, Cluster} = atoll_cluster:start(Make()),
        Down = monitor(process, Cluster),
        Parent ! {self(), Cluster},
        receive
            {'DOWN', Down, process, Cluster, _} -> ok
        end
    end),
    receive
        {Owner, Cluster} ->
            true = demonitor(Ref, [flush]),
            Cluster;
        {'DOWN', Ref, process, Owner, Reason} ->
            error(Reason)
    end;
start(Options) ->
    start(fun() -> Options end).

%% @doc Stops it, and returns when its nodes are gone, or if they were.
-spec stop(atoll_cluster:cluster()) -> ok.
stop(Cluster) ->
    atoll_cluster:stop(Cluster).

%% @doc Has paused nodes go on and starts those again that are down, all at once; returns these when
%% they are up. They are as new: connected with nobody, and in no group.
-spec heal(atoll_cluster:cluster()) -> [node()].
heal(Cluster) ->
    #{nodes := Nodes} = atoll_cluster:info(Cluster),
    _ = [ok = atoll_cluster:resume(Cluster, Node) || #{node := Node, state := paused} <- Nodes],
    Restarting = [
        {Node, spawn_monitor(fun() -> exit({restarted, atoll_cluster:restart(Cluster, Node)}) end)}
     || #{node := Node, state := down} <- Nodes
    ],
    [receive {'DOWN', Ref, process, Pid, Reason} -> {restarted, ok} = Reason, Node end || {Node, {Pid, Ref}} <- Restarting].

%% @doc The same after a case with that configuration of Common Test. When the case has failed, or was ended
%% by its timetrap, all nodes begin anew: what it had begun there would be in the way of the next.
-spec heal(atoll_cluster:cluster(), Config :: [{atom(), term()}]) -> [node()].
heal(Cluster, Config) ->
    _ = [atoll_cluster:kill(Cluster, Node) || {failed, _} <- [proplists:get_value(tc_status, Config)], Node <- atoll_cluster:nodes(Cluster)],
    heal(Cluster).
