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
%% Lanes may be divided into groups, one for what is in no channel and one for each channel
%% ({@link atoll_dist_named}); each has slots of its own. A sender that changes its group
%% gets a fence, behind which its first packet goes. Who has sent in which group is known
%% of those in a channel; one that comes into a channel may have sent before if its slot in
%% the first group is taken, which is said to be so where another one has taken it. When
%% too many are known, those that have not sent for as long are forgotten, behind a fence.
%%
%% The memory is bounded: the slots are, and of unfinished sequences (a sender that is
%% killed halfway leaves one for ever) no more than a number is known. When there are too
%% many all are forgotten, which is counted, and a fragment of a forgotten one gets a
%% fence, after which it may take any lane.
%%
%% Fragments that come out of turn are an error: the VM makes none.
-module(atoll_dist_lanes).

-export([new/1, new/2, choose/3, choose/4, fenced/1, figures/1]).

-export_type([lane/0, count/0, lanes/0, group/0, waiting/0, way/0, reason/0]).

-type lane() :: 0..63.

-type count() :: 1..64.

%% The place of a group: 1 is what is in no channel.
-type group() :: pos_integer().

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

-type place() :: {group(), atoll_dist_packet:key()} | none.

%% The lanes of a group, from one on so many.
-record(group, {
    first :: lane(),
    n :: count(),
    %% The lane of each slot, or none, in a tuple of tuples.
    slots :: tuple()
}).

-record(lanes, {
    n :: count(),
    groups :: tuple(),
    %% How many slots each lane has.
    taken :: tuple(),
    %% In which channel's group a sender was last: those of late, and those of before.
    members = #{} :: #{atoll_dist_packet:key() => group()},
    older = #{} :: #{atoll_dist_packet:key() => group()},
    max_members :: pos_integer(),
    %% The unfinished sequences: the sender and its group (none: no sender is known), and the
    %% fragment that is next.
    sequences = #{} :: #{atoll_dist_packet:sequence() => {place(), atoll_dist_packet:fragment()}},
    max_sequences :: pos_integer(),
    forgotten = 0 :: non_neg_integer()
}).

-opaque lanes() :: #lanes{}.

%% Slots are ROWS times ROWS.
-define(ROWS, 64).
-define(SLOT(Key), (Key band (?ROWS * ?ROWS - 1))).
-define(MAX_SEQUENCES, 16384).
-define(MAX_MEMBERS, 16384).

%% The lane of what has no sender.
-define(FIRST, 0).

%% @doc So many lanes.
-spec new(count()) -> lanes().
new(N) -> new(N, #{}).

%% @doc So many lanes, in one group unless it is said which there are, each by its first lane
%% and how many; and at most so many unfinished sequences and senders in channels known.
-spec new(count(), #{
    groups => [{First :: lane(), count()}, ...], max_sequences => pos_integer(), max_members => pos_integer()
}) -> lanes().
new(N, Options) when N >= 1, N =< 64 ->
    Groups = [#group{first = First, n = Count, slots = free()} || {First, Count} <- maps:get(groups, Options, [{0, N}])],
    #lanes{
        n = N,
        groups = list_to_tuple(Groups),
        taken = erlang:make_tuple(N, 0),
        max_sequences = maps:get(max_sequences, Options, ?MAX_SEQUENCES),
        max_members = maps:get(max_members, Options, ?MAX_MEMBERS)
    }.

free() -> erlang:make_tuple(?ROWS, erlang:make_tuple(?ROWS, none)).

%% @doc The way of a packet of a sender that is in no channel.
-spec choose(atoll_dist_packet:verdict(), waiting(), lanes()) ->
    {way(), lanes()} | {error, reason() | atoll_dist_packet:reason()}.
choose(Verdict, Waiting, Lanes) ->
    choose(Verdict, 1, Waiting, Lanes).

%% @doc The way of a packet of a sender in that group.
-spec choose(atoll_dist_packet:verdict(), group(), waiting(), lanes()) ->
    {way(), lanes()} | {error, reason() | atoll_dist_packet:reason()}.
choose({sender, Key}, Group, Waiting, Lanes0) ->
    case enter(Key, Group, Lanes0) of
        {stays, Lanes} -> lane({Group, Key}, Waiting, Lanes);
        {comes, Lanes} -> {fence, Lanes}
    end;
choose({next, Seq, Frag}, _Group, Waiting, #lanes{sequences = Sequences} = Lanes) ->
    case Sequences of
        #{Seq := {Place, Frag}} -> next(Seq, Frag, Place, Waiting, Lanes);
        #{Seq := _} -> {error, {fragment_out_of_turn, Seq, Frag}};
        #{} -> unknown(Seq, Frag, Lanes)
    end;
choose({first, Seq, Frag, Whose}, Group, Waiting, #lanes{sequences = Sequences} = Lanes0) ->
    {Place, Comes, Lanes1} = place(Whose, Group, Lanes0),
    Lanes = remember(Seq, {Place, Frag - 1}, Lanes1),
    %% A sender uses one number for all its sequences. Where it is not known (its death
    %% is told by name), another sequence of the same number may still be on its lane,
    %% and must not be mixed with this one.
    case Sequences of
        #{Seq := {Other, _}} when Other =/= Place -> {fence, Lanes};
        #{} when Place =:= none; Comes =:= comes -> {fence, Lanes};
        #{} -> lane(Place, Waiting, Lanes)
    end;
choose(none, _Group, _Waiting, Lanes) ->
    {fence, Lanes};
choose(late, _Group, _Waiting, Lanes) ->
    {late, Lanes};
choose({error, _} = Error, _Group, _Waiting, _Lanes) ->
    Error.

place({sender, Key}, Group, Lanes0) ->
    {Comes, Lanes} = enter(Key, Group, Lanes0),
    {{Group, Key}, Comes, Lanes};
place(_, _Group, Lanes) ->
    {none, stays, Lanes}.

%% Whether all that a sender has sent is in that group, or behind a fence.
enter(_Key, 1, #lanes{members = Members, older = Older} = Lanes) when map_size(Members) =:= 0, map_size(Older) =:= 0 ->
    {stays, Lanes};
enter(Key, Group, #lanes{members = Members, older = Older} = Lanes) ->
    case {Members, Older} of
        {#{Key := Group}, _} -> {stays, Lanes};
        {#{Key := _}, _} -> {comes, leave(Key, Group, Lanes)};
        {_, #{Key := Group}} -> come(stays, Key, Group, Lanes);
        {_, #{Key := _}} -> {comes, leave(Key, Group, Lanes)};
        _ when Group =:= 1 -> {stays, Lanes};
        _ -> come(has_sent(Key, Lanes), Key, Group, Lanes)
    end.

has_sent(Key, #lanes{groups = Groups}) ->
    #group{slots = Slots} = element(1, Groups),
    case slot(Key, Slots) of
        none -> stays;
        _ -> comes
    end.

leave(Key, Group, #lanes{members = Members, older = Older} = Lanes0) ->
    Lanes = Lanes0#lanes{members = maps:remove(Key, Members), older = maps:remove(Key, Older)},
    case Group of
        1 -> Lanes;
        _ -> element(2, come(comes, Key, Group, Lanes))
    end.

%% Those that are forgotten now are known to be behind a fence.
come(Comes, Key, Group, #lanes{members = Members, max_members = Max} = Lanes) ->
    case map_size(Members) < Max of
        true -> {Comes, Lanes#lanes{members = Members#{Key => Group}}};
        false -> {comes, Lanes#lanes{members = #{Key => Group}, older = Members}}
    end.

%% A signal takes effect with its last fragment: without a sender, that needs the fence.
%% It is not put off, for its sender may use the sequence's number again.
next(Seq, 1, Place, Waiting, Lanes) ->
    further(Place, 1, Waiting, forget(Seq, Lanes));
next(Seq, Frag, Place, Waiting, Lanes) ->
    further(Place, Frag, Waiting, remember(Seq, {Place, Frag - 1}, Lanes)).

further(none, 1, _Waiting, Lanes) -> {fence, Lanes};
further(none, _Frag, _Waiting, Lanes) -> {?FIRST, Lanes};
further({Group, Key}, _Frag, Waiting, Lanes) -> choose({sender, Key}, Group, Waiting, Lanes).

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

lane({I, Key}, Waiting, #lanes{groups = Groups} = Lanes) ->
    Group = element(I, Groups),
    case slot(Key, Group#group.slots) of
        none -> assign(I, ?SLOT(Key), Group, Waiting, Lanes);
        Lane -> {Lane, Lanes}
    end.

slot(Key, Slots) ->
    element(Key band (?ROWS - 1) + 1, element(?SLOT(Key) bsr 6 + 1, Slots)).

assign(I, Slot, #group{first = First, n = N, slots = Slots} = Group, Waiting, #lanes{groups = Groups, taken = Taken} = Lanes) ->
    Lane = least(First + N, First, Taken, Waiting, First + N) - 1,
    Row = setelement(Slot band (?ROWS - 1) + 1, element(Slot bsr 6 + 1, Slots), Lane),
    {Lane, Lanes#lanes{
        groups = setelement(I, Groups, Group#group{slots = setelement(Slot bsr 6 + 1, Slots, Row)}),
        taken = setelement(Lane + 1, Taken, element(Lane + 1, Taken) + 1)
    }}.

%% The lane, counted from 1, with the fewest slots, then with the least waiting, then the
%% first.
least(First, First, _Taken, _Waiting, Best) ->
    Best;
least(I, First, Taken, Waiting, Best) ->
    case element(I, Taken) - element(Best, Taken) of
        Fewer when Fewer < 0 -> least(I - 1, First, Taken, Waiting, I);
        0 when element(I, Waiting) =< element(Best, Waiting) -> least(I - 1, First, Taken, Waiting, I);
        _ -> least(I - 1, First, Taken, Waiting, Best)
    end.

%% @doc A fence was put on the lanes: the slots are free again.
-spec fenced(lanes()) -> lanes().
fenced(#lanes{n = N, groups = Groups} = Lanes) ->
    Free = [Group#group{slots = free()} || Group <- tuple_to_list(Groups)],
    Lanes#lanes{groups = list_to_tuple(Free), taken = erlang:make_tuple(N, 0)}.

%% @doc How many slots each lane has, the unfinished sequences, and how many were
%% forgotten so far.
-spec figures(lanes()) ->
    #{slots := [non_neg_integer()], sequences := non_neg_integer(), forgotten := non_neg_integer()}.
figures(#lanes{taken = Taken, sequences = Sequences, forgotten = Forgotten}) ->
    #{slots => tuple_to_list(Taken), sequences => map_size(Sequences), forgotten => Forgotten}.
