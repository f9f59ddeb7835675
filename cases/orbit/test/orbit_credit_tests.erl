%% SPDX-License-Identifier: Apache-2.0
-module(orbit_credit_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

equal_units_make_one_of_twice_the_value_test_() ->
    [
        ?_assertEqual([3], orbit_credit:add(3, [])),
        ?_assertEqual([2, 1], orbit_credit:add(3, [3, 1])),
        ?_assertEqual([5, 3, 1], orbit_credit:add(3, [5, 1])),
        %% carried all the way
        ?_assertEqual([0], orbit_credit:add(3, [3, 2, 1]))
    ].

a_single_unit_is_split_when_something_must_be_kept_test() ->
    ?assertEqual({5, [5]}, orbit_credit:debit_keeping([4])),
    ?assertEqual({4, [2]}, orbit_credit:debit_keeping([4, 2])).

the_smallest_unit_is_given_away_test() ->
    ?assertEqual({4, [2, 1]}, orbit_credit:debit([4, 2, 1])),
    ?assertEqual({4, []}, orbit_credit:debit([4])).

more_than_all_is_a_crash_test() ->
    ?assertError(function_clause, orbit_credit:add(0, [0])).

equal_shares_and_the_rest_make_all_of_it_test_() ->
    [?_assertEqual({[0], true}, begin
        {Unit, Rest} = orbit_credit:shares(Count),
        {lists:foldl(fun orbit_credit:add/2, Rest, lists:duplicate(Count, Unit)), is_descending(Rest)}
    end) || Count <- [1, 2, 3, 4, 5, 36, 64, 1000]].

properties_test_() ->
    [atoll_prop:test(Name, Property, 500)
     || {Name, Property} <- [
         {adding_adds_the_values_and_stays_descending, adding()},
         {debit_takes_what_it_gives, debit()},
         {summing_is_adding_each_unit, summing()}
     ]].

adding() ->
    ?FORALL({Unit, Credit}, {unit(), credit()},
        begin
            Sum = orbit_credit:add(Unit, Credit),
            is_descending(Sum) andalso value(Sum) =:= value([Unit]) + value(Credit)
        end).

debit() ->
    ?FORALL(Credit, non_empty_credit(),
        lists:all(
            fun({Unit, Left}) ->
                is_descending(Left) andalso value([Unit]) + value(Left) =:= value(Credit)
            end,
            [orbit_credit:debit(Credit), orbit_credit:debit_keeping(Credit)])
        andalso element(2, orbit_credit:debit_keeping(Credit)) =/= []).

summing() ->
    ?FORALL({A, B}, {credit(), credit()},
        value(orbit_credit:sum(A, B)) =:= value(A) + value(B)
        andalso is_descending(orbit_credit:sum(A, B))).

%% Unit 0 and 1 are left out, so that sums stay within 1.
unit() -> integer(2, 40).

credit() -> ?LET(Units, list(integer(3, 40)), lists:reverse(lists:usort(Units))).

non_empty_credit() -> ?LET({U, C}, {unit(), credit()}, lists:reverse(lists:usort([U | C]))).

is_descending(Credit) -> Credit =:= lists:reverse(lists:usort(Credit)).

%% In units of 1/2^64.
value(Credit) -> lists:sum([1 bsl (64 - K) || K <- Credit]).
