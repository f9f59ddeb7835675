%% SPDX-License-Identifier: Apache-2.0
%% What every node says of itself: read from files as Linux writes them, and on this machine.
-module(atoll_attr_builtin_tests).

-include_lib("eunit/include/eunit.hrl").

-define(L, atoll_attr_linux).

%% Texts

memory_test() ->
    Text = <<"MemTotal:       24684096 kB\nMemFree:        20952668 kB\nMemAvailable:   22545732 kB\nHugePages_Free:        0\n">>,
    ?assertEqual(24684096, ?L:meminfo(<<"MemTotal">>, Text)),
    ?assertEqual(20952668, ?L:meminfo(<<"MemFree">>, Text)),
    ?assertEqual(undefined, ?L:meminfo(<<"HugePages_Free">>, Text)),
    ?assertEqual(undefined, ?L:meminfo(<<"Total">>, Text)).

load_test() ->
    Text = <<"5.03 2.62 2.23 6/179 15886\n">>,
    ?assertEqual([5.03, 2.62, 2.23], [?L:load(M, Text) || M <- [1, 5, 15]]),
    ?assertEqual({6, 179}, ?L:entities(Text)).

processor_test() ->
    Text = <<"processor\t: 0\nmodel\t\t: 17\nmodel name\t: AMD EPYC \ncpu MHz\t\t: 2596.138\n\nprocessor\t: 1\ncpu MHz\t\t: 1000.0\n">>,
    ?assertEqual(<<"AMD EPYC">>, ?L:cpu(<<"model name">>, Text)),
    ?assertEqual(<<"2596.138">>, ?L:cpu(<<"cpu MHz">>, Text)).

what_is_not_there_is_undefined_test() ->
    ?assertEqual(
        lists:duplicate(4, undefined),
        [?L:meminfo(<<"MemTotal">>, <<>>), ?L:load(5, <<>>), ?L:entities(<<>>), ?L:cpu(<<"cpu MHz">>, <<>>)]
    ),
    ?assertEqual([undefined, undefined, undefined], [?L:F([]) || F <- [cgroup_mem_limit, cgroup_mem_used, cgroup_cpus]]).

%% Control groups, in folders as the kernel shows them

version_2_test() ->
    with_files(
        [
            {"top/cpu.max", "max 100000\n"},
            {"top/pod/memory.max", "1073741824\n"},
            {"top/pod/cpu.max", "150000 100000\n"},
            {"top/pod/app/memory.max", "max\n"},
            {"top/pod/app/memory.current", "524288\n"},
            {"top/pod/app/cpu.max", "max 100000\n"}
        ],
        fun(Folder) ->
            Places = [{v2, filename:join(Folder, "top"), filename:join(Folder, "top/pod/app")}],
            %% The limits of the group around it hold too.
            ?assertEqual(1048576, ?L:cgroup_mem_limit(Places)),
            ?assertEqual(512, ?L:cgroup_mem_used(Places)),
            ?assertEqual(1.5, ?L:cgroup_cpus(Places))
        end
    ).

version_1_test() ->
    with_files(
        [
            {"memory/memory.limit_in_bytes", "9223372036854771712\n"},
            {"memory/box/memory.limit_in_bytes", "2097152\n"},
            {"memory/box/memory.usage_in_bytes", "1048576\n"},
            {"cpu/cpu.cfs_quota_us", "-1\n"},
            {"cpu/cpu.cfs_period_us", "100000\n"},
            {"cpu/box/cpu.cfs_quota_us", "50000\n"},
            {"cpu/box/cpu.cfs_period_us", "100000\n"}
        ],
        fun(Folder) ->
            Place = fun(C) -> [{v1, filename:join(Folder, C), filename:join([Folder, C, "box"])}] end,
            Top = fun(C) -> [{v1, filename:join(Folder, C), filename:join(Folder, C)}] end,
            ?assertEqual(2048, ?L:cgroup_mem_limit(Place("memory"))),
            ?assertEqual(1024, ?L:cgroup_mem_used(Place("memory"))),
            ?assertEqual(0.5, ?L:cgroup_cpus(Place("cpu"))),
            %% No limit.
            ?assertEqual(undefined, ?L:cgroup_mem_limit(Top("memory"))),
            ?assertEqual(undefined, ?L:cgroup_cpus(Top("cpu")))
        end
    ).

a_strange_list_of_groups_is_none_test() ->
    [?assertEqual([], ?L:places(<<"memory">>, T)) || T <- [<<>>, <<"x">>, <<"1:2">>, <<"4:pids:/a\n">>]].

%% This machine

every_node_has_them_test() ->
    Values = [{Name, catch value(Source)} || {Name, {_, Source}} <- atoll_attr_builtin:definitions()],
    ?assertEqual([], [Crash || {_, {'EXIT', _}} = Crash <- Values]),
    Known = fun(Name) -> proplists:get_value(Name, Values) end,
    ?assertEqual(os:type(), Known(os_type)),
    ?assert(Known(vm_num_processors) >= 1),
    ?assert(Known(num_erlang_processes) > 10),
    ?assert(Known(vm_memory) > 1000),
    ?assert(is_integer(Known(run_queue))),
    ?assert(Known(scheduler_utilisation) >= 0.0 andalso Known(scheduler_utilisation) =< 1.0),
    case os:type() of
        {unix, linux} ->
            ?assert(Known(mem_free) =< Known(mem_total)),
            ?assert(is_float(Known(loadavg1)));
        _ ->
            ?assertEqual(undefined, Known(mem_free))
    end.

value({M, F}) -> M:F();
value({M, F, A}) -> apply(M, F, A).

with_files(Files, Fun) ->
    Folder = atoll_test_file:temporary("atoll_attr"),
    try
        _ = [
            begin
                ok = filelib:ensure_dir(filename:join(Folder, File)),
                ok = file:write_file(filename:join(Folder, File), Text)
            end
         || {File, Text} <- Files
        ],
        Fun(Folder)
    after
        file:del_dir_r(Folder)
    end.
