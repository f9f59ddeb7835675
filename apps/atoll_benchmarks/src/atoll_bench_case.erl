%% SPDX-License-Identifier: Apache-2.0
%% @doc A run of one of the cases on a cluster, with what is measured of it: the one that benchmarks,
%% the command line and the experiments all make.
-module(atoll_bench_case).

-export([run/5]).

-export_type([result/0]).

%% That of the case's own run/1, and
%% ```
%%   packets_sent                        that the nodes have sent each other, or `unknown'. A node that
%%                                       was lost took its count with it, and so did the
%%                                       connections with it: then there are more
%%   connections, connections_max, connections_mean
%%                                       the most that each node had at once; of all nodes
%%   kills, node_kills                   of the storm; 0 without
%%   back_ms_median, back_ms_max         until what was killed had its name again, or `none'
%% '''
-type result() :: #{atom() => term()}.

-define(METER_MS, 10000).

%% @doc Runs it on all nodes of the cluster, within so many milliseconds, in a storm; an error is a
%% sentence.
-spec run(atoll_cluster:cluster(), map(), atoll_bench_storm:harm(), Seed :: integer(), timeout()) ->
    {ok, result()} | {error, unicode:chardata()}.
run(Cluster, Spec, #{program := Program} = Harm, Seed, Ms) ->
    [First | _] = Nodes = atoll_cluster:nodes(Cluster),
    case atoll_bench_nodes:each(Cluster, {atoll_bench_meter, start}, [], ?METER_MS) of
        {ok, _} ->
            Asked = maps:merge(#{nodes => Nodes}, Spec#{survey => {atoll_bench_meter, read, []}}),
            in_storm(Cluster, Harm, Seed, fun() -> atoll_bench_nodes:call(Cluster, First, {Program, run}, [Asked], Ms) end);
        {error, _} = Error ->
            Error
    end.

in_storm(Cluster, #{program := Program} = Harm, Seed, Fun) ->
    case lists:any(fun(Key) -> maps:get(Key, Harm, 0) > 0 end, [rate, node_every]) of
        false ->
            measured(Program, Fun(), #{kills => 0, node_kills => 0, back_ms_median => none, back_ms_max => none});
        true ->
            case atoll_bench_storm:start(Cluster, Harm, Seed) of
                {ok, Storm} ->
                    Answer = Fun(),
                    measured(Program, Answer, atoll_bench_storm:stop(Storm));
                {error, _} = Error ->
                    Error
            end
    end.

measured(_, {ok, {ok, #{survey := Readings} = Result}}, Storm) ->
    {ok, maps:merge(maps:merge(maps:remove(survey, Result), atoll_bench_meter:sum(Readings)), maps:remove(back, Storm))};
measured(Program, {ok, {error, Reason}}, _) ->
    {error, Program:format_error(Reason)};
measured(_, {error, _} = Error, _) ->
    Error.
