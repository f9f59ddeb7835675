%% A benchmark of two variants on real nodes that do the same, but for what was planted: the second does so much
%% more of it, per cent.
-module(atoll_experiments_slowed).
-behaviour(atoll_bench).

-export([summary/0, parameters/0, variant/0, metrics/0, points/1, check/1, flags/1, setup/1, round/1, teardown/1]).
-export([work/1]).

-define(TURNS, 600000).

summary() -> "Two variants, one of which may be slowed".

parameters() ->
    [
        #{name => planted, type => integer, values => [0], min => 0, max => 100, help => "per cent more work in b"},
        #{name => variant, type => atom, values => [a, b], one_of => [a, b], help => "which"}
    ].

variant() -> variant.

metrics() -> [#{name => us, label => "Time", unit => "us", better => less, kind => value}].

points(Points) -> Points.

check(_) -> ok.

flags(_) -> atoll_bench_nodes:flags().

setup(#{planted := Planted, variant := Variant} = Point) ->
    Turns = case Variant of a -> ?TURNS; b -> ?TURNS + ?TURNS * Planted div 100 end,
    atoll_bench_nodes:start(#{nodes => 1, args => flags(Point)}, fun(Cluster) -> {ok, #{cluster => Cluster, turns => Turns}} end).

round(#{cluster := Cluster, turns := Turns} = State) ->
    [Node] = atoll_cluster:nodes(Cluster),
    %% Of several the middle one: what else the machine does comes and goes.
    case atoll_bench_nodes:call(Cluster, Node, {?MODULE, work}, [Turns], 60000) of
        {ok, Us} -> {ok, #{us => Us}, State};
        {error, _} = Error -> Error
    end.

work(Turns) ->
    atoll_bench_stats:median([element(1, timer:tc(fun() -> lists:foldl(fun(N, Sum) -> (Sum * 31 + N) rem 65521 end, 0, lists:seq(1, Turns)) end)) || _ <- lists:seq(1, 7)]).

teardown(#{cluster := Cluster}) -> atoll_bench_nodes:stop(Cluster).
