%% SPDX-License-Identifier: Apache-2.0
%% Nobody is found dead whom one of several has reached, and nobody by one node alone.
-module(atoll_roster_audit_tests).

-include_lib("eunit/include/eunit.hrl").

who_answers_is_left_alone_test() ->
    {'try', A} = atoll_roster_audit:try_for(self, n1, begun()),
    ?assertMatch({[], [{round, over}], _}, atoll_roster_audit:answered(n1, A)).

who_does_not_is_tried_by_others_test() ->
    {[], [{help, n1}], _} = not_reached(begun()).

twice_reached_by_nobody_is_dead_test() ->
    {[{round, again}], A1} = failed_round(begun()),
    ?assertMatch({[{dead, n1, 7}, {round, found}], _}, failed_round(atoll_roster_audit:begin_with([{n1, 7}], A1))).

failures_of_an_earlier_life_do_not_count_test() ->
    {[{round, again}], A} = failed_round(begun()),
    ?assertMatch({[{round, again}], _}, failed_round(atoll_roster_audit:begin_with([{n1, 8}], A))).

once_reached_the_count_begins_anew_test() ->
    {[{round, again}], A1} = failed_round(begun()),
    {'try', A2} = atoll_roster_audit:try_for(self, n1, atoll_roster_audit:begin_with([{n1, 7}], A1)),
    {[], [{round, over}], A3} = atoll_roster_audit:answered(n1, A2),
    ?assertMatch({[{round, again}], _}, failed_round(atoll_roster_audit:begin_with([{n1, 7}], A3))).

one_helper_that_reaches_it_is_enough_test() ->
    A = helped([h1, h2]),
    {[], A1} = atoll_roster_audit:said(h1, n1, unreached, A),
    ?assertMatch({[{round, over}], _}, atoll_roster_audit:said(h2, n1, reached, A1)).

silent_helpers_prove_nothing_test() ->
    ?assertMatch({[{round, over}], _}, atoll_roster_audit:silent(n1, helped([h1, h2]))).

one_that_says_so_will_do_where_the_others_are_silent_test() ->
    {[], A} = atoll_roster_audit:said(h1, n1, unreached, helped([h1, h2])),
    ?assertMatch({[{round, again}], _}, atoll_roster_audit:silent(n1, A)).

without_helpers_nobody_is_blamed_test() ->
    {[], [{help, n1}], A} = not_reached(begun()),
    ?assertMatch({[{round, over}], _}, atoll_roster_audit:helpers(n1, [], A)).

who_was_not_asked_or_speaks_of_another_says_nothing_test() ->
    A = helped([h1]),
    ?assertMatch({[], A}, atoll_roster_audit:said(h9, n1, unreached, A)),
    ?assertMatch({[], A}, atoll_roster_audit:said(h1, n9, unreached, A)).

all_who_want_to_know_hear_of_one_try_test() ->
    {'try', A1} = atoll_roster_audit:try_for(h1, n1, atoll_roster_audit:new()),
    {tried, A2} = atoll_roster_audit:try_for(h2, n1, A1),
    {tried, A3} = atoll_roster_audit:try_for(h2, n1, A2),
    ?assertMatch({[h1, h2], [], _}, atoll_roster_audit:failed(n1, A3)),
    ?assertMatch({untried, [], _}, atoll_roster_audit:answered(n2, A3)).

the_tries_are_bounded_test() ->
    {Done, A} = lists:mapfoldl(
        fun(N, A0) -> atoll_roster_audit:try_for(h1, list_to_atom("n" ++ integer_to_list(N)), A0) end,
        atoll_roster_audit:new(),
        lists:seq(1, 72)
    ),
    ?assertEqual(64, atoll_roster_audit:tries(A)),
    ?assertEqual(8, length([refused || refused <- Done])).

where_all_are_dead_the_next_round_is_twice_as_wide_up_to_a_bound_test() ->
    Round = fun(_, A0) ->
        Lives = [{list_to_atom("n" ++ integer_to_list(N)), 7} || N <- lists:seq(1, atoll_roster_audit:width(A0))],
        {atoll_roster_audit:width(A0), all_dead(Lives, all_dead(Lives, A0))}
    end,
    {Widths, A} = lists:mapfoldl(Round, atoll_roster_audit:new(), lists:seq(1, 6)),
    ?assertEqual([1, 2, 4, 8, 16, 16], Widths),
    %% One that lives ends it.
    {'try', A1} = atoll_roster_audit:try_for(self, n1, atoll_roster_audit:begin_with([{n1, 7}], A)),
    {[], [{round, over}], A2} = atoll_roster_audit:answered(n1, A1),
    ?assertEqual(1, atoll_roster_audit:width(A2)).

a_round_is_over_when_all_of_it_are_settled_test() ->
    A0 = atoll_roster_audit:begin_with([{n1, 7}, {n2, 7}], atoll_roster_audit:new()),
    {'try', A1} = atoll_roster_audit:try_for(self, n1, A0),
    {'try', A2} = atoll_roster_audit:try_for(self, n2, A1),
    {[], [], A3} = atoll_roster_audit:answered(n1, A2),
    {[], [{help, n2}], A4} = atoll_roster_audit:failed(n2, A3),
    {[], A5} = atoll_roster_audit:helpers(n2, [h1], A4),
    ?assertMatch({[{round, again}], _}, atoll_roster_audit:said(h1, n2, unreached, A5)).

%% One round, in which nobody reaches any of these.
all_dead(Lives, A0) ->
    lists:foldl(
        fun({Node, _}, A1) ->
            {'try', A2} = atoll_roster_audit:try_for(self, Node, A1),
            {[], [{help, Node}], A3} = atoll_roster_audit:failed(Node, A2),
            {[], A4} = atoll_roster_audit:helpers(Node, [h1], A3),
            {_, A} = atoll_roster_audit:said(h1, Node, unreached, A4),
            A
        end,
        atoll_roster_audit:begin_with(Lives, A0),
        Lives
    ).

begun() -> atoll_roster_audit:begin_with([{n1, 7}], atoll_roster_audit:new()).

not_reached(A) ->
    {'try', Trying} = atoll_roster_audit:try_for(self, n1, A),
    atoll_roster_audit:failed(n1, Trying).

helped(Helpers) ->
    {[], [{help, n1}], A} = not_reached(begun()),
    {[], Helped} = atoll_roster_audit:helpers(n1, Helpers, A),
    Helped.

failed_round(A0) ->
    {[], [{help, n1}], A1} = not_reached(A0),
    {[], A2} = atoll_roster_audit:helpers(n1, [h1], A1),
    atoll_roster_audit:said(h1, n1, unreached, A2).
