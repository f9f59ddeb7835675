%% SPDX-License-Identifier: Apache-2.0
-module(atoll_deploy_release_tests).

-include_lib("eunit/include/eunit.hrl").

release_test_() ->
    {foreach, fun() -> Dir = atoll_test_file:temporary("atoll_deploy_release"), ok = filelib:ensure_path(Dir), Dir end, fun file:del_dir_r/1, [
        fun(Dir) -> {"the same files give the same checksum, whenever they were written", fun() ->
            Kept = filename:join(Dir, "kept"),
            [files(filename:join(Dir, Name), [{"ebin/a.beam", "a"}, {"b", "bb"}]) || Name <- ["one", "two"]],
            ok = file:change_time(filename:join([Dir, "two", "b"]), {{2001, 1, 1}, {0, 0, 0}}),
            {ok, Sum} = keep("one", Dir, Kept),
            ?assertEqual({ok, Sum}, keep("two", Dir, Kept)),
            {ok, Names} = erl_tar:table(atoll_deploy_release:archive(Kept, Sum), [compressed]),
            ?assertEqual(["b", "ebin/a.beam"], lists:sort(Names)),
            ok = file:write_file(filename:join([Dir, "two", "b"]), "bc"),
            ?assertNotEqual({ok, Sum}, keep("two", Dir, Kept)),
            ?assertEqual([], filelib:wildcard(filename:join(Kept, ".new*")))
        end} end,
        fun(Dir) -> {"each mistake has its sentence, and nothing is kept", fun() ->
            Kept = filename:join(Dir, "kept"),
            files(filename:join(Dir, "one"), [{"a", "a"}]),
            ok = filelib:ensure_path(filename:join(Dir, "empty")),
            ok = file:write_file(filename:join(Dir, "text"), "no archive"),
            "" = os:cmd("mkfifo " ++ filename:join(Dir, "pipe")),
            {ok, Tar} = erl_tar:open(filename:join(Dir, "out.tar.gz"), [write, compressed]),
            ok = erl_tar:add(Tar, <<"x">>, "../x", []),
            ok = erl_tar:close(Tar),
            [
                begin
                    {error, Sentence} = atoll_deploy_release:keep(maps:merge(#{name => "r", path => filename:join(Dir, Path)}, More), Kept),
                    ?assertMatch({_, {match, _}}, {Sentence, re:run(lists:flatten(Sentence), "^the release r: .*" ++ Said)})
                end
             || {Path, More, Said} <- [
                    {"none", #{}, "no such file or directory$"}, {"empty", #{}, "is a folder with nothing in it$"}, {"text", #{}, "is neither a folder nor a .tar.gz$"}, {"pipe", #{}, "is neither a folder nor a file$"},
                    {"out.tar.gz", #{}, "has ../x in it, which leads out of its folder$"},
                    {"one", #{sha256 => lists:duplicate(64, $0)}, "and not the one that is told$"}
                ]
            ],
            ?assertEqual({ok, []}, file:list_dir(Kept))
        end} end
    ]}.

keep(Name, Dir, Kept) -> atoll_deploy_release:keep(#{name => "r", path => filename:join(Dir, Name)}, Kept).

files(Dir, Files) ->
    [begin File = filename:join(Dir, Name), ok = filelib:ensure_dir(File), ok = file:write_file(File, Text) end || {Name, Text} <- Files].
