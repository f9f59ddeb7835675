%% SPDX-License-Identifier: Apache-2.0
%% @doc What stands for a run on one node: the supervisor of its submaster, and of the workers and
%% gateway processes that this one has started. Who is killed is started again; a host that is killed
%% itself is started again by the application's supervisor.
-module(orbit_host).
-behaviour(supervisor).

-export([start_link/1, init/1, name/1]).
-export([prepare/4, prepare_here/3, have/2, finish/2, over/3, stop/1]).

-export_type([run/0, run_id/0, reason/0]).

%% In the names of a run's processes and groups, and nowhere else.
-type run_id() :: string().

%% What every node needs of a run.
-type run() :: #{
    id := run_id(),
    %% who hears what has come of it, and the process that waits for that
    master := reference(),
    caller := pid(),
    generators := orbit_generators:name(),
    space := pos_integer(),
    %% at first
    plan := orbit_plan:plan(),
    %% each image is computed in a process of its own
    image_processes := boolean(),
    vertices := boolean(),
    survey := {module(), atom(), [term()]} | none,
    _ => _
}.

-type reason() :: {no_code | not_running | unreachable, node()}.

-define(START_MS, 20_000).
-define(STOP_MS, 10_000).
-define(AGAIN_MS, 5).

%% @doc The name of a run's submaster, on each node of its own.
-spec name(run_id()) -> atom().
name(RunId) -> list_to_atom("orbit_" ++ RunId).

%% @private
-spec start_link(run()) -> supervisor:startlink_ret().
start_link(Run) -> supervisor:start_link(?MODULE, Run).

%% @private
-spec init(run()) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(Run) ->
    {ok, {#{strategy => one_for_one, intensity => 1000, period => 10},
          [#{id => submaster, start => {orbit_submaster, start_link, [Run]}}]}}.

%% @doc Has an epoch prepared on a node, where the run is started if it is not there. Who is killed
%% meanwhile is asked again when it is back.
-spec prepare(node(), run(), orbit_part:epoch(), orbit_plan:plan()) -> {ready, orbit_ledger:ready()} | old | {error, Why :: term()}.
prepare(Node, Run, Epoch, Plan) ->
    try erpc:call(Node, ?MODULE, prepare_here, [Run, Epoch, Plan], ?START_MS) of
        again -> prepare_again(Node, Run, Epoch, Plan);
        Answer -> Answer
    catch
        error:{exception, undef, _} -> {error, {no_code, Node}};
        error:{erpc, _} -> {error, {unreachable, Node}};
        exit:_ -> prepare_again(Node, Run, Epoch, Plan)
    end.

prepare_again(Node, Run, Epoch, Plan) ->
    receive after ?AGAIN_MS -> prepare(Node, Run, Epoch, Plan) end.

%% @private
-spec prepare_here(run(), orbit_part:epoch(), orbit_plan:plan()) -> {ready, orbit_ledger:ready()} | old | again | {error, Why :: term()}.
prepare_here(#{id := RunId} = Run, Epoch, Plan) ->
    case start(Run) of
        ok -> gen_server:call(name(RunId), {prepare, Epoch, Plan}, ?START_MS);
        NotYet -> NotYet
    end.

%% If it is not there.
start(#{id := RunId} = Run) ->
    Spec = #{id => RunId, start => {?MODULE, start_link, [Run]}, type => supervisor, restart => transient},
    try supervisor:start_child(orbit_app, Spec) of
        {ok, _} -> ok;
        {error, {already_started, _}} -> ok;
        %% If it is down it is being ended here: soon it can be started anew.
        {error, _} -> again
    catch
        exit:{_, {gen_server, call, [orbit_app | _]}} -> {error, {not_running, node()}}
    end.

%% @doc Sees to it that the host of this process, its submaster, has these children and no other but
%% itself, and says which processes they are.
-spec have(pid(), [supervisor:child_spec()]) -> #{Id :: term() => pid()}.
have(Host, Specs) ->
    Wanted = [Id || #{id := Id} <- Specs],
    _ = [begin ok = supervisor:terminate_child(Host, Id), supervisor:delete_child(Host, Id) end
         || {Id, _, _, _} <- supervisor:which_children(Host), not is_atom(Id), not lists:member(Id, Wanted)],
    _ = [supervisor:start_child(Host, Spec) || Spec <- Specs],
    Are = maps:from_list([{Id, Pid} || {Id, Pid, _, _} <- supervisor:which_children(Host), is_pid(Pid), lists:member(Id, Wanted)]),
    case map_size(Are) =:= length(Wanted) of
        true -> Are;
        %% One of them is just being started again.
        false -> have(Host, Specs)
    end.

%%% The end

%% @doc Ends the run on all nodes of the plan, from the master's node: first nobody watches any more,
%% then all processes end, and last the groups are deleted, and with them connections.
-spec finish(run_id(), orbit_plan:plan()) -> ok.
finish(RunId, Plan) ->
    lists:foreach(fun(Phase) -> over(Phase, RunId, Plan) end, [quiet, halt, leave]).

%% @private
-spec over(quiet | halt | leave, run_id(), orbit_plan:plan()) -> ok.
over(Phase, RunId, Plan) ->
    _ = erpc:multicall(orbit_plan:below(node(), Plan), ?MODULE, over, [Phase, RunId, Plan], ?STOP_MS),
    case Phase of
        quiet -> orbit_submaster:quiet(RunId);
        halt ->
            %% One that was lost may live.
            _ = [erpc:cast(Node, ?MODULE, stop, [RunId]) || Node <- orbit_plan:absent(node(), Plan), lists:member(Node, nodes())],
            ended(RunId);
        %% Those in which the node above is, it deletes.
        leave -> leave(RunId, orbit_plan:above(node(), Plan))
    end.

ended(RunId) ->
    try
        _ = supervisor:terminate_child(orbit_app, RunId),
        _ = supervisor:delete_child(orbit_app, RunId),
        ok
    catch
        %% Where the application has ended, the run has.
        exit:{_, {gen_server, call, [orbit_app | _]}} -> ok
    end.

%% @doc Ends the run on this node.
-spec stop(run_id()) -> ok.
stop(RunId) ->
    ok = ended(RunId),
    leave(RunId, none).

%% That another member deletes one too is no error.
leave(RunId, Above) ->
    Own = case whereis(atoll_group) of undefined -> []; _ -> s_group:own_s_groups() end,
    lists:foreach(fun(Name) -> s_group:delete_s_group(Name) end,
                  [Name || {Name, Nodes} <- Own, lists:prefix("orbit_" ++ RunId, atom_to_list(Name)), not lists:member(Above, Nodes)]).
