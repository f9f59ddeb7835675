%% SPDX-License-Identifier: Apache-2.0
%% Circuits as the link room has them: one that nobody wants and nothing uses is closed, as
%% any connection on demand, and one with a node that is wanted gets a connection of its own.
%%
%% Four nodes with the directory: A in one group with the gateway G, B and D in another one.
-module(atoll_link_circuit_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(atoll_dist_nodes, [until/1]).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2]).
-export([a_circuit_goes_when_nothing_uses_it_and_a_monitor_keeps_it/1, who_is_wanted_has_a_connection_of_its_own_meanwhile/1]).

-define(CALL_MS, 40000).
%% Longer than what lies between two signs of life of an idle circuit.
-define(LINGER_MS, 1500).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    [F || {F, 1} <- ?MODULE:module_info(exports), not lists:member(F, [module_info, init_per_suite, end_per_suite])].

init_per_suite(Config) ->
    Cluster = atoll_cluster_owned:start(#{
        nodes => 4, connect_all => false, apps => [atoll], args => fun(Nodes) -> args(Nodes) end
    }),
    [{cluster, Cluster} | Config].

end_per_suite(Config) ->
    ok = atoll_cluster:stop(?config(cluster, Config)).

init_per_testcase(_Case, Config) ->
    C = ?config(cluster, Config),
    Nodes = [A, _, B, D] = atoll_cluster:nodes(C),
    [ok = call(C, N, atoll_link_probe, echo, []) || N <- Nodes],
    [until(fun() -> element(1, call(C, From, atoll, route, [To])) =:= ok end) || End <- [B, D], {From, To} <- [{A, End}, {End, A}]],
    Config.

args([A, G, B, D]) ->
    Room = [
        {directory, #{gather_ms => 50, pause_ms => 50, compare_ms => 1000}},
        {s_groups, [{north, [A, G]}, {south, [G, B, D]}]},
        {on_demand_linger, ?LINGER_MS},
        {linger, 200},
        {linger_max, ?LINGER_MS},
        {free_group, off}
    ],
    ["-proto_dist", "atoll"] ++ lists:append([["-atoll", atom_to_list(K), lists:flatten(io_lib:format("~0p", [V]))] || {K, V} <- Room]).

call(C, Node, M, F, A) ->
    atoll_cluster:call(C, Node, M, F, A, ?CALL_MS).

%% The path of the circuit, as both ends have it.
path(C, A, B) ->
    [[P || #{node := N, kind := relay, path := P} <- call(C, At, atoll, links, []), N =:= Of] || {At, Of} <- [{A, B}, {B, A}]].

a_circuit_goes_when_nothing_uses_it_and_a_monitor_keeps_it(Config) ->
    C = ?config(cluster, Config),
    [A, G, B, D] = atoll_cluster:nodes(C),
    Watcher = call(C, A, atoll_barrier, monitor_init, [D]),
    ?assertEqual(heard, call(C, A, atoll_link_probe, say, [B, hello])),
    until(fun() -> path(C, A, B) =:= [[[A, G, B]], [[A, G, B]]] end),
    [ok = call(C, N, atoll_barrier, connected, [lists:sort(Left)]) || {N, Left} <- [{A, [G, D]}, {B, [G, D]}]],
    %% It was looked at, and found in use.
    ok = call(C, A, atoll_barrier, kept, [D]),
    ?assertEqual([[[A, G, D]], [[A, G, D]]], path(C, A, D)),
    ?assertEqual(quiet, call(C, A, atoll_barrier, demonitor, [Watcher])),
    [ok = call(C, N, atoll_barrier, connected, [lists:sort(Left)]) || {N, Left} <- [{A, [G]}, {D, [G, B]}]],
    until(fun() -> maps:get(circuits, call(C, G, atoll_dist, relay, [])) =:= 0 end).

who_is_wanted_has_a_connection_of_its_own_meanwhile(Config) ->
    C = ?config(cluster, Config),
    [A, G, B, _] = atoll_cluster:nodes(C),
    Load = call(C, A, atoll_dist_own_probe, load, [B]),
    until(fun() -> path(C, A, B) =:= [[[A, G, B]], [[A, G, B]]] end),
    Owners = [
        begin
            Owner = call(C, N, atoll_link_probe, want, [P]),
            until(fun() -> path(C, A, B) =:= [[[A, B]], [[A, B]]] end),
            ok = call(C, N, atoll_link_probe, stop, [Owner]),
            until(fun() -> path(C, A, B) =:= [[[A, G, B]], [[A, G, B]]] end),
            Owner
        end
     || {N, P} <- [{A, B}, {B, A}]
    ],
    ?assertEqual(2, length(Owners)),
    #{sent := Sent} = Held = call(C, A, atoll_dist_own_probe, end_load, [Load]),
    ?assertMatch(#{got := Sent, in_order := true, fired := 0, nodedowns := 0}, Held).
