%% SPDX-License-Identifier: Apache-2.0
-module(atoll_watch_metric_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

properties_test_() ->
    atoll_prop:tests([
        {a_rate_is_what_was_gained_and_never_below_nothing, a_rate_is_what_was_gained(), 1000},
        {a_share_of_time_is_one, a_share_of_time_is_one(), 1000}
    ]).

sample(Life, At, Readings) -> #{at => At, life => Life, peers => [], readings => Readings, log => [], facts => none}.

a_rate_is_what_was_gained() ->
    ?FORALL({Value0, Value, Seconds}, {non_neg_integer(), non_neg_integer(), pos_integer()}, begin
        Rates = atoll_watch_metric:rates(sample(a, 0, [{reductions, Value0}]), sample(a, Seconds * 1000000, [{reductions, Value}])),
        case Value >= Value0 of
            true -> abs(maps:get(reductions, Rates) * Seconds - (Value - Value0)) < 1.0e-6 * (1 + Value);
            false -> Rates =:= #{}
        end
    end).

a_share_of_time_is_one() ->
    Times = list({non_neg_integer(), non_neg_integer()}),
    ?FORALL({Before, Now}, {Times, Times}, begin
        Raw = fun(Ts) -> [{schedulers_online, 64}, {dirty_cpu_schedulers_online, 64} | lists:append([
            [{scheduler_active, label(N), Active}, {scheduler_time, label(N), Active + Idle}]
         || {N, {Active, Idle}} <- lists:zip(lists:seq(1, length(Ts)), Ts)
        ])] end,
        Readings = atoll_watch_metric:readings(sample(a, 0, Raw(Before)), sample(a, 1, Raw(Now))),
        Shares = [Share || {{scheduler_utilisation, _}, Share} <- maps:to_list(Readings)],
        Mean = maps:get(utilisation, Readings, none),
        lists:all(fun(Share) -> Share >= 0 andalso Share =< 1 end, Shares) andalso
            case Shares of
                [] -> Mean =:= none;
                _ -> Mean >= lists:min(Shares) - 1.0e-9 andalso Mean =< lists:max(Shares) + 1.0e-9
            end
    end).

label(N) -> <<"normal_", (integer_to_binary(N))/binary>>.

a_scheduler_that_is_not_online_does_not_count_test() ->
    Raw = fun(Active) -> [{schedulers_online, 1}, {scheduler_active, <<"normal_1">>, Active}, {scheduler_time, <<"normal_1">>, Active},
                          {scheduler_active, <<"normal_2">>, 0}, {scheduler_time, <<"normal_2">>, Active}] end,
    Readings = atoll_watch_metric:readings(sample(a, 0, Raw(0)), sample(a, 1, Raw(10))),
    ?assert(maps:get(utilisation, Readings) == 1),
    ?assert(maps:get({scheduler_utilisation, <<"normal_2">>}, Readings) == 0).

another_life_of_a_node_has_nothing_before_it_test() ->
    Before = sample(a, 0, [{reductions, 1}]),
    Now = sample(b, 1000000, [{reductions, 9}]),
    ?assertEqual(#{}, atoll_watch_metric:rates(Before, Now)),
    ?assertEqual(#{}, atoll_watch_metric:rates(none, Now)),
    Times = fun(N) -> [{schedulers_online, 1}, {scheduler_active, <<"normal_1">>, N}, {scheduler_time, <<"normal_1">>, N}] end,
    ?assertNot(is_map_key(utilisation, atoll_watch_metric:readings(sample(a, 0, Times(1)), sample(b, 1, Times(2))))).

what_the_table_does_not_have_is_left_out_test() ->
    ?assertEqual(#{processes => 1}, atoll_watch_metric:readings(none, sample(a, 0, [{processes, 1}, {nonsense, 2}]))),
    ?assertEqual(error, atoll_watch_metric:find(nonsense)).

names_are_unique_here_and_for_prometheus_and_as_it_wants_them_test() ->
    All = atoll_watch_metric:all(),
    Names = [Name || #{name := Name} <- All],
    Prometheus = [Name || Metric <- All, {Name, _} <- [atoll_watch_metric:prometheus(Metric)]],
    ?assertEqual(length(Names), length(lists:usort(Names))),
    ?assertEqual(length(Prometheus), length(lists:usort(Prometheus))),
    [?assertMatch({match, _}, re:run(Name, "^erlang_[a-z0-9_]+$"), Name) || Name <- Prometheus],
    {ok, Uptime} = atoll_watch_metric:find(uptime),
    {ok, In} = atoll_watch_metric:find(dist_in),
    ?assertEqual({"erlang_uptime_seconds", 0.001}, atoll_watch_metric:prometheus(Uptime)),
    ?assertEqual({"erlang_dist_in_bytes_total", 1}, atoll_watch_metric:prometheus(In)).

%% It is sent to every node, and stays small.
the_agent_is_twenty_two_kilobytes_test() ->
    Sizes = [begin
        {_, Code, _} = code:get_object_code(Module),
        {ok, {_, Stripped}} = beam_lib:strip(Code),
        byte_size(Stripped)
    end || Module <- atoll_watch_agent:modules()],
    ?assert(lists:sum(Sizes) < 22528, Sizes).
