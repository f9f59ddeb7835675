%% The command line as a user has it: bin/atoll as a process of the operating
%% system, on real nodes.
-module(atoll_cli_SUITE).
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([help_is_data/1, help_comes_at_once/1, wrong_usage_says_one_sentence_and_starts_nothing/1,
         orbit_prints_one_object/1, orbit_prints_a_table/1, every_mode_finds_the_same_set/1,
         a_killed_node_fails_the_run_and_is_named/1, a_silent_node_fails_the_run_and_is_named/1,
         up_holds_a_mesh_until_ctrl_c/1, up_holds_groups_until_down/1,
         up_takes_a_carrier_and_links_shows_its_connections/1, nodes_reach_each_other_over_gateways_and_route_says_how/1,
         links_of_stock_nodes_are_shown_too/1,
         up_holds_an_overlay_and_status_tells_of_it/1, groups_are_cliques_of_an_overlay/1,
         groups_of_a_held_cluster_are_changed_and_shown/1, a_group_that_does_not_get_all_its_nodes_is_told/1,
         names_are_shown_and_checked/1, names_of_free_nodes_are_shown/1,
         a_topology_is_drawn_without_a_cluster/1,
         a_script_ends_with_the_same_facts_in_both_worlds/1, an_expectation_that_fails_on_real_nodes_fails_the_run/1,
         a_held_cluster_is_harmed_and_stays/1, a_script_that_cannot_be_played_starts_nothing/1,
         faults_at_a_rate_print_one_object/1, an_interrupted_harm_says_what_happened/1,
         a_shell_can_be_attached/1, a_name_is_taken_once/1,
         nothing_runs_and_nothing_can_be_stopped/1,
         a_run_directory_that_cannot_be_used_is_told/1,
         a_closed_output_is_no_crash/1, output_that_is_lost_fails_the_command/1,
         it_runs_from_anywhere/1, a_terminal_gets_a_bar/1,
         every_experiment_prints_its_keys_first/1, a_simulation_is_repeated_by_its_line/1,
         a_simulation_prints_a_table/1, a_terminal_sees_the_virtual_time/1,
         a_trace_is_written_and_shown/1, a_trace_that_is_cut_is_shown_and_told/1,
         a_recording_is_replayed/1, a_node_s_recordings_are_replayed/1,
         an_interrupted_run_leaves_the_old_trace/1, no_file_is_read_and_destroyed/1, a_file_that_cannot_be_written_is_told/1,
         a_strategy_of_ones_own_is_run/1, a_script_is_played/1, a_script_that_fails_is_repeated_by_its_line/1,
         a_script_that_is_wrong_is_told_with_its_line/1,
         a_demo_that_is_killed_leaves_nothing/1, a_demo_that_is_interrupted_leaves_nothing/1,
         a_demo_whose_make_alone_is_interrupted_leaves_nothing/1,
         a_demo_whose_vm_is_killed_leaves_nothing/1]).

%% How long what was started may outlive its program.
-define(GONE_MS, 5000).

suite() ->
    [{timetrap, {minutes, 6}}].

all() ->
    [help_is_data, help_comes_at_once, wrong_usage_says_one_sentence_and_starts_nothing,
     orbit_prints_one_object, orbit_prints_a_table, every_mode_finds_the_same_set,
     a_killed_node_fails_the_run_and_is_named, a_silent_node_fails_the_run_and_is_named,
     up_holds_a_mesh_until_ctrl_c, up_holds_groups_until_down,
     up_takes_a_carrier_and_links_shows_its_connections, nodes_reach_each_other_over_gateways_and_route_says_how,
     links_of_stock_nodes_are_shown_too,
     up_holds_an_overlay_and_status_tells_of_it, groups_are_cliques_of_an_overlay,
     groups_of_a_held_cluster_are_changed_and_shown, a_group_that_does_not_get_all_its_nodes_is_told,
     names_are_shown_and_checked, names_of_free_nodes_are_shown,
     a_topology_is_drawn_without_a_cluster,
     a_script_ends_with_the_same_facts_in_both_worlds, an_expectation_that_fails_on_real_nodes_fails_the_run,
     a_held_cluster_is_harmed_and_stays, a_script_that_cannot_be_played_starts_nothing,
     faults_at_a_rate_print_one_object, an_interrupted_harm_says_what_happened,
     a_shell_can_be_attached, a_name_is_taken_once,
     nothing_runs_and_nothing_can_be_stopped,
     a_run_directory_that_cannot_be_used_is_told, a_closed_output_is_no_crash,
     output_that_is_lost_fails_the_command, it_runs_from_anywhere, a_terminal_gets_a_bar,
     every_experiment_prints_its_keys_first, a_simulation_is_repeated_by_its_line,
     a_simulation_prints_a_table, a_terminal_sees_the_virtual_time,
     a_trace_is_written_and_shown, a_trace_that_is_cut_is_shown_and_told,
     a_recording_is_replayed, a_node_s_recordings_are_replayed,
     an_interrupted_run_leaves_the_old_trace, no_file_is_read_and_destroyed, a_file_that_cannot_be_written_is_told,
     a_strategy_of_ones_own_is_run, a_script_is_played, a_script_that_fails_is_repeated_by_its_line,
     a_script_that_is_wrong_is_told_with_its_line,
     a_demo_that_is_killed_leaves_nothing, a_demo_that_is_interrupted_leaves_nothing,
     a_demo_whose_make_alone_is_interrupted_leaves_nothing,
     a_demo_whose_vm_is_killed_leaves_nothing].

%% What is tested is what is built: the first command may have to build it.
init_per_suite(Config) ->
    Dir = atoll_cli_os:new_dir(),
    #{status := 0} = atoll_cli_os:run(Dir, ["version"]),
    ok = atoll_cli_os:remove_dir(Dir),
    Config.

end_per_suite(_) ->
    ok.

init_per_testcase(Case, Config) when Case =:= a_shell_can_be_attached;
                                     Case =:= a_terminal_gets_a_bar;
                                     Case =:= a_terminal_sees_the_virtual_time ->
    case os:cmd("script -qec true /dev/null >/dev/null 2>&1 && echo yes") of
        "yes" ++ _ -> [{dir, atoll_cli_os:new_dir()} | Config];
        _ -> {skip, "this system gives no pseudo-terminals"}
    end;
init_per_testcase(_, Config) ->
    [{dir, atoll_cli_os:new_dir()} | Config].

end_per_testcase(_, Config) ->
    ok = atoll_cli_os:remove_dir(dir(Config)).

help_is_data(Config) ->
    #{status := 0, stdout := Page, stderr := <<>>} = atoll_cli_os:run(dir(Config), ["help"]),
    [?assertMatch({_, _}, binary:match(Page, list_to_binary(["\n  ", Name, " "])))
     || {Name, _} <- atoll_cli:commands()],
    #{status := 0, stdout := Orbit, stderr := <<>>} =
        atoll_cli_os:run(dir(Config), ["help", "orbit"]),
    ?assertMatch(#{status := 0, stdout := Orbit, stderr := <<>>},
                 atoll_cli_os:run(dir(Config), ["orbit", "--help"])),
    ?assertMatch(#{status := 0, stdout := <<"atoll 0.", _/binary>>, stderr := <<>>},
                 atoll_cli_os:run(dir(Config), ["--version"])).

%% What the front door adds to the start of a VM, by turns with a bare one: the
%% machine may be busy, but it is for both.
help_comes_at_once(Config) ->
    Took = fun(What) ->
        {Us, #{status := 0}} = timer:tc(fun() ->
            atoll_cli_os:await_exit(atoll_cli_os:start(dir(Config), What), 30000)
        end),
        Us
    end,
    {Bare, Help} = lists:unzip([
        {Took({sh, "exec erl -noinput -boot no_dot_erlang -s erlang halt"}), Took(["help"])}
     || _ <- lists:seq(1, 7)
    ]),
    ?assert(lists:min(Help) < 3 * lists:min(Bare), {Bare, Help}).

wrong_usage_says_one_sentence_and_starts_nothing(Config) ->
    Wrong = [
        {["orbit", "--generators", "g9"], "--generators "},
        {["orbit", "--space", "0"], "--space "},
        {["orbit", "--space", "abc"], "--space "},
        {["orbit", "--nodes", "2", "--group-size", "3"], "--group-size "},
        {["orbit", "--mode", "star"], "--mode "},
        {["orbit", "--space"], "--space "},
        {["orbit", "--json", "--json"], "--json "},
        {["orbit", "g124"], "\"g124\""},
        {["frobnicate"], "\"frobnicate\""},
        {[], "a command is missing"},
        {["orbit", "--frobnicate"], " --frobnicate"},
        {["up", "3", "--groups", "4"], "--groups "},
        {["up", "3", "--carrier", "tcp"], "--carrier "},
        {["up", "3", "--carrier", "atoll", "--kind", "lanes65"], "lanesN"},
        {["up", "3", "--kind", "direct"], "--kind is for --carrier atoll"},
        {["up", "3", "--faults"], "--faults is for --carrier atoll"},
        {["up", "3", "--groups", "2", "--relay"], "--relay is for --carrier atoll"},
        {["up", "3", "--groups", "2", "--carrier", "atoll", "--seal"], "--seal is for --relay"},
        {["up", "3", "--carrier", "atoll", "--relay"], "--relay wants --groups K or --overlay STRATEGY"},
        {["up", "5", "--groups", "2", "--gateways", "3"], "--gateways must be at most the number of nodes of a group, which is 2"},
        {["up", "5", "--gateways", "2"], "--gateways is for --groups"},
        {["chaos", "random", "--name", "reef", "--carrier", "atoll"], "--carrier is for a cluster that is started"},
        {["sim"], "overlay, broadcast, detect, directory, reach"},
        {["sim", "directory", "--topology", "line"], "--topology "},
        {["sim", "directory", "--option", "size=3"], "the directory has no option"},
        {["sim", "directory", "--option", "gather_ms=x"], "gather_ms must be a whole number above 0"},
        {["sim", "directory", "--churn", "0.3", "--minutes", "2"], "--churn times --minutes"},
        {["sim", "directory", "--group-size", "3", "--gateways", "9"], "gateways"},
        {["sim", "overlay", "--strategy", "ring"], "\"ring\""},
        {["sim", "overlay", "--kill", "1.5"], "--kill "}
    ],
    [begin
        #{status := Status, stdout := Stdout, stderr := Stderr} =
            atoll_cli_os:run(dir(Config), Args),
        ?assertEqual({Args, 2, <<>>}, {Args, Status, Stdout}),
        ?assertMatch([_, <<>>], binary:split(Stderr, <<"\n">>, [global]), Stderr),
        ?assertMatch({_, _}, binary:match(Stderr, list_to_binary(Flag)), Stderr)
     end
     || {Args, Flag} <- Wrong],
    %% Not even the directory in which clusters are kept has been made.
    ?assertEqual([], [F || F <- filelib:wildcard("*", dir(Config)), not lists:prefix("stderr.", F)]).

orbit_prints_one_object(Config) ->
    #{status := 0, stdout := Stdout} = atoll_cli_os:run(dir(Config), [
        "orbit", "--generators", "g12345", "--space", "1000", "--mode", "groups", "--nodes", "5",
        "--group-size", "2", "--workers", "2", "--json"]),
    ?assertMatch([_, <<>>], binary:split(Stdout, <<"\n">>, [global])),
    ?assertEqual([<<"mode">>, <<"generators">>, <<"space">>, <<"size">>, <<"vertices_received">>,
                  <<"wall_ms">>, <<"nodes">>, <<"connections_max">>, <<"connections_mean">>,
                  <<"messages">>, <<"vertex">>, <<"gateway">>, <<"credit">>, <<"control">>, <<"packets">>],
                 keys(Stdout)),
    ?assertMatch(#{<<"mode">> := <<"groups">>, <<"generators">> := <<"g12345">>,
                   <<"space">> := 1000, <<"size">> := 968, <<"vertices_received">> := 4841,
                   <<"nodes">> := 5},
                 atoll_cli_os:decode(Stdout)),
    #{<<"connections_max">> := Max, <<"messages">> := Messages, <<"packets">> := Packets} = atoll_cli_os:decode(Stdout),
    %% A gateway of groups of 2 and 3: its group's members and the other gateway.
    ?assertEqual(3, Max),
    ?assert(lists:all(fun(N) -> is_integer(N) andalso N >= 0 end, maps:values(Messages))),
    %% All but the last ones that say the result.
    ?assert(Packets >= lists:sum(maps:values(Messages)) - 5),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config), ?GONE_MS)).

orbit_prints_a_table(Config) ->
    #{status := 0, stdout := Stdout, stderr := Stderr} = atoll_cli_os:run(dir(Config), [
        "orbit", "--space", "1000", "--mode", "mesh", "--nodes", "3"]),
    ?assertMatch({match, _}, re:run(Stdout, "^size +854$", [multiline])),
    ?assertMatch({match, _}, re:run(Stdout, "^vertices received +2,563$", [multiline])),
    ?assertMatch({match, _}, re:run(Stdout, "^connections of a node, at most +2$", [multiline])),
    ?assertMatch({match, _}, re:run(Stdout, "^packets between nodes +[0-9,]+$", [multiline])),
    %% Talk has no escape sequences where there is no terminal.
    ?assertMatch({_, _}, binary:match(Stderr, <<"Starting nodes: 3 of 3\n">>)),
    ?assertEqual(nomatch, binary:match(Stderr, <<"\e">>)).

every_mode_finds_the_same_set(Config) ->
    Found = [begin
        #{status := 0, stdout := Stdout} = atoll_cli_os:run(dir(Config), [
            "orbit", "--space", "1000", "--mode", Mode, "--nodes", "4", "--group-size", "2",
            "--json"]),
        Result = atoll_cli_os:decode(Stdout),
        ?assertMatch(#{<<"nodes">> := Nodes}, Result, Mode),
        maps:with([<<"size">>, <<"vertices_received">>], Result)
     end
     || {Mode, Nodes} <- [{"seq", 1}, {"par", 1}, {"mesh", 4}, {"groups", 4}, {"ring", 4},
                           {"groups-native", 4}]],
    ?assertEqual([#{<<"size">> => 854, <<"vertices_received">> => 2563}], lists:usort(Found)).

a_killed_node_fails_the_run_and_is_named(Config) ->
    {Program, {Pid, Name}} = start_long_run(Config),
    ok = atoll_cli_os:signal(Pid, "KILL"),
    #{status := 1, stdout := <<>>, stderr := Stderr} = atoll_cli_os:await_exit(Program, 10000),
    ?assertMatch({_, _}, binary:match(Stderr, list_to_binary(Name)), Stderr),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config), ?GONE_MS)).

a_silent_node_fails_the_run_and_is_named(Config) ->
    {Program, {Pid, Name}} = start_long_run(Config),
    ok = atoll_cli_os:signal(Pid, "STOP"),
    #{status := 1, stdout := <<>>, stderr := Stderr} = atoll_cli_os:await_exit(Program, 30000),
    ?assertMatch({_, _}, binary:match(Stderr, list_to_binary(Name)), Stderr),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config), ?GONE_MS)).

up_holds_a_mesh_until_ctrl_c(Config) ->
    Program = atoll_cli_os:start(dir(Config), ["up", "3"]),
    Said = atoll_cli_os:await_line(Program, stdout, <<"atoll down atoll\n">>),
    ?assertMatch({match, [_, _, _]},
                 re:run(Said, "^atoll[1-3]@127.0.0.1 +- +2$", [multiline, global])),
    ok = atoll_cli_os:signal_group(Program, "INT"),
    #{status := Status} = atoll_cli_os:await_exit(Program, ?GONE_MS),
    ?assertEqual(128 + 2, Status),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config), ?GONE_MS)).

up_holds_groups_until_down(Config) ->
    Program = atoll_cli_os:start(dir(Config), ["up", "5", "--groups", "2", "--name", "reef"]),
    Said = atoll_cli_os:await_line(Program, stdout, <<"atoll down reef\n">>),
    [?assertMatch({match, _}, re:run(Said, Line, [multiline]), Said)
     || Line <- ["^reef1@127.0.0.1 +group1 gateways +3$", "^reef2@127.0.0.1 +group1 +2$",
                 "^reef4@127.0.0.1 +group2 gateways +2$", "^reef5@127.0.0.1 +group2 +1$"]],
    #{status := 0, stdout := Table} = atoll_cli_os:run(dir(Config), ["status"]),
    ?assertMatch({match, _}, re:run(Table, "^reef +reef1@127.0.0.1 +up +3 ", [multiline])),
    #{status := 0, stdout := Json} = atoll_cli_os:run(dir(Config), ["status", "--json"]),
    ?assertMatch(#{<<"clusters">> := [#{<<"name">> := <<"reef">>, <<"nodes">> := [_, _, _, _, _]}]},
                 atoll_cli_os:decode(Json)),
    %% They run no overlay.
    #{<<"clusters">> := [#{<<"nodes">> := [First | _]}]} = atoll_cli_os:decode(Json),
    ?assertMatch(#{<<"overlay">> := null, <<"neighbours">> := null, <<"members">> := null, <<"parts">> := null}, First),
    #{<<"groups">> := Groups, <<"names">> := Names} = First,
    ?assertEqual(
        [{<<"gateways">>, [1, 4]}, {<<"group1">>, [1, 2, 3]}],
        [{Group, numbers(Members)} || #{<<"group">> := Group, <<"nodes">> := Members} <- Groups]
    ),
    ?assertMatch(#{<<"names">> := 0, <<"operations">> := 0, <<"counters">> := #{<<"sent">> := _}}, Names),
    %% Without a name it means the cluster that `up' without a name has started.
    ?assertMatch(
        #{status := 1, stderr := <<"atoll down: No cluster named atoll is running, only reef.\n">>},
        atoll_cli_os:run(dir(Config), ["down"])),
    ?assertMatch(#{status := 0, stdout := <<>>}, atoll_cli_os:run(dir(Config), ["down", "reef"])),
    ?assertMatch(#{status := 0}, atoll_cli_os:await_exit(Program, ?GONE_MS)),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config), ?GONE_MS)).

%% Groups too, which are changed over a connection that this program makes without the
%% carrier.
up_takes_a_carrier_and_links_shows_its_connections(Config) ->
    Up = ["up", "4", "--groups", "2", "--carrier", "atoll", "--kind", "lanes2", "--name", "reef"],
    Program = atoll_cli_os:start(dir(Config), Up),
    _ = atoll_cli_os:await_line(Program, stdout, <<"atoll down reef\n">>),
    #{status := 0, stdout := Json} = atoll_cli_os:run(dir(Config), ["links", "reef", "--json"]),
    #{<<"cluster">> := <<"reef">>, <<"links">> := Links, <<"silent">> := []} = atoll_cli_os:decode(Json),
    %% The two of each group, and the gateways.
    ?assertEqual([[1, 2], [1, 3], [3, 4]], lists:sort([lists:sort(numbers([F, T])) || #{<<"from">> := F, <<"to">> := T} <- Links])),
    [
        begin
            ?assertMatch(#{<<"kind">> := <<"lanes2">>, <<"connected_by">> := From}, Link),
            [?assert(is_integer(map_get(Key, Link)), Link) || Key <- [<<"rtt_us">>, <<"age_ms">>, <<"bytes_there">>, <<"bytes_back">>]]
        end
     || #{<<"from">> := From} = Link <- Links
    ],
    #{status := 0, stdout := Table} = atoll_cli_os:run(dir(Config), ["links", "reef"]),
    [Head | Rows] = binary:split(Table, <<"\n">>, [global, trim]),
    ?assertMatch({match, _}, re:run(Head, "^from +to +kind +round trip +connected by +up for +bytes there +bytes back$")),
    Row = "^(reef[1-4]@127.0.0.1) +reef[1-4]@127.0.0.1 +lanes2 +(?:[1-9][0-9]* \x{b5}s|[1-9][0-9.,]* ms) +\\g1 +[0-9.]+ s +[0-9,]+ +[0-9,]+$",
    ?assertMatch([{match, _}, {match, _}, {match, _}], [re:run(R, Row, [unicode]) || R <- Rows], Table),
    ?assertMatch(
        #{status := 1, stdout := <<>>, stderr := <<"atoll links: No cluster named atoll is running, only reef.\n">>},
        atoll_cli_os:run(dir(Config), ["links"])
    ),
    ?assertMatch(#{status := 0}, atoll_cli_os:run(dir(Config), ["group", "new", "fish", "reef2", "reef4", "--name", "reef"])),
    #{status := 0} = atoll_cli_os:run(dir(Config), ["down", "reef"]),
    ?assertMatch(#{status := 0}, atoll_cli_os:await_exit(Program, ?GONE_MS)),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config), ?GONE_MS)).

%% And says so when there is no way any more, and why.
nodes_reach_each_other_over_gateways_and_route_says_how(Config) ->
    Up = ["up", "6", "--groups", "2", "--gateways", "2", "--carrier", "atoll", "--relay", "--seal", "--name", "reef"],
    Program = atoll_cli_os:start(dir(Config), Up),
    _ = atoll_cli_os:await_line(Program, stdout, <<"atoll down reef\n">>),
    Does = fun(Args) -> atoll_cli_os:run(dir(Config), Args ++ ["--name", "reef"]) end,
    #{status := 0, stdout := Json} = Does(["route", "reef3", "reef6", "--json"]),
    #{<<"path">> := Path, <<"hops">> := Hops, <<"alternatives">> := Others, <<"now">> := Now} = atoll_cli_os:decode(Json),
    [3, G, H, 6] = numbers(Path),
    ?assert(lists:member(G, [1, 2]) andalso lists:member(H, [4, 5])),
    ?assertMatch([[_, _, _, _], [_, _, _, _], [_, _, _, _]], Others),
    ?assertMatch(
        [#{<<"group">> := <<"group1">>, <<"choices">> := 1}, #{<<"group">> := <<"gateways">>, <<"choices">> := 2},
         #{<<"group">> := <<"group2">>, <<"choices">> := 2}],
        Hops
    ),
    ?assertEqual(#{<<"kind">> => <<"none">>, <<"path">> => null}, Now),
    %% A plain ping does it.
    ok = on_node(3, "pong = net_adm:ping('reef6@127.0.0.1')", Config),
    #{status := 0, stdout := Table} = Does(["route", "reef3", "reef6"]),
    ?assertMatch({match, _}, re:run(Table, "^from +to +why +others that would do$", [multiline])),
    ?assertMatch({match, _}, re:run(Table, "^reef3@127.0.0.1 +reef[12]@127.0.0.1 +both are in group1 +-$", [multiline])),
    ?assertMatch({match, _}, re:run(Table, "^reef[12]@127.0.0.1 +reef[45]@127.0.0.1 +both are in gateways +1$", [multiline])),
    ?assertMatch({match, _}, re:run(Table, "^now +they are connected over reef[12]@127.0.0.1 reef[45]@127.0.0.1$", [multiline])),
    #{status := 0, stdout := Said} = atoll_cli_os:run(dir(Config), ["links", "reef", "--json"]),
    #{<<"links">> := Links, <<"relays">> := Relays} = atoll_cli_os:decode(Said),
    [#{<<"path">> := Over, <<"from">> := From, <<"sealed">> := true}] = [L || #{<<"kind">> := <<"relay">>} = L <- Links],
    ?assertMatch({[3, A, B, 6], [3]} when A < 3 andalso B > 3, {numbers(Over), numbers([From])}),
    ?assertEqual(lists:sort(numbers(Over) -- [3, 6]), numbers([Node || #{<<"node">> := Node, <<"circuits">> := 1} <- Relays])),
    %% Each plain node has the links of its group, and no more.
    ?assertEqual(2, length([L || #{<<"from">> := F, <<"to">> := T, <<"path">> := null} = L <- Links, lists:member(3, numbers([F, T]))])),
    #{status := 0, stdout := Shown} = atoll_cli_os:run(dir(Config), ["links", "reef"]),
    ?assertMatch({match, _}, re:run(Shown, "^reef3@127.0.0.1 +reef6@127.0.0.1 +relay .* reef[12]@127.0.0.1 reef[45]@127.0.0.1, sealed$", [multiline])),
    ?assertMatch({match, [_, _]}, re:run(Shown, "^reef[1245]@127.0.0.1 +1 +1 +0 +0 +0 +[0-9,]+ +134,217,728 +[0-9,]+$", [multiline, global])),
    [ok = on_node(I, "ok = application:stop(atoll)", Config) || I <- [1, 2, 6]],
    [
        begin
            Line = iolist_to_binary(["atoll route: ", Sentence, $\n]),
            ?assertMatch({#{status := Status, stdout := <<>>, stderr := Line}, _}, {Does(["route" | Args]), Args})
        end
     || {Status, Args, Sentence} <- [
            {1, ["reef3", "reef4"], "no chain of groups and links leads from reef3@127.0.0.1 to reef4@127.0.0.1"},
            {1, ["reef6", "reef3"], "atoll does not run on this node"},
            {2, ["reef3", "reef7"], "the cluster has no node reef7; did you mean reef1?"},
            {2, ["reef3", "reef3@127.0.0.1"], "FROM and TO must be two nodes"}
        ]
    ],
    #{status := 0} = atoll_cli_os:run(dir(Config), ["down", "reef"]),
    ?assertMatch(#{status := 0}, atoll_cli_os:await_exit(Program, ?GONE_MS)),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config), ?GONE_MS)).

links_of_stock_nodes_are_shown_too(Config) ->
    ?assertMatch(
        #{status := 1, stdout := <<>>, stderr := <<"atoll links: No cluster named atoll is running", _/binary>>},
        atoll_cli_os:run(dir(Config), ["links"])
    ),
    Program = atoll_cli_os:start(dir(Config), ["up", "3"]),
    _ = atoll_cli_os:await_line(Program, stdout, <<"atoll down atoll\n">>),
    #{status := 0, stdout := Json} = atoll_cli_os:run(dir(Config), ["links", "--json"]),
    #{<<"links">> := [First, _, _]} = atoll_cli_os:decode(Json),
    ?assertMatch(
        #{<<"from">> := <<"atoll1@127.0.0.1">>, <<"to">> := <<"atoll2@127.0.0.1">>, <<"kind">> := <<"stock">>,
          <<"rtt_us">> := null, <<"connected_by">> := null, <<"age_ms">> := null},
        First
    ),
    #{status := 0, stdout := Table} = atoll_cli_os:run(dir(Config), ["links"]),
    ?assertMatch({match, _}, re:run(Table, "^atoll2@127.0.0.1 +atoll3@127.0.0.1 +stock +- +- +- +[0-9,]+ +[0-9,]+$", [multiline])),
    #{status := 0} = atoll_cli_os:run(dir(Config), ["down"]),
    ?assertMatch(#{status := 0}, atoll_cli_os:await_exit(Program, ?GONE_MS)),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config), ?GONE_MS)).

up_holds_an_overlay_and_status_tells_of_it(Config) ->
    Program = atoll_cli_os:start(dir(Config), ["up", "5", "--overlay", "hyparview", "--option", "active_max=4", "--name", "reef"]),
    Said = atoll_cli_os:await_line(Program, stdout, <<"atoll down reef\n">>),
    ?assertMatch({match, _}, re:run(Said, "^node +neighbours +connections +members$", [multiline])),
    {match, Rows} = re:run(Said, "^reef[1-5]@127.0.0.1 +([1-4]) +([1-4]) +5$", [multiline, global]),
    ?assertEqual(5, length(Rows)),
    #{status := 0, stdout := Table} = atoll_cli_os:run(dir(Config), ["status"]),
    ?assertMatch({match, _}, re:run(Table, "^reef +reef1@127.0.0.1 +up +[1-4] +hyparview +[1-4] +5 ", [multiline])),
    #{status := 0, stdout := Json} = atoll_cli_os:run(dir(Config), ["status", "--json"]),
    #{<<"clusters">> := [#{<<"nodes">> := Nodes}]} = atoll_cli_os:decode(Json),
    Views = maps:from_list([{Node, Neighbours} || #{<<"node">> := Node, <<"neighbours">> := Neighbours} <- Nodes]),
    ?assertEqual(5, map_size(Views)),
    [?assert(is_map_key(Peer, Views)) || Peers <- maps:values(Views), Peer <- Peers],
    [begin
        ?assertMatch(#{<<"overlay">> := <<"hyparview">>, <<"members">> := 5}, Node),
        ?assertMatch(#{<<"parts">> := #{<<"counters">> := #{<<"sent">> := N}, <<"strategy">> := #{<<"bounds">> := #{<<"active_max">> := 4}},
                                        <<"outbox">> := #{<<"dropped">> := 0}}} when N > 0, Node)
     end
     || Node <- Nodes],
    ?assertMatch(#{status := 0}, atoll_cli_os:run(dir(Config), ["down", "reef"])),
    ?assertMatch(#{status := 0}, atoll_cli_os:await_exit(Program, ?GONE_MS)),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config), ?GONE_MS)).

groups_are_cliques_of_an_overlay(Config) ->
    Program = atoll_cli_os:start(dir(Config), ["up", "6", "--groups", "2", "--overlay", "cliques", "--name", "reef"]),
    Said = atoll_cli_os:await_line(Program, stdout, <<"atoll down reef\n">>),
    [?assertMatch({match, _}, re:run(Said, Line, [multiline]), Said)
     || Line <- ["^reef1@127.0.0.1 +group1 gateways +3 +3 +6$", "^reef2@127.0.0.1 +group1 +2 +2 +6$",
                 "^reef4@127.0.0.1 +group2 gateways +3 +3 +6$", "^reef6@127.0.0.1 +group2 +2 +2 +6$"]].

%% Groups

groups_of_a_held_cluster_are_changed_and_shown(Config) ->
    Program = atoll_cli_os:start(dir(Config), ["up", "5", "--groups", "2", "--name", "reef"]),
    _ = atoll_cli_os:await_line(Program, stdout, <<"atoll down reef\n">>),
    Does = fun(Args) ->
        #{status := 0, stdout := Stdout} = atoll_cli_os:run(dir(Config), ["group" | Args] ++ ["--name", "reef"]),
        Stdout
    end,
    ?assertEqual(<<"group  fish\nnodes  reef2@127.0.0.1 reef5@127.0.0.1\n">>, Does(["new", "fish", "reef5", "reef2@127.0.0.1"])),
    ?assertEqual(
        #{<<"group">> => <<"fish">>, <<"nodes">> => [node_of(2), node_of(3), node_of(5)], <<"added">> => [node_of(3)], <<"left_out">> => []},
        atoll_cli_os:decode(Does(["add", "fish", "reef3", "reef2", "--json"]))
    ),
    ?assertEqual(
        #{<<"group">> => <<"fish">>, <<"nodes">> => [node_of(3), node_of(5)], <<"removed">> => [node_of(2)]},
        atoll_cli_os:decode(Does(["remove", "fish", "reef2", "reef1", "--json"]))
    ),
    ?assertMatch({match, _}, re:run(Does(["list"]), "^fish +2 +2 +reef3@127.0.0.1 reef5@127.0.0.1$", [multiline])),
    #{<<"cluster">> := <<"reef">>, <<"free">> := [], <<"silent">> := [], <<"groups">> := Groups} = atoll_cli_os:decode(Does(["list", "--json"])),
    ?assertEqual(
        [{<<"fish">>, [3, 5], [3, 5]}, {<<"gateways">>, [1, 4], [1, 4]}, {<<"group1">>, [1, 2, 3], [1, 3]}, {<<"group2">>, [4, 5], [4, 5]}],
        [{Name, numbers(Nodes), numbers(Gateways)} || #{<<"group">> := Name, <<"nodes">> := Nodes, <<"gateways">> := Gateways} <- Groups]
    ),
    ?assertMatch({match, _}, re:run(Does(["draw"]), "^group2 +reef4@127.0.0.1\\* reef5@127.0.0.1\\*$", [multiline])),
    Svg = filename:join(dir(Config), "reef.svg"),
    Dot = filename:join(dir(Config), "reef.dot"),
    ?assertEqual(<<>>, Does(["draw", "--svg", Svg, "--dot", Dot])),
    {ok, Picture} = file:read_file(Svg),
    %% Five connections: 1-2, 1-3, 2-3 in a group, 4-5 in the other, 1-4 of the gateways, and 3-5.
    ?assertMatch({match, [_, _, _, _, _, _]}, re:run(Picture, "<path d=", [global])),
    {ok, <<"graph groups {", _/binary>>} = file:read_file(Dot),
    #{<<"group">> := <<"group1">>} = atoll_cli_os:decode(Does(["delete", "group1", "--json"])),
    ?assertMatch(#{<<"free">> := [_]}, atoll_cli_os:decode(Does(["list", "--json"]))),
    %% The same name far away, and which is meant.
    _ = Does(["new", "group2", "reef1", "reef2"]),
    ?assertMatch(
        #{status := 1, stderr := <<"atoll group delete: several groups are called group2; --at NODE says which is meant\n">>},
        atoll_cli_os:run(dir(Config), ["group", "delete", "group2", "--name", "reef"])
    ),
    #{<<"deleted_from">> := Gone} = atoll_cli_os:decode(Does(["delete", "group2", "--at", "reef2", "--json"])),
    ?assertEqual([1, 2], numbers(Gone)),
    ?assertMatch(#{status := 0}, atoll_cli_os:run(dir(Config), ["down", "reef"])),
    ?assertMatch(#{status := 0}, atoll_cli_os:await_exit(Program, ?GONE_MS)).

a_group_that_does_not_get_all_its_nodes_is_told(Config) ->
    Program = atoll_cli_os:start(dir(Config), ["up", "4", "--groups", "2", "--name", "reef"]),
    _ = atoll_cli_os:await_line(Program, stdout, <<"atoll down reef\n">>),
    Fails = fun(Status, Args) ->
        #{status := Status, stdout := Stdout, stderr := Stderr} = atoll_cli_os:run(dir(Config), ["group" | Args] ++ ["--name", "reef"]),
        ?assertMatch([_, <<>>], binary:split(Stderr, <<"\n">>, [global]), Stderr),
        {Stdout, Stderr}
    end,
    [
        ?assertMatch({<<>>, <<"atoll group ", _/binary>>}, Fails(Status, Args), Args)
     || {Status, Args} <- [
            {2, ["new", "fish", "reef1", "reef9"]},
            {1, ["new", "group1", "reef1"]},
            {1, ["new", "undefined", "reef1"]},
            {1, ["delete", "fish"]},
            {1, ["add", "fish", "reef1"]},
            {1, ["remove", "group1", "reef1", "reef2"]}
        ]
    ],
    #{<<"clusters">> := [#{<<"nodes">> := Nodes}]} = atoll_cli_os:decode(maps:get(stdout, atoll_cli_os:run(dir(Config), ["status", "--json"]))),
    [Pid] = [P || #{<<"node">> := <<"reef2@127.0.0.1">>, <<"os_pid">> := P} <- Nodes],
    ok = atoll_cli_os:signal(Pid, "KILL"),
    _ = atoll_cli_os:await_line(Program, stderr, <<"Node reef2@127.0.0.1 went down.\n">>),
    {Json, _} = Fails(1, ["new", "fish", "reef2", "reef3", "--json"]),
    ?assertEqual(#{<<"group">> => <<"fish">>, <<"nodes">> => [node_of(3)], <<"left_out">> => [node_of(2)]}, atoll_cli_os:decode(Json)),
    ?assertMatch(#{<<"silent">> := [<<"reef2@127.0.0.1">>]},
                 atoll_cli_os:decode(maps:get(stdout, atoll_cli_os:run(dir(Config), ["group", "list", "--name", "reef", "--json"])))),
    ?assertMatch(#{status := 0}, atoll_cli_os:run(dir(Config), ["down", "reef"])),
    ?assertMatch(#{status := 0}, atoll_cli_os:await_exit(Program, ?GONE_MS)).

names_are_shown_and_checked(Config) ->
    Program = atoll_cli_os:start(dir(Config), ["up", "5", "--groups", "2", "--name", "reef"]),
    _ = atoll_cli_os:await_line(Program, stdout, <<"atoll down reef\n">>),
    Names = fun(Args) -> atoll_cli_os:run(dir(Config), ["group", "names" | Args] ++ ["--name", "reef"]) end,
    Register = "lists:foreach(fun({G, N, M}) -> yes = atoll_name:register(G, N, spawn(fun() -> receive after infinity -> ok end end), M) end, ",
    ok = on_node(1, [Register, "[{group1, tea, undefined}, {group1, {\"two\", 2}, #{size => 7}}, {gateways, door, undefined}])"], Config),
    #{status := 0, stdout := Table, stderr := <<>>} = Names([]),
    [
        ?assertMatch({match, _}, re:run(Table, Line, [multiline]), Table)
     || Line <- [
            "^group +name +node +process +metadata$",
            "^group1 +tea +reef1@127.0.0.1 +<0\\.[0-9]+\\.0>$",
            "^group1 +{\"two\",2} +reef1@127.0.0.1 +<0\\.[0-9]+\\.0> +#{size => 7}$",
            "^gateways +door +reef1@127.0.0.1 +<0\\.[0-9]+\\.0>$"
        ]
    ],
    %% A process of its own, for a name that another node has lost, and one that it alone has.
    ok = on_node(2, "true = ets:delete(atoll_name, {group1, tea}), true = ets:insert(atoll_name, {{group1, ghost}, self(), undefined})", Config),
    ok = on_node(3, "true = ets:insert(atoll_name, {{group1, {\"two\", 2}}, whereis(init), undefined})", Config),
    #{status := 1, stdout := Json, stderr := Differ} = Names(["group1", "--json"]),
    ?assertEqual(<<"atoll group names: 3 names are not the same on all members\n">>, Differ),
    #{<<"cluster">> := <<"reef">>, <<"silent">> := [], <<"groups">> := [#{<<"group">> := <<"group1">>, <<"nodes">> := Nodes, <<"names">> := Shown}]} =
        atoll_cli_os:decode(Json),
    ?assertEqual([1, 2, 3], numbers(Nodes)),
    {One, Two, Three} = {node_of(1), node_of(2), node_of(3)},
    ?assertMatch(
        [
            #{<<"name">> := <<"ghost">>, <<"node">> := Two, <<"differ">> := [#{<<"member">> := One, <<"process">> := null}, #{<<"member">> := Three}]},
            #{<<"name">> := <<"tea">>, <<"node">> := One, <<"metadata">> := null, <<"differ">> := [#{<<"member">> := Two, <<"node">> := null}]},
            #{<<"name">> := <<"{\"two\",2}">>, <<"node">> := One, <<"metadata">> := <<"#{size => 7}">>,
              <<"differ">> := [#{<<"member">> := Three, <<"node">> := Three, <<"metadata">> := null}]}
        ],
        Shown
    ),
    #{status := 1, stdout := Differs} = Names(["--at", "reef3"]),
    ?assertMatch({match, _}, re:run(Differs, "tea .* reef2@127.0.0.1 has none$", [multiline]), Differs),
    ?assertMatch({match, _}, re:run(Differs, " reef3@127.0.0.1 has <0\\.[0-9]+\\.0> on reef3@127.0.0.1$", [multiline]), Differs),
    ?assertEqual(nomatch, re:run(Differs, "door")),
    %% One that says nothing is no difference.
    #{status := 0, stdout := Gateways} = Names(["gateways"]),
    ?assertEqual(nomatch, re:run(Gateways, "silent")),
    ok = on_node(4, "halt(0, [{flush, false}])", Config),
    _ = atoll_cli_os:await_line(Program, stderr, <<"Node reef4@127.0.0.1 went down.\n">>),
    #{status := 0, stdout := Silent} = Names(["gateways"]),
    ?assertMatch({match, _}, re:run(Silent, "^\\(silent\\) +reef4@127.0.0.1$", [multiline]), Silent),
    [
        ?assertEqual({Status, <<>>, iolist_to_binary(["atoll group names: ", Sentence, "\n"])}, {Status1, Stdout, Stderr})
     || {Status, Args, Sentence} <- [
            {1, ["fish"], "no node that answers is in a group fish"},
            {1, ["group2", "--at", "reef1"], "no node that answers is in a group group2"},
            {2, ["--at", "reef9"], "the cluster has no node reef9; did you mean reef1?"}
        ],
        #{status := Status1, stdout := Stdout, stderr := Stderr} <- [Names(Args)]
    ],
    [ok = on_node(I, "halt(0, [{flush, false}])", Config) || I <- [1, 2, 3, 5]],
    [_ = atoll_cli_os:await_line(Program, stderr, <<"Node ", (node_of(I))/binary, " went down.\n">>) || I <- [1, 2, 3, 5]],
    ?assertMatch(#{status := 1, stdout := <<>>, stderr := <<"atoll group names: no node of the cluster answers\n">>}, Names([])).

%% They share one namespace; or each has its own, with the same name in it.
names_of_free_nodes_are_shown(Config) ->
    lists:foreach(
        fun({Overlay, Registered, Rows, Groups}) ->
            Program = atoll_cli_os:start(dir(Config), ["up", "3", "--name", "reef" | Overlay]),
            _ = atoll_cli_os:await_line(Program, stdout, <<"atoll down reef\n">>),
            Await = io_lib:format("Look = fun Look() -> case length(s_group:own_nodes()) of ~b -> ok; _ -> Look() end end, Look()", [3 div Groups]),
            [ok = on_node(I, Await, Config) || I <- [1, 2, 3]],
            [ok = on_node(I, "yes = s_group:register_name(undefined, tea, spawn(timer, sleep, [infinity]))", Config) || I <- Registered],
            Names = fun(Args) ->
                #{status := 0, stdout := Stdout} = atoll_cli_os:run(dir(Config), ["group", "names" | Args] ++ ["--name", "reef"]),
                Stdout
            end,
            {match, Shown} = re:run(Names([]), "^\\(free nodes\\) +tea +reef[1-3]@127.0.0.1 +<", [multiline, global]),
            ?assertEqual(Rows, length(Shown)),
            #{<<"groups">> := Each} = atoll_cli_os:decode(Names(["undefined", "--json"])),
            ?assertEqual(Groups, length(Each)),
            ?assertMatch(#{status := 0}, atoll_cli_os:run(dir(Config), ["down", "reef"])),
            ?assertMatch(#{status := 0}, atoll_cli_os:await_exit(Program, ?GONE_MS))
        end,
        [{[], [2], 1, 1}, {["--overlay", "hyparview"], [1, 2, 3], 3, 3}]
    ).

%% What is to be done on a node is done by a shell that is attached to it.
on_node(I, Text, Config) ->
    Line = io_lib:format(
        "exec erl -noinput -boot no_dot_erlang -hidden -name on~b-~s@127.0.0.1 -eval '~ts'",
        [erlang:unique_integer([positive]), os:getpid(), [
            "{ok, Ts, _} = erl_scan:string(lists:append(init:get_plain_arguments())), {ok, Es} = erl_parse:parse_exprs(Ts), "
            "try erpc:call(list_to_atom(\"", node_of(I), "\"), erl_eval, exprs, [Es, []]) catch error:{erpc, noconnection} -> gone end, "
            "halt()"
        ]]
    ),
    Quoted = ["'", string:replace(Text, "'", "'\\''", all), "'"],
    #{status := 0} = atoll_cli_os:await_exit(atoll_cli_os:start(dir(Config), {sh, lists:flatten([Line, " -extra ", Quoted, "."])}), 30000),
    ok.

a_topology_is_drawn_without_a_cluster(Config) ->
    ?assertMatch(
        #{status := 0, stdout := <<"group1  n1* n2 n5*\ngroup2  n3* n4 n1*\ngroup3  n5* n6 n3*\n3 groups", _/binary>>},
        atoll_cli_os:run(dir(Config), ["group", "draw", "ring", "--nodes", "6", "--group-size", "2"])
    ),
    [
        ?assertMatch(#{status := 2, stdout := <<>>}, atoll_cli_os:run(dir(Config), ["group", "draw" | Args]))
     || Args <- [["rng", "--nodes", "6", "--group-size", "2"], ["ring"], ["--nodes", "6"],
                 ["ring", "--nodes", "6", "--group-size", "2", "--gateways", "3"]]
    ].

node_of(I) -> iolist_to_binary(io_lib:format("reef~b@127.0.0.1", [I])).

numbers(Nodes) -> [I || Node <- Nodes, I <- lists:seq(1, 9), node_of(I) =:= Node].

%% Faults on real nodes

a_script_ends_with_the_same_facts_in_both_worlds(Config) ->
    [Simulated, Real] = [
        begin
            #{status := 0, stdout := Json} = atoll_cli_os:run(dir(Config), [World, "run", "docs/scripts/leave.script", "--json"], 120000),
            atoll_cli_os:decode(Json)
        end
     || World <- ["sim", "chaos"]
    ],
    Same = [<<"seed">>, <<"expectations">>, <<"failed">>, <<"alive">>, <<"connected">>, <<"components">>, <<"symmetric">>,
            <<"delivered">>, <<"false_deaths">>],
    ?assertEqual(maps:with(Same, Simulated), maps:with(Same, Real)),
    ?assertEqual(length(Same), map_size(maps:with(Same, Real))),
    [?assertMatch(#{<<"active_min">> := Min, <<"active_max">> := Max} when Min >= 1 andalso Max =< 5, R) || R <- [Simulated, Real]],
    ?assertMatch(#{<<"unseen">> := 0, <<"events">> := [#{<<"fault">> := <<"leave">>, <<"line">> := 4} | _]}, Real),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config), ?GONE_MS)).

an_expectation_that_fails_on_real_nodes_fails_the_run(Config) ->
    File = script(Config, "{at, 4000, {expect, {neighbours, 2, 2}}}.\n{then, 0, {expect, {neighbours, 3, 9}}}.\n"),
    #{status := 1, stdout := Table, stderr := Stderr} =
        atoll_cli_os:run(dir(Config), ["chaos", "run", File, "--nodes", "3", "--overlay", "mesh"]),
    [?assertMatch({match, _}, re:run(Table, Line, [multiline]), Table)
     || Line <- ["^expectations +2$", "^expectations that failed +1$", "^nodes alive at the end +3$",
                 "^neighbours of a node, at most +2$", "^again: atoll chaos run .* --nodes 3 --overlay mesh --seed 1$"]],
    ?assertMatch({_, _}, binary:match(Stderr, iolist_to_binary(["1 of 2 expectations failed, the first at ", File, ":2, after "])), Stderr).

a_held_cluster_is_harmed_and_stays(Config) ->
    Program = atoll_cli_os:start(dir(Config), ["up", "3", "--overlay", "mesh", "--name", "reef"]),
    _ = atoll_cli_os:await_line(Program, stdout, <<"atoll down reef\n">>),
    File = script(Config, "{at, 0, {broadcast, all, 2, 100}}.\n{at, 100, {pause, {nodes, 2, 2}, 300}}.\n"
                          "{at, 1500, {expect, {delivered, 1.0}}}.\n{at, 1500, {expect, symmetric}}.\n"),
    #{status := 0, stdout := Json} = atoll_cli_os:run(dir(Config), ["chaos", "run", File, "--name", "reef", "--json"]),
    ?assertMatch(#{<<"failed">> := [], <<"alive">> := 3, <<"connected">> := 1.0, <<"delivered">> := 1.0}, atoll_cli_os:decode(Json)),
    #{status := 0, stdout := Random} =
        atoll_cli_os:run(dir(Config), ["chaos", "random", "--name", "reef", "--kinds", "pause,cut", "--rate", "3", "--seconds", "1"]),
    ?assertMatch({match, _}, re:run(Random, "^nodes alive at the end +3$", [multiline])),
    %% Nobody there could start it again.
    Restart = script(Config, "{at, 0, {restart, all, fresh}}.\n"),
    ?assertMatch(#{status := 2, stdout := <<>>}, atoll_cli_os:run(dir(Config), ["chaos", "run", Restart, "--name", "reef"])),
    #{status := 0, stdout := Status} = atoll_cli_os:run(dir(Config), ["status"]),
    ?assertMatch({match, [_, _, _]}, re:run(Status, "^reef +reef[1-3]@127.0.0.1 +up ", [multiline, global])),
    %% One that is down is left out, and its number is that of the next one.
    [Second] = [Pid || {Pid, "reef2@127.0.0.1"} <- atoll_cli_os:beams(dir(Config))],
    ok = atoll_cli_os:signal(Second, "KILL"),
    _ = atoll_cli_os:await_line(Program, stderr, <<"reef2@127.0.0.1 went down">>),
    Two = script(Config, "{at, 0, {kill_process, {nodes, 2, 2}, {name, atoll_group}}}.\n"),
    #{status := 0, stdout := Left, stderr := Said} = atoll_cli_os:run(dir(Config), ["chaos", "run", Two, "--name", "reef", "--json"]),
    ?assertMatch({_, _}, binary:match(Said, <<"reef2@127.0.0.1 is down, and left out">>)),
    ?assertMatch(#{<<"nodes">> := [<<"reef1@127.0.0.1">>, <<"reef3@127.0.0.1">>], <<"events">> := [
        #{<<"nodes">> := [<<"reef3@127.0.0.1">>], <<"outcome">> := <<"done">>} | _]}, atoll_cli_os:decode(Left)).

a_script_that_cannot_be_played_starts_nothing(Config) ->
    File = script(Config, "{at, 0, heal}.\n{at, 1, {expect, symmetric}}.\n"),
    #{status := 2, stdout := <<>>, stderr := Stderr} = atoll_cli_os:run(dir(Config), ["chaos", "run", File, "--nodes", "3"]),
    ?assertEqual(
        iolist_to_binary(["atoll chaos run: ", File, ":2: in {expect,symmetric}: it is about the overlay, and these nodes run none\n"]),
        Stderr
    ),
    Says = fun(Text) ->
        Other = script(Config, Text),
        #{status := 2, stdout := <<>>, stderr := Said} = atoll_cli_os:run(dir(Config), ["chaos", "run", Other]),
        [<<>>, Sentence] = binary:split(Said, iolist_to_binary(["atoll chaos run: ", Other, ": "])),
        Sentence
    end,
    ?assertEqual(<<"it has no steps\n">>, Says("{cluster, #{nodes => 3}}.\n")),
    ?assertEqual(<<"it does not say how many nodes there are, so --nodes N must\n">>, Says("{at, 0, heal}.\n")),
    ?assertMatch(#{status := 1, stderr := <<"atoll chaos run: No cluster named nobody is running.\n">>},
                 atoll_cli_os:run(dir(Config), ["chaos", "run", "docs/scripts/groups.script", "--name", "nobody"])).

faults_at_a_rate_print_one_object(Config) ->
    #{status := 0, stdout := Json} = atoll_cli_os:run(dir(Config), [
        "chaos", "random", "--nodes", "3", "--rate", "4", "--kinds", "process,node", "--seconds", "1", "--seed", "7", "--json"]),
    ?assertMatch([_, <<>>], binary:split(Json, <<"\n">>, [global])),
    #{<<"nodes">> := [_, _, _], <<"seed">> := 7, <<"events">> := Events, <<"summary">> := [_ | _], <<"again">> := Again} = atoll_cli_os:decode(Json),
    ?assertEqual(5, length(Events)),
    ?assertMatch(#{<<"fault">> := <<"heal">>}, lists:last(Events)),
    ?assertEqual(<<"atoll chaos random --rate 4 --kinds process,node --seconds 1 --nodes 3 --seed 7">>, Again),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config), ?GONE_MS)).

%% It heals, prints what there is, and takes its nodes down. It is the shell before the
%% VM that is told alone, or with the VM as a terminal does.
an_interrupted_harm_says_what_happened(Config) ->
    [
        begin
            Program = atoll_cli_os:start(dir(Config), [
                "chaos", "random", "--nodes", "2", "--rate", "20", "--kinds", "process", "--seconds", "600", "--json"]),
            _ = atoll_cli_os:await_line(Program, stderr, <<"Doing harm">>),
            ok = atoll_cli_os:Signal(Program, "INT"),
            #{status := 130, stdout := Json, stderr := Said} = atoll_cli_os:await_exit(Program, 30000),
            #{<<"events">> := Events} = atoll_cli_os:decode(Json),
            ?assertMatch(#{<<"fault">> := <<"heal">>}, lists:last(Events)),
            ?assertMatch({_, _}, binary:match(Said, <<"atoll chaos random: interrupted; all is healed\n">>)),
            ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config), ?GONE_MS))
        end
     || Signal <- [signal, signal_group]
    ],
    %% The second time it ends at once; an overlay takes some seconds to settle.
    Twice = atoll_cli_os:start(dir(Config), ["chaos", "run", "docs/scripts/leave.script"]),
    _ = atoll_cli_os:await_line(Twice, stderr, <<"Doing harm">>),
    ok = atoll_cli_os:signal(Twice, "INT"),
    _ = atoll_cli_os:await_line(Twice, stderr, <<"Healing.">>),
    ok = atoll_cli_os:signal(Twice, "INT"),
    ?assertMatch(#{status := 130, stdout := <<>>}, atoll_cli_os:await_exit(Twice, 2500)),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config), ?GONE_MS)),
    %% Without a word, whoever of the two is killed.
    Killed = atoll_cli_os:start(dir(Config), ["chaos", "random", "--nodes", "2", "--kinds", "process", "--seconds", "600"]),
    _ = atoll_cli_os:await_line(Killed, stderr, <<"Doing harm">>),
    ok = atoll_cli_os:signal(Killed, "KILL"),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config), ?GONE_MS)).

%% The line that `up' prints is run as it stands, on a terminal: on a dumb one
%% erl of OTP 25 has a shell of its own only.
a_shell_can_be_attached(Config) ->
    Program = atoll_cli_os:start(dir(Config), ["up", "2", "--name", "shelly"]),
    Said = atoll_cli_os:await_line(Program, stdout, <<"atoll down shelly\n">>),
    {match, [Line]} = re:run(Said, "attach a shell: +(.*)", [{capture, all_but_first, list}]),
    Shell = open_port({spawn_executable, os:find_executable("script")},
                      [{args, ["-qec", Line, "/dev/null"]}, {env, [{"XDG_RUNTIME_DIR", dir(Config)}, {"TERM", "xterm"}]},
                       binary, use_stdio]),
    ok = await_data(Shell, <<"(shelly1@127.0.0.1)1>">>),
    true = port_command(Shell, <<"nodes(connected).\n">>),
    ok = await_data(Shell, <<"'shelly2@127.0.0.1'">>),
    true = port_close(Shell).

a_name_is_taken_once(Config) ->
    Program = atoll_cli_os:start(dir(Config), ["up", "1", "--name", "once"]),
    _ = atoll_cli_os:await_line(Program, stdout, <<"atoll down once\n">>),
    #{status := 1, stdout := <<>>, stderr := Stderr} =
        atoll_cli_os:run(dir(Config), ["up", "1", "--name", "once"]),
    ?assertMatch({_, _}, binary:match(Stderr, <<"once">>)).

nothing_runs_and_nothing_can_be_stopped(Config) ->
    ?assertMatch(#{status := 0, stdout := <<"No cluster is running.\n">>, stderr := <<>>},
                 atoll_cli_os:run(dir(Config), ["status"])),
    ?assertMatch(#{status := 0, stdout := <<"{\"clusters\":[]}\n">>, stderr := <<>>},
                 atoll_cli_os:run(dir(Config), ["status", "--json"])),
    ?assertMatch(#{status := 1, stdout := <<>>, stderr := <<"atoll down: No cluster", _/binary>>},
                 atoll_cli_os:run(dir(Config), ["down"])),
    ?assertMatch(#{status := 1, stdout := <<>>, stderr := <<"atoll down: No cluster", _/binary>>},
                 atoll_cli_os:run(dir(Config), ["down", "nobody"])).

a_run_directory_that_cannot_be_used_is_told(Config) ->
    Missing = filename:join(dir(Config), "missing"),
    Open = filename:join(dir(Config), "atoll"),
    ok = file:make_dir(Open),
    ok = file:change_mode(Open, 8#777),
    [begin
        #{status := Status, stdout := Stdout, stderr := Stderr} = atoll_cli_os:await_exit(
            atoll_cli_os:start(dir(Config), {sh, "XDG_RUNTIME_DIR=" ++ Dir ++ " bin/atoll " ++ Command}),
            10000),
        ?assertEqual({Command, 1, <<>>}, {Command, Status, Stdout}),
        ?assertMatch({match, _}, re:run(Stderr, ["^atoll [a-z]+: The run directory ", Dir, "/atoll .*\\.\n$"]))
     end
     || Dir <- [Missing, dir(Config)], Command <- ["status", "status --json", "down"]].

a_closed_output_is_no_crash(Config) ->
    [begin
        #{stdout := First, stderr := Stderr} = atoll_cli_os:await_exit(
            atoll_cli_os:start(dir(Config), {sh, "bin/atoll help orbit " ++ Reader}), 10000),
        ?assertMatch({Reader, _, <<>>}, {Reader, First, Stderr})
     end
     || Reader <- ["| head -n 1", "| true"]].

output_that_is_lost_fails_the_command(Config) ->
    [begin
        #{status := Status, stderr := Stderr} = atoll_cli_os:await_exit(
            atoll_cli_os:start(dir(Config), {sh, Command ++ Lost}), 30000),
        ?assertEqual({Command, Lost, 1}, {Command, Lost, Status}),
        [<<>>, Last | _] = lists:reverse(binary:split(Stderr, <<"\n">>, [global])),
        ?assertMatch(<<"atoll: the output could not be written: ", _/binary>>, Last)
     end
     || Command <- ["bin/atoll help", "bin/atoll orbit --space 1000 --mode seq --json"],
        Lost <- [" >/dev/full", " >&-"]],
    %% What prints nothing has nothing to lose.
    ?assertMatch(#{status := 1, stderr := <<"atoll down: No cluster", _/binary>>},
                 atoll_cli_os:await_exit(
                     atoll_cli_os:start(dir(Config), {sh, "bin/atoll down >&-"}), 10000)),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config), ?GONE_MS)).

%% By a link, from a directory, in a tree with blanks in their names.
it_runs_from_anywhere(Config) ->
    Dir = filename:join(dir(Config), "a b"),
    Tree = filename:join(Dir, "its tree"),
    Link = filename:join(Dir, "a link"),
    ok = filelib:ensure_path(Tree),
    Copy = "cp -a apps bin cases scripts rebar.config rebar.lock \"" ++ Tree ++ "\" && "
        "mkdir -p \"" ++ Tree ++ "/_build\" && cp -a _build/.built _build/default \"" ++ Tree ++ "/_build\"",
    #{status := 0} = atoll_cli_os:await_exit(atoll_cli_os:start(dir(Config), {sh, Copy}), 30000),
    ok = file:make_symlink(filename:join(Tree, "bin/atoll"), Link),
    Line = "\"" ++ Link ++ "\" orbit --space 1000 --nodes 2 --json",
    #{status := Status, stdout := Stdout, stderr := Stderr} =
        atoll_cli_os:await_exit(atoll_cli_os:start(dir(Config), {sh, Line}, Dir), 30000),
    ?assertEqual({0, Stderr}, {Status, Stderr}),
    ?assertMatch(#{<<"size">> := 854}, atoll_cli_os:decode(Stdout)).

%% The other end of `script' is a terminal.
a_terminal_gets_a_bar(Config) ->
    Line = "script -qec 'stty cols 60; exec bin/atoll orbit --space 1000 --nodes 2 >/dev/null' /dev/null",
    #{status := 0, stdout := Seen} =
        atoll_cli_os:await_exit(atoll_cli_os:start(dir(Config), {sh, Line}), 30000),
    ?assertMatch({_, _}, binary:match(Seen, <<"Starting nodes [###############               ] 1 of 2">>)),
    %% And it is taken away again.
    ?assertEqual(<<"\r\e[K">>, binary:part(Seen, byte_size(Seen), -4)).

every_experiment_prints_its_keys_first(Config) ->
    [begin
        #{status := 0, stdout := Stdout} =
            atoll_cli_os:run(dir(Config), ["sim", Name, "--nodes", "20", "--seed", "7", "--json" | Args]),
        ?assertMatch([_, <<>>], binary:split(Stdout, <<"\n">>, [global])),
        ?assertEqual(First, lists:sublist(keys(Stdout), length(First))),
        ?assertEqual(<<"again">>, lists:last(keys(Stdout)))
     end
     || {Name, Args, First} <- [
            {"overlay", ["--kill", "0.25"],
             [<<"strategy">>, <<"nodes">>, <<"killed">>, <<"seed">>, <<"virtual_ms">>, <<"wall_ms">>,
              <<"events_per_s">>, <<"connected_before">>, <<"connected_after">>, <<"active_min">>,
              <<"active_max">>, <<"symmetric">>, <<"messages_per_node_per_s">>]},
            {"broadcast", ["--messages", "10"],
             [<<"delivered">>, <<"redundancy">>, <<"hops_max">>, <<"latency_ms_p99">>]},
            {"directory", ["--group-size", "5", "--changes", "3", "--minutes", "1"],
             [<<"topology">>, <<"nodes">>, <<"groups">>, <<"links_per_node">>, <<"seed">>]},
            {"detect", ["--minutes", "1"],
             [<<"detect_ms_p50">>, <<"detect_ms_p99">>, <<"false_deaths_per_hour">>,
              <<"messages_per_node_per_s">>]},
            {"reach", ["--group-size", "5"],
             [<<"nodes">>, <<"topology">>, <<"groups">>, <<"gateways">>, <<"pairs">>, <<"all_pairs">>, <<"relayed">>,
              <<"reached">>]}]].

a_simulation_is_repeated_by_its_line(Config) ->
    Args = ["sim", "overlay", "--nodes", "30", "--kill", "0.4", "--seed", "11", "--option", "active_max=4", "--json"],
    #{status := 0, stdout := Once} = atoll_cli_os:run(dir(Config), Args),
    #{<<"again">> := <<"atoll ", Again/binary>>, <<"killed">> := 12} = atoll_cli_os:decode(Once),
    #{status := 0, stdout := Twice} =
        atoll_cli_os:run(dir(Config), string:lexemes(binary_to_list(Again), " ") ++ ["--json"]),
    Essence = fun(Json) -> maps:without([<<"wall_ms">>, <<"events_per_s">>], atoll_cli_os:decode(Json)) end,
    ?assertEqual(Essence(Once), Essence(Twice)).

a_simulation_prints_a_table(Config) ->
    #{status := 0, stdout := Stdout, stderr := Stderr} =
        atoll_cli_os:run(dir(Config), ["sim", "overlay", "--nodes", "20", "--kill", "0", "--seed", "3"]),
    [?assertMatch({match, _}, re:run(Stdout, Line, [multiline]), Line)
     || Line <- ["^strategy +hyparview$", "^nodes killed +0$", "^connected before the kill +100 %$",
                 "^again: atoll sim overlay --strategy hyparview --nodes 20 --kill 0.0 --seed 3$"]],
    ?assertEqual(<<"Simulating 20 nodes, strategy hyparview\n">>, Stderr).

a_terminal_sees_the_virtual_time(Config) ->
    Line = "script -qec 'stty cols 60; exec bin/atoll sim overlay --nodes 20 >/dev/null' /dev/null",
    #{status := 0, stdout := Seen} =
        atoll_cli_os:await_exit(atoll_cli_os:start(dir(Config), {sh, Line}), 30000),
    ?assertMatch({_, _}, binary:match(Seen, <<"\r\e[KVirtual time 34 s">>)),
    %% And it is taken away again.
    ?assertEqual(<<"\r\e[K">>, binary:part(Seen, byte_size(Seen), -4)).

a_trace_is_written_and_shown(Config) ->
    Trace = filename:join(dir(Config), "a.trace"),
    Svg = filename:join(dir(Config), "a.svg"),
    Args = ["sim", "overlay", "--nodes", "20", "--seed", "7", "--trace"],
    #{status := 0} = atoll_cli_os:run(dir(Config), Args ++ [Trace]),
    #{status := 0} = atoll_cli_os:run(dir(Config), Args ++ [Trace ++ "2"]),
    {ok, Bytes} = file:read_file(Trace),
    ?assertEqual({ok, Bytes}, file:read_file(Trace ++ "2")),
    #{status := 0, stdout := Line} = atoll_cli_os:run(dir(Config), ["sim", "show", Trace]),
    ?assertMatch({_, _}, binary:match(Line, <<"atoll sim overlay --strategy hyparview --nodes 20 --kill 0.5 --seed 7\n">>)),
    #{status := 0} = atoll_cli_os:run(dir(Config), ["sim", "show", Trace, "--node", "n01", "--at", "30000", "--svg", Svg]),
    ?assertMatch({ok, <<"<svg ", _/binary>>}, file:read_file(Svg)),
    ?assertMatch(#{status := 2, stdout := <<>>, stderr := <<"atoll sim show: --node must be a node of the trace", _/binary>>},
                 atoll_cli_os:run(dir(Config), ["sim", "show", Trace, "--node", "nobody"])),
    ?assertMatch(#{status := 2, stdout := <<>>, stderr := <<"atoll sim show: README.md:1: ", _/binary>>},
                 atoll_cli_os:run(dir(Config), ["sim", "show", "README.md"])).

a_recording_is_replayed(Config) ->
    Link = filename:join(dir(Config), "link.rec"),
    Overlay = filename:join(dir(Config), "overlay.rec"),
    Events = atoll_sim_recorded:link(Link),
    _ = atoll_sim_recorded:overlay(Overlay),
    Replay = fun(Args) -> atoll_cli_os:run(dir(Config), ["sim", "replay" | Args]) end,
    #{status := 0, stdout := Table, stderr := <<>>} = Replay([Link, Overlay]),
    Row = ["link.rec +n1@reef +atoll_link_core +", integer_to_list(Events), " +0 +whole +identical\n"],
    ?assertMatch({match, _}, re:run(Table, Row)),
    ?assertMatch({match, _}, re:run(Table, "overlay.rec +n1@reef +atoll_overlay_core ")),
    ok = atoll_sim_recorded:tampered(Link, 9),
    #{status := 1, stdout := Differs, stderr := Stderr} = Replay([Link, Overlay]),
    ?assertMatch({match, _}, re:run(Differs, "differ at event 9\n")),
    ?assertMatch({match, _}, re:run(Differs, "link.rec, event 9:\n  event .*\n  recorded  .*tampered.*\n  replayed ")),
    ?assertEqual(iolist_to_binary(["atoll sim replay: ", Link, " has other effects than were recorded, or cannot be replayed\n"]), Stderr),
    #{status := 1, stdout := Json} = Replay(["--json", Link, Overlay]),
    #{<<"recordings">> := [One, Other]} = atoll_cli_os:decode(Json),
    ?assertMatch(#{<<"node">> := <<"n1@reef">>, <<"otp">> := <<"25">>, <<"protocol">> := <<"atoll_link_core">>,
                   <<"events">> := Events, <<"lost">> := 0, <<"cut">> := false, <<"identical">> := false,
                   <<"difference">> := #{<<"event">> := 9}}, One),
    ?assertMatch(#{<<"identical">> := true, <<"difference">> := null}, Other),
    ?assertMatch(#{status := 2, stderr := <<"atoll sim replay: README.md: this is no recording of Atoll\n">>},
                 Replay(["README.md"])).

%% With so many names that the order of a map is not that of its keys.
a_node_s_recordings_are_replayed(Config) ->
    Program = atoll_cli_os:start(dir(Config), ["up", "4", "--groups", "2", "--name", "reef"]),
    _ = atoll_cli_os:await_line(Program, stdout, <<"atoll down reef\n">>),
    Folder = fun(I) -> filename:join(dir(Config), "recorded" ++ integer_to_list(I)) end,
    [ok = on_node(I, ["ok = atoll:record(\"", Folder(I), "\")"], Config) || I <- [1, 2]],
    Names = "[list_to_atom(lists:concat([name, I, \"of\", node()])) || I <- lists:seq(1, 100)]",
    [ok = on_node(I, ["[yes = s_group:register_name(group1, N, spawn(timer, sleep, [infinity])) || N <- ", Names, "]"], Config) || I <- [1, 2]],
    %% Each forgets the other's names, and is told them again.
    Await = "Look = fun Look() -> case length(atoll_name:names(group1)) of 200 -> ok; _ -> _ = atoll_name:info(), Look() end end, Look()",
    ok = on_node(1, "true = disconnect_node(hd(s_group:own_nodes(group1) -- [node()]))", Config),
    [ok = on_node(I, Await, Config) || I <- [1, 2]],
    ok = on_node(1, "[ok = s_group:unregister_name(group1, N) || N <- " ++ Names ++ "]", Config),
    [ok = on_node(I, "{ok, #{name := #{lost := 0}}} = atoll:record(off)", Config) || I <- [1, 2]],
    Files = lists:append([filelib:wildcard(filename:join(Folder(I), "*.rec")) || I <- [1, 2]]),
    ?assertEqual(
        ["attr.rec", "group.rec", "link.rec", "name.rec", "place.rec"], [filename:basename(File) || File <- lists:sublist(Files, 5)]
    ),
    #{status := 0, stdout := Json} = atoll_cli_os:run(dir(Config), ["sim", "replay", "--json" | Files]),
    #{<<"recordings">> := Recordings} = atoll_cli_os:decode(Json),
    ?assertEqual(10, length(Recordings)),
    [?assertMatch(#{<<"identical">> := true, <<"cut">> := false, <<"lost">> := 0}, Recording) || Recording <- Recordings],
    [?assert(Events > 200, Events) || #{<<"protocol">> := <<"atoll_name_core">>, <<"events">> := Events} <- Recordings].

a_trace_that_is_cut_is_shown_and_told(Config) ->
    Trace = filename:join(dir(Config), "a.trace"),
    #{status := 0} = atoll_cli_os:run(dir(Config), ["sim", "overlay", "--nodes", "5", "--trace", Trace]),
    ?assertMatch(#{status := 0, stderr := <<>>}, atoll_cli_os:run(dir(Config), ["sim", "show", Trace])),
    {ok, Bytes} = file:read_file(Trace),
    Lines = binary:split(Bytes, <<"\n">>, [global]),
    ok = file:write_file(Trace, lists:join("\n", lists:sublist(Lines, 3) ++ [""])),
    #{status := 0, stdout := Line, stderr := Stderr} = atoll_cli_os:run(dir(Config), ["sim", "show", Trace]),
    ?assertMatch({_, _}, binary:match(Line, <<"shows   2 events\n">>)),
    ?assertEqual(iolist_to_binary([Trace, ":4: the trace is cut off here\n"]), Stderr).

an_interrupted_run_leaves_the_old_trace(Config) ->
    Trace = filename:join(dir(Config), "a.trace"),
    Link = filename:join(dir(Config), "a.link"),
    ok = file:write_file(Trace, "old"),
    ok = file:make_symlink(Trace, Link),
    Program = atoll_cli_os:start(dir(Config), ["sim", "overlay", "--nodes", "1000", "--trace", Link]),
    Part = filename:join(dir(Config), "a.trace.*.part"),
    ok = atoll_cli_os:await(fun() -> filelib:wildcard(Part) =/= [] end, 30000),
    ok = atoll_cli_os:signal_group(Program, "INT"),
    #{status := Status} = atoll_cli_os:await_exit(Program, ?GONE_MS),
    ?assertNotEqual(0, Status),
    ?assertEqual({ok, <<"old">>}, file:read_file(Trace)),
    #{status := 0} = atoll_cli_os:run(dir(Config), ["sim", "overlay", "--nodes", "5", "--trace", Link]),
    ?assertMatch({ok, _}, file:read_link(Link)),
    ?assertMatch({ok, <<"{atoll_trace,", _/binary>>}, file:read_file(Trace)).

no_file_is_read_and_destroyed(Config) ->
    Script = script(Config, "{at, 0, heal}.\n"),
    Link = filename:join(dir(Config), "a.link"),
    ok = file:make_symlink(Script, Link),
    Trace = filename:join(dir(Config), "a.trace"),
    #{status := 0} = atoll_cli_os:run(dir(Config), ["sim", "overlay", "--nodes", "5", "--trace", Trace]),
    [begin
        {ok, Bytes} = file:read_file(Read),
        ?assertEqual(
            {2, <<>>, iolist_to_binary(["atoll ", lists:join(" ", lists:sublist(Args, 2)), ": ", Sentence, "\n"])},
            outcome(atoll_cli_os:run(dir(Config), Args))
        ),
        ?assertEqual({ok, Bytes}, file:read_file(Read))
     end
     || {Read, Args, Sentence} <- [
            {Script, ["sim", "run", Script, "--trace", Script], ["--trace ", Script, " is the script itself"]},
            {Script, ["sim", "run", Script, "--trace", Link], ["--trace ", Link, " is the script itself"]},
            {Trace, ["sim", "show", Trace, "--svg", Trace], ["--svg ", Trace, " is the trace itself"]}]].

outcome(#{status := Status, stdout := Stdout, stderr := Stderr}) -> {Status, Stdout, Stderr}.

a_file_that_cannot_be_written_is_told(Config) ->
    Missing = filename:join([dir(Config), "missing", "a"]),
    Trace = filename:join(dir(Config), "a.trace"),
    [begin
        #{status := Status, stdout := Stdout, stderr := Stderr} =
            atoll_cli_os:run(dir(Config), ["sim", "overlay", "--nodes", "20", "--trace", File]),
        ?assertEqual({File, 1, <<>>}, {File, Status, Stdout}),
        Said = lists:last(binary:split(string:trim(Stderr), <<"\n">>, [global])),
        Begin = iolist_to_binary(["atoll sim overlay: the trace ", File, " could not be written: "]),
        ?assertEqual(Begin, binary:part(Said, 0, byte_size(Begin)))
     end
     || File <- [Missing, dir(Config), "/dev/full"]],
    #{status := 0} = atoll_cli_os:run(dir(Config), ["sim", "overlay", "--nodes", "5", "--trace", Trace]),
    #{status := 1, stderr := Stderr} = atoll_cli_os:run(dir(Config), ["sim", "show", Trace, "--svg", Missing]),
    ?assertMatch({_, _}, binary:match(Stderr, <<"the drawing ">>)).

%% It names nobody for a neighbour, until it fails.
a_strategy_of_ones_own_is_run(Config) ->
    Source = "-module(alone). -export([options/0, init/2, handle/3, neighbours/1, known/1, summary/1]).\n"
        "options() -> #{limit => {pos_integer, 1000000}}.\n"
        "init(#{options := #{limit := Limit}}, _) -> {Limit, []}.\n"
        "handle(_, Now, Limit) when Now < Limit -> {Limit, []}.\n"
        "neighbours(_) -> []. known(_) -> []. summary(_) -> #{}.\n",
    File = filename:join(dir(Config), "alone.erl"),
    ok = file:write_file(File, Source),
    {ok, alone} = compile:file(File, [{outdir, dir(Config)}]),
    Args = ["sim", "overlay", "--strategy", "alone", "--code", dir(Config), "--nodes", "20", "--kill", "0"],
    #{status := 0, stdout := Stdout} = atoll_cli_os:run(dir(Config), Args),
    ?assertMatch({match, _}, re:run(Stdout, "^connected before the kill +5 %$", [multiline])),
    #{status := 1, stdout := <<>>, stderr := Stderr} =
        atoll_cli_os:run(dir(Config), Args ++ ["--option", "limit=1000"]),
    ?assertMatch({_, _}, binary:match(Stderr, <<"atoll sim overlay: the strategy alone failed: ">>)),
    ?assertMatch({_, _}, binary:match(Stderr, <<"alone:handle(">>)).

a_script_is_played(Config) ->
    #{status := 0, stdout := Table} = atoll_cli_os:run(dir(Config), ["sim", "run", "docs/scripts/partition.script"]),
    [?assertMatch({match, _}, re:run(Table, Line, [multiline]), Line)
     || Line <- ["^expectations +2$", "^expectations that failed +0$",
                 "^again: atoll sim run docs/scripts/partition.script --seed 7$"]],
    #{status := 0, stdout := Json} =
        atoll_cli_os:run(dir(Config), ["sim", "run", "docs/scripts/partition.script", "--seed", "8", "--json"]),
    ?assertMatch(#{<<"seed">> := 8, <<"failed">> := []}, atoll_cli_os:decode(Json)).

a_script_that_fails_is_repeated_by_its_line(Config) ->
    File = script(Config, "{cluster, #{nodes => 10}}.\n{at, 0, {expect, {connected, 1.0}}}.\n"),
    #{status := 1, stdout := Json, stderr := Stderr} =
        atoll_cli_os:run(dir(Config), ["sim", "run", File, "--seed", "3", "--json"]),
    ?assertMatch(#{<<"failed">> := [#{<<"line">> := 2, <<"ms">> := 0, <<"was">> := _}]}, atoll_cli_os:decode(Json)),
    [?assertMatch({_, _}, binary:match(Stderr, iolist_to_binary(Part)), Stderr)
     || Part <- ["1 of 1 expectations failed, the first at ", [File, ":2"], ["again: atoll sim run ", File, " --seed 3\n"]]].

a_script_that_is_wrong_is_told_with_its_line(Config) ->
    [begin
        File = script(Config, Text),
        #{status := 2, stdout := <<>>, stderr := Stderr} = atoll_cli_os:run(dir(Config), ["sim", "run", File]),
        Begin = iolist_to_binary(["atoll sim run: ", File, Sentence]),
        ?assertEqual(Begin, binary:part(Stderr, 0, min(byte_size(Begin), byte_size(Stderr)))),
        ?assertMatch([_, <<>>], binary:split(Stderr, <<"\n">>, [global]), Stderr)
     end
     || {Text, Sentence} <- [
            {"{cluster, #{nodes => 10}}.\n\n{at, 5, {explode, all}}.\n", ":3: there is no step {explode,all}"},
            {"{at, 5, {kill, {share, 1.5}}}.\n", ":1: in {kill,{share,1.5}}: "},
            {"{cluster, #{strategy => ring}}.\n", ":1: there is no strategy ring"},
            {"{at, 5, {kill, nobody}}.\n", ":1: there is no node nobody"},
            {"{at, 5\n", ":1: "}]].

script(Config, Text) ->
    File = filename:join(dir(Config), "a.script"),
    ok = file:write_file(File, Text),
    File.

a_demo_that_is_killed_leaves_nothing(Config) ->
    demo_ends_by(Config, fun(Make) -> atoll_cli_os:signal(Make, "KILL") end).

a_demo_that_is_interrupted_leaves_nothing(Config) ->
    demo_ends_by(Config, fun(Make) -> atoll_cli_os:signal_group(Make, "INT") end).

a_demo_whose_make_alone_is_interrupted_leaves_nothing(Config) ->
    demo_ends_by(Config, fun(Make) -> atoll_cli_os:signal(Make, "INT") end).

a_demo_whose_vm_is_killed_leaves_nothing(Config) ->
    demo_ends_by(Config, fun(_) ->
        IsDemo = fun(Command) -> lists:suffix(["-extra", "demo", ""], Command) end,
        [Vm] = [Pid || {Pid, _} <- atoll_cli_os:left(dir(Config), IsDemo), atoll_cli_os:is_vm(Pid)],
        atoll_cli_os:signal(Vm, "KILL")
    end).

demo_ends_by(Config, End) ->
    Make = atoll_cli_os:start(dir(Config), {sh, "exec make demo"}),
    _ = atoll_cli_os:await_line(Make, stderr, <<"Running Orbit">>),
    ?assertEqual(9, length(atoll_cli_os:beams(dir(Config)))),
    ok = End(Make),
    ?assertEqual(ok, atoll_cli_os:await_none_left(dir(Config), ?GONE_MS)).

%% A run that is far from its end, and the second of its nodes.
start_long_run(Config) ->
    Program = atoll_cli_os:start(dir(Config), [
        "orbit", "--generators", "g12345", "--space", "5000000", "--mode", "mesh", "--nodes", "3"]),
    _ = atoll_cli_os:await_line(Program, stderr, <<"Running Orbit">>),
    [Worker] = [Node || {_, Name} = Node <- atoll_cli_os:beams(dir(Config)),
                        lists:suffix("2@127.0.0.1", Name)],
    {Program, Worker}.

await_data(Port, Text) ->
    await_data(Port, Text, <<>>).

await_data(Port, Text, Seen) ->
    case binary:match(Seen, Text) of
        nomatch ->
            receive
                {Port, {data, Data}} -> await_data(Port, Text, <<Seen/binary, Data/binary>>)
            after 20000 -> error({not_said, Text, Seen})
            end;
        _ ->
            ok
    end.

%% In the order in which they stand.
keys(Json) ->
    {match, Keys} = re:run(Json, "\"([a-z_0-9]+)\":", [global, {capture, all_but_first, binary}]),
    lists:append(Keys).


dir(Config) ->
    proplists:get_value(dir, Config).
