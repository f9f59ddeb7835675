%% SPDX-License-Identifier: Apache-2.0
%% Whom the driver of the ring asks.
-module(atoll_load_ring_tests).

-include_lib("eunit/include/eunit.hrl").

-define(NODES, [a, b, c]).

workers_ask_all_nodes_by_turns_test() ->
    Asked = [hd(Asked) || At <- lists:seq(1, 6), {Turn, Asked} <- [atoll_load_ring:in_turn(?NODES, At, ?NODES)], Turn =:= hd(Asked)],
    ?assertEqual([b, c, a, b, c, a], Asked).

a_node_that_is_lost_is_not_asked_test() ->
    Asked = fun(Connected) -> [atoll_load_ring:in_turn(?NODES, At, Connected) || At <- [3, 4, 5]] end,
    ?assertEqual([{a, [a, c]}, {b, [c, a]}, {c, [c, a]}], Asked([c, client, a])),
    ?assertEqual([{a, [c]}, {b, [c]}, {c, [c]}], Asked([c])),
    %% Where none is there somebody has to be tried.
    ?assertEqual([{a, [a]}, {b, [b]}, {c, [c]}], Asked([client])).

a_node_that_has_begun_nothing_is_no_failure_test() ->
    Of = fun(Says) ->
        Self = self(),
        Said = atoll_load_ring:asked(fun(Node) -> Self ! {asked, Node}, map_get(Node, Says) end, ?NODES),
        {Said, asked()}
    end,
    [?assertEqual({{ok, seen}, [a, b]}, Of(#{a => {error, Why}, b => {ok, seen}})) || Why <- [not_started, starting, no_ring]],
    ?assertEqual({{error, starting}, [a, b, c]}, Of(#{a => {error, not_started}, b => {error, no_ring}, c => {error, starting}})),
    %% It may have been done, and done again it would stand there twice.
    [?assertEqual({{error, Why}, [a]}, Of(#{a => {error, Why}})) || Why <- [noconnection, timeout, overloaded, {lost, b}, {too_few, 1, 2}]].

asked() -> receive {asked, Node} -> [Node | asked()] after 0 -> [] end.
