%% SPDX-License-Identifier: Apache-2.0
%% A full mesh becomes a cluster with a group, node by node, and a mesh again, as
%% docs/howto-migrate.md says and with the program that stands there, while clients on all nodes
%% call one server by its name. No call fails, and none is answered twice.
-module(atoll_migrate_SUITE).

-include_lib("stdlib/include/assert.hrl").
-include_lib("common_test/include/ct.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([a_mesh_becomes_a_group_node_by_node_and_a_mesh_again/1]).

-define(C, atoll_name_cluster).
-define(P, atoll_migrate_probe).
-define(GLOBAL, {global, ledger}).
-define(BOTH, {via, both, ledger}).
-define(GROUP, {via, atoll_name, {fish, ledger}}).

suite() -> [{timetrap, {minutes, 4}}].

all() -> [a_mesh_becomes_a_group_node_by_node_and_a_mesh_again].

init_per_suite(Config) ->
    Files = [filename:join(?config(priv_dir, Config), lists:concat(["flags", I])) || I <- lists:seq(1, atoll_tier:size(migrate_nodes))],
    %% The flags of a node stand in a file, so that it is started again with others.
    Script = "flags=$1; shift; exec \"$@\" $(cat \"$flags\")",
    Cluster = atoll_cluster_owned:start(#{
        nodes => length(Files),
        hosts => [#{address => {127, 0, 0, 1}, wrap => ["/bin/sh", "-c", Script, "sh", File]} || File <- Files, ok =:= flags(File, true)],
        args => fun(Nodes) ->
            %% As OTP has it unless told otherwise: the nodes of these clusters are told otherwise.
            ["-kernel", "prevent_overlapping_partitions", "true", "-atoll", "s_groups", lists:flatten(io_lib:format("~0p", [[{fish, Nodes}]]))]
        end
    }),
    Programs = [{both, _}] = atoll_page_programs:modules("howto-migrate.md"),
    _ = ?C:each(Cluster, atoll_cluster:nodes(Cluster), ?P, boot, [Programs]),
    [{cluster, Cluster}, {programs, Programs}, {files, Files} | Config].

end_per_suite(Config) ->
    ok = atoll_cluster:stop(?config(cluster, Config)).

flags(File, ConnectAll) -> file:write_file(File, ["-connect_all ", atom_to_list(ConnectAll)]).

a_mesh_becomes_a_group_node_by_node_and_a_mesh_again(Config) ->
    C = ?config(cluster, Config),
    [First | Others] = Nodes = atoll_cluster:nodes(C),
    _ = [true = ?C:call(C, First, net_kernel, connect_node, [N]) || N <- Others],
    ok = ?C:call(C, First, global, sync, []),
    Server = ?C:call(C, First, ?P, start, [?GLOBAL]),
    ok = known(C, Nodes, Server),
    Began = #{
        config => Config,
        server => Server,
        mesh => Nodes,
        reports => [],
        clients => maps:from_list([{N, ?C:call(C, N, ?P, client, [{N, old}, ?GLOBAL])} || N <- Nodes])
    },
    %% The library, then the names in both, while the mesh stands.
    [{ok, _} = ?C:call(C, N, application, ensure_all_started, [atoll]) || N <- Nodes],
    [ok = ?C:call(C, N, atoll_barrier, group, [fish, Nodes]) || N <- Nodes],
    Both = switched(?BOTH, moved(hd(Others), Began)),
    Groups = lists:foldl(fun(N, S) -> restarted(N, false, S) end, Both, Nodes),
    ?assertEqual([], maps:get(mesh, Groups)),
    Alone = switched(?GROUP, Groups),
    ?assertEqual([{N, false} || N <- Nodes], ?C:each(C, Nodes, application, get_env, [kernel, connect_all, none])),
    %% And back.
    Mesh = lists:foldl(fun(N, S) -> restarted(N, true, S) end, switched(?BOTH, Alone), Nodes),
    ok = known(C, Nodes, maps:get(server, Mesh)),
    #{server := Last} = End = switched(?GLOBAL, Mesh),
    _ = [{N, ok} = {N, ?C:call(C, N, application, stop, [atoll])} || N <- Nodes],
    ok = known(C, Nodes, Last),
    Left = ?C:each(C, Nodes, ?P, rest, fun(N) -> [maps:get(N, maps:get(clients, End))] end),
    {Answered, Failed} = lists:unzip([Report || {_, Report} <- Left] ++ maps:get(reports, End)),
    Asked = ?C:call(C, node(Last), ?P, asked, [Last]),
    ?C:report("~b nodes to a group and back: ~b calls, ~b of them failed, ~b answered twice", [
        length(Nodes), maps:size(Asked), length(lists:append(Failed)), length([x || {_, Times} <- maps:to_list(Asked), Times > 1])
    ]),
    ?assertEqual([], lists:append(Failed)),
    ?assertEqual([], [Again || {_, Times} = Again <- maps:to_list(Asked), Times =/= 1]),
    ?assertEqual(lists:sort(lists:append(Answered)), lists:sort(maps:keys(Asked))),
    %% Each client of each life of a node was heard.
    ?assert(lists:all(fun(Ids) -> Ids =/= [] end, Answered)).

%% The name is known to `global' on these nodes.
known(C, Nodes, Server) ->
    lists:foreach(fun(N) -> ok = ?C:await(fun() -> ?C:call(C, N, global, whereis_name, [ledger]) end, Server) end, Nodes).

%% All clients use that name from now on.
switched(Name, #{config := Config, clients := Clients} = State) ->
    Nodes = maps:keys(Clients),
    _ = [{N, ok} = Done || {N, _} = Done <- ?C:each(?config(cluster, Config), Nodes, ?P, switch, fun(N) -> [maps:get(N, Clients), Name] end)],
    State.

%% The server goes on at that node, and nobody asks the old one any more.
moved(Node, #{config := Config, server := Server, clients := Clients} = State) ->
    C = ?config(cluster, Config),
    Heir = ?C:call(C, node(Server), ?P, hand_over, [Server, Node]),
    ?assertEqual(Node, node(Heir)),
    _ = ?C:each(C, maps:keys(Clients), ?P, report, fun(N) -> [maps:get(N, Clients)] end),
    State#{server := Heir}.

%% A node is started again, in the mesh or outside of it.
restarted(Node, ConnectAll, #{config := Config, clients := Clients0, mesh := Mesh0, reports := Reports} = State0) ->
    C = ?config(cluster, Config),
    Nodes = atoll_cluster:nodes(C),
    {Client, Clients} = maps:take(Node, Clients0),
    Report = ?C:call(C, Node, ?P, rest, [Client]),
    #{server := Server} = State = away(Node, Nodes, State0#{clients := Clients, reports := [Report | Reports]}),
    ok = ?C:call(C, Node, application, stop, [atoll]),
    ok = atoll_cluster:kill(C, Node),
    ok = flags(proplists:get_value(Node, lists:zip(Nodes, ?config(files, Config))), ConnectAll),
    ok = atoll_cluster:restart(C, Node),
    ok = ?C:call(C, Node, ?P, boot, [?config(programs, Config)]),
    {ok, _} = ?C:call(C, Node, application, ensure_all_started, [atoll]),
    [ok = ?C:call(C, N, atoll_barrier, connected, [Nodes -- [N]]) || N <- Nodes],
    ok = ?C:call(C, Node, atoll_barrier, names, [fish, [ledger]]),
    Mesh = [N || ConnectAll, N <- [Node]] ++ lists:delete(Node, Mesh0),
    ok = seen(C, Nodes, Mesh, Server),
    New = ?C:call(C, Node, ?P, client, [{Node, ConnectAll}, ?BOTH]),
    [ok = ?C:await(fun() -> length(?C:call(C, N, pg, get_members, [clients])) end, length(Nodes)) || N <- Nodes],
    State#{clients := Clients#{Node => New}, mesh := Mesh}.

away(Node, Nodes, #{server := Server} = State) when node(Server) =:= Node ->
    %% So it is on a node of either kind while there are clients on nodes of both.
    moved(hd(lists:delete(Node, Nodes)), State);
away(_Node, _Nodes, State) ->
    State.

%% `global' has the name where it still is a mesh, if the server is there, and the group has it
%% everywhere: another server is refused on every node.
seen(C, Nodes, Mesh, Server) ->
    InMesh = lists:member(node(Server), Mesh),
    _ = [ok = ?C:await(fun() -> ?C:call(C, N, global, whereis_name, [ledger]) end, Server) || InMesh, N <- Mesh],
    _ = [?assertEqual({N, undefined}, {N, ?C:call(C, N, global, whereis_name, [ledger])}) || N <- Nodes -- [node(Server)], not (InMesh andalso lists:member(N, Mesh))],
    _ = [?assertEqual({N, {error, {already_started, Server}}}, {N, ?C:call(C, N, ?P, second, [?BOTH])}) || N <- Nodes],
    ok.
