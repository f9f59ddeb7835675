%% SPDX-License-Identifier: Apache-2.0
-module(aco_branch_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%%% A whole tree

%% Whatever is killed, in whatever order messages come: each round ends, and with the same.
no_round_is_lost_or_changed_by_kills_test_() ->
    atoll_prop:test(?FUNCTION_NAME, prop_rounds(), 1000).

prop_rounds() ->
    ?FORALL(
        {{Degree, Count, NodeKills}, Kills, Seed},
        {shape(), range(0, 40), integer()},
        begin
            Tree = tree(Degree, Count),
            Answers = aco_branch_world:run(Tree, 5, {Kills, NodeKills}, Seed),
            ?WHENFAIL(io:format(user, "~0tp~n", [Answers]), Answers =:= aco_branch_world:expected(Tree, 5))
        end
    ).

%% With how many nodes killed there is always one left for each. In a tree of four levels a
%% submaster of the second has one spare node.
shape() ->
    oneof([{2, Count, NodeKills} || Count <- [5, 8, 11, 14], NodeKills <- [0, 1, 2]]
          ++ [{3, 10, 3}, {2, 23, 0}, {2, 23, 1}]).

tree(Degree, Count) ->
    {ok, Tree} = aco_tree:new(sr, [list_to_atom("n" ++ integer_to_list(I)) || I <- lists:seq(1, Count)], Degree, 1),
    Tree.

%%% One submaster, over colony 1 on a or b, and colony 2 on b or m

a_round_is_answered_when_all_have_answered_it_test() ->
    {B1, []} = handle({answer, 1, 1, {7, 1, [1]}}, asked(1)),
    {_, [{answer, 1, {5, 2, [2]}}]} = handle({answer, 2, 1, {5, 2, [2]}}, B1).

of_equal_answers_that_of_the_lower_number_counts_in_any_order_test() ->
    Answers = [{answer, 1, 1, {5, 1, [1]}}, {answer, 2, 1, {5, 2, [2]}}],
    [begin
         {B, []} = handle(First, asked(1)),
         ?assertMatch({_, [{answer, 1, {5, 1, [1]}}]}, handle(Second, B))
     end || [First, Second] <- [Answers, lists:reverse(Answers)]].

answers_that_are_late_or_come_twice_change_nothing_test() ->
    {B1, []} = handle({answer, 1, 2, {7, 1, [1]}}, asked(2)),
    ?assertEqual({B1, []}, handle({answer, 1, 2, {1, 1, [1]}}, B1)),
    ?assertEqual({B1, []}, handle({answer, 2, 1, {1, 2, [1]}}, B1)).

one_that_is_asked_again_when_all_is_answered_answers_again_test() ->
    {B1, []} = handle({answer, 1, 1, {7, 1, [1]}}, asked(1)),
    {B2, Answer} = handle({answer, 2, 1, {5, 2, [2]}}, B1),
    ?assertEqual({B2, Answer}, handle({ask, 1}, B2)),
    ?assertEqual({B2, []}, handle({ask, 0}, B2)).

one_that_has_answered_is_not_open_in_the_round_any_more_test() ->
    {B1, []} = handle({answer, 1, 1, {7, 1, [1]}}, asked(1)),
    ?assertEqual([true, false, true, false],
                 [aco_branch:is_open(1, 1, asked(1)), aco_branch:is_open(1, 1, B1), aco_branch:is_open(2, 1, B1),
                  aco_branch:is_open(2, 0, B1)]).

one_whose_node_is_lost_goes_on_on_each_of_its_nodes_until_there_is_none_test() ->
    {B1, [{ask, 1, 1}]} = handle({unreachable, 1, a, gone}, asked(1)),
    ?assertEqual(b, aco_branch:node_of(1, B1)),
    {_, [{fail, {node_lost, 1, b}}]} = handle({unreachable, 1, b, gone}, B1).

news_of_a_node_that_was_left_changes_nothing_test() ->
    {B1, _} = handle({unreachable, 1, a, gone}, asked(1)),
    ?assertEqual({B1, []}, handle({unreachable, 1, a, gone}, B1)).

one_that_was_never_there_ends_the_run_test() ->
    {B, _} = handle({ask, 0}, new()),
    ?assertMatch({_, [{fail, why}]}, handle({unreachable, 1, a, why}, B)).

what_nodes_say_at_the_end_is_put_together_test() ->
    {B1, []} = handle({answer, 1, finish, #{a => #{}}}, asked(finish)),
    ?assertMatch({_, [{answer, finish, #{a := _, b := _}}]}, handle({answer, 2, finish, #{b => #{}}}, B1)).

new() ->
    aco_branch:new([{1, [a, b]}, {2, [b, m]}]).

%% All below it were there, and are asked.
asked(Round) ->
    {B0, [{ask, 1, 0}, {ask, 2, 0}]} = handle({ask, 0}, new()),
    {B1, []} = handle({answer, 1, 0, none}, B0),
    {B2, [{answer, 0, none}]} = handle({answer, 2, 0, none}, B1),
    {B3, [{ask, 1, Round}, {ask, 2, Round}]} = handle({ask, Round}, B2),
    B3.

handle(Event, Branch) ->
    aco_branch:handle(Event, Branch).
