%% SPDX-License-Identifier: Apache-2.0
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

each_image_by_a_process_of_its_own_makes_no_difference_test_() ->
    {timeout, ?BUSY_S, fun() ->
        Spec = #{generators => g124, space => 1000, vertices => true},
        {ok, Reference} = orbit:run(Spec#{mode => seq}),
        {ok, Found} = orbit:run(Spec#{mode => par, image_processes => true}),
        ?assertEqual(maps:with([vertices, vertices_received], Reference), maps:with([vertices, vertices_received], Found))
    end}.

every_worker_has_something_to_say_test_() ->
    {timeout, ?BUSY_S, fun() ->
        {ok, #{workers := Workers, size := Size}} = orbit:run(#{generators => g124, space => 1000, mode => par, workers => 3}),
        ?assertEqual([0, 1, 2], [Part || #{part := Part} <- Workers]),
        ?assertEqual(Size, lists:sum([S || #{size := S} <- Workers])),
        ?assertEqual([], [W || #{init_idle_ms := A, max_idle_ms := B, tail_idle_ms := C} = W <- Workers, lists:min([A, B, C]) < 0]),
        %% One that sends its last image with all it has may never have any to give back.
        ?assert(lists:sum([N || #{credit_returned := N} <- Workers]) > 0)
    end}.

the_vertices_are_there_only_if_asked_for_test_() ->
    {timeout, ?BUSY_S, fun() ->
        {ok, Result} = orbit:run(#{generators => g1, space => 10, mode => par}),
        ?assertNot(is_map_key(vertices, Result))
    end}.

a_run_leaves_nothing_test_() ->
    {timeout, ?BUSY_S, fun() ->
        {ok, _} = orbit:run(#{generators => g124, space => 1000, mode => par}),
        ?assertEqual([], orbit_probe:left())
    end}.

%% Whichever it is, it is killed a few times while all compute.
what_is_killed_is_computed_again_test_() ->
    {setup, fun silence/0, fun logger:set_primary_config/1, [{atom_to_list(Module), {timeout, ?BUSY_S, fun() ->
        {Run, Ref} = spawn_run(10_000, 2),
        [orbit_wait:until(fun() -> not is_process_alive(Run) orelse orbit_probe:is_computing() andalso orbit_probe:kill(Module) end) || _ <- lists:seq(1, 3)],
        {ok, #{size := Size, epochs := Epochs}} = outcome(Run, Ref),
        ?assertMatch({6_889, true}, {Size, Epochs > 1}),
        ?assertEqual([], orbit_probe:left())
    end}} || Module <- [orbit_worker, orbit_submaster, orbit_host]]}.

a_process_that_fails_by_itself_ends_the_run_with_a_sentence_test_() ->
    {setup, fun silence/0, fun logger:set_primary_config/1, [{atom_to_list(Module), {timeout, ?BUSY_S, fun() ->
        {Run, Ref} = spawn_run(10_000, 2),
        orbit_wait:until(fun orbit_probe:is_computing/0),
        [P | _] = orbit_probe:of_module(Module),
        P ! no_such_message,
        ?assertMatch({error, {crashed, _, {function_clause, _}}}, outcome(Run, Ref)),
        ?assertEqual([], orbit_probe:left())
    end}} || Module <- [orbit_worker, orbit_submaster]]}.

%% Whoever ends it there needs a moment between the two calls that this takes.
a_run_that_is_being_ended_on_a_node_is_soon_started_there_again_test_() ->
    {timeout, ?BUSY_S, fun() ->
        {ok, _} = application:ensure_all_started(orbit),
        {ok, Plan} = orbit_plan:new(par, [node()], 1, #{workers => 1, separate_submasters => false, prefix => x}),
        Run = #{id => "test", plan => Plan, caller => self(), master => alias(), generators => g1, space => 10},
        {ready, _} = orbit_host:prepare(node(), Run, 1, Plan),
        ok = supervisor:terminate_child(orbit_app, "test"),
        again = orbit_host:prepare_here(Run, 2, Plan),
        ok = supervisor:delete_child(orbit_app, "test"),
        ?assertMatch({ready, _}, orbit_host:prepare(node(), Run, 2, Plan)),
        ok = orbit_host:stop("test")
    end}.

a_caller_that_dies_takes_the_run_with_it_test_() ->
    {timeout, ?BUSY_S, fun() ->
        {Run, _} = spawn_run(3_000_000, 4),
        orbit_wait:until(fun orbit_probe:is_computing/0),
        exit(Run, kill),
        orbit_wait:until(fun() -> orbit_probe:left() =:= [] end)
    end}.

%% The reports of crashes that a test wants.
silence() ->
    Config = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    Config.

spawn_run(Space, Workers) ->
    spawn_monitor(fun() -> exit(orbit:run(#{generators => g124, space => Space, mode => par, workers => Workers})) end).

outcome(Run, Ref) ->
    receive
        {'DOWN', Ref, process, Run, Outcome} -> Outcome
    after 50_000 -> error(no_outcome)
    end.
