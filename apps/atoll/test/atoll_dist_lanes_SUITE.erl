%% SPDX-License-Identifier: Apache-2.0
%% Connections with lanes on real nodes: what is promised of order, of failures, of lanes
%% that strangers offer, and of faults that are injected. What unmodified programs do over
%% them is in atoll_dist_programs_SUITE.
-module(atoll_dist_lanes_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").
-include_lib("kernel/include/dist.hrl").

-import(atoll_dist_nodes, [node/3, node/4, carrier/1, kernel/2, name/1, call/4, call/5, connect/2, works/2, apart/2]).
-import(atoll_dist_nodes, [loopback/1, name/2, listed/2, said/2, logged/2, until/1]).
-import(atoll_dist_shared, [ends_once/3]).

-export([all/0, groups/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_group/2, end_per_group/2]).
-export([init_per_testcase/2, end_per_testcase/2]).
-export([
    signals_of_a_pair_keep_their_order/1,
    replies_are_not_overtaken_by_the_end_of_their_servers/1,
    many_deaths_by_name_share_fences/1,
    both_ends_show_the_lanes/1,
    the_larger_number_of_lanes_is_taken/1,
    options_are_set_on_all_lanes/1,
    a_cookie_of_one_peer_proves_its_lanes/1,
    a_node_without_a_name_gets_one/1,
    nodes_that_connect_to_each_other_at_once_have_one_connection/1,
    a_node_reconnects_at_once_after_a_disconnect_under_traffic/1,
    distribution_is_stopped_and_started_again/1,
    a_node_is_restarted_under_its_name/1,
    a_killed_node_is_down_once/1,
    a_killed_node_is_no_lost_lane_where_one_is_not_read/1,
    a_lane_that_is_cut_is_the_end_once/1,
    an_end_that_notices_late_gives_the_same_reason/1,
    a_lane_that_is_a_black_hole_is_the_end_once/1,
    a_silent_node_is_down_as_ever/1,
    unequal_ticktimes_keep_an_idle_connection/1,
    a_ticktime_that_changes_is_followed/1,
    a_stopped_peer_costs_its_sender_no_more_than_the_budget/1,
    small_messages_to_a_stopped_peer_hold_nobody_up/1,
    a_blocked_lane_does_not_block_the_others/1,
    an_unread_message_holds_its_own_bytes/1,
    code_that_is_loaded_thrice_closes_nothing/1,
    lanes_that_prove_nothing_are_refused/1,
    lanes_of_another_connection_prove_nothing/1,
    many_nodes_connect_at_once/1,
    lanes_that_do_not_come_end_the_connection/1,
    an_acceptor_that_proves_nothing_is_given_up/1,
    garbage_on_a_lane_ends_the_connection/1,
    a_peer_without_fragments_is_served/1,
    a_peer_that_names_no_senders_gets_no_lanes/1,
    faults_are_off_unless_configured/1,
    messages_are_dropped_and_nothing_else/1,
    everything_is_delayed/1,
    a_black_hole_is_healed_without_a_loss/1
]).

%% The ends of all lanes within 200 ms are one end. Half of it is left for what late/0 does not see.
-define(NOTICED_MS, 100).

suite() -> [{timetrap, {minutes, 2}}].

all() -> [{group, Group} || {Group, _, _} <- groups(), not lists:member(Group, [waiting, once_of_tls])].

groups() -> groups(atoll_tier:tier()).

%% Each order on some number of lanes, and each number with some order.
groups(fast) ->
    [
        {one, [], [replies_are_not_overtaken_by_the_end_of_their_servers]},
        {four, [], ordered()},
        {sixteen, [], [signals_of_a_pair_keep_their_order]},
        {once, [], [{group, waiting} | once() -- (long() ++ waiting())]},
        {waiting, [parallel], waiting()}
    ];
groups(deep) ->
    [
        {one, [], ordered()}, {four, [], ordered()}, {sixteen, [], ordered()},
        {once, [], [{group, waiting} | once() -- waiting()]}, {waiting, [parallel], waiting()},
        {tls, [], [{group, one}, {group, sixteen}, {group, once_of_tls}]},
        {once_of_tls, [], once() -- by_hand()},
        {ipv6, [], [{group, four}, {group, once}]}
    ].

%% What waits for seconds, and each has nodes of its own.
waiting() ->
    [
        a_lane_that_is_a_black_hole_is_the_end_once, a_silent_node_is_down_as_ever,
        lanes_that_do_not_come_end_the_connection, small_messages_to_a_stopped_peer_hold_nobody_up
    ].

%% Whose peers have no TLS.
by_hand() ->
    [
        lanes_that_prove_nothing_are_refused, lanes_of_another_connection_prove_nothing, many_nodes_connect_at_once,
        lanes_that_do_not_come_end_the_connection, an_acceptor_that_proves_nothing_is_given_up, garbage_on_a_lane_ends_the_connection,
        a_peer_without_fragments_is_served, a_peer_that_names_no_senders_gets_no_lanes
    ].

once() ->
    [F || {F, 1} <- ?MODULE:module_info(exports), not lists:member(F, not_once())].

%% What these say holds of direct connections too, whose suite has it in each tier, or is
%% checked without nodes.
long() ->
    [
        a_ticktime_that_changes_is_followed,
        unequal_ticktimes_keep_an_idle_connection,
        a_node_without_a_name_gets_one,
        a_node_is_restarted_under_its_name
    ].

ordered() ->
    [
        signals_of_a_pair_keep_their_order,
        replies_are_not_overtaken_by_the_end_of_their_servers,
        many_deaths_by_name_share_fences
    ].

not_once() -> [module_info, init_per_suite, end_per_suite | ordered()].

init_per_suite(Config) ->
    atoll_dist_nodes:begin_suite(Config).

end_per_suite(Config) ->
    atoll_dist_nodes:end_suite(Config).

init_per_group(Over, Config) when Over =:= tls; Over =:= ipv6 ->
    atoll_dist_nodes:over(Over, Config);
init_per_group(waiting, Config) ->
    Config;
init_per_group(Group, Config) ->
    [{lanes, case Group of one -> 1; four -> 4; sixteen -> 16; once -> 4; once_of_tls -> 4 end} | Config].

end_per_group(_Group, _Config) -> ok.

init_per_testcase(_Case, Config) ->
    atoll_dist_nodes:begin_case(Config).

end_per_testcase(_Case, Config) ->
    atoll_dist_nodes:end_case(Config).

lanes(Config) -> lanes(Config, []).

%% Nobody is to connect who is not told to.
lanes(Config, More) ->
    carrier([{kind, {lanes, ?config(lanes, Config)}} | More]) ++ ["-connect_all", "false"].

pair(Config) -> pair(Config, lanes(Config)).

pair(Config, Args) -> pair(Config, Args, Args).

pair(Config, ArgsA, ArgsB) ->
    A = node(Config, "a", ArgsA),
    B = node(Config, "b", ArgsB),
    works(A, B),
    {A, B}.

faulty(Config) -> pair(Config, lanes(Config, [{faults, true}])).

fault(At, To, Fault) -> call(At, atoll_dist, fault, [name(To), Fault]).

%% Order

%% In the deep tier it may take longer.
sized(Name) ->
    _ = atoll_tier:tier() =:= deep andalso ct:timetrap({minutes, 15}),
    atoll_tier:size(Name).

signals_of_a_pair_keep_their_order(Config) ->
    Times = sized(order_times),
    {A, B} = pair(Config),
    Receivers = call(B, atoll_dist_order, receivers, [8, 64]),
    Seed = atoll_tier:seed({?FUNCTION_NAME, ?config(lanes, Config)}),
    ?assertEqual(
        {Seed, [[] || _ <- [senders | Receivers]]}, {Seed, call(A, atoll_dist_order, run, [Receivers, 64, Times, Seed], 800000)}
    ),
    {ok, Figures} = call(A, atoll_dist, lanes, [name(B)]),
    ct:log("~p", [Figures]),
    #{lanes := Lanes} = Figures,
    ?assertEqual(?config(lanes, Config), length([x || #{bytes := Bytes} <- Lanes, Bytes > 0])).

replies_are_not_overtaken_by_the_end_of_their_servers(Config) ->
    Bytes = sized(reply_bytes),
    {A, B} = pair(Config),
    Replies = sized(replies),
    ?assertEqual(Replies, call(A, atoll_dist_order, answers, [name(B), 20, Replies div 20, Bytes], 800000)).

many_deaths_by_name_share_fences(Config) ->
    {A, B} = pair(Config),
    Deaths = sized(deaths),
    Pids = call(B, atoll_dist_order, named, [Deaths]),
    {Downs, TookMs} = call(A, atoll_dist_order, watch, [name(B), Deaths, Pids], 110000),
    ?assertEqual(Deaths, Downs),
    {ok, #{fences := Fences, fenced := Fenced}} = call(B, atoll_dist, lanes, [name(A)]),
    ct:pal("~b deaths in ~b ms, ~b packets behind ~b fences", [Downs, TookMs, Fenced, Fences]),
    case ?config(lanes, Config) of
        1 ->
            ?assertEqual({0, 0}, {Fences, Fenced});
        _ ->
            ?assert(Fenced >= Deaths),
            %% One for each two milliseconds in which somebody died, however long this
            %% took, and for each round of 256 KB.
            ?assert(Fences =< TookMs div 2 + 20)
    end.

%% Connections

both_ends_show_the_lanes(Config) ->
    {A, B} = pair(Config),
    ok = listed(A, [{name(B), {lanes, 4}}]),
    ok = listed(B, [{name(A), {lanes, 4}}]),
    {ok, Info} = call(A, net_kernel, node_info, [name(B)]),
    {Ip, Host, Family} = loopback(Config),
    ?assertMatch({net_address, {Ip, _}, Host, {lanes, 4}, Family}, proplists:get_value(address, Info)),
    ?assert(proplists:get_value(in, Info) > 0),
    Apps = [App || {App, _, _} <- call(A, application, which_applications, [])],
    ?assertNot(lists:member(atoll, Apps)).

the_larger_number_of_lanes_is_taken(Config) ->
    Two = node(Config, "two", lanes(Config, [{kind, {lanes, 2}}])),
    Seven = node(Config, "seven", lanes(Config, [{kind, {lanes, 7}}])),
    Auto = node(Config, "auto", carrier([{kind, auto}, {lane_rtt, 0}, {lanes, 64}])),
    works(Two, Seven),
    ok = listed(Seven, [{name(Two), {lanes, 7}}]),
    works(Seven, Auto),
    ok = listed(Auto, [{name(Seven), {lanes, 7}}]),
    true = call(Two, net_kernel, connect_node, [name(Auto)]),
    ok = listed(Two, [{name(Seven), {lanes, 7}}, {name(Auto), {lanes, 2}}]).

options_are_set_on_all_lanes(Config) ->
    Args = lanes(Config, [{lane_options, [{linger, {true, 3}}]}]) ++ kernel(inet_dist_connect_options, [{keepalive, true}]),
    {A, B} = pair(Config, Args),
    Keys = [keepalive, linger, nodelay, packet, packet_size],
    %% With TLS they come in another order.
    {ok, Are} = call(A, net_kernel, getopts, [name(B), Keys]),
    ?assertEqual(
        [{keepalive, true}, {linger, {true, 3}}, {nodelay, true}, {packet, 4}, {packet_size, atoll_dist_frame:max_frame()}],
        lists:sort(Are)
    ),
    ok = call(A, net_kernel, setopts, [name(B), [{linger, {true, 5}}]]),
    ?assertMatch({error, {badopts, _}}, call(A, net_kernel, setopts, [name(B), [{active, false}]])),
    %% With TLS frames are that one's, and not the socket's.
    Packet = [{packet, 4} || not proplists:is_defined(tls, Config)],
    ?assertEqual(4, call(A, atoll_dist_probe, sockets_with, [[{linger, {true, 5}}, {keepalive, true}, {nodelay, true} | Packet]])),
    ?assertEqual(4, call(B, atoll_dist_probe, sockets_with, [[{linger, {true, 3}}, {keepalive, false}, {nodelay, true} | Packet]])).

a_cookie_of_one_peer_proves_its_lanes(Config) ->
    A = node(Config, "a", lanes(Config), #{cookie => "of_a"}),
    B = node(Config, "b", lanes(Config), #{cookie => "of_b"}),
    ?assertEqual(false, connect(A, B)),
    true = call(A, erlang, set_cookie, [name(B), of_b]),
    works(A, B),
    ok = listed(A, [{name(B), {lanes, 4}}]).

a_node_without_a_name_gets_one(Config) ->
    A = node(Config, "a", lanes(Config)),
    N = node(Config, "n", lanes(Config) ++ ["-name", name(Config, "undefined")], #{nameless => true}),
    ?assertEqual(true, connect(N, A)),
    Name = call(N, erlang, node, []),
    ?assertEqual(Name, call(A, rpc, call, [Name, erlang, node, []])),
    ok = listed(A, [{Name, {lanes, 4}}]).

nodes_that_connect_to_each_other_at_once_have_one_connection(Config) ->
    {A, B} = pair(Config),
    atoll_dist_shared:connect_at_once(A, B, {lanes, 4}),
    [?assertEqual(0, logged(N, Said)) || N <- [A, B], Said <- ["carrier_lane_lost", "carrier_lane_refused"]].

a_node_reconnects_at_once_after_a_disconnect_under_traffic(Config) ->
    {A, B} = pair(Config),
    atoll_dist_shared:reconnect_under_traffic(A, B).

distribution_is_stopped_and_started_again(Config) ->
    B = node(Config, "b", lanes(Config)),
    A = node(Config, "a", lanes(Config), #{nameless => true}),
    Sockets = call(A, atoll_dist_probe, sockets_with, [[]]),
    lists:foreach(
        fun(Name) ->
            {ok, _} = call(A, net_kernel, start, [[Name, longnames]]),
            ok = listed(B, []),
            works(A#{node := Name}, B),
            ok = listed(A, [{name(B), {lanes, 4}}]),
            ok = call(A, net_kernel, stop, []),
            ok = listed(B, []),
            until(fun() -> call(A, atoll_dist_probe, sockets_with, [[]]) =:= Sockets end)
        end,
        [list_to_atom(name(Config, Name)) || Name <- ["lanes_first", "lanes_first", "lanes_second"]]
    ).

a_node_is_restarted_under_its_name(Config) ->
    A = node(Config, "a", lanes(Config)),
    Name = name(Config, "restarted" ++ integer_to_list(erlang:unique_integer([positive]))),
    lists:foreach(
        fun(_) ->
            B = node(Config, "b", lanes(Config), #{whole_name => Name}),
            works(A, B),
            ok = atoll_dist_nodes:kill(B),
            until(fun() -> call(A, erlang, nodes, []) =:= [] end)
        end,
        [1, 2, 3]
    ).

%% Failures

a_killed_node_is_down_once(Config) ->
    {A, B} = pair(Config),
    ok = call(A, atoll_dist_probe, hears, [name(B)]),
    ends_once(A, B, fun() -> atoll_dist_nodes:kill(B) end),
    ?assertEqual([connection_closed], call(A, atoll_dist_probe, heard, [])),
    ?assertEqual(0, logged(A, "carrier_lane_lost")).

%% A black hole is not read, and does not say that it is closed.
a_killed_node_is_no_lost_lane_where_one_is_not_read(Config) ->
    {A, B} = faulty(Config),
    ok = call(A, atoll_dist_probe, hears, [name(B)]),
    ends_once(A, B, fun() ->
        ok = fault(A, B, {black_hole, 3}),
        atoll_dist_nodes:kill(B)
    end),
    ?assertEqual([connection_closed], call(A, atoll_dist_probe, heard, [])),
    ?assertEqual(0, logged(A, "carrier_lane_lost")).

a_lane_that_is_cut_is_the_end_once(Config) ->
    {A, B} = cut_and_heard(0, Config),
    [ok = said(N, "carrier_lane_lost") || N <- [A, B]],
    works(A, B),
    %% All of them are the end of the connection as ever.
    ends_once(A, B, fun() -> fault(A, B, cut) end),
    ?assertEqual([{lane_closed, 2}, connection_closed], call(A, atoll_dist_probe, heard, [])).

%% The other end gives up all lanes before it has waited itself.
an_end_that_notices_late_gives_the_same_reason(Config) ->
    {_, B} = cut_and_heard(60, Config),
    ?assertEqual([{lane_closed, 2}], call(B, atoll_dist_probe, heard, [])).

%% Two nodes whose second lane was cut while one was held up for so long, when that one has given the reason. Where the machine made it
%% too late for that, two others are taken.
cut_and_heard(HeldMs, Config) ->
    {A, B} = faulty(Config),
    [ok = call(At, atoll_dist_probe, hears, [name(To)]) || {At, To} <- [{A, B}, {B, A}]],
    _ = call(A, atoll_dist_probe, late, []),
    ends_once(A, B, fun() ->
        _ = [ok = call(A, atoll_dist_probe, held_up, [name(B), HeldMs]) || HeldMs > 0],
        fault(B, A, {cut, 2})
    end),
    until(fun() -> call(B, atoll_dist_probe, heard, []) =/= [] end),
    case {call(A, atoll_dist_probe, heard, []), call(A, atoll_dist_probe, late, [])} of
        {[{lane_closed, 2}], _} -> {A, B};
        {[connection_closed], Late} -> ?assert(HeldMs + Late > ?NOTICED_MS, Late), cut_and_heard(HeldMs, Config)
    end.

a_lane_that_is_a_black_hole_is_the_end_once(Config) ->
    {A, B} = pair(Config, lanes(Config, [{faults, true}]) ++ kernel(net_ticktime, 4)),
    [ok = call(At, atoll_dist_probe, hears, [name(To)]) || {At, To} <- [{A, B}, {B, A}]],
    Started = erlang:monotonic_time(millisecond),
    ends_once(A, B, fun() -> fault(B, A, {black_hole, 3}) end),
    %% A quarter more than the ticktime, a quarter until it is seen, and a busy machine.
    Took = erlang:monotonic_time(millisecond) - Started,
    ?assert(Took < 15000),
    found_silent(3, [A, B]).

%% Both ends find that at the same time: to one that comes second the other has closed.
found_silent(Lane, Ends) ->
    [until(fun() -> call(End, atoll_dist_probe, heard, []) =/= [] end) || End <- Ends],
    Heard = [{End, call(End, atoll_dist_probe, heard, [])} || End <- Ends],
    {Found, Closed} = lists:partition(fun({_, Reasons}) -> Reasons =:= [{lane_silent, Lane}] end, Heard),
    ?assertNotEqual([], Found),
    [?assertEqual([connection_closed], Reasons) || {_, Reasons} <- Closed],
    [ok = said(End, "carrier_lane_lost") || {End, _} <- Found].

a_silent_node_is_down_as_ever(Config) ->
    %% By the ticks, and not by the lanes, which wait for a quarter longer: that is to be more than a busy machine adds.
    {A, B} = pair(Config, lanes(Config) ++ kernel(net_ticktime, 4)),
    ok = call(A, atoll_dist_probe, hears, [name(B)]),
    ends_once(A, B, fun() -> atoll_dist_nodes:signal(B, "STOP") end),
    ?assertEqual([net_tick_timeout], call(A, atoll_dist_probe, heard, [])).

unequal_ticktimes_keep_an_idle_connection(Config) ->
    {A, B} = pair(Config, lanes(Config) ++ kernel(net_ticktime, 2), lanes(Config) ++ kernel(net_ticktime, 4)),
    ?assert(call(A, atoll_dist_probe, stays, [name(B), 6000])).

a_ticktime_that_changes_is_followed(Config) ->
    {A, B} = pair(Config, lanes(Config, [{faults, true}]) ++ kernel(net_ticktime, 2)),
    Set = fun(Seconds) -> [change_initiated = call(N, net_kernel, set_net_ticktime, [Seconds, 0]) || N <- [A, B]] end,
    _ = Set(60),
    %% Both look twice a second, and tell each other.
    ?assert(call(A, atoll_dist_probe, stays, [name(B), 3000])),
    ok = fault(B, A, {black_hole, 3}),
    ?assert(call(A, atoll_dist_probe, stays, [name(B), 3500])),
    [ok = call(At, atoll_dist_probe, hears, [name(To)]) || {At, To} <- [{A, B}, {B, A}]],
    _ = Set(2),
    until(fun() -> call(A, erlang, nodes, []) =:= [] end),
    found_silent(3, [A, B]).

a_stopped_peer_costs_its_sender_no_more_than_the_budget(Config) ->
    Seconds = sized(stopped_s),
    Budget = 8000000,
    Args = lanes(Config, [{budget, Budget}]) ++ kernel(net_ticktime, 600),
    {A, B} = pair(Config, Args),
    ok = call(B, atoll_dist_probe, sink, [echo_sink]),
    ok = atoll_dist_nodes:signal(B, "STOP"),
    Before = call(A, erlang, memory, [total]),
    Flooders = [call(A, atoll_dist_probe, floods, [name(B), Bytes]) || Bytes <- [50, 1000, 20000, 300000]],
    Most = call(A, atoll_dist_probe, most_memory, [Seconds * 1000], Seconds * 1000 + 20000),
    {ok, #{lanes := Lanes, budget_spent := Spent}} = call(A, atoll_dist, lanes, [name(B)]),
    ?assert(Spent > 0),
    ?assert(lists:sum([W || #{waiting := W} <- Lanes]) =< Budget + 70000),
    ct:log("~b bytes more than before", [Most - Before]),
    %% The VM's own queue, what the sockets have of one batch for each lane, and garbage.
    ?assert(Most - Before < Budget + 1000000 + 4 * 300000 + 6000000),
    ok = atoll_dist_nodes:signal(B, "CONT"),
    [true = call(A, erlang, exit, [Pid, kill]) || Pid <- Flooders],
    works(A, B).

%% A socket takes what it has room for and keeps the rest; what comes next finds it full.
small_messages_to_a_stopped_peer_hold_nobody_up(Config) ->
    {A, B} = pair(Config, lanes(Config) ++ kernel(net_ticktime, 600)),
    ok = call(B, atoll_dist_probe, sink, [echo_sink]),
    ok = atoll_dist_nodes:signal(B, "STOP"),
    try
        ok = call(A, atoll_dist_probe, trickles, [name(B), 16384, 1000], 60000),
        ?assertMatch({ok, _}, call(A, atoll_dist, lanes, [name(B)]))
    after
        ok = atoll_dist_nodes:signal(B, "CONT")
    end.

a_blocked_lane_does_not_block_the_others(Config) ->
    {A, B} = faulty(Config),
    _ = call(B, atoll_dist_probe, echo, [echo]),
    ok = fault(A, B, {black_hole, 1}),
    %% Senders have lanes in turn.
    Answered = call(A, atoll_dist_probe, asked_by_many, [name(B), 8, 2000], 60000),
    ?assert(Answered >= 4),
    ?assert(Answered < 8),
    ok = fault(A, B, heal),
    ?assertEqual(8, call(A, atoll_dist_probe, asked_by_many, [name(B), 8, 10000], 60000)).

%% Strangers

lanes_that_prove_nothing_are_refused(Config) ->
    A = node(Config, "a", lanes(Config) ++ kernel(net_setuptime, 60), #{cookie => "handmade"}),
    C = node(Config, "c", lanes(Config), #{cookie => "handmade"}),
    Address = atoll_dist_handmade:address(A),
    Socket = atoll_dist_handmade:open(Address),
    Said = atoll_dist_handmade:greet(Socket, <<"hand@127.0.0.1">>, {lanes, 4}),
    Flags = atoll_dist_handmade:flags(all),
    {ok, _} = atoll_dist_handmade:shake(Socket, <<"hand@127.0.0.1">>, #{flags => Flags, cookie => "handmade"}),
    Nonce = crypto:strong_rand_bytes(16),
    Refused = fun(Frame) ->
        Lane = atoll_dist_handmade:open(Address),
        ok = atoll_dist_handmade:send(Lane, Frame),
        ?assertEqual({error, closed}, atoll_dist_handmade:recv(Lane))
    end,
    Joins = fun(Index) ->
        {Frame, Answer} = atoll_dist_handmade:lane(Said, Index, <<"handmade">>, Nonce),
        Lane = atoll_dist_handmade:open(Address),
        ok = atoll_dist_handmade:send(Lane, Frame),
        ?assertEqual({ok, Answer}, atoll_dist_handmade:recv(Lane)),
        {Frame, Lane}
    end,
    {Wrong, _} = atoll_dist_handmade:lane(Said, 1, <<"another">>, Nonce),
    {Unknown, _} = atoll_dist_handmade:lane([<<0:128>>, <<0:128>>], 1, <<"handmade">>, Nonce),
    {Beyond, _} = atoll_dist_handmade:lane(Said, 4, <<"handmade">>, Nonce),
    [Refused(Frame) || Frame <- [Wrong, Unknown, Beyond, Wrong]],
    {Frame1, _} = Joins(1),
    %% Said again while others are waited for, and when the connection is up.
    Refused(Frame1),
    _ = Joins(3),
    _ = Joins(2),
    ok = listed(A, [{'hand@127.0.0.1', {lanes, 4}}]),
    Refused(Frame1),
    ok = said(A, "what: carrier_lane_refused"),
    works(C, A).

an_unread_message_holds_its_own_bytes(Config) ->
    {A, B} = pair(Config),
    atoll_dist_shared:unread_holds_its_own(A, B).

code_that_is_loaded_thrice_closes_nothing(Config) ->
    {A, B} = pair(Config),
    atoll_dist_shared:code_is_loaded([A, B], A, B).

lanes_of_another_connection_prove_nothing(Config) ->
    A = node(Config, "a", lanes(Config, [{kind, auto}]) ++ kernel(net_setuptime, 60), #{cookie => "handmade"}),
    Address = atoll_dist_handmade:address(A),
    Id = crypto:strong_rand_bytes(16),
    Greets = fun(Name) ->
        Socket = atoll_dist_handmade:open(Address),
        {Socket, atoll_dist_handmade:greet(Socket, Name, {lanes, 2}, Id)}
    end,
    Shakes = fun(Socket, Name) ->
        atoll_dist_handmade:shake(Socket, Name, #{flags => atoll_dist_handmade:flags(all), cookie => "handmade"})
    end,
    Knocks = fun(Frame) ->
        Lane = atoll_dist_handmade:open(Address),
        ok = atoll_dist_handmade:send(Lane, Frame),
        {Lane, atoll_dist_handmade:recv(Lane)}
    end,
    {One, Said} = Greets(<<"one@127.0.0.1">>),
    {ok, _} = Shakes(One, <<"one@127.0.0.1">>),
    %% Nobody else gets that id as long as lanes are waited for.
    {Two, _} = Greets(<<"two@127.0.0.1">>),
    ?assertEqual({error, closed}, Shakes(Two, <<"two@127.0.0.1">>)),
    ok = said(A, "what: carrier_id_taken"),
    {Frame, Answer} = atoll_dist_handmade:lane(Said, 1, <<"handmade">>, <<0:128>>),
    {_, {ok, Answer}} = Knocks(Frame),
    ok = listed(A, [{'one@127.0.0.1', {lanes, 2}}]),
    %% And later what was said for the one proves nothing for the other.
    {Three, SaidThree} = Greets(<<"three@127.0.0.1">>),
    {ok, _} = Shakes(Three, <<"three@127.0.0.1">>),
    ?assertMatch({_, {error, closed}}, Knocks(Frame)),
    {FrameThree, AnswerThree} = atoll_dist_handmade:lane(SaidThree, 1, <<"handmade">>, <<0:128>>),
    ?assertMatch({_, {ok, AnswerThree}}, Knocks(FrameThree)),
    ok = listed(A, [{'one@127.0.0.1', {lanes, 2}}, {'three@127.0.0.1', {lanes, 2}}]),
    ok = said(A, "what: carrier_lane_refused"),
    ?assertEqual(0, logged(A, "badmatch")).

%% More lanes are on their way than strangers may hold open.
many_nodes_connect_at_once(Config) ->
    A = node(Config, "a", lanes(Config) ++ kernel(net_setuptime, 60), #{cookie => "handmade"}),
    Address = atoll_dist_handmade:address(A),
    Names = [<<"many", (integer_to_binary(I))/binary, "@127.0.0.1">> || I <- lists:seq(1, 20)],
    Connections = [
        begin
            Socket = atoll_dist_handmade:open(Address),
            Said = atoll_dist_handmade:greet(Socket, Name, {lanes, 16}),
            {ok, _} = atoll_dist_handmade:shake(Socket, Name, #{flags => atoll_dist_handmade:flags(all), cookie => "handmade"}),
            {Socket, Said}
        end
     || Name <- Names
    ],
    Lanes = [
        {atoll_dist_handmade:open(Address), atoll_dist_handmade:lane(Said, Index, <<"handmade">>, <<0:128>>)}
     || {_, Said} <- Connections, Index <- lists:seq(1, 15)
    ],
    [ok = atoll_dist_handmade:send(Lane, Frame) || {Lane, {Frame, _}} <- Lanes],
    [?assertEqual({ok, Answer}, atoll_dist_handmade:recv(Lane)) || {Lane, {_, Answer}} <- Lanes],
    ok = listed(A, [{binary_to_atom(Name), {lanes, 16}} || Name <- Names]),
    ?assertEqual(0, logged(A, "carrier_crowded")).

lanes_that_do_not_come_end_the_connection(Config) ->
    A = node(Config, "a", lanes(Config) ++ kernel(net_setuptime, 4), #{cookie => "handmade"}),
    C = node(Config, "c", lanes(Config), #{cookie => "handmade"}),
    Processes = call(A, erlang, system_info, [process_count]),
    Socket = atoll_dist_handmade:open(atoll_dist_handmade:address(A)),
    _ = atoll_dist_handmade:greet(Socket, <<"hand@127.0.0.1">>, {lanes, 4}),
    Flags = atoll_dist_handmade:flags(all),
    {ok, _} = atoll_dist_handmade:shake(Socket, <<"hand@127.0.0.1">>, #{flags => Flags, cookie => "handmade"}),
    ?assertEqual({error, closed}, atoll_dist_handmade:recv(Socket, 30000)),
    ok = said(A, "what: carrier_lanes_missing"),
    ?assertEqual([], call(A, erlang, nodes, [])),
    until(fun() -> call(A, erlang, system_info, [process_count]) =< Processes end),
    works(C, A).

an_acceptor_that_proves_nothing_is_given_up(Config) ->
    %% Between the two stands one that answers for the lanes itself.
    A = node(Config, "a", lanes(Config) ++ ["-no_epmd", "-epmd_module", "atoll_epmd"]),
    B = node(Config, "b", lanes(Config)),
    {Ip, Port} = atoll_dist_handmade:address(B),
    {_, Between} = atoll_dist_handmade:between({Ip, Port}, fun(Frame) ->
        case atoll_dist_hello:read(Frame) of
            {ok, {lane, _}} -> {answer, atoll_dist_hello:make({lane_answer, <<7:256>>})};
            _ -> pass
        end
    end),
    Way = {atom_to_binary(name(B)), #{address => Ip, port => Between}},
    ok = call(A, atoll_dist_probe, learn_all, [[Way]]),
    ?assertEqual(false, connect(A, B)),
    ok = said(A, "what: carrier_lane_failed"),
    ?assertEqual([], call(A, erlang, nodes, [])).

garbage_on_a_lane_ends_the_connection(Config) ->
    A = node(Config, "a", lanes(Config) ++ kernel(net_setuptime, 60), #{cookie => "handmade"}),
    Garbage = [<<"garbage">>, <<16#80000001:32, 1:32>>, <<0:32>>, <<5:32, "abcd">>, <<4:32, 131, 68, 0, 9>>],
    %% Of one that is too long nothing but the length is awaited.
    Frames = [<<(atoll_dist_frame:max_frame() + 1):32>> | [<<(byte_size(Frame)):32, Frame/binary>> || Frame <- Garbage]],
    [
        begin
            {First, Second} = handmade(A, <<"hand@127.0.0.1">>),
            ok = listed(A, [{'hand@127.0.0.1', {lanes, 4}}]),
            ok = inet:setopts(Second, [{packet, raw}]),
            ok = atoll_dist_handmade:send(Second, Frame),
            [?assert(atoll_dist_handmade:is_closed(S)) || S <- [First, Second]],
            ok = listed(A, [])
        end
     || Frame <- Frames
    ].

a_peer_without_fragments_is_served(Config) ->
    A = node(Config, "a", lanes(Config) ++ kernel(net_setuptime, 60), #{cookie => "handmade"}),
    ok = call(A, atoll_dist_probe, box, [box]),
    Name = <<"hand@127.0.0.1">>,
    Flags = atoll_dist_handmade:flags(mandatory) bor ?DFLAG_SEND_SENDER bor ?DFLAG_EXIT_PAYLOAD,
    Sockets = [_, _, Third | _] = handmade(A, Name, Flags),
    ok = listed(A, [{'hand@127.0.0.1', {lanes, 4}}]),
    [ok = inet:setopts(S, [{packet, 4}]) || S <- Sockets],
    Pid = binary_to_term(<<131, 88, 119, (byte_size(Name)), Name/binary, 5:32, 0:32, 17:32>>),
    Packet = iolist_to_binary([112, term_to_binary({6, Pid, '', box}), term_to_binary(by_hand)]),
    ok = atoll_dist_handmade:send(Third, [<<(byte_size(Packet)):32>>, Packet]),
    until(fun() -> call(A, atoll_dist_probe, taken, [box]) =:= [by_hand] end),
    %% A large message comes whole, on one lane.
    Large = binary:copy(<<5>>, 3000000),
    ok = call(A, atoll_dist_probe, send, [somebody, 'hand@127.0.0.1', Large]),
    [ok = inet:setopts(S, [{active, true}]) || S <- Sockets],
    ?assertEqual(Large, message()).

message() ->
    receive
        {tcp, _, Frame} ->
            {ok, Segments} = atoll_dist_frame:parse(Frame),
            Terms = [Bytes || {packets, Packets} <- Segments, <<112, Bytes/binary>> <- Packets],
            case [Rest || Bytes <- Terms, Rest <- [behind_control(Bytes)], Rest =/= <<>>] of
                [Message] -> binary_to_term(Message);
                [] -> message()
            end
    end.

behind_control(Bytes) ->
    {_, Used} = binary_to_term(Bytes, [used]),
    binary:part(Bytes, Used, byte_size(Bytes) - Used).

a_peer_that_names_no_senders_gets_no_lanes(Config) ->
    A = node(Config, "a", lanes(Config) ++ kernel(net_setuptime, 60), #{cookie => "handmade"}),
    Socket = atoll_dist_handmade:open(atoll_dist_handmade:address(A)),
    _ = atoll_dist_handmade:greet(Socket, <<"hand@127.0.0.1">>, {lanes, 4}),
    Flags = atoll_dist_handmade:flags(mandatory) band bnot (?DFLAG_SEND_SENDER bor ?DFLAG_EXIT_PAYLOAD),
    ?assertEqual(
        {ok, <<"snot_allowed">>}, atoll_dist_handmade:shake(Socket, <<"hand@127.0.0.1">>, #{flags => Flags, cookie => "handmade"})
    ),
    ?assert(atoll_dist_handmade:is_closed(Socket)),
    ok = said(A, "since it cannot handle"),
    ?assertEqual([], call(A, erlang, nodes, [connected])).

handmade(A, Name) ->
    [First, Second | _] = handmade(A, Name, atoll_dist_handmade:flags(all)),
    {First, Second}.

handmade(A, Name, Flags) ->
    Address = atoll_dist_handmade:address(A),
    First = atoll_dist_handmade:open(Address),
    Said = atoll_dist_handmade:greet(First, Name, {lanes, 4}),
    {ok, _} = atoll_dist_handmade:shake(First, Name, #{flags => Flags, cookie => "handmade"}),
    Lanes = [
        begin
            {Frame, Answer} = atoll_dist_handmade:lane(Said, Index, <<"handmade">>, <<0:128>>),
            Lane = atoll_dist_handmade:open(Address),
            ok = atoll_dist_handmade:send(Lane, Frame),
            {ok, Answer} = atoll_dist_handmade:recv(Lane),
            Lane
        end
     || Index <- [1, 2, 3]
    ],
    [First | Lanes].

%% Faults

faults_are_off_unless_configured(Config) ->
    {A, B} = pair(Config),
    ?assertEqual({error, faults_off}, fault(A, B, cut)),
    ?assertEqual({error, not_connected}, call(A, atoll_dist, fault, ['nobody@127.0.0.1', cut])),
    D = node(Config, "d", carrier([{kind, direct}, {faults, true}])),
    E = node(Config, "e", carrier([])),
    works(D, E),
    ok = listed(E, [{name(D), {lanes, 1}}]),
    ok = apart(D, E),
    ok = listed(E, []),
    works(E, D),
    ok = listed(E, [{name(D), {lanes, 1}}]),
    ?assertEqual({error, bad_fault}, fault(D, E, {cut, 1})),
    ?assertEqual({error, faults_off}, fault(E, D, cut)),
    F = node(Config, "f", carrier([])),
    works(E, F),
    ?assertEqual({error, no_lanes}, fault(E, F, cut)).

messages_are_dropped_and_nothing_else(Config) ->
    {A, B} = faulty(Config),
    ok = call(B, atoll_dist_probe, box, [box]),
    Send = fun(What) -> ok = call(A, atoll_dist_probe, send, [box, name(B), What]) end,
    ok = fault(A, B, {drop, 1}),
    [Send(What) || What <- [small, binary:copy(<<1>>, 1000000)]],
    %% The signals of links and monitors come.
    ?assertEqual(noproc, call(A, atoll_dist_probe, monitored, [nobody, name(B)])),
    ok = fault(A, B, heal),
    [Send(What) || What <- [one, binary:copy(<<2>>, 1000000), three]],
    until(fun() -> length(call(B, atoll_dist_probe, taken, [box])) >= 3 end),
    ?assertEqual(lists:sort([one, binary:copy(<<2>>, 1000000), three]), lists:sort(call(B, atoll_dist_probe, taken, [box]))),
    ok = fault(A, B, {drop, 0.5}),
    [Send(I) || I <- lists:seq(1, 200)],
    ok = fault(A, B, heal),
    Send(last),
    until(fun() -> lists:member(last, call(B, atoll_dist_probe, taken, [box])) end),
    Came = length(call(B, atoll_dist_probe, taken, [box])) - 4,
    ?assert(Came > 50 andalso Came < 150).

everything_is_delayed(Config) ->
    {A, B} = faulty(Config),
    ok = fault(A, B, {delay, 150}),
    {Us, _} = call(A, timer, tc, [rpc, call, [name(B), erlang, node, []]]),
    ?assert(Us >= 150000),
    ok = fault(A, B, heal),
    until(fun() -> element(1, call(A, timer, tc, [rpc, call, [name(B), erlang, node, []]])) < 150000 end).

a_black_hole_is_healed_without_a_loss(Config) ->
    {A, B} = faulty(Config),
    ok = call(B, atoll_dist_probe, box, [box]),
    ok = fault(A, B, black_hole),
    [ok = call(A, atoll_dist_probe, send, [box, name(B), I]) || I <- lists:seq(1, 50)],
    %% Whatever its lane is, nothing gets through.
    [?assertEqual({badrpc, timeout}, call(A, rpc, call, [name(B), erlang, node, [], 250])) || _ <- [1, 2, 3, 4]],
    ?assertEqual([], call(B, atoll_dist_probe, taken, [box])),
    ok = fault(A, B, heal),
    until(fun() -> lists:sort(call(B, atoll_dist_probe, taken, [box])) =:= lists:seq(1, 50) end).
