%% SPDX-License-Identifier: Apache-2.0
%% What a storm refuses before anything starts.
-module(atoll_bench_storm_tests).

-include_lib("eunit/include/eunit.hrl").

nodes_are_not_killed_faster_than_they_are_back_test() ->
    {error, Sentence} = atoll_bench_storm:start(self(), #{program => orbit, node_every => 0.25}, 1),
    ?assertEqual(
        "a node that is killed is down for a second: one can be killed each second at most, and not every 0.25 s",
        lists:flatten(Sentence)
    ).
