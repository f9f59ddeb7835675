%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll sim reach': what it takes that all reach all over gateways, beside a mesh.
-module(atoll_sim_cli_reach).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-define(MAX_NODES, 20000).

-spec summary() -> string().
summary() -> "let all talk to all over gateways, and compare it with a mesh".

-spec options() -> [atoll_cli_options:option()].
options() ->
    Whole = atoll_cli_read:whole(1, ?MAX_NODES),
    [
        #{name => nodes, value => "N", default => "1000", read => atoll_cli_read:whole(2, ?MAX_NODES), help => "nodes of the cluster"},
        #{name => topology, value => "SHAPE", default => "star", read => atoll_cli_read:one_of([star, ring, tree, hierarchy]),
          help => "how the groups are joined: star, ring, tree or hierarchy"},
        #{name => group_size, value => "N", default => "32", read => Whole, help => "nodes of a group, at least"},
        #{name => gateways, value => "N", default => "2", read => Whole, help => "nodes that join a group with others"},
        #{name => fanout, value => "N", default => "8", read => atoll_cli_read:whole(2, ?MAX_NODES),
          help => "groups below one, in a tree or a hierarchy"},
        #{name => peers, value => "N", read => Whole,
          help => "with how many others, drawn, each node begins to talk (2 unless told; with 64 nodes or fewer all)"},
        #{name => words, value => "N", default => "3", read => atoll_cli_read:whole(1, 1000),
          help => "questions of each pair when its circuit is there"},
        #{name => relay_circuits, value => "N", default => "256", read => atoll_cli_read:whole(1, 1000000),
          help => "circuits that a node relays, at most; beyond 256 its memory for them grows too"},
        #{name => latency, value => "L", default => "uniform:1:20", read => atoll_sim_cli_options:latency(),
          help => "constant:MS, uniform:MIN:MAX, exponential:MEAN, lognormal:MEDIAN:SIGMA, regions"},
        (atoll_cli_again:seed())#{default => "1"},
        atoll_cli_json:switch()
    ].

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() ->
    [
        "atoll sim reach --nodes 40 --group-size 5 --seed 1",
        "atoll sim reach --nodes 10000 --group-size 100 --gateways 2 --relay-circuits 1024 --seed 1 --json"
    ].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{nodes := Nodes, topology := Shape} = Values, []) ->
    ok = atoll_cli_progress:now_doing(["Simulating ", atoll_cli_table:count(Nodes), " nodes in groups, ", atom_to_list(Shape)]),
    Own = maps:with([nodes, topology, group_size, gateways, fanout, peers, words, relay_circuits, latency, seed], Values),
    Outcome = atoll_sim_cluster:isolated(fun() -> atoll_sim_reach:run(Own#{progress => atoll_cli_progress:virtual_time()}) end),
    ok = atoll_cli_progress:done(),
    case Outcome of
        {ok, Result} -> show(Values, Result, atoll_sim_cli_options:again("sim reach", options(), Values));
        {error, Error} -> {usage, atoll_topology:format_error(Error)}
    end.

show(#{json := true}, Result, Again) ->
    atoll_cli_io:print_json(atoll_sim_cli_result:json([Key || {Key, _, _} <- facts()], Result, Again));
show(#{json := false}, Result, Again) ->
    atoll_cli_io:print([atoll_sim_cli_result:table(facts(), Result), "\nagain: ", Again, $\n]).

facts() ->
    [
        {nodes, "nodes", count},
        {topology, "topology", plain},
        {groups, "groups", count},
        {gateways, "gateways", count},
        {pairs, "pairs that talk", count},
        {all_pairs, "all pairs that there are", plain},
        {relayed, "pairs over circuits", count},
        {reached, "pairs in which all was answered", share},
        {refused, "refusals by relays", count},
        {lost, "paths lost", count},
        {connections_mean, "connections of a node, on average", decimal},
        {connections_plain, "connections of one in one group", decimal},
        {connections_max, "connections of a node, at most", count},
        {connections_mesh, "connections of a node in a mesh", count},
        {hops_mean, "hops of a circuit, on average", decimal},
        {hops_max, "hops of a circuit, at most", count},
        {round_trip_ms_p50, "round trip over circuits, median", ms},
        {round_trip_ms_p99, "round trip over circuits, 99th percentile", ms},
        {mesh_ms_p50, "round trip in a mesh, median", ms},
        {mesh_ms_p99, "round trip in a mesh, 99th percentile", ms},
        {first_ms_p50, "first round trip, median", ms},
        {first_ms_p99, "first round trip, 99th percentile", ms},
        {gateway_circuits_mean, "circuits over a gateway, on average", decimal},
        {gateway_circuits_max, "circuits over a gateway, at most", count},
        {gateway_reserved_max, "memory that a gateway promised, at most", bytes},
        {directory_bytes, "directory of a node", bytes},
        {end_bytes_mean, "end of a circuit, on average", bytes},
        {relay_bytes_max, "relay of a node, at most", bytes},
        {node_bytes_mean, "all of them on a node, on average", bytes},
        {node_bytes_max, "all of them on a node, at most", bytes},
        {idle_messages_per_node_per_s, "messages of an idle node per second", decimal},
        {seed, "seed", plain},
        {virtual_ms, "virtual time", seconds},
        {events_per_s, "events per second", count},
        {wall_ms, "time", seconds}
    ].
