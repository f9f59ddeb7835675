%% SPDX-License-Identifier: Apache-2.0
%% A program beside nodes: it is gone with its owner and with the VM, and its folder too.
-module(atoll_cluster_daemon_tests).

-include_lib("eunit/include/eunit.hrl").

-export([holds/1]).

-define(MS, 10_000).
%% One that would stay if its standard input alone ended.
-define(WAITS, ["-c", "echo there; exec sleep 1000 <&-"]).

daemon_test_() ->
    [{timeout, 60, {Title, Test}} || {Title, Test} <- [
        {"one that is stopped is gone, with its folder", fun stopped/0},
        {"one that has only begun to start is gone too", fun begun/0},
        {"one that was killed is told, and starts again in the same folder", fun killed/0},
        {"one that ends by itself is told with its status", fun ended/0},
        {"one goes with its owner", fun owned/0},
        {"it outlives the death of its watchdog, and goes all the same", fun watched/0},
        {"one goes with its VM, kill -9 included", fun with_its_vm/0}
    ]].

open() ->
    {ok, Daemon} = atoll_cluster_daemon:open("test"),
    ok = atoll_cluster_daemon:run(Daemon, "/bin/sh", ?WAITS),
    {Daemon, atoll_cluster_daemon:dir(Daemon), process(Daemon)}.

process(Daemon) ->
    {ok, Pid} = atoll_cluster_daemon:os_pid(Daemon),
    {ok, Start} = atoll_cluster_os:start_time(Pid),
    {Pid, Start}.

stopped() ->
    {Daemon, Dir, Process} = open(),
    ?assertEqual({error, running}, atoll_cluster_daemon:run(Daemon, "/bin/sh", ?WAITS)),
    ?assertEqual({running, true}, {atoll_cluster_os:state(Process), filelib:is_dir(Dir)}),
    ok = atoll_cluster_daemon:stop(Daemon),
    ?assertEqual({gone, false, false}, {atoll_cluster_os:state(Process), filelib:is_dir(Dir), is_process_alive(Daemon)}),
    ?assertEqual(ok, atoll_cluster_daemon:stop(Daemon)).

%% Nobody reads what it writes: it waits before the watchdog could know of it.
begun() ->
    {ok, Daemon} = atoll_cluster_daemon:open("test"),
    "" = os:cmd("mkfifo " ++ filename:join(atoll_cluster_daemon:dir(Daemon), "out")),
    ok = atoll_cluster_daemon:run(Daemon, "/bin/sh", ?WAITS),
    Process = process(Daemon),
    ok = atoll_cluster_daemon:stop(Daemon),
    ?assertEqual(gone, atoll_cluster_os:state(Process)).

killed() ->
    {Daemon, Dir, Process} = open(),
    ok = file:write_file(filename:join(Dir, "kept"), "kept"),
    ok = atoll_cluster_daemon:kill(Daemon),
    ?assertEqual({gone, none}, {atoll_cluster_os:state(Process), atoll_cluster_daemon:os_pid(Daemon)}),
    receive {atoll_cluster_daemon, Daemon, {ended, 137}} -> ok after ?MS -> error(not_told) end,
    ok = atoll_cluster_daemon:run(Daemon, "/bin/sh", ?WAITS),
    Again = process(Daemon),
    ?assertEqual({running, {ok, <<"kept">>}}, {atoll_cluster_os:state(Again), file:read_file(filename:join(Dir, "kept"))}),
    ok = atoll_cluster_daemon:stop(Daemon),
    ?assertEqual(gone, atoll_cluster_os:state(Again)).

ended() ->
    {ok, Daemon} = atoll_cluster_daemon:open("test"),
    Dir = atoll_cluster_daemon:dir(Daemon),
    ok = atoll_cluster_daemon:run(Daemon, "/bin/sh", ["-c", "echo why >&2; exit 3"]),
    receive {atoll_cluster_daemon, Daemon, {ended, 3}} -> ok after ?MS -> error(not_told) end,
    ?assertEqual({ok, <<"why\n">>}, file:read_file(filename:join(Dir, "out"))),
    ok = atoll_cluster_daemon:stop(Daemon).

owned() ->
    Self = self(),
    {Owner, Ref} = spawn_monitor(fun() -> Self ! {self(), open()}, receive go -> ok end end),
    {Daemon, Dir, Process} = receive {Owner, Opened} -> Opened after ?MS -> error(not_opened) end,
    Down = monitor(process, Daemon),
    Owner ! go,
    receive {'DOWN', Ref, process, Owner, normal} -> ok end,
    receive {'DOWN', Down, process, Daemon, normal} -> ok after ?MS -> error(still_there) end,
    ?assertEqual({gone, false}, {atoll_cluster_os:state(Process), filelib:is_dir(Dir)}).

watched() ->
    {Daemon, Dir, Process} = open(),
    [Watchdog] = [Pid || Pid <- string:lexemes(os:cmd("pgrep -f " ++ filename:join(code:priv_dir(atoll_cluster), "watchdog") ++ "' " ++ Dir ++ "'"), "\n"), is_watchdog(Pid, Dir)],
    "" = os:cmd("kill -KILL " ++ Watchdog),
    ok = atoll_cluster_daemon:stop(Daemon),
    ?assertEqual({gone, false}, {atoll_cluster_os:state(Process), filelib:is_dir(Dir)}).

%% The shell of os:cmd names both too.
is_watchdog(Pid, Dir) ->
    case file:read_file("/proc/" ++ Pid ++ "/cmdline") of
        {ok, Line} -> lists:suffix([list_to_binary(Dir), <<>>], binary:split(Line, <<0>>, [global]));
        {error, _} -> false
    end.

with_its_vm() ->
    {ok, Peer, _} = peer:start(#{connection => standard_io, args => ["-pa" | [filename:absname(filename:dirname(code:which(M))) || M <- [?MODULE, atoll_cluster_daemon]]]}),
    {Dir, Process} = peer:call(Peer, ?MODULE, holds, [self()], ?MS),
    Vm = list_to_integer(peer:call(Peer, os, getpid, [])),
    ?assertEqual({running, true}, {atoll_cluster_os:state(Process), filelib:is_dir(Dir)}),
    true = unlink(Peer),
    "" = os:cmd("kill -KILL " ++ integer_to_list(Vm)),
    ok = await(fun() -> {atoll_cluster_os:state(Process), filelib:is_dir(Dir)} =:= {gone, false} end, erlang:monotonic_time(millisecond) + ?MS).

%% In the other VM.
holds(_) ->
    Self = self(),
    _ = spawn(fun() ->
        {_, Dir, Process} = open(),
        Self ! {self(), {Dir, Process}},
        receive never -> ok end
    end),
    receive {_, {Dir, Process}} -> {Dir, Process} after ?MS -> error(not_opened) end.

%% Nobody is left to tell.
await(Is, Deadline) ->
    case {Is(), erlang:monotonic_time(millisecond) >= Deadline} of
        {true, _} -> ok;
        {false, true} -> late;
        {false, false} -> receive after 10 -> await(Is, Deadline) end
    end.
