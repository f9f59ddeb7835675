%% @doc A run of the ant colonies on a cluster, with what is measured of it: the one that
%% `bench run aco', `atoll aco' and the experiments all make.
-module(atoll_bench_ants).

-export([run/3, run/4]).

-export_type([result/0]).

%% {@link aco:result()}, and
%% ```
%%   packets_sent                        that the nodes have sent each other, or `unknown'. A node that
%%                                       was lost took its count with it, and so did the
%%                                       connections with it: then there are more
%%   connections, connections_max, connections_mean
%%                                       the most that each node had at once; of all nodes
%%   kills                               of the storm; 0 without
%%   back_ms_median, back_ms_max         until what was killed had its name again, or `none'
%% '''
-type result() :: #{atom() => term()}.

-define(METER_MS, 10000).

%% @doc Runs it on all nodes of the cluster, with so many kills a second on each of them; an error
%% is a sentence.
-spec run(atoll_cluster:cluster(), map(), Chaos :: number()) -> {ok, result()} | {error, unicode:chardata()}.
run(Cluster, Spec, Chaos) -> run(Cluster, Spec, Chaos, infinity).

%% @doc Within so many milliseconds.
-spec run(atoll_cluster:cluster(), map(), Chaos :: number(), timeout()) -> {ok, result()} | {error, unicode:chardata()}.
run(Cluster, Spec, Chaos, Ms) ->
    [First | _] = Nodes = atoll_cluster:nodes(Cluster),
    case atoll_bench_nodes:each(Cluster, {atoll_bench_meter, start}, [], ?METER_MS) of
        {ok, _} ->
            Asked = maps:merge(#{nodes => Nodes}, Spec#{survey => {atoll_bench_meter, read, []}}),
            in_storm(Cluster, Chaos, Spec, fun() -> atoll_bench_nodes:call(Cluster, First, {aco, run}, [Asked], Ms) end);
        {error, _} = Error ->
            Error
    end.

in_storm(_, Chaos, _, Fun) when Chaos == 0 ->
    measured(Fun(), #{kills => 0, back_ms_median => none, back_ms_max => none});
in_storm(Cluster, Chaos, Spec, Fun) ->
    Seed = case Spec of #{options := #{seed := Given}} -> Given; #{} -> 1 end,
    case atoll_bench_storm:start(Cluster, Chaos, Seed) of
        {ok, Storm} ->
            Answer = Fun(),
            measured(Answer, atoll_bench_storm:stop(Storm));
        {error, _} = Error ->
            Error
    end.

measured({ok, {ok, #{survey := Readings} = Result}}, Storm) ->
    {ok, maps:merge(maps:merge(maps:remove(survey, Result), atoll_bench_meter:sum(Readings)),
                    maps:with([kills, back_ms_median, back_ms_max], Storm))};
measured({ok, {error, Reason}}, _) ->
    {error, aco:format_error(Reason)};
measured({error, _} = Error, _) ->
    Error.
