%% SPDX-License-Identifier: Apache-2.0
%% One queue: so many at once, each in a place that it shares with none beside it.
-module(atoll_test_queue_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

properties_test_() ->
    atoll_prop:tests([{"every job runs once, and no two in one place at a time", prop_places(), 300}]).

%% The order in which jobs end is drawn: each waits to be told.
prop_places() ->
    ?FORALL(
        {Many, Ends},
        {choose(1, 5), list(non_neg_integer())},
        begin
            Jobs = lists:seq(1, length(Ends)),
            {Results, Seen} = play(Jobs, Many, Ends),
            lists:sort(Results) =:= [{J, {J, done}} || J <- Jobs] andalso
                lists:all(fun(Beside) -> length(Beside) =< Many andalso length(Beside) =:= length(lists:usort(Beside)) end, Seen)
        end
    ).

play(Jobs, Many, Ends) ->
    Master = self(),
    Run = fun(Job, Place) ->
        Master ! {begun, self(), Place},
        receive
            go -> {Job, done}
        end
    end,
    {_, Ref} = spawn_monitor(fun() -> exit(atoll_test_queue:run(Jobs, Many, Run, fun(_, _, _) -> ok end)) end),
    let_go(Ref, Ends, [], []).

%% As many as can be are heard of, then one of them may end.
let_go(Ref, Ends, Running, Seen) ->
    receive
        {begun, Pid, Place} -> let_go(Ref, Ends, [{Pid, Place} | Running], Seen);
        {'DOWN', Ref, process, _, Results} -> {Results, Seen}
    after 1 ->
        case {Running, Ends} of
            {[_ | _], [End | Others]} ->
                {Pid, _} = One = lists:nth(1 + End rem length(Running), Running),
                Pid ! go,
                let_go(Ref, Others, Running -- [One], [[Place || {_, Place} <- Running] | Seen]);
            _ ->
                let_go(Ref, Ends, Running, Seen)
        end
    end.

jobs_begin_in_their_order_test() ->
    Results = atoll_test_queue:run([c, a, b], 1, fun(Job, 1) -> Job end, fun(_, _, _) -> ok end),
    ?assertEqual([{c, c}, {a, a}, {b, b}], Results).

%% The second one has odd numbers first, and then what is there.
a_place_takes_its_own_jobs_first_test() ->
    Master = self(),
    Run = fun(Job, Place) ->
        Master ! {begun, self(), {Job, Place}},
        receive go -> Place end
    end,
    {_, Ref} = spawn_monitor(fun() ->
        exit(atoll_test_queue:run([2, 4, 1, 6, 3], [fun(_) -> true end, fun(Job) -> Job rem 2 =:= 1 end], Run, fun(_, _, _) -> ok end))
    end),
    %% Those of two places begin at once, so either may be heard of first.
    Begun = fun(Of) -> receive {begun, Pid, Of} -> Pid end end,
    [Two, One] = [Begun(Of) || Of <- [{2, 1}, {1, 2}]],
    One ! go,
    Three = Begun({3, 2}),
    Three ! go,
    Four = Begun({4, 2}),
    Two ! go,
    Six = Begun({6, 1}),
    [Pid ! go || Pid <- [Four, Six]],
    receive {'DOWN', Ref, process, _, Results} -> ?assertEqual([{1, 2}, {2, 1}, {3, 2}, {4, 2}, {6, 1}], lists:sort(Results)) end.

who_hears_of_an_end_is_told_how_many_are_left_test() ->
    Self = self(),
    _ = atoll_test_queue:run([a, b, c], 1, fun(Job, 1) -> Job end, fun(Job, _, Left) -> Self ! {Job, Left} end),
    ?assertEqual([{a, 2}, {b, 1}, {c, 0}], [receive Told -> Told after 0 -> none end || _ <- [1, 2, 3]]).

a_job_that_cannot_be_run_is_no_silent_loss_test() ->
    ?assertError({job, bad, {oops, _}}, atoll_test_queue:run([bad], 1, fun(_, _) -> error(oops) end, fun(_, _, _) -> ok end)).
