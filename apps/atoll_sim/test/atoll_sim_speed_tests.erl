%% SPDX-License-Identifier: Apache-2.0
%% What an event costs, without a clock: reductions and words, which are nearly the same
%% each time. What would make every simulation slow is found here: work that grows with the
%% number of nodes, and twice the work.
-module(atoll_sim_speed_tests).

-include_lib("eunit/include/eunit.hrl").

%% Measured on OTP 25: 130 reductions and 430 words.
-define(REDUCTIONS, 200).
-define(WORDS, 600).

an_event_costs_so_much_and_no_more_among_more_nodes_test_() ->
    {timeout, 60, fun() ->
        [
            ?assertMatch({_, {R, W}} when R =< ?REDUCTIONS andalso W =< ?WORDS, {Nodes, cost(Nodes, Ms)})
         || {Nodes, Ms} <- [{50, 20000}, {400, 10000}]
        ]
    end}.

%% Of an event in a cluster at rest, on which everything but the roster runs.
cost(Nodes, Ms) ->
    atoll_sim_cluster:isolated(fun() ->
        {ok, New} = atoll_sim_cluster:new(#{nodes => Nodes, seed => 7, roster => off, settle_ms => 20000}),
        Grown = atoll_sim_cluster:grow(New),
        {Reductions0, Words0} = used(),
        Later = atoll_sim_cluster:wait(Ms, Grown),
        {Reductions, Words} = used(),
        Events = events(Later) - events(Grown),
        {(Reductions - Reductions0) div Events, (Words - Words0) div Events}
    end).

events(Cluster) ->
    maps:get(events, atoll_sim_cluster:counters(Cluster)).

%% What it has allocated: what was collected, in the whole VM, and what is on the heap.
used() ->
    {reductions, Reductions} = process_info(self(), reductions),
    {_, Collected, _} = erlang:statistics(garbage_collection),
    {_, Info} = process_info(self(), garbage_collection_info),
    {Reductions, Collected + proplists:get_value(heap_size, Info) + proplists:get_value(old_heap_size, Info)}.
