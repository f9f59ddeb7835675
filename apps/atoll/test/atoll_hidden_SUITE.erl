%% SPDX-License-Identifier: Apache-2.0
%% Hidden connections on real nodes: those of a program in C, Erlang's own `erl_call',
%% which a release's scripts ask a node with; and those of hidden nodes that run Atoll.
%% Two visible nodes and two hidden ones on a stock kernel, with an overlay and groups.
-module(atoll_hidden_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([
    a_program_in_c_is_answered_by_every_node/1,
    hidden_nodes_that_nobody_wants_are_let_be/1,
    a_hidden_node_that_is_connected_gets_into_a_group/1,
    hidden_members_that_restart_have_the_names_again/1,
    hidden_nodes_join_an_overlay/1
]).

-define(CALL_MS, 30000).
-define(COOKIE, "hidden_things").
%% How often each node is asked: whether a message came in between is chance.
-define(TIMES, 10).

suite() -> [{timetrap, {minutes, 3}}].

%% In this order: the first is about nodes that are in groups, and the last ones make them.
all() ->
    [
        hidden_nodes_that_nobody_wants_are_let_be,
        a_hidden_node_that_is_connected_gets_into_a_group,
        hidden_members_that_restart_have_the_names_again,
        hidden_nodes_join_an_overlay,
        a_program_in_c_is_answered_by_every_node
    ].

init_per_suite(Config) ->
    Cluster = atoll_cluster_owned:start(#{
        driver => atoll_semantics_driver,
        nodes => 4,
        connect_all => false,
        apps => [atoll],
        args => ["-setcookie", ?COOKIE, "-atoll", "overlay", "mesh", "free_group", "off", "group_answer_timeout", "10000"]
    }),
    [{cluster, Cluster} | Config].

end_per_suite(Config) ->
    ok = atoll_cluster:stop(?config(cluster, Config)).

call(C, Node, M, F, A) ->
    atoll_cluster:call(C, Node, M, F, A, ?CALL_MS).

hidden_nodes_that_nobody_wants_are_let_be(Config) ->
    C = ?config(cluster, Config),
    [_, B, H1, H2] = atoll_cluster:nodes(C),
    [true = call(C, N, net_kernel, connect_node, [P]) || {N, P} <- [{H1, B}, {H2, H1}]],
    %% Whoever was connected with has its end a moment later.
    [ok = atoll_name_cluster:await(fun() -> lists:member(P, call(C, N, erlang, nodes, [hidden])) end, true) || {N, P} <- [{H1, B}, {H2, H1}, {B, H1}, {H1, H2}]],
    %% Whatever had been sent to it over a connection is there after this answer.
    [pong = call(C, N, net_adm, ping, [P]) || N <- [B, H1, H2], P <- call(C, N, erlang, nodes, [hidden])],
    [
        ?assertMatch({N, Room, #{sent := 0, received := 0}}, {N, Room, call(C, N, atoll_interpreter, counters, [Room])})
     || N <- [B, H1, H2], Room <- [atoll_link, atoll_overlay, atoll_group, atoll_name, atoll_attr]
    ].

a_hidden_node_that_is_connected_gets_into_a_group(Config) ->
    C = ?config(cluster, Config),
    [A, B, H1, H2] = atoll_cluster:nodes(C),
    ?assertEqual([], call(C, A, erlang, nodes, [connected])),
    true = call(C, H1, net_kernel, connect_node, [H2]),
    ?assertEqual({ok, g, [A, B, H1, H2]}, call(C, H1, s_group, new_s_group, [g, [A, B, H1, H2]])),
    [?assertEqual([{g, [A, B, H1, H2]}], call(C, N, s_group, own_s_groups, [])) || N <- [A, B, H1, H2]],
    [?assertEqual(yes, named(C, N)) || N <- [A, H1, H2]],
    known(C, [A, B, H1, H2], [A, H1, H2]).

hidden_members_that_restart_have_the_names_again(Config) ->
    C = ?config(cluster, Config),
    [A, B, H1, H2] = Nodes = atoll_cluster:nodes(C),
    %% The room, and the node.
    [ok = call(C, N, atoll_barrier, restart_room, [atoll_name]) || N <- [H1, B]],
    known(C, Nodes, [A, H1, H2]),
    ok = atoll_cluster:kill(C, H2),
    ok = atoll_cluster:restart(C, H2),
    ok = call(C, H2, atoll_barrier, group, [g, Nodes]),
    %% It answers when all members have it: and they have said theirs before.
    ?assertEqual(yes, named(C, H2)),
    known(C, Nodes, [A, H1, H2]).

hidden_nodes_join_an_overlay(Config) ->
    C = ?config(cluster, Config),
    [A, B, H1, H2] = Nodes = atoll_cluster:nodes(C),
    [?assertEqual(ok, call(C, N, atoll, join, [P])) || {N, P} <- [{H1, H2}, {A, H1}, {B, A}]],
    [?assertEqual(ok, call(C, N, atoll_barrier, members, [Nodes])) || N <- Nodes].

a_program_in_c_is_answered_by_every_node(Config) ->
    C = ?config(cluster, Config),
    [A | _] = Nodes = atoll_cluster:nodes(C),
    %% Otherwise this says little.
    ?assertMatch([{g, _}], call(C, A, s_group, own_s_groups, [])),
    %% A member is known before it is connected.
    ?assertEqual(ok, call(C, A, atoll_overlay_witness, await, [neighbours, lists:delete(A, Nodes)])),
    [?assertEqual({N, atom_to_list(N)}, {N, erl_call(N)}) || _ <- lists:seq(1, ?TIMES), N <- Nodes].

named(C, Node) ->
    call(C, Node, s_group, register_name, [g, Node, call(C, Node, erlang, whereis, [init])]).

known(C, Nodes, Names) ->
    [ok = call(C, N, atoll_barrier, names, [g, Names]) || N <- Nodes],
    [?assertEqual(N, node(call(C, P, s_group, whereis_name, [g, N]))) || P <- Nodes, N <- Names].

%% What the node says its name is; or what the program says.
erl_call(Node) ->
    Args = ["-name", atom_to_list(Node), "-c", ?COOKIE, "-a", "erlang node"],
    Port = open_port({spawn_executable, program()}, [{args, Args}, exit_status, stderr_to_stdout]),
    said(Port, []).

said(Port, Said) ->
    receive
        {Port, {data, Data}} -> said(Port, [Said, Data]);
        {Port, {exit_status, 0}} -> string:trim(lists:flatten(Said), both, "'\n");
        {Port, {exit_status, Status}} -> {Status, lists:flatten(Said)}
    end.

program() ->
    Root = code:root_dir(),
    [Program | _] = lists:append([
        filelib:wildcard(filename:join([Root | Path]))
     || Path <- [["erts-*", "bin", "erl_call"], ["lib", "erl_interface-*", "bin", "erl_call"], ["bin", "erl_call"]]
    ]),
    Program.
