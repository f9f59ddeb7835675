%% SPDX-License-Identifier: Apache-2.0
%% Frames: what is put in is read; what is not a frame is refused.
-module(atoll_dist_frame_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

what_is_put_in_is_read_test_() ->
    atoll_prop:test(?FUNCTION_NAME, ?FORALL(Items, list(item()), equals({ok, grouped(Items)}, atoll_dist_frame:parse(frame(Items)))), 1000).

item() ->
    frequency([
        {4, ?LET({Byte, A, B}, {byte(), range(1, 40), range(0, 40)}, {packet, [<<Byte:(A * 8)>>, <<Byte:(B * 8)>>]})},
        {1, {oneof([open, close]), range(0, 16#FFFFFFFF)}}
    ]).

frame(Items) -> iolist_to_binary([made(Item) || Item <- Items]).

made({packet, Pieces}) -> atoll_dist_frame:packet(iolist_size(Pieces), Pieces);
made(Mark) -> atoll_dist_frame:mark(Mark).

grouped([{packet, Pieces} | Items]) ->
    Packet = iolist_to_binary(Pieces),
    case grouped(Items) of
        [{packets, Packets} | Segments] -> [{packets, [Packet | Packets]} | Segments];
        Segments -> [{packets, [Packet]} | Segments]
    end;
grouped([Mark | Items]) ->
    [Mark | grouped(Items)];
grouped([]) ->
    [].

a_tick_has_nothing_in_it_test() ->
    ?assertEqual({ok, []}, atoll_dist_frame:parse(iolist_to_binary(atoll_dist_frame:tick()))).

a_frame_that_was_cut_inside_an_item_is_refused_test_() ->
    atoll_prop:test(
        ?FUNCTION_NAME,
        ?FORALL({Items, Cut}, {non_empty(list(item())), range(1, 5)}, begin
            Frame = frame(Items),
            Last = iolist_size(made(lists:last(Items))),
            Left = byte_size(Frame) - min(Cut, Last - 1),
            {error, {bad_frame, N, Head}} = atoll_dist_frame:parse(binary:part(Frame, 0, Left)),
            N > 0 andalso byte_size(Head) =< 32
        end),
        1000
    ).

anything_is_read_or_refused_test_() ->
    atoll_prop:test(
        ?FUNCTION_NAME,
        ?FORALL(
            {Head, Bytes},
            {oneof([<<>>, <<128, 0, 0>>, <<0, 0, 0>>]), binary()},
            lists:member(element(1, atoll_dist_frame:parse(<<Head/binary, Bytes/binary>>)), [ok, error, ticktime])
        ),
        5000
    ).

an_empty_packet_and_an_unknown_mark_are_refused_test() ->
    ?assertMatch({error, {bad_frame, 4, _}}, atoll_dist_frame:parse(<<0:32>>)),
    ?assertMatch({error, {bad_frame, 8, _}}, atoll_dist_frame:parse(<<16#80000003:32, 1:32>>)).

another_ticktime_is_a_frame_of_its_own_test() ->
    Frame = atoll_dist_frame:ticktime(7000),
    ?assertEqual({ticktime, 7000}, atoll_dist_frame:parse(Frame)),
    ?assertMatch({error, {bad_frame, 16, _}}, atoll_dist_frame:parse(<<Frame/binary, Frame/binary>>)).

a_packet_that_is_kept_holds_its_own_bytes_test() ->
    Small = binary:copy(<<1>>, 100),
    Large = binary:copy(<<2>>, 100000),
    {ok, [{packets, Packets}]} = atoll_dist_frame:parse(frame([{packet, [Small]}, {packet, [Large]}])),
    Alone = [atoll_dist_frame:alone(Packet) || Packet <- Packets],
    ?assertEqual([Small, Large], Alone),
    [?assert(binary:referenced_byte_size(Packet) =< 2 * byte_size(Packet)) || Packet <- Alone],
    %% The large one is most of the frame, and is not copied.
    ?assert(binary:referenced_byte_size(lists:last(Alone)) > 100000).
