%% SPDX-License-Identifier: Apache-2.0
%% @doc One request for a key, of N partitions of which R must answer a read, and W have a write. Pure: {@link ring_coordinator} does the effects.
%%
%% A *read* asks all N. The answer is what R of them come to, merged. Whoever has less than that, and whoever answers later with less, is told what
%% it lacks (read repair). With `seen' a read has to know all that its caller has seen before, and waits for more answers
%% than R until it does.
%%
%% A *write* goes to the first partition of the list, which orders it: it gives it a dot ({@link ring_dvv}). What comes of it goes to all others. The answer is `ok' when
%% W have it. The value goes to each copy once, and does not come back from the first.
%%
%% A node may have two of the partitions, where there are few nodes. So R and W are also a number of nodes: as many, or all that have the partitions where these are fewer.
%%
%% Promised: one answer, and the state is over some time after it. An `ok' of a write says that W partitions have taken it, on as many nodes. Not promised: that a write with another answer was not done.
-module(ring_request).

-export([read/4, write/4, handle/2]).

-export_type([request/0, event/0, effect/0, answer/0, error/0, need/0]).

-type need() :: {Copies :: pos_integer(), Nodes :: pos_integer()}.

-type error() ::
    %% So many have answered in time, of so many that must.
    {too_few, Answered :: non_neg_integer(), Needed :: pos_integer()}
    %% Enough copies have, and all are with so many nodes, of so many that must.
    | {too_few_nodes, non_neg_integer(), pos_integer()}
    %% Not one of those that answered knows what the caller has seen.
    | older
    %% The node that ordered a write is lost; it may have been done.
    | {lost, node()}
    %% What the partition says.
    | term().

-type answer() :: {ok, ring_dvv:clock(term())} | {written, ring_dvv:context()} | {error, error()}.

-type event() :: {reply, ring_hash:partition(), Reply :: term()} | {lost, node()} | timeout.

-type effect() ::
    %% A command for which a reply is wanted; and one for which none is.
    {ask | tell, ring_preflist:entry(), Command :: term()}
    | {answer, answer()}
    | over.

-opaque request() :: #{
    kind := read | write,
    of_key := {ring_hash:partition(), Key :: term()},
    need := need(),
    entries := [ring_preflist:entry()],
    %% Those of whom nothing was heard yet, and what others have said.
    waiting := [ring_preflist:entry()],
    got := [{ring_preflist:entry(), ring_dvv:clock(term()) | taken}],
    is_answered := boolean(),
    %% Of a read: what its caller has seen.
    seen := ring_dvv:context(),
    %% Of a write: whom it goes to next if the first does not take it, and what was written.
    next := [ring_preflist:entry()],
    command := term(),
    written := ring_dvv:context()
}.

%% @doc A read of a key of a partition, with its preference list.
-spec read({ring_hash:partition(), term()}, [ring_preflist:entry()], need(), Seen :: ring_dvv:context()) -> {request(), [effect()]}.
read(OfKey, Entries, Need, Seen) ->
    Request = (new(read, OfKey, Entries, Need))#{waiting := Entries, seen := Seen},
    decided([{ask, Entry, {get, OfKey}} || Entry <- Entries], Request).

%% @doc A write of a value by somebody who has seen that.
-spec write({ring_hash:partition(), term()}, {Value :: term(), ring_dvv:context()}, [ring_preflist:entry()], need()) -> {request(), [effect()]}.
write(OfKey, {Value, Context}, Entries, Need) ->
    Request = new(write, OfKey, Entries, Need),
    case {few(Entries, Need), Entries} of
        {none, [First | Others]} ->
            Command = {update, OfKey, Value, Context},
            {Request#{waiting := [First], next := Others, command := Command}, [{ask, First, Command}]};
        {Few, _} -> answered({error, Few}, Request)
    end.

%% What these are too few for.
few(Entries, {Copies, Nodes}) ->
    case {length(Entries), length(lists:usort([Node || {_, Node, _} <- Entries]))} of
        {N, _} when N < Copies -> {too_few, N, Copies};
        {_, N} when N < Nodes -> {too_few_nodes, N, Nodes};
        _ -> none
    end.

few_got(Got, Need) -> few([Entry || {Entry, _} <- Got], Need).

new(Kind, OfKey, Entries, Need) ->
    #{kind => Kind, of_key => OfKey, need => Need, entries => Entries, waiting => [], got => [], is_answered => false, seen => #{}, next => [], command => none, written => #{}}.

%% @doc What has happened, and what is to be done.
-spec handle(event(), request()) -> {request(), [effect()]}.
handle({reply, Partition, Reply}, #{waiting := Waiting} = Request) ->
    case lists:keytake(Partition, 1, Waiting) of
        {value, Entry, Rest} -> replied(Entry, Reply, Request#{waiting := Rest});
        false -> {Request, []}
    end;
handle({lost, Node}, #{kind := write, written := Written, waiting := [{_, Node, _}]} = Request) when map_size(Written) =:= 0 ->
    answered({error, {lost, Node}}, Request);
handle({lost, Node}, #{waiting := Waiting} = Request) ->
    decided([], Request#{waiting := [Entry || {_, Of, _} = Entry <- Waiting, Of =/= Node]});
handle(timeout, Request) ->
    decided([], Request#{waiting := []}).

replied(Entry, {ok, Clock}, #{kind := read, got := Got} = Request) ->
    decided([], Request#{got := [{Entry, Clock} | Got]});
replied(Entry, {ok, Sent, Seen}, #{kind := write, written := Written, entries := Entries, of_key := OfKey, command := {update, _, Value, _}} = Request) when map_size(Written) =:= 0 ->
    Others = lists:delete(Entry, Entries),
    [Actor] = maps:keys(Seen),
    Clock = ring_dvv:with_newest(Actor, Value, Sent),
    decided([{ask, Other, {merge, OfKey, Clock}} || Other <- Others], Request#{waiting := Others, got := [{Entry, taken}], written := Seen});
replied(Entry, ok, #{kind := write, got := Got} = Request) ->
    decided([], Request#{got := [{Entry, taken} | Got]});
%% It has not taken the write, so another one may order it.
replied(_, {error, overloaded}, #{kind := write, written := Written, next := [Next | Others], command := Command} = Request) when map_size(Written) =:= 0 ->
    {Request#{waiting := [Next], next := Others}, [{ask, Next, Command}]};
replied(_, {error, Error}, #{kind := write, written := Written} = Request) when map_size(Written) =:= 0 ->
    answered({error, Error}, Request);
replied(_, {error, _}, Request) ->
    decided([], Request).

%% Whether it can be answered, and whether all that is left to do is done.
decided(Effects, #{kind := write, got := Got, need := Need, waiting := Waiting, written := Written} = Request) ->
    case {few_got(Got, Need), Waiting} of
        {none, _} -> answered(Effects, {written, Written}, Request);
        {Few, []} -> answered(Effects, {error, Few}, Request);
        {_, _} -> {Request, Effects}
    end;
decided(Effects, #{kind := read, is_answered := true, waiting := []} = Request) ->
    {Request, Effects ++ repairs(Request) ++ [over]};
decided(Effects, #{kind := read, is_answered := true} = Request) ->
    {Request, Effects};
decided(Effects, #{kind := read, got := Got, need := Need, waiting := Waiting, seen := Seen} = Request) ->
    Merged = merged(Got),
    Few = few_got(Got, Need),
    Answer = case {Few, Few =:= none andalso ring_dvv:covers(ring_dvv:context(Merged), Seen), Waiting} of
        {none, true, _} -> {ok, Merged};
        {none, false, []} -> {error, older};
        {_, _, []} -> {error, Few};
        _ -> none
    end,
    case Answer of
        none -> {Request, Effects};
        _ -> decided(Effects ++ [{answer, Answer}], Request#{is_answered := true})
    end.

answered(Answer, Request) -> answered([], Answer, Request).

answered(Effects, Answer, Request) -> {Request#{is_answered := true, waiting := []}, Effects ++ [{answer, Answer}, over]}.

merged(Got) -> lists:foldl(fun({_, Clock}, All) -> ring_dvv:merge(Clock, All) end, ring_dvv:new(), Got).

repairs(#{got := Got, of_key := OfKey}) ->
    Merged = merged(Got),
    [{tell, Entry, {merge, OfKey, Merged}} || {Entry, Clock} <- Got, not ring_dvv:is_same(Clock, Merged)].
