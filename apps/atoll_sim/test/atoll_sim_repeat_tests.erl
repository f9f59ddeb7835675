%% SPDX-License-Identifier: Apache-2.0
%% One seed, one history: the same script gives the same trace, byte by byte, also
%% on another VM, where the names of the nodes came into being in another order and
%% every map with them for keys is walked differently.
-module(atoll_sim_repeat_tests).

-include_lib("eunit/include/eunit.hrl").

-export([digest/3]).

-define(STRATEGIES, [mesh, star, hyparview, cliques, static, scamp]).

one_seed_gives_one_trace_test_() ->
    {timeout, 600, fun() ->
        {ok, Peer, _} = peer:start(#{connection => standard_io, wait_boot => 60000, args => ["-pa" | code:get_path()]}),
        try
            %% They get their numbers in the order in which they are made.
            Nodes = atoll_tier:size(repeat_nodes),
            Names = ["n" ++ string:right(integer_to_list(N), 2, $0) || N <- lists:seq(1, Nodes)],
            _ = [peer:call(Peer, erlang, list_to_atom, [Name], 60000) || Name <- lists:reverse(Names)],
            [
                begin
                    Here = digest(Strategy, Nodes, Seed),
                    atoll_tier:tier() =:= fast orelse ?assertEqual({Strategy, Here}, {Strategy, digest(Strategy, Nodes, Seed)}),
                    There = peer:call(Peer, ?MODULE, digest, [Strategy, Nodes, Seed], 60000),
                    ?assertEqual({Strategy, Here}, {Strategy, There})
                end
             || Strategy <- ?STRATEGIES, Seed <- [atoll_tier:seed(Strategy)]
            ]
        after
            peer:stop(Peer)
        end
    end}.

another_seed_gives_another_trace_test_() ->
    {timeout, 60, ?_assertNotEqual(digest(hyparview, 10, 7), digest(hyparview, 10, 8))}.

%% Of all that happens, messages too, while about everything goes wrong.
digest(Strategy, Nodes, Seed) ->
    Cluster = {cluster, #{nodes => Nodes, strategy => Strategy, contacts => 3, latency => {lognormal, 10, 0.5}}},
    {ok, Script} = atoll_sim_script:check([Cluster | steps()]),
    put(digest, crypto:hash_init(sha256)),
    Trace = fun(Now, Where, Sight) ->
        case atoll_sim_trace:what(Sight) of
            none -> ok;
            What -> put(digest, crypto:hash_update(get(digest), atoll_sim_trace:line(Now, Where, What)))
        end
    end,
    {ok, #{alive := Alive}} = atoll_sim_play:run(Script, #{seed => Seed, trace => Trace, messages => true}),
    {Alive, crypto:hash_final(erase(digest))}.

steps() ->
    [
        {at, {10, s}, {broadcast, {random, 2}, 10, 500}},
        {then, 0, {loss, 0.05}},
        {then, 0, {duplicate, 0.05}},
        {then, 0, {reorder, 0.05, 100}},
        {then, 0, {slow, {random, 1}, 5}},
        {then, {2, s}, {churn, 0.05, {5, s}}},
        {then, {2, s}, {pause, {share, 0.1}, {2, s}}},
        {then, {2, s}, {partition, [{share, 0.3}]}},
        {then, {6, s}, {cut, {random, 3}, {random, 3}}},
        {then, {6, s}, heal},
        {then, {5, s}, {kill, {share, 0.3}}},
        {then, {2, s}, {restart, dead, remembered}},
        {then, {2, s}, {leave, {random, 2}}},
        {then, {2, s}, {every, {jitter, {ramp, {2, s}, 500}, 0.5}, {5, s}, {cut, {random, 2}, {random, 2}, 300}}}
    ].
