%% SPDX-License-Identifier: Apache-2.0
%% @doc The experiment `broadcast': what arrives, how often, over how many hops and
%% how late.
%%
%% The cluster grows, settles, and comes to rest: hardly a link is new any more. Some
%% broadcasts of each sender build its tree and are not counted: the first goes over
%% every link, the next ones bring the tree down to short paths. Then the messages
%% follow, evenly spaced, the senders taking turns. With churn a share of the nodes is killed each second meanwhile,
%% and each of them starts again a few seconds later, as a new life that remembers
%% nothing. A message is owed to every life that had a neighbour when it was sent
%% and is still there a while after the last one was.
-module(atoll_sim_broadcast).

-export([run/1]).

-export_type([options/0, result/0]).

-type options() :: #{
    nodes := pos_integer(),
    messages := pos_integer(),
    senders := pos_integer(),
    %% The share of the nodes that is killed, and started again, each second.
    churn := float(),
    atom() => term()
}.

-type result() :: #{
    strategy := atom(),
    nodes := pos_integer(),
    seed := integer(),
    messages := pos_integer(),
    senders := pos_integer(),
    %% The share of what is owed that arrived.
    delivered := float(),
    %% Payload copies beyond one per node and message, relative.
    redundancy := float(),
    hops_max := non_neg_integer(),
    latency_ms_p50 := number() | none,
    latency_ms_p99 := number() | none,
    messages_per_node_per_s := float(),
    virtual_ms := non_neg_integer(),
    wall_ms := non_neg_integer(),
    events_per_s := non_neg_integer()
}.

%% Messages a second, all senders together.
-define(PER_S, 10).
%% Broadcasts of each sender before the count.
-define(BUILDING, 60).
%% The overlay is at rest when so few of its links are new after a period, a shuffle
%% of every node; it is not waited for any longer than that.
-define(REST, 0.001).
-define(REST_MS, 10000).
-define(RESTLESS_MS, 300000).
%% For the last of these to settle, and for the last message to arrive, an exchange
%% with a neighbour included.
-define(BUILD_MS, 15000).
-define(ARRIVE_MS, 30000).
%% How long a killed node is away, and how often some are killed.
-define(AWAY_MS, 5000).
-define(CHURN_STEP_MS, 100).

%% @doc Runs the experiment.
-spec run(options()) -> {ok, result()} | {error, atoll_sim_cluster:error()}.
run(Options) ->
    Own = maps:with([messages, senders, churn], Options),
    Watched = (maps:without(maps:keys(Own), Options))#{
        watch => {fun atoll_sim_deliveries:see/4, atoll_sim_deliveries:new()}, messages => true
    },
    atoll_sim_cluster:experiment(Watched, fun(Cluster) -> spread(Own, atoll_sim_cluster:grow(Cluster)) end).

spread(#{messages := Messages, senders := SenderCount, churn := Churn}, Cluster0) ->
    %% Contacts are not killed, and so they do not stop sending.
    Names = atoll_sim_cluster:names(Cluster0),
    Senders = lists:sublist(Names, SenderCount),
    Built = atoll_sim_cluster:wait(?BUILD_MS, build(Senders, rest(Cluster0))),
    #{sent := Sent0} = atoll_sim_cluster:counters(Built),
    Begin = atoll_sim_cluster:now(Built),
    Fresh = atoll_sim_deliveries:forget(atoll_sim_cluster:watched(Built)),
    Counting = atoll_sim_cluster:watch({fun atoll_sim_deliveries:see/4, Fresh}, Built),
    Mortal = Names -- lists:usort(Senders ++ atoll_sim_cluster:contacts(Counting)),
    LastMs = Messages * 1000 div ?PER_S,
    Sending = lists:foldl(
        fun(Id, C) ->
            Sender = lists:nth(1 + Id rem SenderCount, Senders),
            atoll_sim_cluster:at(Begin + (Id - 1) * 1000 div ?PER_S, fun(W) -> atoll_sim_deliveries:send(Id, Sender, W) end, C)
        end,
        Counting,
        lists:seq(1, Messages)
    ),
    Churned = churn(Churn * length(Names) * ?CHURN_STEP_MS / 1000, 0.0, Mortal, LastMs, Sending),
    End = atoll_sim_cluster:wait(?ARRIVE_MS, Churned),
    #{sent := Sent, events := Events} = atoll_sim_cluster:counters(End),
    Now = atoll_sim_cluster:now(End),
    #{strategy := Strategy, nodes := Nodes, seed := Seed} = atoll_sim_cluster:options(End),
    maps:merge(atoll_sim_deliveries:summary(atoll_sim_cluster:watched(End)), #{
        strategy => Strategy,
        nodes => Nodes,
        seed => Seed,
        messages => Messages,
        senders => SenderCount,
        messages_per_node_per_s => (Sent - Sent0) * 1000 / (Now - Begin) / Nodes,
        virtual_ms => Now,
        events => Events
    }).

%% Links that come and go would be a fault that nobody asked for.
rest(Cluster) ->
    rest(atoll_sim_cluster:now(Cluster) + ?RESTLESS_MS, links(Cluster), Cluster).

rest(Until, Links, Cluster0) ->
    Cluster = atoll_sim_cluster:wait(?REST_MS, Cluster0),
    Later = links(Cluster),
    New = ordsets:subtract(Later, Links),
    case length(New) =< ?REST * length(Later) orelse atoll_sim_cluster:now(Cluster) >= Until of
        true -> Cluster;
        false -> rest(Until, Later, Cluster)
    end.

links(Cluster) ->
    lists:sort([{A, B} || {A, Bs} <- atoll_sim_cluster:neighbours(Cluster), B <- Bs]).

%% As evenly spaced as what is counted.
build(Senders, Cluster) ->
    lists:foldl(
        fun(Sender, C) ->
            Sent = atoll_sim_cluster:update(fun(World) -> atoll_sim_deliveries:send(0, Sender, World) end, C),
            atoll_sim_cluster:wait(1000 div ?PER_S, Sent)
        end,
        Cluster,
        lists:append(lists:duplicate(?BUILDING, Senders))
    ).

%% Kills some nodes in each step, until the last message is sent.
churn(_PerStep, _Due, _Mortal, Left, Cluster) when Left =< 0 ->
    Cluster;
churn(PerStep, _Due, _Mortal, Left, Cluster) when PerStep == 0 ->
    atoll_sim_cluster:wait(Left, Cluster);
churn(PerStep, Due0, Mortal, Left, Cluster0) ->
    Due = Due0 + PerStep,
    World = atoll_sim_cluster:world(Cluster0),
    Alive = [Node || Node <- Mortal, atoll_sim_world:status(Node, World) =:= alive],
    {Victims, Cluster1} = atoll_sim_cluster:random(trunc(Due), Alive, Cluster0),
    Struck = atoll_sim_cluster:update(fun(W) -> lists:foldl(fun atoll_sim_world:kill/2, W, Victims) end, Cluster1),
    Back = atoll_sim_world:now(World) + ?AWAY_MS,
    Start = atoll_sim_cluster:starter(Struck),
    Restarting = atoll_sim_cluster:at(Back, fun(W) -> lists:foldl(Start, W, Victims) end, Struck),
    churn(PerStep, Due - trunc(Due), Mortal, Left - ?CHURN_STEP_MS, atoll_sim_cluster:wait(?CHURN_STEP_MS, Restarting)).
