%% SPDX-License-Identifier: Apache-2.0
%% @doc What ACO's tree takes of connections and names over any number of nodes: worked out from
%% who is a child of whom ({@link aco_tree}) and in which group, and nothing run.
-module(atoll_experiments_tree).

-export([count/3]).

%% @doc The connections of all nodes and of the busiest one, the groups, and how many nodes know a
%% name, summed up over all names.
-spec count(aco_tree:mode(), Nodes :: pos_integer(), Degree :: pos_integer()) ->
    #{nodes | mode | connections | connections_max | groups | names_held := term()}.
count(Mode, Count, Degree) ->
    {ok, Tree} = aco_tree:new(Mode, atoll_sim_cluster:names_of(Count), Degree, 1),
    maps:merge(#{nodes => Count, mode => Mode}, counted(Mode, Count, Tree)).

counted(sr, _Count, Tree) ->
    Groups = maps:to_list(aco_tree:groups(Tree)),
    Connections = atoll_topology:connections(atoll_topology:of_groups(Groups)),
    Names = maps:map(fun(_, Ids) -> length(Ids) end, maps:groups_from_list(fun(#{group := Group}) -> Group end, maps:values(Tree))),
    #{
        connections => lists:sum(maps:values(Connections)) div 2,
        connections_max => lists:max(maps:values(Connections)),
        groups => length(Groups),
        names_held => lists:sum([length(Nodes) * maps:get(Group, Names) || {Group, Nodes} <- Groups])
    };
counted(Mode, Count, Tree) ->
    #{
        connections => Count * (Count - 1) div 2,
        connections_max => Count - 1,
        groups => 0,
        names_held => case Mode of gr -> Count * map_size(Tree); _ -> 0 end
    }.
