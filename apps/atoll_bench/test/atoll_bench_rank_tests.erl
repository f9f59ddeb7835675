%% SPDX-License-Identifier: Apache-2.0
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
    atoll_prop:tests([{all_orders, prop_all_orders(), 100}, {joint, prop_joint(), 100}]).

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

%% Beyond 400 pairs: beside the exact distribution, by the recurrence of Mann and Whitney,
%% p(U; n, m) = p(U - m; n - 1, m) n / (n + m) + p(U; n, m - 1) m / (n + m).
beyond_the_exact_it_is_near_test() ->
    N = 21,
    _ = [
        begin
            As = [2 * I || I <- lists:seq(1, N)],
            Bs = shifted(U, N),
            Exact = 2 * lists:sum([exact(C, N, N) || C <- lists:seq(0, U)]),
            ?assert(abs(p(As, Bs) / Exact - 1) < 0.02, {U, p(As, Bs), Exact})
        end
     || U <- [165, 175, 185, 195]
    ],
    _ = [erase(Key) || {exact, _, _, _} = Key <- get_keys()].

%% Samples of which U pairs have the first above the second, out of 1 to 2 * N.
shifted(U, N) ->
    Full = U div N,
    %% So many are below all of the first; the next one is above N - U rem N of them.
    [-I || I <- lists:seq(1, Full)] ++ [2 * (N - U rem N) + 1] ++ [2 * N + I || I <- lists:seq(1, N - Full - 1)].

exact(U, _, _) when U < 0 -> 0;
exact(U, 0, _) -> one_at_0(U);
exact(U, _, 0) -> one_at_0(U);
exact(U, N, M) ->
    case get({exact, U, N, M}) of
        undefined ->
            P = (exact(U - M, N - 1, M) * N + exact(U, N, M - 1) * M) / (N + M),
            _ = put({exact, U, N, M}, P),
            P;
        P ->
            P
    end.

one_at_0(0) -> 1;
one_at_0(_) -> 0.
