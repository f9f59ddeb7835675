%% SPDX-License-Identifier: Apache-2.0
%% @doc The life of one node: a process of the cluster's VM that starts it,
%% starts its applications, and ends when the node does.
%%
%% Its group leader, and so that of the control process it starts, writes to the
%% node's output file: what the node prints never reaches the VM's own output.
%%
%% The starter gets `{node_started, Pid, Target}', or the exit reason
%% `{shutdown, {start_failed, Reason}}', or later `{shutdown, node_down}'.
-module(atoll_cluster_node).

-export([start_link/1]).
-export([run/2]).

-type job() :: #{
    driver := module(),
    place := atoll_cluster_driver:place(),
    spec := atoll_cluster_driver:spec(),
    apps := [atom()],
    %% the file for the node's output
    out := file:filename()
}.

%% How much of what the node said goes into the error when it does not start:
%% the beginning, since a usage text or a stack trace may follow.
-define(SAID_BYTES, 300).

%% @doc Starts the node in a process of its own.
-spec start_link(job()) -> pid().
start_link(Job) ->
    proc_lib:spawn_link(?MODULE, run, [self(), Job]).

%% @private
-spec run(Starter :: pid(), job()) -> no_return().
run(Starter, #{driver := Driver, out := Out} = Job) ->
    {ok, Output} = atoll_cluster_output:start_link(Out),
    true = group_leader(Output, self()),
    case start(Job) of
        {ok, #{handle := #{control := Control} = Handle} = Target} ->
            Ref = monitor(process, Control),
            Starter ! {node_started, self(), Target},
            receive
                {'DOWN', Ref, process, Control, _} ->
                    %% Mostly the node is gone. One that only lost its control
                    %% connection must not stay under its name.
                    _ = Driver:signal(Handle, kill),
                    exit({shutdown, node_down})
            end;
        {error, Reason} ->
            exit({shutdown, {start_failed, Reason}})
    end.

start(#{driver := Driver, place := Place, spec := #{node := Node} = Spec, out := Out} = Job) ->
    %% A node that is started again has said something before.
    Before = filelib:file_size(Out),
    case Driver:start_node(Spec, Place) of
        {ok, Handle} ->
            Target = atoll_cluster_call:target(Node, Driver, Handle),
            case start_apps(Target, Job) of
                ok ->
                    {ok, Target};
                {error, _} = Error ->
                    _ = Driver:signal(Handle, kill),
                    Error
            end;
        {error, Reason} ->
            {error, {node_failed, Node, Reason, said(Out, Before)}}
    end.

start_apps(Target, #{apps := Apps, spec := #{boot_timeout := Timeout}}) ->
    start_apps(Target, Apps, Timeout).

start_apps(_Target, [], _Timeout) ->
    ok;
start_apps(#{node := Node} = Target, [App | Apps], Timeout) ->
    MFA = {application, ensure_all_started, [App]},
    case atoll_cluster_call:call(Target, MFA, Timeout) of
        {ok, {ok, _}} -> start_apps(Target, Apps, Timeout);
        {ok, {error, Reason}} -> {error, {app_failed, Node, App, Reason}};
        {error, Reason} -> {error, {app_failed, Node, App, Reason}};
        {raised, _, Reason, _} -> {error, {app_failed, Node, App, Reason}}
    end.

said(Out, Before) ->
    case file:read_file(Out) of
        {ok, <<_:Before/binary, Said:?SAID_BYTES/binary, _/binary>>} -> <<Said/binary, " ...">>;
        {ok, <<_:Before/binary, Said/binary>>} -> Said;
        {error, _} -> <<>>
    end.
