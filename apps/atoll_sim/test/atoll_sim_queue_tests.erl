%% SPDX-License-Identifier: Apache-2.0
%% What is put in comes out by its time, and of one time in the order in which it
%% was put in, whatever the spans that the queue is made of.
-module(atoll_sim_queue_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

it_is_a_stable_sort_test_() ->
    atoll_prop:test(?FUNCTION_NAME, prop_order(), 300).

%% Puts and takes in turn: what a list that is kept sorted would give.
prop_order() ->
    ?FORALL(
        Ops,
        list(oneof([{put, oneof([range(0, 50), range(0, 5000), range(1000, 9000000)])}, {run, range(0, 3000)}])),
        run(Ops, 0, 1, atoll_sim_queue:new(), [])
    ).

run([], _Now, _N, Queue, Model) ->
    atoll_sim_queue:size(Queue) =:= length(Model) andalso drain(Queue, Model);
run([{put, Ms} | Ops], Now, N, Queue, Model) ->
    run(Ops, Now, N + 1, atoll_sim_queue:put(Now + Ms, N, Queue), lists:sort([{Now + Ms, N} | Model]));
run([{run, Ms} | Ops], Now, N, Queue0, Model) ->
    Until = Now + Ms,
    {Due, Later} = lists:splitwith(fun({At, _}) -> At =< Until end, Model),
    {Taken, Queue} = take(Until, Queue0, []),
    Taken =:= Due andalso run(Ops, Until, N, Queue, Later).

drain(Queue, Model) ->
    {Taken, Empty} = take(1 bsl 40, Queue, []),
    Taken =:= Model andalso atoll_sim_queue:size(Empty) =:= 0.

%% All until then. What is put in while the queue is open is taken like the rest.
take(Until, Queue, Taken) ->
    {All, End} = take_on(Until, atoll_sim_queue:open(Queue), Taken),
    {All, atoll_sim_queue:close(End)}.

take_on(Until, Queue0, Taken) ->
    case atoll_sim_queue:take(Until, Queue0) of
        {Ms, [{again, More} | Happenings], Queue1} ->
            Queue = lists:foldl(fun(In, Q) -> atoll_sim_queue:put(Ms + In, again, Q) end, Queue1, More),
            take_on(Until, Queue, Taken ++ [{Ms, H} || H <- Happenings]);
        {Ms, Happenings, Queue} ->
            take_on(Until, Queue, Taken ++ [{Ms, H} || H <- Happenings]);
        {none, Queue} ->
            {Taken, Queue}
    end.

what_is_put_in_for_one_moment_comes_in_that_order_test_() ->
    [
        ?_assertEqual([{Ms, N} || N <- [1, 2, 3]], element(1, take(9000, Queue, [])))
     || Ms <- [7, 7000],
        Queue <- [lists:foldl(fun(N, Q) -> atoll_sim_queue:put(Ms, N, Q) end, atoll_sim_queue:new(), [1, 2, 3])]
    ].

what_is_late_comes_at_once_test() ->
    Queue = atoll_sim_queue:open(atoll_sim_queue:put(5000, later, atoll_sim_queue:new())),
    {5000, [later], Empty} = atoll_sim_queue:take(9000, Queue),
    {5000, [late], Closed} = atoll_sim_queue:take(9000, atoll_sim_queue:put(10, late, Empty)),
    _ = atoll_sim_queue:close(Closed).

what_is_put_in_while_it_is_open_comes_in_its_time_test() ->
    Queue = atoll_sim_queue:put(10, {again, [0, 1, 1013, 1014, 5000]}, atoll_sim_queue:new()),
    {Taken, _} = take(9000, Queue, []),
    ?assertEqual([{Ms, again} || Ms <- [10, 11, 1023, 1024, 5010]], Taken).

what_is_put_in_for_the_moment_that_was_looked_at_last_comes_in_it_test_() ->
    [
        {Name, fun() ->
            {[], Looked} = take(Until, Queue, []),
            {Taken, _} = take(9000, atoll_sim_queue:put(Until, now, Looked), []),
            ?assertEqual({Until, now}, hd(Taken))
        end}
     || {Name, Queue, Until} <- [
            {"nothing is to happen", atoll_sim_queue:new(), 500},
            {"nothing, and its span is over", atoll_sim_queue:new(), 5000},
            {"something later", atoll_sim_queue:put(7000, later, atoll_sim_queue:new()), 1023},
            {"something later, and its span is over", atoll_sim_queue:put(7000, later, atoll_sim_queue:new()), 1024}
        ]
    ].

an_opened_queue_leaves_the_value_as_it_was_test() ->
    Queue = atoll_sim_queue:put(7000, later, atoll_sim_queue:put(3, soon, atoll_sim_queue:new())),
    [?assertEqual([{3, soon}, {7000, later}], element(1, take(9000, Queue, []))) || _ <- [once, again]].

nothing_of_an_open_queue_stays_in_the_process_test() ->
    Before = lists:sort(get()),
    Queue = lists:foldl(fun(N, Q) -> atoll_sim_queue:put(N * 300, N, Q) end, atoll_sim_queue:new(), lists:seq(1, 20)),
    _ = take(2000, Queue, []),
    ?assertEqual(Before, lists:sort(get())),
    _ = atoll_sim_queue:open(Queue),
    atoll_sim_queue:drop(),
    ?assertEqual(Before, lists:sort(get())).
