%% SPDX-License-Identifier: Apache-2.0
%% Groups of processes with a bound on their processor time. Where none can be made, every
%% case is skipped, and the reason says why.
-module(atoll_quota_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, groups/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([
    a_group_uses_no_more_than_its_quota/1,
    what_is_wrong_is_a_sentence/1,
    stop_leaves_nothing/1,
    the_end_of_the_owner_leaves_nothing/1,
    kill_9_of_the_vm_leaves_nothing/1,
    a_keeper_that_is_killed_is_replaced/1,
    a_line_to_a_keeper_that_is_gone_harms_nobody/1,
    what_cannot_be_removed_is_named_in_time/1,
    what_the_dead_have_left_is_removed_by_the_next/1
]).

-define(GONE_MS, 5000).
-define(WAIT_MS, 30000).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    [{group, waiting} | [F || {F, 1} <- ?MODULE:module_info(exports), not lists:member(F, [init_per_suite, end_per_suite, module_info])] -- waiting()].

groups() -> [{waiting, [parallel], waiting()}].

%% One of these waits for ten seconds, and each has control groups of its own.
waiting() ->
    [
        a_group_uses_no_more_than_its_quota, stop_leaves_nothing, the_end_of_the_owner_leaves_nothing, kill_9_of_the_vm_leaves_nothing,
        a_keeper_that_is_killed_is_replaced, a_line_to_a_keeper_that_is_gone_harms_nobody, what_cannot_be_removed_is_named_in_time
    ].

init_per_suite(Config) ->
    case atoll_quota:available() of
        ok -> Config;
        {error, Error} -> {skip, sentence(Error)}
    end.

end_per_suite(_Config) ->
    ok.

sentence(Error) ->
    lists:flatten(unicode:characters_to_list(atoll_quota:format_error(Error))).

%% A twentieth of a processor is five milliseconds in each period.
a_group_uses_no_more_than_its_quota(_Config) ->
    {ok, Quota} = atoll_quota:start(#{cpus => [0.05, 1]}),
    [Group, _] = atoll_quota:groups(Quota),
    Busy = busy(),
    ok = atoll_quota:enter(Quota, 1, Busy),
    Begin = erlang:monotonic_time(millisecond),
    {ok, Cpu0} = cpu_ms(Busy),
    ok = await(fun() -> throttled(Group) >= 20 end),
    {ok, Cpu} = cpu_ms(Busy),
    Ms = erlang:monotonic_time(millisecond) - Begin,
    %% It is counted in hundredths of a second.
    ?assert(Cpu - Cpu0 =< 0.05 * Ms + 30, {Cpu - Cpu0, Ms}),
    ok = atoll_quota:stop(Quota).

what_is_wrong_is_a_sentence(_Config) ->
    {error, Bad} = atoll_quota:start(#{cpus => [0.5, 0]}),
    ?assertEqual("the option cpus must be numbers of processors from 0.01 to 1000", sentence(Bad)),
    {ok, Quota} = atoll_quota:start(#{cpus => [0.5]}),
    Busy = busy(),
    ok = kill_9(Busy),
    %% A zombie can still be put there.
    ok = await(fun() -> not filelib:is_file(lists:concat(["/proc/", Busy])) end),
    {error, Gone} = atoll_quota:enter(Quota, 1, Busy),
    ?assertMatch({match, _}, re:run(sentence(Gone), "^process [0-9]+ cannot be put into a control group: ")),
    ok = atoll_quota:stop(Quota).

%% What is in a group goes with it, and other groups are not touched.
stop_leaves_nothing(_Config) ->
    {ok, Quota} = atoll_quota:start(#{cpus => [0.01, 0.5]}),
    {ok, Other} = atoll_quota:start(#{cpus => [0.5]}),
    Groups = atoll_quota:groups(Quota),
    Busy = [busy() || _ <- Groups],
    Stays = busy(),
    [ok = atoll_quota:enter(Quota, N, Pid) || {N, Pid} <- lists:zip([1, 2], Busy)],
    ok = atoll_quota:enter(Other, 1, Stays),
    [] = os:cmd("kill -STOP " ++ integer_to_list(hd(Busy))),
    ok = atoll_quota:stop(Quota),
    ?assertEqual([], there(Groups)),
    ?assert(lists:all(fun is_gone/1, Busy)),
    ?assertNot(is_gone(Stays)),
    ok = atoll_quota:stop(Quota),
    ok = atoll_quota:stop(Other).

the_end_of_the_owner_leaves_nothing(_Config) ->
    Self = self(),
    {Owner, Ref} = spawn_monitor(fun() ->
        {ok, Quota} = atoll_quota:start(#{cpus => [0.05]}),
        Self ! {self(), Quota, atoll_quota:groups(Quota)},
        receive stop -> ok end
    end),
    {Quota, Groups} = receive {Owner, Q, G} -> {Q, G} after ?WAIT_MS -> error(no_quota) end,
    ?assertEqual(Groups, there(Groups)),
    Down = monitor(process, Quota),
    Owner ! stop,
    receive {'DOWN', Ref, process, Owner, normal} -> ok end,
    receive {'DOWN', Down, process, Quota, normal} -> ok after ?GONE_MS -> error(still_there) end,
    ?assertEqual([], there(Groups)).

kill_9_of_the_vm_leaves_nothing(_Config) ->
    {Vm, _Keeper, Groups, Nodes} = hold(),
    ?assertEqual(Groups, there(Groups)),
    ok = kill_9(atoll_cluster_holder:os_pid(Vm)),
    ok = await(fun() -> there(Groups) =:= [] andalso lists:all(fun is_gone/1, Nodes) end, ?GONE_MS),
    atoll_cluster_holder:close(Vm).

a_keeper_that_is_killed_is_replaced(_Config) ->
    {ok, Quota} = atoll_quota:start(#{cpus => [0.05]}),
    Groups = atoll_quota:groups(Quota),
    Keeper = atoll_quota:os_pid(Quota),
    ok = kill_9(Keeper),
    ok = await(fun() -> atoll_quota:os_pid(Quota) =/= Keeper end),
    ?assertEqual(Groups, there(Groups)),
    %% Killed at the moment at which it should end.
    ok = kill_9(atoll_quota:os_pid(Quota)),
    ok = atoll_quota:stop(Quota),
    ?assertEqual([], there(Groups)).

%% What the runtime sends then, to who is linked with the port, is the reason of its end.
a_line_to_a_keeper_that_is_gone_harms_nobody(_Config) ->
    {ok, Quota} = atoll_quota:start(#{cpus => [0.05]}),
    Groups = atoll_quota:groups(Quota),
    Keeper = atoll_quota:os_pid(Quota),
    {links, [Port]} = process_info(Quota, links),
    [] = os:cmd("kill -STOP " ++ integer_to_list(Keeper)),
    true = exit(Port, epipe),
    ok = kill_9(Keeper),
    ok = await(fun() -> atoll_quota:os_pid(Quota) =/= Keeper end),
    ?assertEqual(Groups, there(Groups)),
    ok = atoll_quota:stop(Quota),
    ?assertEqual([], there(Groups)).

%% A group with a group in it cannot be removed, and the others are.
what_cannot_be_removed_is_named_in_time(_Config) ->
    {ok, Quota} = atoll_quota:start(#{cpus => [0.05, 0.05]}),
    [Group, _] = Groups = atoll_quota:groups(Quota),
    Inner = filename:join(Group, "inner"),
    ok = file:make_dir(Inner),
    {error, {not_gone, [Group]} = Error} = atoll_quota:stop(Quota),
    ?assertMatch({match, _}, re:run(sentence(Error), "^what is in these control groups could not be ended")),
    ?assertEqual([Group], there(Groups)),
    ok = file:del_dir(Inner),
    ok = await(fun() -> there(Groups) =:= [] end).

what_the_dead_have_left_is_removed_by_the_next(_Config) ->
    {Vm, Keeper, Groups, Nodes} = hold(),
    [] = os:cmd("kill -STOP " ++ integer_to_list(Keeper)),
    ok = kill_9(atoll_cluster_holder:os_pid(Vm)),
    ok = kill_9(Keeper),
    ok = await(fun() -> lists:all(fun is_gone/1, Nodes) andalso lists:all(fun is_empty/1, Groups) end),
    ?assertEqual(Groups, there(Groups)),
    %% Who cannot see that the VM is no more must not take those of one that is about to use them.
    {ok, Mine} = atoll_quota:start(#{cpus => [1]}),
    ?assertEqual(Groups, there(Groups)),
    Old = calendar:system_time_to_local_time(os:system_time(second) - 61, second),
    [ok = file:change_time(Group, Old) || Group <- Groups],
    {ok, Quota} = atoll_quota:start(#{cpus => [1]}),
    ?assertEqual([], there(Groups)),
    %% And nobody else's.
    ?assertMatch([_], there(atoll_quota:groups(Mine))),
    ok = atoll_quota:stop(Quota),
    ok = atoll_quota:stop(Mine),
    atoll_cluster_holder:close(Vm).

%% Helpers

%% A VM that has two nodes, each in a group.
hold() ->
    Vm = atoll_cluster_holder:start(#{cluster => #{nodes => 2, quota => #{cpus => [0.05, 0.2]}}}),
    {Keeper, Groups} = atoll_cluster_holder:wait_for(Vm, quota),
    #{nodes := Nodes} = atoll_cluster_holder:wait_for(Vm, started),
    {Vm, Keeper, Groups, [Pid || #{os_pid := Pid} <- Nodes]}.

%% It uses all that it gets, and ends with this process at the latest.
busy() ->
    Port = open_port({spawn_executable, "/bin/sh"}, [{args, ["-c", "echo on; while :; do :; done"]}, {line, 80}]),
    receive {Port, {data, _}} -> ok after ?WAIT_MS -> error(silent) end,
    {os_pid, Pid} = erlang:port_info(Port, os_pid),
    _ = spawn(fun() ->
        Ref = monitor(process, group_leader()),
        receive {'DOWN', Ref, process, _, _} -> kill_9(Pid) end
    end),
    Pid.

cpu_ms(Pid) ->
    {ok, Text} = file:read_file(lists:concat(["/proc/", Pid, "/stat"])),
    Fields = atoll_cluster_os:stat_fields(Text),
    {ok, 10 * lists:sum([binary_to_integer(Field) || Field <- lists:sublist(Fields, 12, 2)])}.

throttled(Group) ->
    {ok, Text} = file:read_file(filename:join(Group, "cpu.stat")),
    {match, [Count]} = re:run(Text, "nr_throttled (\\d+)", [{capture, [1], list}]),
    list_to_integer(Count).

there(Groups) ->
    [Group || Group <- Groups, filelib:is_dir(Group)].

is_gone(Pid) ->
    case file:read_file(lists:concat(["/proc/", Pid, "/stat"])) of
        {ok, Text} -> hd(atoll_cluster_os:stat_fields(Text)) =:= <<"Z">>;
        {error, _} -> true
    end.

%% A node that is a zombie may have threads that are still ending, with the little time that
%% their group gives them.
is_empty(Group) ->
    [] =:= [
        Threads
     || Name <- ["tasks", "cgroup.threads"],
        {ok, Threads} <- [file:read_file(filename:join(Group, Name))],
        Threads =/= <<>>
    ].

kill_9(OsPid) ->
    case atoll_cluster_os:start_time(OsPid) of
        {ok, Start} -> atoll_cluster_os:signal({OsPid, Start}, kill);
        gone -> gone
    end.

await(Fun) ->
    await(Fun, ?WAIT_MS).

await(Fun, Ms) ->
    until(Fun, erlang:monotonic_time(millisecond) + Ms).

until(Fun, Deadline) ->
    case Fun() of
        true ->
            ok;
        false ->
            ?assert(erlang:monotonic_time(millisecond) < Deadline),
            receive after 10 -> until(Fun, Deadline) end
    end.
