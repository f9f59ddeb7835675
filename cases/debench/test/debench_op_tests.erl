%% SPDX-License-Identifier: Apache-2.0
-module(debench_op_tests).

-include_lib("eunit/include/eunit.hrl").

place() ->
    #{
        here => debench_system:here(mesh), global_name => none, local_name => debench_op_test,
        payload => <<"some bytes">>, delay_us => 0
    }.

do(Operation) ->
    Node = case debench_op:family(Operation) of p2p -> node(); _ -> none end,
    debench_op:do(Operation, Node, place()).

%% Answers every call with other bytes.
liar(Name) ->
    Self = self(),
    Pid = spawn_link(fun() ->
        true = register(Name, self()),
        Self ! {self(), ready},
        lie()
    end),
    receive {Pid, ready} -> Pid end.

lie() ->
    receive
        {'$gen_call', From, _} ->
            gen:reply(From, <<"others">>),
            lie()
    end.

gone(Pid) ->
    Ref = monitor(process, Pid),
    true = unlink(Pid),
    true = exit(Pid, kill),
    receive {'DOWN', Ref, process, Pid, _} -> ok end.

what_comes_back_is_compared_test() ->
    [
        begin
            Pid = liar(Name),
            ?assertEqual({error, wrong}, do(Operation)),
            ok = gone(Pid)
        end
     || {Operation, Name} <- [{gen_server_call, debench_server}, {fsm_server_call, debench_fsm}]
    ].

who_is_not_there_is_down_test() ->
    [
        ?assertEqual({Operation, {error, down}}, {Operation, do(Operation)})
     || Operation <- [gen_server_call, fsm_server_call]
    ],
    [
        ?assertEqual({Operation, {error, down}}, {Operation, debench_op:do(Operation, 'nobody@nowhere', place())})
     || Operation <- [spawning, remote_call, gen_server_call]
    ].

%% Busy for no time that there is.
what_the_other_end_raises_is_not_told_as_down_test() ->
    Place = (place())#{delay_us => none},
    ?assertEqual({error, raised}, debench_op:do(remote_call, node(), Place)).

an_answer_that_is_late_reaches_nobody_test() ->
    Alias = alias([reply]),
    true = unalias(Alias),
    ok = debench_op:echo_to(Alias, <<"x">>, 0),
    ?assertEqual(none, receive {Alias, _} -> late after 0 -> none end).

%% The waiting is not done once for each group.
waiting_counts_whole_and_the_operation_by_group_test() ->
    ?assertEqual(150, debench_worker:latency(1000, 1050, 1150, 1)),
    ?assertEqual(75, debench_worker:latency(1000, 1050, 1150, 4)).

servers_answer_test() ->
    {ok, Server} = debench_op:start_server(),
    {ok, Fsm} = debench_op:start_fsm(),
    [
        ?assertEqual({Operation, ok}, {Operation, do(Operation)})
     || Operation <- [spawning, remote_call, gen_server_call, fsm_server_call]
    ],
    [ok = gone(Pid) || Pid <- [Server, Fsm]].

a_local_name_is_given_found_and_taken_test() ->
    ?assertEqual({error, no}, do(local_whereis)),
    ?assertEqual({error, raised}, do(local_unregister)),
    ?assertEqual([ok, ok], [do(O) || O <- [local_register, local_whereis]]),
    ?assertEqual({error, raised}, do(local_register)),
    ?assertEqual([ok, {error, no}], [do(O) || O <- [local_unregister, local_whereis]]).

in_several_groups_an_operation_is_as_many_test() ->
    Heres = [global, {groups, [a]}, {groups, [a, b, c]}],
    ?assertEqual([1, 1, 3], [debench_system:parts(Here) || Here <- Heres]).

the_remote_function_keeps_busy_for_so_long_test() ->
    Begin = erlang:monotonic_time(microsecond),
    ?assertEqual(<<"x">>, debench_op:echo(<<"x">>, 3000)),
    ?assert(erlang:monotonic_time(microsecond) - Begin >= 3000).
