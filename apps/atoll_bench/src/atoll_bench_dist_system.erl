%% @doc What the benchmark {@link atoll_bench_dist} compares: ways in which two nodes can
%% be connected, as the arguments that make erl do so.
-module(atoll_bench_dist_system).

-export([all/0, args/1]).

-export_type([system/0]).

-type system() :: stock | stock_tuned | direct | lanes4 | lanes16.

%% @doc Those that are measured. The carrier's are not before it is here.
-spec all() -> [system(), ...].
all() ->
    [stock, stock_tuned].
    %% [stock, stock_tuned, direct, lanes4, lanes16].

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
own(direct) ->
    carrier("[{kind,direct}]");
own(lanes4) ->
    carrier("[{kind,{lanes,4}}]");
own(lanes16) ->
    carrier("[{kind,{lanes,16}}]").

carrier(Options) ->
    ["-proto_dist", "atoll", "-kernel", "atoll_dist", Options].
