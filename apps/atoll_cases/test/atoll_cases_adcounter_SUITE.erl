%% SPDX-License-Identifier: Apache-2.0
%% `bin/atoll adcounter' as a user has it.
-module(atoll_cases_adcounter_SUITE).
-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    a_run_on_real_nodes_is_told_and_leaves_nothing/1,
    a_simulated_run_is_told_and_repeats/1,
    wrong_usage_says_one_sentence_and_starts_nothing/1
]).

suite() -> [{timetrap, {minutes, 5}}].

all() -> [a_run_on_real_nodes_is_told_and_leaves_nothing, a_simulated_run_is_told_and_repeats, wrong_usage_says_one_sentence_and_starts_nothing].

init_per_testcase(_, Config) -> [{dir, atoll_cli_os:new_dir()} | Config].

end_per_testcase(_, Config) -> ok = atoll_cli_os:remove_dir(?config(dir, Config)).

run(Config, Args) ->
    #{status := Status, stdout := Out, stderr := Said} = atoll_cli_line:run(?config(dir, Config), ["adcounter", "run" | Args]),
    ?assertEqual({0, Said, Out}, {Status, Said, Out}),
    Out.

a_run_on_real_nodes_is_told_and_leaves_nothing(Config) ->
    Table = run(Config, ["--nodes", "3", "--budget", "6", "--interval", "0.2", "--propagation", "0.1"]),
    [?assertMatch({_, {_, _}}, {Line, binary:match(Table, Line)}) || Line <- [<<"clients that saw it disabled  2 of 2">>, <<"sent, delta">>]],
    ?assertEqual(ok, atoll_cli_os:await_none_left(?config(dir, Config))).

a_simulated_run_is_told_and_repeats(Config) ->
    Args = ["--simulated", "--nodes", "12", "--how", "state", "--mode", "server", "--offline", "20", "--seed", "3", "--json"],
    Json = run(Config, Args),
    #{<<"shown">> := Shown, <<"counted">> := Shown, <<"seen">> := 11, <<"clients">> := 11, <<"sent">> := #{<<"state">> := #{<<"bytes">> := Bytes}}} =
        atoll_cli_os:decode(Json),
    ?assert(Bytes > 0),
    ?assertEqual(Json, run(Config, Args)).

wrong_usage_says_one_sentence_and_starts_nothing(Config) ->
    [
        begin
            #{status := Status, stdout := <<>>, stderr := Said} = atoll_cli_line:run(?config(dir, Config), ["adcounter", "run" | Args]),
            ?assertEqual({Args, 2}, {Args, Status}),
            ?assertMatch({Args, {_, _}}, {Args, binary:match(Said, Sentence)})
        end
     || {Args, Sentence} <- [
            {["--seed", "1"], <<"--seed is for --simulated">>},
            {["--nodes", "1"], <<"--nodes">>},
            {["--mode", "ring"], <<"--mode">>}
        ]
    ],
    %% No machine has the memory for so many.
    #{status := 3, stderr := Refused} = atoll_cli_line:run(?config(dir, Config), ["adcounter", "run", "--nodes", "100000"]),
    ?assertMatch({_, _}, binary:match(Refused, <<"100000 nodes take">>)).
