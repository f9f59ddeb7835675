%% SPDX-License-Identifier: Apache-2.0
%% Network coordinates in virtual time: nodes in four regions estimate round trips well
%% after ten minutes of few probes, also where some lie or start again.
-module(atoll_sim_distance_tests).

-include_lib("eunit/include/eunit.hrl").

after_ten_minutes_estimates_are_right_within_a_tenth_test_() ->
    {timeout, 300, fun() ->
        #{error_p50 := Error, between_p50 := Between, known_p50 := KnownError, known := Known, probes_per_minute_max := Probes} =
            atoll_sim_distance:run(#{nodes => atoll_tier:size(distance_nodes), links => 20}),
        ?assert(Error < 0.10),
        ?assert(Between < 0.06),
        ?assert(KnownError < 0.10),
        ?assert(Known > 0.99),
        ?assert(Probes =< 20),
        ?assert(Probes >= 15)
    end}.

one_node_in_twenty_that_lies_does_little_harm_test_() ->
    {timeout, 300, fun() ->
        #{error_p50 := Error} = atoll_sim_distance:run(#{nodes => atoll_tier:size(distance_nodes) div 2, links => 20, liars => 0.05, seed => 2}),
        ?assert(Error < 0.10)
    end}.

a_node_that_starts_again_finds_its_place_and_moves_nobody_test_() ->
    {timeout, 300, fun() ->
        Options = #{nodes => atoll_tier:size(distance_nodes) * 3 div 10, links => 20, seed => 3},
        Settled = atoll_sim_world:run(600000, atoll_sim_distance:world(Options)),
        Before = median(atoll_sim_distance:errors(Options, Settled)),
        Gone = atoll_sim_world:run(610000, atoll_sim_world:kill(n07, Settled)),
        Back = atoll_sim_world:run(730000, atoll_sim_world:start(n07, Gone)),
        ?assert(median(atoll_sim_distance:errors(Options, Back)) < Before + 0.02),
        ?assert(median(atoll_sim_distance:errors_of(n07, Options, Back)) < 0.15)
    end}.

one_seed_is_one_history_test_() ->
    {timeout, 100, fun() ->
        Run = fun() -> maps:remove(wall_ms, atoll_sim_distance:run(#{nodes => 20, links => 6, minutes => 2})) end,
        ?assertEqual(Run(), Run())
    end}.

median(Errors) ->
    lists:nth((length(Errors) + 1) div 2, lists:sort([Error || {_, Error} <- Errors])).
