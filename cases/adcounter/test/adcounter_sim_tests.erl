%% SPDX-License-Identifier: Apache-2.0
%% The program in virtual time, over both topologies: every client sees every disable, every impression is counted once, and no more are
%% too many than could be.
-module(adcounter_sim_tests).

-include_lib("eunit/include/eunit.hrl").

run(Mode, Told) -> run(Mode, Told, 1).

run(Mode, Told, Seed) ->
    Nodes = atoll_tier:size(adcounter_sim_nodes),
    {ok, Settings} = adcounter_options:check(maps:merge(#{budget => 8 * (Nodes - 1), propagation_ms => 500}, Told)),
    atoll_bench_adcounter_sim:run(#{nodes => Nodes, mode => Mode, seed => Seed, settings => Settings}).

it_comes_out_as_promised_test_() ->
    [
        {lists:flatten(io_lib:format("~p ~0p", [Mode, Told])), {timeout, 600, fun() ->
            Result = run(Mode, Told, atoll_tier:seed({Mode, Told})),
            ?assertEqual({ok, Result}, {adcounter_result:judge(Result), Result}),
            #{shown := Shown, counted := Shown, seen := N, clients := N, equal_ms := Ms} = Result,
            ?assert(is_integer(Ms))
        end}}
     || Mode <- [server, peer],
        Told <- [#{how => state}, #{how => delta}, #{how => delta, offline => 30}, #{how => state, offline => 30, triggers => all}, #{how => delta, ads => 3, budget => 30, buffer_max => 3}]
    ].

bytes(Mode, How) ->
    #{bytes := Bytes} = run(Mode, #{how => How}),
    Bytes.

states_cost_more_than_deltas_and_peers_more_than_a_server_test_() ->
    {timeout, 600, fun() ->
        ?assert(bytes(peer, delta) < bytes(peer, state)),
        ?assert(bytes(server, delta) < bytes(server, state)),
        ?assert(bytes(server, state) < bytes(peer, state)),
        ?assert(bytes(server, delta) < bytes(peer, delta))
    end}.

the_same_seed_is_the_same_run_test_() ->
    {timeout, 600, fun() -> ?assertEqual(run(peer, #{offline => 20}, 5), run(peer, #{offline => 20}, 5)) end}.
