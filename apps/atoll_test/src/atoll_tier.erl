%% SPDX-License-Identifier: Apache-2.0
%% @doc How much the tests do: little in the fast tier, which runs on each change, and all
%% in the deep one, which `make soak' runs. This module says the sizes of both.
%%
%% The tier is `TIER' of the environment, `fast' if it is not set. `SEED' is what the run
%% draws from: the same seed repeats what was drawn. A run that is given none draws one and
%% says so. Both are set by the runner of the tests; a test that is run by hand does
%% without.
-module(atoll_tier).

-export([tier/0, size/1, tests/1, sizes/0]).
-export([seed/0, seed/1, seeds/2]).

-export_type([tier/0, name/0]).

-type tier() :: fast | deep.
-type name() :: atom().

%% Sizes: {Name, fast, deep, what it counts}.
-define(SIZES, [
    {acks_nodes, 50, 100, "simulated nodes that acknowledge broadcasts"},
    {aco_busy, 25, 100, "rounds that keep the ant colonies busy while processes are killed"},
    {aco_storms, 1, 5, "runs of the ant colonies under a kill a second on each node, in each reliable mode"},
    {adcounter_nodes, 4, 60, "nodes that count advertisements"},
    {adcounter_sim_nodes, 12, 120, "simulated nodes that do"},
    {bulk_rounds, 1, 4, "times of bulk between three nodes, with the application and without"},
    {bulk_s, 4, 15, "seconds of each"},
    {chaos_kills, 20, 200, "processes killed under each supervisor"},
    {churn_s, 8, 600, "seconds of nodes that come and go"},
    {closing_groups, 100, 500, "groups that come and go while connections are being closed"},
    {cluster_nodes, 12, 50, "nodes of the largest cluster that is started and stopped"},
    {congested_groups, 2, 10, "groups that come and go over a connection that is full"},
    {connect_at_once, 6, 20, "times that two nodes connect to each other at once"},
    {cut_s, 2, 300, "seconds for which nodes are cut off, after which everybody holds them for dead"},
    {deaths, 2000, 10000, "deaths of named processes that share fences"},
    {detector_nodes, 50, 100, "simulated nodes of which some are silent, dead or cut off, and five times as many"},
    {directory_nodes, 500, 3000, "simulated nodes with a directory"},
    {directory_shape_nodes, 100, 300, "simulated nodes with a directory, in a star, a ring and a tree"},
    {distance_nodes, 60, 200, "simulated nodes with coordinates"},
    {fault_cuts, 10, 50, "simulated clusters, of each of two strategies, in which some do not hear one node"},
    {fault_nodes, 30, 100, "simulated nodes of which a part is cut off while all contacts die"},
    {fault_seeds, 1, 20, "times that a part is cut off so, that bulk goes over all connections, and that nearly all die"},
    {flow_cost_s, 10, 55, "seconds for which it is measured what counting traffic costs, several times where that is not enough"},
    {flow_flood_ms, 2000, 20000, "milliseconds of more messages than are traced"},
    {flow_messages, 50000, 1000000, "messages of a script that are counted one by one"},
    {formed_nodes, 14, 60, "simulated nodes that have joined by one, and rest"},
    {group_passers, 60, 5000, "nodes that come into a group of ten and leave it"},
    {harmed_nodes, 5, 8, "nodes with an overlay on which fault scripts are played"},
    {hyparview_nodes, 80, 300, "simulated nodes most of which die at once, with hyparview"},
    {link_overlay_nodes, 4, 6, "nodes whose links are the neighbours of an overlay"},
    {link_rounds, 12, 200, "connections on demand that come and go"},
    {load_tries, 2, 20, "loads whose operations are counted"},
    {matchstream_disks, 1, 3, "nodes with matches on disk"},
    {matchstream_idle, 300, 10000, "connections that say nothing beside clients of a match"},
    {matchstream_moving, 60, 1000, "clients of three nodes, one of which is killed in the middle of a match"},
    {migrate_nodes, 3, 6, "nodes of a mesh that becomes a group, node by node, and a mesh again"},
    {monitors, 40, 1000, "monitors of far processes at least, while nodes come and go"},
    {name_calls, 1000, 10000, "calls about names that two nodes make at once"},
    {name_clashes, 300, 1000, "names that both parts of a group have given"},
    {name_kills, 24, 200, "kills of a server whose name is taken again"},
    {name_rate, 2000, 20000, "names by a hundred callers at once, a tenth of them by one"},
    {name_restarts, 1, 3, "times that a member is killed, with the file of its groups and without"},
    {name_runs, 1, 5, "times as many runs of the properties of names"},
    {name_seeds, 1, 5, "histories for each step at which somebody fails"},
    {name_truth, 300, 10000, "registrations while members are killed and stopped"},
    {orbit_compared, 100, 300, "numbers of orbits that are compared in full"},
    {orbit_group, 3, 4, "nodes of each of the two groups that a mesh's program runs over"},
    {orbit_mesh, 5, 9, "nodes of Orbit's mesh"},
    {orbit_space, 10000, 100000, "numbers of which Orbit's published size is found"},
    {order_times, 3, 100, "messages of each of 64 senders to each of 8 receivers, over lanes"},
    {overlay_lives, 3, 20, "times that a node of an overlay starts again"},
    {overlay_nodes, 15, 60, "nodes with an overlay, of which half are killed"},
    {place_nodes, 8, 50, "nodes that are asked for their attributes, a fifth of them stopped"},
    {place_sim_nodes, 150, 1000, "simulated nodes among which one is chosen"},
    {reach_after_ms, 1500, 3000, "milliseconds of messages after a gateway is struck"},
    {reach_before_ms, 500, 1000, "milliseconds of messages before"},
    {reach_groups, 2, 8, "groups of nodes that reach each other over gateways"},
    {reach_nodes, 8, 40, "nodes that reach each other over groups"},
    {repeat_nodes, 10, 40, "simulated nodes of histories that are repeated"},
    {replies, 400, 500, "replies of servers that end with it"},
    {reply_bytes, 150000, 3000000, "bytes of each of these replies"},
    {rest_s, 1, 600, "seconds at rest of a cluster that was formed by join"},
    {ring_keys, 10000, 200000, "keys of a ring that a fourth node joins"},
    {room_kills, 24, 300, "rooms of nodes that are killed while names come and go"},
    {roster_nodes, 14, 60, "simulated nodes with a roster, and four times as many"},
    {roster_seeds, 2, 20, "simulated clusters whose nodes say something of themselves, of two strategies"},
    {round_trips, 100, 400, "batches of 100 round trips of each pair of nodes, while one of them is stopped"},
    {scamp_nodes, 200, 1000, "simulated nodes that have joined one after the other, with scamp"},
    {semantics_commands, 60, 2000, "commands on real nodes beside the semantics"},
    {semantics_fault_commands, 25, 1000, "commands, cuts and kills on real nodes beside the semantics"},
    {semantics_faults, 40, 5000, "sequences with partitions and kills in virtual time beside the semantics"},
    {semantics_sequences, 50, 10000, "sequences in virtual time beside the semantics"},
    {singleton_kills, 5, 50, "kills of the node of a singleton"},
    {still_s, 5, 60, "seconds for which the names of a node stand still"},
    {stopped_s, 2, 60, "seconds of messages to a node that stands still"},
    {strangers_s, 2, 60, "seconds of 3,000 strangers a second"},
    {unread, 1000, 10000, "messages that are not read, each amid a thousand times as much for others"},
    {upgrade_nodes, 3, 8, "nodes that are upgraded one by one, and back"},
    {watched_nodes, 4, 60, "nodes that are watched while it is measured what that costs"},
    {watched_s, 10, 60, "seconds of it"}
]).

%% A property runs a tenth of its tests in the fast tier, and these at least.
-define(FEWEST, 20).

%% @doc The tier that runs.
-spec tier() -> tier().
tier() ->
    case os:getenv("TIER", "fast") of
        "fast" -> fast;
        "deep" -> deep;
        Other -> error({"TIER is fast or deep, not " ++ Other})
    end.

%% @doc The size of that name in the tier that runs.
-spec size(name()) -> pos_integer().
size(Name) ->
    {Name, Fast, Deep, _} = lists:keyfind(Name, 1, ?SIZES),
    case tier() of
        fast -> Fast;
        deep -> Deep
    end.

%% @doc All sizes: their name, the fast one, the deep one, and what they count.
-spec sizes() -> [{name(), pos_integer(), pos_integer(), string()}].
sizes() -> ?SIZES.

%% @doc How many tests of a property run, of so many in the deep tier.
-spec tests(Deep :: pos_integer()) -> pos_integer().
tests(Deep) ->
    case tier() of
        fast -> max(min(Deep, ?FEWEST), Deep div 10);
        deep -> Deep
    end.

%% @doc What this run draws from.
-spec seed() -> non_neg_integer().
seed() ->
    case os:getenv("SEED", "") of
        "" ->
            Drawn = rand:uniform(1000000),
            io:format(user, "SEED=~b~n", [Drawn]),
            true = os:putenv("SEED", integer_to_list(Drawn)),
            Drawn;
        Text ->
            case string:to_integer(Text) of
                {Seed, ""} when is_integer(Seed), Seed >= 0 -> Seed;
                _ -> error({"SEED is a number of 0 or more, not " ++ Text})
            end
    end.

%% @doc A seed of its own for everything that draws: it hangs on the run's seed and on
%% the name alone, so the same test draws the same wherever and with whatever it runs.
-spec seed(term()) -> non_neg_integer().
seed(What) -> erlang:phash2({seed(), What}).

%% @doc Seeds of this run's for what holds whatever the seed: so many in the deep tier, and a tenth in
%% the fast one.
-spec seeds(term(), Deep :: pos_integer()) -> [non_neg_integer(), ...].
seeds(What, Deep) ->
    Count =
        case tier() of
            fast -> max(1, Deep div 10);
            deep -> Deep
        end,
    [seed({What, N}) || N <- lists:seq(1, Count)].
