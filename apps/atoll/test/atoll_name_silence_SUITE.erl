%% SPDX-License-Identifier: Apache-2.0
%% Nodes that are busy, or whose process of names stands still, keep their connections and
%% their names: three real nodes with no overlay, and the defaults but for the longest that a call
%% may take, which a case waits for.
-module(atoll_name_silence_SUITE).

-include_lib("stdlib/include/assert.hrl").
-include_lib("common_test/include/ct.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([
    bulk_loses_no_connection/1,
    a_member_that_stands_still_loses_nothing/1,
    where_the_process_is_gone_names_go/1
]).

-define(C, atoll_name_cluster).
-define(B, atoll_name_bulk).
%% Whoever waits for a silent member waits so long.
-define(ANSWER_MS, 3000).

suite() -> [{timetrap, {seconds, 120 + atoll_tier:size(still_s) + 8 * atoll_tier:size(bulk_s) * atoll_tier:size(bulk_rounds)}}].

all() ->
    [
        bulk_loses_no_connection,
        a_member_that_stands_still_loses_nothing,
        where_the_process_is_gone_names_go
    ].

init_per_suite(Config) ->
    [{cluster, ?C:start(3, ["-atoll", "name_operation_timeout", "4000", "-atoll", "name_answer_timeout", integer_to_list(?ANSWER_MS)])} | Config].

end_per_suite(Config) ->
    ok = atoll_cluster:stop(?config(cluster, Config)).

%% All send 16 messages of 8 MB at once to each other, beside 3,000 processes that never wait. In the
%% deep tier without these too, and each as long without the application: stock is what it is held to.
bulk_loses_no_connection(Config) ->
    C = ?config(cluster, Config),
    Nodes = [A | _] = atoll_cluster:nodes(C),
    Ms = 1000 * atoll_tier:size(bulk_s),
    {Ways, Whose} =
        case atoll_tier:tier() of
            fast -> {[3000], [atoll]};
            deep -> {[0, 3000], [stock, atoll]}
        end,
    Rounds = [
        {Spinning, Who, bulk(C, Nodes, Who, Spinning, Ms)}
     || Spinning <- Ways, _ <- lists:seq(1, atoll_tier:size(bulk_rounds)), Who <- Whose
    ],
    Bytes = fun(Spinning, Who) -> lists:sum([B || {S, W, {B, _}} <- Rounds, S =:= Spinning, W =:= Who]) end,
    [
        ?C:report("bulk of three nodes beside ~b spinning processes: ~b MB with the application, ~b MB without; nodedown ~0p", [
            S, Bytes(S, atoll) div 1000000, Bytes(S, stock) div 1000000, [{W, Downs} || {S1, W, {_, Downs}} <- Rounds, S1 =:= S]
        ])
     || S <- Ways
    ],
    ?assertEqual([], [Round || {_, _, {_, Downs}} = Round <- Rounds, Downs =/= []]),
    Pid = name(C, A, undefined, after_bulk),
    [ok = ?C:call(C, N, atoll_name_holder, await_table, [undefined, [{after_bulk, Pid}], 15000]) || N <- Nodes].

%% Bytes that arrived, and connections that were lost meanwhile.
bulk(C, Nodes, Who, Spinning, Ms) ->
    Who =:= stock andalso [ok = ?C:call(C, N, application, stop, [atoll]) || N <- Nodes],
    Before = [?C:call(C, N, atoll_name_witness, log, []) || N <- Nodes],
    Sinks = ?C:each(C, Nodes, ?B, sink, []),
    Sent = ?C:each(C, Nodes, ?B, send, fun(N) -> [[Sink || {M, Sink} <- Sinks, M =/= N], 16, 8000000, Spinning, Ms] end),
    [ok = ?C:call(C, N, atoll_name_holder, end_holder, [Sink]) || {N, Sink} <- Sinks],
    After = [?C:call(C, N, atoll_name_witness, log, []) || N <- Nodes],
    Who =:= stock andalso [ok = ?C:call(C, N, application, start, [atoll]) || N <- Nodes],
    Downs = [{N, Peer} || {N, {_, Was}, {_, Is}} <- lists:zip3(Nodes, Before, After), {_, nodedown, Peer} <- Is -- Was],
    {lists:sum([Bytes || {_, Bytes} <- Sent]), Downs}.

%% A process of that node gets the name.
name(C, Node, Group, Name) ->
    [{Group, Name, Pid}] = ?C:call(C, Node, atoll_name_witness, give, [[{Group, Name, none}]]),
    Pid.

%% Nobody waits for it for long, nobody gets what it holds, and it hears the rest when it goes on.
a_member_that_stands_still_loses_nothing(Config) ->
    C = ?config(cluster, Config),
    Nodes = [A, B, D] = atoll_cluster:nodes(C),
    ok = ?C:group(C, still, Nodes),
    Held = name(C, B, still, held),
    Ear = ?C:call(C, A, atoll_barrier, listen, [fun() -> ok = atoll:subscribe([names_silent, names_heard, link_down]) end]),
    Monitor = ?C:call(C, A, atoll_barrier, monitor_init, [B]),
    {Began, _} = {erlang:monotonic_time(millisecond), ok = ?C:call(C, B, sys, suspend, [atoll_name])},
    Pid = name(C, A, still, new),
    Waited = erlang:monotonic_time(millisecond) - Began,
    %% Its name is not given away, and is found.
    [Other] = ?C:call(C, D, atoll_name_witness, holders, [1]),
    ?assertMatch({no, _}, ?C:call(C, D, atoll_name, register, [still, held, Other])),
    [?assertEqual(Held, ?C:call(C, N, atoll_name, whereis, [still, held])) || N <- Nodes],
    %% Nor is anybody waited for a second time, however long it lasts.
    Longest = names_until(C, A, still, 1, Began + 1000 * atoll_tier:size(still_s), 0),
    ?assert(Longest < ?ANSWER_MS),
    %% The node itself was never in doubt.
    ?assertEqual(lists:sort([A, D]), lists:sort(?C:call(C, B, erlang, nodes, []))),
    Resumed = erlang:monotonic_time(millisecond),
    ok = ?C:call(C, B, sys, resume, [atoll_name]),
    ok = ?C:await(fun() -> ?C:call(C, B, atoll_name, whereis, [still, new]) end, Pid),
    On = erlang:monotonic_time(millisecond) - Resumed,
    ?assertEqual(
        [{atoll, names_silent, #{node => B}}, {atoll, names_heard, #{node => B}}], ?C:call(C, A, atoll_barrier, heard, [Ear, 2])
    ),
    ok = ?C:call(C, A, atoll_barrier, hang_up, [Ear]),
    ?assertEqual(quiet, ?C:call(C, A, atoll_barrier, demonitor, [Monitor])),
    ?C:report("a member whose names stand still holds up a name for ~b ms, and has all ~b ms after it goes on", [Waited, On]),
    ?assert(On < ?ANSWER_MS).

%% One name after the other, very many; what the slowest took.
names_until(C, Node, Group, N, Until, Longest0) ->
    Began = erlang:monotonic_time(millisecond),
    _ = name(C, Node, Group, N),
    Now = erlang:monotonic_time(millisecond),
    Longest = max(Longest0, Now - Began),
    case Now < Until of
        true -> names_until(C, Node, Group, N + 1, Until, Longest);
        false -> Longest
    end.

%% The process ends for good and unseen, on a node that goes on.
where_the_process_is_gone_names_go(Config) ->
    C = ?config(cluster, Config),
    Nodes = [A, B, D] = atoll_cluster:nodes(C),
    ok = ?C:group(C, gone, Nodes),
    Pid = name(C, B, gone, there),
    ok = ?C:call(C, B, supervisor, terminate_child, [atoll_group_sup, names]),
    New = name(C, A, gone, new),
    [ok = ?C:call(C, N, atoll_name_holder, await_table, [gone, [{new, New}], 15000]) || N <- [A, D]],
    ?assertEqual(lists:sort([A, D]), lists:sort(?C:call(C, B, erlang, nodes, []))),
    {ok, _} = ?C:call(C, B, supervisor, restart_child, [atoll_group_sup, names]),
    [ok = ?C:call(C, N, atoll_name_holder, await_table, [gone, [{new, New}, {there, Pid}], 15000]) || N <- Nodes].
