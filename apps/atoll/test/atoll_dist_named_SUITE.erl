%% SPDX-License-Identifier: Apache-2.0
%% Channels with a name on real nodes: whose lanes are whose, who is in which, that the order
%% is kept, and what is dropped.
-module(atoll_dist_named_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(atoll_dist_nodes, [node/3, carrier/1, name/1, call/4, call/5, works/2, listed/2, until/1]).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    both_ends_have_the_lanes_of_all_channels/1,
    a_channel_does_not_wait_for_another/1,
    processes_join_by_rule/1,
    who_changes_its_channel_keeps_its_order/1,
    a_channel_that_is_not_there_is_refused/1
]).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    [
        both_ends_have_the_lanes_of_all_channels,
        a_channel_does_not_wait_for_another,
        processes_join_by_rule,
        who_changes_its_channel_keeps_its_order,
        a_channel_that_is_not_there_is_refused
    ].

init_per_suite(Config) -> atoll_dist_nodes:begin_suite(Config).
end_per_suite(Config) -> atoll_dist_nodes:end_suite(Config).
init_per_testcase(_Case, Config) -> atoll_dist_nodes:begin_case(Config).
end_per_testcase(_Case, Config) -> atoll_dist_nodes:end_case(Config).

pair(Config, Options) -> pair(Config, Options, Options).

pair(Config, OptionsA, OptionsB) ->
    [A, B] = [node(Config, Name, carrier(Options) ++ ["-connect_all", "false"]) || {Name, Options} <- [{"a", OptionsA}, {"b", OptionsB}]],
    works(A, B),
    _ = call(B, atoll_dist_probe, echo, [echo]),
    {A, B}.

channels(A, B) ->
    [Channels] = [Channels || #{node := Node, channels := Channels} <- call(A, atoll, links, []), Node =:= name(B)],
    Channels.

both_ends_have_the_lanes_of_all_channels(Config) ->
    {A, B} = pair(Config, [{kind, {lanes, 2}}, {channels, #{bulk => #{lanes => 3}}}], [{channels, #{bulk => #{}, gossip => #{}}}]),
    ok = listed(A, [{name(B), {lanes, 6}}]),
    ok = listed(B, [{name(A), {lanes, 6}}]),
    ?assertMatch(#{default := #{lanes := 2}, bulk := #{lanes := 3}}, channels(A, B)),
    ?assertMatch(#{default := #{lanes := 2}, bulk := #{lanes := 3}, gossip := #{lanes := 1}}, channels(B, A)).

%% Lane 1 is that of the channel bulk.
a_channel_does_not_wait_for_another(Config) ->
    {A, B} = pair(Config, [{channels, #{bulk => #{}, quick => #{}}}, {faults, true}]),
    ok = call(A, atoll_dist, fault, [name(B), {black_hole, 1}]),
    ?assertEqual(0, call(A, atoll_dist_named_probe, asks, [name(B), bulk, 4])),
    ?assertEqual(4, call(A, atoll_dist_named_probe, asks, [name(B), quick, 4])),
    ?assertEqual(4, call(A, atoll_dist_named_probe, asks, [name(B), default, 4])),
    ok = call(A, atoll_dist, fault, [name(B), heal]),
    ?assertEqual(4, call(A, atoll_dist_named_probe, asks, [name(B), bulk, 4])).

processes_join_by_rule(Config) ->
    {A, B} = pair(Config, [
        {channels, #{
            names => #{members => [{name, asker}]},
            calls => #{members => [{call, {atoll_dist_named_probe, init, 1}}]},
            applications => #{members => [{application, stdlib}, {application, kernel}]}
        }}
    ]),
    Ask = fun(Function, Args) -> call(A, atoll_dist_named_probe, Function, [name(B) | Args]) end,
    Packets = fun(Name) -> #{Name := #{packets := Packets}} = channels(A, B), Packets end,
    %% The first ones may have gone before it was known.
    until(fun() -> Ask(asks_registered, [asker, 50]), Packets(names) >= 50 end),
    until(fun() -> Ask(asks_behaviour, [50]), Packets(calls) >= 50 end),
    until(fun() -> Ask(asks_application, [kernel, 50]), Packets(applications) >= 50 end),
    %% Of all of these nobody is left.
    until(fun() -> #{processes := Left, waiting := 0, passed := 0} = call(A, atoll_dist_member, figures, []), Left < 10 end).

who_changes_its_channel_keeps_its_order(Config) ->
    {A, B} = pair(Config, [{kind, {lanes, 2}}, {channels, #{one => #{}, two => #{lanes => 2}}}]),
    Pid = call(B, atoll_dist_named_probe, collects, []),
    ok = call(A, atoll_dist_named_probe, wanders, [Pid, 2000, 10, [one, two, default]], 60000),
    until(fun() -> length(call(B, atoll_dist_named_probe, collected, [Pid])) =:= 2000 end),
    ?assertEqual(lists:seq(1, 2000), call(B, atoll_dist_named_probe, collected, [Pid])),
    #{one := #{packets := One}, two := #{packets := Two}} = channels(A, B),
    ?assert(One > 300 andalso Two > 300).

a_channel_that_is_not_there_is_refused(Config) ->
    {A, _} = pair(Config, [{channels, #{bulk => #{}}}]),
    {error, Error} = call(A, atoll, channel, [blk]),
    ?assertEqual("there is no channel blk; there are bulk", lists:flatten(call(A, atoll, format_error, [Error]))),
    %% Without the carrier there is nothing to be in.
    ?assertEqual(ok, atoll:channel(bulk)).
