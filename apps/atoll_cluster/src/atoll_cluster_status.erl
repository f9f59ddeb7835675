%% SPDX-License-Identifier: Apache-2.0
%% @doc What can be told of a running cluster by asking its nodes. A silent node
%% delays it by at most 6 seconds, however many are silent.
-module(atoll_cluster_status).

-export([status/1]).

-export_type([status/0, node_status/0]).

-type status() :: #{
    name := string(),
    dir := file:filename(),
    owner_pid := pos_integer(),
    watchdog_pid := pos_integer() | undefined,
    nodes := [node_status()]
}.

-type node_status() :: #{
    node := node(),
    os_pid := pos_integer() | undefined,
    state := up | down | paused,
    log := file:filename(),
    %% how many nodes it is connected with, hidden ones included
    connections := non_neg_integer() | undefined,
    %% the bytes its VM has allocated
    memory := non_neg_integer() | undefined,
    %% what the cluster's probe says there
    probe := term() | undefined
}.

-define(NODE_MS, 2000).

%% @doc The state of a cluster; `undefined' is what a node did not answer.
-spec status(pid()) -> status().
status(Cluster) ->
    #{nodes := Infos} = Info = atoll_cluster_server:info(Cluster),
    %% What a paused node is asked it would only find when it goes on.
    Up = [N || #{node := N, state := up} <- Infos],
    Targets = [Target || {N, _} = Target <- atoll_cluster_server:targets(Cluster), lists:member(N, Up)],
    Connected = answers(Targets, {erlang, nodes, [connected]}),
    Memory = answers(Targets, {erlang, memory, [total]}),
    Probed = answers(Targets, atoll_cluster_server:probe(Cluster)),
    Info#{nodes := [
        I#{
            connections => case Connected of #{N := Nodes} -> length(Nodes); _ -> undefined end,
            memory => maps:get(N, Memory, undefined),
            probe => maps:get(N, Probed, undefined)
        }
     || #{node := N} = I <- Infos
    ]}.

answers(_Targets, none) ->
    #{};
answers(Targets, MFA) ->
    Results = atoll_cluster_call:multicall(Targets, MFA, ?NODE_MS),
    maps:from_list([{Node, Result} || {Node, {ok, Result}} <- Results]).
