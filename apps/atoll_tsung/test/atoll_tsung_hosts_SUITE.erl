%% SPDX-License-Identifier: Apache-2.0
%% Tsung's clients on hosts of their own, which it reaches by a real ssh ({@link atoll_cli_network}), with keys that are made here. The
%% hosts have Erlang and Tsung, and nothing of ours. It is of the deep tier, and skipped where something is not installed.
-module(atoll_tsung_hosts_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    users_on_two_hosts_call_a_third_and_nothing_is_left_there/1,
    clients_on_other_hosts_end_when_the_run_is_killed/1,
    a_host_that_is_not_known_is_a_sentence/1
]).

%% The controller's, those of the clients, and that of the node which is called.
-define(CONTROLLER, 1).
-define(CLIENTS, [2, 3]).
-define(CALLED, 4).
-define(P, atoll_tsung_probe).
-define(SSHD, "/usr/sbin/sshd").
-define(MS, 60000).
-define(GONE_MS, 5000).

suite() -> [{timetrap, {minutes, 5}}].

all() ->
    case atoll_tier:tier() of
        fast -> [];
        deep -> [users_on_two_hosts_call_a_third_and_nothing_is_left_there, clients_on_other_hosts_end_when_the_run_is_killed, a_host_that_is_not_known_is_a_sentence]
    end.

init_per_suite(Config) ->
    Lacking = [Program || Program <- ["ssh", "ssh-keygen", ?SSHD], os:find_executable(Program) =:= false],
    case {atoll_tsung:version(), Lacking, atoll_cli_network:can()} of
        {{ok, _}, [], ok} -> Config;
        {{error, Sentence}, _, _} -> {skip, lists:flatten(Sentence)};
        {_, [_ | _], _} -> {skip, "ssh is not installed (openssh-client and openssh-server of Debian)"};
        {_, [], {skip, _} = Skip} -> Skip
    end.

end_per_suite(_) -> ok.

init_per_testcase(_, Config) ->
    Dir = atoll_cli_os:new_dir(),
    Network = atoll_cli_network:start([[?CONTROLLER, ?CALLED | ?CLIENTS]]),
    Here = [{dir, Dir}, {network, Network} | Config],
    ok = filelib:ensure_path(filename:join(Dir, "run")),
    ok = keys(Dir),
    _ = [ok = on(Here, Host, "epmd -daemon") || Host <- [?CONTROLLER, ?CALLED]],
    _ = [ok = serves(Here, Host) || Host <- ?CLIENTS],
    Here.

end_per_testcase(_, Config) ->
    ok = atoll_cli_network:stop(?config(network, Config)),
    ok = atoll_cli_os:remove_dir(?config(dir, Config)).

%% Runs a shell's line on a host to its end. What it leaves there does not hold its output.
on(Config, Host, Line) ->
    [Program | Args] = atoll_cli_network:shell(?config(network, Config), Host, "(" ++ Line ++ ") </dev/null >/dev/null 2>&1"),
    atoll_cluster_program:run(Program, Args, ?MS).

%% Of the user, and of all hosts; and the program in ssh's place, which has ssh take these and no others.
keys(Dir) ->
    In = fun(Name) -> filename:join(Dir, Name) end,
    _ = [ok = atoll_cluster_program:run(os:find_executable("ssh-keygen"), ["-q", "-t", "ed25519", "-N", "", "-C", "", "-f", In(Name)], ?MS) || Name <- ["user", "host"]],
    {ok, HostKey} = file:read_file(In("host.pub")),
    Known = lists:join($,, [atoll_cli_network:address(Host) || Host <- ?CLIENTS]),
    ok = file:write_file(In("known"), [Known, $\s, HostKey]),
    ok = file:write_file(In("none"), ""),
    _ = [ok = program(In(Name), ssh(In, KnownFile)) || {Name, KnownFile} <- [{"ssh", "known"}, {"ssh_of_strangers", "none"}]],
    ok.

ssh(In, Known) ->
    [
        "#!/bin/sh\nexec ssh -F /dev/null -i ", In("user"), " -o IdentitiesOnly=yes -o BatchMode=yes -o StrictHostKeyChecking=yes",
        " -o GlobalKnownHostsFile=/dev/null -o UserKnownHostsFile=", In(Known), " \"$@\"\n"
    ].

program(File, Text) ->
    ok = file:write_file(File, Text),
    file:change_mode(File, 8#700).

%% A real sshd, on a host that has nothing of ours: what is built and where a run is kept are empty there.
serves(Config, Host) ->
    Dir = ?config(dir, Config),
    In = fun(Name) -> filename:join(Dir, Name) end,
    Conf = In(lists:concat(["sshd", Host, ".conf"])),
    %% Its port mapper has the port of all of this test's.
    Port = [["SetEnv ERL_EPMD_PORT=", Number, $\n] || Number <- [os:getenv("ERL_EPMD_PORT")], Number =/= false],
    ok = file:write_file(Conf, [
        "ListenAddress ", atoll_cli_network:address(Host), "\nHostKey ", In("host"), "\nAuthorizedKeysFile ", In("user.pub"),
        "\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\nPidFile none\n", Port
    ]),
    Empty = ["mount -t tmpfs tmpfs " ++ Place || Place <- ["/run", filename:join(atoll_cli_os:root(), "_build"), In("run")]],
    on(Config, Host, lists:flatten(lists:join(" && ", Empty ++ ["mkdir /run/sshd", ?SSHD ++ " -f " ++ Conf ++ " -E " ++ In(lists:concat(["sshd", Host, ".log"]))]))).

%% A node that counts, on the host of those that are called.
with_node(Config, Fun) ->
    {ok, Address} = inet:parse_ipv4_address(atoll_cli_network:address(?CALLED)),
    Wrap = ["nsenter", "--net=" ++ atoll_cli_network:netns(?config(network, Config), ?CALLED)],
    atoll_cluster:with_cluster(#{nodes => 1, hosts => [#{address => Address, wrap => Wrap}]}, fun(Cluster) ->
        [Node] = atoll_cluster:nodes(Cluster),
        ok = atoll_cluster:call(Cluster, Node, ?P, start, []),
        Fun(Cluster, Node)
    end).

%% A scenario with users on both hosts, and its run as a user would type it on the controller's.
start(Config, Node, Ssh, Plan) ->
    In = fun(Name) -> filename:join(?config(dir, Config), Name) end,
    Text = atoll_tsung_scenario:new(maps:merge(
        #{
            nodes => [Node], module => atom_to_list(?P), function => "count_caller", arguments => "", type => call, rate => 20, seconds => 4,
            requests => 2, think => 0, clients => [atoll_cli_network:address(Host) || Host <- ?CLIENTS]
        },
        Plan
    )),
    ok = file:write_file(In("users.xml"), unicode:characters_to_binary(Text)),
    Line = [
        "cd ", atoll_cli_os:root(), " && exec bin/atoll tsung run ", In("users.xml"), " --address ", atoll_cli_network:address(?CONTROLLER),
        " --ssh ", In(Ssh), " --out ", In("run/out"), " --json"
    ],
    Within = atoll_cli_network:shell(?config(network, Config), ?CONTROLLER, lists:flatten(Line)),
    atoll_cli_os:start(?config(dir, Config), {sh, lists:flatten(["exec", [[" '", Word, "'"] || Word <- Within]])}).

%% Of the emulators of both hosts, whether there are any.
clients_are_gone(Config) -> lists:all(fun(Host) -> on(Config, Host, "! pgrep -x beam.smp") =:= ok end, ?CLIENTS).

users_on_two_hosts_call_a_third_and_nothing_is_left_there(Config) ->
    with_node(Config, fun(Cluster, Node) ->
        #{status := Status, stdout := Json, stderr := Said} = atoll_cli_os:await_exit(start(Config, Node, "ssh", #{}), 3 * ?MS),
        ?assertEqual({0, Said}, {Status, Said}),
        #{<<"rows">> := [#{<<"requests">> := Requests, <<"failed">> := Failed}]} = atoll_cli_os:decode(Json),
        ?assert(Requests > 50 andalso Failed == 0, {Requests, Failed}),
        Callers = atoll_cluster:call(Cluster, Node, ?P, counted, []),
        ?assertEqual(round(Requests), lists:sum([N || {_, N} <- Callers])),
        Hosts = [lists:last(string:split(atom_to_list(Caller), "@")) || {Caller, _} <- Callers],
        ?assertEqual([atoll_cli_network:address(Host) || Host <- ?CLIENTS], lists:usort(Hosts)),
        ok = atoll_cli_os:await(fun() -> clients_are_gone(Config) end, ?GONE_MS)
    end).

clients_on_other_hosts_end_when_the_run_is_killed(Config) ->
    with_node(Config, fun(Cluster, Node) ->
        Program = start(Config, Node, "ssh", #{seconds => 120, requests => 100, think => 1}),
        Both = fun() -> length(atoll_cluster:call(Cluster, Node, ?P, counted, [])) =:= length(?CLIENTS) end,
        ok = atoll_cli_os:await(Both, 3 * ?MS),
        false = clients_are_gone(Config),
        _ = [ok = atoll_cli_os:signal(Pid, "KILL") || {Pid, _} <- atoll_cli_os:left(?config(dir, Config)), atoll_cli_os:is_vm(Pid)],
        _ = atoll_cli_os:await_exit(Program, ?MS),
        ok = atoll_cli_os:await(fun() -> clients_are_gone(Config) end, ?GONE_MS)
    end).

a_host_that_is_not_known_is_a_sentence(Config) ->
    with_node(Config, fun(Cluster, Node) ->
        #{status := 3, stdout := Json} = atoll_cli_os:await_exit(start(Config, Node, "ssh_of_strangers", #{}), 3 * ?MS),
        #{<<"error">> := Why} = atoll_cli_os:decode(Json),
        ?assertMatch({_, _}, binary:match(Why, <<"host key is known for 10.71.0.">>), Why),
        ?assertEqual([], atoll_cluster:call(Cluster, Node, ?P, counted, []))
    end).
