%% SPDX-License-Identifier: Apache-2.0
%% Each kind of process of the messenger is killed on real nodes, and nodes are, under traffic whose
%% history is checked: no login is lost, and nothing that was accepted is lost, comes twice or in another order.
-module(im_recovery_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, groups/0, suite/0, init_per_group/2, end_per_group/2, end_per_testcase/2]).
-export([
    traffic_without_a_loss/1,
    a_router/1, the_router_supervisor/1, the_server_supervisor/1, the_monitored_db/1,
    the_server_supervisor_and_the_monitored_db/1, a_client_db/1, a_chat_db/1, both_dbs_of_a_node/1,
    a_client_monitor/1, a_chat_session/1, all_monitors_and_sessions/1, each_kind_in_turn/1,
    a_server_node_is_killed_and_comes_back/1
]).
%% On nodes.
-export([kill/2, count/1, places/0]).

-define(ROUTERS, 2).
-define(SERVERS, 4).
-define(LATE_MS, 30_000).

suite() -> [{timetrap, {minutes, 4}}].

all() ->
    case atoll_tier:tier() of
        fast -> [{group, rsd}];
        deep -> [{group, rd}, {group, rsd}, {group, relays}]
    end.

groups() -> [{Group, [], cases(atoll_tier:tier())} || Group <- [rd, rsd, relays]].

cases(fast) -> [each_kind_in_turn, a_server_node_is_killed_and_comes_back];
cases(deep) ->
    [traffic_without_a_loss, a_router, the_router_supervisor, the_server_supervisor, the_monitored_db,
     the_server_supervisor_and_the_monitored_db, a_client_db, a_chat_db, both_dbs_of_a_node, a_client_monitor, a_chat_session,
     all_monitors_and_sessions | cases(fast)].

init_per_group(Group, Config) ->
    Shape = (shape(Group))#{routers => ?ROUTERS, servers => ?SERVERS, clients => 1},
    Cluster = atoll_cluster_owned:start(im_cluster:options(Shape)),
    Roles = im_cluster:roles(Shape, atoll_cluster:nodes(Cluster)),
    {ok, Plan} = im_plan:new(im_cluster:settings(Shape, atoll_cluster:nodes(Cluster))),
    Started = [{cluster, Cluster}, {plan, Plan}, {roles, Roles} | Config],
    ok = whole(Started),
    Started.

shape(rd) -> #{mode => rd};
shape(rsd) -> #{mode => rsd, reach => atoll};
shape(relays) -> #{mode => rsd, reach => relays}.

end_per_group(_, Config) -> atoll_cluster_owned:stop(cluster(Config)).

end_per_testcase(_, Config) ->
    _ = atoll_cluster_owned:heal(cluster(Config)),
    ok.

%%% The rows of the table

traffic_without_a_loss(Config) -> under_traffic(Config, 1000, fun() -> ok end).

a_router(Config) -> row(Config, routers, [router]).
the_router_supervisor(Config) -> row(Config, routers, [router_supervisor]).
the_server_supervisor(Config) -> row(Config, servers, [server_supervisor]).
the_monitored_db(Config) -> row(Config, servers, [monitored_db]).
the_server_supervisor_and_the_monitored_db(Config) -> row(Config, servers, [server_supervisor, monitored_db]).
a_client_db(Config) -> row(Config, servers, [client_db]).
a_chat_db(Config) -> row(Config, servers, [chat_db]).
both_dbs_of_a_node(Config) -> row(Config, servers, [client_db, chat_db]).
a_client_monitor(Config) -> row(Config, servers, [client_monitor]).
a_chat_session(Config) -> row(Config, servers, [chat_session]).

all_monitors_and_sessions(Config) ->
    under_traffic(Config, 2000, fun() ->
        [_ = call(Config, Node, kill, [Kind, all]) || Node <- nodes_of(servers, Config), Kind <- [client_monitor, chat_session]],
        ok = whole(Config)
    end).

row(Config, Which, Kinds) ->
    under_traffic(Config, 2000, fun() -> [killed(Config, Node, Kinds) || Node <- nodes_of(Which, Config)] end).

each_kind_in_turn(Config) ->
    under_traffic(Config, 3000, fun() ->
        [killed(Config, hd(nodes_of(routers, Config)), [Kind]) || Kind <- [router, router_supervisor]],
        [killed(Config, Node, Kinds)
         || {Node, Kinds} <- lists:zip(lists:sublist(nodes_of(servers, Config) ++ nodes_of(servers, Config), 7),
                                       [[server_supervisor], [monitored_db], [client_monitor], [chat_session], [client_db], [chat_db],
                                        [server_supervisor, monitored_db]])]
    end).

killed(Config, Node, Kinds) ->
    Victims = [Pid || Kind <- Kinds, Pid <- call(Config, Node, kill, [Kind, one])],
    ?assertEqual(length(Kinds), length(Victims), {Node, Kinds}),
    ok = whole(Config).

%%% Nodes

a_server_node_is_killed_and_comes_back(Config) ->
    Victim = lists:last(nodes_of(servers, Config)),
    under_traffic(Config, 8000, fun() ->
        Lost = call(Config, Victim, count, [client_monitor]),
        ?assert(Lost > 0),
        Before = watched(Config, nodes_of(servers, Config)),
        Killed = erlang:monotonic_time(millisecond),
        ok = atoll_cluster:kill(cluster(Config), Victim),
        %% All that it had are served elsewhere.
        ok = until(fun() -> watched(Config, nodes_of(servers, Config) -- [Victim]) >= Before end),
        Served = erlang:monotonic_time(millisecond) - Killed,
        ct:pal("~b clients of a killed node are served again after ~b ms", [Lost, Served]),
        ?assert(Served =< 6000),
        ok = atoll_cluster:restart(cluster(Config), Victim),
        %% It has its shard again, and the processes of its shard.
        ok = whole(Config),
        ok = until(fun() -> call(Config, Victim, count, [client_monitor]) =:= Lost end)
    end).

watched(Config, Nodes) -> lists:sum([call(Config, Node, count, [client_monitor]) || Node <- Nodes]).

%%% Traffic

%% From when all are logged in.
under_traffic(Config, Ms, Fun) ->
    {Routers, _, [Client]} = proplists:get_value(roles, Config),
    Options = #{client_nodes => [Client], routers => Routers, clients => 40, mode => paper, time_scale => 100, ms => Ms, ramp_ms => 500,
                drain_ms => ?LATE_MS, login_ms => ?LATE_MS, seed => atoll_tier:seed(?MODULE)},
    Run = spawn_monitor(fun() -> exit({outcome, atoll_cluster:call(cluster(Config), Client, im_traffic, run, [Options], 120_000)}) end),
    ok = until(fun() -> watched(Config, nodes_of(servers, Config)) >= 40 end),
    _ = Fun(),
    {Pid, Ref} = Run,
    receive
        {'DOWN', Ref, process, Pid, {outcome, {ok, #{history := #{counts := Counts, violations := Violations}, is_drained := IsDrained,
                                                      clients := Clients, total := Total}}}} ->
            ct:pal("~0p ~0p", [Total, Clients]),
            ?assertEqual({#{}, []}, {Counts, Violations}),
            ?assert(IsDrained),
            ?assertMatch(#{refused := 0, died := 0}, Clients);
        {'DOWN', Ref, process, Pid, Other} ->
            error({traffic, Other})
    after 150_000 -> error(no_outcome)
    end,
    %% Nothing is left of it.
    ok = until(fun() -> [0, 0] =:= [lists:sum([call(Config, Node, count, [Kind]) || Node <- nodes_of(servers, Config)]) || Kind <- [client_monitor, chat_session]] end).

%% Each database has its copies, the main ones where they belong.
whole(Config) ->
    {Routers, Servers, _} = proplists:get_value(roles, Config),
    Plan = proplists:get_value(plan, Config),
    until(fun() ->
        lists:all(fun(Node) ->
            on(Config, Node, im_cluster, missing, [Plan]) =:= [] andalso on(Config, Node, im_cluster, lacking, [Plan]) =:= []
        end, Routers ++ Servers)
        andalso lists:all(fun(Node) -> call(Config, Node, places, []) =:= 2 end, Servers)
    end).

%%% On nodes

%% Kills one of that kind that is there, or all.
kill(Kind, Which) ->
    Pids = [Pid || {Is, Pid} <- im:roles(), Is =:= Kind],
    Victims = case {Which, Pids} of
        {one, [_ | _]} when Kind =:= client_db; Kind =:= chat_db -> [main(Kind)];
        {one, [_ | _]} -> [lists:nth(rand:uniform(length(Pids)), Pids)];
        _ -> Pids
    end,
    [begin
         Ref = monitor(process, Pid),
         exit(Pid, kill),
         receive {'DOWN', Ref, process, Pid, _} -> Pid end
     end || Pid <- Victims].

%% That of the node's own shard.
main(Kind) ->
    {server, J} = im_plan:role(node(), im_plan:this()),
    whereis(im_plan:local_name(J, Kind, im_plan:this())).

count(Kind) -> length([Pid || {Is, Pid} <- im:roles(), Is =:= Kind]).

%% How many of the main databases of its own shard this node has.
places() ->
    {server, J} = im_plan:role(node(), im_plan:this()),
    length([Kind || Kind <- [client_db, chat_db], Pid <- [im_names:whereis(J, 1, Kind)], is_pid(Pid), node(Pid) =:= node()]).

%%% The cluster

cluster(Config) -> proplists:get_value(cluster, Config).

nodes_of(routers, Config) -> element(1, proplists:get_value(roles, Config));
nodes_of(servers, Config) -> element(2, proplists:get_value(roles, Config)).

call(Config, Node, F, A) -> on(Config, Node, ?MODULE, F, A).

on(Config, Node, M, F, A) -> atoll_cluster:call(cluster(Config), Node, M, F, A, ?LATE_MS).

until(Ask) -> until(Ask, erlang:monotonic_time(millisecond) + ?LATE_MS).

until(Ask, Deadline) ->
    case Ask() of
        true -> ok;
        false ->
            erlang:monotonic_time(millisecond) < Deadline orelse error(deadline),
            receive after 20 -> until(Ask, Deadline) end
    end.
