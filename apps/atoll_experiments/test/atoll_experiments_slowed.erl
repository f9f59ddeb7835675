%% SPDX-License-Identifier: Apache-2.0
%% A benchmark of two variants on real nodes that do the same, but for what was planted: the second does so much
%% more of it, per cent. What is measured is processor time, which others on the machine do not take away.
-module(atoll_experiments_slowed).
-behaviour(atoll_bench).

-export([summary/0, parameters/0, variant/0, metrics/0, points/1, check/1, flags/1, setup/1, round/1, teardown/1]).
-export([work/1]).

-define(TURNS, 3000000).

summary() -> "Two variants, one of which may be slowed".

parameters() ->
    [
        #{name => planted, type => integer, values => [0], min => 0, max => 100, help => "per cent more work in b"},
        #{name => variant, type => atom, values => [a, b], one_of => [a, b], help => "which"}
    ].

variant() -> variant.

metrics() -> [#{name => us, label => "Processor time", unit => "us", better => less, kind => value}].

points(Points) -> Points.

check(_) -> ok.

flags(_) -> atoll_bench_nodes:flags().

setup(#{planted := Planted, variant := Variant} = Point) ->
    Turns = case Variant of a -> ?TURNS; b -> ?TURNS + ?TURNS * Planted div 100 end,
    atoll_bench_nodes:start(#{nodes => 1, args => flags(Point)}, fun(Cluster) -> {ok, #{cluster => Cluster, turns => Turns}} end).

round(#{cluster := Cluster, turns := Turns} = State) ->
    [Node] = atoll_cluster:nodes(Cluster),
    case atoll_bench_nodes:call(Cluster, Node, {?MODULE, work}, [Turns], 60000) of
        {ok, Us} -> {ok, #{us => Us}, State};
        {error, _} = Error -> Error
    end.

%% The least of several: what others do to caches only adds to it.
work(Turns) ->
    lists:min([
        begin
            Before = atoll_bench_machine:own_cpu_us(),
            _ = turn(Turns, 1),
            atoll_bench_machine:own_cpu_us() - Before
        end
     || _ <- lists:seq(1, 7)
    ]).

turn(0, Sum) -> Sum;
turn(N, Sum) -> turn(N - 1, (Sum * 31 + N) rem 65521).

teardown(#{cluster := Cluster}) -> atoll_bench_nodes:stop(Cluster).
