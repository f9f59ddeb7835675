%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc What was seen of one sender, in a few words of memory.
%%
%% A sender numbers its messages 1, 2, 3… anew in each of its lives
%% (incarnations). A mark is `{Incarnation, Low, Above}': of this life, everything
%% up to `Low' is over (seen, or given up), and bit `I' of `Above' says that
%% message `Low + 1 + I' was seen too. So after 1, 2, 3, 5 and 6 of life 7 the mark is
%% `{7, 3, 2#110}'. Message `Low + 1' is always one that was not seen: bit 0 is 0.
%%
%% Of lives before the one in the mark nothing is known and nothing is wanted.
-module(atoll_plumtree_mark).

-export([new/1, at/2, status/3, add/4, give_up/2, unsee/2, settle/1, close/1, union/2, lacks/2, has/2]).

-export_type([mark/0, incarnation/0, seq/0]).

-type incarnation() :: non_neg_integer().
%% 0 is the life of a sender never heard of.

-type seq() :: pos_integer().

-type mark() :: {incarnation(), Low :: non_neg_integer(), Above :: non_neg_integer()}.

%% @doc Nothing seen yet of this life.
-spec new(incarnation()) -> mark().
new(Incarnation) ->
    {Incarnation, 0, 0}.

%% @doc Everything up to `Low' is over.
-spec at(incarnation(), non_neg_integer()) -> mark().
at(Incarnation, Low) ->
    {Incarnation, Low, 0}.

%% @doc Is this message new, was it seen, or is it of an earlier life?
-spec status(incarnation(), seq(), mark()) -> new | seen | old.
status(Incarnation, Seq, {Incarnation, Low, Above}) ->
    case Seq =< Low orelse (Above bsr (Seq - Low - 1)) band 1 =:= 1 of
        true -> seen;
        false -> new
    end;
status(Incarnation, _Seq, {Known, _, _}) when Incarnation > Known ->
    new;
status(_Incarnation, _Seq, _Mark) ->
    old.

%% @doc Adds a message that is new. What was missing further back than `Window' is
%% given up, and what was missing of an earlier life: the count of it comes first.
-spec add(incarnation(), seq(), Window :: pos_integer(), mark()) ->
    {Missed :: non_neg_integer(), mark()}.
add(Incarnation, Seq, _Window, {Incarnation, Low, 0}) when Seq =:= Low + 1 ->
    {0, {Incarnation, Seq, 0}};
add(Incarnation, Seq, Window, {Incarnation, Low, _} = Mark0) when Seq > Low + Window ->
    {Missed, Mark} = give_up(Seq - Window, Mark0),
    {0, Added} = add(Incarnation, Seq, Window, Mark),
    {Missed, Added};
add(Incarnation, Seq, _Window, {Incarnation, Low, Above}) when Seq > Low ->
    {0, slide(Incarnation, Low, Above bor (1 bsl (Seq - Low - 1)))};
add(Incarnation, Seq, Window, {Known, _, Above}) when Incarnation > Known ->
    {Missed, Mark} = add(Incarnation, Seq, Window, new(Incarnation)),
    {Missed + count($0, Above), Mark}.

slide(Incarnation, Low, Above) when Above band 1 =:= 1 ->
    slide(Incarnation, Low + 1, Above bsr 1);
slide(Incarnation, Low, Above) ->
    {Incarnation, Low, Above}.

%% @doc Waits no longer for anything up to `Upto'; says how much of it was not seen.
-spec give_up(Upto :: non_neg_integer(), mark()) -> {Missed :: non_neg_integer(), mark()}.
give_up(Upto, {_, Low, _} = Mark) when Upto =< Low ->
    {0, Mark};
give_up(Upto, {Incarnation, Low, Above}) ->
    N = Upto - Low,
    {Below, Rest} =
        case Above bsr N of
            %% N can be large beyond all bits: no mask of that length.
            0 -> {Above, 0};
            High -> {Above - (High bsl N), High}
        end,
    {N - count($1, Below), slide(Incarnation, Upto, Rest)}.

count(_Digit, 0) ->
    0;
count(Digit, Bits) ->
    length([D || D <- integer_to_list(Bits, 2), D =:= Digit]).

%% @doc This one, above `Low', does not count as seen.
-spec unsee(seq(), mark()) -> mark().
unsee(Seq, {Incarnation, Low, Above}) when Seq > Low ->
    {Incarnation, Low, Above band bnot (1 bsl (Seq - Low - 1))}.

%% @doc Wants nothing from before the first that was seen above `Low'.
-spec settle(mark()) -> mark().
settle({_, _, 0} = Mark) ->
    Mark;
settle({Incarnation, Low, Above}) when Above band 1 =:= 0 ->
    settle({Incarnation, Low + 1, Above bsr 1});
settle({Incarnation, Low, Above}) ->
    slide(Incarnation, Low, Above).

%% @doc Wants nothing from before the last that was seen.
-spec close(mark()) -> mark().
close({_, _, 0} = Mark) -> Mark;
close({Incarnation, Low, Above}) -> {Incarnation, Low + length(integer_to_list(Above, 2)), 0}.

%% @doc What was seen by either; of the later life if they differ.
-spec union(mark(), mark()) -> mark().
union({Incarnation, Low1, Above1}, {Incarnation, Low2, Above2}) ->
    Low = max(Low1, Low2),
    slide(Incarnation, Low, (Above1 bsr (Low - Low1)) bor (Above2 bsr (Low - Low2)));
union(Mark1, Mark2) ->
    max(Mark1, Mark2).

%% @doc Has the second seen something that the first has not?
-spec lacks(mark(), mark()) -> boolean().
lacks({Incarnation, Low1, Above1}, {Incarnation, Low2, Above2}) ->
    %% The first has not seen Low1 + 1.
    Low2 > Low1 orelse (Above2 bsr (Low1 - Low2)) band (bnot Above1) =/= 0;
lacks({Incarnation1, _, _}, {Incarnation2, Low2, Above2}) ->
    Incarnation2 > Incarnation1 andalso (Low2 > 0 orelse Above2 > 0).

%% @doc Was this message of the mark's life seen, or given up?
-spec has(seq(), mark()) -> boolean().
has(Seq, {_, Low, Above}) ->
    Seq =< Low orelse (Above bsr (Seq - Low - 1)) band 1 =:= 1.
