%% SPDX-License-Identifier: Apache-2.0
%% `bin/atoll debench' and `bin/atoll bench knee' as a user has them.
-module(atoll_cases_debench_SUITE).
-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    a_configuration_is_run_and_its_files_are_the_original_s/1,
    killed_workers_come_back_and_goodput_goes_on/1,
    a_node_that_is_lost_ends_the_run_at_once/1,
    on_nodes_that_were_started_by_hand_it_runs_and_leaves_nothing/1,
    wrong_usage_says_one_sentence_and_starts_nothing/1,
    the_knee_of_runs_is_told/1
]).

%% It ends what hangs.
-define(CALL_MS, 30000).
-define(CONFIG,
    "{duration, 0.05}.\n{report_interval, 1}.\n{offered_load, 100}.\n{erlange_nodes, ['a@there', 'b@there']}.\n"
    "{operations, [{spawning, 2}, {far, remote_call, 2}, {local_register, 1}, {global_register, 1}]}.\n"
).

suite() -> [{timetrap, {minutes, 5}}].

all() ->
    [a_configuration_is_run_and_its_files_are_the_original_s, killed_workers_come_back_and_goodput_goes_on,
     a_node_that_is_lost_ends_the_run_at_once, on_nodes_that_were_started_by_hand_it_runs_and_leaves_nothing, wrong_usage_says_one_sentence_and_starts_nothing,
     the_knee_of_runs_is_told].

init_per_testcase(_, Config) ->
    [{dir, atoll_cli_os:new_dir()} | Config].

end_per_testcase(_, Config) ->
    ok = atoll_cli_os:remove_dir(?config(dir, Config)).

written(Dir, Text) ->
    File = filename:join(Dir, "bench.config"),
    ok = file:write_file(File, Text),
    File.

json(Dir, Args) ->
    #{status := 0, stdout := Json, stderr := Said} = atoll_cli_line:run(Dir, Args ++ ["--json"]),
    ?assertEqual([], [Key || hd(Args) =:= "debench", Key <- atoll_cli_page:unexplained(Json, atoll_cli_page:read("docs/debench.md"))]),
    {ok, Read} = atoll_bench_json:decode(Json),
    {Read, Said}.

a_configuration_is_run_and_its_files_are_the_original_s(Config) ->
    Dir = ?config(dir, Config),
    Out = filename:join(Dir, "out"),
    {Result, Said} = json(Dir, ["debench", written(Dir, ?CONFIG), "--out", Out]),
    Told = <<"The nodes are started here: 2 of them, in place of the 2 of erlange_nodes.">>,
    ?assertMatch({_, _}, binary:match(Said, Told)),
    #{<<"nodes">> := 2, <<"offered">> := 600, <<"successful">> := Ok} = Result,
    #{<<"operations">> := Operations, <<"windows">> := Windows} = Result,
    ?assert(Ok > 0),
    ?assertEqual(Ok, lists:sum([N || #{<<"successful">> := N} <- Operations])),
    ?assertEqual(Ok, lists:sum([N || #{<<"successful">> := N} <- Windows])),
    {ok, Listed} = file:list_dir(Out),
    ?assertMatch(["aggregated", _, _, "run.jsonl"], lists:sort(Listed)),
    Dirs = Listed -- ["run.jsonl"],
    Labels = [
        "far", "global_register", "global_unregister", "global_whereis", "local_register", "local_unregister",
        "local_whereis", "spawning"
    ],
    [
        begin
            {ok, Files} = file:list_dir(filename:join(Out, D)),
            Names = ["summary.csv", "errors.csv" | [L ++ "_latencies.csv" || L <- Labels]],
            ?assertEqual(lists:sort(Names), lists:sort(Files)),
            [
                ?assertMatch(
                    <<"elapsed, window, n, min, mean, median, 95th, 99th, 99_9th, max, errors\n", _/binary>>,
                    text([Out, D, L ++ "_latencies.csv"])
                )
             || L <- Labels
            ],
            ?assertMatch(<<"elapsed, window, total, successful, failed\n", _/binary>>, text([Out, D, "summary.csv"]))
        end
     || D <- Dirs
    ],
    ok = draws(filename:join(Out, "run.jsonl"), Labels),
    %% All nodes are the sum of each.
    Total = fun(D) ->
        lists:sum([binary_to_integer(Successful) || [_, _, _, Successful, _] <- rows(text([Out, D, "summary.csv"]))])
    end,
    ?assertEqual(Ok, Total("aggregated")),
    ?assertEqual(Ok, lists:sum([Total(D) || D <- Dirs, D =/= "aggregated"])),
    ?assertEqual(ok, atoll_cli_os:await_none_left(Dir)).

%% The original's graphs: throughput and latency over the time, and how the latencies are distributed,
%% with a line for each operation.
draws(File, Labels) ->
    {ok, #{status := complete} = Run} = atoll_bench_file:read(File),
    Parts = atoll_bench_report_parts:all(atoll_bench_report_data:read(1, Run)),
    Charts = maps:from_list([{Id, Chart} || #{id := Id} = Chart <- atoll_bench_report_parts:charts(Parts)]),
    #{<<"debench_run-1-throughput">> := Throughput, <<"debench_run-1-latency">> := Latency, <<"debench_run-1-latency-cdf">> := _} = Charts,
    [
        begin
            ?assertEqual(Labels, [binary_to_list(Name) || Name <- Series]),
            ?assertMatch(<<"elapsed", _/binary>>, X)
        end
     || #{series := Series, x := #{label := X}} <- [Throughput, Latency]
    ],
    %% Three intervals of each.
    [#{lines := Lines}] = maps:get(panels, Throughput),
    ?assertEqual([3 || _ <- Labels], [length(Points) || #{points := Points} <- Lines]),
    ok.

text(Path) ->
    {ok, Text} = file:read_file(filename:join(Path)),
    Text.

rows(Text) ->
    [binary:split(Row, <<", ">>, [global]) || Row <- tl(binary:split(Text, <<"\n">>, [global, trim]))].

killed_workers_come_back_and_goodput_goes_on(Config) ->
    Dir = ?config(dir, Config),
    File = written(Dir, ?CONFIG "{concurrent, 5}.\n"),
    {Result, _} = json(Dir, [
        "debench", File, "--system", "groups", "--nodes", "2", "--group-size", "2", "--chaos", "5",
        "--out", filename:join(Dir, "out")
    ]),
    %% As it was told, so that it can be told again.
    {ok, #{header := #{<<"command">> := Command}}} = atoll_bench_file:read(filename:join([Dir, "out", "run.jsonl"])),
    ?assertEqual(<<"atoll debench bench.config --system groups --group-size 2 --seed 1 --nodes 2 --chaos 5">>, Command),
    #{<<"chaos">> := #{<<"kills">> := Kills, <<"recovered">> := Back}} = Result,
    #{<<"restarts">> := Restarts, <<"windows">> := Windows} = Result,
    ?assert(Kills >= 3, Kills),
    ?assert(Back >= Kills div 2, {Kills, Back}),
    %% Who was killed after the last look, at an operation that took longer than the load, is not in it.
    ?assert(Restarts >= Kills div 2, {Restarts, Kills}),
    %% Also at the end.
    #{<<"successful">> := Last} = lists:last(Windows),
    ?assert(Last > 0),
    ?assertEqual(ok, atoll_cli_os:await_none_left(Dir)).

%% Not at the next look, which would be in an hour.
a_node_that_is_lost_ends_the_run_at_once(Config) ->
    Dir = ?config(dir, Config),
    Out = filename:join(Dir, "out"),
    Text = "{duration, 120}.\n{report_interval, 3600}.\n{operations, [{spawning, 1}]}.\n",
    Program = atoll_cli_os:start(Dir, ["debench", written(Dir, Text), "--nodes", "3", "--out", Out]),
    %% It is made when the nodes are up, and before that, for a moment, to see whether it can be.
    ok = atoll_cli_os:await(fun() -> length(atoll_cli_os:beams(Dir)) =:= 3 andalso filelib:is_dir(Out) end, 60000),
    Nodes = atoll_cli_os:beams(Dir),
    ?assertMatch({[_, _, _], _}, {Nodes, file:read_file(maps:get(stderr, Program))}),
    ok = atoll_cli_os:signal(element(1, hd(Nodes)), "KILL"),
    #{status := 3, stderr := Said} = atoll_cli_os:await_exit(Program, 60000),
    ?assertMatch({Said, {match, _}}, {Said, re:run(Said, "Node \\S+ was lost during the run\\.")}),
    %% The next try may have the same name.
    ?assertNot(filelib:is_dir(Out)),
    ?assertEqual(ok, atoll_cli_os:await_none_left(Dir)).

%% As docs/debench.md has it: three nodes of stock Erlang. The second run is killed in its middle, the
%% third loses a node.
on_nodes_that_were_started_by_hand_it_runs_and_leaves_nothing(Config) ->
    Dir = ?config(dir, Config),
    Peers = [
        begin
            {ok, Peer, Node} = peer:start_link(#{
                name => peer:random_name(), host => "127.0.0.1", longnames => true, connection => standard_io, wait_boot => ?CALL_MS,
                args => ["-setcookie", "debenchers"],
                env => [{Name, false} || Name <- ["ERL_LIBS", "ERL_FLAGS", "ERL_AFLAGS", "ERL_ZFLAGS"]]
            }),
            {Peer, Node}
        end
     || _ <- [1, 2, 3]
    ],
    Before = [known(Peer) || {Peer, _} <- Peers],
    Clean = fun(Some) ->
        ok = atoll_cli_os:await(fun() -> [known(Peer) || {Peer, _} <- Some] =:= lists:sublist(Before, length(Some)) end, 30000)
    end,
    Cookie = filename:join(Dir, "cookie"),
    ok = file:write_file(Cookie, "debenchers\n"),
    Names = lists:flatten(lists:join(",", [atom_to_list(Node) || {_, Node} <- Peers])),
    On = fun(File, Out) -> ["debench", File, "--node", Names, "--cookie-file", Cookie, "--out", filename:join(Dir, Out)] end,
    %% A rate that a machine with other work is far above too.
    Slow = lists:flatten(string:replace(?CONFIG, "{offered_load, 100}", "{offered_load, 5}")),
    {Result, Talk} = json(Dir, On(written(Dir, Slow ++ "{concurrent, 4}.\n"), "by_hand") ++ ["--offered", "closed", "--chaos", "2"]),
    #{<<"chaos">> := #{<<"kills">> := Kills}} = Result,
    ?assert(Kills > 0),
    %% Their supervisors would fill pages.
    ?assertEqual(nomatch, binary:match(Talk, <<"SUPERVISOR REPORT">>)),
    #{<<"nodes">> := 3, <<"group_size">> := null, <<"successful">> := Ok, <<"operations">> := Operations} = Result,
    %% No rate bounds it: three nodes would do this in three seconds.
    ?assert(Ok > 3 * 3 * 5, Ok),
    [?assert(N > 0, Label) || #{<<"label">> := Label, <<"successful">> := N} <- Operations],
    {ok, Written} = file:list_dir(filename:join(Dir, "by_hand")),
    ?assertEqual(lists:sort(["aggregated", "run.jsonl" | [atom_to_list(Node) || {_, Node} <- Peers]]), lists:sort(Written)),
    ok = Clean(Peers),
    Long = written(Dir, "{duration, 120}.\n{operations, [{spawning, 1}, {global_register, 1}]}.\n"),
    Loaded = fun() -> lists:all(fun({Peer, _}) -> is_pid(peer:call(Peer, erlang, whereis, [debench_workers], ?CALL_MS)) end, Peers) end,
    [
        begin
            Program = atoll_cli_os:start(Dir, On(Long, Out)),
            ok = atoll_cli_os:await(Loaded, 60000),
            {Status, Some} = Ends(Program),
            #{status := Exit, stderr := Said} = atoll_cli_os:await_exit(Program, 60000),
            ?assertEqual({Out, Status}, {Out, Exit}),
            Status =:= 3 andalso ?assertMatch({match, _}, re:run(Said, "Node \\S+ was lost during the run\\.")),
            ok = Clean(Some)
        end
        %% In the fast tier the suite of DE-Bench kills an owner.
     || deep <- [atoll_tier:tier()],
        {Out, Ends} <- [
            {"killed", fun(Program) -> ok = atoll_cli_os:signal(Program, "KILL"), {137, Peers} end},
            {"lost", fun(_) -> ok = peer:stop(element(1, lists:last(Peers))), {3, lists:droplast(Peers)} end}
        ]
    ],
    [ok = peer:stop(Peer) || {Peer, _} <- Peers, is_process_alive(Peer)].

%% What a node has loaded of ours, and what has a name there.
known(Peer) ->
    Loaded = [M || {M, _} <- peer:call(Peer, code, all_loaded, [], ?CALL_MS), lists:member(M, debench_own:modules())],
    Named = [N || N <- peer:call(Peer, erlang, registered, [], ?CALL_MS), lists:prefix("debench", atom_to_list(N))],
    {Loaded, Named, peer:call(Peer, global, registered_names, [], ?CALL_MS)}.

wrong_usage_says_one_sentence_and_starts_nothing(Config) ->
    Dir = ?config(dir, Config),
    Good = written(Dir, ?CONFIG),
    Bad = fun(Text) ->
        File = filename:join(Dir, "bad" ++ integer_to_list(erlang:unique_integer([positive])) ++ ".config"),
        ok = file:write_file(File, Text),
        File
    end,
    [
        begin
            #{status := Status, stdout := Out, stderr := Said} = atoll_cli_line:run(Dir, Args),
            ?assertEqual({Args, 2, <<>>}, {Args, Status, Out}),
            ?assertMatch({Args, Said, {_, _}}, {Args, Said, binary:match(Said, list_to_binary(Part))}),
            ?assertEqual({Args, 1}, {Args, length(binary:matches(Said, <<"\n">>))})
        end
     || {Args, Part} <- [
            {["debench"], "the argument CONFIG is missing"},
            {["debench", Bad("{duration, x}.\n")], "line 1: duration must be a number of minutes"},
            {["debench", Bad("{operations, [{ping, 1}]}.\n")], "has ping, which is no operation"},
            {["debench", Bad("{operations, [{spawning, 1}]}.\n"), "--nodes", "1"], "all operations are of two nodes"},
            {["debench", Good, "--system", "groups", "--group-size", "3"],
                "--group-size must be at most the number of nodes, which is 2"},
            {["debench", Good, "--node", "here"], "--node must be the name of a node, as in a@host"},
            {["debench", Good, "--node", "a@b,b@b", "--nodes", "2"], "--nodes is for a cluster that is started, and --cluster and --node for one that runs: not both"},
            {["debench", Good, "--cookie-file", Good], "--cookie-file is for --node, which is missing"},
            {["debench", Bad("{offered_load, open}.\n")], "must be a whole number of operations a second from 1 to 100000, or closed"},
            {["debench", Good, "--offered", "0"], "--offered must be a whole number from 1 to 100,000, or closed"},
            {["debench", Good, "--system", "ring"], "--system must be one of mesh, groups"},
            {["debench", Good, "--chaos", "0"], "--chaos must be a number above 0"},
            {["bench", "knee"], "the argument FILE is missing"},
            {["bench", "knee", Good], "this is not the file of a run"},
            {["bench", "knee", run(Dir, "names", "names", [{4, 100}])],
                "this is a run of names, and only one of debench has a knee"},
            {["bench", "run", "debench", "--global", "101"], "--global must be a number from 0 to 100"},
            {["bench", "run", "debench", "--nodes", "4", "--group-size", "5"],
                "a group is not of more nodes than there are"}
        ]
    ],
    [
        begin
            #{status := Status, stdout := Out, stderr := Said} = atoll_cli_line:run(Dir, ["debench", Good, "--out", There]),
            ?assertEqual({There, 3, <<>>}, {There, Status, Out}),
            ?assertMatch({There, {_, _}}, {There, binary:match(Said, list_to_binary(["--out: ", There, ": ", Why]))})
        end
     || {There, Why} <- [{Dir, "file already exists"}, {filename:join([Dir, "no", "such"]), "no such file or directory"}]
    ],
    ?assertEqual([], atoll_cli_os:left(Dir)).

%% A run with five rounds at each size, of which so many per cent were done.
run(Dir, Benchmark, Name, Sizes) -> run(Dir, Benchmark, Name, Sizes, []).

%% At these further sizes it has failed.
run(Dir, Benchmark, Name, Sizes, Failed) ->
    File = filename:join(Dir, Name ++ ".jsonl"),
    Parameter = fun(P) -> #{name => P} end,
    Metric = #{name => goodput_percent, label => <<"Goodput">>, unit => <<"%">>, better => more, kind => value},
    {ok, Device} = atoll_bench_file:create(File, #{
        benchmark => list_to_binary(Benchmark), variant => system, parameters => [Parameter(nodes), Parameter(system)],
        metrics => [Metric],
        points => [#{nodes => N, system => list_to_binary(Name)} || N <- [N || {N, _} <- Sizes] ++ Failed]
    }),
    _ = [
        ok = atoll_bench_file:append(Device, #{
            point => P, round => R, values => #{goodput_percent => Percent + R / 10}, histograms => #{}
        })
     || {P, {_, Percent}} <- lists:zip(lists:seq(0, length(Sizes) - 1), Sizes), R <- lists:seq(-2, 2)
    ],
    _ = [
        ok = atoll_bench_file:append(Device, #{point => P, error => <<"names did not go">>})
     || P <- lists:seq(length(Sizes), length(Sizes) + length(Failed) - 1)
    ],
    ok = atoll_bench_file:close(Device, complete),
    File.

%% Up to 12 nodes all is done, and no node adds anything beyond.
the_knee_of_runs_is_told(Config) ->
    Dir = ?config(dir, Config),
    Files = [
        run(Dir, "debench", "mesh", [{4, 100}, {8, 100}, {16, 75}, {24, 50}]),
        run(Dir, "debench", "groups", [{4, 100}, {24, 99}], [32, 40]),
        run(Dir, "debench", "full", [{4, 50}, {8, 25}])
    ],
    {#{<<"tolerance">> := Tolerance, <<"rows">> := Rows}, _} = json(Dir, ["bench", "knee" | Files]),
    ?assert(Tolerance == 0.95),
    #{<<"mesh">> := Mesh, <<"groups">> := Groups, <<"full">> := Full} =
        maps:from_list([{System, Row} || #{<<"system">> := System} = Row <- Rows]),
    #{
        <<"verdict">> := <<"knee">>, <<"knee_nodes">> := Knee, <<"knee_low">> := Low, <<"knee_high">> := High,
        <<"between">> := [8, 16], <<"failed_at">> := []
    } = Mesh,
    ?assert(abs(Knee - 12) < 0.3 andalso Low =< Knee andalso Knee =< High, Mesh),
    ?assertMatch(
        #{<<"verdict">> := <<"none">>, <<"up_to">> := 24, <<"knee_nodes">> := null, <<"failed_at">> := [32, 40]},
        Groups
    ),
    ?assertMatch(#{<<"verdict">> := <<"at_most">>, <<"knee_nodes">> := 4}, Full),
    #{status := 0, stdout := Table} = atoll_cli_line:run(Dir, ["bench", "knee" | Files]),
    Said = [<<"none up to 24 nodes, failed at 32,40">>, <<"at most 4 nodes">>, <<" nodes ">>],
    [?assertMatch({_, {_, _}}, {Table, binary:match(Table, Part)}) || Part <- Said].
