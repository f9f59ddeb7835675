%% SPDX-License-Identifier: Apache-2.0
%% @doc The processes of this node that may be killed, and what they are called.
%%
%% <b>Never</b> among them: the processes of kernel and stdlib, but for a child of
%% `kernel_safe_sup' that is asked for by its name; what the runtime itself started
%% (init and its kind); the masters of applications; the top supervisor of an
%% application, unless it is asked for by its name; and the processes of this
%% tool, with the control connection of the node.
%%
%% `{supervisor, _}', `{application, _}' and `any' mean workers; a supervisor is
%% killed when it is asked for by name or by module.
%%
%% Whoever has a name in an s_group or in `global' is found by it where it runs, whoever has it
%% now; so are the processes that a script has named there ({@link atoll_chaos_names}), which no
%% application has.
%%
%% The order hangs on names, not on pids: the same choice finds the same process
%% on another day, but for the children of a `simple_one_for_one', which have no
%% names.
%%
%% The module stands alone, see {@link atoll_chaos_agent}.
-module(atoll_chaos_victims).

-export([find/1, names/1, holder/2, are_spared/1, is_needed/1, is_program/1, children/1, is_supervisor/1]).

-export_type([what/0, scope/0, victim/0]).

-type what() ::
    {name, atom()}
    | {supervisor, atom()}
    | {module, module()}
    | {application, atom()}
    | {held, scope(), Name :: term()}
    | any.
%% That of atoll_sim_step, which is not on every node; of the names that `any_name' means there,
%% one that is held by a process.

-type scope() :: {group, Group :: atom()} | global.

-type victim() :: #{
    pid := pid(),
    %% Its application, the ids of the supervisors above it, and its own.
    path := [term()],
    name := atom() | none,
    supervisor := pid() | none,
    id := term(),
    application := atom(),
    %% The name by which it was found, where it is one of a group or of `global'.
    held => {scope(), Name :: term()}
}.

-define(ANSWER_MS, 5000).

%% @doc All processes that `What' means, in order.
-spec find(what()) -> [victim()].
find(any) ->
    Started = [App || {App, _, _} <- application:which_applications()],
    lists:append([find({application, App}) || App <- lists:sort(Started), not is_runtime(App)]);
find({application, App}) ->
    case not is_runtime(App) andalso top(App) of
        {ok, Top} -> in_order(workers(Top, [App]));
        _ -> []
    end;
find({supervisor, Name}) ->
    Pid = whereis(Name),
    case is_pid(Pid) andalso is_supervisor(Pid) andalso not is_runtime(application_of(Pid)) of
        true -> in_order(workers(Pid, [application_of(Pid), Name]));
        false -> []
    end;
find({name, Name}) ->
    case whereis(Name) of
        Pid when is_pid(Pid) -> [V || V <- [describe(Pid)], not is_spared(V), is_killable(V)];
        _ -> []
    end;
find({held, Scope, Name}) ->
    case holder(Scope, Name) of
        Pid when is_pid(Pid), node(Pid) =:= node() ->
            [
                V#{held => {Scope, Name}, path := [Part || Part <- Path, not is_program(Pid)]}
             || #{path := Path} = V <- [describe(Pid)], not is_spared(V), is_killable(V) orelse is_program(Pid), not is_top(V)
            ];
        _ ->
            []
    end;
find({module, Module}) ->
    in_order([
        V
     || Pid <- processes(),
        lists:member(Module, modules(Pid)),
        V <- [describe(Pid)],
        not is_spared(V),
        not is_runtime(map_get(application, V)),
        not is_top(V)
    ]).

%% @doc The names that processes of this node have there, sorted.
-spec names(scope()) -> [Name :: term()].
names(Scope) ->
    lists:sort([Name || Name <- registered(Scope), Pid <- [holder(Scope, Name)], is_pid(Pid), node(Pid) =:= node()]).

registered(global) ->
    global:registered_names();
registered({group, Group}) ->
    try
        atoll_name:names(Group)
    catch
        %% Nothing of Atoll is there.
        error:undef -> []
    end.

%% @doc Who has the name now, as this node knows it.
-spec holder(scope(), Name :: term()) -> pid() | undefined.
holder(global, Name) -> global:whereis_name(Name);
holder({group, Group}, Name) -> atoll_name:whereis(Group, Name).

%% @doc Whether `What' means processes, all of which are spared. To be asked when none
%% was found.
-spec are_spared(what()) -> boolean().
are_spared(any) -> false;
are_spared({application, App}) -> is_runtime(App);
are_spared({name, Name}) -> is_pid(whereis(Name));
are_spared({held, Scope, Name}) ->
    Pid = holder(Scope, Name),
    is_pid(Pid) andalso node(Pid) =:= node();
are_spared({module, Module}) -> lists:any(fun(Pid) -> lists:member(Module, modules(Pid)) end, processes());
are_spared({supervisor, Name}) ->
    Pid = whereis(Name),
    is_pid(Pid) andalso is_supervisor(Pid) andalso is_runtime(application_of(Pid)).

%% @doc Whether it is one of those that a script has named, which nobody starts again.
-spec is_program(pid()) -> boolean().
is_program(Pid) ->
    process_info(Pid, initial_call) =:= {initial_call, {atoll_chaos_names, idle, 0}}.

%% @doc Whether the node, or this tool, needs that process.
-spec is_needed(pid()) -> boolean().
is_needed(Pid) ->
    Victim = describe(Pid),
    is_spared(Victim) orelse not is_killable(Victim).

in_order(Victims) ->
    [V || {_, V} <- lists:keysort(1, [{Path, V} || #{path := Path} = V <- Victims])].

%% The workers of a tree.
workers(Supervisor, Path) ->
    lists:append([
        case Type =:= supervisor andalso is_supervisor(Pid) of
            true -> workers(Pid, Path ++ [Id]);
            false when Type =:= worker -> [V || V <- [victim(Pid, Supervisor, Id, Path)], not is_spared(V)];
            false -> []
        end
     || {Id, Pid, Type, _} <- children(Supervisor), is_pid(Pid)
    ]).

victim(Pid, Supervisor, Id, Path) ->
    #{
        pid => Pid,
        path => Path ++ [Id],
        name => name(Pid),
        supervisor => Supervisor,
        id => Id,
        application => hd(Path)
    }.

describe(Pid) ->
    App = application_of(Pid),
    case parent(Pid) of
        {ok, Supervisor} ->
            Id =
                case lists:keyfind(Pid, 2, children(Supervisor)) of
                    {Found, _, _, _} -> Found;
                    false -> undefined
                end,
            victim(Pid, Supervisor, Id, [App, name(Supervisor)]);
        none ->
            (victim(Pid, none, undefined, [App]))#{path := [App, name(Pid)]}
    end.

%% @doc The children of a supervisor; none if it is gone or does not answer.
-spec children(pid()) -> [{Id :: term(), pid() | restarting | undefined, worker | supervisor, term()}].
children(Supervisor) ->
    try
        gen_server:call(Supervisor, which_children, ?ANSWER_MS)
    catch
        exit:_ -> []
    end.

%% The top supervisor is the child of the application's master.
top(App) ->
    case application_controller:get_master(App) of
        Master when is_pid(Master) ->
            case application_master:get_child(Master) of
                {Pid, _Module} when is_pid(Pid) -> is_supervisor(Pid) andalso {ok, Pid};
                _ -> false
            end;
        _ ->
            false
    end.

parent(Pid) ->
    case process_info(Pid, dictionary) of
        {dictionary, Dictionary} ->
            case lists:keyfind('$ancestors', 1, Dictionary) of
                {_, [Name | _]} when is_atom(Name) -> supervisor(whereis(Name));
                {_, [Parent | _]} when is_pid(Parent), node(Parent) =:= node() -> supervisor(Parent);
                _ -> none
            end;
        undefined ->
            none
    end.

supervisor(Pid) ->
    case is_pid(Pid) andalso is_supervisor(Pid) of
        true -> {ok, Pid};
        false -> none
    end.

%% @doc Whether a process is an OTP supervisor: only such a one is asked for its
%% children.
-spec is_supervisor(pid()) -> boolean().
is_supervisor(Pid) ->
    case proc_lib:translate_initial_call(Pid) of
        {supervisor, _, _} -> true;
        _ -> false
    end.

%% The one in which it began, and the one that has its callbacks.
modules(Pid) ->
    {Module, _, _} = proc_lib:translate_initial_call(Pid),
    case {Module, process_info(Pid, dictionary)} of
        {supervisor, {dictionary, Dictionary}} ->
            case lists:keyfind('$initial_call', 1, Dictionary) of
                {_, {supervisor, Callback, _}} -> [supervisor, Callback];
                _ -> [supervisor]
            end;
        _ ->
            [Module]
    end.

name(Pid) ->
    case process_info(Pid, registered_name) of
        {registered_name, Name} -> Name;
        _ -> none
    end.

application_of(Pid) ->
    case application:get_application(Pid) of
        {ok, App} -> App;
        %% What the runtime started before there were applications.
        undefined -> case process_info(Pid, group_leader) =:= {group_leader, whereis(init)} of
            true -> kernel;
            false -> undefined
        end
    end.

is_runtime(App) -> App =:= kernel orelse App =:= stdlib.

%% A child of kernel_safe_sup may end without the node.
is_killable(#{application := App, supervisor := Supervisor}) ->
    not is_runtime(App) orelse (is_pid(Supervisor) andalso Supervisor =:= whereis(kernel_safe_sup)).

is_top(#{pid := Pid, supervisor := Supervisor}) ->
    Supervisor =:= none andalso is_supervisor(Pid).

%% The runtime's own, and this tool's.
is_spared(#{pid := Pid, name := Name}) ->
    {Module, _, _} = proc_lib:translate_initial_call(Pid),
    Pid =:= self() orelse
        lists:member(Name, [
            init, erl_prim_loader, erts_code_purger, socket_registry, application_controller, user, peer, atoll_chaos_names, atoll_chaos_guest
        ]) orelse
        lists:member(Module, [application_master, init, peer, erts_internal, erts_code_purger,
            erts_literal_area_collector, erts_dirty_process_signal_handler, erts_trace_cleaner, erl_prim_loader]) orelse
        lists:member(Module, [atoll_chaos_agent, atoll_chaos_witness, atoll_chaos_keeper, atoll_chaos_runner]).
