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

-type result() :: #{
    traffic := im_traffic:result(),
    storm := atoll_bench_storm:result(),
    %% The databases of which both copies were lost, against which nothing is promised.
    lost := [atom()],
    %% How much more there is on all server nodes than before. Nobody knows on nodes of somebody else's, or
    %% where one of them does not answer.
    left := #{clients | sessions | rows | names | processes := integer()} | none
}.

-type harm() :: #{
    %% milliseconds between two kills of im_chaos; never, unless told
    rhesus => pos_integer(),
    baboon => pos_integer(),
    %% seconds between two server nodes that are killed, each for a second
    node_every => pos_integer()
}.

%% How long a storm lasts beyond what is measured, at most: the time of logins and of the end.
-define(STORM_MS, 900_000).
%% Until all is as before; the last kill is a moment ago.
-define(SETTLE_MS, 30_000).
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

%% @doc Traffic as im_traffic takes it, but for the nodes, from the first client node, in a storm.
-spec traffic(ready(), #{ms := pos_integer(), _ => _}, harm(), Seed :: integer()) -> {ok, result()} | {error, unicode:chardata()}.
traffic(#{cluster := Cluster, plan := Plan, routers := Routers, clients := [First | _] = Clients} = Ready, Asked, Harm, Seed) ->
    Before = look(Ready),
    Options = Asked#{client_nodes => Clients, routers => Routers, routers_per_node => im_plan:setting(routers_per_node, Plan), seed => Seed},
    case storm(Cluster, steps(Plan, Harm, maps:get(ms, Asked) + ?STORM_MS, Seed), Seed) of
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
                    {ok, maps:merge(#{traffic => Result, storm => Stormed}, compared(Before, Ready, erlang:monotonic_time(millisecond) + ?SETTLE_MS))};
                {error, Error} -> {error, format_error(Error)};
                {unreached, Why} -> {error, atoll_cluster:format_error(Why)}
            end;
        {error, _} = Error ->
            Error
    end.

%% What the server nodes say of themselves: those that are down, or are being started, say nothing.
look(#{cluster := Cluster, servers := Servers}) ->
    [{Node, Status} || {Node, {ok, {ok, Status}}} <- atoll_cluster:multicall(Cluster, im, status, [], ?CALL_MS), lists:member(Node, Servers)].

compared([], _, _) ->
    #{lost => [], left => none};
compared(Before, #{plan := Plan} = Ready, Deadline) ->
    After = look(Ready),
    Then = left(Before),
    Left =
        case lists:sort([Node || {Node, _} <- After]) =:= lists:sort([Node || {Node, _} <- Before]) of
            true -> maps:map(fun(What, N) -> N - map_get(What, Then) end, left(After));
            false -> none
        end,
    case is_as_before(Left) orelse erlang:monotonic_time(millisecond) >= Deadline of
        true ->
            Births = births(Plan, After),
            #{lost => [Name || {Name, Born} <- births(Plan, Before), {Of, Now} <- Births, Of =:= Name, Born =/= Now], left => Left};
        false ->
            receive after ?LOOK_MS -> ok end,
            compared(Before, Ready, Deadline)
    end.

is_as_before(none) -> false;
is_as_before(Left) -> lists:all(fun(N) -> N =:= 0 end, maps:values(maps:remove(processes, Left))).

left(Looks) ->
    Rows = [N || {_, #{databases := Databases}} <- Looks, #{rows := N} <- Databases],
    maps:from_list([{rows, lists:sum(Rows)} | [{What, lists:sum([map_get(What, Look) || {_, Look} <- Looks])} || What <- [clients, sessions, names, processes]]]).

%% In which epoch the data of each database began.
births(Plan, Looks) ->
    [
        {im_plan:db_name(Server, 1, Kind, Plan), Born}
     || {_, #{databases := Databases}} <- Looks, #{role := main, server := Server, kind := Kind, born := Born} <- Databases
    ].

storm(_Cluster, [], _Seed) -> {ok, none};
storm(Cluster, Steps, Seed) -> atoll_bench_storm:play(Cluster, Steps, Seed).

%% The server nodes come behind the routers.
steps(Plan, Harm, Ms, Seed) ->
    [{at, 0, im_chaos:rhesus(Plan, Every, Ms)} || #{rhesus := Every} <- [Harm]] ++
        [{at, 0, im_chaos:baboon(Plan, Every, Ms)} || #{baboon := Every} <- [Harm]] ++
        [Step || #{node_every := Every} <- [Harm], Step <- atoll_bench_storm:node_kills(Every, [length(im_plan:routers(Plan)) + Server || Server <- im_plan:servers(Plan)], Ms / 1000, Seed)].

%% @doc One sentence for an error of im_traffic.
-spec format_error(im_traffic:error()) -> unicode:chardata().
format_error(Error) -> ["The traffic has failed: ", im_traffic:format_error(Error), "."].
