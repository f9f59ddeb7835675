%% SPDX-License-Identifier: Apache-2.0
%% @doc Clients of `atoll matchstream run': in this VM, or by even parts in others, since a process has no more files than the system allows.
-module(atoll_cases_matchstream_crowd).

-export([with_loaders/2, start/2, connected/2, verdict/3]).

-export_type([loaders/0, crowd/0]).

-type loaders() :: none | atoll_cluster:cluster().
-type crowd() :: [{here | {atoll_cluster:cluster(), node()}, matchstream_viewers:viewers()}].

%% Clients of one address, which has some twenty-eight thousand ports.
-define(PER_ADDRESS, 20000).
-define(START_MS, 60000).
%% Beyond what was waited for, on a busy machine.
-define(MORE_MS, 60000).

%% @doc What a function returns that has so many VMs for clients; with 0 they are in this one.
-spec with_loaders(non_neg_integer(), fun((loaders()) -> atoll_cli_command:outcome())) -> atoll_cli_command:outcome().
with_loaders(0, Fun) -> Fun(none);
with_loaders(Count, Fun) ->
    Options = #{
        nodes => Count, connect_all => false, hosts => matchstream_cluster:hosts([files]), args => ["+P", "1000000", "+Q", "1000000"],
        progress => atoll_cli_progress:bar("Starting programs for clients")
    },
    case atoll_cluster:with_cluster(Options, Fun) of
        {error, Sentence} -> {unable, Sentence};
        Outcome -> Outcome
    end.

%% @doc Begins to connect them.
-spec start(loaders(), matchstream_viewers:options()) -> crowd().
start(none, #{count := Count} = Options) -> [{here, matchstream_viewers:start(Options#{from => addresses(Count)})}];
start(Cluster, #{count := Count, at_once := AtOnce} = Options) ->
    Nodes = atoll_cluster:nodes(Cluster),
    Parts = length(Nodes),
    Own = Options#{at_once := max(1, AtOnce div Parts), from => addresses(Count)},
    [
        {{Cluster, Node}, atoll_cluster:call(Cluster, Node, matchstream_viewers, start_alone, [Own#{count := Part}], ?START_MS)}
     || {N, Node} <- lists:zip(lists:seq(0, Parts - 1), Nodes), Part <- [(Count + N) div Parts], Part > 0
    ].

addresses(Count) -> matchstream_viewers:addresses(1 + Count div ?PER_ADDRESS).

%% @doc Waits until each has connected, or could not.
-spec connected(crowd(), pos_integer()) -> {Connected :: non_neg_integer(), Failed :: non_neg_integer()}.
connected(Crowd, Ms) ->
    All = [case ask(Where, connected, [Viewers, Ms], Ms) of {ok, Is} -> Is; timeout -> {0, 0} end || {Where, Viewers} <- Crowd],
    {lists:sum([N || {N, _} <- All]), lists:sum([F || {_, F} <- All])}.

%% @doc Waits until each has ended; after so long it is given up.
-spec verdict(crowd(), matchstream_viewers:truth(), pos_integer()) -> {ok, matchstream_viewers:verdict()} | timeout.
verdict(Crowd, Truth, Ms) ->
    All = [ask(Where, verdict, [Viewers, Truth, Ms], Ms) || {Where, Viewers} <- Crowd],
    case lists:member(timeout, All) of
        true -> timeout;
        false -> {ok, matchstream_viewers:merge([Verdict || {ok, Verdict} <- All])}
    end.

ask(here, Function, Args, _) -> apply(matchstream_viewers, Function, Args);
ask({Cluster, Node}, Function, Args, Ms) -> atoll_cluster:call(Cluster, Node, matchstream_viewers, Function, Args, Ms + ?MORE_MS).
