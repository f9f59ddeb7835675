%% SPDX-License-Identifier: Apache-2.0
%% The protocol that watches placed processes, event by event.
-module(atoll_place_core_tests).

-include_lib("eunit/include/eunit.hrl").

-define(MS, 1000).
-define(COLOURED, #{where => "colour == blue"}).

new() -> new(10).

new(Max) ->
    {State, []} = atoll_place_core:init(#{options => #{check_ms => ?MS, max_placed => Max}, watches => []}, 0),
    State.

do(Event, State) -> atoll_place_core:handle(Event, 0, State).

wish(Params) ->
    {ok, Wish} = atoll_place_choice:new(Params),
    Wish.

%% Processes and references are names here.
watch(Node, Params) -> watch(Node, Params, none).
watch(Node, Params, Ending) ->
    #{pid => {pid, Node}, node => Node, wish => wish(Params), ending => Ending, misplaced => false}.

watched(Ref, Watch, State0) ->
    {State, Effects} = do({call, from, {watch, Ref, Watch}}, State0),
    ?assertMatch([{act, {monitor, Ref, _}}, {act, {keep, Ref, Watch}}, {reply, from, ok} | _], Effects),
    State.

%% A round with one question; these nodes answer.
round(Values, State0) ->
    {State1, [{act, {ask, Names, _, ?MS}}]} = do({timeout, check}, State0),
    do({cast, {asked, Names, {ok, Values}}}, State1).

blue(Nodes) -> maps:from_keys(Nodes, #{colour => blue}).
red(Nodes) -> maps:from_keys(Nodes, #{colour => red}).

misplaced(Effects) -> [Details || {notify, {misplaced, Details}} <- Effects].

ends(Effects) -> [Ref || {act, {'end', Ref, _}} <- Effects].

weighed(Effects) -> [Ref || {act, {weigh, Ref, _}} <- Effects].

%% Another node fits, and it is ended.
ended(Ref, State0) ->
    {State, [{act, {'end', Ref, _}}]} = do({cast, {weighed, Ref, may}}, State0),
    do({cast, {ended, Ref, ended}}, State).

one_question_for_each_set_of_attributes_test() ->
    S1 = watched(r1, watch(a, ?COLOURED), new()),
    S2 = watched(r2, watch(b, "colour == red"), S1),
    S3 = watched(r3, watch(b, "colour == blue and size > 1"), S2),
    S4 = watched(r4, watch(b, ?COLOURED), S3),
    %% Nothing is asked of those who may be anywhere.
    S5 = watched(r5, watch(d, {}), S4),
    {_, Effects} = do({timeout, check}, S5),
    ?assertEqual([{act, {ask, [colour], [a, b], ?MS}}, {act, {ask, [colour, size], [b], ?MS}}], Effects).

a_few_questions_are_asked_at_a_time_test() ->
    Names = [a, b, c, d, e, f],
    S0 = lists:foldl(fun(Name, S) -> watched(Name, watch(n, {Name, eq, 1}), S) end, new(), Names),
    {S1, Four} = do({timeout, check}, S0),
    ?assertEqual([[a], [b], [c], [d]], [Asked || {act, {ask, Asked, [n], _}} <- Four]),
    {S2, [{act, {ask, [e], _, _}}]} = do({cast, {asked, [b], failed}}, S1),
    {S3, [{act, {ask, [f], _, _}}]} = do({cast, {asked, [a], {ok, #{}}}}, S2),
    {S4, []} = lists:foldl(fun(N, {S, []}) -> do({cast, {asked, [N], failed}}, S) end, {S3, []}, [c, d, e]),
    %% The next round is that long after the end of this one.
    ?assertMatch({_, [{timer, check, ?MS}]}, do({cast, {asked, [f], failed}}, S4)).

the_timer_runs_only_while_somebody_is_watched_test() ->
    {S1, Effects} = do({call, from, {watch, r1, watch(a, ?COLOURED)}}, new()),
    ?assertMatch([_, _, _, {timer, check, ?MS}], Effects),
    %% One timer for all.
    {S2, [_, _, _]} = do({call, from, {watch, r2, watch(a, ?COLOURED)}}, S1),
    {S3, [{act, {drop, r1}}]} = do({cast, {gone, r1}}, S2),
    {S4, [{act, {demonitor, r2}}, {reply, from, ok}, {act, {drop, r2}}]} = do({call, from, {unwatch, r2}}, S3),
    ?assertEqual({S4, [{reply, from, ok}]}, do({call, from, {unwatch, r2}}, S4)),
    {S5, []} = do({timeout, check}, S4),
    {_, Again} = do({call, from, {watch, r3, watch(a, ?COLOURED)}}, S5),
    ?assertMatch([_, _, _, {timer, check, ?MS}], Again).

a_watch_amid_a_round_starts_no_second_one_test() ->
    {S1, [_]} = do({timeout, check}, watched(r1, watch(a, ?COLOURED), new())),
    {S2, [_, _, {reply, from, ok}]} = do({call, from, {watch, r2, watch(b, ?COLOURED)}}, S1),
    %% Its node was not asked.
    {_, Effects} = do({cast, {asked, [colour], {ok, red([a])}}}, S2),
    ?assertEqual([{timer, check, ?MS}], Effects).

one_odd_value_is_no_misfit_test() ->
    S0 = watched(r1, watch(a, ?COLOURED), new()),
    {S1, [_]} = round(red([a]), S0),
    {S2, [_]} = round(blue([a]), S1),
    {S3, Effects} = round(red([a]), S2),
    ?assertEqual([], misplaced(Effects)),
    {_, Told} = round(red([a]), S3),
    ?assertMatch(
        [#{pid := {pid, a}, node := a, where := "colour == blue", values := #{colour := red}, watch := r1}], misplaced(Told)
    ).

a_misfit_is_told_once_each_time_test() ->
    S0 = watched(r1, watch(a, ?COLOURED), new()),
    Rounds = [red([a]), red([a]), red([a]), blue([a]), red([a]), red([a]), red([a])],
    {_, Told} = lists:foldl(
        fun(Values, {S0_, Acc}) ->
            {S, Effects} = round(Values, S0_),
            {S, Acc ++ [length(misplaced(Effects))]}
        end,
        {S0, []},
        Rounds
    ),
    ?assertEqual([0, 1, 0, 0, 0, 1, 0], Told).

who_does_not_answer_is_not_misplaced_test() ->
    S0 = watched(r1, watch(a, ?COLOURED), new()),
    {S1, [_]} = round(red([a]), S0),
    {S2, [_]} = round(#{}, S1),
    {S3, [_]} = round(#{}, S2),
    %% The next answer is the second one.
    {_, Told} = round(red([a]), S3),
    ?assertMatch([_], misplaced(Told)).

what_has_become_undefined_does_not_fit_test() ->
    S0 = watched(r1, watch(a, {db, yes}), new()),
    {S1, [_]} = round(#{a => #{db => undefined}}, S0),
    {_, Told} = round(#{a => #{db => undefined}}, S1),
    ?assertMatch([_], misplaced(Told)).

without_stop_nobody_is_ended_test() ->
    S0 = watched(r1, watch(a, ?COLOURED), new()),
    {S1, _} = round(red([a]), S0),
    {_, Effects} = round(red([a]), S1),
    ?assertEqual([], ends(Effects)).

the_misplaced_are_ended_one_after_the_other_test() ->
    Stop = fun(Node) -> watch(Node, ?COLOURED, direct) end,
    S0 = watched(r3, Stop(c), watched(r2, Stop(b), watched(r1, Stop(a), new()))),
    {S1, E1} = round(red([a, b, c]), S0),
    ?assertEqual([], weighed(E1)),
    {S2, E2} = round(red([a, b, c]), S1),
    ?assertEqual([r1], weighed(E2)),
    {S3, E3} = ended(r1, S2),
    ?assertEqual([r2], weighed(E3)),
    %% No other node fits: it is tried again in the next round. One that has gone needs nothing.
    {S4, _} = do({cast, {gone, r3}}, S3),
    {S5, []} = do({cast, {weighed, r2, kept}}, S4),
    {S6, E6} = round(red([a, b]), S5),
    ?assertEqual([r2], weighed(E6)),
    %% It could not be told: neither.
    {S7, [{act, {'end', r2, _}}]} = do({cast, {weighed, r2, may}}, S6),
    {S8, []} = do({cast, {ended, r2, kept}}, S7),
    {S9, E9} = round(red([a, b]), S8),
    ?assertEqual([r2], weighed(E9)),
    %% Nobody is ended twice.
    {S10, []} = ended(r2, S9),
    {_, E11} = round(red([a, b]), S10),
    ?assertEqual([], weighed(E11)).

who_is_let_be_meanwhile_is_not_ended_test() ->
    Stop = fun(Node) -> watch(Node, ?COLOURED, direct) end,
    S0 = watched(r2, Stop(b), watched(r1, Stop(a), new())),
    {S1, _} = round(red([a, b]), S0),
    {S2, E2} = round(red([a, b]), S1),
    ?assertEqual([r1], weighed(E2)),
    %% It is found out about it when it is watched no more, has ended, or fits again.
    {Unwatched, _} = do({call, from, {unwatch, r1}}, S2),
    {Gone, _} = do({cast, {gone, r1}}, S2),
    {Fits, _} = round(blue([a]), S2),
    [
        begin
            {_, Effects} = do({cast, {weighed, r1, may}}, State),
            ?assertEqual({[], [r2]}, {ends(Effects), weighed(Effects)})
        end
     || State <- [Unwatched, Gone, Fits]
    ].

a_round_that_is_over_before_all_had_their_turn_begins_no_second_turn_test() ->
    Stop = fun(Node) -> watch(Node, ?COLOURED, direct) end,
    S0 = watched(r2, Stop(b), watched(r1, Stop(a), new())),
    {S1, _} = round(red([a, b]), S0),
    {S2, E2} = round(red([a, b]), S1),
    ?assertEqual([r1], weighed(E2)),
    {S3, E3} = round(blue([b]), S2),
    ?assertEqual([], weighed(E3)),
    %% It fits by now.
    {_, E4} = ended(r1, S3),
    ?assertEqual([], weighed(E4)).

more_than_the_most_are_refused_test() ->
    S1 = watched(r1, watch(a, ?COLOURED), new(1)),
    {S2, Refused} = do({call, from, {watch, r2, watch(b, ?COLOURED)}}, S1),
    ?assertEqual([{reply, from, {error, {too_many_watched, 1}}}], Refused),
    {S3, _} = do({cast, {gone, r1}}, S2),
    {_, [_, _, {reply, from, ok}]} = do({call, from, {watch, r2, watch(b, ?COLOURED)}}, S3),
    {_, [{reply, from, Summary}]} = do({call, from, summary}, S2),
    ?assertMatch(#{watched := 1, misplaced := 0, counts := #{refused := 1}}, Summary).

a_next_life_goes_on_and_tells_nothing_twice_test() ->
    S0 = watched(r1, watch(a, ?COLOURED), new()),
    {S1, _} = round(red([a]), S0),
    {_, Effects} = round(red([a]), S1),
    [Kept] = [Watch || {act, {keep, r1, Watch}} <- Effects],
    {T0, Begun} = atoll_place_core:init(#{options => #{check_ms => ?MS, max_placed => 10}, watches => [{r1, Kept}]}, 0),
    ?assertEqual([{act, {monitor, r1, {pid, a}}}, {timer, check, ?MS}], Begun),
    {T1, E1} = round(red([a]), T0),
    {_, E2} = round(red([a]), T1),
    ?assertEqual([], misplaced(E1) ++ misplaced(E2)).

an_answer_is_judged_for_those_alone_whom_it_is_about_test() ->
    %% Many who speak of something else cost it nothing.
    Many = fun(Count) ->
        lists:foldl(
            fun(N, S) -> watched(N, watch(b, {size, eq, N}), S) end, watched(r1, watch(a, ?COLOURED), new(Count + 1)), lists:seq(1, Count)
        )
    end,
    Work = fun(Count) ->
        Make = fun() -> {State, _} = do({timeout, check}, Many(Count)), State end,
        atoll_test_cost:reductions(Make, fun(State) -> do({cast, {asked, [colour], {ok, red([a])}}}, State) end)
    end,
    {Few, More} = {Work(10), Work(5000)},
    ?assert(More < 10 * Few + 1000, {Few, More}).
