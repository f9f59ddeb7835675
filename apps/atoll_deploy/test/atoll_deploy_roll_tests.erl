%% SPDX-License-Identifier: Apache-2.0
%% A release that is rolled through made-up nodes, some of which are not well with it.
-module(atoll_deploy_roll_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

properties_test_() ->
    atoll_prop:tests([
        {"either all have the new release, or each that can has the old one back", rolled(), 1000},
        {"no more are down at once than a batch has", few(), 1000}
    ]).

row(N) -> #{node => "f" ++ integer_to_list(N) ++ "@h", family => "f", number => N, domain => "d", host => "h", release => "old", needs => #{}, state => up}.

%% Nodes, how many at a time, those that are not well with the new release, and those that are not with the old one either.
case_of() ->
    ?LET({Count, Size}, {range(0, 12), range(1, 5)}, {Count, Size, list(range(1, 12)), list(range(1, 12))}).

play({Count, Size, BadNew, BadOld}) ->
    Rows = [row(N) || N <- lists:seq(1, Count)],
    Batches = atoll_deploy_plan:batches(Rows, {"new", Size}),
    play(atoll_deploy_roll:next(atoll_deploy_roll:new("new", Batches)), #{bad => #{"new" => BadNew, "old" => BadOld}, has => maps:from_list([{N, "old"} || N <- lists:seq(1, Count)]), most => 0}).

play({{replace, Rows}, Roll}, #{bad := Bad, has := Has, most := Most} = World) ->
    Results = [{Node, case lists:member(N, maps:get(Release, Bad)) of true -> {error, "bad"}; false -> ok end} || #{node := Node, number := N, release := Release} <- Rows],
    After = lists:foldl(
        fun({#{number := N, release := Release}, {_, Result}}, Of) -> Of#{N => case Result of ok -> Release; _ -> down end} end,
        Has,
        lists:zip(Rows, Results)
    ),
    play(atoll_deploy_roll:next(atoll_deploy_roll:went(Results, Roll)), World#{has := After, most := max(Most, length(Rows))});
play({Effect, _}, World) ->
    {Effect, World}.

rolled() ->
    ?FORALL({Count, _, BadNew, BadOld} = Case, case_of(), begin
        Bad = [N || N <- BadNew, N =< Count],
        case play(Case) of
            {done, #{has := Has}} -> Bad =:= [] andalso lists:all(fun(Is) -> Is =:= "new" end, maps:values(Has));
            {{went_back, _, Failures}, #{has := Has}} ->
                Named = [Node || {Node, _} <- Failures],
                Bad =/= [] andalso
                    lists:all(
                        fun
                            ({_, "old"}) -> true;
                            ({N, down}) -> lists:member(N, BadOld) andalso lists:member("f" ++ integer_to_list(N) ++ "@h", Named);
                            ({_, "new"}) -> false
                        end,
                        maps:to_list(Has)
                    )
        end
    end).

few() -> ?FORALL({_, Size, _, _} = Case, case_of(), begin {_, #{most := Most}} = play(Case), Most =< Size end).

the_one_that_was_not_well_is_named_test() ->
    {{went_back, Why, []}, _} = play({4, 1, [3], []}),
    ?assertEqual("f3@h: bad", lists:flatten(Why)).

%% What a node had is told with it, as long as the roll may be broken off, and no longer.
a_node_that_is_given_a_release_has_what_it_had_before_test() ->
    {{replace, [Given]}, Roll} = atoll_deploy_roll:next(atoll_deploy_roll:new("new", [[row(1)], [row(2)]])),
    ?assertEqual((row(1))#{release := "new", before => "old"}, Given),
    {{replace, [Back]}, _} = atoll_deploy_roll:next(atoll_deploy_roll:went([{"f1@h", {error, "bad"}}], Roll)),
    ?assertEqual(row(1), Back).
