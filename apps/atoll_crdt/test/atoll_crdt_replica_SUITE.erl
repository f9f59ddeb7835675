%% SPDX-License-Identifier: Apache-2.0
%% Replicas on real nodes: they become equal, a lost one is given back what it had, and they end with the application.
-module(atoll_crdt_replica_SUITE).
-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([
    an_object_comes_to_all_nodes/1,
    a_lost_replica_gets_its_objects_from_a_neighbour/1,
    who_is_off_line_is_told_when_it_is_back/1,
    changes_are_told_to_subscribers/1,
    what_is_wrong_is_a_sentence/1,
    a_replica_ends_with_the_application/1
]).
-export([hold/2, holding/3, seen/2, watch/1]).

-define(NODES, 4).
-define(MS, 20000).

suite() -> [{timetrap, {minutes, 3}}].

all() ->
    [
        an_object_comes_to_all_nodes,
        a_lost_replica_gets_its_objects_from_a_neighbour,
        who_is_off_line_is_told_when_it_is_back,
        changes_are_told_to_subscribers,
        what_is_wrong_is_a_sentence,
        a_replica_ends_with_the_application
    ].

init_per_suite(Config) ->
    Args = fun([First | _]) -> ["-atoll", "overlay", "hyparview", "-atoll", "contacts", lists:flatten(io_lib:format("~0tp", [[First]]))] end,
    [{cluster, atoll_cluster_owned:start(#{nodes => ?NODES, connect_all => false, apps => [atoll], args => Args})} | Config].

end_per_suite(Config) -> ok = atoll_cluster_owned:stop(?config(cluster, Config)).

%% On a node

%% Starts a replica that lives on.
hold(Name, Options) ->
    Self = self(),
    {Pid, Ref} = spawn_monitor(fun() ->
        _ = process_flag(trap_exit, true),
        Self ! {self(), atoll_crdt_replica:start_link(Name, Options)},
        receive {'EXIT', _, _} -> ok end
    end),
    receive {Pid, {ok, Replica}} -> true = demonitor(Ref, [flush]), Replica; {Pid, Other} -> Other end.

%% Waits until the object has that value, by its changes.
holding(Name, Object, Value) ->
    ok = atoll_crdt_replica:subscribe(Name),
    holding(Name, Object, Value, atoll_crdt_replica:value(Name, Object)).

holding(_, _, Value, {ok, Value}) -> ok;
holding(Name, Object, Value, Other) ->
    receive {atoll, Name, {changed, Object}} -> holding(Name, Object, Value, atoll_crdt_replica:value(Name, Object)) after ?MS -> {late, Other} end.

%% A process that subscribes and keeps what it hears.
watch(Name) ->
    Self = self(),
    Pid = spawn(fun() ->
        ok = atoll_crdt_replica:subscribe(Name),
        Self ! {self(), ready},
        receive {tell, To} -> {messages, Heard} = process_info(self(), messages), To ! {self(), Heard} end
    end),
    receive {Pid, ready} -> Pid end.

seen(Watcher, Name) ->
    %% What the replica had to say before this it has said.
    {ok, _} = atoll_crdt_replica:value(Name, hits),
    Watcher ! {tell, self()},
    receive {Watcher, Heard} -> Heard end.

%% From here

nodes_of(Config) -> atoll_cluster:nodes(?config(cluster, Config)).

on(Node, Module, Function, Args, Config) -> atoll_cluster:call(?config(cluster, Config), Node, Module, Function, Args, ?MS + 5000).

start(Name, Options, Config) -> [{Node, on(Node, ?MODULE, hold, [Name, Options], Config)} || Node <- nodes_of(Config)].

update(Node, Name, Object, Type, Operation, Config) -> on(Node, atoll_crdt_replica, update, [Name, Object, Type, Operation], Config).

an_object_comes_to_all_nodes(Config) ->
    [
        begin
            Name = How,
            Started = start(Name, #{how => How, interval_ms => 200}, Config),
            ?assertEqual([], [Other || {_, Other} <- Started, not is_pid(Other)]),
            [ok = update(Node, Name, hits, gcounter, increment, Config) || {Node, _} <- Started],
            [ok = update(Node, Name, {members, of_it}, map, {update, {Node, set}, {add, Node}}, Config) || {Node, _} <- Started],
            [?assertEqual({How, Node, ok}, {How, Node, on(Node, ?MODULE, holding, [Name, hits, ?NODES], Config)}) || {Node, _} <- Started],
            All = maps:from_list([{{Node, set}, [Node]} || {Node, _} <- Started]),
            [?assertEqual({How, Node, ok}, {How, Node, on(Node, ?MODULE, holding, [Name, {members, of_it}, All], Config)}) || {Node, _} <- Started]
        end
     || How <- [state, delta, broadcast]
    ].

a_lost_replica_gets_its_objects_from_a_neighbour(Config) ->
    [{First, Pid}, {Second, _} | _] = start(lost, #{interval_ms => 200}, Config),
    ok = update(Second, lost, hits, gcounter, {increment, 7}, Config),
    ok = on(First, ?MODULE, holding, [lost, hits, 7], Config),
    true = on(First, erlang, exit, [Pid, kill], Config),
    ok = atoll_cli_os:await(fun() -> on(First, erlang, whereis, [lost], Config) =:= undefined end, ?MS),
    true = is_pid(on(First, ?MODULE, hold, [lost, #{interval_ms => 200}], Config)),
    ?assertEqual(ok, on(First, ?MODULE, holding, [lost, hits, 7], Config)),
    %% As somebody else, so that nothing that it counts is taken for what it has counted before.
    ok = update(First, lost, hits, gcounter, increment, Config),
    ?assertEqual(ok, on(Second, ?MODULE, holding, [lost, hits, 8], Config)).

who_is_off_line_is_told_when_it_is_back(Config) ->
    [{First, _}, {Second, _} | _] = start(off, #{interval_ms => 200}, Config),
    ok = on(First, atoll_crdt_replica, online, [off, false], Config),
    ok = update(First, off, hits, gcounter, increment, Config),
    ok = update(Second, off, hits, gcounter, {increment, 2}, Config),
    ?assertEqual({ok, 1}, on(First, atoll_crdt_replica, value, [off, hits], Config)),
    ok = on(First, atoll_crdt_replica, online, [off, true], Config),
    [?assertEqual(ok, on(Node, ?MODULE, holding, [off, hits, 3], Config)) || Node <- [First, Second]].

changes_are_told_to_subscribers(Config) ->
    [{First, _} | _] = start(told, #{}, Config),
    Watcher = on(First, ?MODULE, watch, [told], Config),
    ok = update(First, told, hits, gcounter, increment, Config),
    ok = update(First, told, top, max, {put, 1}, Config),
    %% It changes nothing.
    ok = update(First, told, top, max, {put, 0}, Config),
    ?assertEqual([{atoll, told, {changed, hits}}, {atoll, told, {changed, top}}], on(First, ?MODULE, seen, [Watcher, told], Config)).

what_is_wrong_is_a_sentence(Config) ->
    [First | _] = nodes_of(Config),
    Says = fun({error, Error}) -> lists:flatten(io_lib:format("~ts", [atoll_crdt_replica:format_error(Error)])) end,
    ?assertEqual("there is no replica nobody on this node", Says(on(First, atoll_crdt_replica, status, [nobody], Config))),
    ?assertEqual("there is no option interval", Says(on(First, atoll_crdt_replica, start_link, [x, #{interval => 1}], Config))),
    ?assertEqual("the option how must be one of state, delta, broadcast, not all", Says(on(First, atoll_crdt_replica, start_link, [x, #{how => all}], Config))),
    _ = on(First, ?MODULE, hold, [wrong, #{objects_max => 1}], Config),
    ok = update(First, wrong, hits, gcounter, increment, Config),
    ?assertEqual("the object hits has the type gcounter, and not set", Says(update(First, wrong, hits, set, clear, Config))),
    ?assertEqual("there are 1 objects already, as many as the option objects_max allows", Says(update(First, wrong, more, set, clear, Config))).

a_replica_ends_with_the_application(Config) ->
    Node = lists:last(nodes_of(Config)),
    true = is_pid(on(Node, ?MODULE, hold, [last, #{}], Config)),
    ok = on(Node, application, stop, [atoll], Config),
    ok = atoll_cli_os:await(fun() -> on(Node, erlang, whereis, [last], Config) =:= undefined end, ?MS),
    ?assertEqual({error, not_running}, on(Node, atoll_crdt_replica, start_link, [x], Config)).
