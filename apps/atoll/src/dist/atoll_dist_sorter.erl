%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The writing end of a channel with lanes: packets go in one by one as the VM
%% gives them, and come out as a batch for each lane, with the fences among them.
%%
%% It joins what {@link atoll_dist_packet}, {@link atoll_dist_lanes}, {@link
%% atoll_dist_fence}, {@link atoll_dist_frame} and {@link atoll_dist_budget} know, and
%% promises what they do together: the packets of a sender are in the order in which
%% they went in on one lane, or fences lie between them; a packet without a sender is
%% behind a fence.
%%
%% A round is what goes in between two {@link take/1}. Packets that are `late' are put off
%% to its end, where they share one fence; so the deaths of ten thousand named processes
%% cost a fence for each round and not for each of them, though others' packets come
%% between. A round is bounded: {@link wants/1} says when it is over.
-module(atoll_dist_sorter).

-export([new/3, push/3, wants/1, take/1, take_without_late/1, has_late/1, written/4, figures/1]).

-export_type([sorter/0, options/0, batch/0, reason/0]).

-type options() :: #{
    %% How many bytes may wait in all, and how many may go in in one round.
    budget := pos_integer(),
    round := pos_integer(),
    max_sequences => pos_integer()
}.

-type reason() :: atoll_dist_packet:reason() | atoll_dist_lanes:reason().

%% A frame for a lane, the bytes and the number of its packets: {@link written/4} wants
%% them back.
-type batch() :: {atoll_dist_lanes:lane(), iodata(), Bytes :: non_neg_integer(), Packets :: non_neg_integer()}.

-type packet() :: {Size :: pos_integer(), erlang:iovec()}.

-record(sorter, {
    n :: atoll_dist_lanes:count(),
    own :: atoll_dist_packet:own(),
    lanes :: atoll_dist_lanes:lanes(),
    fence :: atoll_dist_fence:writer(),
    budget :: atoll_dist_budget:budget(),
    %% What is put off, the latest first.
    late = [] :: [packet()],
    %% How much went in this round, of how much at most.
    round = 0 :: non_neg_integer(),
    max_round :: pos_integer(),
    %% For each lane its items, the latest first, their bytes, and how many.
    batches :: tuple()
}).

-opaque sorter() :: #sorter{}.

-define(EMPTY, {[], 0, 0}).
-define(FIRST, 0).
%% What a packet counts for in a round beside its bytes, as does a mark.
-define(ITEM, 64).

%% @doc So many lanes of this node.
-spec new(node(), atoll_dist_lanes:count(), options()) -> sorter().
new(Node, N, #{budget := Limit, round := MaxRound} = Options) ->
    #sorter{
        n = N,
        own = atoll_dist_packet:own(Node),
        lanes = atoll_dist_lanes:new(N, maps:with([max_sequences], Options)),
        fence = atoll_dist_fence:writer(N),
        budget = atoll_dist_budget:new(N, Limit),
        max_round = MaxRound,
        batches = erlang:make_tuple(N, ?EMPTY)
    }.

%% @doc One packet of the VM, and its size.
-spec push(pos_integer(), erlang:iovec(), sorter()) -> {ok, sorter()} | {error, reason()}.
push(Size, Iovec, #sorter{n = 1} = Sorter) ->
    %% One lane keeps every order.
    {ok, item(?FIRST, Size, Iovec, Sorter)};
push(Size, Iovec, #sorter{own = Own, lanes = Lanes0, budget = Budget} = Sorter) ->
    Verdict = atoll_dist_packet:read(Iovec, Own),
    case atoll_dist_lanes:choose(Verdict, atoll_dist_budget:waiting(Budget), Lanes0) of
        {Lane, Lanes} when is_integer(Lane) ->
            {ok, lane(Lane, Size, Iovec, Sorter#sorter{lanes = Lanes})};
        {late, Lanes} ->
            {ok, put_off(Size, Iovec, Sorter#sorter{lanes = Lanes})};
        {fence, Lanes} ->
            {ok, fence(Size, Iovec, put_late(Sorter#sorter{lanes = Lanes}))};
        {error, _} = Error ->
            Error
    end.

lane(Lane, Size, Iovec, #sorter{fence = Fence0} = Sorter) ->
    case atoll_dist_fence:put(Lane, Fence0) of
        {none, Lane, Fence} -> item(Lane, Size, Iovec, Sorter#sorter{fence = Fence});
        {Close, Lane, Fence} -> item(Lane, Size, Iovec, mark(Close, Sorter#sorter{fence = Fence}))
    end.

fence(Size, Iovec, #sorter{fence = Fence0} = Sorter) ->
    {Before, Lane, Fence} = atoll_dist_fence:put(fence, Fence0),
    item(Lane, Size, Iovec, mark(Before, Sorter#sorter{fence = Fence})).

put_off(Size, Iovec, #sorter{late = Late, round = Round, budget = Budget} = Sorter) ->
    Sorter#sorter{
        late = [{Size, Iovec} | Late],
        round = Round + Size + ?ITEM,
        budget = atoll_dist_budget:add(?FIRST, Size, Budget)
    }.

%% What was put off is in the budget and the round already.
put_late(#sorter{late = []} = Sorter) ->
    Sorter;
put_late(#sorter{late = Late} = Sorter) ->
    lists:foldr(
        fun({Size, Iovec}, #sorter{fence = Fence0} = Sorter0) ->
            {Before, Lane, Fence} = atoll_dist_fence:put(fence, Fence0),
            append(Lane, Size, Iovec, mark(Before, Sorter0#sorter{fence = Fence}))
        end,
        Sorter#sorter{late = []},
        Late
    ).

item(Lane, Size, Iovec, #sorter{round = Round, budget = Budget} = Sorter) ->
    append(Lane, Size, Iovec, Sorter#sorter{
        round = Round + Size + ?ITEM,
        budget = atoll_dist_budget:add(Lane, Size, Budget)
    }).

append(Lane, Size, Iovec, #sorter{batches = Batches} = Sorter) ->
    {Items, Bytes, Count} = element(Lane + 1, Batches),
    Batch = {[atoll_dist_frame:packet(Size, Iovec) | Items], Bytes + Size, Count + 1},
    Sorter#sorter{batches = setelement(Lane + 1, Batches, Batch)}.

mark(none, Sorter) ->
    Sorter;
mark({open, _} = Open, #sorter{n = N, lanes = Lanes, round = Round, batches = Batches} = Sorter) ->
    Mark = atoll_dist_frame:mark(Open),
    Sorter#sorter{
        lanes = atoll_dist_lanes:fenced(Lanes),
        round = Round + N * ?ITEM,
        batches = list_to_tuple([
            {[Mark | Items], Bytes, Count}
         || {Items, Bytes, Count} <- tuple_to_list(Batches)
        ])
    };
mark({close, _} = Close, #sorter{batches = Batches} = Sorter) ->
    {Items, Bytes, Count} = element(?FIRST + 1, Batches),
    Batch = {[atoll_dist_frame:mark(Close) | Items], Bytes, Count},
    Sorter#sorter{batches = setelement(?FIRST + 1, Batches, Batch)}.

%% @doc What it can take: another packet (`more'), none before the round's batches are
%% taken (`take'), or none before some of the batches are written (`wait').
-spec wants(sorter()) -> more | take | wait.
wants(#sorter{round = Round, max_round = Max, budget = Budget}) ->
    case atoll_dist_budget:may_take(Budget) of
        true when Round < Max -> more;
        true -> take;
        false when Round > 0 -> take;
        false -> wait
    end.

%% @doc The round's batches, to be written each to its lane, in the order of the calls.
-spec take(sorter()) -> {[batch()], sorter()}.
take(#sorter{round = 0, late = []} = Sorter) ->
    {[], Sorter};
take(Sorter0) ->
    #sorter{n = N, fence = Fence0} = Sorter1 = put_late(Sorter0),
    {Before, Fence} = atoll_dist_fence:close(Fence0),
    #sorter{batches = Batches} = Sorter = mark(Before, Sorter1),
    Taken = [
        {Lane, lists:reverse(Items), Bytes, Count}
     || {Lane, {[_ | _] = Items, Bytes, Count}} <- lists:zip(lists:seq(0, N - 1), tuple_to_list(Batches))
    ],
    {Taken, Sorter#sorter{fence = Fence, round = 0, batches = erlang:make_tuple(N, ?EMPTY)}}.

%% @doc The same, but what is late stays for a later round, where more may share its fence.
-spec take_without_late(sorter()) -> {[batch()], sorter()}.
take_without_late(#sorter{late = Late} = Sorter0) ->
    {Batches, Sorter} = take(Sorter0#sorter{late = []}),
    {Batches, Sorter#sorter{late = Late}}.

%% @doc Whether something was put off.
-spec has_late(sorter()) -> boolean().
has_late(#sorter{late = Late}) -> Late =/= [].

%% @doc A batch of that lane was written.
-spec written(atoll_dist_lanes:lane(), non_neg_integer(), non_neg_integer(), sorter()) -> sorter().
written(Lane, Bytes, Count, #sorter{budget = Budget} = Sorter) ->
    Sorter#sorter{budget = atoll_dist_budget:written(Lane, Bytes, Count, Budget)}.

%% @doc The figures of all its parts.
-spec figures(sorter()) -> #{
    lanes := [atoll_dist_budget:figure()],
    budget_spent := non_neg_integer(),
    fences := non_neg_integer(),
    fenced := non_neg_integer(),
    slots := [non_neg_integer()],
    sequences := non_neg_integer(),
    forgotten := non_neg_integer()
}.
figures(#sorter{lanes = Lanes, fence = Fence, budget = Budget}) ->
    {Fences, Fenced} = atoll_dist_fence:fences(Fence),
    {Spent, Figures} = atoll_dist_budget:figures(Budget),
    (atoll_dist_lanes:figures(Lanes))#{
        lanes => Figures, budget_spent => Spent, fences => Fences, fenced => Fenced
    }.
