%% SPDX-License-Identifier: Apache-2.0
%% Nodes on hosts behind ssh: two servers of OpenSSH on addresses of loopback. Skipped without it.
-module(atoll_deploy_ssh_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    nodes_come_up_over_ssh_and_nothing_is_left/1,
    a_host_that_refuses_is_named_and_the_others_go_on/1,
    a_host_is_reached_through_another_and_known_by_its_own_key/1,
    nothing_that_comes_through_another_host_is_lost/1,
    a_cluster_runs_on_the_hosts_of_a_family/1
]).

suite() -> [{timetrap, {minutes, 5}}].

all() ->
    [nodes_come_up_over_ssh_and_nothing_is_left, a_host_that_refuses_is_named_and_the_others_go_on] ++
    [Case || atoll_tier:tier() =:= deep, Case <- [a_host_is_reached_through_another_and_known_by_its_own_key, nothing_that_comes_through_another_host_is_lost, a_cluster_runs_on_the_hosts_of_a_family]].

init_per_testcase(_, Config) ->
    case atoll_deploy_sshd:available() of
        ok ->
            Dir = atoll_cli_os:new_dir(),
            ok = atoll_deploy_sshd:keys(Dir),
            [{dir, Dir}, {state, filename:join(Dir, "state")} | Config];
        {skip, _} = Skip ->
            Skip
    end.

end_per_testcase(_, Config) -> atoll_deploy_probe:ended(?config(state, Config), ?config(dir, Config)).

%% Two hosts, and their servers.
hosts(Dir) ->
    Hosts = [#{address => Address, port => atoll_test_port:free(Ip), key => "host_key"} || {Address, Ip} <- [{"127.0.0.1", {127, 0, 0, 1}}, {"127.0.0.2", {127, 0, 0, 2}}]],
    {Hosts, [atoll_deploy_sshd:start(Dir, Host) || Host <- Hosts]}.

opened(Config, Hosts, More) ->
    Dir = ?config(dir, Config),
    Provider = maps:merge(#{driver => ssh, ssh_dir => filename:join(Dir, "ssh")}, More),
    Domains = [
        {domain, "d" ++ integer_to_list(N), #{provider => "p", hosts => [lists:concat([Address, ":", Port])], user => atoll_deploy_sshd:user(), dir => filename:join(Dir, "host" ++ integer_to_list(N))}}
     || {N, #{address := Address, port := Port}} <- lists:zip(lists:seq(1, length(Hosts)), Hosts)
    ],
    Things = [
        case Thing of
            {family, Name, Family} -> {family, Name, Family#{domains := [Domain || {domain, Domain, _} <- Domains]}};
            _ -> Thing
        end
     || {Kind, _, _} = Thing <- atoll_deploy_probe:things(Dir, Provider, #{}), Kind =/= domain
    ],
    {Families, Others} = lists:partition(fun({Kind, _, _}) -> Kind =:= family end, Things),
    atoll_deploy_probe:opened(?config(state, Config), Others ++ Domains ++ Families).

known(Dir, Hosts) -> atoll_deploy_sshd:known(Dir, [{Address, Port, Key} || #{address := Address, port := Port, key := Key} <- Hosts]).

tell(_, _) -> ok.

nodes_come_up_over_ssh_and_nothing_is_left(Config) ->
    Dir = ?config(dir, Config),
    {Hosts, Servers} = hosts(Dir),
    ok = known(Dir, Hosts),
    Deployment = opened(Config, Hosts, #{}),
    {ok, #{up := Up, failed := [], phases := Phases}} = atoll_deploy:run(Deployment, "f", 4, fun tell/2),
    ?assertEqual(["f1@127.0.0.1", "f2@127.0.0.2", "f3@127.0.0.1", "f4@127.0.0.2"], Up),
    ?assertMatch(#{"127.0.0.1" := #{connect := _, upload := _, nodes := _}, "127.0.0.2" := _}, Phases),
    Eye = atoll_deploy_probe:eye("hush-hush-cookie"),
    [ok = atoll_deploy_probe:await({connected, Node}, fun() -> length(atoll_deploy_probe:see(Eye, Node, erlang, nodes, [])) =:= 3 end) || Node <- Up],
    ?assertMatch({ok, #{up := ["f1@127.0.0.1", "f2@127.0.0.2"], done := 2, failed := []}}, atoll_deploy:run(Deployment, "f", 2, fun tell/2)),
    ?assertMatch({ok, #{up := [_, _], done := 2, failed := []}}, atoll_deploy:roll(Deployment, "f", {"two", 1}, fun tell/2)),
    ?assertEqual("2", atoll_deploy_probe:see(Eye, "f2@127.0.0.2", probe, version, [])),
    {ok, _} = atoll_deploy:log(Deployment, {"f", "f2@127.0.0.2"}, 5),
    ?assertMatch({ok, #{failed := []}}, atoll_deploy:terminate(Deployment, "f", fun tell/2)),
    ?assertEqual([], atoll_deploy_probe:marked(atoll_deploy_store:id(Deployment))),
    ?assertEqual([], filelib:wildcard(Dir ++ "/host?")),
    ok = peer:stop(Eye),
    ok = atoll_deploy:close(Deployment),
    [ok = atoll_deploy_sshd:stop(Server) || Server <- Servers].

a_host_that_refuses_is_named_and_the_others_go_on(Config) ->
    Dir = ?config(dir, Config),
    {[First, Second], Servers} = hosts(Dir),
    Dead = #{address => "127.0.0.3", port => atoll_test_port:free({127, 0, 0, 3}), key => "host_key"},
    %% The second one is known by another key.
    ok = known(Dir, [First, Second#{key := "other_key"}, Dead]),
    Deployment = opened(Config, [First, Second, Dead], #{}),
    {ok, #{up := ["f1@127.0.0.1", "f4@127.0.0.1"], failed := Failed}} = atoll_deploy:run(Deployment, "f", 6, fun tell/2),
    Known = filename:join([Dir, "ssh", "known_hosts"]),
    ?assertEqual(
        [
            {"f2@127.0.0.2", "the host 127.0.0.2: its key is another than in " ++ Known ++ ", so it was not spoken to"},
            {"f3@127.0.0.3", "the host 127.0.0.3: nothing listens for ssh there"},
            {"f5@127.0.0.2", "the host 127.0.0.2: its key is another than in " ++ Known ++ ", so it was not spoken to"},
            {"f6@127.0.0.3", "the host 127.0.0.3: nothing listens for ssh there"}
        ],
        [{Node, unicode:characters_to_list(Why)} || {Node, Why} <- Failed]
    ),
    %% It is well again: exactly what lacks is started.
    ok = known(Dir, [First, Second]),
    {ok, #{done := 2, up := [_, _, _, _], failed := [{"f3@127.0.0.3", _}, {"f6@127.0.0.3", _}]}} = atoll_deploy:run(Deployment, "f", kept, fun tell/2),
    %% A host that is lost while its nodes are up, and nothing is to be done.
    ok = known(Dir, [First, Second#{key := "other_key"}]),
    {ok, #{done := 0, up := ["f1@127.0.0.1", "f4@127.0.0.1"], failed := [{"f2@127.0.0.2", Lost} | _]}} = atoll_deploy:run(Deployment, "f", kept, fun tell/2),
    ?assertMatch({match, _}, re:run(Lost, "^the host 127\\.0\\.0\\.2: its key is another")),
    ok = known(Dir, [First, Second]),
    {ok, #{failed := Left}} = atoll_deploy:terminate(Deployment, "f", fun tell/2),
    ?assertMatch([{"f3@127.0.0.3", _}, {"f6@127.0.0.3", _}], Left),
    ?assertEqual([], atoll_deploy_probe:marked(atoll_deploy_store:id(Deployment))),
    ok = atoll_deploy:close(Deployment),
    [ok = atoll_deploy_sshd:stop(Server) || Server <- Servers].

a_host_is_reached_through_another_and_known_by_its_own_key(Config) ->
    Dir = ?config(dir, Config),
    {[#{port := Port}, Second] = Hosts, Servers} = hosts(Dir),
    ok = known(Dir, Hosts),
    Deployment = opened(Config, [Second], #{jump => lists:concat([atoll_deploy_sshd:user(), "@127.0.0.1:", Port])}),
    ?assertMatch({ok, #{up := ["f1@127.0.0.2"], failed := []}}, atoll_deploy:run(Deployment, "f", 1, fun tell/2)),
    ?assertMatch({ok, #{failed := []}}, atoll_deploy:terminate(Deployment, "f", fun tell/2)),
    ok = known(Dir, [hd(Hosts), Second#{key := "other_key"}]),
    {ok, #{up := [], failed := [{_, Why}]}} = atoll_deploy:run(Deployment, "f", 1, fun tell/2),
    ?assertMatch({match, _}, re:run(Why, "^the host 127\\.0\\.0\\.2: its key is another")),
    ok = atoll_deploy:close(Deployment),
    [ok = atoll_deploy_sshd:stop(Server) || Server <- Servers].

%% Whoever is reached speaks first, as an ssh server does, and then gives back what it gets.
nothing_that_comes_through_another_host_is_lost(Config) ->
    Dir = ?config(dir, Config),
    {[#{address := Address, port := Port} | _] = Hosts, Servers} = hosts(Dir),
    ok = known(Dir, Hosts),
    Driver = #{host => Address, port => Port, user => atoll_deploy_sshd:user(), provider => #{ssh_dir => filename:join(Dir, "ssh")}},
    {ok, #{connection := Jump} = Connection} = atoll_deploy_ssh:open(Driver),
    {ok, Listen} = gen_tcp:listen(0, [binary, {ip, {127, 0, 0, 1}}, {active, false}, {backlog, 100}]),
    {ok, To} = inet:port(Listen),
    Echo = spawn_link(fun() -> echo(Listen) end),
    Bytes = crypto:strong_rand_bytes(3000000),
    Busy = [spawn_link(fun Spin() -> _ = lists:seq(1, 1000), Spin() end) || _ <- lists:seq(1, 4 * erlang:system_info(schedulers_online))],
    Times = 100,
    Came = [
        begin
            {ok, Socket} = atoll_deploy_ssh_jump:open(Jump, {"127.0.0.1", To}, 15000),
            First = gen_tcp:recv(Socket, 5, 15000),
            ok = gen_tcp:close(Socket),
            First
        end
     || _ <- lists:seq(1, Times)
    ],
    ?assertEqual(lists:duplicate(Times, {ok, "hello"}), Came),
    {ok, Socket} = atoll_deploy_ssh_jump:open(Jump, {"127.0.0.1", To}, 15000),
    {ok, "hello"} = gen_tcp:recv(Socket, 5, 15000),
    ok = inet:setopts(Socket, [binary]),
    Sender = spawn_link(fun() -> ok = gen_tcp:send(Socket, Bytes) end),
    ?assertEqual({ok, Bytes}, gen_tcp:recv(Socket, byte_size(Bytes), 60000)),
    ok = gen_tcp:close(Socket),
    [begin unlink(Pid), exit(Pid, kill) end || Pid <- [Echo, Sender | Busy]],
    ok = gen_tcp:close(Listen),
    ?assertEqual({error, econnrefused}, atoll_deploy_ssh_jump:open(Jump, {"127.0.0.1", To}, 15000)),
    ok = atoll_deploy_ssh:close(Connection),
    [ok = atoll_deploy_sshd:stop(Server) || Server <- Servers].

echo(Listen) ->
    {ok, Socket} = gen_tcp:accept(Listen),
    ok = gen_tcp:send(Socket, "hello"),
    Pid = spawn_link(fun() -> receive go -> back(Socket) end end),
    ok = gen_tcp:controlling_process(Socket, Pid),
    Pid ! go,
    echo(Listen).

back(Socket) ->
    case gen_tcp:recv(Socket, 0) of
        {ok, Bytes} ->
            case gen_tcp:send(Socket, Bytes) of
                ok -> back(Socket);
                {error, _} -> ok
            end;
        {error, _} -> ok
    end.

%% As benchmarks start one, which know nothing of where.
a_cluster_runs_on_the_hosts_of_a_family(Config) ->
    Dir = ?config(dir, Config),
    {Hosts, Servers} = hosts(Dir),
    ok = known(Dir, Hosts),
    ok = atoll_deploy:close(opened(Config, Hosts, #{})),
    ok = atoll_deploy_cluster:use(?config(state, Config), "f"),
    try
        {ok, Cluster} = atoll_cluster:start(#{nodes => 3, name => "far", parallel => 3}),
        ?assertEqual(['far1@127.0.0.1', 'far2@127.0.0.2', 'far3@127.0.0.1'], atoll_cluster:nodes(Cluster)),
        [pong = atoll_cluster:call(Cluster, 'far1@127.0.0.1', net_adm, ping, [Node]) || Node <- atoll_cluster:nodes(Cluster)],
        %% It has the code of this VM, and the cookie in no argument.
        ?assertEqual({ok, 3}, atoll_cluster:call(Cluster, 'far2@127.0.0.2', atoll_deploy_probe, echo, [{ok, 3}])),
        ?assertEqual([], [Command || {_, Command} <- atoll_deploy_probe:marked("far"), binary:match(Command, <<"hush-hush-cookie">>) =/= nomatch]),
        ok = atoll_cluster:kill(Cluster, 'far2@127.0.0.2'),
        ?assertEqual([], atoll_deploy_probe:marked("/far2@127.0.0.2")),
        ok = atoll_cluster:restart(Cluster, 'far2@127.0.0.2'),
        ok = atoll_cluster:pause(Cluster, 'far3@127.0.0.1'),
        #{nodes := Nodes} = atoll_cluster:info(Cluster),
        ?assertEqual([up, up, paused], [State || #{state := State} <- Nodes]),
        ok = atoll_cluster:stop(Cluster),
        ?assertEqual([], atoll_deploy_probe:marked("-far/")),
        ?assertEqual([], filelib:wildcard(Dir ++ "/host?"))
    after
        atoll_cluster:elsewhere(#{})
    end,
    [ok = atoll_deploy_sshd:stop(Server) || Server <- Servers].
