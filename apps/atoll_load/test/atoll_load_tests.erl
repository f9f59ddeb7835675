%% SPDX-License-Identifier: Apache-2.0
%% The load itself, over drivers that take no store: what is counted is what was asked.
-module(atoll_load_tests).

-include_lib("eunit/include/eunit.hrl").

load(Terms, Settings) ->
    Usual = #{driver => atoll_load_probe, duration => 0.005, concurrent => 3, report_interval => 0.1},
    {ok, Config} = atoll_load_config:check([{1, Term} || Term <- maps:to_list(maps:merge(Usual, maps:from_list(Terms)))]),
    ok = atoll_load_probe:start(),
    Ran = atoll_load_run:run(Config, Settings),
    {Ran, atoll_load_probe:stop()}.

last(Looks) -> lists:last(Looks).

what_is_counted_is_what_was_asked_and_weights_are_kept_test() ->
    {{ok, Looks, whole}, Counts} = load([{operations, [{a, 6}, {fail, 2}, {silent, 1}]}, {mode, {rate, 2000}}, {duration, 0.02}], #{}),
    #{labels := Labels, elapsed_ms := Ms} = last(Looks),
    ?assert(Ms >= 1200 andalso length(Looks) >= 3),
    Of = fun(Label) -> proplists:get_value(Label, Labels) end,
    #{ok := A, errors := []} = Of(a),
    #{ok := 0, errors := [{refused, Failed}]} = Of(fail),
    #{ok := 0, errors := []} = Of(silent),
    ?assertEqual(#{a => A, fail => Failed, silent => maps:get(silent, Counts)}, Counts),
    %% By three standard deviations.
    All = lists:sum(maps:values(Counts)),
    [?assert(abs(maps:get(What, Counts) - All * P) =< 3 * math:sqrt(All * P * (1 - P)) + 1, {What, Counts}) || {What, P} <- [{a, 6 / 9}, {fail, 2 / 9}, {silent, 1 / 9}]].

the_files_have_what_was_counted_test() ->
    {{ok, Looks, whole}, Counts} = load([{operations, [{a, 3}, {fail, 1}]}, {offered_load, 500}], #{}),
    Files = maps:from_list([{Name, unicode:characters_to_binary(Text)} || {Name, Text} <- atoll_bench_csv:files(Looks)]),
    ?assertEqual(["a_latencies.csv", "errors.csv", "fail_latencies.csv", "summary.csv"], lists:sort(maps:keys(Files))),
    Rows = [[string:trim(Cell) || Cell <- string:lexemes(Row, ",")] || Row <- tl(string:lexemes(maps:get("summary.csv", Files), "\n"))],
    Sum = fun(N) -> lists:sum([binary_to_integer(lists:nth(N, Row)) || Row <- Rows]) end,
    #{a := A, fail := Failed} = Counts,
    #{shed := Shed} = last(Looks),
    ?assertEqual({150, A, Failed + Shed}, {Sum(3), Sum(4), Sum(5)}),
    ?assertMatch({0, _}, binary:match(maps:get("errors.csv", Files), <<"\"error\",\"count\"\n\"fail: refused\",\"", (integer_to_binary(Failed))/binary, "\"\n">>)),
    %% Of an open loop all are begun that were to be, or shed.
    ?assertEqual(150, A + Failed + Shed).

%% One worker that takes 50 ms for each of a hundred a second.
what_fails_and_what_is_shed_is_told_test() ->
    {{ok, Looks, whole}, #{slow_fail := N}} = load([{operations, [{slow_fail, 1}]}, {offered_load, 100}, {concurrent, 1}, {duration, 0.02}], #{}),
    #{offered := Offered, shed := Shed, labels := [{slow_fail, #{ok := 0, failed := Failed}}]} = last(Looks),
    ?assertEqual({120, N}, {Offered, atoll_histogram:count(Failed)}),
    ?assertEqual(120, N + Shed),
    ?assert(Shed > 50, Shed),
    ?assert(atoll_histogram:min(Failed) >= 50_000_000),
    #{shed := Shed, failed := 120} = atoll_bench_window:between(atoll_bench_window:outset(last(Looks)), last(Looks)).

the_same_seed_asks_for_the_same_test() ->
    Keys = fun(Seed) -> _ = rand:seed(exsss, Seed), [(atoll_load_keys:key({uniform_int, 1000}, {1, 1}))() || _ <- lists:seq(1, 20)] end,
    ?assertEqual(Keys({42, 23, 13}), Keys({42, 23, 13})),
    ?assertNotEqual(Keys({42, 23, 13}), Keys({42, 23, 14})).

an_error_or_a_driver_ends_it_where_it_is_to_test() ->
    {{ok, Looks, {stopped, {refused, _, _}}}, #{fail := N}} = load([{operations, [{fail, 1}]}, {shutdown_on_error, true}, {duration, 5}], #{}),
    ?assert(N =< 3 andalso maps:get(elapsed_ms, last(Looks)) < 5000),
    {{ok, _, {stopped, enough}}, _} = load([{operations, [{stop, 1}]}, {duration, 5}], #{}).

hooks_are_called_before_and_after_test() ->
    {{ok, _, whole}, #{hooked := 2}} = load([{operations, [{a, 1}]}, {mode, {rate, 50}}, {pre_hook, {atoll_load_probe, hooked}}, {post_hook, {atoll_load_probe, hooked}}], #{}).

%% The benchmark

point(Told) ->
    Default = maps:from_list([{Name, hd(Values)} || #{name := Name, values := Values} <- atoll_load_bench:parameters()]),
    maps:merge(Default#{seed => 1, keys => 20, seconds => 0.3, workers => 2, store => ets}, Told).

a_round_measures_each_operation_and_leaves_no_table_test() ->
    Of = fun(Told) ->
        {ok, Begun} = atoll_load_bench:setup(point(Told)),
        {ok, Measured, State} = atoll_load_bench:round(Begun),
        ok = atoll_load_bench:teardown(State),
        Measured
    end,
    #{ops_per_s := PerS, failed := Failed, shed := Shed, latency := #{count := N}, servers := Says, errors := Errors} = Of(#{rate => 200}),
    ?assert(PerS > 0 andalso PerS =< 250),
    ?assert(N + round(60 * (Failed + Shed) / 100) =:= 60, {N, Failed, Shed}),
    ?assert(is_binary(Says)),
    ?assertEqual(<<"Nothing failed.">>, Errors),
    %% Of a closed loop nothing is shed.
    ?assertMatch(#{shed := +0.0, failed := +0.0}, Of(#{writes => 100})),
    ?assertEqual([], [Table || Table <- ets:all(), ets:info(Table, name) =:= atoll_load_ets]).

what_has_failed_is_told_the_most_frequent_first_test() ->
    ?assertEqual("Failed: 7 put (not_started), 2 get (noconnection).", lists:flatten(atoll_load_bench:errors([{2, get, noconnection}, {7, put, not_started}]))).

%% Each store has the same keys and values before the first round.
all_keys_are_there_before_the_first_round_test() ->
    {ok, #{started := #{store := #{settings := #{table := Table}}}} = Begun} = atoll_load_bench:setup(point(#{keys => 30, size => 7})),
    ?assertEqual(lists:seq(0, 29), lists:sort([N || {<<N:32>>, <<_:7/binary>>} <- ets:tab2list(Table)])),
    ok = atoll_load_bench:teardown(Begun).

only_the_ring_has_nodes_and_loses_one_test() ->
    {ok, Points} = atoll_bench:sweep(atoll_load_bench, #{nodes => [3, 6], kill => [0, 2], store => [ets, ring]}),
    ?assertEqual([{ets, 3, 0}, {ring, 3, 0}, {ring, 3, 2}, {ring, 6, 0}, {ring, 6, 2}], lists:sort([{Store, Nodes, Kill} || #{store := Store, nodes := Nodes, kill := Kill} <- Points])),
    ?assertMatch({error, _}, atoll_load_bench:check(point(#{store => ring, nodes => 2, kill => 1}))),
    ?assertMatch({error, _}, atoll_load_bench:check(point(#{keys => 10000, size => 1000000}))).

%% Nobody is left when the caller ends, whatever the workers wait for.
workers_end_with_whoever_has_started_them_test() ->
    Before = processes(),
    {Pid, Ref} = spawn_monitor(fun() -> load([{operations, [{hang, 1}]}, {duration, 5}], #{}) end),
    ok = await(fun() -> catch ets:lookup_element(atoll_load_probe, hang, 2) =:= 3 end),
    true = exit(Pid, kill),
    receive {'DOWN', Ref, process, Pid, killed} -> ok end,
    ok = await(fun() -> [P || P <- processes() -- Before, process_info(P, current_function) =:= {current_function, {atoll_load_probe, run, 4}}] =:= [] end).

await(Is) -> await(Is, erlang:monotonic_time(millisecond) + 10_000).

await(Is, Deadline) ->
    case {Is(), erlang:monotonic_time(millisecond) >= Deadline} of
        {true, _} -> ok;
        {_, true} -> late;
        {_, false} -> receive after 10 -> await(Is, Deadline) end
    end.
