%% SPDX-License-Identifier: Apache-2.0
%% Generators and the configuration.
-module(atoll_load_keys_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(DRAWS, 20_000).

properties_test_() ->
    atoll_prop:tests([
        {"keys lie in their range, and the same seed gives the same ones", prop_keys(), 300},
        {"workers with partitioned keys have all of them between them, and none twice", prop_partitioned(), 300},
        {"values have the size that was asked for", prop_values(), 300}
    ]).

seeded(Seed) ->
    _ = rand:seed(exsss, Seed),
    ok.

draw(N, Generator) -> [Generator() || _ <- lists:seq(1, N)].

prop_keys() ->
    ?FORALL({Kind, N, Seed}, {oneof([sequential_int, uniform_int, truncated_pareto_int, partitioned_sequential_int]), range(1, 1000), integer()}, begin
        Of = fun() -> ok = seeded(Seed), draw(50, atoll_load_keys:key({Kind, N}, {1, 1})) end,
        Keys = Of(),
        conjunction([{same, equals(Keys, Of())}, {range, lists:all(fun(Key) -> Key >= 0 andalso Key < N end, Keys)}, {ok, equals(ok, atoll_load_keys:check_key({Kind, N}))}])
    end).

prop_partitioned() ->
    ?FORALL({Workers, N}, {range(1, 8), range(8, 200)}, begin
        Parts = [
            begin
                Part = case Id of Workers -> N - (Workers - 1) * (N div Workers); _ -> N div Workers end,
                draw(Part, atoll_load_keys:key({partitioned_sequential_int, 100, N}, {Id, Workers}))
            end
         || Id <- lists:seq(1, Workers)
        ],
        equals(lists:seq(100, 100 + N - 1), lists:sort(lists:append(Parts)))
    end).

prop_values() ->
    ?FORALL({Kind, A, More}, {oneof([fixed_bin, fixed_char, uniform_bin, exponential_bin]), range(0, 300), range(0, 300)}, begin
        Term = case Kind of fixed_bin -> {Kind, A}; fixed_char -> {Kind, A}; _ -> {Kind, A, A + More} end,
        Sizes = [byte_size(Value) || Value <- draw(20, (atoll_load_keys:value(Term))(1))],
        conjunction([
            {ok, equals(ok, atoll_load_keys:check_value(Term))},
            {least, lists:min(Sizes) >= A},
            {most, Kind =:= exponential_bin orelse lists:max(Sizes) =< case Kind of uniform_bin -> A + More; _ -> A end}
        ])
    end).

%% Statistical: the seed is fixed.
four_of_five_keys_of_pareto_are_a_fifth_of_them_test() ->
    ok = seeded(7),
    [
        begin
            Keys = draw(?DRAWS, atoll_load_keys:key({Kind, 10_000}, {1, 1})),
            Share = length([Key || Key <- Keys, Key < 2000]) / ?DRAWS,
            ?assert(abs(Share - Is) < 0.02, {Kind, Share}),
            ?assertEqual(Kind =:= pareto_int, lists:max(Keys) >= 10_000)
        end
        %% Cut off at its end all shares grow.
     || {Kind, Is} <- [{pareto_int, 0.81}, {truncated_pareto_int, 0.83}]
    ].

wrapped_keys_are_what_they_say_test() ->
    Key = fun(Term) -> ok = atoll_load_keys:check_key(Term), (atoll_load_keys:key(Term, {1, 1}))() end,
    ?assertEqual(<<0, 0, 0, 0>>, Key({int_to_bin_bigendian, {sequential_int, 9}})),
    ?assertEqual("0", Key({int_to_str, {sequential_int, 9}})),
    ?assertEqual(<<"key-0">>, Key({to_binstr, "key-~b", {sequential_int, 9}})),
    ?assertEqual(<<"a/MA==">>, Key({concat_binary, <<"a/">>, {base64, {str_to_bin, {int_to_str, {sequential_int, 9}}}}})),
    ?assertEqual(crypto:hash(sha, <<"0">>), Key({crypto_hash, sha, {str_to_bin, {int_to_str, {sequential_int, 9}}}})),
    <<_:48, 4:4, _:12, 2:2, _:62>> = Key(uuid_v4),
    Lines = atoll_load_keys:key({file_line_bin, "/etc/passwd"}, {1, 1}),
    {ok, Text} = file:read_file("/etc/passwd"),
    ?assertEqual(hd(binary:split(Text, <<"\n">>)), Lines()).

%% The configuration

checked(Text) ->
    {ok, Terms} = atoll_bench_terms:parse(unicode:characters_to_binary(Text)),
    atoll_load_config:check(Terms).

what_is_not_told_has_its_default_test() ->
    {ok, #{mode := max, offered_load := closed, concurrent := 3, driver := atoll_load_ets, report_interval := 10, settings := #{}} = Config} = checked("{driver, ets}."),
    ?assertEqual([{get, get, 4}, {put, put, 4}, {delete, delete, 1}], maps:get(operations, Config)),
    {ok, #{settings := #{ring_nodes := 5, ring_carrier := stock} = Settings, mode := max} = Ring} = checked("{ring_nodes, 5}. {driver, ring}. {mode, {rate, max}}."),
    %% The driver's keys are not among the others.
    ?assertEqual([], maps:keys(Settings) -- (maps:keys(Settings) -- maps:keys(Ring))),
    %% As in Basho Bench, nodes that are named have no work before that is said, too.
    {ok, #{remote_nodes := []}} = checked("{driver, ring}. {remote_nodes, [{localhost, a}]}."),
    {ok, #{remote_nodes := [{localhost, a}]}} = checked("{driver, ring}. {remote_nodes, [{localhost, a}]}. {distribute_work, true}.").

what_is_wrong_is_told_with_its_line_test() ->
    [
        ?assertEqual({Text, Said}, {Text, lists:flatten(io_lib:format("~ts", [atoll_load_config:format_error(element(2, checked(Text)))]))})
     || {Text, Said} <- [
            {"{mode, max}.", "it does not say which driver"},
            {"{driver, ets}.\n{mode, fast}.", "line 2: mode must be max, or {rate, N} with 0.001 to 1000000 operations in a second of each worker, not fast"},
            {"{driver, ets}.\n{ring_nodes, 3}.", "line 2: there is no key ring_nodes"},
            {"{driver, ets}.\n{driver, ets}.", "line 2: driver stands there twice"},
            {"{driver, ets}.\n\n{key_generator, {uniform_int, 0}}.", "line 3: key_generator has 0, where a whole number above 0 must stand"},
            {"{driver, ets}. {value_generator, {uniform_bin, 9, 3}}.", "line 1: value_generator has 9 before 3, and must begin with the smaller one"},
            {"{driver, ets}. {operations, [{get, 0}]}.", "line 1: operations has the weight 0 for get, which must be a whole number from 1 to 10000"},
            {"{driver, lists}.", "line 1: driver lists has no function new/1"},
            {"{driver, ring}. {ring_settings, [{partitions, 3}]}.", "line 1: ring_settings is wrong: The setting partitions of ring must be a power of two, 65536 at most."},
            {"{driver, ets}. {duration, 60}. {report_interval, 0.1}.", "a duration of 60 minutes has more than 10000 intervals of 0.1 seconds (report_interval)"},
            {"{driver, ets}. {key_generator, {int_to_str, uuid_v4}}.", "line 1: key_generator has uuid_v4 where one that gives whole numbers must stand"},
            {"{driver, ets}. {key_generator, {concat_binary, <<1>>, {uniform_int, 5}}}.", "line 1: key_generator has {uniform_int,5} where one that gives binaries must stand"},
            {"{driver, ets}. {key_generator, {function, nosuch, f, []}}.", "line 1: key_generator has the module nosuch, which is not found"},
            {"{driver, ets}. {value_generator, {function, lists, f, [1]}}.", "line 1: value_generator has lists:f/2, which is no function"},
            {"{driver, ets}. {pre_hook, {lists, f}}.", "line 1: pre_hook has lists:f/0, which is no function"},
            {"{driver, ets}. {operations, [{get, 1}, {frobnicate, 1}]}.", "line 1: operations has frobnicate, which is none of this driver's: get, put, delete"},
            {"{driver, ets}. {mode, {rate, 0.0000001}}.", "line 1: mode must be max, or {rate, N} with 0.001 to 1000000 operations in a second of each worker, not {rate,1.0e-7}"},
            {"{driver, http}. {http_url, \"http://h/keys?a=b\"}.", "line 1: http_url must be an address that begins with http:// and has nothing after its path, not \"http://h/keys?a=b\""},
            {"{driver, ets}. {distribute_work, true}.", "it does not say which remote_nodes"},
            {
                "{driver, ring}. {remote_nodes, [{localhost, a}, {'10.0.0.7', b}]}.",
                "line 1: remote_nodes has the host 10.0.0.7, and nodes for workers are started on this machine only: localhost"
            },
            {"{driver, ets}. driver.", "line 1: a term must be {Key, Value}, not driver"}
        ]
    ].

the_examples_are_right_test() ->
    [
        ?assertMatch({File, {ok, _}}, {File, atoll_load_config:read(filename:join([code:lib_dir(atoll_load), "..", "..", "..", "..", "docs", "examples", File]))})
     || File <- ["load.config", "load-ring.config"]
    ].
