%% SPDX-License-Identifier: Apache-2.0
%% What a node sends to all its peers, and when.
-module(atoll_sessions_tests).

-include_lib("eunit/include/eunit.hrl").

-define(P, atoll_sessions).

limits() ->
    #{batch => 10, window => 4, resend_ms => 100, answer_ms => 1000, tick_ms => 50, max_backlog => 5}.

%% With these peers, to whom so much is said.
peers(Says) ->
    lists:foldl(
        fun({Peer, N}, P) -> lists:foldl(fun(Item, P1) -> ?P:push(Peer, Item, P1) end, ?P:up(Peer, 0, P), lists:seq(1, N)) end,
        ?P:new(1000, limits()),
        Says
    ).

what_is_said_in_one_event_goes_in_one_message_test() ->
    {[{timer, flush, 0}, {timer, tick, 50}], Peers0} = ?P:timers(0, peers([{b, 1}, {a, 3}, {c, 0}])),
    %% Each timer runs once.
    {[], Peers1} = ?P:timers(0, ?P:push(b, 2, Peers0)),
    {Sent, [], Peers} = ?P:flush(0, Peers1),
    ?assertMatch([{send, a, {b, _, none, 1, 0, [1, 2, 3]}}, {send, b, {b, _, none, 1, 0, [1, 2]}}], Sent),
    ?assertMatch({[], [], _}, ?P:flush(0, Peers)).

where_nothing_is_said_there_is_no_timer_test() ->
    ?assertMatch({[], _}, ?P:timers(0, peers([{a, 0}, {b, 0}]))),
    ?assertMatch({[], _}, ?P:timers(0, ?P:push(x, 1, ?P:down(a, peers([{a, 1}]))))).

%% An answer alone is acknowledged with what follows, or at the next tick.
an_acknowledgement_can_wait_test() ->
    {same, [hello], Peers0} = ?P:take({b, {7, 1}, none, 1, 0, [hello]}, a, 0, peers([{a, 0}])),
    {[{timer, tick, 50}], Peers1} = ?P:timers(0, Peers0),
    ?assertMatch({[{send, a, {b, _, {7, 1}, 0, 1, []}}], [], _}, ?P:tick(50, Peers1)).

who_is_silent_and_whether_it_has_spoken_test() ->
    {same, [], Peers0} = ?P:take({b, {7, 1}, none, 1, 0, []}, b, 0, peers([{a, 1}, {b, 1}, {c, 0}])),
    {_, [], Peers1} = ?P:flush(0, Peers0),
    {_, Peers} = ?P:timers(1000, Peers1),
    ?assertMatch({_, [{a, false}, {b, true}], _}, ?P:tick(1050, Peers)),
    %% A tick that comes late says nothing of the peers.
    ?assertMatch({_, [], _}, ?P:tick(2000, Peers)).

for_whom_more_waits_than_may_test() ->
    {_, [a], Peers} = ?P:flush(0, peers([{a, 46}, {b, 45}])),
    %% It is given up.
    ?assertMatch({_, [], _}, ?P:flush(0, ?P:push(a, 1, ?P:begin_anew(a, 0, Peers)))),
    %% What a new member is told is not held against it.
    ?assertMatch({_, [], _}, ?P:flush(0, ?P:allow(a, peers([{a, 100}])))).

a_mute_node_is_spoken_to_again_test() ->
    {[{timer, {unresponsive, a}, 20000}], Peers} = ?P:leave_alone(a, ?P:down(a, peers([{a, 1}]))),
    ?assertEqual({[a], false, []}, {?P:unresponsive(Peers), ?P:is_up(a, Peers), ?P:connected(Peers)}),
    {[{cancel, {unresponsive, a}}], Again} = ?P:clear_unresponsive(a, Peers),
    ?assertEqual({[], Again}, ?P:clear_unresponsive(a, Again)).
