%% SPDX-License-Identifier: Apache-2.0
%% A table of nodes is a value, and while it is open the same table in another place.
-module(atoll_sim_nodes_tests).

-include_lib("eunit/include/eunit.hrl").

what_is_put_is_found_open_or_closed_test() ->
    T1 = atoll_sim_nodes:put(b, 2, atoll_sim_nodes:put(a, 1, atoll_sim_nodes:new())),
    T2 = atoll_sim_nodes:open(T1),
    ?assertEqual([1, 2, undefined], [atoll_sim_nodes:find(N, T2) || N <- [a, b, c]]),
    T3 = atoll_sim_nodes:put(c, 3, atoll_sim_nodes:put(a, 11, T2)),
    ?assertEqual([11, 2, 3], [atoll_sim_nodes:find(N, T3) || N <- [a, b, c]]),
    ?assertEqual([a, b, c], atoll_sim_nodes:names(T3)),
    T4 = atoll_sim_nodes:close(T3),
    ?assertEqual([11, 2, 3], [atoll_sim_nodes:find(N, T4) || N <- [a, b, c]]),
    %% The one that was opened is as it was.
    ?assertEqual([1, 2, undefined], [atoll_sim_nodes:find(N, T1) || N <- [a, b, c]]).

each_node_is_what_is_made_of_it_test() ->
    Table = atoll_sim_nodes:put(b, 2, atoll_sim_nodes:put(a, 1, atoll_sim_nodes:new())),
    Doubled = atoll_sim_nodes:map(fun(N) -> 2 * N end, Table),
    ?assertEqual([2, 4], [atoll_sim_nodes:find(Name, Doubled) || Name <- atoll_sim_nodes:names(Doubled)]).

a_change_of_an_open_table_is_no_new_term_test() ->
    Open = atoll_sim_nodes:open(atoll_sim_nodes:put(a, 1, atoll_sim_nodes:new())),
    ?assertEqual(Open, atoll_sim_nodes:put(a, 2, Open)),
    ?assertNotEqual(Open, atoll_sim_nodes:put(b, 1, Open)),
    ok = atoll_sim_nodes:drop().

nothing_of_it_stays_in_the_dictionary_test() ->
    Before = lists:sort(get_keys()),
    Open = atoll_sim_nodes:open(atoll_sim_nodes:put(a, 1, atoll_sim_nodes:new())),
    ?assertNotEqual(Before, lists:sort(get_keys())),
    _ = atoll_sim_nodes:close(atoll_sim_nodes:put(b, 2, Open)),
    ?assertEqual(Before, lists:sort(get_keys())),
    _ = atoll_sim_nodes:open(atoll_sim_nodes:put(a, 1, atoll_sim_nodes:new())),
    ok = atoll_sim_nodes:drop(),
    ?assertEqual(Before, lists:sort(get_keys())).
