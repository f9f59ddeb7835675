%% SPDX-License-Identifier: Apache-2.0
%% Compression: what is made smaller is read as it was, what does not pay is left alone, and
%% nobody makes a reader take more memory than is said.
-module(atoll_dist_deflate_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-import(atoll_dist_deflate, [new/1, batch/2, inflate/2]).

batches_are_read_as_they_were_test_() ->
    atoll_prop:test(
        ?FUNCTION_NAME,
        ?FORALL({Level, Pieces, Times}, {range(1, 9), list(binary()), range(1, 200)}, begin
            Data = lists:duplicate(Times, [<<1, 2, 3>> | Pieces]),
            case batch(Data, new(Level)) of
                {{Size, Small}, _} -> inflate(Size, iolist_to_binary(Small)) =:= {ok, iolist_to_binary(Data)};
                {as_it_is, _} -> true
            end
        end),
        500
    ).

every_batch_is_read_by_itself_test() ->
    Text = binary:copy(<<"state of something, ">>, 100),
    {{2000, One}, Deflate} = batch(Text, new(6)),
    {{2000, Two}, _} = batch([Text], Deflate),
    ?assertEqual({ok, Text}, inflate(2000, iolist_to_binary(Two))),
    ?assertEqual(iolist_to_binary(One), iolist_to_binary(Two)).

what_is_small_is_not_tried_test() ->
    ?assertMatch({as_it_is, _}, batch(binary:copy(<<0>>, 511), new(1))),
    ?assertMatch({{512, _}, _}, batch(binary:copy(<<0>>, 512), new(1))),
    ?assertMatch({as_it_is, _}, batch(binary:copy(<<0>>, 1048577), new(1))).

what_does_not_pay_is_tried_less_and_less_test() ->
    Noise = crypto:strong_rand_bytes(2000),
    Zeros = <<0:16000>>,
    %% How often it is not tried after so many that did not pay.
    Skipped = fun(Failures) ->
        Deflate = lists:foldl(fun(_, D) -> element(2, batch(Noise, D)) end, new(1), lists:seq(1, Failures)),
        Until = fun F(D0, N) ->
            case batch(Zeros, D0) of
                {as_it_is, D} -> F(D, N + 1);
                {{2000, _}, _} -> N
            end
        end,
        Until(Deflate, 0)
    end,
    ?assertEqual(0, Skipped(0)),
    ?assertEqual(1, Skipped(1)),
    %% The second was not tried, the third was.
    ?assertEqual(2, Skipped(3)),
    ?assert(Skipped(1000) =< 64).

a_size_that_is_not_so_is_refused_test_() ->
    {{100000, Small}, _} = batch(<<0:800000>>, new(9)),
    Bytes = iolist_to_binary(Small),
    [?_assertEqual(error, inflate(Size, Bytes)) || Size <- [0, 1, 99999, 100001, 1048577, 16#FFFFFFFF]] ++
        [
            ?_assertEqual(error, inflate(100000, binary:part(Bytes, 0, byte_size(Bytes) div 2))),
            ?_assertEqual(error, inflate(10, <<"no deflate">>))
        ].

%% 100 MB of zeros in 100 KB.
a_bomb_is_not_inflated_test_() ->
    {timeout, 60, fun a_bomb_is_not_inflated/0}.

a_bomb_is_not_inflated() ->
    Z = zlib:open(),
    ok = zlib:deflateInit(Z, 9, deflated, -15, 8, default),
    Bomb = iolist_to_binary([[zlib:deflate(Z, <<0:8000000>>, none) || _ <- lists:seq(1, 100)], zlib:deflate(Z, [], finish)]),
    Before = erlang:memory(binary),
    Self = self(),
    %% In a process that keeps what it makes till it ends.
    {Pid, Ref} = spawn_opt(
        fun() ->
            error = inflate(1000, Bomb),
            Self ! {took, erlang:memory(binary) - Before}
        end,
        [monitor, {fullsweep_after, 65535}, {min_heap_size, 1000000}]
    ),
    receive {'DOWN', Ref, process, Pid, Reason} -> ?assertEqual(normal, Reason) end,
    receive {took, Bytes} -> ?assert(Bytes < 5000000) end.

frames_of_it_are_read_and_their_marks_too_test() ->
    Items = [atoll_dist_frame:packet(2000, [<<0:16000>>]), atoll_dist_frame:mark({open, 7})],
    {{Size, Small}, _} = batch(Items, new(1)),
    Frame = iolist_to_binary(atoll_dist_frame:deflated(Size, Small)),
    ?assert(byte_size(Frame) < 100),
    ?assertEqual({ok, [{packets, [<<0:16000>>]}, {open, 7}]}, atoll_dist_frame:parse(Frame)),
    <<Head:4/binary, _:32, Rest/binary>> = Frame,
    ?assertMatch({error, {bad_frame, _, _}}, atoll_dist_frame:parse(<<Head/binary, 1999:32, Rest/binary>>)).
