%% SPDX-License-Identifier: Apache-2.0
%% `bin/atoll matchstream' as a user has it.
-module(atoll_cases_matchstream_SUITE).
-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    a_run_says_whether_each_client_got_all/1, a_match_is_played_as_the_service_says/1, clients_are_held_by_other_programs_and_slow_ones_are_closed/1, who_is_refused_is_not_waited_for/1,
    a_killed_run_leaves_no_folder_and_no_redis/1, simulated_users_are_fitted_to_a_record/1, wrong_usage_says_one_sentence_and_starts_nothing/1
]).

-define(GONE_MS, 10000).
-define(LINE_MS, 60000).

suite() -> [{timetrap, {minutes, 5}}].

all() -> cases(atoll_tier:tier()).

cases(fast) -> [a_run_says_whether_each_client_got_all, a_match_is_played_as_the_service_says, wrong_usage_says_one_sentence_and_starts_nothing];
cases(deep) ->
    cases(fast) ++ [
        clients_are_held_by_other_programs_and_slow_ones_are_closed, who_is_refused_is_not_waited_for, a_killed_run_leaves_no_folder_and_no_redis,
        simulated_users_are_fitted_to_a_record
    ].

init_per_testcase(a_killed_run_leaves_no_folder_and_no_redis, Config) ->
    case matchstream_redis:find() of
        ok -> with_dir(Config);
        {error, Sentence} -> {skip, lists:flatten(Sentence)}
    end;
init_per_testcase(_, Config) -> with_dir(Config).

with_dir(Config) -> [{dir, atoll_cli_os:new_dir()} | Config].

end_per_testcase(_, Config) -> ok = atoll_cli_os:remove_dir(?config(dir, Config)).

ran(Config, Args, Expected) ->
    #{status := Status, stdout := Json, stderr := Said} = atoll_cli_line:run(?config(dir, Config), ["matchstream" | Args] ++ ["--json"], 240000),
    ?assertEqual({Expected, Said, Json}, {Status, Said, Json}),
    ?assertEqual(ok, atoll_cli_os:await_none_left(?config(dir, Config))),
    atoll_cli_os:decode(Json).

a_run_says_whether_each_client_got_all(Config) ->
    ?assertMatch(
        #{<<"clients">> := 20, <<"complete">> := 20, <<"events">> := 27, <<"received">> := 520, <<"p99_ms">> := Ms} when is_number(Ms),
        ran(Config, ["run", "-n", "20", "--speed", "1000"], 0)
    ).

%% Its own words are a command.
a_match_is_played_as_the_service_says(Config) ->
    Dir = ?config(dir, Config),
    Up = atoll_cli_os:start(Dir, ["matchstream", "up", "--port", "0", "--web", "0", "-c", "ms-played-" ++ os:getpid()]),
    {match, [Said]} = re:run(atoll_cli_os:await_line(Up, stdout, <<"stop: ">>), "^play:  atoll (.*) --speed 10$", [multiline, {capture, [1], list}]),
    ?assertMatch(
        #{status := 0, stdout := <<"rfc-bay-2026-03-14: 27 events, all acknowledged", _/binary>>},
        atoll_cli_line:run(Dir, string:lexemes(Said, " ") ++ ["--speed", "1000"], ?LINE_MS)
    ),
    %% What has ended is not played again, and a port that is taken is a sentence.
    ?assertMatch(
        #{status := 0, stdout := <<"rfc-bay-2026-03-14 is there already, and has ended: nothing was played.\n">>},
        atoll_cli_line:run(Dir, string:lexemes(Said, " "), ?LINE_MS)
    ),
    {match, [Port]} = re:run(Said, ":([0-9]+)", [{capture, [1], list}]),
    #{status := 3, stderr := Taken} = atoll_cli_line:run(Dir, ["matchstream", "up", "--port", Port, "--web", "0", "-c", "ms-taken-" ++ os:getpid()], ?LINE_MS),
    ?assertMatch({match, _}, re:run(Taken, ["did not start on node .*: port ", Port, " cannot be opened: address already in use\\.\n$"])),
    ok = atoll_cli_os:signal(Up, "INT"),
    _ = atoll_cli_os:await_exit(Up, ?LINE_MS),
    ?assertEqual(ok, atoll_cli_os:await_none_left(Dir)).

clients_are_held_by_other_programs_and_slow_ones_are_closed(Config) ->
    ?assertMatch(
        #{<<"clients">> := 101, <<"complete">> := 101, <<"slow_closed">> := 10, <<"received">> := 60701},
        ran(Config, ["run", "-n", "101", "--nodes", "2", "--loaders", "2", "--slow", "10", "--events", "600", "--speed", "10"], 0)
    ).

%% A node of the first stage has 1,024 files. Who waits for one may get that of a client that has all, and then all itself.
who_is_refused_is_not_waited_for(Config) ->
    ?assertMatch(#{<<"clients">> := 1200, <<"complete">> := Complete} when Complete > 800 andalso Complete < 1200, ran(Config, ["run", "-n", "1200", "--stage", "1", "--speed", "100"], 1)).

a_killed_run_leaves_no_folder_and_no_redis(Config) ->
    Dir = ?config(dir, Config),
    Folders = folders(),
    Run = atoll_cli_os:start(Dir, ["matchstream", "run", "--store", "redis", "-n", "10", "--speed", "0.1"]),
    ok = atoll_cli_os:await(fun() -> lists:flatmap(fun servers/1, folders() -- Folders) =/= [] end, ?LINE_MS),
    [Folder] = folders() -- Folders,
    ok = atoll_cli_os:signal(Run, "KILL"),
    _ = atoll_cli_os:await_exit(Run, ?LINE_MS),
    ?assertEqual(ok, atoll_cli_os:await(fun() -> servers(Folder) =:= [] andalso not filelib:is_dir(Folder) end, ?GONE_MS)),
    ?assertEqual(ok, atoll_cli_os:await_none_left(Dir)).

folders() -> filelib:wildcard(filename:join(os:getenv("TMPDIR", "/tmp"), "atoll-matchstream-*")).

%% Other jobs have theirs.
servers(Folder) ->
    [Pid || Pid <- string:lexemes(os:cmd("pgrep -x redis-server"), "\n"), {ok, Dir} <- [file:read_link(["/proc/", Pid, "/cwd"])], lists:prefix(Folder, Dir)].

%% Twelve users, each of whom looks, follows a match and leaves, with other pauses.
simulated_users_are_fitted_to_a_record(Config) ->
    File = filename:join(?config(dir, Config), "people"),
    Written = filename:join(?config(dir, Config), "simulated"),
    ok = file:write_file(File, [
        io_lib:format("~b u~b ~s\n", [N * 1500 + round(At * (10 + N * 0.4)), N, Kind])
     || N <- lists:seq(1, 12), {At, Kind} <- [{0, page}, {20, matches}, {90, watch}, {150, history}, {270, match}, {300, port}, {400, leave}]
    ]),
    ?assertMatch(#{<<"sessions">> := [12, 12], <<"kinds">> := #{<<"alike">> := true}, <<"gaps">> := #{<<"alike">> := true}}, ran(Config, ["alike", File, "--speed", "2", "--write", Written], 0)),
    %% The record of the service has the kinds that were drawn, each session ends with its connection, and compared to itself it is alike.
    {ok, Entries} = matchstream_record:read(Written),
    ?assertEqual({12, 12}, {length([1 || {_, _, watch} <- Entries]), length([1 || {_, _, leave} <- Entries])}),
    ?assertMatch(#{<<"gaps">> := #{<<"distance">> := Zero}} when Zero == 0, ran(Config, ["alike", Written, Written], 0)).

wrong_usage_says_one_sentence_and_starts_nothing(Config) ->
    [
        begin
            #{status := Status, stdout := <<>>, stderr := Said} = atoll_cli_line:run(?config(dir, Config), ["matchstream" | Args]),
            ?assertEqual({Args, 2}, {Args, Status}),
            ?assertMatch({Args, {_, _}}, {Args, binary:match(Said, Sentence)})
        end
     || {Args, Sentence} <- [
            {["run", "--nodes", "0"], <<"--nodes">>},
            {["run", "--with", "wings"], <<"--with">>},
            {["play", "sample", "--web", "127.0.0.1:8888"], <<"--web must be an address such as http://127.0.0.1:8888">>},
            {["play", "sample", "--web", "nonsense"], <<"--web must be an address">>},
            {["up", "--port", "20000", "--web", "20003"], <<"Clients take the ports from 20000 to 20007, and the web interface those from 20003 to 20003">>},
            {["run", "--script", "no-such-script"], <<"--script: no-such-script: no such file or directory">>}
        ]
    ].
