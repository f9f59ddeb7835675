%% SPDX-License-Identifier: Apache-2.0
%% Placing processes on real nodes that differ, that are silent, and that are lost.
-module(atoll_place_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    a_process_is_spawned_on_a_node_that_fits/1,
    near_and_within_choose_by_the_declared_network/1,
    choosing_leaves_no_connection_and_a_placed_child_keeps_one/1,
    a_killed_child_is_placed_anew/1,
    a_child_whose_node_is_killed_is_placed_on_another/1,
    a_child_ends_when_the_node_of_its_supervisor_is_killed/1,
    a_node_that_falls_silent_is_passed_over/1,
    one_that_was_passed_over_is_moved_to_again/1,
    a_node_that_was_lost_for_a_moment_keeps_nothing/1,
    a_full_connection_holds_no_caller/1,
    a_placed_process_writes_on_its_own_node/1,
    more_arguments_are_those_of_the_function/1,
    what_cannot_be_started_is_said_in_a_sentence/1,
    a_misfit_is_told_once_and_stop_places_anew/1,
    callers_at_the_same_moment_are_spread/1
]).

-define(CALL_MS, 60000).
%% On a busy machine an answer takes long; nothing here waits for it where all goes well.
-define(PATIENT, 20000).
%% How long one that stands still is waited for: in this time the next one is connected and starts
%% what it is to start.
-define(SILENT_MS, 3000).

suite() -> [{timetrap, {minutes, 5}}].

all() ->
    [F || {F, 1} <- ?MODULE:module_info(exports), not lists:member(F, [init_per_suite, end_per_suite, module_info])].

init_per_suite(Config) ->
    Name = lists:concat(["p", os:getpid(), "x", erlang:unique_integer([positive]), "x"]),
    [A, B, D, E, F] = Nodes = [list_to_atom(lists:concat([Name, N, "@127.0.0.1"])) || N <- lists:seq(1, 5)],
    Network = {network, [
        {network, [{network, [{node, A}, {node, B}]}, {network, [{node, D}]}]},
        {network, [{node, E}, {node, F}]}
    ]},
    Cluster = atoll_cluster_owned:start(#{
        name => Name,
        nodes => 5,
        connect_all => false,
        apps => [atoll],
        args =>
            ["-atoll", "on_demand_linger", "200", "linger", "200", "linger_max", "500", "free_group", "off"] ++
                ["-atoll", "attributes", "[{colour,blue},{size,1}]", "place_check_ms", "100"] ++
                ["-atoll", "network", lists:flatten(io_lib:format("~0p", [Network]))]
    }),
    ?assertEqual(Nodes, atoll_cluster:nodes(Cluster)),
    [{cluster, Cluster} | Config].

end_per_suite(Config) ->
    ok = atoll_cluster:stop(?config(cluster, Config)).

init_per_testcase(_Case, Config) ->
    Config.

%% Every node is there and as it was, and nobody holds a connection.
end_per_testcase(_Case, Config) ->
    C = ?config(cluster, Config),
    #{nodes := Infos} = atoll_cluster:info(C),
    _ = [ok = atoll_cluster:resume(C, N) || #{node := N, state := paused} <- Infos],
    Nodes = atoll_cluster:nodes(C),
    [ok = call(C, N, atoll_place_probe, end_supervisors, []) || N <- Nodes],
    lists:foreach(
        fun(N) ->
            ok = call(C, N, atoll_place_probe, await_no_bridge, []),
            case call(C, N, application, stop, [atoll]) of
                ok -> ok;
                {error, {not_started, atoll}} -> ok
            end,
            ok = call(C, N, application, start, [atoll])
        end,
        Nodes
    ).

call(C, Node, M, F, A) ->
    atoll_cluster:call(C, Node, M, F, A, ?CALL_MS).

%% A process of that node that keeps what it is told.
ear(C, Node) ->
    call(C, Node, atoll_barrier, listen, [fun atoll_place_probe:nothing/0]).

heard(C, Ear, Count) ->
    call(C, node(Ear), atoll_barrier, heard, [Ear, Count]).

started(C, Ear) ->
    [{started, Pid}] = heard(C, Ear, 1),
    Pid.

wanted(Params, Nodes) ->
    maps:merge(#{among => Nodes, deadline => ?PATIENT, start_timeout => 40000}, Params).

worker(Id, Ear) ->
    #{id => Id, start => {atoll_place_worker, start_link, [Ear]}, restart => permanent, shutdown => 5000}.

supervisor(C, Node) ->
    call(C, Node, atoll_place_probe, start_supervisor, []).

place(C, Supervisor, Params, Spec) ->
    call(C, node(Supervisor), atoll_place, start_child, [Supervisor, Params, Spec]).

paint(C, Node, Colour) ->
    ok = call(C, Node, atoll_attr, update, [colour, Colour]).

a_process_is_spawned_on_a_node_that_fits(Config) ->
    C = ?config(cluster, Config),
    [A, B, D | _] = Nodes = atoll_cluster:nodes(C),
    paint(C, D, red),
    Params = wanted(#{where => "colour == red"}, Nodes),
    ?assertEqual(D, call(C, A, atoll_place_probe, spawned, [Params])),
    ok = call(C, B, atoll_attr, update, [size, 7]),
    {ok, #{nodes := [B | _] = Ranked}} = call(C, A, atoll_place, nodes, [wanted(#{rank => {most, size}}, Nodes)]),
    ?assertEqual(lists:sort(Nodes), lists:sort(Ranked)),
    {none, #{nodes := []}} = call(C, A, atoll_place, choose, [wanted(#{where => {colour, eq, green}}, Nodes)]),
    ?assertMatch(
        {raised, {no_node_fits, _}, "no node fits colour == green"},
        call(C, A, atoll_place_probe, spawned, [wanted(#{where => {colour, eq, green}}, Nodes)])
    ).

near_and_within_choose_by_the_declared_network(Config) ->
    C = ?config(cluster, Config),
    [A, B, D, E, F] = Nodes = atoll_cluster:nodes(C),
    {ok, #{nodes := [A, B, D | Far], distances := Distances}} =
        call(C, E, atoll_place, nodes, [wanted(#{near => A, where => "colour == blue"}, Nodes)]),
    ?assertEqual([E, F], lists:sort(Far)),
    ?assertEqual(#{A => 0.0, B => 0.25, D => 0.5, E => 1.0, F => 1.0}, Distances),
    {ok, #{nodes := [A, B, D]}} = call(C, E, atoll_place, nodes, [wanted(#{near => A, within => 0.5}, Nodes)]),
    paint(C, A, red),
    paint(C, B, red),
    {ok, D, _} = call(C, E, atoll_place, choose, [wanted(#{near => A, within => 0.5, where => "colour == blue"}, Nodes)]),
    {none, _} = call(C, E, atoll_place, choose, [wanted(#{near => A, within => 0.25, where => "colour == blue"}, Nodes)]).

choosing_leaves_no_connection_and_a_placed_child_keeps_one(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = Nodes = atoll_cluster:nodes(C),
    {ok, _, _} = call(C, A, atoll_place, choose, [wanted(#{}, Nodes)]),
    ?assertEqual(ok, call(C, A, atoll_barrier, connected, [[]])),
    Ear = ear(C, B),
    Supervisor = supervisor(C, A),
    {ok, Child, Pid} = place(C, Supervisor, wanted(#{}, [B]), worker(one, Ear)),
    ?assertEqual([B, B], [node(Child), node(Pid)]),
    ?assertEqual(Pid, started(C, Ear)),
    %% The link room looks at it, more than once, and keeps it.
    [?assertEqual(ok, call(C, A, atoll_barrier, kept, [B])) || _ <- [1, 2]],
    ?assertEqual([B], call(C, A, erlang, nodes, [connected])),
    ok = call(C, A, supervisor, terminate_child, [Supervisor, one]),
    %% As by its own parent.
    [{ended, Pid, shutdown}] = heard(C, Ear, 1),
    ?assertEqual(ok, call(C, A, atoll_barrier, connected, [[]])).

a_killed_child_is_placed_anew(Config) ->
    C = ?config(cluster, Config),
    [A, B, D | _] = atoll_cluster:nodes(C),
    Supervisor = supervisor(C, A),
    Ear = ear(C, A),
    paint(C, D, red),
    {ok, _, Pid} = place(C, Supervisor, wanted(#{where => "colour == blue", on_misfit => off}, [B, D]), worker(one, Ear)),
    ?assertEqual({Pid, B}, {started(C, Ear), node(Pid)}),
    paint(C, B, red),
    paint(C, D, blue),
    true = call(C, B, erlang, exit, [Pid, kill]),
    Next = started(C, Ear),
    ?assertEqual(D, node(Next)),
    ?assertEqual(#{one => Next}, call(C, A, atoll_place_probe, children, [Supervisor])),
    %% And one that ends by itself.
    ok = call(C, D, atoll_place_probe, stop_worker, [Next, normal]),
    [{ended, Next, normal}, {started, Third}] = heard(C, Ear, 2),
    ?assertEqual(D, node(Third)).

a_child_whose_node_is_killed_is_placed_on_another(Config) ->
    C = ?config(cluster, Config),
    [A, B, D | _] = atoll_cluster:nodes(C),
    Supervisor = supervisor(C, A),
    Ear = ear(C, A),
    paint(C, B, red),
    {ok, _, Pid} = place(C, Supervisor, wanted(#{where => "colour == blue"}, [B, D]), worker(one, Ear)),
    ?assertEqual({Pid, D}, {started(C, Ear), node(Pid)}),
    paint(C, B, blue),
    ok = atoll_cluster:kill(C, D),
    Next = started(C, Ear),
    ?assertEqual(B, node(Next)),
    ok = atoll_cluster:restart(C, D).

a_child_ends_when_the_node_of_its_supervisor_is_killed(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = atoll_cluster:nodes(C),
    Supervisor = supervisor(C, A),
    Ear = ear(C, B),
    {ok, Child, Pid} = place(C, Supervisor, wanted(#{}, [B]), worker(one, Ear)),
    ?assertEqual(Pid, started(C, Ear)),
    ok = atoll_cluster:kill(C, A),
    [{ended, Pid, noconnection}] = heard(C, Ear, 1),
    ?assertEqual([false, false], [call(C, B, atoll_place_probe, lives, [P]) || P <- [Pid, Child]]),
    ok = atoll_cluster:restart(C, A).

a_node_that_falls_silent_is_passed_over(Config) ->
    C = ?config(cluster, Config),
    [A, B, D | _] = atoll_cluster:nodes(C),
    Supervisor = supervisor(C, A),
    Ear = ear(C, A),
    %% What is known of it is new enough; that it is silent shows only when it is to start something.
    Params = wanted(#{where => "colour == blue", near => B, max_age => 600000, claim => false, deadline => ?SILENT_MS, slack => 0}, [B, D]),
    {ok, #{nodes := [B, D]}} = call(C, A, atoll_place, nodes, [Params#{deadline => ?PATIENT}]),
    ok = atoll_cluster:pause(C, B),
    {ok, _, Pid} = place(C, Supervisor, Params, worker(one, Ear)),
    ?assertEqual({Pid, D}, {started(C, Ear), node(Pid)}),
    %% It has heard of it when it goes on, and starts nothing.
    ok = atoll_cluster:resume(C, B),
    ?assertEqual(ok, call(C, B, atoll_place_probe, await_no_bridge, [])),
    ?assertEqual([], heard(C, Ear, 0)),
    ok = atoll_cluster:pause(C, B),
    {error, {{place, {not_started, [{B, silent}]}}, _} = Error} = place(C, Supervisor, Params#{among => [B]}, worker(two, Ear)),
    ?assertEqual(
        lists:concat(["no node that fits could be used: ", B, " did not answer"]),
        unicode:characters_to_list(atoll_place:format_error(Error))
    ).

one_that_was_passed_over_is_moved_to_again(Config) ->
    C = ?config(cluster, Config),
    [A, B, D | _] = atoll_cluster:nodes(C),
    Supervisor = supervisor(C, A),
    Ear = ear(C, A),
    Params = wanted(
        #{where => "colour == blue", near => B, max_age => 600000, claim => false, deadline => ?SILENT_MS, slack => 0, on_misfit => stop},
        [B, D]
    ),
    {ok, #{nodes := [B, D]}} = call(C, A, atoll_place, nodes, [Params#{deadline => ?PATIENT}]),
    ok = atoll_cluster:pause(C, B),
    {ok, _, Pid} = place(C, Supervisor, Params, worker(one, Ear)),
    ?assertEqual({Pid, D}, {started(C, Ear), node(Pid)}),
    ok = atoll_cluster:resume(C, B),
    %% It may not have answered in a round or two: that is tried again.
    paint(C, D, red),
    [{ended, Pid, {shutdown, misplaced}}, {started, Next}] = heard(C, Ear, 2),
    ?assertEqual(B, node(Next)).

a_node_that_was_lost_for_a_moment_keeps_nothing(Config) ->
    C = ?config(cluster, Config),
    [A, B, D | _] = atoll_cluster:nodes(C),
    Supervisor = supervisor(C, A),
    Ear = ear(C, A),
    Spec = #{id => one, start => {atoll_place_probe, start_losing, [B, A, Ear]}, restart => temporary},
    {ok, _, Pid} = place(C, Supervisor, wanted(#{near => B, slack => 0}, [B, D]), Spec),
    ?assertEqual({Pid, D}, {started(C, Ear), node(Pid)}),
    %% Its caller has heard that it is lost, and it was there again when it had begun.
    ?assertEqual(ok, call(C, B, atoll_place_probe, await_no_bridge, [])),
    ?assertEqual(ok, call(C, B, atoll_place_probe, await_unregistered, [atoll_place_lost])),
    ?assertEqual(#{one => Pid}, call(C, A, atoll_place_probe, children, [Supervisor])).

a_full_connection_holds_no_caller(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = atoll_cluster:nodes(C),
    %% A connection with a monitor is not given up.
    Watcher = call(C, A, atoll_barrier, monitor_init, [B]),
    ok = atoll_cluster:pause(C, B),
    ?assertEqual({passed, silent}, call(C, A, atoll_place_probe, on_full_connection, [B])),
    ok = atoll_cluster:resume(C, B),
    ?assertEqual(quiet, call(C, A, atoll_barrier, demonitor, [Watcher])),
    ?assertEqual(ok, call(C, B, atoll_place_probe, await_no_bridge, [])).

a_placed_process_writes_on_its_own_node(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = atoll_cluster:nodes(C),
    Ear = ear(C, A),
    {ok, _, Pid} = place(C, supervisor(C, A), wanted(#{}, [B]), worker(one, Ear)),
    ?assertEqual(Pid, started(C, Ear)),
    {group_leader, Leader} = call(C, B, erlang, process_info, [Pid, group_leader]),
    ?assertEqual(B, node(Leader)).

more_arguments_are_those_of_the_function(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = atoll_cluster:nodes(C),
    Ear = ear(C, A),
    Supervisor = call(C, A, atoll_place_probe, start_supervisor, [
        #{id => x, start => {atoll_place, start_link, [wanted(#{}, [B]), {atoll_place_worker, start_link, []}]}}
    ]),
    {ok, _, Pid} = call(C, A, supervisor, start_child, [Supervisor, [Ear]]),
    ?assertEqual({Pid, B}, {started(C, Ear), node(Pid)}).

what_cannot_be_started_is_said_in_a_sentence(Config) ->
    C = ?config(cluster, Config),
    [A, B | _] = Nodes = atoll_cluster:nodes(C),
    Supervisor = supervisor(C, A),
    Said = fun(Params, Start) ->
        case place(C, Supervisor, wanted(Params, Nodes), #{id => x, start => Start}) of
            {error, {{place, _}, _} = Error} -> unicode:characters_to_list(atoll_place:format_error(Error));
            {error, {Reason, _}} -> {error, Reason};
            Other -> Other
        end
    end,
    ?assertEqual("no node fits colour == green", Said(#{where => "colour == green"}, {m, f, []})),
    ?assertEqual(
        lists:concat([B, " has no function app_server:start_link/1: the code of the application is not there"]),
        Said(#{among => [B]}, {app_server, start_link, [1]})
    ),
    ?assertEqual({error, full}, Said(#{among => [B]}, {lists, last, [[{error, full}]]})),
    ?assertEqual({ok, undefined}, Said(#{among => [B]}, {lists, last, [[ignore]]})),
    ok = call(C, A, supervisor, delete_child, [Supervisor, x]),
    ?assertEqual(
        lists:concat(["the start on ", B, " did not end within start_timeout, 4000 ms for placing and starting"]),
        Said(#{among => [B], start_timeout => 4000}, {timer, sleep, [infinity]})
    ),
    %% The bridge of a function that hangs is gone.
    ?assertEqual(ok, call(C, B, atoll_place_probe, await_no_bridge, [])),
    ?assertEqual([], call(C, A, supervisor, which_children, [Supervisor])).

a_misfit_is_told_once_and_stop_places_anew(Config) ->
    C = ?config(cluster, Config),
    [A, B, D | _] = atoll_cluster:nodes(C),
    Supervisor = supervisor(C, A),
    Ear = ear(C, A),
    Told = call(C, A, atoll_barrier, listen, [fun atoll_place_probe:subscribe_misplaced/0]),
    paint(C, D, red),
    Params = wanted(#{where => "colour == blue"}, [B, D]),
    {ok, _, Stays} = place(C, Supervisor, Params, worker(stays, Ear)),
    {ok, _, Moves} = place(C, Supervisor, Params#{on_misfit => stop}, worker(moves, Ear)),
    ?assertEqual([{started, Stays}, {started, Moves}], heard(C, Ear, 2)),
    ?assertEqual([B, B], [node(P) || P <- [Stays, Moves]]),
    paint(C, B, red),
    Misplaced = [Details || {atoll, misplaced, Details} <- heard(C, Told, 2)],
    ?assertEqual(lists:sort([Stays, Moves]), lists:sort([P || #{pid := P} <- Misplaced])),
    ?assertMatch([#{node := B, where := "colour == blue", values := #{colour := red}}, _], Misplaced),
    %% No other node fits: whoever is to move runs on, and nothing is told twice.
    ?assertEqual(ok, call(C, A, atoll_place_probe, await_count, [kept, 3])),
    ?assertEqual({[], []}, {heard(C, Told, 0), heard(C, Ear, 0)}),
    paint(C, D, blue),
    [{ended, Moves, {shutdown, misplaced}}, {started, Moved}] = heard(C, Ear, 2),
    ?assertEqual(D, node(Moved)),
    ?assertEqual(#{stays => Stays, moves => Moved}, call(C, A, atoll_place_probe, children, [Supervisor])),
    #{place := #{watched := 2, misplaced := 1}} = call(C, A, atoll, status, []).

callers_at_the_same_moment_are_spread(Config) ->
    C = ?config(cluster, Config),
    Nodes = atoll_cluster:nodes(C),
    Rounds = [
        begin
            Placed = lists:append([
                Answer
             || {_, Answer} <- atoll_overlay_cluster:each(C, Nodes, atoll_place_probe, spread, [8, wanted(#{}, Nodes)])
            ]),
            ?assertEqual(40, length(Placed)),
            [length([N || N <- Placed, N =:= Node]) || Node <- Nodes]
        end
     || _ <- lists:seq(1, 5)
    ],
    %% By chance this is chi squared with 20 degrees of freedom, and below that in one of a hundred cases.
    Uneven = lists:sum([(Load - 8) * (Load - 8) / 8 || Loads <- Rounds, Load <- Loads]),
    ct:pal("40 processes on 5 nodes, five times: ~w, ~.2f", [[lists:sort(Loads) || Loads <- Rounds], Uneven]),
    ?assert(Uneven < 8.26, Rounds).
