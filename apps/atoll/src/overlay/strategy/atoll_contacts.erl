%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The contacts of one join, of which a strategy asks one after the other: the next
%% only if the one before it is not to be reached. Pure data.
%%
%% Once there is a link with the one that was asked, the request is on its way, and the
%% others are not needed: that this contact cannot be reached some day later says
%% nothing of the join.
%%
%% Bounded: of a hundred at most, chosen at random; those left out are counted.
-module(atoll_contacts).

-export([new/0, put/3, first/1, reached/2, failed/2, clear/1, summary/1]).

-export_type([contacts/0]).

-record(contacts, {
    %% The one that is asked, and those to come after it.
    left = [] :: [node()],
    dropped = 0 :: non_neg_integer()
}).

-opaque contacts() :: #contacts{}.

-define(MAX, 100).

%% @doc Nobody.
-spec new() -> contacts().
new() ->
    #contacts{}.

%% @doc These in the place of those there are, in random order, so that each node goes
%% through another.
-spec put([node()], rand:state(), contacts()) -> {contacts(), rand:state()}.
put(Nodes, Rand0, #contacts{dropped = Dropped} = Contacts) ->
    {Some, Rand1} = atoll_random:sample(?MAX, Nodes, Rand0),
    {Left, Rand} = atoll_random:shuffle(Some, Rand1),
    {Contacts#contacts{left = Left, dropped = Dropped + length(Nodes) - length(Some)}, Rand}.

%% @doc The one to ask.
-spec first(contacts()) -> {ok, node()} | none.
first(#contacts{left = []}) -> none;
first(#contacts{left = [Node | _]}) -> {ok, Node}.

%% @doc There is a link with this node.
-spec reached(node(), contacts()) -> contacts().
reached(Node, #contacts{left = [Node | _]} = Contacts) -> clear(Contacts);
reached(_Node, Contacts) -> Contacts.

%% @doc This node cannot be reached: whether it was the one that is asked, so that it is
%% the next one's turn.
-spec failed(node(), contacts()) -> {next, contacts()} | other.
failed(Node, #contacts{left = [Node | Left]} = Contacts) -> {next, Contacts#contacts{left = Left}};
failed(_Node, _Contacts) -> other.

%% @doc Nobody is to be asked any more.
-spec clear(contacts()) -> contacts().
clear(Contacts) ->
    Contacts#contacts{left = []}.

%% @doc For people: how many there are, and how many were left out so far.
-spec summary(contacts()) -> #{contacts | contacts_dropped => non_neg_integer()}.
summary(#contacts{left = Left, dropped = Dropped}) ->
    #{contacts => length(Left), contacts_dropped => Dropped}.
