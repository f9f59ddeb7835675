%% SPDX-License-Identifier: Apache-2.0
%% The program on real nodes, with a server and peer to peer.
-module(adcounter_SUITE).
-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, groups/0, suite/0, init_per_group/2, end_per_group/2]).
-export([
    with_states_all_is_counted_and_disabled/1,
    with_deltas_all_is_counted_and_disabled/1,
    clients_that_are_off_line_count_on/1,
    a_wrong_setting_stops_the_start_with_a_sentence/1,
    too_many_nodes_are_refused_with_a_sentence/1
]).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [too_many_nodes_are_refused_with_a_sentence, {group, peer}, {group, server}].

groups() ->
    [{peer, [], cases(atoll_tier:tier(), peer) ++ [a_wrong_setting_stops_the_start_with_a_sentence]}, {server, [], cases(atoll_tier:tier(), server)}].

cases(fast, peer) -> [clients_that_are_off_line_count_on];
cases(fast, server) -> [with_states_all_is_counted_and_disabled];
cases(deep, _) -> [with_states_all_is_counted_and_disabled, with_deltas_all_is_counted_and_disabled, clients_that_are_off_line_count_on].

%% The process that starts the nodes has to live on.
init_per_group(Mode, Config) ->
    Self = self(),
    Owner = spawn(fun() ->
        Self ! {self(), atoll_bench_adcounter_run:start(#{nodes => atoll_tier:size(adcounter_nodes), mode => Mode}, #{})},
        receive stop -> ok end
    end),
    receive {Owner, {ok, Ready}} -> [{ready, Ready}, {owner, Owner} | Config] after 300000 -> error(late) end.

end_per_group(_, Config) ->
    ok = atoll_bench_adcounter_run:stop(?config(ready, Config)),
    ?config(owner, Config) ! stop,
    ok.

run(Told, Config) ->
    #{nodes := Nodes} = Ready = ?config(ready, Config),
    {ok, Settings} = adcounter_options:check(maps:merge(#{budget => 6 * (length(Nodes) - 1), impression_ms => 150, propagation_ms => 100}, Told)),
    {ok, Result} = atoll_bench_adcounter_run:run(Ready, Settings),
    ct:pal("~p", [Result]),
    ?assertEqual(ok, adcounter_result:judge(Result)),
    #{shown := Shown, counted := Shown, seen := N, clients := N, equal_ms := Ms} = Result,
    ?assert(is_integer(Ms)),
    ?assert(Shown >= map_get(budget, Settings)),
    #{server := #{waiting_max := Waited}} = Result,
    %% Of each client a few: they say no more before they are answered.
    ?assert(Waited =< 8 * N, Waited),
    Result.

with_states_all_is_counted_and_disabled(Config) ->
    #{sent := Sent} = run(#{how => state, ads => 2, budget => 10}, Config),
    ?assertMatch(#{state := _}, Sent),
    ?assertNot(is_map_key(delta, Sent)).

with_deltas_all_is_counted_and_disabled(Config) ->
    ?assertMatch(#{sent := #{delta := _, ack := _}}, run(#{how => delta}, Config)).

clients_that_are_off_line_count_on(Config) ->
    ?assertMatch(#{sent := #{bye := _, hello := _}}, run(#{how => delta, offline => 40, offline_ms => 300, triggers => all}, Config)).

a_wrong_setting_stops_the_start_with_a_sentence(Config) ->
    {error, Sentence} = atoll_bench_adcounter_run:run(?config(ready, Config), (adcounter_options:defaults())#{offline := 95}),
    ?assertNotEqual(nomatch, string:find(Sentence, ": The setting offline of adcounter must be 0 to 90, percent."), Sentence).

%% Nothing is started for it.
too_many_nodes_are_refused_with_a_sentence(_) ->
    {error, Sentence} = atoll_bench_adcounter_run:enough(400, 1000),
    ?assertMatch("400 nodes take 16000 MB of memory, 40 each, and this machine has 1000 MB to give: that is 25 nodes." ++ _, lists:flatten(Sentence)),
    ?assertEqual(ok, atoll_bench_adcounter_run:enough(20, 1000)),
    ?assertEqual(ok, atoll_bench_adcounter_run:enough(400, unknown)),
    {error, _} = atoll_bench_adcounter_run:start(#{nodes => 10000000, mode => peer}, #{}).
