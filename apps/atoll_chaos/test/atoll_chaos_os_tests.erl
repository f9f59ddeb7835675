%% SPDX-License-Identifier: Apache-2.0
%% What holds a process lets it go on, whenever the VM that holds it is killed.
-module(atoll_chaos_os_tests).

-include_lib("eunit/include/eunit.hrl").

-export([stops/1]).

-define(VMS, 8).
-define(MS, 30000).

%% They are killed in the middle of it: with one to stop it and another to let it go on, one process in eight was left stopped on a busy
%% machine. So many at once make it busy.
a_vm_that_is_killed_while_it_stops_a_process_leaves_none_stopped_test_() ->
    {timeout, 4 * ?MS div 1000, fun() ->
        Sleepers = [open_port({spawn_executable, "/bin/sleep"}, [{args, ["600"]}]) || _ <- lists:seq(1, ?VMS)],
        OsPids = [OsPid || Sleeper <- Sleepers, {os_pid, OsPid} <- [erlang:port_info(Sleeper, os_pid)]],
        %% None begins before all are there: the first would keep the last from starting.
        Vms = [vm() || _ <- OsPids],
        Kill = fun(Pids) -> os:cmd(lists:flatten(["kill -KILL" | [[$\s, Pid] || Pid <- Pids]])) end,
        try
            [ok = peer:cast(Peer, ?MODULE, stops, [OsPid]) || {{Peer, _}, OsPid} <- lists:zip(Vms, OsPids)],
            [ok = await(fun() -> atoll_cluster_os:state(process(OsPid)) =:= stopped end) || OsPid <- OsPids],
            "" = Kill([Vm || {_, Vm} <- Vms]),
            [ok = await(fun() -> holders(OsPid) =:= [] andalso atoll_cluster_os:state(process(OsPid)) =:= running end) || OsPid <- OsPids]
        after
            Kill([integer_to_list(OsPid) || OsPid <- OsPids] ++ [Vm || {_, Vm} <- Vms])
        end
    end}.

a_process_that_is_gone_is_not_held_test() ->
    Sleeper = open_port({spawn_executable, "/bin/sleep"}, [{args, ["0"]}, exit_status]),
    {os_pid, OsPid} = erlang:port_info(Sleeper, os_pid),
    receive
        {Sleeper, {exit_status, 0}} -> ok
    end,
    ?assertEqual(gone, atoll_chaos_os:stop(OsPid)).

vm() ->
    {ok, Peer, _} = peer:start(#{connection => standard_io, wait_boot => ?MS, args => ["-pa" | [Path || Path <- code:get_path(), Path =/= "."]]}),
    Vm = peer:call(Peer, os, getpid, [], ?MS),
    {Peer, Vm}.

%% On such a VM: again and again.
stops(OsPid) ->
    {ok, Holder} = atoll_chaos_os:stop(OsPid),
    ok = atoll_chaos_os:release(Holder),
    stops(OsPid).

process(OsPid) ->
    {ok, Start} = atoll_cluster_os:start_time(OsPid),
    {OsPid, Start}.

%% The last argument of each is the number of the process that it holds.
holders(OsPid) ->
    [File || File <- filelib:wildcard("/proc/[0-9]*/cmdline"), {ok, Line} <- [file:read_file(File)],
        [<<"/bin/sh">> | _] = Words <- [binary:split(Line, <<0>>, [global, trim])], lists:last(Words) =:= integer_to_binary(OsPid)].

await(Test) -> atoll_cli_os:await(Test, ?MS).
