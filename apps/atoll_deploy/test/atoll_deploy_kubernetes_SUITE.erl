%% SPDX-License-Identifier: Apache-2.0
%% Families on Kubernetes, without a cluster: what kubectl is told, what a validator and kubectl itself say of the manifests, and
%% that nodes find each other with the environment and the records which the manifests make.
-module(atoll_deploy_kubernetes_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    kubectl_is_told_what_a_family_is/1,
    manifests_are_valid/1,
    kubectl_itself_takes_the_manifests/1,
    nodes_find_each_other_by_the_records_of_their_service/1
]).

-define(MS, 90000).

suite() -> [{timetrap, {minutes, 8}}].

all() ->
    [kubectl_is_told_what_a_family_is] ++
        [
            Case
         || atoll_tier:tier() =:= deep,
            Case <- [manifests_are_valid, kubectl_itself_takes_the_manifests, nodes_find_each_other_by_the_records_of_their_service]
        ].

init_per_testcase(Case, Config) ->
    Can = case Case of
        kubectl_itself_takes_the_manifests ->
            case os:find_executable("kubectl") of
                false -> {skip, "not installed: kubectl (Debian: kubernetes-client)"};
                _ -> ok
            end;
        nodes_find_each_other_by_the_records_of_their_service -> atoll_cli_pods:available([]);
        _ -> ok
    end,
    case Can of
        ok ->
            Dir = atoll_cli_os:new_dir(),
            [{dir, Dir}, {state, filename:join(Dir, "state")} | Config];
        Skip ->
            Skip
    end.

end_per_testcase(_, Config) ->
    Dir = ?config(dir, Config),
    [ok = atoll_cli_os:signal(Pid, "KILL") || {Pid, _} <- atoll_cli_os:left(Dir)],
    atoll_deploy_probe:ended(?config(state, Config), Dir).

%% A program in the place of kubectl, with a cluster that does at once what it is told.
-define(KUBECTL, "
echo \"$*\" >>DIR/calls
while case $1 in --*) true ;; *) false ;; esac; do shift 2; done
case $1 in
apply) cat >DIR/applied ;;
get)
    case $2 in *secret*) [ ! -e DIR/foreign ] || echo \"Service helm\"; exit 0 ;; esac
    [ -e DIR/applied ] || { echo 'No resources found in sea namespace.'; exit 0; }
    count=$(grep -o '\"replicas\":[0-9]*' DIR/applied | cut -d: -f2) release=$(grep -o '\"release\":\"[a-z]*' DIR/applied | cut -d'\"' -f4) n=0
    while [ \"$n\" -lt \"$count\" ]; do
        well='true machine' why='<none>'
        [ \"$release\" != \"$(cat DIR/bad 2>/dev/null)\" ] || well='false machine' why=CrashLoopBackOff
        echo \"reef-$n Running $well $release $why\"
        n=$((n + 1))
    done ;;
logs) echo \"$2 says this\" ;;
delete) [ \"$2\" = pod ] || rm DIR/applied ;;
esac
").

kubectl_is_told_what_a_family_is(Config) ->
    Dir = ?config(dir, Config),
    Program = filename:join(Dir, "kubectl"),
    ok = file:write_file(Program, ["#!/bin/sh\n", string:replace(?KUBECTL, "DIR", Dir, all)]),
    ok = file:change_mode(Program, 8#700),
    Deployment = reef(Config, #{kubectl => Program, context => "sea-side"}),
    {ok, Steps} = atoll_deploy:plan(Deployment, "reef", 2),
    ?assertEqual(["reef-0", "reef-1"], [Node || {start, #{node := Node}} <- Steps]),
    Run = fun(N) -> atoll_deploy:run(Deployment, "reef", N, fun(_, _) -> ok end) end,
    %% What is there and is not ours stays.
    ok = file:write_file(filename:join(Dir, "foreign"), ""),
    {error, Foreign} = Run(2),
    ?assertEqual("The namespace sea has a Service reef already, which this program has not made.", lists:flatten(Foreign)),
    ?assertNot(filelib:is_file(filename:join(Dir, "applied"))),
    ok = file:delete(filename:join(Dir, "foreign")),
    ?assertMatch({ok, #{nodes := []}}, atoll_deploy:status(Deployment, "reef")),
    ?assertMatch({ok, #{up := ["reef-0", "reef-1"], failed := []}}, Run(2)),
    ?assertMatch({ok, #{up := [_, _, _], failed := []}}, Run(3)),
    {ok, Cookie} = file:read_file(filename:join([?config(state, Config), "cookies", "reef"])),
    {ok, Applied} = file:read_file(filename:join(Dir, "applied")),
    ?assertMatch({_, _}, binary:match(Applied, base64:encode(Cookie))),
    %% One that does not get well is not waited for when the old one is to be back.
    ok = file:write_file(filename:join(Dir, "bad"), "two"),
    ?assertMatch({back, ["reef-0", ": ", "CrashLoopBackOff"], #{up := [_, _, _], failed := []}}, atoll_deploy:roll(Deployment, "reef", {"two", 1}, fun(_, _) -> ok end)),
    ?assertMatch({ok, #{nodes := [#{release := "one", state := up} | _]}}, atoll_deploy:status(Deployment, "reef")),
    ok = file:delete(filename:join(Dir, "bad")),
    ?assertMatch({ok, #{up := [_, _, _]}}, atoll_deploy:roll(Deployment, "reef", {"two", 1}, fun(_, _) -> ok end)),
    {ok, #{wanted := 3, nodes := [#{release := "two", state := up} | _]}} = atoll_deploy:status(Deployment, "reef"),
    ?assertEqual({ok, [<<"reef-1 says this">>]}, atoll_deploy:log(Deployment, {"reef", "reef-1"}, 10)),
    ?assertMatch({ok, #{failed := []}}, atoll_deploy:terminate(Deployment, "reef", fun(_, _) -> ok end)),
    {ok, Calls} = file:read_file(filename:join(Dir, "calls")),
    ?assertEqual(nomatch, binary:match(Calls, [Cookie, base64:encode(Cookie)])),
    [?assertMatch({match, _}, re:run(Line, "^--namespace sea --context sea-side ")) || Line <- binary:split(Calls, <<"\n">>, [global, trim])],
    ?assertMatch({match, _}, re:run(Calls, "delete pod --ignore-not-found --wait=false reef-0 reef-1 reef-2\n")),
    ?assertMatch({match, _}, re:run(Calls, "rollout status statefulset/reef --timeout=30s\n")),
    ?assertMatch({match, _}, re:run(Calls, "rollout status statefulset/reef --timeout=180s\n")),
    ?assertMatch({match, _}, re:run(Calls, "delete statefulset,service,secret -l app=reef,app.kubernetes.io/managed-by=atoll ")),
    ok = atoll_deploy:put(Deployment, provider, "k", #{driver => kubernetes, kubectl => "no-such-kubectl"}),
    {error, Sentence} = Run(1),
    ?assertEqual("There is no program no-such-kubectl here, which Kubernetes is spoken to with.", lists:flatten(Sentence)),
    ok = atoll_deploy_store:write(Deployment, [{{family, "reef"}, delete}]),
    ok = atoll_deploy:close(Deployment).

reef(Config, Provider) ->
    atoll_deploy_probe:opened(?config(state, Config), [
        {provider, "k", Provider#{driver => kubernetes, namespace => "sea"}},
        {release, "one", #{image => "registry.example.com/reef:1", start => "bin/reef start", stop => "bin/reef stop", health => "bin/reef ping"}},
        {release, "two", #{image => "registry.example.com/reef:2"}},
        {domain, "sea", #{provider => "k"}},
        {family, "reef", #{release => "one", domains => ["sea"], flags => ["+S", "1:1"], needs => #{cores => 1, memory_mb => 256}}}
    ]).

%% Against the schemas of Kubernetes: a wrong key would be found.
manifests_are_valid(Config) ->
    Dir = ?config(dir, Config),
    Objects = manifest(Config, 3),
    Check = fun(Name, Text) ->
        File = filename:join(Dir, Name ++ ".json"),
        ok = file:write_file(File, Text),
        Command = "HOME=" ++ os:getenv("HOME") ++ " exec " ++ filename:join([atoll_cli_os:root(), "scripts", "check-kubernetes"]) ++ " " ++ File,
        maps:get(status, atoll_cli_os:await_exit(atoll_cli_os:start(Dir, {sh, Command}, Dir), 300000))
    end,
    Texts = [iolist_to_binary(atoll_cli_json:encode(Object)) || Object <- Objects],
    case Check("first", hd(Texts)) of
        3 -> {skip, "kubernetes-validate cannot be had"};
        0 ->
            ?assertEqual([0, 0], [Check("more", Text) || Text <- tl(Texts)]),
            ?assertEqual(1, Check("wrong", binary:replace(lists:last(Texts), <<"podManagementPolicy">>, <<"podManagmentPolicy">>)))
    end.

%% The objects of the family, and then without it.
manifest(Config, Count) ->
    Deployment = reef(Config, #{}),
    {ok, Objects} = atoll_deploy:manifest(Deployment, "reef", Count),
    ok = atoll_deploy_store:write(Deployment, [{{family, "reef"}, delete}]),
    ok = atoll_deploy:close(Deployment),
    Objects.

%% Whether kubectl knows all that is there, and would create it. What it asks of a cluster is which kinds of objects there are.
kubectl_itself_takes_the_manifests(Config) ->
    Dir = ?config(dir, Config),
    Text = iolist_to_binary(atoll_deploy_kubernetes:text(manifest(Config, 3))),
    {ok, Listen} = gen_tcp:listen(0, [binary, {ip, {127, 0, 0, 1}}, {packet, http_bin}, {active, false}, {reuseaddr, true}]),
    {ok, Port} = inet:port(Listen),
    Cluster = spawn_link(fun() -> answering(Listen) end),
    Apply = fun(Name, Given) ->
        File = filename:join(Dir, Name),
        ok = file:write_file(File, Given),
        Line = lists:concat(["exec kubectl --server http://127.0.0.1:", Port, " --namespace sea apply --dry-run=client --validate=false -f ", File]),
        atoll_cli_os:await_exit(atoll_cli_os:start(Dir, {sh, Line}, Dir), ?MS)
    end,
    #{status := 0, stdout := Said} = Apply("reef.json", Text),
    ?assertEqual([<<"secret/reef created (dry run)">>, <<"service/reef created (dry run)">>, <<"statefulset.apps/reef created (dry run)">>], binary:split(Said, <<"\n">>, [global, trim])),
    ?assertMatch(#{status := 1}, Apply("wrong.json", binary:replace(Text, <<"StatefulSet">>, <<"StatefulSett">>))),
    true = unlink(Cluster),
    true = exit(Cluster, kill),
    ok = gen_tcp:close(Listen).

answering(Listen) ->
    {ok, Socket} = gen_tcp:accept(Listen),
    {ok, {http_request, _, {abs_path, Path}, _}} = gen_tcp:recv(Socket, 0, ?MS),
    ok = inet:setopts(Socket, [{packet, raw}]),
    {Status, Object} = kinds(hd(binary:split(Path, <<"?">>))),
    Body = iolist_to_binary(atoll_cli_json:encode(Object)),
    ok = gen_tcp:send(Socket, ["HTTP/1.1 ", Status, "\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: ", integer_to_list(byte_size(Body)), "\r\n\r\n", Body]),
    ok = gen_tcp:shutdown(Socket, write),
    _ = gen_tcp:recv(Socket, 0, ?MS),
    answering(Listen).

kinds(<<"/api">>) -> {"200 OK", {[{kind, <<"APIVersions">>}, {versions, [<<"v1">>]}]}};
kinds(<<"/apis">>) ->
    Version = {[{groupVersion, <<"apps/v1">>}, {version, <<"v1">>}]},
    {"200 OK", {[{kind, <<"APIGroupList">>}, {apiVersion, <<"v1">>}, {groups, [{[{name, <<"apps">>}, {versions, [Version]}, {preferredVersion, Version}]}]}]}};
kinds(<<"/api/v1">>) -> {"200 OK", resources(<<"v1">>, [{<<"secrets">>, <<"Secret">>}, {<<"services">>, <<"Service">>}])};
kinds(<<"/apis/apps/v1">>) -> {"200 OK", resources(<<"apps/v1">>, [{<<"statefulsets">>, <<"StatefulSet">>}])};
kinds(_) -> {"404 Not Found", {[{kind, <<"Status">>}, {apiVersion, <<"v1">>}, {status, <<"Failure">>}, {reason, <<"NotFound">>}, {code, 404}]}}.

resources(Version, Kinds) ->
    {[{kind, <<"APIResourceList">>}, {apiVersion, <<"v1">>}, {groupVersion, Version}, {resources, [
        {[{name, Name}, {namespaced, true}, {kind, Kind}, {verbs, [<<"get">>, <<"create">>, <<"patch">>]}]}
     || {Name, Kind} <- Kinds
    ]}]}.

%% Two pods that start together, and one that comes when the set is scaled up. Of the manifests are the names, the ports, the
%% command and the environment of each container.
nodes_find_each_other_by_the_records_of_their_service(Config) ->
    Dir = ?config(dir, Config),
    Objects = [maps:from_list(Pairs) || {Pairs} <- manifest(Config, 3)],
    [#{metadata := {Metadata}, spec := {Service}}] = [Object || #{kind := <<"Service">>} = Object <- Objects],
    [#{spec := {Set}}] = [Object || #{kind := <<"StatefulSet">>} = Object <- Objects],
    [{Port}] = proplists:get_value(ports, Service),
    <<"dist">> = proplists:get_value(name, Port),
    true = proplists:get_value(publishNotReadyAddresses, Service),
    Name = proplists:get_value(name, Metadata),
    Name = proplists:get_value(serviceName, Set),
    Records = {binary_to_list(<<Name/binary, ".", (proplists:get_value(namespace, Metadata))/binary, ".svc.cluster.local">>), proplists:get_value(port, Port)},
    {Template} = proplists:get_value(template, Set),
    {Pod} = proplists:get_value(spec, Template),
    [{Container}] = proplists:get_value(containers, Pod),
    Network = atoll_cli_pods:network(3, Dir),
    Dns = atoll_cli_pods:dns([0, 1], Records, Network, Dir),
    Two = [pod(N, Container, Records, Network, Dir) || N <- [0, 1]],
    [told(Node, [0, 1], Records) || Node <- Two],
    ok = atoll_cli_os:signal(Dns, "TERM"),
    _ = atoll_cli_os:await_exit(Dns, ?MS),
    _ = atoll_cli_pods:dns([0, 1, 2], Records, Network, Dir),
    Third = pod(2, Container, Records, Network, Dir),
    [told(Node, [0, 1, 2], Records) || Node <- [Third | Two]].

%% A container with what Kubernetes puts in the place of names and secrets. Its command is the release's; what stands in the image is
%% here a shell script.
pod(N, Container, {Service, _}, Network, Dir) ->
    Name = hd(string:split(atoll_cli_pods:host(N, Service), ".")),
    Env = [
        case maps:from_list(Variable) of
            #{name := Key, value := Value} -> {Key, string:replace(Value, "$(POD_NAME)", Name, all)};
            #{name := <<"POD_NAME">>} -> {<<"POD_NAME">>, Name};
            #{name := Key} -> {Key, "hush-hush-cookie"}
        end
     || {Variable} <- proplists:get_value(env, Container)
    ],
    [<<"/bin/sh">>, <<"-c">>, <<"bin/reef start">>] = proplists:get_value(command, Container),
    At = filename:join(Dir, Name),
    Tell = "ok=atoll:subscribe([member_up,member_down]),"
        "S=fun S()->io:format(\"members~ts~n\",[[[32,atom_to_list(M)]||M<-atoll:members()]]),receive {atoll,_,_}->S() end end,S().",
    ok = filelib:ensure_path(filename:join(At, "bin")),
    ok = file:write_file(filename:join([At, "bin", "reef"]), [
        "#!/bin/sh\nexec erl -noinput -name \"$ATOLL_NODE\" -setcookie \"$ATOLL_COOKIE\" $ATOLL_FLAGS -connect_all false -atoll overlay hyparview",
        io_lib:format(" -kernel inet_dist_use_interface '~0p'", [atoll_cli_pods:address(N)]), " -pa ", filename:dirname(code:which(atoll)),
        " -eval '{ok,_}=application:ensure_all_started(atoll),", Tell, "'\n"
    ]),
    ok = file:change_mode(filename:join([At, "bin", "reef"]), 8#755),
    ok = file:write_file(filename:join(At, "pod.sh"), [
        "cd ", At, "\n", [["export ", Key, "='", string:replace(Value, "'", "'\\''", all), "'\n"] || {Key, Value} <- Env], "exec /bin/sh -c 'bin/reef start'\n"
    ]),
    atoll_cli_pods:within(Network, ["sh ", At, "/pod.sh"], Dir).

told(Node, Pods, {Service, _}) ->
    atoll_cli_os:await_line(Node, stdout, iolist_to_binary([lists:join(" ", ["members" | ["reef@" ++ atoll_cli_pods:host(N, Service) || N <- Pods]]), "\n"])).
