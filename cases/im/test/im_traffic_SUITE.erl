%% SPDX-License-Identifier: Apache-2.0
%% @doc Traffic over several client nodes, with a messenger of one process on a node of its own
%% ({@link im_toy}): what a run is when its clients are on other nodes, and what is left when one of these dies.
-module(im_traffic_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([
    clients_of_all_nodes_talk_with_each_other/1,
    what_was_lost_between_nodes_is_found/1,
    a_client_node_that_dies_ends_the_run/1,
    clients_end_with_the_node_of_the_run/1
]).
-export([toy/1, begun/0]).

-define(ROUTER, 1).
-define(CLIENTS, 3).
-define(LATE_MS, 20000).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    [
        clients_of_all_nodes_talk_with_each_other, what_was_lost_between_nodes_is_found, a_client_node_that_dies_ends_the_run,
        clients_end_with_the_node_of_the_run
    ].

init_per_suite(Config) ->
    Self = self(),
    %% The owner of a cluster is the process that has started it.
    Owner = spawn(fun() ->
        {ok, Cluster} = atoll_cluster:start(#{
            nodes => [#{kind => "_router_", count => ?ROUTER, connect_all => false, apps => [], args => []}, im_cluster:client_options(?CLIENTS)]
        }),
        Self ! {self(), Cluster},
        receive stop -> atoll_cluster:stop(Cluster) end
    end),
    receive
        {Owner, Cluster} ->
            [Router | Clients] = atoll_cluster:nodes(Cluster),
            [{owner, Owner}, {cluster, Cluster}, {router, Router}, {clients, Clients} | Config]
    after ?LATE_MS ->
        ct:fail(no_cluster)
    end.

end_per_suite(Config) ->
    Owner = proplists:get_value(owner, Config),
    Ref = monitor(process, Owner),
    Owner ! stop,
    receive {'DOWN', Ref, process, Owner, _} -> ok end.

clients_of_all_nodes_talk_with_each_other(Config) ->
    ok = toy(none, Config),
    {ok, Result} = run(options(paper, #{time_scale => 1000, messages => {3, 6}, rivals => 20}, Config), Config),
    #{history := #{counts := Counts, messages := Messages, conversations := Conversations, logins := Logins}} = Result,
    #{total := #{sent := Sent, received := Received, delivered := Delivered}, conversations := #{'begun' := Begun, ended := Ended}} = Result,
    ?assertEqual({#{}, Sent, Sent, Sent}, {Counts, Received, Delivered, Messages}),
    ?assertEqual({30, #{finished => Begun}, Begun}, {Logins, Ended, Conversations}),
    #{is_drained := true, clients := #{rivals := Rivals, rivals_refused := Rivals}} = Result,
    %% Some have ended, and were replaced.
    ?assert(Begun > 15).

what_was_lost_between_nodes_is_found(Config) ->
    ok = toy({lose, 7}, Config),
    {ok, #{history := #{counts := Counts}}} = run(options(open, #{rate => 600, drain_ms => 300}, Config), Config),
    ?assertMatch(#{lost := _, gap := _}, Counts).

a_client_node_that_dies_ends_the_run(Config) ->
    ok = toy(none, Config),
    [First, Second, Third] = proplists:get_value(clients, Config),
    Cluster = proplists:get_value(cluster, Config),
    {Pid, Ref} = spawn_monitor(fun() -> exit(run(options(closed, #{ms => 3600000}, Config), Config)) end),
    ok = until(fun() -> call(Third, im_traffic_SUITE, begun, [], Config) end),
    ok = atoll_cluster:kill(Cluster, Third),
    receive
        {'DOWN', Ref, process, Pid, Reason} -> ?assertMatch({error, {node, Third, noconnection}}, Reason)
    after ?LATE_MS -> ct:fail(goes_on)
    end,
    ok = until(fun() -> not lists:any(fun(Node) -> call(Node, im_traffic_SUITE, begun, [], Config) end, [First, Second]) end),
    ok = atoll_cluster:restart(Cluster, Third).

clients_end_with_the_node_of_the_run(Config) ->
    ok = toy(none, Config),
    [First, Second | _] = proplists:get_value(clients, Config),
    Cluster = proplists:get_value(cluster, Config),
    {Pid, Ref} = spawn_monitor(fun() -> exit(run(options(closed, #{ms => 3600000}, Config), Config)) end),
    ok = until(fun() -> call(Second, im_traffic_SUITE, begun, [], Config) end),
    ok = atoll_cluster:kill(Cluster, First),
    receive {'DOWN', Ref, process, Pid, _} -> ok after ?LATE_MS -> ct:fail(goes_on) end,
    ok = until(fun() -> not call(Second, im_traffic_SUITE, begun, [], Config) end),
    ok = atoll_cluster:restart(Cluster, First).

options(Mode, More, Config) ->
    maps:merge(
        #{
            client_nodes => proplists:get_value(clients, Config), routers => [proplists:get_value(router, Config)], routers_per_node => 1,
            clients => 30, mode => Mode, ms => 400, ramp_ms => 100, drain_ms => ?LATE_MS, seed => atoll_tier:seed(?MODULE)
        },
        More
    ).

run(Options, Config) ->
    atoll_cluster:call(proplists:get_value(cluster, Config), hd(proplists:get_value(clients, Config)), im_traffic, run, [Options], infinity).

call(Node, Module, Function, Args, Config) ->
    atoll_cluster:call(proplists:get_value(cluster, Config), Node, Module, Function, Args).

%% A new messenger in place of the one before.
toy(Fault, Config) -> call(proplists:get_value(router, Config), ?MODULE, toy, [Fault], Config).

%% On the nodes.

%% @private
toy(Fault) ->
    _ = [
        begin
            Ref = monitor(process, Pid),
            exit(Pid, kill),
            receive {'DOWN', Ref, process, Pid, _} -> ok end
        end
     || Pid <- [whereis(router_1)], is_pid(Pid)
    ],
    true = unlink(im_toy:start_link(Fault)),
    ok.

%% Whether there are clients.
%% @private
begun() ->
    lists:any(fun(Pid) -> proc_lib:translate_initial_call(Pid) =:= {im_client, init, 1} end, processes()).

until(Is) -> until(Is, erlang:monotonic_time(millisecond) + ?LATE_MS).

until(Is, Deadline) ->
    case Is() of
        true -> ok;
        false ->
            ?assert(erlang:monotonic_time(millisecond) < Deadline),
            receive after 20 -> until(Is, Deadline) end
    end.
