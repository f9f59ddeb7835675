%% SPDX-License-Identifier: Apache-2.0
%% @doc The order in which a benchmark is measured: groups of points one after the
%% other, and in a group a round of each point, then the next of each, every time
%% in another order. So what changes slowly on the machine changes for all. The rounds
%% are shared out among starts, since nodes that were started anew are not as fast as
%% those before.
-module(atoll_bench_plan).

-export([groups/2, rounds/3, starts/3, seed/3]).

-export_type([index/0]).

-type index() :: non_neg_integer().
%% Of a point, from 0 on.

%% @doc The points that differ in the variant alone, by their numbers.
-spec groups([atoll_bench:point()], Variant :: atom()) -> [[index(), ...]].
groups(Points, Variant) ->
    Keyed = [
        {maps:remove(Variant, Point), Index}
     || {Index, Point} <- lists:zip(lists:seq(0, length(Points) - 1), Points)
    ],
    Keys = lists:uniq([Key || {Key, _} <- Keyed]),
    [[Index || {K, Index} <- Keyed, K =:= Key] || Key <- Keys].

%% @doc Who is measured when: the rounds of a group, each a permutation of it.
-spec rounds([index(), ...], Rounds :: non_neg_integer(), Seed :: integer()) ->
    [{Round :: pos_integer(), index()}].
rounds(Group, Rounds, Seed) ->
    {Orders, _} = lists:mapfoldl(
        fun(Round, Rand0) ->
            {Order, Rand} = atoll_random:shuffle(Group, Rand0),
            {[{Round, Index} || Index <- Order], Rand}
        end,
        rand:seed_s(exsss, erlang:phash2({Seed, Group})),
        lists:seq(1, Rounds)
    ),
    lists:append(Orders).

%% @doc The turns of each start, about as many in one as in another; never more starts
%% than rounds.
-spec starts([{Round :: pos_integer(), index()}], Rounds :: pos_integer(), Starts :: pos_integer()) ->
    [{Start :: pos_integer(), [{Round :: pos_integer(), index()}]}].
starts(Turns, Rounds, Wanted) ->
    Starts = min(Wanted, Rounds),
    [
        {Start, [Turn || {Round, _} = Turn <- Turns, 1 + (Round - 1) * Starts div Rounds =:= Start]}
     || Start <- lists:seq(1, Starts)
    ].

%% @doc The seed of the first round after a start, which warms up; those of its other rounds follow
%% it. A run has fewer than 2^20 rounds: with another seed it shares none.
-spec seed(Start :: pos_integer(), Rounds :: pos_integer(), Seed :: integer()) -> pos_integer().
seed(Start, Rounds, Seed) when is_integer(Start), is_integer(Rounds), is_integer(Seed) ->
    ((abs(Seed) + 1) bsl 20) + (Start - 1) * (Rounds + 1).
