%% SPDX-License-Identifier: Apache-2.0
%% @doc The module `dist' of the portability libraries of the RELEASE project, over {@link
%% atoll_distance}: distances in a network that a file declares, and choosing nodes by them, for
%% programs that were written for it. The file and the numbers are the same, see {@link
%% atoll_network}.
%%
%% What is different, and better:
%% <ul>
%% <li>The network is the node's, and not the calling process's: init/1 takes the place of what
%%   Atoll was configured with, and whoever declares one for Atoll need not call it.</li>
%% <li>A file that cannot be read, or is wrong, is an answer: `{error, unconnected_graph}' where
%%   there are two networks in it, the reason of the file system, or `{bad_network,
%%   Sentence}'.</li>
%% <li>Whoever is not in the network is never chosen, and nobody is from there; there, `ne',
%%   `gt' and `ge' chose those too.</li>
%% <li>The largest distance is that of two nodes, and less than 1.0 where all are in one part
%%   of the root.</li>
%% </ul>
%% Nodes come in the order of their names, or in that of the list that was given. Without a
%% network functions raise `dist_library_not_initialised', and malformed predicates
%% `{bad_predicate, Sentence}'.
-module(dist).

-export([init/1, nodenames/0, distance/2, max_dist/0, min_dist/0]).
-export([choose_nodes/2, choose_nodes/3, choose_node/2, choose_node/3]).
-export([render/0, render/1]).

-export_type([predicates/0]).

-type predicates() :: atoll_network:predicate() | [atoll_network:predicate()].

%% @doc Declares the network of a file.
-spec init(file:name_all()) -> ok | {error, unconnected_graph | file:posix() | atom() | {bad_network, string()}}.
init(File) ->
    case atoll_network_file:read(File) of
        {ok, Network} ->
            ok = atoll_distance:declare(Network);
        {error, {_, {second_root, _}}} ->
            {error, unconnected_graph};
        {error, {file, Reason}} ->
            {error, Reason};
        {error, Error} ->
            {error, {bad_network, unicode:characters_to_list(atoll_network_file:format_error(Error))}}
    end.

%% @doc All nodes of the network.
-spec nodenames() -> [node()].
nodenames() ->
    atoll_network:nodes(network()).

%% @doc How far two nodes are from each other.
-spec distance(node(), node()) -> atoll_network:distance() | {error, {node_not_found, node()}}.
distance(A, B) ->
    case atoll_network:distance(A, B, network()) of
        {ok, Distance} -> Distance;
        {error, {not_in_network, Node}} -> {error, {node_not_found, Node}}
    end.

%% @doc The largest distance of two nodes.
-spec max_dist() -> atoll_network:distance().
max_dist() ->
    atoll_network:max_distance(network()).

%% @doc The smallest distance of two nodes.
-spec min_dist() -> atoll_network:distance().
min_dist() ->
    atoll_network:min_distance(network()).

%% @doc The nodes of the network of which all predicates hold, as seen from one.
-spec choose_nodes(From :: node(), predicates()) -> [node()].
choose_nodes(From, Predicates) ->
    choose_nodes(From, nodenames(), Predicates).

%% @doc Those of these nodes of which all predicates hold.
-spec choose_nodes(From :: node(), [node()], predicates()) -> [node()].
choose_nodes(From, Nodes, Predicates) ->
    case atoll_distance:choose_nodes(From, Nodes, Predicates, declared) of
        {ok, Chosen} -> Chosen;
        {error, Reason} -> failed(Reason)
    end.

%% @doc One of choose_nodes/2, each as likely.
-spec choose_node(From :: node(), predicates()) -> node() | none.
choose_node(From, Predicates) ->
    choose_node(From, nodenames(), Predicates).

%% @doc One of choose_nodes/3, each as likely.
-spec choose_node(From :: node(), [node()], predicates()) -> node() | none.
choose_node(From, Nodes, Predicates) ->
    case atoll_distance:choose_node(From, Nodes, Predicates, declared) of
        {ok, Chosen} -> Chosen;
        none -> none;
        {error, Reason} -> failed(Reason)
    end.

%% @doc Draws the network in `network.dot', for Graphviz.
-spec render() -> {ok, file:name_all()} | {error, file:posix() | atom()}.
render() ->
    render("network.dot").

%% @doc Draws the network in a file, for Graphviz.
-spec render(file:name_all()) -> {ok, file:name_all()} | {error, file:posix() | atom()}.
render(File) ->
    Dot = atoll_tree_drawing:dot(atoll_tree_drawing:network(network())),
    case file:write_file(File, unicode:characters_to_binary(Dot)) of
        ok -> {ok, File};
        {error, _} = Error -> Error
    end.

network() ->
    case atoll_distance:declared() of
        {ok, Network} -> Network;
        {error, Reason} -> failed(Reason)
    end.

-spec failed(term()) -> no_return().
failed(no_network) -> error(dist_library_not_initialised);
failed({no_predicate, _} = Error) -> error({bad_predicate, unicode:characters_to_list(atoll_distance:format_error(Error))}).
