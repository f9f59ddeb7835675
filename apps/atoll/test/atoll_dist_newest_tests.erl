%% SPDX-License-Identifier: Apache-2.0
%% What waits for a monotonic lane: the newest of each pair, nothing before what is kept, and
%% all of it counted.
-module(atoll_dist_newest_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-import(atoll_dist_newest, [new/0, push/4, take/2, is_empty/1, dropped/1]).

the_newest_of_each_pair_test_() ->
    atoll_prop:test(?FUNCTION_NAME, newest(), 1000).

op() -> frequency([{8, {push, range(1, 4)}}, {2, {push, kept}}, {2, {take, oneof([1, 25, all])}}]).

newest() ->
    ?FORALL(Ops, list(op()), begin
        {Pushed, Taken, Bytes, Newest} = lists:foldl(fun op/2, {[], [], 0, new()}, Ops ++ [{take, all}]),
        Out = lists:append(lists:reverse(Taken)),
        Of = fun(Whose) -> [N || {N, Who} <- lists:reverse(Pushed), Who =:= Whose] end,
        Got = fun(Whose) -> [N || N <- Out, lists:keyfind(N, 1, Pushed) =:= {N, Whose}] end,
        conjunction([
            {empty, is_empty(Newest)},
            {kept, equals(Of(kept), Got(kept))},
            {upwards, lists:all(fun(Pair) -> lists:usort(Got(Pair)) =:= Got(Pair) end, [1, 2, 3, 4])},
            {last, lists:all(fun(Pair) -> lists:sublist(lists:reverse(Of(Pair)), 1) =:= lists:sublist(lists:reverse(Got(Pair)), 1) end, [1, 2, 3, 4])},
            {counted, equals(length(Pushed), length(Out) + dropped(Newest))},
            {bytes, equals(10 * length(Out), Bytes)},
            {place, equals([], [{Kept, N} || {Kept, After} <- splits(Out), lists:keyfind(Kept, 1, Pushed) =:= {Kept, kept}, N <- After, N < Kept])},
            {ahead, equals([], [{N, Kept} || {N, After} <- splits(Out), Kept <- After, lists:keyfind(Kept, 1, Pushed) =:= {Kept, kept}, N > Kept])}
        ])
    end).

splits([]) -> [];
splits([N | After]) -> [{N, After} | splits(After)].

op({push, Whose}, {Pushed, Taken, Bytes, Newest0}) ->
    N = length(Pushed) + 1,
    {Dropped, Newest} = push(Whose, 10, [<<N:32>>], Newest0),
    true = Dropped =:= none orelse Dropped =:= 10,
    {[{N, Whose} | Pushed], Taken, Bytes, Newest};
op({take, Max}, {Pushed, Taken, Bytes, Newest0}) ->
    {Packets, Newest} = take(Max, Newest0),
    true = is_empty(Newest0) orelse Packets =/= [],
    true = length(Packets) =< case Max of 1 -> 1; 25 -> 2; all -> length(Packets) end,
    {Pushed, [[N || {10, [<<N:32>>]} <- Packets] | Taken], Bytes + 10 * length(Packets), Newest}.

%% One that is told again and again keeps its place among many.
what_waits_is_not_put_off_test() ->
    {_, Newest} = lists:foldl(
        fun(I, {_, Q}) -> push(I rem 10, 10, [<<I:32>>], Q) end, {none, new()}, lists:seq(0, 9999)
    ),
    {Packets, _} = take(all, Newest),
    ?assertEqual(lists:seq(9990, 9999), [I || {_, [<<I:32>>]} <- Packets]),
    ?assertEqual(9990, dropped(Newest)).
