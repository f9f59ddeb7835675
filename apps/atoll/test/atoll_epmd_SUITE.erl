%% SPDX-License-Identifier: Apache-2.0
%% Nodes that are not where their names say, on two real nodes: a discovery source says
%% where they are, and -epmd_module atoll_epmd uses it. The application runs on neither.
%% All on loopback; a port mapper, where there is one, is the test's own.
-module(atoll_epmd_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    a_node_is_reached_at_its_advertised_address_and_port/1,
    an_advertised_address_alone_asks_the_epmd_there/1,
    nodes_that_nobody_told_of_are_found_as_ever/1,
    the_port_of_an_srv_record_replaces_epmd/1,
    a_node_that_moved_is_reached_at_its_new_port/1,
    addresses_without_the_flag_are_ignored_and_said/1,
    a_node_of_ipv6_is_reached/1
]).

-define(CALL_MS, 20000).

suite() -> [{timetrap, {minutes, 6}}].

all() ->
    [F || {F, 1} <- ?MODULE:module_info(exports), F =/= module_info].

%% What a case starts is kept in a process, which takes it down whatever becomes of the
%% case.
init_per_testcase(_Case, Config) ->
    Keeper = spawn(fun() -> keep([]) end),
    [{keeper, Keeper} | Config].

end_per_testcase(_Case, Config) ->
    Keeper = ?config(keeper, Config),
    Ref = monitor(process, Keeper),
    Keeper ! stop,
    receive
        {'DOWN', Ref, process, Keeper, Reason} -> ?assertEqual(normal, Reason)
    end.

%% Runs in the keeper, so that what is linked to its starter lives as long as that.
start(Config, Start) ->
    Keeper = ?config(keeper, Config),
    Ref = monitor(process, Keeper),
    Keeper ! {start, self(), Ref, Start},
    receive
        {Ref, Started} ->
            demonitor(Ref, [flush]),
            Started;
        {'DOWN', Ref, process, Keeper, Reason} ->
            error(Reason)
    end.

keep(Stops) ->
    receive
        {start, From, Ref, Start} ->
            {Started, Stop} = Start(),
            From ! {Ref, Started},
            keep([Stop | Stops]);
        stop ->
            lists:foreach(fun(Stop) -> ok = Stop() end, Stops)
    end.

node_of(Config, Name, Args) -> node_of(Config, Name, Args, []).

node_of(Config, Name, Args, Env) ->
    start(Config, fun() ->
        {ok, Peer, Node} = peer:start(#{
            name => Name,
            longnames => true,
            connection => standard_io,
            wait_boot => ?CALL_MS,
            env => Env,
            args =>
                ["-setcookie", "atoll_epmd_SUITE", "-start_epmd", "false", "-connect_all", "false"] ++
                ["-kernel", "logger", logger(Config, Name)] ++
                ["+S", "1:1", "-pa" | code_path()] ++ Args
        }),
        Name = atom_to_list(Node),
        {{Peer, Node}, fun() -> peer:stop(Peer) end}
    end).

%% Standard output belongs to the control connection.
logger(Config, Name) ->
    File = filename:join(?config(priv_dir, Config), Name ++ ".log"),
    Handlers = [{handler, default, logger_std_h, #{config => #{file => File}}}],
    lists:flatten(io_lib:format("~0tp", [Handlers])).

code_path() ->
    [filename:dirname(code:which(Module)) || Module <- [atoll_epmd, ?MODULE]].

call(Peer, M, F, A) -> peer:call(Peer, M, F, A, ?CALL_MS).

interface(Address) -> ["-kernel", "inet_dist_use_interface", lists:flatten(io_lib:format("~w", [Address]))].

ports(Port) ->
    Text = integer_to_list(Port),
    ["-kernel", "inet_dist_listen_min", Text, "-kernel", "inet_dist_listen_max", Text].

told() -> ["-epmd_module", "atoll_epmd"].

without_epmd() -> without_epmd("inet_tcp").

%% erl wants to be told the protocol as well.
without_epmd(Protocol) -> ["-no_epmd", "-proto_dist", Protocol | told()].

%% A port mapper on 127.0.0.1 and 127.0.0.3, for nodes that have this in their
%% environment. It ends when its standard input does, so with this VM at the latest.
epmd(Config) ->
    %% Free at both addresses: nodes of other suites listen at one of them alone.
    Number = atoll_test_port:free({0, 0, 0, 0}),
    Script = "\"$0\" -address 127.0.0.3 -port \"$1\" & read -r _; kill $!; wait",
    Args = ["-c", Script, os:find_executable("epmd"), integer_to_list(Number)],
    start(Config, fun() ->
        Port = open_port({spawn_executable, "/bin/sh"}, [{args, Args}, exit_status, stderr_to_stdout]),
        ok = await_epmd(Number, erlang:monotonic_time(millisecond) + ?CALL_MS),
        {ok, fun() -> stop_epmd(Port) end}
    end),
    [{"ERL_EPMD_PORT", integer_to_list(Number)}].

stop_epmd(Port) ->
    true = port_command(Port, "\n"),
    receive
        {Port, {exit_status, _}} -> ok
    end.

%% It tells nobody when it listens.
await_epmd(Number, Deadline) ->
    case gen_tcp:connect({127, 0, 0, 3}, Number, []) of
        {ok, Socket} ->
            gen_tcp:close(Socket);
        {error, econnrefused} ->
            true = erlang:monotonic_time(millisecond) < Deadline,
            receive after 10 -> ok end,
            await_epmd(Number, Deadline)
    end.

file(Config, Text) ->
    Path = filename:join(?config(priv_dir, Config), "contacts-" ++ integer_to_list(erlang:unique_integer([positive]))),
    ok = write(Path, Text),
    Path.

write(Path, Text) ->
    ok = file:write_file(Path ++ ".new", Text),
    file:rename(Path ++ ".new", Path).

address(Peer, Node) ->
    {ok, Info} = call(Peer, net_kernel, node_info, [Node]),
    %% {net_address, Address, Host, Protocol, Family}
    element(2, proplists:get_value(address, Info)).

no_application(Peer) ->
    [] = [App || {App, _, _} <- call(Peer, application, which_applications, []), App =:= atoll],
    ok.

a_node_is_reached_at_its_advertised_address_and_port(Config) ->
    Port = atoll_test_port:free({127, 0, 0, 3}),
    {A, _} = node_of(Config, "a@127.0.0.1", without_epmd() ++ interface({127, 0, 0, 1})),
    {_, B} = node_of(Config, "b@127.0.0.2", without_epmd() ++ interface({127, 0, 0, 3}) ++ ports(Port)),
    ?assertEqual({error, econnrefused}, gen_tcp:connect({127, 0, 0, 2}, Port, [])),
    ok = no_application(A),
    ?assertEqual(false, call(A, net_kernel, connect_node, [B])),
    Path = file(Config, io_lib:format("b@127.0.0.2 = 127.0.0.3:~b~n", [Port])),
    ok = call(A, atoll_sources_holder, start, [[{file, Path}]]),
    ?assertEqual(true, call(A, atoll_sources_holder, connect, [B])),
    ?assertEqual({{127, 0, 0, 3}, Port}, address(A, B)),
    ?assertEqual(pong, call(A, net_adm, ping, [B])).

an_advertised_address_alone_asks_the_epmd_there(Config) ->
    Env = epmd(Config),
    {A, _} = node_of(Config, "a@127.0.0.1", told() ++ interface({127, 0, 0, 1}), Env),
    {_, B} = node_of(Config, "b@127.0.0.2", interface({127, 0, 0, 3}), Env),
    ?assertEqual(false, call(A, net_kernel, connect_node, [B])),
    Path = file(Config, "b@127.0.0.2 = 127.0.0.3\n"),
    ok = call(A, atoll_sources_holder, start, [[{file, Path}]]),
    ?assertEqual(true, call(A, atoll_sources_holder, connect, [B])),
    ?assertMatch({{127, 0, 0, 3}, _}, address(A, B)).

nodes_that_nobody_told_of_are_found_as_ever(Config) ->
    Env = epmd(Config),
    {A, NodeA} = node_of(Config, "a@127.0.0.1", told() ++ interface({127, 0, 0, 1}), Env),
    {B, NodeB} = node_of(Config, "b@127.0.0.1", told() ++ interface({127, 0, 0, 1}), Env),
    {C, NodeC} = node_of(Config, "c@127.0.0.1", interface({127, 0, 0, 1}), Env),
    ?assertEqual(true, call(A, net_kernel, connect_node, [NodeB])),
    ?assertEqual(true, call(B, net_kernel, connect_node, [NodeC])),
    ?assertEqual(true, call(C, net_kernel, connect_node, [NodeA])),
    {ok, Names} = call(A, net_adm, names, ['127.0.0.1']),
    ?assertEqual(["a", "b", "c"], lists:sort([Name || {Name, _} <- Names])).

the_port_of_an_srv_record_replaces_epmd(Config) ->
    Port = atoll_test_port:free({127, 0, 0, 3}),
    {A, _} = node_of(Config, "a@127.0.0.1", without_epmd() ++ interface({127, 0, 0, 1})),
    {_, B} = node_of(Config, "b@b.atoll.test", without_epmd() ++ interface({127, 0, 0, 3}) ++ ports(Port)),
    ok = resolve(A, "b.atoll.test", {127, 0, 0, 3}),
    ?assertEqual(false, call(A, net_kernel, connect_node, [B])),
    {_Server, Source} = dns(Config, [{records, [{0, 0, Port, "b.atoll.test"}]}]),
    ok = call(A, atoll_sources_holder, start, [[Source]]),
    ?assertEqual(true, call(A, atoll_sources_holder, connect, [B])),
    ?assertEqual({{127, 0, 0, 3}, Port}, address(A, B)).

a_node_that_moved_is_reached_at_its_new_port(Config) ->
    Old = atoll_test_port:free({127, 0, 0, 3}),
    New = atoll_test_port:free({127, 0, 0, 3}),
    {A, _} = node_of(Config, "a@127.0.0.1", without_epmd() ++ interface({127, 0, 0, 1})),
    {_, B} = node_of(Config, "b@b.atoll.test", without_epmd() ++ interface({127, 0, 0, 3}) ++ ports(New)),
    ok = resolve(A, "b.atoll.test", {127, 0, 0, 3}),
    {Server, Source} = dns(Config, [{records, [{0, 0, Old, "b.atoll.test"}]}]),
    ok = call(A, atoll_sources_holder, start, [[Source]]),
    ?assertEqual(false, call(A, atoll_sources_holder, connect, [B])),
    ok = atoll_dns_server:set(Server, srv, [{records, [{0, 0, New, "b.atoll.test"}]}]),
    %% Two more reads began, so one has ended.
    Asked = length(atoll_dns_server:asked(Server, 0)),
    _ = atoll_dns_server:asked(Server, Asked + 3),
    ?assertEqual(true, call(A, net_kernel, connect_node, [B])),
    ?assertEqual({{127, 0, 0, 3}, New}, address(A, B)).

addresses_without_the_flag_are_ignored_and_said(Config) ->
    Env = epmd(Config),
    {A, _} = node_of(Config, "a@127.0.0.1", interface({127, 0, 0, 1}), Env),
    {_, B} = node_of(Config, "b@127.0.0.2", interface({127, 0, 0, 3}), Env),
    Path = file(Config, "b@127.0.0.2 = 127.0.0.3\n"),
    ok = call(A, atoll_sources_holder, start, [[{file, Path}]]),
    ok = call(A, atoll_sources_holder, said, [discovery_addresses_unused]),
    ?assertEqual(false, call(A, atoll_sources_holder, connect, [B])).

a_node_of_ipv6_is_reached(Config) ->
    case gen_tcp:listen(0, [inet6, {ip, {0, 0, 0, 0, 0, 0, 0, 1}}]) of
        {ok, Socket} ->
            ok = gen_tcp:close(Socket),
            ipv6(Config);
        {error, Reason} ->
            {skip, {"no IPv6 on loopback", Reason}}
    end.

ipv6(Config) ->
    Loopback = {0, 0, 0, 0, 0, 0, 0, 1},
    Args = without_epmd("inet6_tcp") ++ interface(Loopback),
    {ok, Socket} = gen_tcp:listen(0, [inet6, {ip, Loopback}]),
    {ok, Port} = inet:port(Socket),
    ok = gen_tcp:close(Socket),
    {A, _} = node_of(Config, "a@::1", Args),
    {_, B} = node_of(Config, "b@::1", Args ++ ports(Port)),
    ?assertEqual(false, call(A, net_kernel, connect_node, [B])),
    Path = file(Config, io_lib:format("b@::1 = [::1]:~b~n", [Port])),
    ok = call(A, atoll_sources_holder, start, [[{file, Path}]]),
    ?assertEqual(true, call(A, atoll_sources_holder, connect, [B])).

%% The node finds that host without asking anybody.
resolve(Peer, Host, Address) ->
    ok = call(Peer, inet_db, set_lookup, [[file]]),
    ok = call(Peer, inet_db, add_host, [Address, [Host]]).

dns(Config, Steps) ->
    Server = start(Config, fun() ->
        Server = atoll_dns_server:start(),
        {Server, fun() -> atoll_dns_server:stop(Server) end}
    end),
    ok = atoll_dns_server:set(Server, srv, Steps),
    Source = {dns, #{
        name => "_dist._tcp.atoll.test",
        type => srv,
        node => "b",
        nameservers => [{{127, 0, 0, 1}, atoll_dns_server:port(Server)}]
    }},
    {Server, Source}.
