%% SPDX-License-Identifier: Apache-2.0
%% Groups on real nodes: concurrency, failures, and what happens to connections.
%% Five nodes on a stock kernel with -connect_all false, told what to do over
%% their standard input, so that a node that is cut off can still be asked.
-module(s_group_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    nodes_are_apart_at_first/1,
    a_group_is_a_mesh_of_its_members_only/1,
    groups_may_overlap/1,
    a_group_can_name_itself/1,
    reads_on_a_free_node/1,
    nodes_come_and_go/1,
    wrong_calls_change_nothing/1,
    one_of_five_makes_the_group/1,
    one_of_two_removes_the_other/1,
    many_operations_at_once_all_end/1,
    a_killed_member_is_back_when_it_is_started/1,
    a_member_that_was_down_hears_of_a_deletion/1,
    a_crashed_group_process_is_back_in_its_groups/1,
    a_silent_node_is_left_out_in_time/1,
    a_node_without_atoll_is_left_out/1,
    a_congested_connection_leaves_nobody_out/1,
    one_message_waits_for_room_on_a_full_connection/1,
    a_connection_that_is_being_closed_leaves_nobody_out/1,
    a_silent_node_in_the_middle_of_an_operation_is_waited_for_once/1,
    a_connection_of_the_program_outlives_a_group/1,
    changes_on_both_sides_of_a_cut_are_merged/1,
    an_unused_connection_goes_with_its_group/1,
    a_connection_with_a_monitor_outlives_its_group/1,
    recorded_events_give_the_same_effects/1
]).

%% The control connection's deadline is beyond that of any operation.
-define(CALL_MS, 30000).
%% How long a node that does not answer is waited for, where one does not. In this time the others
%% connect and answer on a busy machine too.
-define(SILENT_MS, 2000).

suite() -> [{timetrap, {minutes, 6}}].

all() ->
    [F || {F, 1} <- ?MODULE:module_info(exports), not is_callback(F)].

is_callback(F) ->
    lists:member(F, [init_per_suite, end_per_suite, module_info]).

init_per_suite(Config) ->
    Cluster = atoll_cluster_owned:start(#{
        nodes => 5,
        connect_all => false,
        apps => [atoll],
        %% Short, so that the tests of closing are quick; and connections are those of
        %% groups alone. A slow answer on a busy machine is no silence.
        args => ["-atoll", "linger", "200", "group_answer_timeout", "10000", "group_operation_timeout", "25000", "free_group", "off"]
    }),
    [{cluster, Cluster} | Config].

end_per_suite(Config) ->
    ok = atoll_cluster:stop(?config(cluster, Config)).

init_per_testcase(Case, Config) ->
    C = ?config(cluster, Config),
    [ok = call(C, N, atoll_barrier, restart_with, [group_answer_timeout, ?SILENT_MS]) || waits_for_nobody(Case), N <- atoll_cluster:nodes(C)],
    [ok = call(C, N, atoll_barrier, connected, [[]]) || N <- atoll_cluster:nodes(C)],
    Config.

%% Where a node does not answer, so that it is not waited for long.
waits_for_nobody(Case) ->
    lists:member(Case, [
        a_silent_node_is_left_out_in_time,
        a_node_without_atoll_is_left_out,
        a_silent_node_in_the_middle_of_an_operation_is_waited_for_once
    ]).

%% A node begins anew with nothing: else one that was refused waits before it tries again, and makes
%% its groups without the one that refused it.
end_per_testcase(_Case, Config) ->
    C = ?config(cluster, Config),
    Nodes = atoll_cluster:nodes(C),
    #{nodes := Infos} = atoll_cluster:info(C),
    [ok = atoll_cluster:restart(C, N) || #{node := N, state := down} <- Infos],
    _ = [atoll_cluster:resume(C, N) || #{node := N, state := paused} <- Infos],
    ok = atoll_name_cluster:mend(C, Nodes, Nodes),
    _ = [call(C, N, application, stop, [atoll]) || N <- Nodes],
    ok = atoll_name_cluster:apart(C, Nodes),
    [ok = call(C, N, atoll_barrier, start_with, [[{group_answer_timeout, 10000}]]) || N <- Nodes],
    ok.

call(C, Node, M, F, A) ->
    atoll_cluster:call(C, Node, M, F, A, ?CALL_MS).

%% Each call in a process of its own, all started before any ends.
together(C, Calls) ->
    Workers = [
        spawn_monitor(fun() ->
            receive
                go -> exit({answer, call(C, Node, M, F, A)})
            end
        end)
     || {Node, M, F, A} <- Calls
    ],
    [Pid ! go || {Pid, _} <- Workers],
    [
        receive
            {'DOWN', Ref, process, Pid, {answer, Answer}} -> Answer;
            {'DOWN', Ref, process, Pid, Crash} -> error(Crash)
        end
     || {Pid, Ref} <- Workers
    ].

%% Plain use

nodes_are_apart_at_first(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = Nodes = atoll_cluster:nodes(C),
    [?assertEqual([], call(C, N, erlang, nodes, [connected])) || N <- Nodes],
    [?assertEqual({ok, [[<<"false">>]]}, connect_all(C, N)) || N <- Nodes],
    %% So global does not make a mesh behind our back: both get the name.
    true = call(C, A, net_kernel, connect_node, [B]),
    [
        ?assertEqual(
            yes, call(C, N, global, register_name, [same, call(C, N, erlang, whereis, [init])])
        )
     || N <- [A, B]
    ],
    [call(C, N, global, unregister_name, [same]) || N <- [A, B]],
    true = call(C, A, erlang, disconnect_node, [B]).

connect_all(C, N) ->
    {ok, Values} = call(C, N, init, get_argument, [connect_all]),
    {ok, [[list_to_binary(V) || V <- Vs] || Vs <- Values]}.

a_group_is_a_mesh_of_its_members_only(Config) ->
    C = ?config(cluster, Config),
    [A, B, D, E, F] = atoll_cluster:nodes(C),
    ?assertEqual({ok, g, [A, B, D]}, call(C, B, s_group, new_s_group, [g, [D, A, B, A]])),
    %% All of it is true when the call has returned, on every member.
    [
        begin
            ?assertEqual([{g, [A, B, D]}], call(C, N, s_group, own_s_groups, [])),
            ?assertEqual([A, B, D] -- [N], lists:sort(call(C, N, erlang, nodes, [connected])))
        end
     || N <- [A, B, D]
    ],
    [?assertEqual([], call(C, N, erlang, nodes, [connected])) || N <- [E, F]],
    ?assertEqual(
        [
            #{node => N, connected => true, phase => held, wanted_by => 1}
         || N <- [A, D]
        ],
        call(C, B, atoll_link, links, [])
    ).

groups_may_overlap(Config) ->
    C = ?config(cluster, Config),
    [N1, N2, N3, N4, N5] = atoll_cluster:nodes(C),
    {ok, a, [N1, N2, N3]} = call(C, N1, s_group, new_s_group, [a, [N1, N2, N3]]),
    {ok, b, [N3, N4, N5]} = call(C, N5, s_group, new_s_group, [b, [N3, N4, N5]]),
    ?assertEqual([N2, N3], lists:sort(call(C, N1, erlang, nodes, [connected]))),
    ?assertEqual([N1, N2, N4, N5], lists:sort(call(C, N3, erlang, nodes, [connected]))),
    ?assertEqual([N3, N5], lists:sort(call(C, N4, erlang, nodes, [connected]))),
    ?assertEqual({[a, b], []}, call(C, N3, s_group, s_groups, [])),
    ?assertEqual([N1, N2, N3, N4, N5], call(C, N3, s_group, own_nodes, [])),
    ?assertEqual([N1, N2, N3], call(C, N3, s_group, own_nodes, [a])),
    ?assertEqual([], call(C, N4, s_group, own_nodes, [a])),
    %% Only the connections of the group that goes are closed.
    ok = call(C, N1, s_group, delete_s_group, [a]),
    ok = call(C, N1, atoll_barrier, connected, [[]]),
    ok = call(C, N3, atoll_barrier, connected, [[N4, N5]]),
    ?assertEqual(undefined, call(C, N1, s_group, s_groups, [])),
    ?assertEqual({[b], []}, call(C, N3, s_group, s_groups, [])).

a_group_can_name_itself(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = atoll_cluster:nodes(C),
    {ok, Name1, [A, B]} = call(C, A, s_group, new_s_group, [[A, B]]),
    {ok, Name2, [A, B]} = call(C, A, s_group, new_s_group, [[A, B]]),
    ?assertNotEqual(Name1, Name2),
    ?assertEqual({lists:sort([Name1, Name2]), []}, call(C, B, s_group, s_groups, [])).

reads_on_a_free_node(Config) ->
    C = ?config(cluster, Config),
    [A | _] = atoll_cluster:nodes(C),
    ?assertEqual(undefined, call(C, A, s_group, s_groups, [])),
    ?assertEqual([], call(C, A, s_group, own_s_groups, [])),
    ?assertEqual([A], call(C, A, s_group, own_nodes, [])),
    ?assertEqual([A], call(C, A, s_group, own_nodes, [undefined])),
    ?assertEqual([], call(C, A, s_group, own_nodes, [nothing])),
    Info = call(C, A, s_group, info, []),
    ?assertEqual(no_conf, proplists:get_value(state, Info)),
    ok = call(C, A, application, stop, [atoll]),
    ?assertEqual({error, s_group_not_runnig}, call(C, A, s_group, info, [])).

nodes_come_and_go(Config) ->
    C = ?config(cluster, Config),
    [A, B, D, E, _] = atoll_cluster:nodes(C),
    {ok, g, [A, B]} = call(C, A, s_group, new_s_group, [g, [A, B]]),
    ?assertEqual({ok, g, [D, E]}, call(C, B, s_group, add_nodes, [g, [E, A, D]])),
    ?assertEqual({ok, g, [D]}, call(C, E, s_group, add_nodes, [g, [D]])),
    ?assertEqual([A, B, D], lists:sort(call(C, E, erlang, nodes, [connected]))),
    ?assertEqual(ok, call(C, E, s_group, remove_nodes, [g, [A, B]])),
    [?assertEqual([D, E], call(C, N, s_group, own_nodes, [g])) || N <- [D, E]],
    [?assertEqual([], call(C, N, s_group, own_s_groups, [])) || N <- [A, B]],
    [ok = call(C, N, atoll_barrier, connected, [[]]) || N <- [A, B]],
    ok = call(C, D, atoll_barrier, connected, [[E]]).

wrong_calls_change_nothing(Config) ->
    C = ?config(cluster, Config),
    [A, B, D | _] = atoll_cluster:nodes(C),
    {ok, g, [A, B]} = call(C, A, s_group, new_s_group, [g, [A, B]]),
    Wrong = [
        {A, new_s_group, [undefined, [A]], {error, reserved_s_group_name}},
        {A, new_s_group, [h, []], {ok, h, []}},
        {A, new_s_group, [h, [B]], {error, remote_s_group}},
        {A, new_s_group, [g, [A]], {error, s_group_name_is_in_use}},
        {A, new_s_group, ["h", [A]], {error, {bad_name, "h"}}},
        {A, new_s_group, [h, A], {error, {bad_nodes, A}}},
        {A, new_s_group, [h, [A | B]], {error, {bad_nodes, [A | B]}}},
        {D, delete_s_group, [g], {error, {"remote_s_group", g}}},
        {D, add_nodes, [g, [A]], {error, node_does_not_belong_to_the_s_group}},
        {A, add_nodes, [g, [A]], {ok, g, []}},
        {A, add_nodes, [g, [B]], {ok, g, [B]}},
        {A, add_nodes, [g, ['nobody@127.0.0.1']], {ok, g, []}},
        {D, remove_nodes, [g, [A]], {error, {"node_does_not_belong_to_s_group", g}}},
        {A, remove_nodes, [g, [A, B]], {error, "cannot_remove_itself"}},
        {A, remove_nodes, [g, [D]], ok}
    ],
    [
        begin
            ?assertEqual(Answer, call(C, N, s_group, F, Args)),
            ?assertEqual([{g, [A, B]}], call(C, A, s_group, own_s_groups, [])),
            ?assertEqual([{g, [A, B]}], call(C, B, s_group, own_s_groups, [])),
            ?assertEqual([], call(C, D, s_group, own_s_groups, []))
        end
     || {N, F, Args, Answer} <- Wrong
    ].

%% Concurrency

one_of_five_makes_the_group(Config) ->
    C = ?config(cluster, Config),
    Nodes = atoll_cluster:nodes(C),
    Answers = together(C, [{N, s_group, new_s_group, [g, Nodes]} || N <- Nodes]),
    ?assertEqual([{ok, g, Nodes}], [A || {ok, _, _} = A <- Answers]),
    ?assertEqual(4, length([x || {error, s_group_name_is_in_use} <- Answers])),
    [?assertEqual([{g, Nodes}], call(C, N, s_group, own_s_groups, [])) || N <- Nodes].

one_of_two_removes_the_other(Config) ->
    C = ?config(cluster, Config),
    [A, B, D | _] = atoll_cluster:nodes(C),
    lists:foreach(
        fun(_) ->
            {ok, g, [A, B, D]} = call(C, A, s_group, new_s_group, [g, [A, B, D]]),
            Answers = together(C, [
                {A, s_group, remove_nodes, [g, [B]]}, {B, s_group, remove_nodes, [g, [A]]}
            ]),
            ?assertEqual(
                [ok, {error, {"node_does_not_belong_to_s_group", g}}], lists:sort(Answers)
            ),
            Stayed =
                case Answers of
                    [ok, _] -> A;
                    [_, ok] -> B
                end,
            Members = lists:sort([Stayed, D]),
            [?assertEqual(Members, call(C, N, s_group, own_nodes, [g])) || N <- Members],
            [?assertEqual([], call(C, N, s_group, own_nodes, [g])) || N <- [A, B] -- [Stayed]],
            ok = call(C, D, s_group, delete_s_group, [g])
        end,
        lists:seq(1, 20)
    ).

%% Every node works on every group at once; each call is answered, none by a
%% time-out, and the members agree afterwards.
many_operations_at_once_all_end(Config) ->
    C = ?config(cluster, Config),
    Nodes = [A, B, D, E, F] = atoll_cluster:nodes(C),
    Calls = [
        {N, s_group, Fun, Args}
     || Round <- lists:seq(1, 8),
        N <- Nodes,
        G <- [g, h],
        {Fun, Args} <- [
            {new_s_group, [G, [N, A, D]]},
            {add_nodes, [G, [B, lists:nth(Round rem 5 + 1, Nodes)]]},
            {remove_nodes, [G, [E, F] -- [N]]}
        ]
    ],
    Answers = together(C, Calls),
    ?assertEqual([], [X || {error, timeout} = X <- Answers]),
    Groups = lists:append([call(C, N, s_group, own_s_groups, []) || N <- Nodes]),
    [
        [?assertEqual(Members, call(C, M, s_group, own_nodes, [Name])) || M <- Members]
     || {Name, Members} <- lists:usort(Groups)
    ].

%% Failures

a_killed_member_is_back_when_it_is_started(Config) ->
    C = ?config(cluster, Config),
    [A, B, D | _] = atoll_cluster:nodes(C),
    {ok, g, [A, B, D]} = call(C, A, s_group, new_s_group, [g, [A, B, D]]),
    ok = atoll_cluster:kill(C, B),
    ok = call(C, A, atoll_barrier, connected, [[D]]),
    ?assertEqual([B], proplists:get_value(no_contact, call(C, A, s_group, info, []))),
    %% A group goes on without it: the dead node holds nothing up.
    {ok, h, [A, D]} = call(C, A, s_group, new_s_group, [h, [A, B, D]]),
    ok = atoll_cluster:restart(C, B),
    ok = call(C, B, atoll_barrier, group, [g, [A, B, D]]),
    ok = call(C, B, atoll_barrier, connected, [[A, D]]),
    ?assertEqual([], call(C, B, s_group, own_nodes, [h])).

a_member_that_was_down_hears_of_a_deletion(Config) ->
    C = ?config(cluster, Config),
    [A, B, D | _] = atoll_cluster:nodes(C),
    {ok, g, [A, B, D]} = call(C, A, s_group, new_s_group, [g, [A, B, D]]),
    ok = atoll_name_cluster:cut(C, [B], [A, D]),
    ok = call(C, A, s_group, delete_s_group, [g]),
    ?assertEqual([A, B, D], call(C, B, s_group, own_nodes, [g])),
    ok = atoll_name_cluster:mend(C, [B], [A, D]),
    ok = atoll_name_cluster:reconnect(C, [B], [A, D]),
    ok = call(C, B, atoll_barrier, group, [g, []]).

a_crashed_group_process_is_back_in_its_groups(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = atoll_cluster:nodes(C),
    {ok, g, [A, B]} = call(C, A, s_group, new_s_group, [g, [A, B]]),
    ok = call(C, B, atoll_barrier, restart_room, [atoll_group]),
    ok = call(C, B, atoll_barrier, group, [g, [A, B]]),
    ?assertEqual({ok, g, [A]}, call(C, B, s_group, add_nodes, [g, [A]])).

a_silent_node_is_left_out_in_time(Config) ->
    C = ?config(cluster, Config),
    [A, B, D | _] = atoll_cluster:nodes(C),
    ok = atoll_name_cluster:group(C, h, [A, B, D]),
    ok = atoll_cluster:pause(C, D),
    {Us, Answer} = timer:tc(fun() -> call(C, A, s_group, new_s_group, [g, [A, B, D]]) end),
    ?assertEqual({ok, g, [A, B]}, Answer),
    ?assert(Us < 3000 * ?SILENT_MS),
    ?assertEqual(ok, call(C, A, s_group, remove_nodes, [h, [D]])),
    ok = atoll_cluster:resume(C, D),
    ok = call(C, D, atoll_barrier, group, [h, []]),
    ?assertEqual([], call(C, D, s_group, own_nodes, [g])),
    %% It holds no turn either.
    ?assertEqual({ok, g, [D]}, call(C, B, s_group, add_nodes, [g, [D]])).

a_node_without_atoll_is_left_out(Config) ->
    C = ?config(cluster, Config),
    [A, B, D | _] = atoll_cluster:nodes(C),
    ok = call(C, D, application, stop, [atoll]),
    ?assertEqual(
        {ok, g, [A, B]}, call(C, A, s_group, new_s_group, [g, [A, B, D, 'nobody@127.0.0.1']])
    ).

changes_on_both_sides_of_a_cut_are_merged(Config) ->
    C = ?config(cluster, Config),
    [A, B, D, E, F] = atoll_cluster:nodes(C),
    {ok, g, [A, B, D, E]} = call(C, A, s_group, new_s_group, [g, [A, B, D, E]]),
    %% F, which is in no group yet, is on the side of A and B.
    ok = atoll_name_cluster:cut(C, [A, B, F], [D, E]),
    {ok, g, [F]} = call(C, A, s_group, add_nodes, [g, [F]]),
    %% Two of four, without the first: they remove who answers, and nobody else.
    ?assertEqual({error, {no_majority, [B]}}, call(C, D, s_group, remove_nodes, [g, [B, E]])),
    ok = call(C, D, s_group, remove_nodes, [g, [E]]),
    ?assertEqual([A, B, D, E, F], call(C, F, s_group, own_nodes, [g])),
    ?assertEqual([A, B, D], call(C, D, s_group, own_nodes, [g])),
    ok = atoll_name_cluster:mend(C, [A, B, F], [D, E]),
    %% E, which was removed, is to have no connection that nobody's group made.
    ok = atoll_name_cluster:reconnect(C, [A, B, F], [D]),
    [ok = call(C, N, atoll_barrier, group, [g, [A, B, D, F]]) || N <- [A, B, D, F]],
    ok = call(C, E, atoll_barrier, group, [g, []]),
    [
        ok = call(C, N, atoll_barrier, connected, [[A, B, D, F] -- [N]])
     || N <- [A, B, D, F]
    ].

a_congested_connection_leaves_nobody_out(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = atoll_cluster:nodes(C),
    {ok, h, [A, B]} = call(C, A, s_group, new_s_group, [h, [A, B]]),
    Flood = call(C, A, atoll_barrier, flood, [B]),
    Wrong = call(C, A, atoll_barrier, come_and_go, [g, [A, B], atoll_tier:size(congested_groups)]),
    ok = call(C, A, atoll_barrier, end_flood, [Flood]),
    %% The precondition: there really was no room.
    #{waited := Waited} = call(C, A, atoll_interpreter, counters, [atoll_group]),
    ?assert(Waited > 0),
    ?assertEqual([], Wrong).

one_message_waits_for_room_on_a_full_connection(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = atoll_cluster:nodes(C),
    true = call(C, A, net_kernel, connect_node, [B]),
    Room = #{name => a_room, protocol => atoll_interpreter_tests, process => atoll_interpreter_tests, config => []},
    Begin = fun() ->
        {ok, _} = atoll_interpreter:start_link(Room),
        ok = atoll_interpreter:subscribe(a_room)
    end,
    Pids = [{N, call(C, N, atoll_barrier, listen, [Begin])} || N <- [A, B]],
    {B, AtB} = lists:keyfind(B, 1, Pids),
    Say = fun(Messages) -> call(C, A, atoll_interpreter, call, [a_room, {do, [{send, B, M} || M <- Messages]}]) end,
    Heard = fun(Count) -> [Message || {atoll, a_room, {got, _, Message}} <- call(C, B, atoll_barrier, heard, [AtB, Count])] end,
    _ = Say([first]),
    ?assertEqual([first], Heard(1)),
    ok = atoll_cluster:pause(C, B),
    ok = call(C, A, atoll_barrier, fill, [B]),
    _ = Say([waits, is_dropped]),
    ?assertMatch(#{sent := 2, waited := 1, dropped_busy := 1}, call(C, A, atoll_interpreter, counters, [a_room])),
    ok = atoll_cluster:resume(C, B),
    ?assertEqual([waits], Heard(1)),
    %% Until it is known that the one that waited has gone.
    Sent = fun() ->
        _ = Say([last]),
        maps:get(sent, call(C, A, atoll_interpreter, counters, [a_room]))
    end,
    ok = atoll_name_cluster:await(Sent, 3),
    ?assertEqual([last], Heard(1)),
    [ok = call(C, N, atoll_barrier, hang_up, [Pid]) || {N, Pid} <- Pids].

a_connection_that_is_being_closed_leaves_nobody_out(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = atoll_cluster:nodes(C),
    [ok = call(C, N, atoll_barrier, restart_with, [linger, 3]) || N <- [A, B]],
    %% Many, one after the other.
    Wrong = atoll_cluster:call(C, A, atoll_barrier, come_and_go, [g, [A, B], atoll_tier:size(closing_groups)], 5 * ?CALL_MS),
    [ok = call(C, N, atoll_barrier, restart_with, [linger, 200]) || N <- [A, B]],
    ?assertEqual([], Wrong).

a_silent_node_in_the_middle_of_an_operation_is_waited_for_once(Config) ->
    C = ?config(cluster, Config),
    [A, B, D | _] = atoll_cluster:nodes(C),
    ok = atoll_name_cluster:group(C, h, [A, B, D]),
    %% D's operation has its turn at B from now on.
    Take = {take, {1, D, 1}, {1, 0}, {join, {g, {1, D, 1}}}},
    {atoll, 1, D, Take} = call(C, B, erlang, send, [atoll_group, {atoll, 1, D, Take}]),
    ok = atoll_cluster:pause(C, D),
    {Us, Answer} = timer:tc(fun() -> call(C, A, s_group, new_s_group, [g, [A, B]]) end),
    ?assertEqual({ok, g, [A, B]}, Answer),
    ?assert(Us < 3000 * ?SILENT_MS).

a_connection_of_the_program_outlives_a_group(Config) ->
    C = ?config(cluster, Config),
    [A, B, D | _] = atoll_cluster:nodes(C),
    true = call(C, A, net_kernel, connect_node, [B]),
    {ok, g, [A, B, D]} = call(C, A, s_group, new_s_group, [g, [A, B, D]]),
    ok = call(C, B, s_group, delete_s_group, [g]),
    %% The group's own connections go; by then this one would be gone too.
    ok = call(C, D, atoll_barrier, connected, [[]]),
    ok = call(C, A, atoll_barrier, connected, [[B]]),
    true = call(C, A, erlang, disconnect_node, [B]).

%% Connections

an_unused_connection_goes_with_its_group(Config) ->
    C = ?config(cluster, Config),
    [A, B, D | _] = atoll_cluster:nodes(C),
    {ok, g, [A, B]} = call(C, A, s_group, new_s_group, [g, [A, B]]),
    {ok, h, [A, D]} = call(C, A, s_group, new_s_group, [h, [A, D]]),
    ok = call(C, B, s_group, delete_s_group, [g]),
    ok = call(C, A, atoll_barrier, connected, [[D]]),
    ok = call(C, B, atoll_barrier, connected, [[]]).

a_connection_with_a_monitor_outlives_its_group(Config) ->
    C = ?config(cluster, Config),
    [A, B, D | _] = atoll_cluster:nodes(C),
    {ok, g, [A, B, D]} = call(C, A, s_group, new_s_group, [g, [A, B, D]]),
    Watcher = call(C, A, atoll_barrier, monitor_init, [B]),
    ok = call(C, D, s_group, delete_s_group, [g]),
    %% The others close: by then this one would have been closed too.
    ok = call(C, D, atoll_barrier, connected, [[]]),
    ok = call(C, A, atoll_barrier, connected, [[B]]),
    %% The end that made it looks at it and finds it in use.
    ok = call(C, A, atoll_barrier, kept, [B]),
    ?assertEqual([B], call(C, A, erlang, nodes, [connected])),
    ?assertEqual(quiet, call(C, A, atoll_barrier, demonitor, [Watcher])),
    ok = call(C, A, atoll_barrier, connected, [[]]).

%% Recording

recorded_events_give_the_same_effects(Config) ->
    C = ?config(cluster, Config),
    [A, B, D | _] = Nodes = atoll_cluster:nodes(C),
    [
        ok = call(C, N, atoll_interpreter, record, [Room, 10000])
     || N <- Nodes, Room <- [atoll_link, atoll_group]
    ],
    _ = together(C, [{N, s_group, new_s_group, [g, Nodes]} || N <- Nodes]),
    _ = together(C, [{N, s_group, remove_nodes, [g, [B] -- [N]]} || N <- [A, B, D]]),
    ok = call(C, D, s_group, delete_s_group, [g]),
    ok = call(C, D, atoll_barrier, connected, [[]]),
    [
        begin
            {ok, Recording} = call(C, N, atoll_interpreter, recording, [Room]),
            #{protocol := Protocol, events := Events, lost := 0} = Recording,
            ?assert(length(Events) > 10),
            %% Replayed here, on another node than the one it was recorded on.
            ?assertEqual(ok, atoll_protocol:replay(Protocol, Recording)),
            ok = call(C, N, atoll_interpreter, record, [Room, off])
        end
     || N <- Nodes, Room <- [atoll_link, atoll_group]
    ].
