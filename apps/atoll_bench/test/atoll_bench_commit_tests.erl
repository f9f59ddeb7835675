%% SPDX-License-Identifier: Apache-2.0
%% Which commit was measured, in a repository made for it.
-module(atoll_bench_commit_tests).

-include_lib("eunit/include/eunit.hrl").

a_commit_is_named_and_what_differs_from_it_is_dirty_test_() ->
    {timeout, 60, fun() ->
        case os:find_executable("git") of
            false -> ok;
            _ -> in_repository()
        end
    end}.

in_repository() ->
    Dir = atoll_test_file:temporary("atoll_bench_commit_tests"),
    ok = file:make_dir(Dir),
    try
        ?assertEqual(null, atoll_bench_commit:describe(Dir)),
        File = filename:join(Dir, "file"),
        ok = file:write_file(File, "one"),
        Git = "cd " ++ Dir ++ " && git -c user.name=x -c user.email=x@x.invalid ",
        _ = os:cmd(Git ++ "init -q && git add file && git -c user.name=x -c user.email=x@x.invalid commit -q -m one"),
        Commit = list_to_binary(string:trim(os:cmd("git -C " ++ Dir ++ " rev-parse HEAD"))),
        ?assertEqual(40, byte_size(Commit)),
        ?assertEqual(Commit, atoll_bench_commit:describe(Dir)),
        ok = file:write_file(File, "two"),
        ?assertEqual(<<Commit/binary, "-dirty">>, atoll_bench_commit:describe(Dir))
    after
        ok = file:del_dir_r(Dir)
    end.
