%% SPDX-License-Identifier: Apache-2.0
%% @doc Joins the nodes of a cluster that has just been started: all with all,
%% or in groups.
-module(atoll_up_join).

-export([mesh/1, groups/3, cut/2]).

%% Joining takes longer the more nodes there are, and the machine is shared.
-define(JOIN_MS, 60000).

%% @doc Connects every node with every other.
-spec mesh(atoll_cluster:cluster()) -> {ok, atoll_up:members()} | {error, unicode:chardata()}.
mesh(Cluster) ->
    Nodes = atoll_cluster:nodes(Cluster),
    Connect = [fun net_kernel:connect_node/1, Nodes],
    case failures(atoll_cluster:multicall(Cluster, lists, map, Connect, ?JOIN_MS)) of
        [] -> {ok, []};
        [Reason | _] -> {error, atoll_cluster:format_error(Reason)}
    end.

%% @doc Makes so many groups of near-equal size, and one more of each group's
%% first nodes, so many gateways, if there are groups to join.
-spec groups(atoll_cluster:cluster(), pos_integer(), Gateways :: pos_integer()) ->
    {ok, atoll_up:members()} | {error, unicode:chardata()}.
groups(Cluster, Count, Each) ->
    Parts = cut(atoll_cluster:nodes(Cluster), Count),
    Plain = [{group_name(I), Part} || {I, Part} <- lists:zip(lists:seq(1, Count), Parts)],
    Gateways = [{gateways, lists:append([lists:sublist(Part, Each) || Part <- Parts])} || Count > 1],
    make_all(Cluster, Plain ++ Gateways, []).

%% @doc Cuts a list into so many parts whose lengths differ by one at most, the
%% longer ones first.
-spec cut([T], pos_integer()) -> [[T]].
cut(List, 1) ->
    [List];
cut(List, Count) ->
    {Part, Rest} = lists:split((length(List) + Count - 1) div Count, List),
    [Part | cut(Rest, Count - 1)].

failures(Answers) ->
    [Reason || {_, {error, Reason}} <- Answers].

%% At most a thousand atoms: as many as `atoll up' has groups.
group_name(I) ->
    list_to_atom("group" ++ integer_to_list(I)).

make_all(Cluster, [{Name, Nodes} | Groups], Made) ->
    case make(Cluster, Name, Nodes) of
        ok -> make_all(Cluster, Groups, [{Name, Nodes} | Made]);
        {error, _} = Error -> Error
    end;
make_all(_, [], Made) ->
    {ok, lists:reverse(Made)}.

make(Cluster, Name, [First | _] = Nodes) ->
    Wanted = lists:sort(Nodes),
    try atoll_cluster:call(Cluster, First, s_group, new_s_group, [Name, Nodes], ?JOIN_MS) of
        {ok, Name, Wanted} ->
            ok;
        {ok, Name, Fewer} ->
            Out = lists:join(" ", [atom_to_list(Node) || Node <- Wanted -- Fewer]),
            {error, ["These nodes could not be put in ", atom_to_list(Name), ": ", Out, $.]};
        {error, Reason} ->
            {error, ["The group ", atom_to_list(Name), " could not be made: ",
                     s_group:format_error(Reason), $.]}
    catch
        error:Reason -> {error, atoll_cluster:format_error(Reason)}
    end.
