%% SPDX-License-Identifier: Apache-2.0
%% The overlay from above: parts, degrees, links that one end alone knows.
-module(atoll_sim_graph_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

the_largest_part_is_first_test() ->
    Graph = [{a, []}, {b, [c]}, {c, [b]}, {d, [e]}, {e, [d]}, {f, [b]}],
    ?assertEqual([[b, c, f], [d, e], [a]], atoll_sim_graph:components(Graph)),
    ?assertEqual(0.5, atoll_sim_graph:connected(Graph)).

a_link_that_one_end_names_joins_test() ->
    ?assertEqual([[a, b]], atoll_sim_graph:components([{a, []}, {b, [a]}])).

the_dead_connect_nothing_test() ->
    Graph = [{a, [x]}, {b, [x]}],
    ?assertEqual([[a], [b]], atoll_sim_graph:components(Graph)),
    ?assertMatch(#{dangling := 2, symmetric := 1.0, components := 2}, atoll_sim_graph:summary(Graph)).

nobody_is_whole_test() ->
    ?assertEqual([], atoll_sim_graph:components([])),
    ?assertEqual(1.0, atoll_sim_graph:connected([])),
    ?assertMatch(#{nodes := 0, connected := 1.0, degree_min := 0}, atoll_sim_graph:summary([])).

degrees_and_symmetry_test() ->
    Graph = [{a, [b, c]}, {b, [a]}, {c, []}, {d, [x]}],
    ?assertMatch(
        #{degree_min := 0, degree_max := 2, degree_mean := 1.0, symmetric := 2 / 3},
        atoll_sim_graph:summary(Graph)
    ),
    ?assertEqual([{a, c}, {d, x}], atoll_sim_graph:one_sided(Graph)).

ten_thousand_nodes_take_no_time_test_() ->
    {timeout, 60, fun ten_thousand_nodes_take_no_time/0}.

ten_thousand_nodes_take_no_time() ->
    {Graph, _} = lists:mapfoldl(
        fun(N, R0) ->
            {Peers, R} = lists:mapfoldl(fun(_, R1) -> rand:uniform_s(10000, R1) end, R0, lists:seq(1, 5)),
            {{name(N), [name(P) || P <- lists:usort(Peers), P =/= N]}, R}
        end,
        rand:seed_s(exsss, 7),
        lists:seq(1, 10000)
    ),
    {reductions, Before} = process_info(self(), reductions),
    ?assertMatch(#{connected := 1.0, nodes := 10000}, atoll_sim_graph:summary(Graph)),
    {reductions, After} = process_info(self(), reductions),
    %% Not of the clock, since the machine may be busy: so many are some 60 ms.
    ?assert(After - Before < 5000000, After - Before).

name(N) ->
    list_to_atom("n" ++ integer_to_list(N)).

properties_test_() ->
    atoll_prop:test(?FUNCTION_NAME, prop_parts(), 300).

%% The parts are those of digraph, an implementation of its own.
prop_parts() ->
    ?FORALL({Size, Ends}, {choose(1, 12), list({choose(1, 15), choose(1, 15)})}, begin
        Graph = [
            {name(N), lists:usort([name(To) || {From, To} <- Ends, From =:= N, To =/= N])}
         || N <- lists:seq(1, Size)
        ],
        Parts = atoll_sim_graph:components(Graph),
        lists:sort([lists:sort(P) || P <- Parts]) =:= slow(Graph) andalso
            [length(P) || P <- Parts] =:= lists:reverse(lists:sort([length(P) || P <- Parts])) andalso
            atoll_sim_graph:connected(Graph) =:= length(hd(Parts)) / Size
    end).

slow(Graph) ->
    Digraph = digraph:new(),
    _ = [digraph:add_vertex(Digraph, Node) || {Node, _} <- Graph],
    _ = [digraph:add_edge(Digraph, Node, Peer) || {Node, Peers} <- Graph, Peer <- Peers],
    Parts = digraph_utils:components(Digraph),
    true = digraph:delete(Digraph),
    lists:sort([lists:sort(Part) || Part <- Parts]).
