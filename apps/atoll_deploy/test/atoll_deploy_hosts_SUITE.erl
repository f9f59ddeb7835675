%% SPDX-License-Identifier: Apache-2.0
%% Six hosts, each with a network, processes, a home and a server of OpenSSH of its own, three of them behind a wire of 20 ms; the
%% master is a program on a seventh. Deep tier; skipped without root, OpenSSH or network namespaces.
-module(atoll_deploy_hosts_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    a_file_is_deployed_scaled_and_rolled_while_a_client_asks/1,
    five_steps_over_http_end_with_six_nodes/1,
    hosts_that_refuse_are_named_and_the_others_go_on/1
]).

-define(HOSTS, [1, 2, 3, 4, 5, 6]).
-define(MASTER, 7).
-define(RTT_MS, 20).

suite() -> [{timetrap, {minutes, 15}}].

all() -> cases(atoll_tier:tier()).

cases(fast) -> [];
cases(deep) -> [a_file_is_deployed_scaled_and_rolled_while_a_client_asks, five_steps_over_http_end_with_six_nodes, hosts_that_refuse_are_named_and_the_others_go_on].

init_per_testcase(Case, Config) ->
    case yaws(Case) of
        ok -> on_hosts(Config);
        Skip -> Skip
    end.

%% A host without a way to the world could not install it.
yaws(five_steps_over_http_end_with_six_nodes) ->
    case atoll_watch_yaws:find() of
        none -> {skip, "Yaws is not installed: scripts/setup erlang-yaws"};
        ok -> ok
    end;
yaws(_) ->
    ok.

on_hosts(Config) ->
    case {atoll_deploy_sshd:available(), atoll_cli_network:can(), atoll_wire:available()} of
        {ok, ok, ok} ->
            Dir = atoll_cli_os:new_dir(),
            ok = atoll_deploy_sshd:keys(Dir),
            [{dir, Dir} | Config];
        {ok, ok, {error, Error}} -> {skip, lists:flatten(atoll_wire:format_error(Error))};
        {ok, Skip, _} -> Skip;
        {Skip, _, _} -> Skip
    end.

end_per_testcase(_, Config) -> atoll_cli_os:remove_dir(?config(dir, Config)).

%% The network, and a server on each host.
started(Dir) ->
    Network = atoll_cli_network:start([[1, 2, 3, ?MASTER], [4, 5, 6]]),
    {ok, Wire} = atoll_wire:start(#{rtt_ms => ?RTT_MS}),
    ok = atoll_cli_network:join(Network, {1, 2}, Wire),
    "" = within(Network, ?MASTER, Dir, "mount -t tmpfs tmpfs /run"),
    [ok = sshd(Network, Host, Dir) || Host <- ?HOSTS],
    ok = known(Dir, []),
    {Network, Wire}.

stopped({Network, Wire}) ->
    ok = atoll_cli_network:stop(Network),
    ok = atoll_wire:stop(Wire).

address(Host) -> atoll_cli_network:address(Host).

sshd(Network, Host, Dir) ->
    Config = atoll_deploy_sshd:config(Dir, #{address => address(Host), port => 22, key => "host_key"}),
    Pid = pid_file(Dir, Host),
    ok = file:write_file(Config, "", [append]),
    {ok, Text} = file:read_file(Config),
    ok = file:write_file(Config, binary:replace(Text, <<"PidFile none">>, iolist_to_binary(["PidFile ", Pid]))),
    "" = within(Network, Host, Dir, ["mount -t tmpfs tmpfs ~ && mount -t tmpfs tmpfs /run && mkdir /run/sshd"]),
    serve(Network, Host, Dir).

serve(Network, Host, Dir) ->
    "" = within(Network, Host, Dir, ["/usr/sbin/sshd -f ", Dir, "/sshd-", address(Host), ".conf"]),
    ok = atoll_deploy_probe:await({sshd, Host}, fun() -> filelib:is_regular(pid_file(Dir, Host)) end).

pid_file(Dir, Host) -> lists:concat([Dir, "/sshd-", Host, ".pid"]).

%% Has the master know all hosts, some by another key.
known(Dir, Wrong) ->
    atoll_deploy_sshd:known(Dir, [{address(Host), 22, case lists:member(Host, Wrong) of true -> "other_key"; false -> "host_key" end} || Host <- ?HOSTS]).

%% What a shell's command says on a host.
within(Network, Host, Dir, Command) ->
    File = filename:join(Dir, "command.sh"),
    ok = file:write_file(File, Command),
    [Program | Args] = atoll_cli_network:shell(Network, Host, ". " ++ File),
    os:cmd(lists:flatten([Program, [[" '", Arg, $'] || Arg <- Args], " 2>&1"])).

%% A command of the master, and what came of it.
atoll(Network, Dir, Args) ->
    Program = program(Network, Dir, "master.sh", ["deploy" | Args] ++ ["--state", Dir ++ "/state", "--json"]),
    Ended = #{stdout := Stdout} = atoll_cli_os:await_exit(Program, 300000),
    Ended#{said => case Stdout of <<>> -> none; _ -> atoll_cli_os:decode(Stdout) end}.

program(Network, Dir, Name, Args) ->
    File = filename:join(Dir, Name),
    ok = file:write_file(File, ["exec ", filename:join([atoll_cli_os:root(), "bin", "atoll"]), [[" '", Arg, $'] || Arg <- Args]]),
    [Program | Rest] = atoll_cli_network:shell(Network, ?MASTER, ". " ++ File),
    atoll_cli_os:start(Dir, {sh, lists:flatten(["exec ", Program, [[" '", Arg, $'] || Arg <- Rest]])}).

%% All that is deployed, in one file. The releases do not fit on a small disk.
file(Dir, Count) ->
    Things = atoll_deploy_probe:things(Dir, #{driver => ssh, ssh_dir => filename:join(Dir, "ssh")}, #{hosts => [address(Host) || Host <- ?HOSTS], user => atoll_deploy_sshd:user()}),
    [ok = file:write_file(filename:join([Dir, "release-" ++ Version, "padding"]), crypto:strong_rand_bytes(2000000)) || Version <- ["1", "2"]],
    File = filename:join(Dir, "f.deploy"),
    ok = file:write_file(File, [io_lib:format("~tp.~n", [Term]) || Term <- Things ++ [{deploy, "f", Count}]]),
    File.

eye(Network) ->
    atoll_deploy_probe:eye("hush-hush-cookie", #{host => address(?MASTER), wrap => wrap(atoll_cli_network:shell(Network, ?MASTER, "exec \"$@\""))}).

%% What stands behind `sh -c COMMAND' is $0 first.
wrap(Shell) -> Shell ++ ["sh"].

connected(Eye, Nodes) ->
    [ok = atoll_deploy_probe:await({connected, Node}, fun() -> length([x || Other <- atoll_deploy_probe:see(Eye, Node, erlang, nodes, []), lists:member(atom_to_list(Other), Nodes)]) =:= length(Nodes) - 1 end) || Node <- Nodes].

%% Whatever has a mark on any host.
left(Network, Dir) -> [{Host, Said} || Host <- ?HOSTS, Said <- [within(Network, Host, Dir, "grep -lsz ^ATOLL_DEPLOY= /proc/[0-9]*/environ; ls -d ~/.atoll-deploy 2>/dev/null")], Said =/= ""].

a_file_is_deployed_scaled_and_rolled_while_a_client_asks(Config) ->
    Dir = ?config(dir, Config),
    {Network, _} = Started = started(Dir),
    File = file(Dir, 6),
    #{status := 0, said := #{<<"up">> := Six, <<"phases">> := Phases}} = atoll(Network, Dir, ["apply", File]),
    Names = fun(Up) -> [binary_to_list(Node) || Node <- Up] end,
    ?assertEqual([lists:concat(["f", Host, "@", address(Host)]) || Host <- ?HOSTS], Names(Six)),
    ct:pal("phases ~p", [Phases]),
    %% The wire is in the way.
    [#{<<"connect_ms">> := Far}] = [Of || #{<<"host">> := Host} = Of <- Phases, binary_to_list(Host) =:= address(5)],
    ?assert(Far >= 3 * ?RTT_MS),
    Eye = eye(Network),
    connected(Eye, Names(Six)),
    #{status := 0, said := #{<<"up">> := Twelve, <<"done">> := 6}} = atoll(Network, Dir, ["scale", "f", "12"]),
    ?assertEqual(12, length(lists:usort(Twelve))),
    connected(Eye, Names(Twelve)),
    #{status := 0, said := #{<<"up">> := Four, <<"done">> := 8}} = atoll(Network, Dir, ["scale", "f", "4"]),
    ?assertEqual(["f1@", "f2@", "f3@", "f4@"], [lists:sublist(Node, 3) || Node <- Names(Four)]),
    Client = atoll_deploy_probe:ask(Eye, Names(Four)),
    #{status := 0, said := #{<<"done">> := 4}} = atoll(Network, Dir, ["roll", "f", "two"]),
    Rounds = atoll_deploy_probe:asked({Eye, Client}),
    ?assert(length(Rounds) > 20),
    %% Beyond the one that is just restarted no answer fails, and each is restarted once.
    ?assertEqual([], [Round || Round <- Rounds, length([Node || {Node, failed} <- Round]) > 1]),
    [
        begin
            Answers = [Answer || Round <- Rounds, {Is, Answer} <- Round, Is =:= list_to_atom(Node)],
            ?assertMatch({Node, [<<"1">>, <<"failed">>, <<"2">>]}, {Node, runs([unicode:characters_to_binary(io_lib:format("~ts", [Answer])) || Answer <- Answers])})
        end
     || Node <- Names(Four)
    ],
    ok = peer:stop(Eye),
    #{status := 0} = atoll(Network, Dir, ["terminate", "f"]),
    ?assertEqual([], left(Network, Dir)),
    stopped(Started).

%% Equal ones that follow each other are one.
runs([One, One | More]) -> runs([One | More]);
runs([One | More]) -> [One | runs(More)];
runs([]) -> [].

%% The watch is on the master's host, and watches a node there. The archive of the release is sent.
five_steps_over_http_end_with_six_nodes(Config) ->
    Dir = ?config(dir, Config),
    {Network, _} = Started = started(Dir),
    Eye = eye(Network),
    ok = peer:call(Eye, code, add_pathsz, [[Path || Path <- code:get_path(), Path =/= "."]]),
    _ = atoll_deploy_probe:things(Dir, #{}, #{}),
    Cookie = filename:join(Dir, "cookie"),
    Data = filename:join(Dir, "watch"),
    Watch = program(Network, Dir, "watch.sh", [
        "watch", "--node", atom_to_list(peer:call(Eye, erlang, node, [])), "--cookie-file", Cookie, "--port", "8099", "--data", Data, "--deployments", filename:join(Dir, "state")
    ]),
    _ = atoll_cli_os:await_line(Watch, stdout, <<"Ctrl-C ends it">>),
    {ok, Token} = file:read_file(filename:join(Data, "token")),
    Ask = fun(Method, Path, Body) ->
        Headers = [atoll_watch_web:bearer(#{token => string:trim(Token), port => 8099}), {"Content-Type", "application/json"}],
        Request = #{method => Method, path => ["/api/v1/deploy" | Path], headers => Headers},
        peer:call(Eye, atoll_watch_web, raw, [case Body of none -> Request; _ -> Request#{body => Body} end, #{port => 8099, token => <<>>}], 60000)
    end,
    Post = fun(Path, Object) -> Ask("POST", Path, iolist_to_binary(atoll_cli_json:encode(Object))) end,
    Tar = filename:join(Dir, "one.tar.gz"),
    ok = erl_tar:create(Tar, [{Name, filename:join([Dir, "release-1", Name])} || Name <- ["probe.beam", "probe.app"]], [compressed]),
    {ok, Archive} = file:read_file(Tar),
    Sum = string:lowercase(binary:encode_hex(crypto:hash(sha256, Archive))),
    {201, _, _} = Ask("PUT", ["/archive/", Sum], Archive),
    Text = fun unicode:characters_to_binary/1,
    [
        ?assertMatch({Kind, {201, _, _}}, {Kind, Post(["/", Kind], {[{name, Name}, {settings, {Settings}}]})})
     || {Kind, Name, Settings} <- [
            {"provider", <<"lab">>, [{driver, <<"ssh">>}, {ssh_dir, Text(filename:join(Dir, "ssh"))}]},
            {"release", <<"one">>, [{sha256, Sum}, {apps, [<<"probe">>]}]},
            {"domain", <<"rack">>, [{provider, <<"lab">>}, {hosts, [Text(address(Host)) || Host <- ?HOSTS]}, {user, Text(atoll_deploy_sshd:user())}]},
            {"family", <<"f">>, [{release, <<"one">>}, {domains, [<<"rack">>]}, {cookie_file, Text(Cookie)}, {flags, [<<"+S">>, <<"1:1">>]}, {seconds, 60}]}
        ]
    ],
    Over = fun() ->
        {200, _, #{<<"operation">> := #{<<"state">> := State}}} = Ask("GET", "", none),
        State =/= <<"running">>
    end,
    {202, _, _} = Post("/family/f/run", {[{count, 6}]}),
    ok = atoll_deploy_probe:await(run, Over),
    {200, _, #{<<"nodes">> := Nodes, <<"operation">> := #{<<"error">> := null, <<"done">> := 6}}} = Ask("GET", "", none),
    Names = [lists:concat(["f", Host, "@", address(Host)]) || Host <- ?HOSTS],
    ?assertEqual([{Name, <<"up">>} || Name <- Names], [{binary_to_list(Node), State} || #{<<"node">> := Node, <<"state">> := State} <- Nodes]),
    connected(Eye, Names),
    {202, _, _} = Post("/family/f/terminate", {[]}),
    ok = atoll_deploy_probe:await(terminated, Over),
    {200, _, #{<<"nodes">> := []}} = Ask("GET", "", none),
    ?assertEqual([], left(Network, Dir)),
    ok = peer:stop(Eye),
    stopped(Started).

hosts_that_refuse_are_named_and_the_others_go_on(Config) ->
    Dir = ?config(dir, Config),
    {Network, _} = Started = started(Dir),
    "" = within(Network, 3, Dir, "mkdir ~/.atoll-deploy && mount -t tmpfs -o size=1m tmpfs ~/.atoll-deploy"),
    ok = known(Dir, [5]),
    "" = within(Network, 6, Dir, ["kill $(cat ", pid_file(Dir, 6), ")"]),
    ok = atoll_deploy_probe:await(gone, fun() -> not filelib:is_regular(pid_file(Dir, 6)) end),
    File = file(Dir, 6),
    #{status := 1, said := #{<<"up">> := Up, <<"failed">> := Failed}} = atoll(Network, Dir, ["apply", File]),
    ?assertEqual([<<"f1@">>, <<"f2@">>, <<"f4@">>], [binary:part(Node, 0, 3) || Node <- Up], Failed),
    Whys = [{binary:part(Node, 0, 2), Why} || #{<<"node">> := Node, <<"why">> := Why} <- Failed],
    [
        ?assertMatch({_, {match, _}}, {Whys, re:run(proplists:get_value(Node, Whys, <<>>), Said)})
     || {Node, Said} <- [
            {<<"f3">>, "^the host 10\\.71\\.0\\.3: the release could not be uploaded: the disk is full: [0-9]+ KB are free, and it has [0-9]+ KB$"},
            {<<"f5">>, "^the host 10\\.71\\.0\\.5: its key is another than in .*/known_hosts, so it was not spoken to$"},
            {<<"f6">>, "^the host 10\\.71\\.0\\.6: nothing listens for ssh there$"}
        ]
    ],
    %% They are well again.
    "" = within(Network, 3, Dir, "umount ~/.atoll-deploy"),
    ok = known(Dir, []),
    ok = serve(Network, 6, Dir),
    #{status := 0, said := #{<<"up">> := [_, _, _, _, _, _], <<"done">> := 3}} = atoll(Network, Dir, ["run", "f"]),
    Eye = eye(Network),
    connected(Eye, [lists:concat(["f", Host, "@", address(Host)]) || Host <- ?HOSTS]),
    ok = peer:stop(Eye),
    #{status := 0} = atoll(Network, Dir, ["terminate", "f"]),
    ?assertEqual([], left(Network, Dir)),
    stopped(Started).
