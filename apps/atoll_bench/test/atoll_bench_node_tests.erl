%% SPDX-License-Identifier: Apache-2.0
-module(atoll_bench_node_tests).

-include_lib("eunit/include/eunit.hrl").

%% The last to arrive lets the others go, so none could do it alone.
all_are_at_it_at_once_and_answer_in_order_test() ->
    Gate = spawn_link(fun() -> gate([]) end),
    Answers = atoll_bench_node:together(
        5,
        fun(N) ->
            Gate ! {at, self()},
            receive
                go -> 10 * N
            end
        end,
        10000
    ),
    ?assertEqual([10, 20, 30, 40, 50], Answers).

gate(Pids) when length(Pids) =:= 5 ->
    [Pid ! go || Pid <- Pids];
gate(Pids) ->
    receive
        {at, Pid} -> gate([Pid | Pids])
    end.

who_is_late_is_an_error_and_nobody_is_left_test() ->
    Test = self(),
    {Pid, Ref} = spawn_monitor(fun() ->
        atoll_bench_node:together(
            2,
            fun(N) ->
                Test ! {at, N, self()},
                timer:sleep(infinity)
            end,
            1000
        )
    end),
    Left = [receive {at, N, Worker} -> monitor(process, Worker) end || N <- [1, 2]],
    receive
        {'DOWN', Ref, process, Pid, Reason} -> ?assertMatch({{late, _}, _}, Reason)
    end,
    [receive {'DOWN', R, process, _, _} -> ok end || R <- Left].

a_node_alone_sees_all_of_none_test() ->
    ?assertEqual({missing, [nobody@nowhere]}, atoll_bench_node:mesh([node(), nobody@nowhere], 20)),
    ?assertEqual(ok, atoll_bench_node:mesh([node()], 20)).
