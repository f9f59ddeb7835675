%% SPDX-License-Identifier: Apache-2.0
%% HyParView in worlds of many nodes, by itself: without a failure detector that
%% finds one-sided links, and without discovery that brings islands together. Each
%% node is checked after every event (atoll_sim_hyparview_checked).
-module(atoll_sim_hyparview_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% Seeds of join storms that once ended in islands: the contacts joined each other
%% in pairs.
-define(ISLANDS, [19, 30, 45, 47, 71, 72, 86, 106, 111, 124, 134, 155, 158, 168, 170, 188]).

after_a_quiet_minute_a_hundred_nodes_have_full_mutual_views_test_() ->
    {timeout, 60, fun() ->
        [
            begin
                World = mutual(grow(100, Seed, #{})),
                Graph = graph(World),
                Sizes = [length(Peers) || {_, Peers} <- Graph],
                ?assertEqual({Seed, []}, {Seed, one_sided(Graph)}),
                ?assertEqual({Seed, 1}, {Seed, length(components(Graph))}),
                ?assert(lists:min(Sizes) >= 2),
                ?assert(length([S || S <- Sizes, S >= 4]) >= 95),
                ?assert(lists:min([length(known(Name, World)) || {Name, _} <- Graph]) >= 25)
            end
         || Seed <- atoll_sim_seeds:of_run(?FUNCTION_NAME, 5)
        ]
    end}.

a_storm_of_joins_leaves_no_island_test_() ->
    {timeout, 600, fun() ->
        [
            begin
                Graph = graph(mutual(storm(Seed))),
                ?assertMatch({Seed, [_]}, {Seed, components(Graph)}),
                ?assertEqual({Seed, []}, {Seed, one_sided(Graph)})
            end
         || Seed <- islands(atoll_tier:tier()) ++ atoll_sim_seeds:of_run(?FUNCTION_NAME, 30)
        ]
    end}.

islands(fast) -> lists:sublist(?ISLANDS, 5);
islands(deep) -> ?ISLANDS.

survivors_find_together_again_test_() ->
    {timeout, 600, fun() ->
        Grown = grow(atoll_tier:size(hyparview_nodes), 1, #{}),
        [
            begin
                Graph = graph(mutual(run(20000, kill(Share, Grown)))),
                ?assertEqual({Share, []}, {Share, one_sided(Graph)}),
                ?assertMatch({Share, [_]}, {Share, components(Graph)}),
                Sizes = [length(Peers) || {_, Peers} <- Graph],
                ?assert(lists:sum(Sizes) >= 4.5 * length(Sizes))
            end
         || Share <- [0.5, 0.7, 0.8]
        ]
    end}.

xbot_shortens_links_by_a_fifth_and_keeps_degree_and_connection_test_() ->
    {timeout, 600, fun() ->
        [Plain, Short] = [
            run(240000, grow(atoll_tier:size(hyparview_nodes) * 2 div 3, 1, #{latency => regions, options => #{xbot => Xbot}}))
         || Xbot <- [false, true]
        ],
        Graph = graph(Short),
        ?assert(link_ms(Short) =< 0.8 * link_ms(Plain)),
        ?assertEqual([], one_sided(Graph)),
        ?assertMatch([_], components(Graph)),
        ?assert(degree(Short) >= 0.99 * degree(Plain)),
        %% The passive views are of all regions still.
        ?assertMatch([_], components(graph(run(20000, kill(0.7, Short)))))
    end}.

faults_test_() ->
    atoll_prop:tests([
        {"whatever happens, what is promised at any moment holds", prop_holds(), 60}
    ]).

%% Losses, duplicates, disorder, partitions, deaths, returns, departures.
prop_holds() ->
    ?FORALL(
        {Seed, Xbot, Deeds},
        {choose(1, 1 bsl 30), boolean(), resize(12, list(deed()))},
        begin
            Options = #{xbot => Xbot, xbot_ms => 2000, shuffle_ms => 2000, active_max => 3, passive_max => 6},
            Grown = grow(12, Seed, #{options => Options, settle_ms => 5000, latency => regions}),
            World = lists:foldl(fun(Deed, W) -> run(1500, do(Deed, W)) end, Grown, Deeds),
            %% Everybody alive is there still, so nobody has crashed the world.
            is_list(graph(run(10000, atoll_sim_world:set(heal, World))))
        end
    ).

deed() ->
    Name = oneof(names(12)),
    frequency([
        {2, {net, {loss, oneof([0.0, 0.1, 0.5])}}},
        {2, {net, {duplicate, oneof([0.0, 0.3])}}},
        {2, {net, {reorder, oneof([0.0, 0.3]), 500}}},
        {1, {net, heal}},
        {1, {partition, list(Name)}},
        {2, {kill, Name}},
        {2, {start, Name}},
        {1, {cast, Name, leave}},
        {1, {cast, Name, {join, names(3)}}},
        {1, {pause, Name}},
        {2, {resume, Name}}
    ]).

do({net, Setting}, World) -> atoll_sim_world:set(Setting, World);
do({partition, Names}, World) -> atoll_sim_world:set({partition, [lists:usort(Names), names(12) -- Names]}, World);
do({kill, Name}, World) ->
    case atoll_sim_world:status(Name, World) of
        dead -> World;
        _ -> atoll_sim_world:kill(Name, World)
    end;
do({start, Name}, World) ->
    case atoll_sim_world:status(Name, World) of
        dead -> start(Name, names(3), World);
        _ -> World
    end;
do({cast, Name, Cast}, World) -> atoll_sim_world:cast(Name, Cast, World);
do({pause, Name}, World) -> atoll_sim_world:pause(Name, World);
do({resume, Name}, World) -> atoll_sim_world:resume(Name, World).

%% Worlds

names(Count) ->
    [list_to_atom("n" ++ integer_to_list(100000 + N)) || N <- lists:seq(1, Count)].

%% A link that is being made or given up has one end for as long as a message takes:
%% the first moment within two seconds without one, or the last of them.
mutual(World) ->
    mutual(20, World).

mutual(Left, World) ->
    case one_sided(graph(World)) of
        [_ | _] when Left > 0 -> mutual(Left - 1, run(100, World));
        _ -> World
    end.

%% 50 to 200 nodes that start within a few milliseconds.
storm(Seed) ->
    grow(50 + (Seed * 37) rem 151, Seed, #{starts_per_s => 100000, settle_ms => 30000}).

grow(Count, Seed, Given) ->
    {ok, Options} = atoll_options:complete(
        atoll_sim_hyparview_checked, maps:get(options, Given, #{})
    ),
    Parts = #{detector => off, broadcast => off, discovery => off, roster => off},
    Config = fun(Self, Incarnation, NodeSeed) ->
        Parts#{
            self => Self,
            incarnation => Incarnation,
            seed => NodeSeed,
            strategy => {atoll_sim_hyparview_checked, Options}
        }
    end,
    Latency = maps:get(latency, Given, {uniform, 1, 20}),
    World0 = atoll_sim_world:new(#{
        protocol => atoll_overlay_core, config => Config, seed => Seed, latency => Latency
    }),
    Names = names(Count),
    Contacts = lists:sublist(Names, 5),
    Spread = max(1, Count * 1000 div maps:get(starts_per_s, Given, 1000)),
    {World, _} = lists:foldl(
        fun(Name, {W, R0}) ->
            {Ms, R} = rand:uniform_s(Spread, R0),
            At =
                case lists:member(Name, Contacts) of
                    true -> 1;
                    false -> Ms
                end,
            {atoll_sim_world:at(At, fun(Then) -> start(Name, Contacts, Then) end, W), R}
        end,
        {World0, rand:seed_s(exsss, Seed)},
        Names
    ),
    run(Spread + maps:get(settle_ms, Given, 60000), World).

%% It joins in the same millisecond, after all that start in it.
start(Name, Contacts, World) ->
    atoll_sim_world:at(
        atoll_sim_world:now(World),
        fun(Then) -> atoll_sim_world:cast(Name, {join, Contacts}, Then) end,
        atoll_sim_world:start(Name, World)
    ).

run(Ms, World) ->
    atoll_sim_world:run(atoll_sim_world:now(World) + Ms, World).

%% The victims are the same for the same world.
kill(Share, World) ->
    Names = atoll_sim_world:alive(World),
    {Keyed, _} = lists:mapfoldl(
        fun(Name, R0) ->
            {X, R} = rand:uniform_s(R0),
            {{X, Name}, R}
        end,
        rand:seed_s(exsss, 1),
        Names
    ),
    Victims = [Name || {_, Name} <- lists:sublist(lists:sort(Keyed), round(Share * length(Names)))],
    lists:foldl(fun atoll_sim_world:kill/2, World, Victims).

%% What is looked at

graph(World) ->
    [
        {Name, atoll_overlay_core:neighbours(atoll_sim_world:state(Name, World))}
     || Name <- atoll_sim_world:alive(World)
    ].

known(Name, World) ->
    State = atoll_sim_world:state(Name, World),
    atoll_overlay_core:remembered(State) -- atoll_overlay_core:neighbours(State).

one_sided(Graph) ->
    Peers = maps:from_list(Graph),
    [{A, B} || {A, Bs} <- Graph, B <- Bs, not lists:member(A, maps:get(B, Peers, []))].

%% Their sizes.
components(Graph) ->
    components([Name || {Name, _} <- Graph], maps:from_list(Graph), #{}).

components([], _Peers, _Seen) ->
    [];
components([Name | Names], Peers, Seen) when is_map_key(Name, Seen) ->
    components(Names, Peers, Seen);
components([Name | Names], Peers, Seen0) ->
    Seen = reach([Name], Peers, Seen0#{Name => []}),
    [map_size(Seen) - map_size(Seen0) | components(Names, Peers, Seen)].

reach([], _Peers, Seen) ->
    Seen;
reach([Name | Names], Peers, Seen) ->
    New = [N || N <- maps:get(Name, Peers), is_map_key(N, Peers), not is_map_key(N, Seen)],
    reach(New ++ Names, Peers, maps:merge(Seen, maps:from_list([{N, []} || N <- New]))).

degree(World) ->
    Sizes = [length(Peers) || {_, Peers} <- graph(World)],
    lists:sum(Sizes) / length(Sizes).

link_ms(World) ->
    Delays = [atoll_sim_world:delay(A, B, World) || {A, Bs} <- graph(World), B <- Bs],
    lists:sum(Delays) / length(Delays).
