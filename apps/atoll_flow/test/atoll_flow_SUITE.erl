%% SPDX-License-Identifier: Apache-2.0
%% The traffic of nodes of a plain erl, without Atoll: what a script sends is what is counted, and nothing of it stays.
-module(atoll_flow_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([
    what_a_script_sends_is_counted_exactly/1,
    what_a_message_is_and_who_sends_it_is_told/1,
    above_the_limit_it_samples_and_says_so/1,
    a_program_that_traces_already_is_left_alone/1,
    nothing_stays_when_it_ends_or_is_killed/1,
    an_agent_that_is_killed_is_replaced_and_nothing_is_counted_twice/1,
    agents_live_where_their_nodes_are_and_are_replaced_with_their_vm/1,
    where_no_agent_can_be_started_it_says_so_and_ends/1,
    a_node_that_is_killed_is_traced_again_when_it_is_back/1,
    a_node_that_is_lost_just_after_a_look_is_lost/1,
    two_who_look_count_the_same/1,
    groups_of_another_implementation_are_followed/1,
    the_commands_print_and_record_it/1
]).

-import(atoll_watch_peers, [call/4, call/5, await/2]).

-define(LATE_MS, 60000).
%% Half a million of them take more than a minute where others have work too.
-define(PINGS_MS, 300000).
-define(PROBE, atoll_flow_probe).
%% Times are those of a machine that is not busy: the quickest of so many counts.
-define(TRIES, 4).

suite() -> [{timetrap, {minutes, 7}}].

all() ->
    [what_a_script_sends_is_counted_exactly, what_a_message_is_and_who_sends_it_is_told, above_the_limit_it_samples_and_says_so, a_program_that_traces_already_is_left_alone,
     nothing_stays_when_it_ends_or_is_killed, an_agent_that_is_killed_is_replaced_and_nothing_is_counted_twice, a_node_that_is_killed_is_traced_again_when_it_is_back,
     a_node_that_is_lost_just_after_a_look_is_lost, where_no_agent_can_be_started_it_says_so_and_ends, two_who_look_count_the_same, groups_of_another_implementation_are_followed, the_commands_print_and_record_it] ++
    [agents_live_where_their_nodes_are_and_are_replaced_with_their_vm || atoll_tier:tier() =:= deep].

%% A chain: the ends are not connected.
init_per_suite(Config) ->
    {Holder, [A, {_, B} = Middle, C]} = atoll_watch_peers:start(fun() ->
        [atoll_flow_script:load(atoll_watch_peers:watched(["-connect_all", "false" | Args])) || Args <- [[], ["-mode", "embedded"], []]]
    end),
    [true = call(Peer, net_kernel, connect_node, [B]) || Peer <- [A, C]],
    ok = call(Middle, atoll_flow_script, echo, []),
    Dir = atoll_cli_os:new_dir(),
    Cookie = filename:join(Dir, "cookie"),
    ok = file:write_file(Cookie, atoll_watch_peers:cookie()),
    [{holder, Holder}, {peers, [A, Middle, C]}, {dir, Dir}, {cookie, Cookie} | Config].

end_per_suite(Config) ->
    ok = atoll_watch_peers:stop(proplists:get_value(holder, Config)),
    atoll_cli_os:remove_dir(proplists:get_value(dir, Config)).

peers(Config) -> proplists:get_value(peers, Config).

target(Config) ->
    [{_, Node} | _] = peers(Config),
    {joined, "stock", #{nodes => [Node], cookie_file => proplists:get_value(cookie, Config)}}.

observing(Options, Config, Fun) ->
    atoll_cli_line:as_node(fun() ->
        {ok, Flow} = atoll_flow:start_link(target(Config), Options),
        try
            ok = atoll_flow:settle(Flow, ?LATE_MS),
            Fun(Flow)
        after
            ok = gen_server:stop(Flow)
        end
    end).

counted(Flow) ->
    ok = atoll_flow:settle(Flow, ?LATE_MS),
    Totals = atoll_flow_sums:totals(atoll_flow:sums(Flow)),
    fun(From, To, Kind) ->
        Found = [Sum || {{F, T, _, K, _}, Sum} <- maps:to_list(Totals), {F, T, K} =:= {From, To, Kind}],
        {lists:sum([C || {C, _} <- Found]), lists:sum([B || {_, B} <- Found])}
    end.

what_a_script_sends_is_counted_exactly(Config) ->
    [{_, A} = PeerA, {_, B} = PeerB, {_, C}] = peers(Config),
    Pings = atoll_tier:size(flow_messages) div 2,
    Links = fun() -> [lists:sort(call(Peer, erlang, nodes, [])) || Peer <- peers(Config)] end,
    Before = Links(),
    observing(#{trace => true}, Config, fun(Flow) ->
        ?assertEqual(lists:sort([A, B, C]), [Node || {{free, Node}, [{Node, up}]} <- atoll_flow:agents(Flow)]),
        ok = atoll_flow:subscribe(Flow),
        ok = call(PeerA, atoll_flow_script, ping, [B, Pings], ?PINGS_MS),
        Sizes = call(PeerA, atoll_flow_script, sized, [B, [1, 1000, 100000]]),
        Counted = counted(Flow),
        {Count, Bytes} = Counted(A, B, message),
        ?assertEqual({Pings + 3, Pings}, {Count, element(1, Counted(B, A, message)) - 3}),
        %% All pings are of one size.
        ?assertEqual(0, (Bytes - lists:sum(Sizes)) rem Pings),
        ?assertEqual({0, 0}, Counted(A, C, message)),
        %% What the connection has carried is more packets than these, and not many.
        {Packets, Wire} = Counted(A, B, wire),
        ?assert(Packets >= Pings + 3),
        ?assert(Packets < Pings + 1000),
        ?assert(Wire > lists:sum(Sizes)),
        #{nodes := Nodes, shares := Shares} = atoll_flow:status(Flow),
        ?assertEqual([up], lists:usort([Is || {_, Is} <- Nodes])),
        ?assertEqual([{1.0, 0}], lists:usort([{Share, Estimated} || {_, Share, Estimated} <- Shares])),
        ?assertEqual(Before, Links()),
        Tables = atoll_flow_table:of_sums(messages, atoll_flow:sums(Flow)),
        {All, 0} = atoll_flow_table:between(Tables),
        ?assertEqual(2 * (Pings + 3), All),
        %% What frames have said live is the same.
        ?assertEqual({Pings + 3, Bytes}, framed(Flow, A, B, Pings + 3, {0, 0}))
    end),
    _ = PeerB.

framed(_, _, _, Most, {Count, _} = Sum) when Count >= Most -> Sum;
framed(Flow, A, B, Most, Sum) ->
    receive
        {atoll_flow, Flow, #{edges := Edges}} ->
            framed(Flow, A, B, Most, lists:foldl(fun({_, _, C, S}, {Count, Bytes}) -> {Count + C, Bytes + S} end, Sum, [Edge || {From, To, _, _} = Edge <- Edges, {From, To} =:= {A, B}]))
    after ?LATE_MS -> {late, Sum}
    end.

what_a_message_is_and_who_sends_it_is_told(Config) ->
    [{_, A} = PeerA, {_, B}, _] = peers(Config),
    observing(#{trace => true, by => name}, Config, fun(Flow) ->
        ok = call(PeerA, atoll_flow_script, kinds, [B]),
        ok = call(PeerA, atoll_flow_script, ping, [B, 10]),
        Counted = counted(Flow),
        %% erpc and gen_server monitor, too.
        ?assertEqual({1, 3, 2}, {element(1, Counted(A, B, call)), element(1, Counted(A, B, link)), element(1, Counted(A, B, exit))}),
        ?assert(element(1, Counted(A, B, monitor)) >= 3),
        Totals = maps:to_list(atoll_flow_sums:totals(atoll_flow:sums(Flow))),
        ?assertEqual([11], [Count || {{From, _, _, message, atoll_flow_script}, {Count, _}} <- Totals, From =:= B])
    end).

%% So many a second that the most of the time nothing is traced; when it is quiet, and all is traced again, the estimate is within two hundredths.
%% Large messages come between, which are not many.
above_the_limit_it_samples_and_says_so(Config) ->
    [{_, A} = PeerA, {_, B}, _] = peers(Config),
    Ms = atoll_tier:size(flow_flood_ms),
    observing(#{trace => true, limit => 5000}, Config, fun(Flow) ->
        Sent = call(PeerA, atoll_flow_script, flood, [B, Ms], ?LATE_MS),
        _ = await(fun() -> maps:get(sampled, atoll_flow:status(Flow)) end, fun(Sampled) -> Sampled =:= [] end),
        {Count, _} = (counted(Flow))(A, B, message),
        #{shares := Shares, longest := Longest} = Status = atoll_flow:status(Flow),
        {A, Share, Estimated} = lists:keyfind(A, 1, Shares),
        ct:pal("~b sent, ~b counted (~.2f %), ~b of them estimates, traced ~.1f % of the time, ~b waited at most", [Sent, round(Count), 100 * Count / Sent, Estimated, 100 * Share, Longest]),
        ?assert(abs(Count - Sent) =< 0.02 * Sent),
        ?assert(Share < 0.9),
        ?assert(Estimated > Sent / 10 andalso Estimated < Count),
        ?assert(Longest < 50000),
        ?assertMatch([_ | _], [Line || Line <- atoll_flow_cli:said(Status), string:find(lists:flatten(Line), "of the time was traced") =/= nomatch])
    end).

a_program_that_traces_already_is_left_alone(Config) ->
    [{_, A} = PeerA, {_, B}, _] = peers(Config),
    Sessions = has_sessions(PeerA),
    %% Of a process that lives on.
    Tracer = call(PeerA, erlang, spawn, [timer, sleep, [infinity]]),
    _ = call(PeerA, erlang, trace, [new_processes, true, [procs, {tracer, Tracer}]]),
    try
        observing(#{trace => true}, Config, fun(Flow) ->
            ok = call(PeerA, atoll_flow_script, ping, [B, 10]),
            ok = atoll_flow:settle(Flow, ?LATE_MS),
            #{nodes := Nodes} = Status = atoll_flow:status(Flow),
            case Sessions of
                true -> ?assertEqual(up, proplists:get_value(A, Nodes));
                false ->
                    ?assertEqual(busy, proplists:get_value(A, Nodes)),
                    ?assertEqual([[atom_to_list(A), " is traced by another program already, so its messages are not counted"]], atoll_flow_cli:said(Status))
            end,
            %% The other end is counted.
            ?assertEqual(10, element(1, (counted(Flow))(B, A, message)))
        end),
        ?assertEqual({flags, [procs]}, call(PeerA, erlang, trace_info, [new_processes, flags]))
    after
        _ = call(PeerA, erlang, trace, [new_processes, false, [all]])
    end,
    %% It sees what it looks for, of the one process that it traces.
    Pinger = call(PeerA, atoll_flow_script, pinger, []),
    1 = call(PeerA, atoll_flow_script, watched_sends, [Pinger, B, on]),
    try
        observing(#{trace => true}, Config, fun(Flow) ->
            ?assertEqual(case Sessions of true -> up; false -> busy end, proplists:get_value(A, maps:get(nodes, atoll_flow:status(Flow)))),
            ?assertEqual(3, call(PeerA, atoll_flow_script, watched_sends, [Pinger, B, 3]))
        end)
    after
        call(PeerA, atoll_flow_script, watched_sends, [Pinger, B, off])
    end.

traces(Peer) ->
    #{
        flags => lists:usort([call(Peer, erlang, trace_info, [Pid, flags]) || Pid <- call(Peer, erlang, processes, []), call(Peer, erlang, is_process_alive, [Pid])]),
        new => call(Peer, erlang, trace_info, [new_processes, flags]),
        send => call(Peer, erlang, trace_info, [send, match_spec]),
        calls => [call(Peer, erlang, trace_info, [Call, traced]) || Call <- [{erlang, link, 1}, {erlang, monitor, 2}, {erlang, monitor, 3}, {erlang, exit, 2}]],
        session => has_session(Peer),
        probe => call(Peer, erlang, whereis, [?PROBE]),
        modules => [Module || Module <- ?PROBE:modules(), call(Peer, erlang, module_loaded, [Module]) orelse call(Peer, erlang, check_old_code, [Module])]
    }.

%% Whether one of ours is there, where OTP has any.
has_session(Peer) ->
    has_sessions(Peer) andalso string:find(io_lib:format("~0p", [call(Peer, trace, session_info, [all])]), "atoll_flow") =/= nomatch.

has_sessions(Peer) -> call(Peer, code, ensure_loaded, [trace]) =:= {module, trace}.

clean() ->
    #{session => false, flags => [{flags, []}], new => {flags, []}, send => {match_spec, true}, calls => lists:duplicate(4, {traced, false}), probe => undefined, modules => []}.

%% In either way.
nothing_stays_when_it_ends_or_is_killed(Config) ->
    [PeerA, _, _] = Peers = peers(Config),
    Known = fun() -> [maps:with([registered, handlers, filters, visible], atoll_watch_peers:known(Peer)) || Peer <- Peers] end,
    %% The probes of an observation go a moment after it.
    ok = left_alone(Peers),
    Before = Known(),
    observing(#{trace => true}, Config, fun(_) ->
        ?assertNotEqual(undefined, call(PeerA, erlang, whereis, [?PROBE])),
        ?assertEqual(has_sessions(PeerA), has_session(PeerA))
    end),
    _ = [await(fun() -> (traces(Peer))#{state => catch call(Peer, sys, get_state, [?PROBE])} end, fun(Is) -> maps:remove(state, Is) =:= clean() end) || Peer <- Peers],
    Cookie = proplists:get_value(cookie, Config),
    [{_, A} | _] = Peers,
    Program = atoll_cli_os:start(proplists:get_value(dir, Config), ["watch", "traffic", "--trace", "--live", "--node", atom_to_list(A), "--cookie-file", Cookie]),
    _ = await(fun() -> call(PeerA, erlang, whereis, [?PROBE]) end, fun is_pid/1),
    ok = atoll_cli_os:signal_group(Program, "KILL"),
    ok = left_alone(Peers),
    _ = await(Known, fun(Is) -> Is =:= Before end),
    ok.

left_alone(Peers) ->
    _ = [await(fun() -> traces(Peer) end, fun(Is) -> Is =:= clean() end) || Peer <- Peers],
    ok.

an_agent_that_is_killed_is_replaced_and_nothing_is_counted_twice(Config) ->
    [{_, A} = PeerA, {_, B}, _] = peers(Config),
    observing(#{trace => true}, Config, fun(Flow) ->
        ok = call(PeerA, atoll_flow_script, ping, [B, 100]),
        ?assertEqual(100, element(1, (counted(Flow))(A, B, message))),
        %% While messages are sent.
        {Pinging, Ref} = spawn_monitor(fun() -> exit(call(PeerA, atoll_flow_script, pings, [B, 1000])) end),
        Place = place(Flow),
        {links, Agents} = process_info(Place, links),
        _ = [true = exit(Pid, kill) || Pid <- Agents, is_pid(Pid), Pid =/= Flow],
        _ = await(fun() -> maps:get(agents_lost, atoll_flow:status(Flow)) end, fun(N) -> N >= 3 end),
        N = receive {'DOWN', Ref, process, Pinging, Sent} -> Sent end,
        ok = atoll_flow:settle(Flow, ?LATE_MS),
        ok = call(PeerA, atoll_flow_script, ping, [B, 100]),
        ?assertEqual({200 + N, 200 + N}, {element(1, (counted(Flow))(A, B, message)), element(1, (counted(Flow))(B, A, message))}),
        ?assertEqual(3, length(atoll_flow:agents(Flow)))
    end).

place(Flow) ->
    {links, Links} = process_info(Flow, links),
    [Place] = [Pid || Pid <- Links, is_pid(Pid), {dictionary, D} <- [process_info(Pid, dictionary)], proplists:get_value('$initial_call', D) =:= {atoll_view_reporter, init, 1}],
    Place.

%% The program that would get to another host is told which, and comes back to this one.
agents_live_where_their_nodes_are_and_are_replaced_with_their_vm(Config) ->
    [{_, A} = PeerA, {_, B}, _] = peers(Config),
    Program = filename:join(proplists:get_value(dir, Config), "to_host"),
    ok = file:write_file(Program, "#!/bin/sh\necho \"$1\" >> \"$0.hosts\"\nshift\nexec \"$@\"\n"),
    ok = file:change_mode(Program, 8#755),
    observing(#{trace => true, remote => Program}, Config, fun(Flow) ->
        ?assertEqual({ok, <<"127.0.0.1\n">>}, file:read_file(Program ++ ".hosts")),
        ok = call(PeerA, atoll_flow_script, ping, [B, 100]),
        ?assertEqual(100, element(1, (counted(Flow))(A, B, message))),
        ok = kill_vm(Flow),
        _ = await(fun() -> maps:get(agents_lost, atoll_flow:status(Flow)) end, fun(N) -> N >= 3 end),
        ok = atoll_flow:settle(Flow, ?LATE_MS),
        ok = call(PeerA, atoll_flow_script, ping, [B, 100]),
        ?assertEqual({200, 200}, {element(1, (counted(Flow))(A, B, message)), element(1, (counted(Flow))(B, A, message))}),
        ?assertEqual({ok, <<"127.0.0.1\n127.0.0.1\n">>}, file:read_file(Program ++ ".hosts"))
    end).

%% As ssh does for a host that is off, or where there is no ssh.
where_no_agent_can_be_started_it_says_so_and_ends(Config) ->
    Dir = proplists:get_value(dir, Config),
    [{_, A} | _] = peers(Config),
    Off = filename:join(Dir, "off"),
    ok = file:write_file(Off, "#!/bin/sh\necho \"$1\" >> \"$0.hosts\"\nexit 255\n"),
    ok = file:change_mode(Off, 8#755),
    [begin
        #{status := 3, stderr := Said, stdout := <<>>} = atoll_cli_line:run(Dir, ["watch", "traffic", "--for", "2", "--node", atom_to_list(A), "--cookie-file", proplists:get_value(cookie, Config), "--remote", Program]),
        ?assertMatch({{_, _}, _}, {binary:match(Said, iolist_to_binary(["What observes traffic cannot be started in a VM of its own on 127.0.0.1 by ", Program])), Said}),
        ?assert(byte_size(Said) < 20000)
    end || Program <- [Off, filename:join(Dir, "none")]],
    %% Once, not again and again.
    ?assertEqual({ok, <<"127.0.0.1\n">>}, file:read_file(Off ++ ".hosts")).

kill_vm(Flow) ->
    {links, Links} = process_info(Flow, links),
    [Vm] = [Pid || Pid <- Links, is_pid(Pid), {dictionary, D} <- [process_info(Pid, dictionary)], proplists:get_value('$initial_call', D) =:= {atoll_view_reporter_vm, init, 1}],
    {links, Under} = process_info(Vm, links),
    [Peer] = [Pid || Pid <- Under, is_pid(Pid), {dictionary, D} <- [process_info(Pid, dictionary)], proplists:get_value('$initial_call', D) =:= {peer, init, 1}],
    ok = atoll_cli_os:signal(list_to_integer(peer:call(Peer, os, getpid, [])), "KILL").

a_node_that_is_killed_is_traced_again_when_it_is_back(Config) ->
    [{_, A} = PeerA | _] = peers(Config),
    {_, D} = First = atoll_flow_script:load(atoll_watch_peers:watched(["-connect_all", "false"])),
    ok = call(First, atoll_flow_script, echo, []),
    true = call(PeerA, net_kernel, connect_node, [D]),
    observing(#{trace => true}, Config, fun(Flow) ->
        ok = call(PeerA, atoll_flow_script, ping, [D, 10]),
        ?assertEqual(10, element(1, (counted(Flow))(D, A, message))),
        Again = traced_again(First, fun() -> proplists:get_value(D, maps:get(nodes, atoll_flow:status(Flow))) end, 1),
        ok = atoll_flow:settle(Flow, ?LATE_MS),
        ok = call(Again, atoll_flow_script, echo, []),
        %% They are connected again by the first one, which OTP uses for messages of its own.
        ok = call(PeerA, atoll_flow_script, ping, [D, 1]),
        Both = fun() -> Counted = counted(Flow), {element(1, Counted(D, A, message)), element(1, Counted(A, D, message))} end,
        {Back, Forth} = Both(),
        ?assert(Back > 10),
        ok = call(PeerA, atoll_flow_script, ping, [D, 10]),
        ?assertEqual({Back + 10, Forth + 10}, Both()),
        ok = atoll_watch_peers:kill(Again)
    end).

traced_again(Peer, Is, Try) ->
    ok = atoll_watch_peers:kill(Peer),
    _ = await(Is, fun(State) -> State =:= down end),
    Again = atoll_flow_script:load(atoll_watch_peers:restarted(Peer, ["-connect_all", "false"])),
    Begun = erlang:monotonic_time(millisecond),
    _ = await(Is, fun(State) -> State =:= up end),
    Took = erlang:monotonic_time(millisecond) - Begun,
    ct:pal("traced again after ~b ms", [Took]),
    case Took =< 2000 of
        true -> Again;
        false -> ?assert(Try < ?TRIES, Took), traced_again(Again, Is, Try + 1)
    end.

%% Both are in one report, and no other look comes after these.
a_node_that_is_lost_just_after_a_look_is_lost(Config) ->
    [_, {_, B}, _] = peers(Config),
    observing(#{period => 10 * ?LATE_MS}, Config, fun(Flow) ->
        Agent = {free, B},
        Look = #{at => 0, life => none, groups => none, peers => [], connections => [], tracing => off, sent => [], load => none},
        Is = fun(Events) ->
            Flow ! {report, place(Flow), #{looks => [{Agent, B, 2, Look}], events => [{What, Agent, B} || What <- Events], agents => [], omitted => 0}},
            {proplists:get_value(B, maps:get(nodes, atoll_flow:status(Flow))), proplists:get_value(Agent, atoll_flow:agents(Flow))}
        end,
        ?assertEqual({down, [{B, down}]}, Is([node_down])),
        ?assertEqual({up, [{B, up}]}, Is([node_up])),
        ?assertEqual({down, [{B, down}]}, Is([node_down, node_up, node_down])),
        ?assertEqual({up, [{B, up}]}, Is([node_up, node_down, node_up]))
    end).

two_who_look_count_the_same(Config) ->
    [{_, A} = PeerA, {_, B}, _] = peers(Config),
    observing(#{trace => true}, Config, fun(One) ->
        {ok, Other} = atoll_flow:start_link(target(Config), #{trace => true}),
        ok = atoll_flow:settle(Other, ?LATE_MS),
        ok = call(PeerA, atoll_flow_script, ping, [B, 50]),
        ?assertEqual([{50, 50}, {50, 50}], [{element(1, (counted(Flow))(A, B, message)), element(1, (counted(Flow))(B, A, message))} || Flow <- [One, Other]]),
        ok = gen_server:stop(Other),
        %% Tracing goes on for the other one, whoever comes and goes meanwhile, and whatever they want.
        {Pinging, Ref} = spawn_monitor(fun() -> exit(call(PeerA, atoll_flow_script, pings, [B, 1200])) end),
        _ = [begin
            {ok, Third} = atoll_flow:start_link(target(Config), Wants),
            ok = atoll_flow:settle(Third, ?LATE_MS),
            ok = gen_server:stop(Third)
        end || Wants <- [#{trace => true, by => name, limit => 90000}, #{trace => false, limit => 100}]],
        N = receive {'DOWN', Ref, process, Pinging, Sent} -> Sent end,
        ?assertEqual({50 + N, 50 + N}, {element(1, (counted(One))(A, B, message)), element(1, (counted(One))(B, A, message))}),
        ?assertEqual([1.0], lists:usort([Share || {_, Share, _} <- maps:get(shares, atoll_flow:status(One))]))
    end).

%% One that has nothing in common with Atoll's but what it is called.
groups_of_another_implementation_are_followed(Config) ->
    [{_, A} = PeerA, {_, B} = PeerB, {_, C}] = peers(Config),
    {ok, s_group, Code} = compile:forms([
        {attribute, 1, module, s_group}, {attribute, 1, export, [{own_s_groups, 0}]},
        {function, 1, own_s_groups, 0, [{clause, 1, [], [], [{call, 1, {remote, 1, {atom, 1, persistent_term}, {atom, 1, get}}, [{atom, 1, s_groups}, {nil, 1}]}]}]}
    ]),
    Both = [PeerA, PeerB],
    _ = [{module, s_group} = call(Peer, code, load_binary, [s_group, "s_group.erl", Code]) || Peer <- Both],
    try
        observing(#{}, Config, fun(Flow) ->
            Agents = fun() -> [Agent || {Agent, _} <- atoll_flow:agents(Flow)] end,
            ?assertEqual(lists:sort([{free, A}, {free, B}, {free, C}]), Agents()),
            Took = fun(Change, Wanted) ->
                Begun = erlang:monotonic_time(millisecond),
                true = lists:all(fun(Peer) -> lists:member(call(Peer, persistent_term, hd(Change), tl(Change)), [ok, true]) end, Both),
                _ = await(Agents, fun(Is) -> Is =:= lists:sort(Wanted) end),
                erlang:monotonic_time(millisecond) - Begun
            end,
            Until = erlang:monotonic_time(millisecond) + ?LATE_MS,
            Seen = fun Seen() ->
                New = Took([put, s_groups, [{reef, lists:sort([A, B])}]], [{free, C}, {group, reef}]),
                Deleted = Took([erase, s_groups], [{free, A}, {free, B}, {free, C}]),
                ct:pal("a new group was seen after ~b ms, that it is deleted after ~b ms", [New, Deleted]),
                case max(New, Deleted) =< 1000 of
                    true -> ok;
                    false -> ?assert(erlang:monotonic_time(millisecond) < Until, {New, Deleted}), Seen()
                end
            end,
            ok = Seen()
        end)
    after
        _ = [call(Peer, code, Take, [s_group]) || Peer <- Both, Take <- [delete, purge]]
    end.

the_commands_print_and_record_it(Config) ->
    [{_, A} = PeerA, {_, B}, _] = peers(Config),
    Dir = proplists:get_value(dir, Config),
    Where = ["--node", atom_to_list(A), "--cookie-file", proplists:get_value(cookie, Config)],
    {Pinger, Ref} = spawn_monitor(fun() -> pinging(PeerA, B) end),
    #{status := 0, stdout := Json} = atoll_cli_line:run(Dir, ["watch", "traffic", "--trace", "--for", "1", "--json" | Where]),
    #{<<"total">> := Sent, <<"between_groups">> := 0, <<"counted">> := <<"messages">>, <<"node">> := Pairs, <<"sampled">> := Sampled} = atoll_cli_os:decode(Json),
    ?assert(Sent > 10),
    ?assertEqual(#{}, Sampled),
    ?assertEqual(Sent, lists:sum([Count || #{<<"count">> := Count} <- Pairs])),
    #{status := 0, stdout := Csv} = atoll_cli_line:run(Dir, ["watch", "traffic", "--for", "1", "--csv", "flow" | Where]),
    [<<"node,in,out">> | Rows] = binary:split(Csv, <<"\r\n">>, [global, trim]),
    Carried = maps:from_list([{Node, {In, Out}} || Row <- Rows, [Node, In, Out] <- [binary:split(Row, <<",">>, [global])]]),
    [?assertMatch({Node, #{Node := {In, Out}}} when In =/= <<"0">> andalso Out =/= <<"0">>, {Node, Carried}) || Node <- [atom_to_binary(A), atom_to_binary(B)]],
    %% A sign of life of an idle connection is a packet, too.
    ?assertEqual([], maps:keys(Carried) -- [atom_to_binary(Node) || {_, Node} <- peers(Config)]),
    #{status := 0, stdout := Text} = atoll_cli_line:run(Dir, ["watch", "traffic", "--for", "1s" | Where]),
    [?assertMatch({Title, {_, _}}, {Title, binary:match(Text, Title)}) || Title <- [<<" packets between nodes in ">>, <<"From node to node:">>, <<"At each node:">>]],
    File = filename:join(Dir, "traffic.flow"),
    Kept = filename:join(Dir, "kept"),
    #{status := 0, stdout := Said} = atoll_cli_line:run(Dir, ["watch", "record", File, "--for", "3s", "--trace", "--load", atom_to_list(A), "--keep", Kept | Where]),
    ?assertMatch({match, _}, re:run(Said, "^[0-9]+ frames, ")),
    true = exit(Pinger, kill),
    receive {'DOWN', Ref, process, Pinger, _} -> ok end,
    {ok, Recorded} = file:read_file(File),
    [#{<<"v">> := 1, <<"t">> := 0, <<"n">> := Names} | _] = Frames = [atoll_cli_os:decode(Line) || Line <- binary:split(Recorded, <<"\n">>, [global, trim])],
    ?assertEqual(lists:sort([atom_to_binary(Node) || {_, Node} <- peers(Config)]), lists:sort(Names)),
    ?assert(length(Frames) >= 3),
    ?assertMatch([_ | _], [1 || #{<<"e">> := [_ | _]} <- Frames]),
    ?assertMatch([_ | _], [Queues || #{<<"l">> := [#{<<"q">> := Queues}]} <- Frames]),
    ?assertEqual([], [Migration || #{<<"l">> := [#{<<"x">> := Migrations, <<"q">> := Queues}]} <- Frames, [From, To, _] = Migration <- Migrations,
                      not (is_integer(From) andalso is_integer(To) andalso From >= 1 andalso To >= 1 andalso From =< length(Queues) andalso To =< length(Queues))]),
    {ok, [{atoll_flow_shadow, 1, _}]} = file:consult(Kept),
    %% What was kept is taken up, and what is no such file is told.
    #{status := 0} = atoll_cli_line:run(Dir, ["watch", "traffic", "--for", "0.2", "--json", "--keep", Kept | Where]),
    ok = file:write_file(Kept, "{no, shadow}.\n"),
    #{status := 3, stderr := Wrong} = atoll_cli_line:run(Dir, ["watch", "traffic", "--for", "0.2", "--keep", Kept | Where]),
    ?assertMatch({_, _}, binary:match(Wrong, <<"what was kept of the agents cannot be read: {no,shadow}.">>)),
    ok = file:write_file(Kept, <<255, 254, "x.\n">>),
    #{status := 3, stderr := Bytes} = atoll_cli_line:run(Dir, ["watch", "traffic", "--for", "0.2", "--keep", Kept | Where]),
    ?assertMatch({_, _}, binary:match(Bytes, <<" cannot be read: ">>)),
    #{status := 3} = atoll_cli_line:run(Dir, ["watch", "record", File, "--for", "1s" | Where]),
    #{status := 2} = atoll_cli_line:run(Dir, ["watch", "traffic", "--by", "name" | Where]).

pinging(Peer, Node) ->
    ok = call(Peer, atoll_flow_script, ping, [Node, 20]),
    pinging(Peer, Node).
