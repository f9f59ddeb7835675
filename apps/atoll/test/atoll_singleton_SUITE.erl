%% SPDX-License-Identifier: Apache-2.0
%% A singleton on six real nodes: its node is killed, cut off, stopped and taken out of the group.
%%
%% Each node observes all servers that it sees, with times. Of two that it sees at once none is
%% there for long.
-module(atoll_singleton_SUITE).

-include_lib("stdlib/include/assert.hrl").
-include_lib("common_test/include/ct.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    it_is_elsewhere_when_its_node_is_killed/1,
    each_side_of_a_partition_has_one/1,
    it_is_handed_over_in_order/1,
    a_busy_node_keeps_it/1,
    it_ends_where_it_is_stopped_or_its_group_is_deleted/1,
    it_is_placed/1,
    the_how_to_does_what_it_says/1
]).

-define(C, atoll_name_cluster).
-define(P, atoll_singleton_probe).
-define(KEY, {reef, it}).
%% The goals.
-define(ELSEWHERE_MS, 8000).
-define(AGREED_MS, 15000).
-define(TWO_MS, 2000).

suite() -> [{timetrap, {minutes, 8}}].

all() ->
    %% The last one leaves a single node.
    [
        each_side_of_a_partition_has_one,
        it_is_handed_over_in_order,
        a_busy_node_keeps_it,
        it_ends_where_it_is_stopped_or_its_group_is_deleted,
        it_is_placed,
        the_how_to_does_what_it_says,
        it_is_elsewhere_when_its_node_is_killed
    ].

init_per_suite(Config) ->
    Cluster = ?C:start(6, ["-atoll", "name_rules", "#{reef=>random_notify}"]),
    [ok = ?C:call(Cluster, N, ?P, observe, []) || N <- atoll_cluster:nodes(Cluster)],
    [{cluster, Cluster} | Config].

end_per_suite(Config) ->
    ok = atoll_cluster:stop(?config(cluster, Config)).

%% Two groups of all nodes, with a singleton each.
init_per_testcase(_Case, Config) ->
    C = ?config(cluster, Config),
    Nodes = atoll_cluster:nodes(C),
    [ok = ?C:group(C, Group, Nodes) || Group <- [reef, sand]],
    _ = ?C:each(C, Nodes, ?P, start, [children()]),
    [ok = stand_by(C, Nodes, Key) || Key <- keys()],
    [{began, ?P:here()} | Config].

keys() -> [?KEY, {sand, it}].

children() -> [child(Key, #{}) || Key <- keys()].

child({Group, Name}, Params) ->
    atoll_singleton:child_spec(Group, Name, #{start => {?P, server, [Group, Name]}}, Params).

end_per_testcase(_Case, Config) ->
    C = ?config(cluster, Config),
    #{nodes := Infos} = atoll_cluster:info(C),
    Nodes = [First | _] = atoll_cluster:nodes(C) -- [N || #{node := N, state := down} <- Infos],
    two_for_long(C, Nodes, ?config(began, Config)),
    _ = ?C:each(C, Nodes, ?P, end_all, []),
    [ok = ?C:call(C, First, s_group, delete_s_group, [Group]) || Group <- [reef, sand], ?C:call(C, First, s_group, own_nodes, [Group]) =/= []],
    Config.

stand_by(C, Nodes, Key) ->
    [?assertEqual({N, ok}, {N, Answer}) || {N, Answer} <- ?C:each(C, Nodes, ?P, await, [Key, {stand_by, lists:sort(Nodes)}])],
    _ = holder(C, Nodes, Key, Nodes),
    ok.

%% All these nodes say that it runs on one of those. They are not asked at one moment: on a loaded
%% machine it may move between two answers.
holder(C, Nodes, Key, On) ->
    holder(C, Nodes, Key, On, erlang:monotonic_time(millisecond) + ?AGREED_MS).

holder(C, Nodes, Key, On, Deadline) ->
    case lists:usort([Pid || {_, Pid} <- ?C:each(C, Nodes, ?P, await, [Key, On])]) of
        [Pid] when is_pid(Pid) ->
            Pid;
        Seen ->
            erlang:monotonic_time(millisecond) < Deadline orelse error({differ, Key, Seen}),
            holder(C, Nodes, Key, On, Deadline)
    end.

%% No node has seen two of one kind at once for longer than the goal. A server of either group
%% looks the same to an observer: the name tells them apart.
two_for_long(C, Nodes, Began) ->
    [
        ?assertEqual({N, []}, {N, [{A, B} || {A, _, _} = X <- Runs, {B, _, _} = Y <- Runs, A < B, node(A) =/= node(B), overlap(X, Y) > ?TWO_MS]})
     || N <- Nodes, Runs <- runs_by_name(?C:call(C, N, ?P, log, []), Began)
    ].

runs_by_name(Log, Began) ->
    Runs = [
        {Key, {Pid, Since, hd([Until || {Until, ended, P, _} <- Log, P =:= Pid] ++ [?P:here()])}}
     || {Since, started, Pid, Key} <- Log, Since >= Began
    ],
    [[Run || {K, Run} <- Runs, K =:= Key] || Key <- lists:usort([K || {K, _} <- Runs])].

overlap({_, S1, E1}, {_, S2, E2}) -> min(E1, E2) - max(S1, S2).

%% It has its name before it begins, and tells of its start then.
started(C, Pid) ->
    Starts = fun() -> [T || {T, started, P, _} <- ?C:call(C, node(Pid), ?P, log, []), P =:= Pid] end,
    ok = ?C:await(fun() -> Starts() =/= [] end, true),
    [At] = Starts(),
    At.

ended(C, Node, Pid) ->
    case [T || {T, ended, P, _} <- ?C:call(C, Node, ?P, log, []), P =:= Pid] of
        [At] -> At;
        [] -> never
    end.

told(C, Pid) ->
    [What || {_, told, P, What} <- ?C:call(C, node(Pid), ?P, log, []), P =:= Pid].

%% One after the other, until one node is left; then all begin again.
it_is_elsewhere_when_its_node_is_killed(Config) ->
    C = ?config(cluster, Config),
    Nodes = atoll_cluster:nodes(C),
    Kills = atoll_tier:size(singleton_kills),
    Times = kills(C, Nodes, Nodes, Kills, ?config(began, Config), []),
    Sorted = lists:sort(Times),
    ?C:report("the node of a singleton is killed ~b times: it runs elsewhere after ~b ms (median), ~b at most", [
        Kills, lists:nth((Kills + 1) div 2, Sorted), lists:last(Sorted)
    ]),
    ?assert(lists:last(Sorted) =< ?ELSEWHERE_MS).

kills(_C, _All, _Left, 0, _Began, Times) ->
    Times;
kills(C, All, [_] = Last, Kills, Began, Times) ->
    %% What it saw is lost when it is killed.
    two_for_long(C, Last, Began),
    ok = begin_again(C, All),
    kills(C, All, All, Kills, Began, Times);
kills(C, All, Left0, Kills, Began, Times) ->
    Pid = holder(C, Left0, ?KEY, Left0),
    Left = Left0 -- [node(Pid)],
    Killed = ?P:here(),
    ok = atoll_cluster:kill(C, node(Pid)),
    New = holder(C, Left, ?KEY, Left),
    pong = ?C:call(C, hd(Left), gen_server, call, [New, ping]),
    kills(C, All, Left, Kills - 1, Began, [started(C, New) - Killed | Times]).

begin_again(C, Nodes) ->
    #{nodes := Infos} = atoll_cluster:info(C),
    Down = [N || #{node := N, state := down} <- Infos],
    Works = [?C:work(fun() -> ok = atoll_cluster:restart(C, N) end) || N <- Down],
    [ok = ?C:result(W) || W <- Works],
    [ok = ?C:call(C, N, ?P, observe, []) || N <- Down],
    _ = [ok = ?C:call(C, N, ?P, start, [children()]) || N <- Down],
    lists:foreach(fun(Key) -> ok = stand_by(C, Nodes, Key) end, keys()).

%% On healing one keeps it. Under random_notify the other is told and ends in order.
each_side_of_a_partition_has_one(Config) ->
    C = ?config(cluster, Config),
    Nodes = atoll_cluster:nodes(C),
    {Left, Right} = lists:split(3, Nodes),
    ok = ?C:cut(C, Left, Right),
    Both = [{Key, [holder(C, Side, Key, Side) || Side <- [Left, Right]]} || Key <- keys()],
    ok = ?C:mend(C, Left, Right),
    Winners = [{Key, holder(C, Nodes, Key, Nodes)} || Key <- await_one(C, Nodes, keys())],
    [
        begin
            [Loser] = Pids -- [Winner],
            ok = ?C:await(fun() -> ended(C, node(Loser), Loser) =:= never end, false),
            [Met | _] = [T || {T, nodeup, N} <- lists:reverse(?C:call(C, node(Loser), ?P, log, [])), N =:= node(Winner)],
            Beside = max(0, ended(C, node(Loser), Loser) - Met),
            ?C:report("two sides of ~p meet: the loser ends ~b ms after its node met the winner's", [Group, Beside]),
            ?assert(Beside =< ?TWO_MS),
            %% The default rule kills.
            Told = [{name_conflict, reef, it, Winner}, {terminate, shutdown}],
            ?assertEqual(case Group of reef -> Told; sand -> [] end, told(C, Loser)),
            ?assertMatch(#{state := standby}, ?C:call(C, node(Loser), atoll_singleton, info, [Group, it])),
            ?assertMatch(#{state := holder}, ?C:call(C, node(Winner), atoll_singleton, info, [Group, it]))
        end
     || {{{Group, _} = Key, Pids}, {Key, Winner}} <- lists:zip(Both, Winners)
    ].

%% Until all nodes agree.
await_one(C, Nodes, Keys) ->
    [
        begin
            ok = ?C:await(fun() -> length(lists:usort([P || {_, P} <- ?C:each(C, Nodes, atoll_name, whereis, [Group, Name])])) end, 1),
            Key
        end
     || {Group, Name} = Key <- Keys
    ].

%% The application stops there; the supervisor ends; the node is taken out of the group: the old
%% one has ended before the new one begins.
it_is_handed_over_in_order(Config) ->
    C = ?config(cluster, Config),
    Nodes = atoll_cluster:nodes(C),
    Ways = [
        {"the application stops", fun(N, _) -> ok = ?C:call(C, N, application, stop, [atoll]) end, fun(N, _) -> ok = ?C:call(C, N, application, start, [atoll]) end},
        {"its supervisor ends", fun(N, _) -> ok = ?C:call(C, N, ?P, end_all, []) end, fun(N, _) -> ok = ?C:call(C, N, ?P, start, [children()]) end},
        {"it is removed from the group", fun(N, Other) -> ok = ?C:call(C, Other, s_group, remove_nodes, [reef, [N]]) end, fun(N, Other) ->
            {ok, reef, [N]} = ?C:call(C, Other, s_group, add_nodes, [reef, [N]]),
            ok
        end}
    ],
    [
        begin
            Old = holder(C, Nodes, ?KEY, Nodes),
            [Other | _] = Left = Nodes -- [node(Old)],
            Began = ?P:here(),
            ok = Leave(node(Old), Other),
            New = holder(C, Left, ?KEY, Left),
            ?C:report("~ts: the singleton runs elsewhere after ~b ms", [What, started(C, New) - Began]),
            ?assertEqual([{terminate, shutdown}], told(C, Old)),
            ?assert(started(C, New) >= ended(C, node(Old), Old)),
            ok = Return(node(Old), Other),
            ok = stand_by(C, Nodes, ?KEY),
            ?assertEqual(New, holder(C, Nodes, ?KEY, Nodes))
        end
     || {What, Leave, Return} <- Ways
    ].

%% Its process of names stands still until it is silent for the others.
a_busy_node_keeps_it(Config) ->
    C = ?config(cluster, Config),
    Nodes = atoll_cluster:nodes(C),
    Pid = holder(C, Nodes, ?KEY, Nodes),
    Busy = node(Pid),
    [Other | _] = Left = Nodes -- [Busy],
    Ear = ?C:call(C, Other, atoll_barrier, listen, [fun() -> ok = atoll:subscribe([names_silent, names_heard]) end]),
    ok = ?C:call(C, Busy, sys, suspend, [atoll_name]),
    [Any] = ?C:call(C, Other, atoll_name_witness, holders, [1]),
    yes = ?C:call(C, Other, atoll_name, register, [reef, any, Any]),
    [{atoll, names_silent, #{node := Busy}}] = ?C:call(C, Other, atoll_barrier, heard, [Ear, 1]),
    ?assertEqual(Pid, holder(C, Left, ?KEY, Nodes)),
    ?assertEqual(pong, ?C:call(C, Other, gen_server, call, [{via, atoll_name, ?KEY}, ping])),
    ok = ?C:call(C, Busy, sys, resume, [atoll_name]),
    [{atoll, names_heard, #{node := Busy}}] = ?C:call(C, Other, atoll_barrier, heard, [Ear, 1]),
    ok = ?C:call(C, Other, atoll_barrier, hang_up, [Ear]),
    ?assertEqual(Pid, holder(C, Nodes, ?KEY, Nodes)),
    [?assertMatch(#{state := standby, counts := #{started := 0}}, ?C:call(C, N, atoll_singleton, info, [reef, it])) || N <- Left].

it_ends_where_it_is_stopped_or_its_group_is_deleted(Config) ->
    C = ?config(cluster, Config),
    Nodes = [A | _] = atoll_cluster:nodes(C),
    Stopped = holder(C, Nodes, ?KEY, Nodes),
    Deleted = holder(C, Nodes, {sand, it}, Nodes),
    ok = ?C:call(C, A, atoll_singleton, stop, [reef, it]),
    ?assertEqual([{terminate, shutdown}], told(C, Stopped)),
    [?assertEqual({N, none}, {N, ?C:call(C, N, ?P, await, [?KEY, none])}) || N <- Nodes],
    %% Only the other one is there for the supervisors.
    [?assertMatch([_], [Sup || {_, Sup, _, _} <- ?C:call(C, N, ?P, children, []), is_pid(Sup)]) || N <- Nodes],
    ok = ?C:call(C, A, s_group, delete_s_group, [sand]),
    ok = ?C:await(fun() -> told(C, Deleted) end, [{terminate, shutdown}]),
    %% It is there again with its group.
    ok = ?C:group(C, sand, Nodes),
    ok = stand_by(C, Nodes, {sand, it}).

%% Of the nodes that fit, and never of the others.
it_is_placed(Config) ->
    C = ?config(cluster, Config),
    Nodes = [A, B | Rest] = atoll_cluster:nodes(C),
    Owner = [?C:call(C, N, atoll_barrier, listen, [fun() -> ok = atoll_attr:insert(storage, true) end]) || N <- [A, B]],
    Key = {reef, placed},
    _ = ?C:each(C, Nodes, ?P, end_all, []),
    _ = ?C:each(C, Nodes, ?P, start, [[child(Key, #{where => {storage, true}}) | children()]]),
    Pid = holder(C, Nodes, Key, [A, B]),
    ok = ?C:call(C, node(Pid), ?P, end_all, []),
    Other = holder(C, Nodes -- [node(Pid)], Key, [A, B]),
    ?assertNotEqual(node(Pid), node(Other)),
    ok = ?C:call(C, node(Other), ?P, end_all, []),
    %% Nobody is left that fits.
    [?assertEqual(none, ?C:call(C, N, ?P, await, [Key, none])) || N <- Rest],
    Fits = ?C:call(C, hd(Rest), atoll_barrier, listen, [fun() -> ok = atoll_attr:insert(storage, true) end]),
    Late = holder(C, Rest, Key, Rest),
    ?assertEqual(hd(Rest), node(Late)),
    [ok = ?C:call(C, N, atoll_barrier, hang_up, [O]) || {N, O} <- lists:zip([A, B, hd(Rest)], Owner ++ [Fits])].

%% As docs/singletons.md has it: no number is given twice, whichever node is killed.
the_how_to_does_what_it_says(Config) ->
    C = ?config(cluster, Config),
    Nodes = atoll_cluster:nodes(C),
    Modules = atoll_singleton_docs_tests:modules(),
    [ok = ?C:call(C, N, ?P, load, [Module, Code]) || N <- Nodes, {Module, Code} <- Modules],
    _ = ?C:each(C, Nodes, ?P, end_all, []),
    _ = ?C:each(C, Nodes, ?P, start, [[tickets(Config) | children()]]),
    Key = {reef, tickets},
    [ok = ?C:call(C, N, ?P, await, [Key, {stand_by, lists:sort(Nodes)}]) || N <- Nodes],
    Pid = holder(C, Nodes, Key, Nodes),
    Left = Nodes -- [node(Pid)],
    Some = [?C:call(C, N, tickets, next, []) || N <- Nodes],
    ?assertEqual([{ok, I} || I <- lists:seq(1, 6)], Some),
    ok = atoll_cluster:kill(C, node(Pid)),
    _ = holder(C, Left, Key, Left),
    ?assertEqual([{ok, I} || I <- lists:seq(7, 11)], [?C:call(C, N, tickets, next, []) || N <- Left]),
    ok = atoll_cluster:restart(C, node(Pid)),
    ok = ?C:call(C, node(Pid), ?P, observe, []),
    ok = ?C:call(C, node(Pid), ?P, start, [children()]),
    lists:foreach(fun(K) -> ok = stand_by(C, Nodes, K) end, keys()).

tickets(Config) ->
    #{id => tickets_sup, start => {tickets_sup, start_link, [?config(priv_dir, Config)]}, type => supervisor}.
