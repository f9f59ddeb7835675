%% SPDX-License-Identifier: Apache-2.0
%% @doc A run of the ant colonies on a cluster, with what is measured of it ({@link atoll_bench_case}).
-module(atoll_bench_ants).

-export([run/3, run/4]).

-export_type([result/0]).

%% {@link aco:result()}, and what was measured.
-type result() :: atoll_bench_case:result().

%% @doc Runs it on all nodes of the cluster, with so many kills a second on each of them; an error
%% is a sentence.
-spec run(atoll_cluster:cluster(), map(), Chaos :: number()) -> {ok, result()} | {error, unicode:chardata()}.
run(Cluster, Spec, Chaos) -> run(Cluster, Spec, Chaos, infinity).

%% @doc Within so many milliseconds.
-spec run(atoll_cluster:cluster(), map(), Chaos :: number(), timeout()) -> {ok, result()} | {error, unicode:chardata()}.
run(Cluster, Spec, Chaos, Ms) ->
    Seed = case Spec of #{options := #{seed := Given}} -> Given; #{} -> 1 end,
    atoll_bench_case:run(Cluster, Spec, #{program => aco, rate => Chaos}, Seed, Ms).
