%% SPDX-License-Identifier: Apache-2.0
%% @doc A messenger on a cluster, and a run of traffic on it in a storm: the one that the benchmark,
%% the command line and the experiments all make.
-module(atoll_bench_im_run).

-export([ready/2, traffic/4, format_error/1]).

-export_type([ready/0, result/0, harm/0]).

-type ready() :: #{
    cluster := atoll_cluster:cluster(),
    plan := im_plan:plan(),
    routers := [node()],
    servers := [node()],
    clients := [node()]
}.

%% That of im_traffic, that of the storm, and the databases of which both copies were lost, against which nothing is promised.
-type result() :: #{traffic := im_traffic:result(), storm := atoll_bench_storm:result(), lost := [atom()]}.

-type harm() :: #{
    %% milliseconds between two kills of im_chaos; never, unless told
    rhesus => pos_integer(),
    baboon => pos_integer(),
    %% seconds between two server nodes that are killed, each for a second
    node_every => pos_integer()
}.

%% No storm lasts longer.
-define(STORM_MS, 3_600_000).
-define(READY_MS, 60_000).
-define(LOOK_MS, 100).
-define(CALL_MS, 10_000).

%% @doc Waits until all nodes of a cluster, which was started as im_cluster:options/1 says, are connected as they should be, and all
%% databases have their copies.
-spec ready(atoll_cluster:cluster(), im_cluster:shape()) -> {ok, ready()} | {error, unicode:chardata()}.
ready(Cluster, Shape) ->
    Nodes = atoll_cluster:nodes(Cluster),
    {Routers, Servers, Clients} = im_cluster:roles(Shape, Nodes),
    {ok, Plan} = im_plan:new(im_cluster:settings(Shape, Nodes)),
    case await(Cluster, Plan, Routers ++ Servers, erlang:monotonic_time(millisecond) + ?READY_MS) of
        ok -> {ok, #{cluster => Cluster, plan => Plan, routers => Routers, servers => Servers, clients => Clients}};
        {error, _} = Error -> Error
    end.

%% Nobody tells when the connections and the names of others are there.
await(Cluster, Plan, Nodes, Deadline) ->
    Late = erlang:monotonic_time(millisecond) >= Deadline,
    case lists:append([what_lacks(Cluster, Plan, Node) || Node <- Nodes]) of
        [] ->
            ok;
        [{error, Reason} | _] ->
            {error, atoll_cluster:format_error(Reason)};
        [{Node, What, Whom} | _] when Late ->
            {error, io_lib:format("After ~b s ~ts has no ~ts ~ts.", [?READY_MS div 1000, Node, What, Whom])};
        _ ->
            receive after ?LOOK_MS -> ok end,
            await(Cluster, Plan, Nodes, Deadline)
    end.

what_lacks(Cluster, Plan, Node) ->
    try
        [{Node, "connection with, or way to,", Other} || Other <- atoll_cluster:call(Cluster, Node, im_cluster, missing, [Plan], ?CALL_MS)] ++
            [{Node, "database", Name} || Name <- atoll_cluster:call(Cluster, Node, im_cluster, lacking, [Plan], ?CALL_MS)]
    catch
        error:Reason -> [{error, Reason}]
    end.

%% @doc Traffic as im_traffic takes it, but for the nodes, from the first client node, in a storm of an hour at
%% most.
-spec traffic(ready(), map(), harm(), Seed :: integer()) -> {ok, result()} | {error, unicode:chardata()}.
traffic(#{cluster := Cluster, plan := Plan, routers := Routers, clients := [First | _] = Clients} = Ready, Asked, Harm, Seed) ->
    Before = births(Ready),
    Options = Asked#{client_nodes => Clients, routers => Routers, routers_per_node => im_plan:setting(routers_per_node, Plan), seed => Seed},
    case storm(Cluster, steps(Plan, Harm, Seed), Seed) of
        {ok, Storm} ->
            Answer =
                try
                    atoll_cluster:call(Cluster, First, im_traffic, run, [Options], infinity)
                catch
                    error:Reason -> {unreached, Reason}
                end,
            Stormed = case Storm of none -> atoll_bench_storm:none(); _ -> atoll_bench_storm:stop(Storm) end,
            case Answer of
                {ok, Result} ->
                    After = births(Ready),
                    {ok, #{traffic => Result, storm => Stormed, lost => [Name || {Name, Born} <- Before, {Of, Then} <- After, Of =:= Name, Born =/= Then]}};
                {error, Error} -> {error, format_error(Error)};
                {unreached, Why} -> {error, atoll_cluster:format_error(Why)}
            end;
        {error, _} = Error ->
            Error
    end.

%% In which epoch the data of each database began.
births(#{cluster := Cluster, plan := Plan, servers := Servers}) ->
    [
        {im_plan:db_name(Server, 1, Kind, Plan), Born}
     || Node <- Servers,
        {ok, #{databases := Databases}} <- [atoll_cluster:call(Cluster, Node, im, status, [], ?CALL_MS)],
        #{role := main, server := Server, kind := Kind, born := Born} <- Databases
    ].

storm(_Cluster, [], _Seed) -> {ok, none};
storm(Cluster, Steps, Seed) -> atoll_bench_storm:play(Cluster, Steps, Seed).

%% The server nodes come behind the routers.
steps(Plan, Harm, Seed) ->
    [{at, 0, im_chaos:rhesus(Plan, Every, ?STORM_MS)} || #{rhesus := Every} <- [Harm]] ++
        [{at, 0, im_chaos:baboon(Plan, Every, ?STORM_MS)} || #{baboon := Every} <- [Harm]] ++
        [Step || #{node_every := Every} <- [Harm], Step <- atoll_bench_storm:node_kills(Every, [length(im_plan:routers(Plan)) + Server || Server <- im_plan:servers(Plan)], Seed)].

%% @doc One sentence for an error of im_traffic.
-spec format_error(im_traffic:error()) -> unicode:chardata().
format_error(Error) -> ["The traffic has failed: ", im_traffic:format_error(Error), "."].
