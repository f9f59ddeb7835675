%% SPDX-License-Identifier: Apache-2.0
%% @doc Where faults are made: how nodes are reached, and what can be done to them.
%%
%% All callbacks but `open/1' may be called from any process. An error is a term
%% that `format_error/1' makes a sentence of.
-module(atoll_chaos_backend).

-export([ask/4]).

-export_type([backend/0, error/0]).

%% Who asks a node ends with exit/1 by design.
-dialyzer({nowarn_function, ask/4}).

-type backend() :: {module(), State :: term()}.

-type error() ::
    {unreachable, node(), term()}
    | {not_here, node()}
    | {not_possible, kill | start | pause | slow, node()}
    | {raised, node(), term()}.

%% The nodes, in the order of their numbers.
-callback nodes(State :: term()) -> [node(), ...].

%% What can be done to nodes, beside what is done in them.
-callback able(State :: term()) -> [start | kill | pause | slow].

%% Applies a function on a node that need not be connected with others; at most
%% for so long.
-callback call(State :: term(), node(), {module(), atom(), [term()]}, Ms :: pos_integer()) ->
    {ok, Result :: term()} | {error, error()}.

%% With whose end the agent on a node is to undo all: a process that the nodes can
%% see. `none' if there is none; then the nodes do not outlive this VM.
-callback owner(State :: term(), Keeper :: pid()) -> pid() | none.

%% The agent has ended there: takes away what else the tool has brought to the node.
-callback leave(State :: term(), node()) -> ok | {error, error()}.

%% Ends the node from one moment to the next.
-callback kill(State :: term(), node()) -> ok | {error, error()}.

%% Starts it again; returns when it is up.
-callback start(State :: term(), node()) -> ok | {error, error()}.

%% Lets a paused node go on.
-callback resume(State :: term(), node()) -> ok | {error, error()}.

%% The number of its process on this machine.
-callback os_pid(State :: term(), node()) -> {ok, pos_integer()} | {error, error()}.

%% @doc Applies a function on all of these nodes at once, on each at most for so long.
-spec ask(backend(), [node()], {module(), atom(), [term()]}, Ms :: pos_integer()) ->
    [{node(), {ok, Result :: term()} | {error, error()}}].
ask({Module, B}, Nodes, MFA, Ms) ->
    Asking = [{Node, spawn_monitor(fun() -> exit({?MODULE, Module:call(B, Node, MFA, Ms)}) end)} || Node <- Nodes],
    [
        receive
            {'DOWN', Ref, process, _, {?MODULE, Answer}} -> {Node, Answer};
            {'DOWN', Ref, process, _, Crash} -> {Node, {error, {raised, Node, Crash}}}
        end
     || {Node, {_, Ref}} <- Asking
    ].
