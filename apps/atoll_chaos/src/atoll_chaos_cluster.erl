%% SPDX-License-Identifier: Apache-2.0
%% @doc Faults on the nodes of an {@link atoll_cluster}. They are told what to do
%% over their standard input, so that a cut touches nothing of this tool, and they
%% are killed and stopped by signals.
-module(atoll_chaos_cluster).

-behaviour(atoll_chaos_backend).

-export([open/1]).
-export([nodes/1, able/1, call/4, owner/2, leave/2, kill/2, start/2, resume/2, os_pid/2]).

-compile({no_auto_import, [nodes/1]}).

-type state() :: #{cluster := atoll_cluster:cluster(), nodes := [node(), ...]}.

%% @doc The backend of a cluster that runs.
-spec open(atoll_cluster:cluster()) -> {ok, atoll_chaos_backend:backend()}.
open(Cluster) ->
    {ok, {?MODULE, #{cluster => Cluster, nodes => atoll_cluster:nodes(Cluster)}}}.

-spec nodes(state()) -> [node(), ...].
nodes(#{nodes := Nodes}) -> Nodes.

-spec able(state()) -> [start | kill | pause | slow].
able(_) -> [start, kill, pause, slow].

-spec call(state(), node(), {module(), atom(), [term()]}, pos_integer()) ->
    {ok, term()} | {error, atoll_chaos_backend:error()}.
call(#{cluster := Cluster}, Node, {M, F, A}, Ms) ->
    attempt(Node, fun() -> atoll_cluster:call(Cluster, Node, M, F, A, Ms) end).

-spec owner(state(), pid()) -> none.
owner(_, _) -> none.

%% The nodes have the same code as this VM.
-spec leave(state(), node()) -> ok.
leave(_, _) -> ok.

-spec kill(state(), node()) -> ok | {error, atoll_chaos_backend:error()}.
kill(#{cluster := Cluster}, Node) -> done(Node, fun() -> atoll_cluster:kill(Cluster, Node) end).

-spec start(state(), node()) -> ok | {error, atoll_chaos_backend:error()}.
start(#{cluster := Cluster}, Node) -> done(Node, fun() -> atoll_cluster:restart(Cluster, Node) end).

-spec resume(state(), node()) -> ok | {error, atoll_chaos_backend:error()}.
resume(#{cluster := Cluster}, Node) -> done(Node, fun() -> atoll_cluster:resume(Cluster, Node) end).

-spec os_pid(state(), node()) -> {ok, pos_integer()} | {error, atoll_chaos_backend:error()}.
os_pid(#{cluster := Cluster}, Node) ->
    case attempt(Node, fun() -> atoll_cluster:info(Cluster) end) of
        {ok, #{nodes := Infos}} ->
            case [OsPid || #{node := N, os_pid := OsPid} <- Infos, N =:= Node, is_integer(OsPid)] of
                [OsPid] -> {ok, OsPid};
                [] -> {error, {unreachable, Node, down}}
            end;
        {error, _} = Error ->
            Error
    end.

done(Node, Fun) ->
    case attempt(Node, Fun) of
        {ok, ok} -> ok;
        {ok, {error, Reason}} -> {error, {unreachable, Node, Reason}};
        {error, _} = Error -> Error
    end.

%% A node that is down, and a cluster that is gone, are no fault of ours.
attempt(Node, Fun) ->
    try
        {ok, Fun()}
    catch
        exit:{Reason, {gen_server, call, _}} -> {error, {unreachable, Node, Reason}};
        error:{Reason, _} when Reason =:= node_down; Reason =:= timeout; Reason =:= busy; Reason =:= unknown_node ->
            {error, {unreachable, Node, Reason}};
        _:Reason ->
            {error, {raised, Node, Reason}}
    end.
