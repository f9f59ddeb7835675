%% @doc What runs on a node by default, for simulated nodes: read from the configuration of
%% nodes ({@link atoll_config}), so that the simulator has no word of its own in it.
-module(atoll_sim_defaults).

-export([parts/0, link/0, source_ms/0]).

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

%% Any strategy: on a node there is none unless it is asked for.
node_config() ->
    {ok, Config} = atoll_config:new([{overlay, hyparview}], false),
    Config.
