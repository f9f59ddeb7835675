%% SPDX-License-Identifier: Apache-2.0
%% The carrier on real nodes, its connections direct ones. The application atoll runs on
%% none of them. What Erlang's own distribution honours is checked here one by one; what
%% unmodified programs do over it, in atoll_dist_programs_SUITE.
-module(atoll_dist_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(atoll_dist_nodes, [node/3, node/4, carrier/0, carrier/1, kernel/2, name/1, call/4, call/5, connect/2, works/2, apart/2]).
-import(atoll_dist_nodes, [loopback/1, name/2, listed/2, said/2, said/3, logged/2, until/1]).

-export([all/0, groups/0, suite/0, init_per_group/2, end_per_group/2, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    both_ends_show_the_kind_and_the_round_trip/1,
    links_are_gone_with_their_nodes/1,
    nodes_that_connect_to_each_other_at_once_have_one_connection/1,
    a_node_reconnects_at_once_after_a_disconnect_under_traffic/1,
    distribution_is_stopped_and_started_again/1,
    nodes_of_short_names_connect/1,
    nodes_of_ipv6_connect/1,
    hidden_nodes_stay_hidden/1,
    a_node_without_a_name_gets_one/1,
    the_port_range_and_the_interface_are_kept_to/1,
    socket_options_of_the_user_reach_the_sockets/1,
    the_latency_profile_leaves_the_users_options_alone/1,
    sockets_have_the_options_that_stock_gives_them/1,
    options_of_connections_are_read_and_set/1,
    nodes_are_found_without_epmd_at_one_port/1,
    nodes_are_found_where_an_epmd_module_says/1,
    a_users_own_epmd_module_registers_and_finds/1,
    who_comes_from_another_network_is_refused_where_check_ip_is_set/1,
    a_cookie_of_one_peer_is_used/1,
    unequal_ticktimes_keep_a_connection_and_find_a_silent_node/1,
    the_options_of_the_ticker_process_are_kept/1,
    a_killed_node_is_down_once/1,
    a_peer_with_few_flags_is_served/1,
    the_kind_is_what_is_asked_for_one_peer/1,
    a_stock_peer_is_refused_and_said_once/1,
    a_stock_peer_is_accepted_where_that_is_configured/1,
    who_speaks_erlangs_handshake_is_answered_in_it/1,
    a_wrong_cookie_is_said_once/1,
    garbage_is_refused_and_said_once/1,
    an_answer_of_garbage_is_refused/1,
    half_open_connections_keep_nobody_out/1,
    strangers_starve_no_handshake/1,
    a_name_other_than_the_offered_one_is_refused/1,
    a_bad_configuration_is_one_sentence/1
]).

%% A second, at most.
-define(STRANGERS, 3000).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    case atoll_tier:tier() of
        fast -> [{group, waiting} | cases() -- waiting()];
        deep -> [{group, waiting} | cases() -- waiting()] ++ [{group, tls}, {group, ipv6}]
    end.

groups() -> [{waiting, [parallel], waiting()}, {tls, [], cases() -- by_hand()}, {ipv6, [], cases() -- of_ipv4()}].

%% What waits for seconds, and each has nodes of its own.
waiting() -> [unequal_ticktimes_keep_a_connection_and_find_a_silent_node, half_open_connections_keep_nobody_out].

cases() ->
    [F || {F, 1} <- ?MODULE:module_info(exports), not lists:member(F, [module_info, init_per_suite, end_per_suite])].

%% Whose peers have no TLS, or that are about how it is refused without.
by_hand() ->
    [
        a_peer_with_few_flags_is_served, garbage_is_refused_and_said_once,
        an_answer_of_garbage_is_refused, half_open_connections_keep_nobody_out, strangers_starve_no_handshake,
        who_speaks_erlangs_handshake_is_answered_in_it,
        a_name_other_than_the_offered_one_is_refused, a_bad_configuration_is_one_sentence,
        sockets_have_the_options_that_stock_gives_them
    ].

%% That are about more than one address of the loopback, of which IPv6 has one; that need a name
%% which the host may have for an address of IPv4 only; and the one that is on IPv6 anyway.
of_ipv4() ->
    [
        nodes_of_ipv6_connect, nodes_of_short_names_connect, the_port_range_and_the_interface_are_kept_to, nodes_are_found_without_epmd_at_one_port,
        nodes_are_found_where_an_epmd_module_says, who_comes_from_another_network_is_refused_where_check_ip_is_set,
        strangers_starve_no_handshake
    ].

init_per_group(waiting, Config) -> Config;
init_per_group(Group, Config) -> atoll_dist_nodes:over(Group, Config).

end_per_group(_Group, _Config) -> ok.

init_per_suite(Config) ->
    atoll_dist_nodes:begin_suite(Config).

end_per_suite(Config) ->
    atoll_dist_nodes:end_suite(Config).

init_per_testcase(_Case, Config) ->
    atoll_dist_nodes:begin_case(Config).

end_per_testcase(_Case, Config) ->
    atoll_dist_nodes:end_case(Config).

pair(Config) -> pair(Config, carrier(), carrier()).

pair(Config, ArgsA, ArgsB) -> {node(Config, "a", ArgsA), node(Config, "b", ArgsB)}.

links(Remote) -> call(Remote, atoll_dist, links, []).

address(Remote, Of) ->
    {ok, Info} = call(Remote, net_kernel, node_info, [name(Of)]),
    %% {net_address, Address, Host, Protocol, Family}
    proplists:get_value(address, Info).

%% For peers made by hand, which may be slow on a busy machine.
patient() ->
    carrier() ++ kernel(net_setuptime, 60).

both_ends_show_the_kind_and_the_round_trip(Config) ->
    [A, B] = [node(Config, Name, carrier(), #{booted => true}) || Name <- ["a", "b"]],
    works(A, B),
    {Ip, Host, Family} = loopback(Config),
    ?assertMatch({net_address, {Ip, _}, Host, direct, Family}, address(A, B)),
    ?assertMatch({net_address, {Ip, _}, Host, direct, Family}, address(B, A)),
    ok = listed(A, [{name(B), direct}]),
    ok = listed(B, [{name(A), direct}]),
    [#{rtt_us := One, started := here}] = links(A),
    [#{rtt_us := Other, started := there}] = links(B),
    [?assert(Us < 100000) || Us <- [One, Other]],
    Apps = [App || {App, _, _} <- call(A, application, which_applications, [])],
    ?assertNot(lists:member(atoll, Apps)).

links_are_gone_with_their_nodes(Config) ->
    {A, B} = pair(Config),
    works(A, B),
    ok = listed(A, [{name(B), direct}]),
    ok = atoll_dist_nodes:kill(B),
    ok = listed(A, []),
    ?assertEqual([], call(A, erlang, nodes, [])).

nodes_that_connect_to_each_other_at_once_have_one_connection(Config) ->
    {A, B} = pair(Config),
    works(A, B),
    atoll_dist_shared:connect_at_once(A, B, direct).

a_node_reconnects_at_once_after_a_disconnect_under_traffic(Config) ->
    {A, B} = pair(Config),
    works(A, B),
    atoll_dist_shared:reconnect_under_traffic(A, B).

distribution_is_stopped_and_started_again(Config) ->
    B = node(Config, "b", carrier()),
    A = node(Config, "a", carrier([{kind, direct}]), #{nameless => true}),
    ?assertEqual([], links(A)),
    lists:foreach(
        fun(Name) ->
            {ok, _} = call(A, net_kernel, start, [[Name, longnames]]),
            ok = listed(B, []),
            works(A#{node := Name}, B),
            ok = listed(A, [{name(B), direct}]),
            ok = call(A, net_kernel, stop, []),
            ?assertEqual([], links(A)),
            ok = listed(B, [])
        end,
        [list_to_atom(name(Config, Name)) || Name <- ["first", "first", "second"]]
    ).

nodes_of_short_names_connect(Config) ->
    [A, B] = [node(Config, Name, carrier(), #{short => true, booted => true}) || Name <- ["a", "b"]],
    works(A, B),
    Long = node(Config, "c", carrier()),
    ?assertEqual(false, connect(A, Long)),
    ?assertEqual(false, connect(A, Long)),
    ok = said(A, "carrier_bad_name").

nodes_of_ipv6_connect(Config) ->
    Loopback = {0, 0, 0, 0, 0, 0, 0, 1},
    case gen_tcp:listen(0, [inet6, {ip, Loopback}]) of
        {error, Reason} ->
            {skip, {"no IPv6 on loopback", Reason}};
        {ok, Socket} ->
            {ok, Port} = inet:port(Socket),
            ok = gen_tcp:close(Socket),
            Args = ["-proto_dist", "atoll6", "-no_epmd", "-epmd_module", "atoll_epmd"] ++
                kernel(inet_dist_use_interface, Loopback),
            Ports = kernel(inet_dist_listen_min, Port) ++ kernel(inet_dist_listen_max, Port),
            A = node(Config, "a", Args, #{host => "::1"}),
            B = node(Config, "b", Args ++ Ports, #{host => "::1"}),
            Way = {atom_to_binary(name(B)), #{address => Loopback, port => Port}},
            ok = call(A, atoll_dist_probe, learn_all, [[Way]]),
            works(A, B),
            ?assertMatch({net_address, {Loopback, Port}, "::1", direct, inet6}, address(A, B))
    end.

hidden_nodes_stay_hidden(Config) ->
    {A, B} = pair(Config, carrier(), carrier()),
    H = node(Config, "h", carrier() ++ ["-hidden"]),
    works(A, B),
    works(H, A),
    ?assertEqual([name(B)], call(A, erlang, nodes, [])),
    ?assertEqual([name(H)], call(A, erlang, nodes, [hidden])),
    ?assertEqual([name(A)], call(B, erlang, nodes, [[visible, hidden]])),
    true = call(A, net_kernel, hidden_connect_node, [name(H)]),
    ?assertEqual([], call(H, erlang, nodes, [])).

a_node_without_a_name_gets_one(Config) ->
    A = node(Config, "a", carrier()),
    N = node(Config, "n", carrier() ++ ["-name", name(Config, "undefined")], #{nameless => true}),
    ?assertEqual(true, connect(N, A)),
    Name = call(N, erlang, node, []),
    ?assertNotEqual(nonode@nohost, Name),
    ?assertEqual(Name, call(A, rpc, call, [Name, erlang, node, []])),
    ok = listed(A, [{Name, direct}]).

the_port_range_and_the_interface_are_kept_to(Config) ->
    Ip = {127, 0, 0, 3},
    Port = atoll_test_port:free(Ip),
    Args = carrier() ++ kernel(inet_dist_use_interface, Ip) ++
        kernel(inet_dist_listen_min, Port) ++ kernel(inet_dist_listen_max, Port + 20),
    A = node(Config, "a", carrier()),
    Bs = [node(Config, "b", Args, #{host => "127.0.0.3"}) || _ <- [1, 2]],
    Ports = [
        begin
            {port, P, _} = call(B, erl_epmd, port_please, [hd(string:split(atom_to_list(name(B)), "@")), {127, 0, 0, 1}]),
            ?assert(P >= Port andalso P =< Port + 20),
            %% Nobody is at the other addresses.
            ?assertEqual({error, econnrefused}, gen_tcp:connect({127, 0, 0, 2}, P, [])),
            {ok, Socket} = gen_tcp:connect(Ip, P, []),
            ok = gen_tcp:close(Socket),
            P
        end
     || B <- Bs
    ],
    ?assertEqual(2, length(lists:usort(Ports))),
    %% The range is exhausted, so there is no node.
    Full = carrier() ++ kernel(inet_dist_use_interface, Ip) ++ kernel(inet_dist_listen_min, hd(Ports)),
    ?assertError(_, node(Config, "c", Full, #{host => "127.0.0.3"})),
    works(hd(Bs), A).

socket_options_of_the_user_reach_the_sockets(Config) ->
    Listen = kernel(inet_dist_listen_options, [{keepalive, true}, {packet, 4}, {active, true}, {linger, {true, 7}}]),
    Connect = kernel(inet_dist_connect_options, [{keepalive, true}, {packet, 4}, {linger, {true, 9}}]),
    {A, B} = pair(Config, carrier() ++ Connect ++ kernel(dist_nodelay, false), carrier() ++ Listen),
    works(A, B),
    Keys = [keepalive, linger, nodelay, packet, packet_size],
    %% With TLS they come in another order.
    {ok, Here} = call(A, net_kernel, getopts, [name(B), Keys]),
    ?assertEqual([{keepalive, true}, {linger, {true, 9}}, {nodelay, false}, {packet, 4}, {packet_size, 0}], lists:sort(Here)),
    {ok, There} = call(B, net_kernel, getopts, [name(A), Keys]),
    ?assertEqual([{keepalive, true}, {linger, {true, 7}}, {nodelay, true}, {packet, 4}, {packet_size, 0}], lists:sort(There)).

the_latency_profile_leaves_the_users_options_alone(Config) ->
    Latency = carrier([{profile, latency}]),
    Recbuf = fun(From, To) ->
        works(From, To),
        {ok, [{recbuf, Bytes}]} = call(From, net_kernel, getopts, [name(To), [recbuf]]),
        Bytes
    end,
    Plain = node(Config, "p", carrier()),
    Tuned = node(Config, "t", Latency),
    Own = node(Config, "o", Latency ++ kernel(inet_dist_connect_options, [{recbuf, 100000}])),
    Ours = node(Config, "d", carrier([{profile, latency}, {direct_options, [{recbuf, 50000}, {keepalive, true}]}])),
    B = node(Config, "b", carrier()),
    %% No buffer is the profile's.
    Value = Recbuf(Plain, B),
    ?assertEqual(Value, Recbuf(Tuned, B)),
    ?assertNotEqual(Value, Recbuf(Own, B)),
    ?assert(Recbuf(Ours, B) < Recbuf(Own, B)),
    ?assertEqual({ok, [{keepalive, true}]}, call(Ours, net_kernel, getopts, [name(B), [keepalive]])),
    case os:type() of
        {unix, linux} ->
            %% TCP_NOTSENT_LOWAT
            Raw = {raw, 6, 25, 4},
            ?assertEqual(
                {ok, [{raw, 6, 25, <<131072:32/native>>}]}, call(Tuned, net_kernel, getopts, [name(B), [Raw]])
            );
        _ ->
            ok
    end.

%% Which is why a direct connection is as fast.
sockets_have_the_options_that_stock_gives_them(Config) ->
    Keys = [active, buffer, delay_send, deliver, dontroute, exit_on_close, header, high_msgq_watermark, high_watermark,
        keepalive, linger, low_msgq_watermark, low_watermark, mode, nodelay, packet, packet_size, priority, recbuf,
        reuseaddr, send_timeout, send_timeout_close, sndbuf, tos],
    Options = fun(From, To) ->
        {ok, Values} = call(From, net_kernel, getopts, [name(To), Keys]),
        ?assertEqual(length(Keys), length(Values)),
        %% The one that connects has lists in stock of OTP 25, which nobody gets to see.
        lists:keydelete(mode, 1, Values)
    end,
    {A, B} = pair(Config),
    {S, T} = pair(Config, [], []),
    works(A, B),
    works(S, T),
    ?assertEqual(Options(S, T), Options(A, B)),
    ?assertEqual(Options(T, S), Options(B, A)).

options_of_connections_are_read_and_set(Config) ->
    {A, B} = pair(Config),
    works(A, B),
    Keepalive = fun(From, To) -> call(From, net_kernel, getopts, [name(To), [keepalive]]) end,
    ?assertEqual({ok, [{keepalive, false}]}, Keepalive(A, B)),
    ok = call(A, net_kernel, setopts, [name(B), [{keepalive, true}]]),
    ?assertEqual({ok, [{keepalive, true}]}, Keepalive(A, B)),
    ?assertMatch({error, {badopts, _}}, call(A, net_kernel, setopts, [name(B), [{active, false}]])),
    ?assertEqual({error, noconnection}, call(A, net_kernel, setopts, ['no@127.0.0.1', [{keepalive, true}]])),
    %% Of those to come: connected and accepted ones.
    C = node(Config, "c", carrier()),
    ok = call(B, net_kernel, setopts, [new, [{keepalive, true}]]),
    works(B, C),
    ?assertEqual({ok, [{keepalive, true}]}, Keepalive(B, C)),
    D = node(Config, "d", carrier()),
    works(D, B),
    ?assertEqual({ok, [{keepalive, true}]}, Keepalive(B, D)),
    ?assertEqual({ok, [{keepalive, false}]}, Keepalive(D, B)),
    works(A, B).

nodes_are_found_without_epmd_at_one_port(Config) ->
    Port = atoll_test_port:free({127, 0, 0, 3}),
    Nodes = [
        node(
            [{epmd, [{"ERL_EPMD_PORT", "1"}]} | Config],
            "p",
            carrier() ++ kernel(inet_dist_use_interface, Ip) ++ ["-erl_epmd_port", integer_to_list(Port)],
            #{host => inet:ntoa(Ip)}
        )
     || Ip <- [{127, 0, 0, 2}, {127, 0, 0, 3}]
    ],
    [A, B] = Nodes,
    works(A, B),
    ?assertMatch({net_address, {{127, 0, 0, 3}, Port}, _, direct, inet}, address(A, B)).

nodes_are_found_where_an_epmd_module_says(Config) ->
    Port = atoll_test_port:free({127, 0, 0, 3}),
    Args = carrier() ++ ["-no_epmd", "-epmd_module", "atoll_epmd"],
    A = node(Config, "a", Args ++ kernel(inet_dist_use_interface, {127, 0, 0, 1})),
    At = kernel(inet_dist_use_interface, {127, 0, 0, 3}) ++ ["-erl_epmd_port", integer_to_list(Port)],
    B = node(Config, "b", Args ++ At, #{host => "127.0.0.2"}),
    ?assertEqual(false, connect(A, B)),
    Way = {atom_to_binary(name(B)), #{address => {127, 0, 0, 3}, port => Port}},
    ok = call(A, atoll_dist_probe, learn_all, [[Way]]),
    works(A, B),
    ?assertMatch({net_address, {{127, 0, 0, 3}, Port}, "127.0.0.2", direct, inet}, address(A, B)).

a_users_own_epmd_module_registers_and_finds(Config) ->
    Own = [{epmd, [{"ERL_EPMD_PORT", "1"}, {"ATOLL_DIST_OWN_EPMD", ?config(priv_dir, Config)}]} | Config],
    {A, B} = pair(Own, carrier() ++ ["-epmd_module", "atoll_dist_own_epmd"], carrier() ++ ["-epmd_module", "atoll_dist_own_epmd"]),
    works(A, B),
    ?assertEqual(77, call(A, erlang, system_info, [creation])),
    ?assertEqual(false, connect(A, #{node => 'nobody@127.0.0.1'})).

%% A node in a network namespace of its own, where the loopback has a second address: of
%% an interface the kernel tells the network of the first one only.
who_comes_from_another_network_is_refused_where_check_ip_is_set(_Config) ->
    Prepare = "ip link set lo up && ip addr add 198.51.100.7/32 dev lo",
    case os:cmd("unshare -n sh -c '" ++ Prepare ++ " && echo ready' 2>&1") of
        "ready\n" -> checks_ip(Prepare);
        Why -> {skip, "there can be no network namespace here: " ++ Why}
    end.

checks_ip(Prepare) ->
    Eval = "[ok, Answer] = atoll_dist_probe:knocks([{127,0,0,1}, {198,51,100,7}], 4711), "
        "logger_std_h:filesync(default), io:format(\"answered: ~p~n\", [Answer]), halt().",
    Said = fun(Check) ->
        Args = ["-noinput", "-name", "checks@127.0.0.1", "-setcookie", "x", "-epmd_module", "atoll_epmd", "-no_epmd",
            "-erl_epmd_port", "4711", "-pa", filename:dirname(code:which(atoll_dist)), filename:dirname(code:which(?MODULE))] ++
            carrier() ++ kernel(check_ip, Check) ++ ["-eval", Eval],
        Port = open_port({spawn_executable, os:find_executable("unshare")}, [
            {args, ["-n", "sh", "-c", Prepare ++ " && exec \"$@\"", "sh", os:find_executable("erl") | Args]},
            exit_status, stderr_to_stdout
        ]),
        {0, Text} = all_of(Port, []),
        {string:find(Text, "answered: error") =/= nomatch, string:find(Text, "carrier_stranger") =/= nomatch}
    end,
    ?assertEqual({true, true}, Said(true)),
    ?assertEqual({false, false}, Said(false)).

a_cookie_of_one_peer_is_used(Config) ->
    A = node(Config, "a", carrier(), #{cookie => "of_a"}),
    B = node(Config, "b", carrier(), #{cookie => "of_b"}),
    C = node(Config, "c", carrier(), #{cookie => "of_a"}),
    ?assertEqual(false, connect(A, B)),
    true = call(A, erlang, set_cookie, [name(B), of_b]),
    works(A, B),
    true = call(B, erlang, set_cookie, [name(C), of_a]),
    works(B, C).

unequal_ticktimes_keep_a_connection_and_find_a_silent_node(Config) ->
    {A, B} = pair(Config, carrier() ++ kernel(net_ticktime, 2), carrier() ++ kernel(net_ticktime, 4)),
    works(A, B),
    %% Idle for three of the shorter ones.
    ?assert(call(A, atoll_dist_probe, stays, [name(B), 6000])),
    ok = call(A, atoll_dist_probe, hears, [name(B)]),
    ok = atoll_dist_nodes:signal(B, "STOP"),
    until(fun() -> call(A, atoll_dist_probe, heard, []) =/= [] end),
    ?assertEqual([net_tick_timeout], call(A, atoll_dist_probe, heard, [])),
    ok = atoll_dist_nodes:signal(B, "CONT").

the_options_of_the_ticker_process_are_kept(Config) ->
    Args = carrier() ++ kernel(net_ticker_spawn_options, [{fullsweep_after, 7}]),
    {A, B} = pair(Config, Args, Args),
    works(A, B),
    [
        begin
            {garbage_collection, Is} = call(One, atoll_dist_probe, owner_info, [name(Other), garbage_collection]),
            ?assertEqual(7, proplists:get_value(fullsweep_after, Is)),
            ?assertEqual({priority, max}, call(One, atoll_dist_probe, owner_info, [name(Other), priority]))
        end
     || {One, Other} <- [{A, B}, {B, A}]
    ].

a_killed_node_is_down_once(Config) ->
    {A, B} = pair(Config),
    works(A, B),
    atoll_dist_shared:ends_once(A, B, fun() -> atoll_dist_nodes:kill(B) end).

a_peer_with_few_flags_is_served(Config) ->
    A = node(Config, "a", patient(), #{cookie => "handmade"}),
    ok = call(A, atoll_dist_probe, box, [box]),
    Name = <<"hand@127.0.0.1">>,
    Socket = atoll_dist_handmade:open(atoll_dist_handmade:address(A)),
    ?assertMatch({ok, {answer, #{kind := direct}}}, atoll_dist_handmade:greet(Socket, Name)),
    Flags = atoll_dist_handmade:flags(mandatory),
    {ok, Theirs} = atoll_dist_handmade:shake(Socket, Name, #{flags => Flags, cookie => "handmade"}),
    ?assertEqual(Flags, Flags band Theirs),
    ok = listed(A, [{'hand@127.0.0.1', direct}]),
    %% REG_SEND there, and back.
    Control = {6, 'dummy', '', box},
    ok = atoll_dist_handmade:send(Socket, [112, term_to_binary(setelement(2, Control, pid_of(Name))), term_to_binary(by_hand)]),
    until(fun() -> call(A, atoll_dist_probe, taken, [box]) =:= [by_hand] end),
    ok = call(A, atoll_dist_probe, send, [somebody, 'hand@127.0.0.1', {from, the, node}]),
    ?assertEqual({from, the, node}, message(Socket)),
    ok = gen_tcp:close(Socket),
    ok = listed(A, []).

%% A pid of a node by that name, as it stands in a packet.
pid_of(Name) ->
    binary_to_term(<<131, 88, 119, (byte_size(Name)), Name/binary, 5:32, 0:32, 17:32>>).

message(Socket) ->
    case atoll_dist_handmade:recv(Socket) of
        {ok, <<112, Terms/binary>>} ->
            {_Control, Used} = binary_to_term(Terms, [used]),
            <<_:Used/binary, Message/binary>> = Terms,
            case Message of
                <<>> -> message(Socket);
                _ -> binary_to_term(Message)
            end;
        %% A tick.
        {ok, <<>>} -> message(Socket)
    end.

the_kind_is_what_is_asked_for_one_peer(Config) ->
    %% Nobody is to connect who is not told to.
    Alone = fun(Options) -> carrier(Options) ++ ["-connect_all", "false"] end,
    {A, B} = pair(Config, Alone([{kind, {lanes, 4}}]), Alone([])),
    works(A, B),
    ok = listed(A, [{name(B), {lanes, 4}}]),
    %% What is configured for one peer, and what an upper room prefers.
    C = node(Config, "c", Alone([{peers, [{name(A), direct}, {name(B), {lanes, 2}}]}])),
    ok = call(C, atoll_dist, prefer, [#{name(B) => direct}]),
    works(C, B),
    ok = listed(C, [{name(B), {lanes, 2}}]),
    D = node(Config, "d", Alone([])),
    ok = call(D, atoll_dist, prefer, [#{name(C) => {lanes, 3}}]),
    works(D, B),
    works(D, C),
    ok = listed(D, [{name(B), direct}, {name(C), {lanes, 3}}]).

a_stock_peer_is_refused_and_said_once(Config) ->
    {A, S} = pair(Config, carrier(), []),
    C = node(Config, "c", carrier()),
    [?assertEqual(false, connect(S, A)) || _ <- [1, 2, 3]],
    ok = said(A, "carrier_stock_refused"),
    [?assertEqual(false, connect(A, S)) || _ <- [1, 2, 3]],
    ok = said(A, "carrier_refused"),
    works(A, C).

a_stock_peer_is_accepted_where_that_is_configured(Config) ->
    {A, S} = pair(Config, carrier([{stock, accept}]), []),
    works(S, A),
    ok = listed(A, [{name(S), stock}]),
    {_, _, Family} = loopback(Config),
    ?assertMatch({net_address, _, _, stock, Family}, address(A, S)),
    ok = apart(S, A),
    ok = listed(A, []),
    works(A, S),
    ok = listed(A, [{name(S), stock}]),
    [#{started := here}] = links(A),
    [?assertEqual(0, logged(A, Line)) || Line <- ["carrier_stock_refused", "carrier_refused"]],
    %% And its own kind as ever.
    C = node(Config, "c", carrier()),
    works(C, A),
    ok = listed(A, [{name(C), direct}, {name(S), stock}]).

%% By a peer made by hand: as who connects, and as who is connected with, and closes on what it
%% does not know.
who_speaks_erlangs_handshake_is_answered_in_it(Config) ->
    {Ip, _, _} = loopback(Config),
    [Here, There] = [name(Config, Name) || Name <- ["here", "there"]],
    Args = carrier([{stock, accept}]) ++ kernel(net_setuptime, 60) ++ ["-no_epmd", "-epmd_module", "atoll_epmd"] ++
        kernel(inet_dist_listen_min, Listening = atoll_test_port:free(Ip)),
    A = node(Config, "a", Args, #{cookie => "handmade"}),
    Known = #{flags => atoll_dist_handmade:flags(all), cookie => "handmade"},
    Socket = atoll_dist_handmade:open({Ip, Listening}),
    {ok, _} = atoll_dist_handmade:shake(Socket, list_to_binary(Here), Known),
    ok = listed(A, [{list_to_atom(Here), stock}]),
    ok = gen_tcp:close(Socket),
    ok = listed(A, []),
    Self = self(),
    {_Pid, Port} = atoll_dist_handmade:accepting(Ip, fun(New) ->
        case atoll_dist_handmade:answer(New, list_to_binary(There), Known) of
            {ok, Shaken} -> Self ! {shaken, Shaken};
            unknown -> ok = gen_tcp:close(New)
        end
    end),
    ok = call(A, atoll_dist_probe, learn_all, [[{list_to_binary(There), #{address => Ip, port => Port}}]]),
    ?assertEqual(true, connect(A, #{node => list_to_atom(There)})),
    ok = listed(A, [{list_to_atom(There), stock}]),
    receive
        {shaken, _} -> ok
    after 20000 -> error(not_shaken)
    end,
    [?assertEqual(0, logged(A, Line)) || Line <- ["carrier_garbage", "carrier_refused", "carrier_stock_refused"]].

a_wrong_cookie_is_said_once(Config) ->
    {A, C} = pair(Config),
    B = node(Config, "b", carrier(), #{cookie => "wrong"}),
    ?assertEqual(false, connect(B, A)),
    ok = said(A, "Invalid challenge reply"),
    works(A, C).

garbage_is_refused_and_said_once(Config) ->
    {A, B} = pair(Config, patient(), carrier()),
    Address = atoll_dist_handmade:address(A),
    Offer = atoll_dist_handmade:offer(<<"x@127.0.0.1">>, direct),
    Lane = atoll_dist_hello:make({lane, #{id => <<0:128>>, index => 1, nonce => <<0:128>>, mac => <<0:256>>}}),
    Frames = [
        <<"GET / HTTP/1.1\r\n\r\n">>, <<>>, <<"Atoll">>, <<"Atoll", 1, $X>>, <<"Atoll", 0, $O>>, Lane,
        binary:part(Offer, 0, byte_size(Offer) - 3), binary:copy(<<$A>>, 65000), <<$N>>, crypto:strong_rand_bytes(300)
    ],
    [
        begin
            Socket = atoll_dist_handmade:open(Address),
            _ = atoll_dist_handmade:send(Socket, Frame),
            ?assert(atoll_dist_handmade:is_closed(Socket))
        end
     || Frame <- Frames
    ],
    ok = said(A, "carrier_garbage"),
    ok = said(A, "carrier_lane_refused"),
    %% A good offer, and then what is no handshake.
    [
        begin
            Socket = atoll_dist_handmade:open(Address),
            {ok, {answer, _}} = atoll_dist_handmade:greet(Socket, <<"x@127.0.0.1">>),
            ok = atoll_dist_handmade:send(Socket, Frame),
            ?assert(atoll_dist_handmade:is_closed(Socket))
        end
     || Frame <- Frames
    ],
    works(B, A).

an_answer_of_garbage_is_refused(Config) ->
    {Ip, _, _} = loopback(Config),
    A = node(Config, "a", carrier() ++ ["-no_epmd", "-epmd_module", "atoll_epmd"]),
    Answers = [<<"HTTP/1.1 400\r\n">>, <<"Atoll", 1, $K, 9>>, atoll_dist_hello:make({refusal, busy}), <<"sok">>],
    Nodes = [
        begin
            {_Pid, Port} = atoll_dist_handmade:accepting(Ip, fun(Socket) ->
                {ok, _Offer} = atoll_dist_handmade:recv(Socket),
                ok = atoll_dist_handmade:send(Socket, Answer)
            end),
            Node = name(Config, "g" ++ integer_to_list(Port)),
            ok = call(A, atoll_dist_probe, learn_all, [[{list_to_binary(Node), #{address => Ip, port => Port}}]]),
            list_to_atom(Node)
        end
     || Answer <- Answers
    ],
    [?assertEqual(false, connect(A, #{node => Node})) || Node <- Nodes, _ <- [1, 2]],
    %% Each of them.
    ok = said(A, "what: carrier_refused", length(Nodes)).

half_open_connections_keep_nobody_out(Config) ->
    {A, B} = pair(Config, carrier() ++ kernel(net_setuptime, 6), carrier()),
    C = node(Config, "c", carrier()),
    Address = atoll_dist_handmade:address(A),
    Ports = length(call(A, erlang, ports, [])),
    Silent = [atoll_dist_handmade:open(Address) || _ <- lists:seq(1, 1000)],
    works(B, A),
    ?assert(length(call(A, erlang, ports, [])) =< Ports + 260),
    %% All of them are gone when their time is over.
    atoll_dist_nodes:until(fun() -> length(call(A, erlang, ports, [])) =< Ports + 1 end, 60000),
    ok = said(A, "what: carrier_crowded"),
    ok = said(A, "what: carrier_silent_stranger"),
    %% Those that have said who they are count as well.
    Offer = atoll_dist_handmade:offer(<<"x@127.0.0.1">>, direct),
    Offering = [atoll_dist_handmade:open(Address) || _ <- lists:seq(1, 400)],
    _ = [atoll_dist_handmade:send(S, Offer) || S <- Offering],
    works(C, A),
    ?assert(length(call(A, erlang, ports, [])) =< Ports + 260),
    [ok = gen_tcp:close(S) || S <- Silent ++ Offering],
    until(fun() -> length(call(A, erlang, ports, [])) =< Ports + 2 end),
    works(A, B),
    ok = said(A, "what: carrier_crowded").

%% Three thousand a second: silent ones, such as speak garbage or go at once from addresses
%% that nodes have too, and such as speak like a node from others.
strangers_starve_no_handshake(Config) ->
    case atoll_wire_program:find(strangers) of
        {ok, Program} -> strangers_starve_no_handshake(Program, Config);
        {error, Why} -> {skip, lists:flatten(io_lib:format("there is no program to be a stranger: ~0tp", [Why]))}
    end.

strangers_starve_no_handshake(Program, Config) ->
    Ms = 1000 * atoll_tier:size(strangers_s),
    ct:timetrap(Ms + 60000),
    %% That one takes long says how long it took; on a busy machine it may be a part of the time there is by default.
    Patient = kernel(net_setuptime, 60),
    A = node(Config, "a", carrier() ++ Patient),
    Others = [node(Config, Name, carrier([{kind, Kind}]) ++ Patient) || {Name, Kind} <- [{"b", direct}, {"c", {lanes, 4}}]],
    [works(B, A) || B <- Others],
    Address = atoll_dist_handmade:address(A),
    Self = self(),
    Connecting = [
        spawn_link(fun() -> Self ! {self(), call(B, atoll_dist_probe, connects_for, [name(A), Ms], Ms + 50000)} end)
     || B <- Others
    ],
    {Came, All} = atoll_dist_handmade:strangers(Program, Address, ?STRANGERS, Ms),
    Connected = [receive {Pid, Done} -> Done end || Pid <- Connecting],
    Refused = call(A, atoll_dist, refused, []),
    ct:pal("~b strangers of ~b in ~b ms; ~p; ~p", [Came, All, Ms, Connected, Refused]),
    [?assertMatch({Times, 0, _} when Times > 0, Done) || Done <- Connected],
    %% How many came depends on what else the machine does; there were too many at any rate: more in a second than
    %% may wait to say something.
    ?assert(Came > Ms div 4, {Came, Ms}),
    ?assertMatch(#{carrier_garbage := _, carrier_crowded := _}, Refused),
    %% As said once for each address.
    ?assert(logged(A, "what: carrier_garbage") =< 8).

a_name_other_than_the_offered_one_is_refused(Config) ->
    A = node(Config, "a", patient(), #{cookie => "handmade"}),
    Socket = atoll_dist_handmade:open(atoll_dist_handmade:address(A)),
    {ok, {answer, _}} = atoll_dist_handmade:greet(Socket, <<"one@127.0.0.1">>),
    Flags = atoll_dist_handmade:flags(all),
    ?assertEqual(
        {error, closed}, atoll_dist_handmade:shake(Socket, <<"two@127.0.0.1">>, #{flags => Flags, cookie => "handmade"})
    ).

a_bad_configuration_is_one_sentence(Config) ->
    Args = ["-noinput", "-name", "bad@127.0.0.1", "-start_epmd", "false", "-pa", filename:dirname(code:which(atoll_dist))] ++
        carrier([{kind, {lanes, 65}}]) ++ ["-eval", "halt(0)."],
    Port = open_port({spawn_executable, os:find_executable("erl")}, [
        {args, Args}, {env, ?config(epmd, Config)}, exit_status, stderr_to_stdout
    ]),
    {Status, Said} = all_of(Port, []),
    ?assertEqual(1, Status),
    ?assertNotEqual(nomatch, string:find(Said, "The carrier's option kind must be auto, direct or {lanes,N}")).

all_of(Port, Said) ->
    receive
        {Port, {data, Data}} -> all_of(Port, [Said, Data]);
        {Port, {exit_status, Status}} -> {Status, lists:flatten(Said)}
    end.
