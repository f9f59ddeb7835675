%% SPDX-License-Identifier: Apache-2.0
-module(debench_config_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(OPERATIONS, "{operations, [{spawning, 1}]}.\n").

read(Text) ->
    case atoll_bench_terms:parse(unicode:characters_to_binary(Text)) of
        {ok, Terms} -> debench_config:check(Terms);
        {error, Reason} -> {error, {none, Reason}}
    end.

wrong(Text) ->
    {error, Error} = read(Text),
    lists:flatten(io_lib:format("~ts", [debench_config:format_error(Error)])).

the_original_s_keys_are_read_test() ->
    {ok, Config} = read(
        "{duration, 5}.\n{concurrent, 40}.\n{report_interval, 1}.\n{erlange_nodes, ['a@h', 'b@h']}.\n"
        "{operations, [{spawning, 10}, {far, remote_call, 5.5}, {global_register, 0.5}]}.\n"
        "{sleep_time_before_ping, 0}.\n{sleep_time_after_ping, 1}.\n{packet_size, 10}.\n{delay_remote_function, 100}.\n"
        "{initial_global_size, 3}.\n{initial_active_process, 4}.\n{delay_after_bench_finished, 0}.\n{node_name, 'bench@h'}.\n"
        "{transitive_connection, true}.\n{max_random, 1000}.\n"
    ),
    ?assertMatch(
        #{
            duration := 5, concurrent := 40, erlange_nodes := ['a@h', 'b@h'], node_name := bench,
            transitive_connection := true,
            operations := [{spawning, spawning, 10}, {far, remote_call, 5.5}, {global_register, global_register, 0.5}],
            offered_load := 100
        },
        Config
    ).

an_operation_may_bear_its_own_name_as_its_label_test() ->
    ?assertMatch({ok, #{operations := [{spawning, spawning, 1}]}}, read("{operations, [{spawning, spawning, 1}]}.")).

the_most_intervals_are_read_test() ->
    Text = ?OPERATIONS "{duration, 10}.\n{report_interval, 0.1}.",
    ?assertMatch({ok, #{report_interval := 0.1}}, read(Text)).

what_is_missing_has_its_default_test() ->
    ?assertMatch({ok, #{duration := 5, concurrent := 10, packet_size := 1000, erlange_nodes := []}}, read(?OPERATIONS)).

each_fault_is_one_sentence_that_names_it_test_() ->
    [
        {Part, fun() ->
            Said = wrong(Text),
            ?assertNotEqual({nomatch, Said}, {string:find(Said, Part), Said}),
            ?assertNot(lists:member($\n, Said))
        end}
     || {Text, Part} <- faults()
    ].

faults() ->
    [
        {"", "does not say which operations"},
        {"\n{duration, 0}.", "line 2: duration must be a number of minutes above 0"},
        {"{concurrent, 0}.", "line 1: concurrent must be a whole number from 1"},
        {"{report_interval, x}.", "report_interval must be"},
        {"{report_interval, 0.0004}.", "report_interval must be a number of seconds from 0.1, at most a day, not 0.0004"},
        {?OPERATIONS "{duration, 20}.\n{report_interval, 0.1}.", "more than 10000 intervals of 0.1 seconds"},
        {"{packet_size, -1}.", "packet_size must be"},
        {"{packet_size, 1}.\n{packet_size, 1}.", "line 2: packet_size stands there twice"},
        {"{durration, 1}.", "there is no key durration"},
        {"duration.", "must be {Key, Value}"},
        {"{duration, 1}", "line 1: no full stop"},
        {"{duration, }.", "line 1: syntax error"},
        {"{erlange_nodes, [a, a]}.", "erlange_nodes must be a list of different names"},
        {"{erlange_nodes, [a | b]}.", "erlange_nodes must be"},
        {"{transitive_connection, maybe}.", "transitive_connection must be true or false"},
        {"{node_name, '1'}.", "node_name must be"},
        {"{operations, []}.", "operations must be"},
        {"{operations, [x]}.", "operations must be"},
        {"{operations, [x | y]}.", "operations must be"},
        {"{operations, [{ping, 1}]}.", "has ping, which is no operation; there are spawning"},
        {"{operations, [{'../x', spawning, 1}]}.", "has the label '../x'"},
        {"{operations, [{global_whereis, spawning, 1}]}.", "label global_whereis for spawning, and that is the name of"},
        {"{operations, [{spawning, -1}]}.", "has the weight -1 for spawning"},
        {"{operations, [{spawning, 2000000000}]}.", "must be a number from 0 to 1000000000"},
        {"{operations, [{spawning, 1}, {spawning, 2}]}.", "has the label spawning twice"},
        {"{operations, [{global_whereis, 1}]}.", "no weight above 0 for an operation that can begin"},
        {"{operations, [{spawning, 0}]}.", "no weight above 0"}
    ].

a_file_that_is_not_there_is_a_sentence_test() ->
    {error, Error} = debench_config:read("/nonexistent/x"),
    Said = lists:flatten(io_lib:format("~ts", [debench_config:format_error(Error)])),
    ?assertEqual("/nonexistent/x: no such file or directory", Said).

bytes_that_are_no_text_are_a_sentence_test() ->
    ?assertEqual({error, not_utf8}, atoll_bench_terms:parse(<<255, 254>>)).

whatever_is_read_is_right_or_a_sentence_test_() ->
    atoll_prop:test(?FUNCTION_NAME, total(), 300).

total() ->
    Keys = [duration, concurrent, operations, erlange_nodes, node_name, packet_size, offered_load, report_interval],
    ?FORALL(
        Terms,
        list({pos_integer(), frequency([{5, {oneof(Keys), any()}}, {1, any()}])}),
        case debench_config:check(Terms) of
            {ok, #{operations := [_ | _]}} -> true;
            {error, Error} -> is_list(unicode:characters_to_list(debench_config:format_error(Error)))
        end
    ).
