%% SPDX-License-Identifier: Apache-2.0
%% What is read of processes and of the machine, and what is said of it.
-module(atoll_bench_machine_tests).

-include_lib("eunit/include/eunit.hrl").

a_process_may_be_called_anything_test() ->
    Line = <<"42 (a) S (b c) S 7 1 2 3 4 5 6 7 8 9 10 20 30 40 50 60\n">>,
    ?assertEqual({42, 7, 10 + 20 + 30 + 40}, atoll_bench_machine:parse_stat(Line)).

a_family_is_all_that_was_started_test() ->
    Parents = [{1, 0}, {2, 1}, {3, 2}, {4, 3}, {5, 1}],
    ?assertEqual([2, 3, 4], lists:sort(maps:keys(atoll_bench_machine:family(2, Parents)))).

what_this_process_uses_is_not_the_others_test_() ->
    {timeout, 60, fun what_this_process_uses/0}.

what_this_process_uses() ->
    {_, Ours0} = atoll_bench_machine:look(),
    {Used0, _} = erlang:statistics(runtime),
    ok = burn(Used0 + 500),
    {_, Ours} = atoll_bench_machine:look(),
    %% 50 ticks, less what is rounded for a process and its threads.
    ?assert(Ours - Ours0 >= 40).

%% Of a loop of reads much is the kernel's: half a second of both.
the_kernels_time_is_a_nodes_too_test_() ->
    {timeout, 60, fun() ->
        case os:type() of
            {unix, linux} ->
                {Used0, _} = erlang:statistics(runtime),
                Own0 = atoll_bench_machine:own_cpu_us(),
                ok = read_zeros(Own0 + 500000),
                {Used, _} = erlang:statistics(runtime),
                ?assert(atoll_bench_machine:own_cpu_us() - Own0 > 1000 * (Used - Used0) + 50000);
            _ ->
                ok
        end
    end}.

read_zeros(Until) ->
    {ok, File} = file:open("/dev/zero", [read, raw, binary]),
    try
        read_zeros(File, Until)
    after
        file:close(File)
    end.

read_zeros(File, Until) ->
    {ok, <<0, _/binary>>} = file:read(File, 1048576),
    case atoll_bench_machine:own_cpu_us() < Until of
        true -> read_zeros(File, Until);
        false -> ok
    end.

what_others_use_is_all_but_ours_test() ->
    %% In a second each processor has 100 ticks to give.
    Given = 100 * erlang:system_info(logical_processors_available),
    Others = fun(Busy, Ours) -> atoll_bench_machine:others({7000, 300}, {7000 + Busy, 300 + Ours}, 1000) end,
    ?assertEqual(0.25, Others(Given div 4 + 30, 30)),
    ?assertEqual(1.0, Others(Given, 0)),
    %% The two numbers are not of the same moment.
    ?assert(Others(10, 12) == 0),
    ?assertEqual(1.0, Others(Given + 3, 0)),
    ?assertEqual(null, atoll_bench_machine:others(none, none, 1000)).

%% In a tenth of a second the threshold is a tick for each processor, and each process and each look
%% is rounded to one.
of_a_round_that_is_too_short_for_ticks_nothing_is_said_test() ->
    Others = fun(WallMs) -> atoll_bench_machine:others({7000, 300}, {7003, 300}, WallMs) end,
    ?assertEqual([null, null, null], [Others(WallMs) || WallMs <- [0, 100, 499]]),
    ?assert(is_float(Others(500))).

%% What the host gave to other machines is no more ours than what other processes used. A guest's
%% time is the user's already; a kernel that knows of no host writes seven numbers.
what_the_host_took_is_the_others_test() ->
    Busy = fun(Line) -> atoll_bench_machine:busy(list_to_binary("cpu0 " ++ Line ++ "\n"), <<"0">>) end,
    ?assertEqual(1 + 2 + 3 + 6 + 7 + 100, Busy("1 2 3 4 5 6 7 100 1000 10000")),
    ?assertEqual(1 + 2 + 3 + 6 + 7, Busy("1 2 3 4 5 6 7")).

processors_that_this_vm_may_not_use_do_not_count_test() ->
    Line = fun(Name, Base) -> [Name, [[" ", integer_to_list(Base * N)] || N <- [1, 2, 3, 9, 9, 4, 5, 9, 9, 9]], "\n"] end,
    Stat = iolist_to_binary([Line("cpu ", 1111), Line("cpu0", 1), Line("cpu1", 10), Line("cpu2", 100), Line("cpu10", 1000), "intr 7 8\n"]),
    [
        ?assertEqual({Allowed, 24 * Sum}, {Allowed, atoll_bench_machine:busy(Stat, Allowed)})
     || {Allowed, Sum} <- [{<<"0">>, 1}, {<<"0-2">>, 111}, {<<"1,10">>, 1010}, {<<"0-1,8-15">>, 1011}, {<<"0-63">>, 1111}]
    ].

no_flag_tells_who_ran_it_test_() ->
    [
        {Text, ?_assertEqual(Kept, atoll_bench_machine:flags(Text))}
     || {Text, Kept} <- [
            {"", []},
            {"+S 1:1 -setcookie secret -name me@home +sbwt none", [<<"+S">>, <<"1:1">>, <<"+sbwt">>, <<"none">>]},
            {"-pa /home/me/ebin +A4 -config /etc/x", [<<"+A4">>]},
            {"+Bd -sname \x{444}\x{43e}", [<<"+Bd">>]},
            {"+S +P 1000\t+zdbbl 65536", [<<"+S">>, <<"+P">>, <<"1000">>, <<"+zdbbl">>, <<"65536">>]},
            {"+x /home/me +pc \x{444}", [<<"+x">>, <<"+pc">>, <<"\x{444}"/utf8>>]}
        ]
    ].

flags_are_those_of_all_variables_test() ->
    Names = ["ERL_AFLAGS", "ERL_FLAGS", "ERL_ZFLAGS"],
    Before = [{Name, os:getenv(Name)} || Name <- Names],
    try
        [os:putenv(Name, "-setcookie " ++ Name ++ " +A " ++ N) || {Name, N} <- lists:zip(Names, ["1", "2", "3"])],
        #{flags := Flags} = atoll_bench_machine:describe(),
        ?assertEqual([<<"+A">>, <<"1">>, <<"+A">>, <<"2">>, <<"+A">>, <<"3">>], Flags)
    after
        [
            case Value of
                false -> os:unsetenv(Name);
                _ -> os:putenv(Name, Value)
            end
         || {Name, Value} <- Before
        ]
    end.

%% Until this VM has used so many milliseconds of processor time. To ask is the kernel's
%% time, which is not counted: so it is asked seldom.
burn(Until) ->
    _ = lists:sort([erlang:phash2(N) || N <- lists:seq(1, 20000)]),
    case erlang:statistics(runtime) of
        {Used, _} when Used < Until -> burn(Until);
        _ -> ok
    end.

it_is_said_what_it_ran_on_test() ->
    #{cores := Cores, otp := Otp, memory_bytes := Bytes} = atoll_bench_machine:describe(),
    ?assert(Cores >= 1),
    ?assertEqual(list_to_binary(erlang:system_info(otp_release)), Otp),
    ?assert(Bytes > 1 bsl 20).

a_process_that_works_uses_processor_time_test_() ->
    {timeout, 60, fun() ->
        Self = list_to_integer(os:getpid()),
        {ok, Before} = atoll_bench_machine:cpu_ns(Self),
        {Used, _} = erlang:statistics(runtime),
        ok = burn(Used + 50),
        {ok, After} = atoll_bench_machine:cpu_ns(Self),
        %% The emulator counts whole milliseconds, or hundredths of a second.
        ?assert(After - Before > 30000000)
    end}.

a_process_has_memory_test() ->
    {ok, KiB} = atoll_bench_machine:pss_kib(list_to_integer(os:getpid())),
    %% In KiB: a VM has more than ten megabytes, and less than a terabyte.
    ?assert(KiB > 10000 andalso KiB < 1000000000).

a_process_that_is_not_there_has_nothing_test() ->
    %% Above what Linux gives out.
    Nobody = (1 bsl 22) + 1,
    ?assertEqual({error, error}, {atoll_bench_machine:cpu_ns(Nobody), atoll_bench_machine:pss_kib(Nobody)}).
