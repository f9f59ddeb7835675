-module(aco_keep_tests).

-include_lib("eunit/include/eunit.hrl").

-define(COLONY, 7).

what_is_made_first_was_not_started_again_test() ->
    Keep = aco_keep:new(),
    ?assertEqual([0, 0], [aco_keep:made(Id, build, Keep) || Id <- [?COLONY, [1, 2]]]),
    ?assertEqual(0, aco_keep:counted(restarts, Keep)).

what_is_made_twice_or_was_elsewhere_was_started_again_test() ->
    Keep = aco_keep:new(),
    [aco_keep:made(Id, How, Keep) || {Id, How} <- [{1, build}, {1, build}, {1, again}, {1, idle}, {2, moved}, {3, again}]],
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
