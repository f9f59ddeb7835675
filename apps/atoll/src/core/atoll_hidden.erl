%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Peers that are connected and that a protocol does not know of, because
%% nobody speaks first to who may not understand, or to who does not. Data only.
%%
%% A hidden connection may be that of a program in C, as `erl_call' is, which takes a
%% message that it does not expect for a fault and hangs up. So a peer that is connected
%% in hiding is quiet: it is `up' for a protocol of this node when somebody here wants
%% the connection with it, or when the same protocol of that node has said something.
%% Of one that stays quiet to the end the protocol never hears.
%%
%% Two nodes that run this meet over a hidden connection if either wants the other: that
%% one speaks, and the other knows by it. Not promised: that two meet of which neither
%% has a use for the other.
%%
%% A peer that has no version of the protocol in common with this node
%% ({@link atoll_versions}) is `down' for the protocol, until it has one or is connected anew.
-module(atoll_hidden).

-export([new/0, events/2]).

-export_type([outside/0, hidden/0]).

-type outside() ::
    atoll_protocol:event()
    %% A hidden connection with this node was made.
    | {quiet, node()}
    %% Somebody on this node wants the connection with that one.
    | {wanted, node()}
    %% It has no version in common; it has one after all.
    | {apart, node()}
    | {together, node()}.

-opaque hidden() :: #{node() => quiet | up | apart}.
%% The nodes with which there is a hidden connection, and those that have no version in common.

%% @doc Nobody is connected.
-spec new() -> hidden().
new() -> #{}.

%% @doc The events of a protocol that follow from what happened.
-spec events(outside(), hidden()) -> {[atoll_protocol:event()], hidden()}.
events({quiet, Node}, Hidden) when is_map_key(Node, Hidden) ->
    %% It is told of twice when it came up while it was asked who is.
    {[], Hidden};
events({quiet, Node}, Hidden) ->
    {[], Hidden#{Node => quiet}};
events({wanted, Node}, Hidden) ->
    case Hidden of
        #{Node := quiet} -> {[{up, Node}], Hidden#{Node := up}};
        #{} -> {[], Hidden}
    end;
events({up, Node}, Hidden) when map_get(Node, Hidden) =:= apart ->
    {[], Hidden};
events({apart, Node}, Hidden) ->
    Known = not is_map_key(Node, Hidden) orelse map_get(Node, Hidden) =:= up,
    {[{down, Node, no_common_version} || Known], Hidden#{Node => apart}};
events({together, Node}, Hidden) ->
    {[{up, Node}], Hidden#{Node => up}};
events({message, Node, _} = Event, Hidden) ->
    case Hidden of
        #{Node := quiet} -> {[{up, Node}, Event], Hidden#{Node := up}};
        #{} -> {[Event], Hidden}
    end;
events({down, Node, _} = Event, Hidden) ->
    case Hidden of
        #{Node := Unknown} when Unknown =/= up -> {[], maps:remove(Node, Hidden)};
        #{} -> {[Event], maps:remove(Node, Hidden)}
    end;
events(Event, Hidden) ->
    {[Event], Hidden}.
