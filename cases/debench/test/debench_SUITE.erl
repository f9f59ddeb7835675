%% SPDX-License-Identifier: Apache-2.0
%% DE-Bench on real nodes: that it does what it offers, sends nothing that it was not to send,
%% and leaves nothing behind.
-module(debench_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([
    without_a_share_of_global_operations_nobody_hears_of_a_name/1,
    weights_are_honoured_on_nodes_and_each_name_is_looked_up_and_removed/1,
    what_cannot_be_done_in_time_is_shed_and_failed/1,
    operations_stay_in_the_group_unless_connections_are_transitive/1,
    what_is_there_before_the_load_goes_with_it/1,
    a_killed_worker_comes_back_and_its_name_goes/1,
    a_load_that_cannot_begin_is_a_sentence/1,
    on_nodes_of_somebody_else_it_runs_and_leaves_nothing/1,
    when_its_owner_is_killed_nothing_is_left_on_nodes_of_somebody_else/1,
    nodes_that_cannot_be_used_are_told_in_a_sentence_and_left_alone/1
]).
%% Called on nodes.
-export([count_messages/1, counted/0, workers/0]).

%% It ends what hangs.
-define(CALL_MS, 30000).

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
        nodes => Nodes, system => System, group_size => Size
    }),
    try
        Fun(Started)
    after
        ok = atoll_bench_nodes:stop(Cluster)
    end.

load(#{nodes := Nodes, system := System}, Weighted, More) ->
    maps:merge(
        #{
            system => System, nodes => Nodes, transitive => false, weighted => Weighted,
            workers => 5, rate => 100, from_ms => 0, until_ms => 2000, packet_size => 100, delay_us => 0,
            initial_global_size => 0, initial_active_process => 0, seed => 1
        },
        More
    ).

run(Started, Weighted, More) ->
    {ok, Looks} = debench_cluster:run(Started, load(Started, Weighted, More)),
    atoll_bench_window:merged([Look || {_, Look} <- Looks]).

everywhere(#{cluster := Cluster}, Module, Function, Args) ->
    [Answer || {_, {ok, Answer}} <- atoll_cluster:multicall(Cluster, Module, Function, Args, 60000)].

%% What the servers of names are told by anybody, between the begin and the end of a load.
without_a_share_of_global_operations_nobody_hears_of_a_name(_) ->
    [
        with(point(System, 4, 0), fun(Started) ->
            Heard = fun(Global) ->
                _ = everywhere(Started, ?MODULE, count_messages, [Server]),
                _ = run(Started, debench:weights(Global), #{until_ms => 1000}),
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
        [?assert(Ns < 1000000000, Ns) || Ns <- [atoll_histogram:percentile(Latency, 50)], Ns =/= none]
    end).

operations_stay_in_the_group_unless_connections_are_transitive(_) ->
    with(point(groups, 5, 0), fun(#{cluster := Cluster} = Started) ->
        [A, B, C, D, E] = atoll_cluster:nodes(Cluster),
        Own = [[B, C], [A, C], [A, B], [E], [D]],
        Sees = fun() -> [lists:sort(Nodes) || Nodes <- everywhere(Started, erlang, nodes, [])] end,
        ?assertEqual(Own, Sees()),
        #{completed := Some} = run(Started, debench:weights(20), #{until_ms => 1000}),
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

%% Nodes that were started by hand: stock Erlang, with a cookie of their own.
by_hand(Count, Fun) ->
    Peers = [
        begin
            {ok, Peer, Node} = peer:start_link(#{
                name => peer:random_name(), host => "127.0.0.1", longnames => true, connection => standard_io, wait_boot => ?CALL_MS,
                args => ["-setcookie", "debenchers"], env => [{"ERL_LIBS", false}, {"ERL_FLAGS", false}, {"ERL_AFLAGS", false}, {"ERL_ZFLAGS", false}]
            }),
            ?assertEqual(non_existing, peer:call(Peer, code, which, [debench_op], ?CALL_MS)),
            {Peer, Node}
        end
     || _ <- lists:seq(1, Count)
    ],
    {ok, _} = net_kernel:start(list_to_atom(peer:random_name() ++ "@127.0.0.1"), #{name_domain => longnames, hidden => true, dist_listen => false}),
    try
        [true = erlang:set_cookie(Node, debenchers) || {_, Node} <- Peers],
        Fun(Peers)
    after
        [ok = peer:stop(Peer) || {Peer, _} <- Peers],
        ok = net_kernel:stop()
    end.

own(Peers) ->
    #{nodes => [Node || {_, Node} <- Peers], system => mesh}.

%% What of ours a node has: modules, processes with names, names that all see.
ours({Peer, _}) ->
    Loaded = [M || {M, _} <- peer:call(Peer, code, all_loaded, [], ?CALL_MS)],
    {
        [M || M <- Loaded, lists:member(M, debench_own:modules())],
        [N || N <- peer:call(Peer, erlang, registered, [], ?CALL_MS), lists:prefix("debench", atom_to_list(N))],
        peer:call(Peer, global, registered_names, [], ?CALL_MS)
    }.

on_nodes_of_somebody_else_it_runs_and_leaves_nothing(_) ->
    by_hand(3, fun(Peers) ->
        {ok, #{nodes := Nodes} = Started} = debench_own:start(own(Peers)),
        ?assertEqual(lists:sort(debench_own:modules()), lists:sort(element(1, ours(hd(Peers))))),
        %% This one is none of them.
        [?assertEqual(lists:sort(Nodes -- [Node]), lists:sort(peer:call(Peer, erlang, nodes, [], ?CALL_MS))) || {Peer, Node} <- Peers],
        #{completed := Done, labels := Labels} = run(Started, debench:weights(20), #{until_ms => 1000}),
        ?assert(Done > 0),
        [?assert(Ok > 0, Label) || {Label, #{ok := Ok}} <- Labels, lists:member(Label, [global_register, gen_server_call])],
        ok = debench_own:stop(Started),
        [await_clean(Peer) || Peer <- Peers]
    end).

%% In the middle of a load that would go on for an hour; kill -9 of its VM is the same to the nodes.
when_its_owner_is_killed_nothing_is_left_on_nodes_of_somebody_else(_) ->
    by_hand(2, fun(Peers) ->
        Self = self(),
        {Owner, Ref} = spawn_monitor(fun() ->
            {ok, Started} = debench_own:start(own(Peers)),
            Load = load(Started, debench:weights(20), #{until_ms => 3600000, initial_global_size => 3}),
            {ok, ok} = debench_cluster:begin_load(Started, Load),
            Self ! {begun, Started},
            receive never -> ok end
        end),
        #{nodes := [First | _]} = Started =
            receive
                {begun, S} -> S;
                {'DOWN', Ref, process, Owner, Reason} -> error(Reason)
            end,
        _ = await(Started, First, fun(#{completed := Done}) -> Done > 20 end, erlang:monotonic_time(millisecond) + 60000),
        true = exit(Owner, kill),
        receive {'DOWN', Ref, process, Owner, killed} -> ok end,
        [await_clean(Peer) || Peer <- Peers]
    end).

%% Nobody tells of a module that has gone.
await_clean(Peer) -> await_clean(Peer, erlang:monotonic_time(millisecond) + 30000).

await_clean(Peer, Deadline) ->
    case ours(Peer) of
        {[], [], []} ->
            ok;
        Left ->
            ?assert(erlang:monotonic_time(millisecond) < Deadline, Left),
            receive after 20 -> await_clean(Peer, Deadline) end
    end.

nodes_that_cannot_be_used_are_told_in_a_sentence_and_left_alone(_) ->
    by_hand(2, fun([{_, First}, {Second, _}] = Peers) ->
        Said = fun(Options) ->
            {error, Why} = debench_own:start(Options),
            [await_clean(Peer) || Peer <- Peers],
            unicode:characters_to_list(Why)
        end,
        Nodes = maps:get(nodes, own(Peers)),
        ?assertEqual(
            "nobody@127.0.0.1 does not answer",
            Said((own(Peers))#{nodes := Nodes ++ ['nobody@127.0.0.1']})
        ),
        ?assertEqual(atom_to_list(First) ++ " is in no s_group", Said((own(Peers))#{system := groups})),
        %% Whoever has one of these modules in another version has it afterwards.
        Forms = [{attribute, 1, module, debench_op}],
        {ok, debench_op, Other} = compile:forms(Forms),
        {module, debench_op} = peer:call(Second, code, load_binary, [debench_op, "", Other], ?CALL_MS),
        {error, Why} = debench_own:start(own(Peers)),
        ?assertMatch({match, _}, re:run(unicode:characters_to_list(Why), "has another version of debench_op")),
        ok = await_clean(hd(Peers)),
        ?assertMatch({file, _}, peer:call(Second, code, is_loaded, [debench_op], ?CALL_MS)),
        true = peer:call(Second, code, delete, [debench_op], ?CALL_MS)
    end).
