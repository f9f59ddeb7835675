%% SPDX-License-Identifier: Apache-2.0
%% What is repeated comes when its pace says, as often as it says, and is the same for the same
%% seed: the pace alone, and the plan of a script.
-module(atoll_sim_pace_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% The pace

an_even_pace_is_even_test() ->
    ?assertEqual([0, 250, 500, 750], times(250, 1000)),
    %% Three a second are three a second.
    ?assertEqual([0, 333, 667, 1000], lists:sublist(times(1000 / 3, 10000), 4)),
    ?assertEqual(30, length(times(1000 / 3, 10000))).

a_ramp_goes_evenly_from_rate_to_rate_test() ->
    %% From 10 a second to 30 a second.
    Faster = times({ramp, 100, 1000 / 30}, 10000),
    ?assertEqual(200, length(Faster)),
    %% In the first half 15 a second on average, in the second 25.
    ?assertEqual(75, length([T || T <- Faster, T < 5000])),
    ?assertEqual([], [Gap || Gap <- gaps(Faster), Gap < 33 orelse Gap > 100]),
    %% The other way round it comes to an end too.
    Slower = times({ramp, 1000 / 30, 100}, 10000),
    ?assertEqual({200, 125}, {length(Slower), length([T || T <- Slower, T < 5000])}),
    ?assertEqual(never, atoll_sim_pace:due(1.0e6, {ramp, 10, 100}, 1000)).

jitter_makes_each_interval_that_much_longer_or_shorter_test() ->
    Gaps = gaps(times({jitter, 1000, 0.3}, 1000000)),
    ?assertEqual([], [Gap || Gap <- Gaps, Gap < 699 orelse Gap > 1301]),
    ?assert(lists:min(Gaps) < 750 andalso lists:max(Gaps) > 1250),
    Mean = lists:sum(Gaps) / length(Gaps),
    ?assert(Mean > 970 andalso Mean < 1030, Mean).

times(Pace, Lasts) ->
    times(atoll_sim_pace:first(), Pace, Lasts, rand:seed_s(exsss, 7)).

times(N, Pace, Lasts, Rand0) ->
    case atoll_sim_pace:due(N, Pace, Lasts) of
        Ms when Ms < Lasts ->
            {Next, Rand} = atoll_sim_pace:next(N, Pace, Rand0),
            [Ms | times(Next, Pace, Lasts, Rand)];
        _ ->
            []
    end.

gaps([_]) -> [];
gaps([A | [B | _] = Times]) -> [B - A | gaps(Times)].

%% The plan

a_step_is_done_again_and_again_and_each_time_for_others_test() ->
    Deeds = deeds([{at, {1, s}, {every, {100, ms}, {1, s}, {pause, {random, 1}, 50}}}], 1),
    Paused = [{Ms, Node} || {Ms, {pause, [Node]}} <- Deeds],
    ?assertEqual(lists:seq(1000, 1900, 100), [Ms || {Ms, _} <- Paused]),
    ?assert(length(lists:usort([Node || {_, Node} <- Paused])) > 2),
    %% Each with its end.
    ?assertEqual([{Ms + 50, Node} || {Ms, Node} <- Paused], [{Ms, Node} || {Ms, {resume, [Node]}} <- Deeds]).

what_is_repeated_ends_when_all_heals_test() ->
    ?assertEqual(
        [{0, {kill_process, [n1], any}}, {10, {kill_process, [n1], any}}, {15, heal}, {16, {kill, [n2]}}],
        [
            {Ms, case Deed of {kill_process, Nodes, What, _} -> {kill_process, Nodes, What}; _ -> Deed end}
         || {Ms, Deed} <- deeds([
                {at, 0, {every, 10, {1, min}, {kill_process, {nodes, 1, 1}, any}}}, {at, 15, heal}, {at, 16, {kill, {nodes, 2, 2}}}
            ], 1)
        ]
    ).

of_one_moment_the_script_comes_first_test() ->
    ?assertMatch(
        [{0, {kill, [n1]}}, {10, {kill, [n2]}}, {10, {passed_over, kill, [n1], dead}}],
        deeds([{at, 0, {every, 10, 11, {kill, {nodes, 1, 1}}}}, {at, 10, {kill, {nodes, 2, 2}}}], 1)
    ).

one_of_several_is_drawn_by_its_weight_each_time_test() ->
    Step = {one_of, [{1, {kill_process, n1, any}}, {3, {one_of, [{1, {kill_process, n2, any}}]}}]},
    Deeds = deeds([{at, 0, {every, 1, 4000, Step}}], 1),
    Of = fun(Node) -> length([Ms || {Ms, {kill_process, [N], any, _}} <- Deeds, N =:= Node]) end,
    ?assertEqual(4000, Of(n1) + Of(n2)),
    %% Five standard deviations: 27 each.
    ?assert(abs(Of(n1) - 1000) < 137).

what_was_drawn_is_what_is_told_test() ->
    {ok, Script} = atoll_sim_script:check([{cluster, #{nodes => 6}}, {at, 0, {every, 1, 20, {one_of, [{1, {kill, n1}}, {1, {start, n1}}]}}}]),
    {_, Plan} = atoll_sim_plan:script(Script, [n1, n2, n3, n4, n5, n6], 1),
    ?assertEqual([kill, start], lists:usort(told(Plan))).

told(Plan0) ->
    case atoll_sim_plan:next(Plan0) of
        {_, _, {Step, _}, Plan} -> [element(1, Step) | told(Plan)];
        none -> []
    end.

properties_test_() ->
    atoll_prop:tests([{same_seed, prop_same_seed(), 100}, {within, prop_within(), 200}, {aside, prop_aside(), 100}]).

%% The same seed plays the same, and is the plan that a longer script begins with.
prop_same_seed() ->
    ?FORALL({Pace, Seed}, {pace(), choose(0, 1000)}, begin
        Every = [{at, 100, {every, Pace, {2, s}, {kill_process, {random, 2}, [{1, any}, {3, {any_name, global}}]}}}],
        Deeds = deeds(Every, Seed),
        Deeds =:= deeds(Every, Seed) andalso lists:prefix(Deeds, deeds(Every ++ [{at, {3, s}, {kill, all}}], Seed))
    end).

%% Never before its beginning or at its end or after it, and at once for the first time.
prop_within() ->
    ?FORALL({Pace, Begins, Lasts}, {pace(), choose(0, 5000), choose(1, 5000)}, begin
        Times = [Ms || {Ms, {slow, _, _}} <- deeds([{at, Begins, {every, Pace, Lasts, {slow, n1, 1}}}], 1)],
        hd(Times) =:= Begins andalso lists:sort(Times) =:= Times andalso lists:last(Times) < Begins + Lasts
    end).

%% When something comes, and whether it does, changes nobody's choice elsewhere.
prop_aside() ->
    ?FORALL({Pace, Seed}, {pace(), choose(0, 1000)}, begin
        Kill = {at, {3, s}, {kill, {random, 3}}},
        Every = {at, 0, {every, Pace, {2, s}, {kill_process, {random, 2}, any}}},
        [lists:last(deeds([Every, Kill], Seed))] =:= deeds([Kill], Seed)
    end).

pace() ->
    ?LET({Pace, Share}, {oneof([choose(1, 500), {ramp, choose(1, 500), choose(1, 500)}]), float(0.0, 1.0)},
        oneof([Pace, {jitter, Pace, Share}])).

deeds(Terms, Seed) ->
    Nodes = [n1, n2, n3, n4, n5, n6],
    {ok, Script} = atoll_sim_script:check([{cluster, #{nodes => 6}} | Terms]),
    {Nodes, Plan} = atoll_sim_plan:script(Script, Nodes, Seed),
    all(Plan).

all(Plan0) ->
    case atoll_sim_plan:next(Plan0) of
        {Ms, Deeds, _, Plan} -> [{Ms, Deed} || Deed <- Deeds] ++ all(Plan);
        none -> []
    end.
