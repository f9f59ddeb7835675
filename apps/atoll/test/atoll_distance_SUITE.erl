%% SPDX-License-Identifier: Apache-2.0
%% Distances on real nodes: they measure each other over the connections that somebody wants, know
%% where the others are, and keep no connection open.
-module(atoll_distance_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    nodes_measure_whom_they_are_connected_with_and_estimate_the_others/1,
    a_connection_that_nobody_wants_is_closed_though_it_was_measured/1,
    a_lost_process_goes_on_where_the_node_was/1,
    a_node_that_stands_still_holds_up_nobody/1,
    the_network_of_a_file_is_declared/1,
    without_the_options_there_are_sentences/1,
    a_wrong_file_stops_the_start_with_its_line/1,
    all_pairs_are_measured_at_once_and_who_is_silent_is_told/1,
    who_falls_silent_costs_its_own_pairs_and_not_the_whole_time/1,
    who_has_not_measured_all_in_time_is_late_and_not_silent/1
]).

-define(CALL_MS, 90000).
%% Many, so that the tests are short.
-define(OFTEN, #{probes_per_minute => 1200}).

suite() -> [{timetrap, {minutes, 5}}].

all() ->
    [F || {F, 1} <- ?MODULE:module_info(exports), not lists:member(F, [init_per_suite, end_per_suite, module_info])].

init_per_suite(Config) ->
    [{cluster, atoll_cluster_owned:start(#{nodes => 3, connect_all => false})} | Config].

end_per_suite(Config) ->
    ok = atoll_cluster:stop(?config(cluster, Config)).

%% Each case starts the application anew, with what it says.
init_per_testcase(Case, Config) ->
    [{settings, settings(Case, atoll_cluster:nodes(?config(cluster, Config)), ?config(priv_dir, Config))} | Config].

end_per_testcase(_Case, Config) ->
    C = ?config(cluster, Config),
    #{nodes := Infos} = atoll_cluster:info(C),
    [ok = atoll_cluster:resume(C, N) || #{node := N, state := paused} <- Infos],
    [ok = call(C, N, atoll_barrier, stopped, []) || N <- atoll_cluster:nodes(C)],
    ok.

settings(nodes_measure_whom_they_are_connected_with_and_estimate_the_others, [A, B, D], _) ->
    [{distances, ?OFTEN}, {s_groups, [{left, [A, B]}, {right, [B, D]}]}, {free_group, off}];
settings(a_connection_that_nobody_wants_is_closed_though_it_was_measured, _, _) ->
    [{distances, ?OFTEN}, {on_demand_linger, 1000}, {linger, 100}, {free_group, off}];
settings(the_network_of_a_file_is_declared, [A, B, D], Folder) ->
    File = filename:join(Folder, "good.network"),
    Text = io_lib:format("{network, site,\n [{network, [{node, ~w}, {node, ~w}]},\n  {node, ~w}]}.\n", [A, B, D]),
    ok = file:write_file(File, Text),
    [{network, {file, File}}];
settings(a_wrong_file_stops_the_start_with_its_line, [A | _], Folder) ->
    File = filename:join(Folder, "bad.network"),
    ok = file:write_file(File, io_lib:format("{node, ~w}.\n{network, []}.\n", [A])),
    [{network, {file, File}}];
settings(without_the_options_there_are_sentences, _, _) ->
    [];
settings(_, Nodes, _) ->
    [{distances, ?OFTEN}, {s_groups, [{all, Nodes}]}].

call(C, Node, M, F, A) ->
    atoll_cluster:call(C, Node, M, F, A, ?CALL_MS).

start(Config) ->
    C = ?config(cluster, Config),
    %% All stand still before one starts: none hears of what was.
    [ok = call(C, Node, atoll_barrier, stopped, []) || Node <- atoll_cluster:nodes(C)],
    ok = atoll_name_cluster:apart(C, atoll_cluster:nodes(C)),
    [ok = call(C, Node, atoll_barrier, start_anew, [?config(settings, Config)]) || Node <- atoll_cluster:nodes(C)],
    atoll_cluster:nodes(C).

nodes_measure_whom_they_are_connected_with_and_estimate_the_others(Config) ->
    C = ?config(cluster, Config),
    [A, B, D] = start(Config),
    [?assertEqual(ok, call(C, From, atoll_distance_probe, await, [measured, Peers])) || {From, Peers} <- [{A, [B]}, {B, [A, D]}]],
    %% What it has no connection with it hears of.
    ?assertEqual(ok, call(C, A, atoll_distance_probe, await, [estimated, [A, B, D]])),
    ?assertEqual([B], call(C, A, erlang, nodes, [])),
    {ok, Ms} = call(C, A, atoll_distance, distance, [measured, A, B]),
    ?assert(Ms > 0 andalso Ms < 2000),
    ?assertMatch({error, {not_measured, A, D}}, call(C, A, atoll_distance, distance, [measured, A, D])),
    {ok, Estimate} = call(C, A, atoll_distance, distance, [B, D]),
    ?assert(Estimate > 0),
    {ok, Nearest} = call(C, A, atoll_distance, nearest, [5, A]),
    ?assertEqual([B, D], lists:sort(Nearest)),
    ?assertEqual({ok, [A]}, call(C, A, atoll_distance, ball, [A, 0])),
    ?assertEqual({ok, [B, D]}, call(C, A, atoll_distance, choose_nodes, [A, {dist, gt, 0}])),
    ?assertEqual({ok, B}, call(C, A, atoll_distance, choose_node, [A, [nobody@h, A, B], {dist, ne, 0}, measured])),
    ?assertEqual(none, call(C, A, atoll_distance, choose_node, [A, {dist, gt, 100000}])),
    ?assertMatch({error, {no_predicate, {dist, near, 1}}}, call(C, A, atoll_distance, choose_nodes, [A, {dist, near, 1}])),
    {ok, Age} = call(C, A, atoll_distance, age, [measured, B]),
    ?assert(Age < 15000),
    ?assertEqual(unknown, call(C, A, atoll_distance, age, [measured, D])).

a_connection_that_nobody_wants_is_closed_though_it_was_measured(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = start(Config),
    pong = call(C, A, net_adm, ping, [B]),
    ?assertEqual(ok, call(C, A, atoll_distance_probe, await, [measured, [B]])),
    ?assertEqual(ok, call(C, A, atoll_barrier, connected, [[]])),
    %% What was measured is known still.
    ?assertMatch({ok, _}, call(C, A, atoll_distance, distance, [measured, A, B])).

a_lost_process_goes_on_where_the_node_was(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = start(Config),
    ?assertEqual(ok, call(C, A, atoll_distance_probe, await_count, [moves, 1])),
    {{Point, _, _}, {After, _, _}} = call(C, A, atoll_distance_probe, restart, []),
    ?assertEqual(Point, After),
    ?assertNotEqual([], [X || X <- Point, X /= 0]),
    ?assertEqual(ok, call(C, A, atoll_distance_probe, await, [measured, [B]])).

a_node_that_stands_still_holds_up_nobody(Config) ->
    C = ?config(cluster, Config),
    [A, B, D] = start(Config),
    ?assertEqual(ok, call(C, A, atoll_distance_probe, await, [measured, [B, D]])),
    ok = atoll_cluster:pause(C, B),
    ?assertEqual(ok, call(C, A, atoll_distance_probe, await_count, [silent, 1])),
    #{distances := #{moves := Moves}} = call(C, A, atoll_distance, status, []),
    ?assertEqual(ok, call(C, A, atoll_distance_probe, await_count, [moves, Moves + 1])),
    ok = atoll_cluster:resume(C, B).

the_network_of_a_file_is_declared(Config) ->
    C = ?config(cluster, Config),
    [A, B, D] = start(Config),
    Far = fun(X, Y) -> call(C, D, atoll_distance, distance, [X, Y]) end,
    ?assertEqual([{ok, 0.0}, {ok, 0.5}, {ok, 1.0}], [Far(A, X) || X <- [A, B, D]]),
    ?assertEqual({error, {not_in_network, x@h}}, Far(A, x@h)),
    ?assertEqual({ok, [B, D]}, call(C, D, atoll_distance, nearest, [2, A])),
    ?assertEqual({ok, [B]}, call(C, D, atoll_distance, sphere, [A, 0.5])),
    ?assertEqual({ok, lists:sort([A, B])}, call(C, D, atoll_distance, ball, [A, 0.5])),
    ?assertEqual({error, distances_off}, call(C, D, atoll_distance, distance, [estimated, A, B])),
    %% What is none of the three.
    {error, Error} = call(C, A, atoll_distance, nearest, [1, A, #{by => near}]),
    ?assertEqual("a distance is declared, measured or estimated, not near", lists:flatten(atoll_distance:format_error(Error))),
    ?assertEqual({error, Error}, call(C, A, atoll_distance, distance, [near, A, B])).

without_the_options_there_are_sentences(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = start(Config),
    [
        begin
            {error, Error} = call(C, A, atoll_distance, distance, [How, A, B]),
            ?assertEqual(Sentence, unicode:characters_to_list(atoll_distance:format_error(Error)))
        end
     || {How, Sentence} <- [
            {declared, "no network is declared on this node; set the option network of atoll"},
            {measured, "this node measures no distances; set the option distances of atoll"},
            {estimated, "this node measures no distances; set the option distances of atoll"}
        ]
    ],
    ?assertEqual(#{declared => none, distances => off}, call(C, A, atoll_distance, status, [])).

a_wrong_file_stops_the_start_with_its_line(Config) ->
    C = ?config(cluster, Config),
    [A | _] = atoll_cluster:nodes(C),
    {error, {atoll, {{bad_option, network, _} = Error, _}}} = call(C, A, atoll_barrier, start_anew, [?config(settings, Config)]),
    Sentence = unicode:characters_to_list(atoll_config:format_error(Error)),
    ?assertMatch("the option network: the file " ++ _, Sentence),
    ?assertNotEqual(nomatch, string:find(Sentence, "line 2: a second root begins here")).

all_pairs_are_measured_at_once_and_who_is_silent_is_told(Config) ->
    C = ?config(cluster, Config),
    [A, B, D] = start(Config),
    Measure = fun(Ms) -> call(C, A, atoll_round_trips, measure, [[A, B, D], #{batches => 3, messages => 10, deadline_ms => Ms}]) end,
    #{pairs := Pairs, silent := []} = Measure(15000),
    ?assertEqual(lists:sort([{X, Y} || X <- [A, B, D], Y <- [A, B, D], X =/= Y]), lists:sort(maps:keys(Pairs))),
    [?assert(Best > 0 andalso Best =< Mean) || #{mean := Mean, best := Best} <- maps:values(Pairs)],
    {ok, Dendrogram} = atoll_dendrogram:new([A, B, D], maps:map(fun(_, #{mean := Us}) -> Us end, Pairs)),
    ?assertEqual([A, B, D], lists:sort(atoll_dendrogram:nodes(Dendrogram))),
    ok = atoll_cluster:pause(C, D),
    #{pairs := Two, silent := [D], late := []} = Measure(10000),
    ?assertEqual(lists:sort([{A, B}, {B, A}]), lists:sort(maps:keys(Two))),
    ok = atoll_cluster:resume(C, D),
    %% One that has not the code: another node may run another version.
    {ok, Module, Empty} = compile:forms([{attribute, 1, module, atoll_round_trips}]),
    {module, Module} = call(C, D, code, load_binary, [Module, "empty", Empty]),
    try
        ?assertMatch(#{silent := [D]}, Measure(10000))
    after
        _ = call(C, D, code, purge, [Module]),
        {module, Module} = call(C, D, code, load_file, [Module])
    end.

who_falls_silent_costs_its_own_pairs_and_not_the_whole_time(Config) ->
    C = ?config(cluster, Config),
    [A, B, D] = start(Config),
    %% Enough that D stands still before the end.
    Options = #{batches => atoll_tier:size(round_trips), messages => 100, deadline_ms => 3600000},
    {Pid, Ref} = spawn_monitor(fun() ->
        exit({told, atoll_cluster:call(C, A, atoll_round_trips, measure, [[A, B, D], Options], 100000)})
    end),
    ?assertEqual(ok, call(C, D, atoll_distance_probe, await_running, [atoll_round_trips, 3])),
    ok = atoll_cluster:pause(C, D),
    receive
        {'DOWN', Ref, process, Pid, {told, Told}} ->
            ?assertMatch(#{pairs := #{{A, B} := _, {B, A} := _}, silent := [D], late := []}, Told)
    end.

who_has_not_measured_all_in_time_is_late_and_not_silent(Config) ->
    C = ?config(cluster, Config),
    [A, B, D] = start(Config),
    ?assertEqual(
        #{pairs => #{}, silent => [], late => [A, B, D]},
        call(C, A, atoll_round_trips, measure, [[A, B, D], #{batches => 1000000, messages => 100, deadline_ms => 1000}])
    ).
