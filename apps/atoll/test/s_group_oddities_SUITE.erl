%% SPDX-License-Identifier: Apache-2.0
%% What SD Erlang's implementation did oddly, and what s_group does: of the twelve in
%% docs/groups.md those that no other suite shows. The page names the test of each.
-module(s_group_oddities_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([
    a_dead_process_gets_no_name/1,
    a_send_to_nobody_is_answered/1,
    nodes_of_two_deleted_groups_are_one_free_group_at_once/1,
    nodes_that_register_with_each_other_at_once_are_all_answered/1,
    a_process_has_one_name_in_a_group/1,
    names_go_with_the_node_that_is_removed/1,
    two_groups_may_have_one_name/1
]).

-define(CALL_MS, 30000).
%% For what comes by itself.
-define(WAIT_MS, 15000).
-define(PROBE, atoll_semantics_probe).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    [F || {F, 1} <- ?MODULE:module_info(exports), F =/= module_info, F =/= end_per_suite, F =/= init_per_suite].

init_per_suite(Config) ->
    Cluster = atoll_cluster_owned:start(#{
        nodes => 5, connect_all => false, apps => [atoll],
        %% Connections stay, so that free nodes meet over those of their groups.
        args => ["-atoll", "linger", "20000", "group_answer_timeout", "10000"]
    }),
    [{cluster, Cluster} | Config].

end_per_suite(Config) ->
    ok = atoll_cluster:stop(?config(cluster, Config)).

%% A node begins anew with nothing.
end_per_testcase(_Case, Config) ->
    {C, Nodes} = nodes_of(Config),
    [ok = call(C, N, application, stop, [atoll]) || N <- Nodes],
    ok = atoll_name_cluster:apart(C, Nodes),
    [ok = call(C, N, application, start, [atoll]) || N <- Nodes],
    ok.

nodes_of(Config) ->
    C = ?config(cluster, Config),
    {C, atoll_cluster:nodes(C)}.

call(C, Node, M, F, A) ->
    atoll_cluster:call(C, Node, M, F, A, ?CALL_MS).

s_group(C, Node, F, A) -> call(C, Node, s_group, F, A).

%% 1: it was told `yes'.
a_dead_process_gets_no_name(Config) ->
    {C, [A, B | _]} = nodes_of(Config),
    {ok, g, [A, B]} = s_group(C, A, new_s_group, [g, [A, B]]),
    lists:foreach(
        fun(Node) ->
            Pid = call(C, Node, ?PROBE, process, []),
            ok = call(C, Node, ?PROBE, kill, [Pid]),
            ?assertEqual({no, no_process}, s_group(C, A, register_name, [g, x, Pid])),
            ?assertEqual({no, no_process}, s_group(C, A, re_register_name, [g, x, Pid])),
            ?assertEqual([undefined, undefined], [s_group(C, N, whereis_name, [g, x]) || N <- [A, B]])
        end,
        [A, B]
    ).

%% 2: it could crash, or never come back.
a_send_to_nobody_is_answered(Config) ->
    {C, [A, B, D | _]} = nodes_of(Config),
    {ok, g, [A, B]} = s_group(C, A, new_s_group, [g, [A, B]]),
    Nobody = {badarg, {g, nobody, hello}},
    Answers = together(C, [{A, send, Args} || _ <- lists:seq(1, 20), Args <- sends([B, D, 'nobody@127.0.0.1'])]),
    ?assertEqual([Nobody], lists:usort(Answers)),
    ?assertEqual({badarg, {undefined, nobody, hello}}, s_group(C, A, send, [undefined, nobody, hello])),
    %% Nor was anything stuck by it.
    Pid = call(C, B, ?PROBE, process, []),
    yes = s_group(C, A, register_name, [g, somebody, Pid]),
    ?assertEqual(Pid, s_group(C, A, send, [g, somebody, hello])),
    ok = call(C, B, ?PROBE, await_hello, [Pid]).

sends(Nodes) -> [[g, nobody, hello] | [[Node, g, nobody, hello] || Node <- Nodes]].

%% 7: they were connected only when something timed out, a minute later.
nodes_of_two_deleted_groups_are_one_free_group_at_once(Config) ->
    {C, [A, B, D, E, F] = Nodes} = nodes_of(Config),
    {ok, g, [A, B, D]} = s_group(C, A, new_s_group, [g, [A, B, D]]),
    {ok, h, [D, E, F]} = s_group(C, D, new_s_group, [h, [D, E, F]]),
    ok = s_group(C, A, delete_s_group, [g]),
    ok = s_group(C, F, delete_s_group, [h]),
    [ok = call(C, N, atoll_barrier, connected, [Nodes -- [N]]) || N <- Nodes],
    Pid = call(C, A, ?PROBE, process, []),
    yes = s_group(C, A, register_name, [undefined, x, Pid]),
    [?assertEqual(Pid, s_group(C, N, whereis_name, [undefined, x])) || N <- Nodes].

%% 9: they could wait for each other for ever.
nodes_that_register_with_each_other_at_once_are_all_answered(Config) ->
    {C, Nodes = [A | _]} = nodes_of(Config),
    {ok, g, Nodes} = s_group(C, A, new_s_group, [g, Nodes]),
    Pids = [call(C, N, ?PROBE, process, []) || N <- Nodes],
    lists:foreach(
        fun(Round) ->
            %% Each of them for a process on the next node; all in one name at once, then all in another.
            Next = tl(Pids) ++ [hd(Pids)],
            Same = together(C, [{N, register_name, [g, Round, Pid]} || {N, Pid} <- lists:zip(Nodes, Next)]),
            ?assertEqual([yes], [yes || yes <- Same]),
            ?assertEqual([name_or_pid_already_registered], lists:usort([Reason || {no, Reason} <- Same])),
            Gone = together(C, [{N, unregister_name, [g, Round]} || N <- Nodes]),
            ?assertEqual([ok], lists:usort(Gone)),
            Own = together(C, [{N, register_name, [g, {Round, N}, Pid]} || {N, Pid} <- lists:zip(Nodes, Next)]),
            ?assertEqual([yes], lists:usort(Own)),
            _ = together(C, [{N, unregister_name, [g, {Round, N}]} || N <- Nodes])
        end,
        lists:seq(1, 20)
    ).

%% 10: it could have two, where global was told to allow it.
a_process_has_one_name_in_a_group(Config) ->
    {C, [A, B | _]} = nodes_of(Config),
    {ok, g, [A, B]} = s_group(C, A, new_s_group, [g, [A, B]]),
    {ok, h, [A, B]} = s_group(C, A, new_s_group, [h, [A, B]]),
    [ok = call(C, N, application, set_env, [kernel, global_multi_name_action, allow]) || N <- [A, B]],
    Pid = call(C, B, ?PROBE, process, []),
    ?assertEqual(yes, s_group(C, A, register_name, [g, x, Pid])),
    [?assertEqual({no, name_or_pid_already_registered}, s_group(C, N, register_name, [g, y, Pid])) || N <- [A, B]],
    [?assertEqual({no, pid_is_already_registered}, s_group(C, N, re_register_name, [g, y, Pid])) || N <- [A, B]],
    %% One in each.
    ?assertEqual(yes, s_group(C, A, register_name, [h, y, Pid])),
    [ok = call(C, N, application, unset_env, [kernel, global_multi_name_action]) || N <- [A, B]].

%% 11: they stayed, and nobody took them away when their processes ended.
names_go_with_the_node_that_is_removed(Config) ->
    {C, [A, B, D | _]} = nodes_of(Config),
    {ok, g, [A, B, D]} = s_group(C, A, new_s_group, [g, [A, B, D]]),
    Goes = call(C, D, ?PROBE, process, []),
    Stays = call(C, B, ?PROBE, process, []),
    yes = s_group(C, A, register_name, [g, goes, Goes]),
    yes = s_group(C, A, register_name, [g, stays, Stays]),
    ok = s_group(C, A, remove_nodes, [g, [D]]),
    [ok = call(C, N, atoll_name_holder, await_table, [g, [{stays, Stays}], ?WAIT_MS]) || N <- [A, B]],
    ok = call(C, D, atoll_name_holder, await_table, [g, [], ?WAIT_MS]),
    %% The process lives, and is on no member.
    ?assertEqual({no, pid_is_not_on_a_member}, s_group(C, A, register_name, [g, goes, Goes])),
    ?assertEqual({no, cannot_register_in_remote_group}, s_group(C, D, register_name, [g, goes, Goes])).

%% 12: the name of a group is looked for on its own nodes only, as there.
two_groups_may_have_one_name(Config) ->
    {C, [A, B, D, E, F]} = nodes_of(Config),
    {ok, g, [A, B]} = s_group(C, A, new_s_group, [g, [A, B]]),
    {ok, g, [D, E]} = s_group(C, D, new_s_group, [g, [D, E]]),
    [P1, P2] = [call(C, N, ?PROBE, process, []) || N <- [A, D]],
    yes = s_group(C, A, register_name, [g, x, P1]),
    yes = s_group(C, D, register_name, [g, x, P2]),
    ?assertEqual([P1, P1, P2, P2], [s_group(C, N, whereis_name, [g, x]) || N <- [A, B, D, E]]),
    %% A node is in one of them.
    ?assertEqual({ok, g, [F]}, s_group(C, A, add_nodes, [g, [D, F]])),
    ?assertEqual({error, s_group_name_is_in_use}, s_group(C, F, new_s_group, [g, [F]])),
    ok = s_group(C, A, delete_s_group, [g]),
    ?assertEqual([D, E], s_group(C, D, own_nodes, [g])),
    ?assertEqual(P2, s_group(C, E, whereis_name, [g, x])).

%% Each in a process of its own; all begin before any ends.
together(C, Calls) ->
    Workers = [
        spawn_monitor(fun() ->
            receive
                go -> exit({answer, s_group(C, Node, F, A)})
            end
        end)
     || {Node, F, A} <- Calls
    ],
    [Pid ! go || {Pid, _} <- Workers],
    [
        receive
            {'DOWN', Ref, process, Pid, {answer, Answer}} -> Answer;
            {'DOWN', Ref, process, Pid, Crash} -> error(Crash)
        end
     || {Pid, Ref} <- Workers
    ].
