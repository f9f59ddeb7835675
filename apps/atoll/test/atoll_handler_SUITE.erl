%% SPDX-License-Identifier: Apache-2.0
%% Handlers of broadcasts on real nodes: a program on each has them in its supervision tree.
-module(atoll_handler_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    who_comes_late_has_the_state/1,
    a_killed_handler_gets_its_state_again/1,
    the_sides_of_a_partition_become_equal/1,
    a_slow_handler_holds_up_nobody_and_its_queue_is_bounded/1,
    a_value_that_a_handler_crashes_on_is_told_to_nobody/1,
    new_values_are_told_to_subscribers/1,
    handlers_outlive_the_process_of_the_overlay/1,
    handlers_end_with_the_application/1,
    wrong_uses_are_refused_in_a_sentence/1
]).

-define(NODES, 4).
-define(PROBE, atoll_handler_probe).
-define(REGISTERS, atoll_handler_registers).
-define(CALL_MS, 45000).

suite() -> [{timetrap, {minutes, 3}}].

all() ->
    [F || {F, 1} <- ?MODULE:module_info(exports), not is_callback(F)].

is_callback(F) ->
    lists:member(F, [init_per_suite, end_per_suite, module_info]).

init_per_suite(Config) ->
    [{cluster, atoll_overlay_cluster:start(?NODES, hyparview, [])} | Config].

end_per_suite(Config) ->
    ok = atoll_cluster:stop(?config(cluster, Config)).

%% The program has ended on all nodes before it starts on the first again, so nobody has anything
%% but broadcasts that come late: each case has keys of its own.
init_per_testcase(_Case, Config) ->
    C = ?config(cluster, Config),
    ok = atoll_overlay_cluster:settle(C),
    on(C, atoll_cluster:nodes(C), stop, []),
    on(C, atoll_cluster:nodes(C), start, [#{}]),
    Config.

end_per_testcase(_Case, Config) ->
    atoll_overlay_cluster:mend(?config(cluster, Config)).

call(C, Node, M, F, A) ->
    atoll_cluster:call(C, Node, M, F, A, ?CALL_MS).

on(C, Nodes, F, Args) ->
    ?assertEqual([], [A || {_, Answer} = A <- atoll_overlay_cluster:each(C, Nodes, ?PROBE, F, Args), Answer =/= ok]).

pid(C, Node, Name) ->
    call(C, Node, erlang, whereis, [Name]).

%% A handler that was not there, and a node that was not.
who_comes_late_has_the_state(Config) ->
    C = ?config(cluster, Config),
    [A, B, N | _] = Nodes = atoll_cluster:nodes(C),
    on(C, [B], stop, []),
    ok = atoll_cluster:kill(C, N),
    on(C, [A], put, [1, 250]),
    on(C, Nodes -- [B, N], await, [lists:seq(1, 250)]),
    ok = atoll_cluster:restart(C, N),
    on(C, [B, N], start, [#{}]),
    on(C, Nodes, await, [lists:seq(1, 250)]),
    ?assertEqual({ok, {value, 7}}, call(C, N, ?REGISTERS, get, [7])),
    ?assertEqual(error, call(C, N, ?REGISTERS, get, [251])).

a_killed_handler_gets_its_state_again(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = Nodes = atoll_cluster:nodes(C),
    on(C, [A], put, [1001, 1030]),
    on(C, Nodes, await, [lists:seq(1001, 1030)]),
    on(C, [A], await_restart, [?REGISTERS]),
    on(C, [A], await, [lists:seq(1001, 1030)]),
    %% And goes on.
    on(C, [B], put, [1031, 1032]),
    on(C, Nodes, await, [lists:seq(1001, 1032)]).

the_sides_of_a_partition_become_equal(Config) ->
    C = ?config(cluster, Config),
    [A, B, N, M] = Nodes = atoll_cluster:nodes(C),
    {Left, Right} = {[A, B], [N, M]},
    ok = atoll_name_cluster:cut(C, Left, Right),
    try
        on(C, [A], put, [2001, 2010]),
        on(C, [M], put, [2011, 2020]),
        on(C, Left, await, [lists:seq(2001, 2010)]),
        on(C, Right, await, [lists:seq(2011, 2020)])
    after
        ok = atoll_name_cluster:mend(C, Left, Right),
        ok = atoll_name_cluster:reconnect(C, Left, Right),
        ok = call(C, A, atoll, join, [N])
    end,
    on(C, Nodes, await, [lists:seq(2001, 2020)]).

a_slow_handler_holds_up_nobody_and_its_queue_is_bounded(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = Nodes = atoll_cluster:nodes(C),
    on(C, [B], stop, []),
    on(C, [B], start, [#{queue_max => 20}]),
    ok = call(C, B, sys, suspend, [?REGISTERS]),
    on(C, [A], put, [3001, 3200]),
    on(C, Nodes -- [B], await, [lists:seq(3001, 3200)]),
    %% What else of the overlay goes to B comes there.
    ok = call(C, A, atoll_overlay_witness, broadcast, [beside, 1, 1]),
    ok = call(C, B, atoll_overlay_witness, await_event, [broadcast, #{payload => {beside, 1}}]),
    %% Twenty, and what neighbours ask.
    ?assert(call(C, B, ?PROBE, waiting, [?REGISTERS]) =< 30),
    ok = call(C, B, sys, resume, [?REGISTERS]),
    on(C, [B], await, [lists:seq(3001, 3200)]),
    #{dropped := Dropped} = Status = call(C, B, atoll_handler, status, [?REGISTERS]),
    ?assert(Dropped >= 180, Status).

%% Who puts it learns of it; the handler there has its state again, and no other one has crashed.
a_value_that_a_handler_crashes_on_is_told_to_nobody(Config) ->
    C = ?config(cluster, Config),
    [A | Others] = Nodes = atoll_cluster:nodes(C),
    Set = atoll_handler_set,
    ok = call(C, A, Set, add, [tea]),
    Pids = [{N, pid(C, N, Set)} || N <- Nodes],
    ?assertExit(_, call(C, A, atoll_handler, put, [Set, tea, nonsense])),
    ok = call(C, A, ?PROBE, restarted, [Set, proplists:get_value(A, Pids)]),
    %% What is told after it has come, and it has not.
    on(C, [A], put, [4001, 4001]),
    on(C, Nodes, await, [[4001]]),
    ?assertEqual(Others, [N || {N, Pid} <- Pids, pid(C, N, Set) =:= Pid]).

new_values_are_told_to_subscribers(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = atoll_cluster:nodes(C),
    ok = call(C, B, ?PROBE, listen, [atoll_handler_set]),
    ok = call(C, A, atoll_handler_set, add, [coffee]),
    ok = call(C, A, atoll_handler_set, add, [coffee]),
    ok = call(C, A, atoll_handler_set, add, [milk]),
    ?assertEqual([coffee, milk], call(C, B, ?PROBE, heard, [milk])).

handlers_outlive_the_process_of_the_overlay(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = Nodes = atoll_cluster:nodes(C),
    on(C, [A], put, [5001, 5005]),
    on(C, [B], await, [lists:seq(5001, 5005)]),
    Pid = pid(C, B, ?REGISTERS),
    ok = call(C, B, atoll_barrier, restart_room, [atoll_overlay]),
    on(C, [A], put, [5006, 5010]),
    on(C, Nodes, await, [lists:seq(5001, 5010)]),
    on(C, [B], put, [5011, 5012]),
    on(C, Nodes, await, [lists:seq(5001, 5012)]),
    ?assertEqual(Pid, pid(C, B, ?REGISTERS)).

handlers_end_with_the_application(Config) ->
    C = ?config(cluster, Config),
    N = lists:last(atoll_cluster:nodes(C)),
    ?assertEqual({shutdown, not_running}, call(C, N, ?PROBE, end_of, [?REGISTERS])),
    ?assertEqual({error, not_running}, call(C, N, atoll_handler, start_link, [other, atoll_handler_set, []])),
    ok = call(C, N, application, start, [atoll]).

wrong_uses_are_refused_in_a_sentence(Config) ->
    C = ?config(cluster, Config),
    ?assertEqual(
        [
            {{no_module, handler, no_such_module, []}, "there is no module no_such_module that would be a handler"},
            {
                {lacks, handler, maps, [{digest, 1}, {init, 1}, {merge, 3}, {since, 2}]},
                "the module maps is no handler: it lacks digest/1, init/1, merge/3, since/2"
            },
            {{bad_option, piece_max, {not_a, pos_integer, 0}}, "the option piece_max must be a whole number from 1 to 2147483647, not 0"},
            {{bad_option, tea, unknown}, "there is no option tea"},
            {{no_handler, other}, "there is no handler other on this node"},
            {{no_handler, other}, "there is no handler other on this node"}
        ],
        call(C, hd(atoll_cluster:nodes(C)), ?PROBE, refused, [])
    ).
