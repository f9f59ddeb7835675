%% SPDX-License-Identifier: Apache-2.0
%% Fault scripts on real nodes that run an overlay. What is promised, and checked here:
%%
%% - a script gives the same picture as in the simulator, and the same expectations
%%   fail;
%% - who leaves is held for no failure, and is back when it starts again;
%% - a node that starts again is told what its strategy waits for;
%% - nothing of it is left when the run ends, also before its time.
-module(atoll_chaos_overlay_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, groups/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([
    a_script_gives_the_picture_of_the_simulator/1,
    what_fails_in_the_simulator_fails_here/1,
    who_leaves_is_held_for_no_failure/1,
    a_node_that_starts_again_is_told_its_neighbours/1,
    who_is_told_nothing_has_no_neighbours/1,
    a_run_that_is_stopped_broadcasts_no_more/1,
    steps_about_the_overlay_want_one/1
]).

-define(CALL_MS, 30000).
-define(DEADLINE_MS, 15000).

suite() -> [{timetrap, {minutes, 6}}].

all() -> cases(atoll_tier:tier()).

cases(fast) ->
    [
        {group, waiting},
        a_run_that_is_stopped_broadcasts_no_more,
        steps_about_the_overlay_want_one
    ];
cases(deep) ->
    [
        a_script_gives_the_picture_of_the_simulator,
        what_fails_in_the_simulator_fails_here,
        who_is_told_nothing_has_no_neighbours
        | cases(fast)
    ].

%% What waits for seconds, and each has nodes of its own.
groups() -> [{waiting, [parallel], [who_leaves_is_held_for_no_failure, a_node_that_starts_again_is_told_its_neighbours]}].

count() -> atoll_tier:size(harmed_nodes).

%% One cluster for all that need not be told their neighbours: whatever starts again
%% there starts with hyparview.
init_per_suite(Config) ->
    [{cluster, atoll_cluster_owned:start(options(hyparview))} | Config].

end_per_suite(Config) ->
    ok = atoll_cluster:stop(?config(cluster, Config)).

%% docs/scripts/half.script, smaller and quicker, with all that is about the overlay.
a_script_gives_the_picture_of_the_simulator(Config) ->
    Script = script(hyparview, [
        {at, {2, s}, {expect, {connected, 1.0}}},
        {then, 0, {broadcast, {random, 2}, 3, 200}},
        {then, {2, s}, {expect, {delivered, 1.0}}},
        %% On purpose: views are smaller.
        {then, 0, {expect, {neighbours, 6, 7}}},
        {then, 0, {kill, {nodes, 5, 8}}},
        {then, {4, s}, {expect, {connected, 1.0}}},
        {then, 0, {expect, {neighbours, 1, 5}}},
        {then, 0, {expect, symmetric}},
        {then, 0, {pause, {nodes, 3, 3}, {1, s}}},
        {then, 0, {leave, {nodes, 2, 2}}},
        {then, {2, s}, {start, {random, 2}}},
        {then, {3, s}, {broadcast, {random, 1}, 1, 1}},
        {then, {2, s}, {expect, {delivered, 1.0}}},
        {then, 0, {expect, {no, false_death}}}
    ]),
    with_cluster(hyparview, Config, fun(C) ->
        {ok, Real} = atoll_chaos:run(#{cluster => C, script => Script}),
        {ok, Simulated} = atoll_sim_play:run(Script, #{}),
        ct:pal("~p~n~p", [Real, Simulated]),
        #{overlay := Facts, failed := Failed, expectations := Count, unseen := 0, events := Events} = Real,
        ?assertMatch(#{expectations := Count}, Simulated),
        ?assertEqual(essence(maps:get(failed, Simulated)), essence(Failed)),
        ?assertMatch([{_, {neighbours, 6, 7}}], essence(Failed)),
        ?assertEqual([], [E || #{outcome := failed} = E <- Events]),
        Same = [alive, components, connected, symmetric, delivered, false_deaths],
        ?assertEqual(maps:with(Same, Simulated), maps:with(Same, Facts)),
        [?assertMatch(#{active_min := Min, active_max := Max} when Min >= 1 andalso Max =< 5, F) || F <- [Facts, Simulated]],
        ?assertEqual([], [N || {N, {ok, Pid}} <- atoll_cluster:multicall(C, erlang, whereis, [atoll_chaos_witness]), Pid =/= undefined])
    end).

essence(Failed) -> [{Place, E} || #{place := Place, expectation := E} <- Failed].

%% On purpose: two parts are apart for so long that each gives the other up.
what_fails_in_the_simulator_fails_here(Config) ->
    Script = script(mesh, [
        {at, {5, s}, {partition, [{nodes, 1, 3}]}},
        {then, 0, {broadcast, {nodes, 1, 1}, 1, 1}},
        {then, {2, s}, {expect, {delivered, 1.0}}},
        {then, {13, s}, {expect, {connected, 1.0}}},
        {then, 0, {expect, {connected, 0.6}}},
        {then, 0, {expect, {neighbours, 2, 4}}},
        {then, 0, {expect, {no, false_death}}},
        {then, 0, heal}
    ]),
    with_cluster(mesh, Config, fun(C) ->
        {ok, #{failed := Real, overlay := Facts}} = atoll_chaos:run(#{cluster => C, script => Script}),
        {ok, #{failed := Simulated}} = atoll_sim_play:run(Script, #{}),
        ct:pal("~p~n~p~n~p", [Real, Simulated, Facts]),
        ?assertEqual(essence(Simulated), essence(Real)),
        ?assertMatch([{_, {delivered, 1.0}}, {_, {connected, 1.0}}, {_, {no, false_death}}], essence(Real)),
        ?assertMatch([#{was := 0.375}, #{was := 0.625, ms := Ms}, #{was := [_ | _]}] when Ms >= 20000, Real),
        %% Nobody was killed, and all is one again.
        Count = count(),
        ?assertMatch(#{alive := Count, connected := 1.0}, Facts)
    end).

who_leaves_is_held_for_no_failure(Config) ->
    with_cluster(hyparview, Config, fun(C) ->
        Nodes = atoll_cluster:nodes(C),
        Leaver = lists:nth(5, Nodes),
        Leave = [{at, {1, s}, {leave, {nodes, 5, 5}}}],
        {ok, #{events := Events, failed := []}} = atoll_chaos:run(#{
            cluster => C, script => script(hyparview, Leave ++ [{then, {4, s}, {expect, {no, false_death}}}])
        }),
        ?assertMatch([#{fault := leave, nodes := [Leaver], outcome := done}, #{fault := heal}], Events),
        %% No failure detector has found it.
        [?assertMatch({N, #{overlay := #{detector := #{obituaries := 0}}}}, {N, Status})
         || {N, {ok, Status}} <- atoll_cluster:multicall(C, atoll, status, [])],
        #{nodes := Infos} = atoll_cluster:info(C),
        ?assertEqual([Leaver], [N || #{node := N, state := down} <- Infos]),
        [?assertEqual({N, {ok, lists:sort(Nodes) -- [Leaver]}}, {N, Members})
         || {N, Members} <- atoll_cluster:multicall(C, atoll, members, []), N =/= Leaver],
        {ok, #{overlay := Facts}} = atoll_chaos:run(#{cluster => C, script => script(hyparview, [
            {at, 0, {leave, {nodes, 4, 4}}}, {at, {2, s}, {start, {nodes, 4, 4}}}, {at, {2, s}, {restart, {nodes, 5, 5}, fresh}}
        ])}),
        Count = count(),
        ?assertMatch(#{alive := Count, components := 1}, Facts),
        await(fun() -> [N || {N, M} <- atoll_cluster:multicall(C, atoll, members, []), M =/= {ok, lists:sort(Nodes)}] end, [])
    end).

a_node_that_starts_again_is_told_its_neighbours(Config) ->
    with_cluster(static, Config, fun(C) ->
        Told = tell_all(C),
        Begin = [{at, {2, s}, {expect, {connected, 1.0}}}, {then, 0, {restart, {nodes, 2, 3}, fresh}}],
        ?assertMatch({[], _}, static(C, Begin, #{told => Told})),
        %% Who has started is told before the end of that run.
        IsWhole = [{at, 0, {expect, {neighbours, 2, count()}}}, {at, 0, {expect, {connected, 1.0}}}],
        ?assertMatch({[], _}, static(C, IsWhole, #{}))
    end).

%% It is what is told that matters: of two neighbours that are not, none makes the other
%% one. Told after the expectation, they are whole, which the end of a run waits for.
who_is_told_nothing_has_no_neighbours(Config) ->
    with_cluster(static, Config, fun(C) ->
        _ = tell_all(C),
        TellAll = fun
            (#{fault := heal}) -> tell_all(C);
            (_) -> ok
        end,
        %% A node that starts is waited for by whatever is to be done to it.
        Started = [{at, {1, s}, {slow, all, 0}}, {at, {2, s}, {expect, {connected, 1.0}}}],
        {Failed, Facts} = static(C, [{at, 0, {kill, all}}, {at, 100, {start, all}} | Started], #{on_event => TellAll}),
        Count = count(),
        ?assertMatch(#{alive := Count, connected := 1.0}, Facts),
        ?assertMatch([#{expectation := {connected, 1.0}}], Failed)
    end).

tell_all(C) ->
    Told = told(atoll_cluster:nodes(C)),
    [ok = call(C, Node, M, F, A) || {Node, Calls} <- maps:to_list(Told), {M, F, A} <- Calls],
    Told.

static(C, Terms, Options) ->
    {ok, #{failed := Failed, overlay := Facts}} = atoll_chaos:run(Options#{cluster => C, script => script(static, Terms)}),
    {Failed, Facts}.

a_run_that_is_stopped_broadcasts_no_more(Config) ->
    with_cluster(mesh, Config, fun(C) ->
        %% Who has no neighbour is owed nothing.
        Count = count(),
        await(fun() -> lists:usort([length(Ns) || {_, {ok, Ns}} <- atoll_cluster:multicall(C, atoll, neighbours, [])]) end, [Count - 1]),
        {ok, Run} = atoll_chaos:start(#{cluster => C, script => script(mesh, [{at, 0, {broadcast, all, 1000, {1, s}}}])}),
        HasGot = fun(#{overlay := #{broadcast := #{delivered := Delivered}}}) -> Delivered >= Count end,
        await(fun() -> length([N || {N, {ok, S}} <- atoll_cluster:multicall(C, atoll, status, []), HasGot(S)]) end, Count),
        Ended = within(?DEADLINE_MS, fun() -> atoll_chaos:stop(Run) end),
        ?assertMatch(#{overlay := #{alive := Count, delivered := 1.0}}, Ended)
    end).

steps_about_the_overlay_want_one(Config) ->
    with_cluster(off, Config, fun(C) ->
        {error, Error} = atoll_chaos:start(#{cluster => C, script => script(mesh, [{at, 0, {leave, all}}])}),
        ?assertEqual(
            "term 2: in {leave,all}: it is about the overlay, and these nodes run none",
            unicode:characters_to_list(atoll_chaos:format_error(Error))
        ),
        {ok, Result} = atoll_chaos:run(#{cluster => C, script => script(mesh, [{at, 0, heal}])}),
        ?assertMatch(#{overlay := none, failed := []}, Result)
    end).

script(Strategy, Terms) ->
    {ok, Script} = atoll_sim_script:check([
        {cluster, #{nodes => count(), strategy => Strategy, contacts => 2, seed => 5}} | Terms
    ]),
    Script.

%% What static nodes are told, as the simulator has it.
told(Nodes) ->
    maps:map(
        fun(_Node, Terms) -> [{atoll, tell, [Term]} || Term <- Terms] end, atoll_sim_cluster:told(atoll_static, Nodes, 1)
    ).

with_cluster(static, _Config, Fun) ->
    {ok, C} = atoll_cluster:start(options(static)),
    try
        Fun(C)
    after
        ok = atoll_cluster:stop(C)
    end;
with_cluster(Strategy, Config, Fun) ->
    C = ?config(cluster, Config),
    #{nodes := Infos} = atoll_cluster:info(C),
    Down = [N || #{node := N, state := down} <- Infos],
    %% One that has left may just be ending.
    _ = [ok = atoll_overlay_cluster:await_down(C, N) || N <- Down],
    _ = [ok = atoll_cluster:restart(C, N) || N <- Down],
    ok = atoll_overlay_cluster:begin_anew(C, [{overlay, Strategy}]),
    Fun(C).

options(Strategy) ->
    #{nodes => count(), connect_all => false, apps => [atoll], args => fun(Nodes) -> args(Strategy, Nodes) end}.

args(Strategy, Nodes) ->
    Contacts = [Contact || Contact <- lists:sublist(Nodes, 2), Strategy =/= static],
    lists:append([
        ["-atoll", atom_to_list(Key), lists:flatten(io_lib:format("~0tp", [Value]))]
     || {Key, Value} <- [{overlay, Strategy}, {contacts, Contacts}]
    ]).

call(C, Node, M, F, A) ->
    atoll_cluster:call(C, Node, M, F, A, ?CALL_MS).

within(Ms, Fun) ->
    {Us, Result} = timer:tc(Fun),
    ?assert(Us < 1000 * Ms, Us),
    Result.

%% Nothing tells of another node's state, so it is looked at until the deadline.
await(Look, Expected) ->
    await(Look, Expected, erlang:monotonic_time(millisecond) + ?DEADLINE_MS).

await(Look, Expected, Deadline) ->
    case Look() of
        Expected ->
            ok;
        Seen ->
            ?assert(erlang:monotonic_time(millisecond) < Deadline, Seen),
            receive
            after 50 -> await(Look, Expected, Deadline)
            end
    end.
