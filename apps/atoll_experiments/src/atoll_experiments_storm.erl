%% SPDX-License-Identifier: Apache-2.0
%% @doc The benchmark `aco' with kills and without as what is compared, so that both take turns;
%% all else is {@link atoll_bench_aco}'s.
-module(atoll_experiments_storm).
-behaviour(atoll_bench).

-export([summary/0, parameters/0, variant/0, metrics/0, points/1, check/1, flags/1, setup/1, round/1, teardown/1]).

-spec summary() -> string().
summary() -> "Ant colonies with a kill a second on every node, and without".

-spec parameters() -> [atoll_bench:parameter(), ...].
parameters() -> atoll_bench_aco:parameters().

-spec variant() -> atom().
variant() -> chaos.

-spec metrics() -> [atoll_bench:metric(), ...].
metrics() -> atoll_bench_aco:metrics().

-spec points([atoll_bench:point(), ...]) -> [atoll_bench:point()].
points(Points) -> atoll_bench_aco:points(Points).

-spec check(atoll_bench:point()) -> ok | {error, unicode:chardata()}.
check(Point) -> atoll_bench_aco:check(Point).

-spec flags(atoll_bench:point()) -> [string()].
flags(Point) -> atoll_bench_aco:flags(Point).

-spec setup(atoll_bench:start()) -> {ok, map()} | {error, unicode:chardata()}.
setup(Point) -> atoll_bench_aco:setup(Point).

-spec round(map()) -> {ok, #{atom() => atoll_bench:measure()}, map()} | {error, unicode:chardata()}.
round(State) -> atoll_bench_aco:round(State).

-spec teardown(map()) -> ok.
teardown(State) -> atoll_bench_aco:teardown(State).
