%% SPDX-License-Identifier: Apache-2.0
%% A cluster of stock nodes without Atoll, one of them in embedded mode, watched from this VM.
-module(atoll_watch_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([
    all_nodes_are_found_and_none_is_connected_by_it/1,
    a_node_is_up_silent_down_and_up_again/1,
    a_supervisor_has_it_watch_again/1,
    a_cluster_that_cannot_be_reached_is_told_why/1,
    the_commands_say_how_the_nodes_are/1,
    what_is_wrong_with_a_node_is_an_alarm/1,
    what_is_wrong_between_nodes_is_one_alarm_for_each_cause/1,
    rules_of_a_file_count/1,
    a_command_that_is_killed_leaves_nothing/1,
    a_terminal_s_keys_are_heard_and_it_is_then_as_before/1
]).

-import(atoll_watch_peers, [call/4, known/1, await/2]).

-define(LATE_MS, 30000).
-define(PERIOD_MS, 200).
-define(ANSWER_MS, 2000).

suite() ->
    [{timetrap, {minutes, 2}}].

all() ->
    [all_nodes_are_found_and_none_is_connected_by_it, a_node_is_up_silent_down_and_up_again, a_supervisor_has_it_watch_again,
     a_cluster_that_cannot_be_reached_is_told_why, the_commands_say_how_the_nodes_are, what_is_wrong_with_a_node_is_an_alarm,
     what_is_wrong_between_nodes_is_one_alarm_for_each_cause, rules_of_a_file_count] ++
    [Case || atoll_tier:tier() =:= deep, Case <- [a_command_that_is_killed_leaves_nothing, a_terminal_s_keys_are_heard_and_it_is_then_as_before]].

%% A chain: the ends are not connected.
init_per_suite(Config) ->
    {Holder, [A, {_, B} = Middle, C]} = atoll_watch_peers:start(fun() ->
        [atoll_watch_peers:watched(["-connect_all", "false" | Args]) || Args <- [[], ["-mode", "embedded"], []]]
    end),
    [true = call(Peer, net_kernel, connect_node, [B]) || Peer <- [A, C]],
    Dir = atoll_cli_os:new_dir(),
    Cookie = filename:join(Dir, "cookie"),
    ok = file:write_file(Cookie, atoll_watch_peers:cookie()),
    [{holder, Holder}, {peers, [A, Middle, C]}, {dir, Dir}, {cookie, Cookie} | Config].

end_per_suite(Config) ->
    ok = atoll_watch_peers:stop(proplists:get_value(holder, Config)),
    atoll_cli_os:remove_dir(proplists:get_value(dir, Config)).

peers(Config) -> proplists:get_value(peers, Config).

target(Node, Config) -> {joined, "stock", #{nodes => [Node], cookie_file => proplists:get_value(cookie, Config)}}.

%% The calling process is told from the first look on; who subscribes later may have missed something.
watching(Node, Config, Fun) ->
    atoll_cli_line:as_node(fun() ->
        {ok, Watch} = atoll_watch:start_link(target(Node, Config), #{period => ?PERIOD_MS, answer => ?ANSWER_MS, subscriber => self()}),
        try
            Fun(Watch)
        after
            ok = gen_server:stop(Watch)
        end
    end).

all_nodes_are_found_and_none_is_connected_by_it(Config) ->
    [{_, A}, {_, B}, {_, C}] = Peers = peers(Config),
    Links = fun() -> [{lists:sort(call(Peer, erlang, nodes, [])), length(call(Peer, erlang, nodes, [hidden]))} || Peer <- Peers] end,
    Before = [known(Peer) || Peer <- Peers],
    ?assertEqual([{[B], 0}, {lists:sort([A, C]), 0}, {[B], 0}], Links()),
    watching(A, Config, fun(Watch) ->
        ok = atoll_watch:await(Watch, 3, ?LATE_MS),
        %% A busy one may be silent for a while.
        IsWhole = fun(All) -> lists:all(fun(#{state := State, rates := Rates}) -> State =:= up andalso is_map_key(reductions, Rates); (_) -> false end, All) end,
        Seen = await(fun() -> atoll_watch:nodes(Watch) end, IsWhole),
        ?assertEqual([{N, up} || N <- lists:sort([A, B, C])], [{N, State} || #{node := N, state := State} <- Seen]),
        [begin
             ?assert(maps:get(memory_total, Readings) > 0),
             ?assert(maps:get(utilisation, Readings) =< 1),
             ?assert(maps:get(reductions, Rates) > 0)
         end || #{readings := Readings, rates := Rates} <- Seen],
        %% This VM alone is connected with each.
        ?assertEqual([{[B], 1}, {lists:sort([A, C]), 1}, {[B], 1}], Links())
    end),
    %% What the first connection loads stays, and nothing of ours does.
    [await(fun() -> maps:without([modules, tables], known(Peer)) end, fun(Now) -> Now =:= maps:without([modules, tables], Was) end)
     || {Peer, Was} <- lists:zip(Peers, Before)],
    [?assertNot(lists:member(atoll_watch_agent, maps:get(modules, known(Peer)))) || Peer <- Peers].

a_node_is_up_silent_down_and_up_again(Config) ->
    [{_, A} = First | _] = peers(Config),
    Peer = {_, Node} = atoll_watch_peers:watched(["-connect_all", "false"]),
    true = call(First, net_kernel, connect_node, [Node]),
    OsPid = call(Peer, os, getpid, []),
    watching(A, Config, fun(Watch) ->
        ok = heard({state, Node, unknown, up}, Watch),
        [] = os:cmd("kill -STOP " ++ OsPid),
        ok = heard({state, Node, up, silent}, Watch),
        %% The others are asked all the while.
        ok = heard({answers, A}, Watch),
        [] = os:cmd("kill -CONT " ++ OsPid),
        ok = heard({state, Node, silent, up}, Watch),
        ok = atoll_watch_peers:kill(Peer),
        ok = heard({state, Node, up, down}, Watch),
        ok = heard({raised, node_down, Node}, Watch),
        [#{id := Id, state := new}] = [Alarm || #{rule := node_down, node := N} = Alarm <- atoll_watch:alarms(Watch), N =:= Node],
        ok = atoll_watch:acknowledge(Watch, Id, <<"ann">>),
        ok = atoll_watch:comment(Watch, Id, <<"ann">>, <<"it was I">>),
        ?assertEqual({error, {no_alarm, 0}}, atoll_watch:acknowledge(Watch, 0, <<"ann">>)),
        Again = atoll_watch_peers:restarted(Peer, ["-connect_all", "false"]),
        ok = heard({restarted, Node}, Watch),
        ok = heard({state, Node, down, up}, Watch),
        ok = heard({cleared, node_down, Node}, Watch),
        ?assertMatch([#{acknowledged := {_, <<"ann">>}, comments := [{_, <<"ann">>, <<"it was I">>}]}],
                     [Alarm || #{id := Is} = Alarm <- atoll_watch:history(Watch), Is =:= Id]),
        ?assertMatch(#{omitted := 0, beyond := 0}, atoll_watch:counts(Watch)),
        ok = atoll_watch_peers:kill(Again)
    end).

heard(Event, Watch) ->
    receive
        {atoll_watch, Watch, Event} -> ok;
        {atoll_watch, Watch, {looked, #{node := Node, state := up}}} when Event =:= {answers, Node} -> ok;
        {atoll_watch, Watch, {alarm, {What, #{rule := Rule, node := Node}}}} when Event =:= {What, Rule, Node} -> ok
    after ?LATE_MS -> error({not_heard, Event, atoll_watch:nodes(Watch), process_info(self(), messages)})
    end.

a_supervisor_has_it_watch_again(Config) ->
    [{_, A} = Peer | _] = peers(Config),
    atoll_cli_line:as_node(fun() ->
        {ok, Sup} = supervisor:start_link(atoll_watch_peers, atoll_watch:child_spec(target(A, Config), #{period => ?PERIOD_MS})),
        Watch = fun() -> [{{atoll_watch, "stock"}, Pid, worker, _}] = supervisor:which_children(Sup), Pid end,
        First = Watch(),
        ok = atoll_watch:await(First, 1, ?LATE_MS),
        Agent = call(Peer, erlang, whereis, [atoll_watch_agent]),
        true = exit(First, kill),
        Second = await(Watch, fun(Pid) -> is_pid(Pid) andalso Pid =/= First end),
        ok = atoll_watch:await(Second, 1, ?LATE_MS),
        ?assert(is_pid(Agent)),
        ?assertMatch(#{state := up}, hd([Seen || #{node := N} = Seen <- atoll_watch:nodes(Second), N =:= A])),
        true = unlink(Sup),
        Ref = monitor(process, Sup),
        true = exit(Sup, shutdown),
        receive {'DOWN', Ref, process, Sup, _} -> ok end
    end).

a_cluster_that_cannot_be_reached_is_told_why(Config) ->
    process_flag(trap_exit, true),
    atoll_cli_line:as_node(fun() ->
        {error, {unable, Sentence}} = atoll_watch:start_link(target('nobody_at_all@127.0.0.1', Config), #{}),
        ?assertMatch({match, _}, re:run(Sentence, "^No node called nobody_at_all is registered"))
    end).

run(Config, Args) ->
    [{_, First} | _] = peers(Config),
    atoll_cli_line:run(proplists:get_value(dir, Config), Args ++ ["--node", atom_to_list(First), "--cookie-file", proplists:get_value(cookie, Config)]).

told(Config, Args) ->
    #{status := 0, stdout := Json, stderr := <<>>} = run(Config, Args ++ ["--json"]),
    atoll_cli_os:decode(Json).

the_commands_say_how_the_nodes_are(Config) ->
    Names = lists:sort([atom_to_binary(Node) || {_, Node} <- peers(Config)]),
    #{status := 0, stdout := Table, stderr := <<>>} = run(Config, ["top", "--once", "--period", "0.2"]),
    ?assertMatch({match, _}, re:run(Table, ": 3 of 3 nodes up, no alarm\nnode +state +utilisation ")),
    [?assertMatch({match, _}, re:run(Table, [$\n, Name, " +up +[0-9.]+ % +[0-9]+ +[0-9]+ MB +[0-9]+ +[0-9,]+ "])) || Name <- Names],
    [#{<<"name">> := _, <<"memory">> := _} | _] = maps:get(<<"processes">>, told(Config, ["top", atom_to_list(element(2, hd(peers(Config)))), "--period", "0.2"])),
    #{<<"nodes">> := Nodes} = told(Config, ["metrics", "processes", "dist_in", "utilisation", "--period", "0.2"]),
    ?assertEqual(Names, [Node || #{<<"node">> := Node, <<"state">> := <<"up">>} <- Nodes]),
    [begin
         ?assertEqual([<<"dist_in">>, <<"processes">>, <<"utilisation">>], lists:sort(maps:keys(Metrics))),
         %% Those that are connected, and not who asks.
         ?assertEqual([], maps:keys(maps:get(<<"dist_in">>, Metrics)) -- Names)
     end || #{<<"metrics">> := Metrics} <- Nodes],
    #{status := 0, stdout := Text} = run(Config, ["metrics", "processes", "--prometheus", "--period", "0.2"]),
    [?assertMatch({match, _}, re:run(Text, ["erlang_processes{node=\"", Name, "\"} [0-9]+\n"])) || Name <- Names],
    #{<<"alarms">> := []} = told(Config, ["alarms", "--looks", "1"]).

what_is_wrong_with_a_node_is_an_alarm(Config) ->
    [{_, Node} = Peer | _] = peers(Config),
    Sleeper = call(Peer, erlang, spawn, [timer, sleep, [infinity]]),
    true = call(Peer, erlang, register, [desk, Sleeper]),
    _ = call(Peer, lists, zipwith, [fun erlang:send/2, lists:duplicate(10001, Sleeper), lists:seq(1, 10001)]),
    try
        #{status := 1, stdout := Table, stderr := <<"atoll alarms: 1 alarm stands\n">>} = run(Config, ["alarms", "--looks", "2", "--period", "0.2"]),
        ?assertMatch({match, _}, re:run(Table, ["\nmajor +", atom_to_list(Node), " +mailbox +desk +10,001 +a process gets more messages than it handles"])),
        ?assertMatch({match, _}, re:run(Table, "\nmailbox: see what it is doing"))
    after
        true = call(Peer, erlang, exit, [Sleeper, kill])
    end.

%% A mesh: one has another flag, two have another version of a module each, and those two are cut from each other.
what_is_wrong_between_nodes_is_one_alarm_for_each_cause(Config) ->
    Started = fun(More) -> atoll_watch_peers:watched(["-kernel", "prevent_overlapping_partitions", "false" | More]) end,
    [{_, A}, {_, B} = Second, {_, C} = Third] = Mesh = [Started([]), Started(["-kernel", "net_ticktime", "30"]), Started([])],
    [true = call(Peer, net_kernel, connect_node, [A]) || Peer <- [Second, Third]],
    [begin
         {ok, odd, Code} = compile:forms([{attribute, 1, module, odd}, {attribute, 1, export, [{f, 0}]}, {function, 1, f, 0, [{clause, 1, [], [], [{integer, 1, Version}]}]}]),
         {module, odd} = call(Peer, code, load_binary, [odd, "odd", Code])
     end || {Peer, Version} <- lists:zip(Mesh, [1, 1, 2])],
    Cookies = fun(Each) -> [true = call(Peer, erlang, set_cookie, [Other, Of]) || {Peer, Other, Of} <- lists:zip3([Second, Third], [C, B], Each)] end,
    %% Neither lets the other in.
    _ = Cookies([one_of_them, another]),
    _ = call(Second, erlang, disconnect_node, [C]),
    watching(A, Config, fun(Watch) ->
        [ok = heard({raised, Rule, Node}, Watch) || {Rule, Node} <- [{flags, B}, {module_versions, C}, {partition, lists:min([B, C])}]],
        %% On a busy machine a node may be silent for a while as well.
        Alarms = [Alarm || #{rule := Rule} = Alarm <- atoll_watch:alarms(Watch), Rule =/= node_silent],
        ?assertEqual([flags, module_versions, partition], lists:sort([Rule || #{rule := Rule} <- Alarms])),
        #{partition := Cut, flags := Flags, module_versions := Module} = maps:from_list([{Rule, Alarm} || #{rule := Rule} = Alarm <- Alarms]),
        ?assertEqual(lists:sort([B, C]), lists:sort(maps:get(nodes, Cut))),
        ?assertMatch(#{instance := net_ticktime, nodes := [B], information := <<"60 on ", _/binary>>}, Flags),
        ?assertMatch(#{instance := <<"odd">>, nodes := [C], value := 2}, Module),
        _ = Cookies([list_to_atom(atoll_watch_peers:cookie()) || _ <- [1, 2]]),
        %% One of them may just have tried with the cookie of before.
        true = await(fun() -> call(Second, net_kernel, connect_node, [C]) end, fun(Is) -> Is end),
        ok = heard({cleared, partition, lists:min([B, C])}, Watch)
    end),
    [ok = atoll_watch_peers:kill(Peer) || Peer <- Mesh].

rules_of_a_file_count(Config) ->
    File = filename:join(proplists:get_value(dir, Config), "shop.rules"),
    ok = file:write_file(File, "{there, #{about => {value, processes}, raise => 1, clear => 0, looks => 1, severity => minor, cause => \"it is there\"}}.\n{mailbox, #{off => true}}.\n"),
    #{status := 0, stdout := Table} = run(Config, ["alarms", "--rules", "--rules-file", File]),
    ?assertMatch({match, _}, re:run(Table, "\nthere +minor +processes +1 +below 0 +1\n")),
    ?assertEqual(nomatch, re:run(Table, "mailbox")),
    #{status := 1, stdout := Alarms} = run(Config, ["alarms", "--rules-file", File, "--looks", "1", "--period", "0.2"]),
    [?assertMatch({match, _}, re:run(Alarms, ["\nminor +", atom_to_list(Node), " +there +[0-9]+ +it is there"])) || {_, Node} <- peers(Config)],
    ok = file:write_file(File, "{mailbox, #{raise => high}}.\n"),
    [?assertMatch({_, #{status := 3, stderr := <<_/binary>>}}, {Command, run(Config, Command)}) || Command <- [["alarms", "--rules-file", File], ["watch", "--rules", File, "--port", "65000"]]],
    #{stderr := Said} = run(Config, ["alarms", "--rules-file", File]),
    ?assertMatch({match, _}, re:run(Said, "shop.rules: the rule mailbox: raise must be a number.\n")).

%% As a process of its own, for which Ctrl-C and worse are the usual end.
a_command_that_is_killed_leaves_nothing(Config) ->
    [{_, Node} = Peer | _] = peers(Config),
    Dir = atoll_cli_os:new_dir(),
    Program = atoll_cli_os:start(Dir, ["top", "--period", "0.5", "--node", atom_to_list(Node), "--cookie-file", proplists:get_value(cookie, Config)]),
    Screens = fun Screens(Seen) -> case binary:matches(Seen, <<"nodes up">>) of [_, _ | _] -> ok; _ -> Screens(<<Seen/binary, (atoll_cli_os:await_line(Program, stdout, <<"nodes up">>))/binary>>) end end,
    ok = Screens(<<>>),
    true = call(Peer, erlang, module_loaded, [atoll_watch_agent]),
    ok = atoll_cli_os:signal(Program, "KILL"),
    false = await(fun() -> call(Peer, erlang, module_loaded, [atoll_watch_agent]) end, fun(Is) -> not Is end),
    ?assertMatch(#{handlers := [default], counting := false}, known(Peer)),
    atoll_cli_os:remove_dir(Dir).

%% Through `script', whose other end is a terminal. What is typed comes over a pipe with a name.
a_terminal_s_keys_are_heard_and_it_is_then_as_before(Config) ->
    case atoll_cli_os:has_terminals() of
        false -> {skip, "no program can be run on a terminal of its own here"};
        true ->
            [{_, Node} | _] = peers(Config),
            [begin
                 Dir = atoll_cli_os:new_dir(),
                 Keys = filename:join(Dir, "keys"),
                 [] = os:cmd("mkfifo " ++ Keys),
                 Top = ["bin/atoll top --period 1 --node ", atom_to_list(Node), " --cookie-file ", proplists:get_value(cookie, Config)],
                 Line = lists:concat(["script -qec 'stty rows 24 cols 150; ", lists:flatten(Top), "; stty -a' /dev/null <", Keys]),
                 Program = atoll_cli_os:start(Dir, {sh, Line}),
                 {ok, Hands} = file:open(Keys, [write, raw, binary]),
                 _ = atoll_cli_os:await_line(Program, stdout, <<"space pauses">>),
                 ok = file:write(Hands, " "),
                 _ = atoll_cli_os:await_line(Program, stdout, <<"space goes on">>),
                 ok = End(Hands, Dir),
                 _ = atoll_cli_os:await_line(Program, stdout, <<" icanon ">>),
                 ok = file:close(Hands),
                 atoll_cli_os:remove_dir(Dir)
             end || End <- [
                fun(Hands, _) -> file:write(Hands, "q") end,
                fun(_, Dir) ->
                    [Vm] = [Pid || {Pid, _} <- atoll_cli_os:left(Dir, fun(Command) -> lists:member("top", Command) end), atoll_cli_os:is_vm(Pid)],
                    atoll_cli_os:signal(Vm, "KILL")
                end
             ]]
    end.
