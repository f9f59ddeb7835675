%% SPDX-License-Identifier: Apache-2.0
%% Every step of a fault script has the effect that it names, and its end is told.
%% A script is played in a small cluster; what it did is read from its trace, as a
%% user would, and from the result.
-module(atoll_sim_play_tests).

-include_lib("eunit/include/eunit.hrl").

%% Who is linked with whom hangs on nothing, and messages take 5 ms.
-define(MESH, #{nodes => 10, strategy => mesh, contacts => 2, latency => {constant, 5}}).
-define(TRAVEL_MS, 5).

%% Nodes that come and go

start_starts_those_that_do_not_run_and_leaves_the_others_alone_test() ->
    {Result, Trace} = play(mesh(#{start => contacts}), [{at, 3000, {start, {nodes, 2, 6}}}, {then, 1000, {start, n02}}]),
    ?assertEqual([{0, n01}, {0, n02}] ++ [{3000, Node} || Node <- [n03, n04, n05, n06]], starts(Trace)),
    ?assertMatch(#{alive := 6, connected := 1.0}, Result).

a_choice_of_who_starts_is_among_those_that_do_not_run_test() ->
    {#{alive := 5}, Trace} = play(mesh(#{start => contacts}), [{at, 3000, {start, {random, 3}}}]),
    ?assertMatch([_, _, {3000, A}, {3000, B}, {3000, C}] when A < B andalso B < C, starts(Trace)).

who_starts_at_once_does_not_start_again_with_the_others_test() ->
    {#{alive := 10}, Trace} = play(?MESH, [{at, 0, {start, all}}, {at, 1, {restart, n10, fresh}}]),
    ?assertEqual(11, length(starts(Trace))).

the_killed_are_gone_their_sockets_close_and_they_stay_dead_test() ->
    {Result, Trace} = play(?MESH, [{at, 10000, {kill, [n03, n04]}}, {then, 10000, {kill, [n03, n05]}}, {then, 0, heal}]),
    ?assertEqual([{10000, n03}, {10000, n04}, {20000, n05}], [{Ms, Node} || {Ms, Node, killed} <- Trace]),
    ?assertEqual(
        [{10000 + ?TRAVEL_MS, Node, {link_down, n03}} || Node <- [n01, n02, n05, n06, n07, n08, n09, n10]],
        lists:sort([E || {_, _, {link_down, n03}} = E <- Trace])
    ),
    ?assertMatch(#{alive := 7, connected := 1.0, false_deaths := 0}, Result).

%% The one contact is dead, so that only memory can help.
a_restart_remembers_or_does_not_test_() ->
    [
        {atom_to_list(Memory), fun() ->
            {Result, Trace} = play(
                #{nodes => 12, contacts => 1, latency => {constant, 5}},
                [{at, 20000, {kill, all}}, {then, 1000, {restart, {nodes, 2, 12}, Memory}}]
            ),
            ?assertEqual([{21000, Node} || Node <- tl(names(12))], [S || {Ms, _} = S <- starts(Trace), Ms > 20000]),
            ?assertMatch(#{alive := 11, connected := Connected}, Result)
        end}
     || {Memory, Connected} <- [{remembered, 1.0}, {fresh, 1 / 11}]
    ].

%% Those who knew it have given it up by then.
who_starts_alone_is_told_of_nobody_test() ->
    Met = fun(Memory) ->
        {_, Trace} = play(
            #{nodes => 6, formed => join, contacts => 1, latency => {constant, 5}},
            [{at, 20000, {kill, n6}}, {at, 60000, {restart, n6, Memory}}, {at, 60100, {expect, {connected, 0}}}]
        ),
        lists:usort([Peer || {Ms, n6, {link_up, Peer}} <- Trace, Ms > 60000, Ms < 60050])
    end,
    ?assert(lists:member(n1, Met(fresh))),
    ?assertEqual([], Met(alone)).

%% The one that the list named before never runs.
who_reads_a_source_hears_of_what_it_says_later_test() ->
    {_, Trace} = play(
        #{nodes => 6, formed => source, contacts => 1, start => {nodes, 2, 6}, latency => {constant, 5}},
        [{at, 20000, {source, n3}}]
    ),
    [{First, _, _} | _] = Met = [E || {_, n3, {link_up, _}} = E <- Trace],
    ?assert(First > 20000),
    ?assert(length(Met) > 2).

a_restart_of_one_that_runs_is_a_crash_and_a_start_test() ->
    {#{alive := 10}, Trace} = play(?MESH, [{at, 10000, {restart, n04, fresh}}]),
    ?assertMatch([{10000, n04, killed}, {10000, n04, {started, 10001}}], of_lives(since(10000, Trace))).

who_leaves_parts_and_is_gone_and_nobody_finds_it_dead_test() ->
    {Result, Trace} = play(?MESH, [{at, 10000, {leave, n04}}]),
    ?assertEqual([dropped || _ <- lists:seq(1, 9)], [Why || {_, _, {notice, {neighbour_down, n04, Why}}} <- Trace]),
    ?assertMatch([{11000, n04, {note, left}}, {11000, n04, killed}], of_lives(since(10000, Trace))),
    ?assertEqual([], [E || {_, _, {notice, {dead, _, _}}} = E <- Trace]),
    ?assertMatch(#{alive := 9, connected := 1.0}, Result).

who_left_and_was_started_again_meanwhile_stays_test() ->
    {Result, Trace} = play(?MESH, [{at, 10000, {leave, n04}}, {then, 500, {restart, n04, fresh}}]),
    ?assertMatch([{10500, n04, killed}, {10500, n04, {started, _}}], of_lives(since(10000, Trace))),
    ?assertMatch(#{alive := 10}, Result).

%% Pauses and pace

a_pause_lasts_so_long_and_closes_nothing_test() ->
    {#{false_deaths := 0}, Trace} = played_with_messages([{at, 10000, {pause, n04, 1500}}]),
    ?assertEqual([{10000, n04, paused}, {11500, n04, resumed}], pauses(Trace)),
    ?assertEqual([], [E || {Ms, n04, {What, _, _}} = E <- Trace, Ms >= 10000, Ms < 11500, is_message(What)]),
    ?assertEqual([], [E || {Ms, _, {link_down, _}} = E <- Trace, Ms >= 10000]),
    %% What came meanwhile is taken then.
    ?assert(length([E || {11500, n04, {got, _, _}} = E <- Trace]) > 3).

who_is_paused_stays_so_until_it_is_resumed_or_all_is_healed_test_() ->
    [
        ?_assertEqual(
            [{10000, n04, paused}, {At, n04, resumed}],
            pauses(element(2, play(?MESH, [{at, 10000, {pause, n04}} | Steps])))
        )
     || {At, Steps} <- [
            {12000, [{at, 12000, {resume, n04}}]},
            {12000, [{at, 12000, {resume, alive}}]},
            {13000, [{at, 12000, {resume, n05}}, {at, 13000, heal}]},
            {14000, [{at, 14000, {expect, {connected, 0}}}]}
        ]
    ].

%% It says nothing meanwhile, and nobody notices if it is not long; afterwards it is heard.
who_stands_still_for_a_while_closes_nothing_and_says_nothing_test() ->
    {#{false_deaths := 0}, Trace} = played_with_messages([{at, 10000, {stall, n04, 1500}}]),
    ?assertEqual([{10000, n04, stalled}, {11500, n04, resumed}], pauses(Trace)),
    ?assertEqual([], [E || {Ms, n04, {sent, _, {_Start, _Life, _Part, _}}} = E <- Trace, Ms >= 10000, Ms < 11500]),
    ?assertEqual([], [E || {Ms, _, {link_down, _}} = E <- Trace, Ms >= 10000]),
    ?assertNotEqual([], [E || {11500, n04, {sent, _, _}} = E <- Trace]).

%% The others bury it, as with a pause; it goes on as another life, and is back. It blames none
%% of them: the time in which it stood still is nobody's silence.
who_stood_still_for_long_is_back_and_has_buried_nobody_test() ->
    {Result, Trace} = play(mesh(#{roster => #{}}), [{at, 10000, {stall, n04, 20000}}, {at, 90000, {expect, {connected, 1}}}]),
    ?assertMatch(#{false_deaths := 0, failed := []}, Result),
    ?assertEqual([n04], lists:usort([Of || {_, _, {notice, {dead, Of, _}}} <- Trace])).

the_longest_of_several_pauses_counts_test_() ->
    [
        ?_assertEqual(
            [{10000, n04, paused}, {At, n04, resumed}],
            pauses(element(2, play(?MESH, [{at, 10000, First}, {then, 500, Second}, {at, 14000, heal}])))
        )
     || {At, First, Second} <- [
            {11500, {pause, n04, 1000}, {pause, n04, 1000}},
            {12000, {pause, n04, 2000}, {pause, n04, 500}},
            {14000, {pause, n04, 1000}, {pause, n04}},
            {14000, {pause, n04}, {pause, n04, 1000}},
            {12000, {pause, n04, 1000}, {stall, n04, 1500}}
        ]
    ].

a_pause_that_was_ended_neither_ends_nor_prolongs_the_next_one_test_() ->
    [
        fun() ->
            {_, Trace} = play(?MESH, [
                {at, 10000, {pause, n04, Ms}}, {at, 10200, End}, {at, 10500, {pause, n04, 2000}}, {at, 20000, heal}
            ]),
            ?assertEqual([{10500, n04, paused}, {12500, n04, resumed}], pauses(since(10500, Trace)))
        end
     || End <- [{resume, n04}, heal, {restart, n04, fresh}], Ms <- [1000, 5000]
    ].

each_event_of_a_slow_node_takes_so_long_until_all_is_healed_test() ->
    {_, Trace} = play(?MESH, [
        {at, 10000, {slow, n04, 100}}, {at, 10100, {broadcast, n01, 1, 0}},
        {at, 20000, heal}, {at, 25000, {broadcast, n01, 1, 0}}
    ]),
    ?assertEqual([{10000, n04, {slow, 100}}, {20000, n04, {slow, 0}}], [E || {_, _, {slow, _}} = E <- Trace]),
    [Late, Soon] = [Ms || {Ms, n04, {notice, {broadcast, n01, _}}} <- Trace],
    ?assert(Late >= 10200),
    ?assert(Soon < 25100),
    ?assert(lists:max([Ms || {Ms, Node, {notice, {broadcast, n01, 1}}} <- Trace, Node =/= n04]) < 10100 + 4 * ?TRAVEL_MS).

%% The network

nothing_passes_between_the_parts_and_the_rest_is_one_too_test() ->
    {_, Trace} = played_with_messages([{at, 10000, {partition, [{nodes, 1, 3}, [n04, n05]]}}, {at, 13000, heal}]),
    Parts = [[n01, n02, n03], [n04, n05], [n06, n07, n08, n09, n10]],
    Inside = got(10000 + ?TRAVEL_MS + 1, 13000, Trace),
    ?assertEqual([], [Way || Way <- Inside, not is_within(Way, Parts)]),
    [?assertNotEqual([], [Way || Way <- Inside, is_within(Way, [Part])]) || Part <- Parts],
    ?assertNotEqual([], lost(10000, 13000, Trace)),
    ?assertNotEqual([], [Way || Way <- got(13000, 16000, Trace), not is_within(Way, Parts)]).

a_partition_takes_the_place_of_the_one_before_test() ->
    {_, Trace} = played_with_messages([
        {at, 10000, {partition, [[n01, n02]]}}, {at, 13000, {partition, [[n09, n10]]}}, {at, 16000, heal}
    ]),
    Old = [[n01, n02], names(10) -- [n01, n02]],
    New = [[n09, n10], names(10) -- [n09, n10]],
    Then = got(13000 + ?TRAVEL_MS + 1, 16000, Trace),
    ?assertEqual([], [Way || Way <- Then, not is_within(Way, New)]),
    ?assertNotEqual([], [Way || Way <- Then, not is_within(Way, Old)]).

a_cut_is_one_way_test() ->
    {_, Trace} = played_with_messages([{at, 10000, {cut, [n01, n02], {nodes, 3, 10}}}, {at, 13000, heal}]),
    Ways = got(10000 + ?TRAVEL_MS + 1, 13000, Trace),
    Cut = [[n01, n02], names(10) -- [n01, n02]],
    ?assertEqual([], [Way || {From, _} = Way <- Ways, lists:member(From, [n01, n02]), not is_within(Way, Cut)]),
    ?assertNotEqual([], [Way || {_, To} = Way <- Ways, lists:member(To, [n01, n02]), not is_within(Way, Cut)]).

nothing_passes_a_black_hole_either_way_test() ->
    {_, Trace} = played_with_messages([{at, 10000, {black_hole, [n01, n02], {nodes, 3, 10}, 3000}}]),
    Whole = [[n01, n02], names(10) -- [n01, n02]],
    ?assertEqual([], [Way || Way <- got(10000 + ?TRAVEL_MS + 1, 13000, Trace), not is_within(Way, Whole)]),
    %% And then it does again.
    ?assertNotEqual([], [Way || Way <- got(13000, 90000, Trace), not is_within(Way, Whole)]).

what_is_delayed_comes_later_and_one_way_test() ->
    Late = 2000,
    {_, Trace} = played_with_messages([{at, 10000, {delay, n01, all, Late}}, {at, 20000, {delay, n01, all, 0}}]),
    From = fun(Ways) -> [Way || {n01, _} = Way <- Ways] end,
    %% What was under way has come, and nothing new can have.
    ?assertEqual([], From(got(10000 + ?TRAVEL_MS + 1, 10000 + Late, Trace))),
    ?assertNotEqual([], From(sent(10000, 12000, Trace))),
    ?assertNotEqual([], From(got(10000 + Late, 20000, Trace))),
    ?assertNotEqual([], [Way || {_, n01} = Way <- got(10000 + ?TRAVEL_MS + 1, 10000 + Late, Trace)]),
    ?assertEqual([], lost(10000, 90000, Trace)).

%% The beats that are dropped bury nobody: the bytes say that they live.
bulk_crowds_out_messages_and_buries_nobody_test_() ->
    {timeout, 60, fun() ->
        Dropped = fun(Steps) ->
            {#{false_deaths := 0}, Trace} = played_with_messages(Steps),
            length(lost(10000, 40000, Trace)) / length(sent(10000, 40000, Trace))
        end,
        Bulk = {at, 10000, {bulk, all, all, full}},
        ?assert(Dropped([Bulk, {at, 40000, heal}]) > 0.8),
        ?assert(Dropped([Bulk, {at, 10100, {bulk, all, all, 0}}, {at, 40000, heal}]) < 0.05),
        %% One way between two of them.
        {_, Trace} = played_with_messages([{at, 10000, {bulk, n01, n02, full}}, {at, 40000, heal}]),
        ?assertEqual([{n01, n02}], lists:usort(lost(10000, 90000, Trace)))
    end}.

a_simulated_connection_has_no_lanes_test() ->
    {ok, Script} = atoll_sim_script:check([{cluster, #{nodes => 3}}, {at, 0, {lane, n1, all, 0, cut}}]),
    {error, {_, Place, Reason}} = atoll_sim_play:run(Script, #{}),
    ?assertEqual(
        "term 2: in {lane,n1,all,0,cut}: a simulated connection has no lanes; this is for real nodes with the carrier",
        lists:flatten(atoll_sim_script:format_error({none, Place, Reason}))
    ).

what_is_lost_is_that_share_test() ->
    {_, Trace} = played_with_messages([{at, 10000, {loss, 0.3}}, {at, 20000, {loss, 1}}, {at, 21000, {loss, 0}}]),
    Share = length(lost(10000, 20000, Trace)) / length(sent(10000, 20000, Trace)),
    ?assert(0.25 < Share andalso Share < 0.35),
    ?assertEqual([], got(20000 + ?TRAVEL_MS + 1, 21000, Trace)),
    ?assertEqual([], lost(21000, 90000, Trace)).

loss_between_some_is_one_way_test() ->
    {_, Trace} = played_with_messages([{at, 10000, {loss, n01, {nodes, 2, 9}, 1.0}}, {at, 13000, heal}]),
    Lost = lost(10000, 13000, Trace),
    ?assertNotEqual([], Lost),
    ?assertEqual([], [Way || {From, To} = Way <- Lost, From =/= n01 orelse To =:= n10]),
    ?assertEqual([], [Way || {n01, To} = Way <- got(10000 + ?TRAVEL_MS + 1, 13000, Trace), To =/= n10]).

what_comes_twice_is_that_share_test() ->
    {_, Trace} = played_with_messages([{at, 10000, {duplicate, 1.0}}, {at, 15000, {duplicate, 0}}]),
    Twice = length(sent(10000, 15000, Trace)),
    ?assert(Twice > 100),
    ?assertEqual(2 * Twice, length(got(10000 + ?TRAVEL_MS, 15000 + ?TRAVEL_MS, Trace))),
    ?assertEqual(length(sent(15000, 18000, Trace)), length(got(15000 + ?TRAVEL_MS, 18000 + ?TRAVEL_MS, Trace))).

what_is_reordered_comes_up_to_that_much_later_test() ->
    {_, Trace} = play(mesh(#{detector => off, groups => off}), #{messages => true}, [
        {at, 10000, {reorder, 0.5, 400}}, {at, 10000, {broadcast, n01, 100, 10}}, {at, 12000, heal}
    ]),
    Delays = delays(n01, n04, 10000, 12000, Trace),
    ?assert(length(Delays) >= 100),
    Late = [Ms || Ms <- Delays, Ms > ?TRAVEL_MS],
    ?assert(length(Late) > 30 andalso length(Late) < 70),
    ?assert(lists:max(Late) =< ?TRAVEL_MS + 400),
    ?assert(lists:max(Late) > ?TRAVEL_MS + 300),
    Ids = [Id || {_, n04, {got, n01, {_, _, broadcast, {gossip, n01, _, Id, _, _}}}} <- Trace],
    ?assertNotEqual(lists:sort(Ids), Ids).

a_latency_is_from_then_on_until_all_is_healed_test() ->
    {_, Trace} = play(mesh(#{detector => off}), #{messages => true}, [
        {at, 10000, {latency, {constant, 70}}}, {at, 10000, {broadcast, n01, 1, 0}},
        {at, 12000, heal}, {at, 12000, {broadcast, n01, 1, 0}}
    ]),
    ?assertMatch([70 | _], delays(n01, n04, 10000, 12000, Trace)),
    ?assertMatch([?TRAVEL_MS | _], delays(n01, n04, 12000, 13000, Trace)).

heal_takes_back_all_that_was_done_to_the_network_test() ->
    {Result, Trace} = played_with_messages([
        {at, 10000, {partition, [[n01, n02, n03]]}}, {at, 10000, {cut, n04, n05}}, {at, 10000, {loss, 0.5}},
        {at, 10000, {loss, n05, n06, 1}}, {at, 10000, {duplicate, 0.5}}, {at, 10000, {reorder, 0.5, 500}},
        {at, 10000, {latency, {constant, 90}}}, {at, 12000, heal}
    ]),
    %% What was on its way arrives.
    ?assertEqual([], lost(12000, 102000, Trace)),
    ?assertEqual(length(sent(13000, 20000, Trace)), length(got(13000 + ?TRAVEL_MS, 20000 + ?TRAVEL_MS, Trace))),
    ?assertMatch(#{alive := 10, connected := 1.0, symmetric := 1.0}, Result).

the_faults_that_a_cluster_begins_with_are_there_again_after_heal_test() ->
    {_, Trace} = play(mesh(#{loss => 0.2, duplicate => 1.0}), #{messages => true}, [
        {at, 10000, {loss, 0}}, {at, 10000, {duplicate, 0}}, {at, 13000, heal}
    ]),
    ?assertEqual([], lost(10000, 13000, Trace)),
    [
        begin
            ?assertNotEqual([], lost(From, From + 3000, Trace)),
            ?assert(length(got(From + 10, From + 3000, Trace)) > 1.4 * length(sent(From + 10, From + 3000, Trace)))
        end
     || From <- [7000, 13000]
    ].

all_is_healed_when_the_last_step_is_done_test() ->
    {Result, Trace} = played_with_messages([
        {at, 10000, {partition, [[n01, n02, n03]]}}, {then, 0, {pause, n05}}, {then, 2000, {slow, n06, 50}}
    ]),
    ?assertNotEqual([], lost(10000, 12000, Trace)),
    ?assertEqual([], lost(12000, 102000, Trace)),
    ?assert(lists:member({12000, n05, resumed}, Trace)),
    ?assert(lists:member({12000, n06, {slow, 0}}, Trace)),
    ?assertMatch(#{connected := 1.0, virtual_ms := 102000}, Result).

what_steps_bring_with_them_is_done_before_the_end_test() ->
    {#{virtual_ms := Ms}, Trace} = play(?MESH, [{at, 10000, {pause, n04, 4000}}]),
    ?assertEqual([{10000, n04, paused}, {14000, n04, resumed}], pauses(Trace)),
    ?assertEqual(104000, Ms).

%% Churn and broadcasts

churn_kills_a_share_each_second_and_starts_as_many_again_for_so_long_test() ->
    {Result, Trace} = play(mesh(#{nodes => 20}), [{at, 10000, {churn, 0.1, 5000}}, {at, 25000, {expect, {connected, 0}}}]),
    Killed = [Ms || {Ms, _, killed} <- Trace],
    Back = [Ms || {Ms, _} <- starts(Trace), Ms >= 10000],
    %% 2 of 20 each second.
    ?assert(length(Killed) >= 8 andalso length(Killed) =< 10),
    ?assert(lists:min(Killed) < 11000 andalso lists:max(Killed) > 14000),
    ?assert(lists:max(Killed ++ Back) < 15000),
    ?assert(length(Killed) - length(Back) =< 1),
    ?assertEqual(20 - length(Killed) + length(Back), maps:get(alive, Result)).

heal_ends_churn_test() ->
    {_, Trace} = play(mesh(#{nodes => 20}), [{at, 10000, {churn, 0.2, 20000}}, {at, 12000, heal}, {at, 29000, heal}]),
    Killed = [Ms || {Ms, _, killed} <- Trace],
    ?assert(length(Killed) > 4),
    ?assert(lists:max(Killed) =< 12000).

each_of_them_broadcasts_so_many_one_each_so_long_test() ->
    {Result, Trace} = play(?MESH, [{at, 10000, {broadcast, [n02, n03], 3, 500}}]),
    Sent = [{Ms, Node} || {Ms, Node, {note, {sends, _}}} <- Trace],
    ?assertEqual([{Ms, Node} || Ms <- [10000, 10500, 11000], Node <- [n02, n03]], Sent),
    ?assertEqual(6, length(lists:usort([Id || {_, _, {note, {sends, Id}}} <- Trace]))),
    ?assertEqual(60, length([E || {_, _, {notice, {broadcast, _, _}}} = E <- Trace])),
    ?assertMatch(#{delivered := 1.0, virtual_ms := 101000}, Result).

the_dead_do_not_broadcast_test() ->
    {_, Trace} = play(?MESH, [{at, 10000, {broadcast, n04, 5, 1000}}, {at, 12500, {kill, n04}}]),
    ?assertEqual([10000, 11000, 12000], [Ms || {Ms, n04, {note, {sends, _}}} <- Trace]).

%% Expectations

what_holds_is_told_in_the_trace_and_fails_nowhere_test() ->
    All = [{connected, 1.0}, {delivered, 1.0}, symmetric, {neighbours, 9, 9}, {no, false_death}],
    {Result, Trace} = play(?MESH, [{at, 10000, {broadcast, n01, 2, 100}} | [{at, 15000, {expect, E}} || E <- All]]),
    ?assertMatch(#{failed := [], expectations := 5, steps := 6}, Result),
    ?assertMatch(#{components := 1, active_min := 9, active_mean := 9.0, active_max := 9}, Result),
    ?assertEqual([{15000, world, {note, {holds, E}}} || E <- All], [E || {_, world, {note, {holds, _}}} = E <- Trace]).

%% On purpose: two of four were cut off for long enough to be given up.
an_expectation_that_fails_is_told_with_its_place_its_time_and_what_was_test() ->
    Script = <<
        "{cluster, #{nodes => 4, strategy => cliques}}.\n"
        "{at, 5000, {partition, [n1, n2]}}.\n\n"
        "{at, 60000, {expect,\n  {connected, 0.75}}}.\n"
        "{then, 1000, {kill, n3}}.\n"
    >>,
    {ok, Parsed} = atoll_sim_script:parse(Script),
    {Result, Trace} = played(Parsed, #{}),
    Expectation = {connected, 0.75},
    ?assertMatch(
        #{failed := [#{place := {line, 4}, ms := 60000, expectation := Expectation, was := 0.5}], expectations := 1},
        Result
    ),
    ?assert(lists:member({60000, world, {note, {fails, Expectation, 0.5}}}, Trace)),
    %% The script goes on.
    ?assertMatch(#{alive := 3, steps := 3}, Result).

who_has_too_few_neighbours_or_too_many_is_named_test() ->
    {#{failed := Failed}, _} = play(?MESH, [
        {at, 10000, {kill, n10}}, {at, 10000, {expect, {neighbours, 8, 8}}},
        {at, 20000, {kill, [n08, n09]}}, {at, 20000, {expect, {neighbours, 7, 9}}}, {then, 0, {expect, {neighbours, 0, 5}}}
    ]),
    %% Neighbours that do not live count for nothing.
    Left = [{Node, 6} || Node <- lists:sublist(names(10), 7)],
    ?assertMatch([#{was := Left, ms := 20000}, #{was := Left}], Failed).

the_first_failure_comes_first_test() ->
    {#{failed := Failed}, _} = play(?MESH, [
        {at, 10000, {kill, {nodes, 2, 10}}}, {at, 10000, {expect, symmetric}},
        {at, 11000, {partition, [n01]}}, {at, 11000, {start, n02}},
        {at, 12000, {expect, {connected, 1.0}}}, {at, 12500, {expect, {connected, 0.6}}}
    ]),
    ?assertMatch([#{place := {term, 6}, ms := 12000}, #{place := {term, 7}, ms := 12500}], Failed).

connected_is_the_share_of_the_living_in_one_part_test() ->
    Expected = [{connected, 0.71}, {connected, 0.7}],
    {#{failed := Failed}, _} = play(
        ?MESH, [{at, 10000, {partition, [{nodes, 1, 3}]}} | [{at, 90000, {expect, E}} || E <- Expected]]
    ),
    ?assertMatch([#{expectation := {connected, 0.71}, was := 0.7}], Failed).

delivered_is_the_share_of_what_is_owed_so_far_test() ->
    {#{failed := Failed, delivered := Delivered}, _} = play(?MESH, [
        {at, 10000, {loss, n01, all, 1}}, {at, 10000, {broadcast, n01, 1, 0}},
        {at, 10100, {expect, {delivered, 0.2}}}, {at, 10100, {expect, {delivered, 0.1}}}
    ]),
    ?assertMatch([#{expectation := {delivered, 0.2}, was := 0.1}], Failed),
    ?assertEqual(1.0, Delivered).

symmetric_names_the_links_that_only_one_end_knows_test() ->
    %% The neighbours have heard its farewell, and then do not hear that it parts from them.
    {#{failed := Failed, symmetric := Symmetric}, _} = play(?MESH, [
        {at, 10000, {leave, n04}}, {at, 10000 + ?TRAVEL_MS + 1, {cut, n04, all}}, {at, 10900, {expect, symmetric}},
        {at, 11100, {expect, symmetric}}
    ]),
    ?assertMatch([#{ms := 10900, was := [_ | _]}], Failed),
    [#{was := Was}] = Failed,
    ?assertEqual([{Node, n04} || Node <- names(10) -- [n04]], Was),
    ?assertEqual(1.0, Symmetric).

false_deaths_are_named_and_those_of_the_dead_are_none_test() ->
    {#{failed := Failed, false_deaths := Count}, _} = play(?MESH, [
        {at, 10000, {kill, n09}}, {at, 50000, {expect, {no, false_death}}},
        {at, 50000, {partition, [n01]}}, {at, 140000, {expect, {no, false_death}}}
    ]),
    ?assertMatch([#{ms := 140000, expectation := {no, false_death}, was := [_ | _]}], Failed),
    [#{was := Was}] = Failed,
    ?assertEqual([], Was -- (names(10) -- [n09])),
    ?assert(Count >= length(Was)).

%% The script as a whole

steps_of_one_time_happen_in_the_order_of_the_script_and_are_told_test() ->
    Steps = [{kill, n04}, {restart, n04, fresh}, {kill, n04}, {start, n04}],
    {_, Trace} = play(?MESH, [{at, 10000, Step} || Step <- Steps]),
    ?assertEqual([{10000, world, {note, {fault, Step}}} || Step <- Steps], [E || {_, _, {note, {fault, _}}} = E <- Trace]),
    ?assertMatch([killed, {started, _}, killed, {started, _}], [What || {_, n04, What} <- of_lives(since(10000, Trace))]).

a_script_without_steps_is_a_cluster_that_settles_test() ->
    {Result, Trace} = play(?MESH, []),
    ?assertMatch(
        #{
            strategy := mesh, nodes := 10, seed := 1, steps := 0, expectations := 0, failed := [], alive := 10,
            connected := 1.0, symmetric := 1.0, delivered := 1.0, false_deaths := 0, virtual_ms := 90000
        },
        Result
    ),
    ?assertEqual(10, length(starts(Trace))).

the_seed_that_is_told_takes_the_place_of_the_scripts_test() ->
    Steps = [{at, 10000, {kill, {random, 3}}}],
    Killed = fun(Cluster, Options) ->
        {#{seed := Seed}, Trace} = play(maps:merge(?MESH, Cluster), Options, Steps),
        {Seed, [Node || {_, Node, killed} <- Trace]}
    end,
    ?assertEqual(Killed(#{seed => 9}, #{}), Killed(#{seed => 3}, #{seed => 9})),
    ?assertNotEqual(element(2, Killed(#{seed => 9}, #{})), element(2, Killed(#{seed => 3}, #{}))).

a_name_that_is_no_node_is_an_error_and_nothing_is_played_test() ->
    {ok, Script} = atoll_sim_script:check([{cluster, ?MESH}, {at, 1, heal}, {at, 2, {kill, [n01, n11]}}]),
    Error = {error, {none, {term, 3}, {no_node, n11}}},
    ?assertEqual(Error, atoll_sim_play:check(Script)),
    ?assertEqual(Error, atoll_sim_play:run(Script, #{trace => fun(_, _, _) -> error(played) end})),
    {ok, Good} = atoll_sim_script:check([{cluster, ?MESH}, {at, 2, {kill, [n01, n10]}}]),
    ?assertEqual(ok, atoll_sim_play:check(Good)).

progress_is_told_each_second_test() ->
    {ok, Script} = atoll_sim_script:check([{cluster, #{nodes => 2}}]),
    {ok, _} = atoll_sim_play:run(Script, #{progress => fun(Ms) -> self() ! {progress, Ms} end}),
    ?assertEqual([1000 * N || N <- lists:seq(1, 90)], flush(progress)).

%% Playing

play(Cluster, Steps) -> play(Cluster, #{}, Steps).

played_with_messages(Steps) -> play(?MESH, #{messages => true}, Steps).

play(Cluster, Options, Steps) ->
    {ok, Script} = atoll_sim_script:check([{cluster, Cluster} | Steps]),
    played(Script, Options).

%% The result, and all that was seen in the order in which it was.
played(Script, Options) ->
    Tag = make_ref(),
    {ok, Result} = atoll_sim_play:run(Script, Options#{
        trace => fun(Now, Where, Sight) -> self() ! {Tag, {Now, Where, Sight}} end
    }),
    {Result, flush(Tag)}.

flush(Tag) ->
    receive
        {Tag, Term} -> [Term | flush(Tag)]
    after 0 -> []
    end.

names(Count) -> [list_to_atom(lists:flatten(io_lib:format("n~2..0b", [N]))) || N <- lists:seq(1, Count)].

%% What is in a trace

since(From, Trace) -> [E || {Ms, _, _} = E <- Trace, Ms >= From].

starts(Trace) -> [{Ms, Node} || {Ms, Node, {started, _}} <- Trace].

of_lives(Trace) ->
    [E || {_, _, What} = E <- Trace, What =:= killed orelse What =:= {note, left} orelse element(1, What) =:= started].

pauses(Trace) -> [E || {_, _, What} = E <- Trace, lists:member(What, [paused, stalled, resumed])].

is_message(What) -> lists:member(What, [sent, got]).

%% Ways of messages, from whom to whom, from one time until before another.
sent(From, To, Trace) -> [{A, B} || {Ms, A, {sent, B, _}} <- Trace, From =< Ms, Ms < To].
lost(From, To, Trace) -> [{A, B} || {Ms, A, {lost, B, _}} <- Trace, From =< Ms, Ms < To].
got(From, To, Trace) -> [{A, B} || {Ms, B, {got, A, _}} <- Trace, From =< Ms, Ms < To].

is_within({A, B}, Parts) ->
    lists:any(fun(Part) -> lists:member(A, Part) andalso lists:member(B, Part) end, Parts).

%% How long each broadcast that A sent to B in that time was on its way.
delays(A, B, From, To, Trace) ->
    Sent = [{Message, Ms} || {Ms, Node, {sent, Peer, Message}} <- Trace, Node =:= A, Peer =:= B, From =< Ms, Ms < To],
    [
        At - Ms
     || {{_, _, broadcast, {gossip, _, _, _, _, _}} = Message, Ms} <- Sent,
        {At, Node, {got, Peer, Got}} <- Trace,
        Node =:= B,
        Peer =:= A,
        Got =:= Message
    ].

mesh(Different) -> maps:merge(?MESH, Different).
