%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The groups of a configuration: `[{Name, [Node]} | {Name, normal, [Node]}]', as
%% SD Erlang has them. Checked, and normalised as there: groups called `undefined' or
%% `no_group' are left out, groups of one name are one, and each node is in it once.
-module(atoll_group_config).

-export([new/1, of_node/2, format_error/1]).

-export_type([groups/0, error/0]).

-type groups() :: [{Name :: atom(), [node(), ...]}].
%% Sorted by name, and the nodes of each.

-type error() :: {not_a_list, term()} | {not_a_group, term()} | {not_a_name, term()} | {not_nodes, atom(), term()}.

%% @doc What a term of the configuration says.
-spec new(term()) -> {ok, groups()} | {error, error()}.
new(Term) ->
    add(Term, #{}).

add([], Groups) ->
    {ok, [{Name, Nodes} || {Name, [_ | _] = Nodes} <- lists:sort(maps:to_list(Groups))]};
add([{Name, normal, Nodes} | Rest], Groups) ->
    add([{Name, Nodes} | Rest], Groups);
add([{Name, Nodes} | Rest], Groups) when is_atom(Name) ->
    case {are_nodes(Nodes), Name} of
        {false, _} -> {error, {not_nodes, Name, Nodes}};
        {true, undefined} -> add(Rest, Groups);
        {true, no_group} -> add(Rest, Groups);
        {true, _} -> add(Rest, Groups#{Name => lists:usort(Nodes ++ maps:get(Name, Groups, []))})
    end;
add([{Name, _} | _], _Groups) ->
    {error, {not_a_name, Name}};
add([Other | _], _Groups) ->
    {error, {not_a_group, Other}};
add(Other, _Groups) ->
    {error, {not_a_list, Other}}.

are_nodes([]) -> true;
are_nodes([Node | Nodes]) -> atoll_strategy:is_node_name(Node) andalso are_nodes(Nodes);
are_nodes(_) -> false.

%% @doc The groups that the node is in.
-spec of_node(node(), groups()) -> groups().
of_node(Node, Groups) ->
    [Group || {_, Nodes} = Group <- Groups, lists:member(Node, Nodes)].

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({not_a_list, Term}) ->
    io_lib:format("groups are given as a list, not ~0tp", [Term]);
format_error({not_a_group, Term}) ->
    io_lib:format("a group is given as {Name, Nodes} or {Name, normal, Nodes}, not ~0tp", [Term]);
format_error({not_a_name, Term}) ->
    io_lib:format("a group's name is an atom, not ~0tp", [Term]);
format_error({not_nodes, Name, Term}) ->
    io_lib:format("the group ~tw needs a list of nodes, not ~0tp", [Name, Term]).
