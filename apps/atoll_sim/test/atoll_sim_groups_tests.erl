%% A script's groups in virtual time, and the plan from which they are played.
-module(atoll_sim_groups_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

members_come_and_go_test() ->
    #{groups := Groups, agree := true, answers := Answers} = run([
        {at, 0, {group, {nodes, 1, 1}, {new, g, {nodes, 1, 4}}}},
        {at, {10, s}, {group, {nodes, 2, 2}, {add, g, {nodes, 5, 5}}}},
        {at, {20, s}, {group, {nodes, 3, 3}, {remove, g, {nodes, 1, 1}}}},
        {at, {20, s}, {group, {nodes, 6, 6}, {new, h, {nodes, 5, 6}}}},
        {at, {30, s}, {group, {nodes, 5, 5}, {delete, h}}}
    ]),
    G = {g, [n2, n3, n4, n5]},
    ?assertEqual(#{n1 => [], n2 => [G], n3 => [G], n4 => [G], n5 => [G], n6 => []}, Groups),
    ?assertMatch([{n1, {new, g, _}, {ok, g, [n1, n2, n3, n4]}} | _], Answers),
    ?assertEqual(5, length(Answers)).

a_dead_node_is_left_out_and_one_that_starts_again_is_back_test() ->
    #{groups := Groups, agree := true} = run([
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
            #{groups := Groups, agree := true} = run([
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
        #{passed_over := 3, groups := #{n1 := [{g, [n1]}]}},
        run([
            {at, 0, {kill_process, all, any}},
            {at, 0, {broadcast, all, 1, 1}},
            {at, 0, {expect, symmetric}},
            {at, 0, {group, {nodes, 1, 1}, {new, g, {nodes, 1, 1}}}}
        ])
    ).

the_overlay_is_told_of_the_groups_test() ->
    {ok, Script} = script([
        {at, 0, {kill_process, all, any}},
        {at, 0, {group, {nodes, 1, 1}, {new, g, {nodes, 1, 2}}}}
    ]),
    {ok, Result} = atoll_sim_play:run(Script, #{}),
    ?assertMatch(#{passed_over := 1, groups := #{n1 := [{g, [n1, n2]}], n2 := [{g, [n1, n2]}]}}, Result).

members_that_do_not_see_the_same_do_not_agree_test() ->
    G = {g, [a, b]},
    ?assert(atoll_sim_groups:agree(#{a => [G], b => [G], c => []})),
    ?assert(atoll_sim_groups:agree(#{a => [G]})),
    ?assertNot(atoll_sim_groups:agree(#{a => [G], b => []})),
    ?assertNot(atoll_sim_groups:agree(#{a => [G], b => [G], c => [G]})),
    ?assertNot(atoll_sim_groups:agree(#{a => [G], b => [{g, [b]}]})).

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

%% The player of the overlay and the plan choose the same nodes.
the_overlay_s_player_does_the_same_test() ->
    Terms = [
        {at, 10000, {kill, {random, 3}}}, {then, 100, {pause, {random, 2}, 3000}}, {then, 100, {churn, 0.3, {3, s}}},
        {then, 500, {leave, {random, 1}}}, {then, 2000, {restart, {random, 2}, fresh}}, {then, 100, {start, {random, 1}}},
        {then, 100, {kill_process, {random, 1}, any}}, {then, 100, {kill, {share, 0.2}}}
    ],
    {ok, Script} = atoll_sim_script:check([{cluster, #{nodes => 12, start => {random, 11}, contacts => 2, seed => 4}} | Terms]),
    Self = self(),
    {ok, _} = atoll_sim_play:run(Script, #{trace => fun(Now, Node, Sight) ->
        [Self ! {seen, {Now, Sight, Node}} || Sight =:= killed orelse Sight =:= paused orelse Sight =:= resumed]
    end}),
    %% The settling after the script brings no deeds.
    Seen = flush(),
    Nodes = [list_to_atom(lists:flatten(io_lib:format("n~2..0b", [I]))) || I <- lists:seq(1, 12)],
    {Started, Plan} = atoll_sim_plan:script(Script, Nodes, 4),
    ?assertEqual(11, length(Started)),
    Planned = lists:append([sights(Ms, Deed) || {Ms, Deed} <- all(Plan)]),
    ?assertEqual([K || {_, killed, _} = K <- Planned], [K || {_, killed, _} = K <- Seen]),
    ?assertEqual([P || {_, paused, _} = P <- Planned], [P || {_, paused, _} = P <- Seen]).

sights(Ms, {kill, Nodes}) -> [{Ms, killed, Node} || Node <- Nodes];
sights(Ms, {restart, Nodes, _}) -> [{Ms, killed, Node} || Node <- Nodes];
sights(Ms, {pause, Nodes}) -> [{Ms, paused, Node} || Node <- Nodes];
sights(_, _) -> [].

flush() ->
    receive
        {seen, Sight} -> [Sight | flush()]
    after 0 -> []
    end.

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
    atoll_sim_groups:run(Script, #{}).

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
