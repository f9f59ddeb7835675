%% SPDX-License-Identifier: Apache-2.0
%% Lines at nodes, and the rule by which one stands in one.
-module(atoll_choosing_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(C, atoll_claims).

%% The line

who_comes_stands_last_and_is_there_once_test() ->
    Empty = ?C:new(#{hold_ms => 100, max_claims => 10}),
    {1, One} = ?C:take(a, 0, Empty),
    {2, Two} = ?C:take(b, 1, One),
    {1, Two} = ?C:take(a, 2, Two),
    ?assertEqual({2, 2}, ?C:place(b, 3, Two)),
    ?assertEqual({none, 2}, ?C:place(c, 3, Two)),
    ?assertEqual({1, 1}, ?C:place(b, 3, ?C:leave(a, Two))),
    ?assertEqual(Two, ?C:leave(c, Two)).

a_claim_ends_by_itself_test() ->
    {1, One} = ?C:take(a, 0, ?C:new(#{hold_ms => 100, max_claims => 10})),
    {2, Two} = ?C:take(b, 50, One),
    ?assertEqual({1, 1}, ?C:place(b, 100, Two)),
    ?assertEqual(0, ?C:count(150, Two)).

a_full_line_takes_nobody_test() ->
    {1, One} = ?C:take(a, 0, ?C:new(#{hold_ms => 100, max_claims => 1})),
    {2, Full} = ?C:take(b, 0, One),
    ?assertEqual({none, 1}, ?C:place(b, 0, Full)).

places_are_those_of_a_list_test_() ->
    atoll_prop:test(?FUNCTION_NAME, as_a_list(), 300).

as_a_list() ->
    ?FORALL(Steps, list({oneof([take, leave]), choose(1, 8), choose(0, 30)}), begin
        {_, _, _, Same} = lists:foldl(
            fun({What, Id, Wait}, {Now0, Claims, List0, Ok}) ->
                Now = Now0 + Wait,
                List = [One || {_, Until} = One <- List0, Until > Now],
                case {What, lists:keymember(Id, 1, List)} of
                    {take, false} ->
                        {Place, Next} = ?C:take(Id, Now, Claims),
                        {Now, Next, List ++ [{Id, Now + 100}], Ok andalso Place =:= length(List) + 1};
                    {take, true} ->
                        {Place, Next} = ?C:take(Id, Now, Claims),
                        {Now, Next, List, Ok andalso Place =:= place(Id, List)};
                    {leave, _} ->
                        Left = lists:keydelete(Id, 1, List),
                        Next = ?C:leave(Id, Claims),
                        {Now, Next, Left, Ok andalso ?C:count(Now, Next) =:= length(Left)}
                end
            end,
            {0, ?C:new(#{hold_ms => 100, max_claims => 100}), [], true},
            Steps
        ),
        Same
    end).

place(Id, List) ->
    length(lists:takewhile(fun({Other, _}) -> Other =/= Id end, List)) + 1.

%% The rule

who_stands_alone_is_done_test() ->
    {C, [{claim, a}], R} = atoll_choosing:start(atoll_choosing:new([[a]], #{}), drawer()),
    ?assertMatch({_, [{done, a, 1}], _}, atoll_choosing:answer(a, {place, 1, true}, C, {#{}, R})).

those_first_to_which_least_was_sent_test() ->
    Recent = #{a => 2, b => 1, c => 2},
    {_, Deeds, _} = atoll_choosing:start(atoll_choosing:new([[a, b, c]], #{}), {Recent, rand()}),
    ?assertEqual([{claim, b}], Deeds).

who_stands_behind_moves_to_a_shorter_line_test() ->
    {Looking, _} = second_in_line(5),
    {C1, [], R1} = atoll_choosing:answer(a, {line, 5, 6}, Looking, drawer()),
    {C2, [], R2} = atoll_choosing:answer(b, {line, none, 4}, C1, {#{}, R1}),
    {C3, [{claim, c}], R3} = atoll_choosing:answer(c, {line, none, 2}, C2, {#{}, R2}),
    {_, Deeds, _} = atoll_choosing:answer(c, {place, 3, true}, C3, {#{}, R3}),
    ?assertMatch([{leave, a}, {look, c} | _], Deeds).

who_finds_no_shorter_line_stays_test() ->
    {Looking, _} = second_in_line(5),
    {C1, [], R1} = atoll_choosing:answer(a, {line, 5, 6}, Looking, drawer()),
    {C2, [], R2} = atoll_choosing:answer(b, {line, none, 4}, C1, {#{}, R1}),
    ?assertMatch({_, [{done, a, 5}], _}, atoll_choosing:answer(c, {line, none, 9}, C2, {#{}, R2})).

who_moves_and_comes_too_late_goes_back_test() ->
    {Looking, _} = second_in_line(5),
    {C1, [], R1} = atoll_choosing:answer(a, {line, 5, 6}, Looking, drawer()),
    {C2, [], R2} = atoll_choosing:answer(b, {line, none, 4}, C1, {#{}, R1}),
    {C3, [{claim, c}], R3} = atoll_choosing:answer(c, {line, none, 2}, C2, {#{}, R2}),
    {C4, [{leave, c} | _], _} = atoll_choosing:answer(c, {place, 7, true}, C3, {#{}, R3}),
    ?assertEqual({a, 5}, atoll_choosing:current(C4)).

what_does_not_fit_any_more_is_passed_over_test() ->
    {C, [{claim, a}], R} = atoll_choosing:start(atoll_choosing:new([[a], [b]], #{}), drawer()),
    {C1, Deeds, R1} = atoll_choosing:answer(a, {place, 1, false}, C, {#{}, R}),
    ?assertEqual([{leave, a}, {claim, b}], Deeds),
    ?assertMatch({_, [{leave, b}, none], _}, atoll_choosing:gone(b, C1, {#{}, R1})).

a_late_answer_changes_nothing_test() ->
    {C, [{claim, a}], R} = atoll_choosing:start(atoll_choosing:new([[a], [b]], #{}), drawer()),
    ?assertEqual({C, [], R}, atoll_choosing:answer(b, {place, 1, true}, C, {#{}, R})),
    ?assertEqual({C, [], R}, atoll_choosing:answer(a, {line, 1, 1}, C, {#{}, R})).

%% One stands somewhere at the end and nowhere else, whatever is answered.
nothing_is_left_standing_test_() ->
    atoll_prop:test(?FUNCTION_NAME, left_standing(), 500).

left_standing() ->
    ?FORALL({Seed, Tiers}, {choose(1, 1000000), ?LET(N, choose(0, 8), tiers(N))}, begin
        R = rand:seed_s(exsss, Seed),
        {C, Deeds, R1} = atoll_choosing:start(atoll_choosing:new(Tiers, #{}), {#{}, R}),
        play(C, Deeds, R1, [], 0)
    end).

tiers(N) ->
    Nodes = [list_to_atom("n" ++ integer_to_list(I)) || I <- lists:seq(1, N)],
    ?LET(Cut, choose(0, N), [lists:sublist(Nodes, Cut), lists:nthtail(Cut, Nodes)]).

%% Answers the deeds in any order, with anything.
play(_C, _Deeds, _R, _Stands, 200) ->
    false;
play(C, Deeds, R0, Stands0, Steps) ->
    Stands = lists:foldl(
        fun
            ({claim, N}, S) -> [N | S];
            ({leave, N}, S) -> lists:delete(N, S);
            (_, S) -> S
        end,
        Stands0,
        Deeds
    ),
    case [D || D <- Deeds, D =:= none orelse element(1, D) =:= done] of
        [none] ->
            Stands =:= [] andalso atoll_choosing:current(C) =:= none;
        [{done, Node, Place}] ->
            lists:usort(Stands) =:= [Node] andalso atoll_choosing:current(C) =:= {Node, Place};
        [] ->
            Asked = [{What, N} || {What, N} <- Deeds, What =:= claim orelse What =:= look],
            answer_all(Asked, C, R0, Stands, Steps)
    end.

answer_all([], _C, _R, _Stands, _Steps) ->
    %% Somebody waits for what was never asked.
    false;
answer_all([{What, Node} | Others], C0, R0, Stands, Steps) ->
    {X, R1} = rand:uniform_s(10, R0),
    {Place, R2} = rand:uniform_s(12, R1),
    {C, Deeds, R} =
        case {What, X} of
            {_, 1} -> atoll_choosing:gone(Node, C0, {#{}, R2});
            {claim, _} -> atoll_choosing:answer(Node, {place, Place, X > 2}, C0, {#{}, R2});
            {look, 2} -> atoll_choosing:answer(Node, {line, none, Place}, C0, {#{}, R2});
            {look, _} -> atoll_choosing:answer(Node, {line, Place, Place + X}, C0, {#{}, R2})
        end,
    case Deeds of
        [] -> answer_all(Others, C, R, Stands, Steps + 1);
        _ -> play(C, Deeds, R, Stands, Steps + 1)
    end.

second_in_line(Place) ->
    {C, [{claim, a}], R} = atoll_choosing:start(atoll_choosing:new([[a, b, c]], #{}), {#{b => 1, c => 1}, rand()}),
    {Looking, Looks, R1} = atoll_choosing:answer(a, {place, Place, true}, C, {#{}, R}),
    ?assertEqual([{look, a}, {look, b}, {look, c}], lists:sort(Looks)),
    {Looking, R1}.

drawer() -> {#{}, rand()}.

rand() -> rand:seed_s(exsss, 1).
