%% SPDX-License-Identifier: Apache-2.0
%% Every node of a simulated cluster knows all its members, and no others.
-module(atoll_sim_roster_tests).

-include_lib("eunit/include/eunit.hrl").

-export([new/1, grown/1, pass/2, world/1, do/2, wrong/1, members/2, see/4, sum/2, churn/3, set/2]).



-define(SECONDS(N, Test), {timeout, N, fun() -> atoll_sim_cluster:isolated(fun() -> Test end) end}).

%% Of each node who is up in the eyes of whom, so that up and down alternate; and what
%% messages of the roster there were.
see(_Now, Node, {notice, {member_up, Of}}, {Up, Sent}) ->
    false = is_map_key({Node, Of}, Up),
    false = Node =:= Of,
    {Up#{{Node, Of} => []}, Sent};
see(_Now, Node, {notice, {member_down, Of, Why}}, {Up, Sent}) ->
    true = lists:member(Why, [dead, left]),
    {[], Rest} = maps:take({Node, Of}, Up),
    {Rest, Sent};
see(_Now, Node, killed, {Up, Sent}) ->
    {maps:filter(fun({By, _}, _) -> By =/= Node end, Up), Sent};
see(_Now, _Node, {sent, _To, {_, _, roster, Message}}, {Up, {Messages, Entries, Bytes}}) ->
    {Up, {Messages + 1, Entries + entries(Message), Bytes + erlang:external_size(Message)}};
see(_Now, _Node, _Sight, Kept) ->
    Kept.

entries({buckets, Buckets}) -> lists:sum([length(Entries) || {_, Entries} <- Buckets]);
entries({_, Entries}) when is_list(Entries) -> length(Entries);
entries(_) -> 0.

new(Options) ->
    Defaults = #{
        nodes => 60, broadcast => off, roster => #{}, settle_ms => 30000,
        watch => {fun see/4, {#{}, {0, 0, 0}}}
    },
    {ok, Cluster} = atoll_sim_cluster:new(maps:merge(Defaults, Options)),
    Cluster.

grown(Options) -> atoll_sim_cluster:grow(new(Options)).

world(Cluster) -> atoll_sim_cluster:world(Cluster).

do(Fun, Cluster) -> atoll_sim_cluster:update(Fun, Cluster).

pass(Ms, Cluster) -> atoll_sim_cluster:wait(Ms, Cluster).

members(Node, Cluster) -> atoll_overlay_core:members(atoll_sim_cluster:overlay(Node, Cluster)).

%% The nodes that do not know just those who live, and the difference.
wrong(Cluster) ->
    Alive = atoll_sim_world:alive(world(Cluster)),
    [
        {Node, {lacks, Alive -- Known}, {has, Known -- Alive}}
     || Node <- Alive, Known <- [members(Node, Cluster)], Known =/= Alive
    ].

sum(Key, Cluster) ->
    lists:sum([
        maps:get(Key, maps:get(roster, atoll_overlay_core:summary(atoll_sim_cluster:overlay(Node, Cluster))))
     || Node <- atoll_sim_world:alive(world(Cluster))
    ]).

kill(Nodes, Cluster) -> do(fun(W) -> lists:foldl(fun atoll_sim_world:kill/2, W, Nodes) end, Cluster).

set(Setting, Cluster) -> do(fun(W) -> atoll_sim_world:set(Setting, W) end, Cluster).

%% So many times, 500 ms apart, a node is killed and one of the dead starts again.
churn(0, _Dead, Cluster) ->
    Cluster;
churn(Times, Dead0, Cluster0) ->
    Mortal = atoll_sim_world:alive(world(Cluster0)) -- atoll_sim_cluster:contacts(Cluster0),
    {Victims, Cluster1} = atoll_sim_cluster:random(1, Mortal, Cluster0),
    Killed = kill(Victims, Cluster1),
    {Cluster, Dead} =
        case Dead0 of
            [Back | Others] when length(Dead0) > 5 -> {atoll_sim_cluster:start(Back, fresh, Killed), Others ++ Victims};
            _ -> {Killed, Dead0 ++ Victims}
        end,
    churn(Times - 1, Dead, pass(500, Cluster)).

%% The tests

a_cluster_that_has_grown_knows_itself_test_() ->
    [
        {atom_to_list(Strategy), ?SECONDS(60, ?assertEqual([], wrong(grown(#{strategy => Strategy, seed => Seed}))))}
     || {Strategy, Seed} <- [{hyparview, 1}, {mesh, 2}, {star, 3}, {scamp, 4}, {cliques, 5}, {static, 6}]
    ].

who_leaves_and_joins_again_test_() ->
    [
        {atom_to_list(Strategy), ?SECONDS(60, leaves_and_returns(Strategy))}
     || Strategy <- [hyparview, mesh, star, scamp]
    ].

leaves_and_returns(Strategy) ->
    C0 = grown(#{strategy => Strategy, seed => 11, nodes => 30, messages => true}),
    Leaver = lists:last(atoll_sim_cluster:names(C0)),
    C1 = pass(20000, do(fun(W) -> atoll_sim_world:cast(Leaver, leave, W) end, C0)),
    %% What it knew of the others stays as it was.
    ?assertEqual(lists:delete(Leaver, atoll_sim_cluster:names(C1)), members(Leaver, C1)),
    ?assertEqual([], atoll_overlay_core:neighbours(atoll_sim_cluster:overlay(Leaver, C1))),
    Others = atoll_sim_cluster:names(C1) -- [Leaver],
    ?assertEqual([Others], lists:usort([members(Node, C1) || Node <- Others])),
    Contacts = atoll_sim_cluster:contacts(C1),
    C2 = pass(20000, do(fun(W) -> atoll_sim_world:cast(Leaver, {join, Contacts}, W) end, C1)),
    ?assertEqual([], wrong(C2)),
    ?assertNotEqual([], atoll_overlay_core:neighbours(atoll_sim_cluster:overlay(Leaver, C2))).

%% Nodes crash, leave, start again, and are cut off, while messages are lost; when all
%% that is over every node knows just those who live. That up and down alternate is
%% seen on the way; at the end they have told of the same members.
whatever_happens_all_tables_become_equal_test_() ->
    [
        {lists:concat([Strategy, " ", Nodes, " seed ", Seed]), ?SECONDS(120, becomes_equal(Strategy, Nodes, Seed))}
     || {Strategy, Nodes, Seeds} <- worlds(atoll_tier:tier()), Seed <- atoll_sim_seeds:of_run({Strategy, Nodes}, Seeds)
    ].

worlds(fast) -> [{hyparview, 30, 3}, {mesh, 20, 1}, {star, 20, 1}, {scamp, 30, 1}];
worlds(deep) -> [{hyparview, 30, 6}, {hyparview, 80, 2}, {hyparview, 200, 1}, {mesh, 30, 1}, {star, 30, 1}, {scamp, 60, 1}].

becomes_equal(Strategy, Nodes, Seed) ->
    C0 = set({loss, 0.03}, grown(#{strategy => Strategy, nodes => Nodes, seed => Seed})),
    C1 = churn(40, [], C0),
    {Leavers, C2} = atoll_sim_cluster:random(3, mortal(C1), C1),
    C3 = pass(3000, do(fun(W) -> lists:foldl(fun(N, V) -> atoll_sim_world:cast(N, leave, V) end, W, Leavers) end, C2)),
    C4 = kill(Leavers, C3),
    {Island, C5} = atoll_sim_cluster:random(Nodes div 3, atoll_sim_cluster:names(C4), C4),
    Rest = atoll_sim_cluster:names(C5) -- Island,
    C6 = churn(20, [], pass(15000, set({partition, [Island, Rest]}, C5))),
    {Half, C7} = atoll_sim_cluster:random(length(mortal(C6)) div 2, mortal(C6), C6),
    C8 = pass(120000, set(heal, kill(Half, C7))),
    ?assertEqual([], wrong(C8)),
    {Up, _} = atoll_sim_cluster:watched(C8),
    Alive = atoll_sim_world:alive(world(C8)),
    ?assertEqual([{A, B} || A <- Alive, B <- Alive, A =/= B], lists:sort(maps:keys(Up))).

%% The same, and what each says of itself meanwhile; who starts again has forgotten it.
the_last_word_of_each_about_itself_is_known_to_all_test_() ->
    [
        {lists:concat([Strategy, " seed ", Seed]), ?SECONDS(120, hears_last_words(Strategy, Seed))}
     || Strategy <- [hyparview, mesh], Seed <- atoll_sim_seeds:of_run({metadata, Strategy}, atoll_tier:size(roster_seeds))
    ].

hears_last_words(Strategy, Seed) ->
    C0 = set({loss, 0.03}, say(first, 1, grown(#{strategy => Strategy, nodes => 25, seed => Seed}))),
    C1 = say(second, 3, churn(20, [], C0)),
    {Island, C2} = atoll_sim_cluster:random(8, atoll_sim_cluster:names(C1), C1),
    C3 = set({partition, [Island, atoll_sim_cluster:names(C2) -- Island]}, C2),
    C4 = say(third, 2, churn(10, [], pass(5000, C3))),
    C5 = pass(120000, set(heal, C4)),
    ?assertEqual([], wrong(C5)),
    Alive = atoll_sim_world:alive(world(C5)),
    Said = [{Node, meta(Node, Node, C5)} || Node <- Alive],
    ?assertMatch([_, _ | _], lists:usort([maps:keys(Meta) || {_, Meta} <- Said])),
    [?assertEqual({By, Said}, {By, [{Node, meta(Node, By, C5)} || Node <- Alive]}) || By <- Alive].

%% Every so manyth of them.
say(Word, Every, Cluster) ->
    Alive = atoll_sim_world:alive(world(Cluster)),
    Sayers = [Node || {N, Node} <- lists:zip(lists:seq(1, length(Alive)), Alive), N rem Every =:= 0],
    Say = fun(Node, W) -> atoll_sim_world:cast(Node, {set_meta, #{Word => Node}}, W) end,
    do(fun(W) -> lists:foldl(Say, W, Sayers) end, Cluster).

meta(Of, By, Cluster) -> atoll_overlay_core:meta(Of, atoll_sim_cluster:overlay(By, Cluster)).

mortal(Cluster) ->
    atoll_sim_world:alive(world(Cluster)) -- atoll_sim_cluster:contacts(Cluster).

%% Their five watchers or so died with them.
members_whose_watchers_died_too_are_found_dead_test_() ->
    ?SECONDS(60, begin
        C0 = grown(#{nodes => 100, seed => 21}),
        {Half, C1} = atoll_sim_cluster:random(70, mortal(C0), C0),
        C2 = pass(15000, kill(Half, C1)),
        ?assertNotEqual([], wrong(C2)),
        C3 = pass(75000, C2),
        ?assertEqual([], wrong(C3)),
        ?assert(sum(found_dead, C3) > 0)
    end).

%% Many more ends than `max_gone', in one moment: whoever has heard of one hears of it alive from those
%% who have not.
nobody_comes_back_when_most_die_at_once_test_() ->
    ?SECONDS(60, begin
        C0 = grown(#{nodes => 100, seed => 23, roster => #{max_gone => 5}}),
        {Most, C1} = atoll_sim_cluster:random(80, atoll_sim_cluster:names(C0), C0),
        C2 = pass(120000, kill(Most, atoll_sim_cluster:watch({fun ups/4, []}, C1))),
        ?assertEqual([], [Node || Node <- atoll_sim_cluster:watched(C2), lists:member(Node, Most)]),
        ?assertEqual([], wrong(C2))
    end).

ups(_Now, _Node, {notice, {member_up, Of}}, Ups) -> [Of | Ups];
ups(_Now, _Node, _Sight, Ups) -> Ups.

%% As one does that was away while more ended than are remembered. The audit finds them.
the_dead_that_somebody_brings_do_not_stay_test_() ->
    ?SECONDS(60, begin
        %% What it starts with it has not been told, so see/4 would miss it.
        C0 = grown(#{nodes => 40, seed => 22, watch => {fun ups/4, []}}),
        Back = lists:last(mortal(C0)),
        C1 = pass(30000, kill([Back], C0)),
        Dead = [list_to_atom("dead" ++ integer_to_list(N)) || N <- lists:seq(1, 8)],
        Table = lists:foldl(
            fun(Node, T) -> element(2, atoll_roster_table:put(Node, {1, alive}, T)) end,
            atoll_roster_table:new(Back, 100, 100),
            Dead
        ),
        C2 = pass(20000, atoll_sim_cluster:start(Back, {members, Table}, C1)),
        ?assertMatch([_ | _], [Node || {Node, _, {has, [_ | _]}} <- wrong(C2), Node =/= Back]),
        C3 = pass(120000, C2),
        ?assertEqual([], wrong(C3)),
        ?assert(sum(found_dead, C3) > 0)
    end).

%% Per node: a join, a crash or a leave is told about once over each of its five links
%% in one direction, and rest costs one small message every ten seconds and a question
%% of the audit.
what_it_costs_does_not_grow_with_the_cluster_test_() ->
    Few = atoll_tier:size(roster_nodes),
    ?SECONDS(100, begin
        [{JoinSmall, RestSmall}, {JoinLarge, RestLarge}] = [cost(Nodes) || Nodes <- [Few, 4 * Few]],
        ?assert(JoinSmall < 7 andalso JoinLarge < 7),
        ?assert(RestSmall < 0.4 andalso RestLarge < 0.4)
    end).

%% Entries per node for a join; messages per node and second at rest.
cost(Nodes) ->
    C0 = grown(#{nodes => Nodes, seed => 31, messages => true}),
    {Messages, _, _} = sent(C0),
    C1 = pass(60000, C0),
    {Later, _, _} = sent(C1),
    C2 = pass(20000, kill([lists:last(mortal(C1))], C1)),
    {_, Entries, _} = sent(C2),
    C3 = pass(10000, atoll_sim_cluster:start(lists:last(atoll_sim_cluster:names(C2)), fresh, C2)),
    ?assertEqual([], wrong(C3)),
    {_, More, _} = sent(C3),
    {(More - Entries) / Nodes, (Later - Messages) / Nodes / 60}.

sent(Cluster) -> element(2, atoll_sim_cluster:watched(Cluster)).
