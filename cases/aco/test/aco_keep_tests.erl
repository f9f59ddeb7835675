-module(aco_keep_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(COLONY, 7).

what_is_made_first_was_not_started_again_test() ->
    Keep = aco_keep:new(),
    ?assertEqual([0, 0], [aco_keep:made(Id, build, Keep) || Id <- [?COLONY, [1, 2]]]),
    ?assertEqual(0, aco_keep:counted(restarts, Keep)).

what_is_made_twice_or_was_elsewhere_was_started_again_test() ->
    Keep = aco_keep:new(),
    All = [{1, build}, {1, build}, {1, again}, {1, idle}, {2, moved}, {3, again}],
    [aco_keep:made(Id, How, Keep) || {Id, How} <- All],
    ?assertEqual(5, aco_keep:counted(restarts, Keep)).

what_is_started_in_vain_is_counted_until_it_gets_on_test() ->
    Keep = aco_keep:new(),
    Again = fun(How) -> aco_keep:made(?COLONY, How, Keep) end,
    ?assertEqual([0, 1, 2, 3], lists:map(Again, [build, again, again, again])),
    ok = aco_keep:got_on(?COLONY, Keep),
    ?assertEqual([1, 2], lists:map(Again, [again, moved])).

who_has_nothing_to_do_is_not_started_in_vain_test() ->
    Keep = aco_keep:new(),
    ?assertEqual([0, 1, 1, 1, 2], [aco_keep:made(?COLONY, How, Keep) || How <- [build, again, idle, idle, again]]).

%%% What was told

%% Whatever is put in whatever order: what is known is what was told, and what was put in
%% order, as the master does, is known for all rounds.
what_was_told_is_known_or_asked_for_but_never_wrong_test_() ->
    atoll_prop:test(?FUNCTION_NAME, prop_told(), 500).

prop_told() ->
    ?FORALL(
        {Changes, Order, {A, B}},
        {vector(12, range(1, 3)), list({range(1, 12), range(1, 12)}), {range(1, 12), range(1, 12)}},
        begin
            Truth = lists:zip(lists:seq(1, 12), [{{Cost, [Cost]}, Cost} || Cost <- Changes]),
            All = aco_keep:new(),
            [ok = aco_keep:put_told({Round, Round, Told}, All) || {Round, Told} <- Truth],
            {ok, Known} = aco_keep:told(1, 12, All),
            Some = aco_keep:new(),
            [begin
                 {ok, Spans} = aco_keep:told(min(From, To), max(From, To), All),
                 [ok = aco_keep:put_told(Span, Some) || Span <- Spans]
             end || {From, To} <- Order],
            {First, Last} = {min(A, B), max(A, B)},
            Right = case aco_keep:told(First, Last, Some) of
                        {ok, Found} -> each(Found) =:= lists:sublist(Truth, First, Last - First + 1);
                        none -> true
                    end,
            each(Known) =:= Truth andalso Right
        end
    ).

each(Spans) ->
    [{Round, Told} || {First, Last, Told} <- Spans, Round <- lists:seq(First, Last)].

the_same_told_after_many_rounds_takes_one_row_test() ->
    Keep = aco_keep:new(),
    [ok = aco_keep:put_told({Round, Round, {{7, [1]}, 1}}, Keep) || Round <- lists:seq(1, 1000)],
    ok = aco_keep:put_told({1001, 1001, {{6, [1]}, 1}}, Keep),
    ?assertEqual({ok, [{1, 1000, {{7, [1]}, 1}}, {1001, 1001, {{6, [1]}, 1}}]}, aco_keep:told(1, 1001, Keep)),
    ?assertEqual(2, ets:info(Keep, size)).
