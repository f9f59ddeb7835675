%% SPDX-License-Identifier: Apache-2.0
-module(atoll_bench_overlay_settled_tests).

-include_lib("eunit/include/eunit.hrl").

-define(ALL, [a, b, c, d]).

settled_is_when_all_know_all_and_hang_together_test() ->
    ?assertEqual(ok, check(ring())).

connections_that_nobody_stands_by_do_not_matter_test() ->
    #{a := {Members, Neighbours, _}} = Ring = ring(),
    ?assertEqual(ok, check(Ring#{a => {Members, Neighbours, [b, c, d]}})).

a_node_that_does_not_know_all_is_named_test() ->
    Ring = ring(),
    ?assertEqual("b does not know just the members (1 in all)", said(Ring#{b => {[a, b, c], [a, c], [a, c]}})).

a_node_that_still_knows_another_is_named_test() ->
    Ring = ring(),
    ?assertEqual("b does not know just the members (1 in all)", said(Ring#{b => {[a, b, c, d, e], [a, c], [a, c]}})).

a_neighbour_on_one_side_only_is_named_test() ->
    Ring = ring(),
    ?assertEqual("a has a neighbour that holds it for none (1 in all)", said(Ring#{a => {?ALL, [b, c, d], [b, c, d]}})).

a_neighbour_that_is_no_node_of_the_cluster_is_named_test() ->
    Ring = ring(),
    ?assertEqual("d has a neighbour that holds it for none (1 in all)", said(Ring#{d => {?ALL, [a, c, e], [a, c, e]}})).

islands_are_not_settled_test() ->
    Views = maps:from_list([{N, {?ALL, [M], [M]}} || {N, M} <- [{a, b}, {b, a}, {c, d}, {d, c}]]),
    ?assertEqual("c cannot be reached over neighbours (2 in all)", said(Views)).

a_node_that_says_nothing_is_not_settled_test() ->
    ?assertEqual("d says nothing (1 in all)", said(maps:remove(d, ring()))).

a_mesh_takes_each_with_each_test() ->
    {not_yet, Why} = atoll_bench_overlay_settled:check(mesh, ?ALL, ring()),
    ?assertEqual("a is no neighbour of all (4 in all)", lists:flatten(Why)),
    Full = maps:from_list([{N, {?ALL, ?ALL -- [N], ?ALL -- [N]}} || N <- ?ALL]),
    ?assertEqual(ok, atoll_bench_overlay_settled:check(mesh, ?ALL, Full)).

members_of_groups_are_linked_with_these_alone_test() ->
    Groups = [[a, b, c], [c, d]],
    Views = #{a => {?ALL, [b, c], [b, c, d]}, b => {?ALL, [a, c], [a, c]}, c => {?ALL, [a, b, d], [a, b, d]}, d => {?ALL, [c], [a, c]}},
    ?assertEqual(ok, atoll_bench_overlay_settled:check({groups, Groups}, ?ALL, Views)),
    #{a := {_, _, Connected}, d := {_, _, OfD}} = Views,
    More = Views#{a => {?ALL, [b, c, d], Connected}, d => {?ALL, [a, c], OfD}},
    {not_yet, Why} = atoll_bench_overlay_settled:check({groups, Groups}, ?ALL, More),
    ?assertEqual("a is not linked with just its groups (2 in all)", lists:flatten(Why)).

nodes_on_their_own_are_connected_with_nobody_test() ->
    Alone = #{a => {[a], [], []}, b => {[b], [], []}},
    ?assertEqual(ok, atoll_bench_overlay_settled:check(alone, [a, b], Alone)),
    {not_yet, Why} = atoll_bench_overlay_settled:check(alone, [a, b], Alone#{a => {[a, b], [b], [b]}}),
    ?assertEqual("a is connected with some node (1 in all)", lists:flatten(Why)).

ring() ->
    maps:from_list([{N, {?ALL, Ns, Ns}} || {N, Ns} <- [{a, [b, d]}, {b, [a, c]}, {c, [b, d]}, {d, [a, c]}]]).

check(Views) ->
    atoll_bench_overlay_settled:check(some, lists:reverse(?ALL), Views).

said(Views) ->
    {not_yet, Why} = check(Views),
    lists:flatten(Why).
