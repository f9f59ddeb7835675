%% SPDX-License-Identifier: Apache-2.0
%% @doc The advertisement counter of the Partisan paper: what states and deltas cost client-server and peer to peer, on real nodes and over more and
%% more simulated ones.
-module(atoll_experiment_adcounter).
-behaviour(atoll_experiment).

-export([about/0, asks/1, tables/0, questions/0]).

-define(PAPER, "Partisan (2019)").
-define(BENCH, "adcounter").
-define(MODES, [server, peer]).
-define(REAL, [8]).
-define(SIMULATED, [32, 128]).

-spec about() -> atoll_experiment:about().
about() ->
    #{
        name => adcounter,
        title => "The advertisement counter",
        question => "What do replicas send each other, and how far do they count over, with a server and peer to peer, with states and with deltas?",
        minutes => 3,
        cannot => "runs of half an hour with an impression each ten seconds, which the paper has: here a client shows ten, several a second. Over more nodes than the memory of one "
            "machine holds it is simulated. What the paper's client-server clusters failed of from 256 nodes on, queues without a bound, is bounded here."
    }.

-spec asks(atoll_experiment:context()) -> [atoll_experiment:ask(), ...].
asks(#{size := small}) ->
    Few = #{world => [simulated], nodes => [6], mode => ?MODES, budget => [3], how => [state, delta]},
    [#{key => Key, do => {bench, ?BENCH, #{sweep => Few, rounds => 1, starts => 1}}} || Key <- [real, simulated]];
asks(#{size := full}) ->
    [
        #{key => real, do => {bench, ?BENCH, #{sweep => #{world => [real], nodes => ?REAL, mode => ?MODES}, rounds => 1, starts => 5}}},
        #{key => simulated, do => {bench, ?BENCH, #{sweep => #{world => [simulated], nodes => ?SIMULATED, mode => ?MODES}, rounds => 1, starts => 6}}}
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
            kind => simulation,
            from => simulated,
            by => fun ended/1,
            why => "Queues have a bound here, so 512 nodes with a server come to their end too."
        }
    ].

%% A round that did not end well has no values.
ended({run, Run}) ->
    Of = fun(Mode) -> atoll_experiments_samples:by_start(seen_ms, #{mode => Mode, nodes => lists:last(?SIMULATED), how => delta}, Run) end,
    case {Of(server), Of(peer)} of
        {[], _} -> {unknown, "No run of that size has come to its end."};
        {_, []} -> {unknown, "No run of that size has come to its end."};
        {Server, Peer} ->
            {false, io_lib:format("With ~b nodes ~b runs with a server have come to their end, and ~b peer to peer.", [lists:last(?SIMULATED), length(Server), length(Peer)])}
    end.
