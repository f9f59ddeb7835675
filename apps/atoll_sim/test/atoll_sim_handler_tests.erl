%% SPDX-License-Identifier: Apache-2.0
%% Handlers of broadcasts in simulated clusters: whatever happens, all nodes that live end with
%% the same state, and what that costs is bounded.
-module(atoll_sim_handler_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% Kept: what was told as new, and the messages of handlers, newest first.
-record(kept, {new = [], sent = []}).

%% A node that started in a partition drew a dead contact time and again, and stayed alone.
-define(REGRESSIONS, [
    {mesh, 48, [
        {put, n3, registers, 5}, {pass, 470}, {start, n3}, {start, n4}, {start, n4}, {put, n1, registers, 3}, {kill, n5}, {kill, n3}, {partition, 2},
        {put, n3, set, 5}, {lose, n6, registers}, {start, n6}, {put, n1, set, 7}, {pass, 11646}, {put, n2, set, 5}, {put, n4, registers, 5}, {start, n5},
        {stop, n6, registers}, heal
    ]}
]).

see(_Now, Node, {notice, {Name, {new, Id, Value}}}, #kept{new = New} = Kept) ->
    Kept#kept{new = [{Node, Name, Id, Value} | New]};
see(_Now, Node, {sent, To, {Name, Message}}, #kept{sent = Sent} = Kept) when Name =/= overlay, Name =/= link ->
    Kept#kept{sent = [{Node, To, Message} | Sent]};
see(_Now, _Node, _Sight, Kept) ->
    Kept.

%% All nodes but the last Late are started, and settled.
cluster(Count, Late, Options) ->
    cluster(Count, Late, Options, 1).

cluster(Count, Late, Options, Seed) ->
    World = atoll_sim_handler_node:world(Count, Options#{watch => {fun see/4, #kept{}}}, Seed),
    pass(20000, lists:foldl(fun atoll_sim_world:start/2, World, lists:sublist(names(Count), Count - Late))).

names(Count) -> atoll_sim_handler_node:names(Count).
pass(Ms, World) -> atoll_sim_world:run(atoll_sim_world:now(World) + Ms, World).
set(Setting, World) -> atoll_sim_world:set(Setting, World).
cast(Node, What, World) -> atoll_sim_world:cast(Node, What, World).
kept(World) -> atoll_sim_world:watched(World).
forget(World) -> atoll_sim_world:watch({fun see/4, #kept{}}, World).

%% A register's stamp is the time with the node, as a user would take it.
write(Node, Key, Value, World) ->
    cast(Node, {put, registers, Key, {{atoll_sim_world:now(World), Node}, Value}}, World).

writes(Node, Keys, Pause, World) ->
    lists:foldl(fun(Key, W) -> pass(Pause, write(Node, Key, {value, Key}, W)) end, World, Keys).

values(Name, Node, World) ->
    atoll_sim_handler_node:values(Name, atoll_sim_world:state(Node, World)).

keys(Node, World) ->
    [Key || {Key, _, _} <- values(registers, Node, World)].

%% The nodes whose registers are not these.
without(Keys, World) ->
    [Node || Node <- atoll_sim_world:alive(World), keys(Node, World) =/= Keys].

all_equal(Name, World) ->
    length(lists:usort([values(Name, Node, World) || Node <- atoll_sim_world:alive(World)])) =:= 1.

%% Ms until a condition holds, looked at each 100 ms.
await(IsTrue, Max, World) ->
    await(IsTrue, 0, Max, World).

await(IsTrue, Ms, Max, World) ->
    case IsTrue(World) of
        true ->
            {Ms, World};
        false ->
            ?assert(Ms < Max),
            await(IsTrue, Ms + 100, Max, pass(100, World))
    end.

%% Late, lost, cut off

a_node_that_starts_late_has_the_state_test() ->
    Keys = lists:seq(1, 30),
    World = writes(n01, Keys, 50, cluster(10, 1, #{})),
    Late = atoll_sim_world:start(n10, World),
    {Ms, _} = await(fun(W) -> without(Keys, W) =:= [] end, 10000, Late),
    ?assert(Ms =< 3000, Ms).

a_handler_that_starts_late_or_is_lost_has_the_state_test() ->
    Keys = lists:seq(1, 30),
    Stopped = cast(n07, {stop, registers}, cluster(10, 0, #{})),
    World = writes(n01, Keys, 50, Stopped),
    ?assertEqual(none, values(registers, n07, World)),
    {Ms, Equal} = await(fun(W) -> without(Keys, W) =:= [] end, 3000, cast(n07, {start, registers}, World)),
    Lost = cast(n03, {lose, registers}, Equal),
    ?assertEqual([], keys(n03, Lost)),
    {AlsoMs, _} = await(fun(W) -> without(Keys, W) =:= [] end, 3000, Lost),
    ?assert(max(Ms, AlsoMs) =< 1000, {Ms, AlsoMs}).

%% Broadcasts bring next to nothing of it: they are kept for a moment.
two_sides_of_a_partition_become_equal_test_() ->
    {timeout, 600, fun() ->
        {Here, There} = lists:split(50, names(100)),
        Cluster = cluster(100, 0, #{broadcast => #{cache_max => 10, keep_ms => 100}, start => [registers]}),
        Apart = pass(15000, set({partition, [Here, There]}, Cluster)),
        {Left, Right} = {lists:seq(1, 100), lists:seq(101, 200)},
        Wrote = pass(10000, writes(n100, Right, 20, writes(n001, Left, 20, Apart))),
        ?assertEqual({There, Here}, {without(Left, Wrote), without(Right, Wrote)}),
        {Ms, Whole} = await(fun(W) -> without(Left ++ Right, W) =:= [] end, 60000, set(heal, forget(Wrote))),
        ?assert(Ms =< 15000, Ms),
        %% Nobody is told what it has been told before.
        ?assertEqual(100 * 100, lists:sum([length(Piece) || {_, _, {piece, Piece, _}} <- (kept(Whole))#kept.sent])),
        ?assertMatch(#kept{new = []}, kept(pass(10000, forget(Whole))))
    end}.

a_broadcast_that_is_lost_for_good_comes_by_a_comparison_test() ->
    World = cluster(5, 0, #{strategy => mesh}),
    %% Its sender ends before anybody could ask again; one node has it.
    Cut = set({cut, [n1], [n2, n3, n4]}, World),
    Said = pass(300, write(n1, key, value, Cut)),
    ?assertEqual([key], keys(n5, Said)),
    {_, Equal} = await(fun(W) -> without([key], W) =:= [] end, 30000, set(heal, atoll_sim_world:kill(n1, Said))),
    ?assertEqual([n2, n3, n4, n5], atoll_sim_world:alive(Equal)).

%% What is said

a_stale_value_is_told_to_nobody_test() ->
    World = pass(5000, write(n3, key, new, cluster(8, 0, #{}))),
    Old = {{1, n1}, old},
    %% On the node itself, and, broadcast all the same, on the others.
    Put = pass(5000, cast(n1, {put, registers, key, Old}, forget(World))),
    Broadcast = pass(5000, cast(n1, {broadcast, {registers, {key, Old}}}, Put)),
    ?assertEqual([], (kept(Broadcast))#kept.new),
    ?assert(all_equal(registers, Broadcast)).

each_new_value_is_told_once_on_each_node_test() ->
    World = pass(30000, writes(n1, lists:seq(1, 40), 50, set({loss, 0.2}, cluster(8, 0, #{})))),
    {_, Equal} = await(fun(W) -> without(lists:seq(1, 40), W) =:= [] end, 60000, set({loss, 0}, World)),
    New = (kept(Equal))#kept.new,
    ?assertEqual(8 * 40, length(New)),
    ?assertEqual(length(New), length(lists:usort(New))).

%% What it costs

pieces_are_bounded_and_a_late_node_is_told_once_test() ->
    Keys = lists:seq(1, 1000),
    Large = fun(Key, W) -> pass(5, write(n01, Key, binary:copy(<<Key:16>>, 1 + Key rem 500), W)) end,
    World = pass(10000, lists:foldl(Large, cluster(10, 1, #{}), Keys)),
    {_, Late} = await(fun(W) -> without(Keys, W) =:= [] end, 10000, atoll_sim_world:start(n10, forget(World))),
    Pieces = [Piece || {_, n10, {piece, Piece, _}} <- (kept(pass(20000, Late)))#kept.sent],
    ?assertEqual([], [length(P) || P <- Pieces, length(P) > 100]),
    ?assertEqual([], [B || P <- Pieces, length(P) > 1, B <- [lists:sum([erlang:external_size(S) || S <- P])], B > 65536]),
    ?assertEqual(1000, lists:sum([length(P) || P <- Pieces])).

equal_nodes_say_next_to_nothing_test() ->
    Rest = pass(60000, forget(pass(30000, writes(n01, lists:seq(1, 100), 20, cluster(20, 0, #{start => [registers]}))))),
    Sent = (kept(Rest))#kept.sent,
    %% One question and one answer in ten seconds each, a quarter more or less.
    ?assert(length(Sent) =< 2 * 20 * 8, length(Sent)),
    ?assert(length(Sent) >= 2 * 20 * 4, length(Sent)),
    ?assertEqual([], [M || {_, _, M} <- Sent, M =/= same, element(1, M) =/= compare]).

a_node_without_the_handler_answers_nothing_test() ->
    World = cast(n2, {stop, registers}, cluster(3, 0, #{strategy => mesh, start => [registers]})),
    Sent = (kept(pass(60000, forget(pass(5000, World)))))#kept.sent,
    ?assertEqual([], [M || {n2, _, M} <- Sent]),
    ?assertEqual([compare], lists:usort([element(1, M) || {_, n2, M} <- Sent])),
    ?assert(length([M || {_, n2, M} <- Sent]) =< 2 * 8).

%% Whatever happens

%% n1 and n2 live through all of it, with their handlers: what they have put is there at the end.
whatever_happens_all_end_equal_test_() ->
    [
        atoll_prop:again(prop_equal, prop_equal(), [Counterexample])
     || Counterexample <- ?REGRESSIONS
    ] ++ [atoll_prop:test("whatever happens all end equal", prop_equal(), 300)].

prop_equal() ->
    ?FORALL({Strategy, Seed, Steps}, {oneof([hyparview, mesh, star]), seed(), list(step())}, begin
        Begun = cluster(6, 1, #{strategy => Strategy, options => #{piece_max => 2}}, Seed),
        World = pass(90000, end_faults(lists:foldl(fun do/2, Begun, Steps))),
        Puts = lists:usort([{Name, Id} || {put, Node, Name, Id} <- Steps, Node =:= n1 orelse Node =:= n2]),
        Final = [{registers, Key} || Key <- keys(n1, World)] ++ [{set, E} || E <- values(set, n1, World)],
        ?WHENFAIL(
            io:format("~p~n", [[{N, values(registers, N, World), values(set, N, World)} || N <- atoll_sim_world:alive(World)]]),
            all_equal(registers, World) andalso all_equal(set, World) andalso Puts -- Final =:= []
        )
    end).

seed() -> range(1, 1 bsl 20).

step() ->
    frequency([
        {8, {put, oneof(names(6)), oneof([registers, set]), range(1, 12)}},
        {2, {pass, range(1, 15000)}},
        {1, {kill, oneof([n3, n4, n5, n6])}},
        {2, {start, oneof([n3, n4, n5, n6])}},
        {1, {lose, oneof([n3, n4, n5, n6]), oneof([registers, set])}},
        {1, {stop, oneof([n3, n4, n5, n6]), oneof([registers, set])}},
        {1, {partition, range(1, 5)}},
        {1, {loss, oneof([0.05, 0.3])}},
        {1, heal}
    ]).

do({put, Node, Name, Id}, World) ->
    Value =
        case Name of
            registers -> {{atoll_sim_world:now(World), Node}, Id};
            set -> in
        end,
    pass(7, on(Node, {put, Name, Id, Value}, World));
do({pass, Ms}, World) -> pass(Ms, World);
do({kill, Node}, World) ->
    case atoll_sim_world:status(Node, World) of
        dead -> World;
        _ -> atoll_sim_world:kill(Node, World)
    end;
do({start, Node}, World) ->
    case atoll_sim_world:status(Node, World) of
        dead -> pass(1, atoll_sim_world:start(Node, World));
        _ -> World
    end;
do({lose, Node, Name}, World) -> on(Node, {lose, Name}, World);
do({stop, Node, Name}, World) -> on(Node, {stop, Name}, World);
do({partition, At}, World) ->
    {Here, There} = lists:split(At, names(6)),
    set({partition, [Here, There]}, World);
do({loss, Loss}, World) -> set({loss, Loss}, World);
do(heal, World) -> set(heal, World).

on(Node, What, World) ->
    case atoll_sim_world:status(Node, World) of
        dead -> World;
        _ -> cast(Node, What, World)
    end.

%% Every handler that was stopped is started again.
end_faults(World0) ->
    World = set({loss, 0}, set(heal, World0)),
    lists:foldl(
        fun({Node, Name}, W) ->
            case values(Name, Node, W) of
                none -> cast(Node, {start, Name}, W);
                _ -> W
            end
        end,
        World,
        [{Node, Name} || Node <- atoll_sim_world:alive(World), Name <- [registers, set]]
    ).
