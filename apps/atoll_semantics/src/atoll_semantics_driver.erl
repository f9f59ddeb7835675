%% SPDX-License-Identifier: Apache-2.0
%% @doc Nodes on this machine, the last two of them hidden.
-module(atoll_semantics_driver).

-behaviour(atoll_cluster_driver).

-export([nodes/2, prepare/1, start_node/2, call/4, signal/2, state/1, release/1]).

-define(HIDDEN, 2).

-define(LOCAL, atoll_cluster_local).

-type place() :: {atoll_cluster_driver:place(), Hidden :: [node()]}.

%% @private
-spec nodes(string(), [atoll_cluster_driver:host(), ...]) -> [node(), ...].
nodes(Name, Hosts) -> ?LOCAL:nodes(Name, Hosts).

%% @private
-spec prepare(atoll_cluster_driver:context()) -> {ok, place()} | {error, term()}.
prepare(#{nodes := Nodes} = Context) ->
    case ?LOCAL:prepare(Context) of
        {ok, Place} -> {ok, {Place, lists:nthtail(length(Nodes) - ?HIDDEN, Nodes)}};
        {error, _} = Error -> Error
    end.

%% @private
-spec start_node(atoll_cluster_driver:spec(), place()) -> {ok, atoll_cluster_driver:handle()} | {error, term()}.
start_node(#{node := Node, args := Args} = Spec, {Place, Hidden}) ->
    case lists:member(Node, Hidden) of
        true -> ?LOCAL:start_node(Spec#{args := ["-hidden" | Args]}, Place);
        false -> ?LOCAL:start_node(Spec, Place)
    end.

%% @private
-spec call(atoll_cluster_driver:handle(), module(), atom(), [term()]) -> atoll_cluster_driver:reply().
call(Handle, M, F, A) -> ?LOCAL:call(Handle, M, F, A).

%% @private
-spec signal(atoll_cluster_driver:handle(), kill | pause | resume) -> ok | {error, down}.
signal(Handle, Signal) -> ?LOCAL:signal(Handle, Signal).

%% @private
-spec state(atoll_cluster_driver:handle()) -> up | paused | down.
state(Handle) -> ?LOCAL:state(Handle).

%% @private
-spec release(place()) -> ok.
release({Place, _}) -> ?LOCAL:release(Place).
