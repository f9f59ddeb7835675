%% SPDX-License-Identifier: Apache-2.0
%% What docs/howto-phoenix.md says of Kubernetes is so: the manifest is valid, the page and it say the same, and nodes with the
%% names and the settings that stand there find each other by a real DNS server, in a network of their own.
-module(atoll_cli_kubernetes_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    the_page_and_the_manifest_say_the_same/1,
    the_manifest_is_valid/1,
    nodes_of_a_stateful_set_find_each_other_by_dns/1
]).

-define(DEADLINE_MS, 90000).
-define(SERVICE, "reef.default.svc.cluster.local").

suite() -> [{timetrap, {minutes, 8}}].

all() -> [the_page_and_the_manifest_say_the_same | deep(atoll_tier:tier())].

deep(fast) -> [];
deep(deep) -> [the_manifest_is_valid, nodes_of_a_stateful_set_find_each_other_by_dns].

init_per_testcase(the_page_and_the_manifest_say_the_same, Config) ->
    Config;
init_per_testcase(the_manifest_is_valid, Config) ->
    [{dir, atoll_cli_os:new_dir()} | Config];
init_per_testcase(nodes_of_a_stateful_set_find_each_other_by_dns, Config) ->
    case atoll_cli_pods:available(["elixir"]) of
        ok -> [{dir, atoll_cli_os:new_dir()} | Config];
        Skip -> Skip
    end.

end_per_testcase(_Case, Config) ->
    case proplists:lookup(dir, Config) of
        {dir, Dir} -> atoll_cli_reader:take_down(Dir);
        none -> ok
    end.

manifest() -> atoll_cli_page:read("docs/examples/kubernetes/reef.yaml").

shown(Language, Part) ->
    [Text] = [Text || {shown, L, Text} <- atoll_cli_page:steps(atoll_cli_page:read("docs/howto-phoenix.md")),
                      L =:= Language, binary:match(Text, Part) =/= nomatch],
    Text.

flags() -> string:lexemes(binary_to_list(shown(<<"text">>, <<"-connect_all">>)), " \n").

the_page_and_the_manifest_say_the_same(_Config) ->
    Manifest = manifest(),
    ["-connect_all", "false", "-start_epmd", "false", "-erl_epmd_port", Port] = flags(),
    Says = fun(Text, Times) -> ?assertEqual({Text, Times}, {Text, length(binary:matches(Manifest, iolist_to_binary(Text)))}) end,
    Says(["{name: dist, port: ", Port, "}"], 1),
    Says(["{name: dist, containerPort: ", Port, "}"], 1),
    Says("serviceName: reef", 1),
    Says("clusterIP: None", 1),
    Says("publishNotReadyAddresses: true", 1),
    [Says([Probe, "Probe:\n            httpGet: {path: /health, port: http}"], 1) || Probe <- ["startup", "readiness", "liveness"]],
    %% What the node is named by, the manifest sets.
    {match, Variables} = re:run(shown(<<"text">>, <<"RELEASE_NODE">>), "\\$([A-Z_]+)", [global, {capture, [1], binary}]),
    [Says(["- name: ", Variable, "\n"], 1) || [Variable] <- Variables],
    ?assertMatch({_, _}, binary:match(shown(<<"elixir">>, <<"System.get_env">>), <<"~c\"_dist._tcp.reef.#{namespace}.svc.cluster.local\"">>)),
    %% What talks to a node that runs goes to the same port, and does not listen there.
    ?assertMatch({_, _}, binary:match(shown(<<"text">>, <<"-dist_listen false">>), iolist_to_binary(["-erl_epmd_port ", Port]))).

the_manifest_is_valid(Config) ->
    Dir = ?config(dir, Config),
    Home = os:getenv("HOME"),
    Check = fun(File) ->
        Command = "HOME=" ++ Home ++ " exec " ++ filename:join([atoll_cli_os:root(), "scripts", "check-kubernetes"]) ++ " " ++ File,
        atoll_cli_os:await_exit(atoll_cli_os:start(Dir, {sh, Command}, Dir), 300000)
    end,
    case Check(filename:join([atoll_cli_os:root(), "docs", "examples", "kubernetes", "reef.yaml"])) of
        #{status := 3, stderr := Why} -> {skip, "kubernetes-validate cannot be had: " ++ binary_to_list(Why)};
        #{status := Status} = Ended ->
            ?assertEqual(0, Status, Ended),
            %% It would find a key that there is not.
            Wrong = filename:join(Dir, "wrong.yaml"),
            ok = file:write_file(Wrong, binary:replace(manifest(), <<"podManagementPolicy">>, <<"podManagmentPolicy">>)),
            ?assertMatch(#{status := 1}, Check(Wrong))
    end.

%% Three pods of the StatefulSet: two that start together, one that comes when the set is scaled up; then one is stopped.
nodes_of_a_stateful_set_find_each_other_by_dns(Config) ->
    Dir = ?config(dir, Config),
    Network = atoll_cli_pods:network(3, Dir),
    Settings = settings(Dir),
    Dns = dns([0, 1], Network, Dir),
    [First, Second] = [pod(N, Network, Settings, Dir) || N <- [0, 1]],
    [told(Pod, [0, 1]) || Pod <- [First, Second]],
    %% Scaled up: the records change, and nobody is told so.
    ok = atoll_cli_os:signal(Dns, "TERM"),
    _ = atoll_cli_os:await_exit(Dns, ?DEADLINE_MS),
    _ = dns([0, 1, 2], Network, Dir),
    Third = pod(2, Network, Settings, Dir),
    [told(Pod, [0, 1, 2]) || Pod <- [First, Second, Third]],
    %% A pod that goes leaves, though its record is still there.
    ok = atoll_cli_os:signal(Second, "TERM"),
    Gone = ["gone left reef@", host(1), "\n", members([0, 2])],
    [atoll_cli_os:await_line(Pod, stdout, iolist_to_binary(Gone)) || Pod <- [First, Third]].

host(N) -> atoll_cli_pods:host(N, ?SERVICE).

dns(Pods, Network, Dir) -> atoll_cli_pods:dns(Pods, {?SERVICE, 9100}, Network, Dir).

%% What stands in config/runtime.exs, as a node reads it.
settings(Dir) ->
    ok = file:write_file(filename:join(Dir, "runtime.exs"), shown(<<"elixir">>, <<"_dist._tcp">>)),
    Said = atoll_cli_os:await_exit(atoll_cli_os:start(Dir, {sh,
        "exec elixir -e ':io.format(\"~tp.~n\", [Config.Reader.read!(\"runtime.exs\")])'"}, Dir), ?DEADLINE_MS),
    #{status := 0, stdout := Text} = Said,
    File = filename:join(Dir, "sys"),
    ok = file:write_file(File ++ ".config", Text),
    File.

%% A node that says what members it knows whenever that changes. It listens on its pod's address.
pod(N, Network, Settings, Dir) ->
    Tell = "ok=atoll:subscribe([member_up,member_down]),"
        "S=fun S()->io:format(\"members~ts~n\",[[[32,atom_to_list(M)]||M<-atoll:members()]]),"
        "receive {atoll,member_down,#{node:=D,reason:=R}}->io:format(\"gone ~w ~ts~n\",[R,atom_to_list(D)]);{atoll,_,_}->ok end,S() end,S().",
    Address = io_lib:format("~0p", [atoll_cli_pods:address(N)]),
    atoll_cli_pods:within(Network, [
        "erl -noinput -name reef@", host(N), " -setcookie reef ", lists:join(" ", flags()),
        " -kernel inet_dist_use_interface '", Address, "' -config ", Settings,
        " -pa ", filename:dirname(code:which(atoll)), " -eval '{ok,_}=application:ensure_all_started(atoll),", Tell, "'"
    ], Dir).

told(Pod, Pods) -> atoll_cli_os:await_line(Pod, stdout, iolist_to_binary(members(Pods))).

members(Pods) -> [lists:join(" ", ["members" | ["reef@" ++ host(N) || N <- Pods]]), "\n"].
