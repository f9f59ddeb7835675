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

every_round_measures_each_point_once_test() ->
    ?assert(proper:quickcheck(prop_rounds(), [quiet, {numtests, 200}])).

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
