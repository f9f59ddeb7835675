%% SPDX-License-Identifier: Apache-2.0
%% @doc Who keeps the names in the benchmark {@link atoll_bench_names}, as a node sees
%% it. To look a name up is what a program would write, with nothing around it.
%%
%% A name is seen by the co-members of the node that registers it: by all nodes in
%% `global', `pg' and `s_group', and by the four of its group in `s_group_of_4'.
-module(atoll_bench_names_system).

-export([all/0, options/1, groups/2, begin_with/1, here/1, co_members/1]).
-export([give/3, take/2, whereis/2, names/1, row/3]).

-export_type([system/0, here/0]).

-type system() :: global | pg | s_group | s_group_of_4.

-opaque here() :: global | pg | {s_group, Group :: atom()}.
%% What a node has to know to give names and to look them up.

-define(SCOPE, ?MODULE).
-define(GROUP_SIZE, 4).

%% @doc All of them.
-spec all() -> [system(), ...].
all() -> [global, pg, s_group, s_group_of_4].

%% @doc How the nodes are started.
-spec options(system()) -> #{connect_all := boolean(), apps := [atom()]}.
options(System) when System =:= global; System =:= pg -> #{connect_all => true, apps => []};
options(_OfGroups) -> #{connect_all => false, apps => [atoll]}.

%% @doc The groups that the nodes are to be in; `mesh' of those that need none.
-spec groups(system(), [node(), ...]) -> mesh | [{Group :: atom(), [node(), ...]}, ...].
groups(s_group, Nodes) -> [{everyone, Nodes}];
groups(s_group_of_4, Nodes) -> fours(Nodes);
groups(_OfMeshes, _Nodes) -> mesh.

fours([]) ->
    [];
fours([First | _] = Nodes) ->
    %% No two groups are called alike, though no node would mix them up.
    {Group, Others} = lists:split(min(?GROUP_SIZE, length(Nodes)), Nodes),
    [{First, Group} | fours(Others)].

%% @doc What the system needs on this node before names are given.
-spec begin_with(system()) -> ok.
begin_with(global) ->
    %% Names are only given out when this node and the others are in one mesh.
    ok = global:sync();
begin_with(pg) ->
    {ok, Pid} = pg:start(?SCOPE),
    %% It was linked to the process of this call, which is about to end.
    true = unlink(Pid),
    ok;
begin_with(_OfGroups) ->
    ok.

%% @doc This node's part in it.
-spec here(system()) -> here().
here(System) when System =:= global; System =:= pg ->
    System;
here(_OfGroups) ->
    [{Group, _}] = s_group:own_s_groups(),
    {s_group, Group}.

%% @doc The nodes that see what is registered here, this one among them.
-spec co_members(here()) -> [node(), ...].
co_members({s_group, Group}) -> s_group:own_nodes(Group);
co_members(_OfMeshes) -> [node() | nodes()].

%% @doc Gives a process of this node a name.
-spec give(here(), Name :: term(), pid()) -> ok.
give(global, Name, Pid) ->
    yes = global:register_name(Name, Pid),
    ok;
give(pg, Name, Pid) ->
    pg:join(?SCOPE, Name, Pid);
give({s_group, Group}, Name, Pid) ->
    yes = s_group:register_name(Group, Name, Pid),
    ok.

%% @doc Takes a name away whose process is about to end. Only `global' is asked to: with
%% it nobody would know when that is done.
-spec take(here(), Name :: term()) -> ok.
take(global, Name) ->
    _ = global:unregister_name(Name),
    ok;
take(_, _Name) ->
    ok.

%% @doc The process of that name.
-spec whereis(here(), Name :: term()) -> pid() | undefined.
whereis(global, Name) ->
    global:whereis_name(Name);
whereis(pg, Name) ->
    case pg:get_members(?SCOPE, Name) of
        [Pid] -> Pid;
        [] -> undefined
    end;
whereis({s_group, Group}, Name) ->
    s_group:whereis_name(Group, Name).

%% @doc All names that this node sees.
-spec names(here()) -> [Name :: term()].
names(global) -> global:registered_names();
names(pg) -> pg:which_groups(?SCOPE);
names({s_group, Group}) -> atoll_name:names(Group).

%% @doc The least that a table has to hold so that the name can be looked up: its key
%% comes first.
-spec row(here(), Name :: term(), pid()) -> tuple().
row({s_group, Group}, Name, Pid) -> {{Group, Name}, Pid};
row(_OfMeshes, Name, Pid) -> {Name, Pid}.
