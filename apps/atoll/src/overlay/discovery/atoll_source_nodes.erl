%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The discovery source `nodes': contacts that are known beforehand.
-module(atoll_source_nodes).

-behaviour(atoll_source).

-export([check/1, read/1, label/1, format_error/1]).

%% @private
-spec check(term()) -> ok | {error, not_a_list | {not_a_node, term()}}.
check([]) ->
    ok;
check([Node | Nodes]) ->
    case is_atom(Node) andalso atoll_source_names:is_name(atom_to_binary(Node)) of
        true -> check(Nodes);
        false -> {error, {not_a_node, Node}}
    end;
check(_) ->
    {error, not_a_list}.

%% @private
-spec read([node()]) -> atoll_source:reading().
read(Nodes) ->
    {ok, [{atom_to_binary(Node), #{}} || Node <- Nodes], []}.

%% @private
-spec label([node()]) -> unicode:chardata().
label(_Nodes) ->
    "the list of nodes".

%% @private
-spec format_error(not_a_list | {not_a_node, term()}) -> unicode:chardata().
format_error(not_a_list) ->
    "the nodes must be a list";
format_error({not_a_node, Term}) ->
    io_lib:format("~0tp is not the name of a node, name@host", [Term]).
