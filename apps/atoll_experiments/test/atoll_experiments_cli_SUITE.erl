%% SPDX-License-Identifier: Apache-2.0
%% `bin/atoll experiments' as a user has it.
-module(atoll_experiments_cli_SUITE).
-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([what_is_measured_stands_on_a_page_that_can_be_made_again/1, wrong_usage_says_one_sentence/1,
         a_run_that_is_interrupted_leaves_no_nodes/1]).

-define(GONE_MS, 20000).
-define(BEGUN_MS, 120000).

suite() -> [{timetrap, {minutes, 6}}].

all() ->
    [what_is_measured_stands_on_a_page_that_can_be_made_again, wrong_usage_says_one_sentence,
     a_run_that_is_interrupted_leaves_no_nodes].

init_per_testcase(_, Config) ->
    [{dir, atoll_cli_os:new_dir()} | Config].

end_per_testcase(_, Config) ->
    ok = atoll_cli_os:remove_dir(?config(dir, Config)).

%% Real nodes, a simulation, and neither.
what_is_measured_stands_on_a_page_that_can_be_made_again(Config) ->
    Dir = ?config(dir, Config),
    Out = filename:join(Dir, "out"),
    Base = ["experiments", "--out", Out],
    #{status := 0, stdout := Said} = atoll_cli_line:run(Dir, Base ++ ["--size", "small", "--only", "orbit,optimum,beyond", "--json"]),
    ?assertMatch(#{<<"experiments">> := 3, <<"failed">> := 0}, atoll_cli_os:decode(Said)),
    {ok, Page} = file:read_file(filename:join(Out, "experiments.md")),
    [?assertMatch({_, _}, binary:match(Page, Part)) || Part <- [
        <<"## Orbit at scale">>, <<"## Beyond this machine">>, <<"--size small">>
    ]],
    %% Four nodes: six connections in a mesh, and in two groups of two three; in parentheses where others have disturbed it.
    ?assertMatch({match, _}, re:run(Page, <<"\\| 4 \\| \\(?6\\)? \\| \\(?3\\)? \\|">>)),
    ok = file:delete(filename:join(Out, "experiments.md")),
    #{status := 0} = atoll_cli_line:run(Dir, Base ++ ["--draw"]),
    ?assertEqual({ok, Page}, file:read_file(filename:join(Out, "experiments.md"))).

wrong_usage_says_one_sentence(Config) ->
    Dir = ?config(dir, Config),
    Full = filename:join(Dir, "full"),
    ok = filelib:ensure_dir(filename:join(Full, "run.json")),
    ok = file:write_file(filename:join(Full, "run.json"), "{\"version\":2,\"size\":\"full\",\"experiments\":{}}"),
    Garbled = filename:join(Dir, "garbled"),
    ok = filelib:ensure_dir(filename:join(Garbled, "run.json")),
    ok = file:write_file(filename:join(Garbled, "run.json"), "{\"version\":2,\"size\":\"small\",\"experiments\":{\"orbit\":{\"asks\":[7]}}}"),
    [
        begin
            #{status := Status, stdout := Out, stderr := Said} = atoll_cli_line:run(Dir, Args),
            ?assertEqual({Code, <<>>}, {Status, Out}),
            ?assertMatch([_], string:lexemes(Said, "\n")),
            ?assertMatch({_, _}, binary:match(Said, Part))
        end
     || {Args, Code, Part} <- [
            {["experiments", "--only", "fish"], 2, <<"must be some of orbit">>},
            {["experiments", "--size", "huge"], 2, <<"must be">>},
            {["experiments", "--draw", "--out", filename:join(Dir, "nothing")], 3, <<"no results">>},
            {["experiments", "--draw", "--out", Garbled], 3, <<"garbled is not what experiments write: ">>},
            {["experiments", "--size", "small", "--out", Full], 3, <<"of the size full">>},
            {["experiments", "--out", filename:join(Full, "run.json")], 3, <<"run.json: ">>}
        ]
    ].

a_run_that_is_interrupted_leaves_no_nodes(Config) ->
    Dir = ?config(dir, Config),
    Out = filename:join(Dir, "out"),
    Program = atoll_cli_os:start(Dir, ["experiments", "--only", "traffic", "--size", "small", "--out", Out]),
    ok = atoll_cli_os:await(fun() -> length(atoll_cli_os:beams(Dir)) > 3 end, ?BEGUN_MS),
    ok = atoll_cli_os:signal(Program, "INT"),
    #{status := 130} = atoll_cli_os:await_exit(Program, ?GONE_MS),
    ok = atoll_cli_os:await_none_left(Dir).
