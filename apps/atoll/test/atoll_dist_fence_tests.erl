%% SPDX-License-Identifier: Apache-2.0
%% The fence's two ends, with nothing else: whatever is put in keeps its place, whichever
%% way the lanes run; and what a faulty peer may write.
-module(atoll_dist_fence_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

what_is_behind_a_fence_keeps_its_place_test_() ->
    atoll_prop:test(?FUNCTION_NAME, order(), 3000).

order() ->
    ?FORALL({Ways, N, Choices}, {list(way()), range(1, 6), list(non_neg_integer())}, begin
        Sent = lists:zip(lists:seq(1, length(Ways)), [limit(Way, N) || Way <- Ways]),
        Out = [Number || <<Number:32>> <- atoll_dist_world:pipe(frames(Sent, N), N, Choices)],
        Places = maps:from_list(lists:zip(Out, lists:seq(1, length(Out)))),
        Wrong = [
            {A, B}
         || {A, WayA} <- Sent,
            {B, WayB} <- Sent,
            A < B,
            WayA =:= fence orelse WayB =:= fence orelse WayA =:= WayB,
            maps:get(A, Places) > maps:get(B, Places)
        ],
        conjunction([
            {order, equals([], Wrong)},
            {once, equals(lists:sort(Out), lists:seq(1, length(Ways)))}
        ])
    end).

way() -> frequency([{3, range(0, 5)}, {1, fence}]).

limit(fence, _) -> fence;
limit(Lane, N) -> Lane rem N.

%% Each packet and each mark in a frame of its own.
frames(Sent, N) ->
    {Frames, Writer} = lists:mapfoldl(
        fun({Number, Way}, Writer0) ->
            {Before, Lane, Writer} = atoll_dist_fence:put(Way, Writer0),
            {[marks(Before, N), {Lane, iolist_to_binary(atoll_dist_frame:packet(4, [<<Number:32>>]))}], Writer}
        end,
        atoll_dist_fence:writer(N),
        Sent
    ),
    {Last, _} = atoll_dist_fence:close(Writer),
    lists:flatten([Frames, marks(Last, N)]).

marks(none, _N) -> [];
marks({open, _} = Open, N) -> [{Lane, atoll_dist_frame:mark(Open)} || Lane <- lists:seq(0, N - 1)];
marks(Close, _N) -> [{0, atoll_dist_frame:mark(Close)}].

in_a_row_they_share_a_fence_test() ->
    {_, 0, W1} = atoll_dist_fence:put(fence, atoll_dist_fence:writer(2)),
    {none, 0, W2} = atoll_dist_fence:put(fence, W1),
    {{close, 1}, 1, W3} = atoll_dist_fence:put(1, W2),
    {none, W3} = atoll_dist_fence:close(W3),
    {{open, 2}, 0, W4} = atoll_dist_fence:put(fence, W3),
    ?assertEqual({2, 3}, atoll_dist_fence:fences(W4)).

one_lane_needs_no_fence_test() ->
    Writer = atoll_dist_fence:writer(1),
    ?assertEqual({none, 0, Writer}, atoll_dist_fence:put(fence, Writer)).

a_held_lane_is_known_and_what_it_holds_is_counted_test() ->
    {ok, [], R1} = atoll_dist_fence:arrive(1, [{open, 1}, {packets, [<<"abc">>]}], atoll_dist_fence:reader(2)),
    ?assertEqual({false, true, 3}, held(R1)),
    {ok, [[<<"b">>], [<<"f">>]], R2} =
        atoll_dist_fence:arrive(0, [{packets, [<<"b">>]}, {open, 1}, {packets, [<<"f">>]}], R1),
    %% What is behind the fence is still to be read.
    ?assertEqual({false, true, 3}, held(R2)),
    {ok, [[<<"abc">>]], R3} = atoll_dist_fence:arrive(0, [{close, 1}], R2),
    ?assertEqual({false, false, 0}, held(R3)).

held(Reader) ->
    {atoll_dist_fence:is_held(0, Reader), atoll_dist_fence:is_held(1, Reader), atoll_dist_fence:held(Reader)}.

marks_out_of_order_are_refused_test() ->
    Reader = atoll_dist_fence:reader(2),
    [
        ?assertEqual({error, {fence_out_of_order, Lane, Mark}}, atoll_dist_fence:arrive(Lane, [Mark], Reader))
     || {Lane, Mark} <- [{0, {open, 2}}, {1, {open, 0}}, {0, {close, 1}}, {1, {close, 1}}]
    ].

whatever_a_peer_writes_is_read_or_refused_test_() ->
    atoll_prop:test(
        ?FUNCTION_NAME,
        ?FORALL(
            Writes,
            list({range(0, 2), list(oneof([{packets, [<<"p">>]}, {oneof([open, close]), range(0, 3)}]))}),
            reads(Writes, atoll_dist_fence:reader(3))
        ),
        5000
    ).

reads([], _Reader) ->
    true;
reads([{Lane, Segments} | Writes], Reader0) ->
    case atoll_dist_fence:arrive(Lane, Segments, Reader0) of
        {ok, Out, Reader} when is_list(Out) -> reads(Writes, Reader);
        {error, {fence_out_of_order, _, _}} -> true
    end.
