%% SPDX-License-Identifier: Apache-2.0
%% What is wrong with a command line or a description is said before anything is started.
-module(atoll_scale_cli_tests).

-include_lib("eunit/include/eunit.hrl").

a_wrong_command_line_has_its_sentence_test_() ->
    File = filename:join([code:priv_dir(atoll_scale), "example", "shop.plan"]),
    atoll_cli_line:refused([
        {["scale", "find"], "the argument PLAN is missing"},
        {["scale", "fnd"], "there is no command \"scale fnd\"; did you mean scale find?"},
        {["scale", "find", File, "--searches", "0"], "--searches must be a whole number from 1 to 100, not \"0\""},
        {["scale", "find", File, "--set", "backlog=6"], "--set: backlog has no value 6; there are 5, 1024"},
        {["scale", "find", File, "--set", "backlogs=5"], "--set: there is no switch backlogs; there are files, backlog, servers"},
        {["scale", "find", File, "--set", "backlog"], "--set: it must be SWITCH=VALUE, not \"backlog\""},
        {["scale", "compare", File, "backlog=1024", "backlog=1024"], "backlog=1024 stands there twice"},
        {["scale", "tune", File, "--rounds", "none"], "--rounds must be a whole number from 1 to 100, not \"none\""},
        {["scale", "compare", File], "the argument CHANGE is missing"},
        {["scale", "compare", File, "backlog"], "it must be SWITCH=VALUE, not \"backlog\""},
        {["scale", "compare", File, "backlog=1024", "backlog=6"], "backlog has no value 6; there are 5, 1024"},
        {["scale", "compare", File, "backlog=5"], "backlog=5 is so before the change"},
        {["scale", "compare", File, "backlog=1024", "--set", "backlog=1024"], "backlog=1024 is so before the change"},
        {["scale", "report"], "the argument JOURNAL is missing"}
    ]).

file_test_() ->
    {setup, fun() -> atoll_test_file:temporary("atoll_scale_cli_tests") end, fun(File) -> _ = [file:delete(F) || F <- [File, File ++ ".journal"]] end, fun(File) -> [{Title, {timeout, 60, Test}} || {Title, Test} <- [
        {"a description is written where there is none, and read where there is one", fun() ->
            {_, _, ok} = atoll_cli:execute(["scale", "plan", File]),
            {ok, Text} = file:read_file(File),
            ?assertEqual(unicode:characters_to_binary(atoll_scale_plan:template()), Text),
            {_, _, ok} = atoll_cli:execute(["scale", "plan", File]),
            ?assertEqual({ok, Text}, file:read_file(File))
        end},
        {"a wrong one is said, and no journal begun", fun() ->
            ok = file:write_file(File, "{nam, \"x\"}.\n"),
            Said = File ++ ": there is no key nam; did you mean name?",
            ?assertEqual({usage, Said}, atoll_cli_line:outcome(["scale", "plan", File])),
            ?assertEqual({usage, Said}, atoll_cli_line:outcome(["scale", "find", File])),
            ?assertEqual({usage, Said}, atoll_cli_line:outcome(["scale", "tune", File])),
            ?assertNot(filelib:is_file(File ++ ".journal"))
        end},
        {"what is wrong with a scenario of Tsung is said", fun() ->
            Scenario = File ++ ".xml",
            Said = fun(Keys) ->
                ok = file:write_file(File, ["{name, \"x\"}.\n{start, \"x\"}.\n{load, {tsung, \"", filename:basename(Scenario), "\"}}.\n", Keys]),
                {usage, Sentence} = atoll_cli_line:outcome(["scale", "find", File]),
                Sentence
            end,
            ?assertEqual(File ++ ": " ++ Scenario ++ ": no such file or directory", Said("")),
            ok = file:write_file(Scenario, "<users arrivalrate=\"9\"/>"),
            ?assertMatch({match, _}, re:run(Said(""), "xml: it has no \\{level\\}, which is what it is run with")),
            ok = file:write_file(Scenario, "<users arrivalrate=\"{level}\"/>"),
            ?assertMatch({match, _}, re:run(Said("{p99_ms, 100}.\n"), "xml: the key p99_ms takes single times, which Tsung keeps with backend=\"fullstats\" alone")),
            ok = file:delete(Scenario)
        end},
        {"where nothing passes there is no limit, and why is said", fun() ->
            Pid = File ++ ".pid",
            ok = file:write_file(Pid, os:getpid()),
            ok = file:write_file(File, ["{name, \"x\"}.\n{pid_file, \"", filename:basename(Pid), "\"}.\n{from, 2}.\n{load, {command, \"echo no such option; exit 9 # {level}\"}}.\n"]),
            {unable, Said} = atoll_cli_line:outcome(["scale", "find", File]),
            ?assertEqual("not even 1 clients at once passes, so there is no limit to be found: 100 % of the requests failed (1 the command of the load ended with 9: no such option)", unicode:characters_to_list(Said)),
            _ = [ok = file:delete(Is) || Is <- [Pid, File ++ ".journal"]]
        end},
        {"a port that is taken is not the service's", fun() ->
            {ok, Socket} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]),
            {ok, Port} = inet:port(Socket),
            ok = file:write_file(File, io_lib:format("{name, \"x\"}.~n{start, \"exec sleep 100\"}.~n{ready, {port, ~b}}.~n{load, {command, \"echo requests 1; echo failures 0 # {level}\"}}.~n", [Port])),
            ?assertEqual({unable, lists:concat(["port ", Port, " is taken: process ", os:getpid(), " (beam.smp) answers there before the service is started"])}, atoll_cli_line:outcome(["scale", "find", File])),
            ok = gen_tcp:close(Socket),
            ok = file:delete(File ++ ".journal")
        end},
        {"a port may answer for a moment after its last holder", fun() ->
            {ok, Socket} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]),
            {ok, Port} = inet:port(Socket),
            ok = file:write_file(File, io_lib:format("{name, \"x\"}.~n{start, \"exit 4\"}.~n{ready, {port, ~b}}.~n{load, {command, \"echo {level}\"}}.~n", [Port])),
            {Holder, Ref} = spawn_monitor(fun() -> receive {hold, Held} -> {ok, _} = gen_tcp:accept(Held) end end),
            ok = gen_tcp:controlling_process(Socket, Holder),
            Holder ! {hold, Socket},
            {unable, Said} = atoll_cli_line:outcome(["scale", "find", File]),
            ?assertEqual("the service has ended:  (status 4)", unicode:characters_to_list(Said)),
            receive {'DOWN', Ref, process, Holder, Why} -> ?assertEqual(normal, Why) end,
            ok = file:delete(File ++ ".journal")
        end},
        {"a journal without a stage fails the report", fun() ->
            ok = file:write_file(File, "{\"what\":\"begun\"}\n"),
            ?assertEqual({failed, File ++ " has no limit and no change yet"}, atoll_cli_line:outcome(["scale", "report", File]))
        end}
    ]] end}.
