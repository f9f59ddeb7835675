%% SPDX-License-Identifier: Apache-2.0
%% Connections over other nodes, on real ones: A and B have no connection of their own, and
%% gateways stand between. The ways are a router's by hand ({@link atoll_dist_ways}). What
%% unmodified programs do over such a connection is in atoll_dist_programs_SUITE.
-module(atoll_dist_relay_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(atoll_dist_nodes, [node/3, node/4, carrier/1, kernel/2, name/1, call/4, call/5, connect/2, works/2]).
-import(atoll_dist_nodes, [loopback/1, name/2, listed/2, said/2, said/3, logged/2, until/1, until/2]).
-import(atoll_dist_shared, [ends_once/3]).

-export([all/0, groups/0, init_per_group/2, end_per_group/2, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    two_nodes_work_over_a_third/1,
    signals_of_a_pair_keep_their_order_while_a_gateway_dies/1,
    they_do_over_links_with_lanes_and_use_them_all/1,
    nodes_that_connect_to_each_other_at_once_have_one_connection/1,
    a_node_reconnects_at_once_after_a_disconnect_under_traffic/1,
    a_killed_node_is_down_once_and_at_once/1,
    the_last_gateway_that_dies_is_the_end_once/1,
    a_circuit_comes_back_with_a_gateway/1,
    a_gateway_that_stands_still_is_left/1,
    a_node_that_stands_still_while_its_gateway_dies_is_waited_for/1,
    a_silent_node_is_down_once/1,
    an_end_that_dies_is_told/1,
    an_idle_circuit_stays_up/1,
    hidden_nodes_stay_hidden/1,
    a_node_without_a_name_gets_one/1,
    a_cookie_of_one_peer_is_used/1,
    a_wrong_cookie_is_refused/1,
    distribution_is_stopped_and_started_again/1,
    a_relay_that_refuses_is_named/1,
    a_node_without_circuits_refuses_them/1,
    without_a_way_it_is_as_configured/1,
    a_wanted_link_is_no_circuit/1,
    what_is_altered_ends_a_sealed_circuit/1,
    a_seal_is_wanted_by_either_end/1,
    a_slow_receiver_costs_a_relay_no_more_than_its_window/1,
    an_unread_message_holds_its_own_bytes/1,
    code_that_is_loaded_thrice_closes_nothing/1,
    processes_in_a_channel_send_as_all_others/1,
    nothing_that_a_peer_says_hurts_the_hub/1,
    links_are_told_to_who_watches/1
]).

%% For as long an end waits for the other one where there seems to be a way. What it takes is far
%% less where the machine has nothing else to do, and no promise where it has.
-define(PAUSE_US, 17000000).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    case atoll_tier:tier() of
        fast -> [{group, waiting} | cases(fast) -- waiting()];
        deep -> [{group, waiting} | cases(deep) -- waiting()] ++ [{group, Over} || {Over, _, _} <- groups(), Over =/= waiting]
    end.

groups() -> [{waiting, [parallel], waiting()} | [{Over, [], cases(fast)} || Over <- [tls, ipv6]]].

%% What waits for seconds, and each has nodes of its own.
waiting() ->
    [
        a_silent_node_is_down_once, a_relay_that_refuses_is_named, a_circuit_comes_back_with_a_gateway,
        distribution_is_stopped_and_started_again, a_node_that_stands_still_while_its_gateway_dies_is_waited_for
    ].

init_per_group(waiting, Config) -> Config;
init_per_group(Group, Config) -> atoll_dist_nodes:over(Group, Config).

end_per_group(_Group, _Config) -> ok.

%% Signs of life of an idle circuit are those of any connection, which the suite of direct
%% ones waits for in each tier; memory and code are as with lanes, whose suite has that. That lanes are used
%% the fast tier tests without nodes.
cases(fast) ->
    cases(deep) --
        [
            an_idle_circuit_stays_up,
            they_do_over_links_with_lanes_and_use_them_all,
            an_unread_message_holds_its_own_bytes,
            code_that_is_loaded_thrice_closes_nothing
        ];
cases(deep) ->
    [F || {F, 1} <- ?MODULE:module_info(exports), not lists:member(F, [module_info, init_per_suite, end_per_suite])].

init_per_suite(Config) ->
    atoll_dist_nodes:begin_suite(Config).

end_per_suite(Config) ->
    atoll_dist_nodes:end_suite(Config).

init_per_testcase(_Case, Config) ->
    atoll_dist_nodes:begin_case(Config).

end_per_testcase(_Case, Config) ->
    atoll_dist_nodes:end_case(Config).

%% Nobody is to connect who is not told to.
args(Options) -> args(Options, []).

args(Options, More) -> carrier(Options) ++ ["-connect_all", "false"] ++ More.

started(Config, Name, Args) -> started(Config, Name, Args, #{}).

started(Config, Name, Args, Options) ->
    One = node(Config, Name, Args, Options),
    ok = call(One, atoll_dist_ways, start, []),
    One.

%% A and B, and so many gateways between, each connected with both.
between(Config, Gateways) -> between(Config, Gateways, args([])).

between(Config, Gateways, Args) ->
    [A, B | Gs] = Nodes = [started(Config, Name, Args) || Name <- ["a", "b" | lists:duplicate(Gateways, "g")]],
    joined(A, B, Gs),
    Nodes.

%% Connected with these, and over them with each other.
joined(A, B, Gs) ->
    [works(End, G) || End <- [A, B], G <- Gs],
    Names = [name(G) || G <- Gs],
    ok = way(A, B, Names),
    ok = way(B, A, Names),
    works(A, B),
    [until(fun() -> relayed(At) =:= [name(To)] end) || {At, To} <- [{A, B}, {B, A}]].

way(From, To, Way) -> call(From, atoll_dist_ways, set, [name(To), Way]).

relayed(At) -> [Node || #{node := Node, kind := relay} <- links(At)].

links(At) -> call(At, atoll_dist, links, []).

%% The circuit as it is shown, and over which gateway it goes.
circuit(At, To) ->
    Name = name(To),
    [Circuit] = [Link || #{node := Node, kind := relay} = Link <- links(At), Node =:= Name],
    Circuit.

gateway(At, To, Gs) ->
    #{path := [_, Between, _]} = circuit(At, To),
    hd([G || G <- Gs, name(G) =:= Between]).

two_nodes_work_over_a_third(Config) ->
    [A, B, G] = between(Config, 1),
    ok = listed(A, [{name(B), relay}, {name(G), direct}]),
    ok = listed(B, [{name(A), relay}, {name(G), direct}]),
    ok = listed(G, [{name(A), direct}, {name(B), direct}]),
    Path = [name(N) || N <- [A, G, B]],
    ?assertMatch(#{path := Path, sealed := false, started := here, rtt_us := _, age_ms := _}, circuit(A, B)),
    ?assertMatch(#{path := Path, sealed := false, started := there}, circuit(B, A)),
    ?assertMatch(#{circuits := 1, ends := 0, accepting := 0, strange := 0}, call(G, atoll_dist, relay, [])),
    %% The gateway's, and the port mapper's.
    ?assertEqual(2, call(A, atoll_dist_probe, sockets_with, [[]])),
    {ok, Info} = call(A, net_kernel, node_info, [name(B)]),
    {_, Host, Family} = loopback(Config),
    ?assertMatch({net_address, _, Host, relay, Family}, proplists:get_value(address, Info)),
    ?assert(proplists:get_value(in, Info) > 0),
    Apps = [App || {App, _, _} <- call(A, application, which_applications, [])],
    ?assertNot(lists:member(atoll, Apps)).

%% The longest pause is the time that one answer takes.
signals_of_a_pair_keep_their_order_while_a_gateway_dies(Config) ->
    in_order_while_a_gateway_dies(between(Config, 2)).

they_do_over_links_with_lanes_and_use_them_all(Config) ->
    [A | _] = Nodes = between(Config, 2, args([{kind, {lanes, 4}}])),
    Gateway = in_order_while_a_gateway_dies(Nodes),
    {ok, #{lanes := Lanes}} = call(A, atoll_dist, lanes, [name(Gateway)]),
    ?assertEqual([], [Lane || #{bytes := Bytes} = Lane <- Lanes, Bytes < 100000]).

%% The gateway that is left.
in_order_while_a_gateway_dies([A, B | Gs]) ->
    _ = atoll_tier:tier() =:= deep andalso ct:timetrap({minutes, 15}),
    Times = atoll_tier:size(order_times),
    _ = call(B, atoll_dist_probe, echo, [echo]),
    ok = call(A, atoll_dist_probe, hears, [name(B)]),
    Receivers = call(B, atoll_dist_order, receivers, [8, 64]),
    Seed = atoll_tier:seed(signals_of_a_pair_keep_their_order_while_a_gateway_dies),
    Self = self(),
    First = gateway(A, B, Gs),
    Runs = spawn_link(fun() ->
        Self ! {self(), call(A, atoll_dist_order, run, [Receivers, 64, Times, Seed], 800000)}
    end),
    Asks = spawn_link(fun() ->
        Self ! {self(), call(A, atoll_dist_probe, slowest, [name(B), echo, 4000], 70000)}
    end),
    Before = maps:get(bytes_out, circuit(A, B)),
    until(fun() -> maps:get(bytes_out, circuit(A, B)) > Before + 1000000 end),
    ok = atoll_dist_nodes:kill(First),
    {Answers, SlowestUs, _} = receive {Asks, Asked} -> Asked end,
    ?assertEqual({Seed, [[] || _ <- [senders | Receivers]]}, {Seed, receive {Runs, Wrong} -> Wrong end}),
    Gateway = gateway(A, B, Gs),
    ?assertNotEqual(name(First), name(Gateway)),
    ?assertEqual([], call(A, atoll_dist_probe, heard, [])),
    ct:pal("~b answers, the slowest in ~b us", [Answers, SlowestUs]),
    ?assert(SlowestUs < ?PAUSE_US),
    Gateway.

nodes_that_connect_to_each_other_at_once_have_one_connection(Config) ->
    [A, B, _] = between(Config, 1),
    atoll_dist_shared:connect_at_once(A, B, relay),
    [?assertEqual(0, logged(N, "carrier_")) || N <- [A, B]].

a_node_reconnects_at_once_after_a_disconnect_under_traffic(Config) ->
    [A, B, _] = between(Config, 1),
    atoll_dist_shared:reconnect_under_traffic(A, B).

%% One that was connected with, and one that has connected. Another gateway is asked, and says
%% that it has no connection with the node either; then nobody waits for that.
a_killed_node_is_down_once_and_at_once(Config) ->
    [A, B | Gs] = between(Config, 2),
    C = started(Config, "c", args([])),
    [works(C, G) || G <- Gs],
    Gateways = [name(G) || G <- Gs],
    [ok = way(From, To, Gateways) || {From, To} <- [{A, C}, {C, A}]],
    works(C, A),
    ok = call(A, atoll_dist_probe, hears, [name(B)]),
    Asked = fun(Of) -> [Avoid || {Node, Avoid} <- call(A, atoll_dist_ways, asked, []), Node =:= name(Of)] end,
    %% To connect it has asked for any way.
    ?assertMatch([[] | _], Asked(B)),
    lists:foreach(
        fun(Of) ->
            %% An idle way whose gateway stands still for a moment is left, and another one is asked for.
            Before = Asked(Of),
            {Took, ok} = timer:tc(fun() -> ends_once(A, Of, fun() -> atoll_dist_nodes:kill(Of) end) end),
            ct:pal("~ts is down after ~b ms", [name(Of), Took div 1000]),
            %% Who waits asks again, for ways around nobody.
            ?assertMatch([[_], [_, _]], lists:nthtail(length(Before), Asked(Of))),
            %% Who was connected with would wait for four seconds.
            ?assert(Took < 3900000)
        end,
        [B, C]
    ),
    ?assertMatch([{circuit, _}], call(A, atoll_dist_probe, heard, [])).

the_last_gateway_that_dies_is_the_end_once(Config) ->
    [A, B | Gs] = between(Config, 2),
    ok = call(A, atoll_dist_probe, hears, [name(B)]),
    ends_once(A, B, fun() -> lists:foreach(fun atoll_dist_nodes:kill/1, Gs) end),
    ?assertMatch([{circuit, _}], call(A, atoll_dist_probe, heard, [])),
    ?assertEqual([], call(A, erlang, nodes, [])).

a_circuit_comes_back_with_a_gateway(Config) ->
    [A, B, G] = between(Config, 1),
    ok = call(A, atoll_dist_probe, hears, [name(B)]),
    _ = call(B, atoll_dist_probe, echo, [echo]),
    ok = atoll_dist_nodes:kill(G),
    until(fun() -> call(A, erlang, nodes, []) =:= [] end),
    [until(fun() -> relayed(N) =:= [] end) || N <- [A, B]],
    G2 = started(Config, "g", args([])),
    [works(End, G2) || End <- [A, B]],
    ok = way(A, B, [name(G2)]),
    ok = way(B, A, [name(G2)]),
    ?assertEqual(again, call(A, atoll_dist_probe, ask, [name(B), echo, again])).

a_gateway_that_stands_still_is_left(Config) ->
    [A, B | Gs] = between(Config, 2),
    _ = call(B, atoll_dist_probe, echo, [echo]),
    ok = call(A, atoll_dist_probe, hears, [name(B)]),
    First = gateway(A, B, Gs),
    Self = self(),
    Asks = spawn_link(fun() ->
        Self ! {self(), call(A, atoll_dist_probe, slowest, [name(B), echo, 3000], 30000)}
    end),
    %% It has begun.
    Answered = fun() -> maps:get(bytes_out, circuit(A, B)) end,
    Began = Answered(),
    until(fun() -> Answered() > Began + 1000 end),
    ok = atoll_dist_nodes:signal(First, "STOP"),
    {Answers, SlowestUs, _} = receive {Asks, Asked} -> Asked end,
    ok = atoll_dist_nodes:signal(First, "CONT"),
    ct:pal("~b answers, the slowest in ~b us", [Answers, SlowestUs]),
    ?assert(Answers > 1),
    ?assertNotEqual(name(First), name(gateway(A, B, Gs))),
    ?assertEqual([], call(A, atoll_dist_probe, heard, [])).

%% It is the one that has to find another way.
a_node_that_stands_still_while_its_gateway_dies_is_waited_for(Config) ->
    [A, B | Gs] = between(Config, 2),
    _ = call(B, atoll_dist_probe, echo, [echo]),
    [ok = call(At, atoll_dist_probe, hears, [name(To)]) || {At, To} <- [{A, B}, {B, A}]],
    First = gateway(A, B, Gs),
    ok = atoll_dist_nodes:signal(A, "STOP"),
    ok = atoll_dist_nodes:kill(First),
    %% Till the other end has given it as long as an end takes that finds no way.
    until(fun() -> {call(B, atoll_dist_ways, asked, []), call(B, atoll_dist_probe, heard, [])} =/= {[], []} end),
    ok = atoll_dist_nodes:signal(A, "CONT"),
    ?assertEqual(again, call(A, atoll_dist_probe, ask, [name(B), echo, again])),
    ?assertNotEqual(name(First), name(gateway(A, B, Gs))),
    ?assertEqual([[], []], [call(N, atoll_dist_probe, heard, []) || N <- [A, B]]).

a_silent_node_is_down_once(Config) ->
    [A, B, _] = between(Config, 1, args([], kernel(net_ticktime, 4))),
    ok = call(A, atoll_dist_probe, hears, [name(B)]),
    ends_once(A, B, fun() -> atoll_dist_nodes:signal(B, "STOP") end),
    ?assertEqual(1, length(call(A, atoll_dist_probe, heard, []))).

an_end_that_dies_is_told(Config) ->
    [A, B, _] = between(Config, 1),
    [ok = call(At, atoll_dist_probe, hears, [name(To)]) || {At, To} <- [{A, B}, {B, A}]],
    ends_once(B, A, fun() -> true = call(A, atoll_dist_probe, kills_end, []), ok end),
    ?assertEqual([killed], call(A, atoll_dist_probe, heard, [])),
    ?assertEqual([connection_closed], call(B, atoll_dist_probe, heard, [])),
    works(A, B).

an_idle_circuit_stays_up(Config) ->
    [A, B, _] = between(Config, 1, args([], kernel(net_ticktime, 2))),
    ?assert(call(A, atoll_dist_probe, stays, [name(B), 6000])).

hidden_nodes_stay_hidden(Config) ->
    [A, G] = [started(Config, Name, args([])) || Name <- ["a", "g"]],
    H = started(Config, "h", args([], ["-hidden"])),
    [works(One, G) || One <- [A, H]],
    ok = way(H, A, [name(G)]),
    works(H, A),
    ?assertEqual([name(G)], call(A, erlang, nodes, [])),
    ?assertEqual([name(H)], call(A, erlang, nodes, [hidden])),
    ?assertEqual([name(H)], relayed(A)).

a_node_without_a_name_gets_one(Config) ->
    [A, G] = [started(Config, Name, args([])) || Name <- ["a", "g"]],
    N = started(Config, "n", args([], ["-name", name(Config, "undefined")]), #{nameless => true}),
    works(A, G),
    ?assertEqual(true, connect(N, G)),
    Named = N#{node := call(N, erlang, node, [])},
    ok = way(Named, A, [name(G)]),
    ok = way(A, Named, [name(G)]),
    works(Named, A),
    ?assertEqual([name(A)], relayed(N)).

a_cookie_of_one_peer_is_used(Config) ->
    [A, B, G] = [started(Config, Name, args([{seal, required}]), #{cookie => Cookie}) || {Name, Cookie} <- [{"a", "x"}, {"b", "y"}, {"g", "x"}]],
    true = call(B, erlang, set_cookie, [name(G), x]),
    [works(End, G) || End <- [A, B]],
    ok = way(A, B, [name(G)]),
    ?assertEqual(false, connect(A, B)),
    ok = said(A, "does not know the cookie"),
    true = call(A, erlang, set_cookie, [name(B), z]),
    true = call(B, erlang, set_cookie, [name(A), z]),
    works(A, B).

a_wrong_cookie_is_refused(Config) ->
    [A, B, G] = [started(Config, Name, args([]), #{cookie => Cookie}) || {Name, Cookie} <- [{"a", "x"}, {"b", "y"}, {"g", "x"}]],
    true = call(B, erlang, set_cookie, [name(G), x]),
    [works(End, G) || End <- [A, B]],
    ok = way(A, B, [name(G)]),
    ?assertEqual(false, connect(A, B)),
    ok = said(B, "Invalid challenge reply"),
    until(fun() -> maps:get(ends, call(B, atoll_dist, relay, [])) =:= 0 end),
    until(fun() -> maps:get(circuits, call(G, atoll_dist, relay, [])) =:= 0 end).

distribution_is_stopped_and_started_again(Config) ->
    [B, G] = [started(Config, Name, args([])) || Name <- ["b", "g"]],
    A = started(Config, "a", args([]), #{nameless => true}),
    works(B, G),
    lists:foreach(
        fun(Name) ->
            {ok, _} = call(A, net_kernel, start, [[Name, longnames]]),
            Named = A#{node := Name},
            works(Named, G),
            %% The other end knows no other way either, or it would wait for one.
            [ok = way(From, To, [name(G)]) || {From, To} <- [{A, B}, {B, Named}]],
            works(Named, B),
            ?assertEqual([name(B)], relayed(A)),
            ok = call(A, net_kernel, stop, []),
            ok = listed(B, [{name(G), direct}])
        end,
        [list_to_atom(name(Config, Name)) || Name <- case atoll_tier:tier() of
            fast -> ["relay_first", "relay_second"];
            deep -> ["relay_first", "relay_first", "relay_second"]
        end]
    ).

%% Refusals

a_relay_that_refuses_is_named(Config) ->
    [A, B, G, H] = between(Config, 2),
    ok = call(A, atoll_dist_probe, hears, [name(B)]),
    C = started(Config, "c", args([])),
    [works(C, Gateway) || Gateway <- [G, H]],
    Only = [{#{atom_to_binary(name(C)) => x}, any}],
    [ok = call(Gateway, atoll_dist, relay_policy, [Only]) || Gateway <- [G, H]],
    %% Those that go on must not.
    until(fun() -> call(A, atoll_dist_probe, heard, []) =/= [] end, 2 * ?PAUSE_US div 1000),
    ?assertMatch([{circuit, _}], call(A, atoll_dist_probe, heard, [])),
    until(fun() -> relayed(B) =:= [] end, 2 * ?PAUSE_US div 1000),
    ?assertEqual(false, connect(A, B)),
    Said = unicode:characters_to_list(["does not relay from ", atom_to_list(name(A))]),
    %% Of the one that has ended, and of the next one.
    ok = said(A, Said, 2),
    ok = way(C, B, [name(G)]),
    works(C, B),
    %% Each ends it once at most: it may have moved to the other one, even before that had the policy.
    Relays = [call(Gateway, atoll_dist, relay, []) || Gateway <- [G, H]],
    ?assertMatch([_ | _], [1 || #{refused := #{policy := _}} <- Relays]),
    ?assertEqual(1, lists:max([maps:get(policy, Lost, 0) || #{lost := Lost} <- Relays])).

a_node_without_circuits_refuses_them(Config) ->
    [A, G] = [started(Config, Name, args([])) || Name <- ["a", "g"]],
    B = started(Config, "b", args([{relay, off}])),
    [works(End, G) || End <- [A, B]],
    ok = way(A, B, [name(G)]),
    ?assertEqual(false, connect(A, B)),
    ok = said(A, "it takes no circuit now"),
    %% Nor has it any itself, nor relays.
    ok = way(B, A, [name(G)]),
    works(B, A),
    ok = listed(B, [{name(A), direct}, {name(G), direct}]),
    true = call(A, erlang, disconnect_node, [name(B)]),
    true = call(B, erlang, disconnect_node, [name(G)]),
    ok = listed(B, []),
    works(B, A),
    ok = way(A, G, [name(B)]),
    true = call(A, erlang, disconnect_node, [name(G)]),
    works(B, G),
    ?assertEqual(false, connect(A, G)),
    ok = said(A, "does not relay from").

without_a_way_it_is_as_configured(Config) ->
    A = started(Config, "a", args([{unrouted, refuse}])),
    B = started(Config, "b", args([])),
    [ok = way(From, To, {error, {no_route, "nobody stands between"}}) || {From, To} <- [{A, B}, {B, A}]],
    ?assertEqual(false, connect(A, B)),
    ok = said(A, "nobody stands between"),
    works(B, A),
    ok = listed(B, [{name(A), direct}]),
    true = call(B, erlang, disconnect_node, [name(A)]),
    ok = way(B, A, {error, {refused, "it may not"}}),
    ?assertEqual(false, connect(B, A)),
    ok = said(B, "it may not").

a_wanted_link_is_no_circuit(Config) ->
    [A, B, G] = between(Config, 1),
    ok = call(A, atoll_dist, own, [name(B), true]),
    true = call(A, erlang, disconnect_node, [name(B)]),
    works(A, B),
    ok = listed(A, [{name(B), direct}, {name(G), direct}]),
    ok = call(A, atoll_dist, own, [name(B), false]),
    true = call(A, erlang, disconnect_node, [name(B)]),
    works(A, B),
    ok = listed(A, [{name(B), relay}, {name(G), direct}]),
    %% One without distribution of Atoll's has nothing of it.
    S = node(Config, "s", []),
    ?assertEqual(ok, call(S, atoll_dist, own, [name(B), true])),
    ?assertEqual(ok, call(S, atoll_dist, relay_policy, [none])),
    ?assertEqual([], call(S, atoll_dist, watch_links, [])),
    ?assertEqual(#{}, call(S, atoll_dist, relay, [])).

%% Trust

what_is_altered_ends_a_sealed_circuit(Config) ->
    lists:foreach(
        fun(Kind) ->
            [A, B, G] = between(Config, 1, args([{seal, required}, {faults, true}, {kind, Kind}])),
            _ = call(B, atoll_dist_probe, echo, [echo]),
            ?assertMatch(#{sealed := true}, circuit(A, B)),
            ?assertMatch(#{sealed := true}, circuit(B, A)),
            [ok = call(At, atoll_dist_probe, hears, [name(To)]) || {At, To} <- [{A, B}, {B, A}]],
            ?assertEqual({error, bad_fault}, call(G, atoll_dist, fault, [relay, {alter, 0}])),
            ok = call(G, atoll_dist, fault, [relay, {alter, 20}]),
            ?assertExit(_, call(A, atoll_dist_probe, slowest, [name(B), echo, 10000], 20000)),
            [until(fun() -> call(N, atoll_dist_probe, heard, []) =/= [] end) || N <- [A, B]],
            Heard = [call(N, atoll_dist_probe, heard, []) || N <- [A, B]],
            ?assertMatch([_, _], [{circuit, W} || [{circuit, W}] <- Heard]),
            ?assert(lists:any(fun([{circuit, {altered, _}}]) -> true; (_) -> false end, Heard)),
            ?assert(lists:sum([logged(N, "was altered on the way") || N <- [A, B]]) >= 1),
            ok = call(G, atoll_dist, fault, [relay, heal]),
            works(A, B)
        end,
        [direct, {lanes, 4}]
    ).

a_seal_is_wanted_by_either_end(Config) ->
    [A, G] = [started(Config, Name, args([])) || Name <- ["a", "g"]],
    B = started(Config, "b", args([{seal, required}])),
    [works(End, G) || End <- [A, B]],
    [ok = way(From, To, [name(G)]) || {From, To} <- [{A, B}, {B, A}]],
    works(B, A),
    ?assertMatch(#{sealed := true}, circuit(A, B)),
    true = call(B, erlang, disconnect_node, [name(A)]),
    until(fun() -> relayed(A) =:= [] end),
    until(fun() -> relayed(B) =:= [] end),
    works(A, B),
    [?assertMatch(#{sealed := true}, circuit(At, To)) || {At, To} <- [{A, B}, {B, A}]].

%% Bounds

a_slow_receiver_costs_a_relay_no_more_than_its_window(Config) ->
    [A, B, G] = between(Config, 1, args([], kernel(net_ticktime, 600))),
    C = started(Config, "c", args([])),
    works(C, G),
    ok = way(A, C, [name(G)]),
    works(A, C),
    _ = call(C, atoll_dist_probe, echo, [echo]),
    ok = call(B, atoll_dist_probe, sink, [echo_sink]),
    {_, _, BeforeUs} = call(A, atoll_dist_probe, slowest, [name(C), echo, 1000]),
    Memory = call(G, erlang, memory, [total]),
    ok = atoll_dist_nodes:signal(B, "STOP"),
    Flooders = [call(A, atoll_dist_probe, floods, [name(B), Bytes]) || Bytes <- [50, 1000, 20000, 300000], _ <- lists:seq(1, 25)],
    Self = self(),
    Asks = spawn_link(fun() -> Self ! {self(), call(A, atoll_dist_probe, slowest, [name(C), echo, 4000], 30000)} end),
    Most = call(G, atoll_dist_probe, most_memory, [3000]),
    {_, _, BesidesUs} = receive {Asks, Asked} -> Asked end,
    [true = call(A, erlang, exit, [Pid, kill]) || Pid <- Flooders],
    Figures = call(G, atoll_dist, relay, []),
    ct:pal("~b bytes more; ~b us in the middle, ~b before; ~p", [Most - Memory, BesidesUs, BeforeUs, Figures]),
    %% What its one window is, what the VM keeps for a busy connection, and garbage.
    ?assert(Most - Memory < 1048576 + 1048576 + 3000000),
    ok = atoll_dist_nodes:signal(B, "CONT").

an_unread_message_holds_its_own_bytes(Config) ->
    [A, B, _] = between(Config, 1),
    atoll_dist_shared:unread_holds_its_own(A, B).

code_that_is_loaded_thrice_closes_nothing(Config) ->
    [A, B, G] = between(Config, 1),
    atoll_dist_shared:code_is_loaded([A, B, G], A, B).

%% Over a relay; the gateway's link has the channel, and the circuit's frames are not in it.
processes_in_a_channel_send_as_all_others(Config) ->
    [A, B, G] = between(Config, 1, args([{channels, #{bulk => #{lanes => 2}}}])),
    Pid = call(B, atoll_dist_named_probe, collects, []),
    ok = call(A, atoll_dist_named_probe, wanders, [Pid, 500, 10, [bulk, default]]),
    until(fun() -> length(call(B, atoll_dist_named_probe, collected, [Pid])) =:= 500 end),
    ?assertEqual(lists:seq(1, 500), call(B, atoll_dist_named_probe, collected, [Pid])),
    ?assertNot(is_map_key(channels, circuit(A, B))),
    Name = name(G),
    ?assertMatch([#{bulk := #{packets := 0}, default := #{packets := Packets}}] when Packets > 0,
        [Channels || #{node := Node, channels := Channels} <- links(A), Node =:= Name]).

nothing_that_a_peer_says_hurts_the_hub(Config) ->
    [A, B, G] = between(Config, 1),
    Hub = call(G, erlang, whereis, [atoll_dist_hub]),
    ok = call(A, atoll_dist_probe, says_nonsense, [name(G), name(A)]),
    #{strange := Strange, dropped := Dropped} = call(G, atoll_dist, relay, []),
    ct:log("~b, ~p", [Strange, Dropped]),
    ?assert(Strange > 0),
    ?assertEqual(Hub, call(G, erlang, whereis, [atoll_dist_hub])),
    works(A, B).

links_are_told_to_who_watches(Config) ->
    [A, B, G] = between(Config, 1),
    ok = call(A, atoll_dist_probe, box, [box]),
    ?assertEqual([name(G)], call(A, atoll_dist_probe, watches, [box])),
    C = started(Config, "c", args([])),
    works(C, A),
    true = call(A, erlang, disconnect_node, [name(C)]),
    true = call(A, erlang, disconnect_node, [name(B)]),
    ok = atoll_dist_nodes:kill(G),
    Told = [{atoll_dist, linked, name(C)}, {atoll_dist, unlinked, name(C)}, {atoll_dist, unlinked, name(G)}],
    until(fun() -> length(call(A, atoll_dist_probe, taken, [box])) >= 3 end, 10000),
    ?assertEqual(Told, call(A, atoll_dist_probe, taken, [box])).
