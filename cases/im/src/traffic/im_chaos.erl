%% SPDX-License-Identifier: Apache-2.0
%% @doc The paper's two monkeys as steps of a fault script, which `atoll_chaos' plays on the nodes of a
%% messenger. Pure: they follow from the plan.
%%
%% <b>rhesus</b> kills one process each time. One time in four it is on a router node: the router
%% supervisor or a router, each as likely; who watches the supervisor is the node's top supervisor here. Else it is on a server node, and of 60
%% times 12 each the monitored database, a chat database, a client database and the server supervisor,
%% 6 each a client monitor and a chat session. Databases are the main and the replica that the plan
%% has there.
%%
%% <b>baboon</b> kills a process that has a name in `global', or in one of the servers' groups,
%% each group as likely. With relays, which have names too and were spared in the paper, it is one of
%% the databases that the plan has on a node.
%% ```
%% {ok, Script} = atoll_sim_script:check([{cluster, #{nodes => 8}}, {at, 0, im_chaos:rhesus(Plan, 1000, 60000)}]).
%% atoll_chaos:start(#{nodes => Nodes, script => Script}).
%% '''
-module(im_chaos).

-export([rhesus/3, baboon/3, period/1]).

-export_type([step/0]).

-type step() :: {every, Ms :: pos_integer(), For :: pos_integer(), {one_of, [{Weight :: number(), {kill_process, node() | alive, term()}}, ...]}}.
%% As `atoll_sim_step' has it.

%% @doc Kills one each so many milliseconds, for so long.
-spec rhesus(im_plan:plan(), EveryMs :: pos_integer(), ForMs :: pos_integer()) -> step().
rhesus(Plan, Every, For) ->
    Routers = im_plan:routers(Plan),
    Servers = im_plan:servers(Plan),
    RouterSide = [{length(Servers), {kill_process, Node, router(Plan)}} || Node <- Routers],
    ServerSide = [{3 * length(Routers), {kill_process, im_plan:node_of(Server, Plan), server(Server, Plan)}} || Server <- Servers],
    {every, Every, For, {one_of, RouterSide ++ ServerSide}}.

router(Plan) ->
    Routers = [im_plan:router_name(I) || I <- lists:seq(1, im_plan:setting(routers_per_node, Plan))],
    [{1, {name, Name}} || Name <- [router_supervisor | Routers]].

server(Server, Plan) ->
    [{12, {name, im_monitored_db}}, {12, {name, server_supervisor}}, {6, {module, im_client_monitor}}, {6, {module, im_chat_session}}] ++
        lists:append([
            [{12 / length(Names), {name, Name}} || Name <- Names]
         || Kind <- [chat_db, client_db], Names <- [databases(im_plan:node_of(Server, Plan), Kind, Plan)]
        ]).

%% The shards that have their main or their replica there.
databases(Node, Kind, Plan) ->
    [im_plan:local_name(Shard, Kind, Plan) || Shard <- im_plan:servers(Plan), lists:member(Node, lists:sublist(im_plan:peers(Shard, Plan), 2))].

%% @doc Kills one with a name each so many milliseconds, for so long.
-spec baboon(im_plan:plan(), EveryMs :: pos_integer(), ForMs :: pos_integer()) -> step().
baboon(Plan, Every, For) ->
    Kills =
        case {im_plan:setting(mode, Plan), im_plan:setting(reach, Plan)} of
            {rd, _} ->
                [{kill_process, alive, {any_name, global}}];
            {rsd, atoll} ->
                [{kill_process, alive, {any_name, {group, Group}}} || {Group, _} <- im_plan:groups(Plan), Group =/= routers_group];
            {rsd, relays} ->
                [
                    {kill_process, Node, [{1, {name, Name}} || Kind <- [client_db, chat_db], Name <- databases(Node, Kind, Plan)]}
                 || Server <- im_plan:servers(Plan), Node <- [im_plan:node_of(Server, Plan)]
                ]
        end,
    {every, Every, For, {one_of, [{1, Kill} || Kill <- Kills]}}.

%% @doc The paper's time between two kills of rhesus, unless told: 6 to 3,600 s, the same for the whole run.
-spec period(Seed :: integer()) -> Ms :: pos_integer().
period(Seed) ->
    {Seconds, _} = rand:uniform_s(3595, rand:seed_s(exsss, erlang:phash2({?MODULE, Seed}))),
    1000 * (5 + Seconds).
