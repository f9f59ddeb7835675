%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs a program on a cluster of its own, which is gone when the program has ended, whichever
%% way it has, and says meanwhile what is being done.
-module(atoll_cases_program).

-export([run/3, watched/4]).

-export_type([prepare/0]).

%% Makes the nodes ready, and gives the program: a function that asks them.
-type prepare() :: fun((atoll_cluster:cluster()) -> {ok, fun(() -> {ok, term()} | {error, unicode:chardata()})} | {error, unicode:chardata()}).

%% @doc Starts the nodes, runs, and takes the nodes down. A result comes with the
%% nodes that were killed meanwhile; an error is a sentence.
-spec run(atoll_cluster:options(), unicode:chardata(), prepare()) ->
    {ok, Result :: term(), Killed :: [node()]} | {error, unicode:chardata()}.
run(Options, Doing, Prepare) ->
    atoll_cluster:with_cluster(Options#{progress => atoll_cli_progress:bar("Starting nodes")}, fun(Cluster) ->
        case Prepare(Cluster) of
            {ok, Program} -> watched(Cluster, Doing, Program, none);
            {error, _} = Error -> Error
        end
    end).

%% @doc As {@link atoll_cluster_watch:watched/3}, and says so.
-spec watched(atoll_cluster:cluster(), unicode:chardata(), fun(() -> Answer), atoll_cluster_watch:beside()) ->
    {ok, Result, Killed :: [node()]} | {error, unicode:chardata()}
when
    Answer :: {ok, Result} | {error, unicode:chardata()}.
watched(Cluster, Doing, Fun, Beside) ->
    ok = atoll_cli_progress:now_doing(Doing),
    Ended = atoll_cluster_watch:watched(Cluster, Fun, Beside),
    ok = atoll_cli_progress:done(),
    Ended.
