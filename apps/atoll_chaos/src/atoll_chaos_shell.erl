%% SPDX-License-Identifier: Apache-2.0
%% @doc Faults on the nodes of any running cluster, from one that can connect with
%% them: an Erlang shell, best a hidden node.
%%
%% The modules that work on a node under test are loaded into it if it does
%% not have them, and taken away again ({@link atoll_chaos_guest}). Nodes are killed and stopped by signals where they run on the
%% same machine (the same boot of the same kernel, and a process of the same number
%% that started at the same moment) and under the same user or for root; nobody
%% starts one again. This node itself is never harmed.
%%
%% If this VM ends, in whatever way, the nodes' agents see it and undo their cuts,
%% what was loaded goes, and what was stopped goes on. A cut or a pause that takes the connection with
%% this node (a pause longer than the net tick time does) ends the cuts of that node.
-module(atoll_chaos_shell).

-behaviour(atoll_chaos_backend).

-include_lib("kernel/include/file.hrl").

-export([open/1, may_signal/2]).
-export([nodes/1, able/1, call/4, owner/2, leave/2, kill/2, start/2, resume/2, os_pid/2]).

-compile({no_auto_import, [nodes/1]}).

-type state() :: #{
    nodes := [node(), ...],
    %% Of those on this machine.
    processes := #{node() => atoll_cluster_os:process()}
}.

-define(GUEST, atoll_chaos_guest).
-define(CALL_MS, 5000).
%% All there has been undone by then.
-define(LEAVE_MS, 30000).
-define(BOOT, "/proc/sys/kernel/random/boot_id").

%% @doc The backend of these nodes, all of which must answer.
-spec open([node(), ...]) -> {ok, atoll_chaos_backend:backend()} | {error, atoll_chaos_backend:error()}.
open(Nodes) ->
    open(Nodes -- [node()], #{nodes => Nodes -- [node()], processes => #{}}).

open([], State) ->
    {ok, {?MODULE, State}};
open([Node | Nodes], #{processes := Processes} = State) ->
    case process_of(Node) of
        {ok, Process} -> open(Nodes, State#{processes := Processes#{Node => Process}});
        elsewhere -> open(Nodes, State);
        {error, _} = Error -> Error
    end.

process_of(Node) ->
    case {ask(Node, file, read_file, [?BOOT]), file:read_file(?BOOT), ask(Node, os, getpid, [])} of
        {{ok, {ok, Boot}}, {ok, Boot}, {ok, Text}} -> process_of(Node, list_to_integer(Text));
        {{error, _} = Error, _, _} -> Error;
        {_, _, {error, _} = Error} -> Error;
        _ -> elsewhere
    end.

%% Numbers may mean another process here than there, and another user's takes no
%% signal from this one.
process_of(Node, OsPid) ->
    case {ask(Node, file, read_file, ["/proc/self/stat"]), atoll_cluster_os:start_time(OsPid)} of
        {{ok, {ok, Stat}}, {ok, Start}} ->
            case {atoll_cluster_os:parse_stat(Stat), may_signal(OsPid, atoll_cluster_os:uid())} of
                {{_, Start}, true} -> {ok, {OsPid, Start}};
                _ -> elsewhere
            end;
        _ ->
            elsewhere
    end.

%% @doc Whether a user of this machine, root or another, may send that process a signal.
-spec may_signal(OsPid :: pos_integer(), Uid :: non_neg_integer()) -> boolean().
may_signal(_OsPid, 0) ->
    true;
may_signal(OsPid, Uid) ->
    case file:read_file_info("/proc/" ++ integer_to_list(OsPid)) of
        {ok, #file_info{uid = Owner}} -> Owner =:= Uid;
        {error, _} -> false
    end.

-spec nodes(state()) -> [node(), ...].
nodes(#{nodes := Nodes}) -> Nodes.

-spec able(state()) -> [kill | pause | slow].
able(#{nodes := Nodes, processes := Processes}) ->
    case length(Nodes) =:= map_size(Processes) of
        true -> [kill, pause, slow];
        false -> []
    end.

-spec call(state(), node(), {module(), atom(), [term()]}, pos_integer()) ->
    {ok, term()} | {error, atoll_chaos_backend:error()}.
call(_, Node, {M, F, A}, Ms) ->
    case ask(Node, M, F, A, Ms) of
        {error, {raised, Node, {undef, _}}} ->
            case lists:member(M, modules()) andalso bring(Node) of
                ok -> ask(Node, M, F, A, Ms);
                false -> {error, {raised, Node, undef}};
                {error, _} = Error -> Error
            end;
        Answer ->
            Answer
    end.

-spec owner(state(), pid()) -> pid().
owner(_, Keeper) -> Keeper.

-spec leave(state(), node()) -> ok | {error, atoll_chaos_backend:error()}.
leave(_, Node) ->
    case atoll_chaos_guest:leave(Node, ?LEAVE_MS) of
        ok -> ok;
        {error, Reason} -> {error, {unreachable, Node, Reason}}
    end.

-spec kill(state(), node()) -> ok | {error, atoll_chaos_backend:error()}.
kill(State, Node) -> signal(kill, Node, State).

-spec start(state(), node()) -> {error, atoll_chaos_backend:error()}.
start(_, Node) -> {error, {not_possible, start, Node}}.

-spec resume(state(), node()) -> ok | {error, atoll_chaos_backend:error()}.
resume(State, Node) -> signal(cont, Node, State).

-spec os_pid(state(), node()) -> {ok, pos_integer()} | {error, atoll_chaos_backend:error()}.
os_pid(#{processes := Processes}, Node) ->
    case Processes of
        #{Node := {OsPid, _} = Process} ->
            case atoll_cluster_os:state(Process) of
                gone -> {error, {unreachable, Node, gone}};
                _ -> {ok, OsPid}
            end;
        #{} -> {error, {not_here, Node}}
    end.

signal(Signal, Node, #{processes := Processes}) ->
    case Processes of
        #{Node := Process} ->
            case atoll_cluster_os:signal(Process, Signal) of
                ok -> ok;
                gone -> {error, {unreachable, Node, gone}}
            end;
        #{} ->
            {error, {not_here, Node}}
    end.

modules() -> [atoll_chaos_agent, atoll_chaos_victims, atoll_chaos_fall, atoll_chaos_kill, atoll_chaos_witness, atoll_chaos_names].

%% Two that ask the same node must not both do it.
bring(Node) ->
    global:trans({{?MODULE, Node}, self()}, fun() -> bring(Node, [M || M <- [?GUEST | modules()], not has(Node, M)]) end, [node()]).

%% The guest is loaded and started by one message, before the others come: whenever this VM ends, it
%% takes away what has come by then. It is told that this VM is gone, and not a process of it: a run
%% that ends while this VM goes on heals by itself.
bring(_Node, []) ->
    ok;
bring(Node, Lacking) ->
    {Ms, Fs, As} = lists:unzip3([loading(M) || M <- Lacking, M =:= ?GUEST] ++ [{?GUEST, start, [whereis(init), Lacking]}]),
    case ask(Node, lists, zipwith3, [fun erlang:apply/3, Ms, Fs, As]) of
        {ok, _} -> load(Node, Lacking -- [?GUEST]);
        {error, _} = Error -> Error
    end.

has(Node, Module) ->
    ask(Node, code, ensure_loaded, [Module]) =:= {ok, {module, Module}}.

load(_Node, []) ->
    ok;
load(Node, [Module | Modules]) ->
    {M, F, A} = loading(Module),
    case ask(Node, M, F, A) of
        {ok, {module, Module}} -> load(Node, Modules);
        {ok, {error, Reason}} -> {error, {raised, Node, Reason}};
        {error, _} = Error -> Error
    end.

loading(Module) ->
    {Module, Binary, File} = code:get_object_code(Module),
    {code, load_binary, [Module, File, Binary]}.

ask(Node, M, F, A) ->
    ask(Node, M, F, A, ?CALL_MS).

ask(Node, M, F, A, Ms) ->
    try
        {ok, erpc:call(Node, M, F, A, Ms)}
    catch
        error:{erpc, Reason} -> {error, {unreachable, Node, Reason}};
        error:{exception, Reason, Stack} -> {error, {raised, Node, undefined_function(Reason, Stack)}};
        _:Reason -> {error, {raised, Node, Reason}}
    end.

undefined_function(undef, [{M, _, _, _} | _]) -> {undef, M};
undefined_function(Reason, _) -> Reason.
