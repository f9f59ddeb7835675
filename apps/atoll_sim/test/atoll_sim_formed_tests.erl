%% SPDX-License-Identifier: Apache-2.0
%% Clusters formed as users form them: every node is told to join by the first, or reads a
%% list of contacts that changes, and no contacts are listed anywhere. With all that a node
%% runs by default.
-module(atoll_sim_formed_tests).

-include_lib("eunit/include/eunit.hrl").

-define(NODES, 20).

seeds(Name, Deep, Fun) ->
    {inparallel, 2, atoll_sim_seeds:each(Name, Deep, fun(Seed) -> atoll_sim_cluster:isolated(fun() -> Fun(Seed) end) end)}.

formed(Nodes, Strategy, Seed) ->
    {ok, New} = atoll_sim_cluster:new(#{
        nodes => Nodes, formed => join, contacts => 1, strategy => Strategy, seed => Seed,
        starts_per_s => 20, settle_ms => 0
    }),
    atoll_sim_cluster:grow(New).

do(Fun, Cluster) -> atoll_sim_cluster:update(Fun, Cluster).

kill(Node, Cluster) -> do(fun(World) -> atoll_sim_world:kill(Node, World) end, Cluster).

cut_off(Island, Cluster) ->
    Rest = atoll_sim_cluster:names(Cluster) -- Island,
    do(fun(World) -> atoll_sim_world:set({partition, [Island, Rest]}, World) end, Cluster).

heal(Cluster) -> do(fun(World) -> atoll_sim_world:set(heal, World) end, Cluster).

losses(_Now, Node, {notice, {neighbour_down, Of, Why}}, Kept) -> [{Node, Of, Why} | Kept];
losses(_Now, _Node, _Sight, Kept) -> Kept.

joins(Cluster) ->
    [
        map_get(joins, map_get(discovery, atoll_overlay_core:summary(atoll_sim_cluster:overlay(Node, Cluster))))
     || Node <- atoll_sim_cluster:names(Cluster)
    ].

%% Whether all that live are linked together and know each other.
is_whole(Cluster) ->
    Lists = atoll_sim_cluster:neighbours(Cluster),
    Nodes = [Node || {Node, _} <- Lists],
    atoll_sim_graph:connected(Lists) == 1 andalso
        lists:all(fun(Node) -> members(Node, Cluster) =:= Nodes end, Nodes).

members(Node, Cluster) -> atoll_overlay_core:members(atoll_sim_cluster:overlay(Node, Cluster)).

%% Looked at each second.
whole_within(Ms, Cluster) when Ms >= 0 ->
    case is_whole(Cluster) of
        true -> Cluster;
        false -> whole_within(Ms - 1000, atoll_sim_cluster:wait(1000, Cluster))
    end;
whole_within(_Ms, Cluster) ->
    error({not_whole, atoll_sim_cluster:neighbours(Cluster)}).

%% Two that have room may still become neighbours.
at_rest_nobody_joins_and_no_link_is_lost_test_() ->
    seeds(?FUNCTION_NAME, 6, fun(Seed) ->
        [
            begin
                Settled = atoll_sim_cluster:wait(120000, formed(atoll_tier:size(formed_nodes), Strategy, Seed)),
                Watched = atoll_sim_cluster:watch({fun losses/4, []}, Settled),
                Later = atoll_sim_cluster:wait(600000, Watched),
                ?assertEqual([], atoll_sim_cluster:watched(Later)),
                ?assertEqual(joins(Settled), joins(Later)),
                ?assert(is_whole(Later))
            end
         || Strategy <- [hyparview, mesh]
        ]
    end).

%% A probe tells it that it is one, each time that somebody tries to join by it.
a_contact_that_is_restarted_is_a_contact_again_test_() ->
    seeds(?FUNCTION_NAME, 6, fun(Seed) ->
        Formed = atoll_sim_cluster:wait(60000, formed(?NODES, hyparview, Seed)),
        First = hd(atoll_sim_cluster:names(Formed)),
        Killed = atoll_sim_cluster:wait(60000, kill(First, Formed)),
        Started = atoll_sim_cluster:start(First, fresh, Killed),
        ?assertEqual([First], members(First, Started)),
        _ = whole_within(60000, Started)
    end).

%% The one contact of all is killed meanwhile.
a_node_that_was_cut_off_while_its_contact_died_is_back_test_() ->
    seeds(?FUNCTION_NAME, 12, fun(Seed) ->
        Formed = atoll_sim_cluster:wait(60000, formed(?NODES, hyparview, Seed)),
        [First | Others] = atoll_sim_cluster:names(Formed),
        Cut = kill(First, cut_off([lists:last(Others)], Formed)),
        _ = whole_within(60000, heal(atoll_sim_cluster:wait(cut_ms(Seed), Cut)))
    end).

an_island_that_was_cut_off_while_its_contact_died_is_back_test_() ->
    seeds(?FUNCTION_NAME, 12, fun(Seed) ->
        Formed = atoll_sim_cluster:wait(60000, formed(?NODES, hyparview, Seed)),
        [First | Others] = atoll_sim_cluster:names(Formed),
        Cut = kill(First, cut_off(lists:nthtail(?NODES div 2, Others), Formed)),
        _ = whole_within(60000, heal(atoll_sim_cluster:wait(cut_ms(Seed), Cut)))
    end).

%% What each side has held the other for is told to nobody who has heard otherwise. Not of
%% shorter cuts: verdicts that are still being told when the sides meet cross over.
sides_that_meet_again_bury_none_of_their_own_test_() ->
    seeds(?FUNCTION_NAME, 12, fun(Seed) ->
        Formed = atoll_sim_cluster:wait(60000, formed(?NODES, mesh, Seed)),
        {One, Other} = lists:split(?NODES div 2, atoll_sim_cluster:names(Formed)),
        Cut = atoll_sim_cluster:wait(15000 + (Seed * 7919) rem 30000, cut_off(One, Formed)),
        Watched = atoll_sim_cluster:watch({fun losses/4, []}, Cut),
        Healed = atoll_sim_cluster:wait(60000, heal(Watched)),
        Lost = atoll_sim_cluster:watched(Healed),
        ?assertEqual([], [L || Side <- [One, Other], {A, B, _} = L <- Lost, lists:member(A, Side), lists:member(B, Side)]),
        _ = whole_within(60000, Healed)
    end).

%% As one whose configuration names nobody else, and whom nobody tells anything.
a_node_that_is_restarted_and_has_no_contact_but_itself_is_back_test_() ->
    seeds(?FUNCTION_NAME, 12, fun(Seed) ->
        Formed = atoll_sim_cluster:wait(60000, formed(?NODES, hyparview, Seed)),
        Node = lists:nth(1 + Seed rem ?NODES, atoll_sim_cluster:names(Formed)),
        Killed = atoll_sim_cluster:wait(30000, kill(Node, Formed)),
        _ = whole_within(60000, atoll_sim_cluster:start(Node, alone, Killed))
    end).

%% A list in DNS that names nodes that come and go: each new one is found in it, though all that
%% stood in it before are dead by then.
a_cluster_outlives_all_that_its_source_has_named_test_() ->
    seeds(?FUNCTION_NAME, 6, fun(Seed) ->
        {ok, New} = atoll_sim_cluster:new(#{
            nodes => ?NODES, formed => source, contacts => 2, seed => Seed, starts_per_s => 20, settle_ms => 30000
        }),
        [One, Two, Three, Four | _] = Names = atoll_sim_cluster:names(New),
        Grown = whole_within(60000, atoll_sim_cluster:grow(New)),
        Listed = atoll_sim_cluster:wait(15000, atoll_sim_cluster:source([Three, Four], Grown)),
        Killed = atoll_sim_cluster:wait(10000, kill(Two, kill(One, Listed))),
        Last = lists:last(Names),
        Restarted = atoll_sim_cluster:start(Last, fresh, atoll_sim_cluster:wait(10000, kill(Last, Killed))),
        _ = whole_within(60000, Restarted)
    end).

%% Nobody stands in the list when the nodes start.
who_reads_an_empty_list_waits_for_names_test() ->
    {ok, New} = atoll_sim_cluster:new(#{nodes => 5, formed => source, contacts => 1, seed => 7, settle_ms => 20000}),
    Alone = atoll_sim_cluster:grow(atoll_sim_cluster:source([], New)),
    ?assertEqual([[]], lists:usort([Peers || {_, Peers} <- atoll_sim_cluster:neighbours(Alone)])),
    _ = whole_within(30000, atoll_sim_cluster:source([n1], Alone)).

%% From twenty seconds to five minutes.
cut_ms(Seed) -> 20000 + (Seed * 7919) rem 280001.
