%% SPDX-License-Identifier: Apache-2.0
%% Connections on real nodes: those that a program's plain send makes, and what
%% keeps or ends them. Four nodes on a stock kernel with -connect_all false, told
%% what to do over their standard input.
-module(atoll_link_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    a_plain_send_connects_and_the_connection_goes_when_unused/1,
    a_monitor_keeps_it_while_others_come_and_go/1,
    a_link_keeps_it/1,
    what_pg_knows_of_connected_nodes_does_not_keep_it/1,
    a_hidden_connection_stays/1,
    a_node_without_atoll_keeps_its_connection/1,
    what_was_wanted_meanwhile_is_on_demand_again/1,
    ticks_do_not_keep_it/1,
    a_disconnect_lets_monitors_of_a_silent_node_fire/1,
    what_is_wanted_is_tried_one_at_a_time_until_it_is_back/1,
    a_node_with_another_cookie_is_told_of_once_and_not_flooded/1,
    what_is_recorded_in_a_file_has_the_same_effects_elsewhere/1,
    a_killed_node_leaves_a_recording_that_can_be_read/1
]).

-define(CALL_MS, 30000).
-define(MAX_BYTES, 10000000).
-define(SETTLED, 10).
-define(WANTS, 100).
suite() -> [{timetrap, {minutes, 6}}].

all() ->
    [F || {F, 1} <- ?MODULE:module_info(exports), not is_callback(F)].

is_callback(F) ->
    lists:member(F, [init_per_suite, end_per_suite, module_info]).

init_per_suite(Config) ->
    Cluster = atoll_cluster_owned:start(#{
        nodes => 4,
        connect_all => false,
        apps => [atoll],
        %% Short, so that the tests of closing are quick; and ticks that are more
        %% frequent than looks.
        args =>
            ["-atoll", "on_demand_linger", "50", "linger", "50", "linger_max", "200", "free_group", "off"] ++
                ["-kernel", "net_ticktime", "4", "net_tickintensity", "200"]
    }),
    [{cluster, Cluster} | Config].

end_per_suite(Config) ->
    ok = atoll_cluster:stop(?config(cluster, Config)).

init_per_testcase(_Case, Config) ->
    C = ?config(cluster, Config),
    Nodes = atoll_cluster:nodes(C),
    [ok = call(C, N, atoll_barrier, connected, [[]]) || N <- Nodes],
    [ok = call(C, N, atoll_link_probe, echo, []) || N <- Nodes],
    Config.

end_per_testcase(_Case, Config) ->
    C = ?config(cluster, Config),
    #{nodes := Infos} = atoll_cluster:info(C),
    _ = [atoll_cluster:resume(C, N) || #{node := N, state := paused} <- Infos],
    Nodes = atoll_cluster:nodes(C),
    [{ok, _} = call(C, N, application, ensure_all_started, [atoll]) || N <- Nodes],
    [call(C, N, erlang, disconnect_node, [P]) || N <- Nodes, P <- call(C, N, erlang, nodes, [connected])],
    ok.

call(C, Node, M, F, A) ->
    call(C, Node, M, F, A, ?CALL_MS).

call(C, Node, M, F, A, Ms) ->
    atoll_cluster:call(C, Node, M, F, A, Ms).

a_plain_send_connects_and_the_connection_goes_when_unused(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = atoll_cluster:nodes(C),
    %% The precondition: nothing else closes it, since nobody ever wanted it.
    ?assertEqual([], call(C, A, atoll_link, links, [])),
    ?assertEqual(heard, call(C, A, atoll_link_probe, say, [B, hello])),
    [ok = call(C, N, atoll_barrier, connected, [[]]) || N <- [A, B]],
    [?assertEqual([], call(C, N, atoll_link, links, [])) || N <- [A, B]].

a_monitor_keeps_it_while_others_come_and_go(Config) ->
    C = ?config(cluster, Config),
    [A, B, D | _] = atoll_cluster:nodes(C),
    Watcher = call(C, A, atoll_barrier, monitor_init, [B]),
    ?assertEqual([], call(C, A, atoll_link_probe, rounds, [D, atoll_tier:size(link_rounds), 150], 150000)),
    ok = call(C, A, atoll_barrier, kept, [B]),
    ?assertEqual([B], call(C, A, erlang, nodes, [connected])),
    ?assertEqual(quiet, call(C, A, atoll_barrier, demonitor, [Watcher])),
    ok = call(C, A, atoll_barrier, connected, [[]]).

a_link_keeps_it(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = atoll_cluster:nodes(C),
    Linked = call(C, A, atoll_link_probe, link_to, [B]),
    [ok = call(C, N, atoll_barrier, kept, [P]) || _ <- [1, 2], {N, P} <- [{A, B}, {B, A}]],
    ?assertEqual([B], call(C, A, erlang, nodes, [connected])),
    ok = call(C, A, atoll_link_probe, stop, [Linked]),
    ok = call(C, A, atoll_barrier, connected, [[]]).

what_pg_knows_of_connected_nodes_does_not_keep_it(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = atoll_cluster:nodes(C),
    Started = [{N, call(C, N, pg, start, [?MODULE])} || N <- [A, B]],
    try
        ?assertEqual(heard, call(C, A, atoll_link_probe, say, [B, hello])),
        [ok = call(C, N, atoll_barrier, connected, [[]]) || N <- [A, B]]
    after
        [true = call(C, N, erlang, exit, [Scope, kill]) || {N, {ok, Scope}} <- Started]
    end.

a_hidden_connection_stays(Config) ->
    C = ?config(cluster, Config),
    [A, B, D | _] = atoll_cluster:nodes(C),
    true = call(C, A, net_kernel, hidden_connect_node, [B]),
    ?assertEqual([B], call(C, A, erlang, nodes, [hidden])),
    [ok = call(C, N, atoll_barrier, kept, [P]) || _ <- [1, 2, 3], {N, P} <- [{A, B}, {B, A}]],
    %% Meanwhile one that is not hidden has gone.
    ?assertEqual(heard, call(C, A, atoll_link_probe, say, [D, hello])),
    ok = call(C, A, atoll_barrier, connected, [[B]]),
    ?assertEqual([B], call(C, A, erlang, nodes, [hidden])).

a_node_without_atoll_keeps_its_connection(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = atoll_cluster:nodes(C),
    ok = call(C, B, application, stop, [atoll]),
    ?assertEqual(heard, call(C, A, atoll_link_probe, say, [B, hello])),
    [ok = call(C, A, atoll_barrier, kept, [B]) || _ <- [1, 2]],
    ?assertEqual([B], call(C, A, erlang, nodes, [connected])).

what_was_wanted_meanwhile_is_on_demand_again(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = atoll_cluster:nodes(C),
    Watcher = call(C, A, atoll_barrier, monitor_init, [B]),
    Owner = call(C, A, atoll_link_probe, want, [B]),
    ?assertMatch([#{phase := held, wanted_by := 1}], call(C, A, atoll_link, links, [])),
    ?assertEqual(quiet, call(C, A, atoll_barrier, demonitor, [Watcher])),
    %% The other end looks, and is told that it is wanted.
    ok = call(C, B, atoll_barrier, kept, [A]),
    ?assertEqual([B], call(C, A, erlang, nodes, [connected])),
    ok = call(C, A, atoll_link_probe, stop, [Owner]),
    [ok = call(C, N, atoll_barrier, connected, [[]]) || N <- [A, B]].

%% Two seconds between looks: each has some hundred ticks in it.
ticks_do_not_keep_it(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = Nodes = atoll_cluster:nodes(C),
    [ok = set_on_demand(C, N, 2000) || N <- Nodes],
    ?assertEqual(heard, call(C, A, atoll_link_probe, say, [B, hello])),
    #{payload := Payload} = call(C, A, atoll_link_probe, settled, [B, ?SETTLED]),
    ok = call(C, B, atoll_barrier, connected, [[A]]),
    %% The precondition: packets that are no payload.
    ?assertMatch(#{payload := Payload}, call(C, A, atoll_link_probe, more_packets, [B])),
    ok = call(C, A, atoll_barrier, connected, [[]]),
    [ok = set_on_demand(C, N, 50) || N <- Nodes],
    ok.

set_on_demand(C, N, Ms) ->
    ok = call(C, N, application, stop, [atoll]),
    ok = call(C, N, application, set_env, [atoll, on_demand_linger, Ms]),
    call(C, N, application, start, [atoll]).

a_disconnect_lets_monitors_of_a_silent_node_fire(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = atoll_cluster:nodes(C),
    Watcher = call(C, A, atoll_link_probe, watch_for_cut, [B]),
    %% With nothing on its way to it, and with all buffers full.
    ok = atoll_cluster:pause(C, B),
    prompt(call(C, A, atoll_link_probe, cut, [Watcher])),
    ok = atoll_cluster:resume(C, B),
    [ok = call(C, N, atoll_barrier, connected, [[]]) || N <- [A, B]],
    Again = call(C, A, atoll_link_probe, watch_for_cut, [B]),
    Flood = call(C, A, atoll_barrier, flood, [B]),
    ok = atoll_cluster:pause(C, B),
    ok = busy(C, A, B),
    prompt(call(C, A, atoll_link_probe, cut, [Again])),
    ok = atoll_cluster:resume(C, B),
    ok = call(C, A, atoll_barrier, end_flood, [Flood]).

%% Whoever waits for it does not wait long enough for the ticks to find it.
prompt({Reason, Ms}) ->
    ct:pal("~p after ~b ms", [Reason, Ms]),
    ?assertEqual(noconnection, Reason).

%% The connection takes no more.
busy(C, A, B) ->
    case call(C, A, erlang, send, [{nobody, B}, anything, [nosuspend, noconnect]]) of
        nosuspend -> ok;
        ok -> busy(C, A, B)
    end.

what_is_wanted_is_tried_one_at_a_time_until_it_is_back(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = atoll_cluster:nodes(C),
    Subscribers = call(C, A, atoll_link_probe, monitors, []),
    Owner = call(C, A, atoll_link_probe, want, [B]),
    ok = call(C, A, atoll_barrier, connected, [[B]]),
    ok = atoll_cluster:pause(C, B),
    ok = call(C, A, atoll_link, disconnect, [B]),
    ok = call(C, A, atoll_barrier, connected, [[]]),
    %% The node accepts, and never answers. Whatever is said meanwhile, one attempt
    %% is under way, for one owner.
    lists:foreach(
        fun(_) ->
            ok = call(C, A, atoll_link, disconnect, [B]),
            Other = call(C, A, atoll_link_probe, want, [B]),
            ok = call(C, A, atoll_link_probe, stop, [Other]),
            ?assert(call(C, A, atoll_link_probe, monitors, []) =< Subscribers + 2)
        end,
        lists:seq(1, 100)
    ),
    ok = atoll_cluster:resume(C, B),
    ok = call(C, A, atoll_barrier, connected, [[B]]),
    ok = call(C, A, atoll_link_probe, stop, [Owner]),
    ok = call(C, A, atoll_barrier, connected, [[]]).

a_node_with_another_cookie_is_told_of_once_and_not_flooded(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = atoll_cluster:nodes(C),
    Cookie = call(C, B, erlang, get_cookie, []),
    true = call(C, B, erlang, set_cookie, [A, another]),
    ok = call(C, B, atoll_link_probe, count_errors, []),
    {refused, 1, Owner} = call(C, A, atoll_link_probe, refused, [B, ?WANTS]),
    true = call(C, B, erlang, set_cookie, [A, Cookie]),
    ok = call(C, A, atoll_barrier, connected, [[B]]),
    %% It logs one for each attempt.
    Errors = call(C, B, atoll_link_probe, errors, []),
    ok = call(C, A, atoll_link_probe, stop, [Owner]),
    ?assert(Errors >= 2 andalso Errors =< 8).

%% Recording

what_is_recorded_in_a_file_has_the_same_effects_elsewhere(Config) ->
    C = ?config(cluster, Config),
    [A, B, D | _] = Nodes = atoll_cluster:nodes(C),
    [ok = record(C, N, Config) || N <- Nodes],
    Owner = call(C, A, atoll_link_probe, want, [B]),
    ?assertEqual([], call(C, A, atoll_link_probe, rounds, [D, 5, 150])),
    ok = call(C, A, atoll_link_probe, stop, [Owner]),
    [ok = call(C, N, atoll_barrier, connected, [[]]) || N <- Nodes],
    [
        begin
            {ok, #{events := Count, lost := 0, bytes := Bytes}} = call(C, N, atoll_interpreter, record, [atoll_link, off]),
            ?assertEqual(Bytes, filelib:file_size(file(N, Config))),
            {ok, #{protocol := atoll_link_core, node := N, events := Events} = Read, complete} =
                atoll_recording:read(file(N, Config)),
            ?assertEqual(Count, length(Events)),
            ?assertEqual(N =:= A orelse N =:= B orelse N =:= D, Count > 5),
            Recording = maps:with([protocol, state, events, lost], Read),
            ?assertEqual(ok, atoll_protocol:replay(atoll_link_core, Recording))
        end
     || N <- Nodes
    ].

a_killed_node_leaves_a_recording_that_can_be_read(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = atoll_cluster:nodes(C),
    ok = record(C, B, Config),
    ?assertEqual([], call(C, A, atoll_link_probe, rounds, [B, 15, 50], 60000)),
    ok = atoll_cluster:kill(C, B),
    ok = atoll_cluster:restart(C, B),
    {ok, #{events := Events} = Read, cut} = atoll_recording:read(file(B, Config)),
    ct:pal("~b events are left", [length(Events)]),
    ?assert(length(Events) > 10),
    Recording = maps:with([protocol, state, events, lost], Read),
    ?assertEqual(ok, atoll_protocol:replay(atoll_link_core, Recording)).

record(C, N, Config) ->
    call(C, N, atoll_interpreter, record, [atoll_link, {file, file(N, Config), ?MAX_BYTES}]).

file(N, Config) ->
    filename:join(?config(priv_dir, Config), atom_to_list(N) ++ ".rec").
