%% SPDX-License-Identifier: Apache-2.0
%% @doc Calls on nodes, each with a deadline.
%%
%% A node that is stopped reads nothing, and what was written to it cannot be
%% taken back. So each call is made by a process of its own, which holds one of
%% the node's slots until the node has answered or is gone; the caller waits
%% for that process until its own deadline. When all slots are taken further
%% calls fail at once: what can pile up before a silent node is bounded.
-module(atoll_cluster_call).

-export([target/3, call/3, multicall/3]).
-export([run/2]).

-export_type([target/0, error/0, raised/0, mfa_/0]).

-define(SLOTS, 256).

-type target() :: #{
    node := node(),
    driver := module(),
    handle := atoll_cluster_driver:handle(),
    %% how many calls the node has not answered
    unanswered := atomics:atomics_ref()
}.

-type mfa_() :: {module(), Function :: atom(), Args :: [term()]}.

-type error() ::
    {node_down, node()}
    %% no answer in time; the call may still happen
    | {timeout, node()}
    %% too many calls are unanswered
    | {busy, node()}.

-type raised() :: {raised, error | exit | throw, Reason :: term()}.
%% what the function on the node ended with

-type result() ::
    {ok, term()} | {raised, error | exit | throw, term(), term()} | {error, error()}.

%% @doc What a node that has started is called by.
-spec target(node(), module(), atoll_cluster_driver:handle()) -> target().
target(Node, Driver, Handle) ->
    #{node => Node, driver => Driver, handle => Handle,
        unanswered => atomics:new(1, [{signed, true}])}.

%% @doc Applies a function on one node.
-spec call(target(), mfa_(), timeout()) -> result().
call(Target, MFA, Timeout) ->
    await(begin_call(Target, MFA), deadline(Timeout)).

%% @doc Applies a function on several nodes at once, with one deadline for all.
%% A node that there is no target for gives the error it comes with.
-spec multicall([{node(), {ok, target()} | {error, Error}}], mfa_(), timeout()) ->
    [{node(), {ok, term()} | {error, Error | error() | raised()}}].
multicall(Nodes, MFA, Timeout) ->
    Calls = [
        case Found of
            {ok, Target} -> {Node, begin_call(Target, MFA)};
            {error, _} -> {Node, Found}
        end
     || {Node, Found} <- Nodes
    ],
    Deadline = deadline(Timeout),
    [{Node, multi_result(await(Call, Deadline))} || {Node, Call} <- Calls].

multi_result({raised, Class, Reason, _Stack}) -> {error, {raised, Class, Reason}};
multi_result(Result) -> Result.

begin_call(#{node := Node, unanswered := Unanswered} = Target, MFA) ->
    case atomics:add_get(Unanswered, 1, 1) of
        N when N > ?SLOTS ->
            atomics:sub(Unanswered, 1, 1),
            {error, {busy, Node}};
        _ ->
            {_, Ref} = spawn_monitor(?MODULE, run, [Target, MFA]),
            {Node, Ref}
    end.

%% @private
-spec run(target(), mfa_()) -> no_return().
run(Target, MFA) ->
    exit({?MODULE, apply_on(Target, MFA)}).

apply_on(#{node := Node, driver := Driver, handle := Handle, unanswered := Unanswered}, {M, F, A}) ->
    try Driver:call(Handle, M, F, A) of
        down -> {error, {node_down, Node}};
        Reply -> Reply
    after
        atomics:sub(Unanswered, 1, 1)
    end.

await({error, _} = Error, _Deadline) ->
    Error;
await({Node, Ref}, Deadline) ->
    receive
        {'DOWN', Ref, process, _, {?MODULE, Result}} -> Result;
        {'DOWN', Ref, process, _, Reason} -> {raised, exit, Reason, []}
    after left(Deadline) ->
        true = erlang:demonitor(Ref, [flush]),
        {error, {timeout, Node}}
    end.

deadline(infinity) -> infinity;
deadline(Ms) -> erlang:monotonic_time(millisecond) + Ms.

left(infinity) -> infinity;
left(Deadline) -> max(0, Deadline - erlang:monotonic_time(millisecond)).
