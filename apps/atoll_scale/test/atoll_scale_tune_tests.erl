%% SPDX-License-Identifier: Apache-2.0
%% Which change comes next, and what a comparison says.
-module(atoll_scale_tune_tests).

-include_lib("eunit/include/eunit.hrl").

switches() ->
    [#{name => backlog, values => [5, 128, 1024], helps => [backlog], what => "", in => command},
     #{name => files, values => [64, 4096], helps => [files, ended], what => "", in => command}].

finding(Cause) -> #{cause => Cause, subject => <<>>, weight => 1, says => <<>>, change => <<>>}.

next(Causes, Tried, Settings) ->
    case atoll_scale_tune:next([finding(Cause) || Cause <- Causes], Tried, {switches(), Settings}) of
        {ok, #{switch := Switch, from := From, to := To, cause := Cause}} -> {Switch, From, To, Cause};
        none -> none
    end.

the_next_change_is_for_the_likeliest_cause_that_a_switch_helps_with_test() ->
    Now = #{backlog => 5, files => 64},
    ?assertEqual({files, 64, 4096, files}, next([files, backlog], [], Now)),
    ?assertEqual({backlog, 5, 128, backlog}, next([files, backlog], [{files, 4096}], Now)),
    ?assertEqual({backlog, 5, 1024, backlog}, next([processors, backlog], [{backlog, 128}], Now)),
    ?assertEqual({backlog, 128, 1024, backlog}, next([backlog], [], Now#{backlog := 128})),
    ?assertEqual(none, next([files], [], Now#{files := 4096})),
    ?assertEqual(none, next([processors], [], Now)),
    ?assertEqual(none, next([], [], Now)).

%% Files limit it first, and so a backlog does not help; when there are more files it may.
what_did_not_help_is_tried_again_after_a_change_that_was_kept_test() ->
    Change = fun(Switch, To) -> #{switch => Switch, from => 5, to => To} end,
    Tried = atoll_scale_tune:tried(Change(backlog, 128), false, []),
    ?assertEqual({backlog, 5, 1024, backlog}, next([backlog], Tried, #{backlog => 5, files => 64})),
    ?assertEqual({backlog, 5, 128, backlog}, next([backlog], atoll_scale_tune:tried(Change(files, 4096), true, Tried), #{backlog => 5, files => 4096})).

both_sides_are_measured_in_turns_to_and_fro_test() ->
    ?assertEqual([before, 'after', 'after', before, before, 'after'], atoll_scale_tune:order(3)).

compared(Before, After, InTurns) ->
    put(before, Before),
    put('after', After),
    put(order, []),
    Measure = fun(Side) ->
        [Limit | Others] = get(Side),
        put(Side, Others),
        put(order, [Side | get(order)]),
        {ok, Limit}
    end,
    {ok, Compared} = atoll_scale_tune:compare(length(Before), InTurns, fun(_) -> ok end, Measure),
    {Compared, lists:reverse(get(order))}.

a_larger_limit_is_better_and_a_smaller_one_worse_test() ->
    Low = [100, 104, 96, 100, 108],
    High = [400, 410, 380, 420, 400],
    ?assertMatch({#{verdict := better, before := Low, 'after' := High, in_turns := true}, [before, 'after', 'after', before | _]}, compared(Low, High, true)),
    ?assertMatch({#{verdict := worse}, _}, compared(High, Low, true)),
    {#{ratio := Ratio}, _} = compared(Low, High, true),
    ?assert(Ratio > 3.5 andalso Ratio < 4.5).

limits_that_differ_by_chance_alone_are_not_better_test() ->
    ?assertMatch({#{verdict := Verdict}, _} when Verdict =:= same; Verdict =:= unclear, compared([100, 120, 96, 112, 108], [112, 100, 120, 96, 108], true)).

too_few_samples_are_unclear_test() ->
    ?assertMatch({#{verdict := unclear}, _}, compared([100, 100, 100], [400, 400, 400], true)).

what_a_user_changes_by_hand_is_measured_after_all_of_before_test() ->
    {#{in_turns := false}, Order} = compared([1, 1], [2, 2], false),
    ?assertEqual([before, before, 'after', 'after'], Order).

a_measurement_that_fails_ends_the_comparison_test() ->
    ?assertEqual({error, gone}, atoll_scale_tune:compare(5, true, fun(_) -> ok end, fun(_) -> {error, gone} end)),
    ?assertEqual({error, nobody}, atoll_scale_tune:compare(5, false, fun(before) -> ok; (_) -> {error, nobody} end, fun(_) -> {ok, 1} end)).
