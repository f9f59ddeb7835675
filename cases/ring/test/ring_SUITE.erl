%% SPDX-License-Identifier: Apache-2.0
%% The ring on real nodes: its store with versions, nodes that join, leave and are killed under traffic, copies that differ, both stores, both carriers.
-module(ring_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(ring_world, [started/1, call/5, status/2, whole/3, await/1, sessions/3, judged/3]).

-export([all/0, suite/0, groups/0, init_per_group/2, end_per_group/2, init_per_testcase/2, end_per_testcase/2]).
-export([
    writers_that_know_nothing_of_each_other_both_stay/1,
    a_session_that_asks_for_too_much_is_told/1,
    copies_that_differ_are_found_and_mended/1,
    a_silent_copy_holds_up_no_other_request/1,
    a_node_without_a_ring_is_not_well/1,
    a_node_has_a_master_when_all_that_takes_commands_is_there/1,
    a_node_that_joins_gets_its_share_and_one_that_leaves_leaves_nothing/1,
    a_node_that_is_killed_under_traffic_loses_nothing_and_is_filled_again/1,
    what_was_meant_for_a_lost_node_is_brought_to_it/1,
    a_partition_that_has_too_much_to_do_says_so/1,
    a_node_that_begins_takes_nobody_for_lost_whom_it_does_not_know_yet/1,
    what_is_on_the_disk_outlives_all_nodes/1,
    echo_and_store_go_over_lanes_of_their_own/1,
    chaos_loses_no_acknowledged_write/1
]).
-export([damage/2, again_and_again/2, keys_of/0, big/1, begun_anew/1, plugged/0]).

-define(QUICK, #{partitions => 16, tick_ms => 100, exchange_ms => 20, exchanges => 8}).
%% Longer than any case takes.
-define(LONG_MS, 600_000).

suite() -> [{timetrap, {minutes, case atoll_tier:tier() of fast -> 5; deep -> 10 end}}].

all() -> [{group, quiet}, {group, moving}, what_is_on_the_disk_outlives_all_nodes, echo_and_store_go_over_lanes_of_their_own | deep(atoll_tier:tier())].

deep(fast) -> [];
deep(deep) -> [chaos_loses_no_acknowledged_write].

groups() ->
    [
        {quiet, [], [
            writers_that_know_nothing_of_each_other_both_stay,
            a_session_that_asks_for_too_much_is_told,
            copies_that_differ_are_found_and_mended,
            a_silent_copy_holds_up_no_other_request,
            a_node_without_a_ring_is_not_well,
            a_node_has_a_master_when_all_that_takes_commands_is_there,
            a_partition_that_has_too_much_to_do_says_so,
            a_node_that_begins_takes_nobody_for_lost_whom_it_does_not_know_yet
        ]},
        {moving, [], [
            a_node_that_joins_gets_its_share_and_one_that_leaves_leaves_nothing,
            a_node_that_is_killed_under_traffic_loses_nothing_and_is_filled_again,
            what_was_meant_for_a_lost_node_is_brought_to_it
        ]}
    ].

init_per_group(quiet, Config) -> [{cluster, started(#{nodes => 3, settings => maps:merge(?QUICK, #{queue => 50, requests => 40, alone_ms => ?LONG_MS})})} | Config];
init_per_group(moving, Config) -> [{cluster, started(#{nodes => 3, spare => 1, clients => 1, settings => ?QUICK})} | Config].

end_per_group(_, Config) -> atoll_cluster_owned:stop(?config(cluster, Config)).

init_per_testcase(_, Config) -> Config.

%% A case of a group may have killed nodes.
end_per_testcase(_, Config) ->
    case ?config(cluster, Config) of
        undefined -> ok;
        C ->
            _ = atoll_cluster_owned:heal(C),
            ok
    end.

%% Versions

writers_that_know_nothing_of_each_other_both_stay(Config) ->
    C = ?config(cluster, Config),
    [A, B, D] = atoll_cluster:nodes(C),
    {not_found, None} = call(C, A, ring_kvs, get, [fish]),
    ?assertEqual(0, map_size(None)),
    {ok, _} = call(C, A, ring_kvs, put, [fish, cod]),
    {ok, _} = call(C, B, ring_kvs, put, [fish, eel]),
    {ok, Values, Context} = call(C, D, ring_kvs, get, [fish]),
    ?assertEqual([cod, eel], lists:sort(Values)),
    {ok, Seen} = call(C, B, ring_kvs, put, [fish, ray, #{context => Context}]),
    %% Who has seen the write reads it anywhere, and nothing older.
    _ = [?assertMatch({ok, [ray], _}, call(C, Node, ring_kvs, get, [fish, #{seen => Seen}])) || Node <- [A, B, D]],
    %% A writer has not seen what stands beside his value: what he gets is no context.
    ?assertEqual({error, {bad_option, {context, Seen}}}, call(C, B, ring_kvs, put, [fish, ray, #{context => Seen}])),
    %% One who writes over what is gone has seen less: both stay.
    {ok, _} = call(C, A, ring_kvs, put, [fish, tuna, #{context => Context}]),
    {ok, Both, Last} = call(C, A, ring_kvs, get, [fish, #{r => 3}]),
    ?assertEqual([ray, tuna], lists:sort(Both)),
    {ok, _} = call(C, A, ring_kvs, delete, [fish, #{context => Last}]),
    ?assertMatch({not_found, _}, call(C, B, ring_kvs, get, [fish, #{r => 3}])),
    %% All keys, each once, of all nodes.
    _ = [{ok, _} = call(C, lists:nth(1 + N rem 3, [A, B, D]), ring_kvs, put, [{key, N}, N, #{w => 3}]) || N <- lists:seq(1, 60)],
    {ok, Keys} = call(C, D, ring_kvs, keys, []),
    ?assertEqual([{key, N} || N <- lists:seq(1, 60)], lists:sort(Keys)),
    ?assertEqual({ok, 60}, call(C, A, ring_kvs, count, [])),
    _ = [?assertEqual({ok, <<N>>}, call(C, A, ring_echo, echo, [N, <<N>>])) || N <- lists:seq(1, 20)],
    ok.

a_session_that_asks_for_too_much_is_told(Config) ->
    C = ?config(cluster, Config),
    [A | _] = atoll_cluster:nodes(C),
    ?assertEqual({error, older}, call(C, A, ring_kvs, get, [crab, #{seen => #{{nobody, 1} => 1}}])),
    ?assertEqual({error, {bad_option, {r, 4}}}, call(C, A, ring_kvs, get, [crab, #{r => 4}])),
    _ = [{ok, _} = call(C, A, ring_kvs, put, [shoal, N]) || N <- lists:seq(1, 100)],
    ?assertEqual({error, {too_many_versions, 100}}, call(C, A, ring_kvs, put, [shoal, 101])),
    {ok, All, Context} = call(C, A, ring_kvs, get, [shoal]),
    ?assertEqual(100, length(All)),
    ?assertMatch({ok, _}, call(C, A, ring_kvs, put, [shoal, one, #{context => Context}])).

%% A copy is overwritten behind the ring's back, as the paper's failure does it; nobody reads the key.
copies_that_differ_are_found_and_mended(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = atoll_cluster:nodes(C),
    {ok, _} = call(C, A, ring_kvs, put, [lost, pearl, #{w => 3}]),
    {ok, P, [_, _, _] = Entries} = call(C, A, ring_view, preflist, [lost, 3]),
    {Of, B, primary} = lists:keyfind(B, 2, Entries),
    ok = call(C, B, ?MODULE, damage, [{P, lost}, Of]),
    ok = await(fun() -> maps:get({P, lost}, call(C, B, ?MODULE, keys_of, []), none) =:= [pearl] end).

%% On a node: the partition is begun anew, without anything.
damage(_, Partition) ->
    {ok, Pid} = ring_master:find(ring_kvs_vnode, Partition),
    Ref = monitor(process, Pid),
    true = exit(Pid, kill),
    receive {'DOWN', Ref, process, Pid, killed} -> forgotten(Partition, Pid) end.

%% Nobody tells when the master has heard of it, too.
forgotten(Partition, Pid) ->
    case ring_master:find(ring_kvs_vnode, Partition) of
        {ok, Pid} -> erlang:yield(), forgotten(Partition, Pid);
        _ -> ok
    end.

%% On a node: what it has itself, without asking another one.
keys_of() ->
    maps:from_list([
        {OfKey, [Value || {_, {value, Value}} <- ring_dvv:values(Clock)]}
     || {{ring_kvs_vnode, _}, Pid} <- ring_master:vnodes(), {OfKey, Clock} <- element(1, gen_server:call(Pid, {items, first}))
    ]).

%% The application ends, and its node stays.
a_node_without_a_ring_is_not_well(Config) ->
    C = ?config(cluster, Config),
    [A, B, D] = Nodes = atoll_cluster:nodes(C),
    ok = call(C, B, application, stop, [ring]),
    ok = await(fun() -> [maps:get(up, status(C, Node)) || Node <- [A, D]] =:= [[A, D], [A, D]] end),
    _ = [{ok, _} = call(C, A, ring_kvs, put, [{without, N}, N]) || N <- lists:seq(1, 40)],
    ok = call(C, B, application, start, [ring]),
    whole(C, Nodes, Nodes).

%% Whoever sends a command watches the master: one that is sent to nobody beside it would be waited for until the time is over.
a_node_has_a_master_when_all_that_takes_commands_is_there(Config) ->
    C = ?config(cluster, Config),
    [A | _] = atoll_cluster:nodes(C),
    Begun = lists:reverse([Id || {Id, _, _, _} <- call(C, A, supervisor, which_children, [ring_sup])]),
    Before = lists:takewhile(fun(Id) -> Id =/= ring_master end, Begun),
    ?assertEqual([], [ring_inbox:name(P) || P <- lists:seq(0, 15)] -- Before).

%% One of three partitions says nothing: reads have their answers from two, and are no requests any longer.
a_silent_copy_holds_up_no_other_request(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = atoll_cluster:nodes(C),
    {ok, _} = call(C, A, ring_kvs, put, [silent, here, #{w => 3}]),
    {ok, _, Entries} = call(C, A, ring_view, preflist, [silent, 3]),
    {Of, B, primary} = lists:keyfind(B, 2, Entries),
    {ok, Pid} = call(C, B, ring_master, find, [ring_kvs_vnode, Of]),
    ok = call(C, B, sys, suspend, [Pid]),
    ?assertEqual([{ok, [here]}], call(C, A, ?MODULE, again_and_again, [silent, 200])),
    ok = call(C, B, sys, resume, [Pid]).

%% On a node: all different answers.
again_and_again(Key, Times) ->
    lists:usort([case ring_kvs:get(Key) of {ok, Values, _} -> {ok, Values}; Other -> Other end || _ <- lists:seq(1, Times)]).

%% Nodes come, go and die

a_node_that_joins_gets_its_share_and_one_that_leaves_leaves_nothing(Config) ->
    C = ?config(cluster, Config),
    [A, B, D, Spare, _] = atoll_cluster:nodes(C),
    ok = call(C, A, ring_world, fill, [joined, 500]),
    Traffic = sessions(C, 1500, joining),
    ok = call(C, Spare, ring, join, [A]),
    ok = whole(C, [A, B, D, Spare], [A, B, D, Spare]),
    #{owned := Owned} = status(C, Spare),
    ?assertEqual([4, 4, 4, 4], maps:values(Owned)),
    Events = judged(C, Traffic, []),
    %% Of what was moved nothing is lost, and nothing is left where it was.
    ?assertEqual({ok, 500}, counted(C, B)),
    ok = await(fun() -> stored(C, [A, B, D, Spare]) =:= 3 * all(C, A) end),
    Again = sessions(C, 1000, leaving),
    ok = call(C, Spare, ring, leave, []),
    ok = whole(C, [A, B, D], [A, B, D]),
    _ = judged(C, Again, Events),
    ok = await(fun() -> stored(C, [Spare]) =:= 0 andalso stored(C, [A, B, D]) =:= 3 * all(C, A) end),
    ?assertEqual({ok, 500}, counted(C, A)),
    #{counts := #{handed := Handed}} = status(C, Spare),
    ?assert(Handed > 0),
    ?assertEqual({error, {not_in, Spare}}, call(C, Spare, ring, leave, [])).

counted(C, Node) ->
    case call(C, Node, ring_kvs, keys, []) of
        {ok, Keys} -> {ok, length([N || {joined, N} <- lists:usort(Keys)])};
        Error -> Error
    end.

all(C, Node) ->
    {ok, N} = call(C, Node, ring_kvs, count, []),
    N.

stored(C, Nodes) -> lists:sum([Keys || Node <- Nodes, {_, Keys} <- call(C, Node, ring, stored, [])]).

a_node_that_is_killed_under_traffic_loses_nothing_and_is_filled_again(Config) ->
    C = ?config(cluster, Config),
    [A, B, D | _] = atoll_cluster:nodes(C),
    {ok, Before} = call(C, A, ring_kvs, keys, []),
    Left = maps:from_list([{Key, Values} || Key <- Before, {ok, Values, _} <- [call(C, A, ring_kvs, get, [Key])]]),
    Traffic = sessions(C, 2500, killing),
    ok = atoll_cluster:kill(C, B),
    ok = await(fun() -> not lists:member(B, maps:get(up, status(C, A))) end),
    %% Two of three copies are enough for all that is asked.
    {ok, _} = call(C, A, ring_kvs, put, [killed, one]),
    ok = atoll_cluster:restart(C, B),
    ok = whole(C, [A, B, D], [A, B, D]),
    _ = judged(C, Traffic, inherited(Left)),
    %% It has lost all that it had, and nobody has to read it for it to be there again.
    ok = await(fun() -> stored(C, [B]) > 0 andalso stored(C, [A, B, D]) =:= 3 * all(C, A) end).

%% What was there before counts as written by somebody.
inherited(Left) -> lists:append([[{write, before, Key, Id, [], unknown} || {Id, _} <- Values] || {{key, _} = Key, Values} <- maps:to_list(Left)]).

what_was_meant_for_a_lost_node_is_brought_to_it(Config) ->
    C = ?config(cluster, Config),
    [A, B, D, Spare | _] = atoll_cluster:nodes(C),
    %% With four nodes there is a fallback that has no copy of its own of the key.
    ok = call(C, Spare, ring, join, [A]),
    ok = whole(C, [A, B, D, Spare], [A, B, D, Spare]),
    ok = atoll_cluster:kill(C, B),
    ok = await(fun() -> not lists:member(B, maps:get(up, status(C, A))) end),
    ok = call(C, A, ring_world, fill, [hinted, 100]),
    Hints = [P || {P, Keys} <- call(C, Spare, ring, stored, []), Keys > 0, {Q, Owner} <- call(C, A, ring, partitions, []), P =:= Q, Owner =:= B],
    ?assert(Hints =/= []),
    ok = atoll_cluster:restart(C, B),
    ok = whole(C, [A, B, D, Spare], [A, B, D, Spare]),
    ok = await(fun() -> [P || {P, _} <- call(C, Spare, ring, stored, []), lists:member(P, Hints)] =:= [] end),
    ok = call(C, Spare, ring, leave, []),
    whole(C, [A, B, D], [A, B, D]).

%% Of a partition that stands still as many commands wait as may, and each one more is answered at once.
a_partition_that_has_too_much_to_do_says_so(Config) ->
    C = ?config(cluster, Config),
    [A | _] = atoll_cluster:nodes(C),
    {50, Refused} = call(C, A, ?MODULE, plugged, []),
    ?assertEqual(30, Refused),
    #{counts := #{overloaded := Counted}} = status(C, A),
    ?assertEqual(30, Counted).

%% On a node.
plugged() ->
    [P | _] = [P || {P, Owner} <- ring:partitions(), Owner =:= node()],
    {ok, _} = ring_send:call(node(), {ring_echo_vnode, P, primary}, {echo, first}, 5000),
    {ok, Pid} = ring_master:find(ring_echo_vnode, P),
    ok = sys:suspend(Pid),
    Alias = alias(),
    _ = [ok = ring_send:command(node(), {ring_echo_vnode, P, primary}, {echo, N}, {Alias, N}) || N <- lists:seq(1, 80)],
    %% All of them have come in when it answers.
    _ = sys:get_state(ring_inbox:name(P)),
    Refused = said(Alias, 0),
    ok = sys:resume(Pid),
    _ = sys:get_state(Pid),
    {said(Alias, 0), Refused}.

%% With fewer nodes than copies it could answer a read of two copies, of which both are empty.
a_node_that_begins_takes_nobody_for_lost_whom_it_does_not_know_yet(Config) ->
    C = ?config(cluster, Config),
    [A, B, D] = Nodes = atoll_cluster:nodes(C),
    _ = [ok = atoll_cluster:kill(C, Node) || Node <- Nodes],
    ok = atoll_cluster:restart(C, B),
    Asked = fun() -> [call(C, B, ring_kvs, F, Args) || {F, Args} <- [{put, [begun, one, #{w => 3}]}, {get, [begun]}, {count, []}]] end,
    Starting = [{error, starting} || _ <- [put, get, count]],
    ?assertEqual(Starting, Asked()),
    %% If nobody comes it begins after a time.
    ok = call(C, B, ?MODULE, begun_anew, [[{alone_ms, 1}]]),
    ok = await(fun() -> hd(Asked()) =:= {error, {too_few, 1, 3}} end),
    ok = call(C, B, ?MODULE, begun_anew, [[{alone_ms, ?LONG_MS}]]),
    ok = atoll_cluster:restart(C, A),
    ok = await(fun() -> maps:get(up, status(C, B)) =:= [A, B] end),
    ?assertEqual(Starting, Asked()),
    ok = atoll_cluster:restart(C, D),
    ok = whole(C, Nodes, Nodes),
    ?assertMatch([{ok, _}, {ok, [one], _}, {ok, 1}], Asked()).

said(Alias, N) -> receive {Alias, _, _} -> said(Alias, N + 1) after 0 -> N end.

%% Stores and carriers

what_is_on_the_disk_outlives_all_nodes(Config) ->
    Dir = filename:join(?config(priv_dir, Config), "data"),
    C = started(#{nodes => 2, settings => maps:merge(?QUICK, #{store => dets, dir => Dir, copies => 2, read => 1, write => 2})}),
    [A, B] = Nodes = atoll_cluster:nodes(C),
    {ok, _} = call(C, A, ring_kvs, put, [kept, cod]),
    {ok, [cod], Context} = call(C, B, ring_kvs, get, [kept]),
    {ok, _} = call(C, B, ring_kvs, put, [kept, eel, #{context => Context}]),
    ok = call(C, A, ring_world, fill, [disk, 100]),
    _ = [ok = atoll_cluster:kill(C, Node) || Node <- Nodes],
    _ = atoll_cluster_owned:heal(C),
    ok = whole(C, Nodes, Nodes),
    ?assertMatch({ok, [eel], _}, call(C, A, ring_kvs, get, [kept])),
    ?assertEqual({ok, 101}, call(C, B, ring_kvs, count, [])),
    atoll_cluster_owned:stop(C).

echo_and_store_go_over_lanes_of_their_own(_) ->
    C = started(#{nodes => 3, carrier => lanes, lanes => 4, settings => ?QUICK}),
    [A | _] = atoll_cluster:nodes(C),
    ok = call(C, A, ?MODULE, big, [1_000_000]),
    ok = call(C, A, ring_world, fill, [lanes, 100]),
    Written = [maps:get(bytes, maps:get(vnode, Channels)) || #{channels := Channels} <- call(C, A, atoll, links, [])],
    ?assertMatch([_, _], Written),
    ?assert(lists:sum(Written) > 20 * 1_000_000),
    %% However many requests there were, who sends stays: 64 for each other node at most.
    Senders = call(C, A, ets, info, [ring_lanes, size]),
    ?assert(Senders > 0 andalso Senders =< 2 * 64),
    {error, Why} = call(C, A, ?MODULE, begun_anew, [[{channel, bulk}]]),
    ?assertNotEqual(nomatch, string:find(io_lib:format("~0p", [Why]), "there is no channel bulk; there are vnode")),
    atoll_cluster_owned:stop(C).

%% On a node: the ring is begun anew with these settings.
begun_anew(Settings) ->
    ok = application:stop(ring),
    ok = application:set_env([{ring, Settings}]),
    application:start(ring).

%% On a node: it comes back as it was, from each partition.
big(Bytes) ->
    Payload = ring_work:payload(Bytes),
    _ = [{ok, Payload} = ring_echo:echo(N, Payload) || N <- lists:seq(1, 60)],
    {ok, _} = ring_kvs:put(big, Payload, #{w => 3}),
    {ok, [Payload], _} = ring_kvs:get(big, #{r => 3}),
    ok.

%% Deep

chaos_loses_no_acknowledged_write(_) ->
    C = started(#{nodes => 5, clients => 1, settings => #{partitions => 64}}),
    Seconds = 180,
    Traffic = sessions(C, Seconds * 1000, chaos),
    Seed = atoll_tier:seed(chaos_of_the_ring),
    %% Each time between two others.
    Cuts = [
        {at, 1000 * S, {cut, {nodes, A, A}, {nodes, B, B}, {4, s}}}
     || {I, S} <- lists:enumerate(lists:seq(15, Seconds - 20, 30)), {A, B} <- [{1 + I rem 5, 1 + (I + 1 + I div 3) rem 5}]
    ],
    {ok, Storm} = atoll_bench_storm:play(C, Cuts ++ atoll_bench_storm:node_kills(30, [1, 2, 3, 4, 5], Seconds - 20, Seed), Seed),
    _ = judged(C, Traffic, []),
    #{node_kills := Kills} = atoll_bench_storm:stop(Storm),
    ?assert(Kills >= 5),
    atoll_cluster_owned:stop(C).
