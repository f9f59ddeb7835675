%% SPDX-License-Identifier: Apache-2.0
%% What a ring's clients feel while a node joins. It compares times.
-module(ring_join_SUITE).

-include_lib("stdlib/include/assert.hrl").

-import(ring_world, [started/1, call/5, whole/3, sessions/3, judged/3, written/2]).

-export([all/0, suite/0]).
-export([many_keys_are_handed_over_under_load/1]).
-export([load/3]).

suite() -> [{timetrap, {minutes, 30}}, {userdata, quiet}].

all() -> [many_keys_are_handed_over_under_load || atoll_tier:tier() =:= deep].

%% The sessions beside it are those that would miss what was lost: all others write the same value again.
many_keys_are_handed_over_under_load(_) ->
    C = started(#{nodes => 3, spare => 1, clients => 1, settings => #{partitions => 64}}),
    [A, B, D, Spare | _] = atoll_cluster:nodes(C),
    Keys = atoll_tier:size(ring_keys),
    ok = atoll_cluster:call(C, A, ring_world, fill, [joined, Keys], 1_500_000),
    Calm = p99([call(C, A, ?MODULE, load, [Keys, 10_000, 100])]),
    Traffic = sessions(C, 30_000, handing),
    ok = call(C, Spare, ring, join, [A]),
    Windows = under(C, A, Spare, Keys, []),
    Under = p99(Windows),
    ct:pal("p99 before ~b us, meanwhile ~b us, of each ten seconds ~w us", [Calm, Under, [p99([Window]) || Window <- lists:reverse(Windows)]]),
    ok = whole(C, [A, B, D, Spare], [A, B, D, Spare]),
    _ = judged(C, Traffic, []),
    ?assertEqual({ok, Keys + length(written(C, D))}, atoll_cluster:call(C, D, ring_kvs, count, [], 300_000)),
    ?assert(Under =< 3 * Calm),
    atoll_cluster_owned:stop(C).

%% What is measured in each ten seconds until all has been handed over; nothing fails.
under(C, A, Spare, Keys, Before) ->
    {_, Failed} = Window = call(C, A, ?MODULE, load, [Keys, 10_000, 100]),
    ?assertEqual([], Failed),
    case call(C, Spare, ring, is_settled, []) of
        true -> [Window | Before];
        false -> under(C, A, Spare, Keys, [Window | Before])
    end.

p99(Windows) -> atoll_histogram:percentile(atoll_histogram:merge([Latency || {Latency, _} <- Windows]), 99) div 1000.

%% On a node: reads and writes at a rate; their times, and what has failed, some of it.
load(Keys, Ms, Rate) ->
    Self = self(),
    Ref = make_ref(),
    #{latency := Latency} = atoll_bench_load:open(fun() -> [Self ! {Ref, Why} || Why <- loaded(Keys)], ok end, #{rate => Rate, ms => Ms, workers_max => 200}),
    {atoll_histogram:export(Latency), lists:sublist(failures(Ref), 5)}.

failures(Ref) -> receive {Ref, Why} -> [Why | failures(Ref)] after 0 -> [] end.

loaded(Keys) ->
    Key = {joined, rand:uniform(Keys)},
    case ring_kvs:get(Key) of
        {ok, _, Context} -> [{put, Key, Why} || {error, Why} <- [ring_kvs:put(Key, new, #{context => Context})]];
        Other -> [{get, Key, Other}]
    end.
