%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc One node's lock for the operations on one group name.
%%
%% An operation that changes a group takes the lock of every node it concerns
%% before it changes anything, so that two operations on one group never pass
%% each other: one sees what the other did. The locks follow the wait-die rule
%% (Rosenkrantz, Stearns, Lewis: System level concurrency control for distributed
%% database systems, 1978): an operation that finds the lock taken waits if it is
%% older than the holder, and otherwise dies, that is, it gives back all it has
%% and tries again later with the age it had.
%%
%% Why nothing can wait in a circle: whoever waits is older than the holder it
%% waits for. {@link release/2} keeps that true by giving the lock to the youngest
%% that waits. So along a chain of waiting the operations get younger, and a
%% circle would need one younger than itself. Why one that dies does not starve:
%% it keeps its stamp, and operations of nodes that have heard of it get larger
%% ones, so it becomes the oldest, and waits. (It can still die where 64
%% wait already, and an operation is given up in the end; see atoll_group_core.)
%%
%% Nothing is locked for readers, nor beyond the nodes of the group; a lock whose
%% holder is cut off ends with the connection.
-module(atoll_group_lock).

-export([new/0, request/2, release/2, holder/1, waiting/1]).

-export_type([lock/0]).

-record(lock, {
    holder = none :: none | atoll_group_view:stamp(),
    %% Youngest first; each older than the holder.
    waiting = [] :: [atoll_group_view:stamp()]
}).

-opaque lock() :: #lock{}.

%% More operations than this do not wait here at once; a further one dies and
%% comes again.
-define(MAX_WAITING, 64).

%% @doc A lock that nobody has taken.
-spec new() -> lock().
new() -> #lock{}.

%% @doc The operation of that stamp wants the lock. Asking again changes nothing.
-spec request(atoll_group_view:stamp(), lock()) -> {granted | waiting | die, lock()}.
request(Stamp, #lock{holder = none} = Lock) ->
    {granted, Lock#lock{holder = Stamp}};
request(Stamp, #lock{holder = Stamp} = Lock) ->
    {granted, Lock};
request(Stamp, #lock{holder = Holder, waiting = Waiting} = Lock) ->
    case lists:member(Stamp, Waiting) of
        true ->
            {waiting, Lock};
        false when Stamp < Holder, length(Waiting) < ?MAX_WAITING ->
            {waiting, Lock#lock{waiting = lists:reverse(lists:sort([Stamp | Waiting]))}};
        false ->
            {die, Lock}
    end.

%% @doc The operation no longer has or wants the lock. Says who has it now, if
%% that changed; `free' when nobody has.
-spec release(atoll_group_view:stamp(), lock()) ->
    {unchanged | free | {granted, atoll_group_view:stamp()}, lock()}.
release(Stamp, #lock{holder = Stamp, waiting = []} = Lock) ->
    {free, Lock#lock{holder = none}};
release(Stamp, #lock{holder = Stamp, waiting = [Youngest | Rest]} = Lock) ->
    {{granted, Youngest}, Lock#lock{holder = Youngest, waiting = Rest}};
release(Stamp, #lock{waiting = Waiting} = Lock) ->
    {unchanged, Lock#lock{waiting = lists:delete(Stamp, Waiting)}}.

%% @doc Who has it.
-spec holder(lock()) -> none | atoll_group_view:stamp().
holder(#lock{holder = Holder}) -> Holder.

%% @doc Who waits for it, the next first.
-spec waiting(lock()) -> [atoll_group_view:stamp()].
waiting(#lock{waiting = Waiting}) -> Waiting.
