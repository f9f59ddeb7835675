%% SPDX-License-Identifier: Apache-2.0
%% The choice of a lane: what is spread, what sticks, what is forgotten. The order that
%% follows from it is in atoll_dist_sorter_tests.
-module(atoll_dist_lanes_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(IDLE(N), erlang:make_tuple(N, 0)).

a_sender_keeps_its_lane_till_a_fence_test_() ->
    atoll_prop:test(
        ?FUNCTION_NAME,
        ?FORALL({Keys, N}, {non_empty(list(range(0, 16#FFFFFFFF))), range(1, 64)}, begin
            {First, Lanes} = senders(Keys, atoll_dist_lanes:new(N)),
            {Again, _} = senders(Keys, Lanes),
            conjunction([
                {same, equals(First, Again)},
                {few, lists:all(fun(Lane) -> Lane >= 0 andalso Lane < N end, First)}
            ])
        end),
        200
    ).

senders(Keys, Lanes0) ->
    lists:mapfoldl(
        fun(Key, Lanes) ->
            N = length(maps:get(slots, atoll_dist_lanes:figures(Lanes))),
            {_, _} = atoll_dist_lanes:choose({sender, Key}, ?IDLE(N), Lanes)
        end,
        Lanes0,
        Keys
    ).

senders_spawned_in_a_row_are_spread_evenly_test() ->
    [
        begin
            {Chosen, Lanes} = senders([From + I * Step || I <- lists:seq(1, Count)], atoll_dist_lanes:new(16)),
            ?assertEqual(lists:duplicate(16, Count div 16), maps:get(slots, atoll_dist_lanes:figures(Lanes))),
            ?assertEqual(16, length(lists:usort(Chosen)))
        end
     || Count <- [16, 128], From <- [0, 84, 1 bsl 31], Step <- [1, 2, 16, 17]
    ].

after_a_fence_the_lane_with_the_least_waiting_is_next_test() ->
    {[0], Lanes0} = senders([7], atoll_dist_lanes:new(4)),
    Lanes = atoll_dist_lanes:fenced(Lanes0),
    ?assertMatch({2, _}, atoll_dist_lanes:choose({sender, 7}, {30, 20, 10, 20}, Lanes)).

read(Verdicts, Lanes0) ->
    lists:mapfoldl(
        fun(Verdict, Lanes) -> {_, _} = atoll_dist_lanes:choose(Verdict, ?IDLE(4), Lanes) end,
        Lanes0,
        Verdicts
    ).

who_is_forgotten_in_a_channel_is_behind_a_fence_test() ->
    Lanes0 = atoll_dist_lanes:new(2, #{groups => [{0, 1}, {1, 1}], max_members => 1}),
    {Ways, _} = lists:mapfoldl(
        fun({Key, Group}, Lanes) -> {_, _} = atoll_dist_lanes:choose({sender, Key}, Group, ?IDLE(2), Lanes) end,
        Lanes0,
        [{1, 2}, {1, 2}, {2, 2}, {3, 2}, {1, 1}]
    ),
    ?assertEqual([1, 1, fence, fence, 0], Ways).

fragments_of_interleaved_messages_take_their_senders_lanes_test() ->
    {Ways, Lanes} = read(
        [
            {sender, 0}, {sender, 1}, {sender, 2},
            {first, 11, 3, {sender, 1}}, {first, 12, 2, {sender, 2}},
            {next, 11, 2}, {sender, 0}, {next, 12, 1}, {next, 11, 1}
        ],
        atoll_dist_lanes:new(4)
    ),
    ?assertEqual([0, 1, 2, 1, 2, 1, 0, 2, 1], Ways),
    ?assertMatch(#{sequences := 0}, atoll_dist_lanes:figures(Lanes)).

fragments_without_a_sender_are_fenced_at_both_ends_test() ->
    {Ways, _} = read([{first, 9, 3, late}, {next, 9, 2}, {next, 9, 1}], atoll_dist_lanes:new(4)),
    ?assertEqual([fence, 0, fence], Ways).

a_sequences_number_that_comes_again_from_another_is_fenced_test() ->
    {Ways, _} = read([{first, 9, 3, late}, {first, 9, 2, {sender, 1}}, {next, 9, 1}], atoll_dist_lanes:new(4)),
    ?assertEqual([fence, fence, 0], Ways).

fragments_out_of_turn_are_refused_test() ->
    {[0], Lanes} = read([{first, 9, 4, {sender, 1}}], atoll_dist_lanes:new(4)),
    [
        ?assertEqual(
            {error, {fragment_out_of_turn, Seq, Frag}},
            atoll_dist_lanes:choose({next, Seq, Frag}, ?IDLE(4), Lanes)
        )
     || {Seq, Frag} <- [{9, 4}, {9, 2}, {9, 1}, {8, 3}]
    ].

a_packet_that_was_not_understood_is_refused_test() ->
    Error = {error, {bad_packet, <<"x">>}},
    ?assertEqual(Error, atoll_dist_lanes:choose(Error, ?IDLE(4), atoll_dist_lanes:new(4))).

of_unfinished_sequences_a_bounded_number_is_known_test() ->
    Max = 10,
    Lanes0 = atoll_dist_lanes:new(4, #{max_sequences => Max}),
    {_, Lanes} = read([{first, Seq, 5, {sender, Seq}} || Seq <- lists:seq(1, 1001)], Lanes0),
    #{sequences := Known, forgotten := Forgotten} = atoll_dist_lanes:figures(Lanes),
    ?assertEqual(1001, Known + Forgotten),
    ?assert(Known =< Max),
    %% One that was forgotten goes on behind a fence, and its end needs one.
    {Ways, _} = read([{next, 1, 4}, {next, 1, 3}, {next, 1, 2}, {next, 1, 1}], Lanes),
    ?assertEqual([fence, 0, 0, fence], Ways).
