%% SPDX-License-Identifier: Apache-2.0
%% @doc Clusters whose nodes use the carrier: how they are started.
%%
%% They let in nodes on Erlang's own distribution, such as a shell and the command line.
-module(atoll_up_carrier).

-export([cluster/2, with_args/2]).

-export_type([carrier/0]).

-type carrier() :: stock | {atoll, atoll_dist_kind:asked(), Faults :: boolean(), Relay :: no | relay | sealed, Tls :: boolean()}.
%% Whether nodes reach those that they have no link with over others, and whether what
%% these carry is sealed; and whether connections have TLS, with certificates that are made for the cluster.

%% @doc These options of atoll_cluster, for nodes with that carrier.
-spec cluster(carrier(), #{atom() => term()}) -> #{atom() => term()}.
cluster(stock, Options) ->
    Options;
cluster({atoll, Kind, Faults, Relay, Tls}, Options) ->
    Carrier = [{kind, Kind}, {stock, accept}, {faults, Faults}] ++ [{seal, required} || Relay =:= sealed] ++ [{tls, on} || Tls],
    with_args(
        ["-proto_dist", "atoll", "-kernel", "atoll_dist", lists:flatten(io_lib:format("~0tp", [Carrier]))] ++
            lists:append([["-atoll", "directory", "on"] || Relay =/= no]),
        Options#{tls => Tls}
    ).

%% @doc These options of atoll_cluster, and before the nodes' arguments these.
-spec with_args([string()], #{atom() => term()}) -> #{atom() => term()}.
with_args(Own, Options) ->
    Options#{args => case Options of
        #{args := Args} when is_function(Args) -> fun(Nodes) -> Own ++ Args(Nodes) end;
        #{args := Args} -> Own ++ Args;
        #{} -> Own
    end}.
