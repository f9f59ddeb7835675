%% SPDX-License-Identifier: Apache-2.0
-module(atoll_cluster_os_tests).
-include_lib("eunit/include/eunit.hrl").

stat(Command, Letter) ->
    Middle = lists:join(" ", [integer_to_list(I) || I <- lists:seq(4, 21)]),
    iolist_to_binary(["4711 (", Command, ") ", Letter, " ", Middle, " 987654 23 24\n"]).

the_start_time_is_the_22nd_field_test() ->
    ?assertEqual({$S, 987654}, atoll_cluster_os:parse_stat(stat("beam.smp", "S"))).

a_command_may_hold_blanks_and_brackets_test_() ->
    [?_assertEqual({$T, 987654}, atoll_cluster_os:parse_stat(stat(Command, "T")))
     || Command <- ["a b", "a) R 1", "((", ")", "a\nb", ""]].

this_vm_runs_test() ->
    ?assertEqual(running, atoll_cluster_os:state(atoll_cluster_os:self())).

another_start_time_is_another_process_test() ->
    {Pid, Start} = atoll_cluster_os:self(),
    ?assertEqual(gone, atoll_cluster_os:state({Pid, Start - 1})),
    ?assertEqual(gone, atoll_cluster_os:signal({Pid, Start - 1}, kill)).
