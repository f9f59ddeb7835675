%% SPDX-License-Identifier: Apache-2.0
%% The pure parts: what is drawn, what is refused, what is broken, what is counted.
-module(atoll_chaos_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% Drawing

the_same_seed_draws_the_same_test() ->
    ?assertEqual(steps(7, 100), steps(7, 100)),
    ?assertNotEqual(steps(7, 100), steps(8, 100)).

faults_come_at_their_rate_test() ->
    ?assertEqual([250 * I || I <- lists:seq(1, 40)], [Ms || [{Ms, _} | _] <- steps(1, 40)]),
    ?assertEqual(40, length(steps(1, 1000))).

each_kind_is_drawn_test() ->
    Drawn = lists:append(steps(2, 40)),
    ?assertEqual([cut, kill_process, pause, restart, slow], lists:usort([element(1, Step) || {_, Step} <- Drawn])),
    %% They are steps of a script.
    ?assertEqual([], [Step || {_, Step} <- Drawn, {ok, Step} =/= atoll_sim_step:check(Step, 4)]),
    %% Two nodes are cut off from each other, never one from itself.
    ?assertEqual([], [C || {_, {cut, A, A, _} = C} <- Drawn]),
    [?assert(lists:member({Ms, {cut, B, A, For}}, Drawn)) || {Ms, {cut, A, B, For}} <- Drawn].

a_slow_node_is_so_for_a_while_test() ->
    Drawn = lists:append([S || S <- steps(3, 40)]),
    Begun = [{Ms, Who} || {Ms, {slow, Who, 50}} <- Drawn],
    ?assertMatch([_, _ | _], Begun),
    [
        ?assertMatch([_ | _], [End || {End, {slow, W, 0}} <- Drawn, W =:= Who, End - Ms >= 200, End - Ms =< 2000])
     || {Ms, Who} <- Begun
    ],
    ?assertEqual(length(Begun), length([End || {_, {slow, _, 0}} = End <- Drawn])).

the_processes_that_are_drawn_are_those_that_were_asked_for_by_their_weights_test() ->
    Drawn = fun(What) ->
        Source = atoll_chaos_draw:new((options(1, [process]))#{what := What, rate := 100}),
        [{Who, W} || {_, {kill_process, Who, W}} <- lists:append(draw(Source, 1000))]
    end,
    ?assertEqual([{application, shop}], lists:usort([W || {_, W} <- Drawn({application, shop})])),
    Weighted = Drawn([{3, {application, shop}}, {1, {any_name, global}}]),
    ?assertEqual(1000, length(Weighted)),
    Shop = length([W || {_, {application, _} = W} <- Weighted]),
    ?assert(Shop > 680 andalso Shop < 820, Shop),
    %% Who has a name is looked for on all nodes, anything else on one.
    ?assertEqual([alive], lists:usort([Who || {Who, {any_name, global}} <- Weighted])),
    ?assertEqual([{nodes, I, I} || I <- [1, 2, 3, 4]], lists:usort([Who || {Who, {application, _}} <- Weighted])).

faults_begin_later_and_come_ever_faster_test() ->
    Source = atoll_chaos_draw:new((options(1, [process]))#{rate := {1, 9}, after_ms := 2000}),
    Times = [Ms || [{Ms, _} | _] <- draw(Source, 1000)],
    %% Five a second on average, in the ten seconds after the first two.
    ?assertEqual(50, length(Times)),
    ?assert(hd(Times) > 2500),
    ?assertEqual(12000, lists:last(Times)),
    ?assertEqual(15, length([Ms || Ms <- Times, Ms =< 7000])).

a_jitter_moves_faults_and_changes_none_of_those_without_test() ->
    Times = fun(Jitter) -> [Ms || [{Ms, _} | _] <- draw(atoll_chaos_draw:new((options(3, [process]))#{jitter := Jitter}), 1000)] end,
    ?assertEqual(Times(0), Times(0.0)),
    Gaps = [B - A || {A, B} <- lists:zip(lists:droplast(Times(0.5)), tl(Times(0.5)))],
    ?assertEqual([], [Gap || Gap <- Gaps, Gap < 124 orelse Gap > 376]),
    ?assert(length(lists:usort(Gaps)) > 10).

one_node_alone_is_cut_off_from_nobody_test() ->
    Source = atoll_chaos_draw:new((options(1, [cut, pause]))#{nodes := 1}),
    ?assertEqual([pause], lists:usort([element(1, Step) || {_, Step} <- lists:append(draw(Source, 40))])),
    ?assertError({badmatch, []}, atoll_chaos_draw:new((options(1, [cut]))#{nodes := 1})).

steps(Seed, Count) ->
    draw(atoll_chaos_draw:new(options(Seed, atoll_chaos_draw:kinds())), Count).

options(Seed, Kinds) ->
    #{nodes => 4, rate => 4, jitter => 0, after_ms => 0, kinds => Kinds, what => any, ms => 10000, seed => Seed}.

draw(Source0, Count) ->
    case Count > 0 andalso atoll_chaos_draw:due(Source0) of
        {ok, _} ->
            {Steps, Source} = atoll_chaos_draw:next(Source0),
            [Steps | draw(Source, Count - 1)];
        _ ->
            []
    end.

%% Refusing

what_cannot_be_done_is_refused_where_it_stands_test_() ->
    All = [start, kill, pause, slow],
    Switch = "stock distribution has no such switch, nor has the carrier; this is for the simulator",
    Carrier = "stock distribution has no such switch; it takes the carrier on all nodes, with {faults,true}",
    Overlay = "it is about the overlay, and these nodes run none",
    [
        {Text, ?_assertEqual(Expected, refused(Text, Able))}
     || {Text, Able, Expected} <- [
            {"{at, 1, heal}.\n{at, 1, {kill, all}}.", All, ok},
            {"{at, 1, {group, all, {delete, g}}}.\n{at, 1, {kill_process, all, any}}.", [], ok},
            {"{at, 1, {cut, alive, dead, 5}}.\n{at, 1, {partition, [all]}}.", [], ok},
            {"{at, 1, {every, 5, 9, {kill_process, all, {any_name, {group, g}}}}}.\n{at, 1, {kill_process, all, {any_name, global}}}.", [], ok},
            {"{at, 1, {one_of, [{1, {kill_process, all, any}}, {2, {kill, all}}]}}.", [kill], ok},
            {"{at, 1, {one_of, [{1, {kill_process, all, any}}, {2, {latency, regions}}]}}.", All,
                "line 1: in {one_of,[{1,{kill_process,all,any}},{2,{latency,regions}}]}: " ++ Switch},
            {"{at, 1, {every, 5, 9, {latency, regions}}}.", All, "line 1: in {every,5,9,{latency,regions}}: " ++ Switch},
            {"{at, 1, {every, {ramp, 5, 1}, 9, {pause, {nodes, 7, 7}}}}.", All, "line 1: in {pause,{nodes,7,7}}: there is no node number 7, there are 6"},
            {"{at, 1, heal}.\n{at, 1, {latency, regions}}.", All, "line 2: in {latency,regions}: " ++ Switch},
            {"{at, 1, {duplicate, 1}}.", All, "line 1: in {duplicate,1}: " ++ Switch},
            {"{at, 1, {reorder, 1, 1}}.", All, "line 1: in {reorder,1,1}: " ++ Switch},
            {"{at, 1, {loss, all, all, 1}}.", All, "line 1: in {loss,all,all,1}: " ++ Carrier},
            {"{at, 1, {delay, all, all, 5}}.", All, "line 1: in {delay,all,all,5}: " ++ Carrier},
            {"{at, 1, {black_hole, all, all}}.", All, "line 1: in {black_hole,all,all}: " ++ Carrier},
            {"{at, 1, {lane, all, all, 0, cut}}.", All, "line 1: in {lane,all,all,0,cut}: " ++ Carrier},
            {"{at, 1, {loss, 1}}.\n{at, 1, {delay, all, all, 5}}.\n{at, 1, {black_hole, all, all, 5}}.\n"
             "{at, 1, {lane, all, all, 63, black_hole}}.", [carrier], ok},
            {"{at, 1, {latency, regions}}.", [carrier], "line 1: in {latency,regions}: " ++ Switch},
            {"{at, 1, {expect, symmetric}}.", All, "line 1: in {expect,symmetric}: " ++ Overlay},
            {"{at, 1, {leave, all}}.", All, "line 1: in {leave,all}: " ++ Overlay},
            {"{at, 1, {broadcast, all, 1, 1}}.", All, "line 1: in {broadcast,all,1,1}: " ++ Overlay},
            {"{at, 1, {broadcast, all, 1, 1}}.\n{at, 1, {leave, all}}.\n{at, 1, {expect, symmetric}}.", [overlay], ok},
            {"{at, 1, {restart, all, fresh}}.", [kill, pause, slow],
                "line 1: in {restart,all,fresh}: nobody here can start a node again"},
            {"{at, 1, {churn, 0.5, 1}}.", [kill], "line 1: in {churn,0.5,1}: nobody here can start a node again"},
            {"{at, 1, {pause, all}}.", [],
                "line 1: in {pause,all}: the node must run on this machine, where it can be sent a signal"},
            {"{at, 1, {kill, {nodes, 5, 9}}}.", All, "line 1: in {kill,{nodes,5,9}}: there is no node number 9, there are 6"},
            {"{cluster, #{loss => 0.1}}.", All,
                "in {cluster,#{loss=>0.1}}: stock distribution has no such switch; in the simulator there is"},
            {"{at, 1, {bulk, all, all, full}}.", [], ok},
            {"{at, 1, {stall, all, 5}}.", All,
                "line 1: in {stall,all,5}: no process of a node is held back alone; pause stops the whole node, and this is "
                "for the simulator"},
            {"{cluster, #{formed => join}}.", All,
                "in {cluster,#{formed=>join}}: nodes are started with their contacts; those of the simulator alone are "
                "formed in another way"},
            {"{at, 1, {restart, all, alone}}.", All,
                "line 1: in {restart,all,alone}: a node starts again with the contacts that it had; this is for the simulator"},
            {"{cluster, #{start => contacts}}.", [kill],
                "in {start,contacts}: all nodes run at the beginning, and none can be started here"}
        ]
    ].

refused(Text, Able) ->
    {ok, Script} = atoll_sim_script:parse(list_to_binary(Text)),
    case atoll_chaos_check:script(Script, 6, Able) of
        ok -> ok;
        {error, Error} -> unicode:characters_to_list(atoll_sim_script:format_error(Error))
    end.

an_option_that_is_wrong_has_its_sentence_test_() ->
    [
        {Sentence, fun() ->
            {error, Error} = atoll_chaos:start(Options),
            ?assertEqual(Sentence, lists:flatten(atoll_chaos:format_error(Error)))
        end}
     || {Options, Sentence} <- [
            {#{}, "cluster or nodes must be there, and not both"},
            {#{nodes => [a@b], cluster => self(), rate => 1}, "cluster or nodes must be there, and not both"},
            {#{nodes => [a@b]}, "script or rate must be there, and not both"},
            {#{nodes => [], rate => 1}, "nodes must be a list of other nodes, each once"},
            {#{nodes => [node()], rate => 1}, "nodes must be a list of other nodes, each once"},
            {#{nodes => [a@b, c@d, a@b], rate => 1}, "nodes must be a list of other nodes, each once"},
            {#{nodes => [a@b], rate => 0}, "rate must be a number from above 0 to 1,000, or {From, To} of two such"},
            {#{nodes => [a@b], rate => {1, 0}, seconds => 5}, "rate must be a number from above 0 to 1,000, or {From, To} of two such"},
            {#{nodes => [a@b], rate => {1, 5}}, "seconds must be a number: the time in which the rate goes from one to another"},
            {#{nodes => [a@b], rate => 1, jitter => 2}, "jitter must be a share from 0 to 1"},
            {#{nodes => [a@b], rate => 1, start_after => -1}, "start_after must be a number of seconds, 0 or more"},
            {#{nodes => [a@b], script => #{steps => []}, jitter => 0.5}, "jitter is for faults at a rate; a script says it itself"},
            {#{nodes => [a@b], rate => 1, kinds => [storm]}, "kinds must be a list of process, node, pause, cut, slow"},
            {#{nodes => [a@b], script => #{steps => []}, kinds => [cut]},
                "kinds is for faults at a rate; a script says it itself"},
            {#{nodes => [a@b], script => #{steps => []}, seconds => 5, seed => 1},
                "seconds is for faults at a rate; a script says it itself"},
            {#{nodes => [a@b], script => #{steps => []}, what => any}, "what is for faults at a rate; a script says it itself"},
            {#{nodes => [a@b], rate => 1, noise => 1}, "noise is not known"},
            {[], "[] is not a map of options"}
        ]
    ].

%% Damage

a_cut_both_ways_closes_and_one_way_is_unheard_test() ->
    {Acts1, D1} = atoll_chaos_damage:take({cut, [a], [b]}, new()),
    ?assertEqual([{keep_from, b, [], [a]}], Acts1),
    {Acts2, D2} = atoll_chaos_damage:take({cut, [b], [a]}, D1),
    ?assertEqual([{keep_from, a, [b], []}, {keep_from, b, [a], []}], Acts2),
    {Acts3, D3} = atoll_chaos_damage:take({mend, [a], [b]}, D2),
    ?assertEqual([{keep_from, a, [], [b]}, {keep_from, b, [], []}], Acts3),
    ?assertMatch({[{keep_from, a, [], []}], _}, atoll_chaos_damage:take(heal, D3)).

a_partition_replaces_an_earlier_one_test() ->
    {_, D1} = atoll_chaos_damage:take({partition, [[a], [b, c]]}, new()),
    {Acts, _} = atoll_chaos_damage:take({partition, [[a, b], [c]]}, D1),
    ?assertEqual([{keep_from, a, [c], []}, {keep_from, b, [c], []}, {keep_from, c, [a, b], []}], Acts).

who_cannot_hear_is_told_later_test() ->
    {[{pause, a}], D1} = atoll_chaos_damage:take({pause, [a]}, new()),
    {[{kill, b}], D2} = atoll_chaos_damage:take({restart, [b], fresh}, D1),
    {Acts, D3} = atoll_chaos_damage:take({partition, [[a], [b], [c]]}, D2),
    ?assertEqual([{keep_from, c, [a, b], []}], Acts),
    {Started, D4} = atoll_chaos_damage:started(b, D3),
    ?assertEqual([{keep_from, b, [a, c], []}], Started),
    ?assertMatch({[{resume, a}, {keep_from, a, [b, c], []}], _}, atoll_chaos_damage:take({resume, [a]}, D4)).

a_node_that_is_killed_or_paused_is_slow_no_more_test() ->
    {[{slow, a, 50}, {slow, b, 50}], D1} = atoll_chaos_damage:take({slow, [a, b], 50}, new()),
    {Acts, D2} = atoll_chaos_damage:take({kill, [a]}, D1),
    ?assertEqual([{slow, a, 0}, {kill, a}], Acts),
    ?assertMatch({[{slow, b, 0}, {pause, b}], _}, atoll_chaos_damage:take({pause, [b]}, D2)).

what_a_script_killed_stays_dead_and_what_was_to_start_is_started_test() ->
    {_, D1} = atoll_chaos_damage:take({kill, [a]}, new()),
    {_, D2} = atoll_chaos_damage:take({restart, [b], fresh}, D1),
    {_, D3} = atoll_chaos_damage:take({pause, [c]}, D2),
    ?assertEqual([{resume, c}, {start, b}, {rest, a}, {rest, b}, {rest, c}], atoll_chaos_damage:healing(D3)).

new() -> atoll_chaos_damage:new([a, b, c]).

%% With the carrier

with_carrier() -> atoll_chaos_damage:new([a, b, c], faults).

a_cut_one_way_is_a_loss_at_the_end_that_sends_test() ->
    {Acts1, D1} = atoll_chaos_damage:take({cut, [a], [b]}, with_carrier()),
    ?assertEqual([{harm, a, #{b => #{drop => 1}}}], Acts1),
    {Acts2, D2} = atoll_chaos_damage:take({cut, [b], [a]}, D1),
    ?assertEqual([{keep_from, a, [b], []}, {keep_from, b, [a], []}, {harm, a, #{}}], Acts2),
    ?assertMatch({[{keep_from, a, [], []}, {keep_from, b, [], []}], _}, atoll_chaos_damage:take(heal, D2)).

what_is_lost_and_late_is_told_as_a_whole_test() ->
    {[{harm, a, #{b := #{drop := 0.5}}}], D1} = atoll_chaos_damage:take({loss, [a], [b], 0.5}, with_carrier()),
    {Acts2, D2} = atoll_chaos_damage:take({delay, [a, b], [b, c], 20}, D1),
    ?assertEqual(
        [{harm, a, #{b => #{drop => 0.5, delay => 20}, c => #{delay => 20}}}, {harm, b, #{c => #{delay => 20}}}], Acts2
    ),
    %% The last one counts.
    {Acts3, D3} = atoll_chaos_damage:take({delay, [a], [c], 0}, D2),
    ?assertEqual([{harm, a, #{b => #{drop => 0.5, delay => 20}}}], Acts3),
    %% And of losses the largest.
    {Acts4, D4} = atoll_chaos_damage:take({other, {loss, 0.1}}, D3),
    ?assertEqual(#{b => #{drop => 0.5, delay => 20}, c => #{drop => 0.1}}, proplists:get_value(a, [{N, H} || {harm, N, H} <- Acts4])),
    ?assertMatch({[{harm, a, E}, {harm, b, E}, {harm, c, E}], _} when E =:= #{}, atoll_chaos_damage:take(heal, D4)).

%% Who starts again meanwhile is told anew.
whoever_sends_bulk_is_told_to_whom_and_when_it_is_over_test() ->
    {Acts1, D1} = atoll_chaos_damage:take({bulk, [a, b], [b, c], full}, atoll_chaos_damage:new([a, b, c])),
    ?assertEqual([{bulk, a, #{b => full, c => full}}, {bulk, b, #{c => full}}], Acts1),
    {Acts2, D2} = atoll_chaos_damage:take({bulk, [a], [c], 0}, D1),
    ?assertEqual([{bulk, a, #{b => full}}], Acts2),
    {_, D3} = atoll_chaos_damage:take({kill, [a]}, D2),
    ?assertEqual([{bulk, a, #{b => full}}], element(1, atoll_chaos_damage:started(a, D3))),
    ?assertMatch({[{bulk, a, E}, {bulk, b, E}], _} when E =:= #{}, atoll_chaos_damage:take(heal, D2)).

what_is_said_anew_of_the_same_nodes_replaces_what_was_said_test() ->
    {_, D1} = atoll_chaos_damage:take({loss, [a], [b], 0.5}, with_carrier()),
    {Less, D2} = atoll_chaos_damage:take({loss, [a], [b], 0.1}, D1),
    ?assertEqual([{harm, a, #{b => #{drop => 0.1}}}], Less),
    ?assertMatch({[{harm, a, E}], _} when E =:= #{}, atoll_chaos_damage:take({loss, [a], [b], 0}, D2)),
    %% Of others it says nothing.
    {_, D3} = atoll_chaos_damage:take({loss, [a], [b, c], 0.3}, D2),
    ?assertMatch({[], _}, atoll_chaos_damage:take({loss, [a], [b], 0}, D3)),
    {_, D4} = atoll_chaos_damage:take({delay, [a], [b], 20}, with_carrier()),
    ?assertMatch({[{harm, a, E}], _} when E =:= #{}, atoll_chaos_damage:take({delay, [a], [b], 0}, D4)).

a_black_hole_is_told_to_both_ends_test() ->
    {Acts, D1} = atoll_chaos_damage:take({black_hole, [a], [b]}, with_carrier()),
    Hole = #{black_hole => true},
    ?assertEqual([{harm, a, #{b => Hole}}, {harm, b, #{a => Hole}}], Acts),
    ?assertMatch({[{harm, a, E}, {harm, b, E}], _} when E =:= #{}, atoll_chaos_damage:take({fill, [a], [b]}, D1)).

a_node_that_has_started_is_told_what_its_connections_are_test() ->
    {_, D1} = atoll_chaos_damage:take({delay, [a], [b], 20}, with_carrier()),
    {_, D2} = atoll_chaos_damage:take({restart, [a], fresh}, D1),
    ?assertMatch({[{harm, a, #{b := #{delay := 20}}}], _}, atoll_chaos_damage:started(a, D2)).

a_lane_that_is_a_black_hole_is_mended_when_all_heals_and_not_before_test() ->
    {Acts, D1} = atoll_chaos_damage:take({lane, [a], [a, b], 1, black_hole}, with_carrier()),
    ?assertEqual([{lane, a, b, 1, black_hole}], Acts),
    ?assertMatch({[{mend_lanes, a}], _}, atoll_chaos_damage:take(heal, D1)),
    {_, D2} = atoll_chaos_damage:take({lane, [a], [b], 1, cut}, with_carrier()),
    ?assertMatch({[], _}, atoll_chaos_damage:take(heal, D2)),
    {_, D3} = atoll_chaos_damage:take({delay, [a], [c], 20}, D1),
    ?assertMatch({[{harm, a, E}], _} when E =:= #{}, atoll_chaos_damage:take({delay, [a], [c], 0}, D3)),
    ?assertMatch({[{harm, a, E}, {mend_lanes, a}], _} when E =:= #{}, atoll_chaos_damage:take(heal, D3)).

those_that_run_and_are_not_paused_are_awake_test() ->
    {_, D1} = atoll_chaos_damage:take({pause, [a]}, new()),
    {_, D2} = atoll_chaos_damage:take({restart, [b], fresh}, D1),
    ?assertEqual([c], atoll_chaos_damage:awake(D2)),
    {_, D3} = atoll_chaos_damage:started(b, D2),
    {_, D4} = atoll_chaos_damage:take({resume, [a]}, D3),
    ?assertEqual([a, b, c], atoll_chaos_damage:awake(D4)).

%% Seeing

%% Each by the records of a run, in any order, and what the judge then says.
what_is_seen_of_real_nodes_is_judged_as_in_the_simulator_test_() ->
    Begun = [{0, Node, started} || Node <- [a, b, c]],
    Up = [{1, Node, {neighbour_up, Peer}} || {Node, Peer} <- [{a, b}, {b, a}, {c, a}]],
    [
        {Name, [
            ?_assertEqual(Expected, judged(Begun ++ Up ++ Records)),
            ?_assertEqual(Expected, judged(lists:reverse(Begun ++ Up ++ Records)))
        ]}
     || {Name, Records, Expected} <- [
            {"nothing was sent", [], {1.0, []}},
            {"all who had a neighbour got it", [{5, a, {sends, 7}} | [{6, N, {broadcast, a, 7}} || N <- [a, b, c]]], {1.0, []}},
            {"one did not", [{5, a, {sends, 7}} | [{6, N, {broadcast, a, 7}} || N <- [a, b]]], {2 / 3, []}},
            {"the dead are owed nothing", [{5, a, {sends, 7}}, {6, a, {broadcast, a, 7}}, {6, b, {broadcast, a, 7}}, {7, c, killed}], {1.0, []}},
            {"who starts later is owed nothing", [
                {3, c, killed}, {5, a, {sends, 7}}, {6, a, {broadcast, a, 7}}, {6, b, {broadcast, a, 7}}, {7, c, started},
                {8, c, {neighbour_up, a}}
            ], {1.0, []}},
            {"the dead are held for dead", [{3, c, killed}, {5, a, {dead, c}}], {1.0, []}},
            {"the paused too", [{3, c, paused}, {5, a, {dead, c}}, {9, c, resumed}, {10, b, {dead, c}}], {1.0, []}},
            {"the living are not", [{5, a, {dead, c}}], {1.0, [c]}},
            {"who goes on lives", [{3, c, paused}, {4, c, resumed}, {5, a, {dead, c}}], {1.0, [c]}},
            {"a late verdict is on the life that is over", [
                {3, c, killed}, {4, c, started}, {5, a, {dead, c}}, {6, a, {member_up, c}}
            ], {1.0, []}},
            {"a verdict on the new life is one", [
                {3, c, killed}, {4, c, started}, {5, a, {dead, c}}, {6, a, {member_up, c}}, {7, a, {dead, c}}
            ], {1.0, [c]}},
            {"who is reborn is held for alive, and may be killed", [
                {5, a, {dead, c}}, {6, c, reborn}, {7, a, {member_up, c}}, {8, c, killed}, {9, a, {dead, c}}
            ], {1.0, [c]}}
        ]
    ].

judged(Records) ->
    Seen = atoll_chaos_sights:seen(Records),
    Falsely =
        case atoll_sim_expect:holds({no, false_death}, [], Seen) of
            true -> [];
            {false, Nodes} -> Nodes
        end,
    #{delivered := Delivered} = atoll_sim_expect:facts([], Seen),
    {Delivered, Falsely}.

%% The log

times_are_counted_test() ->
    Events = [E#{fault => kill_process} || E <-
        [#{outcome => done, recovered_ms => Ms} || Ms <- lists:seq(1, 200)] ++
        [#{outcome => done, recovered_ms => never}, #{outcome => passed_over, recovered_ms => none},
         #{outcome => failed, recovered_ms => none}]],
    ?assertEqual(
        [{kill_process, #{count => 203, done => 201, passed_over => 1, failed => 1, recovered => 200, never => 1,
                          median_ms => 100.5, p99_ms => 198, max_ms => 200}}],
        atoll_chaos_log:summary(Events)
    ),
    ?assertEqual([], atoll_chaos_log:summary([])).

events_keep_their_order_and_are_amended_test() ->
    {A, Log1} = atoll_chaos_log:add(#{fault => a}, atoll_chaos_log:new()),
    {B, Log2} = atoll_chaos_log:add(#{fault => b}, Log1),
    Log = atoll_chaos_log:amend(A, #{why => x}, Log2),
    ?assertEqual([#{fault => a, why => x}, #{fault => b}], atoll_chaos_log:events(Log)),
    ?assertEqual(#{fault => b}, atoll_chaos_log:find(B, Log)).

a_log_keeps_the_last_events_and_counts_the_others_test() ->
    Log0 = lists:foldl(
        fun(N, Log) -> element(2, atoll_chaos_log:add(#{fault => N}, Log)) end, atoll_chaos_log:new(3), lists:seq(1, 5)
    ),
    %% What became of one that is gone is of no interest any more.
    Log = atoll_chaos_log:amend(4, #{why => x}, atoll_chaos_log:amend(1, #{why => x}, Log0)),
    ?assertEqual([#{fault => 3}, #{fault => 4, why => x}, #{fault => 5}], atoll_chaos_log:events(Log)),
    ?assertEqual(2, atoll_chaos_log:left_out(Log)),
    ?assertEqual(0, atoll_chaos_log:left_out(atoll_chaos_log:new())).

%% The median and the percentile are among, or between, what was measured, in order.
properties_test_() ->
    atoll_prop:tests([{summary, prop_summary(), 300}, {healed, prop_healed(), 300}]).

prop_summary() ->
    ?FORALL(Times, non_empty(list(choose(0, 1000))), begin
        Events = [#{fault => f, outcome => done, recovered_ms => T} || T <- Times],
        [{f, #{median_ms := Median, p99_ms := P99, max_ms := Max}}] = atoll_chaos_log:summary(Events),
        lists:min(Times) =< Median andalso Median =< P99 andalso P99 =< Max andalso Max =:= lists:max(Times) andalso
            lists:member(P99, Times) andalso 2 * length([T || T <- Times, T =< Median]) >= length(Times)
    end).

%% Whatever a script does, after a heal nobody is kept from anybody, stopped or slow.
prop_healed() ->
    ?FORALL(Steps, list(step()), begin
        {_, World} = lists:foldl(fun perform/2, {new(), #{}}, deeds(Steps ++ [heal])),
        [Left || {_, State} = Left <- maps:to_list(World), State =/= whole] =:= []
    end).

perform(Deed, {Damage0, World}) ->
    {Acts, Damage} = atoll_chaos_damage:take(Deed, Damage0),
    Done = lists:foldl(fun act/2, World, Acts),
    case Deed of
        {Start, Nodes, _} when Start =:= start; Start =:= restart ->
            lists:foldl(
                fun(Node, {D0, W}) ->
                    {More, D} = atoll_chaos_damage:started(Node, D0),
                    {D, lists:foldl(fun act/2, W, More)}
                end,
                {Damage, Done},
                Nodes
            );
        _ ->
            {Damage, Done}
    end.

act({kill, Node}, World) -> maps:filter(fun({_, N}, _) -> N =/= Node end, World);
act({pause, Node}, World) -> World#{{pause, Node} => stopped};
act({resume, Node}, World) -> World#{{pause, Node} => whole};
act({slow, Node, 0}, World) -> World#{{slow, Node} => whole};
act({slow, Node, Ms}, World) -> World#{{slow, Node} => Ms};
act({keep_from, Node, [], []}, World) -> World#{{from, Node} => whole};
act({keep_from, Node, Closed, Unheard}, World) -> World#{{from, Node} => {Closed, Unheard}}.

step() ->
    oneof([
        {oneof([kill, pause, resume, start]), some()},
        {restart, some(), fresh},
        {pause, some(), choose(0, 3)},
        {slow, some(), oneof([0, 50])},
        {partition, [some()]},
        {cut, some(), some()},
        {cut, some(), some(), choose(0, 3)},
        heal
    ]).

deeds(Steps) ->
    {_, Empty} = atoll_sim_plan:new([a, b, c], #{contacts => 1, start => all, seed => 1}),
    Timed = lists:zip(lists:seq(1, length(Steps)), Steps),
    all(lists:foldl(fun({Ms, Step}, Plan) -> atoll_sim_plan:add(Ms, Step, none, Plan) end, Empty, Timed)).

all(Plan0) ->
    case atoll_sim_plan:next(Plan0) of
        {_, Deeds, _, Plan} -> Deeds ++ all(Plan);
        none -> []
    end.

some() -> oneof([[a], [b], [c], [a, b], [b, c]]).

%% Signals

a_signal_is_for_one_s_own_processes_unless_one_is_root_test() ->
    Own = list_to_integer(os:getpid()),
    Uid = atoll_cluster_os:uid(),
    ?assert(atoll_chaos_shell:may_signal(Own, Uid)),
    ?assert(atoll_chaos_shell:may_signal(Own, 0)),
    ?assertNot(atoll_chaos_shell:may_signal(Own, Uid + 1)),
    %% There is no such process.
    ?assertNot(atoll_chaos_shell:may_signal(1 bsl 30, Uid + 1)).

%% Room

a_supervisor_s_room_is_read_from_its_state_test() ->
    Now = erlang:monotonic_time(),
    Second = erlang:convert_time_unit(Now, native, second),
    Ms = erlang:convert_time_unit(Now, native, millisecond),
    State = fun(Intensity, Period, Restarts) -> {state, n, one_for_one, c, d, Intensity, Period, Restarts, 0, never, m, a} end,
    ?assertEqual(3, atoll_chaos_fall:room(State(3, 5, []), Now)),
    ?assertEqual(1, atoll_chaos_fall:room(State(3, 5, [Second, Second - 4, Second - 6]), Now)),
    ?assertEqual(1, atoll_chaos_fall:room(State(3, 5, [Ms, Ms - 4900, Ms - 5100]), Now)),
    ?assertEqual(infinity, atoll_chaos_fall:room(State(undefined, 5, []), Now)),
    ?assertEqual(infinity, atoll_chaos_fall:room(other, Now)).
