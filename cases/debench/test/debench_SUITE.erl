%% DE-Bench on real nodes: that it does what it offers, sends nothing that it was not to send,
%% and leaves nothing behind.
-module(debench_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([
    a_round_measures_all_of_it_and_leaves_no_name/1,
    without_a_share_of_global_operations_nobody_hears_of_a_name/1,
    weights_are_honoured_on_nodes_and_each_name_is_looked_up_and_removed/1,
    what_cannot_be_done_in_time_is_shed_and_failed/1,
    operations_stay_in_the_group_unless_connections_are_transitive/1,
    what_is_there_before_the_load_goes_with_it/1,
    a_killed_worker_comes_back_and_its_name_goes/1,
    a_load_that_cannot_begin_is_a_sentence/1
]).
%% Called on nodes.
-export([count_messages/1, counted/0, workers/0]).

suite() -> [{timetrap, {minutes, 5}}].

all() -> suite_cases() -- [count_messages].

suite_cases() -> [F || {F, 1} <- ?MODULE:module_info(exports), F =/= module_info].

%% A mesh and, at last, groups; in the fast tier these alone.
systems(Systems) ->
    case atoll_tier:tier() of
        fast -> [lists:last(Systems)];
        deep -> Systems
    end.

point(System, Nodes, Global) ->
    #{
        nodes => Nodes, global => Global, offered => 100, group_size => 2, packet_size => 100, ramp_ms => 200,
        window_ms => 1000, system => System
    }.

with(#{system := System, nodes := Nodes, group_size := Size}, Fun) ->
    {ok, #{cluster := Cluster} = Started} = debench_cluster:start(#{
        nodes => Nodes, system => System, group_size => Size, cluster => #{args => atoll_bench_debench:flags(#{})}
    }),
    try
        Fun(Started)
    after
        ok = atoll_bench_nodes:stop(Cluster)
    end.

load(#{cluster := Cluster, system := System}, Weighted, More) ->
    maps:merge(
        #{
            system => System, nodes => atoll_cluster:nodes(Cluster), transitive => false, weighted => Weighted,
            workers => 5, rate => 100, from_ms => 0, until_ms => 2000, packet_size => 100, delay_us => 0,
            initial_global_size => 0, initial_active_process => 0, seed => 1
        },
        More
    ).

run(Started, Weighted, More) ->
    {ok, Looks} = debench_cluster:run(Started, load(Started, Weighted, More)),
    debench_window:merged([Look || {_, Look} <- Looks]).

everywhere(#{cluster := Cluster}, Module, Function, Args) ->
    [Answer || {_, {ok, Answer}} <- atoll_cluster:multicall(Cluster, Module, Function, Args, 60000)].

a_round_measures_all_of_it_and_leaves_no_name(_) ->
    [
        begin
            {ok, #{cluster := Cluster} = State0} = atoll_bench_debench:setup((point(System, 4, 30))#{seed => 1}),
            try
                {ok, Measures, State} = atoll_bench_debench:round(State0),
                #{goodput_per_s := Goodput, goodput_percent := Percent, failed_per_s := Failed, messages_per_op := Messages,
                  cpu_us_per_op := Cpu, register := Register, unregister := _, p2p := P2p, local := Local} = Measures,
                ?assert(abs(Percent - 100 * Goodput / 400) < 0.001),
                ?assert(Goodput > 0 andalso Failed >= 0 andalso Messages > 0 andalso Cpu > 0),
                [?assert(atoll_bench_hist:count(Latency) > 0) || Latency <- [Register, P2p, Local]],
                Names = everywhere(State, debench_peer, gone, [System, 0]),
                ?assertEqual([ok, ok, ok, ok], Names),
                ?assertMatch({ok, _, #{seed := 3}}, atoll_bench_debench:round(State))
            after
                ok = atoll_bench_debench:teardown(State0)
            end,
            ?assertNot(is_process_alive(Cluster))
        end
     || System <- systems([mesh, groups])
    ].

%% What the servers of names are told by anybody, between the begin and the end of a load.
without_a_share_of_global_operations_nobody_hears_of_a_name(_) ->
    [
        with(point(System, 4, 0), fun(Started) ->
            Heard = fun(Global) ->
                _ = everywhere(Started, ?MODULE, count_messages, [Server]),
                _ = run(Started, atoll_bench_debench:weights(Global), #{until_ms => 1000}),
                lists:sum(everywhere(Started, ?MODULE, counted, []))
            end,
            ?assertEqual(0, Heard(0)),
            %% So it would have been seen.
            ?assert(Heard(20) > 0)
        end)
     || {System, Server} <- systems([{mesh, global_name_server}, {groups, atoll_name}])
    ].

%% @doc Counts the calls and casts that a server is sent from now on.
count_messages(Server) ->
    Self = self(),
    _ = spawn(fun() ->
        true = erlang:register(?MODULE, self()),
        1 = erlang:trace(whereis(Server), true, ['receive']),
        Self ! ready,
        counting(0)
    end),
    receive ready -> ok end.

counting(N) ->
    receive
        {trace, _, 'receive', Message} when
            element(1, Message) =:= '$gen_call'; element(1, Message) =:= '$gen_cast'
        ->
            counting(N + 1);
        {trace, _, 'receive', _} -> counting(N);
        {count, From} -> From ! {count, N}
    end.

counted() ->
    Ref = monitor(process, ?MODULE),
    ?MODULE ! {count, self()},
    receive {count, N} -> receive {'DOWN', Ref, process, _, _} -> N end end.

weights_are_honoured_on_nodes_and_each_name_is_looked_up_and_removed(_) ->
    Weighted = [
        {spawning, spawning, 3}, {remote_call, remote_call, 1}, {gen_server_call, gen_server_call, 1},
        {fsm_server_call, fsm_server_call, 1}, {global_register, global_register, 2},
        {local_register, local_register, 4}
    ],
    with(point(mesh, 3, 0), fun(Started) ->
        #{labels := Labels, shed := Shed} = run(Started, Weighted, #{rate => 200, until_ms => 2000, workers => 10}),
        Done = fun(Label) -> map_get(done, proplists:get_value(Label, Labels)) end,
        ?assert(Done(global_register) > 0),
        [
            ?assertEqual({Label, Done(Register)}, {Label, Done(Label)})
         || {Register, Of} <- [
                {global_register, [global_whereis, global_unregister]},
                {local_register, [local_whereis, local_unregister]}
            ],
            Label <- Of
        ],
        Total = lists:sum([W || {_, _, W} <- Weighted]),
        Drawn = [{L, map_get(drawn, proplists:get_value(L, Labels)), W / Total} || {L, _, W} <- Weighted],
        All = lists:sum([N || {_, N, _} <- Drawn]),
        %% Draws depend on time here, so that a limit of three would be exceeded now and then.
        [?assert(abs(N - All * P) =< 5 * math:sqrt(All * P * (1 - P)), {L, N, All * P, Shed}) || {L, N, P} <- Drawn]
    end).

%% One worker whose partner takes 20 ms for each is offered ten times as much.
what_cannot_be_done_in_time_is_shed_and_failed(_) ->
    with(point(mesh, 2, 0), fun(Started) ->
        Load = #{workers => 1, delay_us => 20000, rate => 500, from_ms => 500, until_ms => 1500},
        Merged = run(Started, [{remote_call, remote_call, 1}], Load),
        #{offered := Offered, completed := Completed, shed := Shed, labels := [{_, #{latency := Latency}}]} = Merged,
        ?assertMatch(#{labels := [{_, #{errors := []}}]}, Merged),
        ?assertEqual(1000, Offered),
        ?assert(Completed =< 110, Completed),
        ?assert(Shed >= 700, Shed),
        %% Nothing waits for more than a quarter of a second before it is begun.
        [?assert(Ns < 1000000000, Ns) || Ns <- [atoll_bench_hist:percentile(Latency, 50)], Ns =/= none]
    end).

operations_stay_in_the_group_unless_connections_are_transitive(_) ->
    with(point(groups, 5, 0), fun(#{cluster := Cluster} = Started) ->
        [A, B, C, D, E] = atoll_cluster:nodes(Cluster),
        %% Those that are left over are the last group's.
        Own = [[B], [A], [D, E], [C, E], [C, D]],
        Sees = fun() -> [lists:sort(Nodes) || Nodes <- everywhere(Started, erlang, nodes, [])] end,
        ?assertEqual(Own, Sees()),
        #{completed := Some} = run(Started, atoll_bench_debench:weights(20), #{until_ms => 1000}),
        ?assert(Some > 0),
        ?assertEqual(Own, Sees()),
        Weighted = [{spawning, spawning, 1}, {global_register, global_register, 1}],
        #{labels := Labels} = run(Started, Weighted, #{transitive => true, until_ms => 1000}),
        [?assert(Ok > 0, Label) || {Label, #{ok := Ok}} <- Labels],
        ?assertEqual([4, 4, 4, 4, 4], [length(Nodes) || Nodes <- Sees()])
    end).

what_is_there_before_the_load_goes_with_it(_) ->
    with(point(mesh, 2, 0), fun(#{cluster := Cluster} = Started) ->
        [First | _] = atoll_cluster:nodes(Cluster),
        Processes = fun() -> atoll_cluster:call(Cluster, First, erlang, system_info, [process_count]) end,
        Names = fun() -> lists:usort([length(N) || N <- everywhere(Started, global, registered_names, [])]) end,
        Before = Processes(),
        Load = load(Started, [{spawning, spawning, 1}], #{initial_global_size => 7, initial_active_process => 500}),
        {ok, ok} = debench_cluster:begin_load(Started, Load),
        ?assertEqual([14], Names()),
        ?assert(Processes() >= Before + 500),
        {ok, _} = debench_cluster:finish(Started, 2000),
        {ok, ok} = debench_cluster:stop_load(Started),
        ?assertEqual([ok, ok], everywhere(Started, debench_peer, gone, [mesh, 30000])),
        ?assert(Processes() < Before + 400)
    end).

%% A worker dies while it holds a name, again and again.
a_killed_worker_comes_back_and_its_name_goes(_) ->
    with(point(groups, 2, 0), fun(#{cluster := Cluster} = Started) ->
        [First | _] = atoll_cluster:nodes(Cluster),
        Weighted = [{global_register, global_register, 1}, {spawning, spawning, 1}],
        Load = load(Started, Weighted, #{until_ms => 3600000}),
        {ok, ok} = debench_cluster:begin_load(Started, Load),
        Await = fun(Is) -> await(Started, First, Is, erlang:monotonic_time(millisecond) + 60000) end,
        _ = Await(fun(#{completed := Done}) -> Done >= 20 end),
        %% The next one only when the last has begun anew: one that has not is not counted.
        [
            begin
                [Pid | _] = atoll_cluster:call(Cluster, First, ?MODULE, workers, []),
                true = atoll_cluster:call(Cluster, First, erlang, exit, [Pid, kill]),
                Await(fun(#{restarts := Restarts}) -> Restarts =:= Killed end)
            end
         || Killed <- lists:seq(1, 20)
        ],
        #{completed := Before} = Await(fun(_) -> true end),
        #{restarts := 20} = Await(fun(#{completed := Done}) -> Done > Before end),
        {ok, ok} = debench_cluster:stop_load(Started),
        ?assertEqual([ok, ok], everywhere(Started, debench_peer, gone, [groups, 30000]))
    end).

%% A look at a node of which that is so.
await(Started, Node, Is, Deadline) ->
    {ok, Looks} = debench_cluster:look(Started),
    {Node, Look} = lists:keyfind(Node, 1, Looks),
    case Is(Look) of
        true -> Look;
        false ->
            ?assert(erlang:monotonic_time(millisecond) < Deadline, Look),
            await(Started, Node, Is, Deadline)
    end.

workers() -> [Pid || {_, Pid, _, _} <- supervisor:which_children(debench_workers), is_pid(Pid)].

%% Of names that are taken already the load cannot begin, and says so.
a_load_that_cannot_begin_is_a_sentence(_) ->
    with(point(mesh, 2, 0), fun(#{cluster := Cluster} = Started) ->
        [First, Second] = atoll_cluster:nodes(Cluster),
        Holder = atoll_cluster:call(Cluster, Second, erlang, spawn, [timer, sleep, [infinity]]),
        yes = atoll_cluster:call(Cluster, Second, global, register_name, [{debench, First, initial, 1}, Holder]),
        Load = load(Started, [{spawning, spawning, 1}], #{initial_global_size => 1}),
        {error, Why} = debench_cluster:begin_load(Started, Load),
        Said = lists:flatten(io_lib:format("~ts", [Why])),
        ?assertMatch([_ | _], string:find(Said, "the load could not begin on " ++ atom_to_list(First)))
    end).
