%% SPDX-License-Identifier: Apache-2.0
%% `bin/atoll ring' as a user has it.
-module(atoll_cases_ring_SUITE).
-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([a_held_ring_is_written_read_grown_and_gone/1, wrong_usage_says_one_sentence_and_starts_nothing/1]).

-define(LINE_MS, 60000).

suite() -> [{timetrap, {minutes, 5}}].

all() -> [a_held_ring_is_written_read_grown_and_gone, wrong_usage_says_one_sentence_and_starts_nothing].

init_per_testcase(_, Config) -> [{dir, atoll_cli_os:new_dir()} | Config].

end_per_testcase(_, Config) -> ok = atoll_cli_os:remove_dir(?config(dir, Config)).

ring(Config, Args) -> atoll_cli_line:run(?config(dir, Config), ["ring" | Args] ++ ["-c", "reef"]).

a_held_ring_is_written_read_grown_and_gone(Config) ->
    Dir = ?config(dir, Config),
    Up = atoll_cli_os:start(Dir, ["ring", "up", "-n", "3", "--spare", "1", "--partitions", "16", "-c", "reef"]),
    _ = atoll_cli_os:await_line(Up, stdout, <<"stop: ">>),
    #{status := 1, stderr := None} = ring(Config, ["get", "fish"]),
    ?assertMatch({_, _}, binary:match(None, <<"there is no such key">>)),
    #{status := 0, stdout := <<"written\n">>} = ring(Config, ["put", "fish", "cod"]),
    #{status := 0} = ring(Config, ["put", "fish", "eel", "--beside"]),
    #{status := 0, stdout := <<"cod\neel\n">>} = ring(Config, ["get", "fish"]),
    #{status := 0} = ring(Config, ["put", "fish", "ray"]),
    #{status := 0, stdout := One} = ring(Config, ["get", "fish", "--json"]),
    ?assertEqual(#{<<"values">> => [<<"ray">>]}, atoll_cli_os:decode(One)),
    #{status := 0} = ring(Config, ["join", "reef_ring_4"]),
    ok = atoll_cli_os:await(fun() -> [4, 4, 4, 4] =:= owned(Config) end, ?LINE_MS),
    #{status := 0, stdout := <<"ray\n">>} = ring(Config, ["get", "fish"]),
    #{status := 0} = ring(Config, ["leave", "reef_ring_2"]),
    ok = atoll_cli_os:await(fun() -> [0, 5, 5, 6] =:= lists:sort(owned(Config)) end, ?LINE_MS),
    #{status := 0, stdout := <<"deleted\n">>} = ring(Config, ["delete", "fish"]),
    #{status := 1} = ring(Config, ["get", "fish"]),
    #{status := 0} = atoll_cli_line:run(Dir, ["down", "-c", "reef"]),
    _ = atoll_cli_os:await_exit(Up, ?LINE_MS),
    ?assertEqual(ok, atoll_cli_os:await_none_left(Dir)).

owned(Config) ->
    #{status := 0, stdout := Json} = ring(Config, ["status", "--json"]),
    #{<<"nodes">> := Nodes, <<"pending">> := Pending} = atoll_cli_os:decode(Json),
    [case Pending of 0 -> Owned; _ -> moving end || #{<<"owned">> := Owned} <- Nodes].

wrong_usage_says_one_sentence_and_starts_nothing(Config) ->
    [
        begin
            #{status := Status, stdout := <<>>, stderr := Said} = atoll_cli_line:run(?config(dir, Config), ["ring" | Args]),
            ?assertEqual({Args, 2}, {Args, Status}),
            ?assertMatch({Args, {_, _}}, {Args, binary:match(Said, Sentence)})
        end
     || {Args, Sentence} <- [
            {["up", "--partitions", "48"], <<"--partitions must be a power of two, 65536 at most, not \"48\"">>},
            {["up", "--copies", "1"], <<"--read must be at most --copies, which is 1, not \"2\"">>},
            {["put", "fish"], <<"VALUE">>}
        ]
    ].
