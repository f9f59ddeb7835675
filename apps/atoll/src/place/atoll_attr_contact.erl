%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Messages that wait for an answer, and the connections that they need. Pure.
%%
%% A message to a node that is connected is sent. Otherwise the connection is wanted from the
%% link room, and the message sent when it is up; it is given back when nothing waits for
%% the node any more. A message whose connection is lost is sent again over the next.
%%
%% A message may say until when an answer is of use. It goes with the time that is left when it
%% is sent, so that the node does not count what the connection took as its own; and when
%% none is left it is not sent.
-module(atoll_attr_contact).

-export([new/0, connected/1, is_connected/2, reach/5, release/3, up/3, down/2, waiting/2]).

-export_type([contact/0, key/0, letter/0]).

-type key() :: term().
%% Whoever uses this knows what it means.

-type letter() :: {Message :: tuple(), Until :: atoll_protocol:now_ms() | none}.
%% With a time, what is left of it is sent as the last element of the message.

-record(contact, {
    connected = #{} :: #{node() => []},
    %% What waits for an answer of each, and whether the connection is wanted on its account.
    waiting = #{} :: #{node() => {Wanted :: boolean(), #{key() => letter()}}}
}).

-opaque contact() :: #contact{}.

%% @doc No node is connected.
-spec new() -> contact().
new() ->
    #contact{}.

%% @doc The nodes that are connected, sorted.
-spec connected(contact()) -> [node()].
connected(#contact{connected = Connected}) ->
    lists:sort(maps:keys(Connected)).

%% @doc Whether the node is connected.
-spec is_connected(node(), contact()) -> boolean().
is_connected(Node, #contact{connected = Connected}) ->
    is_map_key(Node, Connected).

%% @doc Sends a message, now or when there is a connection. One of the same key that still
%% waits is replaced.
-spec reach(node(), key(), letter(), atoll_protocol:now_ms(), contact()) -> {[atoll_protocol:effect()], contact()}.
reach(Node, Key, Letter, Now, #contact{connected = Connected, waiting = Waiting} = Contact) ->
    {Wanted, Messages} = maps:get(Node, Waiting, {false, #{}}),
    Enter = fun(W) -> Contact#contact{waiting = Waiting#{Node => {W, Messages#{Key => Letter}}}} end,
    case is_map_key(Node, Connected) of
        true -> {posted(Node, Letter, Now), Enter(Wanted)};
        false when Wanted -> {[], Enter(true)};
        false -> {[{want, Node}], Enter(true)}
    end.

posted(Node, {Message, none}, _Now) -> [{send, Node, Message}];
posted(Node, {Message, Until}, Now) when Until > Now -> [{send, Node, erlang:append_element(Message, Until - Now)}];
posted(_Node, {_Message, _Over}, _Now) -> [].

%% @doc Nothing of that key waits for the node any more.
-spec release(node(), key(), contact()) -> {[atoll_protocol:effect()], contact()}.
release(Node, Key, #contact{waiting = Waiting} = Contact) ->
    case Waiting of
        #{Node := {Wanted, #{Key := _} = Messages}} when map_size(Messages) =:= 1 ->
            {[{unwant, Node} || Wanted], Contact#contact{waiting = maps:remove(Node, Waiting)}};
        #{Node := {Wanted, Messages}} ->
            {[], Contact#contact{waiting = Waiting#{Node := {Wanted, maps:remove(Key, Messages)}}}};
        #{} ->
            {[], Contact}
    end.

%% @doc A node is connected.
-spec up(node(), atoll_protocol:now_ms(), contact()) -> {[atoll_protocol:effect()], contact()}.
up(Node, Now, #contact{connected = Connected, waiting = Waiting} = Contact) ->
    case Connected of
        #{Node := _} ->
            {[], Contact};
        #{} ->
            {_, Messages} = maps:get(Node, Waiting, {false, #{}}),
            Effects = lists:append([posted(Node, Letter, Now) || {_, Letter} <- lists:sort(maps:to_list(Messages))]),
            {Effects, Contact#contact{connected = Connected#{Node => []}}}
    end.

%% @doc A node is connected no more.
-spec down(node(), contact()) -> {[atoll_protocol:effect()], contact()}.
down(Node, #contact{connected = Connected, waiting = Waiting} = Contact0) ->
    Contact = Contact0#contact{connected = maps:remove(Node, Connected)},
    case Waiting of
        #{Node := {false, Messages}} -> {[{want, Node}], Contact#contact{waiting = Waiting#{Node := {true, Messages}}}};
        #{} -> {[], Contact}
    end.

%% @doc The keys of what waits for the node, sorted.
-spec waiting(node(), contact()) -> [key()].
waiting(Node, #contact{waiting = Waiting}) ->
    {_, Messages} = maps:get(Node, Waiting, {false, #{}}),
    lists:sort(maps:keys(Messages)).
