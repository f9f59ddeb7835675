%% SPDX-License-Identifier: Apache-2.0
%% Of a command with a guardian nothing is left, in whatever session it is, however it ends. That the guardian ends with its VM is
%% tested with the runner of the tests (atoll_test_SUITE).
-module(atoll_cluster_guardian_tests).

-include_lib("eunit/include/eunit.hrl").

-define(MS, 10000).

%% Two that sleep, one of them in a session of its own whose parent has ended.
-define(LEAVES, "(setsid sleep 300 &); sleep 300 & echo begun").

guardian_test_() ->
    {foreach, fun() -> Dir = atoll_test_file:temporary("guardian"), ok = file:make_dir(Dir), Dir end,
     fun(Dir) -> _ = file:del_dir_r(Dir), _ = file:delete(Dir ++ ".log"), ok end, [
        fun(Dir) -> {"when it is told", {timeout, 30, fun() ->
            Guardian = start(?LEAVES "; wait", Dir),
            ok = await(fun() -> file:read_file(Dir ++ ".log") =:= {ok, <<"begun\n">>} end),
            ok = await(fun() -> length(running(Dir)) =:= 3 end),
            ok = atoll_cluster_guardian:finish(Guardian),
            ?assertEqual({[], false}, {running(Dir), filelib:is_dir(Dir)})
        end}} end,
        fun(Dir) -> {"when the command ends, with its status", {timeout, 30, fun() ->
            Guardian = start(?LEAVES "; exit 7", Dir),
            receive {Guardian, {exit_status, Status}} -> ?assertEqual(7, Status) after ?MS -> error(late) end,
            ?assertEqual({[], false}, {running(Dir), filelib:is_dir(Dir)})
        end}} end,
        fun(Dir) -> {"when its owner is gone", {timeout, 30, fun() ->
            {Owner, Ref} = spawn_monitor(fun() -> _ = start(?LEAVES "; wait", Dir), receive after infinity -> ok end end),
            ok = await(fun() -> length(running(Dir)) =:= 3 end),
            true = exit(Owner, kill),
            receive {'DOWN', Ref, process, Owner, _} -> ok end,
            ok = await(fun() -> not filelib:is_dir(Dir) end),
            ?assertEqual([], running(Dir))
        end}} end
    ]}.

start(Command, Dir) -> atoll_cluster_guardian:start(Dir, Dir ++ ".log", ["/bin/sh", "-c", Command], []).

await(Test) -> atoll_cli_os:await(Test, ?MS).

%% The shell and what sleeps.
running(Dir) ->
    [
        Pid
     || Pid <- filelib:wildcard("[0-9]*", "/proc"),
        {ok, Environment} <- [file:read_file("/proc/" ++ Pid ++ "/environ")],
        binary:match(Environment, iolist_to_binary(["<", Dir, ">"])) =/= nomatch
    ].
