%% SPDX-License-Identifier: Apache-2.0
%% All reach all over gateways, in virtual time.
-module(atoll_sim_reach_tests).

-include_lib("eunit/include/eunit.hrl").

-define(STAR, #{nodes => 40, group_size => 5, seed => 1, words => 1}).

run(Options) ->
    {ok, Result} = atoll_sim_reach:run(maps:merge(?STAR, Options)),
    Result.

all_reach_all_with_the_connections_of_their_group_test_() ->
    {timeout, 60, fun() ->
        Result = run(#{}),
        %% 40 nodes, and of these 8 times 10 pairs in one group; the 16 gateways have a group of their own.
        ?assertMatch(
            #{
                pairs := 780, all_pairs := true, relayed := 588, refused := 0, lost := 0, groups := 9, gateways := 16,
                connections_max := 18, connections_mesh := 39, hops_max := 3
            },
            Result
        ),
        #{reached := Reached, connections_plain := Plain, connections_mean := Mean, hops_mean := Hops} = Result,
        ?assert(Reached == 1.0),
        ?assert(Plain == 4.0),
        ?assert(Mean == (24 * 4 + 16 * 18) / 40),
        %% Of those 588 pairs 336 have a gateway at one end.
        ?assert(abs(Hops - (336 * 2 + 252 * 3) / 588) < 0.001),
        #{gateway_circuits_mean := Load, gateway_circuits_max := Fullest} = Result,
        %% Each hop but the first is over one gateway more.
        ?assert(abs(Load - (336 + 252 * 2) / 16) < 0.001),
        ?assert(Fullest =< 1.3 * Load)
    end}.

what_takes_as_long_everywhere_takes_as_many_times_as_long_as_there_are_hops_test_() ->
    {timeout, 60, fun() ->
        ?assertMatch(
            #{mesh_ms_p50 := 10, mesh_ms_p99 := 10, round_trip_ms_p50 := 20, round_trip_ms_p99 := 30, first_ms_p99 := 60},
            run(#{latency => {constant, 5}})
        )
    end}.

a_seed_has_one_history_test_() ->
    {timeout, 60, fun() ->
        Essence = fun(Seed) -> maps:without([wall_ms, events_per_s], run(#{nodes => 20, seed => Seed})) end,
        ?assertEqual(Essence(7), Essence(7)),
        ?assertNotEqual(Essence(7), Essence(8))
    end}.

relays_that_are_full_refuse_and_the_pairs_are_not_reached_test_() ->
    {timeout, 60, fun() ->
        #{reached := Reached, refused := Refused, gateway_circuits_max := 10} = run(#{relay_circuits => 10}),
        ?assert(Refused > 0),
        %% 192 pairs have links, and 16 relays room for ten circuits each.
        ?assert(Reached >= 192 / 780 andalso Reached =< (192 + 160) / 780)
    end}.

pairs_are_drawn_where_there_are_too_many_test_() ->
    {timeout, 60, fun() ->
        #{pairs := Pairs, all_pairs := false, reached := Reached} = run(#{nodes => 100, peers => 2}),
        %% Two that draw each other are one.
        ?assert(Pairs > 180 andalso Pairs =< 200),
        ?assert(Reached == 1.0)
    end}.

a_node_that_is_linked_with_all_needs_no_circuit_test() ->
    ?assertMatch(
        #{pairs := 10, relayed := 0, gateways := 0, round_trip_ms_p50 := none, gateway_circuits_max := none},
        run(#{nodes => 5})
    ).

groups_that_cannot_be_made_are_an_error_test() ->
    ?assertMatch({error, _}, atoll_sim_reach:run(#{nodes => 50, group_size => 5, gateways => 6})).
