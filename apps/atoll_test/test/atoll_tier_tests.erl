%% SPDX-License-Identifier: Apache-2.0
%% The sizes of both tiers, and the seed.
-module(atoll_tier_tests).

-include_lib("eunit/include/eunit.hrl").

the_table_of_sizes_is_sorted_and_the_deep_tier_does_more_test() ->
    Sizes = atoll_tier:sizes(),
    Names = [Name || {Name, _, _, _} <- Sizes],
    ?assertEqual(lists:usort(Names), Names),
    ?assertEqual([], [Name || {Name, Fast, Deep, _} <- Sizes, Fast >= Deep]).

each_size_is_used_test_() -> {timeout, 60, fun each_size_is_used/0}.

each_size_is_used() ->
    Texts = [
        element(2, {ok, _} = file:read_file(File))
     || {_, File} <- atoll_test_jobs:sources(root()), filename:basename(File) =/= "atoll_tier_tests.erl"
    ],
    Names = [atom_to_binary(Name) || {Name, _, _, _} <- atoll_tier:sizes()],
    %% All in one look at each file: there are hundreds.
    {ok, Any} = re:compile(["\\b(", lists:join("|", Names), ")\\b"]),
    Used = [Name || Text <- Texts, {match, Found} <- [re:run(Text, Any, [global, {capture, [1], binary}])], [Name] <- Found],
    ?assertEqual([], Names -- lists:usort(Used)).

no_test_reads_a_size_of_its_own_from_the_environment_test_() -> {timeout, 60, fun no_test_reads_a_size_of_its_own_from_the_environment/0}.

no_test_reads_a_size_of_its_own_from_the_environment() ->
    Own = [
        {filename:basename(File), Name}
     || {_, File} <- atoll_test_jobs:sources(root()),
        {ok, Text} <- [file:read_file(File)],
        {match, Found} <- [re:run(Text, <<"getenv\\(\"(ATOLL_[A-Z_]*)\"">>, [global, {capture, [1], list}])],
        [Name] <- Found,
        %% Where data and programs lie, and what a test tells its own nodes, are no sizes.
        not lists:member(Name, ["ATOLL_ORLIB", "ATOLL_TSUNG", "ATOLL_DIST_OWN_EPMD", "ATOLL_WATCH_PYTHON", "ATOLL_DEPLOY_PYTHON"])
    ],
    ?assertEqual([], Own).

the_seed_of_a_test_hangs_on_the_run_and_its_name_test() ->
    ?assertEqual(atoll_tier:seed(a), atoll_tier:seed(a)),
    ?assertNotEqual(atoll_tier:seed(a), atoll_tier:seed(b)).

seeds_are_as_many_in_the_deep_tier_and_a_tenth_but_one_at_least_in_the_fast_one_test() ->
    Counts = [length(atoll_tier:seeds(a, Deep)) || Deep <- [3, 300]],
    ?assertEqual(maps:get(atoll_tier:tier(), #{fast => [1, 30], deep => [3, 300]}), Counts),
    ?assertEqual(atoll_tier:seeds(a, 300), atoll_tier:seeds(a, 300)),
    ?assertNotEqual(atoll_tier:seeds(a, 300), atoll_tier:seeds(b, 300)).

root() -> filename:join(filename:absname(code:lib_dir(atoll_test)), "../../../..").
