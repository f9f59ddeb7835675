%% SPDX-License-Identifier: Apache-2.0
%% The nodes of a messenger, in its three variants: who is connected with whom, before anybody is
%% asked of another group and afterwards, and with clients that talk.
-module(im_cluster_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([connections_are_those_of_the_formulas/1, a_way_that_is_being_made_is_no_connection/1]).
-export([nobody_but_a_client_connects_with_it/1, a_mesh_is_whole_again/1]).
-export([talk/2]).

-define(ROUTERS, 2).
-define(SERVERS, 4).
-define(LATE_MS, 20_000).

suite() -> [{timetrap, {minutes, 3}}].

all() ->
    [connections_are_those_of_the_formulas, a_way_that_is_being_made_is_no_connection,
     nobody_but_a_client_connects_with_it, a_mesh_is_whole_again].

connections_are_those_of_the_formulas(_) ->
    %% R(R-1)/2 + R s(s-1)/2 with R = 2 and s = 3, and N(N-1)/2 with N = 6.
    lists:foreach(fun({Shape, Count}) -> connections(Shape, Count) end, [
        {#{mode => rsd, reach => atoll}, 7}, {#{mode => rsd, reach => relays}, 7}, {#{mode => rd}, 15}
    ]).

connections(Shape0, Count) ->
    Shape = Shape0#{routers => ?ROUTERS, servers => ?SERVERS, clients => 2},
    on(Shape, fun(Cluster, Plan, {_, [First | _] = Servers, [Client | _]} = Roles) ->
        ?assertEqual(Count, im_plan:connections(Plan)),
        ok = await(Cluster, Plan, Roles),
        %% A client of one node talks with servers of every group.
        ?assertEqual([pong || _ <- Servers], atoll_cluster:call(Cluster, Client, ?MODULE, talk, [ping, Servers])),
        ?assertEqual([], atoll_cluster:call(Cluster, Client, erlang, nodes, [])),
        Last = lists:last(Servers),
        ?assertEqual([Client], atoll_cluster:call(Cluster, Last, erlang, nodes, [hidden])),
        %% A server answers it, on that connection.
        ?assertEqual(Client, atoll_cluster:call(Cluster, Last, erpc, call, [Client, erlang, node, []])),
        _ = [
            begin
                %% A name of another group is found, and its process answers.
                Pid = atoll_cluster:call(Cluster, Last, ?MODULE, talk, [named, {im_plan:group_of(?SERVERS, Plan), a_database}]),
                ?assertEqual({ok, Pid}, atoll_cluster:call(Cluster, First, atoll_name, find, [im_plan:group_of(?SERVERS, Plan), a_database])),
                ?assertEqual(Last, atoll_cluster:call(Cluster, First, ?MODULE, talk, [ask, Pid])),
                ?assert(lists:member(Last, atoll_cluster:call(Cluster, First, erlang, nodes, [])))
            end
         || #{reach := atoll} <- [Shape0]
        ],
        Said = said(Cluster, Roles),
        ?assertEqual(Count, im_cluster:links(Said), Said)
    end).

%% The runtime knows of a way over others before the carrier lists it; as one does that a slow node had
%% a look-up begin, which another has answered since.
a_way_that_is_being_made_is_no_connection(_) ->
    on(#{mode => rsd, routers => 2, servers => 2}, fun(Cluster, Plan, {[_, Router], [First, Last], _} = Roles) ->
        ok = await(Cluster, Plan, Roles),
        ok = atoll_cluster:call(Cluster, Last, sys, suspend, [atoll_dist_keeper]),
        _ = atoll_cluster:call(Cluster, First, erlang, spawn, [net_kernel, connect_node, [Last]]),
        ok = until(fun() -> lists:member(First, atoll_cluster:call(Cluster, Last, erlang, nodes, [])) end, true),
        ?assertEqual([Router], atoll_cluster:call(Cluster, Last, im_cluster, links, [])),
        ok = atoll_cluster:call(Cluster, Last, sys, resume, [atoll_dist_keeper]),
        ?assertEqual([pong], atoll_cluster:call(Cluster, First, ?MODULE, talk, [ping, [Last]])),
        ?assertEqual(im_plan:connections(Plan), im_cluster:links(said(Cluster, Roles)))
    end).

nobody_but_a_client_connects_with_it(_) ->
    on(#{mode => rsd, routers => 1, servers => 1, clients => 1}, fun(Cluster, Plan, {_, [Server], [Client]} = Roles) ->
        ok = await(Cluster, Plan, Roles),
        ?assertEqual([pang], atoll_cluster:call(Cluster, Server, ?MODULE, talk, [ping, [Client]])),
        ?assertEqual([pong], atoll_cluster:call(Cluster, Client, ?MODULE, talk, [ping, [Server]])),
        ?assertEqual([pong], atoll_cluster:call(Cluster, Server, ?MODULE, talk, [ping, [Client]]))
    end).

a_mesh_is_whole_again(_) ->
    on(#{mode => rd, routers => 1, servers => 2, clients => 0}, fun(Cluster, Plan, {_, [A, B], _} = Roles) ->
        ok = await(Cluster, Plan, Roles),
        true = atoll_cluster:call(Cluster, A, erlang, disconnect_node, [B]),
        ok = await(Cluster, Plan, Roles)
    end).

%% On the nodes.
talk(ping, Nodes) ->
    [net_adm:ping(Node) || Node <- Nodes];
talk(named, {Group, Name}) ->
    Pid = spawn(fun answer/0),
    yes = atoll_name:register(Group, Name, Pid),
    Pid;
talk(ask, Pid) ->
    Ref = monitor(process, Pid),
    Pid ! {Ref, self()},
    receive
        {Ref, Answer} -> Answer;
        {'DOWN', Ref, process, Pid, Reason} -> Reason
    end.

answer() ->
    receive {Ref, From} -> From ! {Ref, node()} end,
    answer().

on(Shape, Fun) ->
    Fun1 = fun(Cluster) ->
        Nodes = atoll_cluster:nodes(Cluster),
        {ok, Plan} = im_plan:new(im_cluster:settings(Shape, Nodes)),
        Fun(Cluster, Plan, im_cluster:roles(Shape, Nodes))
    end,
    case atoll_cluster:with_cluster(im_cluster:options(Shape), Fun1) of
        {error, Sentence} -> ct:fail(Sentence);
        Result -> Result
    end.

%% Nobody tells when a connection or a way of others is there.
await(Cluster, Plan, {Routers, Servers, _}) ->
    until(
        fun() -> [{Node, Nodes} || Node <- Routers ++ Servers, [_ | _] = Nodes <- [atoll_cluster:call(Cluster, Node, im_cluster, missing, [Plan])]] end,
        []
    ).

until(Look, Expected) -> until(Look, Expected, erlang:monotonic_time(millisecond) + ?LATE_MS).

until(Look, Expected, Deadline) ->
    case Look() of
        Expected ->
            ok;
        Seen ->
            ?assert(erlang:monotonic_time(millisecond) < Deadline, Seen),
            receive after 50 -> ok end,
            until(Look, Expected, Deadline)
    end.

said(Cluster, {Routers, Servers, _}) ->
    [{Node, atoll_cluster:call(Cluster, Node, im_cluster, links, [])} || Node <- Routers ++ Servers].
