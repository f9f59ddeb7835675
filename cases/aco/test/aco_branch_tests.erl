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

%%% One submaster

a_round_is_answered_when_all_have_answered_it_test() ->
    {B1, []} = handle({best, 1, 1, {7, 1, [1]}}, asked(1)),
    {_, [{answer, 1, {5, 2, [2]}}]} = handle({best, 2, 1, {5, 2, [2]}}, B1).

of_equal_answers_that_of_the_lower_number_counts_in_any_order_test() ->
    Answers = [{best, 1, 1, {5, 1, [1]}}, {best, 2, 1, {5, 2, [2]}}],
    [begin
         {B, []} = handle(First, asked(1)),
         ?assertMatch({_, [{answer, 1, {5, 1, [1]}}]}, handle(Second, B))
     end || [First, Second] <- [Answers, lists:reverse(Answers)]].

answers_that_are_late_or_come_twice_change_nothing_test() ->
    {B1, []} = handle({best, 1, 2, {7, 1, [1]}}, asked(2)),
    ?assertEqual({B1, []}, handle({best, 1, 2, {1, 1, [1]}}, B1)),
    ?assertEqual({B1, []}, handle({best, 2, 1, {1, 2, [1]}}, B1)).

one_that_is_started_again_is_asked_the_same_test() ->
    {B1, [{start, 1, a, again}]} = handle({down, 1, a, process}, asked(1)),
    {_, [{ask, 1, 1, none}]} = handle({up, 1, a}, B1).

one_that_has_answered_is_started_again_but_not_asked_in_the_round_test() ->
    {B1, []} = handle({best, 1, 1, {7, 1, [1]}}, asked(1)),
    {B2, [{start, 1, a, idle}]} = handle({down, 1, a, process}, B1),
    {B3, []} = handle({up, 1, a}, B2),
    {_, [{answer, 1, {5, 2, [2]}}]} = handle({best, 2, 1, {5, 2, [2]}}, B3).

one_whose_node_is_lost_goes_on_on_each_spare_node_until_there_is_none_test() ->
    {B1, [{start, 1, b, moved}]} = handle({down, 1, a, node}, asked(1)),
    {B2, [{start, 1, m, moved}]} = handle({down, 1, b, node}, B1),
    {_, [{fail, {node_lost, 1, m}}]} = handle({down, 1, m, node}, B2).

news_of_a_place_that_was_left_changes_nothing_test() ->
    {B1, [{start, 1, b, moved}]} = handle({down, 1, a, node}, asked(1)),
    ?assertEqual({B1, []}, handle({down, 1, a, process}, B1)),
    ?assertEqual({B1, []}, handle({up, 1, a}, B1)).

one_that_was_never_there_ends_the_run_test() ->
    {B, [{start, 1, a, build}, {start, 2, b, build}]} = handle({ask, 0, none}, new(true)),
    {_, [{fail, {unreachable, a}}]} = handle({down, 1, a, node}, B).

a_place_that_was_left_is_told_from_the_present_one_test() ->
    {B1, [{start, 1, b, moved}]} = handle({down, 1, a, node}, asked(1)),
    ?assertEqual([false, true], [aco_branch:is_at(1, Node, B1) || Node <- [a, b]]).

any_loss_ends_a_run_that_is_not_reliable_test() ->
    {B, _} = handle({ask, 1, none}, new(false)),
    ?assertMatch({_, [{fail, {process_lost, 1, a}}]}, handle({down, 1, a, process}, B)),
    ?assertMatch({_, [{fail, {node_lost, 2, b}}]}, handle({down, 2, b, node}, B)).

%% A submaster on m with colony 1 on a and colony 2 on b.
new(Reliable) ->
    {ok, #{below := _} = Tree} = aco_tree:new(tl, [m, a, b], 1, 1),
    aco_branch:new(aco_tree:children(Tree), Reliable).

%% All below it are there, and asked.
asked(Round) ->
    {B0, _} = handle({ask, 0, none}, new(true)),
    {B1, _} = handle({up, 1, a}, B0),
    {B2, _} = handle({up, 2, b}, B1),
    {B3, [{ask, 1, Round, none}, {ask, 2, Round, none}]} = handle({ask, Round, none}, B2),
    B3.

handle(Event, Branch) ->
    aco_branch:handle(Event, Branch).
