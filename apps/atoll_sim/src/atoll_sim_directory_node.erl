%% SPDX-License-Identifier: Apache-2.0
%% @doc A simulated node with a directory ({@link atoll_directory}), and what is around it
%% on a real one: somebody who wants the links over which it talks. That is the groups with
%% their members, and whoever else is said.
-module(atoll_sim_directory_node).

-behaviour(atoll_protocol).

-export([init/2, handle/3, directory/1]).

-export_type([config/0, state/0]).

-type config() :: #{
    directory := atoll_directory:config(),
    %% Those that it is to be linked with.
    peers := [node()]
}.

-opaque state() :: atoll_directory:state().

%% @doc It wants its links, once and for all.
-spec init(config(), atoll_protocol:now_ms()) -> {state(), [atoll_protocol:effect()]}.
init(#{directory := Config, peers := Peers}, Now) ->
    {Directory, Effects} = atoll_directory:init(Config, Now),
    {Directory, Effects ++ [{want, Peer} || Peer <- Peers]}.

%% @doc All but the fate of attempts to connect is the directory's.
-spec handle(atoll_protocol:event(), atoll_protocol:now_ms(), state()) -> {state(), [atoll_protocol:effect()]}.
handle({cast, {unreachable, _Peer}}, _Now, Directory) ->
    {Directory, []};
handle(Event, Now, Directory) ->
    atoll_directory:handle(Event, Now, Directory).

%% @doc Its directory.
-spec directory(state()) -> atoll_directory:state().
directory(Directory) ->
    Directory.
