%% SPDX-License-Identifier: Apache-2.0
%% A script's groups and names in virtual time, in one world with the overlay, and the plan
%% from which they are played.
-module(atoll_sim_groups_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

members_come_and_go_test() ->
    #{groups := Groups} = run([
        {at, 0, {group, {nodes, 1, 1}, {new, g, {nodes, 1, 4}}}},
        {at, {10, s}, {group, {nodes, 2, 2}, {add, g, {nodes, 5, 5}}}},
        {at, {20, s}, {group, {nodes, 3, 3}, {remove, g, {nodes, 1, 1}}}},
        {at, {20, s}, {group, {nodes, 6, 6}, {new, h, {nodes, 5, 6}}}},
        {at, {30, s}, {group, {nodes, 5, 5}, {delete, h}}}
    ]),
    G = {g, [n2, n3, n4, n5]},
    ?assertEqual(#{n1 => [], n2 => [G], n3 => [G], n4 => [G], n5 => [G], n6 => []}, Groups).

a_dead_node_is_left_out_and_one_that_starts_again_is_back_test() ->
    #{groups := Groups} = run([
        {at, 0, {kill, {nodes, 4, 4}}},
        {at, {1, s}, {group, {nodes, 1, 1}, {new, g, {nodes, 1, 4}}}},
        {at, {20, s}, {restart, {nodes, 2, 2}, fresh}},
        {at, {20, s}, {kill, {nodes, 3, 3}}}
    ]),
    G = {g, [n1, n2, n3]},
    ?assertEqual(#{n1 => [G], n2 => [G], n5 => [], n6 => []}, Groups).

both_sides_of_a_cut_are_merged_test_() ->
    [
        {lists:flatten(io_lib:format("~p", [Cut])), fun() ->
            #{groups := Groups} = run([
                {at, 0, {group, {nodes, 1, 1}, {new, g, {nodes, 1, 4}}}},
                {at, {10, s}, Cut},
                {at, {11, s}, {group, {nodes, 1, 1}, {add, g, {nodes, 5, 5}}}},
                {at, {40, s}, heal}
            ]),
            G = {g, [n1, n2, n3, n4, n5]},
            ?assertEqual([G], maps:get(n4, Groups)),
            ?assertEqual([G], maps:get(n5, Groups))
        end}
     || Cut <- [
            {partition, [{nodes, 3, 4}]},
            {cut, {nodes, 1, 2}, {nodes, 3, 4}, {20, s}},
            {pause, {nodes, 3, 4}, {20, s}}
        ]
    ].

what_means_nothing_here_is_passed_over_and_counted_test() ->
    ?assertMatch(
        #{passed_over := 1, groups := #{n1 := [{g, [n1]}]}},
        run([
            {at, 0, {kill_process, all, any}},
            {at, 0, {group, {nodes, 1, 1}, {new, g, {nodes, 1, 1}}}}
        ])
    ).

%% Of all names of the group one is drawn, wherever its process is; the others stay.
any_name_of_a_group_is_killed_wherever_its_process_is_test() ->
    Begun = [
        {at, 0, {group, {nodes, 1, 1}, {new, g, {nodes, 1, 4}}}},
        {at, {10, s}, {name, {nodes, 2, 2}, {register, g, shop}}},
        {at, {10, s}, {name, {nodes, 4, 4}, {register, g, desk}}}
    ],
    Kill = fun(Who) -> Begun ++ [{at, {20, s}, {kill_process, Who, {any_name, {group, g}}}}] end,
    Left = fun(Who, Seed) ->
        {ok, Script} = script(Kill(Who)),
        {ok, #{names := #{n1 := Names, n4 := Names}, passed_over := PassedOver}} = atoll_sim_play:run(Script, #{seed => Seed}),
        {[Name || {g, Name, _} <- Names], PassedOver}
    end,
    ?assertEqual([{[desk], 0}, {[shop], 0}], lists:usort([Left(all, Seed) || Seed <- lists:seq(1, 6)])),
    %% Of these nodes' processes.
    ?assertEqual({[shop], 0}, Left({nodes, 3, 6}, 1)),
    ?assertEqual({[desk, shop], 1}, Left({nodes, 5, 6}, 1)),
    %% And as long as there is one.
    #{names := Names, passed_over := 3} = run(Begun ++ [
        {at, {20, s}, {every, {1, s}, {5, s}, {kill_process, all, {any_name, {group, g}}}}},
        {then, {10, s}, {expect, {no, {name, g, shop}}}}
    ]),
    ?assertEqual([], lists:append(maps:values(Names))).

%% Each time it is looked at counts.
what_is_expected_again_and_again_is_counted_each_time_test() ->
    {ok, Script} = script([
        {at, {20, s}, {every, {5, s}, {20, s}, {expect, members}}}, {at, 34990, {kill, {nodes, 6, 6}}}
    ]),
    ?assertMatch({ok, #{expectations := 4, failed := [#{ms := 35000, place := {term, 2}}]}}, atoll_sim_play:run(Script, #{})).

%% Names, and what is expected of them

names_come_and_go_with_their_nodes_test() ->
    Found = {expect, {name, g, shop, n2}},
    #{failed := Failed, names := Names} = run([
        {at, 0, {group, n1, {new, g, {nodes, 1, 4}}}},
        {at, {5, s}, {name, n2, {register, g, shop}}},
        {then, {1, s}, Found},
        %% It is taken.
        {then, 0, {name, n3, {register, g, shop}}},
        {then, {1, s}, Found},
        {then, 0, {name, n3, {re_register, g, shop}}},
        {then, {1, s}, {expect, {name, g, shop, n3}}},
        {then, 0, {name, n4, {register, g, desk}}},
        {then, 0, {restart, n3, fresh}},
        {then, {1, s}, {expect, {no, {name, g, shop}}}},
        {then, {4, s}, {name, n1, {unregister, g, desk}}},
        {then, {1, s}, {expect, names}},
        {then, 0, {name, n1, {register, g, till}}}
    ]),
    ?assertEqual([], Failed),
    G = [{g, till, n1}],
    ?assertEqual(#{n1 => G, n2 => G, n3 => G, n4 => G, n5 => [], n6 => []}, Names).

%% Both sides give it away; one of the two processes loses it when they meet.
a_clash_of_two_sides_leaves_one_test() ->
    Clash = [
        {at, 0, {group, n1, {new, g, {nodes, 1, 4}}}},
        {at, {5, s}, {partition, [{nodes, 1, 2}]}},
        {then, {6, s}, {name, [n1, n3], {register, g, shop}}},
        {then, {5, s}, {expect, {name, g, shop, all}}},
        {then, 0, heal}
    ],
    #{failed := [#{was := Was}], names := #{n1 := [{g, shop, Owner}] = Names} = All} = run(Clash),
    ?assertEqual([{n1, n1}, {n2, n1}, {n3, n3}, {n4, n3}], Was),
    ?assert(lists:member(Owner, [n1, n3])),
    ?assertEqual([Names], lists:usort([Own || {Node, Own} <- maps:to_list(All), lists:member(Node, [n1, n2, n3, n4])])).

%% On purpose: what was expected did not come.
an_expectation_on_groups_and_names_that_fails_says_who_broke_it_test() ->
    #{failed := Failed} = run([
        {at, 0, {group, n1, {new, g, {nodes, 1, 3}}}},
        {at, {5, s}, {expect, {group, g, {nodes, 1, 2}}}},
        {then, 0, {expect, {no, {group, g}}}},
        {then, 0, {expect, {name, g, shop, all}}},
        {then, 0, {name, n2, {register, g, shop}}},
        {then, {1, s}, {expect, {name, g, shop, n1}}},
        {then, 0, {expect, {no, {name, g, shop}}}},
        {then, 0, {kill, n6}},
        {then, 0, {expect, members}}
    ]),
    G = {g, [n1, n2, n3]},
    Six = [n1, n2, n3, n4, n5, n6],
    ?assertEqual(
        [
            [{n1, G}, {n2, G}, {n3, G}],
            [n1, n2, n3],
            [{N, nobody} || N <- [n1, n2, n3]],
            [{N, n2} || N <- [n1, n2, n3]],
            [{N, n2} || N <- [n1, n2, n3]],
            [{N, {lacks, []}, {has, [n6]}} || N <- Six -- [n6]]
        ],
        [Was || #{was := Was} <- Failed]
    ).

%% Nobody is in both.
two_groups_of_one_name_have_names_of_their_own_test() ->
    #{failed := Failed, groups := Groups, names := Names} = run([
        {at, 0, {group, n1, {new, g, {nodes, 1, 2}}}},
        {at, 0, {group, n3, {new, g, {nodes, 3, 4}}}},
        {at, {5, s}, {name, n1, {register, g, shop}}},
        {then, {1, s}, {expect, groups}},
        {then, 0, {expect, names}}
    ]),
    ?assertMatch(#{n1 := [{g, [n1, n2]}], n4 := [{g, [n3, n4]}]}, Groups),
    ?assertMatch(#{n2 := [{g, shop, n1}], n4 := []}, Names),
    ?assertEqual([], Failed).

members_that_do_not_have_the_same_names_are_found_test() ->
    View = fun(Members, Names) -> #{groups => [{g, Members}], names => Names} end,
    Shop = [{g, shop, n2}],
    Judged = fun(Views) -> atoll_sim_expect:holds(names, Views, atoll_sim_expect:new()) end,
    ?assertEqual({false, [{n2, g, [{shop, n2}]}]}, Judged([{n1, View([n1, n2], [])}, {n2, View([n1, n2], Shop)}])),
    %% They do not agree who is in it either; who is dead has no names.
    ?assertEqual({false, [{n3, g, []}]}, Judged([{n2, View([n1, n2], Shop)}, {n3, View([n1, n2, n3], [])}])),
    ?assertEqual(true, Judged([{n2, View([n1, n2], Shop)}, {n3, View([n1, n3], [])}])).

%% One connection with two owners: it stays when the overlay does not want it, and its loss is
%% heard by both.
a_connection_of_a_group_is_one_with_that_of_the_overlay_test() ->
    Cluster = #{nodes => 4, contacts => 1, strategy => star, options => #{servers => [n1]}, seed => 3},
    {ok, Script} = atoll_sim_script:check([
        {cluster, Cluster}, {at, {5, s}, {group, n1, {new, g, {nodes, 1, 3}}}}
    ]),
    Links = fun(C) -> [atoll_sim_world:links(N, atoll_sim_cluster:world(C)) || N <- [n1, n2, n3, n4]] end,
    {ok, #{looked := Linked}} = atoll_sim_play:run(Script, #{look => Links}),
    ?assertEqual([[n2, n3, n4], [n1, n3], [n1, n2], [n1]], Linked).

%% Each side has held the other for dead, and neither is alone. The group's connections are the
%% first that lead from one to the other.
two_sides_that_a_group_links_are_one_overlay_soon_after_it_test_() ->
    atoll_sim_seeds:each(?FUNCTION_NAME, 20, fun(Seed) ->
        {ok, Script} = atoll_sim_script:check([
            {cluster, #{nodes => 12, contacts => 2, seed => Seed}},
            {at, {5, s}, {group, n04, {new, g, {nodes, 4, 9}}}},
            {then, {5, s}, {partition, [{nodes, 1, 6}]}},
            {then, {12, s}, {expect, {connected, 0.6}}},
            {then, 0, heal},
            %% An island without a beacon finds that out after half a minute, and not before. An attempt at a connection lasts 7 s at most, and the pause after it 2 s.
            {then, {9, s}, {expect, {group, g, {nodes, 4, 9}}}},
            %% Three seconds are enough for all but one of some 1,800 seeds, which takes four.
            {then, {6, s}, {expect, members}},
            {then, 0, {expect, {connected, 1.0}}}
        ]),
        {ok, #{failed := Failed}} = atoll_sim_play:run(Script, #{}),
        ?assertMatch([#{expectation := {connected, 0.6}}], Failed)
    end).

the_directory_leads_from_group_to_group_test() ->
    Run = fun(Directory) ->
        {ok, Script} = atoll_sim_script:check([
            {cluster, #{nodes => 7, contacts => 2, strategy => cliques, directory => Directory, seed => 3}},
            {at, 0, {group, n1, {new, g, {nodes, 1, 4}}}},
            {then, 0, {group, n7, {new, h, {nodes, 4, 7}}}},
            {then, {30, s}, {expect, reachable}},
            {then, 0, {expect, {connected, 1.0}}},
            {then, 0, {kill, n4}},
            {then, {30, s}, {expect, {connected, 0.6}}},
            {then, 0, {expect, reachable}}
        ]),
        {ok, #{failed := Failed}} = atoll_sim_play:run(Script, #{}),
        [E || #{expectation := E} <- Failed]
    end,
    ?assertEqual([{connected, 0.6}, reachable], Run(on)).

members_that_do_not_see_the_same_do_not_agree_test() ->
    G = {g, [a, b]},
    ?assert(atoll_sim_expect:agree(#{a => [G], b => [G], c => []})),
    ?assert(atoll_sim_expect:agree(#{a => [G]})),
    ?assertNot(atoll_sim_expect:agree(#{a => [G], b => []})),
    ?assertNot(atoll_sim_expect:agree(#{a => [G], b => [G], c => [G]})),
    ?assertNot(atoll_sim_expect:agree(#{a => [G], b => [{g, [b]}]})).

%% The plan

a_paused_node_is_asked_for_nothing_test() ->
    ?assertEqual(
        [
            {0, {pause, [n1, n2]}},
            {1, {group, [n3], {delete, g}}},
            {1, {passed_over, group, [n1, n2], paused}},
            {5, {resume, [n1, n2]}},
            {6, {group, [n1, n2, n3], {delete, g}}}
        ],
        deeds(3, [
            {at, 0, {pause, {nodes, 1, 2}, 5}},
            {at, 1, {group, all, {delete, g}}},
            {at, 6, {group, all, {delete, g}}}
        ])
    ).

of_two_pauses_the_longer_counts_test() ->
    ?assertEqual(
        [{0, {pause, [n1]}}, {1, {pause, [n1]}}, {9, {resume, [n1]}}],
        deeds(1, [{at, 0, {pause, all, 9}}, {at, 1, {pause, all, 2}}])
    ).

who_was_started_again_has_not_left_test() ->
    ?assertEqual(
        [{0, {leave, [n1, n2]}}, {1, {restart, [n1], fresh}}, {1000, {kill, [n2]}}],
        deeds(2, [{at, 0, {leave, all}}, {at, 1, {restart, {nodes, 1, 1}, fresh}}])
    ).

a_cut_for_a_time_is_mended_test() ->
    ?assertEqual(
        [{0, {cut, [n1], [n2, n3]}}, {7, {mend, [n1], [n2, n3]}}],
        deeds(3, [{at, 0, {cut, {nodes, 1, 1}, {nodes, 2, 3}, 7}}])
    ).

a_black_hole_for_a_time_is_filled_test() ->
    ?assertEqual(
        [{0, {black_hole, [n1], [n2, n3]}}, {7, {fill, [n1], [n2, n3]}}, {9, {delay, [n1], [n2], 5}}, {9, {lane, [n1], [n2], 0, cut}}],
        deeds(3, [
            {at, 0, {black_hole, {nodes, 1, 1}, {nodes, 2, 3}, 7}}, {at, 9, {delay, n1, n2, 5}}, {at, 9, {lane, n1, n2, 0, cut}}
        ])
    ).

who_is_named_and_cannot_is_said_to_be_passed_over_test() ->
    First = {nodes, 1, 1},
    ?assertEqual(
        [
            {0, {kill, [n1]}}, {1, {passed_over, pause, [n1], dead}}, {2, {start, [n1], fresh}},
            {3, {passed_over, start, [n1], alive}}, {4, {pause, [n1]}}, {5, {passed_over, kill_process, [n1], paused}}
        ],
        deeds(2, [
            {at, 0, {kill, First}}, {at, 1, {pause, First}}, {at, 1, {slow, First, 0}}, {at, 1, {pause, dead}},
            {at, 2, {start, all}}, {at, 3, {start, First}}, {at, 4, {pause, First}}, {at, 5, {kill_process, First, any}}
        ])
    ).

churn_kills_and_starts_as_many_test() ->
    Deeds = [Deed || {_, Deed} <- deeds(20, [{at, 0, {churn, 0.5, {10, s}}}])],
    Count = fun(Name) -> length(lists:append([element(2, D) || D <- Deeds, element(1, D) =:= Name])) end,
    ?assert(Count(kill) > 60),
    ?assert(Count(kill) - Count(start) < 20).

weights_are_respected_test() ->
    Drawn = [W || {_, {kill_process, [n1], W, Which}} <- deeds(1, [
        {at, I, {kill_process, all, [{1, any}, {3, {name, x}}]}}
     || I <- lists:seq(1, 2000)
    ]), Which >= 0, Which =< 1],
    ?assertEqual(2000, length(Drawn)),
    Any = length([any || any <- Drawn]),
    ?assert(Any > 430 andalso Any < 570, Any).

properties_test_() ->
    atoll_prop:test(?FUNCTION_NAME, prop_aside(), 100).

%% What other steps choose does not hang on the steps that are passed over
%% elsewhere.
prop_aside() ->
    ?FORALL({Steps, Seed}, {non_empty(list(oneof([plain(), passed()]))), choose(0, 1000)}, begin
        At = [{at, I, Step} || {I, Step} <- lists:zip(lists:seq(1, length(Steps)), Steps)],
        Plain = [T || {_, _, Step} = T <- At, not is_passed(Step)],
        [D || {_, Deed} = D <- deeds(6, At, Seed), not is_passed(Deed)] =:= deeds(6, Plain, Seed)
    end).

plain() -> oneof([{kill, {random, 1}}, {start, {random, 2}}, {pause, {random, 1}, 3}, {cut, {random, 1}, {random, 1}}]).

passed() -> oneof([{kill_process, {random, 2}, [{1, any}, {2, {name, x}}]}, {group, {random, 1}, {new, g, {random, 3}}}]).

is_passed(Step) -> lists:member(element(1, Step), [kill_process, group, passed_over]).

run(Terms) ->
    {ok, Script} = script(Terms),
    {ok, #{groups := Groups} = Result} = atoll_sim_play:run(Script, #{}),
    ?assert(atoll_sim_expect:agree(Groups)),
    Result.

script(Terms) ->
    atoll_sim_script:check([{cluster, #{nodes => 6, contacts => 2, seed => 3}} | Terms]).

deeds(Count, Terms) -> deeds(Count, Terms, 1).

deeds(Count, Terms, Seed) ->
    {ok, Script} = atoll_sim_script:check([{cluster, #{nodes => Count}} | Terms]),
    Nodes = [list_to_atom("n" ++ integer_to_list(I)) || I <- lists:seq(1, Count)],
    {Nodes, Plan} = atoll_sim_plan:script(Script, Nodes, Seed),
    all(Plan).

all(Plan0) ->
    case atoll_sim_plan:next(Plan0) of
        {Ms, Deeds, _, Plan} -> [{Ms, Deed} || Deed <- Deeds] ++ all(Plan);
        none -> []
    end.

%% Each side of a partition takes a name over, and they meet before their connections have ended: whoever
%% has it for certain answers one that was given it elsewhere. These seeds left two with it for good.
two_that_have_taken_a_name_over_in_two_parts_are_one_when_they_meet_test_() ->
    Seeds = [29, 78, 80, 85, 99] ++ [atoll_tier:seed({?FUNCTION_NAME, N}) || N <- lists:seq(1, 5)],
    {inparallel, 2, [{integer_to_list(Seed), {timeout, 60, fun() -> taken_over_in_two_parts(Seed) end}} || Seed <- Seeds]}.

taken_over_in_two_parts(Seed) ->
    Draw = fun(N, R) -> rand:uniform_s(N, R) end,
    {[Cut, Length, After, Many, Part], _} = lists:mapfoldl(Draw, rand:seed_s(exsss, Seed), [3000, 4000, 200, 4, 3]),
    Parts = lists:nth(Part, [[[n08, n09]], [[n01, n02, n03]], [[n01, n05], [n02, n06, n07]]]),
    {ok, Script} = atoll_sim_script:check([
        {cluster, #{nodes => 10, contacts => 2, strategy => mesh, seed => Seed}},
        {at, 5000, {group, n01, {new, g, all}}},
        {at, 10500 + Cut, {partition, Parts}},
        {then, After, {name, {random, 1 + Many}, {re_register, g, x}}},
        {then, 3000 + Length, heal},
        {then, 60000, {expect, names}}
    ]),
    ?assertMatch({ok, #{failed := []}}, atoll_sim_play:run(Script, #{})).
