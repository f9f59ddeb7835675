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
        {["scale", "tune", File, "--rounds", "none"], "--rounds must be a whole number from 1 to 100, not \"none\""},
        {["scale", "report"], "the argument JOURNAL is missing"}
    ]).

file_test_() ->
    {setup, fun() -> atoll_test_file:temporary("atoll_scale_cli_tests") end, fun(File) -> _ = [file:delete(F) || F <- [File, File ++ ".journal"]] end, fun(File) -> [
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
        {"a load of Tsung is said not to be there", fun() ->
            ok = file:write_file(File, "{name, \"x\"}.\n{start, \"x\"}.\n{load, {tsung, \"x.xml\"}}.\n"),
            ?assertEqual({usage, File ++ ": loads of Tsung are not there yet: use a command or a driver"}, atoll_cli_line:outcome(["scale", "find", File]))
        end},
        {"a journal without a stage fails the report", fun() ->
            ok = file:write_file(File, "{\"what\":\"begun\"}\n"),
            ?assertEqual({failed, File ++ " has no limit and no change yet"}, atoll_cli_line:outcome(["scale", "report", File]))
        end}
    ] end}.
