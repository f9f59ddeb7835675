%% What ends a run: told to the host, which is the test's process here.
-module(aco_colony_server_tests).

-include_lib("eunit/include/eunit.hrl").

-define(ID, 3).
-define(DEADLINE_MS, 30_000).

ants_that_are_killed_in_vain_end_the_run_test_() ->
    alone(fun() ->
        {Colony, Keep} = colony(true),
        [kill(ant(Colony), kill) || _ <- lists:seq(1, 56)],
        ?assertEqual({ants_in_vain, ?ID, node(), 55}, failure()),
        ?assertEqual(55, aco_keep:counted(restarts, Keep))
    end).

an_ant_that_fails_by_itself_ends_the_run_test_() ->
    alone(fun() ->
        {Colony, _} = colony(true),
        kill(ant(Colony), a_bug),
        ?assertEqual({ant_crashed, ?ID, node(), a_bug}, failure())
    end).

any_ant_that_is_lost_ends_a_run_that_is_not_reliable_test_() ->
    alone(fun() ->
        {Colony, _} = colony(false),
        kill(ant(Colony), kill),
        ?assertEqual({ant_lost, ?ID, node()}, failure())
    end).

%% The colony ends with the process that is its host.
alone(Test) ->
    {timeout, 60, {spawn, Test}}.

%% Asked for a round with one ant, which takes much longer than the test.
colony(Reliable) ->
    {ok, Options} = aco_options:new(#{ants => 1, local_iterations => 1, local_search => o12}),
    Keep = aco_keep:new(),
    Run = #{problem => aco_instances:random(1000, 1), options => Options, reliable => Reliable},
    Colony = aco_colony_server:start_link(self(), Keep, ?ID, Run),
    Colony ! {round, self(), 1, none},
    {Colony, Keep}.

%% The colony is linked with it, and with this process.
ant(Colony) ->
    ant(Colony, erlang:monotonic_time(millisecond) + ?DEADLINE_MS).

ant(Colony, Deadline) ->
    {links, Links} = process_info(Colony, links),
    case lists:delete(self(), Links) of
        [Ant] ->
            Ant;
        [] ->
            ?assert(erlang:monotonic_time(millisecond) < Deadline),
            erlang:yield(),
            ant(Colony, Deadline)
    end.

kill(Ant, Why) ->
    Ref = monitor(process, Ant),
    true = exit(Ant, Why),
    receive {'DOWN', Ref, process, Ant, _} -> ok end.

failure() ->
    receive
        {failed, Reason} -> Reason
    after ?DEADLINE_MS -> none
    end.
