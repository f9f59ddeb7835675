%% SPDX-License-Identifier: Apache-2.0
%% Groups that nodes are in when they start, on real nodes: from the configuration, and
%% from the file of an earlier life. And what a program hears of groups: events, nodes
%% that come and go.
-module(atoll_group_start_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    configured_groups_stand_without_a_call/1,
    a_change_outlives_the_start_of_a_configured_member/1,
    sync_reads_the_configuration_again/1,
    all_members_are_killed_and_their_groups_stand_again/1,
    a_file_that_is_garbage_is_put_aside/1,
    a_wrong_configuration_stops_the_start/1,
    events_tell_of_groups/1,
    watchers_hear_of_the_nodes_of_their_groups/1,
    a_watcher_of_a_free_node_hears_of_all/1,
    watchers_outlive_the_process_that_tells_them/1,
    nodes_are_chosen_by_group_and_attribute/1,
    a_configuration_can_be_looked_at/1,
    a_topology_is_made_from_one_node/1,
    a_topology_that_cannot_be_made_says_what_stands/1
]).

-define(CALL_MS, 30000).

suite() -> [{timetrap, {minutes, 6}}].

all() ->
    [F || {F, 1} <- ?MODULE:module_info(exports), not lists:member(F, [init_per_suite, end_per_suite, module_info])].

init_per_suite(Config) ->
    [{cluster, atoll_cluster_owned:start(#{nodes => 4, connect_all => false})} | Config].

end_per_suite(Config) ->
    ok = atoll_cluster:stop(?config(cluster, Config)).

%% In each case the application starts anew, with what that case says.
init_per_testcase(Case, Config) ->
    C = ?config(cluster, Config),
    Folder = filename:join(?config(priv_dir, Config), atom_to_list(Case)),
    Settings = [{linger, 200}, {group_answer_timeout, answer_ms(Case)} | settings(Case, atoll_cluster:nodes(C), Folder)],
    ok = start(C, atoll_cluster:nodes(C), Settings),
    [{folder, Folder}, {settings, Settings} | Config].

end_per_testcase(_Case, Config) ->
    C = ?config(cluster, Config),
    #{nodes := Infos} = atoll_cluster:info(C),
    [ok = atoll_cluster:restart(C, N) || #{node := N, state := down} <- Infos],
    [ok = call(C, N, atoll_barrier, stopped, []) || N <- atoll_cluster:nodes(C)],
    ok.

%% All stand still before one starts: none hears of what was.
start(C, Nodes, Settings) ->
    [ok = call(C, N, atoll_barrier, stopped, []) || N <- Nodes],
    ok = atoll_name_cluster:apart(C, Nodes),
    [ok = call(C, N, atoll_barrier, start_anew, [Settings]) || N <- Nodes],
    ok.

%% A slow answer on a busy machine is no silence; and where there is silence it is not long.
answer_ms(_Case) -> 10000.

%% A killed node starts with what it had been told.
restart(Config, Node) ->
    C = ?config(cluster, Config),
    ok = atoll_cluster:restart(C, Node),
    call(C, Node, atoll_barrier, start_anew, [?config(settings, Config)]).

settings(configured_groups_stand_without_a_call, [N1, N2, N3 | _], _Folder) ->
    [{s_groups, [{b, normal, [N3, N2]}, {a, [N1, N2]}, {a, [N2, N2]}, {undefined, [N1]}]}];
settings(a_change_outlives_the_start_of_a_configured_member, [N1, N2, N3 | _], _Folder) ->
    [{s_groups, [{a, [N1, N2, N3]}, {b, [N1, N2, N3]}]}];
settings(_Case, _Nodes, Folder) ->
    [{record_groups, Folder}].

call(C, Node, M, F, A) ->
    atoll_cluster:call(C, Node, M, F, A, ?CALL_MS).

own(C, Node) -> call(C, Node, s_group, own_s_groups, []).

%% The configuration

configured_groups_stand_without_a_call(Config) ->
    C = ?config(cluster, Config),
    [A, B, D, E] = atoll_cluster:nodes(C),
    ?assertEqual([{a, [A, B]}, {b, [B, D]}], own(C, B)),
    %% And now it is connected too.
    ok = call(C, B, s_group, sync, []),
    ?assertEqual([A, D], lists:sort(call(C, B, erlang, nodes, []))),
    ?assertEqual({[a], [b]}, call(C, A, s_group, s_groups, [])),
    Info = call(C, A, s_group, info, []),
    ?assertEqual([{b, [B, D]}], proplists:get_value(other_groups, Info)),
    ?assertEqual(synced, proplists:get_value(state, Info)),
    %% Who is in none is a free node, and knows of none.
    ?assertEqual([], own(C, E)),
    ?assertEqual(undefined, call(C, E, s_group, s_groups, [])),
    ?assertEqual([], proplists:get_value(other_groups, call(C, E, s_group, info, []))),
    %% They are groups like any other.
    ?assertEqual({ok, a, [E]}, call(C, A, s_group, add_nodes, [a, [E]])),
    ?assertEqual([{a, [A, B, E]}], own(C, E)),
    ?assertEqual({error, s_group_name_is_in_use}, call(C, D, s_group, new_s_group, [b, [D]])),
    ok = call(C, D, s_group, delete_s_group, [b]),
    ?assertEqual([{a, [A, B, E]}], own(C, B)).

a_change_outlives_the_start_of_a_configured_member(Config) ->
    C = ?config(cluster, Config),
    [A, B, D | _] = atoll_cluster:nodes(C),
    ok = call(C, A, s_group, sync, []),
    ok = call(C, A, s_group, remove_nodes, [a, [D]]),
    ok = call(C, A, s_group, delete_s_group, [b]),
    {ok, b, [A, D]} = call(C, A, s_group, new_s_group, [b, [A, D]]),
    ok = atoll_cluster:kill(C, D),
    ok = restart(Config, D),
    ok = call(C, D, atoll_barrier, group, [b, [A, D]]),
    ok = call(C, D, atoll_barrier, group, [a, []]),
    ?assertEqual([{a, [A, B]}, {b, [A, D]}], own(C, A)).

sync_reads_the_configuration_again(Config) ->
    C = ?config(cluster, Config),
    [A, B, D | _] = atoll_cluster:nodes(C),
    Groups = [{g, [A, B]}, {h, [D]}],
    [ok = call(C, N, application, set_env, [atoll, s_groups, Groups]) || N <- [A, B]],
    ?assertEqual([], own(C, A)),
    ?assertEqual(ok, call(C, A, s_group, sync, [])),
    ?assertEqual(ok, call(C, B, s_group, sync, [])),
    [?assertEqual([{g, [A, B]}], own(C, N)) || N <- [A, B]],
    ?assertEqual([B], call(C, A, erlang, nodes, [])),
    ?assertEqual({[g], [h]}, call(C, A, s_group, s_groups, [])),
    %% A wrong one changes nothing; nor does one with less.
    ok = call(C, A, application, set_env, [atoll, s_groups, [{g, A}]]),
    {error, Error} = call(C, A, s_group, sync, []),
    ?assertMatch("the option s_groups: the group g needs a list" ++ _, lists:flatten(s_group:format_error(Error))),
    ok = call(C, A, application, set_env, [atoll, s_groups, []]),
    ?assertEqual(ok, call(C, A, s_group, sync, [])),
    ?assertEqual([{g, [A, B]}], own(C, A)),
    ok = call(C, A, application, stop, [atoll]),
    ?assertEqual({error, s_group_not_runnig}, call(C, A, s_group, sync, [])).

a_wrong_configuration_stops_the_start(Config) ->
    C = ?config(cluster, Config),
    [A | _] = atoll_cluster:nodes(C),
    ok = call(C, A, application, stop, [atoll]),
    ok = call(C, A, application, set_env, [atoll, s_groups, [{g, nodes}]]),
    ?assertMatch(
        {error, {{bad_option, s_groups, {groups, {not_nodes, g, nodes}}}, _}},
        call(C, A, application, start, [atoll])
    ).

%% The file

all_members_are_killed_and_their_groups_stand_again(Config) ->
    C = ?config(cluster, Config),
    [A, B, D, E] = Nodes = atoll_cluster:nodes(C),
    {ok, g, [A, B, D]} = call(C, A, s_group, new_s_group, [g, [A, B, D]]),
    {ok, h, [D, E]} = call(C, D, s_group, new_s_group, [h, [D, E]]),
    ok = call(C, A, s_group, remove_nodes, [g, [B]]),
    [ok = call(C, N, atoll_barrier, kept, []) || N <- Nodes],
    [ok = atoll_cluster:kill(C, N) || N <- Nodes],
    %% The first one finds nobody, and is in its group.
    ok = restart(Config, A),
    ?assertEqual([{g, [A, D]}], own(C, A)),
    ?assertEqual([D], proplists:get_value(no_contact, call(C, A, s_group, info, []))),
    [ok = restart(Config, N) || N <- [B, D, E]],
    ?assertEqual([], own(C, B)),
    ?assertEqual([{g, [A, D]}, {h, [D, E]}], own(C, D)),
    ok = call(C, D, s_group, sync, []),
    ?assertEqual([A, E], lists:sort(call(C, D, erlang, nodes, []))),
    %% Its stamps go on where they were: changes after the crash are later than those before.
    {ok, g, [B]} = call(C, A, s_group, add_nodes, [g, [B]]),
    ?assertEqual([{g, [A, B, D]}], own(C, B)).

a_file_that_is_garbage_is_put_aside(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = atoll_cluster:nodes(C),
    {ok, g, [A, B]} = call(C, A, s_group, new_s_group, [g, [A, B]]),
    [ok = call(C, N, atoll_barrier, kept, []) || N <- [A, B]],
    Path = atoll_group_file:path(?config(folder, Config), A),
    ok = atoll_cluster:kill(C, A),
    {ok, Text} = file:read_file(Path),
    Half = binary:part(Text, 0, byte_size(Text) div 2),
    ok = file:write_file(Path, Half),
    ok = restart(Config, A),
    ?assertEqual({ok, Half}, file:read_file([Path, ".bad"])),
    %% Its co-member tells it.
    ok = call(C, A, atoll_barrier, group, [g, [A, B]]),
    ok = call(C, A, atoll_barrier, kept, []),
    ?assertMatch({ok, [_]}, atoll_group_file:read(Path, A)).

%% What a program hears

events_tell_of_groups(Config) ->
    C = ?config(cluster, Config),
    [A, B, D | _] = atoll_cluster:nodes(C),
    Kinds = [s_group_created, s_group_deleted, s_group_node_added, s_group_node_removed],
    Ear = call(C, B, atoll_barrier, listen, [fun() -> ok = atoll:subscribe(Kinds) end]),
    {ok, g, [A, B]} = call(C, A, s_group, new_s_group, [g, [A, B]]),
    {ok, g, [D]} = call(C, A, s_group, add_nodes, [g, [D]]),
    ok = call(C, A, s_group, remove_nodes, [g, [D]]),
    ok = call(C, A, s_group, delete_s_group, [g]),
    ?assertEqual(
        [
            {atoll, s_group_created, #{group => g, nodes => [A, B]}},
            {atoll, s_group_node_added, #{group => g, node => D}},
            {atoll, s_group_node_removed, #{group => g, node => D}},
            {atoll, s_group_deleted, #{group => g, nodes => [A, B]}}
        ],
        call(C, B, atoll_barrier, heard, [Ear, 4])
    ).

watchers_hear_of_the_nodes_of_their_groups(Config) ->
    C = ?config(cluster, Config),
    [A, B, D, E] = atoll_cluster:nodes(C),
    {ok, g, [A, B]} = call(C, A, s_group, new_s_group, [g, [A, B]]),
    Once = call(C, A, atoll_barrier, listen, [fun() -> ok = s_group:monitor_nodes(true) end]),
    Twice = call(C, A, atoll_barrier, listen, [
        fun() -> [ok = s_group:monitor_nodes(true) || _ <- [1, 2]] end
    ]),
    Never = call(C, A, atoll_barrier, listen, [
        fun() -> [ok = s_group:monitor_nodes(Flag) || Flag <- [true, true, false]] end
    ]),
    ?assertEqual(lists:sort([Once, Twice, Twice]), proplists:get_value(monitoring, call(C, A, s_group, info, []))),
    ?assertEqual({error, not_boolean}, call(C, A, s_group, monitor_nodes, [maybe_so])),
    %% A node of no group of ours is not told of, though it is connected.
    true = call(C, A, net_kernel, connect_node, [E]),
    ok = atoll_cluster:kill(C, B),
    ok = call(C, A, atoll_barrier, connected, [[E]]),
    {ok, g, [D]} = call(C, A, s_group, add_nodes, [g, [D]]),
    ok = call(C, A, s_group, remove_nodes, [g, [D]]),
    Events = [{nodedown, B}, {nodeup, D}, {nodedown, D}],
    ?assertEqual(Events, call(C, A, atoll_barrier, heard, [Once, 3])),
    ?assertEqual([Event || Event <- Events, _ <- [1, 2]], call(C, A, atoll_barrier, heard, [Twice, 6])),
    %% By now it would have heard too.
    ?assertEqual([], call(C, A, atoll_barrier, heard, [Never, 0])),
    %% A watcher that ends is forgotten.
    [ok = call(C, A, atoll_barrier, hang_up, [Ear]) || Ear <- [Once, Twice]],
    ?assertEqual([], proplists:get_value(monitoring, call(C, A, s_group, info, []))).

a_watcher_of_a_free_node_hears_of_all(Config) ->
    C = ?config(cluster, Config),
    [A, B, D | _] = atoll_cluster:nodes(C),
    Ear = call(C, A, atoll_barrier, listen, [fun() -> ok = s_group:monitor_nodes(true) end]),
    true = call(C, A, net_kernel, connect_node, [B]),
    ?assertEqual([{nodeup, B}], call(C, A, atoll_barrier, heard, [Ear, 1])),
    %% Now it is a node of a group, and B is none of it.
    {ok, g, [A, D]} = call(C, A, s_group, new_s_group, [g, [A, D]]),
    ?assertEqual([{nodedown, B}, {nodeup, D}], lists:sort(call(C, A, atoll_barrier, heard, [Ear, 2]))).

watchers_outlive_the_process_that_tells_them(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = atoll_cluster:nodes(C),
    {ok, g, [A, B]} = call(C, A, s_group, new_s_group, [g, [A, B]]),
    Ear = call(C, A, atoll_barrier, listen, [fun() -> ok = s_group:monitor_nodes(true) end]),
    ok = call(C, A, atoll_barrier, restart_room, [atoll_group_watch]),
    ok = atoll_cluster:kill(C, B),
    ?assertEqual([{nodedown, B}], call(C, A, atoll_barrier, heard, [Ear, 1])).

%% Attributes

nodes_are_chosen_by_group_and_attribute(Config) ->
    C = ?config(cluster, Config),
    [A, B, D, E] = atoll_cluster:nodes(C),
    {ok, g, [A, B, D]} = call(C, A, s_group, new_s_group, [g, [A, B, D]]),
    true = call(C, A, net_kernel, connect_node, [E]),
    ok = call(C, D, s_group, add_attributes, [[{gpu, 2}, storage]]),
    ?assertEqual([B, E], call(C, A, s_group, add_attributes, [[E, B, 'nobody@127.0.0.1'], [storage]])),
    Chosen = fun(Choices) -> call(C, A, s_group, choose_nodes, [Choices]) end,
    ?assertEqual([B, D], Chosen([{s_group, g}])),
    ?assertEqual([B, D, E], Chosen([{attribute, storage}])),
    ?assertEqual([D], Chosen([{attribute, storage}, {attribute, {gpu, 2}}])),
    ?assertEqual([B, D], Chosen([{attribute, storage}, {s_group, g}])),
    %% Nobody stays nobody, whatever comes after.
    ?assertEqual([], Chosen([{attribute, tea}, {s_group, g}])),
    ?assertEqual([], Chosen([{s_group, h}, {attribute, storage}])),
    ?assertEqual([], Chosen([{colour, red}, {s_group, g}])),
    ?assertEqual([], Chosen([])),
    ?assertEqual([storage, {gpu, 2}], call(C, D, s_group, registered_attributes, [])),
    ?assertEqual([storage, {gpu, 2}], proplists:get_value(attributes, call(C, D, s_group, info, []))),
    ?assertEqual([B], call(C, A, s_group, remove_attributes, [[B], [storage, tea]])),
    ok = call(C, D, s_group, remove_attributes, [[{gpu, 2}]]),
    ?assertEqual([D, E], Chosen([{attribute, storage}])),
    [
        ?assertEqual({error, parameter_should_be_a_list}, call(C, A, s_group, F, [Wrong]))
     || F <- [choose_nodes, add_attributes, remove_attributes], Wrong <- [all, [a | b]]
    ],
    [
        ?assertEqual({error, both_parameters_should_be_lists}, call(C, A, s_group, F, Args))
     || F <- [add_attributes, remove_attributes], Args <- [[A, []], [[A], all]]
    ],
    ok = call(C, E, application, stop, [atoll]),
    ?assertEqual([D], Chosen([{attribute, storage}])),
    ?assertEqual({error, s_group_not_runnig}, call(C, E, s_group, add_attributes, [[tea]])).

a_configuration_can_be_looked_at(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = atoll_cluster:nodes(C),
    Term = [{g, normal, [B, A]}, {h, [B]}],
    Answer = {ok, [{g, normal, [A, B]}], [{h, [B]}]},
    ?assertEqual(Answer, call(C, A, s_group, config_scan, [Term])),
    ?assertEqual(Answer, call(C, A, s_group, config_scan, [Term, publish_type])),
    ?assertMatch({error, {bad_configuration, _}}, call(C, A, s_group, config_scan, [[g]])),
    ?assertEqual([], own(C, A)).

%% Topologies

a_topology_is_made_from_one_node(Config) ->
    C = ?config(cluster, Config),
    [A, B, D, E] = Nodes = atoll_cluster:nodes(C),
    {ok, Topology} = atoll_topology:star(Nodes, #{groups => 2}),
    %% B is no gateway, and does not know the others.
    ?assertEqual({ok, atoll_topology:groups(Topology)}, call(C, B, atoll_topology, make, [Topology])),
    ?assertEqual([{group1, [A, B]}, {group_gateways, [A, D]}], own(C, A)),
    ?assertEqual([{group2, [D, E]}], own(C, E)),
    ok = call(C, A, atoll_barrier, connected, [[B, D]]).

a_topology_that_cannot_be_made_says_what_stands(Config) ->
    C = ?config(cluster, Config),
    [A, B, D, E] = Nodes = atoll_cluster:nodes(C),
    {ok, Topology} = atoll_topology:star(Nodes, #{groups => 2}),
    Says = fun(Text) ->
        {error, Error} = call(C, A, atoll_topology, make, [Topology]),
        ?assertEqual(Text, lists:flatten(atoll_topology:format_error(Error))),
        ok = call(C, A, s_group, delete_s_group, [group1])
    end,
    Name = fun erlang:atom_to_list/1,
    ok = atoll_cluster:kill(C, E),
    Says("the group group2 stands without " ++ Name(E) ++ "; there are now group1, group2"),
    Says("the group group2 was not made: this node is already in a group of that name; there are now group1"),
    ok = call(C, D, application, stop, [atoll]),
    Says("the group group2 was not made: the application atoll is not started on this node; there are now group1"),
    ok = atoll_cluster:kill(C, D),
    Says("the group group2 was not made: '" ++ Name(D) ++ "' did not answer; there are now group1"),
    ?assertEqual([], own(C, B)).
