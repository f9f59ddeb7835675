%% SPDX-License-Identifier: Apache-2.0
%% Runs on the nodes under test: a supervisor with singletons, the server that they run, and an
%% observer of all such servers of the nodes that are connected, with times.
-module(atoll_singleton_probe).

-behaviour(gen_server).

-export([observe/0, log/0, await/2, here/0, load/2]).
-export([start/1, end_all/0, children/0, free/0]).
-export([init/1, server/2, flapping/2, careless/0]).
-export([handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-define(SUP, atoll_singleton_probe_sup).
-define(OBSERVER, atoll_singleton_observer).
-define(DEADLINE_MS, 20000).

%% From now on this node writes down whose start it is told, and when it ends, as it sees it.
observe() ->
    Self = self(),
    spawn(fun() ->
        %% It writes down before others act on what they hear.
        _ = process_flag(priority, max),
        true = register(?OBSERVER, self()),
        ok = net_kernel:monitor_nodes(true),
        Self ! observing,
        observer([])
    end),
    receive
        observing -> ok
    end.

observer(Log) ->
    receive
        {log, From} ->
            From ! {?OBSERVER, lists:reverse(Log)},
            observer(Log);
        {started, Pid, Key} ->
            _ = monitor(process, Pid),
            observer([{now_ms(), started, Pid, Key} | Log]);
        {'DOWN', _, process, Pid, Reason} ->
            observer([{now_ms(), ended, Pid, Reason} | Log]);
        {nodeup, Node} ->
            observer([{now_ms(), nodeup, Node} | Log]);
        {nodedown, _} ->
            observer(Log);
        {told, Pid, What} ->
            observer([{now_ms(), told, Pid, What} | Log])
    end.

now_ms() -> os:system_time(millisecond).

log() ->
    ?OBSERVER ! {log, self()},
    receive
        {?OBSERVER, Log} -> Log
    end.

here() -> now_ms().

%% The name is that of a process of which this is true, on this node's own word; gives the process.
await(Key, Nodes) ->
    await(Key, Nodes, erlang:monotonic_time(millisecond) + ?DEADLINE_MS).

await({Group, Name} = Key, Nodes, Deadline) ->
    Pid = atoll_name:whereis(Group, Name),
    case Nodes of
        none when Pid =:= undefined -> none;
        [_ | _] when is_pid(Pid) ->
            case lists:member(node(Pid), Nodes) of
                true -> Pid;
                false -> again(Key, Nodes, Deadline, Pid)
            end;
        {stand_by, Which} ->
            case atoll_singleton:stand_bys(Group, Name) of
                Which -> ok;
                Others -> again(Key, Nodes, Deadline, Others)
            end;
        _ -> again(Key, Nodes, Deadline, Pid)
    end.

again(Key, Nodes, Deadline, Seen) ->
    case erlang:monotonic_time(millisecond) < Deadline of
        true -> receive after 5 -> await(Key, Nodes, Deadline) end;
        false -> {still, Seen, instead_of, Nodes}
    end.

load(Module, Code) ->
    {module, Module} = code:load_binary(Module, "howto", Code),
    ok.

%% A supervisor with these children.
start(Children) ->
    Self = self(),
    {Pid, Ref} = spawn_monitor(fun() ->
        true = register(?MODULE, self()),
        {ok, Sup} = supervisor:start_link({local, ?SUP}, ?MODULE, {supervisor, Children}),
        Self ! {self(), started},
        SupRef = monitor(process, Sup),
        receive
            {'DOWN', SupRef, process, Sup, _} -> ok
        end
    end),
    receive
        {Pid, started} -> demonitor(Ref, [flush]), ok;
        {'DOWN', Ref, process, Pid, Reason} -> {error, Reason}
    end.

%% As a node does that is stopped in order.
end_all() ->
    case whereis(?SUP) of
        undefined ->
            ok;
        Pid ->
            Ref = monitor(process, Pid),
            true = exit(whereis(?MODULE), shutdown),
            receive
                {'DOWN', Ref, process, Pid, _} -> ok
            end
    end.

children() -> supervisor:which_children(?SUP).

free() -> atoll_group:own().

server(Group, Name) ->
    gen_server:start_link({via, atoll_name, {Group, Name}}, ?MODULE, {server, {Group, Name}}, []).

%% Cannot be started while this term says so.
flapping(Group, Name) ->
    gen_server:start_link({via, atoll_name, {Group, Name}}, ?MODULE, {server, persistent_term:get(?MODULE, {Group, Name})}, []).

%% Forgets its lock.
careless() ->
    gen_server:start_link(?MODULE, {server, careless}, []).

init({supervisor, Children}) ->
    {ok, {#{intensity => 0, period => 1}, Children}};
init({server, refuse}) ->
    {stop, refused};
init({server, Key}) ->
    process_flag(trap_exit, true),
    _ = [{?OBSERVER, Node} ! {started, self(), Key} || Node <- [node() | nodes()]],
    {ok, none}.

handle_call(ping, _From, State) -> {reply, pong, State}.

handle_cast(Reason, State) -> {stop, Reason, State}.

handle_info({name_conflict, _, _, _} = Told, State) ->
    {?OBSERVER, node()} ! {told, self(), Told},
    {noreply, State}.

terminate(Reason, _State) ->
    _ = {?OBSERVER, node()} ! {told, self(), {terminate, Reason}},
    ok.
