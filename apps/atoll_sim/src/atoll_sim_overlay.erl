%% SPDX-License-Identifier: Apache-2.0
%% @doc The experiment `overlay': how a strategy's links hold when a share of the
%% nodes dies at once.
%%
%% The cluster grows and settles; the share is killed; two shuffle periods later
%% the survivors are looked at. Then the time is taken until discovery's beacon
%% has brought every island back. Contacts are not killed unless it is told so: an island
%% without a living contact has nobody to join by but whom its nodes know of by the roster.
-module(atoll_sim_overlay).

-export([run/1, strike/3, strikes/3]).

-export_type([options/0, spared/0, result/0]).

-type spared() ::
    contacts
    %% Contacts are drawn as all others are.
    | nobody.

-type options() :: #{
    kill := float(),
    %% `contacts' unless it is told.
    spare => spared(),
    %% Of the cluster, see atoll_sim_cluster:options().
    nodes := pos_integer(),
    atom() => term()
}.

-type result() :: #{
    strategy := atom(),
    nodes := pos_integer(),
    killed := non_neg_integer(),
    seed := integer(),
    virtual_ms := non_neg_integer(),
    wall_ms := non_neg_integer(),
    events_per_s := non_neg_integer(),
    %% The share of the nodes in the largest component: before the kill, and of
    %% the survivors two shuffle periods after it.
    connected_before := float(),
    connected_after := float(),
    %% How long after the kill all survivors were one component, `never' within
    %% the time given.
    rejoined_ms := non_neg_integer() | never,
    active_min := non_neg_integer(),
    active_max := non_neg_integer(),
    active_mean := float(),
    %% The share of the links that both ends name.
    symmetric := float(),
    %% Mean one-way latency of the links, milliseconds.
    link_ms_mean := float(),
    %% All protocols together, over the last period before the kill.
    messages_per_node_per_s := float()
}.

%% Two shuffle periods, and how long the beacon gets.
-define(AFTER_MS, 20000).
-define(REJOIN_MS, 300000).
-define(STEP_MS, 2000).
%% Over which the messages are counted.
-define(PERIOD_MS, 10000).

%% @doc Runs the experiment.
-spec run(options()) -> {ok, result()} | {error, atoll_sim_cluster:error()}.
run(#{kill := Share} = Options) ->
    Spared = maps:get(spare, Options, contacts),
    atoll_sim_cluster:experiment(
        maps:without([kill, spare], Options), fun(Cluster) -> strike(Share, Spared, atoll_sim_cluster:grow(Cluster)) end
    ).

%% @doc Kills a share of a cluster that has grown and looks at what is left. All
%% of a result but its wall time, which is the caller's, and the number of events.
-spec strike(Share :: float(), spared(), atoll_sim_cluster:cluster()) -> #{atom() => term()}.
strike(Share, Spared, Cluster) ->
    [Result] = strikes([Share], Spared, Cluster),
    Result.

%% @doc The same with each of these shares: one cluster up to the kill, each with a future of its own.
-spec strikes([Share :: float()], spared(), atoll_sim_cluster:cluster()) -> [#{atom() => term()}].
strikes(Shares, Spared, Cluster) ->
    #{sent := Sent0} = atoll_sim_cluster:counters(Cluster),
    Before = atoll_sim_cluster:wait(?PERIOD_MS, Cluster),
    #{sent := Sent1} = atoll_sim_cluster:counters(Before),
    Common = #{
        connected_before => atoll_sim_graph:connected(atoll_sim_cluster:neighbours(Before)),
        messages_per_node_per_s => (Sent1 - Sent0) * 1000 / ?PERIOD_MS / length(atoll_sim_cluster:names(Before))
    },
    [maps:merge(Common, Result) || Result <- killed_each(Shares, Spared, Before)].

%% The last one has no need of what was before.
killed_each([Share], Spared, Before) -> [killed(Share, Spared, Before)];
killed_each([Share | Shares], Spared, Before) -> [killed(Share, Spared, Before) | killed_each(Shares, Spared, Before)].

killed(Share, Spared, Before) ->
    Names = atoll_sim_cluster:names(Before),
    Count = length(Names),
    Mortal = Names -- [Contact || Spared =:= contacts, Contact <- atoll_sim_cluster:contacts(Before)],
    {Victims, Struck} = atoll_sim_cluster:random(min(length(Mortal), round(Share * Count)), Mortal, Before),
    Killed = atoll_sim_cluster:update(
        fun(World) -> lists:foldl(fun atoll_sim_world:kill/2, World, Victims) end, Struck
    ),
    After = atoll_sim_cluster:wait(?AFTER_MS, Killed),
    Graph = atoll_sim_cluster:neighbours(After),
    Summary = atoll_sim_graph:summary(Graph),
    {RejoinedMs, End} = rejoined(?AFTER_MS, Graph, After),
    #{strategy := Strategy, seed := Seed} = atoll_sim_cluster:options(End),
    #{
        strategy => Strategy,
        nodes => Count,
        killed => length(Victims),
        seed => Seed,
        virtual_ms => atoll_sim_cluster:now(End),
        events => maps:get(events, atoll_sim_cluster:counters(End)),
        connected_after => atoll_sim_graph:connected(Graph),
        rejoined_ms => RejoinedMs,
        active_min => maps:get(degree_min, Summary),
        active_max => maps:get(degree_max, Summary),
        active_mean => maps:get(degree_mean, Summary),
        symmetric => atoll_sim_graph:symmetric(Graph),
        link_ms_mean => link_ms(Graph, After)
    }.

rejoined(Ms, Graph, Cluster) ->
    case atoll_sim_graph:connected(Graph) of
        All when All == 1 ->
            {Ms, Cluster};
        _ when Ms >= ?REJOIN_MS ->
            {never, Cluster};
        _ ->
            Later = atoll_sim_cluster:wait(?STEP_MS, Cluster),
            rejoined(Ms + ?STEP_MS, atoll_sim_cluster:neighbours(Later), Later)
    end.

link_ms(Graph, Cluster) ->
    World = atoll_sim_cluster:world(Cluster),
    case [atoll_sim_world:delay(A, B, World) || {A, Bs} <- Graph, B <- Bs] of
        [] -> 0.0;
        Delays -> lists:sum(Delays) / length(Delays)
    end.
