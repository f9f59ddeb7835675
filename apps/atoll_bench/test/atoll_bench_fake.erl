%% SPDX-License-Identifier: Apache-2.0
%% A benchmark of this process, whose rounds return what they are told to.
-module(atoll_bench_fake).
-behaviour(atoll_bench).

-export([summary/0, parameters/0, variant/0, metrics/0, points/1, check/1, flags/1, setup/1, round/1, teardown/1]).

summary() -> "returns what it is told to".

parameters() ->
    [
        #{name => size, type => integer, values => [1, 2], help => "a size"},
        #{name => system, type => atom, values => [a, b], one_of => [a, b, seeded, seeding, slow, broken, failing, raising, exiting, unwritable], help => "a system"}
    ].

variant() -> system.

metrics() ->
    [
        #{name => rate, label => "Rate", unit => "1/s", better => more, kind => value},
        #{name => latency, label => "Latency", unit => "ns", better => less, kind => latency}
    ].

points(Points) -> Points.

check(_) -> ok.

flags(#{system := System}) -> ["+fake", atom_to_list(System)].

setup(#{system := broken}) -> {error, "it is broken"};
setup(#{system := raising}) -> error(raised);
setup(Whole) ->
    Point = maps:remove(seed, Whole),
    say({setup, Point}),
    {ok, {case Point of #{system := S} when S =:= seeded; S =:= seeding -> Whole; #{} -> Point end, 0}}.

round({#{system := failing}, 1}) -> {error, "it failed"};
round({#{system := exiting}, 1}) -> exit(exited);
round({#{system := slow} = Point, Count}) ->
    receive
    after 500 -> {ok, #{rate => 1}, {Point, Count + 1}}
    end;
%% As a benchmark draws from its seeds.
round({#{seed := Seed} = Point, Count}) -> {ok, #{rate => Seed + Count}, {Point, Count + 1}};
%% No JSON.
round({#{system := unwritable} = Point, 1}) -> {ok, #{rate => {no, json}}, {Point, 2}};
round({#{size := Size} = Point, Count}) ->
    say({round, Point}),
    Hist = atoll_histogram:new(),
    ok = atoll_histogram:record(1000 * Size, Hist),
    {ok, #{rate => rate(Size, Count), latency => atoll_histogram:export(Hist)}, {Point, Count + 1}}.

%% At 3, a number for each of three.
rate(3, Count) -> [30 + Count, 1000, 0];
rate(Size, Count) -> 10 * Size + Count.

teardown({Point, _}) ->
    say({teardown, maps:remove(seed, Point)}),
    ok.

say(What) ->
    self() ! {atoll_bench_fake, What},
    ok.
