%% SPDX-License-Identifier: Apache-2.0
%% Faults on real nodes. What is promised, and checked here:
%%
%% - a script ends in the same groups as in the simulator, on every node;
%% - each kill is logged with its recovery, and the node stays up;
%% - kernel, stdlib, top supervisors and what would give up are spared;
%% - cuts are what they are said to be, in one direction and in both;
%% - whatever ends, the nodes are healed.
-module(atoll_chaos_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    a_script_ends_in_the_groups_of_the_simulator/1,
    each_kill_is_logged_and_the_node_stays_up/1,
    kinds_of_processes_are_found/1,
    what_the_node_needs_is_spared/1,
    a_supervisor_that_would_give_up_is_spared/1,
    nothing_passes_a_partition/1,
    nobody_can_guess_the_cookie_of_a_cut/1,
    a_cut_in_one_direction_lets_the_other_through/1,
    bulk_goes_over_the_connection_until_it_is_over/1,
    a_node_is_paused_slowed_killed_and_started/1,
    a_node_that_is_paused_is_not_slowed_and_the_log_says_so/1,
    each_node_s_pause_counts_from_the_moment_it_goes_on/1,
    what_a_node_had_ends_with_it_and_equal_cuts_end_one_by_one/1,
    a_supervisor_that_would_shut_down_is_spared/1,
    who_is_linked_to_it_counts_and_what_it_costs_is_there/1,
    who_has_no_supervisor_is_spared_for_those_linked_to_it/1,
    how_far_from_the_first_says_which_one_is_killed/1,
    any_name_of_a_group_is_killed_on_whichever_node_and_is_back_by_its_name/1,
    any_name_in_global_is_killed/1,
    a_process_that_is_not_back_is_not_killed_again/1,
    a_slow_node_is_stopped_again_and_again/1,
    a_script_heals_at_its_end/1,
    a_peer_that_is_not_heard_is_not_heard_over_a_new_connection/1,
    a_closed_peer_that_connects_all_the_same_is_disconnected/1,
    what_did_nothing_is_in_the_log_with_the_reason/1,
    a_mesh_is_whole_after_healing/1,
    recovery_is_what_an_observer_sees/1,
    the_node_outlives_many_kills/1,
    the_next_one_does_not_wait_with_the_spared_one_s_key/1,
    faults_at_a_rate_repeat_by_their_seed/1,
    a_step_that_cannot_be_done_is_refused_with_its_place/1,
    a_caller_that_is_killed_leaves_nothing_broken/1,
    a_run_that_is_killed_leaves_nothing_broken/1,
    a_keeper_that_is_killed_leaves_nothing_broken/1,
    a_keeper_that_is_killed_at_its_work_leaves_nothing_broken/1,
    a_run_that_is_stopped_heals_before_it_waits_and_says_so/1,
    any_cluster_is_harmed_from_a_hidden_node/1,
    a_vm_that_is_killed_leaves_nothing_broken/1,
    where_it_could_not_mend_the_log_says_so/1,
    two_runs_do_not_undo_each_other/1,
    no_code_stays_on_a_node_that_had_none/1,
    no_code_stays_when_the_vm_that_brought_it_is_killed/1
]).

%% Called in a VM of its own.
-export([hold/1]).

-define(DEADLINE_MS, 15000).
-define(CALL_MS, 30000).

suite() -> [{timetrap, {minutes, 6}}].

all() -> [F || {F, 1} <- ?MODULE:module_info(exports), not lists:member(F, [init_per_suite, end_per_suite, module_info, hold])].

init_per_suite(Config) ->
    Cluster = atoll_cluster_owned:start(#{
        nodes => 6, connect_all => false, apps => [atoll], args => ["-atoll", "group_answer_timeout", "1000"]
    }),
    [{cluster, Cluster} | Config].

end_per_suite(Config) ->
    ok = atoll_cluster:stop(?config(cluster, Config)).

%% What the case before has left is taken away, and nobody is connected with anybody.
init_per_testcase(_Case, Config) ->
    C = ?config(cluster, Config),
    #{nodes := Infos} = atoll_cluster:info(C),
    Down = [N || #{node := N, state := down} <- Infos],
    Up = atoll_cluster:nodes(C) -- Down,
    _ = [ok = atoll_cluster:resume(C, N) || #{node := N, state := paused} <- Infos],
    %% The agent of a run goes with it; only one that a case has started is stopped here.
    ok = each(Up, fun(N) -> await(fun() -> call(C, N, atoll_chaos_agent, stop, [test]) end, ok) end),
    %% Each step on all before the next one: what Atoll still had to say would connect again.
    ok = each(Up, fun(N) -> call(C, N, atoll_chaos_subject, finish, []) end),
    ok = atoll_name_cluster:apart(C, Up),
    ok = each(Up, fun(N) -> call(C, N, application, start, [atoll]) end),
    ok = each(Down, fun(N) -> atoll_cluster:restart(C, N) end),
    Config.

%% A group outlives those of its members that start again one after the other.
end_per_testcase(a_script_ends_in_the_groups_of_the_simulator, Config) ->
    C = ?config(cluster, Config),
    each(atoll_cluster:nodes(C), fun(N) -> atoll_cluster:kill(C, N) end);
end_per_testcase(_Case, _Config) ->
    ok.

%% Of all at once.
each(Nodes, Fun) ->
    Refs = [element(2, spawn_monitor(fun() -> ok = Fun(N) end)) || N <- Nodes],
    lists:foreach(
        fun(Ref) ->
            receive
                {'DOWN', Ref, process, _, Reason} -> ?assertEqual(normal, Reason)
            end
        end,
        Refs
    ).

call(C, Node, M, F, A) ->
    atoll_cluster:call(C, Node, M, F, A, ?CALL_MS).

script(Terms) ->
    {ok, Script} = atoll_sim_script:check([{cluster, #{nodes => 6, contacts => 2, seed => 5}} | Terms]),
    Script.

run(C, Terms) ->
    run(C, Terms, #{}).

run(C, Terms, Options) ->
    {ok, Result} = atoll_chaos:run(Options#{cluster => C, script => script(Terms)}),
    Result.

%% Groups

a_script_ends_in_the_groups_of_the_simulator(Config) ->
    C = ?config(cluster, Config),
    Script = script([
        {at, 0, {group, {nodes, 1, 1}, {new, g, {nodes, 1, 5}}}},
        {at, 0, {group, {nodes, 6, 6}, {new, h, {nodes, 5, 6}}}},
        {at, 500, {kill_process, {random, 2}, {name, atoll_group}}},
        {at, {1, s}, {kill, {nodes, 4, 4}}},
        %% All have noticed it by then.
        {then, {2, s}, {group, {nodes, 1, 1}, {new, i, {nodes, 1, 4}}}},
        {then, {2, s}, {partition, [{nodes, 2, 2}]}},
        {then, 500, {group, {nodes, 1, 1}, {add, g, {nodes, 6, 6}}}},
        {then, 0, {group, {nodes, 3, 3}, {remove, g, {nodes, 2, 2}}}},
        {then, {2, s}, heal},
        {then, 0, {start, {nodes, 4, 4}}},
        {then, 500, {pause, {nodes, 6, 6}, {2, s}}},
        {then, 100, {group, {nodes, 5, 5}, {delete, h}}},
        {then, 2500, {cut, {nodes, 3, 3}, {nodes, 1, 1}, {1, s}}},
        {then, 100, {slow, {nodes, 5, 5}, 30}},
        {then, 1500, {restart, {nodes, 3, 3}, fresh}},
        {then, {1, s}, {group, {nodes, 5, 5}, {add, g, {nodes, 6, 6}}}}
    ]),
    {ok, #{groups := Groups, events := Events}} = atoll_chaos:run(#{cluster => C, script => Script}),
    {ok, #{groups := Simulated}} = atoll_sim_play:run(Script, #{}),
    ?assertEqual(6, map_size(Groups)),
    Named = maps:from_list(lists:zip(atoll_sim_cluster:names_of(6), atoll_cluster:nodes(C))),
    Real = fun(Node) -> map_get(Node, Named) end,
    ?assertEqual(
        [{Real(Node), [{Group, lists:map(Real, Members)} || {Group, Members} <- Own]} || {Node, Own} <- lists:sort(maps:to_list(Simulated))],
        lists:sort(maps:to_list(Groups))
    ),
    ?assertEqual([], [E || #{outcome := failed} = E <- Events]),
    ?assertEqual([], [E || #{recovered_ms := never} = E <- Events]).

%% Processes

each_kill_is_logged_and_the_node_stays_up(Config) ->
    C = ?config(cluster, Config),
    [Node | _] = atoll_cluster:nodes(C),
    ok = call(C, Node, atoll_chaos_subject, start_here, []),
    Before = call(C, Node, os, getpid, []),
    Kills = [{at, 20 * I, {kill_process, {nodes, 1, 1}, {supervisor, subject_top}}} || I <- lists:seq(1, 100)],
    #{events := Events, summary := Summary} = run(C, Kills),
    Killed = [E || #{fault := kill_process} = E <- Events],
    ?assertEqual(100, length(Killed)),
    %% Two of the frail one are allowed, and a temporary one is not waited for.
    ?assertEqual([], [E || #{outcome := failed} = E <- Killed]),
    ?assert(length([done || #{outcome := done} <- Killed]) > 90),
    ?assertEqual([], [
        E
     || #{outcome := done, recovered_ms := R, target := T} = E <- Killed, not is_number(R), not lists:member(passing, T)
    ]),
    #{median_ms := Median, p99_ms := P99} = proplists:get_value(kill_process, Summary),
    ?assert(Median =< P99),
    ct:pal("median ~p ms, p99 ~p ms", [Median, P99]),
    %% It is the same VM, and all its processes are there.
    ?assertEqual(Before, call(C, Node, os, getpid, [])),
    ?assertMatch({_, _}, lists:keyfind(running, 1, call(C, Node, application, info, []))),
    [?assert(is_pid(call(C, Node, erlang, whereis, [Name]))) || Name <- atoll_chaos_subject:names()].

kinds_of_processes_are_found(Config) ->
    C = ?config(cluster, Config),
    [Node | _] = atoll_cluster:nodes(C),
    ok = call(C, Node, atoll_chaos_subject, start_here, []),
    Find = fun(What) ->
        [lists:sublist(P, 1, 3) || #{path := P} <- call(C, Node, atoll_chaos_victims, find, [What])]
    end,
    Last = fun(What) ->
        lists:sort([lists:last(P) || #{path := P} <- call(C, Node, atoll_chaos_victims, find, [What])])
    end,
    A = atoll_chaos_subject,
    ?assertEqual([[A, subject_named, subject_b]], Find({name, subject_b})),
    ?assertEqual([[A, subject_named, N] || N <- atoll_chaos_subject:names()], Find({supervisor, subject_named})),
    Rooms = [attr, channels, events, group, group_watch, link, names, place],
    ?assertEqual(Rooms, Last({application, atoll})),
    ?assertEqual(4, length(Find({supervisor, subject_dynamic}))),
    %% 3 named, 3 numbered, 4 without an id, 2 frail ones, the starter.
    ?assertEqual(13, length(Find({application, A}))),
    ?assertEqual(Find({application, A}) ++ [], [P || [App | _] = P <- Find(any), App =:= A]),
    %% With the supervisors whose callbacks it has, but not the top one.
    ?assertEqual(13 + 3, length(Find({module, A}))),
    ?assertEqual([], Find({name, nobody})),
    ?assertEqual([], Find({supervisor, subject_b})),
    ?assertEqual([], Find({application, nothing})).

what_the_node_needs_is_spared(Config) ->
    C = ?config(cluster, Config),
    [Node | _] = atoll_cluster:nodes(C),
    Find = fun(What) -> call(C, Node, atoll_chaos_victims, find, [What]) end,
    Names = call(C, Node, erlang, registered, []),
    Killable = [Name || Name <- Names, Find({name, Name}) =/= []],
    ?assertEqual([], [N || N <- Killable, lists:member(N, [
        init, kernel_sup, kernel_safe_sup, net_kernel, auth, code_server, application_controller, user, logger,
        logger_sup, erl_prim_loader, global_name_server, rex, file_server_2, inet_db, standard_error, erts_code_purger
    ])]),
    ?assert(lists:member(atoll_sup, Killable)),
    [?assertEqual({What, []}, {What, Find(What)}) || What <- [
        {application, kernel}, {application, stdlib}, {supervisor, kernel_sup}, {supervisor, kernel_safe_sup},
        {module, application_master}, {module, peer}, {module, supervisor}, {module, atoll_chaos_agent}
    ], What =/= {module, supervisor}],
    ?assertEqual([], [App || #{application := App} <- Find({module, supervisor}), App =:= kernel orelse App =:= stdlib]),
    ?assertEqual([], [App || #{application := App} <- Find(any), App =:= kernel orelse App =:= stdlib]).

a_supervisor_that_would_give_up_is_spared(Config) ->
    C = ?config(cluster, Config),
    [Node | _] = atoll_cluster:nodes(C),
    ok = call(C, Node, atoll_chaos_subject, start_here, []),
    Top = call(C, Node, erlang, whereis, [subject_frail]),
    Events = one_by_one(C, 5, [{at, 0, {kill_process, {nodes, 1, 1}, {name, frail}}}]),
    ?assertMatch(
        [done, done, {passed_over, intensity}, {passed_over, intensity}, {passed_over, intensity}],
        [
            case E of
                #{outcome := done} -> done;
                #{outcome := passed_over, why := Why} -> {passed_over, Why}
            end
         || E <- Events
        ]
    ),
    ?assertEqual(Top, call(C, Node, erlang, whereis, [subject_frail])).

%% Kills, each when what was killed before is back: on a busy machine that may take any time.
one_by_one(C, Count, Kills) ->
    lists:append([events_of(kill_process, Events) || _ <- lists:seq(1, Count), #{events := Events} <- [run(C, Kills)]]).

a_supervisor_that_would_shut_down_is_spared(Config) ->
    C = ?config(cluster, Config),
    [Node | _] = atoll_cluster:nodes(C),
    ok = call(C, Node, atoll_chaos_subject, start_here, []),
    ok = call(C, Node, atoll_chaos_subject, start_proud, []),
    Top = call(C, Node, erlang, whereis, [subject_proud]),
    #{events := Events} = run(C, [{at, 0, {kill_process, {nodes, 1, 1}, {name, proud}}}]),
    ?assertMatch([#{outcome := passed_over, why := significant}], events_of(kill_process, Events)),
    ?assertEqual(Top, call(C, Node, erlang, whereis, [subject_proud])).

%% Each kill of a twin costs two restarts.
who_is_linked_to_it_counts_and_what_it_costs_is_there(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = atoll_cluster:nodes(C),
    [
        begin
            ok = call(C, Node, atoll_chaos_subject, start_here, []),
            ok = call(C, Node, atoll_chaos_subject, start_twins, [Intensity])
        end
     || {Node, Intensity} <- [{A, 1}, {B, 3}]
    ],
    Tops = [call(C, N, erlang, whereis, [subject_twins]) || N <- [A, B]],
    Events = one_by_one(C, 3, [{at, 0, {kill_process, {nodes, 1, 2}, {name, twin_a}}}]),
    Of = fun(Node) -> [maps:get(why, E, done) || #{nodes := [N]} = E <- Events, N =:= Node] end,
    ?assertEqual([intensity, intensity, intensity], Of(A)),
    ?assertEqual([done, intensity, intensity], Of(B)),
    ?assertEqual(Tops, [call(C, N, erlang, whereis, [subject_twins]) || N <- [A, B]]).

who_has_no_supervisor_is_spared_for_those_linked_to_it(Config) ->
    C = ?config(cluster, Config),
    [A | _] = atoll_cluster:nodes(C),
    ok = call(C, A, atoll_chaos_subject, start_here, []),
    ok = call(C, A, atoll_chaos_subject, start_twins, [1]),
    ok = call(C, A, atoll_chaos_subject, start_proud, []),
    ok = call(C, A, atoll_chaos_subject, start_friend, [friend_of_twins, twin_b]),
    ok = call(C, A, atoll_chaos_subject, start_friend, [friend_of_proud, proud]),
    ok = call(C, A, atoll_chaos_subject, start_friend, [friend_of_one, subject_a]),
    Names = [friend_of_twins, friend_of_proud, friend_of_one],
    %% Nobody starts a friend again: it is waited for until the deadline.
    #{events := Events} = run(C, [{at, 0, {kill_process, {nodes, 1, 1}, {name, Name}}} || Name <- Names], #{deadline_ms => 1000}),
    ?assertEqual([intensity, significant, done], [maps:get(why, E, done) || E <- events_of(kill_process, Events)]),
    ?assertEqual([true, true, false], [is_pid(call(C, A, erlang, whereis, [Name])) || Name <- Names]).

what_did_nothing_is_in_the_log_with_the_reason(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = atoll_cluster:nodes(C),
    One = {nodes, 1, 1},
    Two = {nodes, 2, 2},
    #{events := Events} = run(C, [
        {at, 0, {kill, One}}, {at, 100, {kill, One}}, {at, 100, {pause, One}}, {at, 100, {start, {nodes, 3, 3}}},
        {at, 200, {pause, Two}}, {at, 300, {pause, Two}}, {at, 300, {kill_process, Two, any}},
        {at, 400, {kill_process, {nodes, 3, 3}, {name, kernel_sup}}}, {at, 400, {kill_process, {nodes, 3, 3}, {name, nobody}}},
        {at, 1000, heal}
    ]),
    [_, _, D | _] = atoll_cluster:nodes(C),
    ?assertEqual(
        [
            {kill, A, done}, {kill, A, dead}, {pause, A, dead}, {start, D, alive}, {pause, B, done}, {pause, B, paused},
            {kill_process, B, paused}, {kill_process, D, spared}, {kill_process, D, nobody}
        ],
        [{Fault, Node, maps:get(why, E, done)} || #{fault := Fault, nodes := [Node]} = E <- Events]
    ),
    ?assertEqual([], [E || #{outcome := Outcome, why := _} = E <- Events, Outcome =/= passed_over]).

how_far_from_the_first_says_which_one_is_killed(Config) ->
    C = ?config(cluster, Config),
    [A | _] = atoll_cluster:nodes(C),
    ok = call(C, A, atoll_chaos_subject, start_here, []),
    Killed = [kill_one(C, A, {supervisor, subject_named}, Which) || Which <- [0.0, 0.34, 0.67, 0.999]],
    ?assertMatch(
        [[subject_a], [subject_b], [subject_c], [subject_c]],
        [[Name || Name <- Path, lists:member(Name, atoll_chaos_subject:names())] || {killed, Path, _} <- Killed]
    ).

any_name_of_a_group_is_killed_on_whichever_node_and_is_back_by_its_name(Config) ->
    C = ?config(cluster, Config),
    [A, B, D | _] = atoll_cluster:nodes(C),
    ok = atoll_name_cluster:group(C, shop, [A, B, D]),
    Places = #{desk => B, till => D},
    Pids = maps:map(
        fun(Name, Node) ->
            ok = call(C, Node, atoll_chaos_subject, start_here, []),
            {ok, Pid} = call(C, Node, atoll_chaos_subject, start_named, [{group, shop}, Name]),
            Pid
        end,
        Places
    ),
    Who = fun(Name) -> call(C, A, s_group, whereis_name, [shop, Name]) end,
    ?assertEqual(Pids, maps:map(fun(Name, _) -> Who(Name) end, Places)),
    Any = {kill_process, all, {any_name, {group, shop}}},
    Kill = fun(Seed) ->
        #{events := Events} = run(C, [{at, 0, Any}], #{seed => Seed}),
        [#{nodes := [Node], target := Path, outcome := done, recovered_ms := Ms}] = events_of(kill_process, Events),
        ?assert(is_number(Ms)),
        {lists:last(Path), Node}
    end,
    %% Each where its process is; by the seed, among the sorted names.
    Killed = [Kill(Seed) || Seed <- lists:seq(1, 5)],
    ?assertEqual(lists:sort(maps:to_list(Places)), lists:usort(Killed)),
    ?assertEqual(Killed, [Kill(Seed) || Seed <- lists:seq(1, 5)]),
    _ = [?assertNotEqual(Pid, Who(Name)) || {Name, Pid} <- maps:to_list(Pids)],
    #{events := Often} = run(C, [{at, 0, {every, {jitter, 300, 0.5}, 1200, Any}}]),
    ?assertMatch([_, _, _ | _], events_of(kill_process, Often)),
    %% Of other nodes' processes none is one; nor is there one in a group that nobody is in.
    #{events := None} = run(C, [
        {at, 0, {kill_process, {nodes, 1, 1}, {any_name, {group, shop}}}}, {at, 0, {kill_process, all, {any_name, {group, none}}}}
    ]),
    ?assertMatch([#{outcome := passed_over, why := nobody}, #{outcome := passed_over, why := nobody}], events_of(kill_process, None)),
    %% A program that the script itself has named has the name now; nobody starts it again.
    #{events := Named, failed := []} = run(C, [
        {at, 0, {name, {nodes, 1, 1}, {register, shop, wares}}}, {at, 2500, {kill_process, {nodes, 1, 1}, {any_name, {group, shop}}}},
        {at, 3000, {expect, {no, {name, shop, wares}}}}
    ]),
    ?assertMatch([#{nodes := [A], target := [wares], outcome := done, recovered_ms := none}], events_of(kill_process, Named)),
    ok = call(C, A, s_group, delete_s_group, [shop]).

%% Without a mesh a name in `global' is known on the node of its process alone.
any_name_in_global_is_killed(Config) ->
    C = ?config(cluster, Config),
    [_, B | _] = atoll_cluster:nodes(C),
    ok = call(C, B, atoll_chaos_subject, start_here, []),
    {ok, Pid} = call(C, B, atoll_chaos_subject, start_named, [global, desk]),
    #{events := Events} = run(C, [{at, 0, {kill_process, all, [{1, {any_name, global}}]}}]),
    [#{nodes := [B], target := Path, recovered_ms := Ms}] = events_of(kill_process, Events),
    ?assertEqual([atoll_chaos_subject, subject_named, desk, desk], Path),
    ?assert(is_number(Ms)),
    ?assertNotEqual(Pid, call(C, B, global, whereis_name, [desk])).

kill_one(C, Node, What, Which) ->
    Order = #{what => What, which => Which, deadline_ms => 5000, claim => {test, none}},
    call(C, Node, atoll_chaos_kill, run, [Order]).

a_process_that_is_not_back_is_not_killed_again(Config) ->
    C = ?config(cluster, Config),
    [A | _] = atoll_cluster:nodes(C),
    ok = call(C, A, atoll_chaos_subject, start_here, []),
    ok = call(C, A, atoll_chaos_agent, ensure, [{test, none}]),
    Pid = call(C, A, erlang, whereis, [subject_a]),
    Key = {call(C, A, erlang, whereis, [subject_named]), subject_a},
    true = call(C, A, atoll_chaos_agent, take, tuple_to_list(Key)),
    ?assertEqual({passed_over, in_recovery}, kill_one(C, A, {name, subject_a}, 0.0)),
    ?assertEqual(Pid, call(C, A, erlang, whereis, [subject_a])),
    ok = call(C, A, atoll_chaos_agent, free, [Key]),
    ?assertMatch({killed, _, _}, kill_one(C, A, {name, subject_a}, 0.0)),
    ?assertEqual([], call(C, A, atoll_chaos_agent, taken, [])).

%% Recovery is measured against an observer on the node: a process of its own that
%% monitors the victim, and is told by the next one. One victim has a supervisor, which
%% answers nobody until it is back; the other has none.
recovery_is_what_an_observer_sees(Config) ->
    C = ?config(cluster, Config),
    [A | _] = atoll_cluster:nodes(C),
    ok = call(C, A, atoll_chaos_subject, start_here, []),
    ok = call(C, A, atoll_chaos_subject, start_late, [150]),
    ok = call(C, A, atoll_chaos_subject, start_kept, [150]),
    Events = one_by_one(C, 8, [{at, 0, {kill_process, {nodes, 1, 1}, {name, Name}}} || Name <- [subject_late, subject_kept]]),
    [
        begin
            Logged = [Ms || #{outcome := done, recovered_ms := Ms, target := T} <- Events, lists:member(Name, T)],
            Seen = [Us / 1000 || Us <- call(C, A, atoll_chaos_subject, Asked, [])],
            ?assertEqual({8, 8}, {length(Logged), length(Seen)}),
            [?assert(L >= S - 1 andalso S >= 149, {Name, L, S}) || {L, S} <- lists:zip(Logged, Seen)],
            ok = looks_are_soon(lists:zip(Logged, Seen))
        end
     || {Name, Asked} <- [{subject_late, restarts}, {subject_kept, kept}]
    ].

%% The look at it is at most 20 ms late, and a busy machine adds to that, now and then much.
looks_are_soon(Times) ->
    Late = lists:sort([L - S || {L, S} <- Times]),
    ?assert(lists:nth((length(Late) + 1) div 2, Late) =< 100, Late),
    ok.

%% One each 100 ms.
the_node_outlives_many_kills(Config) ->
    Kills = atoll_tier:size(chaos_kills),
    _ = ct:timetrap({seconds, 360 + Kills div 5}),
    C = ?config(cluster, Config),
    [Node | _] = atoll_cluster:nodes(C),
    ok = call(C, Node, atoll_chaos_subject, start_here, []),
    ok = call(C, Node, atoll_chaos_subject, start_late, [20]),
    Before = call(C, Node, os, getpid, []),
    #{events := Events, summary := Summary} = run(C, [
        {at, 100 * I, {kill_process, {nodes, 1, 1}, {application, atoll_chaos_subject}}} || I <- lists:seq(1, Kills)
    ]),
    Killed = events_of(kill_process, Events),
    ?assertEqual(Kills, length(Killed)),
    ?assertEqual([], [E || #{outcome := Outcome} = E <- Killed, Outcome =/= done]),
    ?assertEqual([], [E || #{recovered_ms := R, target := T} = E <- Killed, not is_number(R), not lists:member(passing, T)]),
    Late = [Ms || #{recovered_ms := Ms, target := T} <- Killed, lists:member(late, T)],
    Seen = [Us / 1000 || Us <- call(C, Node, atoll_chaos_subject, restarts, [])],
    ?assertEqual(length(Seen), length(Late)),
    [?assert(L >= S - 1, {L, S}) || {L, S} <- lists:zip(Late, Seen)],
    %% Of one or two alone nobody can say that it was the machine.
    _ = [ok = looks_are_soon(lists:zip(Late, Seen)) || length(Late) > 2],
    ct:pal("~p", [proplists:get_value(kill_process, Summary)]),
    ?assertEqual(Before, call(C, Node, os, getpid, [])),
    ?assert(lists:keymember(atoll_chaos_subject, 1, call(C, Node, application, which_applications, []))),
    [?assert(is_pid(call(C, Node, erlang, whereis, [Name]))) || Name <- atoll_chaos_subject:names()].

%% The one that is drawn is spared, and for the next one nobody waits to the deadline.
the_next_one_does_not_wait_with_the_spared_one_s_key(Config) ->
    C = ?config(cluster, Config),
    [Node | _] = atoll_cluster:nodes(C),
    ok = call(C, Node, atoll_chaos_subject, start_here, []),
    ok = call(C, Node, atoll_chaos_subject, start_proud, []),
    ok = call(C, Node, atoll_chaos_agent, ensure, [{test, none}]),
    %% proud is spared; the slow one next to it takes a second to come back.
    Order = #{what => {supervisor, subject_proud}, which => 0.0, deadline_ms => 5000, claim => {test, none}},
    Self = self(),
    _ = spawn_link(fun() -> Self ! {killed, call(C, Node, atoll_chaos_kill, run, [Order])} end),
    Slow = fun() -> [Id || {_, Id} <- call(C, Node, atoll_chaos_agent, taken, [])] end,
    %% Never both.
    ok = await(Slow, [slow], ok),
    receive
        {killed, Outcome} -> ?assertMatch({killed, _, Ms} when Ms >= 900, Outcome)
    end.

%% Connections

nothing_passes_a_partition(Config) ->
    C = ?config(cluster, Config),
    [A, B, D | _] = atoll_cluster:nodes(C),
    [true = call(C, A, net_kernel, connect_node, [N]) || N <- [B, D]],
    {ok, Run} = atoll_chaos:start(#{cluster => C, script => script([
        {at, 0, {partition, [{nodes, 1, 1}, {nodes, 2, 2}]}}, {at, {1, min}, heal}
    ])}),
    ok = await_event(Run, partition),
    ?assertEqual([], call(C, A, erlang, nodes, [connected])),
    [?assertEqual(false, call(C, X, net_kernel, connect_node, [Y])) || {X, Y} <- [{A, B}, {B, A}, {D, A}, {B, D}]],
    [_, _, _ | _] = Rest = lists:nthtail(2, atoll_cluster:nodes(C)),
    ?assertEqual(true, call(C, hd(Rest), net_kernel, connect_node, [lists:last(Rest)])),
    #{} = atoll_chaos:stop(Run),
    [?assertEqual(true, call(C, X, net_kernel, connect_node, [Y])) || {X, Y} <- [{A, B}, {D, A}, {B, D}]].

%% Nodes with connect_all do not find each other again by themselves, and of three of
%% which two are cut off, the third one leaves both.
a_mesh_is_whole_after_healing(_) ->
    Mesh = atoll_cluster_owned:start(#{nodes => 3, connect_all => true}),
    try
        [A, B, D] = Nodes = atoll_cluster:nodes(Mesh),
        [true = call(Mesh, A, net_kernel, connect_node, [N]) || N <- [B, D]],
        Whole = fun() -> lists:all(fun(N) -> length(call(Mesh, N, erlang, nodes, [])) =:= 2 end, Nodes) end,
        ok = await(Whole, true, ok),
        {ok, Script} = atoll_sim_script:check([{cluster, #{nodes => 3}}, {at, 0, {partition, [{nodes, 1, 1}]}}, {at, {1, min}, heal}]),
        {ok, Run} = atoll_chaos:start(#{cluster => Mesh, script => Script}),
        ok = await_event(Run, partition),
        ok = await(fun() -> call(Mesh, A, erlang, nodes, []) end, [], ok),
        #{} = atoll_chaos:stop(Run),
        ok = await(Whole, true, ok)
    after
        ok = atoll_cluster:stop(Mesh)
    end.

%% Each run has another one, of 128 random bits.
nobody_can_guess_the_cookie_of_a_cut(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = atoll_cluster:nodes(C),
    Cookie = fun(_) ->
        {ok, Run} = atoll_chaos:start(#{cluster => C, script => script([
            {at, 0, {partition, [{nodes, 1, 1}]}}, {at, {1, min}, heal}
        ])}),
        ok = await_event(Run, partition),
        Cut = call(C, A, erlang, get_cookie, [B]),
        #{} = atoll_chaos:stop(Run),
        Cut
    end,
    Cookies = lists:map(Cookie, [1, 2]),
    [?assertEqual({match, [{0, 44}]}, re:run(atom_to_list(Cut), "^atoll_chaos_[0-9a-f]{32}$")) || Cut <- Cookies],
    ?assertEqual(2, length(lists:usort(Cookies))).

a_cut_in_one_direction_lets_the_other_through(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = atoll_cluster:nodes(C),
    true = call(C, A, net_kernel, connect_node, [B]),
    {ok, Run} = atoll_chaos:start(#{cluster => C, script => script([
        {at, 0, {cut, {nodes, 1, 1}, {nodes, 2, 2}}}, {at, {1, min}, heal}
    ])}),
    ok = await_event(Run, cut),
    %% What B casts arrives at A; what A casts waits at B's end until it is healed.
    set(C, B, A),
    ?assertEqual({ok, set}, await_env(C, A, B)),
    set(C, A, B),
    %% A message of A is answered by nobody as long as the cut lasts.
    ?assertEqual({badrpc, timeout}, call(C, A, rpc, call, [B, erlang, node, [], 300])),
    ?assertEqual(undefined, call(C, B, application, get_env, [atoll_chaos_test, A])),
    ?assertEqual([B], call(C, A, erlang, nodes, [connected])),
    #{} = atoll_chaos:stop(Run),
    ?assertEqual({ok, set}, await_env(C, B, A)).

bulk_goes_over_the_connection_until_it_is_over(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = atoll_cluster:nodes(C),
    true = call(C, A, net_kernel, connect_node, [B]),
    Received = fun(Node, From) ->
        {ok, Bytes} = call(C, Node, atoll_connections, received, [From]),
        Bytes
    end,
    {ok, Run} = atoll_chaos:start(#{cluster => C, script => script([
        {at, 0, {bulk, {nodes, 1, 1}, {nodes, 2, 2}, 20000000}}, {at, {1, min}, heal}
    ])}),
    true = await(fun() -> Received(B, A) > 10000000 end, true),
    %% The other way there is nothing.
    ?assert(Received(A, B) < 1000000),
    #{events := Events} = atoll_chaos:stop(Run),
    ?assertMatch([#{outcome := done, target := {[B], 20000000}, ended_ms := _}], [E || #{fault := bulk} = E <- Events]),
    ?assertEqual(undefined, call(C, A, erlang, whereis, [atoll_chaos_agent])),
    %% What was under way arrives, and then no more.
    true = await(fun() -> Received(B, A) =:= Received(B, A) end, true).

a_peer_that_is_not_heard_is_not_heard_over_a_new_connection(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = atoll_cluster:nodes(C),
    true = call(C, A, net_kernel, connect_node, [B]),
    {ok, Run} = atoll_chaos:start(#{cluster => C, script => script([
        {at, 0, {cut, {nodes, 1, 1}, {nodes, 2, 2}}}, {at, {1, min}, heal}
    ])}),
    ok = await_event(Run, cut),
    Ear = call(C, A, atoll_barrier, listen, [fun() -> ok = net_kernel:monitor_nodes(true) end]),
    true = call(C, B, erlang, disconnect_node, [A]),
    %% They may be connected again before anybody could look.
    ?assertMatch([{nodedown, B}], call(C, A, atoll_barrier, heard, [Ear, 1])),
    ok = call(C, A, atoll_barrier, hang_up, [Ear]),
    true = call(C, B, net_kernel, connect_node, [A]),
    %% The first messages may pass.
    ok = await(fun() -> call(C, A, rpc, call, [B, erlang, node, [], 300]) end, {badrpc, timeout}, ok),
    ?assertEqual([B], call(C, A, erlang, nodes, [connected])),
    #{} = atoll_chaos:stop(Run),
    ?assertEqual(B, call(C, A, rpc, call, [B, erlang, node, [], ?DEADLINE_MS])).

%% As one whose handshake was under way does: both have the right cookie for the other.
a_closed_peer_that_connects_all_the_same_is_disconnected(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = atoll_cluster:nodes(C),
    Cookie = call(C, A, erlang, get_cookie, []),
    {ok, Run} = atoll_chaos:start(#{cluster => C, script => script([{at, 0, {partition, [{nodes, 1, 1}]}}, {at, {1, min}, heal}])}),
    ok = await_event(Run, partition),
    [true = call(C, X, erlang, set_cookie, [Y, Cookie]) || {X, Y} <- [{A, B}, {B, A}]],
    _ = call(C, A, net_kernel, connect_node, [B]),
    ok = await(fun() -> call(C, A, erlang, nodes, [connected]) end, [], ok),
    #{} = atoll_chaos:stop(Run),
    ?assertEqual(true, call(C, A, net_kernel, connect_node, [B])).

set(C, From, To) ->
    true = call(C, From, rpc, cast, [To, application, set_env, [atoll_chaos_test, From, set]]).

await_env(C, Node, Key) ->
    await(fun() -> call(C, Node, application, get_env, [atoll_chaos_test, Key]) end, {ok, set}).

%% Nodes

a_node_is_paused_slowed_killed_and_started(Config) ->
    C = ?config(cluster, Config),
    [N1, N2 | _] = atoll_cluster:nodes(C),
    #{events := Events} = run(C, [
        {at, 0, {pause, {nodes, 1, 1}, 300}},
        {at, 0, {kill, {nodes, 2, 2}}},
        {at, 0, {restart, {nodes, 3, 3}, fresh}},
        {at, 0, {slow, {nodes, 4, 4}, 50}},
        {at, 100, {kill_process, {nodes, 1, 2}, any}},
        {at, 500, {start, {nodes, 2, 2}}},
        {at, 600, {slow, {nodes, 4, 4}, 0}},
        {at, 700, {kill, {nodes, 5, 5}}}
    ]),
    Of = fun(Fault) -> [E || #{fault := F} = E <- Events, F =:= Fault] end,
    [#{nodes := [N1], recovered_ms := Paused, ended_ms := Ended}] = Of(pause),
    ?assert(is_number(Paused) andalso Ended >= 300),
    [#{nodes := [N2], recovered_ms := Down}, #{recovered_ms := never}] = Of(kill),
    ?assert(Down >= 500 - 100),
    [#{recovered_ms := Restarted}] = Of(restart),
    ?assert(is_number(Restarted)),
    [#{ended_ms := Quick}] = Of(slow),
    ?assert(Quick >= 600),
    %% One was paused, the other dead.
    ?assertMatch(
        [#{nodes := [N1], outcome := passed_over, why := paused}, #{nodes := [N2], outcome := passed_over, why := dead}],
        lists:sort(fun(#{nodes := A}, #{nodes := B}) -> A =< B end, Of(kill_process))
    ),
    #{nodes := Infos} = atoll_cluster:info(C),
    ?assertEqual([up, up, up, up, down, up], [State || #{state := State} <- Infos]).

a_node_that_is_paused_is_not_slowed_and_the_log_says_so(Config) ->
    C = ?config(cluster, Config),
    #{events := Events} = run(C, [
        {at, 0, {pause, {nodes, 1, 1}}}, {at, 100, {slow, {nodes, 1, 2}, 20}}, {at, 300, heal}
    ]),
    [N1, N2 | _] = atoll_cluster:nodes(C),
    ?assertMatch([#{nodes := [N1], outcome := passed_over, why := paused}, #{nodes := [N2], outcome := done}], events_of(slow, Events)).

a_slow_node_is_stopped_again_and_again(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = atoll_cluster:nodes(C),
    {ok, Run} = atoll_chaos:start(#{cluster => C, script => script([{at, 0, {slow, {nodes, 1, 1}, 300}}, {at, {1, min}, heal}])}),
    ok = await_event(Run, slow),
    [?assertEqual({A, State}, {await(fun() -> maps:get(A, states(C)) end, State, A), State}) || State <- [paused, up, paused, up, paused]],
    ?assertEqual(up, maps:get(B, states(C))),
    #{} = atoll_chaos:stop(Run),
    ?assertEqual(up, maps:get(A, states(C))).

%% Nobody stops it, and the script itself leaves all broken.
a_script_heals_at_its_end(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = atoll_cluster:nodes(C),
    #{events := Events, ms := All} = run(C, [
        {at, 0, {partition, [{nodes, 1, 1}]}}, {at, 0, {slow, {nodes, 4, 4}, 50}}, {at, 0, {pause, {nodes, 3, 3}}}
    ]),
    ?assertMatch([#{outcome := done}], events_of(heal, Events)),
    ?assertMatch([#{ended_ms := _}, #{ended_ms := _}, #{ended_ms := _, recovered_ms := _}], lists:droplast(Events)),
    %% To answer over a pipe takes more than 20 us, and less than all of it.
    [#{recovered_ms := Ms}] = events_of(pause, Events),
    ?assert(Ms > 0.02 andalso Ms =< All, {Ms, All}),
    ?assertEqual(true, call(C, A, net_kernel, connect_node, [B])).

%% What is done to others at the same time does not count, for better or for worse.
each_node_s_pause_counts_from_the_moment_it_goes_on(Config) ->
    C = ?config(cluster, Config),
    [_, _, D | _] = atoll_cluster:nodes(C),
    {ok, Run} = atoll_chaos:start(#{cluster => C, script => script([
        {at, 0, {cut, {nodes, 4, 4}, {nodes, 3, 3}}},
        {at, 100, {pause, {nodes, 1, 2}}},
        {at, {1, min}, heal}
    ])}),
    ok = await_event(Run, pause),
    %% To tell this one that it hears again takes as long as it is suspended.
    ok = call(C, D, sys, suspend, [atoll_chaos_agent]),
    {ok, _} = call(C, D, timer, apply_after, [4000, sys, resume, [atoll_chaos_agent]]),
    #{events := Events} = atoll_chaos:stop(Run),
    [?assert(Recovered < 2000) || #{recovered_ms := Recovered} <- events_of(pause, Events)],
    %% And the end of the pause is not the end of all that was done.
    [#{at_ms := Healed} | _] = events_of(heal, Events),
    [?assert(Ended < Healed - 2000) || #{ended_ms := Ended} <- events_of(pause, Events)],
    ?assertEqual(2, length(events_of(pause, Events))).

what_a_node_had_ends_with_it_and_equal_cuts_end_one_by_one(Config) ->
    C = ?config(cluster, Config),
    #{events := Events} = run(C, [
        {at, 0, {pause, {nodes, 1, 1}}}, {at, 0, {slow, {nodes, 2, 2}, 20}},
        {at, 200, {kill, {nodes, 1, 2}}},
        {at, 300, {cut, {nodes, 3, 3}, {nodes, 4, 4}, 400}}, {at, 500, {cut, {nodes, 3, 3}, {nodes, 4, 4}, 1400}},
        {at, 3000, heal}
    ]),
    [#{ended_ms := Pause, recovered_ms := none}] = events_of(pause, Events),
    [#{ended_ms := Slow}] = events_of(slow, Events),
    %% On a busy machine each comes late, in this order.
    [#{at_ms := Killed} | _] = events_of(kill, Events),
    [#{at_ms := Healed} | _] = events_of(heal, Events),
    [?assert(Killed =< Ended andalso Ended < Healed, {Killed, Ended, Healed}) || Ended <- [Pause, Slow]],
    [#{ended_ms := First}, #{ended_ms := Second}] = events_of(cut, Events),
    ?assert(First >= 700 andalso Second >= 1900 andalso Second - First > 100, {First, Second}).

faults_at_a_rate_repeat_by_their_seed(Config) ->
    C = ?config(cluster, Config),
    Run = fun() ->
        {ok, #{events := Events}} = atoll_chaos:run(#{
            cluster => C, rate => 20, kinds => [process, pause, cut, slow], seconds => 1, seed => 3
        }),
        ?assertEqual([], [E || #{outcome := failed} = E <- Events]),
        [{Fault, Nodes} || #{fault := Fault, nodes := Nodes} <- Events]
    end,
    First = Run(),
    ?assert(length(First) > 15),
    ?assertEqual(First, Run()).

a_step_that_cannot_be_done_is_refused_with_its_place(Config) ->
    C = ?config(cluster, Config),
    Sentence = fun(Text) ->
        {ok, Script} = atoll_sim_script:parse(Text),
        {error, Error} = atoll_chaos:start(#{cluster => C, script => Script}),
        unicode:characters_to_list(atoll_chaos:format_error(Error))
    end,
    ?assertEqual(
        "line 2: in {loss,0.5}: stock distribution has no such switch; it takes the carrier on all nodes, with {faults,true}",
        Sentence(<<"{at, 1, heal}.\n{at, 2, {loss, 0.5}}.">>)
    ),
    ?assertEqual(
        "line 1: in {kill,{nodes,7,8}}: there is no node number 8, there are 6",
        Sentence(<<"{at, 1, {kill, {nodes, 7, 8}}}.">>)
    ),
    ?assertEqual("line 1: there is no node n1", Sentence(<<"{at, 1, {kill, n1}}.">>)).

%% Healing

a_caller_that_is_killed_leaves_nothing_broken(Config) ->
    broken_and_left(Config, fun(Caller, _) -> Caller end).

a_run_that_is_killed_leaves_nothing_broken(Config) ->
    broken_and_left(Config, fun(_, {Run, _}) -> Run end).

a_keeper_that_is_killed_leaves_nothing_broken(Config) ->
    broken_and_left(Config, fun(_, {Run, _}) -> keeper(Run) end).

keeper(Run) ->
    {monitors, Monitored} = process_info(Run, monitors),
    [Keeper] = [P || {process, P} <- Monitored, proc_lib:translate_initial_call(P) =:= {atoll_chaos_keeper, init, 1}],
    Keeper.

%% The one who would do the next cut does not answer, so the keeper is at it for long.
a_keeper_that_is_killed_at_its_work_leaves_nothing_broken(Config) ->
    C = ?config(cluster, Config),
    [A, B, D | _] = atoll_cluster:nodes(C),
    {ok, {Run, _} = Running} = atoll_chaos:start(#{cluster => C, script => script([
        {at, 0, {cut, {nodes, 1, 1}, {nodes, 2, 2}}}, {at, 0, {cut, {nodes, 2, 2}, {nodes, 1, 1}}},
        {at, 0, {pause, {nodes, 5, 5}}},
        {at, {4, s}, {partition, [{nodes, 1, 1}]}},
        {at, {1, min}, heal}
    ])}),
    ok = await_event(Running, pause),
    Keeper = keeper(Run),
    Ref = monitor(process, Run),
    ok = call(C, A, sys, suspend, [atoll_chaos_agent]),
    ok = await(fun() -> is_asking(Run) end, true, ok),
    true = exit(Keeper, kill),
    receive
        {'DOWN', Ref, process, _, Reason} -> ?assertEqual(keeper_lost, Reason)
    after ?CALL_MS -> error(no_end)
    end,
    ?assertEqual([], [N || {N, paused} <- maps:to_list(states(C))]),
    [ok = await(fun() -> call(C, X, net_kernel, connect_node, [Y]) end, true, ok) || {X, Y} <- [{A, B}, {A, D}]],
    [ok = await(fun() -> call(C, N, erlang, whereis, [atoll_chaos_agent]) end, undefined, ok) || N <- [A, B, D]].

%% Waits for an answer, for more than a moment.
is_asking(Pid) ->
    Look = fun() -> process_info(Pid, current_function) end,
    case {Look(), receive after 300 -> Look() end} of
        {{current_function, {gen, do_call, 4}} = Same, Same} -> true;
        _ -> false
    end.

a_run_that_is_stopped_heals_before_it_waits_and_says_so(Config) ->
    C = ?config(cluster, Config),
    [A | _] = atoll_cluster:nodes(C),
    %% Nobody starts it again: it is waited for until the deadline.
    ok = call(C, A, atoll_chaos_subject, start_here, []),
    ok = call(C, A, atoll_chaos_subject, start_orphan, [orphan]),
    {ok, Run} = atoll_chaos:start(#{cluster => C, deadline_ms => 5000, script => script([
        {at, 0, {kill_process, {nodes, 1, 1}, {name, orphan}}},
        {at, 0, {cut, {nodes, 2, 2}, {nodes, 4, 4}}},
        {at, 0, {slow, {nodes, 5, 5}, 50}},
        {at, 0, {pause, {nodes, 3, 3}}},
        {at, {1, min}, heal}
    ])}),
    ok = await_event(Run, pause),
    #{events := Events} = atoll_chaos:stop(Run),
    [#{at_ms := Killed, recovered_ms := never}] = events_of(kill_process, Events),
    [#{at_ms := Healed}] = events_of(heal, Events),
    ?assert(Healed < Killed + 5000),
    [#{ended_ms := _, recovered_ms := Recovered}] = events_of(pause, Events),
    ?assert(is_number(Recovered)),
    ?assertMatch([#{ended_ms := _}], events_of(cut, Events)),
    ?assertMatch([#{ended_ms := _}], events_of(slow, Events)).

events_of(Fault, Events) -> [E || #{fault := F} = E <- Events, F =:= Fault].

broken_and_left(Config, Victim) ->
    C = ?config(cluster, Config),
    [A, B, D, E, F, G] = atoll_cluster:nodes(C),
    Self = self(),
    Caller = spawn(fun() ->
        {ok, Run} = atoll_chaos:start(#{cluster => C, script => script([
            {at, 0, {partition, [{nodes, 1, 1}, {nodes, 2, 2}]}},
            {at, 0, {cut, {nodes, 5, 5}, {nodes, 6, 6}}},
            {at, 0, {slow, {nodes, 4, 4}, 300}},
            {at, 0, {pause, {nodes, 3, 3}}},
            {at, {1, min}, heal}
        ])}),
        Self ! {run, Run},
        receive
            never -> ok
        end
    end),
    Run =
        receive
            {run, R} -> R
        after ?DEADLINE_MS -> error(not_started)
        end,
    ok = await_event(Run, pause),
    ?assertMatch(#{D := paused}, states(C)),
    true = exit(Victim(Caller, Run), kill),
    ok = await(fun() -> maps:get(D, states(C)) =:= up end, true, ok),
    [ok = await(fun() -> call(C, X, net_kernel, connect_node, [Y]) end, true, ok) || {X, Y} <- [{A, B}, {A, D}, {F, G}, {E, A}]],
    %% What was not heard is heard.
    ?assertEqual(G, call(C, F, rpc, call, [G, erlang, node, [], ?DEADLINE_MS])),
    [ok = await(fun() -> call(C, N, erlang, whereis, [atoll_chaos_agent]) end, undefined, ok) || N <- [A, B, D, F, G]],
    true = exit(Caller, kill),
    ok.

states(C) ->
    #{nodes := Infos} = atoll_cluster:info(C),
    maps:from_list([{N, S} || #{node := N, state := S} <- Infos]).

%% From outside: a VM of its own, which is distributed.

any_cluster_is_harmed_from_a_hidden_node(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = Nodes = atoll_cluster:nodes(C),
    Outside = outside(),
    try
        Script = script([
            %% The sixth may be killed before its process is back.
            {at, 0, {kill_process, {nodes, 1, 5}, {name, atoll_group}}},
            {at, 0, {partition, [{nodes, 1, 1}]}},
            {at, 100, {pause, {nodes, 2, 2}, 200}},
            {at, 500, {kill, {nodes, 6, 6}}}
        ]),
        {ok, #{events := Events}} = peer:call(
            Outside, atoll_chaos, run, [#{nodes => Nodes, script => Script, deadline_ms => 3000}], ?CALL_MS
        ),
        ?assertEqual([], [E || #{outcome := failed} = E <- Events]),
        ?assertEqual(5, length([E || #{fault := kill_process, recovered_ms := R} = E <- Events, is_number(R)])),
        ?assertMatch([#{recovered_ms := never}], [E || #{fault := kill} = E <- Events]),
        ?assertEqual(true, call(C, A, net_kernel, connect_node, [B])),
        Refused = peer:call(Outside, atoll_chaos, start, [#{nodes => lists:droplast(Nodes), rate => 1, kinds => [node]}], ?CALL_MS),
        ?assertEqual({error, {kind, node}}, Refused),
        %% One alone is cut off from nobody, and the run goes on without that kind.
        Alone = #{nodes => [A], rate => 50},
        ?assertEqual({error, {kind, cut}}, peer:call(Outside, atoll_chaos, start, [Alone#{kinds => [cut]}], ?CALL_MS)),
        {ok, #{events := [_ | _]}} = peer:call(
            Outside, atoll_chaos, run, [Alone#{kinds => [process], seconds => 1}], ?CALL_MS
        )
    after
        peer:stop(Outside)
    end.

a_vm_that_is_killed_leaves_nothing_broken(Config) ->
    C = ?config(cluster, Config),
    [A, B, D | _] = Nodes = atoll_cluster:nodes(C),
    Outside = outside(),
    OsPid = peer:call(Outside, os, getpid, []),
    Script = script([
        {at, 0, {partition, [{nodes, 1, 1}]}}, {at, 0, {slow, {nodes, 4, 4}, 200}}, {at, 0, {pause, {nodes, 3, 3}}},
        {at, {1, min}, heal}
    ]),
    ok = peer:cast(Outside, atoll_chaos, run, [#{nodes => Nodes, script => Script}]),
    ok = await(fun() -> maps:get(D, states(C)) end, paused, ok),
    ?assertEqual(false, call(C, A, net_kernel, connect_node, [B])),
    "" = os:cmd("kill -KILL " ++ OsPid),
    ok = await(fun() -> maps:get(D, states(C)) end, up, ok),
    ok = await(fun() -> call(C, A, net_kernel, connect_node, [B]) end, true, ok).

where_it_could_not_mend_the_log_says_so(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = atoll_cluster:nodes(C),
    {ok, Run} = atoll_chaos:start(#{cluster => C, script => script([
        {at, 0, {kill, {nodes, 1, 1}}}, {at, 0, {cut, {nodes, 3, 3}, {nodes, 2, 2}}}, {at, {1, min}, heal}
    ])}),
    ok = await_event(Run, cut),
    %% Nobody told the run of this one; that the first one is down it knows.
    ok = atoll_cluster:kill(C, B),
    #{events := Events} = atoll_chaos:stop(Run),
    ?assertMatch([#{nodes := [B], target := rest, outcome := failed}], [E || #{nodes := [_]} = E <- events_of(heal, Events)]),
    ?assertEqual([down, down], [maps:get(N, states(C)) || N <- [A, B]]).

two_runs_do_not_undo_each_other(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = atoll_cluster:nodes(C),
    Options = #{cluster => C, script => script([{at, 0, {partition, [{nodes, 1, 1}]}}, {at, {1, min}, heal}])},
    {ok, Run} = atoll_chaos:start(Options),
    ok = await_event(Run, partition),
    {error, Error} = atoll_chaos:start(Options),
    ?assertEqual({taken, A}, Error),
    ?assertMatch({match, _}, re:run(atoll_chaos:format_error(Error), ["^another run is at work on ", atom_to_list(A)])),
    %% The first one does not notice.
    ?assertEqual(false, call(C, A, net_kernel, connect_node, [B])),
    #{} = atoll_chaos:stop(Run),
    ?assertEqual(true, call(C, A, net_kernel, connect_node, [B])),
    {ok, Next} = atoll_chaos:start(Options),
    #{} = atoll_chaos:stop(Next),
    [?assertEqual(undefined, call(C, N, erlang, whereis, [atoll_chaos_agent])) || N <- atoll_cluster:nodes(C)].

no_code_stays_on_a_node_that_had_none(_) ->
    brought(fun(Outside, Run, Ours) ->
        #{events := [_ | _]} = peer:call(Outside, atoll_chaos, stop, [Run], ?CALL_MS),
        ?assertEqual([], Ours())
    end).

no_code_stays_when_the_vm_that_brought_it_is_killed(_) ->
    brought(fun(Outside, _Run, Ours) ->
        "" = os:cmd("kill -KILL " ++ peer:call(Outside, os, getpid, [])),
        ok = await(Ours, [], ok)
    end).

%% Calls Fun while a run kills processes on a node without Atoll, with what tells the modules and
%% the processes that this node has of ours.
brought(Fun) ->
    {ok, Bare, Node} = peer:start(#{
        name => peer:random_name(), host => "127.0.0.1", longnames => true, connection => standard_io,
        args => ["-connect_all", "false"]
    }),
    Outside = outside(),
    Ours = fun() ->
        Names = [M || {M, _} <- peer:call(Bare, code, all_loaded, [])] ++ peer:call(Bare, erlang, registered, []),
        lists:usort([Name || Name <- Names, lists:prefix("atoll_", atom_to_list(Name))])
    end,
    try
        {ok, Run} = peer:call(Outside, atoll_chaos_SUITE, hold, [#{nodes => [Node], rate => 100, kinds => [process]}], ?CALL_MS),
        ok = await(fun() -> [atoll_chaos_agent, atoll_chaos_kill] -- Ours() end, [], ok),
        Fun(Outside, Run, Ours)
    after
        try
            peer:stop(Outside)
        catch
            %% It was killed.
            exit:noproc -> ok
        end,
        peer:stop(Bare)
    end.

%% A run whose caller stays there.
hold(Options) ->
    Self = self(),
    _ = spawn(fun() ->
        Self ! {started, atoll_chaos:start(Options)},
        timer:sleep(infinity)
    end),
    receive
        {started, Started} -> Started
    end.

outside() ->
    {ok, Outside, _} = peer:start(#{
        name => peer:random_name(),
        host => "127.0.0.1",
        longnames => true,
        connection => standard_io,
        args => ["-hidden", "-connect_all", "false", "-pa" | [D || D <- code:get_path(), filelib:is_dir(D), not lists:prefix(code:root_dir(), D)]]
    }),
    Outside.

%% Waiting: nothing tells of another node's or program's state, so it is looked at
%% until the deadline.

await_event(Run, Fault) ->
    await(fun() -> lists:any(fun(#{fault := F}) -> F =:= Fault end, atoll_chaos:events(Run)) end, true, ok).

await(Look, Expected) ->
    await(Look, Expected, Expected).

await(Look, Expected, Answer) ->
    await(Look, Expected, Answer, erlang:monotonic_time(millisecond) + ?DEADLINE_MS).

await(Look, Expected, Answer, Deadline) ->
    case Look() of
        Expected ->
            Answer;
        Seen ->
            case erlang:monotonic_time(millisecond) < Deadline of
                true ->
                    receive
                    after 20 -> await(Look, Expected, Answer, Deadline)
                    end;
                false ->
                    {still, Seen}
            end
    end.
