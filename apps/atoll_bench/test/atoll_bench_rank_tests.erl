%% The p-values are those of the tables, and of all orders counted one by one.
-module(atoll_bench_rank_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

p(As, Bs) ->
    maps:get(p, atoll_bench_rank:test(As, Bs, 0.95)).

near(A, B) ->
    abs(A - B) < 1.0e-12.

apart_is_one_order_of_all_test() ->
    %% 2 of the 252 orders of 5 and 5.
    ?assert(near(2 / 252, p([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]))),
    ?assert(near(2 / 20, p([6, 7, 8], [1, 2, 3]))),
    ?assert(near(1.0, p([1, 4], [2, 3]))).

equal_samples_do_not_differ_test() ->
    ?assertMatch(
        #{p := 1.0, ratio := 1.0, low := 1.0, high := 1.0},
        atoll_bench_rank:test([7, 7, 7, 7, 7], [7, 7, 7, 7, 7], 0.95)
    ).

too_few_have_no_interval_test() ->
    ?assertMatch(#{ratio := 3.0, low := none, high := none}, atoll_bench_rank:test([1, 1, 1], [3, 3, 3], 0.95)).

%% Tables for 10 and 10 at 0.05 (two-sided) give 23 as the critical U, so the
%% interval leaves out 23 pairs at each end; for 5 and 5 it is 2.
the_interval_leaves_out_what_tables_say_test() ->
    Pairs = fun(As, Bs) -> lists:sort([B / A || A <- As, B <- Bs]) end,
    [
        begin
            As = [100 + I * I || I <- lists:seq(1, N)],
            Bs = [103 + 2 * I * I || I <- lists:seq(1, N)],
            #{low := Low, high := High} = atoll_bench_rank:test(As, Bs, 0.95),
            ?assertEqual(lists:nth(Critical + 1, Pairs(As, Bs)), Low),
            ?assertEqual(lists:nth(N * N - Critical, Pairs(As, Bs)), High)
        end
     || {N, Critical} <- [{4, 0}, {5, 2}, {6, 5}, {8, 13}, {10, 23}, {15, 64}, {20, 127}]
    ].

properties_test_() ->
    [
        {timeout, 60, ?_assert(proper:quickcheck(Property, [quiet, {to_file, user}, {numtests, 100}]))}
     || Property <- [prop_all_orders(), prop_joint()]
    ].

%% The share of all ways to deal the same values out in which U is as far out.
prop_all_orders() ->
    ?FORALL({N, M, Shuffle}, {choose(1, 5), choose(1, 5), integer()}, begin
        Values = [V || {_, V} <- lists:sort([{erlang:phash2({Shuffle, V}), V} || V <- lists:seq(1, N + M)])],
        {As, Bs} = lists:split(N, Values),
        Us = [u(Some, Values -- Some) || Some <- some(N, Values)],
        Out = fun(U) -> min(U, N * M - U) end,
        Far = length([U || U <- Us, Out(U) =< Out(u(As, Bs))]),
        near(p(As, Bs), Far / length(Us))
    end).

u(As, Bs) ->
    length([1 || A <- As, B <- Bs, A < B]).

some(0, _) -> [[]];
some(_, []) -> [];
some(N, [V | Values]) -> [[V | Some] || Some <- some(N - 1, Values)] ++ some(N, Values).

%% Where the exact distribution ends the normal one goes on: 20 and 20 beside 20
%% and 21, shifted by as much.
prop_joint() ->
    ?FORALL(Shift, choose(0, 14), begin
        P = fun(M) -> p([2 * I || I <- lists:seq(1, 20)], [2 * I + 1 + Shift || I <- lists:seq(1, M)]) end,
        Ratio = p([2 * I || I <- lists:seq(1, 20)], [2 * I + 1 + Shift || I <- lists:seq(1, 20)]) / P(21),
        Ratio > 0.4 andalso Ratio < 2.5
    end).
