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
    a_runner_that_is_killed_takes_all_down/1,
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
        a_runner_that_is_killed_takes_all_down,
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
    {"apps/reef/test/reef_SUITE.erl",
        "-module(reef_SUITE).\n-export([all/0, groups/0, init_per_group/2, end_per_group/2, good/1, bad/1, skipped/1, behind/1]).\n"
        "all() -> [good, bad, skipped, {group, broken}].\n"
        "groups() -> [{broken, [], [behind]}].\n"
        "init_per_group(_, _) -> error(no_group).\nend_per_group(_, _) -> ok.\n"
        "good(_) -> ok.\nbad(_) -> error({seed, os:getenv(\"SEED\")}).\n"
        "skipped(_) -> {skip, \"no network\"}.\nbehind(_) -> ok.\n"},
    {"apps/reef/test/reef_deep_SUITE.erl",
        "-module(reef_deep_SUITE).\n-export([all/0, deep/1]).\n"
        "all() -> case atoll_tier:tier() of fast -> []; deep -> [deep] end.\n"
        "deep(_) -> ok.\n"},
    {"apps/reef/test/reef_hangs_SUITE.erl",
        "-module(reef_hangs_SUITE).\n-export([all/0, hangs/1]).\n"
        "all() -> [hangs].\n"
        "hangs(_) -> io:format(user, \"hanging ~s~n\", [os:getpid()]), receive never -> ok end.\n"}
]).

%% Seconds, on a machine that does much else.
-define(WAIT_S, 100).

init_per_suite(Config) ->
    Tree = filename:join(proplists:get_value(priv_dir, Config), "tree"),
    Build = filename:join(Tree, "_build"),
    Own = filename:join([Build, "default", "lib", "reef", "ebin"]),
    _ = [ok = write(filename:join(Tree, File), Text) || {File, Text} <- ?TREE],
    ok = filelib:ensure_dir(filename:join(Own, "x")),
    ok = write(filename:join(Build, ".built"), ""),
    {ok, reef} = compile:file(filename:join(Tree, "apps/reef/src/reef.erl"), [{outdir, Own}]),
    _ = [
        ok = file:make_symlink(filename:absname(Lib), filename:join([Build, "default", "lib", filename:basename(Lib)]))
     || Lib <- filelib:wildcard(filename:join([code:lib_dir(atoll_test), "..", "*"]))
    ],
    [{tree, Tree} | Config].

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
    has("reef_SUITE init_per_group", Said),
    has("\n3 passed, 5 failed, 1 skipped\n$", Said).

one_case_runs_alone_with_its_seed(Config) ->
    {0, Ct} = run(["--suite", "reef_SUITE", "--case", "good"], Config),
    has("\n1 passed, 0 failed\n$", Ct),
    {0, Unit} = run(["--suite", "reef_tests", "--case", "good_test"], Config),
    has("\n1 passed, 0 failed\n$", Unit),
    {1, None} = run(["--suite", "reef_SUITE", "--case", "mistyped"], Config),
    has("\n0 passed, 1 failed\n$", None).

a_run_is_repeated_with_other_seeds_and_counted(Config) ->
    {1, Said} = run(["--suite", "reef_SUITE", "--case", "bad", "--repeat", "2", "--seed", "5", "--busy", "1"], Config),
    has("SEED=5 failed:", Said),
    has("SEED=6 failed:", Said),
    has("\n0 of 2 runs were green", Said),
    has("\n0 passed, 2 failed\n$", Said).

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

a_runner_that_is_killed_takes_all_down(Config) ->
    Port = start(["--suite", "reef_hangs_SUITE"], Config),
    {os_pid, Runner} = erlang:port_info(Port, os_pid),
    Console = filename:join(tree(Config), "_build/test/results/reef_hangs_SUITE/console.log"),
    Vm = await(fun() ->
        case file:read_file(Console) of
            {ok, Text} -> re:run(Text, "hanging ([0-9]+)", [{capture, all_but_first, list}]);
            {error, enoent} -> nomatch
        end
    end),
    Started = [Vm | children(Runner)],
    try
        _ = os:cmd("kill -KILL " ++ integer_to_list(Runner)),
        gone = await(fun() ->
            case [Pid || Pid <- Started, filelib:is_dir("/proc/" ++ Pid), not is_zombie(Pid)] of
                [] -> {match, [gone]};
                _ -> nomatch
            end
        end)
    after
        _ = [os:cmd("kill -KILL " ++ Pid ++ " 2>/dev/null") || Pid <- Started]
    end.

%% All processes under one.
children(Pid) ->
    Direct = string:lexemes(os:cmd("pgrep -P " ++ integer_to_list(Pid)), "\n"),
    Direct ++ lists:append([children(list_to_integer(D)) || D <- Direct]).

is_zombie(Pid) ->
    case file:read_file("/proc/" ++ Pid ++ "/stat") of
        {ok, Stat} -> re:run(Stat, "\\) Z ") =/= nomatch;
        {error, _} -> true
    end.

await(Look) -> await(Look, erlang:monotonic_time(second) + ?WAIT_S).

await(Look, Deadline) ->
    case Look() of
        {match, [Seen]} ->
            Seen;
        nomatch ->
            ?assert(erlang:monotonic_time(second) < Deadline),
            receive after 20 -> await(Look, Deadline) end
    end.

%% In one VM with others, where a module's end is not the VM's.
a_module_of_which_nothing_is_told_is_missed(Config) ->
    {0, _} = run(["--suite", "reef_twice_tests"], Config),
    Broken = fun(Modules) ->
        Job = #{name => "together", kind => eunit, app => reef, modules => Modules, 'case' => "", expected => 1.0},
        #{broken := Why, results := Results} = atoll_test_job:run(Job, place("together", Config)),
        {case Why of none -> none; _ -> lists:flatten(Why) end, length(Results)}
    end,
    ?assertEqual({none, 1}, Broken([reef_twice_tests])),
    ?assertMatch({"reef_halts_tests did not come to its end", _}, Broken([reef_twice_tests, reef_halts_tests, reef_tests])),
    ?assertMatch({"no test of reef_none_tests has run", _}, Broken([reef_twice_tests, reef_none_tests])),
    {Cancelled, _} = Broken([reef_crashes_tests]),
    ?assertMatch({match, _}, re:run(Cancelled, "^tests of reef_crashes_tests were cancelled: .*no_generator", [dotall])).

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
    {0, _} = run(["--suite", "reef_twice_tests"], Config),
    Fault = fun(By) -> #{file => "apps/reef/src/reef.erl", replace => "2 * X", by => By, breaks => "x", suites => [reef_twice_tests]} end,
    Faults = [Fault("3 * X"), Fault("X + X"), Fault("2 * ")],
    Done = atoll_test_faults:run(Faults, Tree, [Place], fun(_, _) -> ok end),
    ?assertMatch([fast, missed, {not_planted, _}], [Found || F <- Faults, {G, Found} <- Done, F =:= G]),
    %% They were planted in a copy.
    {ok, Text} = file:read_file(filename:join(Tree, "apps/reef/src/reef.erl")),
    ?assertNotEqual(nomatch, string:find(Text, "2 * X")).

%% Running it

tree(Config) -> proplists:get_value(tree, Config).

run(Arguments, Config) ->
    hear(start(Arguments, Config), []).

start(Arguments, Config) ->
    Paths = filelib:wildcard(filename:join(tree(Config), "_build/default/lib/*/ebin")),
    open_port({spawn_executable, os:find_executable("erl")}, [
        {args, ["+Bd", "-noinput", "-boot", "no_dot_erlang", "-pa"] ++ Paths ++ ["-s", "atoll_test", "main", "-extra" | Arguments]},
        {cd, tree(Config)},
        exit_status,
        stderr_to_stdout,
        binary
    ]).

hear(Port, Said) ->
    receive
        {Port, {data, Data}} -> hear(Port, [Said, Data]);
        {Port, {exit_status, Status}} -> {Status, iolist_to_binary(Said)}
    after ?WAIT_S * 1000 -> error({said, iolist_to_binary(Said)})
    end.

has(Pattern, Said) ->
    ?assertMatch({match, _}, re:run(Said, Pattern, [dotall]), Said).
