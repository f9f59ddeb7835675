%% Clusters for suites: a cluster ends with its owner, and the process that sets a suite
%% up ends before the cases run, so another one owns it.
-module(atoll_cluster_owned).

-export([start/1]).

%% @doc Starts a cluster that lasts until it is stopped, or the VM ends.
-spec start(atoll_cluster:options()) -> atoll_cluster:cluster().
start(Options) ->
    Parent = self(),
    {Owner, Ref} = spawn_monitor(fun() ->
        {ok, Cluster} = atoll_cluster:start(Options),
        Down = monitor(process, Cluster),
        Parent ! {self(), Cluster},
        receive
            {'DOWN', Down, process, Cluster, _} -> ok
        end
    end),
    receive
        {Owner, Cluster} ->
            true = demonitor(Ref, [flush]),
            Cluster;
        {'DOWN', Ref, process, Owner, Reason} ->
            error(Reason)
    end.
