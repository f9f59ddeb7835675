%% SPDX-License-Identifier: Apache-2.0
%% A cluster of real nodes is upgraded node by node, to a release in which every protocol has a new
%% version and writes its messages in another form, and back again: no name of a process that lives
%% is lost, and none is refused. And one that has nothing in common with the others in one protocol
%% goes on in all others.
-module(atoll_upgrade_SUITE).

-include_lib("stdlib/include/assert.hrl").
-include_lib("common_test/include/ct.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([a_cluster_is_upgraded_and_downgraded_node_by_node/1, a_node_two_versions_apart_keeps_its_other_protocols/1]).

-define(C, atoll_name_cluster).
-define(P, atoll_upgrade_probe).
-define(GROUP, upgrade).
%% Names of each node that stand as long as it lives.
-define(NAMES, 20).

suite() -> [{timetrap, {minutes, 4}}].

all() ->
    [
        a_cluster_is_upgraded_and_downgraded_node_by_node,
        a_node_two_versions_apart_keeps_its_other_protocols
    ].

init_per_suite(Config) ->
    Dir = filename:join(?config(priv_dir, Config), "raised"),
    Apart = filename:join(?config(priv_dir, Config), "apart"),
    ok = atoll_raised:make(Dir, [{Protocol, {1, 2}} || {_, Protocol} <- atoll_raised:protocols()]),
    ok = atoll_raised:make(Apart, [{atoll_overlay_core, {3, 4}}]),
    %% Of two that are left each judges the other by its silence alone, and a busy machine is silent.
    Detector = "#{period_ms => 100, suspect_ms => 1500, dead_ms => 4000, silent_ms => 6000, ask_ms => 100}",
    Cluster = atoll_cluster_owned:start(#{
        nodes => atoll_tier:size(upgrade_nodes),
        connect_all => false,
        args => ["-atoll", "overlay", "cliques", "directory", "on", "distances", "#{}", "detector", Detector]
    }),
    Nodes = atoll_cluster:nodes(Cluster),
    _ = ?C:each(Cluster, Nodes, ?P, boot, [none]),
    ok = ?C:group(Cluster, ?GROUP, Nodes),
    [{cluster, Cluster}, {raised, Dir}, {apart, Apart} | Config].

end_per_suite(Config) ->
    ok = atoll_cluster:stop(?config(cluster, Config)).

a_cluster_is_upgraded_and_downgraded_node_by_node(Config) ->
    C = ?config(cluster, Config),
    Nodes = atoll_cluster:nodes(C),
    Lives = maps:from_list([{N, life(C, N, first)} || N <- Nodes]),
    ok = watch(C, Lives),
    Steps = [{N, ?config(raised, Config), 2} || N <- Nodes] ++ [{N, none, 1} || N <- Nodes],
    {_, Left, Reports} = lists:foldl(
        fun(Step, Acc) -> step(Step, C, Acc) end, {maps:from_list([{N, 1} || N <- Nodes]), Lives, []}, Steps
    ),
    All = Reports ++ [?C:call(C, N, ?P, rest, [Work]) || {N, #{work := Work}} <- maps:to_list(Left)],
    Sum = fun(Key) -> lists:sum([N || #{Key := N} <- All]) end,
    ?C:report("~b nodes upgraded one by one and back: ~b names given and ~b looked up meanwhile, none refused, none lost", [
        length(Nodes), Sum(given), Sum(read)
    ]),
    [?assertMatch(#{refused := [], lost := []}, R) || R <- All],
    [?assert(Given > 0) || #{given := Given} <- All].

%% One node stops in order and is started with the protocols of that folder, which speak that
%% version; all others go on.
step({Node, Dir, Version}, C, {Versions0, Lives0, Reports}) ->
    Nodes = atoll_cluster:nodes(C),
    {#{work := Work}, Others} = maps:take(Node, Lives0),
    ok = watch(C, Others),
    Report = ?C:call(C, Node, ?P, rest, [Work]),
    ok = ?C:call(C, Node, application, stop, [atoll]),
    ok = atoll_cluster:kill(C, Node),
    ok = atoll_cluster:restart(C, Node),
    ok = ?C:call(C, Node, ?P, boot, [Dir]),
    ok = ?C:call(C, Node, atoll_barrier, group, [?GROUP, Nodes]),
    _ = ?C:call(C, Node, atoll_rooms_probe, found, [?GROUP, rows(Others)]),
    Lives = Others#{Node => life(C, Node, {upgraded, Version})},
    ok = watch(C, Lives),
    Versions = Versions0#{Node := Version},
    Spoken = fun(N) -> maps:map(fun(_, V) -> min(V, maps:get(N, Versions)) end, maps:remove(N, Versions)) end,
    Answers = ?C:each(C, Nodes, atoll_attr, request_attrs, fun(N) -> [Nodes -- [N], [loadavg1], #{deadline => 10000}] end),
    [?assertMatch({_, {ok, #{silent := [], unreachable := []}}}, A) || A <- Answers],
    Agreed = ?C:each(C, Nodes, ?P, agreed, fun(N) -> [Spoken(N), [atoll_group, atoll_name, atoll_attr]] end),
    [?assertEqual({Node, Version, N, ok}, {Node, Version, N, A}) || {N, A} <- Agreed],
    [?assertEqual({N, []}, {N, [D || {_, K} = D <- ?C:call(C, N, ?P, dropped, []), K > 0] ++ ?C:call(C, N, ?P, logged, [])}) || N <- Nodes],
    [?assertMatch({N, #{refused := [], lost := []}}, {N, ?C:call(C, N, ?P, report, [W])}) || {N, #{work := W}} <- maps:to_list(Lives)],
    {Versions, Lives, [Report | Reports]}.

%% A process that gives and looks up names all the time, and others that stand.
life(C, Node, Tag) ->
    Given = ?C:call(C, Node, atoll_name_witness, give, [[{?GROUP, {Tag, Node, K}, none} || K <- lists:seq(1, ?NAMES)]]),
    #{work => ?C:call(C, Node, ?P, work, [?GROUP]), rows => [{Name, Pid} || {_, Name, Pid} <- Given]}.

%% All look up what stands on all.
watch(C, Lives) ->
    Rows = rows(Lives),
    lists:foreach(fun({N, #{work := Work}}) -> ok = ?C:call(C, N, ?P, watch, [Work, Rows]) end, maps:to_list(Lives)).

rows(Lives) -> lists:append([Rows || #{rows := Rows} <- maps:values(Lives)]).

%% Its overlay reads nothing of the others', nor they of its: for them it is no neighbour, but it is
%% connected, in the group and found.
a_node_two_versions_apart_keeps_its_other_protocols(Config) ->
    C = ?config(cluster, Config),
    [Node | Others] = Nodes = atoll_cluster:nodes(C),
    ok = ?C:call(C, Node, application, stop, [atoll]),
    ok = atoll_cluster:kill(C, Node),
    ok = atoll_cluster:restart(C, Node),
    ok = ?C:call(C, Node, ?P, boot, [?config(apart, Config)]),
    ok = ?C:call(C, Node, atoll_barrier, group, [?GROUP, Nodes]),
    %% Each end says so of the other, once.
    Of = fun(N, Peers, Ours, Theirs) ->
        Said = fun() -> lists:sort([Report || #{peer := Peer} = Report <- ?C:call(C, N, ?P, logged, []), lists:member(Peer, Peers)]) end,
        ok = ?C:await(fun() -> length(Said()) end, length(Peers)),
        [?assertMatch(#{what := no_common_version, protocol := atoll_overlay, ours := Ours, theirs := Theirs}, R) || R <- Said()]
    end,
    _ = Of(Node, Others, {3, 4}, {1, 1}),
    _ = [Of(N, [Node], {1, 1}, {3, 4}) || N <- Others],
    %% Long after the overlay would have given up one that is silent it is still connected.
    Beats = fun(N) -> maps:get(sent, ?C:call(C, N, atoll_interpreter, counters, [atoll_overlay])) end,
    Before = [{N, Beats(N)} || N <- Others],
    _ = [?C:await(fun() -> Beats(N) > Sent + 90 * (length(Others) - 1) end, true) || {N, Sent} <- Before],
    [?assertEqual({N, Others -- [N]}, {N, ?C:call(C, N, atoll, neighbours, [])}) || N <- Others],
    ?assertEqual([], ?C:call(C, Node, atoll, neighbours, [])),
    #{rows := Rows} = life(C, Node, apart),
    #{rows := More} = life(C, hd(Others), apart),
    _ = ?C:each(C, Nodes, atoll_rooms_probe, found, [?GROUP, Rows ++ More]),
    [?assertEqual({N, 1}, {N, length(?C:call(C, N, ?P, logged, []))}) || N <- Others],
    {_, Log} = ?C:call(C, Node, atoll_name_witness, log, []),
    ?assertEqual([], [Down || {_, nodedown, _} = Down <- Log]),
    Dropped = [D || N <- Nodes, {_, K} = D <- ?C:call(C, N, ?P, dropped, []), K > 0],
    ?assertEqual([atoll_overlay], lists:usort([Room || {Room, _} <- Dropped])).
