%% SPDX-License-Identifier: Apache-2.0
%% @doc What stands for a run on one node: the supervisor of the submasters and colonies that were
%% started there, who start again what is killed, under its name. A host that is killed itself is
%% started again by the application's supervisor, and has all of them start again.
%%
%% There is no master process: whoever calls aco:run/1 has the submaster [] started on its own
%% node, that one those below it on theirs ({@link aco_submaster}), and so on. Who is not
%% found by its name is started once more where it is to be, which changes nothing if it is there.
-module(aco_host).
-behaviour(supervisor).

-export([start/3, stop/2, report/1]).
%% For other nodes, and for supervisors.
-export([start_here/3, start_link/1, start_role/2, init/1]).

-export_type([run/0, reason/0]).

%% What every node needs of a run.
-type run() :: #{
    id := aco_tree:run_id(),
    mode := aco_tree:mode(),
    %% whether what is lost is started again
    reliable := boolean(),
    nodes := [node(), ...],
    tree := aco_tree:tree(),
    problem := aco_problem:problem(),
    options := aco_options:options(),
    duplicating := pos_integer(),
    survey := {module(), atom(), [term()]} | none,
    _ => _
}.

-type reason() :: {no_code | not_running, node()}.

-define(START_MS, 30_000).
%% How long what was killed together with its supervisor may take to be gone.
-define(GONE_MS, 5_000).

%% @doc Starts that one on that node, if it is not there and there is a way. `again' means that
%% something that is needed for it is just being started again itself.
-spec start(node(), aco_tree:id(), run()) ->
    {ok, pid()} | again | {no_way, aco_name:reason()} | {error, reason() | aco_name:reason()}.
start(Node, Id, Run) ->
    case aco_name:reach(Node, Id, Run) of
        ok -> started(Node, Id, Run);
        NotNow -> NotNow
    end.

started(Node, Id, Run) ->
    try erpc:call(Node, ?MODULE, start_here, [Id, Run, self()], ?START_MS)
    catch
        error:{exception, undef, _} -> {error, {no_code, Node}};
        error:{erpc, _} -> again;
        exit:{exception, {noproc, {gen_server, call, [aco_app | _]}}} -> {error, {not_running, Node}};
        exit:{exception, _} -> again
    end.

%% @private
-spec start_here(aco_tree:id(), run(), Asker :: pid()) -> {ok, pid()} | again.
start_here(Id, #{id := RunId} = Run, Asker) ->
    Host = #{id => RunId, start => {?MODULE, start_link, [Run]}, type => supervisor, restart => transient},
    case child(aco_app, Host) of
        {ok, Pid} ->
            ok = aco_leash:follow(RunId, Id, Asker),
            case child(Pid, role(Id, Run)) of
                down -> _ = supervisor:restart_child(Pid, Id), again;
                Started -> Started
            end;
        %% If it is down it is being ended here: soon it can be started anew.
        _ -> again
    end.

child(Supervisor, Spec) ->
    case supervisor:start_child(Supervisor, Spec) of
        {ok, Pid} when is_pid(Pid) -> {ok, Pid};
        {error, {already_started, Pid}} when is_pid(Pid) -> {ok, Pid};
        {error, already_present} -> down;
        _ -> again
    end.

%% @private
-spec start_link(run()) -> supervisor:startlink_ret().
start_link(Run) -> supervisor:start_link(?MODULE, Run).

%% @private
-spec init(run()) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(#{id := RunId, reliable := Reliable} = Run) ->
    %% Where nothing is reliable the leash alone is there again, and ends what is left.
    {ok, {#{strategy => one_for_one, intensity => 1000, period => 10},
          [#{id => leash, start => {aco_leash, start_link, [Run]}} | [role(Id, Run) || Reliable, {Id, _} <- aco_keep:started(RunId)]]}}.

role(Id, #{reliable := Reliable} = Run) ->
    #{id => Id, start => {?MODULE, start_role, [Id, Run]},
      restart => case Reliable of true -> permanent; false -> temporary end}.

%% @private
-spec start_role(aco_tree:id(), run()) -> {ok, pid()} | ignore.
start_role(Id, #{id := RunId} = Run) ->
    Module = case Id of [_ | _] -> aco_submaster; [] -> aco_submaster; _ -> aco_colony_server end,
    Started = case aco_name:of_id(Id, Run) of
                  none -> gen_server:start_link(Module, {Id, Run}, []);
                  Name -> gen_server:start_link(Name, Module, {Id, Run}, [])
              end,
    case Started of
        {ok, _} ->
            _ = aco_keep:count(RunId, {started, Id}),
            Started;
        {error, {already_started, Before}} when is_pid(Before), node(Before) =:= node() ->
            %% It ends: the host that had it was killed, and the news is on its way.
            Ref = monitor(process, Before),
            receive {'DOWN', Ref, process, _, _} -> start_role(Id, Run)
            after ?GONE_MS -> ignore
            end;
        {error, {already_started, _}} ->
            %% It is elsewhere, or there is no group for its name just now. If it is missed, it is
            %% asked for again; to fail here would have the supervisors try in vain until they give up.
            ignore
    end.

%% @doc What there is to say of this node: how many processes were started again, here or after
%% they were elsewhere; and what the survey says.
-spec report(run()) -> #{node() => #{restarts := non_neg_integer(), said := term()}}.
report(#{id := RunId, tree := Tree, survey := Survey}) ->
    Again = [case aco_tree:place(Id, Tree) of #{nodes := [Node | _]} when Node =:= node() -> Times - 1; _ -> Times end
             || {Id, Times} <- aco_keep:started(RunId)],
    #{node() => #{restarts => lists:sum(Again), said => case Survey of none -> none; {M, F, Args} -> apply(M, F, Args) end}}.

%% @doc Ends the run on this node: all its processes, what is remembered of it, and the groups
%% but for one of this name, which the node above deletes.
-spec stop(aco_tree:run_id(), Kept :: s_group:name() | none) -> ok.
stop(RunId, Kept) ->
    _ = supervisor:terminate_child(aco_app, RunId),
    %% As long as it is not deleted nobody starts it, who would be forgotten too.
    ok = aco_keep:forget(RunId),
    _ = supervisor:delete_child(aco_app, RunId),
    aco_name:leave(RunId, Kept).
