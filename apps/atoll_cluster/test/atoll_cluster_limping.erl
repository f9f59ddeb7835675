%% SPDX-License-Identifier: Apache-2.0
%% A driver whose third node never starts, once the process that is registered by this name has
%% let it fail: `{fails, Pid}' asks for `fail'. Otherwise the local one.
-module(atoll_cluster_limping).
-behaviour(atoll_cluster_driver).

-export([nodes/2, prepare/1, start_node/2, call/4, signal/2, state/1, release/1]).

nodes(Name, Hosts) -> atoll_cluster_local:nodes(Name, Hosts).

prepare(Context) -> atoll_cluster_local:prepare(Context).

start_node(#{node := Node} = Spec, Place) ->
    case lists:suffix("3@127.0.0.1", atom_to_list(Node)) of
        true ->
            ?MODULE ! {fails, self()},
            receive fail -> {error, limping} end;
        false -> atoll_cluster_local:start_node(Spec, Place)
    end.

call(Handle, M, F, A) -> atoll_cluster_local:call(Handle, M, F, A).

signal(Handle, Signal) -> atoll_cluster_local:signal(Handle, Signal).

state(Handle) -> atoll_cluster_local:state(Handle).

release(Place) -> atoll_cluster_local:release(Place).
