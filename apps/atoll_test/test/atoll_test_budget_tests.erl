%% SPDX-License-Identifier: Apache-2.0
%% Budgets: what each application may take of the fast tier.
-module(atoll_test_budget_tests).

-include_lib("eunit/include/eunit.hrl").

-define(MOST_S, 2000).

all_together_keep_the_fast_tier_within_nine_minutes_test() ->
    ?assert(lists:sum(maps:values(atoll_test_budget:read())) =< ?MOST_S).

every_application_with_tests_has_one_test() ->
    Apps = lists:usort([App || {App, _} <- atoll_test_jobs:sources(root())]),
    ?assertMatch([_, _ | _], Apps),
    ?assertEqual([], Apps -- maps:keys(atoll_test_budget:read())).

what_is_over_is_named_test() ->
    #{atoll_sim := Most} = atoll_test_budget:read(),
    Lines = fun(Seconds) ->
        Done = [{#{app => atoll_sim}, #{seconds => S}} || S <- Seconds],
        [Line || Line <- string:lexemes(atoll_test_budget:lines(Done), "\n"), string:prefix(Line, "atoll_sim ") =/= nomatch]
    end,
    [Within] = Lines([Most / 2, Most / 2]),
    [Over] = Lines([Most / 2, Most / 2, 1.0]),
    ?assertEqual({nomatch, true}, {string:find(Within, "over its budget"), string:find(Over, "over its budget") =/= nomatch}).

what_has_no_budget_is_told_test() ->
    Lines = lists:flatten(atoll_test_budget:lines([{#{app => reef}, #{seconds => 3.0}}])),
    ?assertMatch({match, _}, re:run(Lines, "reef +3 / +none s")).

root() -> filename:join(filename:absname(code:lib_dir(atoll_test)), "../../../..").
