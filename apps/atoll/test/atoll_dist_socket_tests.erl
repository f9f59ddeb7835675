%% SPDX-License-Identifier: Apache-2.0
%% The options of sockets: what is the user's, what is the carrier's, and what is refused.
-module(atoll_dist_socket_tests).

-include_lib("eunit/include/eunit.hrl").

-define(LINUX, {unix, linux}).

the_throughput_profile_sets_nothing_test() ->
    ?assertEqual([], atoll_dist_socket:tuned(throughput, ?LINUX)).

the_latency_profile_bounds_what_is_unsent_and_no_buffer_test() ->
    ?assertMatch([{raw, 6, 25, <<_:32>>}], atoll_dist_socket:tuned(latency, ?LINUX)).

other_systems_get_no_option_of_linux_test() ->
    ?assertEqual([], atoll_dist_socket:tuned(latency, {unix, darwin})).

environment_test_() ->
    Keys = [inet_dist_listen_options, inet_dist_connect_options, inet_dist_use_interface, inet_dist_listen_min,
        inet_dist_listen_max, dist_nodelay],
    {foreach, fun() -> [application:unset_env(kernel, Key) || Key <- Keys] end,
        fun(_) -> [application:unset_env(kernel, Key) || Key <- Keys] end, [
            {"what the carrier needs cannot be overridden", fun forced/0},
            {"a default gives way to the user's", fun defaults/0},
            {"the interface is the configured one", fun interface/0},
            {"the ports are a range, one, or any", fun ports/0},
            {"small packets go out at once unless configured otherwise", fun nodelay/0}
        ]}.

forced() ->
    ok = application:set_env(kernel, inet_dist_connect_options, [{packet, 4}, {active, true}, {tos, 1}, binary]),
    Options = atoll_dist_socket:connect_options(),
    ?assertEqual([2], [N || {packet, N} <- Options]),
    ?assertEqual([false], [A || {active, A} <- Options]),
    ?assert(lists:member({tos, 1}, Options)).

defaults() ->
    ?assertEqual([{backlog, 1024}], [O || {backlog, _} = O <- atoll_dist_socket:listen_options()]),
    ok = application:set_env(kernel, inet_dist_listen_options, [{backlog, 5}]),
    ?assertEqual([{backlog, 5}], [O || {backlog, _} = O <- atoll_dist_socket:listen_options()]),
    Nodelay = fun() ->
        [N || Options <- [atoll_dist_socket:listen_options(), atoll_dist_socket:connect_options()], {nodelay, N} <- Options]
    end,
    ?assertEqual([true, true], Nodelay()),
    ok = application:set_env(kernel, inet_dist_connect_options, [{nodelay, false}]),
    ?assertEqual([true, false], Nodelay()).

interface() ->
    ok = application:set_env(kernel, inet_dist_use_interface, {127, 0, 0, 9}),
    ok = application:set_env(kernel, inet_dist_listen_options, [{ip, {0, 0, 0, 0}}]),
    ?assertEqual([{127, 0, 0, 9}], [Ip || {ip, Ip} <- atoll_dist_socket:listen_options()]).

ports() ->
    ?assertEqual({0, 0}, atoll_dist_socket:port_range()),
    ok = application:set_env(kernel, inet_dist_listen_min, 9000),
    ?assertEqual({9000, 9000}, atoll_dist_socket:port_range()),
    ok = application:set_env(kernel, inet_dist_listen_max, 9010),
    ?assertEqual({9000, 9010}, atoll_dist_socket:port_range()).

nodelay() ->
    ?assertEqual({nodelay, true}, atoll_dist_transport:nodelay()),
    ok = application:set_env(kernel, dist_nodelay, false),
    ?assertEqual({nodelay, false}, atoll_dist_transport:nodelay()).

what_would_break_a_connection_is_refused_test() ->
    ?assertMatch({error, {badopts, [{packet, 2}]}}, atoll_dist_socket:setopts(none, [{packet, 2}, {keepalive, true}])).

a_round_trip_is_measured_where_the_system_tells_test() ->
    {ok, Listening} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(Listening),
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, []),
    case {os:type(), atoll_dist_socket:rtt_us(Socket)} of
        {?LINUX, {ok, Us}} -> ?assert(Us < 1000000);
        {_, unknown} -> ok
    end,
    [ok = gen_tcp:close(S) || S <- [Socket, Listening]].

what_has_ended_is_known_though_nobody_reads_it_where_the_system_tells_test() ->
    {ok, Listening} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}, {active, false}]),
    {ok, Port} = inet:port(Listening),
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [{active, false}]),
    {ok, Other} = gen_tcp:accept(Listening),
    Ended = fun() -> atoll_dist_socket:has_ended(Socket) end,
    ?assertNot(Ended()),
    ok = gen_tcp:send(Other, "unread"),
    ok = gen_tcp:close(Other),
    _ = [ok = atoll_dist_nodes:until(Ended) || os:type() =:= ?LINUX],
    ok = gen_tcp:close(Socket),
    ?assertEqual(os:type() =:= ?LINUX, Ended()),
    ok = gen_tcp:close(Listening).
