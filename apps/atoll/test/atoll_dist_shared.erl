%% SPDX-License-Identifier: Apache-2.0
%% What holds of connections of every kind, for the suites that have nodes of each.
-module(atoll_dist_shared).

-include_lib("stdlib/include/assert.hrl").

-import(atoll_dist_nodes, [name/1, call/4, call/5, connect/2, kinds/1, logged/2, until/1]).

-export([connect_at_once/3, reconnect_under_traffic/2, ends_once/3, unread_holds_its_own/2, code_is_loaded/3]).

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
    %% A gigabyte over TLS takes minutes where the machine has other work.
    _ = atoll_tier:tier() =:= deep andalso ct:timetrap({minutes, 10}),
    Unread = atoll_tier:size(unread),
    Bytes = 100,
    Before = call(B, atoll_dist_probe, unread, [Unread]),
    Bulk = call(A, atoll_dist_probe, sends_amid, [name(B), Unread, Bytes, 1000 * Bytes], 500000),
    Held = call(B, atoll_dist_probe, held_by_unread, []) - Before,
    ct:pal("~b unread messages of ~b bytes hold ~b bytes, amid ~b MB for others", [Unread, Bytes, Held, Bulk div 1000000]),
    ?assert(Held < 2 * Unread * Bytes + 1000000),
    %% They are all there.
    ?assertEqual(Unread, call(B, atoll_dist_probe, reads_unread, [])).

%% Two nodes that are connected. The carrier's code is loaded three times on all of these
%% nodes under load, and in the deep tier three times at rest: no connection is closed, and nothing is lost.
code_is_loaded(Nodes, A, B) ->
    Senders = 4,
    Ends = [{A, B}, {B, A}],
    _ = [
        begin
            _ = call(At, atoll_dist_probe, echo, [echo]),
            ok = call(At, atoll_dist_probe, hears, [name(To)]),
            ok = call(At, atoll_dist_probe, counts, [])
        end
     || {At, To} <- Ends
    ],
    Loads = fun() ->
        _ = [call(N, atoll_dist_probe, loads_carrier, []) || N <- Nodes],
        _ = [?assertEqual(I, call(At, atoll_dist_probe, ask, [name(To), echo, I])) || {At, To} <- Ends, I <- [1, 2, 3]]
    end,
    %% So little is read that nothing else comes in between, and so much that nobody hibernates.
    ok = call(B, atoll_dist_probe, loads_amid_drops, [name(A), 12]),
    _ = [ok = call(At, atoll_dist_probe, sends_numbers, [name(To), Senders]) || {At, To} <- Ends],
    _ = [Loads() || _ <- [1, 2, 3]],
    Sent = [call(At, atoll_dist_probe, sent_numbers, []) || {At, _} <- Ends],
    AtRest = fun() -> [until(fun() -> call(N, atoll_dist_probe, Who, []) =:= [] end) || N <- Nodes, Who <- [in_old_code, waiting_in_code]] end,
    _ = AtRest(),
    _ = [{Loads(), AtRest()} || atoll_tier:tier() =:= deep, _ <- [1, 2, 3]],
    Counted = [call(To, atoll_dist_probe, counted_numbers, [Senders]) || {_, To} <- Ends],
    ct:pal("~p", [Counted]),
    ?assertEqual(Sent, Counted),
    _ = [?assert(lists:min(Each) > 100) || Each <- Counted],
    _ = [?assertEqual([], call(At, atoll_dist_probe, heard, [])) || {At, _} <- Ends],
    _ = [?assertEqual(0, logged(N, "crasher:")) || N <- Nodes].
