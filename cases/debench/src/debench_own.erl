%% SPDX-License-Identifier: Apache-2.0
%% @doc DE-Bench on nodes that are up already. They need
%% nothing of Atoll for a mesh: what runs on them is loaded into them, and taken away again when the
%% run ends, or when this VM does, however it ends ({@link debench_guest}).
%%
%% This VM is to be a hidden node that they let in: it is none of those that are measured. In a mesh the nodes
%% are connected with each other, and stay so. In groups they are what they are: each must be in an
%% s_group, and is left in it.
%%
%% What the load logs on a node would come here, and is dropped: a supervisor writes pages for each worker
%% that is killed. What becomes of the workers is counted, and of the run there is a sentence.
-module(debench_own).

-export([start/1, stop/1, lost/2, modules/0]).
-export([of_nodes/2]).

-import(atoll_bench_nodes, [answer/1, sure/1]).

-export_type([options/0]).

-type options() :: #{
    nodes := [node(), ...],
    system := debench_system:system()
}.

-define(CALL_MS, 30000).

%% @doc All that runs on a node: they call each other, and otherwise OTP, and the application `atoll'
%% where there are groups.
-spec modules() -> [module(), ...].
modules() ->
    [
        debench_ballast, debench_choice, debench_fsm, debench_op, atoll_bench_pace, debench_peer, debench_sup,
        debench_system, debench_tally, debench_worker, atoll_histogram, atoll_bench_machine, atoll_bench_node,
        atoll_cluster_os, debench_guest
    ].

%% @doc Finds the nodes and makes them ready. After an error nothing is left on any of them.
-spec start(options()) -> atoll_bench_nodes:answer(debench_cluster:started()).
start(#{nodes := Nodes, system := System}) ->
    Started = #{nodes => Nodes, system => System, ask => fun(Function, Args, Ms) -> ask(Nodes, Function, Args, Ms) end},
    Answer = answer(fun() ->
        _ = logger:add_primary_filter(?MODULE, {fun ?MODULE:of_nodes/2, Nodes}),
        lists:foreach(fun(Node) -> ok = found(Node) end, Nodes),
        lists:foreach(fun(Node) -> ok = settled(Node) end, Nodes),
        ok = ready(Started),
        Started
    end),
    _ = [ok = stop(Started) || element(1, Answer) =:= error],
    Answer.

found(Node) ->
    case net_kernel:connect_node(Node) of
        true -> ok;
        _ -> throw({failed, io_lib:format("~ts does not answer", [Node])})
    end.

%% The guest goes first, and takes away what comes after it, even if this ends in between.
settled(Node) ->
    Lacking = [Module || Module <- modules(), not is_there(Node, Module)],
    Busy = io_lib:format("DE-Bench runs on ~ts already", [Node]),
    _ = [throw({failed, Busy}) || call(Node, {erlang, whereis}, [debench_guest]) =/= undefined],
    _ = [ok = load(Node, Module) || Module <- Lacking, Module =:= debench_guest],
    ok = call(Node, {debench_guest, start}, [self(), Lacking]),
    lists:foreach(fun(Module) -> ok = load(Node, Module) end, Lacking -- [debench_guest]).

%% Of another version it would not do what is measured.
is_there(Node, Module) ->
    case call(Node, {code, ensure_loaded}, [Module]) of
        {module, Module} ->
            case call(Node, {Module, module_info}, [md5]) =:= Module:module_info(md5) of
                true -> true;
                false -> throw({failed, io_lib:format("~ts has another version of ~ts", [Node, Module])})
            end;
        {error, _} ->
            false
    end.

load(Node, Module) ->
    {Module, Binary, File} = code:get_object_code(Module),
    case call(Node, {code, load_binary}, [Module, File, Binary]) of
        {module, Module} ->
            ok;
        {error, Reason} ->
            throw({failed, io_lib:format("~ts cannot load ~ts, which Erlang/OTP ~ts has compiled: ~0tp", [
                Node, Module, erlang:system_info(otp_release), Reason
            ])})
    end.

ready(#{system := mesh} = Started) ->
    debench_cluster:see_each_other(Started);
ready(#{system := groups, ask := Ask}) ->
    Said = sure(Ask({erlang, function_exported}, [s_group, own_s_groups, 0], ?CALL_MS)),
    _ = [throw({failed, outside(Node)}) || {Node, false} <- Said],
    Groups = sure(Ask({s_group, own_s_groups}, [], ?CALL_MS)),
    _ = [throw({failed, outside(Node)}) || {Node, []} <- Groups],
    ok.

outside(Node) -> io_lib:format("~ts is in no s_group", [Node]).

%% @doc Takes everything away; also of nodes of which some do not answer any more.
-spec stop(debench_cluster:started()) -> ok.
stop(#{nodes := Nodes}) ->
    lists:foreach(fun left/1, [Node || Node <- Nodes, lists:member(Node, nodes(connected))]),
    _ = logger:remove_primary_filter(?MODULE),
    ok.

%% @private
%% A filter: drops what processes of these nodes log.
-spec of_nodes(logger:log_event(), [node(), ...]) -> stop | ignore.
of_nodes(#{meta := #{pid := Pid}}, Nodes) ->
    case lists:member(node(Pid), Nodes) of
        true -> stop;
        false -> ignore
    end;
of_nodes(_, _) ->
    ignore.

left(Node) ->
    Ref = monitor(process, {debench_guest, Node}),
    _ = erlang:send({debench_guest, Node}, leave),
    receive
        {'DOWN', Ref, process, _, _} -> ok
    after ?CALL_MS ->
        true = demonitor(Ref, [flush]),
        ok
    end.

call(Node, Function, Args) ->
    [{Node, Answer}] = sure(ask([Node], Function, Args, ?CALL_MS)),
    Answer.

ask(Nodes, {Module, Function}, Args, Ms) ->
    answer(fun() ->
        [
            case Said of
                {ok, Answer} -> {Node, Answer};
                {error, {erpc, timeout}} -> throw({failed, io_lib:format("~ts does not answer any more", [Node])});
                {error, {erpc, _}} -> throw({failed, io_lib:format("~ts was lost", [Node])});
                {Class, Why} ->
                    throw({failed, io_lib:format("~ts:~ts ended on ~ts with ~ts ~0tP", [Module, Function, Node, Class, Why, 12])})
            end
         || {Node, Said} <- lists:zip(Nodes, erpc:multicall(Nodes, Module, Function, Args, Ms))
        ]
    end).

%% @doc What a function returns, or the sentence which node was lost meanwhile: the function is ended
%% then.
-spec lost([node(), ...], fun(() -> atoll_bench_nodes:answer(Result))) -> atoll_bench_nodes:answer(Result).
lost(Nodes, Fun) ->
    Self = self(),
    _ = [true = erlang:monitor_node(Node, true) || Node <- Nodes],
    {Pid, Ref} = spawn_monitor(fun() -> Self ! {self(), Fun()} end),
    Answer =
        receive
            {Pid, Said} ->
                Said;
            {nodedown, Node} ->
                true = exit(Pid, kill),
                {error, io_lib:format("Node ~ts was lost during the run.", [Node])};
            {'DOWN', Ref, process, Pid, Reason} ->
                exit(Reason)
        end,
    true = demonitor(Ref, [flush]),
    _ = [true = erlang:monitor_node(Node, false) || Node <- Nodes],
    _ = [receive {nodedown, Node} -> ok after 0 -> ok end || Node <- Nodes],
    Answer.
