%% SPDX-License-Identifier: Apache-2.0
%% What runs on a node of the benchmark, on this one.
-module(atoll_bench_overlay_load_tests).

-include_lib("eunit/include/eunit.hrl").

-define(S, 1000000000).

a_connection_that_came_meanwhile_counts_whole_test() ->
    [Old, New] = ports(2),
    try
        ?assertEqual(
            {250.0, 15.0},
            atoll_bench_overlay_load:rates(
                {5 * ?S, #{Old => {1000, 100}}}, {7 * ?S, #{Old => {1400, 110}, New => {100, 20}}}
            )
        )
    after
        close([Old, New])
    end.

a_connection_that_has_ended_takes_nothing_from_the_others_test() ->
    [Old, Ended] = ports(2),
    try
        ?assertEqual(
            {100.0, 10.0},
            atoll_bench_overlay_load:rates({0, #{Old => {0, 0}, Ended => {5000, 50}}}, {?S, #{Old => {100, 10}}})
        )
    after
        close([Old, Ended])
    end.

what_was_heard_before_it_was_asked_for_is_there_test() ->
    with_listener(fun(Listener) ->
        Before = atoll_bench_overlay_load:now_ns(),
        Listener ! {nodeup, x},
        Listener ! {broadcast, {{got, 1, 1}, <<"payload">>}},
        {ok, [Got, Up]} = atoll_bench_overlay_load:heard([{got, 1, 1}, {up, x}], 5000),
        %% In the order of the question, each with its own time.
        ?assert(Before =< Up andalso Up =< Got)
    end).

what_is_asked_for_is_waited_for_test() ->
    with_listener(fun(Listener) ->
        Self = self(),
        Asker = spawn_link(fun() -> Self ! {self(), atoll_bench_overlay_load:heard([{down, x}, {down, y}], 5000)} end),
        Listener ! {nodedown, x},
        Listener ! {nodedown, y},
        receive
            {Asker, Answer} -> ?assertMatch({ok, [X, Y]} when X =< Y, Answer)
        end
    end).

of_what_is_heard_twice_the_first_time_counts_test() ->
    with_listener(fun(Listener) ->
        Listener ! {nodedown, x},
        Listener ! {nodeup, y},
        {ok, [_]} = atoll_bench_overlay_load:heard([{up, y}], 5000),
        Between = atoll_bench_overlay_load:now_ns(),
        Listener ! {nodedown, x},
        {ok, [Down]} = atoll_bench_overlay_load:heard([{down, x}], 5000),
        ?assert(Down =< Between)
    end).

what_did_not_come_is_named_and_what_came_is_kept_test() ->
    with_listener(fun(Listener) ->
        Listener ! {nodeup, x},
        ?assertEqual({missing, [{up, y}]}, atoll_bench_overlay_load:heard([{up, x}, {up, y}], 1)),
        ?assertMatch({ok, [_]}, atoll_bench_overlay_load:heard([{up, x}], 5000))
    end).

what_was_told_is_forgotten_test() ->
    with_listener(fun(Listener) ->
        Listener ! {nodeup, x},
        {ok, [_]} = atoll_bench_overlay_load:heard([{up, x}], 5000),
        ?assertEqual({missing, [{up, x}]}, atoll_bench_overlay_load:heard([{up, x}], 1))
    end).

with_listener(Fun) ->
    ok = atoll_bench_overlay_load:listen(stock),
    Listener = whereis(atoll_bench_overlay_load),
    Ref = monitor(process, Listener),
    try
        Fun(Listener)
    after
        exit(Listener, kill),
        receive
            {'DOWN', Ref, process, _, _} -> ok
        end
    end.

ports(Count) ->
    [
        begin
            {ok, Socket} = gen_udp:open(0, [{ip, {127, 0, 0, 1}}]),
            Socket
        end
     || _ <- lists:seq(1, Count)
    ].

close(Sockets) ->
    lists:foreach(fun gen_udp:close/1, Sockets).
