%% SPDX-License-Identifier: Apache-2.0
%% Commands that start a cluster take the hosts of a family in place of this machine, by --family and without a line of their own: here
%% hosts are two addresses of loopback.
-module(atoll_deploy_family_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    orbit_runs_on_the_hosts_of_a_family/1,
    a_benchmark_runs_on_the_hosts_of_a_family/1,
    debench_runs_on_the_hosts_of_a_family/1,
    chaos_harms_nodes_on_the_hosts_of_a_family/1,
    what_cannot_be_on_a_family_is_a_sentence/1
]).

suite() -> [{timetrap, {minutes, 5}}].

all() ->
    [what_cannot_be_on_a_family_is_a_sentence] ++
        [
            Case
         || atoll_tier:tier() =:= deep,
            Case <- [orbit_runs_on_the_hosts_of_a_family, a_benchmark_runs_on_the_hosts_of_a_family, debench_runs_on_the_hosts_of_a_family, chaos_harms_nodes_on_the_hosts_of_a_family]
        ].

init_per_testcase(_, Config) ->
    Dir = atoll_cli_os:new_dir(),
    [{dir, Dir}, {state, filename:join(Dir, "state")} | Config].

end_per_testcase(_, Config) ->
    %% A command that ran in this VM has told it where clusters are.
    ok = atoll_cluster:elsewhere(#{}),
    atoll_deploy_probe:ended(?config(state, Config), ?config(dir, Config)).

%% What a command says whose nodes are on the hosts of a family. While it runs, some of them are seen on each host; then nothing is left.
on_family(Config, Nodes, Args) ->
    Dir = ?config(dir, Config),
    Host = fun(N) -> lists:concat(["127.0.0.", N]) end,
    %% A name that means something to a shell.
    There = filename:join(Dir, "o'host $(false) of all"),
    Things = atoll_deploy_probe:things(Dir, #{driver => local}, #{hosts => [Host(2), Host(3)], dir => There}),
    Deployment = atoll_deploy_probe:opened(?config(state, Config), Things),
    Id = atoll_deploy_store:id(Deployment),
    ok = atoll_deploy:close(Deployment),
    Self = self(),
    Looking = spawn_link(fun() -> look(Id, #{}, Self) end),
    Ended = atoll_cli_line:run(Dir, Args ++ ["--family", "f", "--state", ?config(state, Config)]),
    Looking ! stop,
    Seen = receive {seen, Is} -> Is end,
    [?assert(length([Mark || Mark <- maps:keys(Seen), string:find(Mark, "@" ++ Host(N)) =/= nomatch]) >= Nodes div 2, {Seen, Ended}) || N <- [2, 3]],
    ?assertEqual([], atoll_deploy_probe:marked(Id)),
    ?assertNot(filelib:is_dir(There)),
    ?assertMatch(#{status := 0}, Ended),
    Ended.

%% The marks that there are, as often as can be.
look(Id, Seen, For) ->
    receive
        stop -> For ! {seen, Seen}
    after 50 ->
        look(Id, lists:foldl(fun(Mark, All) -> All#{Mark => true} end, Seen, atoll_deploy_probe:marks(Id)), For)
    end.

orbit_runs_on_the_hosts_of_a_family(Config) ->
    #{stdout := Stdout} = on_family(Config, 2, ["orbit", "--mode", "mesh", "--nodes", "2", "--workers", "2", "--space", "5000", "--json"]),
    ?assertMatch(#{<<"nodes">> := 2, <<"nodes_lost">> := 0, <<"vertices_received">> := _}, atoll_cli_os:decode(Stdout)).

a_benchmark_runs_on_the_hosts_of_a_family(Config) ->
    File = filename:join(?config(dir, Config), "names.jsonl"),
    _ = on_family(Config, 2, ["bench", "run", "names", "--nodes", "2", "--callers", "1", "--on", "first", "--system", "pg", "--rounds", "1", "--starts", "1", "--out", File]),
    {ok, #{rounds := [_ | _], header := #{<<"command">> := Command}}} = atoll_bench_file:read(File),
    ?assertMatch({_, _}, binary:match(Command, <<" --family f">>)).

debench_runs_on_the_hosts_of_a_family(Config) ->
    Dir = ?config(dir, Config),
    File = filename:join(Dir, "debench.config"),
    ok = file:write_file(File, "{duration, 0.05}.\n{report_interval, 1}.\n{offered_load, 50}.\n{operations, [{spawning, 1}, {remote_call, 1}, {global_register, 1}]}.\n"),
    #{stdout := Stdout} = on_family(Config, 2, ["debench", File, "--nodes", "2", "--out", filename:join(Dir, "out"), "--json"]),
    ?assertMatch(#{<<"operations">> := _}, atoll_cli_os:decode(Stdout)).

chaos_harms_nodes_on_the_hosts_of_a_family(Config) ->
    Dir = ?config(dir, Config),
    File = filename:join(Dir, "f.script"),
    ok = file:write_file(File, "{cluster, #{nodes => 2, seed => 7}}.\n{at, {1, s}, {kill, {nodes, 2, 2}}}.\n{then, {2, s}, {start, {nodes, 2, 2}}}.\n{then, {2, s}, heal}.\n"),
    _ = on_family(Config, 2, ["chaos", "run", File, "--nodes", "2", "--json"]).

what_cannot_be_on_a_family_is_a_sentence(Config) ->
    Dir = ?config(dir, Config),
    Said = fun(Args) ->
        #{status := Status, stderr := Stderr} = atoll_cli_line:here(Dir, Args ++ ["--state", ?config(state, Config)]),
        {Status, Stderr}
    end,
    ok = atoll_deploy:close(atoll_deploy_probe:opened(?config(state, Config), [
        {provider, "k", #{driver => kubernetes}}, {release, "one", #{image => "x"}}, {domain, "sea", #{provider => "k"}}, {family, "reef", #{release => "one", domains => ["sea"]}}
    ])),
    ?assertEqual({3, <<"atoll orbit: There is no family nobody.\n">>}, Said(["orbit", "--family", "nobody"])),
    ?assertEqual({3, <<"atoll orbit: The family reef is on Kubernetes, which takes no clusters of this program.\n">>}, Said(["orbit", "--family", "reef"])),
    {ok, Deployment} = atoll_deploy:open(?config(state, Config)),
    ok = atoll_deploy:forget(Deployment, family, "reef"),
    ok = atoll_deploy:close(Deployment).
