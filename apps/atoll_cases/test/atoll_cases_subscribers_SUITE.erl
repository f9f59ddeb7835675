%% SPDX-License-Identifier: Apache-2.0
%% `bin/atoll subscribers' as a user has it.
-module(atoll_cases_subscribers_SUITE).
-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    a_service_that_is_held_is_shown_loaded_and_gone/1,
    a_database_that_is_killed_is_missed_and_forgiven/1,
    a_held_service_and_its_database_are_gone_when_it_is_killed/1,
    wrong_usage_says_one_sentence_and_starts_nothing/1
]).

-define(GONE_MS, 20000).
-define(LINE_MS, 60000).

suite() -> [{timetrap, {minutes, 5}}].

all() -> cases(atoll_tier:tier()).

cases(fast) -> [a_service_that_is_held_is_shown_loaded_and_gone, wrong_usage_says_one_sentence_and_starts_nothing];
cases(deep) -> cases(fast) ++ [a_database_that_is_killed_is_missed_and_forgiven, a_held_service_and_its_database_are_gone_when_it_is_killed].

init_per_testcase(Case, Config) ->
    Takes = lists:member(Case, [a_database_that_is_killed_is_missed_and_forgiven, a_held_service_and_its_database_are_gone_when_it_is_killed]),
    case [Package || Takes, Package <- atoll_bench_mariadb:missing()] of
        [] -> [{dir, atoll_cli_os:new_dir()} | Config];
        Packages -> {skip, lists:flatten(["Not installed: scripts/setup ", lists:join(" ", Packages)])}
    end.

end_per_testcase(_, Config) -> ok = atoll_cli_os:remove_dir(?config(dir, Config)).

load(Config, Args) ->
    #{status := Status, stdout := Json, stderr := Said} = atoll_cli_line:run(?config(dir, Config), ["subscribers", "load", "--json" | Args]),
    ?assertEqual({0, Said, Json}, {Status, Said, Json}),
    atoll_cli_os:decode(Json).

a_service_that_is_held_is_shown_loaded_and_gone(Config) ->
    Dir = ?config(dir, Config),
    Up = atoll_cli_os:start(Dir, ["subscribers", "up", "--nodes", "2", "-c", "reef"]),
    _ = atoll_cli_os:await_line(Up, stdout, <<"stop: ">>),
    #{<<"finished">> := 20, <<"failed">> := 0, <<"unfinished">> := 0, <<"whole_again_ms">> := null} =
        load(Config, ["-c", "reef", "--rate", "20", "--operations", "10", "--seconds", "1"]),
    #{status := 0, stdout := Json} = atoll_cli_line:run(Dir, ["subscribers", "status", "-c", "reef", "--json"]),
    #{<<"nodes">> := Nodes, <<"silent">> := []} = atoll_cli_os:decode(Json),
    ?assertMatch([#{<<"store">> := <<"mnesia">>, <<"rows">> := Rows, <<"running">> := [_, _]}, #{<<"rows">> := Rows}] when Rows > 100, Nodes),
    #{status := 0, stdout := Table} = atoll_cli_line:run(Dir, ["subscribers", "status", "-c", "reef"]),
    ?assertMatch({_, _}, binary:match(Table, <<"reef_service_2@127.0.0.1">>)),
    #{status := 0} = atoll_cli_line:run(Dir, ["down", "-c", "reef"]),
    _ = atoll_cli_os:await_exit(Up, ?LINE_MS),
    ?assertEqual(ok, atoll_cli_os:await_none_left(Dir)).

a_database_that_is_killed_is_missed_and_forgiven(Config) ->
    #{<<"failed">> := Failed, <<"whole_again_ms">> := Ms, <<"connections_before">> := 6, <<"connections_after">> := 6, <<"errors">> := Errors} =
        load(Config, ["--store", "mysql", "--nodes", "3", "--pool", "2", "--rate", "100", "--operations", "1", "--seconds", "6", "--kill-database", "2"]),
    ?assert(Failed > 0 andalso Ms =< 5000),
    ?assertEqual(Failed, lists:sum(maps:values(Errors))),
    ?assertEqual(ok, atoll_cli_os:await_none_left(?config(dir, Config))).

a_held_service_and_its_database_are_gone_when_it_is_killed(Config) ->
    Dir = ?config(dir, Config),
    Up = atoll_cli_os:start(Dir, ["subscribers", "up", "--store", "mysql", "-c", "reef"]),
    _ = atoll_cli_os:await_line(Up, stdout, <<"stop: ">>),
    %% Other jobs have theirs.
    [_] = servers(Dir),
    ok = atoll_cli_os:signal(Up, "KILL"),
    _ = atoll_cli_os:await_exit(Up, ?LINE_MS),
    ok = atoll_cli_os:await(fun() -> servers(Dir) =:= [] end, ?GONE_MS),
    ?assertEqual(ok, atoll_cli_os:await_none_left(Dir)).

servers(Dir) -> atoll_cli_os:left(Dir, fun([Program | _]) -> filename:basename(Program) =:= "mariadbd" end).

wrong_usage_says_one_sentence_and_starts_nothing(Config) ->
    [
        begin
            #{status := Status, stdout := <<>>, stderr := Said} = atoll_cli_line:run(?config(dir, Config), ["subscribers" | Args]),
            ?assertEqual({Args, 2}, {Args, Status}),
            ?assertMatch({Args, {_, _}}, {Args, binary:match(Said, Sentence)})
        end
     || {Args, Sentence} <- [
            {["up", "--store", "mnesia", "--pool", "3"], <<"--pool is for --store mysql">>},
            {["up", "--store", "mysql", "--majority"], <<"--majority is for --store mnesia">>},
            {["load", "--kill-database", "1"], <<"--kill-database is for --store mysql">>},
            {["load", "--store", "mysql", "--kill-database", "9", "--seconds", "9"], <<"--kill-database must be less than --seconds, which is 9">>},
            {["load", "-c", "reef", "--store", "mysql"], <<"--store is for a service that is started here">>}
        ]
    ].
