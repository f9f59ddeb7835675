%% SPDX-License-Identifier: Apache-2.0
%% The service on three nodes under a thousand users of Tsung at a time, over a real MariaDB that is taken away meanwhile: what
%% Tsung counts as failed is what the nodes have counted. It is of the deep tier, and skipped where one of the two is not installed.
-module(subscribers_tsung_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    a_killed_database_fails_what_tsung_counts_and_leaves_the_service_whole/1,
    a_silent_database_keeps_no_user_longer_than_told/1
]).
-export([counting/0, asked/0, request/0, timed/0, at_the_database/0]).

-define(NODES, 3).
-define(USERS, 1000).
-define(REQUESTS, 8).
-define(THINK_S, 2).
%% How long the service may take to be whole again.
-define(WHOLE_MS, 5000).
%% What a user may wait longer than the service is told, on a machine that Tsung keeps busy.
-define(BUSY_MS, 5000).
-define(MS, 60_000).

suite() -> [{timetrap, {minutes, 8}}].

all() ->
    case atoll_tier:tier() of
        fast -> [];
        deep -> [a_killed_database_fails_what_tsung_counts_and_leaves_the_service_whole, a_silent_database_keeps_no_user_longer_than_told]
    end.

init_per_suite(Config) ->
    case {atoll_tsung:version(), atoll_bench_mariadb:missing()} of
        {{ok, _}, []} -> Config;
        {{error, Sentence}, _} -> {skip, lists:flatten(Sentence)};
        {_, Packages} -> {skip, lists:flatten(["Not installed: scripts/setup ", lists:join(" ", Packages)])}
    end.

end_per_suite(_) -> ok.

init_per_testcase(_, Config) -> [{dir, atoll_cli_os:new_dir()} | Config].

end_per_testcase(_, Config) -> ok = atoll_cli_os:remove_dir(?config(dir, Config)).

a_killed_database_fails_what_tsung_counts_and_leaves_the_service_whole(Config) ->
    Pool = 10,
    with_users(Config, #{pool => Pool}, fun(#{server := Server} = Ready) ->
        ok = atoll_bench_mariadb:kill(Server),
        ok = await(fun() -> lists:all(fun(Failed) -> sum(Failed) > 0 end, failed(Ready)) end),
        ok = atoll_bench_mariadb:again(Server),
        ?assertMatch({ok, _}, atoll_bench_subscribers_run:whole(Ready, ?WHOLE_MS)),
        0
    end, fun(_Log, Ready, Kinds) ->
        ?assertEqual([], Kinds -- [disconnected, timed_out, no_connection_free]),
        [?assertMatch({_, #{connected := Pool, free := Pool, callers := 0}}, Status) || Status <- atoll_bench_subscribers_run:status(Ready)]
    end).

%% It is stopped, so all connections are in use: by callers that wait for an answer, while others wait for a connection.
a_silent_database_keeps_no_user_longer_than_told(Config) ->
    {WaitMs, QueryMs} = {300, 1000},
    with_users(Config, #{pool => 5, wait_ms => WaitMs, query_ms => QueryMs, callers => 100}, fun(#{server := Server} = Ready) ->
        {ok, Pid} = atoll_bench_mariadb:os_pid(Server),
        ok = atoll_cli_os:signal(Pid, "STOP"),
        ok = await(fun() -> lists:all(fun(#{no_connection_free := N}) -> N > 0 end, failed(Ready)) end),
        {Ms, {error, Why}} = once(Ready),
        ?assert(Ms < WaitMs + QueryMs + ?BUSY_MS, Ms),
        ?assertMatch({match, _}, re:run(unicode:characters_to_binary(subscribers:format_error(Why)), "^[A-Z].*\\.$", [unicode])),
        ok = atoll_cli_os:signal(Pid, "CONT"),
        ?assertMatch({ok, _}, atoll_bench_subscribers_run:whole(Ready, ?WHOLE_MS)),
        %% That one was none of Tsung's.
        1
    end, fun(#{samples := #{<<"request">> := #{max := Longest}}}, _Ready, Kinds) ->
        ?assert(Longest < WaitMs + QueryMs + ?BUSY_MS, Longest),
        ?assertEqual([], [no_connection_free, timed_out] -- Kinds)
    end).

%% A service whose database is harmed in the middle of a run of Tsung. What is done says how many failures are none of Tsung's.
with_users(Config, Settings, Harm, Judge) ->
    Shape = #{store => mysql, nodes => ?NODES, emulator => no_wait, rows => 0, requester => false, flush => 2, settings => Settings},
    {ok, #{services := Services} = Ready} = atoll_bench_subscribers_run:start(Shape, #{}),
    _ = [ok = call(Node, Ready, counting, []) || Node <- Services],
    Before = atoll_bench_subscribers_run:connections(Ready),
    ?assertEqual(?NODES * map_get(pool, Settings), Before),
    Plan = #{
        nodes => Services, module => atom_to_list(?MODULE), function => "request", arguments => "", type => call, rate => ?USERS, seconds => 4,
        users => ?USERS, requests => ?REQUESTS, think => ?THINK_S, clients => []
    },
    {Harming, Ref} = spawn_monitor(fun() ->
        ok = await(fun() -> lists:sum(asked(Ready)) > ?USERS end),
        exit({harmed, Harm(Ready)})
    end),
    {ok, #{runs := [#{samples := Samples, counts := Counted, users_max := Most} = Log]}} =
        atoll_tsung:run(#{scenario => {text, atoll_tsung_scenario:new(Plan)}, out => filename:join(?config(dir, Config), "out")}),
    {harmed, Others} = receive {'DOWN', Ref, process, Harming, Ended} -> Ended after ?MS -> late end,
    Requests = ?USERS * ?REQUESTS,
    ?assertEqual({Requests, Requests}, {map_get(count, map_get(<<"request">>, Samples)), lists:sum(asked(Ready))}),
    ?assert(Most > 0.9 * ?USERS, Most),
    %% All that failed, and nothing else.
    Failures = failed(Ready),
    Failed = lists:sum([sum(Of) || Of <- Failures]) - Others,
    ?assert(Failed > 0 andalso Failed < Requests, Failed),
    ?assertEqual(#{<<"error_answer">> => Failed}, maps:filter(fun(Name, N) -> string:prefix(Name, "error") =/= nomatch andalso N > 0 end, Counted)),
    _ = Judge(Log, Ready, lists:usort([Kind || Of <- Failures, {Kind, N} <- maps:to_list(Of), N > 0])),
    ?assertEqual(Before, atoll_bench_subscribers_run:connections(Ready)),
    %% What was given up here is closed there too.
    ok = await(fun() -> call(hd(Services), Ready, at_the_database, []) =:= Before end),
    ok = atoll_bench_subscribers_run:stop(Ready).

call(Node, #{cluster := Cluster}, Function, Args) -> atoll_cluster:call(Cluster, Node, ?MODULE, Function, Args, ?MS).

%% Of each node, how many requests had which error.
failed(Ready) -> [maps:without([lost, connected], Counts) || {_, #{counts := Counts}} <- atoll_bench_subscribers_run:status(Ready)].

sum(Of) -> lists:sum(maps:values(Of)).

asked(#{services := Services} = Ready) -> [call(Node, Ready, asked, []) || Node <- Services].

%% On a node: begins to count requests.
counting() -> persistent_term:put(?MODULE, counters:new(1, [write_concurrency])).

asked() -> counters:get(persistent_term:get(?MODULE), 1).

%% On a node: what users of Tsung call.
request() ->
    ok = counters:add(persistent_term:get(?MODULE), 1, 1),
    subscribers:write(1).

%% On a node: one more, and how long it took.
once(#{services := [Node | _]} = Ready) -> call(Node, Ready, timed, []).

timed() ->
    At = erlang:monotonic_time(millisecond),
    Answer = subscribers:write(1),
    {erlang:monotonic_time(millisecond) - At, Answer}.

%% On a node: the connections that the database has with all of them.
at_the_database() ->
    Worker = poolboy:checkout(subscribers_pool),
    Answer = subscribers_connection:query(Worker, "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'subscribers'", ?MS),
    ok = poolboy:checkin(subscribers_pool, Worker),
    case Answer of
        {rows, [[N]]} -> binary_to_integer(N);
        {error, Why} -> Why
    end.

%% Nobody tells.
await(Is) -> atoll_cli_os:await(Is, ?MS).
