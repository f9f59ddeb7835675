%% SPDX-License-Identifier: Apache-2.0
%% @doc What runs on a node by default, for simulated nodes: read from the configuration of
%% nodes ({@link atoll_config}), so that the simulator has no word of its own in it.
-module(atoll_sim_defaults).

-export([parts/0, link/0, source_ms/0, rooms/3]).

%% @doc The options of the parts of the overlay beside the strategy, as a cluster has them.
-spec parts() -> #{detector := atoll_detector:spec(), broadcast | discovery | roster := map() | off}.
parts() ->
    {ok, Overlay} = atoll_config:overlay(node_config()),
    maps:with([detector, broadcast, discovery, roster], Overlay).

%% @doc When connections are tried again and when they are closed.
-spec link() -> atoll_link_core:options().
link() ->
    atoll_config:link(node_config()).

%% @doc How long after it has read a list of contacts a node reads it again, in milliseconds; a
%% quarter more or less.
-spec source_ms() -> pos_integer().
source_ms() ->
    {_, Ms} = atoll_config:sources(node_config()),
    Ms.

%% @doc What the rooms beside the overlay are started with, where that has this strategy with
%% these options, and a directory or none.
-spec rooms(module(), atoll_options:options(), off | on | atoll_directory:options()) ->
    {ok, atoll_sim_node:options()} | {error, atoll_config:error()}.
rooms(Strategy, Options, Directory) ->
    case atoll_config:new([{overlay, Strategy}, {overlay_options, Options}, {directory, Directory}], false) of
        {ok, Config} ->
            Route =
                case atoll_config:route(Config) of
                    {ok, Given} -> Given;
                    off -> off
                end,
            {ok, #{group => atoll_config:group(Config), name => atoll_config:names(Config), route => Route}};
        {error, _} = Error ->
            Error
    end.

%% Any strategy: on a node there is none unless it is asked for.
node_config() ->
    {ok, Config} = atoll_config:new([{overlay, hyparview}], false),
    Config.
