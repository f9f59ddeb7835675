%% SPDX-License-Identifier: Apache-2.0
%% Names as programs use them, on real nodes: many callers at once, wrong calls, the
%% behaviours of OTP, and `global''s functions.
-module(atoll_name_use_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    two_nodes_at_once_never_wait_for_each_other/1,
    wrong_calls_change_nothing/1,
    a_dead_process_takes_no_name_from_another/1,
    what_is_on_other_nodes_can_be_asked_for/1,
    each_behaviour_is_known_by_a_name/1,
    a_name_is_taken_again_at_once/1,
    a_program_of_global_changes_a_word/1,
    who_is_on_no_member_has_a_name_on_the_caller_s_account/1,
    global_functions_resolve_clashes/1
]).

-define(C, atoll_name_cluster).
%% What no call may take: an operation of a group with its settling, the longest there is.
-define(CALL_MS, 15000).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [
        two_nodes_at_once_never_wait_for_each_other,
        each_behaviour_is_known_by_a_name,
        a_name_is_taken_again_at_once,
        a_program_of_global_changes_a_word,
        who_is_on_no_member_has_a_name_on_the_caller_s_account,
        what_is_on_other_nodes_can_be_asked_for,
        a_dead_process_takes_no_name_from_another,
        wrong_calls_change_nothing,
        global_functions_resolve_clashes
    ].

init_per_suite(Config) ->
    Args = fun([_, _, _, D, E]) ->
        ["-atoll", "global_group", "g", "s_groups", lists:flatten(io_lib:format("~0p", [[{far, [D, E]}]]))]
    end,
    Cluster = ?C:start(5, Args),
    [{cluster, Cluster} | Config].

end_per_suite(Config) ->
    ok = atoll_cluster:stop(?config(cluster, Config)).

%% A, B and C in the group g; D and E in the group far, by configuration.
init_per_testcase(_Case, Config) ->
    C = ?config(cluster, Config),
    [A, B, D | _] = atoll_cluster:nodes(C),
    ok = ?C:group(C, g, [A, B, D]),
    Config.

end_per_testcase(_Case, Config) ->
    C = ?config(cluster, Config),
    #{nodes := Infos} = atoll_cluster:info(C),
    _ = [atoll_cluster:resume(C, N) || #{node := N, state := paused} <- Infos],
    [ok = atoll_cluster:restart(C, N) || #{node := N, state := down} <- Infos],
    [A, _, _, Far | _] = Nodes = atoll_cluster:nodes(C),
    [{ok, _} = ?C:call(C, N, application, ensure_all_started, [atoll]) || N <- Nodes],
    ok = ?C:call(C, Far, s_group, sync, []),
    ok = ?C:call(C, Far, s_group, unregister_name, [far, thing]),
    ok = ?C:call(C, A, s_group, delete_s_group, [g]).

holder(C, Node) ->
    [Pid] = ?C:call(C, Node, atoll_name_witness, holders, [1]),
    Pid.

two_nodes_at_once_never_wait_for_each_other(Config) ->
    C = ?config(cluster, Config),
    [A, B, D | _] = atoll_cluster:nodes(C),
    Calls = atoll_tier:size(name_calls),
    Seed = atoll_tier:seed(?FUNCTION_NAME),
    ok = ?C:group(C, stands, [A, B, D]),
    Started = erlang:monotonic_time(millisecond),
    [{A, OfA}, {B, OfB}] = ?C:each(C, [A, B], atoll_name_traffic, run, fun
        (N) when N =:= A -> [Seed, Calls div 2, 10, B, D];
        (N) when N =:= B -> [Seed, Calls div 2, 10, A, D]
    end),
    Ms = erlang:monotonic_time(millisecond) - Started,
    ?C:report("two nodes, ~b calls in ~b ms, seed ~b~n~0p~n~0p", [Calls, Ms, Seed, OfA, OfB]),
    [
        begin
            ?assertEqual([], maps:get(wrong, Told, [])),
            ?assert(maps:get(longest_of_names, Told) < ?CALL_MS),
            ?assert(maps:get(longest_of_groups, Told) < ?CALL_MS)
        end
     || Told <- [OfA, OfB]
    ],
    %% They agree on groups and names. Two groups without a common node may have one name.
    Groups = lists:usort(lists:append([?C:call(C, N, s_group, own_s_groups, []) || N <- [A, B, D]])),
    [
        begin
            ?assertEqual([Members], lists:usort([?C:call(C, N, s_group, own_nodes, [Group]) || N <- Members])),
            ?assertMatch([_], lists:usort([?C:call(C, N, atoll_name_holder, table, [Group]) || N <- Members]))
        end
     || {Group, Members} <- Groups
    ],
    [ok = ?C:call(C, hd(Members), s_group, delete_s_group, [Group]) || {Group, Members} <- Groups, Group =/= g].

%% Wrong calls

wrong_calls_change_nothing(Config) ->
    C = ?config(cluster, Config),
    [A, B, D, Far, Down] = atoll_cluster:nodes(C),
    Members = [A, B, D],
    [P1, P2, P3] = [holder(C, N) || N <- Members],
    Gone = [begin P = holder(C, N), ok = ?C:call(C, N, atoll_name_holder, end_holder, [P]), P end || N <- [A, B]],
    Foreign = holder(C, Far),
    OfDown = holder(C, Down),
    yes = ?C:call(C, Far, s_group, register_name, [far, thing, Foreign]),
    yes = ?C:call(C, A, s_group, register_name, [g, taken, P1]),
    yes = ?C:call(C, B, s_group, register_name, [g, {other, "one"}, P2]),
    ok = atoll_cluster:kill(C, Down),
    ok = ?C:await(fun() -> lists:member(Down, ?C:call(C, Far, erlang, nodes, [connected])) end, false),
    Register = fun(Caller, Group, Name, Pid) -> {Caller, register_name, [Group, Name, Pid]} end,
    ReRegister = fun(Caller, Group, Name, Pid) -> {Caller, re_register_name, [Group, Name, Pid]} end,
    Nobody = 'nobody@127.0.0.1',
    Wrong =
        [{Call, {no, name_or_pid_already_registered}} || Call <- [Register(N, g, taken, P) || N <- Members, P <- [P1, P2, P3]]] ++
            [{Register(N, g, new, P), {no, name_or_pid_already_registered}} || N <- Members, P <- [P1, P2]] ++
            [{{N, register_name_external, [g, taken, P3]}, {no, the_name_is_already_used}} || N <- Members] ++
            [{ReRegister(N, g, new, P1), {no, pid_is_already_registered}} || N <- Members] ++
            [{ReRegister(N, g, taken, P), {no, pid_is_already_registered}} || N <- Members, P <- [P1, P2]] ++
            [{Register(N, g, new, P), {no, no_process}} || N <- Members, P <- Gone] ++
            [{ReRegister(N, g, new, P), {no, no_process}} || N <- Members, P <- Gone] ++
            [{F(N, g, Name, P), {no, pid_is_not_on_a_member}} || F <- [Register, ReRegister], N <- Members, Name <- [new, taken], P <- [Foreign, OfDown]] ++
            [{F(N, g, binary:copy(<<"x">>, 5000), P3), {no, name_too_large}} || F <- [Register, ReRegister], N <- Members] ++
            [{Register(N, G, new, P3), {no, cannot_register_in_remote_group}} || {N, G} <- [{A, unknown}, {A, far}, {Far, g}, {Far, unknown}, {A, undefined}]] ++
            [{ReRegister(N, G, taken, P3), {no, cannot_re_register_in_remote_group}} || {N, G} <- [{A, unknown}, {Far, g}]] ++
            [{{N, unregister_name, [G, taken]}, {no, cannot_unregister_from_remote_group}} || {N, G} <- [{A, unknown}, {A, far}, {Far, g}]] ++
            [{{N, unregister_name, [g, never]}, ok} || N <- Members] ++
            [{{N, unregister_name_external, [g, never]}, ok} || N <- Members] ++
            [{{N, whereis_name, [G, never]}, undefined} || N <- [A, Far], G <- [g, far, unknown]] ++
            [{{A, whereis_name, [N, g, taken]}, undefined} || N <- [Far, Down, Nobody]] ++
            [{{A, whereis_name, [B, G, never]}, undefined} || G <- [g, unknown]] ++
            [{{A, send, [G, never, hello]}, {badarg, {G, never, hello}}} || G <- [g, far, unknown]] ++
            [{{A, send, [N, g, taken, hello]}, {badarg, {g, taken, hello}}} || N <- [Far, Down, Nobody]] ++
            [{{A, send, [B, g, never, hello]}, {badarg, {g, never, hello}}}] ++
            [{{A, registered_names, [{node, N}]}, []} || N <- [Down, Nobody]] ++
            [{{N, registered_names, [{s_group, G}]}, {error, no_information_about_remote_group}} || {N, G} <- [{A, unknown}, {A, undefined}, {Far, g}]],
    Tables = fun() -> [{?C:call(C, N, atoll_name_witness, table, []), ?C:call(C, N, s_group, own_s_groups, [])} || N <- [Far | Members]] end,
    Before = Tables(),
    lists:foreach(
        fun({{N, F, Args} = Call, Answer}) ->
            ?assertEqual({Call, Answer}, {Call, ?C:call(C, N, s_group, F, Args)}),
            ?assertEqual({Call, Before}, {Call, Tables()})
        end,
        Wrong
    ),
    [?assertEqual([], ?C:call(C, node(P), atoll_name_holder, told, [P])) || P <- [P1, P2, P3, Foreign]],
    %% A silent node holds a reader up for some seconds, and is as one that is down.
    ok = atoll_cluster:pause(C, Far),
    {Us, undefined} = timer:tc(fun() -> ?C:call(C, A, s_group, whereis_name, [Far, far, thing]) end),
    ?assert(Us < 20000000),
    ok = atoll_cluster:resume(C, Far),
    ?assertEqual(Before, Tables()),
    %% What was not wrong is as before.
    ?assertEqual(P1, ?C:call(C, B, s_group, send, [g, taken, hello])),
    ?assertEqual([hello], ?C:call(C, A, atoll_name_holder, told, [P1])).

what_is_on_other_nodes_can_be_asked_for(Config) ->
    C = ?config(cluster, Config),
    [A, B, _, Far, Farther] = atoll_cluster:nodes(C),
    Mine = holder(C, B),
    Foreign = holder(C, Farther),
    yes = ?C:call(C, Far, s_group, register_name, [far, thing, Foreign]),
    yes = ?C:call(C, A, s_group, register_name, [g, thing, Mine]),
    %% A group that A is not in, which it knows by configuration.
    ?assertEqual(Foreign, ?C:call(C, A, s_group, whereis_name, [far, thing])),
    ?assertEqual(Foreign, ?C:call(C, A, s_group, send, [far, thing, one])),
    ?assertEqual([{far, thing}], ?C:call(C, A, s_group, registered_names, [{s_group, far}])),
    %% What a node says of itself.
    ?assertEqual(Foreign, ?C:call(C, A, s_group, whereis_name, [Far, far, thing])),
    ?assertEqual(Mine, ?C:call(C, Far, s_group, whereis_name, [A, g, thing])),
    ?assertEqual(Foreign, ?C:call(C, A, s_group, send, [Far, far, thing, two])),
    ?assertEqual([{far, thing}], ?C:call(C, A, s_group, registered_names, [{node, Far}])),
    ?assertEqual([{g, thing}], ?C:call(C, Far, s_group, registered_names, [{node, B}])),
    %% Over a connection that has to be made for it.
    ok = ?C:await(fun() -> lists:sort(?C:call(C, Farther, atoll_name_holder, told, [Foreign])) end, [one, two]),
    %% A free node may ask as well.
    ok = ?C:call(C, A, s_group, remove_nodes, [g, [B]]),
    ok = ?C:await(fun() -> ?C:call(C, B, s_group, own_s_groups, []) end, []),
    ?assertEqual(Foreign, ?C:call(C, B, s_group, whereis_name, [far, thing])),
    ok = ?C:call(C, Far, s_group, unregister_name, [far, thing]),
    [_ = ?C:call(C, N, erlang, disconnect_node, [F]) || N <- [A, B], F <- [Far, Farther]].

%% Wherever it was, and whoever asks.
a_dead_process_takes_no_name_from_another(Config) ->
    C = ?config(cluster, Config),
    Members = [A, B, D | _] = lists:sublist(atoll_cluster:nodes(C), 3),
    Gone = [begin P = holder(C, N), ok = ?C:call(C, N, atoll_name_holder, end_holder, [P]), P end || N <- [A, B]],
    Holders = [{N, holder(C, N)} || N <- [A, D]],
    [yes = ?C:call(C, A, s_group, register_name, [g, {of_node, N}, P]) || {N, P} <- Holders],
    [
        begin
            Call = {By, re_register_name, [g, {of_node, N}, Dead]},
            ?assertEqual({Call, {no, no_process}}, {Call, ?C:call(C, By, s_group, re_register_name, [g, {of_node, N}, Dead])}),
            [?assertEqual({Call, M, P}, {Call, M, ?C:call(C, M, s_group, whereis_name, [g, {of_node, N}])}) || M <- Members]
        end
     || By <- Members, {N, P} <- Holders, Dead <- Gone
    ].

%% The behaviours of OTP

each_behaviour_is_known_by_a_name(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = atoll_cluster:nodes(C),
    lists:foreach(
        fun({Module, Prefix}) ->
            Via = fun(Name) -> {via, Module, case Prefix of none -> Name; _ -> {Prefix, Name} end} end,
            Top = Via("the top"),
            Children = [{server, Via(<<"server">>)}, {statem, Via({statem, #{1 => 2}})}, {event, Via(1.5)}, {supervisor, Via([below, make_ref()])}],
            Tree = ?C:call(C, A, atoll_name_servers, start_tree, [Top, Children, 0]),
            lists:foreach(
                fun({Id, Name} = Child) ->
                    Pid = ?C:call(C, A, atoll_name_servers, child, [Top, Id]),
                    ?assertEqual({Id, Pid}, ?C:call(C, A, atoll_name_servers, ask, [Id, Name])),
                    ?assertEqual({Id, Pid}, ?C:call(C, B, atoll_name_servers, ask, [Id, Name])),
                    [?assertEqual({error, {already_started, Pid}}, ?C:call(C, N, atoll_name_servers, start_second, [Child])) || N <- [A, B]]
                end,
                Children
            ),
            ok = ?C:call(C, A, atoll_name_servers, stop_tree, [Tree]),
            [ok = ?C:call(C, N, atoll_name_holder, await_table, [g, [], 10000]) || N <- [A, B]]
        end,
        [{atoll_name, g}, {atoll_global, none}]
    ).

%% As many failures as there are kills: one start that finds the name taken is one too many.
a_name_is_taken_again_at_once(Config) ->
    C = ?config(cluster, Config),
    [A, B, D | _] = atoll_cluster:nodes(C),
    Kinds = [server, statem, event, supervisor],
    Via = fun(Name) -> {via, atoll_name, {g, Name}} end,
    Kills = atoll_tier:size(name_kills),
    Tree = ?C:call(C, A, atoll_name_servers, start_tree, [Via(top), [{Kind, Via(Kind)} || Kind <- Kinds], Kills]),
    Times = [
        begin
            Kind = lists:nth(N rem 4 + 1, Kinds),
            {Us, Pid} = timer:tc(fun() -> ?C:call(C, A, atoll_name_servers, kill_child, [Via(top), Kind]) end),
            %% The start was answered when the name was on all members.
            [?assertEqual(Pid, ?C:call(C, M, s_group, whereis_name, [g, Kind])) || M <- [A, B, D]],
            Us
        end
     || N <- lists:seq(1, Kills)
    ],
    ?C:report("a name is taken again after the death of its process: median ~b us, longest ~b", [lists:nth(Kills div 2, lists:sort(Times)), lists:max(Times)]),
    ok = ?C:call(C, A, atoll_name_servers, stop_tree, [Tree]),
    [ok = ?C:call(C, N, atoll_name_holder, await_table, [g, [], 10000]) || N <- [A, B, D]].

%% As global has them

a_program_of_global_changes_a_word(Config) ->
    C = ?config(cluster, Config),
    [A, B, D | _] = atoll_cluster:nodes(C),
    [P1, P2, P3] = [holder(C, N) || N <- [A, B, D]],
    Call = fun(N, F, Args) -> ?C:call(C, N, atoll_global, F, Args) end,
    ?assertEqual(yes, Call(A, register_name, [one, P1])),
    ?assertEqual(no, Call(B, register_name, [one, P2])),
    ?assertEqual(yes, Call(B, register_name, ["two", P2, fun atoll_global:notify_all_name/3])),
    [?assertEqual([P1, P2], [Call(N, whereis_name, [Name]) || Name <- [one, "two"]]) || N <- [A, B, D]],
    [?assertEqual(lists:sort([one, "two"]), Call(N, registered_names, [])) || N <- [A, B, D]],
    ?assertEqual(P2, Call(D, send, ["two", hello])),
    ?assertError({badarg, {nobody, hello}}, try Call(D, send, [nobody, hello]) catch exit:Why -> error(Why) end),
    ?assertEqual([hello], ?C:call(C, B, atoll_name_holder, told, [P2])),
    ?assertEqual(yes, Call(B, re_register_name, [one, P3])),
    ?assertEqual(yes, Call(B, re_register_name, [one, P1, fun global:random_exit_name/3])),
    ?assertEqual(no, Call(B, re_register_name, ["two", P1])),
    [?assertEqual(P1, Call(N, whereis_name, [one])) || N <- [A, B, D]],
    %% It is the same name that the group has.
    ?assertEqual(P1, ?C:call(C, B, s_group, whereis_name, [g, one])),
    ?assertEqual(ok, Call(D, sync, [])),
    [ok = Call(D, unregister_name, [Name]) || Name <- [one, "two", never]],
    [?assertEqual([], Call(N, registered_names, [])) || N <- [A, B, D]].

%% A process on a node outside of the group stands for one of a C node.
who_is_on_no_member_has_a_name_on_the_caller_s_account(Config) ->
    C = ?config(cluster, Config),
    [A, B, D, Far | _] = atoll_cluster:nodes(C),
    Held = fun(Name) -> [?C:call(C, N, s_group, whereis_name, [g, Name]) || N <- [A, B, D]] end,
    [Dies, Stays] = [holder(C, Far) || _ <- [1, 2]],
    yes = ?C:call(C, B, s_group, register_name_external, [g, dies, Dies]),
    yes = ?C:call(C, B, atoll_global, register_name_external, [stays, Stays]),
    ?assertEqual([Dies, Dies, Dies], Held(dies)),
    ?assertEqual([Stays, Stays, Stays], Held(stays)),
    ?assertEqual({no, the_name_is_already_used}, ?C:call(C, A, s_group, register_name_external, [g, dies, Stays])),
    %% It stays where the processes of Atoll on that account's node are started anew.
    [
        begin
            ok = ?C:call(C, B, atoll_barrier, restart_room, [Room]),
            ok = ?C:await(fun() -> {Held(dies), Held(stays)} end, {[Dies, Dies, Dies], [Stays, Stays, Stays]})
        end
     || Room <- [atoll_name, atoll_group, atoll_link]
    ],
    %% The name goes with the process, with the connection of the caller's node, and by hand.
    ok = ?C:call(C, Far, atoll_name_holder, end_holder, [Dies]),
    ok = ?C:await(fun() -> Held(dies) end, [undefined, undefined, undefined]),
    true = ?C:call(C, B, erlang, disconnect_node, [Far]),
    ok = ?C:await(fun() -> Held(stays) end, [undefined, undefined, undefined]),
    yes = ?C:call(C, B, s_group, register_name_external, [g, stays, Stays]),
    ok = ?C:call(C, A, s_group, unregister_name_external, [g, stays]),
    ?assertEqual([undefined, undefined, undefined], Held(stays)),
    %% On a member it is that node's affair.
    Own = holder(C, D),
    yes = ?C:call(C, B, s_group, register_name_external, [g, own, Own]),
    ?assertEqual({no, name_or_pid_already_registered}, ?C:call(C, A, s_group, register_name, [g, other, Own])),
    ok = ?C:call(C, A, s_group, unregister_name, [g, own]).

%% Two parts give one name, each with a function; what becomes of it.
global_functions_resolve_clashes(Config) ->
    C = ?config(cluster, Config),
    [A, B, D | _] = Nodes = lists:sublist(atoll_cluster:nodes(C), 3),
    Rules = [
        {exits, fun atoll_global:random_exit_name/3},
        {notifies, fun global:random_notify_name/3},
        {nobody, fun atoll_global:notify_all_name/3},
        {own, fun atoll_name_witness:first_node/3}
    ],
    ok = ?C:cut(C, [A, B], [D]),
    Given = [
        {Name, [begin P = holder(C, N), yes = ?C:call(C, N, atoll_global, register_name, [Name, P, Rule]), P end || N <- [B, D]]}
     || {Name, Rule} <- Rules
    ],
    ok = ?C:mend(C, [A, B], [D]),
    Held = fun(Name) -> [?C:call(C, N, atoll_global, whereis_name, [Name]) || N <- Nodes] end,
    Settled = fun(Name) -> lists:usort(Held(Name)) end,
    IsAlive = fun(Pid) -> ?C:call(C, node(Pid), erlang, is_process_alive, [Pid]) end,
    Pids = fun(Name) -> proplists:get_value(Name, Given) end,
    [ok = ?C:await(fun() -> length(Settled(Name)) end, 1) || Name <- [exits, notifies, own]],
    ok = ?C:await(fun() -> Settled(nobody) end, [undefined]),
    [Stays] = Settled(exits),
    [Killed] = Pids(exits) -- [Stays],
    ok = ?C:await(fun() -> IsAlive(Killed) end, false),
    ?assert(IsAlive(Stays)),
    [Notifies] = Settled(notifies),
    ?assert(lists:member(Notifies, Pids(notifies))),
    ?assertEqual([hd(Pids(own))], Settled(own)),
    %% Each in the words of `global', once.
    Told = fun(Pid) -> ?C:call(C, node(Pid), atoll_name_holder, told, [Pid]) end,
    [Loser] = Pids(notifies) -- [Notifies],
    ok = ?C:await(fun() -> Told(Loser) end, [{global_name_conflict, notifies}]),
    [One, Other] = Pids(nobody),
    ok = ?C:await(fun() -> {Told(One), Told(Other)} end, {[{global_name_conflict, nobody, Other}], [{global_name_conflict, nobody, One}]}),
    ?assertEqual([[], [], []], [Told(Pid) || Pid <- [Notifies | Pids(own)]]),
    [?assert(IsAlive(Pid)) || Name <- [notifies, nobody, own], Pid <- Pids(Name)],
    [?assertEqual(lists:sort([exits, notifies, own]), ?C:call(C, N, atoll_global, registered_names, [])) || N <- Nodes],
    [ok = ?C:call(C, A, atoll_global, unregister_name, [Name]) || Name <- [exits, notifies, own]].
