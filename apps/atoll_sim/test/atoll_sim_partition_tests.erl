%% SPDX-License-Identifier: Apache-2.0
%% What a partition leaves behind: nothing.
-module(atoll_sim_partition_tests).

-include_lib("eunit/include/eunit.hrl").

-define(NODES, 60).
-define(APART, 20).

after_a_partition_nobody_is_mourned_any_more_test_() ->
    [
        {lists:flatten(io_lib:format("~p, seed ~b", [Strategy, Seed])), {timeout, 60, fun() -> heals(Strategy, Seed) end}}
     || {Strategy, Seeds} <- [{hyparview, 4}, {mesh, 2}, {scamp, 2}], Seed <- atoll_sim_seeds:of_run(Strategy, Seeds)
    ].

heals(Strategy, Seed) ->
    {ok, Cluster} = atoll_sim_cluster:new(#{nodes => ?NODES, strategy => Strategy, seed => Seed, settle_ms => 30000}),
    {Apart, Grown} = atoll_sim_cluster:random(?APART, atoll_sim_cluster:names(Cluster), atoll_sim_cluster:grow(Cluster)),
    Others = atoll_sim_cluster:names(Grown) -- Apart,
    Split = atoll_sim_cluster:wait(30000, set({partition, [Apart, Others]}, Grown)),
    Healed = atoll_sim_cluster:wait(60000, set(heal, Split)),
    Mourning = {
        fun
            (_, _, {notice, {dead, _, _}}, Count) -> Count + 1;
            (_, _, _, Count) -> Count
        end,
        0
    },
    End = atoll_sim_cluster:wait(240000, atoll_sim_cluster:watch(Mourning, Healed)),
    ?assertEqual(0, atoll_sim_cluster:watched(End)),
    Graph = atoll_sim_cluster:neighbours(End),
    ?assert(atoll_sim_graph:connected(Graph) == 1),
    ?assert(atoll_sim_graph:symmetric(Graph) == 1),
    %% What a node takes for its links are its links.
    World = atoll_sim_cluster:world(End),
    [
        begin
            #{links := Links} = atoll_overlay_core:summary(atoll_sim_world:state(Name, World)),
            ?assertEqual({Name, length(atoll_sim_world:links(Name, World))}, {Name, Links})
        end
     || Name <- atoll_sim_world:alive(World)
    ].

set(Setting, Cluster) ->
    atoll_sim_cluster:update(fun(World) -> atoll_sim_world:set(Setting, World) end, Cluster).
