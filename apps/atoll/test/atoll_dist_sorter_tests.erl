%% The writing and the reading end of a channel with lanes together: the order that is
%% promised is kept, whatever the lanes do.
-module(atoll_dist_sorter_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(OPTIONS, #{budget => 1 bsl 24, round => 1 bsl 17}).

order_test_() ->
    {timeout, 120, fun() ->
        ?assert(proper:quickcheck(order(), [{numtests, 2000}, {to_file, user}, {max_size, 60}]))
    end}.

order() ->
    ?FORALL(
        {Ops, N, Max, Choices},
        {list(op()), lanes(), oneof([1, 2, 3, 100]), list(non_neg_integer())},
        begin
            {Sent, Out, _, Sorter} = atoll_dist_world:run(Ops, N, maps:put(max_sequences, Max, ?OPTIONS), Choices),
            #{sequences := Sequences, lanes := Figures} = atoll_dist_sorter:figures(Sorter),
            conjunction([
                {order, equals([], atoll_dist_world:wrong(Sent, Out))},
                {bound, Sequences =< Max},
                {written, equals(0, lists:sum([Waiting || #{waiting := Waiting} <- Figures]))}
            ])
        end
    ).

one_lane_keeps_every_order_test_() ->
    {timeout, 60, fun() ->
        ?assert(
            proper:quickcheck(
                ?FORALL({Ops, Choices}, {list(op()), list(non_neg_integer())}, begin
                    {Sent, Out, _, Sorter} = atoll_dist_world:run(Ops, 1, ?OPTIONS, Choices),
                    #{fences := Fences} = atoll_dist_sorter:figures(Sorter),
                    equals({[N || {N, _, _, _} <- Sent], 0}, {Out, Fences})
                end),
                [{numtests, 200}, {to_file, user}]
            )
        )
    end}.

lanes() -> oneof([2, 3, 4, 16, 64]).

op() ->
    frequency([
        {12, {step, range(1, 8), range(1, 4)}},
        {2, {kill, range(1, 8), range(1, 4)}},
        {2, none},
        {2, late},
        {3, take}
    ]).

ten_thousand_deaths_of_names_share_fences_test() ->
    %% Others' packets come between.
    Ops = lists:append([[late, {step, I rem 8 + 1, 1}] || I <- lists:seq(1, 10000)]),
    Rounds = lists:append([[lists:sublist(Ops, From, 1000), take] || From <- lists:seq(1, 20000, 1000)]),
    {_, Out, _, Sorter} = atoll_dist_world:run(lists:flatten(Rounds), 16, ?OPTIONS, [3, 1, 4]),
    ?assertEqual(20000, length(Out)),
    ?assertMatch(#{fences := 20, fenced := 10000}, atoll_dist_sorter:figures(Sorter)).

packets_without_a_sender_in_a_row_share_a_fence_test() ->
    {_, _, _, Sorter} = atoll_dist_world:run([none, none, late, none, {step, 1, 1}, none], 4, ?OPTIONS, []),
    ?assertMatch(#{fences := 2, fenced := 5}, atoll_dist_sorter:figures(Sorter)).

a_round_ends_and_a_spent_budget_waits_for_the_lanes_test() ->
    Sorter0 = atoll_dist_sorter:new('made@up', 2, #{budget => 4500, round => 1500}),
    ?assertEqual(more, atoll_dist_sorter:wants(Sorter0)),
    Sorter1 = push(1500, Sorter0),
    ?assertEqual(take, atoll_dist_sorter:wants(Sorter1)),
    {[{Lane, Frame, 1500, 1}], Sorter2} = atoll_dist_sorter:take(Sorter1),
    ?assertEqual(1504, iolist_size(Frame)),
    ?assertEqual({[], Sorter2}, atoll_dist_sorter:take(Sorter2)),
    ?assertEqual(more, atoll_dist_sorter:wants(Sorter2)),
    Sorter3 = push(3000, Sorter2),
    ?assertEqual(take, atoll_dist_sorter:wants(Sorter3)),
    {[_], Sorter4} = atoll_dist_sorter:take(Sorter3),
    ?assertEqual(wait, atoll_dist_sorter:wants(Sorter4)),
    ?assertEqual(more, atoll_dist_sorter:wants(atoll_dist_sorter:written(Lane, 1500, 1, Sorter4))).

push(Size, Sorter0) ->
    Pid = <<88, 119, 7, "made@up", 1:32, 0:32, 1:32>>,
    Head = <<104, 3, 97, 22, Pid/binary, Pid/binary>>,
    Rest = Size - 3 - byte_size(Head),
    {ok, Sorter} = atoll_dist_sorter:push(Size, [<<131, 68, 0>>, Head, <<0:(Rest * 8)>>], Sorter0),
    Sorter.

a_bad_packet_ends_it_with_a_reason_test() ->
    Sorter = atoll_dist_sorter:new('made@up', 2, ?OPTIONS),
    ?assertEqual({error, {bad_packet, <<"x">>}}, atoll_dist_sorter:push(1, [<<"x">>], Sorter)),
    ?assertEqual(
        {error, {fragment_out_of_turn, 5, 2}},
        atoll_dist_sorter:push(18, [<<131, 70, 5:64, 2:64>>], Sorter)
    ).
