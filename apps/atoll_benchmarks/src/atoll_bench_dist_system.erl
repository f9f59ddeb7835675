%% SPDX-License-Identifier: Apache-2.0
%% @doc What the benchmark {@link atoll_bench_dist} compares: ways in which two nodes can
%% be connected, as the arguments that make erl do so.
%%
%% Of the carrier's kinds `direct' and lanes are with its profile for throughput, its
%% default. `direct_latency' is `direct' with the profile for latency and the arguments
%% that are recommended with it; `stock_low_busy' has those arguments alone. `relay' is a circuit
%% over a third node, with direct connections, and `relay_sealed' the same, encrypted and
%% authenticated from end to end. `channels4' and `channels16' have one lane, and so many more for
%% a channel of what is sent in bulk; `monotonic' has one more for a monotonic channel of states.
-module(atoll_bench_dist_system).

-export([all/0, usual/0, args/1, is_relayed/1]).

-export_type([system/0]).

-type system() :: stock | stock_tuned | stock_low_busy | direct | direct_latency | lanes4 | lanes16 | relay | relay_sealed
    | channels4 | channels16 | monotonic.

%% @doc Those that can be measured.
-spec all() -> [system(), ...].
all() ->
    usual() ++ [direct_latency, stock_low_busy, relay, relay_sealed, channels4, channels16, monotonic].

%% @doc Those that are measured unless told otherwise.
-spec usual() -> [system(), ...].
usual() ->
    [stock, stock_tuned, direct, lanes4, lanes16].

%% @doc Whether its two nodes are connected over a third one.
-spec is_relayed(system()) -> boolean().
is_relayed(System) ->
    System =:= relay orelse System =:= relay_sealed.

%% @doc The arguments of its nodes. All go without busy waiting, which on few cores takes
%% from one node what the other needs.
-spec args(system()) -> [string()].
args(System) ->
    ["+sbwt", "none", "+sbwtdcpu", "none", "+sbwtdio", "none"] ++ own(System).

own(stock) ->
    [];
own(stock_tuned) ->
    Buffers = "[{sndbuf,4194304},{recbuf,4194304}]",
    [
        "+zdbbl", "65536",
        "-kernel", "inet_dist_connect_options", Buffers,
        "-kernel", "inet_dist_listen_options", Buffers
    ];
own(stock_low_busy) ->
    low_busy();
own(direct) ->
    carrier("[{kind,direct}]");
own(direct_latency) ->
    low_busy() ++ carrier("[{kind,direct},{profile,latency}]");
own(lanes4) ->
    carrier("[{kind,{lanes,4}}]");
own(lanes16) ->
    carrier("[{kind,{lanes,16}}]");
own(channels4) ->
    carrier("[{kind,{lanes,1}},{channels,#{bulk=>#{lanes=>4}}}]");
own(channels16) ->
    carrier("[{kind,{lanes,1}},{channels,#{bulk=>#{lanes=>16}}}]");
own(monotonic) ->
    carrier("[{kind,{lanes,1}},{channels,#{states=>#{monotonic=>true}}}]");
own(relay) ->
    carrier("[{kind,direct}]") ++ ["-connect_all", "false"];
own(relay_sealed) ->
    carrier("[{kind,direct},{seal,required}]") ++ ["-connect_all", "false"].

carrier(Options) ->
    ["-proto_dist", "atoll", "-kernel", "atoll_dist", Options].

%% In KB: what may wait in the VM until it suspends who sends more.
low_busy() ->
    ["+zdbbl", "256"].
