%% SPDX-License-Identifier: Apache-2.0
%% @doc Watches the nodes of a cluster for silence. A node that has stopped
%% without ending has its connections still, so nobody else would tell.
-module(atoll_cluster_pulse).

-export([start_link/1]).

%% A node has this long for its answer. It is generous: a loaded node is slow.
-define(SILENT_MS, 15000).
-define(PAUSE_MS, 3000).

%% @doc Asks all nodes again and again, over their control connections. Sends
%% the caller `{silent, Watcher, Node}' for the first that does not answer, and
%% ends. A node that is down is not silent.
-spec start_link(atoll_cluster:cluster()) -> pid().
start_link(Cluster) ->
    Caller = self(),
    spawn_link(fun() -> watch(Cluster, Caller) end).

watch(Cluster, Caller) ->
    Answers = atoll_cluster:multicall(Cluster, erlang, node, [], ?SILENT_MS),
    case [Node || {Node, {error, {timeout, _}}} <- Answers] of
        [] ->
            receive
            after ?PAUSE_MS -> watch(Cluster, Caller)
            end;
        [Node | _] ->
            Caller ! {silent, self(), Node},
            ok
    end.
