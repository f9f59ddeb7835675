%% SPDX-License-Identifier: Apache-2.0
%% @doc Echo and a key-value store on a ring (paper 002, section 5), over Erlang's own distribution and over lanes and a channel of the carrier.
-module(atoll_experiment_ring).
-behaviour(atoll_experiment).

-export([about/0, asks/1, tables/0, questions/0]).

-define(PAPER, "Meiklejohn and others (2019)").
-define(SYSTEMS, [stock, lanes]).
-define(PLACES, [{echo, 1}, {echo, 20}, {kvs, 20}]).
-define(SIZES, [524288, 8388608]).
-define(STARTS, 6).

-spec about() -> atoll_experiment:about().
about() ->
    #{
        name => ring,
        title => "A ring of partitions",
        question => "What do many lanes and a channel of their own bring to the messages of partitions?",
        minutes => 8,
        cannot => "what three hosts would show: both nodes, their workers and the path share two processors. A path has two ends, so there are two nodes, one copy of a key, and workers that ask only for what the other node has: each request "
            "goes over the path once, and its answer back; of the paper's requests for three copies two do. The paper's 10,000 keys of 8 MB would not fit into the memory: there are fewer keys with larger values. "
            "Its store holds each operation for 1 ms, and 10 ms in its code; here 1 ms."
    }.

-spec asks(atoll_experiment:context()) -> [atoll_experiment:ask(), ...].
asks(#{size := small}) ->
    [
        #{key => Key, do => {bench, "ring", #{sweep => #{program => [Key], rtt => [0], size => [1024], workers => [2], partitions => [64], seconds => [0.3], system => ?SYSTEMS}, rounds => 1, starts => 1}}}
     || Key <- [echo, kvs]
    ];
asks(#{size := full}) ->
    [
        #{key => list_to_atom(lists:concat([Program, "_", Rtt])), do => {bench, "ring", #{
            sweep => #{program => [Program], rtt => [Rtt], size => ?SIZES, workers => [32], keys => [20], nodes => [2], copies => [1], asks => [across], seconds => [2], system => ?SYSTEMS}, rounds => ?STARTS, starts => ?STARTS
        }}}
     || {Program, Rtt} <- ?PLACES
    ].

-spec tables() -> [atoll_experiment:table()].
tables() ->
    [
        #{caption => [case Program of echo -> "Echo"; kvs -> "Store" end, ", requests a second, ", integer_to_list(Rtt), " ms, by bytes:"], from => list_to_atom(lists:concat([Program, "_", Rtt])), down => size, across => {system, ?SYSTEMS}, quantity => ops_per_s}
     || {Program, Rtt} <- ?PLACES
    ].

-spec questions() -> [atoll_experiment:question(), ...].
questions() ->
    [
        #{
            figure => Figure,
            says => Says,
            kind => {at_most, 1 / Least},
            from => From,
            by => #{quantity => ops_per_s, called => "Stock had as many times as many requests", first => #{system => stock}, over => #{system => lanes}, at => [#{size => Size}]},
            why => Why
        }
     || {Figure, From, Size, Least, Says, Why} <- [
            {[?PAPER, ", section 5.2, echo"], echo_20, 8388608, 3, "Echo of 8 MB over 20 ms: 35 times as many requests with parallel connections; here 3 times as many are asked for.", "The path of the paper had windows of its own kernel's defaults, and its processors had room."},
            {[?PAPER, ", section 5.2, echo"], echo_20, 524288, 3, "Echo of 512 KB over 20 ms: 7 times as many requests; 3 times are asked for.", "How many windows there are is what counts on a long path."},
            {[?PAPER, ", section 5.2, echo"], echo_1, 8388608, 1, "Echo of 8 MB over 1 ms: 3 times as many requests; no fewer are asked for.", "Both processors are busy at 1 ms, with either."},
            {[?PAPER, ", section 5.3, KVS"], kvs_20, 524288, 1.5, "The store with 512 KB over 20 ms: 1.8 times as many requests; 1.5 times are asked for.", "Nine of ten requests read."},
            {[?PAPER, ", section 5.3, KVS"], kvs_20, 8388608, 3, "The store with 8 MB over 20 ms: 95 requests a second beside one in two minutes; 3 times as many are asked for.", "As above."},
            {none, echo_1, 524288, 0.95, "Over 1 ms nothing is lost by it: 512 KB at 0.95 of stock's requests at least.", "The paper had 1.01 of them."}
        ]
    ].
