%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Messages that have come before earlier ones of the same sender's life, until those are
%% delivered or known as missed.
%%
%% Of each sender it knows up to which number everything was delivered or told as missed.
%% What is held follows after a gap: with 1 and 2 delivered, and 4, 5 and 9 here, a
%% mark ({@link atoll_plumtree_mark}) that moves to 5 gives `{missed, 1}', 4 and 5.
%%
%% Bounded in messages and bytes. Where one is too many the sender that it came from gives its
%% newest ones back, as they are needed last; they are to count as not seen, so that they
%% come again. One is held however large it is, where nothing else is.
-module(atoll_plumtree_held).

-export([new/2, take/6, release/4, forget/2, overdue/2, oldest/1]).
-export([is_held/2, size/1, bytes/1, dropped/1]).

-export_type([held/0, out/0, place/0]).

-type out() ::
    {payload, term()}
    %% So many messages between the one before and the one after.
    | {missed, pos_integer()}.

-type place() :: {atoll_plumtree_mark:incarnation(), Low :: non_neg_integer()}.
%% Everything of this life up to Low is over.

-record(line, {
    place :: place(),
    messages = gb_trees:empty() :: gb_trees:tree(
        atoll_plumtree_mark:seq(), {term(), Bytes :: non_neg_integer(), Since :: atoll_protocol:now_ms()}
    )
}).

-record(held, {
    max :: pos_integer(),
    max_bytes :: pos_integer(),
    %% Those of whom something is held.
    lines = #{} :: #{node() => #line{}},
    size = 0 :: non_neg_integer(),
    bytes = 0 :: non_neg_integer(),
    dropped = 0 :: non_neg_integer()
}).

-opaque held() :: #held{}.

%% @doc Nothing is held; at most `Max' messages of together `MaxBytes' bytes are.
-spec new(pos_integer(), pos_integer()) -> held().
new(Max, MaxBytes) ->
    #held{max = Max, max_bytes = MaxBytes}.

%% @doc A message has come, by which its sender is at this place and `Missed' are given up.
%% Gives what is to be delivered and told now, in order, and the numbers of what is given back.
-spec take(
    node(),
    place(),
    Missed :: non_neg_integer(),
    {atoll_plumtree_mark:seq(), term()},
    atoll_protocol:now_ms(),
    held()
) -> {[out()], GivenBack :: [atoll_plumtree_mark:seq()], held()}.
take(Root, Place, Missed, {Seq, Payload} = Message, Now, #held{lines = Lines} = Held) ->
    {_, Low} = Place,
    case Lines of
        #{Root := Line} ->
            case begin_life(Place, Line) of
                {[], _} ->
                    {Out, Moved} = release(Root, Place, Missed, insert(Root, Message, Now, Line, Held)),
                    trim(Root, Out, [], Moved);
                {Out, _} ->
                    {More, Back, Begun} = take(Root, Place, max(0, Missed - told(Out)), Message, Now, remove(Root, Line, Held)),
                    {Out ++ More, Back, Begun}
            end;
        #{} when Seq =< Low ->
            {missed(Missed) ++ [{payload, Payload}], [], Held};
        #{} ->
            trim(Root, missed(Missed), [], insert(Root, Message, Now, #line{place = Place}, Held))
    end.

%% @doc A sender is at this place, without a message, and `Missed' are given up.
-spec release(node(), place(), Missed :: non_neg_integer(), held()) -> {[out()], held()}.
release(Root, {_, Low} = Place, Missed, #held{lines = Lines} = Held) ->
    case Lines of
        #{Root := Line} ->
            case begin_life(Place, Line) of
                {[], #line{place = {_, From}, messages = Messages}} ->
                    {Out, Bytes, Left} = walk(From, Low, Messages, [], 0),
                    Moved = Line#line{place = Place, messages = Left},
                    Count = gb_trees:size(Messages) - gb_trees:size(Left),
                    {Out ++ missed(Missed - told(Out)), store(Root, Moved, -Count, -Bytes, Held)};
                {Out, _} ->
                    {Out ++ missed(Missed - told(Out)), remove(Root, Line, Held)}
            end;
        #{} ->
            {missed(Missed), Held}
    end.

%% @doc All that is held of a sender, and the gaps in it: nobody knows the sender any more.
-spec forget(node(), held()) -> {[out()], held()}.
forget(Root, #held{lines = Lines} = Held) ->
    #{Root := Line} = Lines,
    {all(Line), remove(Root, Line, Held)}.

%% @doc Whose messages are held since then or longer, and the last of these.
-spec overdue(atoll_protocol:now_ms(), held()) ->
    [{node(), atoll_plumtree_mark:incarnation(), Last :: atoll_plumtree_mark:seq()}].
overdue(Upto, #held{lines = Lines}) ->
    [
        {Root, Life, lists:max(Seqs)}
     || {Root, #line{place = {Life, _}, messages = Messages}} <- lists:sort(maps:to_list(Lines)),
        [_ | _] = Seqs <- [[Seq || {Seq, {_, _, Since}} <- gb_trees:to_list(Messages), Since =< Upto]]
    ].

%% @doc Since when that is held which is held longest, and whose it is.
-spec oldest(held()) -> none | {atoll_protocol:now_ms(), Root :: node()}.
oldest(#held{lines = Lines}) ->
    case [{Since, Root} || {Root, #line{messages = Messages}} <- maps:to_list(Lines), {_, _, Since} <- gb_trees:values(Messages)] of
        [] -> none;
        All -> lists:min(All)
    end.

%% @doc Is something of this sender held?
-spec is_held(node(), held()) -> boolean().
is_held(Root, #held{lines = Lines}) ->
    is_map_key(Root, Lines).

%% @doc How many messages are held.
-spec size(held()) -> non_neg_integer().
size(#held{size = Size}) ->
    Size.

%% @doc How many bytes their payloads take.
-spec bytes(held()) -> non_neg_integer().
bytes(#held{bytes = Bytes}) ->
    Bytes.

%% @doc How many were given back.
-spec dropped(held()) -> non_neg_integer().
dropped(#held{dropped = Dropped}) ->
    Dropped.

%% What is left of an earlier life comes before the first of the next.
begin_life({Life, _}, #line{place = {Life, _}} = Line) -> {[], Line};
begin_life(_Later, Line) -> {all(Line), none}.

all(#line{place = {_, Low}, messages = Messages}) ->
    {Last, _} = gb_trees:largest(Messages),
    {Out, _, _} = walk(Low, Last, Messages, [], 0),
    Out.

%% What is not later than Upto, with the gaps before each; newest first in Out.
walk(Low, Upto, Messages0, Out, Bytes) ->
    case gb_trees:is_empty(Messages0) orelse gb_trees:smallest(Messages0) of
        {Seq, {Payload, Size, _}} when Seq =< Upto ->
            Messages = gb_trees:delete(Seq, Messages0),
            walk(Seq, Upto, Messages, [{payload, Payload} | missed(Seq - Low - 1) ++ Out], Bytes + Size);
        _ ->
            {lists:reverse(Out), Bytes, Messages0}
    end.

missed(Count) when Count > 0 -> [{missed, Count}];
missed(_None) -> [].

told(Out) ->
    lists:sum([Count || {missed, Count} <- Out]).

%% It may be there already, of a sender that was forgotten meanwhile.
insert(Root, {Seq, Payload}, Now, #line{messages = Messages} = Line, Held) ->
    Weight = erlang:external_size(Payload),
    {Count, Before, Since} =
        case gb_trees:lookup(Seq, Messages) of
            {value, {_, Old, First}} -> {0, Old, First};
            none -> {1, 0, Now}
        end,
    store(Root, Line#line{messages = gb_trees:enter(Seq, {Payload, Weight, Since}, Messages)}, Count, Weight - Before, Held).

trim(Root, Out, Back, #held{max = Max, max_bytes = MaxBytes, size = Size, bytes = Bytes} = Held) when
    Size > Max; Bytes > MaxBytes, Size > 1
->
    #held{lines = #{Root := #line{messages = Messages0} = Line}, dropped = Dropped} = Held,
    {Seq, {_, Weight, _}, Messages} = gb_trees:take_largest(Messages0),
    Less = store(Root, Line#line{messages = Messages}, -1, -Weight, Held),
    trim(Root, Out, [Seq | Back], Less#held{dropped = Dropped + 1});
trim(_Root, Out, Back, Held) ->
    {Out, Back, Held}.

remove(Root, #line{messages = Messages} = Line, Held) ->
    Bytes = lists:sum([Weight || {_, Weight, _} <- gb_trees:values(Messages)]),
    store(Root, Line#line{messages = gb_trees:empty()}, -gb_trees:size(Messages), -Bytes, Held).

store(Root, #line{messages = Messages} = Line, Count, Weight, #held{lines = Lines, size = Size, bytes = Bytes} = Held) ->
    Kept =
        case gb_trees:is_empty(Messages) of
            true -> maps:remove(Root, Lines);
            false -> Lines#{Root => Line}
        end,
    Held#held{lines = Kept, size = Size + Count, bytes = Bytes + Weight}.
