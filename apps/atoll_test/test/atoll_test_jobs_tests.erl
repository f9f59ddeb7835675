%% SPDX-License-Identifier: Apache-2.0
%% What there is to run, and in which order.
-module(atoll_test_jobs_tests).

-include_lib("eunit/include/eunit.hrl").

-define(SOURCES, [
    {reef, "apps/reef/test/reef_SUITE.erl"},
    {reef, "apps/reef/test/reef_a_tests.erl"},
    {reef, "apps/reef/test/reef_b_tests.erl"},
    {reef, "apps/reef/test/reef_c_tests.erl"},
    {reef, "apps/reef/test/reef_helper.erl"},
    {fish, "cases/fish/test/fish_tests.erl"}
]).

names(Jobs) -> [{maps:get(kind, J), maps:get(modules, J)} || J <- Jobs].

the_longest_is_first_and_short_modules_share_a_vm_test() ->
    Times = #{reef_SUITE => 20.0, reef_a_tests => 7.0, reef_b_tests => 0.5, reef_c_tests => 0.3, fish_tests => 30.0},
    ?assertEqual(
        [{eunit, [fish_tests]}, {ct, [reef_SUITE]}, {eunit, [reef_a_tests, reef_b_tests, reef_c_tests]}],
        names(atoll_test_jobs:all(?SOURCES, Times))
    ).

a_long_module_has_a_vm_of_its_own_test() ->
    Times = #{reef_SUITE => 1.0, reef_a_tests => 19.0, reef_b_tests => 19.5, reef_c_tests => 0.3, fish_tests => 0.1},
    Jobs = names(atoll_test_jobs:all(?SOURCES, Times)),
    ?assertEqual([{eunit, [reef_b_tests]}, {eunit, [reef_a_tests]}], lists:sublist(Jobs, 2)),
    ?assert(lists:member({eunit, [reef_c_tests]}, Jobs)).

short_suites_of_one_application_share_a_vm_and_long_ones_have_their_own_test() ->
    Suites = [{reef, lists:concat(["apps/reef/test/reef_", S, "_SUITE.erl"])} || S <- [a, b, c, d]] ++ [{fish, "cases/fish/test/fish_SUITE.erl"}],
    Times = #{reef_a_SUITE => 60.0, reef_b_SUITE => 15.0, reef_c_SUITE => 12.0, reef_d_SUITE => 3.0, fish_SUITE => 1.0},
    ?assertEqual(
        [{"reef_a_SUITE", [reef_a_SUITE]}, {"reef suites 2", [reef_b_SUITE, reef_c_SUITE, reef_d_SUITE]}, {"fish_SUITE", [fish_SUITE]}],
        [{Name, Ms} || #{name := Name, modules := Ms} <- atoll_test_jobs:all(Suites, Times)]
    ).

what_nobody_has_timed_runs_too_test() ->
    Modules = lists:append([Ms || {_, Ms} <- names(atoll_test_jobs:all(?SOURCES, #{}))]),
    ?assertEqual([fish_tests, reef_SUITE, reef_a_tests, reef_b_tests, reef_c_tests], lists:sort(Modules)).

what_was_not_timed_in_the_deep_tier_takes_what_it_takes_in_the_fast_one_test() ->
    Dir = atoll_test_file:temporary("times"),
    ok = file:make_dir(Dir),
    _ = [ok = file:write_file(filename:join(Dir, Name), Text) || {Name, Text} <- [
        {"times-fast.config", "{reef_SUITE, 2.0}.\n{reef_new_SUITE, 3.0}.\n"}, {"times-deep.config", "{reef_SUITE, 40.0}.\n"}
    ]],
    Read = [atoll_test_times:read(Tier, Dir) || Tier <- [fast, deep]],
    ok = file:del_dir_r(Dir),
    ?assertEqual([#{reef_SUITE => 2.0, reef_new_SUITE => 3.0}, #{reef_SUITE => 40.0, reef_new_SUITE => 3.0}], Read).

what_was_recorded_is_read_test() ->
    [#{aco_SUITE := Fast}, #{aco_SUITE := Deep}] = [atoll_test_times:read(Tier) || Tier <- [fast, deep]],
    ?assert(Deep > Fast).

each_job_has_a_name_of_its_own_test() ->
    Names = [Name || #{name := Name} <- atoll_test_jobs:all(?SOURCES, #{reef_a_tests => 19.0, reef_b_tests => 19.0})],
    ?assertEqual(length(Names), length(lists:usort(Names))).

an_application_stands_for_all_its_modules_test() ->
    {ok, Jobs} = atoll_test_jobs:only(["reef"], "", ?SOURCES, #{}),
    ?assertEqual([reef_SUITE, reef_a_tests, reef_b_tests, reef_c_tests], lists:sort(lists:append([Ms || {_, Ms} <- names(Jobs)]))).

eunit_modules_are_first_in_a_place_for_each_two_processors_test() ->
    First = fun(Processors, Kind) -> length([Place || Place <- atoll_test_jobs:places(Processors), Place(#{kind => Kind})]) end,
    ?assertEqual([{1, 2, 2}, {2, 4, 5}, {5, 10, 12}], [{N, First(N, ct), First(N, eunit)} || N <- [1, 2, 5]]).

a_case_goes_with_its_suite_test() ->
    {ok, [#{'case' := "c", modules := [reef_SUITE]}]} = atoll_test_jobs:only(["reef_SUITE"], "c", ?SOURCES, #{}),
    ?assertMatch({error, _}, atoll_test_jobs:only(["reef"], "c", ?SOURCES, #{})).

a_mistyped_suite_is_named_with_what_may_be_meant_test() ->
    {error, Why} = atoll_test_jobs:only(["reef_SUTE"], "", ?SOURCES, #{}),
    ?assertEqual(
        "there is no suite, EUnit module or application reef_SUTE; did you mean reef_SUITE?", lists:flatten(Why)
    ),
    ?assertMatch({error, _}, atoll_test_jobs:only(["reef_helper"], "", ?SOURCES, #{})).
