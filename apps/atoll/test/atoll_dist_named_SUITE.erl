%% SPDX-License-Identifier: Apache-2.0
%% Channels with a name on real nodes: whose lanes are whose, who is in which, that the order
%% is kept, and what is dropped.
-module(atoll_dist_named_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(atoll_dist_nodes, [node/3, carrier/1, name/1, call/4, call/5, works/2, listed/2, until/1]).

-export([all/0, groups/0, suite/0, init_per_group/2, end_per_group/2, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    both_ends_have_the_lanes_of_all_channels/1,
    a_channel_does_not_wait_for_another/1,
    processes_join_by_rule/1,
    who_changes_its_channel_keeps_its_order/1,
    a_monotonic_channel_drops_what_is_overtaken_and_counts_it/1,
    compression_is_read_as_it_was/1,
    a_causal_channel_keeps_what_pg_promises/1,
    a_key_keeps_its_order/1,
    who_sends_to_a_stopped_node_waits/1,
    states_are_as_new_as_the_path_allows/1
]).

%% Who is not held up is answered, however busy the machine.
-define(ANSWER_MS, 10000).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    all(atoll_tier:tier()).

all(deep) ->
    [states_are_as_new_as_the_path_allows, who_sends_to_a_stopped_node_waits | all(fast)] ++ [{group, Over} || {Over, _, _} <- groups()];
all(fast) ->
    [
        both_ends_have_the_lanes_of_all_channels,
        a_channel_does_not_wait_for_another,
        processes_join_by_rule,
        who_changes_its_channel_keeps_its_order,
        a_monotonic_channel_drops_what_is_overtaken_and_counts_it,
        compression_is_read_as_it_was,
        a_causal_channel_keeps_what_pg_promises,
        a_key_keeps_its_order
    ].

groups() -> [{Over, [], all(fast)} || Over <- [tls, ipv6]].

init_per_group(Group, Config) -> atoll_dist_nodes:over(Group, Config).

end_per_group(_Group, _Config) -> ok.

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
    ?assertMatch(
        [{#{channel := bulk}, #{lanes := 3, dropped := 0}}, {#{channel := default}, #{packets := Packets}}] when Packets > 0,
        atoll_channel_figures:events(call(A, atoll, links, []))
    ),
    {ok, _} = call(A, application, ensure_all_started, [atoll]),
    ?assertEqual([bulk, default], call(A, atoll_dist_named_probe, told, [name(B)])),
    {error, Error} = call(A, atoll, channel, [blk]),
    ?assertEqual("there is no channel blk; there are bulk", lists:flatten(call(A, atoll, format_error, [Error]))),
    %% Without the carrier there is nothing to be in.
    ?assertEqual(ok, atoll:channel(bulk)),
    ?assertMatch(#{default := #{lanes := 2}, bulk := #{lanes := 3}, gossip := #{lanes := 1}}, channels(B, A)).

%% Lane 1 is that of the channel bulk.
a_channel_does_not_wait_for_another(Config) ->
    {A, B} = pair(Config, [{channels, #{bulk => #{}, quick => #{}}}, {faults, true}]),
    ok = call(A, atoll_dist, fault, [name(B), {black_hole, 1}]),
    ?assertEqual(0, call(A, atoll_dist_named_probe, asks, [name(B), bulk, 4, 500])),
    ?assertEqual(4, call(A, atoll_dist_named_probe, asks, [name(B), quick, 4, ?ANSWER_MS])),
    ?assertEqual(4, call(A, atoll_dist_named_probe, asks, [name(B), default, 4, ?ANSWER_MS])),
    ok = call(A, atoll_dist, fault, [name(B), heal]),
    ?assertEqual(4, call(A, atoll_dist_named_probe, asks, [name(B), bulk, 4, ?ANSWER_MS])).

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
    _ = [Ask(Function, Args) || {Function, Args} <- [{asks_registered, [asker, 50]}, {asks_behaviour, [50]}, {asks_application, [kernel, 50]}]],
    [until(fun() -> Packets(Name) >= 50 end) || Name <- [names, calls, applications]],
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

%% The peer stands still: nothing is read, and nothing can be given to the socket.
a_monotonic_channel_drops_what_is_overtaken_and_counts_it(Config) ->
    {A, B} = pair(Config, [{channels, #{gossip => #{monotonic => true}}}]),
    Pid = call(B, atoll_dist_named_probe, collects, []),
    Count = 20000,
    ok = atoll_dist_nodes:signal(B, "STOP"),
    ok = call(A, atoll_dist_named_probe, tells, [Pid, gossip, Count, <<0:8000>>], 60000),
    until(fun() -> #{gossip := #{dropped := Dropped}} = channels(A, B), Dropped > 0 end),
    ok = atoll_dist_nodes:signal(B, "CONT"),
    until(fun() -> lists:last([0 | call(B, atoll_dist_named_probe, collected, [Pid])]) =:= Count end),
    Got = call(B, atoll_dist_named_probe, collected, [Pid]),
    ?assertEqual(lists:usort(Got), Got),
    #{gossip := #{dropped := Dropped, waiting := 0}} = channels(A, B),
    ?assertEqual(Count, length(Got) + Dropped),
    %% Those that must not be dropped come through it.
    ?assertEqual(4, call(A, atoll_dist_named_probe, asks, [name(B), gossip, 4, ?ANSWER_MS])).

compression_is_read_as_it_was(Config) ->
    {A, B} = pair(Config, [{channels, #{bulk => #{lanes => 2, compression => 1}}}]),
    Pid = call(B, atoll_dist_named_probe, collects, []),
    Told = fun(Bytes, All) ->
        {_, Before} = carried(A, B),
        ok = call(A, atoll_dist_named_probe, tells, [Pid, bulk, 100, Bytes], 60000),
        until(fun() -> length(call(B, atoll_dist_named_probe, collected, [Pid])) =:= All end),
        {_, After} = carried(A, B),
        After - Before
    end,
    ?assert(Told(binary:copy(<<"text, ">>, 10000), 100) < 600000),
    Noise = Told(crypto:strong_rand_bytes(60000), 200),
    ?assert(Noise > 6000000 andalso Noise < 6200000),
    ?assertMatch(#{bulk := #{bytes := Bytes}} when Bytes > 12000000, channels(A, B)).

carried(A, B) ->
    [{In, Out}] = [{In, Out} || #{node := Node, bytes_in := In, bytes_out := Out} <- call(A, atoll, links, []), Node =:= name(B)],
    {In, Out}.

%% Who hears of a join sees it, where all of it is in one channel. Where it is in two and one
%% of them is held up it does not: lane 1 is that of the channel `apart'.
a_causal_channel_keeps_what_pg_promises(Config) ->
    {A, B} = pair(Config, [
        {faults, true},
        {channels, #{apart => #{members => [{name, one}]}, order => #{causal => true, members => [{name, two}]}}}
    ]),
    Joined = fun(Scope, Channel, Told) ->
        Pid = call(A, atoll_dist_named_probe, scope, [Scope]),
        _ = call(B, atoll_dist_named_probe, scope, [Scope]),
        Looks = call(B, atoll_dist_named_probe, looks, [Scope]),
        until(fun() -> Channel =:= call(A, atoll_dist_named_probe, where, [Pid]) end),
        Tell = fun(Count, All) ->
            _ = call(A, atoll_dist_named_probe, joins, [Looks, Scope, order, Count], 60000),
            until(fun() -> length(call(B, atoll_dist_named_probe, seen, [Looks])) =:= All end)
        end,
        %% The scope's first signal in its channel has a fence, which waits for all lanes.
        Tell(1, 1),
        _ = Channel =:= apart andalso call(A, atoll_dist, fault, [name(B), {black_hole, 1}]),
        Tell(Told, Told + 1),
        lists:usort(lists:sublist(call(B, atoll_dist_named_probe, seen, [Looks]), Told))
    end,
    ?assertEqual([true], Joined(two, order, 300)),
    ?assertEqual([false], Joined(one, apart, 3)).

a_key_keeps_its_order(Config) ->
    {A, B} = pair(Config, [{channels, #{bulk => #{lanes => 4}, gossip => #{monotonic => true}}}]),
    Pid = call(B, atoll_dist_named_probe, collects, []),
    Keys = [a, "b", 3, <<"d">>, e, f, g, h],
    ok = call(A, atoll_dist_named_probe, sends, [Pid, bulk, Keys, 200], 60000),
    until(fun() -> length(call(B, atoll_dist_named_probe, collected, [Pid])) =:= 1600 end),
    Got = call(B, atoll_dist_named_probe, collected, [Pid]),
    [?assertEqual(lists:seq(1, 200), [I || {Of, I} <- Got, Of =:= Key]) || Key <- Keys],
    {ok, #{lanes := Lanes}} = call(A, atoll_dist, lanes, [name(B)]),
    Used = [Lane || #{lane := Lane, packets := Packets} <- Lanes, Lane >= 1, Lane =< 4, Packets >= 200],
    ?assert(length(Used) > 1),
    Said = fun(Options) ->
        {error, Error} = call(A, atoll, send, [Pid, x, Options]),
        lists:flatten(call(A, atoll, format_error, [Error]))
    end,
    ?assertEqual("there is no channel blk; there are bulk, gossip", Said(#{channel => blk})),
    ?assertMatch("the channel gossip is monotonic" ++ _, Said(#{channel => gossip, key => 1})),
    ?assertMatch("the options of a message are" ++ _, Said(#{colour => red})).

who_sends_to_a_stopped_node_waits(Config) ->
    {A, B} = pair(Config, [{channels, #{bulk => #{}}}, {budget, 1000000}]),
    Pid = call(B, atoll_dist_named_probe, collects, []),
    Before = call(A, erlang, processes, []),
    ok = atoll_dist_nodes:signal(B, "STOP"),
    Hands = call(A, atoll_dist_named_probe, hands, [Pid, bulk, 10000]),
    Length = fun(P) -> case call(A, erlang, process_info, [P, message_queue_len]) of {_, N} -> N; undefined -> 0 end end,
    New = fun() -> [P || P <- call(A, erlang, processes, []) -- Before, P =/= Hands] end,
    until(fun() -> {status, waiting} =:= call(A, erlang, process_info, [Hands, status]) andalso lists:max([0 | [Length(P) || P <- New()]]) >= 1000 end),
    ?assert(lists:max([Length(P) || P <- New()]) =< 1002),
    %% What hands over for it ends with it.
    true = call(A, erlang, exit, [Hands, kill]),
    ok = atoll_dist_nodes:signal(B, "CONT"),
    until(fun() -> lists:all(fun(P) -> Length(P) =:= 0 end, New()) end).

%% 1,000 states a second for 100 seconds, to a node that reads every 50 ms, and little then.
states_are_as_new_as_the_path_allows(Config) ->
    ct:timetrap({minutes, 4}),
    Count = 100000,
    EveryMs = 50,
    {A, B} = pair(Config, [
        {channels, #{gossip => #{monotonic => true}}}, {lane_options, [{recbuf, 4096}, {sndbuf, 4096}]}
    ]),
    Pid = call(B, atoll_dist_named_probe, collects, []),
    _ = call(B, atoll_dist_named_probe, reads_slowly, [name(A), EveryMs]),
    _ = [call(N, atoll_dist_probe, late, []) || N <- [A, B]],
    ok = call(A, atoll_dist_named_probe, states, [Pid, gossip, Count, 1000], 150000),
    Collected = fun() -> call(B, atoll_dist_named_probe, collected, [Pid]) end,
    until(fun() -> Count =:= element(1, lists:last([{0, 0} | Collected()])) end),
    Got = Collected(),
    Numbers = [I || {I, _} <- Got],
    ?assertEqual(lists:usort(Numbers), Numbers),
    #{gossip := #{dropped := Dropped, waiting := 0}} = channels(A, B),
    ?assertEqual(Count, length(Got) + Dropped),
    ?assert(length(Got) < Count div 2),
    {Count, LastUs} = lists:last(Got),
    Ages = lists:sort([Us || {_, Us} <- Got]),
    ct:pal("~b seen; ages in ms: median ~b, most ~b, the last ~b", [
        length(Got) | [Us div 1000 || Us <- [lists:nth(length(Ages) div 2, Ages), lists:last(Ages), LastUs]]
    ]),
    %% And what the machine adds.
    LateMs = lists:max([call(N, atoll_dist_probe, late, []) || N <- [A, B]]),
    ?assert(LastUs < (10 * EveryMs + LateMs) * 1000, {LastUs, LateMs}).
