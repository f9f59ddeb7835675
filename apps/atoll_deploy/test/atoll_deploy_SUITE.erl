%% SPDX-License-Identifier: Apache-2.0
%% Families of real nodes on this machine. The way to a host is another one over ssh, and all else is the same.
-module(atoll_deploy_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    n_nodes_are_up_and_connected_and_nothing_is_left/1,
    a_node_that_was_killed_is_started_again/1,
    a_master_that_is_killed_goes_on_to_exactly_n/1,
    a_start_that_fails_leaves_nothing/1,
    a_release_is_rolled_and_goes_back_where_it_is_not_well/1,
    commands_of_a_release_start_and_stop_it/1,
    a_file_is_applied_by_the_command/1,
    no_secret_can_be_seen/1,
    one_program_at_a_time_works_with_a_state/1,
    kubectl_is_told_what_a_family_is/1,
    manifests_are_valid/1,
    time_grows_with_the_nodes_as_that_of_bare_peers/1
]).

suite() -> [{timetrap, {minutes, 5}}].

all() ->
    [
        n_nodes_are_up_and_connected_and_nothing_is_left, a_master_that_is_killed_goes_on_to_exactly_n, a_start_that_fails_leaves_nothing,
        a_release_is_rolled_and_goes_back_where_it_is_not_well, no_secret_can_be_seen, one_program_at_a_time_works_with_a_state,
        kubectl_is_told_what_a_family_is
    ] ++ [
        Case
     || atoll_tier:tier() =:= deep,
        Case <- [
            a_node_that_was_killed_is_started_again, commands_of_a_release_start_and_stop_it, a_file_is_applied_by_the_command,
            manifests_are_valid, time_grows_with_the_nodes_as_that_of_bare_peers
        ]
    ].

init_per_testcase(_, Config) ->
    Dir = atoll_cli_os:new_dir(),
    [{dir, Dir}, {state, filename:join(Dir, "state")} | Config].

end_per_testcase(_, Config) -> atoll_deploy_probe:ended(?config(state, Config), ?config(dir, Config)).

%% A state with all that a family needs.
opened(Config) -> atoll_deploy_probe:opened(?config(state, Config), things(?config(dir, Config))).

things(Dir) -> atoll_deploy_probe:things(Dir, #{driver => local}, #{dir => filename:join(Dir, "host")}).

run(Deployment, Count) -> atoll_deploy:run(Deployment, "f", Count, fun(_, _) -> ok end).

id(Deployment) -> atoll_deploy_store:id(Deployment).

n_nodes_are_up_and_connected_and_nothing_is_left(Config) ->
    Deployment = opened(Config),
    {ok, Steps} = atoll_deploy:plan(Deployment, "f", 2),
    ?assertEqual(["f1@127.0.0.1", "f2@127.0.0.1"], [Node || {start, #{node := Node}} <- Steps]),
    ?assertEqual([], atoll_deploy_probe:marked(id(Deployment))),
    Self = self(),
    {ok, #{up := Up, failed := [], done := 2, phases := #{"127.0.0.1" := Phases}}} = atoll_deploy:run(Deployment, "f", 2, fun(Done, Total) -> Self ! {told, Done, Total} end),
    ?assertEqual(["f1@127.0.0.1", "f2@127.0.0.1"], Up),
    ?assertEqual([connect, nodes, upload], lists:sort(maps:keys(Phases))),
    [receive {told, N, 2} -> ok after 0 -> error({not_told, N}) end || N <- lists:seq(0, 2)],
    Eye = atoll_deploy_probe:eye("hush-hush-cookie"),
    [?assertEqual("1", atoll_deploy_probe:see(Eye, Node, probe, version, [])) || Node <- Up],
    [ok = atoll_deploy_probe:await({connected, Node}, fun() -> length(atoll_deploy_probe:see(Eye, Node, erlang, nodes, [])) =:= 1 end) || Node <- Up],
    %% Again it does nothing; then more, then fewer.
    ?assertMatch({ok, #{done := 0, up := Up}}, run(Deployment, 2)),
    ?assertMatch({ok, #{done := 1, up := [_, _, _]}}, run(Deployment, 3)),
    ?assertMatch({ok, #{done := 2, up := ["f1@127.0.0.1"]}}, run(Deployment, 1)),
    ?assertMatch({ok, #{wanted := 1, nodes := [#{state := up}]}}, atoll_deploy:status(Deployment, "f")),
    ?assertMatch({ok, #{failed := []}}, atoll_deploy:terminate(Deployment, "f", fun(_, _) -> ok end)),
    ?assertEqual([], atoll_deploy_probe:marked(id(Deployment))),
    ?assertNot(filelib:is_dir(filename:join(?config(dir, Config), "host"))),
    ok = peer:stop(Eye),
    ok = atoll_deploy:close(Deployment).

a_node_that_was_killed_is_started_again(Config) ->
    Deployment = opened(Config),
    {ok, #{up := [First, Second]}} = run(Deployment, 2),
    _ = [os:cmd("kill -KILL " ++ Pid) || {Pid, _} <- atoll_deploy_probe:marked("/" ++ First)],
    ok = atoll_deploy_probe:await(killed, fun() -> atoll_deploy_probe:marked("/" ++ First) =:= [] end),
    {ok, #{nodes := Nodes}} = atoll_deploy:status(Deployment, "f"),
    ?assertEqual([{First, down}, {Second, up}], [{Node, State} || #{node := Node, state := State} <- Nodes]),
    ?assertMatch({ok, #{done := 1, up := [First, Second]}}, run(Deployment, kept)),
    ok = atoll_deploy:close(Deployment).

%% It is killed while it waits for the first nodes; what it had begun goes on for a while.
a_master_that_is_killed_goes_on_to_exactly_n(Config) ->
    Dir = ?config(dir, Config),
    ok = atoll_deploy:close(opened(Config)),
    Master = atoll_cli_os:start(Dir, ["deploy", "run", "f", "4", "--state", ?config(state, Config)]),
    ok = atoll_deploy_probe:await(begun, fun() -> atoll_deploy_probe:marked("/f/f1@127.0.0.1") =/= [] end),
    ok = atoll_cli_os:signal(Master, "KILL"),
    #{status := Status} = atoll_cli_os:await_exit(Master, 30000),
    ?assertNotEqual(0, Status),
    %% Another one is let in when nothing of it is left.
    {ok, Deployment} = atoll_deploy:open(?config(state, Config), 30000),
    ?assertEqual({ok, 4}, atoll_deploy_store:count(Deployment, "f")),
    {ok, #{up := Up, failed := []}} = run(Deployment, kept),
    ?assertEqual(4, length(Up)),
    ok = atoll_deploy_probe:await(exactly, fun() -> length(vms(Deployment)) =:= 4 end),
    Eye = atoll_deploy_probe:eye("hush-hush-cookie"),
    [?assertEqual("1", atoll_deploy_probe:see(Eye, Node, probe, version, [])) || Node <- Up],
    ok = peer:stop(Eye),
    ok = atoll_deploy:close(Deployment).

vms(Deployment) -> [Pid || {Pid, Command} <- atoll_deploy_probe:marked(id(Deployment)), binary:match(Command, <<"beam">>) =/= nomatch].

a_start_that_fails_leaves_nothing(Config) ->
    Deployment = opened(Config),
    {ok, Family} = atoll_deploy_store:thing(Deployment, family, "f"),
    ok = atoll_deploy_store:write(Deployment, [{{family, "f"}, {value, Family#{release := "spoilt"}}}]),
    {ok, #{up := [], failed := [{"f1@127.0.0.1", Why}, {"f2@127.0.0.1", _}]}} = run(Deployment, 2),
    ?assertMatch({_, {match, _}}, {Why, re:run(Why, "^the host 127\\.0\\.0\\.1: it ended: .*spoilt")}),
    ?assertEqual([], vms(Deployment)),
    {ok, Said} = atoll_deploy:log(Deployment, {"f", "f1@127.0.0.1"}, 50),
    ?assertMatch({match, _}, re:run(Said, "spoilt")),
    ?assertMatch({ok, #{failed := []}}, atoll_deploy:terminate(Deployment, "f", fun(_, _) -> ok end)),
    ?assertEqual([], atoll_deploy_probe:marked(id(Deployment))),
    ok = atoll_deploy:close(Deployment).

a_release_is_rolled_and_goes_back_where_it_is_not_well(Config) ->
    Deployment = opened(Config),
    {ok, #{up := Up}} = run(Deployment, 2),
    Eye = atoll_deploy_probe:eye("hush-hush-cookie"),
    Versions = fun() -> [atoll_deploy_probe:see(Eye, Node, probe, version, []) || Node <- Up] end,
    Roll = fun(Release, Batch) -> atoll_deploy:roll(Deployment, "f", {Release, Batch}, fun(_, _) -> ok end) end,
    ?assertMatch({ok, #{up := Up, done := 2, failed := []}}, Roll("two", 2)),
    ?assertEqual(["2", "2"], Versions()),
    {back, Why, #{up := Up, failed := []}} = Roll("spoilt", 1),
    ?assertMatch({_, {match, _}}, {Why, re:run(Why, "^f1@127\\.0\\.0\\.1: .*spoilt")}),
    ?assertEqual(["2", "2"], Versions()),
    ?assertMatch({ok, #{done := 0}}, run(Deployment, kept)),
    %% What runs is not changed behind its back.
    Changed = #{path => atoll_deploy_probe:release(?config(dir, Config), "4", good), apps => ["probe"]},
    {error, Sentence} = atoll_deploy:put(Deployment, release, "two", Changed),
    ?assertEqual("The release two is another one now, and f1@127.0.0.1 runs it: give this one another name, and roll it.", lists:flatten(Sentence)),
    ok = peer:stop(Eye),
    ok = atoll_deploy:close(Deployment).

%% A release with commands of its own, as those of rebar3 and mix have them.
commands_of_a_release_start_and_stop_it(Config) ->
    Dir = ?config(dir, Config),
    Deployment = opened(Config),
    Path = filename:join(Dir, "commands"),
    ok = filelib:ensure_path(Path),
    ok = file:write_file(filename:join(Path, "shop"), [
        "case $1 in\n"
        "start) erl -detached -name \"$ATOLL_NODE\" $ATOLL_FLAGS ;;\n"
        "stop) touch \"$STOPPED\"; kill $(grep -lszxF \"ATOLL_DEPLOY=$ATOLL_DEPLOY\" /proc/[0-9]*/environ | sed 's:[^0-9]::g' | while read -r p; do grep -q beam /proc/$p/comm && echo $p; done) ;;\n"
        "esac\n"
    ]),
    ok = atoll_deploy:put(Deployment, release, "shop", #{path => Path, start => "sh ./shop start", stop => "STOPPED=" ++ Dir ++ "/stopped sh ./shop stop"}),
    ok = atoll_deploy:put(Deployment, family, "f", #{release => "shop", domains => ["d"], cookie_file => filename:join(Dir, "cookie")}),
    ?assertMatch({ok, #{up := ["f1@127.0.0.1"], failed := []}}, run(Deployment, 1)),
    Eye = atoll_deploy_probe:eye("hush-hush-cookie"),
    ?assertEqual('f1@127.0.0.1', atoll_deploy_probe:see(Eye, "f1@127.0.0.1", erlang, node, [])),
    ok = peer:stop(Eye),
    ?assertMatch({ok, #{failed := []}}, atoll_deploy:terminate(Deployment, "f", fun(_, _) -> ok end)),
    ?assert(filelib:is_file(filename:join(Dir, "stopped"))),
    ?assertEqual([], atoll_deploy_probe:marked(id(Deployment))),
    ok = atoll_deploy:close(Deployment).

a_file_is_applied_by_the_command(Config) ->
    Dir = ?config(dir, Config),
    File = filename:join(Dir, "f.deploy"),
    ok = file:write_file(File, [io_lib:format("~tp.~n", [Term]) || Term <- things(Dir) ++ [{deploy, "f", 2}]]),
    Command = fun(Args) -> atoll_cli_line:here(Dir, ["deploy" | Args] ++ ["--state", ?config(state, Config)]) end,
    #{status := 0, stdout := Planned} = Command(["apply", File, "--dry-run"]),
    ?assertEqual(<<"f: start f1@127.0.0.1 with the release one\nf: start f2@127.0.0.1 with the release one\n">>, Planned),
    #{status := 0, stdout := Nothing} = Command(["status"]),
    ?assertEqual(<<>>, Nothing),
    #{status := 0, stdout := Applied} = Command(["apply", File]),
    ?assertMatch({match, _}, re:run(Applied, "^f: 2 up, 2 done, 0 failed, in ")),
    #{status := 0, stdout := Again} = Command(["apply", File, "--json"]),
    ?assertMatch(#{<<"done">> := 0, <<"up">> := [_, _]}, atoll_cli_os:decode(Again)),
    #{status := 0, stdout := Plan} = Command(["plan", "f", "1"]),
    ?assertEqual(<<"f: stop f2@127.0.0.1\n">>, Plan),
    #{status := 0, stdout := Status} = Command(["status", "f", "--json"]),
    #{<<"families">> := [#{<<"wanted">> := 2, <<"nodes">> := [#{<<"state">> := <<"up">>}, _]}]} = atoll_cli_os:decode(Status),
    #{status := 0, stdout := Rolled} = Command(["roll", "f", "two", "--dry-run"]),
    ?assertEqual(<<"f: start f1@127.0.0.1 with the release two\nf: start f2@127.0.0.1 with the release two\n">>, Rolled),
    #{status := 3, stderr := Needed} = Command(["release", "one", "--forget"]),
    ?assertEqual(<<"atoll deploy release: The release one is needed by the family f.\n">>, Needed),
    #{status := 0} = Command(["terminate", "f"]),
    [#{status := 0} = Command([Kind, Name, "--forget"]) || {Kind, Name} <- [{"family", "f"}, {"release", "one"}, {"domain", "d"}, {"provider", "p"}]].

%% Of all that a deployment leaves where others may look.
no_secret_can_be_seen(Config) ->
    Dir = ?config(dir, Config),
    Deployment = opened(Config),
    %% No other suite that runs now has it.
    Secret = binary:encode_hex(crypto:strong_rand_bytes(12)),
    ok = file:write_file(filename:join(Dir, "cookie"), Secret),
    Self = self(),
    Looking = spawn_link(fun() -> look(Secret, [], Self) end),
    {ok, #{up := [_, _]}} = run(Deployment, 2),
    ok = atoll_deploy:put(Deployment, family, "made", #{release => "one", domains => ["d"]}),
    {ok, #{up := [_]}} = atoll_deploy:run(Deployment, "made", 1, fun(_, _) -> ok end),
    {ok, Made} = file:read_file(filename:join([?config(state, Config), "cookies", "made"])),
    Looking ! stop,
    receive {seen, Seen} -> ?assertEqual([], Seen) end,
    Files = lists:append([filelib:fold_files(filename:join(Dir, Of), ".*", true, fun(File, All) -> [File | All] end, []) || Of <- ["state", "host"]]),
    Has = [{File, Mode band 8#777} || File <- Files, {ok, Text} <- [file:read_file(File)], binary:match(Text, [Secret, Made]) =/= nomatch, {ok, Info} <- [file:read_file_info(File)], Mode <- [element(8, Info)]],
    %% Each node's own, and the one that was made.
    ?assertEqual(4, length(Has)),
    ?assertEqual([], [File || {File, Mode} <- Has, Mode band 8#077 =/= 0]),
    {ok, Log} = atoll_deploy:log(Deployment, {"f", "f1@127.0.0.1"}, 1000),
    ?assertEqual(nomatch, binary:match(iolist_to_binary(Log), [Secret, Made])),
    ?assertEqual([], [Text || {_, Text} <- environments(id(Deployment)), binary:match(Text, [Secret, Made]) =/= nomatch]),
    {ok, _} = atoll_deploy:terminate(Deployment, "made", fun(_, _) -> ok end),
    ?assertNot(filelib:is_file(filename:join([?config(state, Config), "cookies", "made"]))),
    ok = atoll_deploy:close(Deployment).

environments(Id) -> [{Pid, Text} || {Pid, _} <- atoll_deploy_probe:marked(Id), {ok, Text} <- [file:read_file("/proc/" ++ Pid ++ "/environ")]].

%% The lists of processes, as often as can be.
look(Secret, Seen, For) ->
    receive
        stop -> For ! {seen, Seen}
    after 20 ->
        Lines = [Line || Pid <- filelib:wildcard("[0-9]*", "/proc"), {ok, Line} <- [file:read_file("/proc/" ++ Pid ++ "/cmdline")], binary:match(Line, Secret) =/= nomatch],
        look(Secret, Lines ++ Seen, For)
    end.

one_program_at_a_time_works_with_a_state(Config) ->
    Deployment = opened(Config),
    {error, Sentence} = atoll_deploy:open(?config(state, Config), 0),
    ?assertEqual("Another program works with the deployments in " ++ ?config(state, Config) ++ ".", lists:flatten(Sentence)),
    %% One that waits is let in when the other is gone.
    Self = self(),
    {_, Ref} = spawn_monitor(fun() ->
        Self ! waits,
        {ok, Other} = atoll_deploy:open(?config(state, Config), 30000),
        exit({has, atoll_deploy:families(Other)})
    end),
    receive waits -> ok end,
    ok = atoll_deploy:close(Deployment),
    receive {'DOWN', Ref, process, _, Reason} -> ?assertEqual({has, ["f"]}, Reason) end.

%% Beside nodes that are started by OTP's peer alone, with the same flags, as many at a time.
time_grows_with_the_nodes_as_that_of_bare_peers(Config) ->
    Deployment = opened(Config),
    {ok, #{flags := Flags}} = atoll_deploy_store:thing(Deployment, family, "f"),
    Rows = [
        begin
            Peers = peers(N, Flags),
            {ok, #{up := Up, failed := [], ms := Ms}} = run(Deployment, N),
            ?assertEqual(N, length(Up)),
            {ok, #{failed := []}} = atoll_deploy:terminate(Deployment, "f", fun(_, _) -> ok end),
            {N, Ms, Peers}
        end
     || N <- [5, 60, 10, 40, 20, 30, 50]
    ],
    Points = [{N, Ms} || {N, Ms, _} <- Rows],
    Ratio = lists:sum([Ms || {_, Ms, _} <- Rows]) / lists:sum([Ms || {_, _, Ms} <- Rows]),
    ct:pal("nodes, ms, ms of peers: ~p~nR2 ~.4f, ratio ~.3f", [lists:sort(Rows), r2(Points), Ratio]),
    io:format(user, "nodes, ms, ms of peers: ~0p R2 ~.4f, ratio ~.3f~n", [lists:sort(Rows), r2(Points), Ratio]),
    ?assert(r2(Points) > 0.95, Rows),
    ok = atoll_deploy:close(Deployment).

peers(N, Flags) ->
    Begun = erlang:monotonic_time(millisecond),
    Started = started([lists:concat(["bare", I]) || I <- lists:seq(1, N)], Flags, []),
    Ms = erlang:monotonic_time(millisecond) - Begun,
    [peer:stop(Peer) || Peer <- Started],
    Ms.

started([], _, Running) ->
    awaited(Running);
started(Names, Flags, Running) ->
    Self = self(),
    case length(Running) < 2 * erlang:system_info(schedulers_online) of
        true ->
            {Pid, _} = spawn_monitor(fun() ->
                {ok, Peer, _} = peer:start(#{name => hd(Names), host => "127.0.0.1", longnames => true, connection => standard_io, args => Flags, wait_boot => 60000}),
                Self ! {peer, Peer}
            end),
            started(tl(Names), Flags, [Pid | Running]);
        false ->
            receive {'DOWN', _, process, Pid, normal} -> started(Names, Flags, lists:delete(Pid, Running)) end
    end.

awaited([]) ->
    (fun Said() -> receive {peer, Peer} -> [Peer | Said()] after 0 -> [] end end)();
awaited(Running) ->
    receive {'DOWN', _, process, Pid, normal} -> awaited(lists:delete(Pid, Running)) end.

%% How much of the spread a line explains.
r2(Points) ->
    Count = length(Points),
    Mean = fun(Values) -> lists:sum(Values) / Count end,
    {Mx, My} = {Mean([X || {X, _} <- Points]), Mean([Y || {_, Y} <- Points])},
    Sxy = lists:sum([(X - Mx) * (Y - My) || {X, Y} <- Points]),
    Sxx = lists:sum([(X - Mx) * (X - Mx) || {X, _} <- Points]),
    Syy = lists:sum([(Y - My) * (Y - My) || {_, Y} <- Points]),
    Sxy * Sxy / (Sxx * Syy).

%% A program in the place of kubectl, with a cluster that does at once what it is told.
-define(KUBECTL, "
echo \"$*\" >>DIR/calls
while case $1 in --*) true ;; *) false ;; esac; do shift 2; done
case $1 in
apply) cp \"$3\" DIR/applied; stat -c %a \"$3\" >DIR/mode ;;
get)
    count=$(grep -o '\"replicas\":[0-9]*' DIR/applied | cut -d: -f2) release=$(grep -o '\"release\":\"[a-z]*' DIR/applied | cut -d'\"' -f4) n=0
    while [ \"$n\" -lt \"$count\" ]; do
        echo \"reef-$n Running true machine $release <none>\"
        n=$((n + 1))
    done ;;
logs) echo \"$2 says this\" ;;
delete) rm DIR/applied ;;
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
    ?assertMatch({ok, #{up := ["reef-0", "reef-1"], failed := []}}, Run(2)),
    ?assertMatch({ok, #{up := [_, _, _], failed := []}}, Run(3)),
    {ok, Cookie} = file:read_file(filename:join([?config(state, Config), "cookies", "reef"])),
    {ok, Applied} = file:read_file(filename:join(Dir, "applied")),
    ?assertMatch({_, _}, binary:match(Applied, base64:encode(Cookie))),
    ?assertEqual({ok, <<"600\n">>}, file:read_file(filename:join(Dir, "mode"))),
    ?assertEqual([], filelib:wildcard(?config(state, Config) ++ "/manifest*")),
    ?assertMatch({ok, #{up := [_, _, _]}}, atoll_deploy:roll(Deployment, "reef", {"two", 1}, fun(_, _) -> ok end)),
    {ok, #{wanted := 3, nodes := [#{release := "two", state := up} | _]}} = atoll_deploy:status(Deployment, "reef"),
    ?assertEqual({ok, [<<"reef-1 says this">>]}, atoll_deploy:log(Deployment, {"reef", "reef-1"}, 10)),
    ?assertMatch({ok, #{failed := []}}, atoll_deploy:terminate(Deployment, "reef", fun(_, _) -> ok end)),
    {ok, Calls} = file:read_file(filename:join(Dir, "calls")),
    ?assertEqual(nomatch, binary:match(Calls, [Cookie, base64:encode(Cookie)])),
    [?assertMatch({match, _}, re:run(Line, "^--namespace sea --context sea-side ")) || Line <- binary:split(Calls, <<"\n">>, [global, trim])],
    ?assertMatch({match, _}, re:run(Calls, "delete statefulset,service,secret reef ")),
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
    Deployment = reef(Config, #{}),
    {ok, Objects} = atoll_deploy:manifest(Deployment, "reef", 3),
    ok = atoll_deploy_store:write(Deployment, [{{family, "reef"}, delete}]),
    ok = atoll_deploy:close(Deployment),
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
