%% SPDX-License-Identifier: Apache-2.0
%% Acknowledged broadcasts in clusters with all that a node runs by default: who is said to have
%% got a message has, and who has is said to.
-module(atoll_sim_acks_tests).

-include_lib("eunit/include/eunit.hrl").

-define(TIMEOUT_MS, 30000).

count() -> atoll_tier:size(acks_nodes).

see(Now, Node, {notice, {broadcast, _From, Payload}}, Kept) -> [{delivered, Payload, Node, Now} | Kept];
see(Now, _Node, {reply, Id, Answer}, Kept) -> [{reply, Id, Answer, Now} | Kept];
see(_Now, Node, {sent, To, {_, _, broadcast, {acks, _}}}, Kept) -> [{told, Node, To} | Kept];
see(_Now, _Node, _Sight, Kept) -> Kept.

cluster(Seed) -> cluster(Seed, #{}).

%% Its neighbours still change.
cluster(Seed, Options) -> cluster(Seed, Options, #{nodes => count(), settle_ms => 20000}).

cluster(Seed, Options, Size) ->
    {ok, New} = atoll_sim_cluster:new(Size#{
        roster => #{}, broadcast => Options, seed => Seed, messages => true, watch => {fun see/4, []}
    }),
    %% Trees are built.
    Grown = atoll_sim_cluster:grow(New),
    lists:foldl(fun(N, C) -> wait(500, cast(sender(C), {broadcast, {early, N}}, C)) end, Grown, lists:seq(1, 5)).

sender(Cluster) -> lists:last(atoll_sim_cluster:names(Cluster)).
near(Cluster) -> proplists:get_value(sender(Cluster), atoll_sim_cluster:neighbours(Cluster)).
wait(Ms, Cluster) -> atoll_sim_cluster:wait(Ms, Cluster).
do(Fun, Cluster) -> atoll_sim_cluster:update(Fun, Cluster).
cast(Node, Term, Cluster) -> do(fun(World) -> atoll_sim_world:cast(Node, Term, World) end, Cluster).
set(Setting, Cluster) -> do(fun(World) -> atoll_sim_world:set(Setting, World) end, Cluster).
kill(Nodes, Cluster) -> lists:foldl(fun(Node, C) -> do(fun(World) -> atoll_sim_world:kill(Node, World) end, C) end, Cluster, Nodes).

%% The numbers of calls are those of the world.
ask(Payload, Need, Cluster) ->
    do(fun(World) -> element(2, atoll_sim_world:call(sender(Cluster), {broadcast, Payload, Need, ?TIMEOUT_MS}, World)) end, Cluster).

answers(Cluster) -> [{Answer, At} || {reply, _, Answer, At} <- lists:reverse(atoll_sim_cluster:watched(Cluster))].
%% There is an answer.
answered(Cluster) ->
    case answers(Cluster) of
        [] -> answered(wait(1000, Cluster));
        [_] -> Cluster
    end.

got(Payload, Cluster) -> lists:usort([Node || {delivered, P, Node, _} <- atoll_sim_cluster:watched(Cluster), P =:= Payload]).

each_seed(Name, Fun) ->
    {inparallel, 2, atoll_sim_seeds:each(Name, 5, fun(Seed) -> atoll_sim_cluster:isolated(fun() -> Fun(Seed) end) end)}.

%% Nobody is asked, here and in the next.
at_rest_only_neighbours_tell_the_sender_test_() ->
    each_seed(?FUNCTION_NAME, fun(Seed) ->
        Cluster = cluster(Seed, #{ask_ms => ?TIMEOUT_MS}, #{nodes => 40, settle_ms => 60000}),
        Done = wait(2000, ask(x, all, Cluster)),
        ?assertMatch([{{ok, [_ | _]}, _}], answers(Done)),
        Told = [From || {told, From, To} <- atoll_sim_cluster:watched(Done), To =:= sender(Done)],
        ?assertMatch([_ | _], Told),
        ?assertEqual([], lists:usort(Told) -- near(Cluster))
    end).

%% Whoever has lost the neighbour that it told tells the sender itself.
all_acknowledge_while_neighbours_change_test_() ->
    each_seed(?FUNCTION_NAME, fun(Seed) ->
        Cluster = cluster(Seed, #{ask_ms => ?TIMEOUT_MS}),
        Begun = atoll_sim_cluster:now(Cluster),
        Done = wait(3000, ask(x, all, Cluster)),
        ?assertMatch([_], answers(Done)),
        [{Answer, At}] = answers(Done),
        ?assertEqual({ok, lists:sort(atoll_sim_cluster:names(Done))}, Answer),
        %% One that is asked for comes after lazy_ms and graft_ms.
        ?assert(At - Begun < 2000, At - Begun),
        ?assertMatch([{{ok, [_, _, _ | _]}, _}], tl(answers(wait(1000, ask(y, 3, Done)))))
    end).

%% A tenth of the messages is lost.
with_losses_all_acknowledge_too_test_() ->
    each_seed(?FUNCTION_NAME, fun(Seed) ->
        Done = answered(ask(x, all, set({loss, 0.1}, cluster(Seed)))),
        ?assertMatch([{{ok, _}, _}], answers(Done)),
        [{{ok, Nodes}, _}] = answers(Done),
        ?assertEqual(got(x, Done), Nodes),
        ?assertEqual(count(), length(Nodes))
    end).

%% It is the last word of its sender: nothing that follows shows that it is missing.
what_came_to_nobody_is_brought_to_who_is_asked_test_() ->
    each_seed(?FUNCTION_NAME, fun(Seed) ->
        Cluster = cluster(Seed, #{exchange_ms => 1000000}),
        Begun = atoll_sim_cluster:now(Cluster),
        Rest = atoll_sim_cluster:names(Cluster) -- [sender(Cluster)],
        Cut = wait(300, ask(x, all, set({partition, [[sender(Cluster)], Rest]}, Cluster))),
        ?assertEqual([sender(Cluster)], got(x, Cut)),
        [{Answer, At}] = answers(answered(set({partition, []}, Cut))),
        ?assertEqual({ok, lists:sort(atoll_sim_cluster:names(Cluster))}, Answer),
        ?assert(At - Begun < 5000, At - Begun)
    end).

%% Inner nodes of the tree among them.
who_dies_meanwhile_is_named_and_nobody_else_test_() ->
    each_seed(?FUNCTION_NAME, fun(Seed) ->
        Cluster = set({loss, 0.02}, cluster(Seed)),
        Near = near(Cluster),
        Begun = atoll_sim_cluster:now(Cluster),
        Dead = lists:sublist(Near, 2) ++ lists:sublist(atoll_sim_cluster:names(Cluster) -- [sender(Cluster) | Near], 1 + Seed rem 7, 8),
        Done = answered(kill(Dead, wait(20 + Seed rem 60, ask(x, all, Cluster)))),
        [{Answer, At}] = answers(Done),
        case Answer of
            {ok, Nodes} -> ?assertEqual([], Nodes -- got(x, Done));
            {error, {unanswered, Nodes}} -> ?assertEqual([], Nodes -- Dead)
        end,
        %% As soon as they are known to be dead.
        ?assert(At - Begun < ?TIMEOUT_MS, At - Begun)
    end).
