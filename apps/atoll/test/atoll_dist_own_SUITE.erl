%% SPDX-License-Identifier: Apache-2.0
%% A connection of its own under a circuit that lives, on real nodes: it comes and goes
%% while programs on both nodes talk, and they do not notice.
-module(atoll_dist_own_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(atoll_dist_nodes, [node/3, node/4, carrier/1, name/1, call/4, works/2, until/1, said/3, logged/2]).

-export([all/0, groups/0, init_per_group/2, end_per_group/2, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    either_end_gets_one_and_lets_it_go_under_load/1,
    both_ends_at_once_make_one/1,
    one_that_is_lost_is_made_again/1,
    it_has_the_lanes_that_the_ends_agree_on_and_uses_all/1,
    others_go_over_it_too/1,
    nodes_of_ipv6_have_lanes_circuits_and_connections_of_their_own/1,
    it_stays_where_there_is_no_other_way/1,
    it_stays_when_it_is_wanted_again_before_another_way_is_known/1,
    it_takes_the_place_of_no_link/1,
    what_nobody_takes_waits_with_who_sends_it/1,
    too_long_a_frame_ends_it/1,
    a_wrong_cookie_gets_none/1,
    a_stranger_is_refused/1
]).

-define(TIMES, 10).
%% By a sign that is later than some hundred milliseconds a path is taken for lost.
-define(STILL_MS, 300).
%% More than all buffers of the system hold; and how many an own connection reads ahead.
-define(FRAMES, 1000).
-define(READ_AHEAD, 16).
%% For as long as an unproven caller may stand at the door, by default.
-define(KNOCK_S, 7).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    Over = [{group, Over} || {Over, _, _} <- groups(), Over =/= waiting, atoll_tier:tier() =:= deep],
    [{group, waiting} | cases() -- waiting()] ++ Over.

%% A stranger has no TLS.
groups() ->
    [
        {waiting, [parallel], waiting()},
        {tls, [], cases() -- [a_stranger_is_refused]},
        {ipv6, [], cases() -- [nodes_of_ipv6_have_lanes_circuits_and_connections_of_their_own]}
    ].

%% What takes seconds, and each has nodes of its own.
waiting() ->
    [
        either_end_gets_one_and_lets_it_go_under_load, both_ends_at_once_make_one, one_that_is_lost_is_made_again,
        it_stays_where_there_is_no_other_way
    ].

cases() ->
    [F || {F, 1} <- ?MODULE:module_info(exports), not lists:member(F, [module_info, init_per_suite, end_per_suite])].

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

%% A and B, connected over G, which has a link with each. Nobody else has one.
nodes_of(Config) ->
    over([started(Config, Name, []) || Name <- ["a", "b", "g"]]).

over([A, B, G] = Nodes) ->
    [works(End, G) || End <- [A, B]],
    ok = call(A, atoll_dist_ways, set, [name(B), [name(G)]]),
    ok = call(B, atoll_dist_ways, set, [name(A), [name(G)]]),
    works(A, B),
    path(A, B, [A, G, B]),
    Nodes.

started(Config, Name, Options) ->
    One = node(Config, Name, carrier(Options) ++ ["-connect_all", "false"]),
    ok = call(One, atoll_dist_ways, start, []),
    One.

own(A, B, Wants) ->
    ok = call(A, atoll_dist, own, [name(B), Wants]).

%% The connection of A with B goes over these nodes, as both say.
path(A, B, Path) ->
    until(fun() -> goes_by(A, B, Path) end).

goes_by(A, B, Path) ->
    Names = [name(N) || N <- Path],
    lists:all(
        fun({At, Of}) -> [P || #{node := N, kind := relay, path := P} <- call(At, atoll_dist, links, []), N =:= name(Of)] =:= [Names] end,
        [{A, B}, {B, A}]
    ).

linked(A, B) -> lists:member(name(B), call(A, atoll_dist_own_probe, linked, [])).

%% The one that opened the connection, the other one, and both.
either_end_gets_one_and_lets_it_go_under_load(Config) ->
    [A, B, G] = nodes_of(Config),
    Load = call(A, atoll_dist_own_probe, load, [name(B)]),
    Moves = [
        begin
            [own(N, P, true) || {N, P} <- Who],
            %% A node that stands still for half a second is left for a moment.
            until(fun() -> goes_by(A, B, [A, B]) andalso linked(A, B) andalso linked(B, A) end),
            [own(N, P, false) || {N, P} <- Who],
            path(A, B, [A, G, B]),
            ?assertNot(linked(A, B) orelse linked(B, A)),
            Who
        end
     || Round <- lists:seq(1, ?TIMES), Who <- [lists:nth(1 + Round rem 3, [[{A, B}], [{B, A}], [{A, B}, {B, A}]])]
    ],
    ?assertEqual(?TIMES, length(Moves)),
    #{sent := Sent} = Held = call(A, atoll_dist_own_probe, end_load, [Load]),
    ct:pal("~p", [Held]),
    ?assertMatch(#{got := Sent, in_order := true, fired := 0, nodedowns := 0}, Held),
    ?assert(Sent > 1000).

both_ends_at_once_make_one(Config) ->
    [A, B, G] = nodes_of(Config),
    Late = fun() -> lists:max([call(N, atoll_dist_probe, late, []) || N <- [A, B, G]]) end,
    Moves = fun() -> call(A, atoll_dist_own_probe, moves, [name(B)]) end,
    Round = fun Again() ->
        _ = Late(),
        Before = Moves(),
        Both = [
            atoll_name_cluster:work(fun() -> call(N, atoll_dist_own_probe, own_soon, [name(P), true]) end)
         || {N, P} <- [{A, B}, {B, A}]
        ],
        [ok = atoll_name_cluster:result(One) || One <- Both],
        path(A, B, [A, B]),
        %% What is said now comes after what each has told the other: that it wants it.
        works(A, B),
        %% One end does not want it any more: it stays.
        own(A, B, false),
        works(A, B),
        path(A, B, [A, B]),
        Made = Moves() - Before,
        own(B, A, false),
        path(A, B, [A, G, B]),
        %% A node that stands still for half a second is left for a moment, which makes two moves more.
        case {Made, Moves() - Before, Late()} of
            {1, 2, _} -> ok;
            {_, _, Ms} = Seen -> ?assert(Ms >= ?STILL_MS, Seen), Again()
        end
    end,
    [ok = Round() || _ <- lists:seq(1, ?TIMES)],
    ok.

one_that_is_lost_is_made_again(Config) ->
    [A, B, _G] = nodes_of(Config),
    Load = call(A, atoll_dist_own_probe, load, [name(B)]),
    own(A, B, true),
    path(A, B, [A, B]),
    [
        begin
            Before = call(A, atoll_dist_own_probe, moves, [name(B)]),
            ok = call(At, atoll_dist_own_probe, cut, [name(Of)]),
            %% Over others, and back.
            until(fun() -> call(A, atoll_dist_own_probe, moves, [name(B)]) >= Before + 2 end),
            path(A, B, [A, B])
        end
     || {At, Of} <- [{A, B}, {B, A}, {A, B}]
    ],
    #{sent := Sent} = Held = call(A, atoll_dist_own_probe, end_load, [Load]),
    ?assertMatch(#{got := Sent, in_order := true, fired := 0, nodedowns := 0}, Held).

%% Three that one end asks for; large messages are cut, and their pieces take them all.
it_has_the_lanes_that_the_ends_agree_on_and_uses_all(Config) ->
    [A, B, G] = over([started(Config, Name, [{kind, Kind}]) || {Name, Kind} <- [{"a", auto}, {"b", {lanes, 3}}, {"g", direct}]]),
    Load = call(A, atoll_dist_own_probe, load, [name(B)]),
    own(A, B, true),
    path(A, B, [A, B]),
    [until(fun() -> [_, _, _] = Lanes = call(At, atoll_dist_own_probe, lanes, [name(Of)]), lists:all(fun is_used/1, Lanes) end)
     || {At, Of} <- [{A, B}, {B, A}]],
    %% One that is lost ends them all, and they come again.
    Before = call(A, atoll_dist_own_probe, moves, [name(B)]),
    ok = call(B, atoll_dist_own_probe, cut, [name(A)]),
    until(fun() -> call(A, atoll_dist_own_probe, moves, [name(B)]) >= Before + 2 end),
    path(A, B, [A, B]),
    ?assertMatch([_, _, _], call(A, atoll_dist_own_probe, lanes, [name(B)])),
    own(A, B, false),
    path(A, B, [A, G, B]),
    #{sent := Sent} = Held = call(A, atoll_dist_own_probe, end_load, [Load]),
    ?assertMatch(#{got := Sent, in_order := true, fired := 0, nodedowns := 0}, Held).

is_used(unknown) -> true;
is_used({In, Out}) -> In + Out > 1000000.

%% G's own link is not needed by a third node's circuit.
others_go_over_it_too(Config) ->
    [A, B, G] = nodes_of(Config),
    C = started(Config, "c", []),
    works(C, A),
    own(A, B, true),
    path(A, B, [A, B]),
    ok = call(C, atoll_dist_ways, set, [name(B), [name(A)]]),
    ok = call(B, atoll_dist_ways, set, [name(C), [name(A)]]),
    works(C, B),
    path(C, B, [C, A, B]),
    %% When it is to go, that one finds another way.
    Load = call(C, atoll_dist_own_probe, load, [name(B)]),
    works(C, G),
    ok = call(C, atoll_dist_ways, set, [name(B), [name(A), name(G)]]),
    own(A, B, false),
    path(A, B, [A, G, B]),
    path(C, B, [C, G, B]),
    #{sent := Sent} = Held = call(C, atoll_dist_own_probe, end_load, [Load]),
    ?assertMatch(#{got := Sent, in_order := true, fired := 0, nodedowns := 0}, Held).

nodes_of_ipv6_have_lanes_circuits_and_connections_of_their_own(Config) ->
    case atoll_dist_nodes:has_ipv6() of
        false ->
            {skip, "no IPv6 on loopback"};
        true ->
            Args = ["-proto_dist", "atoll6", "-connect_all", "false"] ++ atoll_dist_nodes:kernel(atoll_dist, [{kind, {lanes, 4}}]) ++
                atoll_dist_nodes:kernel(inet_dist_use_interface, {0, 0, 0, 0, 0, 0, 0, 1}),
            Nodes = [node(Config, Name, Args, #{host => "::1"}) || Name <- ["a", "b", "g"]],
            [ok = call(Node, atoll_dist_ways, start, []) || Node <- Nodes],
            [A, B, G] = over(Nodes),
            [
                begin
                    ?assertMatch({ok, #{lanes := [_, _, _, _]}}, call(End, atoll_dist, lanes, [name(G)])),
                    {ok, Info} = call(End, net_kernel, node_info, [name(G)]),
                    ?assertMatch({net_address, {{0, 0, 0, 0, 0, 0, 0, 1}, _}, "::1", {lanes, 4}, inet6}, proplists:get_value(address, Info))
                end
             || End <- [A, B]
            ],
            Load = call(A, atoll_dist_own_probe, load, [name(B)]),
            own(A, B, true),
            path(A, B, [A, B]),
            ?assertMatch([_, _, _, _], call(B, atoll_dist_own_probe, lanes, [name(A)])),
            own(A, B, false),
            path(A, B, [A, G, B]),
            #{sent := Sent} = Held = call(A, atoll_dist_own_probe, end_load, [Load]),
            ?assertMatch(#{got := Sent, in_order := true, fired := 0, nodedowns := 0}, Held)
    end.

it_stays_where_there_is_no_other_way(Config) ->
    [A, B, G] = nodes_of(Config),
    Load = call(A, atoll_dist_own_probe, load, [name(B)]),
    own(A, B, true),
    path(A, B, [A, B]),
    true = call(A, erlang, disconnect_node, [name(G)]),
    ok = call(A, atoll_dist_ways, set, [name(B), []]),
    own(A, B, false),
    %% It counts no more, and is used.
    until(fun() -> not linked(A, B) end),
    works(A, B),
    path(A, B, [A, B]),
    works(A, G),
    ok = call(A, atoll_dist_ways, set, [name(B), [name(G)]]),
    path(A, B, [A, G, B]),
    #{sent := Sent} = Held = call(A, atoll_dist_own_probe, end_load, [Load]),
    ?assertMatch(#{got := Sent, in_order := true, fired := 0, nodedowns := 0}, Held).

it_stays_when_it_is_wanted_again_before_another_way_is_known(Config) ->
    [A, B, _G] = nodes_of(Config),
    own(A, B, true),
    path(A, B, [A, B]),
    Via = call(A, atoll_dist_circuits, via, [name(B)]),
    Asked = length(call(A, atoll_dist_ways, asked, [])),
    ok = call(A, sys, suspend, [atoll_dist_ways]),
    own(A, B, false),
    %% It has asked for the way.
    until(fun() -> {message_queue_len, N} = call(A, atoll_dist_own_probe, waiting, [atoll_dist_ways]), N > 0 end),
    own(A, B, true),
    ok = call(A, sys, resume, [atoll_dist_ways]),
    until(fun() -> length(call(A, atoll_dist_ways, asked, [])) > Asked end),
    [works(A, B) || _ <- lists:seq(1, 50)],
    path(A, B, [A, B]),
    ?assertEqual(1, call(A, atoll_dist_own_probe, moves, [name(B)])),
    ?assertEqual(Via, call(A, atoll_dist_circuits, via, [name(B)])).

it_takes_the_place_of_no_link(Config) ->
    [A, B, G] = nodes_of(Config),
    ?assertEqual(taken, call(A, atoll_dist_own_probe, claim, [name(G)])),
    ?assertEqual(messages, call(A, atoll_dist_circuits, via, [name(G)])),
    ?assert(linked(A, G)),
    works(A, B).

%% A peer that keeps to no window: what is of the circuit, and what is of others.
what_nobody_takes_waits_with_who_sends_it(Config) ->
    [A, B, _G] = nodes_of(Config),
    own(A, B, true),
    [
        begin
            path(A, B, [A, B]),
            Holder = call(A, atoll_dist_own_probe, hold, [Who]),
            Left = call(B, atoll_dist_own_probe, stuff, [name(A), Who, ?FRAMES]),
            ?assert(Left > 0),
            %% Beside what the circuit itself has to say.
            ?assert(call(A, atoll_dist_own_probe, waits_for, [Who]) =< ?READ_AHEAD + 4),
            ok = call(A, atoll_dist_own_probe, let_go, [Holder]),
            until(fun() -> call(B, atoll_dist_own_probe, unwritten, [name(A)]) =:= 0 end),
            works(A, B)
        end
     || Who <- ['end', hub]
    ].

too_long_a_frame_ends_it(Config) ->
    [A, B, _G] = nodes_of(Config),
    own(A, B, true),
    path(A, B, [A, B]),
    {own, {{Writer, _}}} = Via = call(A, atoll_dist_circuits, via, [name(B)]),
    {write, _} = call(A, erlang, send, [Writer, {write, binary:copy(<<0>>, atoll_dist_circuit_frame:max_frame() + 1)}]),
    %% It is made anew.
    until(fun() -> not lists:member(call(A, atoll_dist_circuits, via, [name(B)]), [Via, none]) end),
    path(A, B, [A, B]),
    works(A, B).

a_wrong_cookie_gets_none(Config) ->
    [A, B, G] = nodes_of(Config),
    true = call(A, erlang, set_cookie, [name(B), another]),
    own(A, B, true),
    said(A, "takes no proof of the cookie", 1),
    own(B, A, true),
    said(B, "takes no proof of the cookie", 1),
    works(A, B),
    path(A, B, [A, G, B]),
    %% It is tried again, and not said again.
    Tried = call(A, atoll_dist_own_probe, attempts, []),
    until(fun() -> call(A, atoll_dist_own_probe, attempts, []) > Tried + 1 end),
    ?assertEqual(1, logged(A, "takes no proof of the cookie")),
    true = call(A, erlang, set_cookie, [name(B), call(A, erlang, get_cookie, [])]),
    own(A, B, false),
    own(A, B, true),
    path(A, B, [A, B]).

%% Who does not know which circuits there are; who does, and not the cookie; and who says
%% again what was heard.
a_stranger_is_refused(Config) ->
    [A, B, G] = nodes_of(Config),
    Offers = call(A, atoll_dist_own_probe, offers, [name(B)]),
    ?assertEqual([refused, refused, refused], call(G, atoll_dist_own_probe, offer, [name(A), Offers])),
    said(A, "does not prove that it is of its other end", 1),
    works(A, B),
    path(A, B, [A, G, B]),
    %% They cost nobody else anything, and who has not yet proved anything keeps nobody waiting.
    ok = call(G, atoll_dist_own_probe, knock, [name(A), lists:last(Offers)]),
    Begin = erlang:monotonic_time(millisecond),
    own(A, B, true),
    path(A, B, [A, B]),
    ?assert(erlang:monotonic_time(millisecond) - Begin < 1000 * ?KNOCK_S).
