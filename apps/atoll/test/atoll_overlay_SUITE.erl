%% SPDX-License-Identifier: Apache-2.0
%% The overlay on real nodes of a stock kernel with -connect_all false, told what to do
%% over their standard input. Eight nodes run hyparview, with the detector as it is by
%% default. Five more have no overlay until a case says which.
-module(atoll_overlay_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    all_know_all_and_views_are_symmetric/1,
    a_broadcast_reaches_everybody_once_and_in_order/1,
    a_sender_that_is_too_fast_is_told/1,
    members_acknowledge_a_broadcast/1,
    who_leaves_is_held_for_no_failure_and_can_come_back/1,
    a_node_that_is_stopped_in_order_leaves/1,
    a_killed_node_is_down_for_all_and_back_in_a_new_life/1,
    a_silent_node_is_down_for_members_and_monitors_in_time/1,
    a_short_pause_harms_nobody/1,
    each_restart_is_a_new_life_and_no_old_message_is_taken_for_new/1,
    a_crashed_overlay_process_comes_back/1,
    who_has_left_stays_out/1,
    an_overlay_needs_a_name/1,
    a_contact_with_a_name_of_the_other_kind_is_refused/1,
    contacts_that_are_there_before_their_overlay_make_no_island/1,
    nobody_is_dead_because_connections_are_full/1,
    a_node_is_alive_where_all_processes_wait_for_their_turn/1,
    who_was_cut_off_while_its_contact_died_is_back/1,
    who_has_no_contact_joins_by_its_group/1,
    a_far_node_is_reached_on_demand/1,
    wrong_calls_are_refused_in_a_sentence/1,
    recorded_events_give_the_same_effects/1,
    a_partly_connected_overlay_refuses_a_full_mesh/1,
    without_an_overlay_calls_say_so/1,
    every_strategy_holds_a_cluster/1,
    groups_are_the_cliques/1,
    sides_that_have_both_changed_a_group_are_one_clique/1,
    trouble_with_dns_takes_no_member_away_and_is_said/1,
    nodes_find_each_other_by_a_source_of_their_own/1,
    a_detector_of_their_own_finds_the_stopped_and_the_killed/1,
    telemetry_is_told_numbers/1,
    all_know_what_a_member_says_of_itself/1
]).

-define(NODES, 8).
-define(CALL_MS, 45000).
%% Who was refused for long is tried again after half a minute.
-define(REFUSED_MS, 40000).

suite() -> [{timetrap, {minutes, 6}}].

all() ->
    [F || {F, 1} <- ?MODULE:module_info(exports), not is_callback(F)].

is_callback(F) ->
    lists:member(F, [init_per_suite, end_per_suite, module_info]).

init_per_suite(Config) ->
    %% So that who has left is soon alone, also where a connection was in use at the first looks.
    Cluster = atoll_overlay_cluster:start(?NODES, hyparview, ["-atoll", "on_demand_linger", "2000", "linger_max", "2000", "group_answer_timeout", "10000"]),
    Small = atoll_cluster_owned:start(#{nodes => 5, connect_all => false, apps => [atoll], args => ["-atoll", "group_answer_timeout", "5000"]}),
    [{cluster, Cluster}, {small, Small} | Config].

end_per_suite(Config) ->
    ok = atoll_cluster:stop(?config(small, Config)),
    ok = atoll_cluster:stop(?config(cluster, Config)).

init_per_testcase(_Case, Config) ->
    ok = atoll_overlay_cluster:settle(?config(cluster, Config)),
    Config.

end_per_testcase(_Case, Config) ->
    atoll_overlay_cluster:mend(?config(cluster, Config)).

call(C, Node, M, F, A) ->
    atoll_cluster:call(C, Node, M, F, A, ?CALL_MS).

all_know_all_and_views_are_symmetric(Config) ->
    C = ?config(cluster, Config),
    Nodes = atoll_cluster:nodes(C),
    [?assertEqual(Nodes, call(C, N, atoll, members, [])) || N <- Nodes],
    %% Views change while nodes mix: one that has just lost a neighbour looks for another.
    ok = atoll_name_cluster:await(
        fun() ->
            ok = atoll_overlay_cluster:await_symmetric(C),
            Views = atoll_overlay_cluster:views(C),
            ?assertEqual([], [Large || {_, View} = Large <- Views, length(View) > 5]),
            {[Small || {_, View} = Small <- Views, length(View) < 2], length(atoll_overlay_cluster:components(Views))}
        end,
        {[], 1}
    ).

a_broadcast_reaches_everybody_once_and_in_order(Config) ->
    C = ?config(cluster, Config),
    Nodes = [A, B | _] = atoll_cluster:nodes(C),
    [ok = call(C, N, atoll_overlay_witness, broadcast, [N, 1, 20]) || N <- [A, B]],
    Sent = [{N, I} || N <- [A, B], I <- lists:seq(1, 20)],
    [ok = call(C, N, atoll_overlay_witness, await_event, [broadcast, #{payload => P}]) || N <- Nodes, P <- [{A, 20}, {B, 20}]],
    [
        begin
            [ok = call(C, N, atoll_overlay_witness, await_event, [broadcast, #{payload => P}]) || P <- Sent],
            Got = [{From, P} || {_, broadcast, #{topic := test, from := From, payload := P}} <- seen(C, N)],
            Of = fun(Sender, Heard) -> [P || {From, P} <- Heard, From =:= Sender] end,
            [?assertEqual({N, Of(S, [{From, P} || {From, _} = P <- Sent])}, {N, Of(S, Got)}) || S <- [A, B]],
            ?assertEqual(length(Sent), length(Got))
        end
     || N <- Nodes
    ].

%% And what was not refused comes to all.
a_sender_that_is_too_fast_is_told(Config) ->
    [First | _] = Nodes = atoll_cluster:nodes(?config(small, Config)),
    C = small(Config, hyparview, #{contacts => [First], broadcast => #{cache_max => 40, keep_ms => 60000}}),
    ok = atoll_overlay_cluster:settle(C),
    Answers = [{I, call(C, First, atoll, broadcast, [test, {fast, I}])} || I <- lists:seq(1, 30)],
    ?assertEqual([{I, ok} || I <- lists:seq(1, 20)] ++ [{I, {error, overloaded}} || I <- lists:seq(21, 30)], Answers),
    [ok = call(C, N, atoll_overlay_witness, await_event, [broadcast, #{payload => {fast, 20}}]) || N <- Nodes],
    [?assertEqual(20, length([P || {_, broadcast, #{payload := {fast, _} = P}} <- seen(C, N)])) || N <- Nodes],
    ?assertMatch(#{overlay := #{broadcasts_refused := 0, broadcast := #{refused := 10}}}, call(C, First, atoll, status, [])),
    %% A process that gets nothing done is asked no more: its messages wait.
    ?assertEqual({error, overloaded}, call(C, First, atoll_overlay_witness, broadcast_to_busy, [])),
    ?assertMatch(#{overlay := #{broadcasts_refused := 1}}, call(C, First, atoll, status, [])),
    _ = small(Config, off, #{broadcast => #{}}).

members_acknowledge_a_broadcast(Config) ->
    [First | _] = All = atoll_cluster:nodes(?config(small, Config)),
    %% Who is silent is not dead for as long as the case takes; who refuses is.
    C = small(Config, hyparview, #{contacts => [First], detector => #{dead_ms => 60000, silent_ms => 60000}}),
    ok = atoll_overlay_cluster:settle(C),
    [A, B, Stopped, Killed | _] = Nodes = lists:sort(All),
    Say = fun(Payload, Options) -> call(C, A, atoll, broadcast, [test, Payload, Options]) end,
    ?assertEqual({ok, Nodes}, Say(all, #{ack => all, timeout => 10000})),
    %% Who is in the answer has it.
    [?assertMatch([_], [P || {_, broadcast, #{payload := all = P}} <- seen(C, N)]) || N <- Nodes],
    {ok, Some} = Say(some, #{ack => 3}),
    ?assertEqual({true, []}, {length(Some) >= 3, Some -- Nodes}),
    ?assertEqual({error, {too_few_members, 5, 6}}, Say(many, #{ack => 6})),
    ok = atoll_cluster:pause(C, Stopped),
    %% The tree may have led over the stopped node, and is mended in this time. Both wait for all of it.
    Late = [atoll_name_cluster:work(fun() -> Say(late, #{ack => Ack, timeout => 6000}) end) || Ack <- [all, 5]],
    ?assertEqual([{error, {unanswered, [Stopped]}}, {error, {acknowledged, 4, 5}}], [atoll_name_cluster:result(Work) || Work <- Late]),
    ok = atoll_cluster:resume(C, Stopped),
    [ok = call(C, N, atoll_overlay_witness, await, [members, Nodes]) || N <- Nodes],
    _ = [dies_before_it_answers(C, Killed, Nodes, Say) || atoll_tier:tier() =:= deep],
    ?assertMatch(#{overlay := #{broadcast := #{acks := #{waiting := 0}}}}, call(C, A, atoll, status, [])),
    %% Without a list of members nobody knows who all are.
    C = small(Config, hyparview, #{contacts => [First], roster => off}),
    ?assertEqual({error, roster_off}, call(C, B, atoll, broadcast, [test, x, #{ack => all}])),
    _ = small(Config, off, #{roster => #{}}).

%% Said when it is known to be dead, long before the time is over.
dies_before_it_answers(C, Killed, Nodes, Say) ->
    ok = atoll_cluster:kill(C, Killed),
    Begun = erlang:monotonic_time(millisecond),
    ?assertEqual({error, {unanswered, [Killed]}}, Say(dead, #{ack => all, timeout => 40000})),
    ?assert(erlang:monotonic_time(millisecond) - Begun < 20000),
    ?assertEqual({ok, Nodes -- [Killed]}, Say(living, #{ack => all, timeout => 10000})).

who_leaves_is_held_for_no_failure_and_can_come_back(Config) ->
    C = ?config(cluster, Config),
    Nodes = [A, B | _] = atoll_cluster:nodes(C),
    Others = Nodes -- [B],
    Life = life(C, B),
    ok = call(C, B, atoll, leave, []),
    [ok = call(C, N, atoll_overlay_witness, await, [members, Others]) || N <- Others],
    ?assertEqual([], call(C, B, atoll, neighbours, [])),
    ?assertEqual(Others, call(C, B, atoll, members, [])),
    ok = call(C, B, atoll_overlay_witness, await_alone, []),
    ok = call(C, B, atoll, join, [A]),
    [ok = call(C, N, atoll_overlay_witness, await, [members, Nodes]) || N <- Nodes],
    ?assert(life(C, B) > Life),
    [?assertEqual([{member_down, left}, member_up], about(B, seen(C, N))) || N <- Others].

a_node_that_is_stopped_in_order_leaves(Config) ->
    C = ?config(cluster, Config),
    Nodes = atoll_cluster:nodes(C),
    B = lists:last(Nodes),
    ok = call(C, B, init, stop, []),
    [ok = call(C, N, atoll_overlay_witness, await, [members, Nodes -- [B]]) || N <- Nodes -- [B]],
    [?assertEqual([{member_down, left}], about(B, seen(C, N))) || N <- Nodes -- [B]],
    ok = atoll_overlay_cluster:await_down(C, B).

a_killed_node_is_down_for_all_and_back_in_a_new_life(Config) ->
    C = ?config(cluster, Config),
    Nodes = atoll_cluster:nodes(C),
    B = lists:nth(4, Nodes),
    Life = life(C, B),
    ok = atoll_cluster:kill(C, B),
    [ok = call(C, N, atoll_overlay_witness, await, [members, Nodes -- [B]]) || N <- Nodes -- [B]],
    ok = atoll_cluster:restart(C, B),
    [ok = call(C, N, atoll_overlay_witness, await, [members, Nodes]) || N <- Nodes],
    ?assert(life(C, B) > Life),
    [?assertEqual([{member_down, dead}, member_up], about(B, seen(C, N))) || N <- Nodes -- [B]].

%% Members and monitors hear of a node that is stopped by a signal, though its socket
%% stays open, and long before the net tick time.
a_silent_node_is_down_for_members_and_monitors_in_time(Config) ->
    C = ?config(cluster, Config),
    Nodes = atoll_cluster:nodes(C),
    B = lists:nth(5, Nodes),
    Others = Nodes -- [B],
    [ok = call(C, N, atoll_overlay_witness, monitor_nodes, [[B]]) || N <- Others],
    Stopped = os:system_time(millisecond),
    ok = atoll_cluster:pause(C, B),
    [ok = call(C, N, atoll_overlay_witness, await_event, [down, #{node => B, reason => noconnection}]) || N <- Others],
    [ok = call(C, N, atoll_overlay_witness, await, [members, Others]) || N <- Others],
    Late = [
        {N, Kind, At - Stopped}
     || N <- Others, {At, Kind, #{node := Of}} <- seen(C, N), Of =:= B,
        Kind =:= down orelse Kind =:= member_down, At - Stopped > 8000
    ],
    ?assertEqual([], Late),
    ok = atoll_cluster:resume(C, B),
    [ok = call(C, N, atoll_overlay_witness, await, [members, Nodes]) || N <- Nodes].

all_know_what_a_member_says_of_itself(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = Nodes = lists:sort(atoll_cluster:nodes(C)),
    Await = fun(Metas) ->
        [?assertEqual({N, ok}, {N, call(C, N, atoll_overlay_witness, await_metas, [Metas])}) || N <- Nodes]
    end,
    Known = fun(Some) -> [{N, maps:get(N, Some, #{})} || N <- Nodes] end,
    Await(Known(#{})),
    ok = call(C, A, atoll, set_meta, [#{rack => 7}]),
    ok = call(C, B, atoll, set_meta, [#{zone => "east"}]),
    Await(Known(#{A => #{rack => 7}, B => #{zone => "east"}})),
    [ok = call(C, N, atoll_overlay_witness, await_event, [member_meta, #{node => A, meta => #{rack => 7}}]) || N <- Nodes],
    %% The process that keeps it is lost, and begins a new life.
    ok = call(C, A, atoll_barrier, restart_room, [atoll_overlay]),
    Await(Known(#{A => #{rack => 7}, B => #{zone => "east"}})),
    %% A new life of the node has what is configured.
    ok = call(C, B, atoll_barrier, restart_with, [meta, #{}]),
    Await(Known(#{A => #{rack => 7}})),
    ok = call(C, A, atoll_barrier, restart_with, [meta, #{rack => 8}]),
    Await(Known(#{A => #{rack => 8}})),
    ok = call(C, A, atoll, set_meta, [#{}]),
    Await(Known(#{})),
    [ok = call(C, N, application, unset_env, [atoll, meta]) || N <- [A, B]],
    %% The application that they subscribed to has ended.
    [ok = call(C, N, atoll_overlay_witness, stop, []) || N <- [A, B]].

a_short_pause_harms_nobody(Config) ->
    C = ?config(cluster, Config),
    Nodes = atoll_cluster:nodes(C),
    B = lists:nth(6, Nodes),
    short_pause(C, B, Nodes -- [B], 5).

%% A machine with other work may make a long one of it, which is no promise: then again.
short_pause(C, B, Others, Times) ->
    [ok = call(C, N, atoll_overlay_witness, monitor_nodes, [[B]]) || N <- Others],
    Began = erlang:monotonic_time(millisecond),
    ok = atoll_cluster:pause(C, B),
    %% How long the fault lasts.
    receive after 2000 -> ok end,
    ok = atoll_cluster:resume(C, B),
    Lasted = erlang:monotonic_time(millisecond) - Began,
    %% What is sent after the pause comes to all; a verdict would have come before.
    ok = call(C, B, atoll_overlay_witness, broadcast, [{after_pause, Times}, 1, 1]),
    [ok = call(C, N, atoll_overlay_witness, await_event, [broadcast, #{payload => {{after_pause, Times}, 1}}]) || N <- Others],
    Harm = [{N, Fired, Told} || N <- Others, {Fired, Told} <- [{call(C, N, atoll_overlay_witness, monitors, []), about(B, seen(C, N))}], {Fired, Told} =/= {[], []}],
    case Harm of
        [] ->
            ok;
        _ ->
            ?assert(Lasted > 3000 andalso Times > 1, {Lasted, Harm}),
            ok = atoll_overlay_cluster:settle(C),
            short_pause(C, B, Others, Times - 1)
    end.

each_restart_is_a_new_life_and_no_old_message_is_taken_for_new(Config) ->
    C = ?config(cluster, Config),
    Nodes = atoll_cluster:nodes(C),
    B = lists:nth(7, Nodes),
    Others = Nodes -- [B],
    %% The load: everybody talks.
    Talk = [{N, call(C, N, atoll_overlay_witness, chatter, [N, 20])} || N <- Others],
    Lives =
        try
            [one_more_life(C, B, hd(Others)) || _ <- lists:seq(1, atoll_tier:size(overlay_lives))]
        after
            %% Or it would be the load of all that follows.
            [true = call(C, N, erlang, exit, [Pid, kill]) || {N, Pid} <- Talk]
        end,
    ?assertEqual(Lives, lists:usort(Lives)),
    ?assert(life(C, B) > lists:last(Lives)),
    [
        begin
            Heard = [Life || {_, broadcast, #{from := From, payload := {{life, Life}, _}}} <- seen(C, N), From =:= B],
            ?assertEqual({N, Heard}, {N, lists:sort(Heard)})
        end
     || N <- Others
    ].

%% B talks until it is killed, and is there again.
one_more_life(C, B, Other) ->
    Life = life(C, B),
    _ = call(C, B, atoll_overlay_witness, chatter, [{life, Life}, 5]),
    ok = call(C, Other, atoll_overlay_witness, await_event, [broadcast, #{payload => {{life, Life}, 10}}]),
    ok = atoll_cluster:kill(C, B),
    ok = atoll_cluster:restart(C, B),
    ok = call(C, B, atoll_overlay_witness, start, []),
    Life.

a_crashed_overlay_process_comes_back(Config) ->
    C = ?config(cluster, Config),
    Nodes = [A, B | _] = atoll_cluster:nodes(C),
    Life = life(C, B),
    ok = call(C, B, atoll_barrier, restart_room, [atoll_overlay]),
    [ok = call(C, N, atoll_overlay_witness, await, [members, Nodes]) || N <- Nodes],
    ?assert(life(C, B) > Life),
    %% Its subscribers are told what it lost, and what it found again.
    ?assertEqual([{member_down, restarted}, member_up], about(A, seen(C, B))),
    %% The connections have stood all the while; when they go, that is heard.
    ok = atoll_cluster:kill(C, B),
    [ok = call(C, N, atoll_overlay_witness, await, [members, Nodes -- [B]]) || N <- Nodes -- [B]],
    ok = atoll_cluster:restart(C, B),
    ok = call(C, A, atoll, join, [B]),
    [ok = call(C, N, atoll_overlay_witness, await, [members, Nodes]) || N <- Nodes].

%% A node that was taken out of service stays out when one of its rooms is lost.
who_has_left_stays_out(Config) ->
    C = ?config(cluster, Config),
    Nodes = [A, B | _] = atoll_cluster:nodes(C),
    Others = Nodes -- [B],
    ok = call(C, B, atoll, leave, []),
    ok = call(C, A, atoll_overlay_witness, await, [members, Others]),
    ok = call(C, B, atoll_barrier, restart_room, [atoll_link]),
    #{overlay := #{leaving := left}} = call(C, B, atoll, status, []),
    ?assertEqual([], call(C, B, atoll, neighbours, [])),
    ?assertEqual({error, left}, call(C, B, atoll, broadcast, [test, gone])),
    ?assertEqual(lists:sort(Others), call(C, A, atoll, members, [])),
    ok = call(C, B, atoll, join, [A]),
    [ok = call(C, N, atoll_overlay_witness, await, [members, Nodes]) || N <- Nodes].

%% The nodes without an overlay begin anew with one. A case that has failed may have left one stopped.
small(Config, Strategy, Settings) ->
    C = ?config(small, Config),
    #{nodes := Infos} = atoll_cluster:info(C),
    _ = [ok = atoll_cluster:resume(C, N) || #{node := N, state := paused} <- Infos],
    _ = [ok = atoll_cluster:restart(C, N) || #{node := N, state := down} <- Infos],
    Default = #{contacts => [], overlay_options => #{}, discovery => [], discovery_interval => 10000, detector => #{}},
    ok = atoll_overlay_cluster:begin_anew(C, maps:to_list(maps:merge(Default#{overlay => Strategy}, Settings))),
    C.

%% VMs that run already, whose overlays start one after the other: who is asked first is
%% there and does not answer.
contacts_that_are_there_before_their_overlay_make_no_island(Config) ->
    [N1, N2, N3, N4, Fifth] = atoll_cluster:nodes(?config(small, Config)),
    Nodes = [N1, N2, N3, N4],
    C = small(Config, hyparview, #{contacts => [N1, N2, N3]}),
    [ok = call(C, N, application, stop, [atoll]) || N <- [Fifth | Nodes]],
    ok = atoll_name_cluster:apart(C, Nodes),
    ok = call(C, N4, application, set_env, [atoll, contacts, [N3]]),
    [{_, ok} = Started || Started <- [{N, call(C, N, application, start, [atoll])} || N <- [N2, N3]]],
    ok = call(C, N4, application, start, [atoll]),
    ok = call(C, N1, application, start, [atoll]),
    [?assertEqual({N, ok}, {N, call(C, N, atoll_overlay_witness, await, [members, Nodes])}) || N <- Nodes],
    ok = call(C, Fifth, application, start, [atoll]).

%% Beats are dropped where there is no room for them. Nobody else watches the three.
nobody_is_dead_because_connections_are_full(Config) ->
    [First | _] = All = atoll_cluster:nodes(?config(small, Config)),
    C = small(Config, hyparview, #{contacts => [First]}),
    {Nodes, Others} = lists:split(3, All),
    [ok = call(C, N, application, stop, [atoll]) || N <- Others],
    ok = atoll_overlay_cluster:settle(C, Nodes),
    Sinks = atoll_name_cluster:each(C, Nodes, atoll_name_bulk, sink, []),
    Ms = 1500 * atoll_tier:size(bulk_s),
    Sent = atoll_name_cluster:each(C, Nodes, atoll_name_bulk, send, fun(N) ->
        [[Sink || {M, Sink} <- Sinks, M =/= N], 16, 8000000, 0, Ms]
    end),
    ct:log("~b MB in ~b ms", [lists:sum([Bytes || {_, Bytes} <- Sent]) div 1000000, Ms]),
    [ok = call(C, N, atoll_name_holder, end_holder, [Sink]) || {N, Sink} <- Sinks],
    ?assertEqual([], [{N, Down} || N <- Nodes, {_, member_down, _} = Down <- seen(C, N)]),
    [?assertEqual(Nodes, call(C, N, atoll, members, [])) || N <- Nodes],
    [ok = call(C, N, application, start, [atoll]) || N <- Others].

%% Longer than the detector takes for a verdict.
a_node_is_alive_where_all_processes_wait_for_their_turn(Config) ->
    [First | _] = Nodes = atoll_cluster:nodes(?config(small, Config)),
    C = small(Config, hyparview, #{contacts => [First]}),
    ok = atoll_overlay_cluster:settle(C, Nodes),
    ok = call(C, lists:last(Nodes), atoll_overlay_witness, busy, [60, 6000]),
    ?assertEqual([], [{N, Down} || N <- Nodes, {_, member_down, _} = Down <- seen(C, N)]),
    [?assertEqual(Nodes, call(C, N, atoll, members, [])) || N <- Nodes].

%% Nobody has a contact but the one that it was told to join by, which is killed for good.
who_was_cut_off_while_its_contact_died_is_back(Config) ->
    C = small(Config, hyparview, #{}),
    [First | Others] = Nodes = atoll_cluster:nodes(C),
    [ok = call(C, N, atoll, join, [First]) || N <- Others],
    [ok = call(C, N, atoll_overlay_witness, await, [members, Nodes]) || N <- Nodes],
    [Lone | Rest] = lists:reverse(Others),
    ok = atoll_name_cluster:cut(C, [Lone], [First | Rest]),
    try
        ok = atoll_cluster:kill(C, First),
        [ok = call(C, N, atoll_overlay_witness, await, [members, lists:sort(Rest)]) || N <- Rest],
        ok = call(C, Lone, atoll_overlay_witness, await_alone, [])
    after
        ok = atoll_name_cluster:mend(C, [Lone], Rest)
    end,
    Back = [{N, call(C, N, atoll_overlay_witness, await, [members, Others, ?REFUSED_MS])} || N <- Others],
    %% The next case has it again, and the two shall be able to connect.
    ok = atoll_cluster:restart(C, First),
    ok = atoll_name_cluster:mend(C, [Lone], [First]),
    ?assertEqual([{N, ok} || N <- Others], Back).

%% As the first node of a cluster when it is started again.
who_has_no_contact_joins_by_its_group(Config) ->
    C = small(Config, hyparview, #{}),
    [First | Others] = Nodes = atoll_cluster:nodes(C),
    [ok = call(C, N, atoll, join, [hd(Others)]) || N <- tl(Others)],
    [ok = call(C, N, atoll_overlay_witness, await, [members, Others]) || N <- Others],
    {ok, team, Nodes} = call(C, hd(Others), s_group, new_s_group, [team, Nodes]),
    [?assertEqual({N, ok}, {N, call(C, N, atoll_overlay_witness, await, [members, Nodes])}) || N <- Nodes],
    ?assertMatch([_ | _], call(C, First, atoll, neighbours, [])),
    ok = call(C, hd(Others), s_group, delete_s_group, [team]).

%% A message to a node that is no neighbour arrives, and a monitor across the
%% connection that it made is true as long as it stands.
a_far_node_is_reached_on_demand(Config) ->
    C = ?config(cluster, Config),
    Nodes = atoll_cluster:nodes(C),
    [{A, Far} | _] = [
        {N, F}
     || N <- Nodes, Neighbours <- [call(C, N, atoll, neighbours, [])], F <- (Nodes -- [N]) -- Neighbours
    ],
    ok = call(C, A, atoll_overlay_witness, monitor_nodes, [[Far]]),
    ?assertEqual(Far, call(C, A, erpc, call, [Far, erlang, node, []])),
    ?assertEqual([], call(C, A, atoll_overlay_witness, monitors, [])).

wrong_calls_are_refused_in_a_sentence(Config) ->
    C = ?config(cluster, Config),
    [A | _] = atoll_cluster:nodes(C),
    [
        begin
            {error, Error} = call(C, A, atoll, F, Args),
            Text = unicode:characters_to_list(atoll:format_error(Error)),
            ?assertEqual({match, []}, {re_run(Text, Said), []})
        end
     || {F, Args, Said} <- [
            {join, [here], "here is not the name of a node"},
            {join, ["a@host"], "\"a@host\" is not the name of a node"},
            {join, [[]], "[] is not the name of a node"},
            {record, [""], "[] is not the path of a folder"},
            {set_meta, [[{rack, 7}]], "the metadata of a node must be a map"},
            {set_meta, [#{note => binary:copy(<<"x">>, 1024)}], "the metadata of a node must be 1024 bytes at most"},
            {record, [17], "17 is not the path of a folder"},
            {join, [['a@h', "b@h"]], "\"b@h\" is not the name of a node"},
            {broadcast, [test, x, #{ack => 0}], "the options of an acknowledged broadcast are ack => all or a number"},
            {broadcast, [test, x, #{ack => 900}], "900 are to acknowledge it, but the cluster has 8 nodes; nothing was sent"},
            {subscribe, [member], "there are no events member; there are member_up,"},
            {subscribe, [[member_up, 7]], "there are no events 7;"}
        ]
    ].

re_run(Text, Said) ->
    case string:prefix(Text, Said) of
        nomatch -> {nomatch, Text};
        _ -> match
    end.

recorded_events_give_the_same_effects(Config) ->
    C = ?config(cluster, Config),
    Nodes = [A, B | _] = atoll_cluster:nodes(C),
    Folder = filename:join(?config(priv_dir, Config), "recorded"),
    {error, not_recording} = call(C, A, atoll, record, [off]),
    ok = call(C, A, atoll, record, [Folder]),
    ok = call(C, B, atoll_overlay_witness, broadcast, [recorded, 1, 5]),
    ok = atoll_cluster:kill(C, B),
    ok = call(C, A, atoll_overlay_witness, await, [members, Nodes -- [B]]),
    {ok, #{link := _, overlay := #{events := Events, lost := 0}, group := _}} = call(C, A, atoll, record, [off]),
    ?assert(Events > 10),
    [
        begin
            File = filename:join(Folder, Room ++ ".rec"),
            {ok, #{protocol := Protocol} = Recording, complete} = atoll_recording:read(File),
            ?assertEqual({Room, ok}, {Room, atoll_protocol:replay(Protocol, Recording)})
        end
     || Room <- ["link", "overlay", "group"]
    ],
    %% What cannot be written is said, and nothing is recorded then.
    {error, Error} = call(C, A, atoll, record, ["/dev/null/recorded"]),
    ?assertMatch("the folder /dev/null/recorded cannot be made: " ++ _, lists:flatten(atoll:format_error(Error))),
    {error, not_recording} = call(C, A, atoll, record, [off]).

a_partly_connected_overlay_refuses_a_full_mesh(Config) ->
    C = ?config(cluster, Config),
    {error, {app_failed, _, atoll, {atoll, {Reason, _}}}} = atoll_cluster:start(#{
        nodes => 1, connect_all => true, apps => [atoll], args => ["-atoll", "overlay", "hyparview"]
    }),
    ?assertEqual({bad_option, overlay, {connect_all, hyparview}}, Reason),
    ?assert(is_pid(C)).

an_overlay_needs_a_name(_Config) ->
    {ok, Peer, nonode@nohost} = peer:start(#{connection => standard_io, wait_boot => ?CALL_MS, args => ["-pa" | code:get_path()]}),
    try
        Call = fun(M, F, A) -> peer:call(Peer, M, F, A, ?CALL_MS) end,
        ok = Call(application, set_env, [atoll, overlay, mesh]),
        {error, {atoll, {Reason, _}}} = Call(application, ensure_all_started, [atoll]),
        ?assertEqual({bad_option, overlay, no_name}, Reason),
        ?assertEqual({error, not_running}, Call(atoll, join, ['a@host'])),
        ?assertEqual({error, not_running}, Call(atoll, subscribe, [all])),
        ?assertEqual({error, not_running}, Call(atoll, record, ["anywhere"])),
        ?assertEqual(not_running, Call(atoll, status, []))
    after
        peer:stop(Peer)
    end.

a_contact_with_a_name_of_the_other_kind_is_refused(_Config) ->
    {ok, Peer, _} = peer:start(#{
        name => peer:random_name(), host => "127.0.0.1", longnames => true, connection => standard_io, wait_boot => ?CALL_MS,
        args => ["-pa" | code:get_path()]
    }),
    try
        Start = fun(Contact) ->
            ok = peer:call(Peer, application, set_env, [atoll, contacts, [Contact]]),
            peer:call(Peer, application, ensure_all_started, [atoll], ?CALL_MS)
        end,
        ?assertMatch({error, {atoll, {{bad_option, contacts, {other_name, 'a@host'}}, _}}}, Start('a@host')),
        ?assertMatch({ok, _}, Start('a@127.0.0.1'))
    after
        peer:stop(Peer)
    end.

without_an_overlay_calls_say_so(Config) ->
    C = small(Config, off, #{}),
    [A | _] = atoll_cluster:nodes(C),
    [
        ?assertEqual({F, {error, overlay_off}}, {F, call(C, A, atoll, F, Args)})
     || {F, Args} <- [{join, ['x@127.0.0.1']}, {leave, []}, {broadcast, [t, p]}, {tell, [x]}]
    ],
    ?assertEqual([], call(C, A, atoll, members, [])),
    ?assertEqual([], call(C, A, atoll, neighbours, [])),
    ?assertMatch(#{overlay := off}, call(C, A, atoll, status, [])).

every_strategy_holds_a_cluster(Config) ->
    Nodes = atoll_cluster:nodes(?config(small, Config)),
    Contacts = #{contacts => lists:sublist(Nodes, 3)},
    Settings = #{
        mesh => Contacts,
        star => Contacts#{overlay_options => #{servers => lists:sublist(Nodes, 2)}},
        static => #{},
        scamp => Contacts
    },
    %% The others are those of atoll_chaos_overlay_SUITE too. A death is found by the detector, whose the star and
    %% scamp have in common.
    {Strategies, Killed} =
        case atoll_tier:tier() of
            fast -> {[star, scamp], [scamp]};
            deep -> {[mesh, star, static, scamp], [mesh, star, static, scamp]}
        end,
    [holds_a_cluster(small(Config, S, maps:get(S, Settings)), S, lists:member(S, Killed)) || S <- Strategies].

holds_a_cluster(C, Strategy, Kill) ->
    Nodes = [A, B | _] = atoll_cluster:nodes(C),
    Ring = lists:zip(Nodes, tl(Nodes) ++ [hd(Nodes)]),
    _ = [ok = call(C, N, atoll, tell, [{join, Next}]) || {N, Next} <- Ring, Strategy =:= static],
    ok = atoll_overlay_cluster:settle(C),
    ok = call(C, A, atoll_overlay_witness, broadcast, [Strategy, 1, 1]),
    [ok = call(C, N, atoll_overlay_witness, await_event, [broadcast, #{payload => {Strategy, 1}}]) || N <- Nodes],
    Others = Nodes -- [B || Kill],
    _ = [ok = atoll_cluster:kill(C, B) || Kill],
    [?assertEqual({Strategy, ok}, {Strategy, call(C, N, atoll_overlay_witness, await, [members, Others])}) || N <- Others],
    #{overlay := #{strategy := #{strategy := Strategy}}} = call(C, A, atoll, status, []).

groups_are_the_cliques(Config) ->
    C = small(Config, cliques, #{}),
    [N1, N2, N3, N4, N5] = Nodes = atoll_cluster:nodes(C),
    {ok, left, [N1, N2, N3]} = call(C, N1, s_group, new_s_group, [left, [N1, N2, N3]]),
    {ok, right, [N3, N4, N5]} = call(C, N5, s_group, new_s_group, [right, [N3, N4, N5]]),
    [
        ?assertEqual(ok, call(C, N, atoll_overlay_witness, await, [neighbours, Neighbours]))
     || {N, Neighbours} <- [{N1, [N2, N3]}, {N3, [N1, N2, N4, N5]}, {N5, [N3, N4]}]
    ],
    [?assertEqual(ok, call(C, N, atoll_overlay_witness, await, [members, Nodes])) || N <- Nodes],
    ok = call(C, N1, s_group, delete_s_group, [left]),
    ?assertEqual(ok, call(C, N1, atoll_overlay_witness, await, [neighbours, []])),
    ?assertEqual(ok, call(C, N3, atoll_overlay_witness, await, [neighbours, [N4, N5]])),
    ?assertEqual(ok, call(C, N5, s_group, delete_s_group, [right])),
    [?assertEqual(ok, call(C, N, atoll_barrier, group, [right, []])) || N <- [N3, N4, N5]].

%% Each side of a partition has added a node: all are neighbours when the sides meet, and nobody
%% is any more when the group is deleted while a node's process of the groups is down.
sides_that_have_both_changed_a_group_are_one_clique(Config) ->
    C = small(Config, cliques, #{}),
    [N1, N2, N3, N4, N5] = Nodes = atoll_cluster:nodes(C),
    {ok, both, [N1, N2, N3]} = call(C, N1, s_group, new_s_group, [both, [N1, N2, N3]]),
    {Left, Right} = {[N1, N4], [N2, N3, N5]},
    ok = atoll_name_cluster:cut(C, Left, Right),
    try
        ?assertEqual({ok, both, [N4]}, call(C, N1, s_group, add_nodes, [both, [N4]])),
        ?assertEqual({ok, both, [N5]}, call(C, N2, s_group, add_nodes, [both, [N5]]))
    after
        ok = atoll_name_cluster:mend(C, Left, Right),
        ok = atoll_name_cluster:reconnect(C, Left, Right)
    end,
    [?assertEqual(ok, call(C, N, atoll_barrier, group, [both, Nodes])) || N <- Nodes],
    [?assertEqual(ok, call(C, N, atoll_overlay_witness, await, [neighbours, Nodes -- [N]])) || N <- Nodes],
    ok = call(C, N1, sys, suspend, [atoll_group]),
    ok = call(C, N5, s_group, delete_s_group, [both]),
    ok = call(C, N1, atoll_barrier, restart_room, [atoll_group]),
    [?assertEqual(ok, call(C, N, atoll_barrier, group, [both, []])) || N <- Nodes],
    [?assertEqual(ok, call(C, N, atoll_overlay_witness, await, [neighbours, []])) || N <- Nodes].

%% Nodes that know of each other by DNS alone; then the server drops the record, is
%% silent, answers garbage, and is well again.
trouble_with_dns_takes_no_member_away_and_is_said(Config) ->
    Server = atoll_dns_server:start(),
    Nodes = atoll_cluster:nodes(?config(small, Config)),
    [Name, _] = string:split(atom_to_list(hd(Nodes)), "@"),
    Source = #{
        name => "app.svc.local",
        node => Name,
        nameservers => [{{127, 0, 0, 1}, atoll_dns_server:port(Server)}],
        timeout => 1000
    },
    ok = atoll_dns_server:set(Server, a, [{records, [{127, 0, 0, 1}]}]),
    C = small(Config, hyparview, #{discovery => [{dns, Source}], discovery_interval => 200}),
    ok = atoll_overlay_cluster:settle(C),
    [
        begin
            ok = atoll_dns_server:set(Server, a, [Step]),
            [ok = call(C, N, atoll_overlay_witness, await_event, [discovery_failed, #{source => {dns, Source}}]) || N <- Nodes],
            [?assertEqual({Step, lists:sort(Nodes)}, {Step, call(C, N, atoll, members, [])}) || N <- Nodes],
            [?assertEqual([], [K || {_, K, _} <- seen(C, N), K =:= member_down]) || N <- Nodes],
            %% Well again, so that the next trouble is said anew.
            ok = atoll_dns_server:set(Server, a, [{records, [{127, 0, 0, 1}]}]),
            [ok = call(C, N, atoll_overlay_witness, await_sources, []) || N <- Nodes],
            [ok = call(C, N, atoll_overlay_witness, forget, []) || N <- Nodes]
        end
     || Step <- [nxdomain, silent, garbage]
    ],
    %% Nobody is found twice, or lost.
    ok = atoll_overlay_cluster:await_symmetric(C),
    _ = small(Config, off, #{}),
    atoll_dns_server:stop(Server).

nodes_find_each_other_by_a_source_of_their_own(Config) ->
    [First | _] = Nodes = atoll_cluster:nodes(?config(small, Config)),
    Source = {atoll_source_probe, #{read => {application, get_env, [kernel, ?FUNCTION_NAME, none]}}},
    Gives = fun(Reading) ->
        [ok = call(?config(small, Config), N, application, set_env, [kernel, ?FUNCTION_NAME, Reading]) || N <- Nodes]
    end,
    Gives({ok, [{atom_to_binary(First), #{}}], []}),
    C = small(Config, hyparview, #{discovery => [Source], discovery_interval => 200}),
    ok = atoll_overlay_cluster:settle(C),
    Gives(garbage),
    Failed = #{source => Source, reason => {failing, {no_reading, garbage}}},
    [?assertEqual(ok, call(C, N, atoll_overlay_witness, await_event, [discovery_failed, Failed])) || N <- Nodes],
    [?assertEqual({N, lists:sort(Nodes)}, {N, call(C, N, atoll, members, [])}) || N <- Nodes],
    _ = small(Config, off, #{}).

a_detector_of_their_own_finds_the_stopped_and_the_killed(Config) ->
    [Stopped, Killed | Others] = Nodes = atoll_cluster:nodes(?config(small, Config)),
    Settings = #{contacts => lists:sublist(Nodes, 3), detector => atoll_detector_plain},
    C = small(Config, hyparview, Settings),
    ok = atoll_overlay_cluster:settle(C),
    %% Who has no neighbour that stays, as those two may have each other alone, is watched by nobody.
    Apart = fun() -> [N || N <- [Stopped, Killed], call(C, N, atoll, neighbours, []) -- [Stopped, Killed] =:= []] end,
    ok = atoll_name_cluster:await(Apart, []),
    %% Who is a neighbour since a moment ago, and was not heard yet, is not this detector's to bury.
    [ok = call(C, N, atoll_overlay_witness, await_heard, []) || N <- Nodes],
    ok = atoll_cluster:pause(C, Stopped),
    ok = atoll_cluster:kill(C, Killed),
    [?assertEqual({N, ok}, {N, call(C, N, atoll_overlay_witness, await, [members, lists:sort(Others)])}) || N <- Others],
    ok = atoll_cluster:resume(C, Stopped),
    ok = atoll_overlay_cluster:await_down(C, Killed),
    Left = lists:sort([Stopped | Others]),
    [?assertEqual({N, ok}, {N, call(C, N, atoll_overlay_witness, await, [members, Left])}) || N <- Left],
    #{overlay := #{detector := #{watched := Watched}}} = call(C, hd(Others), atoll, status, []),
    ?assert(Watched > 0),
    _ = small(Config, off, #{}).

telemetry_is_told_numbers(Config) ->
    [First, Killed | _] = Nodes = atoll_cluster:nodes(?config(small, Config)),
    C = small(Config, off, #{}),
    ok = call(C, First, atoll_telemetry_probe, load, []),
    C = small(Config, mesh, #{contacts => [First]}),
    ok = atoll_overlay_cluster:settle(C),
    ok = call(C, First, atoll, broadcast, [test, <<0:8000>>]),
    Measured = fun(Kind, Some) -> call(C, First, atoll_telemetry_probe, await, [Kind, Some]) end,
    #{bytes := Bytes} = Measured(broadcast, #{topic => test}),
    ?assert(Bytes > 1000 andalso Bytes < 1100),
    Begun = os:system_time(millisecond),
    ok = atoll_cluster:pause(C, Killed),
    #{silence_ms := Silence} = Measured(suspect, #{node => Killed}),
    ?assert(Silence >= 2200 andalso Silence < 10000, Silence),
    #{members := 4, duration_ms := Member} = Measured(member_down, #{node => Killed}),
    #{neighbours := 3, duration_ms := Neighbour} = Measured(neighbour_down, #{node => Killed}),
    #{links := Links, duration_ms := Link, system_time := At} = Measured(link_down, #{node => Killed}),
    ?assert(Member >= 2200 andalso Neighbour >= 2200 andalso Link >= 2200, {Member, Neighbour, Link}),
    ?assert(Links >= 3),
    ?assert(erlang:convert_time_unit(At, native, millisecond) >= Begun),
    Seen = call(C, First, atoll_telemetry_probe, seen, []),
    ?assertEqual(4, lists:max([N || {[atoll, neighbour_up], #{neighbours := N}, #{node := _}} <- Seen])),
    ?assertEqual(5, lists:max([N || {[atoll, member_up], #{members := N}, #{node := _}} <- Seen])),
    ok = atoll_cluster:resume(C, Killed),
    [?assertEqual({N, ok}, {N, call(C, N, atoll_overlay_witness, await, [members, Nodes])}) || N <- Nodes],
    ok = call(C, First, atoll_telemetry_probe, unload, []),
    _ = small(Config, off, #{}).

%% What the witness of N has seen of node B as a member.
about(B, Seen) ->
    [
        case Kind of
            member_up -> member_up;
            member_down -> {member_down, maps:get(reason, Details)}
        end
     || {_, Kind, #{node := Node} = Details} <- Seen,
        Node =:= B,
        Kind =:= member_up orelse Kind =:= member_down
    ].

seen(C, N) -> call(C, N, atoll_overlay_witness, seen, []).

life(C, N) ->
    #{overlay := #{incarnation := Life}} = call(C, N, atoll, status, []),
    Life.
