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
    {{ok, Looks, whole}, Counts} = load([{operations, [{a, 6}, {fail, 2}, {silent, 1}]}, {mode, {rate, 2000}}], #{}),
    #{labels := Labels, elapsed_ms := Ms} = last(Looks),
    ?assert(Ms >= 300 andalso length(Looks) >= 3),
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
    Files = maps:from_list([{Name, unicode:characters_to_binary(Text)} || {Name, Text} <- debench_csv:files(Looks)]),
    ?assertEqual(["a_latencies.csv", "errors.csv", "fail_latencies.csv", "summary.csv"], lists:sort(maps:keys(Files))),
    Rows = [[string:trim(Cell) || Cell <- string:lexemes(Row, ",")] || Row <- tl(string:lexemes(maps:get("summary.csv", Files), "\n"))],
    Sum = fun(N) -> lists:sum([binary_to_integer(lists:nth(N, Row)) || Row <- Rows]) end,
    #{a := A, fail := Failed} = Counts,
    ?assertEqual({A + Failed, A, Failed}, {Sum(3), Sum(4), Sum(5)}),
    ?assertEqual(<<"\"error\",\"count\"\n\"fail: refused\",\"", (integer_to_binary(Failed))/binary, "\"\n">>, maps:get("errors.csv", Files)),
    %% Of an open loop all are begun that were to be.
    ?assertEqual(150, A + Failed).

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
