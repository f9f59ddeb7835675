%% SPDX-License-Identifier: Apache-2.0
%% What becomes of a colony whose ants are killed, and of a run on a node that has ended it.
-module(aco_colony_server_tests).

-include_lib("eunit/include/eunit.hrl").

-define(ID, 3).
-define(RUN, "test").
-define(DEADLINE_MS, 30_000).

ants_that_are_killed_in_vain_end_the_run_test_() ->
    alone(fun() ->
        {Colony, Answer} = colony(true),
        [kill(ant(Colony), kill) || _ <- lists:seq(1, 55)],
        ?assertMatch({reply, {error, {in_vain, ?ID, _, 55}}}, gen_server:receive_response(Answer, ?DEADLINE_MS))
    end).

an_ant_that_fails_by_itself_takes_the_colony_along_test_() ->
    alone(fun() ->
        {Colony, Answer} = colony(true),
        kill(ant(Colony), a_bug),
        ?assertMatch({error, {a_bug, _}}, gen_server:receive_response(Answer, ?DEADLINE_MS))
    end).

any_ant_that_is_lost_takes_along_a_colony_that_is_not_reliable_test_() ->
    alone(fun() ->
        {Colony, Answer} = colony(false),
        kill(ant(Colony), kill),
        ?assertMatch({error, {killed, _}}, gen_server:receive_response(Answer, ?DEADLINE_MS))
    end).

%% One that is started again goes on from the generation that was kept, and comes to the same.
a_colony_that_is_killed_finds_the_same_test_() ->
    alone(fun() ->
        Run = run(#{ants => 2, local_iterations => 10}, 30, true),
        Whole = ask(started(Run), Run),
        ok = aco_keep:forget(?RUN),
        Killed = started(Run),
        Request = gen_server:send_request(Killed, {round, 1, []}),
        until(fun() -> aco_keep:get(?RUN, {colony, ?ID}, none) =/= none end),
        kill(Killed, kill),
        _ = gen_server:receive_response(Request, ?DEADLINE_MS),
        ?assertEqual(Whole, ask(started(Run), Run))
    end).

each_answer_comes_as_often_as_it_is_said_test_() ->
    alone(fun() ->
        Run = (run(#{ants => 1, local_iterations => 1}, 5, true))#{duplicating := 3},
        Offer = ask(started(Run), Run),
        ?assertEqual([Offer, Offer], [receive {duplicate, {ok, Same}} -> Same after 0 -> none end || _ <- [1, 2]]),
        receive {duplicate, _} -> error(too_many) after 0 -> ok end
    end).

%% Whoever ends it there needs a moment between the two calls that this takes.
a_run_that_is_being_ended_on_a_node_is_soon_started_there_again_test_() ->
    {timeout, 60, fun() ->
        {ok, _} = application:ensure_all_started(aco),
        Start = fun() -> aco_host:start_here(?ID, run(#{}, 5, false), self()) end,
        {ok, First} = Start(),
        ok = supervisor:terminate_child(aco_app, ?RUN),
        again = Start(),
        ok = supervisor:delete_child(aco_app, ?RUN),
        {ok, Second} = Start(),
        ?assertNotEqual(First, Second),
        ok = aco_host:stop(?RUN, none),
        ok = application:stop(aco)
    end}.

%% Crash reports are what is meant to be.
alone(Test) ->
    {timeout, 60, {spawn, fun() ->
        #{level := Level} = logger:get_primary_config(),
        ok = logger:set_primary_config(level, none),
        process_flag(trap_exit, true),
        ok = aco_keep:new(),
        try Test() after ok = logger:set_primary_config(level, Level) end
    end}}.

ask(Colony, _) ->
    {ok, Offer} = gen_server:call(Colony, {round, 1, []}, ?DEADLINE_MS),
    Offer.

started(Run) ->
    {ok, Colony} = gen_server:start_link(aco_colony_server, {?ID, Run}, []),
    Colony.

%% Asked for a round with one ant, which takes much longer than the test.
colony(Reliable) ->
    Colony = started(run(#{ants => 1, local_iterations => 1, local_search => o12}, 1000, Reliable)),
    {Colony, gen_server:send_request(Colony, {round, 1, []})}.

run(Given, Jobs, Reliable) ->
    #{id => ?RUN, mode => gr, reliable => Reliable, nodes => [node()], tree => #{}, duplicating => 1, survey => none,
      problem => aco_instances:random(Jobs, 1), options => aco_instances:options(Given)}.

%% The colony is linked with it, and with this process. Of one that was killed it may not have heard yet.
ant(Colony) ->
    case ants(Colony) of
        [Ant | _] -> Ant;
        [] -> erlang:yield(), ant(Colony)
    end.

ants(Colony) ->
    {links, Links} = process_info(Colony, links),
    [Ant || Ant <- lists:delete(self(), Links), is_process_alive(Ant)].

until(Ask) -> until(Ask, erlang:monotonic_time(millisecond) + ?DEADLINE_MS).

until(Ask, Deadline) ->
    case Ask() of
        true -> ok;
        false ->
            ?assert(erlang:monotonic_time(millisecond) < Deadline),
            erlang:yield(),
            until(Ask, Deadline)
    end.

kill(Pid, Why) ->
    Ref = monitor(process, Pid),
    true = exit(Pid, Why),
    receive {'DOWN', Ref, process, Pid, _} -> ok end.
