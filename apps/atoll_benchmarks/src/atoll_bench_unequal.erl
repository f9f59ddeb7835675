%% SPDX-License-Identifier: Apache-2.0
%% @doc Nodes of which each may use so much of a processor: what the benchmarks of placement
%% have in common.
-module(atoll_bench_unequal).

-export([check/1, shares/1, shares/3, bound/4]).

-import(atoll_bench_nodes, [answer/1, sure/1]).

-define(ASK_MS, 60000).
%% So that it is their bounds that hold the nodes up, and not each other.
-define(OF_MACHINE, 0.75).

%% @doc What each node may use, the slow ones evenly among the others.
-spec shares(Nodes :: pos_integer(), Slow :: non_neg_integer(), {Share, Share}) -> [Share, ...] when Share :: number().
shares(Nodes, Slow, {Less, More}) ->
    [
        case N * Slow div Nodes > (N - 1) * Slow div Nodes of
            true -> Less;
            false -> More
        end
     || N <- lists:seq(1, Nodes)
    ].

%% @doc What each node of a point may use.
-spec shares(atoll_bench:point()) -> [number(), ...].
shares(#{nodes := Nodes, slow := Slow, slow_percent := Less, percent := More}) ->
    shares(Nodes, Slow, {Less / 100, More / 100}).

%% @doc Whether there are such nodes, they can be bounded here at all, and the machine has as
%% much as they may use.
-spec check(atoll_bench:point()) -> ok | {error, unicode:chardata()}.
check(#{nodes := Nodes, slow := Slow}) when Slow > Nodes ->
    {error, "more nodes are slow than there are"};
check(#{slow_percent := Less, percent := More}) when Less > More ->
    {error, "the slow nodes are not slower"};
check(Point) ->
    affordable(shares(Point)).

affordable(Shares) ->
    %% Where groups can be made it is known how many processors there are.
    case atoll_quota:available() of
        ok -> enough(lists:sum(Shares), erlang:system_info(logical_processors_available));
        {error, Error} -> {error, atoll_quota:format_error(Error)}
    end.

enough(Used, Processors) when Used > ?OF_MACHINE * Processors ->
    {error,
        io_lib:format("the nodes may use ~.2f processors together, and three quarters of this machine's ~b are the most", [
            float(Used), Processors
        ])};
enough(_Used, _Processors) ->
    ok.

%% @doc Bounds these nodes; the caller owns the bounds. Only when they are up: a node that may
%% use little takes long to start. Another node asks each for its bound, which it must
%% see, or what is compared is not what it says.
-spec bound(atoll_cluster:cluster(), Asks :: node(), [node(), ...], Shares :: [number(), ...]) ->
    {ok, atoll_quota:quota()} | {error, unicode:chardata()}.
bound(Cluster, Asks, Nodes, Shares) ->
    case atoll_quota:start(#{cpus => Shares}) of
        {ok, Quota} ->
            case answer(fun() -> entered(Quota, Cluster, Asks, lists:zip(Nodes, Shares)) end) of
                {ok, ok} ->
                    {ok, Quota};
                {error, _} = Error ->
                    ok = atoll_quota:stop(Quota),
                    Error
            end;
        {error, Error} ->
            {error, atoll_quota:format_error(Error)}
    end.

entered(Quota, Cluster, Asks, Placed) ->
    #{nodes := Infos} = atoll_cluster:info(Cluster),
    OsPids = maps:from_list([{Node, OsPid} || #{node := Node, os_pid := OsPid} <- Infos]),
    lists:foreach(
        fun({N, {Node, _}}) ->
            case atoll_quota:enter(Quota, N, maps:get(Node, OsPids)) of
                ok -> ok;
                {error, Error} -> throw({failed, atoll_quota:format_error(Error)})
            end
        end,
        lists:zip(lists:seq(1, length(Placed)), Placed)
    ),
    Nodes = [Node || {Node, _} <- Placed],
    Told = sure(atoll_bench_nodes:call(Cluster, Asks, {atoll_bench_place_load, told}, [Nodes, cgroup_cpus], ?ASK_MS)),
    [
        throw({failed, io_lib:format("~ts may use ~p processors, and its cgroup_cpus is ~0tp", [Node, Share, Seen])})
     || {{Node, Seen}, {Node, Share}} <- lists:zip(Told, Placed), not (is_number(Seen) andalso abs(Seen - Share) < 0.001)
    ],
    ok.
