%% SPDX-License-Identifier: Apache-2.0
%% A program that is run to its end: what becomes of what it says, and of its caller.
-module(atoll_cluster_program_tests).

-include_lib("eunit/include/eunit.hrl").

%% Ends when its standard input does, so with the port.
-define(WAITS, ["-c", "echo began; read -r _"]).

sh(Script) -> atoll_cluster_program:run("/bin/sh", ["-c", Script], 30000).

one_that_ends_well_says_nothing_test() ->
    ?assertEqual(ok, sh("echo said")).

one_that_fails_says_why_test() ->
    ?assertEqual({error, <<"said\nwhy\n">>}, sh("echo said; echo why >&2; exit 3")).

one_that_is_not_there_is_an_error_of_the_call_test() ->
    ?assertError(enoent, atoll_cluster_program:run("/no/such/program", [], 1000)).

nothing_of_a_late_one_comes_to_the_caller_test() ->
    Self = self(),
    {Pid, Ref} = spawn_monitor(fun() ->
        process_flag(trap_exit, true),
        {error, Said} = atoll_cluster_program:run("/bin/sh", ?WAITS, 200),
        Self ! {self(), Said, process_info(self(), messages)}
    end),
    {Said, Messages} = receive {Pid, S, M} -> {S, M} after 30000 -> error(deadline) end,
    receive {'DOWN', Ref, process, Pid, normal} -> ok end,
    ?assertMatch({match, _}, re:run(Said, "it took too long\\.$")),
    ?assertEqual({messages, []}, Messages).

one_ends_with_its_caller_test() ->
    Fifo = string:trim(os:cmd("mktemp -u /tmp/atoll_program_XXXXXX")),
    "" = os:cmd("mkfifo " ++ Fifo),
    %% It says that it has begun, and that its standard input has ended.
    Script = "exec 3>" ++ Fifo ++ "; echo began >&3; read -r _; echo ended >&3",
    try
        ends_with_its_caller(Script, Fifo)
    after
        ok = file:delete(Fifo)
    end.

ends_with_its_caller(Script, Fifo) ->
    {Pid, Ref} = spawn_monitor(fun() -> atoll_cluster_program:run("/bin/sh", ["-c", Script], 30000) end),
    {ok, File} = file:open(Fifo, [read, raw, binary]),
    {ok, <<"began\n">>} = file:read(File, 6),
    true = exit(Pid, kill),
    receive {'DOWN', Ref, process, Pid, killed} -> ok end,
    ?assertEqual({ok, <<"ended\n">>}, file:read(File, 6)),
    ok = file:close(File).
