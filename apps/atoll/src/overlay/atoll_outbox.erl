%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Messages to nodes without a link: they wait for it.
%%
%% Data, and rules that are total. Who holds an outbox wants a link with each node
%% that it is told to connect with, gives it the messages when the link is up, and
%% forgets them when it cannot be made. At most so many messages wait for one
%% node, and for so many nodes; what is beyond is dropped and counted.
-module(atoll_outbox).

-export([new/2, put/3, take/2, summary/1]).

-export_type([outbox/0]).

-record(outbox, {
    max_nodes :: pos_integer(),
    max_messages :: pos_integer(),
    %% Newest first.
    waiting = #{} :: #{node() => [term(), ...]},
    dropped = 0 :: non_neg_integer()
}).

-opaque outbox() :: #outbox{}.

%% @doc An empty outbox for so many nodes, and so many messages to each.
-spec new(pos_integer(), pos_integer()) -> outbox().
new(MaxNodes, MaxMessages) ->
    #outbox{max_nodes = MaxNodes, max_messages = MaxMessages}.

%% @doc A message to that node; `connect' with the first of them.
-spec put(node(), term(), outbox()) -> {connect | queued | dropped, outbox()}.
put(Node, Message, #outbox{waiting = Waiting} = Outbox) ->
    case Waiting of
        #{Node := Messages} when length(Messages) < Outbox#outbox.max_messages ->
            {queued, Outbox#outbox{waiting = Waiting#{Node := [Message | Messages]}}};
        #{Node := _} ->
            {dropped, drop(1, Outbox)};
        #{} when map_size(Waiting) < Outbox#outbox.max_nodes ->
            {connect, Outbox#outbox{waiting = Waiting#{Node => [Message]}}};
        #{} ->
            {dropped, drop(1, Outbox)}
    end.

%% @doc What waits for that node, oldest first; it waits no more.
-spec take(node(), outbox()) -> {[term()], outbox()}.
take(Node, #outbox{waiting = Waiting} = Outbox) ->
    case maps:take(Node, Waiting) of
        {Messages, Rest} -> {lists:reverse(Messages), Outbox#outbox{waiting = Rest}};
        error -> {[], Outbox}
    end.

drop(N, #outbox{dropped = Dropped} = Outbox) ->
    Outbox#outbox{dropped = Dropped + N}.

%% @doc How many nodes are waited for, and how many messages were dropped.
-spec summary(outbox()) -> #{nodes := non_neg_integer(), dropped := non_neg_integer()}.
summary(#outbox{waiting = Waiting, dropped = Dropped}) ->
    #{nodes => map_size(Waiting), dropped => Dropped}.
