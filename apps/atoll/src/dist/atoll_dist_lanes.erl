%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Which lane a packet takes.
%%
%% Senders are put into slots by the number of their pid, and a slot is given a lane
%% when its first packet comes: the lane with the fewest slots, of equals that with the
%% fewest bytes waiting. So few senders, or many with numbers in a row, are spread
%% evenly, where a hash would leave lanes empty. A slot keeps its lane, and so all
%% signals of a sender keep their order; at a fence, when everything before has arrived,
%% the slots are free again. Fragments take the lane of their sender's slot.
%%
%% The memory is bounded: the slots are, and of unfinished sequences (a sender that is
%% killed halfway leaves one for ever) no more than a number is known. When there are too
%% many all are forgotten, which is counted, and a fragment of a forgotten one gets a
%% fence, after which it may take any lane.
%%
%% Fragments that come out of turn are an error: the VM makes none.
-module(atoll_dist_lanes).

-export([new/1, new/2, choose/3, fenced/1, figures/1]).

-export_type([lane/0, count/0, lanes/0, waiting/0, way/0, reason/0]).

-type lane() :: 0..63.

-type count() :: 1..64.

%% The bytes that wait on each lane.
-type waiting() :: tuple().

-type way() ::
    lane()
    %% A fence belongs before and after it.
    | fence
    %% A fence belongs before it, at some time; what comes after need not wait.
    | late.

-type reason() ::
    {fragment_out_of_turn, atoll_dist_packet:sequence(), atoll_dist_packet:fragment()}.

-type slot() :: 0..4095 | none.

-record(lanes, {
    n :: count(),
    %% The lane of each slot, or none, in a tuple of tuples.
    slots :: tuple(),
    %% How many slots each lane has.
    taken :: tuple(),
    %% The unfinished sequences: the sender's slot (none: no sender is known), and the
    %% fragment that is next.
    sequences = #{} :: #{atoll_dist_packet:sequence() => {slot(), atoll_dist_packet:fragment()}},
    max_sequences :: pos_integer(),
    forgotten = 0 :: non_neg_integer()
}).

-opaque lanes() :: #lanes{}.

%% Slots are ROWS times ROWS.
-define(ROWS, 64).
-define(SLOTS, (?ROWS * ?ROWS)).
-define(MAX_SEQUENCES, 16384).

%% The lane of what has no sender.
-define(FIRST, 0).

%% @doc So many lanes.
-spec new(count()) -> lanes().
new(N) -> new(N, #{}).

%% @doc So many lanes, and at most so many unfinished sequences known.
-spec new(count(), #{max_sequences => pos_integer()}) -> lanes().
new(N, Options) when N >= 1, N =< 64 ->
    #lanes{
        n = N,
        slots = free(),
        taken = erlang:make_tuple(N, 0),
        max_sequences = maps:get(max_sequences, Options, ?MAX_SEQUENCES)
    }.

free() -> erlang:make_tuple(?ROWS, erlang:make_tuple(?ROWS, none)).

%% @doc The way of a packet.
-spec choose(atoll_dist_packet:verdict(), waiting(), lanes()) ->
    {way(), lanes()} | {error, reason() | atoll_dist_packet:reason()}.
choose({sender, Key}, Waiting, Lanes) ->
    lane(Key band (?SLOTS - 1), Waiting, Lanes);
choose({next, Seq, Frag}, Waiting, #lanes{sequences = Sequences} = Lanes) ->
    case Sequences of
        #{Seq := {Slot, Frag}} -> next(Seq, Frag, Slot, Waiting, Lanes);
        #{Seq := _} -> {error, {fragment_out_of_turn, Seq, Frag}};
        #{} -> unknown(Seq, Frag, Lanes)
    end;
choose({first, Seq, Frag, Whose}, Waiting, #lanes{sequences = Sequences} = Lanes0) ->
    Slot = slot(Whose),
    Lanes = remember(Seq, {Slot, Frag - 1}, Lanes0),
    %% A sender uses one number for all its sequences. Where it is not known (its death
    %% is told by name), another sequence of the same number may still be on its lane,
    %% and must not be mixed with this one.
    case Sequences of
        #{Seq := {Other, _}} when Other =/= Slot -> {fence, Lanes};
        #{} when Slot =:= none -> {fence, Lanes};
        #{} -> lane(Slot, Waiting, Lanes)
    end;
choose(none, _Waiting, Lanes) ->
    {fence, Lanes};
choose(late, _Waiting, Lanes) ->
    {late, Lanes};
choose({error, _} = Error, _Waiting, _Lanes) ->
    Error.

slot({sender, Key}) -> Key band (?SLOTS - 1);
slot(_) -> none.

%% A signal takes effect with its last fragment: without a sender, that needs the fence.
%% It is not put off, for its sender may use the sequence's number again.
next(Seq, 1, none, _Waiting, Lanes) ->
    {fence, forget(Seq, Lanes)};
next(Seq, 1, Slot, Waiting, Lanes) ->
    lane(Slot, Waiting, forget(Seq, Lanes));
next(Seq, Frag, Slot, Waiting, Lanes) ->
    lane(Slot, Waiting, remember(Seq, {Slot, Frag - 1}, Lanes)).

%% Its sender's slot was forgotten, so the last fragment will have a fence as well.
unknown(Seq, Frag, #lanes{forgotten = 0}) ->
    {error, {fragment_out_of_turn, Seq, Frag}};
unknown(_Seq, 1, Lanes) ->
    {fence, Lanes};
unknown(Seq, Frag, Lanes) ->
    {fence, remember(Seq, {none, Frag - 1}, Lanes)}.

remember(Seq, Next, #lanes{sequences = Sequences, max_sequences = Max, forgotten = Forgotten} = Lanes) ->
    case map_size(Sequences) >= Max andalso not is_map_key(Seq, Sequences) of
        true -> Lanes#lanes{sequences = #{Seq => Next}, forgotten = Forgotten + map_size(Sequences)};
        false -> Lanes#lanes{sequences = Sequences#{Seq => Next}}
    end.

forget(Seq, #lanes{sequences = Sequences} = Lanes) ->
    Lanes#lanes{sequences = maps:remove(Seq, Sequences)}.

lane(none, _Waiting, Lanes) ->
    {?FIRST, Lanes};
lane(Slot, Waiting, #lanes{slots = Slots} = Lanes) ->
    Row = element(Slot bsr 6 + 1, Slots),
    case element(Slot band (?ROWS - 1) + 1, Row) of
        none -> assign(Slot, Row, Waiting, Lanes);
        Lane -> {Lane, Lanes}
    end.

assign(Slot, Row, Waiting, #lanes{n = N, slots = Slots, taken = Taken} = Lanes) ->
    Lane = least(N, Taken, Waiting, N) - 1,
    {Lane, Lanes#lanes{
        slots = setelement(Slot bsr 6 + 1, Slots, setelement(Slot band (?ROWS - 1) + 1, Row, Lane)),
        taken = setelement(Lane + 1, Taken, element(Lane + 1, Taken) + 1)
    }}.

%% The lane, counted from 1, with the fewest slots, then with the least waiting, then the
%% first.
least(0, _Taken, _Waiting, Best) ->
    Best;
least(I, Taken, Waiting, Best) ->
    case element(I, Taken) - element(Best, Taken) of
        Fewer when Fewer < 0 -> least(I - 1, Taken, Waiting, I);
        0 when element(I, Waiting) =< element(Best, Waiting) -> least(I - 1, Taken, Waiting, I);
        _ -> least(I - 1, Taken, Waiting, Best)
    end.

%% @doc A fence was put on the lanes: the slots are free again.
-spec fenced(lanes()) -> lanes().
fenced(#lanes{n = N} = Lanes) ->
    Lanes#lanes{slots = free(), taken = erlang:make_tuple(N, 0)}.

%% @doc How many slots each lane has, the unfinished sequences, and how many were
%% forgotten so far.
-spec figures(lanes()) ->
    #{slots := [non_neg_integer()], sequences := non_neg_integer(), forgotten := non_neg_integer()}.
figures(#lanes{taken = Taken, sequences = Sequences, forgotten = Forgotten}) ->
    #{slots => tuple_to_list(Taken), sequences => map_size(Sequences), forgotten => Forgotten}.
