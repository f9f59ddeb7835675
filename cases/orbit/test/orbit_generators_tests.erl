%% SPDX-License-Identifier: Apache-2.0
-module(orbit_generators_tests).

-include_lib("eunit/include/eunit.hrl").

every_ascending_subset_of_the_digits_has_a_name_test() ->
    Subsets = [[D || D <- "12345", (1 bsl (D - $1)) band Mask =/= 0] || Mask <- lists:seq(1, 31)],
    ?assertEqual(lists:sort(Subsets),
                 lists:sort([tl(atom_to_list(Name)) || Name <- orbit_generators:names()])).

a_name_has_one_function_for_each_digit_test() ->
    [?assertEqual(length(atom_to_list(Name)) - 1,
                  length(orbit_generators:functions(Name, 1000)))
     || Name <- orbit_generators:names()].

%% Worked out by hand from the definitions.
images_are_those_of_the_definition_test_() ->
    Image = fun(Name, N, X) -> [F] = orbit_generators:functions(Name, N), F(X) end,
    [
        ?_assertEqual(1, Image(g1, 1000, 0)),
        %% fib(15) + 31 = 987 + 31
        ?_assertEqual(18, Image(g1, 1000, 31)),
        %% fib(5) + 0 + 0 - 1 = 8 - 1
        ?_assertEqual(7, Image(g2, 1000, 0)),
        %% fib(7) + 8 + 10 - 1 = 21 + 17
        ?_assertEqual(38, Image(g2, 1000, 2)),
        %% fib(13) - 27 + 24 = 377 - 3
        ?_assertEqual(374, Image(g3, 1000, 3)),
        %% the absolute value of fib(14) - 8000 + 160 = 610 - 7840
        ?_assertEqual(7230, Image(g3, 10_000, 20)),
        %% fib(11), fib(19) and fib(27), less 1
        ?_assertEqual(143, Image(g4, 1_000_000, 48)),
        ?_assertEqual(6764, Image(g4, 1_000_000, 49)),
        ?_assertEqual(6764, Image(g4, 1_000_000, 197)),
        ?_assertEqual(317_810, Image(g4, 1_000_000, 198)),
        %% fib(10), fib(20) and fib(30), and 1
        ?_assertEqual(90, Image(g5, 10_000_000, 899)),
        ?_assertEqual(10_947, Image(g5, 10_000_000, 900)),
        ?_assertEqual(1_346_270, Image(g5, 10_000_000, 1999))
    ].

a_cube_that_does_not_fit_a_word_is_exact_test() ->
    X = 60_000_000,
    [F] = orbit_generators:functions(g3, 1 bsl 100),
    %% X rem 16 = 0 and fib(10) = 89
    ?assertEqual(X * X * X - 8 * X - 89, F(X)).
