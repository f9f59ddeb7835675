%% Nodes on this machine, the last two of them hidden.
-module(s_group_hidden_driver).

-behaviour(atoll_cluster_driver).

-export([nodes/2, prepare/1, start_node/2, call/4, signal/2, state/1, release/1]).

-define(HIDDEN, 2).

nodes(Name, Hosts) -> atoll_cluster_local:nodes(Name, Hosts).

prepare(#{nodes := Nodes} = Context) ->
    case atoll_cluster_local:prepare(Context) of
        {ok, Place} -> {ok, {Place, lists:nthtail(length(Nodes) - ?HIDDEN, Nodes)}};
        {error, _} = Error -> Error
    end.

start_node(#{node := Node, args := Args} = Spec, {Place, Hidden}) ->
    case lists:member(Node, Hidden) of
        true -> atoll_cluster_local:start_node(Spec#{args := ["-hidden" | Args]}, Place);
        false -> atoll_cluster_local:start_node(Spec, Place)
    end.

call(Handle, M, F, A) -> atoll_cluster_local:call(Handle, M, F, A).

signal(Handle, Signal) -> atoll_cluster_local:signal(Handle, Signal).

state(Handle) -> atoll_cluster_local:state(Handle).

release({Place, _}) -> atoll_cluster_local:release(Place).
