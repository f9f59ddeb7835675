%% SPDX-License-Identifier: Apache-2.0
%% @doc The names of submasters and colonies: in `global' (gr), in s_groups (sr), or none (tl, ml);
%% and the way to the nodes on which they are.
%%
%% Groups have the run's own id in their names, so that two runs on one cluster never share one.
%% That is one atom for each group and run.
-module(aco_name).

-export([of_id/2, whereis/2, reach/3, leave/2]).

-export_type([run/0, name/0, reason/0]).

%% What is needed of a run here.
-type run() :: #{id := aco_tree:run_id(), mode := aco_tree:mode(), tree := aco_tree:tree(), _ => _}.

-type name() :: {global, term()} | {via, atoll_name, {s_group:name(), aco_tree:id()}}.

-type reason() :: {unreachable, node()} | {left_out, node()} | {not_made, Sentence :: unicode:chardata()}.

%% Two nodes that connect each other at the same moment may refuse each other once.
-define(TRIES, 2).
-define(AGAIN_MS, 50).

%% @doc Its name, for gen_server and the like; none where nothing is restarted.
-spec of_id(aco_tree:id(), run()) -> name() | none.
of_id(Id, #{mode := gr, id := Run}) -> {global, {aco, Run, Id}};
of_id(Id, #{mode := sr} = Run) -> {via, atoll_name, {group_of(Id, Run), Id}};
of_id(_, _) -> none.

%% @doc Who has its name, as this node knows it.
-spec whereis(aco_tree:id(), run()) -> pid() | undefined.
whereis(Id, Run) ->
    case of_id(Id, Run) of
        {global, Name} -> global:whereis_name(Name);
        {via, Module, Name} -> Module:whereis_name(Name);
        none -> undefined
    end.

%% @doc Sees to it that this node can have that one started on that node: the two are connected,
%% and in sr in the group of its name, which is made if it is not there yet. `again' means that it
%% can be connected, but the group does not take it in yet: it may have just lost others. There is no
%% way if that node cannot be had, and another one may.
-spec reach(node(), aco_tree:id(), run()) -> ok | again | {no_way | error, reason()}.
reach(Node, Id, #{mode := sr, tree := Tree} = Run) ->
    Name = group_of(Id, Run),
    #{group := Group} = aco_tree:place(Id, Tree),
    case s_group:own_nodes(Name) of
        [] ->
            #{Group := Nodes} = aco_tree:groups(Tree),
            made(atoll_topology:make(atoll_topology:of_groups([{Name, lists:usort([node(), Node | Nodes])}])), Node);
        Members ->
            case lists:member(Node, Members) andalso lists:member(Node, [node() | nodes()]) of
                true -> ok;
                false -> added(Name, Node, connects(Node, ?TRIES))
            end
    end;
reach(Node, _, _) ->
    case connects(Node, ?TRIES) of
        true -> ok;
        false -> {no_way, {unreachable, Node}}
    end.

%% Whoever is left out besides is found out when it is to be reached itself.
made({ok, _}, _) -> ok;
made({error, #{why := {left_out, Missing}}}, Node) ->
    case lists:member(Node, Missing) of
        true -> {no_way, {left_out, Node}};
        false -> ok
    end;
made({error, #{why := {refused, s_group_not_runnig}} = Reason}, _) ->
    {error, {not_made, atoll_topology:format_error(Reason)}};
made({error, _}, _) ->
    %% One who was killed may have been making it, for example.
    again.

added(_, Node, false) -> {no_way, {left_out, Node}};
added(Name, Node, true) ->
    case s_group:add_nodes(Name, [Node]) of
        {ok, _, [Node]} -> ok;
        _ -> again
    end.

connects(_, 0) -> false;
connects(Node, Tries) ->
    case net_kernel:connect_node(Node) of
        true -> true;
        _ -> receive after ?AGAIN_MS -> connects(Node, Tries - 1) end
    end.

%% @doc Deletes the groups of a run that this node is in, but for that of this name. That another
%% member deletes one too is no error.
-spec leave(aco_tree:run_id(), Kept :: s_group:name() | none) -> ok.
leave(Run, Kept) ->
    Own = case whereis(atoll_group) of
              undefined -> [];
              _ -> [Name || {Name, _} <- s_group:own_s_groups(), lists:prefix(prefix(Run), atom_to_list(Name))]
          end,
    lists:foreach(fun s_group:delete_s_group/1, Own -- [Kept]).

group_of(Id, #{id := Run, tree := Tree}) ->
    #{group := {Kind, Path}} = aco_tree:place(Id, Tree),
    list_to_atom(lists:concat([prefix(Run), Kind | ["_" ++ integer_to_list(I) || I <- Path]])).

prefix(Run) -> "aco_" ++ Run ++ "_".
