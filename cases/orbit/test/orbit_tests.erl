%% What can be seen of the program on one node.
-module(orbit_tests).

-include_lib("eunit/include/eunit.hrl").

%% What a run may take on a busy machine.
-define(BUSY_S, 60).

sizes_are_the_published_ones_test_() ->
    [{timeout, 60, {lists:concat([Name, " ", Space]), fun() ->
        {ok, #{size := Found, vertices_received := Received}} =
            orbit:run(#{generators => Name, space => Space, mode => seq}),
        ?assertEqual(Size, Found),
        ?assertEqual(1 + Size * length(orbit_generators:functions(Name, Space)), Received)
    end}} || {Name, Space, Size} <- published(atoll_tier:tier())].

published(fast) ->
    [
        {g124, 1_000, 854}, {g12345, 1_000, 968}, {g1, 1_000, 213}, {g1, 10_000, 3_125}, {g1, 11_000, 2_303},
        {g2, 1_000, 11}, {g3, 1_000, 10}, {g4, 1_000, 2}, {g5, 1_000, 2}
    ];
published(deep) ->
    published(fast) ++ [{g124, 10_000, 6_889}, {g12345, 10_000, 9_123}, {g123, 10_000, 9_123}, {g12, 10_000, 6_886}].

every_set_of_generators_has_the_same_orbit_on_one_worker_and_on_seven_test_() ->
    [{timeout, 60, {atom_to_list(Name), fun() ->
        Spec = #{generators => Name, space => atoll_tier:size(orbit_compared), mode => seq, vertices => true},
        {ok, Reference} = orbit:run(Spec),
        [begin
             {ok, Found} = orbit:run(Spec#{mode := par, workers => Workers}),
             Keys = [size, vertices_received, checksum, vertices],
             ?assertEqual(maps:with(Keys, Reference), maps:with(Keys, Found))
         end || Workers <- [1, 7]]
    end}} || Name <- orbit_generators:names()].

nothing_crosses_a_node_boundary_on_one_node_test_() ->
    {timeout, ?BUSY_S, fun() ->
        {ok, #{messages := Messages, nodes := 1}} =
            orbit:run(#{generators => g124, space => 1000, mode => par}),
        ?assertEqual([0, 0, 0, 0], maps:values(Messages))
    end}.

the_vertices_are_there_only_if_asked_for_test_() ->
    {timeout, ?BUSY_S, fun() ->
        {ok, Result} = orbit:run(#{generators => g1, space => 10, mode => par}),
        ?assertNot(is_map_key(vertices, Result))
    end}.

a_run_leaves_no_process_test_() ->
    {timeout, ?BUSY_S, fun() ->
        {ok, _} = orbit:run(#{generators => g124, space => 1000, mode => par}),
        ?assertEqual([], orbit_probe:of_runs())
    end}.

a_worker_that_is_killed_ends_the_run_with_an_error_test_() ->
    {timeout, ?BUSY_S, fun() ->
        {Run, Ref} = spawn_run(),
        exit(started(orbit_worker), kill),
        ?assertEqual({error, {worker_failed, node(), killed}}, outcome(Run, Ref)),
        ?assertEqual([], orbit_probe:of_runs())
    end}.

a_message_that_nobody_knows_crashes_its_process_and_ends_the_run_test_() ->
    {setup, fun silence/0, fun logger:set_primary_config/1, [{atom_to_list(Module), {timeout, ?BUSY_S, fun() ->
        {Run, Ref} = spawn_run(),
        started(Module) ! no_such_message,
        ?assertMatch({error, {worker_failed, _, {_, [_ | _]}}}, outcome(Run, Ref)),
        orbit_wait:until(fun() -> orbit_probe:of_runs() =:= [] end)
    end}} || Module <- [orbit_worker, orbit_host, orbit_submaster, orbit_master]]}.

a_caller_that_dies_takes_the_run_with_it_test_() ->
    {timeout, ?BUSY_S, fun() ->
        {Run, _} = spawn_run(),
        Monitors = [monitor(process, P) || {_, P} <- orbit_probe:of_runs()],
        exit(Run, kill),
        [receive {'DOWN', Ref, process, _, _} -> ok after 5_000 -> error(still_alive) end
         || Ref <- Monitors]
    end}.

%% The reports of crashes that a test wants.
silence() ->
    Config = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    Config.

%% Longer than any test waits.
spawn_run() ->
    {Run, Ref} = spawn_monitor(fun() ->
        exit(orbit:run(#{generators => g12345, space => 3_000_000, mode => par}))
    end),
    _ = started(orbit_worker),
    {Run, Ref}.

outcome(Run, Ref) ->
    receive
        {'DOWN', Ref, process, Run, Outcome} -> Outcome
    after 10_000 -> error(no_outcome)
    end.

%% A process of this module.
started(Module) ->
    orbit_wait:until(fun() ->
        case orbit_probe:of_runs(Module) of
            [P | _] -> {value, P};
            [] -> false
        end
    end).
