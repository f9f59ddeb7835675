%% SPDX-License-Identifier: Apache-2.0
%% What is said of peers, how often, and which connections are listed.
-module(atoll_dist_keeper_tests).

-include_lib("eunit/include/eunit.hrl").

%% The process runs here without the carrier.
-export([log/2]).

keeper_test_() ->
    {foreach, fun start/0, fun stop/1, [
        {"what is said of a peer is said once", fun said_once/0},
        {"it is said again after the peer was connected", fun said_again/0},
        {"what strangers can make it remember and say is bounded", fun bounded/0},
        {"a stranger's name is printable in the log", fun printable/0},
        {"a connection is listed until its process is gone", fun listed/0},
        {"connections are listed by the names of their nodes", fun in_order/0},
        {"a stray message is passed over", fun stray/0}
    ]}.

start() ->
    ok = application:unset_env(kernel, atoll_dist),
    ok = logger:add_handler(?MODULE, ?MODULE, #{}),
    {ok, #{level := Level}} = logger:get_handler_config(default),
    ok = logger:set_handler_config(default, level, none),
    {ok, Pid} = atoll_dist_keeper:start_link(),
    {Pid, Level}.

stop({Pid, Level}) ->
    ok = gen_server:stop(Pid),
    ok = logger:set_handler_config(default, level, Level),
    ok = logger:remove_handler(?MODULE).

%% Runs in the process that says it.
log(#{msg := {report, #{what := What} = Report}}, _) ->
    self() ! {said, What, Report},
    ok;
log(_, _) ->
    ok.

heard() ->
    receive
        {said, What, Report} -> [{What, Report} | heard()]
    after 0 -> []
    end.

whats() -> [What || {What, _} <- heard()].

socket() ->
    {ok, Socket} = gen_tcp:listen(0, []),
    Socket.

up(Pid, Node) ->
    Up = #{node => Node, kind => direct, rtt_us => 7, started => here, sockets => [socket()], channel => none, named => false},
    ok = atoll_dist_keeper:up(Pid, Up),
    settled().

%% A call comes after what was cast before it.
settled() ->
    _ = sys:get_state(atoll_dist_keeper),
    ok.

said_once() ->
    [ok = atoll_dist_keeper:say_once(carrier_refused, Peer, "x") || Peer <- [<<"a@h">>, <<"a@h">>, <<"b@h">>]],
    ?assertEqual([carrier_refused, carrier_refused], whats()).

said_again() ->
    ok = atoll_dist_keeper:say_once(carrier_refused, <<"a@h">>, "x"),
    ok = atoll_dist_keeper:say_once(carrier_id_taken, <<"a@h">>, "x"),
    ok = up(self(), a@h),
    ok = atoll_dist_keeper:say_once(carrier_refused, <<"a@h">>, "x"),
    ok = atoll_dist_keeper:say_once(carrier_id_taken, <<"a@h">>, "x"),
    ?assertEqual([carrier_refused, carrier_id_taken, carrier_refused], whats()).

bounded() ->
    [ok = atoll_dist_keeper:say_once(carrier_garbage, integer_to_binary(N), "x") || N <- lists:seq(1, 1500)],
    Whats = whats(),
    ?assertEqual(201, length(Whats)),
    ?assertEqual(carrier_says_no_more, lists:last(Whats)),
    ?assert(ets:info(atoll_dist_said, size) < 210),
    %% Which hides nothing of another kind.
    ok = atoll_dist_keeper:say_once(carrier_lane_lost, <<"a@h">>, "x"),
    ?assertEqual(carrier_lane_lost, lists:last(whats())).

printable() ->
    ok = atoll_dist_keeper:say_once(carrier_garbage, <<1>>, [<<"a\e[31m\nb"/utf8>>]),
    ok = atoll_dist_keeper:say_once(carrier_garbage, <<2>>, [<<"a", 255>>]),
    ?assertEqual(["a[31mb", "a..."], [Why || {_, #{why := Why}} <- heard()]).

listed() ->
    {Pid, Ref} = spawn_monitor(fun() -> receive stop -> ok end end),
    ok = up(Pid, a@h),
    ?assertMatch([#{node := a@h, kind := direct, rtt_us := 7, started := here, age_ms := _}], atoll_dist_keeper:links()),
    Pid ! stop,
    receive {'DOWN', Ref, process, Pid, _} -> ok end,
    until_none(erlang:monotonic_time(millisecond) + 4000).

until_none(Deadline) ->
    ok = settled(),
    case atoll_dist_keeper:links() of
        [] -> ok;
        Links -> ?assert(erlang:monotonic_time(millisecond) < Deadline, Links), until_none(Deadline)
    end.

in_order() ->
    Pids = [spawn(fun() -> receive stop -> ok end end) || _ <- [1, 2, 3]],
    [ok = up(Pid, Node) || {Pid, Node} <- lists:zip(Pids, [c@h, a@h, b@h])],
    ?assertEqual([a@h, b@h, c@h], [Node || #{node := Node} <- atoll_dist_keeper:links()]),
    [Pid ! stop || Pid <- Pids].

stray() ->
    atoll_dist_keeper ! stray,
    ok = gen_server:cast(atoll_dist_keeper, stray),
    ok = settled(),
    ?assertMatch({ok, #{kind := auto}}, atoll_dist_keeper:config()).

a_node_without_the_carrier_has_no_links_test() ->
    ?assertEqual([], atoll_dist:links()).
