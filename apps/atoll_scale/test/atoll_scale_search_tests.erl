%% SPDX-License-Identifier: Apache-2.0
%% The search for a limit, on services that are functions.
-module(atoll_scale_search_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

searched(Passes, Options) -> searched(atoll_scale_search:new(Options), Passes, []).

%% Passes takes a level and how often it was asked before.
searched(Search, Passes, Asked) ->
    case atoll_scale_search:next(Search) of
        {run, Level} ->
            Passed = Passes(Level, length([L || L <- Asked, L =:= Level])),
            searched(atoll_scale_search:told(Level, Passed, Search), Passes, [Level | Asked]);
        {found, Result} ->
            {Result, lists:reverse(Asked), atoll_scale_search:runs(Search)}
    end.

options() -> #{from => 4, to => 65536, precision => 0.1}.

upto(Limit) -> fun(Level, _) -> Level =< Limit end.

it_doubles_until_a_level_fails_and_then_halves_test() ->
    {#{limit := Limit, fails := Fails}, Asked, _} = searched(upto(1000), options()),
    ?assertEqual([4, 8, 16, 32, 64, 128, 256, 512, 1024, 1024, 768, 896, 960, 960], Asked),
    ?assertEqual({960, 1024}, {Limit, Fails}).

what_fails_at_the_first_level_is_looked_for_below_it_test() ->
    ?assertMatch({#{limit := 3, fails := 4}, _, _}, searched(upto(3), (options())#{from := 64})),
    ?assertMatch({#{limit := 0, fails := 1}, [1, 1], _}, searched(upto(0), (options())#{from := 1})).

what_passes_at_the_largest_level_is_at_least_that_test() ->
    {Result, _, Runs} = searched(upto(100000), (options())#{to := 100}),
    ?assertEqual(#{limit => 100, fails => none}, Result),
    ?assertEqual({2, 0}, map_get(100, Runs)).

one_run_that_fails_by_chance_is_no_limit_test() ->
    %% Each level's first run fails.
    ?assertMatch({#{limit := 960, fails := 1024}, _, _}, searched(fun(Level, Before) -> Level =< 1000 andalso Before > 0 end, options())).

one_run_that_passes_by_chance_is_no_limit_test() ->
    %% 1,500 passes once.
    {#{limit := Limit}, _, #{1536 := Mixed}} = searched(fun(Level, Before) -> Level =< 1400 orelse (Level =:= 1536 andalso Before =:= 0) end, options()),
    ?assertEqual({1, 2}, Mixed),
    ?assert(Limit =< 1400).

a_limit_is_found_as_near_as_the_precision_test_() ->
    atoll_prop:test("the limit passes, the next one fails, and no level is run more than three times", ?FORALL(
        {Limit, From, Precision},
        {range(0, 5000), range(1, 3000), oneof([0.02, 0.1, 0.5])},
        begin
            {#{limit := Found, fails := Fails}, Asked, _} = searched(upto(Limit), #{from => From, to => 4000, precision => Precision}),
            Near = case Fails of none -> Found =:= 4000; _ -> Fails - Found =< max(1, Precision * Found) andalso Fails > Limit end,
            Found =< Limit andalso Near andalso lists:all(fun(Level) -> length([L || L <- Asked, L =:= Level]) =< 3 end, Asked)
        end
    ), 500).

a_search_ends_whatever_passes_test_() ->
    atoll_prop:test("it ends on a service that passes and fails at random", ?FORALL(
        Seed, range(1, 1000000),
        begin
            {#{limit := Found}, Asked, _} = searched(fun(Level, Before) -> erlang:phash2({Seed, Level, Before}, 3) > 0 end, #{from => 4, to => 1024, precision => 0.1}),
            Found >= 0 andalso Found =< 1024 andalso length(Asked) < 100
        end
    ), 300).

several_searches_have_a_median_and_from_five_on_an_interval_test() ->
    Results = [#{limit => Limit, fails => Limit + 10} || Limit <- [100, 110, 90, 100, 400]],
    ?assertMatch(#{limit := 100, low := 90, high := 400, at_least := false, limits := [100, 110, 90, 100, 400]}, atoll_scale_search:summary(Results)),
    ?assertMatch(#{limit := 105.0, low := none}, atoll_scale_search:summary(lists:sublist(Results, 2))),
    ?assertMatch(#{at_least := true}, atoll_scale_search:summary([#{limit => 1024, fails => none}])).
