%% SPDX-License-Identifier: Apache-2.0
%% `atoll aco' as far as no node is started: what is wrong with a command line,
%% which problem it means, and how a result is shown.
-module(atoll_cases_aco_tests).
-include_lib("eunit/include/eunit.hrl").

-define(FILES, [
    {"plain", "2\n1 2\n3 4\n5 6\n"},
    {"two", "1 2 3 4 5 6\n 7 8 9 10 11 12\n"},
    {"words", "2\n1 2\nthree 4\n5 6\n"},
    {"below", "2 1 2 3 4 5 -6"},
    {"short", "3 1 2 3 1 2 3"},
    {"optima", "31\n41\n"},
    {"folder/", ""}
]).

what_is_wrong_is_said_in_one_sentence_before_a_node_starts_test_() ->
    with_files([
        {Args, "atoll aco", {usage, Sentence}}
     || {Args, Sentence} <- [
            {["--input", "DIR/words"], "--input DIR/words has \"three\" in line 3 where a whole number must be"},
            {["--input", "DIR/below"], "--input DIR/below has the negative number -6 in line 1"},
            {["--input", "DIR/short"],
             "--input DIR/short begins with 3, and so many jobs need 9 numbers after it, not 6"},
            {["--input", "DIR/two"],
             "--input DIR/two has 12 numbers, which is no multiple of the 120 that a problem of 40 jobs needs"},
            {["--input", "DIR/two", "--jobs", "2", "--problem", "3"], "--input DIR/two has 2 problems, and no 3"},
            {["--input", "DIR/plain", "--problem", "2"], "--input DIR/plain has one problem, and no 2"},
            {["--input", "DIR/plain", "--optima", "DIR/optima", "--optimum", "5"],
             "--optimum and --optima say the same, so one of them is enough"},
            {["--input", "DIR/two", "--jobs", "1", "--problem", "3", "--optima", "DIR/optima"],
             "--optima DIR/optima has 2 costs, and none for problem 3"},
            {["--input", "DIR/plain", "--optima", "DIR/words"],
             "--optima DIR/words has \"three\" in line 3 where a whole number must be"},
            {["--optima", "DIR/optima"], "--optima is for the problems of --input FILE"},
            {["--until-optimum"], "--until-optimum wants --optimum COST or --optima FILE"},
            {["--against-optima", "1,2"], "--against-optima wants --input FILE and --optima FILE"},
            {["--against-optima", "1,x"], "--against-optima must be whole numbers from 1 to 1,000, with commas between, not \"1,x\""},
            {["--input", "DIR/two", "--jobs", "2", "--optima", "DIR/words", "--against-optima", "1"],
             "--optima DIR/words has \"three\" in line 3 where a whole number must be"},
            {["--mode", "mesh"], "--mode must be one of tl, ml, gr, sr, not \"mesh\""},
            {["--nodes", "4"], "--nodes must be at least 5 for --degree 2, not \"4\""},
            {["--nodes", "9", "--degree", "3"], "--nodes must be at least 10 for --degree 3, not \"9\""},
            {["--mode", "tl", "--nodes", "1"], "--nodes must be at least 2 in mode tl, not \"1\""},
            {["--ants", "0"], "--ants must be a whole number from 1 to 10,000, not \"0\""},
            {["--local-search", "o3"], "--local-search must be one of none, o1, o2, o12, o21, not \"o3\""},
            {["--heuristic", "atc"], "--heuristic must be one of mdd, edd, au, not \"atc\""},
            {["--q0", "1.5"], "--q0 must be a number from 0 to 1, not \"1.5\""},
            {["--tau0", "x"], "--tau0 must be auto or a number from 0 to 1,000,000, not \"x\""},
            {["--duplicating", "0"], "--duplicating must be a whole number from 1 to 10,000, not \"0\""},
            {["--jobs", "2001"], "--jobs must be a whole number from 1 to 2,000, not \"2001\""},
            {["--chaos", "-1"], "--chaos must be a number from 0 to 100, not \"-1\""},
            {["--kill", "master"],
             "--kill must be some of colony, gateway, each once, with commas between, not \"master\""},
            {["--kill", "gateway"], "--nodes must be at least 11 for --kill gateway with --degree 2, not \"8\""},
            {["--nodes", "30", "--degree", "3", "--kill", "gateway"],
             "--nodes must be at least 31 for --kill gateway with --degree 3, not \"30\""},
            {["--mode", "tl", "--kill", "gateway"],
             "--kill gateway is for modes with submasters, which are ml, gr and sr"},
            {["--colonie", "5"], "there is no option --colonie; did you mean --colonies?"}
        ]
    ]).

with_files(Cases) ->
    {setup,
     fun() ->
         Dir = atoll_test_file:temporary("atoll_cases_aco_tests"),
         [begin
              File = filename:join(Dir, Name),
              ok = filelib:ensure_dir(File),
              lists:suffix("/", Name) orelse (ok = file:write_file(File, Text))
          end || {Name, Text} <- ?FILES],
         ok = filelib:ensure_dir(filename:join([Dir, "folder", "x"])),
         Dir
     end,
     fun(Dir) -> ok = file:del_dir_r(Dir) end,
     fun(Dir) ->
         In = fun(Text) -> lists:flatten(string:replace(Text, "DIR", Dir, all)) end,
         [{string:join(Args, " "), fun() ->
              {Said, _Json, {Kind, Is}} = atoll_cli:execute(["aco" | lists:map(In, Args)]),
              ?assertEqual({Who, Expected, In(Sentence)}, {Said, Kind, lists:flatten(Is)})
          end} || {Args, Who, {Expected, Sentence}} <- Cases]
     end}.

more_colonies_reach_no_fewer_optima_and_none_is_below_test() ->
    {ok, Options} = aco_options:new(#{ants => 2, local_iterations => 2, global_iterations => 3, local_search => o12}),
    Problems = [{Problem, Cost} || K <- lists:seq(1, 6), Problem <- [atoll_bench_aco_sample:problem(8, K)],
                                   Cost <- [atoll_experiment_optimum:exact(Problem)]],
    [One, Four] = atoll_cases_aco_optima:run([1, 4], Problems, Options),
    ?assertMatch(#{colonies := 1, problems := 6, below := 0}, One),
    ?assertMatch(#{colonies := 4, problems := 6, below := 0}, Four),
    ?assert(maps:get(reached, Four) >= maps:get(reached, One)),
    ?assertMatch({_, _}, binary:match(iolist_to_binary(atoll_cases_aco_optima:table([One, Four])), <<"optimal">>)).

without_a_file_the_same_problem_is_drawn_for_the_same_numbers_test() ->
    Read = fun(Values) -> {ok, Problem, none} = atoll_cases_aco_problem:read(Values), Problem end,
    ?assertEqual(40, aco_problem:size(Read(#{problem => 1}))),
    ?assertEqual(Read(#{problem => 1}), Read(#{problem => 1})),
    ?assertNotEqual(Read(#{problem => 1}), Read(#{problem => 2})),
    ?assertEqual(7, aco_problem:size(Read(#{problem => 1, jobs => 7}))).

the_least_cost_that_is_known_is_that_of_the_problem_test() ->
    File = atoll_test_file:temporary("atoll_cases_aco_tests"),
    [Input, Optima] = [File ++ Ending || Ending <- [".problems", ".optima"]],
    ok = file:write_file(Input, "1 2 3 4 5 6\n 7 8 9 10 11 12\n"),
    ok = file:write_file(Optima, "31\n41\n"),
    try
        Cost = fun(K) -> {ok, _, Optimum} = atoll_cases_aco_problem:read(#{input => Input, jobs => 2, problem => K, optima => Optima}), Optimum end,
        ?assertEqual([31, 41], [Cost(1), Cost(2)])
    after
        ok = file:delete(Input),
        ok = file:delete(Optima)
    end.

nodes_that_have_what_is_to_be_killed_are_enough_test_() ->
    [?_assertEqual(ok, atoll_cases_aco_run:check(task(Changes)))
     || Changes <- [#{}, #{mode => tl, nodes => 2}, #{nodes => 5}, #{kill => [colony]},
                    #{nodes => 11, kill => [colony, gateway]},
                    #{nodes => 31, degree => 3, kill => [gateway]}, #{nodes => 10, degree => 3}]].

a_result_has_its_keys_in_order_test() ->
    {Pairs} = atoll_cases_aco_result:json(task(#{}), result()),
    ?assertEqual([best, optimum, gap, wall_ms, packets_sent, connections_max, names, kills, restarts,
                  mode, nodes, rounds, seed, nodes_lost], [Key || {Key, _} <- Pairs]).

what_is_not_known_is_null_test() ->
    {Pairs} = atoll_cases_aco_result:json(task(#{}), (result())#{optimum := none, gap := none, packets_sent := unknown}),
    ?assertEqual([optimum, gap, packets_sent], [Key || {Key, null} <- Pairs]).

a_table_says_what_is_a_lower_bound_test() ->
    Table = fun(Result) -> unicode:characters_to_list(atoll_cases_aco_result:table(task(#{}), Result)) end,
    ?assertMatch({match, _}, re:run(Table(result()), "^packets between nodes +6$", [multiline])),
    ?assertMatch({match, _}, re:run(Table((result())#{nodes_lost := [a@h]}),
                                    "^packets between nodes, at least +6$", [multiline])),
    ?assertMatch({match, _}, re:run(Table(result()), "^above the optimum +25 %$", [multiline])),
    ?assertEqual(nomatch, string:find(Table((result())#{optimum := none, gap := none}), "optimum")).

an_optimum_that_is_none_has_no_percentage_test() ->
    Table = fun(Result) -> unicode:characters_to_list(atoll_cases_aco_result:table(task(#{}), Result)) end,
    Below = Table((result())#{optimum := 5000, gap := -0.98}),
    ?assertMatch({match, _}, re:run(Below, "^optimum +5,000, which the best is below$", [multiline])),
    ?assertEqual(nomatch, string:find(Below, "above the optimum")),
    ?assertMatch({match, _}, re:run(Table((result())#{optimum := 0, gap := 100.0}), "^above the optimum +100$", [multiline])).

what_an_option_may_be_the_algorithm_says_test() ->
    {ok, Values, []} = atoll_cli_options:parse(atoll_cases_aco:options(), [], []),
    Own = maps:with(maps:keys(aco_options:defaults()), Values),
    ?assertEqual([alpha, ants, beta, global_iterations, heuristic, local_iterations, local_search, q0, rho, seed, tau0],
                 lists:sort(maps:keys(Own))),
    ?assertEqual(Own, maps:with(maps:keys(Own), aco_options:defaults())).

a_file_is_not_read_without_end_test() ->
    {error, Why} = atoll_cases_aco_problem:read(#{input => "/dev/zero", problem => 1}),
    ?assertEqual("--input /dev/zero is larger than 33,554,432 bytes", lists:flatten(Why)).

task(Changes) ->
    {ok, Problem, none} = atoll_cases_aco_problem:read(#{problem => 1}),
    {ok, Values, []} = atoll_cli_options:parse(atoll_cases_aco:options(), [], []),
    maps:merge(atoll_cases_aco_run:task(Problem, none, Values), Changes).

result() ->
    #{best => 100, optimum => 80, gap => 0.25, wall_ms => 5, packets_sent => 6, connections_max => 7, names => 8,
      kills => 9, restarts => 10, mode => sr, nodes => 8, rounds => 20, nodes_lost => []}.
