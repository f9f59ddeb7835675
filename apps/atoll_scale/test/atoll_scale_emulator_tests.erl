%% SPDX-License-Identifier: Apache-2.0
%% What an emulator counts of itself.
-module(atoll_scale_emulator_tests).

-include_lib("eunit/include/eunit.hrl").

states(Gc, Emulator, Sleep) ->
    [
        #{type => scheduler, id => 1, counters => #{gc => Gc, emulator => Emulator, sleep => Sleep, port => 0}},
        #{type => dirty_cpu_scheduler, id => 1, counters => #{gc => 10 * Gc, emulator => 0, sleep => Sleep}},
        %% They collect nothing, and wait for files.
        #{type => async, id => 1, counters => #{gc => 0, emulator => 0, other => 100 * Emulator, sleep => 0}}
    ].

garbage_collection_is_a_share_of_the_work_and_not_of_the_time_test() ->
    ?assertEqual(11 / 20, atoll_scale_emulator:collecting(states(5, 1, 1000), states(6, 10, 9000))),
    ?assertEqual(none, atoll_scale_emulator:collecting(states(5, 1, 1000), states(5, 1, 2000))),
    ?assertEqual(none, atoll_scale_emulator:collecting([], states(5, 1, 1000))).

locks_are_told_by_name_the_longest_waits_first_test() ->
    Stat = fun(Tries, Collisions, Ns) -> {{"x.c", 7}, {Tries, Collisions, {0, Ns, Collisions}}, {0, 0}} end,
    Data = [{duration, {2, 0}}, {locks, [
        {run_queue, 1, rw_mutex, [Stat(10, 1, 100_000_000), Stat(5, 0, 0)]}, {run_queue, 2, rw_mutex, [Stat(10, 4, 100_000_000)]},
        {pollset, 1, mutex, [Stat(7, 7, 1_500_000_000)]}, {quiet, 1, mutex, [Stat(99, 0, 0)]}
    ]}],
    ?assertEqual([
        #{name => <<"pollset">>, share => 0.75, collisions => 7, tries => 7}, #{name => <<"run_queue">>, share => 0.1, collisions => 5, tries => 25}
    ], atoll_scale_emulator:locks(Data)).
