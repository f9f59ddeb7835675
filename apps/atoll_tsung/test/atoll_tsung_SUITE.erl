%% SPDX-License-Identifier: Apache-2.0
%% Scenarios that Debian's Tsung runs against real nodes. It is skipped where Tsung is not installed.
-module(atoll_tsung_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    tsung_counts_what_the_node_counts/1,
    what_is_wrong_with_a_scenario_is_told_with_its_line/1,
    nothing_is_left_when_the_program_is_killed/1,
    a_new_scenario_is_run_by_the_command_and_read_by_the_harness/1,
    a_thousand_users_at_once_call_three_nodes/1,
    clients_of_their_own_need_no_ssh/1,
    nodes_have_short_names_and_a_cookie_of_their_own/1,
    nodes_take_tls/1,
    clients_of_their_own_take_tls/1,
    a_node_that_is_down_or_has_another_cookie_is_counted/1,
    a_call_that_is_not_answered_is_given_up_and_counted/1
]).

-define(P, atoll_tsung_probe).
-define(LINE_MS, 60000).

suite() -> [{timetrap, {minutes, 5}}].

all() -> cases(atoll_tier:tier()).

cases(fast) ->
    [tsung_counts_what_the_node_counts, what_is_wrong_with_a_scenario_is_told_with_its_line, nothing_is_left_when_the_program_is_killed];
cases(deep) ->
    cases(fast) ++
    [
        a_new_scenario_is_run_by_the_command_and_read_by_the_harness, a_thousand_users_at_once_call_three_nodes, clients_of_their_own_need_no_ssh,
        nodes_have_short_names_and_a_cookie_of_their_own, nodes_take_tls, clients_of_their_own_take_tls,
        a_node_that_is_down_or_has_another_cookie_is_counted, a_call_that_is_not_answered_is_given_up_and_counted
    ].

init_per_suite(Config) ->
    case atoll_tsung:version() of
        {ok, _} -> Config;
        {error, _} -> {skip, "Tsung is not installed (tsung of Debian)"}
    end.

end_per_suite(_) -> ok.

init_per_testcase(_, Config) -> [{dir, atoll_cli_os:new_dir()} | Config].

end_per_testcase(_, Config) -> ok = atoll_cli_os:remove_dir(?config(dir, Config)).

%% Nodes that count, and their names.
with_nodes(Options, Fun) ->
    atoll_cluster:with_cluster(maps:merge(#{nodes => 1}, Options), fun(Cluster) ->
        Nodes = atoll_cluster:nodes(Cluster),
        _ = [ok = atoll_cluster:call(Cluster, Node, ?P, start, []) || Node <- Nodes],
        Fun(Cluster, Nodes)
    end).

counted(Cluster, What) -> [atoll_cluster:call(Cluster, Node, ?P, counted, [What]) || Node <- atoll_cluster:nodes(Cluster)].

%% Users of one session, with these requests each.
scenario(Config, Load, Requests) ->
    File = filename:join(?config(dir, Config), "users.xml"),
    ok = file:write_file(File, [
        "<?xml version=\"1.0\"?>\n<!DOCTYPE tsung SYSTEM \"/usr/share/tsung/tsung-1.0.dtd\">\n<tsung loglevel=\"notice\">\n"
        "<clients><client host=\"localhost\" use_controller_vm=\"true\" maxusers=\"20000\"/></clients>\n"
        "<servers><server host=\"localhost\" port=\"1\" type=\"erlang\"/></servers>\n<load>", Load, "</load>\n"
        "<sessions><session name=\"users\" probability=\"100\" type=\"ts_rpc\">\n", Requests, "</session></sessions>\n</tsung>\n"
    ]),
    File.

phase(Rate, Seconds) ->
    io_lib:format("<arrivalphase phase=\"1\" duration=\"~b\" unit=\"second\"><users arrivalrate=\"~b\" unit=\"second\"/></arrivalphase>", [Seconds, Rate]).

rpc(Type, Node, Function, Args) ->
    io_lib:format("<request subst=\"true\"><rpc type=\"~ts\" node=\"~ts\" module=\"atoll_tsung_probe\" function=\"~ts\" arguments=\"~ts\"/></request>\n", [Type, Node, Function, Args]).

run(Config, File, More) ->
    {ok, #{runs := [Log]}} = atoll_tsung:run(maps:merge(#{scenario => File, out => filename:join(?config(dir, Config), "out")}, More)),
    Log.

count(Name, #{samples := Samples}) -> map_get(count, map_get(Name, Samples)).

%% Ten users a second for four seconds: each calls once under its own number, casts something long, and
%% calls what is not there.
tsung_counts_what_the_node_counts(Config) ->
    with_nodes(#{}, fun(Cluster, [Node]) ->
        File = scenario(Config, phase(10, 4), [
            rpc("call", Node, "count", "{user, %%_tsung_userid%%}"), rpc("cast", Node, "hang", "cast"), rpc("call", Node, "missing", "")
        ]),
        #{counts := Counts, samples := Samples} = Log = run(Config, File, #{}),
        Sessions = count(<<"session">>, Log),
        ?assert(Sessions > 10),
        ?assertEqual(3 * Sessions, count(<<"request">>, Log)),
        ?assertEqual([Sessions], counted(Cluster, cast)),
        Users = [N || {{user, _}, N} <- atoll_cluster:call(Cluster, Node, ?P, counted, [])],
        ?assertEqual(lists:duplicate(Sessions, 1), Users),
        ?assertMatch(#{<<"error_rpc">> := Sessions, <<"error_rpc_undef">> := Sessions}, Counts),
        %% In milliseconds: nobody has waited for what was cast.
        ?assert(map_get(max, map_get(<<"session">>, Samples)) < 20000),
        %% The nodes have not heard of Tsung's names, and see nobody.
        ?assertEqual({[], []}, {atoll_cluster:call(Cluster, Node, global, registered_names, []), atoll_cluster:call(Cluster, Node, erlang, nodes, [])})
    end).

what_is_wrong_with_a_scenario_is_told_with_its_line(Config) ->
    File = scenario(Config, phase(1, 1), ["<request><rpc type=\"call\" node=\"a@127.0.0.1\" module=\"m\"\n function=\"f\" colour=\"red\"/></request>\n"]),
    Out = filename:join(?config(dir, Config), "out"),
    #{status := 3, stdout := <<>>, stderr := Said} = atoll_cli_line:run(?config(dir, Config), ["tsung", "run", File, "--out", Out]),
    ?assertMatch({_, _}, binary:match(Said, <<"users.xml: line 9: rpc has no attribute colour; it has type, ">>)),
    ?assertNot(filelib:is_dir(Out)),
    %% What only Tsung knows it says itself, and nothing is left.
    Wrong = scenario(Config, phase(1, 1), ["<thinktime value=\"1\"><request/></thinktime>\n"]),
    {error, Sentence} = atoll_tsung:run(#{scenario => Wrong, out => Out}),
    ?assertMatch({_, _}, binary:match(unicode:characters_to_binary(Sentence), <<"Tsung has ended: ">>)).

nothing_is_left_when_the_program_is_killed(Config) ->
    Dir = ?config(dir, Config),
    with_nodes(#{}, fun(Cluster, [Node]) ->
        File = scenario(Config, phase(20, 60), [rpc("call", Node, "hang", "call")]),
        Program = atoll_cli_os:start(Dir, ["tsung", "run", File, "--out", filename:join(Dir, "out")]),
        ok = atoll_cli_os:await(fun() -> counted(Cluster, call) > [0] end, ?LINE_MS),
        ok = atoll_cli_os:signal(Program, "KILL"),
        ?assertEqual(ok, atoll_cli_os:await_none_left(Dir))
    end).

a_new_scenario_is_run_by_the_command_and_read_by_the_harness(Config) ->
    Dir = ?config(dir, Config),
    In = fun(Name) -> filename:join(Dir, Name) end,
    with_nodes(#{nodes => 2}, fun(Cluster, [Node, Other]) ->
        true = atoll_cluster:call(Cluster, Node, net_kernel, connect_node, [Other]),
        Where = ["--node", atom_to_list(Node)],
        #{status := 0} = atoll_cli_line:run(Dir, ["tsung", "init", "--call", "atoll_tsung_probe:count", "--arguments", "call", "--rate", "20", "--seconds", "2", "--out", In("new.xml") | Where]),
        #{status := 0, stdout := Json} = atoll_cli_line:run(Dir, ["tsung", "run", In("new.xml"), "--out", In("out"), "--runs", "2", "--json" | Where]),
        #{<<"rows">> := [#{<<"scenario">> := <<"new">>, <<"failed">> := Failed, <<"request_p50_us">> := P50}]} = atoll_cli_os:decode(Json),
        ?assert(Failed == 0 andalso P50 > 0),
        Unexplained = atoll_cli_page:unexplained(Json, atoll_cli_page:read("docs/tsung.md")),
        %% An interval has two ends.
        ?assertEqual([], [Key || Key <- Unexplained, re:run(Key, "_(low|high)(_us)?$") =:= nomatch]),
        {ok, #{header := #{<<"benchmark">> := <<"tsung">>}, rounds := Rounds, status := complete}} = atoll_bench_file:read(In("out/result.jsonl")),
        ?assertEqual(lists:sum(counted(Cluster, call)), lists:sum([N || #{<<"values">> := #{<<"requests">> := N}} <- Rounds])),
        %% Each node has had some.
        ?assertNot(lists:member(0, counted(Cluster, call))),
        %% From the logs alone the same comes.
        #{status := 0} = atoll_cli_line:run(Dir, ["tsung", "report", In("out"), "--out", In("again.jsonl"), "--scenario", "new"]),
        {ok, #{rounds := Again}} = atoll_bench_file:read(In("again.jsonl")),
        ?assertEqual([Values || #{<<"values">> := Values} <- Rounds], [Values || #{<<"values">> := Values} <- Again]),
        #{status := 0} = atoll_cli_line:run(Dir, ["bench", "compare", In("out/result.jsonl"), In("again.jsonl")])
    end).

a_thousand_users_at_once_call_three_nodes(Config) ->
    with_nodes(#{nodes => 3}, fun(Cluster, Nodes) ->
        Plan = #{
            nodes => Nodes, module => "atoll_tsung_probe", function => "count", arguments => "call", type => call, rate => 1000, seconds => 4,
            users => 1000, requests => 5, think => 2, clients => []
        },
        #{users_max := Most} = Log = run(Config, {text, atoll_tsung_scenario:new(Plan)}, #{}),
        ?assertEqual(1000, count(<<"session">>, Log)),
        ?assertEqual({5000, 5000}, {count(<<"request">>, Log), lists:sum(counted(Cluster, call))}),
        ?assert(Most > 900, Most),
        [?assert(N > 1000, N) || N <- counted(Cluster, call)]
    end).

clients_of_their_own_need_no_ssh(Config) ->
    with_nodes(#{nodes => 2}, fun(Cluster, _) -> two_clients_call(Config, Cluster, #{}) end).

clients_of_their_own_take_tls(Config) ->
    with_tls(fun(Cluster, _, Options) -> two_clients_call(Config, Cluster, #{tls_options_file => Options}) end).

two_clients_call(Config, Cluster, More) ->
    Plan = #{
        nodes => atoll_cluster:nodes(Cluster), module => "atoll_tsung_probe", function => "count_caller", arguments => "", type => call, rate => 50, seconds => 4,
        requests => 2, think => 0, clients => ["client1.tsung", "client2.tsung"]
    },
    Log = run(Config, {text, atoll_tsung_scenario:new(Plan)}, More#{here => true}),
    ?assert(count(<<"request">>, Log) > 100),
    Counted = [Caller || Node <- atoll_cluster:nodes(Cluster), Caller <- atoll_cluster:call(Cluster, Node, ?P, counted, [])],
    ?assertEqual(count(<<"request">>, Log), lists:sum([N || {_, N} <- Counted])),
    %% Both had some.
    ?assertMatch([_, _], lists:usort([Caller || {Caller, _} <- Counted])),
    ?assertEqual(#{}, errors(Log)).

errors(#{counts := Counts}) -> maps:filter(fun(Name, _) -> string:prefix(Name, "error") =/= nomatch end, Counts).

nodes_have_short_names_and_a_cookie_of_their_own(Config) ->
    Cookie = filename:join(?config(dir, Config), "cookie"),
    ok = file:write_file(Cookie, "an_own_one\n"),
    with_nodes(#{hosts => [#{address => {127, 0, 0, 1}, name => "localhost", wrap => []}], args => ["-setcookie", "an_own_one"]}, fun(Cluster, [Node]) ->
        File = scenario(Config, phase(10, 1), [rpc("call", Node, "count", "call")]),
        Log = run(Config, File, #{cookie_file => Cookie}),
        ?assertEqual([count(<<"request">>, Log)], counted(Cluster, call)),
        ?assertNot(maps:is_key(<<"error_rpc">>, map_get(counts, Log)))
    end).

with_tls(Fun) ->
    with_nodes(#{tls => true, args => ["-proto_dist", "inet_tls"]}, fun(Cluster, [Node]) ->
        #{dir := Dir} = atoll_cluster:info(Cluster),
        [_, Options] = atoll_certificates:arguments(atoll_cluster_rundir:certificates(Dir)),
        Fun(Cluster, Node, Options)
    end).

nodes_take_tls(Config) ->
    with_tls(fun(Cluster, Node, Options) ->
        File = scenario(Config, phase(10, 1), [rpc("call", Node, "count", "call")]),
        Log = run(Config, File, #{tls_options_file => Options}),
        ?assertEqual([count(<<"request">>, Log)], counted(Cluster, call)),
        ?assertNot(maps:is_key(<<"error_rpc">>, map_get(counts, Log)))
    end).

%% The user goes on, and calls the one that is there.
a_node_that_is_down_or_has_another_cookie_is_counted(Config) ->
    with_nodes(#{args => ["-setcookie", "of_its_own"]}, fun(_, [Strange]) ->
        with_nodes(#{nodes => 2}, fun(Cluster, [Node, Down]) ->
            ok = atoll_cluster:kill(Cluster, Down),
            File = scenario(Config, phase(10, 1), [rpc("call", Down, "count", "a"), rpc("call", Strange, "count", "b"), rpc("call", Node, "count", "c")]),
            Log = run(Config, File, #{}),
            Sessions = count(<<"session">>, Log),
            Twice = 2 * Sessions,
            ?assertEqual(#{<<"error_rpc">> => Twice, <<"error_rpc_nodedown">> => Twice}, errors(Log)),
            ?assertEqual(Sessions, atoll_cluster:call(Cluster, Node, ?P, counted, [c])),
            %% A cookie that there is not is no scenario's fault, and none of its requests is sent.
            Lost = filename:join(?config(dir, Config), "lost"),
            {error, Sentence} = atoll_tsung:run(#{scenario => File, out => Lost, cookie_file => Lost ++ "/cookie"}),
            ?assertMatch({_, _}, binary:match(unicode:characters_to_binary(Sentence), <<"lost/cookie">>)),
            ?assertEqual(Sessions, atoll_cluster:call(Cluster, Node, ?P, counted, [c]))
        end)
    end).

a_call_that_is_not_answered_is_given_up_and_counted(Config) ->
    with_nodes(#{}, fun(Cluster, [Node]) ->
        Slow = io_lib:format("<request><rpc type=\"call\" node=\"~ts\" module=\"atoll_tsung_probe\" function=\"hang\" arguments=\"call\" timeout=\"100\"/></request>\n", [Node]),
        Log = run(Config, scenario(Config, phase(10, 1), [Slow, rpc("call", Node, "count", "later")]), #{}),
        Sessions = count(<<"session">>, Log),
        ?assertMatch(#{<<"error_rpc_timeout">> := Sessions, <<"error_rpc">> := Sessions}, map_get(counts, Log)),
        ?assertEqual([Sessions], counted(Cluster, later))
    end).
