%% SPDX-License-Identifier: Apache-2.0
%% Islands in a simulated cluster find each other again.
-module(atoll_sim_discovery_tests).

-include_lib("eunit/include/eunit.hrl").

-define(SECONDS(N, Test), {timeout, N, fun() -> atoll_sim_cluster:isolated(fun() -> Test end) end}).
-define(NODES, 60).

cluster() -> cluster(#{}).

cluster(Discovery) ->
    atoll_sim_cluster:grow(new(Discovery)).

new(Discovery) ->
    {ok, Cluster} = atoll_sim_cluster:new(
        #{nodes => ?NODES, contacts => 4, seed => 7, broadcast => off, roster => off, discovery => Discovery}
    ),
    Cluster.

world(Cluster) -> atoll_sim_cluster:world(Cluster).

do(Fun, Cluster) -> atoll_sim_cluster:update(Fun, Cluster).

pass(Ms, Cluster) ->
    do(fun(W) -> atoll_sim_world:run(atoll_sim_world:now(W) + Ms, W) end, Cluster).

%% The sizes of the overlay's components, a link counting if either end has it.
islands(Cluster) ->
    Lists = atoll_sim_cluster:neighbours(Cluster),
    Graph = digraph:new(),
    try
        _ = [digraph:add_vertex(Graph, Node) || {Node, _} <- Lists],
        _ = [
            digraph:add_edge(Graph, Node, Other)
         || {Node, Neighbours} <- Lists, Other <- Neighbours, lists:keymember(Other, 1, Lists)
        ],
        lists:sort([length(Nodes) || Nodes <- digraph_utils:components(Graph)])
    after
        digraph:delete(Graph)
    end.

part(Part, Cluster) ->
    Rest = atoll_sim_cluster:names(Cluster) -- Part,
    do(fun(W) -> atoll_sim_world:set({partition, [Part, Rest]}, W) end, Cluster).

healed(Ms, Cluster) ->
    pass(Ms, do(fun(W) -> atoll_sim_world:set(heal, W) end, Cluster)).

summaries(Key, Cluster) ->
    [
        maps:get(Key, maps:get(discovery, atoll_overlay_core:summary(atoll_sim_cluster:overlay(Node, Cluster))))
     || Node <- atoll_sim_world:alive(world(Cluster))
    ].

a_cluster_at_rest_hears_its_beacons_and_joins_no_more_test_() ->
    ?SECONDS(60, begin
        C0 = cluster(),
        C = pass(120000, C0),
        ?assertEqual([?NODES], islands(C)),
        ?assertEqual([4], lists:usort([maps:get(fresh, B) || B <- summaries(beacons, C)])),
        ?assertEqual(lists:sum(summaries(joins, C0)), lists:sum(summaries(joins, C)))
    end).

an_island_without_contacts_notices_that_it_is_one_and_joins_again_test_() ->
    ?SECONDS(60, begin
        C0 = cluster(),
        Island = lists:nthtail(?NODES - 12, atoll_sim_cluster:names(C0)),
        Joins = fun(C) -> lists:sum(lists:nthtail(?NODES - 12, summaries(joins, C))) end,
        C1 = pass(60000, part(Island, C0)),
        C2 = pass(60000, C1),
        ?assertEqual([12, ?NODES - 12], islands(C2)),
        ?assertEqual([0], lists:usort([maps:get(fresh, B) || B <- lists:nthtail(?NODES - 12, summaries(beacons, C2))])),
        %% All of them have tried meanwhile, but not more often than the pauses allow.
        ?assert(Joins(C2) - Joins(C1) >= 12 andalso Joins(C2) - Joins(C1) =< 12 * 6),
        C3 = healed(60000, C2),
        ?assertEqual([?NODES], islands(C3)),
        ?assertEqual(Joins(C3), Joins(pass(60000, C3)))
    end).

%% They have never met, and know of each other nothing but the contacts.
after_two_clusters_with_contacts_grew_apart(Discovery) ->
    C0 = new(Discovery),
    {Half, _} = lists:split(2, atoll_sim_cluster:contacts(C0)),
    Island = Half ++ lists:nthtail(?NODES - 20, atoll_sim_cluster:names(C0)),
    C1 = pass(60000, atoll_sim_cluster:grow(part(Island, C0))),
    ?assertEqual([], [
        {Node, Other}
     || {Node, Others} <- atoll_sim_cluster:neighbours(C1),
        Other <- Others,
        lists:member(Node, Island) =/= lists:member(Other, Island)
    ]),
    islands(healed(60000, C1)).

islands_with_contacts_of_their_own_find_each_other_test_() ->
    ?SECONDS(60, ?assertEqual([?NODES], after_two_clusters_with_contacts_grew_apart(#{}))).

%% Nobody is ever in the overlay for long enough to probe: it is the probes that
%% bring the others together.
without_probes_they_stay_apart_test_() ->
    ?SECONDS(60, ?assertMatch([_, _ | _], after_two_clusters_with_contacts_grew_apart(#{island_ms => 1000000000}))).

a_contact_that_is_restarted_is_heard_again_test_() ->
    ?SECONDS(60, begin
        C0 = cluster(),
        Contact = hd(atoll_sim_cluster:contacts(C0)),
        Killed = pass(60000, do(fun(W) -> atoll_sim_world:kill(Contact, W) end, C0)),
        ?assertEqual([3], lists:usort([maps:get(fresh, B) || B <- summaries(beacons, Killed)])),
        C = pass(60000, atoll_sim_cluster:start(Contact, fresh, Killed)),
        ?assertEqual([4], lists:usort([maps:get(fresh, B) || B <- summaries(beacons, C)])),
        ?assertEqual([?NODES], islands(C))
    end).

%% Contacts at once and the others soon, as a cluster starts after a power cut; or all
%% one after the other, contacts or not.
a_cluster_that_starts_cold_is_one_island_ten_seconds_later_test_() ->
    [
        {timeout, 100, fun() ->
            Split = [
                {Seed, Islands}
             || Seed <- seeds(Strategy, Count, How),
                [_, _ | _] = Islands <- [islands(cold(How, #{strategy => Strategy, nodes => Count, seed => Seed}))]
            ],
            ?assertEqual({Strategy, Count, How, []}, {Strategy, Count, How, Split})
        end}
     || Strategy <- [hyparview, mesh, scamp], Count <- [10, 40], How <- [at_once, in_turn]
    ].

%% For one in a hundred clusters or so ten seconds are too few: scamp draws its links, and a
%% node that finds none of its contacts up tries again after longer and longer pauses. So
%% their seeds are fixed.
seeds(Strategy, Count, at_once) when Strategy =/= scamp -> atoll_sim_seeds:of_run({Strategy, Count}, 30);
seeds(Strategy, _Count, _How) -> lists:seq(1, length(atoll_sim_seeds:of_run(Strategy, 30))).

%% The longest pause is 30 s.
who_found_no_contact_up_is_with_the_others_after_the_longest_pause_test_() ->
    [
        {timeout, 100, fun() ->
            Cluster = pass(35000, cold(in_turn, #{strategy => Strategy, nodes => 40, seed => Seed})),
            ?assertEqual({Strategy, Seed, [40]}, {Strategy, Seed, islands(Cluster)})
        end}
     || {Strategy, Alone} <- [{hyparview, []}, {mesh, [97316816, 100102501]}, {scamp, [6650589, 102408800, 80257353]}],
        %% With these a node was alone for more than ten seconds.
        Seed <- Alone ++ atoll_sim_seeds:of_run({?FUNCTION_NAME, Strategy}, 6)
    ].

cold(How, Options) ->
    {ok, Cluster} = atoll_sim_cluster:new(Options#{settle_ms => 10000, broadcast => off}),
    case How of
        at_once ->
            atoll_sim_cluster:grow(Cluster);
        in_turn ->
            {Names, Rand} = atoll_random:shuffle(
                atoll_sim_cluster:names(Cluster), rand:seed_s(exsss, maps:get(seed, Options))
            ),
            {Started, _} = lists:foldl(fun start_in_turn/2, {Cluster, Rand}, Names),
            pass(10000, Started)
    end.

%% Some in the same moment, some a while apart.
start_in_turn(Name, {Cluster, Rand0}) ->
    {Ms, Rand} = atoll_random:pick([0, 0, 3, 10, 30, 300, 1000], Rand0),
    {pass(Ms, atoll_sim_cluster:start(Name, fresh, Cluster)), Rand}.
