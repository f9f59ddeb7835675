%% SPDX-License-Identifier: Apache-2.0
%% The runner, on a small tree of tests that do everything that tests can do: what it says,
%% how it ends, and that it takes down what it has started.
-module(atoll_test_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([
    what_fails_is_told_with_the_line_that_runs_it_again/1,
    one_case_runs_alone_with_its_seed/1,
    a_run_is_repeated_with_other_seeds_and_counted/1,
    a_suite_of_the_deep_tier_is_no_job_of_the_fast_one/1,
    what_does_not_compile_is_told/1,
    a_wrong_command_line_is_told_in_a_sentence/1,
    a_case_of_a_group_is_told_with_it_and_runs_alone/1,
    what_hangs_is_told_with_the_line_that_runs_it_again/1,
    a_runner_that_is_ended_takes_all_down_and_is_no_success/1,
    nothing_that_a_job_has_started_outlives_it/1,
    a_suite_that_wants_a_quiet_machine_is_behind_all_others/1,
    what_a_dead_runner_has_left_is_removed/1,
    there_is_one_run_in_a_tree_at_a_time/1,
    nothing_is_built_while_tests_run/1,
    a_planted_fault_is_found_or_missed/1,
    a_module_of_which_nothing_is_told_is_missed/1
]).

all() ->
    [
        what_fails_is_told_with_the_line_that_runs_it_again,
        one_case_runs_alone_with_its_seed,
        a_run_is_repeated_with_other_seeds_and_counted,
        a_suite_of_the_deep_tier_is_no_job_of_the_fast_one,
        what_does_not_compile_is_told,
        a_wrong_command_line_is_told_in_a_sentence,
        a_case_of_a_group_is_told_with_it_and_runs_alone,
        what_hangs_is_told_with_the_line_that_runs_it_again,
        a_runner_that_is_ended_takes_all_down_and_is_no_success,
        nothing_that_a_job_has_started_outlives_it,
        a_suite_that_wants_a_quiet_machine_is_behind_all_others,
        what_a_dead_runner_has_left_is_removed,
        there_is_one_run_in_a_tree_at_a_time,
        nothing_is_built_while_tests_run,
        a_planted_fault_is_found_or_missed,
        a_module_of_which_nothing_is_told_is_missed
    ].

-define(TREE, [
    {"apps/reef/src/reef.erl", "-module(reef).\n-export([twice/1]).\ntwice(X) -> 2 * X.\n"},
    {"apps/reef/test/reef_tests.erl",
        "-module(reef_tests).\n-include_lib(\"eunit/include/eunit.hrl\").\n"
        "good_test() -> ok.\n"
        "bad_test() -> ?assertEqual([1], lists:seq(1, 2)).\n"
        "late_test_() -> {timeout, 0.1, fun() -> receive never -> ok end end}.\n"},
    {"apps/reef/test/reef_twice_tests.erl",
        "-module(reef_twice_tests).\n-include_lib(\"eunit/include/eunit.hrl\").\n"
        "twice_test() -> ?assertEqual(4, reef:twice(2)).\n"},
    {"apps/reef/test/reef_halts_tests.erl",
        "-module(reef_halts_tests).\n-include_lib(\"eunit/include/eunit.hrl\").\nhalts_test() -> halt(0).\n"},
    {"apps/reef/test/reef_none_tests.erl",
        "-module(reef_none_tests).\n-include_lib(\"eunit/include/eunit.hrl\").\n"},
    {"apps/reef/test/reef_crashes_tests.erl",
        "-module(reef_crashes_tests).\n-include_lib(\"eunit/include/eunit.hrl\").\n"
        "good_test() -> ok.\ncrash_test_() -> error(no_generator).\nbehind_test() -> ok.\n"},
    %% No term that can be read again.
    {"apps/reef/test/reef_fun_tests.erl",
        "-module(reef_fun_tests).\n-include_lib(\"eunit/include/eunit.hrl\").\n"
        "good_test() -> ok.\nset_up_test_() -> {setup, fun() -> error({no_set_up, fun() -> ok end}) end, [?_test(ok)]}.\n"},
    {"apps/reef/test/reef_SUITE.erl",
        "-module(reef_SUITE).\n-export([all/0, groups/0, init_per_group/2, end_per_group/2, good/1, bad/1, skipped/1, behind/1]).\n"
        "all() -> [good, bad, skipped, {group, broken}].\n"
        "groups() -> [{broken, [], [behind]}].\n"
        "init_per_group(_, _) -> error(no_group).\nend_per_group(_, _) -> ok.\n"
        "good(_) -> ok.\nbad(_) -> error({seed, os:getenv(\"SEED\")}).\n"
        "skipped(_) -> {skip, \"no network\"}.\nbehind(_) -> ok.\n"},
    {"apps/reef/test/reef_deep_SUITE.erl",
        "-module(reef_deep_SUITE).\n-export([all/0, suite/0, deep/1]).\nsuite() -> [{userdata, quiet}].\n"
        "all() -> case atoll_tier:tier() of fast -> []; deep -> [deep] end.\n"
        "deep(_) -> ok.\n"},
    {"apps/reef/test/reef_groups_SUITE.erl",
        "-module(reef_groups_SUITE).\n-export([all/0, groups/0, init_per_group/2, end_per_group/2, good/1, bad/1]).\n"
        "all() -> [{group, one}, {group, two}].\n"
        "groups() -> [{one, [], [good, {group, inner}]}, {inner, [], [bad]}, {two, [], [good, bad]}].\n"
        "init_per_group(G, Config) -> [{in, G} | Config].\nend_per_group(_, _) -> ok.\n"
        "good(_) -> ok.\nbad(Config) -> inner = proplists:get_value(in, Config), error(inside).\n"},
    {"apps/reef/test/reef_hangs_tests.erl",
        "-module(reef_hangs_tests).\n-include_lib(\"eunit/include/eunit.hrl\").\n"
        "good_test() -> ok.\n"
        "hangs_test_() -> [?_assert(true), {timeout, 1000, fun() -> receive never -> ok end end}].\n"},
    %% One of its processes has another session, and both have other parents when it is killed.
    {"apps/reef/test/reef_hangs_SUITE.erl",
        "-module(reef_hangs_SUITE).\n"
        "-export([all/0, groups/0, init_per_group/2, end_per_group/2, good/1, hangs/1, leaves/1]).\n"
        "all() -> [good, leaves, {group, slow}].\ngroups() -> [{slow, [], [good, hangs]}].\n"
        "init_per_group(_, Config) -> Config.\nend_per_group(_, _) -> ok.\n"
        "good(_) -> ok.\n"
        "leaves(_) -> open_port({spawn, \"sleep 1000\"}, []), os:cmd(\"setsid sleep 1000 >/dev/null 2>&1 &\").\n"
        "hangs(_) -> io:format(user, \"hanging~n\", []), receive never -> ok end.\n"},
    {"apps/reef/test/reef_builds_SUITE.erl",
        "-module(reef_builds_SUITE).\n-export([all/0, builds/1]).\n"
        "all() -> [builds].\n"
        "builds(_) -> error({said, os:cmd(\"cd \" ++ os:getenv(\"ATOLL_BUILT\") ++ \" && scripts/build && bin/atoll version\")}).\n"},
    {"cases/none/src/none.app.src", ""},
    {"rebar.config", ""}
]).

%% Seconds, on a machine that does much else.
-define(WAIT_S, 100).

init_per_suite(Config) ->
    Tree = filename:join(proplists:get_value(priv_dir, Config), "tree"),
    Build = filename:join(Tree, "_build"),
    Own = filename:join([Build, "default", "lib", "reef", "ebin"]),
    _ = [ok = write(filename:join(Tree, File), Text) || {File, Text} <- ?TREE],
    ok = filelib:ensure_dir(filename:join(Own, "x")),
    {ok, reef} = compile:file(filename:join(Tree, "apps/reef/src/reef.erl"), [{outdir, Own}]),
    _ = [
        ok = file:make_symlink(filename:absname(Lib), filename:join([Build, "default", "lib", filename:basename(Lib)]))
     || Lib <- filelib:wildcard(filename:join([code:lib_dir(atoll_test), "..", "*"]))
    ],
    Root = filename:join(filename:absname(code:lib_dir(atoll_test)), "../../../.."),
    _ = [
        begin
            {ok, Text} = file:read_file(filename:join(Root, Script)),
            ok = write(filename:join(Tree, Script), Text),
            ok = file:change_mode(filename:join(Tree, Script), 8#755)
        end
     || Script <- ["scripts/test", "scripts/build", "scripts/built", "bin/atoll"]
    ],
    %% What runners put there is told from what others do.
    Temporary = filename:join(proplists:get_value(priv_dir, Config), "tmp"),
    ok = filelib:ensure_dir(filename:join(Temporary, "x")),
    ok = write(filename:join(Build, ".built"), ""),
    [{tree, Tree}, {temporary, Temporary} | Config].

end_per_suite(_Config) -> ok.

write(File, Text) ->
    ok = filelib:ensure_dir(File),
    file:write_file(File, Text).

what_fails_is_told_with_the_line_that_runs_it_again(Config) ->
    {1, Said} = run(["--suite", "reef_tests,reef_SUITE,reef_twice_tests", "--seed", "42"], Config),
    has("reef_tests.* bad_test\n", Said),
    has("again: make test SUITE=reef_tests CASE=bad_test SEED=42\n", Said),
    has("late_test_", Said),
    has("reef_SUITE bad\n.*\\{seed,\"42\"\\}", Said),
    has("again: make test SUITE=reef_SUITE CASE=bad SEED=42\n", Said),
    %% What stood behind something that failed has failed; what was skipped on purpose has not.
    has("reef_SUITE broken:init_per_group", Said),
    has("\n3 passed, 5 failed, 1 skipped\n$", Said).

one_case_runs_alone_with_its_seed(Config) ->
    {0, Ct} = run(["--suite", "reef_SUITE", "--case", "good"], Config),
    has("\n1 passed, 0 failed\n$", Ct),
    {0, Unit} = run(["--suite", "reef_tests", "--case", "good_test"], Config),
    has("\n1 passed, 0 failed\n$", Unit),
    {1, None} = run(["--suite", "reef_SUITE", "--case", "mistyped"], Config),
    has("\n0 passed, 1 failed\n$", None).

%% The greatest seed is followed by the least.
a_run_is_repeated_with_other_seeds_and_counted(Config) ->
    {1, Said} = run(["--suite", "reef_SUITE", "--case", "bad", "--repeat", "2", "--seed", "1000000", "--busy", "1"], Config),
    Logs = filename:join(tree(Config), "_build/test/results/seed-"),
    _ = [
        begin
            has("SEED=" ++ Seed ++ " failed, see " ++ Logs ++ Seed ++ ":", Said),
            ?assert(filelib:is_regular(Logs ++ Seed ++ "/reef_SUITE/console.log"))
        end
     || Seed <- ["1000000", "0"]
    ],
    has("\n0 of 2 runs were green", Said),
    has("\n0 passed, 2 failed\n$", Said),
    {0, _} = run(["--suite", "reef_twice_tests", "--repeat", "2"], Config),
    ?assertEqual([], filelib:wildcard(Logs ++ "*")).

a_suite_of_the_deep_tier_is_no_job_of_the_fast_one(Config) ->
    {1, Fast} = run(["--suite", "reef_deep_SUITE"], Config),
    has("\n0 passed, 0 failed\n$", Fast),
    {0, Deep} = run(["--suite", "reef_deep_SUITE", "--tier", "deep"], Config),
    has("\n1 passed, 0 failed\n$", Deep).

what_does_not_compile_is_told(Config) ->
    File = filename:join(tree(Config), "apps/reef/test/reef_wrong_tests.erl"),
    ok = write(File, "-module(reef_wrong_tests).\n-export([f/0]).\nf() -> X.\n"),
    {1, Said} = run(["--suite", "reef_twice_tests"], Config),
    ok = file:delete(File),
    has("reef_wrong_tests.erl:3:8: variable 'X' is unbound", Said),
    has("\n0 passed, 1 failed\n$", Said).

%% All others are in atoll_test_tests.
a_wrong_command_line_is_told_in_a_sentence(Config) ->
    {2, Said} = run(["--suite", "reef_SUTE"], Config),
    has("^scripts/test: there is no suite, .* reef_SUTE; did you mean reef_SUITE\\?\n$", Said).

a_case_of_a_group_is_told_with_it_and_runs_alone(Config) ->
    {1, Said} = run(["--suite", "reef_groups_SUITE", "--seed", "1"], Config),
    has("reef_groups_SUITE one.inner:bad\n.*\\{inside.*again: make test SUITE=reef_groups_SUITE CASE=one.inner:bad SEED=1\n", Said),
    has("again: make test SUITE=reef_groups_SUITE CASE=two:bad SEED=1\n", Said),
    has("\n2 passed, 2 failed\n$", Said),
    {1, Inner} = run(["--suite", "reef_groups_SUITE", "--case", "one.inner:bad"], Config),
    has("\\{inside.*\n0 passed, 1 failed\n$", Inner),
    {0, All} = run(["--suite", "reef_groups_SUITE", "--case", "good"], Config),
    has("\n2 passed, 0 failed\n$", All).

what_hangs_is_told_with_the_line_that_runs_it_again(Config) ->
    ok = built(Config),
    [{"reef_hangs_SUITE", "slow:hangs", Slow}] = cut_short(reef_hangs_SUITE, "slow:hangs", Config, 2),
    has("^it had not ended after [0-9]+ s; see .*/console.log$", Slow),
    [{"reef_hangs_tests", Test, _}] = cut_short(reef_hangs_tests, "hangs_test_", Config, 2),
    has("^reef_hangs_tests:[0-9]+ -hangs_test_/0-fun-", Test).

%% A run compiles all tests of the tree.
built(Config) ->
    {0, _} = run(["--suite", "reef_twice_tests"], Config),
    ok.

%% The cases that were running after so many seconds, or more if the one that hangs had not begun
%% by then.
cut_short(Module, Hangs, Config, Seconds) ->
    Place = place("short", Config),
    #{results := Results, broken := Broken} = atoll_test_job:run(atoll_test_jobs:alone(reef, Module, #{}), Place#{limit => Seconds * 1000}),
    case [{Suite, Case, Why} || #{outcome := failed, suite := Suite, name := Case, why := Why} <- Results] of
        Failed when Seconds > ?WAIT_S -> Failed;
        [{_, Case, _}] = Failed when Broken =:= none ->
            case string:find(Case, Hangs) of
                nomatch -> cut_short(Module, Hangs, Config, 2 * Seconds);
                _ -> Failed
            end;
        _ -> cut_short(Module, Hangs, Config, 2 * Seconds)
    end.

a_runner_that_is_ended_takes_all_down_and_is_no_success(Config) ->
    [
        begin
            Runner = hanging(fun() -> start(["--suite", "reef_hangs_SUITE"], Config) end, Config),
            %% The runner, a guardian, its reader and an epmd; another two with the VM; what that has
            %% started for itself, and two that sleep.
            ?assertMatch([_, _, _, _, _, _, _, _, _ | _], started(Config)),
            ok = signal(Signal, os_pid(Runner)),
            {Status, _} = hear(Runner, []),
            ?assert(Status > 128, {Signal, Status}),
            ok = await_none(Config)
        end
     || Signal <- ["KILL", "TERM"]
    ].

nothing_that_a_job_has_started_outlives_it(Config) ->
    {0, _} = run(["--suite", "reef_hangs_SUITE", "--case", "leaves"], Config),
    ?assertEqual([], started(Config)),
    ?assertEqual([], left_in_temporary(Config)),
    %% A job that runs the runner, as these tests do.
    Dir = filename:join(proplists:get_value(temporary, Config), "outer"),
    ok = file:make_dir(Dir),
    Command = [filename:join(tree(Config), "scripts/test"), "--suite", "reef_hangs_SUITE"],
    Guardian = hanging(fun() -> atoll_cluster_guardian:start(Dir, "/dev/null", Command, env(Dir)) end, Config),
    ok = atoll_cluster_guardian:finish(Guardian),
    ok = await_none(Config).

%% It would be first: suites that nobody has timed are held for longer than EUnit modules.
a_suite_that_wants_a_quiet_machine_is_behind_all_others(Config) ->
    {0, Said} = run(["--tier", "deep", "--jobs", "1", "--suite", "reef_deep_SUITE,reef_twice_tests"], Config),
    has("1 left: reef_twice_tests\n.* 0 left: reef_deep_SUITE\n", Said).

%% As when the guardians are killed with it, or the machine has stopped.
what_a_dead_runner_has_left_is_removed(Config) ->
    [Mine, Dead, Again, Else] = Dirs = [
        filename:join(proplists:get_value(temporary, Config), Name)
     || Name <- [
            "atoll-test." ++ os:getpid() ++ "." ++ start_time() ++ ".a",
            "atoll-test.4194305.1.a",
            "atoll-test." ++ os:getpid() ++ ".1.a",
            "atoll-tests.4194305.1.a"
        ]
    ],
    _ = [ok = write(filename:join(Dir, "file"), "") || Dir <- Dirs],
    {0, _} = run(["--suite", "reef_twice_tests"], Config),
    Left = [filelib:is_file(Dir) || Dir <- Dirs],
    _ = [file:del_dir_r(Dir) || Dir <- [Mine, Dead, Again, Else]],
    ?assertEqual([true, false, false, true], Left).

start_time() ->
    {ok, Stat} = file:read_file("/proc/self/stat"),
    [_, Behind] = string:split(binary_to_list(Stat), ") ", trailing),
    lists:nth(20, string:lexemes(Behind, " ")).

there_is_one_run_in_a_tree_at_a_time(Config) ->
    Runner = hanging(Config),
    {2, Said} = run(["--suite", "reef_twice_tests"], Config),
    has("^scripts/test: a run of the tests is under way in this tree, process " ++ Runner ++ "\n$", Said),
    ok = kill(Runner),
    ok = await_none(Config),
    {0, _} = run(["--suite", "reef_twice_tests"], Config).

nothing_is_built_while_tests_run(Config) ->
    Stamp = filename:join(tree(Config), "_build/.built"),
    Source = filename:join(tree(Config), "apps/reef/src/reef.erl"),
    Newer = fun(File) -> file:change_time(File, {{2100, 1, 1}, {0, 0, 0}}) end,
    %% By a job that runs what users run.
    ok = Newer(Source),
    {1, Said} = run(["--suite", "reef_builds_SUITE"], Config),
    has("said,\"atoll [0-9.]+", Said),
    nomatch = re:run(Said, "building"),
    %% By a user: what has to be compiled waits for the end.
    Runner = hanging(Config),
    Waiting = start("scripts/build", [], Config),
    has("^scripts/build: waiting for ", receive {Waiting, {data, Data}} -> Data after ?WAIT_S * 1000 -> <<>> end),
    ok = kill(os_pid(Waiting)),
    ok = closed(Waiting),
    %% What has not does not.
    ok = Newer(Stamp),
    {0, <<>>} = hear(start("scripts/build", [], Config), []),
    ok = kill(Runner),
    ok = await_none(Config).

%% The process of a run whose case hangs.
hanging(Config) ->
    os_pid(hanging(fun() -> start(["--suite", "reef_hangs_SUITE"], Config) end, Config)).

hanging(Start, Config) ->
    _ = file:del_dir_r(filename:join(tree(Config), "_build/test/results/reef_hangs_SUITE")),
    Port = Start(),
    Console = filename:join(tree(Config), "_build/test/results/reef_hangs_SUITE/console.log"),
    ok = await(fun() ->
        case file:read_file(Console) of
            {ok, Text} -> string:find(Text, "hanging") =/= nomatch;
            {error, enoent} -> false
        end
    end),
    Port.

os_pid(Port) ->
    {os_pid, Pid} = erlang:port_info(Port, os_pid),
    integer_to_list(Pid).

kill(Pid) -> signal("KILL", Pid).

signal(Signal, Pid) ->
    "" = os:cmd(["kill -", Signal, " ", Pid]),
    ok.

await_none(Config) ->
    try
        await(fun() -> started(Config) =:= [] andalso left_in_temporary(Config) =:= [] end)
    after
        [kill(Pid) || Pid <- started(Config)]
    end.

%% All processes of runners, and what these have started: they share the place for what is
%% temporary.
started(Config) ->
    Mark = unicode:characters_to_binary(["TMPDIR=", proplists:get_value(temporary, Config)]),
    [
        filename:basename(Dir)
     || Dir <- filelib:wildcard("/proc/[0-9]*"),
        {ok, Environment} <- [file:read_file(filename:join(Dir, "environ"))],
        binary:match(Environment, Mark) =/= nomatch
    ].

left_in_temporary(Config) ->
    filelib:wildcard(filename:join(proplists:get_value(temporary, Config), "*")).

await(Holds) -> await(Holds, erlang:monotonic_time(second) + ?WAIT_S).

await(Holds, Deadline) ->
    case Holds() of
        true ->
            ok;
        false ->
            ?assert(erlang:monotonic_time(second) < Deadline),
            receive after 20 -> await(Holds, Deadline) end
    end.

%% In one VM with others, where a module's end is not the VM's.
a_module_of_which_nothing_is_told_is_missed(Config) ->
    ok = built(Config),
    Broken = fun(Modules) ->
        Job = #{name => "together", kind => eunit, app => reef, modules => Modules, 'case' => "", expected => 1.0},
        #{broken := Why, results := Results} = atoll_test_job:run(Job, place("together", Config)),
        {case Why of none -> none; _ -> lists:flatten(Why) end, length(Results)}
    end,
    ?assertEqual({none, 1}, Broken([reef_twice_tests])),
    ?assertMatch({"reef_halts_tests did not come to its end", _}, Broken([reef_twice_tests, reef_halts_tests, reef_tests])),
    ?assertMatch({"no test of reef_none_tests has run", _}, Broken([reef_twice_tests, reef_none_tests])),
    {Cancelled, _} = Broken([reef_crashes_tests]),
    ?assertMatch({match, _}, re:run(Cancelled, "^tests of reef_crashes_tests were cancelled: .*no_generator", [dotall])),
    {WithFun, _} = Broken([reef_fun_tests]),
    ?assertMatch({match, _}, re:run(WithFun, "^tests of reef_fun_tests were cancelled: .*no_set_up,#Fun<", [dotall])),
    %% Suites that share one are counted together.
    Suites = #{name => "suites", kind => ct, app => reef, modules => [reef_SUITE, reef_groups_SUITE], 'case' => "", expected => 1.0},
    #{broken := none, results := Cases} = atoll_test_job:run(Suites, place("together", Config)),
    ?assertEqual(
        [{"reef_SUITE", 1, 3}, {"reef_groups_SUITE", 2, 2}],
        [{S, length([x || #{suite := Of, outcome := passed} <- Cases, Of =:= S]), length([x || #{suite := Of, outcome := failed} <- Cases, Of =:= S])}
         || S <- ["reef_SUITE", "reef_groups_SUITE"]]
    ).

place(Name, Config) ->
    Temporary = filename:join(proplists:get_value(priv_dir, Config), Name),
    ok = filelib:ensure_dir(filename:join(Temporary, "x")),
    #{
        root => tree(Config),
        results => filename:join(tree(Config), "results"),
        temporary => Temporary,
        epmd => 4369,
        tier => fast,
        seed => 1
    }.

a_planted_fault_is_found_or_missed(Config) ->
    #{root := Tree} = Place = place("planted", Config),
    ok = built(Config),
    Fault = fun(By) -> #{file => "apps/reef/src/reef.erl", replace => "2 * X", by => By, breaks => "x", suites => [reef_twice_tests]} end,
    Faults = [Fault("3 * X"), Fault("X + X"), Fault("2 * ")],
    ct:capture_start(),
    Done = atoll_test_faults:run(Faults, Tree, [Place], fun(F, Found) -> atoll_test_report:fault(7, F, Found) end),
    ct:capture_stop(),
    ?assertMatch([fast, missed, {not_planted, _}], [Found || F <- Faults, {G, Found} <- Done, F =:= G]),
    has("^fast    reef: x\nMISSED  reef: x\n  again: make faults SUITE=reef SEED=7\nWRONG   reef: x \\(it does not compile", lists:append(ct:capture_get())),
    %% They were planted in a copy.
    {ok, Text} = file:read_file(filename:join(Tree, "apps/reef/src/reef.erl")),
    ?assertNotEqual(nomatch, string:find(Text, "2 * X")).

%% Running it

tree(Config) -> proplists:get_value(tree, Config).

run(Arguments, Config) ->
    hear(start(Arguments, Config), []).

start(Arguments, Config) -> start("scripts/test", Arguments, Config).

start(Script, Arguments, Config) ->
    open_port({spawn_executable, filename:join(tree(Config), Script)}, [
        {args, Arguments}, exit_status, stderr_to_stdout, binary
        | env(proplists:get_value(temporary, Config))
    ]).

env(Temporary) -> [{env, [{"TMPDIR", Temporary}, {"ATOLL_BUILT", false}]}].

hear(Port, Said) ->
    receive
        {Port, {data, Data}} -> hear(Port, [Said, Data]);
        {Port, {exit_status, Status}} -> {Status, iolist_to_binary(Said)}
    after ?WAIT_S * 1000 -> error({said, iolist_to_binary(Said)})
    end.

%% It closes itself when the last that writes to it has ended.
closed(Port) ->
    try
        true = port_close(Port),
        ok
    catch
        error:badarg -> ok
    end.

has(Pattern, Said) ->
    ?assertMatch({match, _}, re:run(Said, Pattern, [dotall]), Said).
