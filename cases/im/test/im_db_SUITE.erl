%% SPDX-License-Identifier: Apache-2.0
%% The databases of a shard on real nodes: a router and three servers.
-module(im_db_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, groups/0, suite/0, init_per_group/2, end_per_group/2]).
-export([
    a_killed_main_loses_nothing_and_comes_back/1,
    a_killed_replica_is_replaced/1,
    a_killed_node_loses_nothing_and_takes_its_share_again/1,
    a_replica_that_says_nothing_is_done_without/1,
    the_papers_replication_loses_what_it_answered/1,
    another_group_is_reached_by_name/1,
    throughput_with_a_replica/1
]).

-define(CALL_MS, 30_000).

suite() -> [{timetrap, {minutes, 3}}].

all() -> [{group, Group} || Group <- groups(atoll_tier:tier())].

groups(fast) -> [rd, paper];
groups(deep) -> [rd, rsd, paper].

groups() ->
    [{Group, [], cases(Group, atoll_tier:tier())} || Group <- groups(deep)].

cases(paper, _) -> [the_papers_replication_loses_what_it_answered];
cases(_, fast) -> [a_killed_main_loses_nothing_and_comes_back];
cases(rd, deep) ->
    cases(rd, fast) ++ [a_killed_replica_is_replaced, a_killed_node_loses_nothing_and_takes_its_share_again,
                        a_replica_that_says_nothing_is_done_without, throughput_with_a_replica];
cases(rsd, deep) -> cases(rsd, fast) ++ [a_killed_replica_is_replaced, another_group_is_reached_by_name].

init_per_group(Group, Config) ->
    Options = case Group of
                  rsd -> #{connect_all => false, apps => [atoll], args => fun configured/1};
                  _ -> #{connect_all => true, apps => []}
              end,
    Cluster = atoll_cluster_owned:start(Options#{nodes => case Group of rsd -> 6; _ -> 4 end}),
    Nodes = atoll_cluster:nodes(Cluster),
    Settings = case {Group, Nodes} of
                   {rsd, _} -> rsd(Nodes);
                   {paper, [R | Servers]} -> #{routers => [R], servers => Servers, replication => paper};
                   {rd, [R | Servers]} -> #{routers => [R], servers => Servers}
               end,
    {ok, Plan} = im_plan:new(Settings),
    [ok = atoll_cluster:call(Cluster, Node, im_db_probe, start, [Settings], ?CALL_MS) || Node <- Nodes],
    Whole = [{cluster, Cluster}, {plan, Plan}, {settings, Settings} | Config],
    [whole(Server, Whole) || Server <- im_plan:servers(Plan)],
    Whole.

rsd([R, Q, A, B, C, D]) -> #{mode => rsd, routers => [R, Q], servers => [A, B, C, D]}.

%% The nodes of another group are asked for its names: who they are stands in the configuration.
configured(Nodes) ->
    {ok, Plan} = im_plan:new(rsd(Nodes)),
    ["-atoll", "free_group", "off", "-atoll", "s_groups", lists:flatten(io_lib:format("~0tp", [im_plan:groups(Plan)]))].

end_per_group(_, Config) -> atoll_cluster_owned:stop(proplists:get_value(cluster, Config)).

on(Node, Module, Function, Args, Config) ->
    atoll_cluster:call(proplists:get_value(cluster, Config), Node, Module, Function, Args, ?CALL_MS).

peers(Server, Config) -> im_plan:peers(Server, proplists:get_value(plan, Config)).

%% The first is main, the second its replica, with both names, for both kinds.
whole(Server, Config) ->
    [First, Second | _] = peers(Server, Config),
    until(fun() ->
        lists:all(fun(Kind) ->
            match(First, Server, Kind, main, Config) andalso match(Second, Server, Kind, replica, Config)
                andalso [First, Second] =:= [on_node(on(First, im_names, whereis, [Server, Copy, Kind], Config)) || Copy <- [1, 2]]
        end, [client_db, chat_db])
    end).

on_node(Pid) when is_pid(Pid) -> node(Pid);
on_node(undefined) -> none.

match(Node, Server, Kind, Role, Config) ->
    try on(Node, im_db, info, [Server, Kind], Config) of
        #{role := Role, waiting := 0} -> true;
        #{} -> false
    catch
        _:_ -> false
    end.

until(Ask) -> until(Ask, erlang:monotonic_time(millisecond) + 30_000).

until(Ask, Deadline) ->
    case Ask() of
        true -> ok;
        false ->
            ?assert(erlang:monotonic_time(millisecond) < Deadline),
            receive after 20 -> until(Ask, Deadline) end
    end.

login(Name, Config) ->
    [Node | _] = peers(2, Config),
    {ok, {ok, []}} = on(Node, im_names, call, [2, client_db, {login, Name, self(), self()}, 10_000], Config).

%% Asked from the router, and there in time.
there(Names, Config) ->
    [Router | _] = im_plan:members(2, proplists:get_value(plan, Config)),
    [?assertMatch({ok, {ok, #{pid := _}}}, on(Router, im_names, call, [2, client_db, {peek, Name}, 10_000], Config), Name) || Name <- Names].

kill(Node, Server, Kind, Config) ->
    Pid = on(Node, erlang, whereis, [im_plan:local_name(Server, Kind, proplists:get_value(plan, Config))], Config),
    true = on(Node, erlang, exit, [Pid, kill], Config).

a_killed_main_loses_nothing_and_comes_back(Config) ->
    _ = login(<<"main">>, Config),
    kill(hd(peers(2, Config)), 2, client_db, Config),
    there([<<"main">>], Config),
    whole(2, Config),
    there([<<"main">>], Config).

a_killed_replica_is_replaced(Config) ->
    _ = login(<<"replica">>, Config),
    kill(lists:nth(2, peers(2, Config)), 2, client_db, Config),
    there([<<"replica">>], Config),
    whole(2, Config).

a_killed_node_loses_nothing_and_takes_its_share_again(Config) ->
    _ = login(<<"node">>, Config),
    Cluster = proplists:get_value(cluster, Config),
    [Node | _] = peers(2, Config),
    ok = atoll_cluster:kill(Cluster, Node),
    Began = erlang:monotonic_time(millisecond),
    there([<<"node">>], Config),
    ct:pal("answered ~b ms after the kill", [erlang:monotonic_time(millisecond) - Began]),
    until(fun() -> ok =:= atoll_cluster:restart(Cluster, Node) end),
    ok = on(Node, im_db_probe, start, [proplists:get_value(settings, Config)], Config),
    [whole(Server, Config) || Server <- [1, 2, 3]],
    there([<<"node">>], Config).

%% It is connected all the while.
a_replica_that_says_nothing_is_done_without(Config) ->
    [First, Second | _] = peers(2, Config),
    true = on(Second, im_db_probe, hold_for, [im_plan:local_name(2, client_db, proplists:get_value(plan, Config))], Config),
    _ = login(<<"silent">>, Config),
    ?assertMatch(#{counters := #{silent := 1}}, on(First, im_db, info, [2, client_db], Config)),
    true = on(Second, im_db_probe, release, [], Config),
    whole(2, Config),
    there([<<"silent">>], Config),
    %% It has what it missed.
    kill(First, 2, client_db, Config),
    there([<<"silent">>], Config),
    whole(2, Config).

%% The replica is held: the second operation waits behind the first, and is answered all the same.
the_papers_replication_loses_what_it_answered(Config) ->
    [First, Second | _] = peers(2, Config),
    true = on(Second, im_db_probe, hold_for, [im_plan:local_name(2, client_db, proplists:get_value(plan, Config))], Config),
    _ = login(<<"kept">>, Config),
    _ = login(<<"lost">>, Config),
    kill(First, 2, client_db, Config),
    true = on(Second, im_db_probe, release, [], Config),
    there([<<"kept">>], Config),
    ?assertEqual({ok, none}, on(First, im_names, call, [2, client_db, {peek, <<"lost">>}, 10_000], Config)).

another_group_is_reached_by_name(Config) ->
    _ = login(<<"far">>, Config),
    Other = lists:last(peers(4, Config)),
    ?assertMatch({ok, {ok, #{}}}, on(Other, im_names, call, [2, client_db, {peek, <<"far">>}, 10_000], Config)),
    kill(hd(peers(2, Config)), 2, client_db, Config),
    ?assertMatch({ok, {ok, #{}}}, on(Other, im_names, call, [2, client_db, {peek, <<"far">>}, 10_000], Config)),
    whole(2, Config).

%% Far below what it is, so that a busy machine does not matter.
throughput_with_a_replica(Config) ->
    Count = 20_000,
    Us = on(hd(peers(3, Config)), im_db_probe, appends, [3, Count], Config),
    ct:pal("~b appends a second", [Count * 1_000_000 div Us]),
    ?assert(Us < 20_000_000).
