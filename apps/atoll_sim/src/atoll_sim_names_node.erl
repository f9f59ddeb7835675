%% SPDX-License-Identifier: Apache-2.0
%% @doc A simulated node with names in groups ({@link atoll_name_core}), and what is around it on a
%% real one: the one group that it is in, published from the start, and a wanted link
%% with each of its members.
-module(atoll_sim_names_node).

-behaviour(atoll_protocol).

-export([init/2, handle/3]).

-export_type([config/0, state/0]).

-type config() :: #{self := node(), incarnation := pos_integer(), members := [node(), ...]}.

-opaque state() :: atoll_name_core:state().

-define(GROUP, g).

%% @doc It is in its group, and wants its links.
-spec init(config(), atoll_protocol:now_ms()) -> {state(), [atoll_protocol:effect()]}.
init(#{self := Self, incarnation := Incarnation, members := [First | _] = Members}, Now) ->
    Options = (atoll_name:defaults())#{free => alone},
    {Names0, Effects0} = atoll_name_core:init(#{self => Self, incarnation => 1000000 * Incarnation, options => Options}, Now),
    Groups = [{?GROUP, {?GROUP, {1, First, 1}}, Members}],
    {Names, Effects} = atoll_name_core:handle({cast, {groups, Groups}}, Now, Names0),
    {Names, Effects0 ++ Effects ++ [{want, Peer} || Peer <- Members, Peer =/= Self]}.

%% @doc All but the fate of attempts to connect is the names'.
-spec handle(atoll_protocol:event(), atoll_protocol:now_ms(), state()) -> {state(), [atoll_protocol:effect()]}.
handle({cast, {unreachable, _Peer}}, _Now, Names) ->
    {Names, []};
handle(Event, Now, Names) ->
    atoll_name_core:handle(Event, Now, Names).
