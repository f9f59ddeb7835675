%% SPDX-License-Identifier: Apache-2.0
%% What the program reads and changes.
-module(adcounter_program_tests).

-include_lib("eunit/include/eunit.hrl").

%% Objects as a map, changed as a replica does it.
changed(Changes, Objects) ->
    lists:foldl(
        fun({Name, Type, Operation}, Acc) ->
            {ok, Next, _} = atoll_crdt:update(Operation, me, maps:get(Name, Acc, atoll_crdt:new(Type))),
            Acc#{Name => Next}
        end,
        Objects,
        Changes
    ).

read(Objects) ->
    fun(Name) -> case Objects of #{Name := Object} -> {ok, atoll_crdt:value(Object)}; #{} -> none end end.

show(Ad, Times, Objects) -> lists:foldl(fun(_, O) -> changed(adcounter_program:shown(Ad, read(O)), O) end, Objects, lists:seq(1, Times)).

what_has_a_contract_may_be_shown_and_nothing_else_test() ->
    ?assertEqual([], adcounter_program:to_show(read(#{}))),
    Objects = changed([{ads, set, {add, 9}} | adcounter_program:contracts(3, 5)], #{}),
    ?assertEqual([1, 2, 3], adcounter_program:to_show(read(Objects))).

an_advertisement_is_disabled_at_its_limit_and_not_before_test() ->
    Begun = changed(adcounter_program:contracts(2, 5), #{}),
    Before = show(1, 4, Begun),
    ?assertEqual([], adcounter_program:triggered(1, read(Before))),
    At = show(1, 1, Before),
    ?assertEqual([{ads, set, {remove, 1}}], adcounter_program:triggered(1, read(At))),
    Disabled = changed(adcounter_program:triggered(1, read(At)), At),
    ?assertEqual([2], adcounter_program:to_show(read(Disabled))),
    ?assertEqual({ok, {ok, 5}}, (read(Disabled))({most, 1})),
    %% Once is enough.
    ?assertEqual([], adcounter_program:triggered(1, read(show(1, 1, Disabled)))),
    ?assertEqual([], adcounter_program:triggered(7, read(Disabled))).

it_is_over_when_there_were_some_and_none_is_left_test() ->
    Begun = changed(adcounter_program:contracts(1, 2), #{}),
    ?assertNot(adcounter_program:is_over(read(#{}))),
    ?assertNot(adcounter_program:is_over(read(maps:remove(ads, Begun)))),
    ?assertNot(adcounter_program:is_over(read(Begun))),
    ?assert(adcounter_program:is_over(read(changed([{ads, set, {remove, 1}}], Begun)))).

an_overcount_is_of_each_advertisement_test() ->
    ?assertEqual({0, 0.0}, adcounter_program:overcount([10, 3], 10)),
    %% What one was shown too little makes up for nothing.
    ?assertEqual({5, 25.0}, adcounter_program:overcount([15, 3], 10)).

%% A phone

settings(More) ->
    {ok, Settings} = adcounter_options:check(More),
    Settings.

a_phone_pauses_for_an_interval_a_quarter_more_or_less_test() ->
    Phone = adcounter_phone:new(a, 1, settings(#{impression_ms => 1000})),
    {Pauses, _} = lists:mapfoldl(fun(_, P) -> adcounter_phone:pause(P) end, Phone, lists:seq(1, 500)),
    ?assert(lists:min(Pauses) >= 750),
    ?assert(lists:max(Pauses) =< 1250),
    ?assert(abs(lists:sum(Pauses) / 500 - 1000) < 30).

a_phone_is_off_line_for_its_part_of_the_time_test() ->
    Phone = adcounter_phone:new(a, 1, settings(#{offline => 30, offline_ms => 1000})),
    {Turns, _} = lists:mapfoldl(fun(_, P0) -> {IsOnline, Ms, P} = adcounter_phone:turn(P0), {{IsOnline, Ms}, P} end, Phone, lists:seq(1, 2000)),
    Sum = fun(Is) -> lists:sum([Ms || {IsOnline, Ms} <- Turns, IsOnline =:= Is]) end,
    Share = Sum(false) / (Sum(false) + Sum(true)),
    ?assert(abs(Share - 0.3) < 0.02, Share),
    ?assertMatch({true, infinity, _}, adcounter_phone:turn(adcounter_phone:new(a, 1, settings(#{})))).

a_phone_is_done_when_all_are_disabled_and_says_so_once_test() ->
    Begun = changed(adcounter_program:contracts(1, 2), #{}),
    {showing, [], Waiting} = adcounter_phone:show(read(#{}), 10, adcounter_phone:new(a, 1, settings(#{}))),
    {showing, [_, _] = Changes, Shown} = adcounter_phone:show(read(Begun), 20, Waiting),
    Over = changed([{ads, set, {remove, 1}}], changed(Changes, Begun)),
    {done, [{seen, set, {add, a}}], Done} = adcounter_phone:show(read(Over), 30, Shown),
    ?assertEqual({[20], 30}, {adcounter_phone:shown(Done), adcounter_phone:seen_at(Done)}),
    {done, [], _} = adcounter_phone:show(read(Over), 30, adcounter_phone:new(a, 1, settings(#{report => false}))),
    {done, [], Done} = adcounter_phone:show(read(Over), 40, Done),
    {done, [], Done} = adcounter_phone:look(read(Over), 40, Done).

%% It hears of a change, and does not wait for its next impression.
a_phone_sees_the_end_when_it_comes_test() ->
    Begun = changed(adcounter_program:contracts(1, 2), #{}),
    Phone = adcounter_phone:new(a, 1, settings(#{})),
    ?assertEqual({showing, [], Phone}, adcounter_phone:look(read(Begun), 10, Phone)),
    {done, [{seen, set, {add, a}}], Done} = adcounter_phone:look(read(changed([{ads, set, {remove, 1}}], Begun)), 20, Phone),
    ?assertEqual(20, adcounter_phone:seen_at(Done)).

%% Settings

a_wrong_setting_is_a_sentence_test() ->
    [
        ?assertEqual({error, Sentence}, case adcounter_options:check(Told) of {error, E} -> {error, lists:flatten(adcounter_options:format_error(E))}; Other -> Other end)
     || {Told, Sentence} <- [
            {#{role => phone}, "The setting role of adcounter must be server or client."},
            {#{offline => 91}, "The setting offline of adcounter must be 0 to 90, percent."},
            {#{how => both}, "The setting how of adcounter must be state or delta."},
            {#{budjet => 1}, "The setting budjet of adcounter is not known."}
        ]
    ],
    ?assertEqual({ok, adcounter_options:defaults()}, adcounter_options:check(#{})).

%% Results

said() ->
    Sent = #{delta => #{messages => 2, bytes => 50}},
    #{
        clients => [{[30, 10], 100}, {[40, 20], 120}],
        disabled_at => 60,
        equal_at => 130,
        counts => [[4], [4], [4]],
        sent => [Sent, Sent#{ack => #{messages => 1, bytes => 5}}],
        counted => [#{merged => 1}, #{merged => 2, forgotten => 3}],
        hops => 2,
        slack_ms => 0
    }.

result(Said) -> adcounter_result:new(settings(#{budget => 3, impression_ms => 60, propagation_ms => 12}), 2, Said).

a_result_counts_from_the_moment_at_which_the_budget_was_shown_test() ->
    ?assertMatch(
        #{
            shown := 4, counted := 4, overcount := 1, clients := 2, seen := 2, disabled_ms := 30, seen_ms := 90, equal_ms := 100,
            bytes := 105, bytes_max := 55, sent := #{delta := #{messages := 4, bytes := 100}, ack := #{messages := 1, bytes := 5}},
            replicas := #{merged := 3, forgotten := 3, unheard := 0},
            %% The news travels for 4 times 15 ms at most; in that a client shows two, after one that comes at once.
            bound := 6
        },
        result(said())
    ),
    ?assertEqual(ok, adcounter_result:judge(result(said()))).

each_broken_promise_is_a_sentence_test() ->
    [
        ?assertEqual({failed, Sentence}, case adcounter_result:judge(result(Said)) of {failed, S} -> {failed, lists:flatten(S)}; Other -> Other end)
     || {Said, Sentence} <- [
            {(said())#{clients := [{[30, 10], 100}, {[40, 20], never}]}, "1 of 2 clients have not seen that all advertisements are disabled"},
            {(said())#{counts := [[4], [3], [4]]}, "the counters are not the same everywhere"},
            {(said())#{counts := [[5], [5], [5]]}, "4 impressions were shown, and 5 counted"},
            {
                %% As slow as that the news cannot have been, however late they saw it.
                (said())#{clients := [{lists:seq(60, 300, 60), 320}, {lists:seq(60, 300, 60), 320}], counts := [[10], [10], [10]]},
                "7 impressions were too many, and 6 could be at most"
            }
        ]
    ].
