%% SPDX-License-Identifier: Apache-2.0
%% @doc The benchmark `io': what one node's input and output takes, by how many processes do it at once and by how many schedulers there
%% are. Where more processes get no more done, something in between does one thing at a time: {@link atoll_bench_io_load} says
%% what each kind does.
-module(atoll_bench_io).
-behaviour(atoll_bench).

-export([summary/0, parameters/0, variant/0, metrics/0, points/1, check/1, flags/1, setup/1, round/1, teardown/1]).

-define(CALL_MS, 120_000).

-spec summary() -> string().
summary() -> "files, sockets, tables and logs of one node, by how many processes use them at once".

-spec parameters() -> [atoll_bench:parameter(), ...].
parameters() ->
    Kinds = atoll_bench_io_load:kinds(),
    [
        #{name => kind, type => atom, values => Kinds, one_of => Kinds, help => "what is done again and again"},
        #{name => callers, type => integer, values => [1, 8], max => 1000, help => "processes that do it at once"},
        #{name => size, type => integer, values => [256], max => 1000000, unit => "bytes", help => "of what is written or sent"},
        #{name => ms, type => integer, values => [500], max => 60000, unit => "ms", help => "of a round"},
        #{name => emulator, type => atom, values => [all, one], one_of => atoll_bench_emulator:words(),
          help => "how the node is started, as in the benchmark subscribers"}
    ].

-spec variant() -> atom().
variant() -> emulator.

-spec metrics() -> [atoll_bench:metric(), ...].
metrics() ->
    [
        #{name => per_s, label => "Done in a second", unit => "1/s", better => more, kind => value},
        #{name => time, label => "Time of one", unit => "ns", better => less, kind => latency},
        #{name => cpu_us, label => "Processor time of one", unit => "\x{b5}s", better => less, kind => value}
    ].

-spec points([atoll_bench:point(), ...]) -> [atoll_bench:point()].
points(Points) -> Points.

-spec check(atoll_bench:point()) -> ok.
check(_) -> ok.

-spec flags(atoll_bench:point()) -> [string()].
flags(#{emulator := Emulator}) -> atoll_bench_emulator:flags(Emulator).

-spec setup(atoll_bench:start()) -> {ok, map()} | {error, unicode:chardata()}.
setup(#{emulator := Emulator} = Point) ->
    atoll_bench_nodes:start(#{nodes => 1, args => atoll_bench_emulator:flags(Emulator)}, fun(Cluster) ->
        [Node] = atoll_cluster:nodes(Cluster),
        #{dir := Dir} = atoll_cluster:info(Cluster),
        {ok, Point#{cluster => Cluster, node => Node, dir => filename:join(Dir, "io")}}
    end).

-spec round(map()) -> {ok, #{atom() => atoll_bench:measure()}, map()} | {error, unicode:chardata()}.
round(#{cluster := Cluster, node := Node} = State) ->
    Load = maps:with([kind, callers, size, ms, dir], State),
    case atoll_bench_nodes:call(Cluster, Node, {atoll_bench_io_load, run}, [Load], ?CALL_MS) of
        {ok, #{finished := Finished, took_ns := Ns, latency := Latency, cpu_us := Us}} ->
            {ok, #{per_s => Finished * 1.0e9 / Ns, time => Latency, cpu_us => Us / max(1, Finished)}, State};
        {error, _} = Error ->
            Error
    end.

-spec teardown(map()) -> ok.
teardown(#{cluster := Cluster}) -> atoll_bench_nodes:stop(Cluster).
