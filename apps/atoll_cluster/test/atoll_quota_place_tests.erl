%% SPDX-License-Identifier: Apache-2.0
-module(atoll_quota_place_tests).

-include_lib("eunit/include/eunit.hrl").

%% With a tree of files as the kernel shows one.
-define(in(Tree, Text), in(Tree, fun(Root) -> [{V, string:prefix(Dir, Root)} || {V, Dir} <- atoll_quota_place:find(Text, Root)] end)).

a_group_of_version_1_is_in_the_own_one_test() ->
    Tree = [{dir, "cpu,cpuacct/user/me"}, {dir, "memory/user"}],
    ?assertEqual([{v1, "/cpu,cpuacct/user/me"}], ?in(Tree, <<"5:memory:/user\n4:cpu,cpuacct:/user/me\n0::/\n">>)),
    %% A container has its path as seen from outside.
    ?assertEqual([{v1, "/cpu,cpuacct"}], ?in(Tree, <<"4:cpu,cpuacct:/docker/1234\n">>)).

a_group_of_version_2_is_in_the_nearest_one_that_has_bounds_for_its_groups_test() ->
    Tree = [
        {file, "cgroup.controllers", "cpu io memory\n"},
        {file, "cgroup.subtree_control", "cpu memory\n"},
        {file, "user/cgroup.subtree_control", "cpu\n"},
        {file, "user/me/cgroup.subtree_control", "memory\n"}
    ],
    ?assertEqual([{v2, "/user"}, {v2, []}], ?in(Tree, <<"0::/user/me\n">>)).

without_control_groups_for_processors_there_is_none_test() ->
    ?assertEqual([], ?in([{dir, "memory"}], <<"5:memory:/\n0::/\n">>)),
    %% The mixture of the two, where the second bounds nothing.
    Mixed = [{dir, "cpu"}, {file, "unified/cgroup.controllers", ""}, {file, "unified/cgroup.subtree_control", ""}],
    ?assertEqual([{v1, "/cpu"}], ?in(Mixed, <<"1:cpu:/\n0::/\n">>)).

a_share_is_of_a_tenth_of_a_second_test() ->
    ?assertEqual(["5000", "5000 100000"], [atoll_quota_place:value(V, 0.05) || V <- [v1, v2]]),
    ?assertEqual("200000", atoll_quota_place:value(v1, 2)).

in(Tree, Fun) ->
    Root = string:trim(os:cmd("mktemp -d")),
    try
        lists:foreach(
            fun
                ({dir, Name}) ->
                    ok = filelib:ensure_dir(filename:join([Root, Name, x]));
                ({file, Name, Text}) ->
                    ok = filelib:ensure_dir(filename:join(Root, Name)),
                    ok = file:write_file(filename:join(Root, Name), Text)
            end,
            Tree
        ),
        Fun(Root)
    after
        ok = file:del_dir_r(Root)
    end.
