%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc What was seen of every sender, so that each message is delivered once and a
%% missing one is noticed.
%%
%% A sender that was never heard of starts at 0: all that it sent so far is wanted.
%% That would be the whole history for a newcomer, so the table is *fresh* at first.
%% A fresh table waits for nothing; it takes over what a settled neighbour has seen
%% ({@link adopt/4}) and is settled from then on.
%%
%% The table has a bound. Once a sender was forgotten the table is not *complete* any
%% more: an unknown sender may then be a forgotten one, and so it starts where it is
%% first heard, lest its old messages be delivered again.
-module(atoll_plumtree_seen).

-export([new/2, is_fresh/1, is_complete/1, status/4, place/2, take/5, unsee/3, adopt/4, settle/1, close/1]).
-export([gone/5, give_up/3, digest/1, compare/4, senders/1, forgotten/1]).

-export_type([seen/0, line/0, digest/0, witnesses/0]).

-type line() :: {
    node(), atoll_plumtree_mark:incarnation(), Low :: non_neg_integer(), Above :: non_neg_integer()
}.

-type digest() :: [line()].
%% In the order of the senders' names.

-record(seen, {
    fresh = true :: boolean(),
    complete = true :: boolean(),
    %% How far behind the newest a missing message is waited for.
    window :: pos_integer(),
    %% Of each sender its mark, and who has said that what comes next after the mark's
    %% low end is gone.
    marks :: atoll_plumtree_recent:table({atoll_plumtree_mark:mark(), witnesses()})
}).

-type witnesses() :: {Times :: non_neg_integer(), ordsets:ordset(node())}.

-opaque seen() :: #seen{}.

-define(NOBODY, {0, []}).
%% How many of those who said that something is gone are remembered.
-define(WITNESSES, 64).
%% A fresh table still takes messages that were overtaken by this many.
-define(SLACK, 64).

%% @doc A fresh table of at most `Max' senders.
-spec new(Max :: pos_integer(), Window :: pos_integer()) -> seen().
new(Max, Window) ->
    #seen{window = Window, marks = atoll_plumtree_recent:new(Max)}.

%% @doc Has it no baseline yet?
-spec is_fresh(seen()) -> boolean().
is_fresh(#seen{fresh = Fresh}) ->
    Fresh.

%% @doc Is an unknown sender certainly a new one?
-spec is_complete(seen()) -> boolean().
is_complete(#seen{complete = Complete}) ->
    Complete.

%% @doc Is this message new, was it seen, or is it of an earlier life of its sender?
-spec status(node(), atoll_plumtree_mark:incarnation(), atoll_plumtree_mark:seq(), seen()) ->
    new | seen | old.
status(Sender, Incarnation, Seq, #seen{marks = Marks}) ->
    case atoll_plumtree_recent:find(Sender, Marks) of
        {ok, {Mark, _}} -> atoll_plumtree_mark:status(Incarnation, Seq, Mark);
        error -> new
    end.

%% @doc Up to where everything of a sender is over, and of which life.
-spec place(node(), seen()) -> {atoll_plumtree_mark:incarnation(), Low :: non_neg_integer()} | unknown.
place(Sender, #seen{marks = Marks}) ->
    case atoll_plumtree_recent:find(Sender, Marks) of
        {ok, {{Incarnation, Low, _}, _}} -> {Incarnation, Low};
        error -> unknown
    end.

%% @doc Takes a message that has come: if it is new it is seen from now on, it is
%% `Ahead' of what is complete by so many, and `Missed' earlier ones are not waited
%% for any more.
-spec take(
    node(),
    atoll_plumtree_mark:incarnation(),
    atoll_plumtree_mark:seq(),
    atoll_protocol:now_ms(),
    seen()
) -> {new, Ahead :: non_neg_integer(), Missed :: non_neg_integer(), seen()} | seen | old.
take(Sender, Incarnation, Seq, Now, #seen{window = Window, marks = Marks} = Seen) ->
    case atoll_plumtree_recent:find(Sender, Marks) of
        {ok, {Mark, Told}} ->
            case atoll_plumtree_mark:status(Incarnation, Seq, Mark) of
                new ->
                    {Missed, Added} = atoll_plumtree_mark:add(Incarnation, Seq, Window, Mark),
                    {new, ahead(Seq, Added), Missed, store(Sender, Added, told(Mark, Added, Told), Now, Seen)};
                Other ->
                    Other
            end;
        error ->
            Mark = first(Incarnation, Seq, Seen),
            {Missed, Added} = atoll_plumtree_mark:add(Incarnation, Seq, Window, Mark),
            {new, ahead(Seq, Added), Missed, store(Sender, Added, ?NOBODY, Now, Seen)}
    end.

ahead(Seq, {_, Low, _}) -> max(0, Seq - Low).

first(Incarnation, Seq, #seen{fresh = true}) ->
    atoll_plumtree_mark:at(Incarnation, max(0, Seq - 1 - ?SLACK));
first(Incarnation, Seq, #seen{complete = false}) ->
    atoll_plumtree_mark:at(Incarnation, Seq - 1);
first(Incarnation, _Seq, #seen{}) ->
    atoll_plumtree_mark:new(Incarnation).

%% Said of another low end it does not count.
told({Incarnation, Low, _}, {Incarnation, Low, _}, Told) -> Told;
told(_Before, _After, _Told) -> ?NOBODY.

store(Sender, Mark, Told, Now, #seen{marks = Marks0} = Seen) ->
    Marks = atoll_plumtree_recent:store(Sender, {Mark, Told}, Now, Marks0),
    case Seen of
        #seen{complete = true} ->
            Seen#seen{marks = Marks, complete = atoll_plumtree_recent:forgotten(Marks) =:= 0};
        #seen{} ->
            Seen#seen{marks = Marks}
    end.

%% @doc These, of the present life of a sender and above what is over, do not count as seen.
-spec unsee(node(), [atoll_plumtree_mark:seq()], seen()) -> seen().
unsee(_Sender, [], Seen) ->
    Seen;
unsee(Sender, Seqs, #seen{marks = Marks} = Seen) ->
    {ok, {Mark, Told}} = atoll_plumtree_recent:find(Sender, Marks),
    Less = lists:foldl(fun atoll_plumtree_mark:unsee/2, Mark, Seqs),
    Seen#seen{marks = atoll_plumtree_recent:change(Sender, {Less, Told}, Marks)}.

%% @doc Settles a fresh table: what the neighbour with this digest has seen is over
%% here too.
-spec adopt(digest(), Complete :: boolean(), atoll_protocol:now_ms(), seen()) -> seen().
adopt(Digest, Complete, Now, #seen{fresh = true} = Seen0) ->
    Adopted = lists:foldl(
        fun({Sender, Incarnation, Low, Above}, #seen{marks = Marks} = Seen) ->
            Theirs = {Incarnation, Low, Above},
            Mark =
                case atoll_plumtree_recent:find(Sender, Marks) of
                    {ok, {Ours, _}} -> atoll_plumtree_mark:union(Ours, Theirs);
                    error -> Theirs
                end,
            store(Sender, Mark, ?NOBODY, Now, Seen)
        end,
        Seen0,
        %% A node that has sent nothing need not be remembered.
        [Line || {_, _, Low, Above} = Line <- Digest, Low + Above > 0]
    ),
    #seen{complete = Own} = Adopted,
    %% Of senders that the neighbour has not heard of.
    Known = maps:from_list([{Sender, known} || {Sender, _, _, _} <- Digest]),
    Settled = settle_but(Known, Adopted),
    Settled#seen{complete = Own andalso Complete}.

%% @doc Settles a fresh table that found no baseline: each sender counts from the
%% first that was heard of it.
-spec settle(seen()) -> seen().
settle(#seen{fresh = true} = Seen) ->
    settle_but(#{}, Seen).

%% @doc Waits for nothing that is older than what was seen.
-spec close(seen()) -> seen().
close(#seen{marks = Marks} = Seen) ->
    Close = fun(_Sender, {Mark, Told}) -> {atoll_plumtree_mark:close(Mark), Told} end,
    Seen#seen{marks = atoll_plumtree_recent:map(Close, Marks)}.

settle_but(Known, #seen{marks = Marks} = Seen) ->
    Settle = fun
        (Sender, Entry) when is_map_key(Sender, Known) -> Entry;
        (_Sender, {Mark, Told}) -> {atoll_plumtree_mark:settle(Mark), Told}
    end,
    Seen#seen{fresh = false, marks = atoll_plumtree_recent:map(Settle, Marks)}.

%% @doc A neighbour says that it has nothing of this sender up to `Upto' to give,
%% though it is past it: it had it and has it no more, or never had it. When those who
%% have said so are enough it is believed: no cache has it.
-spec gone(
    {node(), atoll_plumtree_mark:incarnation(), Upto :: non_neg_integer()},
    From :: node(),
    IsEnough :: fun((witnesses()) -> boolean()),
    atoll_protocol:now_ms(),
    seen()
) -> {Missed :: non_neg_integer(), seen()}.
gone({Sender, Incarnation, Upto}, From, IsEnough, Now, #seen{marks = Marks} = Seen) ->
    {Mark0, Told0} =
        case atoll_plumtree_recent:find(Sender, Marks) of
            {ok, Entry} -> Entry;
            error -> {atoll_plumtree_mark:new(Incarnation), ?NOBODY}
        end,
    case Mark0 of
        {Known, Low, _} when Known > Incarnation; Known =:= Incarnation, Low >= Upto ->
            {0, Seen};
        {Known, _, _} ->
            {Mark1, Told} =
                case Known of
                    Incarnation -> {Mark0, witness(From, Told0)};
                    _ -> {atoll_plumtree_mark:new(Incarnation), witness(From, ?NOBODY)}
                end,
            case IsEnough(Told) of
                true ->
                    {Missed, Mark} = atoll_plumtree_mark:give_up(Upto, Mark1),
                    {Missed, store(Sender, Mark, ?NOBODY, Now, Seen)};
                false ->
                    {0, store(Sender, Mark1, Told, Now, Seen)}
            end
    end.

%% @doc Waits no longer for anything up to there, if that is still the sender's life.
-spec give_up(
    {node(), atoll_plumtree_mark:incarnation(), Upto :: non_neg_integer()}, atoll_protocol:now_ms(), seen()
) -> {Missed :: non_neg_integer(), seen()}.
give_up({Sender, Incarnation, Upto}, Now, #seen{marks = Marks} = Seen) ->
    case atoll_plumtree_recent:find(Sender, Marks) of
        {ok, {{Incarnation, _, _} = Mark0, _}} ->
            {Missed, Mark} = atoll_plumtree_mark:give_up(Upto, Mark0),
            {Missed, store(Sender, Mark, ?NOBODY, Now, Seen)};
        _ ->
            {0, Seen}
    end.

%% Of late ones no more than anybody asks for.
witness(From, {Times, Nodes}) when length(Nodes) < ?WITNESSES -> {Times + 1, ordsets:add_element(From, Nodes)};
witness(From, {Times, [_ | Nodes]}) -> {Times + 1, ordsets:add_element(From, Nodes)}.

%% @doc What was seen, for a neighbour.
-spec digest(seen()) -> digest().
digest(#seen{marks = Marks}) ->
    [
        {Sender, Incarnation, Low, Above}
     || {Sender, {{Incarnation, Low, Above}, _}} <- atoll_plumtree_recent:to_list(Marks)
    ].

%% @doc Which lines of each digest lack something that the other has. A sender
%% unknown to a digest that is complete is one of which everything is lacking.
-spec compare(digest(), boolean(), digest(), boolean()) ->
    {FirstLacks :: digest(), SecondLacks :: digest()}.
compare(First, FirstComplete, Second, SecondComplete) ->
    compare(First, FirstComplete, Second, SecondComplete, [], []).

compare([Line | First], C1, [Line | Second], C2, Lacks1, Lacks2) ->
    compare(First, C1, Second, C2, Lacks1, Lacks2);
compare([{Sender, I1, L1, A1} = Line1 | First], C1, [{Sender, I2, L2, A2} = Line2 | Second], C2, Lacks1, Lacks2) ->
    Mark1 = {I1, L1, A1},
    Mark2 = {I2, L2, A2},
    compare(
        First,
        C1,
        Second,
        C2,
        [Line1 || atoll_plumtree_mark:lacks(Mark1, Mark2)] ++ Lacks1,
        [Line2 || atoll_plumtree_mark:lacks(Mark2, Mark1)] ++ Lacks2
    );
compare([{Sender1, _, _, _} = Line | First], C1, [{Sender2, _, _, _} | _] = Second, C2, Lacks1, Lacks2) when
    Sender1 < Sender2
->
    compare(First, C1, Second, C2, Lacks1, unknown(Line, C2) ++ Lacks2);
compare([Line | First], C1, [], C2, Lacks1, Lacks2) ->
    compare(First, C1, [], C2, Lacks1, unknown(Line, C2) ++ Lacks2);
compare(First, C1, [Line | Second], C2, Lacks1, Lacks2) ->
    compare(First, C1, Second, C2, unknown(Line, C1) ++ Lacks1, Lacks2);
compare([], _C1, [], _C2, Lacks1, Lacks2) ->
    {lists:reverse(Lacks1), lists:reverse(Lacks2)}.

%% What a digest lacks that has no line of this sender.
unknown({Sender, _, Low, Above}, true) when Low + Above > 0 -> [{Sender, 0, 0, 0}];
unknown(_Line, _Complete) -> [].

%% @doc How many senders there are.
-spec senders(seen()) -> non_neg_integer().
senders(#seen{marks = Marks}) ->
    atoll_plumtree_recent:size(Marks).

%% @doc How many senders were forgotten.
-spec forgotten(seen()) -> non_neg_integer().
forgotten(#seen{marks = Marks}) ->
    atoll_plumtree_recent:forgotten(Marks).
