%% SPDX-License-Identifier: Apache-2.0
%% @doc The advertisement counter of the Partisan paper: what states and deltas cost client-server and peer to peer, on real nodes and over more and
%% more simulated ones.
-module(atoll_experiment_adcounter).
-behaviour(atoll_experiment).

-export([about/0, asks/1, tables/0, questions/0]).

-define(PAPER, "Partisan (2019)").
-define(BENCH, "adcounter").
-define(MODES, [server, peer]).
-define(REAL, [6]).
-define(SIMULATED, [16, 64]).
-define(STARTS, 6).

-spec about() -> atoll_experiment:about().
about() ->
    #{
        name => adcounter,
        title => "The advertisement counter",
        question => "What do replicas send each other, and how far do they count over, with a server and peer to peer, with states and with deltas?",
        minutes => 4,
        cannot => "runs of half an hour with an impression each ten seconds, which the paper has: here a client shows five, within seconds. Over more nodes than the memory of one "
            "machine holds it is simulated. What the paper's client-server clusters failed of from 256 nodes on, queues without a bound, is bounded here."
    }.

-spec asks(atoll_experiment:context()) -> [atoll_experiment:ask(), ...].
asks(#{size := small}) ->
    Few = #{world => [simulated], nodes => [6], mode => ?MODES, budget => [3], how => [state, delta]},
    [#{key => Key, do => {bench, ?BENCH, #{sweep => Few, rounds => 1, starts => 1}}} || Key <- [real, simulated]];
asks(#{size := full}) ->
    [
        #{key => simulated, do => {bench, ?BENCH, #{
            sweep => #{world => [simulated], nodes => ?SIMULATED, mode => ?MODES, budget => [5], impression_ms => [2000], propagation_ms => [1000]}, rounds => ?STARTS, starts => ?STARTS
        }}},
        #{key => real, do => {bench, ?BENCH, #{sweep => #{world => [real], nodes => ?REAL, mode => ?MODES, budget => [5]}, rounds => ?STARTS, starts => ?STARTS}}}
    ].

-spec tables() -> [atoll_experiment:table()].
tables() ->
    [
        (case From of simulated -> #{kind => simulation}; real -> #{} end)#{
            caption => io_lib:format("~ts, ~ts, ~ts:", [Caption, Where, Of]),
            from => From,
            down => nodes,
            across => {how, [state, delta]},
            at => #{mode => Mode},
            quantity => Quantity
        }
     || {From, Where} <- [{real, "real nodes"}, {simulated, "simulated ones"}],
        {Mode, Of} <- [{server, "client-server"}, {peer, "peer to peer"}],
        {Quantity, Caption} <- [{bytes, "Bytes sent by all nodes together"}, {overcount_percent, "Impressions over what was paid for, percent"}, {seen_ms, "Until all clients have seen it, ms"}]
    ].

-spec questions() -> [atoll_experiment:question(), ...].
questions() ->
    [
        #{
            figure => [?PAPER, ", the advertisement counter"],
            says => "Deltas send less than states.",
            kind => {differs, less},
            from => From,
            by => #{quantity => bytes, called => "Of states deltas sent", first => #{how => delta}, over => #{how => state}, at => [#{nodes => N, mode => Mode} || N <- Sizes, Mode <- ?MODES]}
        }
     || {From, Sizes} <- [{real, ?REAL}, {simulated, ?SIMULATED}]
    ] ++ [
        #{
            figure => [?PAPER, ", the advertisement counter"],
            says => "Few nodes send less with a server than peer to peer, which is redundant.",
            kind => {differs, more},
            from => real,
            by => #{quantity => bytes, called => "Peer to peer they sent as many times as much", first => #{mode => peer}, over => #{mode => server}, at => [#{nodes => N, how => How} || N <- ?REAL, How <- [state, delta]]}
        },
        #{
            figure => [?PAPER, ", the advertisement counter"],
            says => "Client-server fails above 256 nodes, by queues without a bound; peer to peer goes to 1,024.",
            kind => counted,
            from => none,
            why => "So many nodes are not among what is run here. Queues have a bound, and 512 simulated nodes with a server came to their end when they were (cases/adcounter/README.md)."
        }
    ].
