%% SPDX-License-Identifier: Apache-2.0
%% @doc What the benchmark {@link atoll_bench_dist} compares: ways in which two nodes can
%% be connected, as the arguments that make erl do so.
%%
%% Of the carrier's kinds `direct' and lanes are with its profile for throughput, its
%% default. `direct_latency' is `direct' with the profile for latency and the arguments
%% that are recommended with it; `stock_low_busy' has those arguments alone. `relay' is a circuit
%% over a third node, with direct connections, `relay_sealed' the same, encrypted and
%% authenticated from end to end, `relay_lanes16' one over connections of 16 lanes, and `relay_wide' the same with four times the budget,
%% and so four times the window.
%% `own' is a circuit that has a connection of its own, `own_lanes16' one of 16 lanes. `forwarded' is `direct' over a small
%% program that forwards between two sockets: what a node between costs at least; and
%% `own_forwarded' is `own' over it: a circuit whose frames are moved outside Erlang. Those whose names end with `tls'
%% have TLS, `stock_tls' as in OTP's own distribution over it; both ends verify each other. `channels4' and `channels16'
%% have one lane, and so many more for a channel of what is sent in bulk; `monotonic' has one more for a monotonic
%% channel of states.
-module(atoll_bench_dist_system).

-export([all/0, usual/0, args/1, way/1, has_tls/1]).

-export_type([system/0]).

-type system() ::
    stock | stock_tuned | stock_low_busy | direct | direct_latency | lanes4 | lanes16
    | forwarded | relay | relay_sealed | relay_lanes16 | relay_wide | own | own_lanes16 | own_forwarded
    | stock_tls | direct_tls | lanes4_tls | lanes16_tls
    | channels4 | channels16 | monotonic.

%% @doc Those that can be measured.
-spec all() -> [system(), ...].
all() ->
    usual() ++ [direct_latency, stock_low_busy, forwarded, relay, relay_sealed, relay_lanes16, relay_wide, own, own_lanes16, own_forwarded,
        stock_tls, direct_tls, lanes4_tls, lanes16_tls, channels4, channels16, monotonic].

%% @doc Those that are measured unless told otherwise.
-spec usual() -> [system(), ...].
usual() ->
    [stock, stock_tuned, direct, lanes4, lanes16].

%% @doc How its two nodes are connected: with each other, over the forwarding program, or
%% by a circuit over a third node, which may get a connection of its own then.
-spec way(system()) -> link | forwarded | relayed | own | own_forwarded.
way(System) when System =:= forwarded; System =:= own; System =:= own_forwarded -> System;
way(own_lanes16) -> own;
way(System) when System =:= relay; System =:= relay_sealed; System =:= relay_lanes16; System =:= relay_wide -> relayed;
way(_System) -> link.

%% @doc Whether its connections have TLS around them.
-spec has_tls(system()) -> boolean().
has_tls(System) ->
    lists:member(System, [stock_tls, direct_tls, lanes4_tls, lanes16_tls]).

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
own(stock_tls) ->
    ["-proto_dist", "inet_tls"];
own(direct_tls) ->
    carrier("[{kind,direct},{tls,on}]");
own(lanes4_tls) ->
    carrier("[{kind,{lanes,4}},{tls,on}]");
own(lanes16_tls) ->
    carrier("[{kind,{lanes,16}},{tls,on}]");
own(forwarded) ->
    own(direct) ++ ["-epmd_module", "atoll_epmd"];
own(relay_sealed) ->
    alone("[{kind,direct},{seal,required}]");
own(System) when System =:= relay; System =:= own ->
    alone("[{kind,direct}]");
own(own_forwarded) ->
    own(own) ++ ["-epmd_module", "atoll_epmd"];
own(relay_wide) ->
    alone("[{kind,{lanes,16}},{relay_budget,1073741824}]");
own(System) when System =:= relay_lanes16; System =:= own_lanes16 ->
    alone("[{kind,{lanes,16}}]").

%% Nodes that make no connection which nobody asks for.
alone(Options) ->
    carrier(Options) ++ ["-connect_all", "false"].

carrier(Options) ->
    ["-proto_dist", "atoll", "-kernel", "atoll_dist", Options].

%% In KB: what may wait in the VM until it suspends who sends more.
low_busy() ->
    ["+zdbbl", "256"].
