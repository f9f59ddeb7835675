%% SPDX-License-Identifier: Apache-2.0
%% Clusters of one strategy, for the tests of strategies: started, and looked at.
-module(atoll_sim_strategy_world).

-export([start/4, start/5, join/3, tell/3, cast/3, kill/2, restart/2, run/2, set/2]).
-export([links/1, is_symmetric/1, is_connected/1, is_mesh/1, summaries/1, summary/2, names/1]).

%% Nodes that are started one after the other, each joining by one that is there.
start(Strategy, Options, Count, Seed) ->
    start(Strategy, Options, Count, 50, Seed).

start(Strategy, Options, Count, ApartMs, Seed) ->
    World = atoll_sim_world:new(#{
        protocol => atoll_overlay_core, config => config(Strategy, Options), seed => Seed
    }),
    {Last, _, _} = lists:foldl(
        fun(Name, {W0, Started, Rand0}) ->
            {Contacts, Rand} = contact(Started, Rand0),
            W = join(Name, Contacts, atoll_sim_world:start(Name, W0)),
            {run(ApartMs, W), [Name | Started], Rand}
        end,
        {World, [], rand:seed_s(exsss, Seed)},
        names(Count)
    ),
    Last.

contact([], Rand) ->
    {[], Rand};
contact(Started, Rand0) ->
    {N, Rand} = rand:uniform_s(length(Started), Rand0),
    {[lists:nth(N, Started)], Rand}.

config(Strategy, Given) ->
    {ok, Module} = atoll_strategy:module(Strategy),
    {ok, Options} = atoll_options:complete(Module, maps:without([detector], Given)),
    fun(Name, Incarnation, Seed) ->
        #{
            self => Name,
            incarnation => Incarnation,
            seed => Seed,
            strategy => {Module, Options},
            discovery => off,
            roster => off,
            detector => maps:get(detector, Given, #{})
        }
    end.

names(Count) ->
    [list_to_atom(lists:flatten(io_lib:format("n~4..0b", [N]))) || N <- lists:seq(1, Count)].

join(Name, Contacts, World) -> cast(Name, {join, Contacts}, World).
tell(Name, Term, World) -> cast(Name, {tell, Term}, World).
cast(Name, Notice, World) -> atoll_sim_world:cast(Name, Notice, World).
kill(Names, World) -> lists:foldl(fun atoll_sim_world:kill/2, World, Names).
restart(Names, World) -> lists:foldl(fun atoll_sim_world:start/2, World, Names).
set(Setting, World) -> atoll_sim_world:set(Setting, World).

run(Ms, World) ->
    atoll_sim_world:run(atoll_sim_world:now(World) + Ms, World).

%% The live nodes with their neighbours.
links(World) ->
    maps:from_list([
        {Name, atoll_overlay_core:neighbours(atoll_sim_world:state(Name, World))}
     || Name <- atoll_sim_world:alive(World)
    ]).

is_symmetric(World) ->
    Links = links(World),
    [] =:=
        [
            {Node, Peer}
         || {Node, Peers} <- maps:to_list(Links),
            Peer <- Peers,
            not lists:member(Node, maps:get(Peer, Links, []))
        ].

is_mesh(World) ->
    Alive = atoll_sim_world:alive(World),
    lists:all(fun({Node, Peers}) -> Peers =:= lists:delete(Node, Alive) end, maps:to_list(links(World))).

is_connected(World) ->
    Links = links(World),
    [First | _] = Alive = lists:sort(maps:keys(Links)),
    Alive =:= lists:sort(maps:keys(reach([First], Links, #{First => []}))).

reach([], _Links, Seen) ->
    Seen;
reach([Node | Nodes], Links, Seen0) ->
    New = [Peer || Peer <- maps:get(Node, Links, []), not is_map_key(Peer, Seen0)],
    reach(New ++ Nodes, Links, lists:foldl(fun(Peer, Seen) -> Seen#{Peer => []} end, Seen0, New)).

summary(Name, World) ->
    #{strategy := Summary} = atoll_overlay_core:summary(atoll_sim_world:state(Name, World)),
    Summary.

summaries(World) ->
    [summary(Name, World) || Name <- atoll_sim_world:alive(World)].
