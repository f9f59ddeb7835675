%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The writing end of a channel with lanes: packets go in one by one as the VM
%% gives them, and come out as a batch for each lane, with the fences among them.
%%
%% What is in a monotonic channel is not put into a batch before its lane is free, and may be
%% dropped till then ({@link atoll_dist_newest}); a fence takes all of it along.
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

-export([new/3, push/3, wants/1, take/1, take_without_late/1, has_late/1, is_ready/1, written/4, figures/1]).

-export_type([sorter/0, options/0, batch/0, reason/0, channel/0]).

-type options() :: #{
    %% How many bytes may wait in all, and how many may go in in one round.
    budget := pos_integer(),
    round := pos_integer(),
    max_sequences => pos_integer(),
    max_members => pos_integer(),
    %% The channels, if there are any, after what is in none; and in which a process is.
    groups => [atoll_dist_named:group(), ...],
    member => fun((atoll_dist_packet:key()) -> atoll_dist_named:name()),
    %% A number that changes before a process can send in another channel than before; without
    %% it everybody is asked for with every packet.
    changes => atomics:atomics_ref()
}.

-type reason() :: atoll_dist_packet:reason() | atoll_dist_lanes:reason().

%% A frame for a lane, the bytes and the number of its packets: {@link written/4} wants
%% them back.
-type batch() :: {atoll_dist_lanes:lane(), iodata(), Bytes :: non_neg_integer(), Packets :: non_neg_integer()}.

%% What this end has written in a channel, and what waits; counted since it is connected.
-type channel() :: #{
    lanes := atoll_dist_lanes:count(),
    bytes := non_neg_integer(),
    packets := non_neg_integer(),
    waiting := non_neg_integer(),
    %% Messages that newer ones had overtaken.
    dropped := non_neg_integer()
}.

-type packet() :: atoll_dist_newest:packet().

-record(sorter, {
    n :: atoll_dist_lanes:count(),
    own :: atoll_dist_packet:own(),
    lanes :: atoll_dist_lanes:lanes(),
    groups :: [atoll_dist_named:group()],
    %% Which place each channel's group has, and in which channel a process is.
    places = #{} :: #{atoll_dist_named:name() => atoll_dist_lanes:group()},
    member = none :: fun((atoll_dist_packet:key()) -> atoll_dist_named:name()) | none,
    %% What is known of that, since this change.
    changes :: {atomics:atomics_ref(), Seen :: integer()} | none,
    known = #{} :: #{atoll_dist_packet:key() => atoll_dist_lanes:group()},
    fence :: atoll_dist_fence:writer(),
    budget :: atoll_dist_budget:budget(),
    %% What is put off, the latest first.
    late = [] :: [packet()],
    %% What waits for each lane of a monotonic channel, and how many of its batches are not yet
    %% written.
    newest = #{} :: #{atoll_dist_lanes:lane() => {Out :: non_neg_integer(), atoll_dist_newest:newest()}},
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
%% Of how many senders it is known in which channel they are.
-define(MAX_KNOWN, 1024).
%% How much of a monotonic channel is given to a lane at a time. What is given cannot be
%% dropped any more.
-define(AT_A_TIME, 16384).

%% @doc So many lanes of this node.
-spec new(node(), atoll_dist_lanes:count(), options()) -> sorter().
new(Node, N, #{budget := Limit, round := MaxRound} = Options) ->
    Groups = maps:get(groups, Options, []),
    #sorter{
        n = N,
        own = atoll_dist_packet:own(Node),
        lanes = atoll_dist_lanes:new(N, lanes(Groups, maps:with([max_sequences, max_members], Options))),
        groups = Groups,
        places = maps:from_list([{Name, I} || {I, #{name := Name}} <- lists:enumerate(Groups)]),
        member = case Groups of [_, _ | _] -> maps:get(member, Options); _ -> none end,
        changes = case Options of #{changes := Ref} -> {Ref, -1}; #{} -> none end,
        fence = atoll_dist_fence:writer(N),
        budget = atoll_dist_budget:new(N, Limit),
        newest = maps:from_list([
            {Lane, {0, atoll_dist_newest:new()}}
         || #{first := First, lanes := Count, monotonic := true} <- Groups, Lane <- lists:seq(First, First + Count - 1)
        ]),
        max_round = MaxRound,
        batches = erlang:make_tuple(N, ?EMPTY)
    }.

lanes([], Options) -> Options;
lanes(Groups, Options) -> Options#{groups => [{First, Count} || #{first := First, lanes := Count} <- Groups]}.

%% @doc One packet of the VM, and its size.
-spec push(pos_integer(), erlang:iovec(), sorter()) -> {ok, sorter()} | {error, reason()}.
push(Size, Iovec, #sorter{n = 1} = Sorter) ->
    %% One lane keeps every order.
    {ok, item(?FIRST, Size, Iovec, Sorter)};
push(Size, Iovec, #sorter{own = Own, lanes = Lanes0, budget = Budget} = Sorter0) ->
    Verdict = atoll_dist_packet:read(Iovec, Own),
    {Group, Sorter} = group(Verdict, Sorter0),
    case atoll_dist_lanes:choose(Verdict, Group, atoll_dist_budget:waiting(Budget), Lanes0) of
        {Lane, Lanes} when is_integer(Lane) ->
            {ok, lane(Lane, Verdict, Size, Iovec, Sorter#sorter{lanes = Lanes})};
        {late, Lanes} ->
            {ok, put_off(Size, Iovec, Sorter#sorter{lanes = Lanes})};
        {fence, Lanes} ->
            {ok, fence(Size, Iovec, put_late(Sorter#sorter{lanes = Lanes}))};
        {error, _} = Error ->
            Error
    end.

%% The place of the group whose lanes a packet's sender uses now.
group(_Verdict, #sorter{member = none} = Sorter) -> {1, Sorter};
group({sender, Key}, Sorter) -> place(Key, Sorter);
group({first, _, _, {sender, Key}}, Sorter) -> place(Key, Sorter);
group(_, Sorter) -> {1, Sorter}.

place(Key, #sorter{changes = none} = Sorter) ->
    {asked(Key, Sorter), Sorter};
place(Key, #sorter{changes = {Ref, Seen}, known = Known} = Sorter) ->
    case atomics:get(Ref, 1) of
        Seen ->
            case Known of
                #{Key := Place} -> {Place, Sorter};
                #{} -> known(Key, Sorter)
            end;
        Now ->
            known(Key, Sorter#sorter{changes = {Ref, Now}, known = #{}})
    end.

known(Key, #sorter{known = Known} = Sorter) ->
    Place = asked(Key, Sorter),
    case map_size(Known) < ?MAX_KNOWN of
        true -> {Place, Sorter#sorter{known = Known#{Key => Place}}};
        false -> {Place, Sorter#sorter{known = #{Key => Place}}}
    end.

%% Another channel than those that the peer agreed on is none here.
asked(Key, #sorter{member = Member, places = Places}) ->
    maps:get(Member(Key), Places, 1).

lane(Lane, Verdict, Size, Iovec, #sorter{fence = Fence0, newest = Newest} = Sorter0) ->
    {Before, Lane, Fence} = atoll_dist_fence:put(Lane, Fence0),
    Sorter = mark(Before, Sorter0#sorter{fence = Fence}),
    case Newest of
        #{Lane := _} -> newest(Lane, pair(Verdict, Iovec), Size, Iovec, Sorter);
        #{} -> item(Lane, Size, Iovec, Sorter)
    end.

pair({sender, Key}, Iovec) ->
    case atoll_dist_packet:plain(Iovec) of
        {plain, Receiver} -> {Key, Receiver};
        kept -> kept
    end;
pair(_, _Iovec) ->
    kept.

newest(Lane, Pair, Size, Iovec, #sorter{newest = All, round = Round, budget = Budget0} = Sorter) ->
    #{Lane := {Out, Newest0}} = All,
    {Dropped, Newest} = atoll_dist_newest:push(Pair, Size, Iovec, Newest0),
    Budget = atoll_dist_budget:add(Lane, Size, Budget0),
    Sorter#sorter{
        newest = All#{Lane := {Out, Newest}},
        round = Round + Size + ?ITEM,
        budget = case Dropped of none -> Budget; _ -> atoll_dist_budget:dropped(Lane, Dropped, Budget) end
    }.

%% What waits for a lane becomes a batch: all of it, as a fence wants it, or some.
given(Lane, Max, #sorter{newest = All} = Sorter) ->
    #{Lane := {Out, Newest0}} = All,
    {Packets, Newest} = atoll_dist_newest:take(Max, Newest0),
    Append = fun({Size, Iovec}, S) -> append(Lane, Size, Iovec, S) end,
    lists:foldl(Append, Sorter#sorter{newest = All#{Lane := {Out, Newest}}}, Packets).

ready(#sorter{newest = All}) ->
    [Lane || {Lane, {0, Newest}} <- maps:to_list(All), not atoll_dist_newest:is_empty(Newest)].

%% @doc Whether there is something to take of a monotonic channel now that something was written.
-spec is_ready(sorter()) -> boolean().
is_ready(#sorter{newest = All}) when map_size(All) =:= 0 -> false;
is_ready(Sorter) -> ready(Sorter) =/= [].

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
mark({open, _} = Open, #sorter{newest = Newest} = Sorter0) ->
    Mark = atoll_dist_frame:mark(Open),
    Sorter = lists:foldl(fun(Lane, S) -> given(Lane, all, S) end, Sorter0, maps:keys(Newest)),
    #sorter{n = N, lanes = Lanes, round = Round, batches = Batches} = Sorter,
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
take(#sorter{round = 0, late = [], newest = Newest} = Sorter) when map_size(Newest) =:= 0 ->
    {[], Sorter};
take(Sorter0) ->
    Sorter1 = put_late(Sorter0),
    #sorter{n = N, fence = Fence0} = Sorter2 = lists:foldl(fun(Lane, S) -> given(Lane, ?AT_A_TIME, S) end, Sorter1, ready(Sorter1)),
    {Before, Fence} = atoll_dist_fence:close(Fence0),
    #sorter{batches = Batches, newest = Newest} = Sorter = mark(Before, Sorter2),
    Taken = [
        {Lane, lists:reverse(Items), Bytes, Count}
     || {Lane, {[_ | _] = Items, Bytes, Count}} <- lists:zip(lists:seq(0, N - 1), tuple_to_list(Batches))
    ],
    Out = lists:foldl(fun({Lane, _, _, _}, All) -> out(Lane, 1, All) end, Newest, Taken),
    {Taken, Sorter#sorter{fence = Fence, round = 0, newest = Out, batches = erlang:make_tuple(N, ?EMPTY)}}.

out(Lane, By, All) ->
    case All of
        #{Lane := {Out, Newest}} -> All#{Lane := {Out + By, Newest}};
        #{} -> All
    end.

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
written(Lane, Bytes, Count, #sorter{newest = Newest, budget = Budget} = Sorter) ->
    Sorter#sorter{newest = out(Lane, -1, Newest), budget = atoll_dist_budget:written(Lane, Bytes, Count, Budget)}.

%% @doc The figures of all its parts.
-spec figures(sorter()) -> #{
    lanes := [atoll_dist_budget:figure()],
    %% By name, `default' for what is in none; nothing without channels.
    channels := #{atoll_dist_named:name() => channel()},
    budget_spent := non_neg_integer(),
    fences := non_neg_integer(),
    fenced := non_neg_integer(),
    slots := [non_neg_integer()],
    sequences := non_neg_integer(),
    forgotten := non_neg_integer()
}.
figures(#sorter{lanes = Lanes, groups = Groups, newest = Newest, fence = Fence, budget = Budget}) ->
    {Fences, Fenced} = atoll_dist_fence:fences(Fence),
    {Spent, Figures} = atoll_dist_budget:figures(Budget),
    (atoll_dist_lanes:figures(Lanes))#{
        lanes => Figures, budget_spent => Spent, fences => Fences, fenced => Fenced,
        channels => maps:from_list([{Name, channel(Group, Figures, Newest)} || [_, _ | _] <- [Groups], #{name := Name} = Group <- Groups])
    }.

channel(#{first := First, lanes := Count}, Figures, Newest) ->
    Own = lists:sublist(Figures, First + 1, Count),
    Sum = fun(Key) -> lists:sum([map_get(Key, Figure) || Figure <- Own]) end,
    Dropped = lists:sum([
        atoll_dist_newest:dropped(Of)
     || {Lane, {_, Of}} <- maps:to_list(Newest), Lane >= First, Lane < First + Count
    ]),
    #{lanes => Count, bytes => Sum(bytes), packets => Sum(packets), waiting => Sum(waiting), dropped => Dropped}.
