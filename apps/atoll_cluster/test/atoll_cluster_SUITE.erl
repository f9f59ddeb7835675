%% SPDX-License-Identifier: Apache-2.0
%% Clusters of real nodes. What is promised, and checked here:
%%
%% - nodes find each other, are small, and find their caller's modules;
%% - a node is controlled whatever becomes of its distribution;
%% - a dead node fails a call at once, a silent one at its deadline;
%% - whatever ends, nothing is left: by stop, by the owner's end, by a start
%%   that fails half-way, by any end of the VM; stopped nodes and nodes that
%%   are just starting included;
%% - a process that only got a node's number is left alone.
%%
%% The run directory's path has a blank and a quote in it all along.
-module(atoll_cluster_SUITE).
-compile([export_all, nowarn_export_all]).
-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

%% The promise of the issue: everything is gone this long after a kill -9.
-define(GONE_MS, 5000).
-define(EVENT_MS, 10000).
%% As long as nodes may take to start.
-define(START_MS, 60000).

suite() -> [{timetrap, {minutes, 6}}].

all() -> [{group, nodes}, {group, control}, {group, starting}, {group, going}, {group, others}].

groups() ->
    [
        {nodes, [], [
            one_node_starts,
            several_nodes_find_each_other,
            many_nodes_start_answer_and_stop,
            connect_all_false_reaches_the_nodes,
            arguments_may_be_made_of_the_names,
            a_node_finds_the_modules_of_its_caller,
            a_node_is_small_and_on_loopback,
            applications_are_started,
            progress_counts_the_nodes
        ]},
        {control, [], [
            a_node_that_is_cut_off_is_still_controlled,
            an_exception_on_a_node_is_raised_here,
            a_call_to_a_dead_node_fails_at_once,
            a_call_that_waits_fails_when_its_node_dies,
            a_silent_node_holds_up_nothing,
            a_paused_node_goes_on,
            a_killed_node_is_reported,
            a_node_that_ends_by_itself_is_reported,
            a_dead_node_starts_again_under_its_name,
            what_a_failed_case_has_begun_goes_with_its_nodes,
            what_nodes_print_stays_off_the_callers_output,
            bytes_of_no_encoding_on_standard_output_break_nothing,
            a_node_that_lost_its_control_connection_does_not_stay,
            a_node_that_is_killed_while_calls_wait_to_be_written_is_no_crash
        ]},
        {starting, [], [
            a_bad_option_starts_nothing,
            a_bad_erl_argument_is_told_and_leaves_nothing,
            a_start_that_fails_half_way_leaves_nothing,
            an_application_that_fails_leaves_nothing,
            a_node_that_is_late_leaves_nothing,
            a_progress_function_that_fails_leaves_nothing,
            a_cluster_of_that_name_is_refused,
            a_node_of_that_name_is_refused,
            more_nodes_than_memory_are_refused,
            nodes_share_a_cookie_that_did_not_exist
        ]},
        {going, [], [
            stop_returns_when_all_are_gone,
            with_a_cluster_a_function_has_it_as_long_as_it_runs,
            the_end_of_the_owner_takes_the_nodes_down,
            the_end_of_a_linked_owner_takes_the_nodes_down,
            the_end_of_the_server_takes_the_nodes_down,
            kill_9_of_the_vm_takes_the_nodes_down,
            ctrl_c_takes_the_nodes_down,
            init_stop_takes_the_nodes_down,
            kill_9_while_starting_leaves_nothing,
            a_lost_watchdog_is_replaced,
            a_watchdog_lost_on_the_way_down_is_replaced,
            what_a_lost_vm_and_watchdog_left_is_swept,
            a_stop_by_name_sweeps_what_a_lost_vm_left,
            a_process_of_another_start_time_is_left_alone,
            a_process_that_makes_its_log_directory_again_leaves_nothing,
            a_launcher_that_is_late_starts_nothing,
            the_watchdog_ignores_what_a_terminal_sends,
            our_epmd_goes_and_another_stays
        ] ++ ends(atoll_tier:tier())},
        {others, [], [
            a_running_cluster_is_found_and_tells_its_status,
            a_probe_is_asked_of_each_node,
            a_cluster_stops_when_it_is_asked_to,
            a_cluster_that_does_not_run_is_told,
            rubbish_on_the_socket_is_refused
        ]}
    ].

%% More ways in which a VM ends. SIGTERM has it stop itself, and many cases here end one by halt.
ends(fast) -> [];
ends(deep) -> [sigterm_takes_the_nodes_down, halt_takes_the_nodes_down].

init_per_suite(Config) ->
    %% A short path, for the sockets; and none that a shell may misread.
    Temp = string:trim(os:cmd("mktemp -d")),
    Run = filename:join(Temp, "it's a run"),
    ok = file:make_dir(Run),
    Before = os:getenv("XDG_RUNTIME_DIR"),
    true = os:putenv("XDG_RUNTIME_DIR", Run),
    false = is_alive(),
    [{temp, Temp}, {run, Run}, {before, Before} | Config].

end_per_suite(Config) ->
    true =
        case ?config(before, Config) of
            false -> os:unsetenv("XDG_RUNTIME_DIR");
            Before -> os:putenv("XDG_RUNTIME_DIR", Before)
        end,
    ok = file:del_dir_r(?config(temp, Config)).

%% No test leaves a run directory, whether it passed or not.
end_per_testcase(_Case, Config) ->
    _ = [atoll_cluster:ask(Name, stop) || #{name := Name} <- atoll_cluster:running()],
    ok = atoll_cluster_watchdog:sweep(atoll_cluster_rundir:stale()),
    nothing_left(Config).

%% Nodes

one_node_starts(_Config) ->
    Cluster = start(#{nodes => 1}),
    [Node] = atoll_cluster:nodes(Cluster),
    Node = atoll_cluster:call(Cluster, Node, erlang, node, []),
    #{nodes := [#{node := Node, os_pid := OsPid, state := up}]} = atoll_cluster:info(Cluster),
    ?assertEqual(integer_to_list(OsPid), atoll_cluster:call(Cluster, Node, os, getpid, [])).

several_nodes_find_each_other(_Config) ->
    Cluster = start(#{nodes => 4, name => "find"}),
    [First | Rest] = Nodes = atoll_cluster:nodes(Cluster),
    ?assertEqual(['find1@127.0.0.1', 'find2@127.0.0.1', 'find3@127.0.0.1', 'find4@127.0.0.1'], Nodes),
    [pong = atoll_cluster:call(Cluster, First, net_adm, ping, [N]) || N <- Rest],
    ?assertEqual(lists:sort(Rest), lists:sort(atoll_cluster:call(Cluster, First, erlang, nodes, []))).

many_nodes_start_answer_and_stop(Config) ->
    Count = atoll_tier:size(cluster_nodes),
    Cluster = start(#{nodes => Count, connect_all => false}),
    Nodes = atoll_cluster:nodes(Cluster),
    ?assertEqual(Count, length(Nodes)),
    ?assertEqual([{N, {ok, N}} || N <- Nodes], atoll_cluster:multicall(Cluster, erlang, node, [])),
    ok = atoll_cluster:stop(Cluster),
    nothing_left(Config).

connect_all_false_reaches_the_nodes(_Config) ->
    Cluster = start(#{nodes => 3, connect_all => false}),
    [A, B, C] = atoll_cluster:nodes(Cluster),
    pong = atoll_cluster:call(Cluster, A, net_adm, ping, [B]),
    pong = atoll_cluster:call(Cluster, A, net_adm, ping, [C]),
    ?assertEqual([{A, {ok, lists:sort([B, C])}}, {B, {ok, [A]}}, {C, {ok, [A]}}],
        [{N, {ok, lists:sort(L)}} || {N, {ok, L}} <- atoll_cluster:multicall(Cluster, erlang, nodes, [])]).

arguments_may_be_made_of_the_names(_Config) ->
    Cluster = start(#{nodes => 2, args => fun(Nodes) -> ["-atoll_test", "named", lists:flatten(io_lib:format("~0p", [Nodes]))] end}),
    Nodes = atoll_cluster:nodes(Cluster),
    ok = atoll_cluster:kill(Cluster, hd(Nodes)),
    ok = atoll_cluster:restart(Cluster, hd(Nodes)),
    Asked = atoll_cluster:multicall(Cluster, init, get_argument, [atoll_test]),
    Text = lists:flatten(io_lib:format("~0p", [Nodes])),
    ?assertEqual([{Node, {ok, {ok, [["named", Text]]}}} || Node <- Nodes], Asked).

a_node_finds_the_modules_of_its_caller(_Config) ->
    Cluster = start(#{nodes => 1}),
    [Node] = atoll_cluster:nodes(Cluster),
    Base = [filename:join(code:lib_dir(App), "ebin") || App <- [stdlib, kernel]],
    Here = [
        filename:absname(D)
     || D <- code:get_path(), D =/= ".", lists:member(D, Base) orelse not lists:prefix(code:root_dir(), D), filelib:is_dir(D)
    ],
    There = atoll_cluster:call(Cluster, Node, code, get_path, []),
    %% In this order.
    ?assertEqual(Here, [D || D <- There, lists:member(D, Here)]),
    ?assertEqual({module, ?MODULE}, atoll_cluster:call(Cluster, Node, code, ensure_loaded, [?MODULE])).

a_node_is_small_and_on_loopback(_Config) ->
    Cluster = start(#{nodes => 1}),
    [Node] = atoll_cluster:nodes(Cluster),
    Call = fun(M, F, A) -> atoll_cluster:call(Cluster, Node, M, F, A) end,
    ?assertEqual(1, Call(erlang, system_info, [schedulers])),
    ?assertEqual(1, Call(erlang, system_info, [dirty_io_schedulers])),
    ?assertEqual({ok, {127, 0, 0, 1}}, Call(application, get_env, [kernel, inet_dist_use_interface])),
    ?assertEqual({ok, false}, Call(application, get_env, [kernel, prevent_overlapping_partitions])),
    Arguments = Call(init, get_arguments, []),
    ?assertEqual([], [A || {setcookie, _} = A <- Arguments]).

applications_are_started(_Config) ->
    Cluster = start(#{nodes => 2, apps => [runtime_tools, atoll_cluster]}),
    [?assertMatch({_, {_, _, _}}, {Node, lists:keyfind(App, 1, Running)})
     || {Node, {ok, Running}} <- atoll_cluster:multicall(Cluster, application, which_applications, []),
        App <- [runtime_tools, atoll_cluster]].

progress_counts_the_nodes(_Config) ->
    Self = self(),
    _ = start(#{nodes => 3, parallel => 1, progress => fun(N, Total) -> Self ! {N, Total} end}),
    ?assertEqual([{0, 3}, {1, 3}, {2, 3}, {3, 3}], [receive {_, 3} = P -> P after 0 -> none end || _ <- lists:seq(0, 3)]).

%% Control

a_node_that_is_cut_off_is_still_controlled(_Config) ->
    Cluster = start(#{nodes => 2}),
    [A, B] = atoll_cluster:nodes(Cluster),
    pong = atoll_cluster:call(Cluster, A, net_adm, ping, [B]),
    true = atoll_cluster:call(Cluster, B, erlang, set_cookie, [B, other]),
    true = atoll_cluster:call(Cluster, B, erlang, disconnect_node, [A]),
    pang = atoll_cluster:call(Cluster, A, net_adm, ping, [B]),
    ?assertEqual([{A, {ok, []}}, {B, {ok, []}}], atoll_cluster:multicall(Cluster, erlang, nodes, [])),
    ?assertEqual(B, atoll_cluster:call(Cluster, B, erlang, node, [])).

an_exception_on_a_node_is_raised_here(_Config) ->
    Cluster = start(#{nodes => 1}),
    [Node] = atoll_cluster:nodes(Cluster),
    ?assertError(badarg, atoll_cluster:call(Cluster, Node, erlang, atom_to_list, [1])),
    ?assertExit(gone, atoll_cluster:call(Cluster, Node, erlang, exit, [gone])),
    ?assertThrow(ball, atoll_cluster:call(Cluster, Node, erlang, throw, [ball])),
    ?assertExit({noproc, {gen_server, call, _}}, atoll_cluster:call(Cluster, Node, gen_server, call, [nobody, x])),
    ?assertEqual([{Node, {error, {raised, throw, ball}}}], atoll_cluster:multicall(Cluster, erlang, throw, [ball])),
    ?assertError({unknown_node, 'x@127.0.0.1'}, atoll_cluster:call(Cluster, 'x@127.0.0.1', erlang, node, [])).

a_call_to_a_dead_node_fails_at_once(_Config) ->
    Cluster = start(#{nodes => 2}),
    [A, B] = atoll_cluster:nodes(Cluster),
    ok = atoll_cluster:kill(Cluster, A),
    ?assertError({node_down, A}, atoll_cluster:call(Cluster, A, erlang, node, [], infinity)),
    ?assertEqual([{A, {error, {node_down, A}}}, {B, {ok, B}}], atoll_cluster:multicall(Cluster, erlang, node, [], infinity)),
    ?assertEqual({error, {node_down, A}}, atoll_cluster:pause(Cluster, A)),
    ?assertEqual({error, {node_down, A}}, atoll_cluster:resume(Cluster, A)),
    ?assertEqual({error, {node_down, A}}, atoll_cluster:kill(Cluster, A)).

a_call_that_waits_fails_when_its_node_dies(_Config) ->
    Cluster = start(#{nodes => 1}),
    [Node] = atoll_cluster:nodes(Cluster),
    Name = list_to_atom("waits"),
    {Caller, Ref} = spawn_monitor(fun() ->
        atoll_cluster:call(Cluster, Node, ?MODULE, wait_as, [Name], infinity)
    end),
    ok = until(fun() -> is_pid(atoll_cluster:call(Cluster, Node, erlang, whereis, [Name])) end),
    ok = atoll_cluster:kill(Cluster, Node),
    receive
        {'DOWN', Ref, process, Caller, Reason} -> ?assertMatch({{node_down, Node}, _}, Reason)
    after ?EVENT_MS -> error(still_waiting)
    end.

wait_as(Name) ->
    true = register(Name, self()),
    receive never -> ok end.

a_silent_node_holds_up_nothing(_Config) ->
    Cluster = start(#{nodes => 3}),
    [A, B, C] = atoll_cluster:nodes(Cluster),
    ok = atoll_cluster:pause(Cluster, B),
    %% Who waited for it would do so for five seconds, or for ever.
    #{nodes := Infos} = within(4000, fun() -> atoll_cluster:info(Cluster) end),
    ?assertEqual([up, paused, up], [S || #{state := S} <- Infos]),
    ?assertError({timeout, B}, within(4000, fun() -> atoll_cluster:call(Cluster, B, erlang, node, [], 100) end)),
    ?assertEqual([{A, {ok, A}}, {B, {error, {timeout, B}}}, {C, {ok, C}}],
        within(6000, fun() -> atoll_cluster:multicall(Cluster, erlang, node, [], 2000) end)),
    #{nodes := Statuses} = within(6000, fun() -> atoll_cluster:status(Cluster) end),
    ?assertMatch([#{connections := 0}, #{connections := undefined, memory := undefined}, #{connections := 0}], Statuses),
    %% more than fits into the pipe that it does not read
    ?assertEqual({busy, B}, lists:last(pile_up(Cluster, B, 300))),
    Processes = processes_of(Cluster),
    ok = within(?GONE_MS, fun() -> atoll_cluster:stop(Cluster) end),
    ?assertEqual([], alive(Processes)).

a_paused_node_goes_on(_Config) ->
    Cluster = start(#{nodes => 1}),
    [Node] = atoll_cluster:nodes(Cluster),
    ok = atoll_cluster:pause(Cluster, Node),
    ?assertError({timeout, Node}, atoll_cluster:call(Cluster, Node, erlang, node, [], 50)),
    ok = atoll_cluster:resume(Cluster, Node),
    ?assertEqual(Node, atoll_cluster:call(Cluster, Node, erlang, node, [])),
    #{nodes := [#{state := up}]} = atoll_cluster:info(Cluster).

a_killed_node_is_reported(_Config) ->
    Cluster = start(#{nodes => 2}),
    [A, B] = atoll_cluster:nodes(Cluster),
    [Process, _] = processes_of(Cluster),
    ok = atoll_cluster:pause(Cluster, A),
    ok = atoll_cluster:kill(Cluster, A),
    ?assertEqual([], alive([Process])),
    ?assertEqual({node_down, A, killed}, notice(Cluster)),
    ?assertMatch(#{nodes := [#{node := A, state := down, os_pid := undefined}, #{node := B, state := up}]},
        atoll_cluster:info(Cluster)).

a_node_that_ends_by_itself_is_reported(_Config) ->
    Cluster = start(#{nodes => 2}),
    [A, B] = atoll_cluster:nodes(Cluster),
    ?assertError({node_down, A}, atoll_cluster:call(Cluster, A, erlang, halt, [3])),
    ?assertEqual({node_down, A, down}, notice(Cluster)),
    ?assertEqual(B, atoll_cluster:call(Cluster, B, erlang, node, [])).

a_dead_node_starts_again_under_its_name(_Config) ->
    Cluster = start(#{nodes => 2}),
    [A, B] = atoll_cluster:nodes(Cluster),
    ?assertEqual({error, {node_up, A}}, atoll_cluster:restart(Cluster, A)),
    ?assertEqual({error, {unknown_node, x}}, atoll_cluster:restart(Cluster, x)),
    [Before, _] = processes_of(Cluster),
    ok = atoll_cluster:kill(Cluster, A),
    ok = atoll_cluster:restart(Cluster, A),
    [After, _] = processes_of(Cluster),
    ?assertNotEqual(Before, After),
    ?assertEqual(pong, atoll_cluster:call(Cluster, B, net_adm, ping, [A])),
    ?assertEqual({node_down, A, killed}, notice(Cluster)),
    ok = atoll_cluster:stop(Cluster),
    ?assertEqual([], alive([After])).

%% A suite's own cluster, after a case that has passed, that has failed, and that was ended.
what_a_failed_case_has_begun_goes_with_its_nodes(_Config) ->
    Cluster = atoll_cluster_owned:start(#{nodes => 2}),
    Before = processes_of(Cluster),
    ?assertEqual([], atoll_cluster_owned:heal(Cluster, [{tc_status, ok}])),
    ?assertEqual(Before, processes_of(Cluster)),
    [begin
        Were = processes_of(Cluster),
        ?assertEqual(atoll_cluster:nodes(Cluster), atoll_cluster_owned:heal(Cluster, [{tc_status, {failed, Why}}])),
        ?assertEqual([], alive(Were))
    end || Why <- [{assert, []}, timetrap_timeout]],
    ok = atoll_cluster_owned:stop(Cluster).

what_nodes_print_stays_off_the_callers_output(_Config) ->
    {Vm, #{nodes := Nodes}} = hold(#{nodes => 2}),
    tell(Vm, "print"),
    %% A line of a node would come before, and is no term of the holder's.
    ?assertEqual({printed, ok}, atoll_cluster_holder:next(Vm)),
    [#{log := Log, node := Node} | _] = Nodes,
    Out = filename:rootname(Log) ++ ".out",
    ?assertEqual({Node, {ok, <<"from a node\n">>}}, {Node, file:read_file(Out)}),
    %% A node's logger writes in its own time.
    ?assertEqual(ok, until(fun() ->
        {ok, Logged} = file:read_file(Log),
        re:run(Logged, "from a node") =/= nomatch
    end)),
    end_vm(Vm, "halt").

bytes_of_no_encoding_on_standard_output_break_nothing(_Config) ->
    Cluster = start(#{nodes => 1}),
    [Node] = atoll_cluster:nodes(Cluster),
    %% Written past the io system, as C code in the node would. From 192 on
    %% bytes belong to the control connection.
    Bytes = <<"a", 130, 140, "b\n">>,
    ok = atoll_cluster:call(Cluster, Node, file, write_file, ["/proc/self/fd/1", Bytes, [append]]),
    ok = atoll_cluster:call(Cluster, Node, io, put_chars, [user, <<"c\n">>]),
    #{nodes := [#{log := Log}]} = atoll_cluster:info(Cluster),
    {ok, Said} = file:read_file(filename:rootname(Log) ++ ".out"),
    ?assertEqual(<<Bytes/binary, "c\n">>, Said).

a_node_that_lost_its_control_connection_does_not_stay(_Config) ->
    Cluster = start(#{nodes => 1}),
    [Node] = atoll_cluster:nodes(Cluster),
    [Process] = processes_of(Cluster),
    %% Stopped, it cannot see that its standard input ends.
    ok = atoll_cluster:pause(Cluster, Node),
    {ok, #{handle := #{control := Control}}} = atoll_cluster_server:target(Cluster, Node),
    true = exit(Control, kill),
    ?assertEqual({node_down, Node, down}, notice(Cluster)),
    ?assertEqual([], alive([Process])),
    ?assertEqual(ok, atoll_cluster:restart(Cluster, Node)).

a_node_that_is_killed_while_calls_wait_to_be_written_is_no_crash(_Config) ->
    Cluster = start(#{nodes => 1}),
    [Node] = atoll_cluster:nodes(Cluster),
    ok = atoll_cluster:pause(Cluster, Node),
    [{timeout, Node} | _] = pile_up(Cluster, Node, 100),
    ok = logger:add_handler(?FUNCTION_NAME, ?MODULE, #{level => error, config => self()}),
    ok = atoll_cluster:kill(Cluster, Node),
    ok = logger:remove_handler(?FUNCTION_NAME),
    receive {logged, Event} -> error(Event) after 0 -> ok end,
    ?assertEqual(ok, atoll_cluster:restart(Cluster, Node)).

log(Event, #{config := Pid}) ->
    Pid ! {logged, Event}.

%% Starting

a_bad_option_starts_nothing(_Config) ->
    ?assertMatch({error, {bad_option, nodes, _}}, atoll_cluster:start(#{nodes => 0})),
    ?assertMatch({error, {bad_option, color, _}}, atoll_cluster:start(#{nodes => 1, color => red})),
    ?assertEqual([], atoll_cluster:running()).

a_bad_erl_argument_is_told_and_leaves_nothing(Config) ->
    {error, Reason} = atoll_cluster:start(#{nodes => 3, args => ["+S", "nonsense"]}),
    ?assertMatch({node_failed, _, {exit_status, _}, _}, Reason),
    Sentence = unicode:characters_to_list(atoll_cluster:format_error(Reason)),
    ?assertMatch({match, _}, re:run(Sentence, "nonsense")),
    nothing_left(Config).

%% What runs is looked at while the third node waits to fail: then it is all taken down at once.
a_start_that_fails_half_way_leaves_nothing(Config) ->
    Self = self(),
    true = register(atoll_cluster_limping, Self),
    Progress = fun
        (2, _) ->
            Self ! {processes, processes_in(Config)},
            receive {fails, Third} -> Third ! fail after ?EVENT_MS -> error(silent) end;
        (_, _) ->
            ok
    end,
    Options = #{nodes => 5, name => "limp", parallel => 1, driver => atoll_cluster_limping, progress => Progress},
    ?assertEqual({error, {node_failed, 'limp3@127.0.0.1', limping, <<>>}}, atoll_cluster:start(Options)),
    receive
        {processes, Processes} ->
            ?assertMatch([_, _ | _], Processes),
            ?assertEqual([], alive(Processes))
    after 0 -> error(nothing_was_started)
    end,
    nothing_left(Config).

an_application_that_fails_leaves_nothing(Config) ->
    ?assertMatch({error, {app_failed, _, no_such_app, _}}, atoll_cluster:start(#{nodes => 2, apps => [no_such_app]})),
    nothing_left(Config).

a_node_that_is_late_leaves_nothing(Config) ->
    ?assertMatch({error, {node_failed, _, boot_timeout, _}}, atoll_cluster:start(#{nodes => 2, boot_timeout => 1})),
    nothing_left(Config).

a_progress_function_that_fails_leaves_nothing(Config) ->
    Progress = fun(0, _) -> ok; (1, _) -> error(tired) end,
    ?assertError(tired, atoll_cluster:start(#{nodes => 2, progress => Progress})),
    nothing_left(Config).

a_cluster_of_that_name_is_refused(_Config) ->
    Cluster = start(#{nodes => 1, name => "twice"}),
    ?assertEqual({error, {name_in_use, "twice"}}, atoll_cluster:start(#{nodes => 1, name => "twice"})),
    ?assertMatch([#{name := "twice"}], atoll_cluster:running()),
    ?assertEqual(1, length(alive(processes_of(Cluster)))).

%% `a' and its 11th node, `a1' and its first.
a_node_of_that_name_is_refused(_Config) ->
    _ = start(#{nodes => 1, name => "same1"}),
    ?assertEqual({error, {node_name_in_use, 'same11@127.0.0.1'}}, atoll_cluster:start(#{nodes => 11, name => "same"})),
    ?assertMatch([#{name := "same1"}], atoll_cluster:running()).

more_nodes_than_memory_are_refused(Config) ->
    {ok, Bytes} = atoll_cluster_os:available_memory(),
    Count = Bytes div 1000000,
    {error, {too_many_nodes, Count, Fits}} = atoll_cluster:start(#{nodes => Count}),
    ?assert(Fits < Count, {Fits, Count}),
    nothing_left(Config).

nodes_share_a_cookie_that_did_not_exist(Config) ->
    Home = filename:join(?config(temp, Config), "home"),
    ok = file:make_dir(Home),
    Env = [{"HOME", Home}, {"XDG_CONFIG_HOME", false}],
    {Vm, #{nodes := [#{log := Log} | _] = Nodes}} = hold(#{nodes => 4, parallel => 4}, Env, []),
    {ok, Cookie} = file:read_file(filename:join(Home, ".erlang.cookie")),
    ?assert(byte_size(Cookie) > 0),
    %% Had they made one each, a node would not let the asking one in.
    [#{node := Node} | Others] = Nodes,
    Eval = "[_|_] = [pong = net_adm:ping(N) || N <- " ++
        lists:flatten(io_lib:format("~0p", [[N || #{node := N} <- Nodes]])) ++ "], halt(0).",
    ?assert(length(Others) =:= 3 andalso is_list(Log) andalso is_atom(Node)),
    Erl = filename:join([code:root_dir(), "bin", "erl"]),
    Asking = open_port({spawn_executable, Erl},
        [{args, ["-noshell", "-hidden", "-name", "asking@127.0.0.1", "-eval", Eval]}, {env, Env}, exit_status]),
    receive
        {Asking, {exit_status, Status}} -> ?assertEqual(0, Status)
    after ?START_MS -> error(silent)
    end,
    end_vm(Vm, "halt").

%% Going

with_a_cluster_a_function_has_it_as_long_as_it_runs(Config) ->
    Ends = [{fun() -> done end, done}, {fun() -> throw(no) end, {throw, no}}, {fun() -> exit(no) end, {exit, no}}],
    [
        begin
            Up = fun(Cluster) ->
                ?assertMatch([_ | _], alive(processes_of(Cluster))),
                End()
            end,
            ?assertEqual(Ended, try atoll_cluster:with_cluster(#{nodes => 1}, Up) catch throw:Why -> {throw, Why}; exit:Why -> {exit, Why} end),
            nothing_left(Config)
        end
     || {End, Ended} <- Ends
    ],
    {error, Sentence} = atoll_cluster:with_cluster(#{nodes => 0}, fun(_) -> error(called) end),
    ?assertMatch({match, _}, re:run(Sentence, "nodes must be a whole number above 0")).

stop_returns_when_all_are_gone(Config) ->
    Cluster = start(#{nodes => 3}),
    [_, B, _] = atoll_cluster:nodes(Cluster),
    Processes = processes_of(Cluster),
    Watchdog = watchdog_of(Cluster),
    ?assertEqual(4, length(alive([Watchdog | Processes]))),
    ok = atoll_cluster:pause(Cluster, B),
    ok = atoll_cluster:stop(Cluster),
    ?assertEqual([], alive([Watchdog | Processes])),
    ?assertEqual(stopped, notice(Cluster)),
    ok = atoll_cluster:stop(Cluster),
    nothing_left(Config).

the_end_of_the_owner_takes_the_nodes_down(_Config) ->
    [owner_ends(fun(_Cluster) -> exit(Reason) end, fun atoll_cluster:start/1) || Reason <- [normal, crash]].

the_end_of_a_linked_owner_takes_the_nodes_down(_Config) ->
    [owner_ends(fun(_Cluster) -> exit(Reason) end, fun atoll_cluster:start_link/1) || Reason <- [normal, shutdown]].

the_end_of_the_server_takes_the_nodes_down(_Config) ->
    owner_ends(fun(Cluster) -> exit(Cluster, kill) end, fun atoll_cluster:start/1).

owner_ends(End, Start) ->
    Self = self(),
    Owner = spawn(fun() ->
        {ok, Cluster} = Start(#{nodes => 2}),
        [A, _] = atoll_cluster:nodes(Cluster),
        ok = atoll_cluster:pause(Cluster, A),
        Self ! {started, Cluster, processes_of(Cluster)},
        receive go -> End(Cluster) end
    end),
    receive
        {started, Cluster, Processes} ->
            2 = length(alive(Processes)),
            Ref = monitor(process, Cluster),
            Owner ! go,
            receive {'DOWN', Ref, process, Cluster, _} -> ok after ?EVENT_MS -> error(still_there) end,
            gone(Processes)
    after ?START_MS -> error(not_started)
    end.

kill_9_of_the_vm_takes_the_nodes_down(Config) ->
    vm_ends(Config, fun(Vm) -> signal(os_process(Vm), "KILL") end).

ctrl_c_takes_the_nodes_down(Config) ->
    vm_ends(Config, fun(Vm) -> signal(os_process(Vm), "INT") end).

sigterm_takes_the_nodes_down(Config) ->
    vm_ends(Config, fun(Vm) -> signal(os_process(Vm), "TERM") end).

halt_takes_the_nodes_down(Config) ->
    vm_ends(Config, fun(Vm) -> tell(Vm, "halt") end).

init_stop_takes_the_nodes_down(Config) ->
    vm_ends(Config, fun(Vm) -> tell(Vm, "stop") end).

%% One node is stopped by SIGSTOP when its VM ends.
vm_ends(Config, End) ->
    {Vm, #{nodes := Infos, watchdog_pid := WatchdogPid}} = hold(#{nodes => 3}),
    Processes = [First | _] = [process(OsPid) || #{os_pid := OsPid} <- Infos],
    Everything = [os_process(Vm), process(WatchdogPid) | Processes],
    signal(First, "STOP"),
    ?assertEqual(5, length(alive(Everything))),
    End(Vm),
    gone(Everything),
    nothing_left(Config),
    atoll_cluster_holder:close(Vm).

kill_9_while_starting_leaves_nothing(Config) ->
    Vm = atoll_cluster_holder:start(#{cluster => #{nodes => 12, parallel => 4}}),
    {progress, 0} = atoll_cluster_holder:next(Vm),
    {progress, 1} = atoll_cluster_holder:next(Vm),
    Begun = processes_in(Config),
    ?assertMatch([_, _ | _], Begun),
    VmProcess = os_process(Vm),
    signal(VmProcess, "KILL"),
    gone([VmProcess | Begun]),
    ok = until(fun() -> run_dirs(Config) =:= [] end, ?GONE_MS),
    %% Those that registered after the look have no entry any more to be found
    %% by; but each has its cluster's name on its command line.
    ?assertEqual([], beams_that_mention(filename:join(?config(run, Config), "atoll"))).

a_lost_watchdog_is_replaced(_Config) ->
    Cluster = start(#{nodes => 2}),
    [A, _] = atoll_cluster:nodes(Cluster),
    Lost = watchdog_of(Cluster),
    signal(Lost, "KILL"),
    %% The number of the lost one may be said until its end has been heard of.
    ok = until(fun() -> [Is || Is <- alive([watchdog_of(Cluster)]), Is =/= Lost] =/= [] end),
    [Again] = alive([watchdog_of(Cluster)]),
    ?assertEqual(A, atoll_cluster:call(Cluster, A, erlang, node, [])),
    Processes = processes_of(Cluster),
    ok = atoll_cluster:pause(Cluster, A),
    ok = atoll_cluster:stop(Cluster),
    ?assertEqual([], alive([Again | Processes])).

%% It is held at the life line by SIGSTOP, so that it is lost before it begins.
a_watchdog_lost_on_the_way_down_is_replaced(Config) ->
    Cluster = start(#{nodes => 2}),
    [A, _] = atoll_cluster:nodes(Cluster),
    Processes = processes_of(Cluster),
    ok = atoll_cluster:pause(Cluster, A),
    Watchdog = watchdog_of(Cluster),
    signal(Watchdog, "STOP"),
    {Stopper, Ref} = spawn_monitor(fun() -> ok = atoll_cluster:stop(Cluster) end),
    signal(Watchdog, "KILL"),
    receive {'DOWN', Ref, process, Stopper, Reason} -> normal = Reason after ?EVENT_MS -> error(hangs) end,
    ?assertEqual([], alive(Processes)),
    nothing_left(Config).

what_a_lost_vm_and_watchdog_left_is_swept(Config) ->
    {Vm, #{name := Name, nodes := Infos, watchdog_pid := WatchdogPid}} = hold(#{nodes => 2, name => "lost"}),
    Processes = [First, Second] = [process(OsPid) || #{os_pid := OsPid} <- Infos],
    signal(First, "STOP"),
    VmProcess = os_process(Vm),
    %% Stopped, it cannot replace the watchdog before it is killed.
    signal(VmProcess, "STOP"),
    signal(process(WatchdogPid), "KILL"),
    signal(VmProcess, "KILL"),
    gone([VmProcess, Second]),
    [First] = alive([First]),
    ?assertEqual([], atoll_cluster:running()),
    ?assertMatch({error, {not_running, Name}}, atoll_cluster:ask(Name, status)),
    Cluster = start(#{nodes => 1, name => Name}),
    ?assertEqual([], alive(Processes)),
    ok = atoll_cluster:stop(Cluster),
    atoll_cluster_holder:close(Vm),
    nothing_left(Config).

a_stop_by_name_sweeps_what_a_lost_vm_left(Config) ->
    {Vm, #{nodes := [#{os_pid := OsPid}], watchdog_pid := WatchdogPid}} = hold(#{nodes => 1, name => "lost"}),
    Process = process(OsPid),
    signal(Process, "STOP"),
    VmProcess = os_process(Vm),
    signal(VmProcess, "STOP"),
    signal(process(WatchdogPid), "KILL"),
    signal(VmProcess, "KILL"),
    gone([VmProcess]),
    ?assertEqual({ok, ok}, atoll_cluster:ask("lost", stop)),
    ?assertEqual([], alive([Process])),
    ?assertEqual({error, {not_running, "lost"}}, atoll_cluster:ask("lost", stop)),
    atoll_cluster_holder:close(Vm),
    nothing_left(Config).

a_process_of_another_start_time_is_left_alone(_Config) ->
    Cluster = start(#{nodes => 1}),
    #{dir := Dir} = atoll_cluster:info(Cluster),
    [Pids] = filelib:wildcard("pids.*", Dir),
    Bystander = open_port({spawn_executable, "/bin/cat"}, [exit_status]),
    {OsPid, Start} = Process = os_process(Bystander),
    Entry = io_lib:format("~b.~b.bystander@127.0.0.1", [OsPid, Start + 1]),
    ok = file:write_file(filename:join([Dir, Pids, Entry]), <<>>),
    ok = atoll_cluster:stop(Cluster),
    ?assertEqual([Process], alive([Process])),
    true = port_close(Bystander).

%% As a node does that is just starting its logger.
a_process_that_makes_its_log_directory_again_leaves_nothing(Config) ->
    Cluster = start(#{nodes => 1}),
    #{dir := Dir} = atoll_cluster:info(Cluster),
    [Pids] = filelib:wildcard("pids.*", Dir),
    Launch = filename:join(code:priv_dir(atoll_cluster), "launch"),
    Make = "while :; do mkdir -p \"$0/log\"; : >\"$0/log/made\"; done",
    Maker = open_port({spawn_executable, "/bin/sh"},
        [{args, [Launch, filename:join(Dir, Pids), "maker@127.0.0.1", "/dev/null", "/bin/sh", "-c", Make, Dir]}]),
    Process = os_process(Maker),
    ok = until(fun() -> filelib:is_file(filename:join([Dir, "log", "made"])) end),
    ok = atoll_cluster:stop(Cluster),
    ?assertEqual([], alive([Process])),
    ?assertEqual([], run_dirs(Config)).

a_launcher_that_is_late_starts_nothing(Config) ->
    Mark = filename:join(?config(temp, Config), "mark"),
    Launch = filename:join(code:priv_dir(atoll_cluster), "launch"),
    Run = fun(Pids) ->
        Port = open_port({spawn_executable, "/bin/sh"},
            [{args, [Launch, Pids, "late@127.0.0.1", "/dev/null", "/bin/touch", Mark]}, exit_status]),
        receive {Port, {exit_status, Status}} -> Status after ?EVENT_MS -> error(hangs) end
    end,
    ?assertNotEqual(0, Run(filename:join(?config(temp, Config), "no such directory"))),
    ?assertNot(filelib:is_file(Mark)),
    %% and it does start where it can register
    Pids = filename:join(?config(temp, Config), "pids here"),
    ok = file:make_dir(Pids),
    ?assertEqual(0, Run(Pids)),
    ?assert(filelib:is_file(Mark)),
    {ok, [Entry]} = file:list_dir(Pids),
    ?assertMatch({ok, {_, _}, "late@127.0.0.1"}, atoll_cluster_rundir:parse_entry(Entry)).

the_watchdog_ignores_what_a_terminal_sends(_Config) ->
    Cluster = start(#{nodes => 1}),
    Watchdog = watchdog_of(Cluster),
    [signal(Watchdog, Signal) || Signal <- ["INT", "TERM", "HUP", "QUIT"]],
    %% It serves to the end, and it is still the same.
    ?assertEqual([Watchdog], alive([watchdog_of(Cluster)])),
    Processes = processes_of(Cluster),
    ok = atoll_cluster:stop(Cluster),
    ?assertEqual([], alive([Watchdog | Processes])).

our_epmd_goes_and_another_stays(Config) ->
    Port = integer_to_list(atoll_test_port:free()),
    Env = [{"ERL_EPMD_PORT", Port}],
    false = epmd_runs(Port),
    {Vm1, #{}} = hold(#{nodes => 2}, Env, []),
    true = epmd_runs(Port),
    {Vm2, #{}} = hold(#{nodes => 1}, Env, []),
    end_vm(Vm1, "halt"),
    %% The other cluster still needs it.
    ok = until(fun() -> length(run_dirs(Config)) =:= 1 end, ?GONE_MS),
    true = epmd_runs(Port),
    signal(os_process(Vm2), "KILL"),
    atoll_cluster_holder:close(Vm2),
    ok = until(fun() -> not epmd_runs(Port) end, ?GONE_MS),
    nothing_left(Config),
    %% One that somebody else has started is left.
    _ = os:cmd("ERL_EPMD_PORT=" ++ Port ++ " epmd -daemon"),
    ok = until(fun() -> epmd_runs(Port) end),
    {Vm3, #{}} = hold(#{nodes => 1}, Env, []),
    end_vm(Vm3, "halt"),
    nothing_left(Config),
    ?assert(epmd_runs(Port)),
    "Killed" ++ _ = os:cmd("ERL_EPMD_PORT=" ++ Port ++ " epmd -kill").

%% Others

a_running_cluster_is_found_and_tells_its_status(_Config) ->
    {Vm, #{name := Name, dir := Dir, owner_pid := OwnerPid}} = hold(#{nodes => 2, name => "asked"}),
    ?assertEqual([#{name => Name, dir => Dir, owner_pid => OwnerPid}], atoll_cluster:running()),
    {ok, #{name := "asked", nodes := Nodes}} = atoll_cluster:ask("asked", status),
    ?assertMatch([#{node := <<"asked1@127.0.0.1">>, state := up, os_pid := _, connections := 0, memory := Bytes}, _]
        when is_integer(Bytes), Nodes),
    end_vm(Vm, "halt").

%% An atom of the nodes is none of who asks, and one that says nothing is told apart.
a_probe_is_asked_of_each_node(_Config) ->
    Cluster = start(#{nodes => 2, name => "probed", probe => {application, get_env, [kernel, inet_dist_use_interface]}}),
    ?assertMatch(#{nodes := [#{probe := {ok, {127, 0, 0, 1}}}, #{probe := {ok, {127, 0, 0, 1}}}]}, atoll_cluster:status(Cluster)),
    ok = atoll_cluster:kill(Cluster, lists:last(atoll_cluster:nodes(Cluster))),
    {ok, #{nodes := Nodes}} = atoll_cluster:ask("probed", status),
    ?assertMatch([#{probe := {<<"ok">>, {127, 0, 0, 1}}}, #{probe := undefined}], Nodes),
    Other = start(#{nodes => 1}),
    ?assertMatch(#{nodes := [#{probe := undefined}]}, atoll_cluster:status(Other)).

a_cluster_stops_when_it_is_asked_to(Config) ->
    {Vm, #{nodes := Infos}} = hold(#{nodes => 2, name => "asked"}),
    Processes = [process(OsPid) || #{os_pid := OsPid} <- Infos],
    ?assertEqual({ok, ok}, atoll_cluster:ask("asked", stop)),
    ?assertEqual([], alive(Processes)),
    ?assertEqual([], atoll_cluster:running()),
    end_vm(Vm, "halt"),
    nothing_left(Config).

a_cluster_that_does_not_run_is_told(_Config) ->
    ?assertEqual({error, {not_running, "nobody"}}, atoll_cluster:ask("nobody", status)),
    ?assertEqual({error, {not_running, "nobody"}}, atoll_cluster:ask("nobody", stop)).

rubbish_on_the_socket_is_refused(_Config) ->
    Cluster = start(#{nodes => 1, name => "rubbish"}),
    #{dir := Dir} = atoll_cluster:info(Cluster),
    Path = atoll_cluster_rundir:control(Dir),
    Ask = fun(Bin) ->
        {ok, Socket} = gen_tcp:connect({local, Path}, 0, [binary, {packet, 4}, {active, false}]),
        ok = gen_tcp:send(Socket, Bin),
        Answer = gen_tcp:recv(Socket, 0, ?EVENT_MS),
        ok = gen_tcp:close(Socket),
        Answer
    end,
    Refused = {ok, term_to_binary({error, unknown_request})},
    Unknown = <<131, 119, 20, "an_atom_never_to_be_">>,
    ?assertEqual(Refused, Ask(Unknown)),
    ?assertError(badarg, binary_to_existing_atom(<<"an_atom_", "never_to_be_">>)),
    ?assertEqual(Refused, Ask(<<"rubbish">>)),
    ?assertEqual(Refused, Ask(term_to_binary(halt))),
    ?assertMatch({error, _}, Ask(binary:copy(<<0>>, 1000))),
    ?assertMatch({ok, #{name := "rubbish"}}, atoll_cluster:ask("rubbish", status)).

%% Helpers

start(Options) ->
    {ok, Cluster} = atoll_cluster:start(Options),
    Cluster.

%% How that many calls of 10 KB to a silent node fail.
pile_up(Cluster, Node, Count) ->
    [
        try
            atoll_cluster:call(Cluster, Node, erlang, length, [lists:seq(1, 1000)], 0)
        catch
            error:Reason -> Reason
        end
     || _ <- lists:seq(1, Count)
    ].

notice(Cluster) ->
    receive
        {atoll_cluster, Cluster, Notice} -> Notice
    after ?EVENT_MS -> error(no_notice)
    end.

hold(Options) ->
    hold(Options, [], ["+Bd"]).

hold(Options, Env, Flags) ->
    Vm = atoll_cluster_holder:start(#{cluster => Options, env => Env, flags => Flags}),
    {Vm, atoll_cluster_holder:wait_for(Vm, started)}.

tell(Vm, Word) ->
    atoll_cluster_holder:tell(Vm, Word).

end_vm(Vm, Word) ->
    Process = os_process(Vm),
    tell(Vm, Word),
    gone([Process]),
    atoll_cluster_holder:close(Vm).

within(Ms, Fun) ->
    Before = erlang:monotonic_time(millisecond),
    try
        Fun()
    after
        Took = erlang:monotonic_time(millisecond) - Before,
        Took =< Ms orelse error({took, Took})
    end.

processes_of(Cluster) ->
    #{nodes := Nodes} = atoll_cluster:info(Cluster),
    [process(OsPid) || #{os_pid := OsPid} <- Nodes, OsPid =/= undefined].

watchdog_of(Cluster) ->
    case atoll_cluster:info(Cluster) of
        #{watchdog_pid := undefined} -> undefined;
        #{watchdog_pid := OsPid} -> process(OsPid)
    end.

%% The start time is looked up at once, so that the number cannot be another's.
process(OsPid) ->
    case atoll_cluster_os:start_time(OsPid) of
        {ok, Start} -> {OsPid, Start};
        gone -> {OsPid, 0}
    end.

os_process(Port) ->
    {os_pid, OsPid} = erlang:port_info(Port, os_pid),
    process(OsPid).

processes_in(Config) ->
    [Process || Path <- filelib:wildcard("atoll/*/pids.*/*", ?config(run, Config)),
        {ok, Process, _} <- [atoll_cluster_rundir:parse_entry(filename:basename(Path))]].

run_dirs(Config) ->
    case file:list_dir_all(filename:join(?config(run, Config), "atoll")) of
        {ok, Names} -> Names -- ["epmd"];
        {error, enoent} -> []
    end.

nothing_left(Config) ->
    ok = until(fun() -> run_dirs(Config) =:= [] end, ?GONE_MS).

beams_that_mention(Text) ->
    [Path || Path <- filelib:wildcard("/proc/[0-9]*/cmdline"),
        {ok, Cmd} <- [file:read_file(Path)],
        binary:match(Cmd, <<"beam">>) =/= nomatch,
        binary:match(Cmd, unicode:characters_to_binary(Text)) =/= nomatch].

alive(Processes) ->
    [P || P <- Processes, atoll_cluster_os:state(P) =/= gone].

gone(Processes) ->
    case until(fun() -> alive(Processes) =:= [] end, ?GONE_MS) of
        ok -> ok;
        late -> error({still_there, alive(Processes)})
    end.

signal({OsPid, _}, Signal) ->
    "" = os:cmd("kill -" ++ Signal ++ " " ++ integer_to_list(OsPid)),
    ok.

epmd_runs(Port) ->
    case gen_tcp:connect({127, 0, 0, 1}, list_to_integer(Port), []) of
        {ok, Socket} -> ok = gen_tcp:close(Socket), true;
        {error, _} -> false
    end.

%% For what happens in other operating system processes, where no event comes.
until(Condition) ->
    until(Condition, ?EVENT_MS).

until(Condition, Ms) ->
    until_deadline(Condition, erlang:monotonic_time(millisecond) + Ms).

until_deadline(Condition, Deadline) ->
    case {Condition(), erlang:monotonic_time(millisecond) < Deadline} of
        {true, _} -> ok;
        {false, false} -> late;
        {false, true} ->
            receive after 20 -> ok end,
            until_deadline(Condition, Deadline)
    end.
