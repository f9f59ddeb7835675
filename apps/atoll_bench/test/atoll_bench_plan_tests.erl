%% SPDX-License-Identifier: Apache-2.0
-module(atoll_bench_plan_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(POINTS, [
    #{size => 1, system => a},
    #{size => 1, system => b},
    #{size => 2, system => a},
    #{size => 2, system => b},
    #{size => 3, system => b}
]).

points_that_differ_in_the_variant_alone_are_a_group_test() ->
    ?assertEqual([[0, 1], [2, 3], [4]], atoll_bench_plan:groups(?POINTS, system)).

every_round_measures_each_point_once_test_() ->
    atoll_prop:test(?FUNCTION_NAME, prop_rounds(), 200).

prop_rounds() ->
    ?FORALL(
        {Size, Rounds, Seed},
        {range(1, 8), range(0, 10), integer()},
        begin
            Group = lists:seq(1, Size),
            Turns = atoll_bench_plan:rounds(Group, Rounds, Seed),
            [Round || {Round, _} <- Turns] =:= lists:append([lists:duplicate(Size, R) || R <- lists:seq(1, Rounds)]) andalso
                lists:all(
                    fun(Round) -> lists:sort([Index || {R, Index} <- Turns, R =:= Round]) =:= Group end,
                    lists:seq(1, Rounds)
                ) andalso Turns =:= atoll_bench_plan:rounds(Group, Rounds, Seed)
        end
    ).

nobody_is_always_first_test() ->
    Firsts = [hd([Index || {1, Index} <- atoll_bench_plan:rounds([1, 2, 3], 1, Seed)]) || Seed <- lists:seq(1, 50)],
    ?assertEqual([1, 2, 3], lists:usort(Firsts)).

%% What comes first in a round profits or suffers from it.
each_round_has_an_order_of_its_own_test() ->
    Turns = atoll_bench_plan:rounds([1, 2, 3], 30, 1),
    Orders = [[Index || {R, Index} <- Turns, R =:= Round] || Round <- lists:seq(1, 30)],
    ?assertEqual(6, length(lists:usort(Orders))).

rounds_are_shared_out_among_starts_test() ->
    Starts = fun(Rounds, Wanted) ->
        Turns = atoll_bench_plan:rounds([7, 8], Rounds, 1),
        Shared = atoll_bench_plan:starts(Turns, Rounds, Wanted),
        ?assertEqual(Turns, lists:append([Own || {_, Own} <- Shared])),
        [{Start, lists:usort([Round || {Round, _} <- Own])} || {Start, Own} <- Shared]
    end,
    ?assertEqual([{1, [1, 2]}, {2, [3, 4]}, {3, [5, 6]}], Starts(6, 3)),
    ?assertEqual([{1, [1, 2]}, {2, [3]}], Starts(3, 2)),
    ?assertEqual([{1, [1]}, {2, [2]}], Starts(2, 5)),
    ?assertEqual([{1, [1, 2, 3]}], Starts(3, 1)).
