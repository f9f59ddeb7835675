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

take(Until, Queue0, Taken) ->
    case atoll_sim_queue:take(Until, Queue0) of
        {Ms, Happenings, Queue} -> take(Until, Queue, Taken ++ [{Ms, H} || H <- Happenings]);
        none -> {Taken, Queue0}
    end.

what_is_late_comes_at_once_test() ->
    Queue = atoll_sim_queue:put(5000, later, atoll_sim_queue:new()),
    {5000, [later], Empty} = atoll_sim_queue:take(9000, Queue),
    {5000, [late], _} = atoll_sim_queue:take(9000, atoll_sim_queue:put(10, late, Empty)).
