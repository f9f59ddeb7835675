%% SPDX-License-Identifier: Apache-2.0
%% The writing and the reading end of a channel with lanes together: the order that is
%% promised is kept, whatever the lanes do.
-module(atoll_dist_sorter_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

order_test_() ->
    atoll_prop:test(?FUNCTION_NAME, order(), 2000, [{max_size, 60}]).

order() ->
    ?FORALL(
        {Ops, N, Max, Choices},
        {list(op()), lanes(), oneof([1, 2, 3, 100]), list(non_neg_integer())},
        begin
            {Sent, Out, _, Sorter} = atoll_dist_world:run(Ops, N, options(#{max_sequences => Max}), Choices),
            #{sequences := Sequences, lanes := Figures} = atoll_dist_sorter:figures(Sorter),
            conjunction([
                {order, equals([], atoll_dist_world:wrong(Sent, Out))},
                {bound, Sequences =< Max},
                {written, equals(0, lists:sum([Waiting || #{waiting := Waiting} <- Figures]))}
            ])
        end
    ).

%% The same where senders are in channels, and change them.
order_over_channels_test_() ->
    atoll_prop:test(?FUNCTION_NAME, order_over_channels(), 2000, [{max_size, 60}]).

order_over_channels() ->
    ?FORALL(
        {Ops, {N, Groups}, Max, Choices},
        {list(frequency([{20, op()}, {4, {move, range(1, 8), oneof([default, a, b, gone])}}])), channels(), oneof([1, 2, 100]), list(non_neg_integer())},
        begin
            Options = options(#{groups => Groups, max_members => Max}),
            {Sent, Out, _, _} = atoll_dist_world:run(Ops, N, Options, Choices),
            equals([], atoll_dist_world:wrong(Sent, Out))
        end
    ).

channels() ->
    ?LET({First, A, B}, {range(1, 3), range(1, 3), range(1, 2)}, begin
        Agreed = [{<<"a">>, A}, {<<"b">>, B}],
        {First + A + B, atoll_dist_named:layout(First + A + B, Agreed, #{a => #{}, b => #{}})}
    end).

%% What a monotonic channel drops a newer message of its sender has overtaken, it is counted,
%% and what is not dropped keeps its order.
monotonic_test_() ->
    atoll_prop:test(?FUNCTION_NAME, monotonic(), 2000, [{max_size, 60}]).

monotonic() ->
    ?FORALL(
        {Ops, Choices},
        {
            list(frequency([{20, op()}, {4, {move, range(1, 8), oneof([default, a, a, b])}}, {4, slow}, {2, written}])),
            list(non_neg_integer())
        },
        begin
            Groups = atoll_dist_named:layout(4, [{<<"a">>, 2}, {<<"b">>, 1}], #{a => #{monotonic => true}, b => #{}}),
            {Sent, Out, _, Sorter} = atoll_dist_world:run(Ops, 4, options(#{groups => Groups}), Choices),
            #{channels := #{a := A, b := B}, lanes := Figures} = atoll_dist_sorter:figures(Sorter),
            #{dropped := Dropped} = A,
            conjunction([
                {order, equals([], atoll_dist_world:wrong([S || {N, _, _, _} = S <- Sent, lists:member(N, Out)], Out))},
                {newest, equals([], atoll_dist_world:wrongly_dropped(Sent, Out))},
                {counted, equals({length(Sent) - length(Out), 0}, {Dropped, maps:get(dropped, B)})},
                {written, equals(0, lists:sum([Waiting || #{waiting := Waiting} <- Figures]))}
            ])
        end
    ).

%% 100,000 states over a lane that takes one in a hundred.
the_newest_state_is_never_far_behind_test_() ->
    {timeout, 60, fun the_newest_state_is_never_far_behind/0}.

the_newest_state_is_never_far_behind() ->
    Groups = atoll_dist_named:layout(2, [{<<"a">>, 1}], #{a => #{monotonic => true}}),
    Ops = [{step, 1, 1}, {move, 1, a} | lists:append([[slow, written | lists:duplicate(100, {step, 1, 1})] || _ <- lists:seq(1, 1000)])],
    {Sent, Out, _, Sorter} = atoll_dist_world:run(Ops, 2, options(#{groups => Groups}), []),
    ?assertEqual(100001, length(Sent)),
    ?assertEqual(lists:usort(Out), Out),
    ?assertEqual(100001, lists:last(Out)),
    ?assert(length(Out) =< 1002),
    #{channels := #{a := #{dropped := Dropped}}} = atoll_dist_sorter:figures(Sorter),
    ?assertEqual(100001 - length(Out), Dropped).

each_channel_keeps_to_its_lanes_test() ->
    Groups = atoll_dist_named:layout(5, [{<<"a">>, 2}, {<<"b">>, 1}], #{a => #{}, b => #{}}),
    Steps = [[{step, Who, 1} || Who <- lists:seq(1, 6)], take],
    Moves = [{move, 1, a}, {move, 2, a}, {move, 3, b}],
    Begun = lists:flatten([Steps, Moves, Steps]),
    Run = fun(Ops) -> element(4, atoll_dist_world:run(Ops, 5, options(#{groups => Groups}), [])) end,
    Carried = fun(Ops) -> [Packets || #{packets := Packets} <- maps:get(lanes, atoll_dist_sorter:figures(Run(Ops)))] end,
    Then = lists:zipwith(fun(B, A) -> A - B end, Carried(Begun), Carried(Begun ++ lists:flatten(lists:duplicate(10, Steps)))),
    [Zero, One, Two, Three, Four] = Then,
    ?assertEqual(30, Zero + One),
    ?assertEqual({20, 10}, {Two + Three, Four}),
    ?assert(Two > 0 andalso Three > 0),
    %% Three have changed, and one fence was enough.
    ?assertMatch(#{fences := 1}, atoll_dist_sorter:figures(Run(Begun))).

one_lane_keeps_every_order_test_() ->
    atoll_prop:test(
        ?FUNCTION_NAME,
        ?FORALL({Ops, Choices}, {list(op()), list(non_neg_integer())}, begin
            {Sent, Out, _, Sorter} = atoll_dist_world:run(Ops, 1, options(#{}), Choices),
            #{fences := Fences} = atoll_dist_sorter:figures(Sorter),
            equals({[N || {N, _, _, _} <- Sent], 0}, {Out, Fences})
        end),
        200
    ).

lanes() -> oneof([2, 3, 4, 16, 64]).

op() ->
    frequency([
        {12, {step, range(1, 8), range(1, 4)}},
        {2, {kill, range(1, 8), range(1, 4)}},
        {2, none},
        {2, late},
        {3, take}
    ]).

ten_thousand_deaths_of_names_share_fences_test_() ->
    {timeout, 60, fun ten_thousand_deaths_of_names_share_fences/0}.

ten_thousand_deaths_of_names_share_fences() ->
    %% Others' packets come between.
    Ops = lists:append([[late, {step, I rem 8 + 1, 1}] || I <- lists:seq(1, 10000)]),
    Rounds = lists:append([[lists:sublist(Ops, From, 1000), take] || From <- lists:seq(1, 20000, 1000)]),
    {_, Out, _, Sorter} = atoll_dist_world:run(lists:flatten(Rounds), 16, options(#{}), [3, 1, 4]),
    ?assertEqual(20000, length(Out)),
    ?assertMatch(#{fences := 20, fenced := 10000}, atoll_dist_sorter:figures(Sorter)).

packets_without_a_sender_in_a_row_share_a_fence_test() ->
    {_, _, _, Sorter} = atoll_dist_world:run([none, none, late, none, {step, 1, 1}, none], 4, options(#{}), []),
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
    Sorter = atoll_dist_sorter:new('made@up', 2, options(#{})),
    ?assertEqual({error, {bad_packet, <<"x">>}}, atoll_dist_sorter:push(1, [<<"x">>], Sorter)),
    ?assertEqual(
        {error, {fragment_out_of_turn, 5, 2}},
        atoll_dist_sorter:push(18, [<<131, 70, 5:64, 2:64>>], Sorter)
    ).

%% Real packets, cut, swapped, altered

%% Of packets that were cut or swapped the promised order is kept as long as none is
%% refused; and what is refused ends it with a reason.
real_packets_that_are_cut_or_swapped_are_refused_or_in_order_test_() ->
    atoll_prop:test(?FUNCTION_NAME, mangled(), 300).

mangled() ->
    ?FORALL({Recorded, N, Changes, Choices}, {oneof(recorded()), lanes(), list(change()), list(non_neg_integer())}, begin
        {Node, Packets} = Recorded,
        Numbered = lists:enumerate(lists:foldl(fun change/2, Packets, [C || C <- Changes, element(1, C) =/= alter])),
        {Went, End, Out} = through(Node, Numbered, N, Choices),
        Sent = [sent(I, Expected) || {I, {Expected, _}} <- lists:sublist(Numbered, Went)],
        conjunction([{ended, is_reason(End)}, {order, equals([], atoll_dist_world:wrong(Sent, Out))}])
    end).

%% Of those that were altered none is lost or comes twice. That no single one leads
%% astray is said in atoll_dist_packet_tests.
real_packets_that_are_altered_are_refused_or_come_once_test_() ->
    atoll_prop:test(
        ?FUNCTION_NAME,
        ?FORALL(
            {{Node, Packets}, N, Changes, Choices},
            {oneof(recorded()), lanes(), list(change()), list(non_neg_integer())},
            begin
                Numbered = lists:enumerate(lists:foldl(fun change/2, Packets, Changes)),
                {Went, End, Out} = through(Node, Numbered, N, Choices),
                conjunction([{ended, is_reason(End)}, {once, equals(lists:seq(1, Went), lists:sort(Out))}])
            end
        ),
        300
    ).

unchanged_real_packets_are_all_taken_test_() ->
    {timeout, 60, fun unchanged_real_packets_are_all_taken/0}.

unchanged_real_packets_are_all_taken() ->
    [
        begin
            {Went, End, _} = through(Node, lists:enumerate(Packets), 4, []),
            ?assertEqual({length(Packets), none}, {Went, End})
        end
     || {Node, Packets} <- recorded()
    ].

change() ->
    oneof([{cut, index(), index()}, {swap, index(), index()}, {alter, index(), range(0, 120), byte()}]).

index() -> range(0, 10000).

change({cut, I, Size}, Packets) ->
    at(I, Packets, fun(Bytes) -> binary:part(Bytes, 0, Size rem (byte_size(Bytes) + 1)) end);
change({alter, I, At, Byte}, Packets) ->
    at(I, Packets, fun
        (Bytes) when byte_size(Bytes) > At ->
            <<Head:At/binary, _, Tail/binary>> = Bytes,
            <<Head/binary, Byte, Tail/binary>>;
        (Bytes) ->
            Bytes
    end);
change({swap, I, J}, Packets) ->
    Tuple = list_to_tuple(Packets),
    [A, B] = [1 + K rem tuple_size(Tuple) || K <- [I, J]],
    tuple_to_list(setelement(A, setelement(B, Tuple, element(A, Tuple)), element(B, Tuple))).

at(I, Packets, Change) ->
    {Before, [{Expected, Bytes} | After]} = lists:split(I rem length(Packets), Packets),
    Before ++ [{Expected, Change(Bytes)} | After].

%% How many went in, how it ended, and what came out.
through(Node, Numbered, N, Choices) ->
    {Went, End, Sorter0} = pushed(Numbered, atoll_dist_sorter:new(Node, N, options(#{})), 0),
    {Batches, _} = atoll_dist_sorter:take(Sorter0),
    Out = atoll_dist_world:pipe([{Lane, iolist_to_binary(Data)} || {Lane, Data, _, _} <- Batches], N, Choices),
    {Went, End, numbers(Out, lists:sublist(Numbered, Went))}.

%% Which packet is which is told by what is in it; of equal ones the first is the first.
numbers(Out, Numbered) ->
    Places = lists:foldr(
        fun({I, {_, Bytes}}, Acc) -> maps:update_with(Bytes, fun(Is) -> [I | Is] end, [I], Acc) end, #{}, Numbered
    ),
    {Numbers, _} = lists:mapfoldl(
        fun(Bytes, Left) ->
            #{Bytes := [I | Is]} = Left,
            {I, Left#{Bytes := Is}}
        end,
        Places,
        Out
    ),
    Numbers.

pushed([], Sorter, Went) ->
    {Went, none, Sorter};
pushed([{_, {_, Bytes}} | Rest], Sorter0, Went) ->
    case atoll_dist_sorter:push(max(1, byte_size(Bytes)), [Bytes], Sorter0) of
        {ok, Sorter} -> pushed(Rest, Sorter, Went + 1);
        {error, Reason} -> {Went, Reason, Sorter0}
    end.

is_reason(none) -> true;
is_reason({fragment_out_of_turn, Seq, Frag}) -> is_integer(Seq) andalso is_integer(Frag);
is_reason({What, Head}) -> lists:member(What, [bad_packet, bad_control, atom_cache]) andalso byte_size(Head) =< 32.

sent(I, {sender, Id}) -> {I, Id, none, any};
sent(I, {first, Seq, _, {sender, Id}}) -> {I, Id, Seq, any};
sent(I, {first, Seq, _, _}) -> {I, none, Seq, any};
sent(I, {next, Seq, _}) -> {I, none, Seq, any};
sent(I, none) -> {I, none, none, fence};
sent(I, late) -> {I, none, none, late}.

%% What the VMs of three releases made, in the order in which they made it, of each mode
%% of its own; no more of each than can matter.
recorded() ->
    Source = proplists:get_value(source, ?MODULE:module_info(compile)),
    Folder = filename:join(filename:dirname(Source), "atoll_dist_packets"),
    [
        {Node, Of}
     || Release <- ["25", "27", "29"],
        {_, Node, Packets} <- [atoll_dist_capture:load(filename:join(Folder, "otp-" ++ Release ++ ".packets"))],
        Mode <- lists:usort([Mode || {Mode, _, _, _, _} <- Packets]),
        Mode =/= cached,
        Of <- [[{Expected, short(iolist_to_binary(Iovec))} || {M, _, Expected, _, Iovec} <- Packets, M =:= Mode]]
    ].

short(Bytes) -> binary:part(Bytes, 0, min(5000, byte_size(Bytes))).

options(More) -> maps:merge(#{budget => 1 bsl 24, round => 1 bsl 17}, More).
