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
