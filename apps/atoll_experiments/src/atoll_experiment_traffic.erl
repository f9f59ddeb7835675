%% SPDX-License-Identifier: Apache-2.0
%% @doc Packets and connections of ACO's versions at equal work in equal time (Figure 32).
-module(atoll_experiment_traffic).
-behaviour(atoll_experiment).

-export([about/0, asks/1, tables/0, questions/0]).

-define(MODES, [sr, ml, gr]).
-define(SIZES, [12, 24]).

-spec about() -> atoll_experiment:about().
about() ->
    #{
        name => traffic,
        title => "Packets and connections of ACO",
        question => "What do names and a full mesh cost in packets, when the same work is done in the same time?",
        minutes => 4,
        cannot => "packets on a wire: there is no network between the nodes. What is counted is what the sockets of distribution were given to send (send_cnt "
            "of inet:getstat/2), on all nodes, from before the tree is built until the last round; many messages that travel as one count once. A "
            "connection over which nothing else was sent gets a tick each 15 s (net_ticktime 60, the default), so what a mesh costs grows with the time, and this is that of half a minute."
    }.

%% All at once: the window is the same for all, and most of it is waiting.
-spec asks(atoll_experiment:context()) -> [atoll_experiment:ask(), ...].
asks(#{size := small}) -> [ask([5], 2, 1)];
asks(#{size := full}) -> [ask(?SIZES, 56, 5)].

ask(Nodes, Rounds, Starts) ->
    Sweep = #{nodes => Nodes, mode => ?MODES, jobs => [20], ants => [2], local_iterations => [1], global_iterations => [Rounds], pace_ms => [500]},
    #{key => packets, do => {at_once, "aco", #{sweep => Sweep, starts => Starts}}}.

-spec tables() -> [atoll_experiment:table()].
tables() ->
    [
        #{caption => Caption, from => packets, down => nodes, across => {mode, ?MODES}, quantity => Metric}
     || {Caption, Metric} <- [
            {"Packets sent by all nodes in half a minute:", packets},
            {"Connections of a node, mean:", connections_mean},
            {"Connections of the busiest node:", connections_max},
            {"Names:", names}
        ]
    ].

-spec questions() -> [atoll_experiment:question(), ...].
questions() ->
    Places = [#{nodes => N} || N <- ?SIZES],
    Fewer = fun(Quantity, First, Over, Called) ->
        #{kind => {differs, less}, from => packets, by => #{quantity => Quantity, called => Called, first => #{mode => First}, over => #{mode => Over}, at => Places}}
    end,
    [
        (Fewer(packets, sr, ml, "SR sent of the packets of ML"))#{
            figure => "Figure 32",
            says => "SR-ACO sends the fewest packets: fewer than ML-ACO, which has no names.",
            why => "The rounds' own messages are the same in all three but for who relays them; what differs is what makes and keeps connections and names."
        },
        (Fewer(packets, ml, gr, "ML sent of the packets of GR"))#{figure => "Figure 32", says => "GR-ACO sends the most packets: more than ML-ACO."},
        (Fewer(connections_mean, sr, ml, "SR had of the connections of ML"))#{
            figure => "section VIII.ii",
            says => "ML-ACO and GR-ACO keep all nodes connected with each other; SR-ACO connects nodes within s_groups only."
        }
    ].
