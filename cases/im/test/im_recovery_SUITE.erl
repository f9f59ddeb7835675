%% SPDX-License-Identifier: Apache-2.0
%% Each kind of process of the messenger is killed on real nodes, and nodes are, under traffic whose
%% history is checked: no login is lost, and nothing that was accepted is lost, comes twice or in another order.
-module(im_recovery_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, groups/0, suite/0, init_per_group/2, end_per_group/2, end_per_testcase/2]).
-export([
    traffic_without_a_loss/1,
    a_router/1, the_router_supervisor/1, the_server_supervisor/1, the_monitored_db/1,
    the_server_supervisor_and_the_monitored_db/1, a_client_db/1, a_chat_db/1, both_dbs_of_a_node/1,
    a_client_monitor/1, a_chat_session/1, all_monitors_and_sessions/1, each_kind_in_turn/1,
    a_server_node_is_killed_and_comes_back/1,
    a_second_login_is_refused_and_changes_nothing/1, a_client_that_comes_back_gets_what_was_said_meanwhile/1,
    the_partners_of_a_killed_session_are_told_of_the_next/1,
    each_node_says_what_it_is/1
]).
%% On nodes.
-export([kill/2, count/1, places/0, client/2, bare_client/2, heard/1, do/2, traffic/1, enough/1]).

-define(ROUTERS, 2).
-define(SERVERS, 4).
-define(LATE_MS, 30_000).
%% Longer than any case takes.
-define(LONG_MS, 3_600_000).

suite() -> [{timetrap, {minutes, 4}}].

all() ->
    case atoll_tier:tier() of
        fast -> [{group, rsd}];
        deep -> [{group, rd}, {group, rsd}, {group, relays}]
    end.

groups() -> [{Group, [], cases(atoll_tier:tier())} || Group <- [rd, rsd, relays]].

cases(fast) ->
    [each_node_says_what_it_is, a_second_login_is_refused_and_changes_nothing, a_client_that_comes_back_gets_what_was_said_meanwhile,
     the_partners_of_a_killed_session_are_told_of_the_next, each_kind_in_turn, a_server_node_is_killed_and_comes_back];
cases(deep) ->
    [traffic_without_a_loss, a_router, the_router_supervisor, the_server_supervisor, the_monitored_db,
     the_server_supervisor_and_the_monitored_db, a_client_db, a_chat_db, both_dbs_of_a_node, a_client_monitor, a_chat_session,
     all_monitors_and_sessions | cases(fast)].

init_per_group(Group, Config) ->
    Shape = (shape(Group))#{routers => ?ROUTERS, servers => ?SERVERS, clients => 1},
    Cluster = atoll_cluster_owned:start(im_cluster:options(Shape)),
    Roles = im_cluster:roles(Shape, atoll_cluster:nodes(Cluster)),
    {ok, Plan} = im_plan:new(im_cluster:settings(Shape, atoll_cluster:nodes(Cluster))),
    Started = [{cluster, Cluster}, {plan, Plan}, {roles, Roles} | Config],
    ok = whole(Started),
    Started.

shape(rd) -> #{mode => rd};
shape(rsd) -> #{mode => rsd, reach => atoll};
shape(relays) -> #{mode => rsd, reach => relays}.

end_per_group(_, Config) -> atoll_cluster_owned:stop(cluster(Config)).

%% The traffic of a case that has failed goes with its node.
end_per_testcase(_, Config) ->
    _ = atoll_cluster_owned:heal(cluster(Config), Config),
    whole(Config).

%%% The rows of the table

traffic_without_a_loss(Config) -> under_traffic(Config, 1000, fun() -> ok end).

a_router(Config) -> row(Config, routers, [router]).
the_router_supervisor(Config) -> row(Config, routers, [router_supervisor]).
the_server_supervisor(Config) -> row(Config, servers, [server_supervisor]).
the_monitored_db(Config) -> row(Config, servers, [monitored_db]).
the_server_supervisor_and_the_monitored_db(Config) -> row(Config, servers, [server_supervisor, monitored_db]).
a_client_db(Config) -> row(Config, servers, [client_db]).
a_chat_db(Config) -> row(Config, servers, [chat_db]).
both_dbs_of_a_node(Config) -> row(Config, servers, [client_db, chat_db]).
a_client_monitor(Config) -> row(Config, servers, [client_monitor]).
a_chat_session(Config) -> row(Config, servers, [chat_session]).

all_monitors_and_sessions(Config) ->
    under_traffic(Config, 2000, fun() ->
        [_ = call(Config, Node, kill, [Kind, all]) || Node <- nodes_of(servers, Config), Kind <- [client_monitor, chat_session]],
        ok = whole(Config)
    end).

row(Config, Which, Kinds) ->
    under_traffic(Config, 2000, fun() -> [killed(Config, Node, Kinds) || Node <- nodes_of(Which, Config)] end).

each_kind_in_turn(Config) ->
    under_traffic(Config, 3000, fun() ->
        [killed(Config, hd(nodes_of(routers, Config)), [Kind]) || Kind <- [router, router_supervisor]],
        [killed(Config, Node, Kinds)
         || {Node, Kinds} <- lists:zip(lists:sublist(nodes_of(servers, Config) ++ nodes_of(servers, Config), 7),
                                       [[server_supervisor], [monitored_db], [client_monitor], [chat_session], [client_db], [chat_db],
                                        [server_supervisor, monitored_db]])]
    end).

killed(Config, Node, Kinds) ->
    %% Conversations come and go: a node may have no session for a moment.
    [ok = until(fun() -> call(Config, Node, kill, [Kind, one]) =/= [] end) || Kind <- Kinds],
    ok = whole(Config).

%%% Nodes

each_node_says_what_it_is(Config) ->
    {Routers, Servers, [Client | _]} = proplists:get_value(roles, Config),
    Plan = proplists:get_value(plan, Config),
    Said = [{Node, on(Config, Node, im, status, [])} || Node <- Routers ++ Servers],
    [?assertMatch({Node, {ok, #{role := Has}}}, {Node, Answer})
     || {Node, Answer} <- Said, Has <- [im_plan:role(Node, Plan)]],
    Databases = lists:append([Of || {_, {ok, #{databases := Of}}} <- Said]),
    [?assertEqual({Role, 2 * ?SERVERS}, {Role, length([1 || #{role := Is} <- Databases, Is =:= Role])}) || Role <- [main, replica]],
    ?assertEqual({error, not_started}, on(Config, Client, im, status, [])).

a_server_node_is_killed_and_comes_back(Config) ->
    Victim = lists:last(nodes_of(servers, Config)),
    under_traffic(Config, 3000, fun() ->
        Lost = call(Config, Victim, count, [client_monitor]),
        ?assert(Lost > 0),
        Before = watched(Config, nodes_of(servers, Config)),
        Killed = erlang:monotonic_time(millisecond),
        ok = atoll_cluster:kill(cluster(Config), Victim),
        %% All that it had are served elsewhere.
        ok = until(fun() -> watched(Config, nodes_of(servers, Config) -- [Victim]) >= Before end),
        Served = erlang:monotonic_time(millisecond) - Killed,
        ct:pal("~b clients of a killed node are served again after ~b ms", [Lost, Served]),
        ?assert(Served =< 6000),
        ok = atoll_cluster:restart(cluster(Config), Victim),
        %% It has its shard again, and the processes of its shard.
        ok = whole(Config),
        ok = until(fun() -> call(Config, Victim, count, [client_monitor]) =:= Lost end)
    end).

watched(Config, Nodes) -> lists:sum([call(Config, Node, count, [client_monitor]) || Node <- Nodes]).

%%% Single clients

a_second_login_is_refused_and_changes_nothing(Config) ->
    [Ada, Bob] = [logged_in(Config, Name) || Name <- [<<"ada">>, <<"bob">>]],
    Before = row(Config, <<"ada">>),
    Second = at_client(Config, client, [<<"ada">>]),
    ok = hears(Config, Second, {login_refused, already_logged_in}),
    ?assertEqual(Before, row(Config, <<"ada">>)),
    ok = do(Config, Ada, [{say, <<"bob">>, <<"still here">>}]),
    ok = hears(Config, Bob, {message, <<"ada">>, 1, <<"still here">>, none}),
    ok = do(Config, Bob, [{say, <<"ada">>, <<"so I see">>}]),
    ok = hears(Config, Ada, {message, <<"bob">>, 1, <<"so I see">>, none}),
    ?assertEqual([{login_refused, already_logged_in}], heard(Config, Second)),
    logged_out(Config, [Ada, Bob]).

a_client_that_comes_back_gets_what_was_said_meanwhile(Config) ->
    [Ada, Bob] = [logged_in(Config, Name) || Name <- [<<"ada">>, <<"bob">>]],
    Texts = [integer_to_binary(N) || N <- lists:seq(1, 23)],
    {First, Meanwhile} = lists:split(3, Texts),
    ok = do(Config, Ada, [{say, <<"bob">>, Text} || Text <- First]),
    ok = hears(Config, Ada, {delivered, <<"bob">>, 3}),
    true = on(Config, node(Bob), erlang, exit, [Bob, kill]),
    ok = hears(Config, Ada, {presence, <<"bob">>, away}),
    ok = do(Config, Ada, [{say, <<"bob">>, Text} || Text <- Meanwhile]),
    ok = hears(Config, Ada, {accepted, <<"bob">>, 23}),
    ?assertNot(lists:member({delivered, <<"bob">>, 23}, heard(Config, Ada))),
    %% Until then its name is its own.
    ok = until(fun() -> away =:= maps:get(pid, row(Config, <<"bob">>)) end),
    Back = logged_in(Config, <<"bob">>),
    ok = hears(Config, Ada, {delivered, <<"bob">>, 23}),
    ?assertEqual(Meanwhile, [Text || {message, <<"ada">>, _, Text, none} <- heard(Config, Back)]),
    logged_out(Config, [Ada, Back]).

%% Figure 6 of the paper: a new process goes on with the same session, and both are told which.
the_partners_of_a_killed_session_are_told_of_the_next(Config) ->
    [Ada, Bob] = [at_client(Config, bare_client, [Name]) || Name <- [<<"ada">>, <<"bob">>]],
    Both = [Ada, Bob],
    Monitors = [monitor_of(Config, Client) || Client <- Both],
    Router = {router_1, hd(nodes_of(routers, Config))},
    _ = sent(Config, Router, {im, chat, <<"ada">>, <<"bob">>, Ada}),
    ok = until(fun() -> [1, 1] =:= [length(sessions(Config, Client)) || Client <- Both] end),
    [[{Inc, Killed}], [{Inc, Killed}]] = [sessions(Config, Client) || Client <- Both],
    ok = killed(Config, node(Killed), [chat_session]),
    ok = until(fun() -> [2, 2] =:= [length(sessions(Config, Client)) || Client <- Both] end),
    [[_, {Inc, Next}], [_, {Inc, Next}]] = [sessions(Config, Client) || Client <- Both],
    ?assertNotEqual(Killed, Next),
    _ = sent(Config, Next, {im, say, Inc, <<"ada">>, 1, <<"hello">>, none, Ada}),
    ok = hears(Config, Bob, {im, message, {<<"ada">>, <<"bob">>}, Inc, <<"ada">>, 1, <<"hello">>, none}),
    _ = [sent(Config, Monitor, {im, logout, Name, Client}) || {Monitor, Name, Client} <- lists:zip3(Monitors, [<<"ada">>, <<"bob">>], Both)],
    nothing_left(Config).

%% In a mesh each router passes on what a server cannot tell itself.
sessions(Config, Client) -> lists:uniq([{Inc, Pid} || {im, session, {<<"ada">>, <<"bob">>}, Inc, Pid, 0, _} <- heard(Config, Client)]).

monitor_of(Config, Client) ->
    ok = until(fun() -> heard(Config, Client) =/= [] end),
    [{im, login_success, Monitor, []}] = lists:uniq(heard(Config, Client)),
    Monitor.

sent(Config, To, Message) -> on(Config, client_node(Config), erlang, send, [To, Message]).

row(Config, Client) ->
    Server = im_plan:server_of_client(Client, proplists:get_value(plan, Config)),
    {ok, {ok, Row}} = on(Config, hd(nodes_of(servers, Config)), im_names, call, [Server, client_db, {peek, Client}, ?LATE_MS]),
    Row.

logged_in(Config, Name) ->
    Client = at_client(Config, client, [Name]),
    ok = until(fun() -> [] =/= [In || {logged_in, In} <- heard(Config, Client)] end),
    Client.

logged_out(Config, Clients) ->
    [ok = do(Config, Client, [logout]) || Client <- Clients],
    nothing_left(Config).

hears(Config, Client, Event) -> until(fun() -> lists:member(Event, heard(Config, Client)) end).

heard(Config, Client) -> at_client(Config, heard, Client).

do(Config, Client, Actions) -> call(Config, client_node(Config), do, [Client, Actions]).

at_client(Config, F, [Name]) -> call(Config, client_node(Config), F, [Name, nodes_of(routers, Config)]);
at_client(Config, F, Client) -> call(Config, client_node(Config), F, [Client]).

client_node(Config) ->
    {_, _, [Node]} = proplists:get_value(roles, Config),
    Node.

%%% Traffic

%% From when all are logged in, until that was done and for so long at least: how long it takes is up to the machine.
under_traffic(Config, Ms, Fun) ->
    {Routers, _, [Client]} = proplists:get_value(roles, Config),
    Options = #{client_nodes => [Client], routers => Routers, clients => 40, mode => paper, time_scale => 100, ms => ?LONG_MS, ramp_ms => 500,
                drain_ms => ?LATE_MS, login_ms => ?LATE_MS, seed => atoll_tier:seed(?MODULE)},
    Traffic = call(Config, Client, traffic, [Options]),
    ok = until(fun() -> watched(Config, nodes_of(servers, Config)) >= 40 end),
    Enough = erlang:monotonic_time(millisecond) + Ms,
    _ = Fun(),
    ok = until(fun() -> erlang:monotonic_time(millisecond) >= Enough end),
    case atoll_cluster:call(cluster(Config), Client, ?MODULE, enough, [Traffic], 120_000) of
        {ok, #{history := #{counts := Counts, violations := Violations}, is_drained := IsDrained, clients := Clients, total := Total}} ->
            ct:pal("~0p ~0p", [Total, Clients]),
            ?assertEqual({#{}, []}, {Counts, Violations}),
            ?assert(IsDrained),
            ?assertMatch(#{refused := 0, died := 0}, Clients);
        Other ->
            error({traffic, Other})
    end,
    nothing_left(Config).

nothing_left(Config) ->
    until(fun() -> [0, 0] =:= [lists:sum([call(Config, Node, count, [Kind]) || Node <- nodes_of(servers, Config)]) || Kind <- [client_monitor, chat_session]] end).

%% Each database has its copies, the main ones where they belong.
whole(Config) ->
    {Routers, Servers, _} = proplists:get_value(roles, Config),
    Plan = proplists:get_value(plan, Config),
    until(fun() ->
        lists:all(fun(Node) ->
            on(Config, Node, im_cluster, missing, [Plan]) =:= [] andalso on(Config, Node, im_cluster, lacking, [Plan]) =:= []
        end, Routers ++ Servers)
        andalso lists:all(fun(Node) -> call(Config, Node, places, []) =:= 2 end, Servers)
    end).

%%% On nodes

%% The owner of a client, which keeps what it is told.
client(Name, Routers) ->
    spawn(fun() ->
        {ok, Client} = im_client:start_link(Name, Routers, #{}),
        keeps(Client, Name, [])
    end).

%% Without the library: what servers send, as it comes.
bare_client(Name, [Router | _]) ->
    spawn(fun() ->
        {router_1, Router} ! {im, login, Name, self()},
        keeps(none, Name, [])
    end).

keeps(Client, Name, Told) ->
    receive
        {?MODULE, From, heard} ->
            From ! {self(), lists:reverse(Told)},
            keeps(Client, Name, Told);
        {?MODULE, From, Actions} ->
            From ! {self(), lists:foreach(fun({say, Peer, Text}) -> {ok, _} = im_client:say(Client, Peer, Text); (logout) -> im_client:logout(Client) end, Actions)},
            keeps(Client, Name, Told);
        {im_client, Client, Event} ->
            keeps(Client, Name, [Event | Told]);
        {im, session, _, Inc, Session, _, _} = Event ->
            Session ! {im, hello, Inc, Name, self(), 0},
            keeps(Client, Name, [Event | Told]);
        {im, login_success, Monitor, _} = Event ->
            %% Which connects with its node.
            _ = monitor(process, Monitor),
            keeps(Client, Name, [Event | Told]);
        {im, _, _, _, _, _, _, _} = Event ->
            keeps(Client, Name, [Event | Told])
    end.

%% The owner of traffic, which is there as long as that is.
traffic(Options) ->
    spawn(fun() ->
        {ok, Run} = im_traffic:start(Options),
        receive {?MODULE, From, enough} -> From ! {self(), im_traffic:stop(Run)} end
    end).

%% What has come of it.
enough(Traffic) ->
    Ref = monitor(process, Traffic),
    Traffic ! {?MODULE, self(), enough},
    receive
        {Traffic, Outcome} -> true = demonitor(Ref, [flush]), Outcome;
        {'DOWN', Ref, process, Traffic, Why} -> {ended, Why}
    end.

heard(Keeper) -> do(Keeper, heard).

do(Keeper, Request) ->
    Keeper ! {?MODULE, self(), Request},
    receive {Keeper, Answer} -> Answer after ?LATE_MS -> error(no_answer) end.

%% Kills one of that kind that is there, or all.
kill(Kind, Which) ->
    Pids = [Pid || {Is, Pid} <- im:roles(), Is =:= Kind],
    Victims = case {Which, Pids} of
        {one, [_ | _]} when Kind =:= client_db; Kind =:= chat_db -> [main(Kind)];
        {one, [_ | _]} -> [lists:nth(rand:uniform(length(Pids)), Pids)];
        _ -> Pids
    end,
    [begin
         Ref = monitor(process, Pid),
         exit(Pid, kill),
         receive {'DOWN', Ref, process, Pid, _} -> Pid end
     end || Pid <- Victims].

%% That of the node's own shard.
main(Kind) ->
    {server, J} = im_plan:role(node(), im_plan:this()),
    whereis(im_plan:local_name(J, Kind, im_plan:this())).

count(Kind) -> length([Pid || {Is, Pid} <- im:roles(), Is =:= Kind]).

%% How many of the main databases of its own shard this node has.
places() ->
    {server, J} = im_plan:role(node(), im_plan:this()),
    length([Kind || Kind <- [client_db, chat_db], Pid <- [im_names:whereis(J, 1, Kind)], is_pid(Pid), node(Pid) =:= node()]).

%%% The cluster

cluster(Config) -> proplists:get_value(cluster, Config).

nodes_of(routers, Config) -> element(1, proplists:get_value(roles, Config));
nodes_of(servers, Config) -> element(2, proplists:get_value(roles, Config)).

call(Config, Node, F, A) -> on(Config, Node, ?MODULE, F, A).

on(Config, Node, M, F, A) -> atoll_cluster:call(cluster(Config), Node, M, F, A, ?LATE_MS).

until(Ask) -> until(Ask, erlang:monotonic_time(millisecond) + ?LATE_MS).

until(Ask, Deadline) ->
    case Ask() of
        true -> ok;
        false ->
            erlang:monotonic_time(millisecond) < Deadline orelse error(deadline),
            receive after 20 -> until(Ask, Deadline) end
    end.
