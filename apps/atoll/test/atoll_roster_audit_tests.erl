%% Nobody is found dead whom one of several has reached, and nobody by one node alone.
-module(atoll_roster_audit_tests).

-include_lib("eunit/include/eunit.hrl").

who_answers_is_left_alone_test() ->
    {'try', A} = atoll_roster_audit:try_for(self, n1, begun()),
    ?assertMatch({[], over, _}, atoll_roster_audit:answered(n1, A)).

who_does_not_is_tried_by_others_test() ->
    {[], {help, n1}, _} = not_reached(begun()).

twice_reached_by_nobody_is_dead_test() ->
    {again, A1} = failed_round(begun()),
    ?assertMatch({{dead, n1, 7}, _}, failed_round(atoll_roster_audit:begin_with(n1, 7, A1))).

failures_of_an_earlier_life_do_not_count_test() ->
    {again, A} = failed_round(begun()),
    ?assertMatch({again, _}, failed_round(atoll_roster_audit:begin_with(n1, 8, A))).

once_reached_the_count_begins_anew_test() ->
    {again, A1} = failed_round(begun()),
    {'try', A2} = atoll_roster_audit:try_for(self, n1, atoll_roster_audit:begin_with(n1, 7, A1)),
    {[], over, A3} = atoll_roster_audit:answered(n1, A2),
    ?assertMatch({again, _}, failed_round(atoll_roster_audit:begin_with(n1, 7, A3))).

one_helper_that_reaches_it_is_enough_test() ->
    A = helped([h1, h2]),
    {nothing, A1} = atoll_roster_audit:said(h1, n1, unreached, A),
    ?assertMatch({over, _}, atoll_roster_audit:said(h2, n1, reached, A1)).

silent_helpers_prove_nothing_test() ->
    ?assertMatch({over, _}, atoll_roster_audit:silent(helped([h1, h2]))).

one_that_says_so_will_do_where_the_others_are_silent_test() ->
    {nothing, A} = atoll_roster_audit:said(h1, n1, unreached, helped([h1, h2])),
    ?assertMatch({again, _}, atoll_roster_audit:silent(A)).

without_helpers_nobody_is_blamed_test() ->
    {[], {help, n1}, A} = not_reached(begun()),
    ?assertMatch({over, _}, atoll_roster_audit:helpers([], A)).

who_was_not_asked_or_speaks_of_another_says_nothing_test() ->
    A = helped([h1]),
    ?assertMatch({nothing, A}, atoll_roster_audit:said(h9, n1, unreached, A)),
    ?assertMatch({nothing, A}, atoll_roster_audit:said(h1, n9, unreached, A)).

all_who_want_to_know_hear_of_one_try_test() ->
    {'try', A1} = atoll_roster_audit:try_for(h1, n1, atoll_roster_audit:new()),
    {tried, A2} = atoll_roster_audit:try_for(h2, n1, A1),
    {tried, A3} = atoll_roster_audit:try_for(h2, n1, A2),
    ?assertMatch({[h1, h2], nothing, _}, atoll_roster_audit:failed(n1, A3)),
    ?assertMatch({untried, nothing, _}, atoll_roster_audit:answered(n2, A3)).

the_tries_are_bounded_test() ->
    {Done, A} = lists:mapfoldl(
        fun(N, A0) -> atoll_roster_audit:try_for(h1, list_to_atom("n" ++ integer_to_list(N)), A0) end,
        atoll_roster_audit:new(),
        lists:seq(1, 40)
    ),
    ?assertEqual(32, atoll_roster_audit:tries(A)),
    ?assertEqual(8, length([refused || refused <- Done])).

begun() -> atoll_roster_audit:begin_with(n1, 7, atoll_roster_audit:new()).

not_reached(A) ->
    {'try', Trying} = atoll_roster_audit:try_for(self, n1, A),
    atoll_roster_audit:failed(n1, Trying).

helped(Helpers) ->
    {[], {help, n1}, A} = not_reached(begun()),
    {nothing, Helped} = atoll_roster_audit:helpers(Helpers, A),
    Helped.

failed_round(A0) ->
    {[], {help, n1}, A1} = not_reached(A0),
    {nothing, A2} = atoll_roster_audit:helpers([h1], A1),
    atoll_roster_audit:said(h1, n1, unreached, A2).
