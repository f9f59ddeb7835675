%% SPDX-License-Identifier: Apache-2.0
%% What a node says of its connections, over the carrier and without it; and groups that
%% want a kind of connection. Real nodes: four with the carrier for all cases, on each of
%% which the application starts anew.
-module(atoll_links_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(atoll_dist_nodes, [until/1]).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    a_node_without_the_carrier_shows_its_connections/1,
    both_ends_show_a_connection_of_the_carrier/1,
    configured_groups_have_their_kinds/1,
    a_group_that_is_made_has_its_kind_from_the_first_connection_on/1,
    a_group_that_is_gone_wants_nothing/1,
    a_wrong_kind_stops_the_start/1
]).

-define(CALL_MS, 20000).
-define(KINDS, #{far => {lanes, 2}, near => direct}).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    [F || {F, 1} <- ?MODULE:module_info(exports), not lists:member(F, [module_info, init_per_suite, end_per_suite])].

init_per_suite(Config) ->
    Args = ["-proto_dist", "atoll", "-atoll", "linger", "20000", "group_answer_timeout", "10000", "carrier_kinds", term(?KINDS)],
    Cluster = atoll_cluster_owned:start(#{nodes => 4, connect_all => false, args => Args}),
    [ok = call(Cluster, Node, application, load, [atoll]) || Node <- atoll_cluster:nodes(Cluster)],
    [{shared, Cluster} | Config].

end_per_suite(Config) ->
    ok = atoll_cluster:stop(?config(shared, Config)).

init_per_testcase(a_node_without_the_carrier_shows_its_connections, Config) ->
    [{cluster, atoll_cluster_owned:start(#{nodes => 3, connect_all => false})} | Config];
init_per_testcase(Case, Config) ->
    C = ?config(shared, Config),
    Nodes = atoll_cluster:nodes(C),
    [ok = call(C, Node, application, set_env, [atoll, Key, Value]) || Node <- Nodes, {Key, Value} <- settings(Case, Nodes)],
    [{cluster, C} | Config].

end_per_testcase(a_node_without_the_carrier_shows_its_connections, Config) ->
    ok = atoll_cluster:stop(?config(cluster, Config));
end_per_testcase(Case, Config) ->
    C = ?config(cluster, Config),
    Nodes = atoll_cluster:nodes(C),
    _ = [call(C, Node, application, stop, [atoll]) || Node <- Nodes],
    [ok = call(C, Node, atoll_dist, prefer, [#{}]) || Node <- Nodes],
    [ok = call(C, Node, application, unset_env, [atoll, Key]) || Node <- Nodes, {Key, _} <- settings(Case, Nodes)],
    [ok = call(C, Node, application, set_env, [atoll, carrier_kinds, ?KINDS]) || Node <- Nodes],
    atoll_name_cluster:apart(C, Nodes).

settings(configured_groups_have_their_kinds, [A, B, D, E]) -> [{s_groups, [{far, [A, B, E]}, {near, [A, D, E]}]}];
settings(a_wrong_kind_stops_the_start, _Nodes) -> [{carrier_kinds, #{far => lanes}}];
settings(_, _Nodes) -> [].

term(Term) -> lists:flatten(io_lib:format("~0p", [Term])).

call(C, Node, M, F, A) ->
    atoll_cluster:call(C, Node, M, F, A, ?CALL_MS).

links(C, Node) -> call(C, Node, atoll, links, []).

kind(C, From, To) ->
    #{kind := Kind} = link_to(C, From, To),
    Kind.

%% Of the carrier: listed a moment after the nodes are up.
link_to(C, From, To) ->
    until(fun() -> links_to(C, From, To) =/= [] end),
    [Link] = links_to(C, From, To),
    Link.

links_to(C, From, To) -> [Link || #{node := Node} = Link <- links(C, From), Node =:= To].

start(C) ->
    [{ok, _} = call(C, Node, application, ensure_all_started, [atoll]) || Node <- atoll_cluster:nodes(C)].

a_node_without_the_carrier_shows_its_connections(Config) ->
    C = ?config(cluster, Config),
    [A, B, D | _] = atoll_cluster:nodes(C),
    ?assertEqual([], links(C, A)),
    [true = call(C, A, net_kernel, connect_node, [Peer]) || Peer <- [D, B]],
    Unknown = #{kind => stock, rtt_us => unknown, started => unknown, age_ms => unknown},
    [#{bytes_in := In, bytes_out := Out}, _] = Links = links(C, A),
    ?assertEqual([Unknown#{node => Node} || Node <- [B, D]], [maps:without([bytes_in, bytes_out], L) || L <- Links]),
    ?assert(is_integer(In) andalso is_integer(Out) andalso In + Out > 0),
    %% The application says the same.
    _ = start(C),
    #{connections := Connections} = call(C, A, atoll, status, []),
    ?assertMatch([#{node := B, kind := stock}, #{node := D, kind := stock}], Connections).

both_ends_show_a_connection_of_the_carrier(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = atoll_cluster:nodes(C),
    true = call(C, A, net_kernel, connect_node, [B]),
    Bytes = 1000000,
    Bytes = call(C, A, erpc, call, [B, erlang, byte_size, [binary:copy(<<0>>, Bytes)]]),
    #{kind := direct, started := here, age_ms := Age, rtt_us := Rtt, bytes_out := Out} = link_to(C, A, B),
    #{kind := direct, started := there, bytes_in := In} = link_to(C, B, A),
    ?assertMatch({[_], [_]}, {links(C, A), links(C, B)}),
    ?assert(is_integer(Age) andalso is_integer(Rtt)),
    ?assert(Out > Bytes),
    ?assert(In > Bytes).

configured_groups_have_their_kinds(Config) ->
    C = ?config(cluster, Config),
    [A, B, D, E] = atoll_cluster:nodes(C),
    _ = start(C),
    [ok = call(C, Node, s_group, sync, []) || Node <- [A, B, D, E]],
    %% A and E are in both groups: lanes beat direct.
    [
        ?assertEqual({From, To, Kind}, {From, To, kind(C, From, To)})
     || {One, Other, Kind} <- [{A, B, {lanes, 2}}, {B, E, {lanes, 2}}, {A, D, direct}, {D, E, direct}, {A, E, {lanes, 2}}],
        {From, To} <- [{One, Other}, {Other, One}]
    ],
    %% What two lanes carry is what both do.
    Bytes = 1000000,
    Bytes = call(C, A, erpc, call, [B, erlang, byte_size, [binary:copy(<<0>>, Bytes)]]),
    #{bytes_out := Out} = link_to(C, A, B),
    ?assert(Out > Bytes).

a_group_that_is_made_has_its_kind_from_the_first_connection_on(Config) ->
    C = ?config(cluster, Config),
    [A, B, D | _] = atoll_cluster:nodes(C),
    _ = start(C),
    {ok, far, [A, B]} = call(C, A, s_group, new_s_group, [far, [A, B]]),
    ?assertEqual({lanes, 2}, kind(C, A, B)),
    {ok, far, [D]} = call(C, A, s_group, add_nodes, [far, [D]]),
    ok = call(C, B, s_group, sync, []),
    ?assertEqual([{lanes, 2}, {lanes, 2}], [kind(C, Node, D) || Node <- [A, B]]).

a_group_that_is_gone_wants_nothing(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = atoll_cluster:nodes(C),
    _ = start(C),
    {ok, far, [A, B]} = call(C, A, s_group, new_s_group, [far, [A, B]]),
    ok = call(C, A, s_group, delete_s_group, [far]),
    ?assertEqual(#{}, call(C, A, atoll_dist_keeper, preferred, [])),
    %% What is up stays as it is; what is made anew is not.
    ?assertEqual({lanes, 2}, kind(C, A, B)),
    %% B may connect again by itself as long as it has not heard of that, and then as it was.
    until(fun() ->
        _ = call(C, A, erlang, disconnect_node, [B]),
        _ = call(C, A, net_kernel, connect_node, [B]),
        kind(C, A, B) =:= direct
    end).

a_wrong_kind_stops_the_start(Config) ->
    C = ?config(cluster, Config),
    [A | _] = atoll_cluster:nodes(C),
    {error, {atoll, {{bad_option, carrier_kinds, _} = Bad, _}}} = call(C, A, application, ensure_all_started, [atoll]),
    ?assertEqual(
        "the option carrier_kinds must be a map of groups, each with auto, direct or {lanes,N} with N from 1 to 64, "
        "not #{far => lanes}",
        lists:flatten(atoll_config:format_error(Bad))
    ).
