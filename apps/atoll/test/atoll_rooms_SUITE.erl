%% SPDX-License-Identifier: Apache-2.0
%% Rooms of six real nodes are killed one after the other, while names come and go: no process that
%% lives loses its name or its group, and all members find it soon after.
%%
%% The group is made at run time and kept in no file: what a node knows of it is in memory alone.
-module(atoll_rooms_SUITE).

-include_lib("stdlib/include/assert.hrl").
-include_lib("common_test/include/ct.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([a_room_that_is_killed_loses_no_name/1, a_supervisor_that_is_killed_loses_no_name/1, what_was_said_while_a_room_was_down_is_heard/1]).

-define(C, atoll_name_cluster).
-define(P, atoll_rooms_probe).
-define(GROUP, rooms).
%% Names of each node that stand all the time.
-define(NAMES, 20).
%% What the documents promise.
-define(FOUND_MS, 2000).

%% Each room, and the supervisor that starts it again.
rooms() ->
    [
        {atoll_events, atoll_sup},
        {atoll_link, atoll_link_sup},
        {atoll_overlay, atoll_rooms_sup},
        {atoll_route, atoll_rooms_sup},
        {atoll_attr, atoll_rooms_sup},
        {atoll_place_watch, atoll_rooms_sup},
        {atoll_group_kinds, atoll_group_sup},
        {atoll_group, atoll_group_sup},
        {atoll_group_watch, atoll_group_sup},
        {atoll_name, atoll_group_sup}
    ].

suite() -> [{timetrap, {seconds, 120 + 3 * atoll_tier:size(room_kills)}}].

all() ->
    [
        a_room_that_is_killed_loses_no_name,
        a_supervisor_that_is_killed_loses_no_name,
        what_was_said_while_a_room_was_down_is_heard
    ].

init_per_suite(Config) ->
    Cluster = ?C:start(6, ["-atoll", "overlay", "cliques", "directory", "on", "carrier_kinds", "#{rooms => direct}"]),
    Nodes = atoll_cluster:nodes(Cluster),
    ok = ?C:group(Cluster, ?GROUP, Nodes),
    Given = [Row || N <- Nodes, Row <- ?C:call(Cluster, N, atoll_name_witness, give, [[{?GROUP, {N, K}, none} || K <- lists:seq(1, ?NAMES)]])],
    [{cluster, Cluster}, {standing, lists:sort([{Name, Pid} || {_, Name, Pid} <- Given])} | Config].

end_per_suite(Config) ->
    ok = atoll_cluster:stop(?config(cluster, Config)).

a_room_that_is_killed_loses_no_name(Config) ->
    C = ?config(cluster, Config),
    Standing = ?config(standing, Config),
    Nodes = atoll_cluster:nodes(C),
    Churns = [{N, ?C:call(C, N, ?P, churn, [?GROUP])} || N <- Nodes],
    Kills = atoll_tier:size(room_kills),
    Drawn = rand:seed_s(exsss, atoll_tier:seed(?MODULE)),
    Times = kills(Kills, C, Standing, Drawn, [], []),
    Done = lists:sum([?C:call(C, N, ?P, end_churn, [Churn]) || {N, Churn} <- Churns]),
    ?C:report("~b rooms killed while ~b names came and went: all names found everywhere ~p ms after it at the median, ~p at most", [
        Kills, Done, lists:nth(max(1, Kills div 2), lists:sort(Times)), lists:max(Times)
    ]),
    ?assert(Done > Kills),
    ?assert(lists:max(Times) =< ?FOUND_MS),
    %% What came and went is gone.
    [ok = ?C:call(C, N, atoll_name_holder, await_table, [?GROUP, Standing, 10000]) || N <- Nodes].

%% A supervisor gives up when it has to start something again five times in ten seconds: each is
%% spared until it can.
kills(0, _C, _Standing, _Drawn, _Past, Times) ->
    Times;
kills(Left, C, Standing, Drawn0, Past, Times) ->
    Now = erlang:monotonic_time(millisecond),
    Recent = [Kill || {_, _, At} = Kill <- Past, Now - At < 12000],
    Can = [
        {N, Room, Sup}
     || N <- atoll_cluster:nodes(C), {Room, Sup} <- rooms(), length([x || {N1, S1, _} <- Recent, N1 =:= N, S1 =:= Sup]) < 4
    ],
    case Can of
        [] ->
            kills(Left, C, Standing, Drawn0, Recent, Times);
        _ ->
            {K, Drawn} = rand:uniform_s(length(Can), Drawn0),
            {Node, Room, Sup} = lists:nth(K, Can),
            Ms = kill(C, Node, Room, Standing),
            ct:log("~p of ~p: all names found everywhere after ~b ms", [Room, Node, Ms]),
            kills(Left - 1, C, Standing, Drawn, [{Node, Sup, Now} | Recent], [Ms | Times])
    end.

%% Milliseconds from when it is there again until all find all.
kill(C, Node, Room, Standing) ->
    Nodes = atoll_cluster:nodes(C),
    ok = ?C:call(C, Node, atoll_barrier, restart_room, [Room]),
    Since = os:system_time(millisecond),
    %% They look from now on, whatever else takes its time.
    Looks = [?C:work(fun() -> ?C:call(C, N, ?P, found, [?GROUP, Standing]) end) || N <- Nodes],
    %% Nobody gets a name whose process lives.
    {Name, Held} = hd([Row || {_, Pid} = Row <- Standing, node(Pid) =:= Node]),
    Rival = hd(Nodes -- [Node]),
    [Other] = ?C:call(C, Rival, atoll_name_witness, holders, [1]),
    ?assertMatch({Room, {no, _}}, {Room, ?C:call(C, Rival, atoll_name, register, [?GROUP, Name, Other])}),
    ok = ?C:call(C, Rival, atoll_name_holder, end_holder, [Other]),
    Ends = [?C:result(Look) || Look <- Looks],
    ?assertEqual({Room, Held}, {Room, ?C:call(C, Rival, atoll_name, whereis, [?GROUP, Name])}),
    [?assertEqual({Room, Nodes}, {Room, ?C:call(C, N, s_group, own_nodes, [?GROUP])}) || N <- Nodes],
    max(0, lists:max(Ends) - Since).

a_supervisor_that_is_killed_loses_no_name(Config) ->
    C = ?config(cluster, Config),
    Standing = ?config(standing, Config),
    [A | _] = atoll_cluster:nodes(C),
    [
        ?assert(kill(C, A, Sup, Standing) =< ?FOUND_MS)
     || Sup <- [atoll_group_sup, atoll_rooms_sup, atoll_link_sup]
    ].

%% What a lower room was told while it was down is in its table, and what the group room missed
%% the others tell it.
what_was_said_while_a_room_was_down_is_heard(Config) ->
    C = ?config(cluster, Config),
    Nodes = [A, B, D | _] = atoll_cluster:nodes(C),
    ok = ?C:group(C, short, [A, B, D]),
    [ok = ?C:call(C, A, supervisor, terminate_child, [atoll_rooms_sup, Id]) || Id <- [overlay, route, atoll_group_sup]],
    %% Nobody can be asked for long; it answers all the same.
    ok = ?C:call(C, B, s_group, delete_s_group, [short]),
    [{ok, _} = ?C:call(C, A, supervisor, restart_child, [atoll_rooms_sup, Id]) || Id <- [atoll_group_sup, route, overlay]],
    ok = ?C:await(fun() -> ?C:call(C, A, s_group, own_nodes, [short]) end, []),
    %% The neighbours are those of the groups, whatever was told when.
    #{overlay := #{strategy := #{cliques := 1}}} = ?C:call(C, A, ?P, told, []),
    [ok = ?C:call(C, N, atoll_name_holder, await_table, [?GROUP, ?config(standing, Config), 10000]) || N <- Nodes].
