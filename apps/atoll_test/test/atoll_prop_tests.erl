%% SPDX-License-Identifier: Apache-2.0
%% Properties: seeded by the run, sized by the tier.
-module(atoll_prop_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% What a property draws, in a run with that seed and tier.
drawn(Seed, Tier, Title, Deep) ->
    with([{"SEED", Seed}, {"TIER", Tier}], fun() ->
        Self = self(),
        ok = atoll_prop:holds(Title, ?FORALL(X, integer(), begin Self ! {drawn, X}, true end), Deep),
        heard()
    end).

heard() ->
    receive
        {drawn, X} -> [X | heard()]
    after 0 -> []
    end.

with(Env, Fun) ->
    Before = [{Name, os:getenv(Name, "")} || {Name, _} <- Env],
    _ = [os:putenv(Name, Value) || {Name, Value} <- Env],
    try Fun() after [os:putenv(Name, Value) || {Name, Value} <- Before]
    end.

a_seed_plays_a_property_again_test() ->
    ?assertEqual(drawn("7", "fast", "x", 300), drawn("7", "fast", "x", 300)).

another_seed_or_another_property_draws_otherwise_test() ->
    ?assertNotEqual(drawn("7", "fast", "x", 300), drawn("8", "fast", "x", 300)),
    ?assertNotEqual(drawn("7", "fast", "x", 300), drawn("7", "fast", "y", 300)).

the_tier_says_how_many_tests_test_() ->
    [
        ?_assertEqual(30, length(drawn("7", "fast", "x", 300))),
        ?_assertEqual(500, length(drawn("7", "fast", "x", 5000))),
        ?_assertEqual(20, length(drawn("7", "fast", "x", 20))),
        ?_assertEqual(300, length(drawn("7", "deep", "x", 300)))
    ].

what_does_not_hold_is_told_with_the_seed_and_the_smallest_counterexample_test() ->
    Fails = fun() -> atoll_prop:holds("small", ?FORALL(X, non_neg_integer(), X < 5), 1000) end,
    try with([{"SEED", "7"}, {"TIER", "fast"}], Fails) of
        _ -> error(it_held)
    catch
        error:{does_not_hold, "small", #{seed := Seed, counterexample := Counterexample, said := Said}} ->
            ?assertEqual({7, [5]}, {Seed, Counterexample}),
            ?assertNotEqual(nomatch, string:find(Said, "Failed"))
    end.

%% PropEr finds it at once, and then looks for ever.
a_counterexample_whose_smallest_form_is_not_found_in_time_is_told_as_it_was_found_test() ->
    Self = self(),
    Fails = ?FORALL(X, non_neg_integer(), X < 5 orelse case self() of Self -> Self ! {found, X}, false; _ -> receive never -> true end end),
    try with([{"SEED", "7"}, {"TIER", "fast"}], fun() -> atoll_prop:holds("slow", Fails, 1000, [{shrink_ms, 100}]) end) of
        _ -> error(it_held)
    catch
        error:{does_not_hold, "slow", #{counterexample := [Found]}} -> ?assertEqual(Found, receive {found, X} -> X after 0 -> none end)
    end.

a_property_that_crashes_is_told_with_its_counterexample_test() ->
    Crashes = ?FORALL(X, non_neg_integer(), X < 5 orelse error(oops)),
    ?assertError(
        {does_not_hold, "crash", #{counterexample := [5]}}, with([{"SEED", "7"}], fun() -> atoll_prop:holds("crash", Crashes, 1000) end)
    ).

a_counterexample_that_was_found_once_is_tried_again_test() ->
    Again = fun(Property) ->
        {"again", {timeout, _, Test}} = atoll_prop:again("again", Property, [7]),
        Test()
    end,
    ?assertEqual(ok, Again(?FORALL(X, non_neg_integer(), X < 8))),
    ?assertError({does_not_hold, "again", #{counterexample := [7]}}, Again(?FORALL(X, non_neg_integer(), X < 5))),
    try Again(?FORALL(X, non_neg_integer(), X < 5 orelse error(oops))) of
        _ -> error(it_held)
    catch
        error:{does_not_hold, "again", #{said := Said}} -> ?assertNotEqual(nomatch, string:find(Said, "oops"))
    end.
