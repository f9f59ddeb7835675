%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The attributes that every node has.
%%
%% Fixed while the VM runs: `os_type', `os_version', `otp_release', `vm_num_processors' (the
%% logical processors that are available to the VM), `mem_total' (kB), `cpu_model_name',
%% `cgroup_mem_limit' (kB).
%%
%% Evaluated at each question: `mem_free' (kB that nobody has), `mem_available' (kB that
%% could be had), `cpu_speed' (MHz of the first processor), `loadavg1', `loadavg5',
%% `loadavg15', `kernel_entities' (threads of the machine, `{Runnable, All}'),
%% `num_erlang_processes', `run_queue' (processes of the VM that could run and do not),
%% `scheduler_utilisation' (from 0 to 1, see {@link utilisation/0}), `vm_memory' (kB),
%% `cgroup_mem_used' (kB), `cgroup_cpus' (processors' worth of time that the VM's control
%% group may use; a container may be given another quota while it runs).
%%
%% What the system does not tell is undefined: `cgroup_mem_limit' where there is no limit,
%% much of it elsewhere than on Linux.
-module(atoll_attr_builtin).

-export([definitions/0, vm_num_processors/0, run_queue/0, vm_memory/0, utilisation/0]).

%% How long the schedulers are looked at.
-define(SPAN_MS, 50).

%% @doc All of them, as in a configuration.
-spec definitions() -> [atoll_attr_book:definition()].
definitions() ->
    [
        {os_type, {automatic, {os, type}}},
        {os_version, {automatic, {os, version}}},
        {otp_release, {automatic, {erlang, system_info, [otp_release]}}},
        {vm_num_processors, {automatic, {?MODULE, vm_num_processors}}},
        {mem_total, {automatic, {atoll_attr_linux, meminfo, [<<"MemTotal">>]}}},
        {cpu_model_name, {automatic, {atoll_attr_linux, cpu_model}}},
        {cgroup_mem_limit, {automatic, {atoll_attr_linux, cgroup_mem_limit}}},
        {mem_free, {dynamic, {atoll_attr_linux, meminfo, [<<"MemFree">>]}}},
        {mem_available, {dynamic, {atoll_attr_linux, meminfo, [<<"MemAvailable">>]}}},
        {cpu_speed, {dynamic, {atoll_attr_linux, cpu_mhz}}},
        {loadavg1, {dynamic, {atoll_attr_linux, load, [1]}}},
        {loadavg5, {dynamic, {atoll_attr_linux, load, [5]}}},
        {loadavg15, {dynamic, {atoll_attr_linux, load, [15]}}},
        {kernel_entities, {dynamic, {atoll_attr_linux, entities}}},
        {num_erlang_processes, {dynamic, {erlang, system_info, [process_count]}}},
        {run_queue, {dynamic, {?MODULE, run_queue}}},
        {scheduler_utilisation, {dynamic, {?MODULE, utilisation}}},
        {vm_memory, {dynamic, {?MODULE, vm_memory}}},
        {cgroup_mem_used, {dynamic, {atoll_attr_linux, cgroup_mem_used}}},
        {cgroup_cpus, {dynamic, {atoll_attr_linux, cgroup_cpus}}}
    ].

%% @doc The logical processors that are available to the VM; where the system does not say,
%% those that are online.
-spec vm_num_processors() -> pos_integer() | undefined.
vm_num_processors() ->
    Known = [erlang:system_info(Item) || Item <- [logical_processors_available, logical_processors_online]],
    case [N || N <- Known, is_integer(N)] of
        [N | _] -> N;
        [] -> undefined
    end.

%% @doc The processes and ports that could run and do not, on all schedulers.
-spec run_queue() -> non_neg_integer().
run_queue() ->
    erlang:statistics(total_run_queue_lengths).

%% @doc The memory that the VM has taken from the system for itself, in kB.
-spec vm_memory() -> non_neg_integer().
vm_memory() ->
    erlang:memory(total) div 1024.

%% @doc The share of the time that the normal schedulers are at work, during a twentieth of
%% a second from now on. The runtime measures it for as long as the caller lives.
-spec utilisation() -> float() | undefined.
utilisation() ->
    _ = erlang:system_flag(scheduler_wall_time, true),
    Before = erlang:statistics(scheduler_wall_time),
    receive
    after ?SPAN_MS -> utilisation(Before, erlang:statistics(scheduler_wall_time))
    end.

utilisation(Before, After) when is_list(Before), is_list(After) ->
    Normal = erlang:system_info(schedulers),
    {Active, Total} = lists:foldl(
        fun({{Id, A0, T0}, {Id, A, T}}, {Active, Total}) -> {Active + A - A0, Total + T - T0} end,
        {0, 0},
        [Pair || {{Id, _, _}, _} = Pair <- lists:zip(lists:sort(Before), lists:sort(After)), Id =< Normal]
    ),
    case Total of
        0 -> undefined;
        _ -> Active / Total
    end;
utilisation(_, _) ->
    %% Somebody switched it off meanwhile.
    undefined.
