%% SPDX-License-Identifier: Apache-2.0
%% What the broadcast protocol promises, in simulated clusters with a faulty network.
-module(atoll_sim_plumtree_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% Kept: the deliveries, the losses that were told, the payloads that arrived over
%% trees with their hops, and the messages of exchanges; newest first.
-record(kept, {delivered = [], missed = [], payloads = [], exchanges = []}).

see(_Now, Node, {notice, {broadcast, From, Payload}}, #kept{delivered = D} = Kept) ->
    Kept#kept{delivered = [{Node, From, Payload} | D]};
see(_Now, Node, {notice, {missed, From, Count}}, #kept{missed = M} = Kept) ->
    Kept#kept{missed = [{Node, From, Count} | M]};
see(_Now, Node, {got, _From, {gossip, _, _, _, Hops, Payload}}, #kept{payloads = P} = Kept) ->
    Kept#kept{payloads = [{Payload, Node, Hops} | P]};
see(_Now, Node, {got, From, Message}, #kept{exchanges = E} = Kept) when element(1, Message) =:= answer ->
    Kept#kept{exchanges = [{From, Node, Message} | E]};
see(_Now, _Node, _Sight, Kept) ->
    Kept.

cluster(Count, Degree, Options) ->
    cluster(Count, Degree, Options, 1).

%% All nodes are started, and settled.
cluster(Count, Degree, Options, Seed) ->
    Graph = atoll_sim_plumtree_node:random_graph(Count, Degree, Seed),
    World = atoll_sim_plumtree_node:world(
        Graph, #{options => Options, messages => true, watch => {fun see/4, #kept{}}}, Seed
    ),
    wait(5000, lists:foldl(fun atoll_sim_world:start/2, World, atoll_sim_plumtree_node:names(Count))).

wait(Ms, World) ->
    atoll_sim_world:run(atoll_sim_world:now(World) + Ms, World).

broadcast(Node, Payload, World) ->
    atoll_sim_world:cast(Node, {broadcast, Payload}, World).

%% One payload after the other, with a pause after each.
broadcasts(Node, Payloads, Pause, World) ->
    lists:foldl(fun(Payload, W) -> wait(Pause, broadcast(Node, Payload, W)) end, World, Payloads).

kept(World) -> atoll_sim_world:watched(World).
forget(World) -> atoll_sim_world:watch({fun see/4, #kept{}}, World).
set(Setting, World) -> atoll_sim_world:set(Setting, World).

received(Node, World) ->
    lists:reverse([Payload || {N, _, Payload} <- (kept(World))#kept.delivered, N =:= Node]).

counted(Key, World) ->
    lists:sum([
        maps:get(Key, atoll_sim_plumtree_node:summary(atoll_sim_world:state(Node, World)))
     || Node <- atoll_sim_world:alive(World)
    ]).

%% In a tree

a_tree_costs_one_payload_a_node_and_is_as_short_as_the_overlay_test() ->
    Count = 200,
    Built = forget(broadcasts(n001, lists:seq(1, 10), 1000, cluster(Count, 5, #{}))),
    #kept{payloads = Payloads, delivered = Delivered} = kept(broadcasts(n001, lists:seq(11, 20), 1000, Built)),
    ?assertEqual(10 * Count, length(Delivered)),
    ?assertEqual(10 * (Count - 1), length(Payloads)),
    Graph = atoll_sim_plumtree_node:random_graph(Count, 5, 1),
    ?assertEqual(eccentricity([n001], [n001], Graph, 0), lists:max([Hops || {_, _, Hops} <- Payloads])).

eccentricity(Wave, Reached, Graph, Hops) ->
    case lists:usort(lists:append([maps:get(Node, Graph) || Node <- Wave])) -- Reached of
        [] -> Hops;
        Next -> eccentricity(Next, Next ++ Reached, Graph, Hops + 1)
    end.

each_sender_has_a_tree_test() ->
    Senders = [n01, n17, n33],
    All = fun(Payload, World0) ->
        wait(1000, lists:foldl(fun(S, W) -> broadcast(S, {S, Payload}, W) end, World0, Senders))
    end,
    Built = forget(lists:foldl(All, cluster(50, 5, #{}), lists:seq(1, 10))),
    World = lists:foldl(All, Built, lists:seq(11, 15)),
    ?assertEqual(3 * 5 * 49, length((kept(World))#kept.payloads)),
    ?assertEqual(3 * 5 * 50, length((kept(World))#kept.delivered)).

grafts_repair_the_tree_when_inner_nodes_die_test() ->
    Built = broadcasts(n001, lists:seq(1, 5), 1000, cluster(100, 6, #{exchange_ms => 1000000})),
    Dead = [n010, n020, n030, n040, n050, n060, n070],
    %% They fall silent: no link says so, and no exchange helps.
    Silent = set({cut, Dead, atoll_sim_plumtree_node:names(100) -- Dead}, Built),
    After = wait(10000, broadcasts(n001, [6, 7, 8], 1000, forget(Silent))),
    Living = atoll_sim_plumtree_node:names(100) -- Dead,
    ?assertEqual([], [Node || Node <- Living, lists:sort(received(Node, After)) =/= [6, 7, 8]]),
    ?assert(counted(grafts, After) > counted(grafts, Built)),
    %% And then it is a tree again.
    Later = forget(broadcasts(n001, lists:seq(9, 14), 1000, After)),
    Payloads = (kept(broadcasts(n001, [15, 16], 1000, Later)))#kept.payloads,
    ?assertEqual(2 * (length(Living) - 1), length([Node || {_, Node, _} <- Payloads, lists:member(Node, Living)])).

%% Cut off

a_node_that_was_cut_off_catches_up_in_one_exchange_test() ->
    Built = broadcasts(n01, lists:seq(1, 5), 500, cluster(30, 5, #{})),
    Missing = lists:seq(6, 65),
    Behind = broadcasts(n01, Missing, 1000, cut_off(n20, 30, forget(Built))),
    ?assertEqual([], received(n20, Behind)),
    Healed = wait(20000, set(heal, Behind)),
    ?assertEqual(Missing, lists:sort(received(n20, Healed))),
    Useful = [Answer || {_, Node, {answer, _, [_ | _], _} = Answer} <- (kept(Healed))#kept.exchanges, Node =:= n20],
    ?assertMatch([{answer, _, _, []}], Useful),
    ?assertEqual([], (kept(Healed))#kept.missed).

%% Links stay up: messages are lost in silence. Who is in no part reaches all, so the
%% rest is a part too.
cut_off(Node, Count, World) ->
    Rest = atoll_sim_plumtree_node:names(Count) -- [Node],
    set({partition, [[Node], Rest]}, World).

what_left_all_caches_is_told_as_missed_test() ->
    Options = #{cache_max => 10, keep_ms => 400, exchange_ms => 1000},
    Built = broadcasts(n01, lists:seq(1, 5), 500, cluster(20, 4, Options)),
    Behind = broadcasts(n01, lists:seq(6, 55), 100, cut_off(n09, 20, forget(Built))),
    Healed = wait(20000, set(heal, Behind)),
    Got = received(n09, Healed),
    ?assertEqual(lists:seq(46, 55), lists:sort(Got)),
    ?assertEqual([{n09, n01, 40}], (kept(Healed))#kept.missed),
    %% It waits for nothing any more.
    After = wait(5000, broadcast(n01, 56, Healed)),
    ?assertEqual(Got ++ [56], received(n09, After)),
    ?assertEqual([{n09, n01, 40}], (kept(After))#kept.missed),
    ?assertEqual(200, counted(cache, After)).

an_island_catches_up_when_it_is_an_island_no_more_test() ->
    Names = atoll_sim_plumtree_node:names(60),
    {Here, There} = lists:split(30, Names),
    Built = broadcasts(n01, lists:seq(1, 5), 500, cluster(60, 5, #{})),
    Apart = forget(set({partition, [Here, There]}, Built)),
    Both = lists:foldl(
        fun(N, W) -> wait(500, broadcast(n60, {there, N}, broadcast(n01, {here, N}, W))) end, Apart, lists:seq(1, 20)
    ),
    ?assertEqual(20, length(received(n60, Both))),
    Healed = wait(30000, set(heal, Both)),
    Expected = lists:sort([{Side, N} || Side <- [here, there], N <- lists:seq(1, 20)]),
    ?assertEqual([], [Node || Node <- Names, lists:sort(received(Node, Healed)) =/= Expected]).

%% Before the next exchange by the clock

%% What it sends before it has neighbours comes to nobody, and what it sends next is held for that.
a_node_that_speaks_before_it_has_neighbours_is_heard_test_() ->
    atoll_sim_seeds:each(?FUNCTION_NAME, 10, fun(Seed) ->
        Names = atoll_sim_plumtree_node:names(12),
        World = atoll_sim_plumtree_node:world(
            atoll_sim_plumtree_node:random_graph(12, 4, Seed), #{options => #{exchange_ms => 1000000}, messages => true, watch => {fun see/4, #kept{}}}, Seed
        ),
        Founded = wait(5000, lists:foldl(fun atoll_sim_world:start/2, World, Names -- [n07])),
        Spoken = wait(2000, broadcast(n07, first, atoll_sim_world:start(n07, Founded))),
        Said = wait(500, broadcast(n07, second, Spoken)),
        [?assertEqual({Node, [first, second]}, {Node, received(Node, Said)}) || Node <- Names]
    end).

%% No other neighbour announces what was lost on the only way.
what_is_lost_on_the_only_way_comes_soon_after_what_follows_it_test() ->
    Line = #{n1 => [n2], n2 => [n1, n3], n3 => [n2, n4], n4 => [n3]},
    World = atoll_sim_plumtree_node:world(Line, #{options => #{exchange_ms => 1000000}, messages => true, watch => {fun see/4, #kept{}}}, 1),
    Begun = broadcasts(n1, [1], 500, wait(5000, lists:foldl(fun atoll_sim_world:start/2, World, [n1, n2, n3, n4]))),
    Lost = set({partition, []}, broadcasts(n1, [2], 100, set({partition, [[n1], [n2, n3, n4]]}, Begun))),
    Said = wait(4000, broadcast(n1, 3, Lost)),
    [?assertEqual({Node, [1, 2, 3]}, {Node, received(Node, Said)}) || Node <- [n1, n2, n3, n4]].

%% A sender that is too fast

%% Ten times as fast as it may be: what was sent is had by all, in its order.
what_was_not_refused_is_delivered_however_fast_it_was_sent_test() ->
    Options = #{cache_max => 200, window => 100, held_max => 100, exchange_ms => 5000},
    Faulty = set({loss, 0.02}, cluster(12, 4, Options)),
    Sent = wait(60000, set({loss, 0.0}, broadcasts(n01, lists:seq(1, 3000), 2, Faulty))),
    Accepted = received(n01, Sent),
    ?assertEqual(3000, length(Accepted) + counted(refused, Sent)),
    ?assert(counted(refused, Sent) > 1000),
    [?assertEqual({Node, Accepted}, {Node, received(Node, Sent)}) || Node <- atoll_sim_plumtree_node:names(12)],
    ?assertEqual([], (kept(Sent))#kept.missed).

%% Newcomers and restarts

a_newcomer_gets_no_history_test() ->
    Graph = atoll_sim_plumtree_node:random_graph(20, 4, 1),
    World0 = atoll_sim_plumtree_node:world(Graph, #{messages => true, watch => {fun see/4, #kept{}}}, 1),
    Founders = atoll_sim_plumtree_node:names(20) -- [n07],
    Founded = wait(5000, lists:foldl(fun atoll_sim_world:start/2, World0, Founders)),
    Before = broadcasts(n01, lists:seq(1, 20), 200, Founded),
    Joined = wait(30000, atoll_sim_world:start(n07, Before)),
    ?assertEqual([], received(n07, Joined)),
    After = wait(30000, broadcasts(n01, [21, 22], 500, Joined)),
    ?assertEqual([21, 22], lists:sort(received(n07, After))),
    ?assertEqual([], (kept(After))#kept.missed).

a_restarted_sender_is_heard_from_its_first_message_on_test() ->
    Before = broadcasts(n01, [a, b, c], 500, cluster(20, 4, #{})),
    Restarted = wait(5000, atoll_sim_world:start(n01, wait(1000, atoll_sim_world:kill(n01, Before)))),
    After = wait(15000, broadcasts(n01, [d, e], 500, Restarted)),
    ?assertEqual([], [
        Node
     || Node <- atoll_sim_plumtree_node:names(20) -- [n01], lists:sort(received(Node, After)) =/= [a, b, c, d, e]
    ]).

%% Exactly once, whatever the network does

every_message_is_delivered_exactly_once_test_() ->
    atoll_prop:test(?FUNCTION_NAME, exactly_once(), 60).

%% In the first two, neighbours that were restarted said that it was gone what they had never had.
-define(FAILED, [
    {2, 18, 12, 2, [
        {restart, n7}, {broadcast, n8}, {restart, n9}, {broadcast, n5}, {wait, 1000}, {broadcast, n7},
        {broadcast, n1}, {wait, 1}, cut, {wait, 50}, {broadcast, n2}, cut, {restart, n7}, {broadcast, n2},
        {broadcast, n1}, {restart, n9}, {broadcast, n8}, {wait, 1}, cut, {broadcast, n1}, cut, {wait, 1000},
        {restart, n7}, {broadcast, n5}, {broadcast, n2}
    ]},
    {1, 18, 12, 2, [
        {restart, n7}, {broadcast, n8}, {restart, n9}, {broadcast, n5}, {wait, 1000}, {broadcast, n7},
        {broadcast, n1}, {wait, 1}, cut, {broadcast, n2}, cut, {restart, n7}, {broadcast, n2}, {broadcast, n1},
        {restart, n9}, {restart, n7}, {broadcast, n2}
    ]},
    %% It held what an exchange had brought, for hold_ms yet.
    {1, 0, 0, 0, [{broadcast, n7}, {restart, n9}, {broadcast, n7}, {restart, n7}, {restart, n8}]}
]).

what_failed_once_holds_test_() ->
    [atoll_prop:again(exactly_once, exactly_once(), [Failed]) || Failed <- ?FAILED].

exactly_once() ->
    ?FORALL(
        {Seed, Loss, Duplicate, Reorder, Steps},
        {nat(), range(0, 20), range(0, 20), range(0, 30), resize(25, list(step()))},
        begin
            Faults = [{loss, Loss / 100}, {duplicate, Duplicate / 100}, {reorder, Reorder / 100, 200}],
            Faulty = lists:foldl(fun set/2, cluster(9, 4, #{}, Seed), Faults),
            {Sent, Lives, Troubled} = lists:foldl(fun do/2, {[], #{}, Faulty}, Steps),
            %% What an exchange brings after that is held for a minute.
            World = wait(90000, set(heal, wait(1000, Troubled))),
            holds(Sent, Lives, World)
        end
    ).

%% n1 to n6 never die; n7 to n9 do.
step() ->
    frequency([
        {6, {broadcast, elements([n1, n2, n5, n7, n8])}},
        {1, {restart, elements([n7, n8, n9])}},
        {1, cut},
        {3, {wait, elements([1, 50, 1000])}}
    ]).

%% Payloads are numbered; each is sent in some life of its sender.
do({broadcast, Node}, {Sent, Lives, World}) ->
    Id = length(Sent) + 1,
    {[{Id, Node, maps:get(Node, Lives, 1)} | Sent], Lives, broadcast(Node, {Id, maps:get(Node, Lives, 1)}, World)};
do({restart, Node}, {Sent, Lives, World}) ->
    Dead = wait(500, atoll_sim_world:kill(Node, World)),
    {Sent, Lives#{Node => maps:get(Node, Lives, 1) + 1}, wait(500, atoll_sim_world:start(Node, Dead))};
do(cut, {Sent, Lives, World}) ->
    Cut = set({partition, [[n4, n9], [n1, n2, n3, n5, n6, n7, n8]]}, World),
    {Sent, Lives, set({partition, []}, wait(3000, Cut))};
do({wait, Ms}, {Sent, Lives, World}) ->
    {Sent, Lives, wait(Ms, World)}.

holds(Sent, Lives, World) ->
    #kept{delivered = Delivered, missed = Missed} = kept(World),
    Lasting = [n1, n2, n3, n4, n5, n6],
    Got = fun(Node) -> lists:sort([Id || {N, _, {Id, _}} <- Delivered, N =:= Node]) end,
    %% Of a sender that died, the messages of its last life are owed.
    Owed = lists:sort([Id || {Id, From, Life} <- Sent, Life =:= maps:get(From, Lives, 1)]),
    conjunction([
        {once, equals([], [Node || Node <- Lasting, Got(Node) =/= lists:usort(Got(Node))])},
        {all, equals([], [{Node, Owed -- Got(Node)} || Node <- Lasting, Owed -- Got(Node) =/= []])},
        {in_order, equals([], [{Node, From} || Node <- Lasting, From <- [n1, n2, n5, n7, n8], not is_in_order(Node, From, Delivered)])},
        {nothing_else, equals([], [D || {_, From, {Id, L}} = D <- Delivered, not lists:member({Id, From, L}, Sent)])},
        {from_restarted, equals([], [Told || {Node, From, _} = Told <- Missed, lists:member(Node, Lasting), not is_map_key(From, Lives)])},
        {nothing_waits, equals(0, counted(missing, World) + counted(pending, World) + counted(held, World))}
    ]).

%% Payloads have the order of their numbers; newest first.
is_in_order(Node, From, Delivered) ->
    Ids = lists:reverse([Id || {N, F, {Id, _}} <- Delivered, N =:= Node, F =:= From]),
    Ids =:= lists:sort(Ids).
