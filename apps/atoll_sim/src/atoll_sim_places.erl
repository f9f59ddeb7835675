%% SPDX-License-Identifier: Apache-2.0
%% @doc Where the nodes of an experiment stand when they are in the groups of a topology: the
%% place of each, whom it is linked with, and the directory's table when all know all.
-module(atoll_sim_places).

-export([of_topology/3, table/3]).

-export_type([places/0, shape/0, options/0]).

-type shape() :: star | ring | tree | hierarchy.

%% Those of {@link atoll_topology}, among others.
-type options() :: #{group_size => pos_integer(), gateways => pos_integer(), fanout => pos_integer(), _ => _}.

-type places() :: #{
    places := #{node() => atoll_directory_place:place()},
    %% Of each, the other members of its groups.
    peers := #{node() => [node()]},
    %% Nodes in more than one group.
    gateways := [node()],
    groups := pos_integer()
}.

%% @doc The members of each group are linked with each other, and with nobody else.
-spec of_topology(shape(), [node(), ...], options()) -> {ok, places()} | {error, atoll_topology:error()}.
of_topology(Shape, Names, Options) ->
    Known = [fanout || Shape =:= tree orelse Shape =:= hierarchy] ++ [group_size, gateways],
    case atoll_topology:Shape(Names, maps:with(Known, Options)) of
        {ok, Topology} -> {ok, placed(atoll_topology:groups(Topology))};
        {error, _} = Error -> Error
    end.

placed(Groups) ->
    Members = [{Group, Node, Nodes} || {Group, Nodes} <- Groups, Node <- Nodes],
    Of = fun(Fun) -> maps:groups_from_list(fun({_, Node, _}) -> Node end, Fun, Members) end,
    Standing = Of(fun({Group, _, _}) -> Group end),
    #{
        places => maps:map(fun(_, In) -> atoll_directory_place:new(In, all, []) end, Standing),
        peers => maps:map(fun(Node, Lists) -> lists:usort(lists:append(Lists)) -- [Node] end, Of(fun({_, _, Nodes}) -> Nodes end)),
        gateways => lists:sort([Node || {Node, [_, _ | _]} <- maps:to_list(Standing)]),
        groups => length(Groups)
    }.

%% @doc The table of each node at the beginning of its first life.
-spec table([node(), ...], #{node() => atoll_directory_place:place()}, atoll_directory:options()) -> atoll_directory_table:table().
table(Names, Places, Given) ->
    Bounds = maps:map(fun(_, {_, Default}) -> Default end, atoll_directory:options()),
    lists:foldl(
        fun(Name, Table) ->
            {{changed, unknown}, More} = atoll_directory_table:put(Name, {1, map_get(Name, Places)}, Table),
            More
        end,
        atoll_directory_table:new(hd(Names), maps:merge(Bounds, Given)),
        Names
    ).
