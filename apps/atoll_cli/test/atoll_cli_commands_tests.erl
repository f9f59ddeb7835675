%% SPDX-License-Identifier: Apache-2.0
-module(atoll_cli_commands_tests).

-include_lib("eunit/include/eunit.hrl").

%% One that says its commands, one that says none, one of the first's name, and what is no application or
%% in no directory for one.
a_path(Fun) ->
    Root = atoll_test_file:temporary("atoll_cli_commands_tests"),
    Written = [
        begin
            File = filename:join([Root, In, Name]),
            ok = filelib:ensure_dir(File),
            ok = file:write_file(File, io_lib:format("~tp.~n", [Term])),
            filename:dirname(File)
        end
     || {In, Name, Term} <- [
            {"a/ebin", "kelp.app", {application, kelp, [{env, [{atoll_commands, said()}]}]}},
            {"b/ebin", "sand.app", {application, sand, [{vsn, "1"}]}},
            {"c/ebin", "kelp.app", {application, kelp, [{env, [{atoll_commands, [{"late", late}]}]}]}},
            {"d/ebin", "broken.app", oops},
            {"e", "wrack.app", {application, wrack, [{env, [{atoll_commands, [{"loose", loose}]}]}]}}
        ]
    ],
    try
        Fun(Written)
    after
        ok = file:del_dir_r(Root)
    end.

said() -> [{"kelp", kelp_cli}, {"wrack", "washed ashore", [{"list", wrack_cli_list}]}].

an_application_of_the_path_says_its_commands_test() ->
    a_path(fun(Dirs) -> ?assertEqual(said(), atoll_cli_commands:said_in(Dirs)) end).

%% Such as the current one, which is in the path of a VM.
a_directory_that_is_none_of_an_application_says_none_test() ->
    a_path(fun(Dirs) -> ?assertEqual([], atoll_cli_commands:said_in([lists:last(Dirs)])) end).

a_tool_that_the_help_does_not_know_stands_below_all_others_test() ->
    a_path(fun([Dir | _]) ->
        Before = atoll_cli_commands:sections(),
        true = code:add_pathz(Dir),
        try
            ?assertEqual(Before ++ [{"other tools", [{"kelp", kelp_cli}, {"wrack list", wrack_cli_list}]}], atoll_cli_commands:sections()),
            ?assertEqual({ok, "wrack list", wrack_cli_list, ["x"]}, atoll_cli_commands:find(["wrack", "list", "x"])),
            ?assertEqual({"wrack", "washed ashore"}, lists:last(atoll_cli_commands:groups()))
        after
            true = code:del_path(Dir)
        end
    end).

each_command_is_said_once_and_stands_in_a_section_of_its_own_test() ->
    Said = atoll_cli_commands:said_in(code:get_path()),
    Words = [element(1, One) || One <- Said],
    ?assertEqual(lists:sort(Words), lists:usort(Words)),
    ?assertNot(lists:keymember("other tools", 1, atoll_cli_commands:sections())).

a_command_stands_in_the_application_that_says_it_test() ->
    Said = [{Dir, Module} || Dir <- lists:usort(code:get_path()), One <- atoll_cli_commands:said_in([Dir]), Module <- modules(One)],
    ?assertMatch([_, _ | _], Said),
    ?assertEqual([], [Other || {Dir, Module} = Other <- Said, filename:dirname(code:which(Module)) =/= Dir]).

modules({_, Module}) -> [Module];
modules({_, _, Commands}) -> [Module || {_, Module} <- Commands].
