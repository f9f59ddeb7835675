%% SPDX-License-Identifier: Apache-2.0
%% A churn kills its share, and brings back as many.
-module(atoll_sim_churn_tests).

-include_lib("eunit/include/eunit.hrl").

-define(NODES, 40).

%% 10 % a second of 40 nodes, in steps of 0.1 s: two in five steps.
kills_that_would_not_fill_a_node_are_owed_test() ->
    {Counts, _} = lists:mapfoldl(fun(_, C0) -> {Killed, _, _, C} = step(0.1, C0), {length(Killed), C} end, new(), lists:seq(1, 10)),
    ?assertEqual([0, 0, 1, 0, 1, 0, 0, 1, 0, 1], Counts).

as_many_start_again_and_the_first_killed_first_test() ->
    {K1, [], _, C1} = step(0.5, new()),
    ?assertEqual([n1, n2], K1),
    {K2, B2, _, C2} = step(0.5, C1),
    ?assertEqual({[n3, n4], [n1, n2]}, {K2, B2}),
    ?assertMatch({[n5, n6], [n3, n4], _, _}, step(0.5, C2)).

who_lives_again_already_is_not_started_test() ->
    {[n1, n2], [], _, {C1, _}} = step(0.5, new()),
    ?assertMatch({_, [n2], _, _}, atoll_sim_churn:step(0.5, ?NODES, fun(Node) -> Node =:= n1 end, draw(3), C1)).

the_last_step_is_at_its_end_test() ->
    ?assertEqual([100, 200, 250], [atoll_sim_churn:next_ms(Ms, 250) || Ms <- [0, 100, 200]]).

%% Draws the nodes by number, none twice.
new() -> {atoll_sim_churn:new(), 1}.

step(Share, {Churn0, From}) ->
    {Killed, Back, Drawn, Churn} = atoll_sim_churn:step(Share, ?NODES, fun(_) -> false end, draw(From), Churn0),
    {Killed, Back, Drawn, {Churn, From + length(Killed)}}.

draw(From) ->
    fun(Count) -> {[list_to_atom("n" ++ integer_to_list(I)) || I <- lists:seq(From, From + Count - 1)], drawn} end.
