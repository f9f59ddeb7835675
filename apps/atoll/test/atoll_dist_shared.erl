%% SPDX-License-Identifier: Apache-2.0
%% What holds of connections of every kind, for the suites that have nodes of each.
-module(atoll_dist_shared).

-include_lib("stdlib/include/assert.hrl").

-import(atoll_dist_nodes, [name/1, call/4, call/5, connect/2, kinds/1, logged/2, until/1]).

-export([connect_at_once/3, reconnect_under_traffic/2, ends_once/3, unread_holds_its_own/2]).

%% Two nodes that are connected, so that each knows where the other is.
connect_at_once(A, B, Kind) ->
    Self = self(),
    lists:foreach(
        fun(_) ->
            At = erlang:system_time(millisecond) + 20,
            Refs = [
                begin
                    Ref = make_ref(),
                    spawn_link(fun() -> Self ! {Ref, call(One, atoll_dist_probe, at_once, [name(Other), At])} end),
                    Ref
                end
             || {One, Other} <- [{A, B}, {B, A}]
            ],
            Answers = [receive {Ref, Answer} -> Answer end || Ref <- Refs],
            %% One may hear of the other's disconnecting after it had connected.
            ?assert(lists:member(true, Answers)),
            until(fun() -> connect(A, B) end),
            [
                until(fun() -> [K || {Node, K} <- kinds(One), Node =:= name(Other)] =:= [Kind] end)
             || {One, Other} <- [{A, B}, {B, A}]
            ]
        end,
        lists:seq(1, atoll_tier:size(connect_at_once))
    ).

%% Two nodes that are connected.
reconnect_under_traffic(A, B) ->
    [
        begin
            _ = call(N, atoll_dist_probe, echo, [echo]),
            ok = call(N, atoll_dist_probe, sink, [echo_sink])
        end
     || N <- [A, B]
    ],
    Back = call(B, atoll_dist_probe, floods, [name(A), 1000]),
    Done = call(A, atoll_dist_probe, reconnects, [name(B), 8, 20000], 110000),
    true = call(B, erlang, exit, [Back, kill]),
    ?assertEqual([{true, I} || I <- lists:seq(1, 8)], Done),
    ?assertEqual(0, logged(A, "not responding")).

%% What a link, a monitor and one of the node bring, after Do: each once.
ends_once(At, Of, Do) ->
    ok = call(At, atoll_dist_probe, ends_with, [name(Of), ended]),
    until(fun() -> call(At, persistent_term, get, [ended, none]) =:= ready end),
    ok = Do(),
    until(fun() -> call(At, persistent_term, get, [ended, none]) =/= ready end),
    ?assertEqual(
        {[{exit, noconnection}, {down, noconnection}, nodedown], nothing}, call(At, persistent_term, get, [ended, none])
    ).

%% Two nodes that are connected. Messages that wait unread at B, while a thousand times as
%% much goes to others there, cost twice their own bytes and a megabyte at most.
unread_holds_its_own(A, B) ->
    Unread = atoll_tier:size(unread),
    Bytes = 100,
    Before = call(B, atoll_dist_probe, unread, [Unread]),
    Bulk = call(A, atoll_dist_probe, sends_amid, [name(B), Unread, Bytes, 1000 * Bytes], 110000),
    Held = call(B, atoll_dist_probe, held_by_unread, []) - Before,
    ct:pal("~b unread messages of ~b bytes hold ~b bytes, amid ~b MB for others", [Unread, Bytes, Held, Bulk div 1000000]),
    ?assert(Held < 2 * Unread * Bytes + 1000000),
    %% They are all there.
    ?assertEqual(Unread, call(B, atoll_dist_probe, reads_unread, [])).
