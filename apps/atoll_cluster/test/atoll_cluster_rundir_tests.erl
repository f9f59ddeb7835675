%% SPDX-License-Identifier: Apache-2.0
-module(atoll_cluster_rundir_tests).
-include_lib("eunit/include/eunit.hrl").
-include_lib("kernel/include/file.hrl").

-define(parse(Entry), atoll_cluster_rundir:parse_entry(Entry)).

an_entry_names_process_and_node_test() ->
    ?assertEqual({ok, {12, 345}, "a.b-1@127.0.0.1"}, ?parse("12.345.a.b-1@127.0.0.1")).

what_is_no_entry_is_refused_test_() ->
    [?_assertEqual(error, ?parse(Entry)) || Entry <- ["", "12", "12.345", "12.345.", "x.1.n", "1.x.n", ".1.n"]].

in_rundir_test_() ->
    {foreach, fun setup/0, fun cleanup/1, [
        {"a name is claimed once", fun a_name_is_claimed_once/0},
        {"the directory is the user's alone", fun the_directory_is_the_users_alone/0},
        {"two that begin at once have it both", fun at_once/0},
        {"one that others may write to is refused", fun open_directory_is_refused/0},
        {"one that is a link is refused", fun link_is_refused/0},
        {"a missing parent is an error", fun missing_parent/0},
        {"a directory that is not there yet is no error", fun nothing_yet/0},
        {"a path too long for a socket is refused", fun long_path/0},
        {"a directory of a dead owner is stale and does not run", fun stale/0}
    ]}.

setup() ->
    Old = os:getenv("XDG_RUNTIME_DIR"),
    Dir = string:trim(os:cmd("mktemp -d")),
    true = os:putenv("XDG_RUNTIME_DIR", Dir),
    {Old, Dir}.

cleanup({Old, Dir}) ->
    ok = file:del_dir_r(Dir),
    case Old of
        false -> os:unsetenv("XDG_RUNTIME_DIR");
        _ -> os:putenv("XDG_RUNTIME_DIR", Old)
    end.

parent() -> os:getenv("XDG_RUNTIME_DIR").

a_name_is_claimed_once() ->
    {ok, #{dir := Dir, pids := Pids}} = atoll_cluster_rundir:claim("one", "1.1"),
    ?assert(filelib:is_dir(Pids)),
    ?assertEqual({error, {name_in_use, "one"}}, atoll_cluster_rundir:claim("one", "1.2")),
    ?assertMatch([#{name := "one", dir := Dir}], atoll_cluster_rundir:list()),
    ?assertMatch({ok, _}, atoll_cluster_rundir:claim("two", "1.3")),
    {ok, Base} = atoll_cluster_rundir:base(),
    ?assertEqual({ok, ["one", "two"]}, sorted(file:list_dir_all(Base))).

sorted({ok, List}) -> {ok, lists:sort(List)}.

the_directory_is_the_users_alone() ->
    {ok, Base} = atoll_cluster_rundir:base(),
    {ok, #file_info{mode = Mode}} = file:read_file_info(Base),
    ?assertEqual(8#700, Mode band 8#777).

%% It is looked at by the others while one makes it.
at_once() ->
    [
        begin
            [{ok, Base}] = lists:usort([receive {'DOWN', Ref, process, _, Answer} -> Answer end || Ref <- Refs]),
            ?assertEqual({ok, []}, file:list_dir_all(Base)),
            ?assertEqual({ok, ["atoll"]}, file:list_dir_all(parent())),
            ok = file:del_dir(Base)
        end
     || _ <- lists:seq(1, 50),
        Refs <- [[element(2, spawn_monitor(fun() -> exit(atoll_cluster_rundir:base()) end)) || _ <- lists:seq(1, 8)]]
    ].

open_directory_is_refused() ->
    {ok, Base} = atoll_cluster_rundir:base(),
    ok = file:change_mode(Base, 8#770),
    ?assertEqual({error, {run_dir_unsafe, Base}}, atoll_cluster_rundir:claim("one", "1.1")),
    ?assertEqual({error, {run_dir_unsafe, Base}}, atoll_cluster_rundir:check()).

link_is_refused() ->
    ok = file:make_dir(filename:join(parent(), "elsewhere")),
    Base = filename:join(parent(), "atoll"),
    ok = file:make_symlink(filename:join(parent(), "elsewhere"), Base),
    ?assertEqual({error, {run_dir_unsafe, Base}}, atoll_cluster_rundir:base()).

missing_parent() ->
    Parent = parent(),
    true = os:putenv("XDG_RUNTIME_DIR", filename:join(Parent, "none")),
    Results = [atoll_cluster_rundir:base(), atoll_cluster_rundir:check()],
    true = os:putenv("XDG_RUNTIME_DIR", Parent),
    ?assertMatch([{error, {run_dir, _, enoent}} = Error, Error], Results).

nothing_yet() ->
    ?assertEqual(ok, atoll_cluster_rundir:check()),
    ?assertEqual([], atoll_cluster_rundir:list()),
    ?assertEqual({ok, []}, file:list_dir_all(parent())).

long_path() ->
    Parent = parent(),
    Long = filename:join(Parent, lists:duplicate(100, $x)),
    ok = file:make_dir(Long),
    true = os:putenv("XDG_RUNTIME_DIR", Long),
    Result = atoll_cluster_rundir:claim("one", "1.1"),
    true = os:putenv("XDG_RUNTIME_DIR", Parent),
    ?assertMatch({error, {path_too_long, _}}, Result).

stale() ->
    {ok, #{dir := Dir}} = atoll_cluster_rundir:claim("one", "1.1"),
    {Pid, Start} = atoll_cluster_os:self(),
    Dead = io_lib:format("~b ~b~n", [Pid, Start - 1]),
    ok = file:write_file(filename:join(Dir, "owner"), Dead),
    ?assertEqual([], atoll_cluster_rundir:list()),
    ?assertMatch([#{dir := Dir}], atoll_cluster_rundir:stale()).
