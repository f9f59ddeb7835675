%% SPDX-License-Identifier: Apache-2.0
%% Random choices from lists.
-module(atoll_random_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(LIST, [n1, n2, n3, n4, n5, n6, n7, n8, n9]).

properties_test_() ->
    [
        atoll_prop:test(Title, Property, 500)
     || {Title, Property} <- [
            {"a sample is a part of the list, of the size that was asked for", prop_sample()},
            {"a shuffled list has the same elements", prop_shuffle()}
        ]
    ].

prop_sample() ->
    ?FORALL(
        {Seed, Count, Length},
        {integer(), range(0, 12), range(0, 12)},
        begin
            List = lists:seq(1, Length),
            {Sample, _} = atoll_random:sample(Count, List, rand:seed_s(exsss, Seed)),
            length(Sample) =:= min(Count, Length) andalso Sample -- List =:= [] andalso
                length(Sample) =:= length(lists:usort(Sample))
        end
    ).

prop_shuffle() ->
    ?FORALL(
        {Seed, List},
        {integer(), list(range(1, 9))},
        begin
            {Shuffled, _} = atoll_random:shuffle(List, rand:seed_s(exsss, Seed)),
            lists:sort(Shuffled) =:= lists:sort(List)
        end
    ).

every_choice_of_a_sample_is_as_likely_test() ->
    Rand0 = rand:seed_s(exsss, 1),
    {Samples, _} = lists:mapfoldl(fun(_, R) -> atoll_random:sample(3, ?LIST, R) end, Rand0, lists:seq(1, 3000)),
    %% Each of the nine is in a third of 3000 samples.
    Counts = [length([S || S <- Samples, lists:member(Node, S)]) || Node <- ?LIST],
    ?assert(lists:min(Counts) > 850 andalso lists:max(Counts) < 1150).

every_order_is_as_likely_test() ->
    Rand0 = rand:seed_s(exsss, 1),
    {Orders, _} = lists:mapfoldl(fun(_, R) -> atoll_random:shuffle([a, b, c], R) end, Rand0, lists:seq(1, 6000)),
    Counts = [length([O || O <- Orders, O =:= Order]) || Order <- lists:usort(Orders)],
    ?assertMatch([_, _, _, _, _, _], Counts),
    ?assert(lists:min(Counts) > 850 andalso lists:max(Counts) < 1150).

a_seed_gives_what_rand_gives_and_one_set_of_functions_test() ->
    {Functions, _} = atoll_random:seed(7),
    ?assertEqual([rand:seed_s(exsss, Seed) || Seed <- [7, 8]], [atoll_random:seed(Seed) || Seed <- [7, 8]]),
    {Again, _} = atoll_random:seed(9),
    ?assert(erts_debug:same(Functions, Again)).
