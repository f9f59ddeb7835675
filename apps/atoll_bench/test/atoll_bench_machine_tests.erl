-module(atoll_bench_machine_tests).

-include_lib("eunit/include/eunit.hrl").

a_process_may_be_called_anything_test() ->
    Line = <<"42 (a) S (b c) S 7 1 2 3 4 5 6 7 8 9 10 20 30 40 50 60\n">>,
    ?assertEqual({ok, {42, 7, 10 + 20 + 30 + 40}}, atoll_bench_machine:parse_stat(Line)).

a_family_is_all_that_was_started_test() ->
    Parents = [{1, 0}, {2, 1}, {3, 2}, {4, 3}, {5, 1}],
    ?assertEqual([2, 3, 4], lists:sort(maps:keys(atoll_bench_machine:family(2, Parents)))).

what_this_process_uses_is_not_the_others_test_() ->
    {timeout, 60, fun what_this_process_uses/0}.

what_this_process_uses() ->
    Begin = erlang:monotonic_time(millisecond),
    Before = atoll_bench_machine:look(),
    {Used0, _} = erlang:statistics(runtime),
    ok = burn(Used0 + 500),
    After = atoll_bench_machine:look(),
    Wall = erlang:monotonic_time(millisecond) - Begin,
    %% However busy the machine is, the others did not use what this VM did.
    Ours = 500 / (Wall * erlang:system_info(logical_processors_available)),
    ?assert(atoll_bench_machine:others(Before, After, Wall) =< 1 - 0.8 * Ours).

%% Until this VM has used so many milliseconds of processor time.
burn(Until) ->
    case erlang:statistics(runtime) of
        {Used, _} when Used < Until -> burn(Until);
        _ -> ok
    end.

it_is_said_what_it_ran_on_test() ->
    #{cores := Cores, otp := Otp, memory_bytes := Bytes} = atoll_bench_machine:describe(),
    ?assert(Cores >= 1),
    ?assertEqual(list_to_binary(erlang:system_info(otp_release)), Otp),
    ?assert(Bytes > 1 bsl 20).

a_process_that_works_uses_processor_time_test() ->
    Self = list_to_integer(os:getpid()),
    {ok, Before} = atoll_bench_machine:cpu_ns(Self),
    {Used, _} = erlang:statistics(runtime),
    ok = burn(Used + 50),
    {ok, After} = atoll_bench_machine:cpu_ns(Self),
    %% The emulator counts whole milliseconds, or hundredths of a second.
    ?assert(After - Before > 30000000).

a_process_has_memory_test() ->
    {ok, KiB} = atoll_bench_machine:pss_kib(list_to_integer(os:getpid())),
    %% In KiB: a VM has more than ten megabytes, and less than a terabyte.
    ?assert(KiB > 10000 andalso KiB < 1000000000).

a_process_that_is_not_there_has_nothing_test() ->
    %% Above what Linux gives out.
    Nobody = (1 bsl 22) + 1,
    ?assertEqual({error, error}, {atoll_bench_machine:cpu_ns(Nobody), atoll_bench_machine:pss_kib(Nobody)}).
