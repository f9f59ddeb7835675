%% SPDX-License-Identifier: Apache-2.0
%% @doc One direction of a conversation, from its sender over the database to its receiver: which
%% messages are where. Messages have the numbers 1, 2, 3, and so on. It holds that
%%
%% ```
%% delivered =< sent =< accepted =< taken
%% '''
%%
%% where up to `taken' the messages were given to the database, up to `accepted' the database has
%% said that it has them, up to `sent' they were sent to the receiver in its present life, and up to
%% `delivered' the receiver has said that it has them. Kept are those above `delivered', up to `taken'.
%% So what is sent is in the database, and what is sent again after a failure of any of the three is
%% the same message.
-module(im_direction).

-export([new/3, accepted/1, delivered/1, taken/1, unaccepted/1, is_drained/1]).
-export([take/5, pending/1, accept/2, send/2, deliver/2, resume/2, forget/1]).

-export_type([direction/0, seq/0, message/0]).

-type seq() :: non_neg_integer().
%% 0 is before the first.

-type message() :: {seq(), Body :: binary(), Meta :: term()}.

-record(direction, {
    taken :: seq(),
    accepted :: seq(),
    sent :: seq(),
    delivered :: seq(),
    kept :: #{seq() => {Body :: binary(), Meta :: term()}}
}).

-opaque direction() :: #direction{}.

%% @doc As the database has it: all messages between the two numbers.
-spec new(Accepted :: seq(), Delivered :: seq(), [message()]) -> direction().
new(Accepted, Delivered, Messages) ->
    Kept = maps:from_list([{Seq, {Body, Meta}} || {Seq, Body, Meta} <- Messages, Seq > Delivered]),
    #direction{taken = Accepted, accepted = Accepted, sent = Delivered, delivered = Delivered, kept = Kept}.

%% @doc Up to which one the database has them.
-spec accepted(direction()) -> seq().
accepted(#direction{accepted = Accepted}) -> Accepted.

%% @doc Up to which one the receiver has them.
-spec delivered(direction()) -> seq().
delivered(#direction{delivered = Delivered}) -> Delivered.

%% @doc Up to which one the database was given them.
-spec taken(direction()) -> seq().
taken(#direction{taken = Taken}) -> Taken.

%% @doc Whether the receiver has all that was taken.
-spec is_drained(direction()) -> boolean().
is_drained(#direction{taken = Taken, delivered = Delivered}) -> Taken =:= Delivered.

%% @doc How many the database was given and has not acknowledged.
-spec unaccepted(direction()) -> non_neg_integer().
unaccepted(#direction{taken = Taken, accepted = Accepted}) -> Taken - Accepted.

%% @doc Takes the next message. `known' is one that was taken before; `gap' one before which another
%% is missing; `full' if as many are kept as may be.
-spec take(seq(), Body :: binary(), Meta :: term(), Most :: pos_integer(), direction()) ->
    {ok, direction()} | known | gap | full.
take(Seq, Body, Meta, Most, #direction{taken = Taken, delivered = Delivered, kept = Kept} = D) when Seq =:= Taken + 1 ->
    case Taken - Delivered < Most of
        true -> {ok, D#direction{taken = Seq, kept = Kept#{Seq => {Body, Meta}}}};
        false -> full
    end;
take(Seq, _, _, _, #direction{taken = Taken}) when Seq =< Taken -> known;
take(_, _, _, _, _) -> gap.

%% @doc What the database was given and has not acknowledged.
-spec pending(direction()) -> [message()].
pending(#direction{accepted = Accepted, taken = Taken} = D) -> messages(Accepted + 1, Taken, D).

%% @doc The database has all up to that one.
-spec accept(seq(), direction()) -> direction().
accept(Seq, #direction{accepted = Accepted, taken = Taken} = D) when Seq > Accepted, Seq =< Taken ->
    D#direction{accepted = Seq};
accept(_, D) -> D.

%% @doc What is to be sent to the receiver now, where so many may be under way to it.
-spec send(Window :: pos_integer(), direction()) -> {[message()], direction()}.
send(Window, #direction{accepted = Accepted, sent = Sent, delivered = Delivered} = D) ->
    case min(Accepted, Delivered + Window) of
        Last when Last > Sent -> {messages(Sent + 1, Last, D), D#direction{sent = Last}};
        _ -> {[], D}
    end.

messages(First, Last, #direction{kept = Kept}) ->
    [begin {Body, Meta} = map_get(Seq, Kept), {Seq, Body, Meta} end || Seq <- lists:seq(First, Last)].

%% @doc The receiver has all up to that one. It cannot have what was not sent to it.
-spec deliver(seq(), direction()) -> direction().
deliver(Seq, #direction{sent = Sent, delivered = Delivered, kept = Kept} = D) when Seq > Delivered, Seq =< Sent ->
    D#direction{delivered = Seq, kept = without(Delivered + 1, Seq, Kept)};
deliver(_, D) -> D.

without(First, Last, Kept) when First > Last -> Kept;
without(First, Last, Kept) -> without(First + 1, Last, maps:remove(First, Kept)).

%% @doc The receiver begins anew, and has all up to that one: the rest is sent again.
%% `unknown' if the database does not have that one: it has lost what it had.
-spec resume(seq(), direction()) -> {ok, direction()} | unknown.
resume(Seq, #direction{accepted = Accepted}) when Seq > Accepted -> unknown;
resume(Seq, #direction{accepted = Accepted} = D) ->
    #direction{delivered = Delivered} = Resumed = deliver(Seq, D#direction{sent = Accepted}),
    {ok, Resumed#direction{sent = Delivered}}.

%% @doc The receiver is gone for good: nothing is kept for it.
-spec forget(direction()) -> direction().
forget(#direction{taken = Taken} = D) ->
    D#direction{accepted = Taken, sent = Taken, delivered = Taken, kept = #{}}.
