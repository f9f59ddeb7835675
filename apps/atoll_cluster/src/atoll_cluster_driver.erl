%% SPDX-License-Identifier: Apache-2.0
%% @doc How the nodes of a cluster are started and reached: the plug point for
%% local processes, machines behind ssh, or a cloud.
%%
%% A cluster calls `nodes/2' and `prepare/1' once, then `start_node/2' for each
%% node, several at a time and each in a process of its own, and `release/1'
%% once on the way down. Nodes are controlled over a connection that does not
%% depend on Erlang distribution; the calling VM is not distributed.
%%
%% Whatever runs on *this* machine for a node (the node itself, or an ssh
%% client) is started through `priv/launch' and so registered in the cluster's
%% run directory: the watchdog takes it down, however the VM ends. A driver
%% that starts something elsewhere has to see to it that it ends there when
%% the connection does, and that `release/1' returns only when it has.
-module(atoll_cluster_driver).

-export_type([place/0, handle/0, context/0, host/0, spec/0, reply/0]).

-type context() :: #{
    %% the cluster's name, and the names of all its nodes
    name := string(),
    nodes := [node(), ...],
    %% where local processes register, see atoll_cluster_rundir
    pids := file:filename(),
    %% the run directory
    dir := file:filename()
}.

-type place() :: term().
%% What `prepare/1' found out and every `start_node/2' needs.

-type host() :: #{
    %% on which its nodes listen, and by which they are named
    address := inet:ip4_address(),
    %% by which they are named instead; without a dot their names are short ones
    name => string(),
    %% a command, with arguments, that runs another one that comes behind it as the same
    %% process: `["nsenter", "--net=FILE"]'
    wrap := [string()]
}.
%% Where a node runs.

-type spec() :: #{
    node := node(),
    host := host(),
    connect_all := boolean(),
    %% further arguments of erl
    args := [string()],
    boot_timeout := timeout()
}.

-type handle() :: #{
    %% The process of this VM that keeps the control connection. It ends when
    %% the node does or when the connection is lost. It may be killed, on the
    %% way down; the connection is then lost.
    control := pid(),
    os_pid := pos_integer(),
    %% the driver's own
    _ => _
}.

-type reply() ::
    {ok, Result :: term()}
    | {raised, error | exit | throw, Reason :: term(), Stacktrace :: term()}
    | down.

%% The names of the nodes of a cluster, in order, of which each has its host.
-callback nodes(Name :: string(), [host(), ...]) -> [node(), ...].

%% Checks that the nodes can be started, and prepares the place.
-callback prepare(context()) -> {ok, place()} | {error, Reason :: term()}.

%% Starts a node and returns when it has booted. An error leaves no
%% process behind.
-callback start_node(spec(), place()) -> {ok, handle()} | {error, Reason :: term()}.

%% Applies a function on the node. May block for as long as the node is
%% silent: it is called in a process of its own, and has no deadline.
-callback call(handle(), module(), Function :: atom(), Args :: [term()]) -> reply().

%% Sends SIGKILL, SIGSTOP or SIGCONT, and returns when a stop or a
%% continuation can be seen.
-callback signal(handle(), kill | pause | resume) -> ok | {error, down}.

%% What the node's process is doing. Must not wait for the node.
-callback state(handle()) -> up | paused | down.

%% Called once everything on this machine is gone.
-callback release(place()) -> ok.
