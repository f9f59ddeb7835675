%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll sim directory': what it costs that every node knows where all others stand,
%% and how soon a change is known everywhere.
-module(atoll_sim_cli_directory).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-define(MAX_NODES, 100000).
-define(TOPOLOGIES, [star, ring, tree, hierarchy, links]).

-spec summary() -> string().
summary() -> "see what it costs to know where all nodes stand, while some die and return".

-spec options() -> [atoll_cli_options:option()].
options() ->
    Whole = atoll_cli_read:whole(1, ?MAX_NODES),
    [
        #{name => nodes, value => "N", default => "1000", read => atoll_cli_read:whole(2, ?MAX_NODES),
          help => "nodes of the cluster"},
        #{name => topology, value => "SHAPE", default => "hierarchy", read => atoll_cli_read:one_of(?TOPOLOGIES),
          help => "of the groups: star, ring, tree, hierarchy; or links, a ring with chords and without groups"},
        #{name => group_size, value => "N", default => "8", read => Whole, help => "in groups of so many nodes at least"},
        #{name => gateways, value => "N", default => "2", read => Whole, help => "so many nodes join a group with others"},
        #{name => fanout, value => "N", default => "8", read => Whole,
          help => "so many groups are below one in a tree or a hierarchy"},
        #{name => churn, value => "SHARE", default => "0.01", read => atoll_cli_read:share(),
          help => "the share of the nodes that is killed each minute, and returns after 30 s"},
        #{name => changes, value => "N", default => "20", read => atoll_cli_read:whole(0, ?MAX_NODES),
          help => "how often a node changes its place"},
        #{name => minutes, value => "N", default => "2", read => atoll_cli_read:whole(1, 10000),
          help => "how long that lasts, in virtual time"},
        #{name => latency, value => "L", default => "uniform:1:20", read => atoll_sim_cli_options:latency(),
          help => "constant:MS, uniform:MIN:MAX, exponential:MEAN, lognormal:MEDIAN:SIGMA, regions"},
        #{name => option, value => "KEY=VALUE", repeat => true, read => atoll_cli_read:setting(),
          help => "an option of the directory, such as gather_ms=500; may be repeated"},
        (atoll_cli_again:seed())#{default => "1"},
        atoll_cli_json:switch()
    ].

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() ->
    [
        "atoll sim directory --nodes 300 --seed 7",
        "atoll sim directory --nodes 2000 --topology ring --group-size 20 --churn 0.05 --seed 7 --json"
    ].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{churn := Churn, minutes := Minutes}, []) when Churn * Minutes > 0.5 ->
    {usage, "--churn times --minutes must be at most 0.5: nobody is killed twice, and some live throughout"};
run(#{option := Settings} = Values, []) ->
    case atoll_sim_cli_strategy:settings("the directory", atoll_directory, Settings) of
        {ok, Options} -> check(cluster(Options, Values), Values);
        {error, Sentence} -> {usage, Sentence}
    end.

cluster(Directory, Values) ->
    Given = maps:with([nodes, topology, group_size, gateways, fanout, churn, changes, minutes, latency, seed], Values),
    Given#{directory => Directory}.

check(Cluster, Values) ->
    case atoll_sim_directory:check(Cluster) of
        ok -> simulate(Cluster, Values);
        {error, Error} -> {usage, atoll_topology:format_error(Error)}
    end.

simulate(#{nodes := Nodes} = Cluster, #{json := Json} = Values) ->
    ok = atoll_cli_progress:now_doing(["Simulating ", atoll_cli_table:count(Nodes), " nodes with a directory"]),
    {ok, Result} = atoll_sim_cluster:isolated(fun() ->
        atoll_sim_directory:run(Cluster#{progress => atoll_cli_progress:virtual_time()})
    end),
    ok = atoll_cli_progress:done(),
    show(Json, Result, atoll_sim_cli_options:again("sim directory", options(), Values)).

show(true, Result, Again) ->
    atoll_cli_io:print_json(atoll_sim_cli_result:json([Key || {Key, _, _} <- facts()], Result, Again));
show(false, Result, Again) ->
    atoll_cli_io:print([atoll_sim_cli_result:table(facts(), Result), "\nagain: ", Again, $\n]).

facts() ->
    [
        {topology, "topology", plain},
        {nodes, "nodes", count},
        {groups, "groups", count},
        {links_per_node, "links of a node, on average", decimal},
        {seed, "seed", plain},
        {killed, "nodes killed", count},
        {declared_gone, "times that somebody was taken for gone", count},
        {refuted, "of these, said to be wrong", count},
        {changes, "places that changed", count},
        {known_ms_p50, "time until all know a change, median", seconds},
        {known_ms_max, "time until all know a change, at most", seconds},
        {rounds_max, "the same, in rounds of gossip", decimal},
        {unheard, "times that a node has not heard of one", count},
        {right, "nodes with a right table at the end", share},
        {bytes_held_per_node, "bytes held for each node, by every one, p50", decimal},
        {bytes_held_per_node_max, "bytes held for each node, by every one, max", decimal},
        {bytes_per_node_per_s, "bytes of a node per second", decimal},
        {bytes_by_kind, "the same, by kind of message", parts},
        {messages_per_node_per_s, "messages of a node per second", decimal},
        {virtual_ms, "virtual time", seconds},
        {wall_ms, "time", seconds}
    ].
