%% SPDX-License-Identifier: Apache-2.0
%% @doc Who keeps the global names in DE-Bench, and with whom a node talks, as a node sees it.
%%
%% <dl>
%% <dt>`mesh'</dt><dd>stock distribution with `global', all nodes connected.</dd>
%% <dt>`groups'</dt><dd>s_groups with `-connect_all false': a name is given in each of the
%%   node's own groups, and the nodes that it talks with are those of its groups, or all
%%   nodes where connections are `transitive'.</dd>
%% </dl>
-module(debench_system).

-export([all/0, here/1, partners/3]).
-export([give/3, is/3, take/2, parts/1, names/1]).

-export_type([system/0, here/0]).

-type system() :: mesh | groups.

-opaque here() :: global | {groups, [s_group:name()]}.
%% What a node has to know to give names and to look them up.

%% @doc All of them.
-spec all() -> [system(), ...].
all() -> [mesh, groups].

%% @doc This node's part in it.
-spec here(system()) -> here().
here(mesh) -> global;
here(groups) -> {groups, [Name || {Name, _} <- s_group:own_s_groups()]}.

%% @doc Among which nodes this one draws those that it talks with, itself among them.
-spec partners(here(), [node(), ...], Transitive :: boolean()) -> [node(), ...].
partners({groups, _}, _Nodes, false) -> s_group:own_nodes();
partners(_Here, Nodes, _Transitive) -> Nodes.

%% @doc Gives a process of this node a name; in each of its groups.
-spec give(here(), Name :: term(), pid()) -> ok | {error, no}.
give(global, Name, Pid) -> said(global:register_name(Name, Pid) =:= yes);
give({groups, Groups}, Name, Pid) -> each(fun(Group) -> s_group:register_name(Group, Name, Pid) =:= yes end, Groups).

%% @doc Whether the name is that of this process; in each of the groups.
-spec is(here(), Name :: term(), pid()) -> ok | {error, no}.
is(global, Name, Pid) -> said(global:whereis_name(Name) =:= Pid);
is({groups, Groups}, Name, Pid) -> each(fun(Group) -> s_group:whereis_name(Group, Name) =:= Pid end, Groups).

%% @doc Takes a name away; from each of the groups.
-spec take(here(), Name :: term()) -> ok | {error, no}.
take(global, Name) ->
    _ = global:unregister_name(Name),
    ok;
take({groups, Groups}, Name) ->
    each(fun(Group) -> s_group:unregister_name(Group, Name) =:= ok end, Groups).

%% In every one, also where another said no.
each(Does, Groups) -> said(not lists:member(false, [Does(Group) || Group <- Groups])).

said(true) -> ok;
said(false) -> {error, no}.

%% @doc By how many the time of an operation on a name is divided: it was done in so many
%% groups.
-spec parts(here()) -> pos_integer().
parts(global) -> 1;
parts({groups, Groups}) -> max(1, length(Groups)).

%% @doc All names that this node sees.
-spec names(here()) -> [Name :: term()].
names(global) -> global:registered_names();
names({groups, Groups}) -> lists:append([atoll_name:names(Group) || Group <- Groups]).
