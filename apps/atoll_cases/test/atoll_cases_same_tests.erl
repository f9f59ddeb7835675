%% SPDX-License-Identifier: Apache-2.0
%% That a command and the benchmark of the same name have the same nodes: with other flags of the
%% VM, or other defaults of Atoll, they would measure two things under one name.
-module(atoll_cases_same_tests).

-include_lib("eunit/include/eunit.hrl").

%% A function of the names is as good as what it makes of them.
shown(#{args := Args} = Options) ->
    Options#{args := case is_function(Args) of true -> Args([a@b, c@b, d@b]); false -> Args end}.

aco_and_its_benchmark_have_the_same_nodes_test() ->
    [
        begin
            Point = #{nodes => 7, mode => Mode},
            ?assertEqual(shown(atoll_bench_aco:options(Point)), shown(atoll_cases_aco_run:options(Point)))
        end
     || Mode <- [tl, ml, gr, sr]
    ].

orbit_and_its_benchmark_have_the_same_nodes_test() ->
    [
        begin
            Point = #{nodes => 3, mode => Mode, group_size => 2},
            ?assertEqual(shown(atoll_bench_orbit:options(Point)), shown(atoll_cases_orbit_run:options(Point)))
        end
     || Mode <- [mesh, groups, ring, 'groups-native']
    ].

%% One scheduler would make it a run in sequence.
the_workers_of_one_node_have_all_processors_test() ->
    [?assertMatch(#{args := []}, shown(atoll_cases_orbit_run:options(#{nodes => 1, mode => Mode, group_size => 1}))) || Mode <- [seq, par]].
