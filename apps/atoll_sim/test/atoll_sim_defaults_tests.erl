%% SPDX-License-Identifier: Apache-2.0
%% What a simulated node runs is what a node runs that is told nothing but its strategy.
-module(atoll_sim_defaults_tests).

-include_lib("eunit/include/eunit.hrl").

%% With all that is inside: the state of the one that has just started is that of the other.
a_simulated_node_begins_as_a_node_does_test_() ->
    [{atom_to_list(Strategy), ?_test(begins_alike(Strategy))} || Strategy <- [hyparview, mesh, scamp]].

begins_alike(Strategy) ->
    Cluster = atoll_sim_cluster:start(n1, fresh, new(#{nodes => 3, contacts => 3, strategy => Strategy, seed => 7})),
    Incarnation = atoll_sim_world:incarnation(n1, atoll_sim_cluster:world(Cluster)),
    {ok, Overlay} = atoll_config:overlay(node_config([{overlay, Strategy}])),
    %% As atoll_overlay:start_link/1 adds them.
    {Node, _} = atoll_overlay_core:init(
        Overlay#{
            contacts => [n1, n2, n3],
            self => n1,
            incarnation => Incarnation,
            seed => erlang:phash2({7, n1, Incarnation}),
            left => false
        },
        0
    ),
    ?assertEqual(Node, atoll_sim_cluster:overlay(n1, Cluster)).

%% The rooms beside it too; in a script they run unless told.
a_node_with_groups_begins_as_a_node_does_test_() ->
    [{atom_to_list(Strategy), ?_test(groups_begin_alike(Strategy))} || Strategy <- [hyparview, mesh]].

groups_begin_alike(Strategy) ->
    Cluster = atoll_sim_cluster:start(
        n1, fresh, new(#{nodes => 3, strategy => Strategy, seed => 7, groups => on, directory => on})
    ),
    World = atoll_sim_cluster:world(Cluster),
    Config = node_config([{overlay, Strategy}, {directory, on}]),
    Seed = erlang:phash2({7, n1, 1}),
    %% As atoll_group:start_link/2, atoll_name:start_link/1 and atoll_route:start_link/1 add them.
    {Group, _} = atoll_group_core:init(
        #{self => n1, incarnation => 1, seed => erlang:phash2({group, Seed}), options => atoll_config:group(Config)}, 0
    ),
    ?assertEqual(Group, atoll_sim_world:state(n1, group, World)),
    {Name, _} = atoll_name_core:init(
        #{
            self => n1, incarnation => 1000000, published => [], held => [],
            options => maps:merge(atoll_name:defaults(), atoll_config:names(Config))
        },
        0
    ),
    ?assertEqual(Name, atoll_sim_world:state(n1, name, World)),
    {ok, Options} = atoll_config:route(Config),
    {Route, _} = atoll_route_core:init(
        Options#{self => n1, incarnation => 1, seed => erlang:phash2({route, Seed}), left => false}, 0
    ),
    ?assertEqual(Route, atoll_sim_world:state(n1, route, World)),
    {ok, #{cluster := Script}} = atoll_sim_script:check([]),
    ?assertMatch(#{groups := on, directory := off}, Script).

a_script_begins_with_the_same_test() ->
    {ok, #{cluster := Script}} = atoll_sim_script:check([]),
    {ok, Overlay} = atoll_config:overlay(node_config([{overlay, hyparview}])),
    Parts = [detector, broadcast, discovery, roster],
    ?assertEqual(maps:with(Parts, Overlay), maps:with(Parts, Script)),
    ?assertEqual(maps:with(Parts, Overlay), maps:with(Parts, atoll_sim_cluster:defaults())).

%% A peer that is dead is tried with pauses that double, from the first to the longest, each up
%% to a quarter shorter.
links_are_tried_again_when_the_link_room_does_test() ->
    #{retry_min_ms := Min, retry_max_ms := Max} = atoll_config:link(node_config([])),
    Tries = [Ms || {Ms, _} <- heard(cast(a, {want, b}, 20000, world([a])))],
    Pauses = [B - A || {A, B} <- lists:zip(lists:droplast(Tries), tl(Tries))],
    Longest = [Min | [min(Max, 2 * Last) || Last <- lists:droplast(Pauses)]],
    ?assertEqual([], [Pair || {Ms, Most} = Pair <- lists:zip(Pauses, Longest), Ms > Most orelse Ms < Most - Most div 4]).

%% The link room waits for its time, and then for one in which nothing comes. Where something
%% did, it waits for twice as long before it looks again.
links_are_closed_when_the_link_room_does_test() ->
    #{linger_ms := Ms} = atoll_config:link(node_config([])),
    Up = cast(a, {want, b}, 1000, world([a, b])),
    Unwanted = cast(a, {unwant, b}, 2 * Ms, Up),
    ?assertEqual([], atoll_sim_world:links(a, Unwanted)),
    ?assertEqual([b], atoll_sim_world:links(a, cast(a, {unwant, b}, 2 * Ms - 1, Up))),
    Used = cast(b, {send, a, hello}, Ms div 2, cast(a, {unwant, b}, 3 * Ms div 2, Up)),
    ?assertEqual([b], atoll_sim_world:links(a, Used)),
    ?assertEqual([b], atoll_sim_world:links(a, run(Ms, Used))),
    ?assertEqual([], atoll_sim_world:links(a, run(3 * Ms, Used))).

%% What both have had closed is tried again after a pause, as on nodes.
who_was_disconnected_and_is_wanted_is_tried_after_a_pause_test() ->
    #{retry_min_ms := Min} = atoll_config:link(node_config([])),
    Up = cast(a, {want, b}, 1000, world([a, b])),
    Cut = atoll_sim_world:now(Up),
    Again = cast(a, {act, {disconnect, b}}, 2000, Up),
    ?assertMatch([Ms] when Ms =< Cut + Min andalso Ms >= Cut + Min - Min div 4, [Ms || {Ms, {up, b}} <- heard(Again), Ms > Cut]).

node_config(Options) ->
    {ok, Config} = atoll_config:new(Options, false),
    Config.

new(Options) ->
    {ok, Cluster} = atoll_sim_cluster:new(Options),
    Cluster.

%% Two nodes between which nothing takes any time; what the first hears of the link is kept.
world(Names) ->
    World = atoll_sim_world:new(#{
        protocol => atoll_sim_echo,
        config => fun(Name, _Incarnation, _Seed) -> Name end,
        latency => {constant, 0},
        seed => 7,
        watch => {fun see/4, []}
    }),
    lists:foldl(fun atoll_sim_world:start/2, World, Names).

see(Now, a, {notice, Heard}, Kept) -> [{Now, Heard} | Kept];
see(_Now, _Node, _Sight, Kept) -> Kept.

cast(Node, Effect, Ms, World) ->
    run(Ms, atoll_sim_world:cast(Node, {effects, [Effect]}, World)).

run(Ms, World) -> atoll_sim_world:run(atoll_sim_world:now(World) + Ms, World).

heard(World) -> lists:reverse(atoll_sim_world:watched(World)).
