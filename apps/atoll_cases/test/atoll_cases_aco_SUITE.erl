%% SPDX-License-Identifier: Apache-2.0
%% `atoll aco' as a user runs it, on real nodes.
-module(atoll_cases_aco_SUITE).
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([what_is_killed_meanwhile_changes_nothing_of_what_is_found/1,
         where_nobody_watches_a_killed_node_fails_the_run/1]).

-define(RUN_MS, 120000).

suite() -> [{timetrap, {minutes, 5}}].

all() -> cases(atoll_tier:tier()).

cases(fast) -> [what_is_killed_meanwhile_changes_nothing_of_what_is_found];
%% The master waits for the take-down of what is gone.
cases(deep) -> cases(fast) ++ [where_nobody_watches_a_killed_node_fails_the_run].

init_per_testcase(_, Config) -> [{dir, atoll_cli_os:new_dir()} | Config].

end_per_testcase(_, Config) -> atoll_cli_os:remove_dir(dir(Config)).

%% A node and processes on all nodes are killed, and one process elsewhere has
%% run the same colonies.
what_is_killed_meanwhile_changes_nothing_of_what_is_found(Config) ->
    {ok, Options} = aco_options:new(#{ants => 3, local_iterations => 3, global_iterations => 9, local_search => o1}),
    #{best := Best} = aco_seq:run(#{problem => atoll_bench_aco_sample:problem(30, 2), options => Options, colonies => 4}),
    Optimum = integer_to_list(Best),
    #{status := 0, stdout := Stdout} = run(Config, [
        "--problem", "2", "--jobs", "30", "--nodes", "5", "--ants", "3", "--local-iterations", "3",
        "--global-iterations", "9", "--local-search", "o1", "--pace", "400", "--optimum", Optimum,
        "--chaos", "1", "--kill", "colony", "--json"]),
    Result = atoll_cli_os:decode(Stdout),
    ?assertMatch(#{<<"best">> := Best, <<"optimum">> := Best, <<"gap">> := +0.0, <<"rounds">> := 9, <<"mode">> := <<"sr">>,
                   <<"nodes">> := 5, <<"seed">> := 1}, Result),
    #{<<"restarts">> := Restarts, <<"packets_sent">> := Packets, <<"connections_max">> := Max} = Result,
    ?assert(Restarts > 0),
    ?assert(Packets > 0),
    %% All five are one group's parent and its children.
    ?assert(Max =< 4),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config))).

where_nobody_watches_a_killed_node_fails_the_run(Config) ->
    #{status := 3, stdout := <<>>, stderr := Stderr} = run(Config, [
        "--mode", "tl", "--nodes", "3", "--ants", "2", "--local-iterations", "2", "--global-iterations", "1000",
        "--pace", "100", "--kill", "colony"]),
    [Sentence] = [Line || <<"atoll aco: ", Line/binary>> <- binary:split(Stderr, <<"\n">>, [global])],
    ?assertMatch({_, _}, binary:match(Sentence, <<"@127.0.0.1">>), Stderr),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config))).

run(Config, Args) ->
    atoll_cli_line:run(dir(Config), ["aco" | Args], ?RUN_MS).

dir(Config) -> proplists:get_value(dir, Config).
