%% SPDX-License-Identifier: Apache-2.0
%% The strategy star in virtual time: what it promises of clusters.
-module(atoll_sim_star_tests).

-include_lib("eunit/include/eunit.hrl").

-import(atoll_sim_strategy_world, [
    start/5, run/2, names/1, kill/2, restart/2, cast/3, set/2, links/1, is_symmetric/1, is_connected/1
]).

-define(COUNT, 44).
-define(SERVERS, lists:sublist(names(?COUNT), 4)).
-define(CLIENTS, (names(?COUNT) -- ?SERVERS)).

grown(Seed) -> grown(#{}, Seed).

grown(Options, Seed) ->
    run(10000, start(star, Options#{servers => ?SERVERS}, ?COUNT, 10, Seed)).

clients_link_to_one_server_and_servers_with_each_other_test_() ->
    atoll_sim_seeds:each(?FUNCTION_NAME, 5, fun(Seed) -> ?assert(is_star(?SERVERS, 1, grown(Seed))) end).

%% Each client has so many of these servers and nobody else.
is_star(Servers, Count, World) ->
    Links = links(World),
    Clients = maps:without(?SERVERS, Links),
    is_symmetric(World) andalso
        is_connected(World) andalso
        lists:all(fun(Peers) -> length(Peers) =:= Count andalso Peers -- Servers =:= [] end, maps:values(Clients)) andalso
        lists:all(fun(S) -> Servers -- maps:get(S, Links) =:= [S] end, Servers).

the_load_is_spread_test() ->
    Links = links(grown(1)),
    Loads = [length(maps:get(S, Links) -- ?SERVERS) || S <- ?SERVERS],
    ?assert(lists:min(Loads) >= 4),
    ?assert(lists:max(Loads) =< 18).

a_client_may_link_to_several_test() ->
    ?assert(is_star(?SERVERS, 2, grown(#{links => 2}, 1))).

clients_of_a_lost_server_turn_to_others_and_come_back_test_() ->
    atoll_sim_seeds:each(?FUNCTION_NAME, 5, fun(Seed) ->
        Before = grown(Seed),
        [Lost | Left] = ?SERVERS,
        %% Its sockets close: the next is tried at once.
        Without = run(1000, kill([Lost], Before)),
        ?assert(is_star(Left, 1, Without)),
        Back = run(60000, restart([Lost], Without)),
        ?assert(is_star(?SERVERS, 1, Back)),
        ?assertEqual(links(Before), links(Back))
    end).

clients_of_a_silent_server_turn_to_others_test() ->
    [Silent | Left] = ?SERVERS,
    World = run(15000, atoll_sim_world:pause(Silent, grown(1))),
    ?assert(is_star(Left, 1, kill([Silent], World))).

clients_wait_for_a_server_when_there_is_none_test() ->
    None = run(120000, kill(?SERVERS, grown(1))),
    ?assertEqual([], lists:append(maps:values(links(None)))),
    [First | _] = ?SERVERS,
    ?assert(is_star([First], 1, run(31000, restart([First], None)))).

a_server_that_leaves_hands_its_clients_over_test() ->
    [Leaver | Left] = ?SERVERS,
    World = run(1000, cast(Leaver, leave, grown(1))),
    ?assertEqual([], maps:get(Leaver, links(World))),
    ?assert(is_star(Left, 1, kill([Leaver], World))).

while_it_goes_back_a_client_has_a_server_test() ->
    [Lost | _] = ?SERVERS,
    Without = run(5000, kill([Lost], grown(1))),
    Alone = fun
        (_Now, Node, {notice, {neighbour_up, _}}, Counts) ->
            count(1, Node, Counts);
        (_Now, Node, {notice, {neighbour_down, _, _}}, Counts) ->
            count(-1, Node, Counts);
        (_Now, _Node, _Sight, Counts) ->
            Counts
    end,
    Counts = maps:from_list([{Client, {1, 1}} || Client <- ?CLIENTS]),
    Watched = atoll_sim_world:watch({Alone, Counts}, restart([Lost], Without)),
    Result = atoll_sim_world:watched(run(60000, Watched)),
    ?assertEqual([], [Client || {Client, {_, 0}} <- maps:to_list(Result)]).

%% How many servers a client has, and how few it ever had.
count(More, Node, Counts) ->
    case Counts of
        #{Node := {Count, Least}} -> Counts#{Node := {Count + More, min(Count + More, Least)}};
        #{} -> Counts
    end.

a_client_that_one_server_has_no_room_for_finds_another_test() ->
    World = grown(#{max_clients => 16}, 1),
    ?assert(is_star(?SERVERS, 1, run(60000, World))).

a_bad_network_ends_in_a_star_test_() ->
    atoll_sim_seeds:each(?FUNCTION_NAME, 5, fun(Seed) ->
        World = set({duplicate, 0.1}, set({loss, 0.2}, grown(Seed))),
        Shaken = run(20000, restart([hd(?CLIENTS)], run(20000, kill([hd(?CLIENTS)], World)))),
        ?assert(is_star(?SERVERS, 1, run(60000, set(heal, Shaken))))
    end).
