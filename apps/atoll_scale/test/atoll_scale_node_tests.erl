%% SPDX-License-Identifier: Apache-2.0
%% What is made of several looks at a node.
-module(atoll_scale_node_tests).

-include_lib("eunit/include/eunit.hrl").

readings(N) ->
    [{reductions, 1000 * N}, {schedulers_online, 2}, {run_queue_total, 10 - N}, {processes, 100 * N}, {processes_limit, 262144},
     {memory_total, 5000 + N}, {garbage_collections, 20 * N}, {dist_buffer_limit, 1048576}, {dist_queue, b@h, 7 * N}, {processes_suspended, 0}] ++
    lists:append([[{scheduler_active, Label, 30 * N}, {scheduler_time, Label, 100 * N}] || Label <- [<<"normal_1">>, <<"normal_2">>]]) ++
    [{scheduler_active, <<"dirty_io_1">>, 0}, {scheduler_time, <<"dirty_io_1">>, 100 * N}].

row(Pid, Name, Messages, Reductions, Current) ->
    #{pid => Pid, name => Name, initial_call => <<"shop:init/1">>, current => Current, message_queue => Messages, reductions => Reductions}.

looks() ->
    lists:foldl(fun({N, Rows}, Looks) -> atoll_scale_node:look({1000000 * N, readings(N)}, Rows, Looks) end, atoll_scale_node:new(), [
        {1, [row(<<"<0.1.0>">>, <<"stock">>, 5, 100, <<"shop:serve/0">>), row(<<"<0.2.0>">>, null, 0, 1, <<"x:y/0">>)]},
        {2, [row(<<"<0.1.0>">>, <<"stock">>, 40, 600, <<"gen:do_call/4">>), row(<<"<0.2.0>">>, null, 2, 1, <<"x:y/0">>)]},
        {3, [row(<<"<0.1.0>">>, <<"stock">>, 0, 1100, <<"gen_server:loop/7">>)]},
        {4, [row(<<"<0.1.0>">>, <<"stock">>, 20, 1600, <<"shop:serve/0">>)]}
    ]).

what_grows_is_told_of_the_time_between_and_what_varies_at_its_most_test() ->
    ?assertMatch(
        #{name := <<"n">>, looks := 4, schedulers := 2, run_queue := 9, collections := 20.0, suspended := 0,
          limits := [#{what := processes, most := 400, limit := 262144}], memory := #{total := 5004},
          connections := [#{peer := <<"b@h">>, most := 28, limit := 1048576}]},
        atoll_scale_node:seen(<<"n">>, looks())
    ),
    #{utilisation := Share} = atoll_scale_node:seen(<<"n">>, looks()),
    ?assert(abs(Share - 0.3) < 1.0e-9).

mailboxes_are_told_with_how_often_they_had_messages_and_where_test() ->
    #{mailboxes := [One, Two]} = atoll_scale_node:seen(<<"n">>, looks()),
    ?assertEqual(#{name => <<"stock">>, most => 40, had => 3, looks => 4, work => 0.5, current => <<"shop:serve/0">>}, One),
    ?assertMatch(#{name := <<"<0.2.0> (shop:init/1)">>, most := 2, had := 1}, Two).

a_node_that_has_said_nothing_is_none_test() ->
    ?assertEqual(none, atoll_scale_node:seen(<<"n">>, atoll_scale_node:new())).
